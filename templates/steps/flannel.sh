# Flannel's manifest, patched. MANIFEST: YAML. Server-side apply keeps what others own.
printf '%s\n' "$MANIFEST" | kube apply --server-side --force-conflicts --field-manager=k8sup -f - | sed 's/ serverside-applied$//'
