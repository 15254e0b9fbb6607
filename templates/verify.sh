#!/bin/sh
# Waits until the cluster serves; each wait is a watch. NODES: one a line. LIMIT: seconds for all of it.
set -u
end=$(($(date +%s) + LIMIT))
left() {
  _left=$((end - $(date +%s)))
  if [ "$_left" -lt 1 ]; then _left=1; fi
  printf '%ss' "$_left"
}
kube() { kubectl --kubeconfig /etc/kubernetes/admin.conf "$@"; }
failed=0
try() { # WHAT COMMAND…
  _what=$1
  shift
  echo "waiting for $_what"
  "$@" 2>&1 | tail -n 1 | cut -c1-200
  # The exit status of a watch is asked for again: sh has no pipefail.
}
for node in $NODES; do
  kube wait --for=create "node/$node" --timeout="$(left)" >/dev/null 2>&1 || { echo "node $node has not registered" >&2; failed=1; }
done
set --
for node in $NODES; do set -- "$@" "node/$node"; done
try "nodes to be Ready" kube wait --for=condition=Ready "$@" --timeout="$(left)"
try "kube-proxy" kube -n kube-system rollout status ds/kube-proxy --timeout="$(left)"
try "flannel" kube -n kube-flannel rollout status ds/kube-flannel-ds --timeout="$(left)"
try "CoreDNS" kube -n kube-system rollout status deploy/coredns --timeout="$(left)"
for wait in \
  "ds/kube-proxy kube-system" "ds/kube-flannel-ds kube-flannel" "deploy/coredns kube-system"; do
  kube -n "${wait#* }" rollout status "${wait% *}" --watch=false 2>/dev/null | grep -q 'successfully rolled out' || failed=1
done
if [ "$failed" = 1 ]; then
  kube get pods -A --field-selector status.phase!=Running -o wide 2>&1 | head -n 12 >&2
  kube get events -A --field-selector type=Warning --sort-by=.lastTimestamp 2>/dev/null | tail -n 8 | cut -c1-250 >&2
fi
exit "$failed"
