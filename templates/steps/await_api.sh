# The control plane was started before; waits for its API server. ADDRESS: this host's.
ready() { kubectl --kubeconfig "$admin" --server "https://$ADDRESS:6443" --request-timeout 2s get --raw /readyz; }
wait_until 240 "the API server of this host" ready || die "the API server on https://$ADDRESS:6443 does not become ready"
