#!/bin/bash
# download.sh: gets the lab's binaries from where their projects publish them, and
# checks every file against a checksum published beside it. Gives up quickly where
# these hosts cannot be reached.
#
# usage: download.sh --probe     do dl.k8s.io and github.com answer?
#        download.sh OUT TARGET  one target (as in artifacts.sh): NAME.zst files in OUT
set -euo pipefail

etcd_36=v3.6.16
etcd_35=v3.5.35
coredns=1.12.1
cni=v1.9.1
flannel=v0.28.10
flannel_cni=v1.9.1-flannel3
crictl=v1.34.0
pause=3.10.1

die() { echo "download.sh: $*" >&2; exit 1; }
get() { # URL FILE
  curl -fsSL --connect-timeout 5 --retry 2 --speed-limit 5000 --speed-time 30 -o "$2" "$1" || die "cannot download $1"
}
quietly() { curl -fsSL --connect-timeout 5 --max-time 20 "$@" 2>/dev/null; }

check() { # FILE SHA256 URL
  [[ $2 =~ ^[0-9a-f]{64}$ ]] || die "no checksum is published for $3"
  [ "$(sha256sum <"$1" | cut -d' ' -f1)" = "$2" ] || die "$3 does not have the checksum that is published for it"
}

# release REPOSITORY TAG FILE: a file of a GitHub release. Projects publish its
# checksum as FILE.sha256 or in SHA256SUMS; GitHub itself knows it for newer ones.
release() {
  local base=https://github.com/$1/releases/download/$2 sum
  get "$base/$3" "$tmp/$3"
  sum=$(quietly "$base/$3.sha256" | grep -oiE '\b[0-9a-f]{64}\b' | head -n 1) ||
    sum=$(quietly "$base/SHA256SUMS" | awk -v f="$3" '$2 == f || $2 == "*" f { print $1 }' | grep .) ||
    sum=$(quietly "https://api.github.com/repos/$1/releases/tags/$2" | python3 -c '
import json, sys
for asset in json.load(sys.stdin)["assets"]:
    if asset["name"] == sys.argv[1]:
        print((asset.get("digest") or "").removeprefix("sha256:"))' "$3") || sum=
  check "$tmp/$3" "$sum" "$base/$3"
}

# An executable that is no ELF file is an error page.
keep() { # FILE NAME
  [ "$(head -c 4 "$1" | tail -c 3)" = ELF ] || die "$2 is not an executable"
  zstd -q -f -3 -T0 "$1" -o "$out/$2.zst"
}

unpack() { mkdir -p "$tmp/files" && tar -xzf "$tmp/$1" -C "$tmp/files"; }

kubernetes() { # VERSION: one by one, as upstream publishes them
  local base=https://dl.k8s.io/release/v$1/bin/linux/amd64 b
  for b in kubeadm kubelet kubectl kube-apiserver kube-controller-manager kube-scheduler kube-proxy; do
    get "$base/$b" "$tmp/$b"
    check "$tmp/$b" "$(quietly "$base/$b.sha256" | grep -oE '[0-9a-f]{64}' || true)" "$base/$b"
    keep "$tmp/$b" "$b-$1"
    rm "$tmp/$b"
  done
}

etcd() { # SERIES TAG TOOL…
  local series=$1 name=etcd-$2-linux-amd64 tool
  release etcd-io/etcd "$2" "$name.tar.gz"
  unpack "$name.tar.gz"
  shift 2
  for tool in etcd "$@"; do keep "$tmp/files/$name/$tool" "$tool-$series"; done
}

download() { # TARGET
  local p
  case $1 in
  kubernetes-*) kubernetes "${1#kubernetes-}" ;;
  etcd-3.6) etcd 3.6 $etcd_36 etcdctl etcdutl ;;
  etcd-3.5) etcd 3.5 $etcd_35 etcdctl ;;
  coredns)
    release coredns/coredns "v$coredns" "coredns_${coredns}_linux_amd64.tgz"
    unpack "coredns_${coredns}_linux_amd64.tgz"
    keep "$tmp/files/coredns" coredns
    ;;
  cni)
    release containernetworking/plugins $cni "cni-plugins-linux-amd64-$cni.tgz"
    unpack "cni-plugins-linux-amd64-$cni.tgz"
    for p in bandwidth bridge host-local loopback portmap; do keep "$tmp/files/$p" "cni-$p"; done
    ;;
  crictl)
    release kubernetes-sigs/cri-tools $crictl "crictl-$crictl-linux-amd64.tar.gz"
    unpack "crictl-$crictl-linux-amd64.tar.gz"
    keep "$tmp/files/crictl" crictl
    ;;
  flanneld)
    release flannel-io/flannel $flannel flanneld-amd64
    keep "$tmp/flanneld-amd64" flanneld
    ;;
  flannel-cni)
    release flannel-io/cni-plugin $flannel_cni flannel-amd64
    keep "$tmp/flannel-amd64" flannel-cni
    ;;
  pause) # published as an image only
    timeout 120 skopeo --insecure-policy copy -q "docker://registry.k8s.io/pause:$pause" "dir:$tmp/image" || die "cannot pull pause:$pause"
    for p in "$tmp"/image/*; do tar -xf "$p" -C "$tmp" pause 2>/dev/null || true; done
    keep "$tmp/pause" pause
    ;;
  *) die "no target $1" ;;
  esac
}

if [ "${1:-}" = --probe ]; then
  for url in https://dl.k8s.io/release/stable.txt https://github.com/etcd-io/etcd/releases; do
    quietly -o /dev/null "$url" || exit 1
  done
  exit
fi
[ $# = 2 ] || die "usage: download.sh --probe | OUT TARGET"
out=$(mkdir -p "$1" && cd "$1" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
download "$2"
