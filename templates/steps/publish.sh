# The rest of kubeadm init, which makes a running control plane into a cluster that others can join.
# CONFIG: kubeadm's documents.
config=/run/k8sup/kubeadm.yaml
secret "$config" "$CONFIG"
# kubeadm gives an admin's first call to the load balancer only so long: first see that it forwards.
through_lb() { kubectl --kubeconfig /etc/kubernetes/super-admin.conf --request-timeout 2s get --raw /readyz; }
if [ -e /etc/kubernetes/super-admin.conf ]; then
  wait_until 120 "the endpoint to forward to this API server" through_lb ||
    die "the control-plane endpoint does not forward to this API server: $(through_lb 2>&1 | tail -n 1)"
fi
kubeadm init --config "$config" --upload-certs \
  --skip-phases=preflight,certs,kubeconfig,etcd,control-plane,kubelet-start,wait-control-plane,show-join-command >/dev/null
say "ca-cert-data $(base64 -w 0 /etc/kubernetes/pki/ca.crt)"
