# The resolvers that CoreDNS forwards to. PATCH: a merge patch with the new Corefile.
secret /run/k8sup/corefile.json "$PATCH"
kube -n kube-system patch configmap coredns --type merge --patch-file /run/k8sup/corefile.json
kube -n kube-system rollout restart deployment coredns
