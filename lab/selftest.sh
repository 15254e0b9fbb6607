#!/bin/bash
# selftest.sh: does the lab keep its promises, above all after something was killed?
# Runs in state folders of its own beside any lab that is up, and ends only processes
# that its own labs started. As root; takes about three minutes with a filled cache.
#
# usage: selftest.sh
set -uo pipefail

here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
lab=$here/lab
unset K8SUP_LAB_NETNS
base=${K8SUP_LAB_SELFTEST:-/var/tmp/k8sup-lab-selftest}
export K8SUP_LAB_DIR=$base/one
log=$base/log
failed=0
inotify=/proc/sys/fs/inotify/max_user_instances

[ "$(id -u)" = 0 ] || { echo "selftest.sh needs root" >&2; exit 2; }

# --- how things are checked ----------------------------------------------------------

# ok WHAT CMD…: CMD succeeds.
ok() {
  local what=$1
  shift
  if "$@" >"$log" 2>&1; then echo "ok    $what"; else
    echo "FAIL  $what: $*"
    sed 's/^/      /' "$log" | tail -n 15
    failed=$((failed + 1))
  fi
}
not() { ! "$@"; }
says() { # says PATTERN CMD…
  local pattern=$1 said
  shift
  said=$("$@" 2>&1)
  echo "$said"
  grep -qE -- "$pattern" <<<"$said"
}
state() { says "^$1 .* $2\$" "$lab" status; } # state HOST STATE
answers() { "$lab" ssh "$1" true; }
second() { K8SUP_LAB_DIR=$base/two "$lab" "$@"; }
within() { # within SECONDS CMD…
  local from=$SECONDS
  "${@:2}" && { echo "took $((SECONDS - from)) s"; [ $((SECONDS - from)) -le "$1" ]; }
}

# The processes that the lab in a state folder started, by the mark in their
# environment, and the hosts' own first processes, which are their children.
marked() { # STATE-FOLDER
  grep -lzxF "K8SUP_LAB_DIR=$1" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 | while read -r pid; do
    if grep -qz '^K8SUP_LAB_DAEMON=' "/proc/$pid/environ" 2>/dev/null; then echo "$pid"; fi
  done
}
supervisor() { cut -d' ' -f1 "$K8SUP_LAB_DIR/run/host-$1.pid"; }
first() { pgrep -P "$(supervisor "$1")" | head -n 1; }
boot_id() { "$lab" ssh "$1" cat /proc/sys/kernel/random/boot_id; }
kill_hard() { kill -9 "$@"; sleep 0.5; }

netns_of() { # STATE-FOLDER: as lab derives it
  echo "k8sup-lab-$(sha256sum <<<"$1" | cut -c1-8)"
}

# Anything that a lab left on this machine outside its state folder.
left() { # STATE-FOLDER
  local ns
  ns=$(netns_of "$1")
  {
    grep -F " $1/" /proc/self/mountinfo | sed 's/^/mount /'
    grep -lF " $1/" /proc/[0-9]*/mountinfo 2>/dev/null | sed 's/^/mounts of /'
    ip netns list | awk -v n="$ns" '$1 == n { print "netns", $1 }'
    find /sys/fs/cgroup -type d -name "$ns-*" | sed 's/^/cgroup /'
    marked "$1" | sed 's/^/process /'
    pgrep -af 'gpg-agent.*k8sup-lab' | sed 's/^/agent /'
    find /tmp -maxdepth 1 -name 'nspawn-*' | sed 's/^/file /'
    [ ! -e "${K8SUP_LAB_CACHE:-/var/tmp/k8sup-lab-cache}/labs/$ns" ] || echo "registration $ns"
  } | tee /dev/stderr
}
nothing_left() { [ -z "$(left "$1")" ]; }

end() {
  "$lab" purge >/dev/null 2>&1
  second purge >/dev/null 2>&1
  [ -z "${bystander:-}" ] || kill "$bystander" 2>/dev/null
  rm -rf --one-file-system "$base"
}
trap end EXIT
trap 'exit 130' INT TERM

mkdir -p "$base"
limit_before=$(cat $inotify)
agents_before=$(ls -d ~/.gnupg 2>/dev/null)

# --- what hosts find -------------------------------------------------------------------

