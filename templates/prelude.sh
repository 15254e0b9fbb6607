#!/bin/sh
# What every step may use. It is put in front of each script of templates/steps;
# the parameters of a step are shell variables in capitals.
# shellcheck disable=SC2034,SC2153,SC2154 # parameters come from outside, and not every step uses all of this
set -eu
umask 022
record=/var/lib/k8sup

say() { printf '%s\n' "$*"; }
die() {
  printf '%s\n' "$*" >&2
  exit 1
}

# A path as a file name.
flat() { printf %s "$1" | tr / %; }

# there PATH: a file, or a link, wherever it leads.
there() { [ -e "$1" ] || [ -L "$1" ]; }

# copy FROM TO: as it is, a link as a link, in one move.
copy() {
  cp -a "$1" "$2.new"
  [ -L "$2.new" ] || sync "$2.new"
  mv -T "$2.new" "$2"
}

# remember PATH: keeps what stood there before k8sup first wrote it.
remember() {
  mkdir -p "$record/files"
  _key=$record/files/$(flat "$1")
  if there "$_key.before" || [ -e "$_key.absent" ]; then return 0; fi
  if there "$1"; then
    copy "$1" "$_key.before"
  else
    : >"$_key.absent"
  fi
  sync "$record/files"
}

# note KIND LINE: records a change that is not a file, once.
note() {
  mkdir -p "$record/entries"
  grep -qxF -- "$2" "$record/entries/$1" 2>/dev/null && return 0
  printf '%s\n' "$2" >>"$record/entries/$1"
  sync "$record/entries/$1"
}

# What is written, but not yet in force: an end between the two must not look like done.
# pend UNIT, settle UNIT, is_pending UNIT.
pend() { note pending "$1"; }
is_pending() { grep -qxF -- "$1" "$record/entries/pending" 2>/dev/null; }
settle() {
  is_pending "$1" || return 0
  grep -vxF -- "$1" "$record/entries/pending" >"$record/pending.new" || true
  if [ -s "$record/pending.new" ]; then mv "$record/pending.new" "$record/entries/pending"; else rm -f "$record/pending.new" "$record/entries/pending"; fi
}
# differs PATH CONTENT
differs() { ! printf %s "$2" | cmp -s - "$1"; }

# folder PATH: makes a folder and notes which of its parts are new.
folder() {
  [ ! -d "$1" ] || return 0
  folder "$(dirname "$1")"
  note dir "$1"
  mkdir "$1"
}

# put PATH MODE CONTENT: writes a file if its bytes differ, in one move; sets changed=1.
# Mode - keeps the mode of a file that is there.
# shellcheck disable=SC2034 # for the step to look at
changed=0
put() {
  if [ -f "$1" ] && ! differs "$1" "$3"; then
    ours "$1"
    return 0
  fi
  remember "$1"
  folder "$(dirname "$1")"
  _new=$(mktemp "$1.k8sup-XXXXXX")
  _scratch="$_scratch $_new"
  printf %s "$3" >"$_new"
  if [ "$2" != - ]; then chmod "$2" "$_new"; elif [ -e "$1" ]; then chmod --reference="$1" "$_new"; else chmod 644 "$_new"; fi
  sync "$_new"
  # Ours first: a power cut between the two leaves a file that does not match, which is kept.
  printf %s "$3" | sha256sum | cut -d' ' -f1 >"$record/files/$(flat "$1").ours"
  mv -T "$_new" "$1"
  changed=1
  say "wrote $1"
}

# ours PATH: the file is as k8sup wants it, and if k8sup has a record of it, its bytes are ours.
ours() {
  _key=$record/files/$(flat "$1")
  if there "$_key.before" || [ -e "$_key.absent" ]; then sha256sum <"$1" | cut -d' ' -f1 >"$_key.ours"; fi
}

# drop PATH: removes a file that k8sup wrote or that must not be there, keeping what stood before.
drop() {
  there "$1" || return 0
  remember "$1"
  rm -f "$1"
  changed=1
  say "removed $1"
}

# RUN, where given, is the run that this step belongs to: while it was silent another one may have taken over.
if [ -e /run/k8sup/lock ] && [ -n "${RUN:-}" ] && ! grep -qxF "run $RUN" /run/k8sup/lock; then
  die "another run of k8sup has taken over on this host: $(sed -n 's/^holder //p' /run/k8sup/lock)"
fi

# heed_links PATHS: who reads these files reads them anew. A network is never restarted.
heed_links() {
  case $1 in *NetworkManager/conf.d*) nmcli general reload conf >/dev/null || say "NetworkManager reads its configuration at its next start" ;; esac
  case $1 in *systemd/network*) udevadm control --reload || true ;; esac
}

# secret PATH CONTENT: a file for the time of this step only, in memory, gone when it ends.
mkdir -p /run/k8sup
chmod 700 /run/k8sup
secret() {
  (umask 077 && printf %s "$2" >"$1")
  _scratch="$_scratch $1"
}
# What must not stay, however the step ends.
_scratch=''
# shellcheck disable=SC2086 # a list of plain paths
trap 'rm -f $_scratch' EXIT
trap 'exit 143' TERM HUP INT

