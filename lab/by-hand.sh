#!/bin/bash
# by-hand.sh: brings up the whole cluster on the lab's hosts by hand, as fast as
# it can be done, and prints how many seconds each step took. It is the mark
# that k8sup's own speed is compared with.
#
# usage: by-hand.sh prepare         installs and configures the packages on fresh hosts
#        by-hand.sh join            init, then `kubeadm join` for the other controllers, one at a time
#        by-hand.sh together        all three controllers at once, from one set of certificates
#        by-hand.sh measure HOW [N] rebuild, prepare and bring up, N (3) times; HOW is join or together
#
# K8S_VERSION=1.33.13 takes that version instead of 1.34.4.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
lab=$here/lab
work=${K8SUP_LAB_DIR:-/var/tmp/k8sup-lab}/by-hand
version=${K8S_VERSION:-1.34.4}
lb=192.168.7.140
controllers=(cp1 cp2 cp3)
workers=(w1 w2 w3)
nodes=("${controllers[@]}" "${workers[@]}")
declare -A address=([cp1]=192.168.7.201 [cp2]=192.168.7.202 [cp3]=192.168.7.203
  [w1]=192.168.7.204 [w2]=192.168.7.205 [w3]=192.168.7.206)
token=abcdef.0123456789abcdef
certificate_key=$(printf '%064d' 1)
socket=unix:///run/containerd/containerd.sock
# kubeadm's own file of tags: v1.34 and v1.33 differ.
case $version in
1.34.*) pause=3.10.1 ;;
*) pause=3.10 ;;
esac

# --- time -------------------------------------------------------------------

began=0
clock() { echo "${EPOCHREALTIME/./}"; }
seconds() { awk -v from="$1" -v to="$2" 'BEGIN { printf "%6.1f", (to - from) / 1e6 }'; }

# step NAME CMD…: runs CMD with its output in a log, and writes down when it ran.
step() {
  local name=$1 from rc=0
  shift
  from=$(clock)
  "$@" >"$work/$name.log" 2>&1 || rc=$?
  printf '%s %s %s\n' "$(seconds "$began" "$from")" "$(seconds "$from" "$(clock)")" "$name" >>"$work/timeline"
  [ $rc = 0 ] || { echo "by-hand: $name failed ($rc):" >&2; tail -n 15 "$work/$name.log" >&2; }
  return $rc
}

on() { "$lab" exec "$@"; }                    # on HOST CMD…
script() { "$lab" exec "$1" bash -euo pipefail -s; } # script HOST <text
kubectl() { on cp1 env KUBECONFIG=/etc/kubernetes/admin.conf kubectl "$@"; }
each() { # each FUNCTION HOST…: in parallel; fails when one of them fails
  local function=$1 pids=() h p rc=0
  shift
  for h in "$@"; do "$function" "$h" & pids+=($!); done
  for p in "${pids[@]}"; do wait "$p" || rc=1; done
  return $rc
}

# --- the packages -------------------------------------------------------------

prepare_lb() { # HOST
  script "$1" <<'EOF'
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends haproxy
EOF
}

