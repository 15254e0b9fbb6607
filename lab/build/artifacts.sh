#!/bin/bash
# artifacts.sh: builds the lab's binaries from source with the Go toolchain and
# a C compiler, for when there are no prebuilt ones or another version is wanted.
# Everything comes from the Go module proxy. It says at the start how long that
# takes, and every half minute what it is at.
#
# usage: artifacts.sh OUT [NAME…]   those named, or what the default version needs
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
# What the lab needs by default, and what only Kubernetes 1.33 needs.
targets=(pause cni flannel-cni crictl coredns etcd-3.6 flanneld kubernetes-1.34.4)
others=(etcd-3.5 kubernetes-1.33.13)

# Processor seconds that a target took with nothing in Go's cache but the modules.
declare -A cost=([pause]=2 [cni]=28 [flannel-cni]=5 [crictl]=100 [coredns]=145 [etcd-3.6]=75
  [flanneld]=160 [etcd-3.5]=75 [kubernetes-1.34.4]=720 [kubernetes-1.33.13]=720)

say() { echo "artifacts.sh: $*" >&2; }
die() { say "$*"; exit 1; }

# go_build MODULE OUT PACKAGE [LDFLAGS]: one static binary, compressed.
go_build() {
  local at=$here/$1 name=$2 package=$3 flags="-s -w ${4:-}"
  (cd "$at" && CGO_ENABLED=${cgo:-0} go build -mod=readonly -trimpath -ldflags "$flags" -o "$tmp/$name" "$package")
  keep "$name"
}

keep() { # NAME: from the temporary directory to OUT
  zstd -q -f "-${K8SUP_LAB_ZSTD_LEVEL:-3}" -T0 "$tmp/$1" -o "$out/$1.zst"
  rm "$tmp/$1"
}

# The version that the binaries report; kubeadm derives the images' tags from it.
kubernetes() { # VERSION
  local v=$1 minor=${1%.*} flags='' p
  for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $p.gitVersion=v$v -X $p.gitMajor=1 -X $p.gitMinor=${minor#1.}"
    flags+=" -X $p.gitTreeState=clean -X $p.gitCommit=unknown -X $p.buildDate=2026-01-01T00:00:00Z"
  done
  go_build "kubernetes-$minor" "kubernetes-$v" . "$flags"
}

etcd() { # SERIES TOOL…
  local series=$1 tool
  shift
  go_build "etcd-$series" "etcd-$series" go.etcd.io/etcd/server/v3
  for tool in "$@"; do go_build "etcd-$series" "$tool-$series" "go.etcd.io/etcd/$tool/v3"; done
}

cni() {
  local p
  for p in main/bridge ipam/host-local main/loopback meta/portmap meta/bandwidth; do
    go_build cni "cni-${p#*/}" "github.com/containernetworking/plugins/plugins/$p"
  done
}

# Flannel's UDP backend is C.
flanneld() {
  cgo=1 go_build flannel flanneld github.com/flannel-io/flannel \
    '-X github.com/flannel-io/flannel/pkg/version.Version=v0.28.10 -extldflags "-static"'
}

# pause is one C file inside the Kubernetes module.
pause() {
  local source
  source=$(cd "$here/kubernetes-1.34" && go mod download k8s.io/kubernetes && go list -m -f '{{.Dir}}' k8s.io/kubernetes)
  cc -Os -s -static -DVERSION=3.10.1 -o "$tmp/pause" "$source/build/pause/linux/pause.c"
  keep pause
}

build() { # TARGET
  case $1 in
  kubernetes-*) kubernetes "${1#kubernetes-}" ;;
  etcd-3.6) etcd 3.6 etcdctl etcdutl ;;
  etcd-3.5) etcd 3.5 etcdctl ;;
  coredns) go_build coredns coredns . ;;
  crictl) go_build crictl crictl sigs.k8s.io/cri-tools/cmd/crictl '-X sigs.k8s.io/cri-tools/pkg/version.Version=v1.34.0' ;;
  flannel-cni) go_build flannel-cni flannel-cni github.com/containernetworking/plugins/plugins/meta/flannel ;;
  cni | flanneld | pause) "$1" ;;
  *) die "no target $1; there are: ${targets[*]} ${others[*]}" ;;
  esac
}

[ $# -gt 0 ] || die "usage: artifacts.sh OUT [NAME…]"
for tool in go cc zstd; do command -v $tool >/dev/null || die "needs $tool"; done
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
[ $# -gt 0 ] || set -- "${targets[@]}"

minutes() { # PROCESSOR-SECONDS: on this machine, the compilers using most of it
  local m=$((($1 * 5 / 4 / $(nproc) + 59) / 60))
  if [ $m -le 1 ]; then echo "a minute"; else echo "$m minutes"; fi
}
total=0
for target in "$@"; do
  [ -n "${cost[$target]:-}" ] || die "no target $target; there are: ${targets[*]} ${others[*]}"
  total=$((total + cost[$target]))
done
say "building from source: $* (about $(minutes $total) on this machine, and the download of the modules)"
done_cost=0
for target in "$@"; do
  began=$SECONDS
  (build "$target" 2>"$tmp/log") &
  pid=$!
  next=30
  while kill -0 $pid 2>/dev/null; do
    sleep 0.5
    if [ $((SECONDS - began)) -ge $next ]; then
      say "… $target for $next s"
      next=$((next + 30))
    fi
  done
  wait $pid || { tail -n 20 "$tmp/log" >&2; die "cannot build $target"; }
  done_cost=$((done_cost + cost[$target]))
  say "$target is built ($((SECONDS - began)) s)$([ $done_cost = $total ] || echo ", about $(minutes $((total - done_cost))) to go")"
done
(cd "$out" && sha256sum ./*.zst | sed 's#\./##' >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS)
