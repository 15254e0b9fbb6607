#!/bin/bash
# browser.sh: installs chromium from Debian's archive, for the test that looks at the timeline. Needs root; without it,
# or without the archive, that test is skipped, and says so.
set -euo pipefail
command -v chromium >/dev/null && exit 0
[ "$(id -u)" = 0 ] || { echo "browser: chromium is missing: apt-get install chromium" >&2; exit 0; }
echo "== installing chromium"
{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends chromium; } >/dev/null ||
  echo "browser: chromium cannot be installed; the timeline is not looked at" >&2