ok "up boots three releases" "$lab" up cp1 w2 w3
ok "up again changes nothing and is quick" within 10 "$lab" up cp1 w2 w3
# shellcheck disable=SC2016 # the host's variables
ok "trixie, user pi" says '^trixie pi$' "$lab" ssh cp1 '. /etc/os-release; echo $VERSION_CODENAME $USER'
ok "bookworm, sudo asks for the password" says 'password is required' "$lab" ssh w2 sudo -n true
ok "… which is in w2.password" "$lab" ssh w2 sudo -S true <"$base/one/w2.password"
ok "w2.password is for the owner only" [ "$(stat -c %a "$base/one/w2.password")" = 600 ]
ok "forky's containerd is 2.1 or newer" says 'Candidate: 2\.[1-9]' "$lab" ssh w3 'sudo apt-get update -qq; apt-cache policy containerd'
ok "packages install" "$lab" ssh w3 sudo apt-get install -y -qq --no-install-recommends socat
ok "Kubernetes packages are there" "$lab" run curl -fsS "http://192.168.7.1/core:/stable:/v1.34/deb/InRelease"
ok "Flannel's manifest is upstream's" says '^944a3c1f925f117727a1b7272a323c80965da642498397ec7e6ea9bef0f9e6c5' \
  bash -c "'$lab' run curl -fsS http://192.168.7.1/flannel/releases/download/v0.28.10/kube-flannel.yml | sha256sum"
ok "images are there" "$lab" run curl -fsS http://192.168.7.1:5000/v2/kube-apiserver/manifests/v1.34.4 -o /dev/null \
  -H 'Accept: application/vnd.oci.image.manifest.v1+json'
ok "an outside name resolves" says '^192\.168\.7\.1 ' "$lab" ssh cp1 getent hosts www.outside.lab.test
ok "a host's name resolves" says '^192\.168\.7\.203 ' "$lab" ssh cp1 getent hosts cp3.lab.test
ok "any other name fails at once" within 1 not "$lab" ssh cp1 getent hosts www.example.org
ok "nothing outside can be reached" not "$lab" run timeout 3 bash -c ': </dev/tcp/1.1.1.1/443'

# --- hosts come and go -----------------------------------------------------------------

strict() { "$lab" run ssh -i "$base/one/id_ed25519" -o StrictHostKeyChecking=yes -o UserKnownHostsFile="$base/one/known_hosts" \
  -o IdentitiesOnly=yes -o BatchMode=yes pi@192.168.7.205 true; }
ok "known_hosts is right" strict
old=$(grep '^192.168.7.205 ssh-ed25519' "$base/one/known_hosts")
"$lab" ssh w2 touch marker
ok "stop keeps the disk" "$lab" stop w2
ok "… and says so" state w2 off
ok "start" "$lab" start w2
ok "the file is still there" "$lab" ssh w2 test -e marker
ok "rebuild" "$lab" rebuild w2
ok "the file is gone" "$lab" ssh w2 test ! -e marker
ok "the host key is another" not grep -qF "$old" "$base/one/known_hosts"
ok "known_hosts is right again" strict
ok "cut" "$lab" cut w2
ok "a cut host is said to be" state w2 'on, link cut'
ok "it does not answer" not "$lab" run timeout 3 bash -c ': </dev/tcp/192.168.7.205/22'
ok "exec still gets in" "$lab" exec w2 true
ok "heal" "$lab" heal w2
ok "it answers again" "$lab" run timeout 20 bash -c 'until (: </dev/tcp/192.168.7.205/22) 2>/dev/null; do sleep 0.2; done'
ok "stop --hard" within 5 "$lab" stop --hard w2
ok "up boots a stopped host" "$lab" up w2
snapshot_twice() { "$lab" snapshot w2 >"$base/s1" && "$lab" snapshot w2 >"$base/s2" && diff "$base/s1" "$base/s2"; }
ok "two snapshots are the same" snapshot_twice
"$lab" exec w2 sh -c 'echo x >/etc/kubernetes.test; ip link add lab9 type bridge'
"$lab" snapshot w2 >"$base/s3"
ok "a snapshot shows a new file" says '^> file /etc/kubernetes.test f 644 root:root [0-9a-f]{64}' diff "$base/s1" "$base/s3"
ok "… and a new link" says '^> link lab9' diff "$base/s1" "$base/s3"

# --- a second lab beside it ----------------------------------------------------------------

id=$(boot_id cp1)
ok "a second lab is up at once" within 40 second up cp1
ok "it has other keys" not diff -q "$base/one/known_hosts" "$base/two/known_hosts"
ok "its hosts are others" not [ "$(second ssh cp1 cat /etc/machine-id)" = "$("$lab" ssh cp1 cat /etc/machine-id)" ]
ok "the namespace of another lab is refused" says 'belongs to the lab in' \
  env K8SUP_LAB_DIR="$base/three" K8SUP_LAB_NETNS="$(netns_of "$base/one")" "$lab" up cp1
