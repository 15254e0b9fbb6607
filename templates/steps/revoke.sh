# What could let another machine in: this tool's bootstrap tokens and the uploaded certificates.
tokens=$(kube -n kube-system get secrets --field-selector type=bootstrap.kubernetes.io/token -o name | grep '/bootstrap-token-k8s...$') || true
# shellcheck disable=SC2086 # names without spaces
kube -n kube-system delete --ignore-not-found secret/kubeadm-certs $tokens
# kubeadm keeps the uploaded certificates' own token under a random name.
owned=$(kube -n kube-system get secrets --field-selector type=bootstrap.kubernetes.io/token \
  -o 'jsonpath={range .items[*]}{.metadata.name}{" "}{.data.description}{"\n"}{end}' |
  awk -v want="$(printf %s 'Proxy for managing TTL for the kubeadm-certs secret' | base64 -w 0)" '$2 == want { print "secret/" $1 }')
# shellcheck disable=SC2086 # names without spaces
if [ -n "$owned" ]; then kube -n kube-system delete --ignore-not-found $owned; fi