prepare_node() { # HOST
  script "$1" <<EOF
export DEBIAN_FRONTEND=noninteractive
modprobe overlay
modprobe br_netfilter
printf 'net.ipv4.ip_forward=1\nnet.bridge.bridge-nf-call-iptables=1\nnet.bridge.bridge-nf-call-ip6tables=1\n' >/etc/sysctl.d/90-kubernetes.conf
sysctl -q -p /etc/sysctl.d/90-kubernetes.conf
apt-get update -qq
apt-get install -y -qq --no-install-recommends curl
mkdir -p /etc/apt/keyrings
curl -fsS http://192.168.7.1/core:/stable:/v${version%.*}/deb/Release.key -o /etc/apt/keyrings/kubernetes.asc
echo 'deb [signed-by=/etc/apt/keyrings/kubernetes.asc] http://192.168.7.1/core:/stable:/v${version%.*}/deb/ /' >/etc/apt/sources.list.d/kubernetes.list
apt-get update -qq
apt-get install -y -qq --no-install-recommends containerd runc conntrack socat ethtool iptables cri-tools kubeadm kubelet kubectl
mkdir -p /etc/containerd/certs.d/_default
containerd config default | sed -E '
  s#^( *)sandbox(_image)? = .*#\1sandbox\2 = "registry.k8s.io/pause:$pause"#
  s#SystemdCgroup = .*#SystemdCgroup = true#
  s#^( *)config_path = ..\$#\1config_path = "/etc/containerd/certs.d"#
  s#^( *)bin_dir = "/usr/lib/cni"#\1bin_dir = "/opt/cni/bin"#
  s#^( *)bin_dirs = .*#\1bin_dirs = ["/opt/cni/bin"]#' >/etc/containerd/config.toml
printf '[host."http://192.168.7.1:5000"]\n  capabilities = ["pull", "resolve"]\n' >/etc/containerd/certs.d/_default/hosts.toml
systemctl restart containerd
systemctl -q enable kubelet
EOF
}

prepare() {
  step prepare-lb-0 prepare_lb lb-0 &
  each prepare_one "${nodes[@]}"
  wait
}
prepare_one() { step "prepare-$1" prepare_node "$1"; }

# --- the cluster ----------------------------------------------------------------

haproxy_up() {
  script lb-0 <<'EOF'
cat >/etc/haproxy/haproxy.cfg <<'CFG'
global
    maxconn 4096
defaults
    mode tcp
    timeout connect 5s
    timeout client 4h
    timeout server 4h
frontend api
    bind :6443
    default_backend controllers
backend controllers
    option httpchk GET /readyz
    http-check expect status 200
    # A controller that comes up is used within 0.2 s, not 2 s.
    default-server inter 1s downinter 200ms fall 2 rise 1 check check-ssl verify none
    server cp1 192.168.7.201:6443
    server cp2 192.168.7.202:6443
    server cp3 192.168.7.203:6443
CFG
systemctl restart haproxy
EOF
}

# kubeadm_config HOST [together]: what kubeadm init is given on HOST. ECDSA keys
# are made in no time, RSA keys take seconds on a slow machine. With `together`
# the etcd members start as one new cluster of three.
kubeadm_config() {
  cat <<EOF
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: ${address[$1]}}
bootstrapTokens: [{token: $token}]
certificateKey: "$certificate_key"
nodeRegistration: {criSocket: "$socket", imagePullSerial: false}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v$version
controlPlaneEndpoint: $lb:6443
networking: {podSubnet: 10.244.0.0/16}
encryptionAlgorithm: ECDSA-P256
EOF
  [ "${2:-}" = together ] || return 0
  cat <<EOF
etcd:
  local:
    extraArgs:
    - {name: initial-cluster, value: "$(etcd_members)"}
    - {name: initial-cluster-state, value: new}
EOF
}

etcd_members() {
  local h all=()
  for h in "${controllers[@]}"; do all+=("$h=https://${address[$h]}:2380"); done
  (IFS=,; echo "${all[*]}")
}

init() { # HOST
  kubeadm_config "$1" | to_file "$1" /etc/kubernetes/init.yaml
  on "$1" kubeadm init -v5 --config /etc/kubernetes/init.yaml --upload-certs --skip-phases=addon
}

# kubeadm's own add-ons, but CoreDNS is asked every 2 s whether it is ready: the
# first question always comes too early, and the next would be 10 s later.
addons() {
  script cp1 <<'EOF'
export KUBECONFIG=/etc/kubernetes/admin.conf
kubeadm init phase addon coredns --print-manifest --config /etc/kubernetes/init.yaml |
  sed 's/^\( *\)readinessProbe:$/&\n\1  periodSeconds: 2/' | kubectl apply -f - &
kubeadm init phase addon kube-proxy --config /etc/kubernetes/init.yaml
wait
EOF
}

to_file() { on "$1" sh -c "cat >$2"; } # to_file HOST PATH <text

