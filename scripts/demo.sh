#!/bin/bash
# demo.sh: from nothing to a cluster that serves, in the lab. What it makes stays up.
#
# usage: demo.sh   K8SUP_LAB_DIR names another state folder than the lab's default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
default=/var/tmp/k8sup-lab
export K8SUP_LAB_DIR=${K8SUP_LAB_DIR:-$default}
inventory=inventories/lab.yaml
lab=lab/lab

[ "$(id -u)" = 0 ] || { echo "demo: the lab needs root (namespaces, mounts, cgroups)" >&2; exit 1; }
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
# What is done is shown as it could be typed.
run() {
  printf '\033[1m$ %s\033[0m\n' "$*"
  "$@"
}
on_cp1() { $lab ssh cp1 "$@"; }

echo "This boots seven hosts, builds k8sup (a few minutes on two cores, the first time) and makes a cluster."
scripts/toolchain.sh
say "1. Seven Debian hosts that know nothing of Kubernetes"
run $lab up
run $lab status

say "2. k8sup"
run cargo build --locked --release

# The inventory names the files of the default lab.
if [ "$K8SUP_LAB_DIR" != $default ]; then
  inventory=$K8SUP_LAB_DIR/lab.yaml
  sed "s#$default/#$K8SUP_LAB_DIR/#g" inventories/lab.yaml >"$inventory"
fi

say "3. One command"
run $lab run target/release/k8sup apply "$inventory" --yes
run $lab run target/release/k8sup status "$inventory"

say "4. It serves: three pods, a service, and an answer to a machine outside the cluster"
end_demo() { on_cp1 "kubectl delete namespace demo --ignore-not-found --wait=false" >/dev/null 2>&1 || true; }
trap end_demo EXIT
on_cp1 "kubectl create namespace demo && kubectl -n demo create deployment web --image=web:1 --replicas=3 --port=80 &&
  kubectl -n demo expose deployment web --type=NodePort --port=80 && kubectl -n demo rollout status deployment web --timeout=120s &&
  kubectl -n demo get pods -o wide"
port=$(on_cp1 "kubectl -n demo get service web -o jsonpath='{.spec.ports[0].nodePort}'")
for address in 192.168.7.204 192.168.7.205 192.168.7.206; do
  run $lab run curl -fsS --retry 10 --retry-all-errors --retry-delay 1 --max-time 10 "http://$address:$port/"
done
end_demo
trap - EXIT

case $K8SUP_LAB_DIR in "$default") prefix='' ;; *) prefix="K8SUP_LAB_DIR=$K8SUP_LAB_DIR " ;; esac
cat <<TEXT

The cluster is up. To try next, from this folder:

  ${prefix}lab/lab ssh cp1 kubectl get pods -A -o wide

  # Again: nothing to do
  ${prefix}lab/lab run target/release/k8sup apply $inventory

  # A worker with a new disk joins again
  ${prefix}lab/lab rebuild w1
  ${prefix}lab/lab run target/release/k8sup apply $inventory --yes

  # A controller without power: the cluster serves on
  ${prefix}lab/lab stop --hard cp1
  ${prefix}lab/lab run target/release/k8sup status $inventory
  ${prefix}lab/lab start cp1

  # Bare hosts again, at first with the packages, then without
  ${prefix}lab/lab run target/release/k8sup reset $inventory
  ${prefix}lab/lab run target/release/k8sup reset $inventory --purge

  # The end of the lab
  ${prefix}make lab-down
TEXT
