#!/bin/bash
# lab-test.sh: the lab tier, in a lab of its own, which is taken down at the end, whatever
# happens. Needs root; without it the tier is skipped, but never in CI.
#
# usage: lab-test.sh [TEST…]   only tests with these in their names
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export K8SUP_LAB_DIR=${K8SUP_LAB_DIR:-/var/tmp/k8sup-lab-test}

if [ "$(id -u)" != 0 ]; then
  if [ "${CI:-}" = true ]; then echo "lab tier: needs root, and in CI it must run" >&2; exit 1; fi
  echo "lab tier: skipped, since it needs root"
  exit 0
fi
[ "$K8SUP_LAB_DIR" != /var/tmp/k8sup-lab ] || { echo "lab tier: $K8SUP_LAB_DIR is the demo's lab" >&2; exit 2; }

# A lab that is in the middle of something must end first; a second Ctrl-C does not stop the end.
end() {
  trap '' INT TERM
  log=$(lab/lab down 2>&1) || { printf '%s\n' "$log" >&2; echo "lab tier: the lab in $K8SUP_LAB_DIR could not be taken down" >&2; }
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

echo "== k8sup and its tests"
cargo test --locked --test lab --no-run
echo "== the lab of the tests"
# One that an earlier run left would be in an unknown state.
lab/lab down
lab/lab up
echo "== the lab tier"
RUST_BACKTRACE=0 K8SUP_LAB_TEST=1 cargo test --locked --test lab -- --test-threads=1 --nocapture "$@"
