#!/bin/bash
# toolchain.sh: is there what k8sup is built with? Says what is missing and how to get it.
#
# usage: toolchain.sh [COMPONENT…]   also asks for clippy or fmt
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

missing() { echo "toolchain: $1" >&2; exit 1; }

wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
command -v cargo >/dev/null || missing "there is no cargo: install Rust $wanted or newer (https://rustup.rs)"
found=$(rustc --version | awk '{ print $2 }')
[ "$(printf '%s\n' "$wanted" "${found%%-*}" | sort -V | head -n 1)" = "$wanted" ] ||
  missing "this is Rust $found, and k8sup needs $wanted or newer: rustup update stable"
command -v cc >/dev/null || missing "there is no C compiler, which the cryptography needs: apt-get install gcc libc6-dev"
for component in "$@"; do
  cargo "$component" --version >/dev/null 2>&1 || missing "cargo $component is missing: rustup component add clippy rustfmt"
done
