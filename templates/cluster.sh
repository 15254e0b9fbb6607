# shellcheck shell=sh disable=SC2317 # `section` calls the functions
# Asks the API server and etcd of this controller what the cluster is made of; src/facts/parse
# reads the sections, which look like those of probe.sh. Changes nothing, prints no secret: of
# Secrets only the names. The queries run side by side, each with a limit of its own.
#
# Parameters, set before this script:
#   NONCE    marks the lines that belong to this script
#   ADDRESS  the controller's address inside the cluster

# limited COMMAND…: 4 s for an answer, and time for a small or busy host to start the program.
limited() {
  timeout -k 1 12 "$@"
  limited_status=$?
  case $limited_status in 124 | 137) echo "did not answer within 12 s" >&2 ;; esac
  return "$limited_status"
}

# Until kubeadm has bound the admin's rights, which is late in an init, only the super-admin may
# look; the founding controller alone has it.
kubeconfig=/etc/kubernetes/admin.conf
[ ! -f /etc/kubernetes/super-admin.conf ] || kubeconfig=/etc/kubernetes/super-admin.conf

# kubectl against the API server of this host; the load balancer may be what is broken. Its
# cache goes to the scratch directory: a look leaves nothing behind.
api() {
  limited kubectl --kubeconfig "$kubeconfig" --server "https://$ADDRESS:6443" \
    --cache-dir "$scratch/cache" --request-timeout 4s "$@"
}

# The nodes, one line of JSON each, and of the system's secrets the names.
nodes() {
  api -n kube-system get nodes,secrets -o jsonpath='{range .items[?(@.kind=="Node")]}node {@}{"\n"}{end}{range .items[?(@.kind=="Secret")]}secret {.metadata.name}{"\n"}{end}'
}

# Objects by name from several namespaces in one call; those that do not exist are left out.
objects() {
  api get -f - --ignore-not-found -o json <<'END'
{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "kube-system", "name": "kubeadm-config"}},
  {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "kube-system", "name": "kubelet-config"}},
  {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "kube-system", "name": "kube-proxy"}},
  {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "kube-system", "name": "coredns"}},
  {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "kube-public", "name": "cluster-info"}},
  {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "kube-flannel", "name": "kube-flannel-cfg"}},
  {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"namespace": "kube-system", "name": "kube-proxy"}},
  {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"namespace": "kube-flannel", "name": "kube-flannel-ds"}},
  {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "kube-system", "name": "coredns"}},
  {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "kubeadm:cluster-admins"}},
  {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"namespace": "kube-system", "name": "kube-controller-manager"}}
]}
END
}

members() {
  [ -f /etc/kubernetes/manifests/etcd.yaml ] || return "$absent"
  socket=unix:///run/containerd/containerd.sock
  container=$(limited crictl --runtime-endpoint "$socket" ps --name '^etcd$' -q) || return 1
  container=$(printf '%s\n' "$container" | head -n 1)
  if [ -z "$container" ]; then
    echo "etcd's container does not run" >&2
    return 1
  fi
  pki=/etc/kubernetes/pki/etcd
  limited crictl --runtime-endpoint "$socket" exec -s "$container" etcdctl --endpoints https://127.0.0.1:2379 \
    --cacert "$pki/ca.crt" --cert "$pki/healthcheck-client.crt" --key "$pki/healthcheck-client.key" \
    --command-timeout 4s member list -w json
}

if [ ! -f /etc/kubernetes/admin.conf ]; then
  echo "/etc/kubernetes/admin.conf does not exist" >&2
  exit 1
fi
scratch=$(mktemp -d /run/k8sup-cluster.XXXXXX) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

for name in nodes objects members; do
  section "$name" "$name" </dev/null >"$scratch/$name" 2>/dev/null &
done
wait
for name in nodes objects members; do
  cat "$scratch/$name"
done
printf '@@%s done\n' "$NONCE"
exit 0
