# The container images, as the data of a registry that only reads them.
# shellcheck shell=bash disable=SC2154 # variables are shared with lab

image_root_packages=(busybox-static iptables conntrack ipset kmod nftables)

image_root_recipe() { recipe "${image_root_packages[*]}" fill_image_root scratch_apt; }

# The files below the images of kube-proxy and Flannel: iptables and a shell.
fill_image_root() { # TREE
  local root=$1 scratch=$cache/making/apt-images f
  mkdir -p "$scratch/debs/partial"
  source_line trixie >"$scratch/sources.list"
  : >"$scratch/status"
  scratch_apt "$scratch" "$scratch/status" update || return 1
  scratch_apt "$scratch" "$scratch/status" -o Dir::Cache::archives="$scratch/debs/" --no-install-recommends \
    install --download-only "${image_root_packages[@]}" >/dev/null ||
    { say "cannot fetch the files below the images"; return 1; }
  mkdir -p "$root"/usr/{bin,sbin,lib,lib64}
  for f in bin sbin lib lib64; do ln -s "usr/$f" "$root/$f"; done
  for f in "$scratch"/debs/*.deb; do dpkg-deb --fsys-tarfile "$f" | tar -x --keep-directory-symlink -C "$root"; done
  rm -rf "$root"/usr/share/{doc,man,locale,lintian,bug,perl5} "$root"/usr/lib/*/{perl,perl-base,gconv} "${root:?}/var"
  # Debian's alternatives make these links at install time.
  for f in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
    ln -sf xtables-nft-multi "$root/usr/sbin/$f"
  done
  for f in $("$root/usr/bin/busybox" --list); do
    [ -e "$root/usr/bin/$f" ] || [ -e "$root/usr/sbin/$f" ] || ln -s busybox "$root/usr/bin/$f"
  done
  rm -rf "$scratch"
}

images_recipe() {
  recipe "${versions[*]}" "$artifacts/SHA256SUMS" "$(image_root_recipe)" "$here/images.py" fill_images push_images
}

# Pushed to a registry in a network of its own: what that stores is the entry.
fill_images() { # TREE BINARIES IMAGE-ROOT
  local out=$cache/making/oci v args=()
  for v in "${versions[@]}"; do args+=("v$v"); done
  mkdir -p "$out"
  python3 "$here/images.py" "$2" "$3" "$out" "${args[@]}" >"$out/list" || return 1
  unshare --net "$here/lab" _push "$1" "$out" || return 1
  rm -rf "$out"
}

push_images() { # TREE OUT
  local layout ref
  ip link set lo up
  registry_config "$1" 127.0.0.1:5000 false >"$2/registry.yml"
  docker-registry serve "$2/registry.yml" >"$2/registry.log" 2>&1 &
  # shellcheck disable=SC2064 # the pid of now
  trap "kill $!" EXIT
  wait_open 127.0.0.1 5000 10 || { tail -n 5 "$2/registry.log" >&2; die "the registry did not start"; }
  while read -r layout ref; do
    skopeo --insecure-policy copy -q --preserve-digests --dest-tls-verify=false "oci:$layout" "docker://127.0.0.1:5000/$ref" ||
      die "cannot push $ref"
  done <"$2/list"
}

registry_config() { # FOLDER ADDRESS READ-ONLY
  cat <<YAML
version: 0.1
storage: {filesystem: {rootdirectory: $1}, maintenance: {readonly: {enabled: $3}}}
http: {addr: "$2"}
log: {level: error, accesslog: {disabled: true}}
YAML
}
