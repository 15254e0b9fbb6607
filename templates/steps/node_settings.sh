# Labels and taints of a Node. NODE. LABELS, TAINTS: kubectl's arguments, one a line.
# ANNOUNCED, MANAGED: what of them k8sup has put there, during this and afterwards, for the Node's own record.
registered() { kube get node "$NODE"; }
wait_until 120 "node $NODE to register" registered || die "node $NODE did not register"
label() { kube label node "$NODE" --overwrite "$1"; }
taint() { kube taint node "$NODE" --overwrite "$1"; }
remember() { kube annotate node "$NODE" --overwrite "k8sup.dev/managed=$1"; }
# Before anything is put there, so that an end half-way forgets nothing.
[ -z "$ANNOUNCED" ] || remember "$ANNOUNCED"
lines "$LABELS" label
lines "$TAINTS" taint
[ "$MANAGED" = "$ANNOUNCED" ] || remember "$MANAGED"
