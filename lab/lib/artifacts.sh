# Where the binaries come from: prebuilt ones, the projects' own downloads, or a
# build from source. Afterwards `artifacts` is a folder with SHA256SUMS and one
# NAME.zst per binary, whatever the way.
# shellcheck shell=bash disable=SC2154,SC2034 # variables are shared with lab

# What a version of Kubernetes needs, as targets of build/artifacts.sh.
targets_of() { # VERSION
  case $1 in
  1.34.*) echo "pause cni flannel-cni crictl coredns etcd-3.6 flanneld kubernetes-$1" ;;
  1.33.*) echo "pause cni flannel-cni crictl coredns etcd-3.5 flanneld kubernetes-$1" ;;
  *) die "Kubernetes $1 is not one the lab knows: ${all_versions[*]}" ;;
  esac
}
targets() { for v in "$@"; do targets_of "$v"; done | tr ' ' '\n' | awk '!seen[$0]++'; }

# Sets `artifacts` and `versions`.
find_artifacts() {
  local shared=$here/../../shared/lab/artifacts
  if [ -n "${K8SUP_LAB_ARTIFACTS:-}" ]; then
    artifacts=$K8SUP_LAB_ARTIFACTS
    [ -e "$artifacts/SHA256SUMS" ] || die "there is no SHA256SUMS in $artifacts (K8SUP_LAB_ARTIFACTS)"
  elif [ -e "$shared/SHA256SUMS" ]; then
    artifacts=$(cd "$shared" && pwd)
  else
    read -ra versions <<<"${K8SUP_LAB_VERSIONS:-${all_versions[0]}}"
    get_artifacts
  fi
  which_versions
}

# By default all versions whose binaries are there.
which_versions() {
  local v
  versions=()
  for v in ${K8SUP_LAB_VERSIONS:-${all_versions[@]}}; do
    targets_of "$v" >/dev/null
    if has_version "$v"; then versions+=("$v")
    elif [ -n "${K8SUP_LAB_VERSIONS:-}" ]; then die "$artifacts has no Kubernetes $v, which K8SUP_LAB_VERSIONS asks for"; fi
  done
  [ ${#versions[@]} -gt 0 ] || die "$artifacts has none of Kubernetes ${all_versions[*]}"
}
# Either all of Kubernetes in one file, or its binaries one by one.
has_version() { [ -e "$artifacts/kubernetes-$1.zst" ] || [ -e "$artifacts/kubeadm-$1.zst" ]; }

get_artifacts() {
  artifacts=$(entry artifacts "$(recipe "${versions[*]}" "$here/build/artifacts.sh" "$here/build/download.sh" "$here"/build/*/go.mod)")
  make_entry "$artifacts" fill_artifacts
}

fill_artifacts() { # TREE
  local missing=() t list
  mapfile -t list < <(targets "${versions[@]}")
  need_curl
  say "no prebuilt binaries: trying the official downloads"
  if "$here/build/download.sh" --probe; then
    for t in "${list[@]}"; do
      task "downloading $t" "$here/build/download.sh" "$1" "$t" || missing+=("$t")
    done
  else
    say "they do not answer"
    missing=("${list[@]}")
  fi
  if [ ${#missing[@]} -gt 0 ]; then
    need_compiler
    "$here/build/artifacts.sh" "$1" "${missing[@]}"
  fi
  (cd "$1" && sha256sum ./*.zst | sed 's#\./##' >SHA256SUMS)
}

need_curl() {
  command -v curl >/dev/null || task "installing curl" apt_install curl ca-certificates || die "cannot install curl with apt-get"
}

need_compiler() {
  command -v go >/dev/null ||
    die "there are no prebuilt binaries and no Go toolchain to build them: install Go (go.dev/dl), or point K8SUP_LAB_ARTIFACTS at a folder made by build/artifacts.sh"
  command -v cc >/dev/null || task "installing a C compiler" apt_install gcc libc6-dev || die "cannot install gcc with apt-get"
}

# The unpacked binaries, needed only while packages and images are made.
unpack_artifacts() { # TREE
  local f
  (cd "$artifacts" && sha256sum --quiet -c SHA256SUMS) || die "$artifacts is damaged"
  mkdir -p "$1"
  for f in "$artifacts"/*.zst; do
    case $(basename "$f") in
    kube*-[0-9]*) case " ${versions[*]} " in *" $(basename "$f" .zst | sed 's/.*-//') "*) ;; *) continue ;; esac ;;
    esac
    zstd -qdf "$f" -o "$1/$(basename "$f" .zst)" || die "cannot unpack $f"
    chmod 755 "$1/$(basename "$f" .zst)"
  done
}
