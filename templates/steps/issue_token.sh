# A bootstrap token for hosts that join a running cluster. TOKEN.
printf '%s' "$TOKEN" | {
  read -r token || true
  # kubeadm takes a token from its arguments only; the API takes it from standard input.
  kube apply -f - >/dev/null <<MANIFEST
apiVersion: v1
kind: Secret
metadata: {name: "bootstrap-token-${token%%.*}", namespace: kube-system}
type: bootstrap.kubernetes.io/token
stringData:
  token-id: "${token%%.*}"
  token-secret: "${token#*.}"
  expiration: "$(date -u -d '+2 hours' +%Y-%m-%dT%H:%M:%SZ)"
  usage-bootstrap-authentication: "true"
  usage-bootstrap-signing: "true"
  auth-extra-groups: system:bootstrappers:kubeadm:default-node-token
  description: k8sup
MANIFEST
}
say "ca-cert-data $(base64 -w 0 /etc/kubernetes/pki/ca.crt)"
