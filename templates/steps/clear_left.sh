# What earlier clusters and other tools left in the way of a host that is to join.
# ASIDE: CNI configuration of others, which reset gives back; STALE: files of an earlier Flannel. LINKS: to remove.
# NETWORK: 1 when links, rules, leases or namespaces of an earlier cluster are there. CHAINS: beginnings of its chains.
lines "$ASIDE" drop
lines "$STALE" rm -f
if [ "$NETWORK" = 1 ]; then
  clear_network "$LINKS" "$CHAINS"
  rm -rf /run/flannel /var/lib/cni/flannel /var/lib/cni/networks/cbr0
  # Podman has its own there.
  case $CHAINS in *CNI*) rm -rf /var/lib/cni ;; esac
fi