rm -rf "$base/three"
ok "it goes down" second down
ok "and leaves nothing" nothing_left "$base/two"
ok "the first has not noticed" [ "$(boot_id cp1)" = "$id" ]

# --- the cache ---------------------------------------------------------------------------

cache=${K8SUP_LAB_CACHE:-/var/tmp/k8sup-lab-cache}
mkdir "$cache"/selftest-00000000000{1,2,3}
touch -d '1 hour ago' "$cache/selftest-000000000001"
touch -d '2 hours ago' "$cache/selftest-000000000003"
ok "up drops what no lab uses" "$lab" up cp1
ok "… but what was used last" [ "$(cd "$cache" && echo selftest-*)" = selftest-000000000002 ]
rmdir "$cache"/selftest-*
ok "the cache is not removed under a lab's feet" says 'is in use by' env K8SUP_LAB_DIR="$base/three" "$lab" purge --cache
ok "… it is still there" [ -d "$cache/keys" ]

# --- killed ----------------------------------------------------------------------------------

ok "the supervisor of w3 is killed" kill_hard "$(supervisor w3)"
ok "w3 still answers" answers w3
ok "status says what is wrong" says '^w3 .* on, without its supervisor' "$lab" status
ok "exec gets in" "$lab" exec w3 true
ok "up restarts it" "$lab" up cp1 w2 w3
ok "w3 is on" state w3 on
ok "w3 answers" answers w3
ok "cp1 was left alone" [ "$(boot_id cp1)" = "$id" ]

ok "the first process of w2 is killed" kill_hard "$(first w2)"
ok "w2 is off" state w2 off
ok "up boots it" "$lab" up w2
ok "w2 answers" answers w2

ok "all services are killed" kill_hard "$(cut -d' ' -f1 "$base/one/run/http.pid")" \
  "$(cut -d' ' -f1 "$base/one/run/registry.pid")" "$(cut -d' ' -f1 "$base/one/run/resolver.pid")"
ok "status says so" says '^images .* off' "$lab" status
ok "up starts them" "$lab" up cp1
ok "they are on" says '^names .* on$' "$lab" status

sleep 1000 &
bystander=$!
rm -rf "$base/one/run"
mkdir "$base/one/run"
echo "$bystander 12345" >"$base/one/run/http.pid"
ok "all pid files are lost, one is of another process" state w3 on
ok "up finds its processes" "$lab" up cp1 w2 w3
ok "cp1 was left alone" [ "$(boot_id cp1)" = "$id" ]
ok "only one supervisor a host" [ "$(pgrep -fc "systemd-nspawn.*--directory=$base/one/hosts/cp1/")" = 1 ]
ok "the other process lives" kill -0 "$bystander"

"$lab" ssh cp1 'touch marker; sync'
# shellcheck disable=SC2046 # one word a process
ok "everything is killed at once" kill_hard $(for h in cp1 w2 w3; do first $h; done) $(marked "$base/one")
ok "status still works" state cp1 off
ok "up boots all" "$lab" up cp1 w2 w3
ok "cp1 has its disk" "$lab" ssh cp1 test -e marker
ok "w3 answers" answers w3

"$lab" rebuild cp1 w2 w3 >/dev/null 2>&1 &
rebuild=$!
sleep 1.5
ok "a rebuild is killed in the middle" kill_hard $rebuild
ok "up repairs it" "$lab" up cp1 w2 w3
ok "cp1 answers" answers cp1
ok "w2 answers" answers w2

# shellcheck disable=SC2046 # one word a process
ok "all supervisors are killed" kill_hard $(for h in cp1 w2 w3; do supervisor $h; done)
"$lab" run sleep 500 &
ok "down takes down what still runs" "$lab" down
ok "nothing is left" nothing_left "$base/one"
ok "status says that nothing is up" says 'nothing is up' "$lab" status
ok "down again is harmless" "$lab" down

ok "up once more" "$lab" up w2
# shellcheck disable=SC2046 # one word a process
ok "everything is killed at once" kill_hard "$(first w2)" $(marked "$base/one")
ok "down cleans up" "$lab" down
ok "nothing is left" nothing_left "$base/one"
ok "purge removes the state folder" "$lab" purge
ok "it is gone" [ ! -e "$base/one" ]
ok "no GnuPG folder of root's came to be" [ "$(ls -d ~/.gnupg 2>/dev/null)" = "$agents_before" ]
ok "the limit of inotify instances is what it was" [ "$(cat $inotify)" = "$limit_before" ]

if [ $failed = 0 ]; then echo "all is well"; else echo "$failed failed"; exit 1; fi