# What each kind of node will need, pulled while the first controller starts.
pull() { # HOST IMAGE…
  local h=$1
  shift
  printf '%s\n' "$@" | on "$h" xargs -P 4 -n 1 crictl -r "$socket" pull
}
flannel_images=(ghcr.io/flannel-io/flannel:v0.28.10 ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel3)
pull_worker() { pull "$1" "registry.k8s.io/"{"pause:$pause","kube-proxy:v$version"} "${flannel_images[@]}"; }
pull_controller() {
  local images
  mapfile -t images < <(on "$1" kubeadm config images list --kubernetes-version "v$version" 2>/dev/null)
  pull "$1" "${images[@]}" "${flannel_images[@]}"
}

# The cluster's address and CA in a file: with --discovery-file a node need not
# wait (in steps of 5 s) until the controller manager has signed the cluster-info
# for the token.
discovery() {
  on cp1 cat /etc/kubernetes/pki/ca.crt | base64 -w 0 | sed 's#.*#apiVersion: v1\
kind: Config\
clusters: [{name: lab, cluster: {server: "https://'$lb':6443", certificate-authority-data: "&"}}]\
users: [{name: lab, user: {token: '$token'}}]\
contexts: [{name: lab, context: {cluster: lab, user: lab}}]\
current-context: lab#' >"$work/discovery.conf"
}

join() { # HOST [OPTION…]
  local h=$1
  shift
  to_file "$h" /etc/kubernetes/discovery.conf <"$work/discovery.conf"
  on "$h" kubeadm join -v5 --discovery-file /etc/kubernetes/discovery.conf \
    --tls-bootstrap-token "$token" --cri-socket "$socket" "$@"
}
join_worker() { step "join-$1" join "$1"; }
join_controller() {
  step "join-$1" join "$1" --control-plane --certificate-key "$certificate_key" \
    --apiserver-advertise-address "${address[$1]}"
}

flannel() { kubectl apply -f - <"$here/flannel.yml"; }

# All nodes Ready, and kube-proxy and CoreDNS available. Each of these watches:
# asking again and again would take the processor from those who need it.
wait_ready() {
  kubectl wait --for=create "${nodes[@]/#/node/}" --timeout=120s
  kubectl wait --for=condition=Ready "${nodes[@]/#/node/}" --timeout=120s
  kubectl -n kube-system rollout status ds/kube-proxy --timeout=120s
  kubectl -n kube-system rollout status deploy/coredns --timeout=120s
}

pull_for() { case $1 in cp*) pull_controller "$1" ;; *) pull_worker "$1" ;; esac; }
pull_step() { step "pull-$1" pull_for "$1"; }

cluster_by_join() {
  step haproxy haproxy_up &
  each pull_step "${nodes[@]}" &
  step init init cp1
  discovery
  step addons addons &
  step flannel flannel &
  each join_worker "${workers[@]}" &
  join_controller cp2
  join_controller cp3
  step wait-ready wait_ready
  wait
}

# --- all controllers at once ------------------------------------------------------

# One set of authorities for all controllers, made on this machine: kubeadm then
# finds them on each host and makes the rest of the certificates from them.
authorities() {
  local pki=$work/pki h
  rm -rf "$pki"
  mkdir -p "$pki/etcd"
  authority "$pki/ca" kubernetes
  authority "$pki/etcd/ca" etcd-ca
  authority "$pki/front-proxy-ca" front-proxy-ca
  openssl ecparam -name prime256v1 -genkey -noout -out "$pki/sa.key"
  openssl ec -in "$pki/sa.key" -pubout -out "$pki/sa.pub"
  for h in "${controllers[@]}"; do
    kubeadm_config "$h" together >"$work/init.yaml"
    tar -C "$work" -c init.yaml pki | on "$h" tar -x --no-same-owner -C /etc/kubernetes
  done
}

authority() { # FILE NAME
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj "/CN=$2" \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,digitalSignature,keyEncipherment,keyCertSign \
    -keyout "$1.key" -out "$1.crt"
}

