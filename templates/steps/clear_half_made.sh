# Clears what an init or join that was ended half-way left on this host, and only here.
# CONTROLLER: 1 when unpromoted etcd data may be there.
if [ "$CONTROLLER" = 1 ]; then
  data=$(sed -n 's/^ *- --data-dir=//p' /etc/kubernetes/manifests/etcd.yaml 2>/dev/null | head -n 1) || true
  clear_etcd "${data:-/var/lib/etcd}"
fi
undo_kubeadm
for left in /etc/kubernetes/manifests/*.yaml /etc/kubernetes/*.conf /etc/kubernetes/pki/ca.crt; do
  [ ! -e "$left" ] || die "kubeadm reset left $left"
done
