# The machine the lab runs on: messages, long tasks, locks, tools, daemons.
# Knows nothing of hosts, packages or images.
# shellcheck shell=bash disable=SC2154 # dir and netns are set in lab

say() { printf 'lab: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
now() { date +%s; }

# --- long tasks -----------------------------------------------------------------

# task WHAT CMD…: runs CMD in the background and says every ten seconds that it
# is still at it. CMD runs in a subshell: what it sets is lost. With a function as
# CMD it is not to be called in a condition: bash would go on after what fails there.
task() {
  local what=$1 pid began next passed
  shift
  began=$(now)
  next=10
  say "$what"
  "$@" &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2
    passed=$(($(now) - began))
    if [ "$passed" -ge "$next" ]; then
      say "… still at it after $passed s"
      next=$((passed + 10))
    fi
  done
  wait "$pid"
}

# all FUNCTION NAME…: FUNCTION for each NAME at once; fails when one of them fails.
# Not to be called in a condition either.
all() {
  local function=$1 pids=() name pid rc=0
  shift
  for name in "$@"; do "$function" "$name" & pids+=($!); done
  for pid in "${pids[@]}"; do wait "$pid" || rc=1; done
  return $rc
}

# A background job of a script does not hear Ctrl-C, so its whole tree is told.
end_children() { # PID
  local child
  for child in $(pgrep -P "$1"); do
    end_children "$child"
    kill "$child" 2>/dev/null || true
  done
}
trap 'say "failed: $BASH_COMMAND (${BASH_SOURCE[0]##*/}, line $LINENO)"' ERR
trap 'end_children $$; exit 130' INT
trap 'end_children $$; exit 143' TERM

# --- tools ----------------------------------------------------------------------

need_root() { [ "$(id -u)" = 0 ] || die "needs root (namespaces, mounts, cgroups)"; }

apt_install() {
  apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# Installs the tools that are missing with the machine's own apt.
need_tools() {
  local missing=() pair
  [ -r /etc/debian_version ] || die "needs a Debian (or a derivative): it installs its tools with apt"
  for pair in mmdebstrap:mmdebstrap systemd-nspawn:systemd-container skopeo:skopeo \
    docker-registry:docker-registry apt-ftparchive:apt-utils gpg:gnupg zstd:zstd \
    ssh:openssh-client ssh-keygen:openssh-client ip:iproute2 nsenter:util-linux \
    flock:util-linux pgrep:procps openssl:openssl dnsmasq:dnsmasq-base; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
  done
  python3 -c 'import http.server, tarfile' 2>/dev/null || missing+=(python3)
  [ ${#missing[@]} = 0 ] && return
  task "installing ${missing[*]}" apt_install "${missing[@]}" || die "cannot install ${missing[*]} with apt-get"
}

# --- locks ------------------------------------------------------------------------

# take FD FILE WHAT: an exclusive lock on FILE, waiting for whoever has it. It ends
# with the process, so nothing is left behind by one that was killed.
take() {
  local fd=$1 file=$2 what=$3 waited=0
  eval "exec $fd>>\"\$file\""
  until flock -n "$fd"; do
    if [ $((waited % 10)) = 0 ]; then say "waiting for $(cat "$file" 2>/dev/null || echo 'another lab command'), which is busy with $what"; fi
    [ $waited -lt 900 ] || die "gave up waiting for $file"
    sleep 1
    waited=$((waited + 1))
  done
  echo "lab ${command:-} (process $$)" >"$file"
}

# Changing commands must not run at once: they share mounts and tables.
lock() {
  mkdir -p "$dir"/{run,hosts,log}
  take 9 "$dir/lock" "$dir"
}

# --- daemons ----------------------------------------------------------------------

# A pid alone may have been given to another process since; with the time at
# which it started it names one process.
# What /proc says of a process from its state on; nothing when there is none.
stat_of() { sed -n 's/.*) //p' "/proc/$1/stat" 2>/dev/null || true; }
start_time() { stat_of "$1" | cut -d' ' -f20; }

# A zombie has ended; somebody only has not noticed yet.
alive() { [ -n "$1" ] && case $(stat_of "$1") in "" | Z* | X*) return 1 ;; esac; }

pid_of() { # NAME
  local pid start
  if [ -r "$dir/run/$1.pid" ] && read -r pid start <"$dir/run/$1.pid" &&
    [ -n "$start" ] && [ "$(start_time "$pid")" = "$start" ] && alive "$pid"; then
    echo "$pid"
  else
    marked "$1"
  fi
}

# The daemon NAME, found by its mark in the lab's network when its file is lost.
marked() { # NAME
  local pid
  for pid in $({ ip netns pids "$netns" 2>/dev/null || true; } | sort -n); do
    if grep -qzxF "K8SUP_LAB_DAEMON=$1" "/proc/$pid/environ" 2>/dev/null && alive "$pid"; then
      echo "$pid $(start_time "$pid")" >"$dir/run/$1.pid"
      echo "$pid"
      return
    fi
  done
  return 1
}

# daemon NAME CMD…: starts CMD in a session of its own and remembers it.
daemon() {
  local name=$1 pid
  shift
  mkdir -p "$dir"/{run,log}
  setsid env -i PATH="$PATH" HOME=/root LANG=C.UTF-8 K8SUP_LAB_DIR="$dir" K8SUP_LAB_NETNS="$netns" \
    K8SUP_LAB_CACHE="$cache" K8SUP_LAB_DAEMON="$name" "$@" </dev/null >>"$dir/log/$name" 2>&1 8>&- 9>&- &
  pid=$!
  echo "$pid $(start_time "$pid")" >"$dir/run/$name.pid"
}

end_daemon() { # NAME
  local pid
  if pid=$(pid_of "$1"); then end_process "$pid" 5; fi
  rm -f "$dir/run/$1.pid"
}

end_process() { # PID SECONDS
  kill "$1" 2>/dev/null || true
  wait_gone "$1" "$2" || kill -9 "$1" 2>/dev/null || true
  wait_gone "$1" 5
}

wait_gone() { # PID SECONDS
  local end=$(($(now) + $2))
  while alive "$1"; do
    [ "$(now)" -lt $end ] || return 1
    sleep 0.1
  done
}

# Unmounts whatever is mounted at or below DIR, the innermost first.
unmount_below() { # DIR
  local at
  awk -v d="$1" '$5 == d || index($5, d "/") == 1 { print $5 }' /proc/self/mountinfo | tac | while read -r at; do
    umount "$at" 2>/dev/null || umount -l "$at" 2>/dev/null || true
  done
}

# --- this machine's limit of inotify instances ---------------------------------------

# Each kube-proxy and containerd holds several, and all hosts share the limit.
inotify=/proc/sys/fs/inotify/max_user_instances
raise_inotify() {
  [ "$(cat $inotify)" -lt 8192 ] || return 0
  [ -e "$cache/inotify.before" ] || cp $inotify "$cache/inotify.before"
  echo 8192 >$inotify
}
# Only the last lab to go down puts it back.
restore_inotify() {
  [ -e "$cache/inotify.before" ] || return 0
  [ -z "$(labs)" ] || return 0
  cat "$cache/inotify.before" >$inotify
  rm -f "$cache/inotify.before"
}
