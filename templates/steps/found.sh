# kubeadm init up to a running control plane. CONFIG: kubeadm's documents. ADDRESS: this host's.
config=/run/k8sup/kubeadm.yaml
secret "$config" "$CONFIG"
kubeadm config validate --config "$config"
kubeadm init --config "$config" \
  --skip-phases=upload-config,upload-certs,mark-control-plane,bootstrap-token,kubelet-finalize,addon,show-join-command
say "ca-cert-data $(base64 -w 0 /etc/kubernetes/pki/ca.crt)"
