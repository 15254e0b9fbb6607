# Images before they are needed, four at a time; those that are there already are not asked for again.
# IMAGES: references, one a line. CONTROL_PLANE: a Kubernetes version to ask kubeadm for its images, or empty.
# REPOSITORY: kubeadm's imageRepository, or empty.
list() {
  printf '%s\n' "$IMAGES"
  if [ -n "$CONTROL_PLANE" ]; then
    kubeadm config images list --kubernetes-version "$CONTROL_PLANE" ${REPOSITORY:+--image-repository "$REPOSITORY"} 2>/dev/null |
      grep -Ev '/(kube-proxy|coredns):'
  fi
}
# shellcheck disable=SC2016 # $0 is the inner shell's
list | grep . | xargs -P 4 -n 1 sh -c '
  if crictl inspecti -q "$0" >/dev/null 2>&1; then echo "has $0"; exit 0; fi
  for try in 1 2 3; do
    if crictl pull "$0" >/dev/null 2>"/run/k8sup/pull.$$" ; then echo "pulled $0"; rm -f "/run/k8sup/pull.$$"; exit 0; fi
    sleep "$try"
  done
  echo "cannot pull $0: $(tail -n 1 "/run/k8sup/pull.$$")" >&2
  rm -f "/run/k8sup/pull.$$"
  exit 1'
