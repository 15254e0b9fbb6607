# kubeadm join. CONFIG: JoinConfiguration. DISCOVERY: kubeconfig with the cluster's CA. ADDRESS: this host's.
# CONTROLLER: 1 when an etcd member comes with it.
secret /run/k8sup/kubeadm.yaml "$CONFIG"
secret /run/k8sup/discovery.conf "$DISCOVERY"
kubeadm config validate --config /run/k8sup/kubeadm.yaml
# kubeadm's exit status is not the last word on a controller: etcd's member list is.
status=0
joined() { kubeadm join --config /run/k8sup/kubeadm.yaml; }
without_chatter joined || status=$?
if [ "$CONTROLLER" = 1 ]; then
  votes() { in_etcd member list | grep -F "https://$ADDRESS:2380" | grep -q ', false$'; }
  ready() { kubectl --kubeconfig "$admin" --server "https://$ADDRESS:6443" --request-timeout 2s get --raw /readyz; }
  if [ "$status" != 0 ] && ! { [ -e /etc/kubernetes/manifests/etcd.yaml ] && wait_until 20 "etcd's promotion" votes; }; then
    exit "$status"
  fi
  wait_until 120 "this etcd member to vote" votes || {
    in_etcd member list >&2 || true
    die "kubeadm ended with status $status, and etcd does not list this host as a voter"
  }
  wait_until 120 "the API server of this host" ready || die "the API server of this host does not become ready"
  identity() { [ -s /etc/kubernetes/kubelet.conf ] && [ -s /var/lib/kubelet/pki/kubelet-client-current.pem ]; }
  wait_until 120 "the kubelet's certificate" identity || die "the kubelet of this host does not get its certificate"
elif [ "$status" != 0 ]; then
  exit "$status"
fi
