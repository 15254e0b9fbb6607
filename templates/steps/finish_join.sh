# The kubelet has bootstrapped itself after kubeadm was ended; removes the token that kubeadm left.
identity() { [ -s /etc/kubernetes/kubelet.conf ] && [ -s /var/lib/kubelet/pki/kubelet-client-current.pem ]; }
wait_until 150 "the kubelet's certificate" identity || die "the kubelet does not get its certificate"
rm -f /etc/kubernetes/bootstrap-kubelet.conf
