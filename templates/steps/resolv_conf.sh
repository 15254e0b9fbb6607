# A resolv.conf for pods, where the host's own names a stub on its loopback. CONTENT.
put /etc/k8sup-resolv.conf 644 "$CONTENT"