# wait_until SECONDS WHAT COMMAND…: asks twice a second, however long an answer takes.
wait_until() {
  _now=$(date +%s)
  _end=$((_now + $1)) _what=$2 _say=$_now
  shift 2
  until "$@" >/dev/null 2>&1; do
    _now=$(date +%s)
    [ "$_now" -lt "$_end" ] || return 1
    if [ "$_now" -ge "$_say" ]; then
      say "waiting for $_what, at most $((_end - _now)) s more"
      _say=$((_now + 8))
    fi
    sleep 0.5
  done
}

# lines TEXT COMMAND…: runs COMMAND with each line of TEXT as its last argument.
lines() {
  _text=$1
  shift
  [ -n "$_text" ] || return 0
  printf '%s\n' "$_text" >"/run/k8sup/lines.$$"
  while IFS= read -r _line <&9; do
    [ -z "$_line" ] || "$@" "$_line"
  done 9<"/run/k8sup/lines.$$"
  rm -f "/run/k8sup/lines.$$"
}

# without_chatter COMMAND…: leaves out the lines that kubeadm's etcd client writes for every try.
without_chatter() {
  rm -f /run/k8sup/chatter
  mkfifo -m 600 /run/k8sup/chatter
  grep -v '\[core\] \[Channel #' </run/k8sup/chatter >&2 &
  _filter=$! _rc=0
  "$@" 2>/run/k8sup/chatter || _rc=$?
  wait "$_filter" || true
  rm -f /run/k8sup/chatter
  return "$_rc"
}

admin=/etc/kubernetes/admin.conf
# kube COMMAND…: kubectl at this controller's own API server, so that another one that is just
# leaving or joining behind the load balancer is not asked.
kube() {
  _own=$(sed -n 's/^ *- --advertise-address=//p' /etc/kubernetes/manifests/kube-apiserver.yaml 2>/dev/null) || true
  kubectl --kubeconfig "$admin" ${_own:+--server "https://$_own:6443"} "$@"
}

# undo_kubeadm: `kubeadm reset` of this host alone; etcd's member list is not its business.
undo_kubeadm() {
  secret /run/k8sup/reset.yaml 'apiVersion: kubeadm.k8s.io/v1beta4
kind: ResetConfiguration
force: true
cleanupTmpDir: true
criSocket: unix:///run/containerd/containerd.sock
unmountFlags: [MNT_DETACH]
'
  secret /run/k8sup/reset.log ''
  kubeadm reset --config /run/k8sup/reset.yaml --skip-phases remove-etcd-member >/run/k8sup/reset.log 2>&1 || {
    tail -n 20 /run/k8sup/reset.log >&2
    die "kubeadm reset failed"
  }
  grep -iE 'failed|error' /run/k8sup/reset.log || true
}

# keep PATH: a file of somebody else's in a folder that goes; kept_back: where it was. Through the record, so that no end
# in between loses it.
keep() {
  mkdir -p "$record/kept"
  [ ! -e "$1" ] || copy "$1" "$record/kept/$(flat "$1")"
}
kept_back() {
  for _kept in "$record"/kept/*; do
    [ -e "$_kept" ] || continue
    _path=$(printf %s "${_kept##*/}" | tr % /)
    mkdir -p "$(dirname "$_path")"
    there "$_path" || cp -a "$_kept" "$_path"
    sync "$_path"
    say "kept $_path"
  done
  rm -rf "$record/kept"
}

# clear_etcd FOLDER: stops kubeadm's etcd and deletes its data, and nothing else that may be there. As long as kubeadm's own files still say whose it is,
# so that an end half-way does not look like somebody else's etcd.
clear_etcd() {
  systemctl -q stop kubelet 2>/dev/null || true
  for _id in $(crictl ps -q --name '^etcd$' 2>/dev/null || true); do crictl stop "$_id" >/dev/null || true; done
  rm -rf "$1/member"
}

# in_etcd COMMAND…: etcdctl in the local etcd container.
in_etcd() {
  _id=$(crictl ps -q --name '^etcd$' 2>/dev/null | head -n 1)
  [ -n "$_id" ] || return 1
  crictl exec "$_id" etcdctl --endpoints=https://127.0.0.1:2379 --command-timeout=5s \
    --cacert=/etc/kubernetes/pki/etcd/ca.crt --cert=/etc/kubernetes/pki/etcd/healthcheck-client.crt \
    --key=/etc/kubernetes/pki/etcd/healthcheck-client.key "$@"
}

# leave_etcd NODE ADDRESS: removes a host's etcd member, from another host, when the others go on without it.
# etcd itself sees to the majority before the removal.
leave_etcd() {
  _list=$(in_etcd member list) || die "etcd on this host does not answer, so $1 cannot be taken out of it"
  _entry=$(printf '%s\n' "$_list" | grep -F "https://$2:2380") || return 0
  case $_entry in
  *', false')
    _voters=0 _healthy=0
    # One by one: a dead member would fail the whole question.
    for _url in $(printf '%s\n' "$_list" | grep ', false$' | grep -vF "https://$2:2380" | cut -d, -f5); do
      _voters=$((_voters + 1))
      if in_etcd --endpoints="$_url" endpoint health >/dev/null 2>&1; then _healthy=$((_healthy + 1)); fi
    done
    [ $((_healthy * 2)) -gt "$_voters" ] ||
      die "beside $1 etcd has $_voters voters, of which $_healthy are healthy: removing its member would lose the quorum"
    ;;
  esac
  in_etcd member remove "${_entry%%,*}" || die "etcd does not let go of $1"
}
