# One more controller may join etcd: all members vote and are healthy, the certificates lie ready.
# CONFIG: kubeadm's documents with the certificate key.
steady() {
  _members=$(in_etcd member list) || return 1
  if printf '%s\n' "$_members" | grep -qE 'unstarted|, true$'; then return 1; fi
  in_etcd endpoint health --cluster
}
wait_until 120 "etcd to be steady" steady || {
  in_etcd member list >&2 || true
  in_etcd endpoint health --cluster >&2 || true
  die "etcd is not steady: a member is unstarted, unhealthy or still a learner"
}
config=/run/k8sup/kubeadm.yaml
secret "$config" "$CONFIG"
kubeadm init phase upload-certs --upload-certs --config "$config" >/dev/null