# Up to a running control plane, the same on each controller.
start_controller() { step "init-$1" on "$1" kubeadm init -v5 --config /etc/kubernetes/init.yaml --skip-phases="$later"; }
later=upload-config,upload-certs,mark-control-plane,bootstrap-token,kubelet-finalize,addon,show-join-command

# What only one controller has to do, without the etcd arguments of the start.
publish() {
  local phase
  kubeadm_config cp1 | to_file cp1 /etc/kubernetes/init.yaml
  for phase in "upload-config all" bootstrap-token; do
    # shellcheck disable=SC2086 # two words
    on cp1 kubeadm init phase $phase --config /etc/kubernetes/init.yaml
  done
}
finish_controller() { # HOST
  step "finish-$1" script "$1" <<EOF
KUBECONFIG=/etc/kubernetes/admin.conf kubectl wait --for=create node/$1 --timeout=60s
kubeadm init phase mark-control-plane --config /etc/kubernetes/init.yaml
kubeadm init phase kubelet-finalize all --config /etc/kubernetes/init.yaml
[ $1 = cp1 ] || rm -f /etc/kubernetes/super-admin.conf
EOF
}

cluster_by_together() {
  step haproxy haproxy_up &
  step authorities authorities
  each pull_step "${nodes[@]}" &
  each start_controller "${controllers[@]}"
  step publish publish
  discovery
  step addons addons &
  step flannel flannel &
  each finish_controller "${controllers[@]}" &
  each join_worker "${workers[@]}"
  step wait-ready wait_ready
  wait
}

# Processor seconds of this machine since it started, and of each program that
# is alive, by name.
cpu_used() { awk -v hz="$(getconf CLK_TCK)" '/^cpu / { print ($2 + $3 + $4 + $7 + $8) / hz }' /proc/stat; }
cpu_by_name() {
  ps -eo comm=,cputimes= | awk '{ sum[$1] += $2 } END { for (n in sum) print n, sum[n] }' | sort
}

cluster() { # join|together
  local cpu
  cpu=$(cpu_used)
  cpu_by_name >"$work/cpu.before"
  began=$(clock)
  : >"$work/timeline"
  "cluster_by_$1"
  printf '%s total %s\n' "$(seconds "$began" "$(clock)")" "$1" | tee -a "$work/totals"
  kubectl get events -A -o custom-columns=TIME:.firstTimestamp,LAST:.lastTimestamp,N:.count,KIND:.involvedObject.kind,NAME:.involvedObject.name,REASON:.reason,WHAT:.message --sort-by=.firstTimestamp >"$work/events" || true
  sort -n "$work/timeline" | awk 'BEGIN { print "  start   took step" } { printf "%7.1f %6.1f %s\n", $1, $2, $3 }'
  awk -v from="$cpu" -v to="$(cpu_used)" -v n="$(nproc)" 'BEGIN { printf "processor time: %.0f s on %d cores, of which\n", to - from, n }'
  cpu_by_name | command join -a 1 - "$work/cpu.before" | awk '$2 - $3 >= 1 { printf "%7d %s\n", $2 - $3, $1 }' | sort -rn | head -n 8
}

# measure HOW TIMES: on fresh hosts each time.
measure() {
  local i
  : >"$work/totals"
  for ((i = 1; i <= $2; i++)); do
    "$lab" rebuild lb-0 "${nodes[@]}"
    began=$(clock)
    : >"$work/timeline"
    prepare
    echo "prepared in $(seconds "$began" "$(clock)") s"
    cluster "$1"
    rm -rf "$work-$1-$i"
    cp -r "$work" "$work-$1-$i"
  done
  sort -n "$work/totals" | awk '{ t[NR] = $1 } END { print "min " t[1] "  median " t[int((NR + 1) / 2)] "  max " t[NR] }'
}

main() {
  mkdir -p "$work"
  case ${1:-} in
  prepare) began=$(clock); : >"$work/timeline"; prepare; sort -n "$work/timeline" ;;
  join | together) cluster "$1" ;;
  measure) measure "${2:?join or together}" "${3:-3}" ;;
  *) sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//'; exit 2 ;;
  esac
}

main "$@"
