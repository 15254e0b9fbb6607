#!/bin/bash
# openssh.sh: installs OpenSSH's server from Debian's archive, with sudo and two more login shells, for the tests that
# log in to it. Needs root; without it those tests are skipped, and say so (with CI=true they fail).
set -euo pipefail
packages=()
for pair in sshd:openssh-server sudo:sudo fish:fish tcsh:tcsh unshare:util-linux script:bsdutils; do
  PATH=$PATH:/usr/sbin command -v "${pair%%:*}" >/dev/null || packages+=("${pair#*:}")
done
[ ${#packages[@]} -gt 0 ] || exit 0
[ "$(id -u)" = 0 ] || { echo "openssh: missing: apt-get install ${packages[*]}" >&2; exit 0; }
echo "== installing ${packages[*]}"
{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends "${packages[@]}"; } >/dev/null
