# Takes a node out of the cluster, from another controller: its pods move, its etcd member goes, its Node goes.
# NODE: its name. ADDRESS: its address. CONTROLLER: 1 when it has an etcd member.
if kube get node "$NODE" >/dev/null 2>&1; then
  # A drain that does not finish is no reason to keep a host that is to be reset anyway.
  kube drain "$NODE" --ignore-daemonsets --delete-emptydir-data --force --timeout=120s 2>&1 |
    grep -v '^Warning: ignoring' || say "not every pod of $NODE could be moved"
fi
if [ "$CONTROLLER" = 1 ]; then leave_etcd "$NODE" "$ADDRESS"; fi
kube delete node "$NODE" --ignore-not-found --timeout=60s
