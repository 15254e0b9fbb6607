# The hosts: their disks, and systemd-nspawn to run them.
# shellcheck shell=bash disable=SC2154,SC2034 # variables are shared with lab
#
# What a host leaves on this machine is below DIR/hosts/NAME, in cgroups that end in
# NETNS-NAME, and in namespaces that end with its processes: its mounts too are seen
# in a mount namespace of its own only, so nothing is left mounted whoever is killed.

# --- the table ------------------------------------------------------------------------

# The table of this lab: the hosts file it was brought up with, plus extra workers.
table() { cat "$dir/hosts.table" 2>/dev/null || true; }
names() { table | awk '{print $1}'; }
not_optional() { table | awk '{for (i = 6; i <= NF; i++) if ($i == "optional") next; print $1}'; }

# host NAME: sets address, release, user, sudo and flags of a host.
host() {
  local line
  line=$(table | awk -v n="$1" '$1 == n')
  [ -n "$line" ] || die "no host $1 (lab status lists them)"
  read -r _ address release user sudo flags <<<"$line"
}

write_table() { # FILE WORKERS
  local file=$1 workers=$2 i
  sed 's/#.*//' "$file" | awk 'NF' >"$dir/hosts.new"
  awk 'NF < 5 { print "fewer than 5 columns: " $0; bad = 1 } END { exit bad }' "$dir/hosts.new" >&2 ||
    die "cannot use $file"
  for ((i = 1; i <= workers; i++)); do
    grep -q "^w${i}[[:space:]]" "$dir/hosts.new" ||
      echo "w$i 192.168.7.$((203 + i)) trixie pi nopasswd" >>"$dir/hosts.new"
  done
  mv "$dir/hosts.new" "$dir/hosts.table"
}

# Hosts with anything left here, in the table or not.
remains() {
  {
    find "$dir/hosts" -mindepth 1 -maxdepth 1 -type d -printf '%f\n' 2>/dev/null || true
    find /sys/fs/cgroup -type d -name "$netns-*" -prune -printf '%f\n' 2>/dev/null | sed "s/^$netns-//" || true
  } | sort -u | while read -r n; do if ours "$n"; then echo "$n"; fi; done
}
# The cgroups of a lab in the namespace "x-y" begin like those of one in "x".
ours() { [ -d "$dir/hosts/$1" ] || table | grep -q "^$1[[:space:]]" || [[ $1 =~ ^(lb-|cp|w)[0-9]+$|^bastion$ ]]; }

# --- the disk ---------------------------------------------------------------------------

# An overlay on the base tree, except /var/lib, which is a plain directory, because
# containerd's own overlays cannot stack on an overlay.
make_disk() { # NAME
  local at=$dir/hosts/$1 base
  host "$1"
  base=$(used "base-$release")
  [ -d "$base" ] || die "no base tree for $release (there are: ${releases[*]})"
  rm -rf --one-file-system "$at"
  mkdir -p "$at"/{root,up,work}
  echo "$base" >"$at/base"
  cp -a "$base/var/lib" "$at/lib.new"
  unshare --mount --propagation slave "$here/lab" _dress "$1"
  mv "$at/lib.new" "$at/lib"
}

# In a mount namespace of its own: all that differs between two hosts of a release.
dress_disk() { # NAME
  local root=$dir/hosts/$1/root
  host "$1"
  mount_disk "$1"
  echo "$1" >"$root/etc/hostname"
  printf '127.0.0.1\tlocalhost\n127.0.1.1\t%s\n' "$1" >"$root/etc/hosts"
  tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
  # Must sort before Debian's 80-container-host0.network to win.
  printf '[Match]\nName=host0\n[Network]\nAddress=%s/24\nGateway=%s\n' "$address" "$gateway" \
    >"$root/etc/systemd/network/10-host0.network"
  # Made here and not at the first boot, so that known_hosts can be written
  # without asking the network.
  ssh-keygen -A -f "$root" >/dev/null
  case " $flags " in *" fstab-swap "*) echo '/var/swap none swap sw 0 0' >>"$root/etc/fstab" ;; esac
  let_in "$root" "$user" "$sudo"
}

let_in() { # ROOT USER SUDO: the one key, for the one user
  local home=$1/home/$2 uid gid
  [ "$2" != root ] || home=$1/root
  uid=$(chroot "$1" id -u "$2")
  gid=$(chroot "$1" id -g "$2")
  install -d -m 700 -o "$uid" -g "$gid" "$home/.ssh"
  install -m 600 -o "$uid" -g "$gid" "$dir/id_ed25519.pub" "$home/.ssh/authorized_keys"
  if [ "$3" = nopasswd ]; then
    echo "$2 ALL=(ALL) NOPASSWD: ALL" >"$1/etc/sudoers.d/010_$2-nopasswd"
    chmod 440 "$1/etc/sudoers.d/010_$2-nopasswd"
  fi
}

# The kernel may still be letting go of the upper directory of a host that was
# killed just now.
mount_disk() { # NAME
  local at=$dir/hosts/$1 i lower
  host "$1"
  # A lab made before there was a cache has its base trees in its own folder.
  lower=$(cat "$at/base" 2>/dev/null || echo "$dir/base/$release")
  [ -d "$lower" ] || die "the base tree of $1 is gone ($lower): lab rebuild $1"
  for i in 1 2 3 4 5 6 7 8 9 10; do
    if mount -t overlay "lab-$1" -o "lowerdir=$lower,upperdir=$at/up,workdir=$at/work" "$at/root" 2>"$dir/log/mount-$1"; then return; fi
    sleep 0.3
  done
  die "cannot mount the disk of $1: $(cat "$dir/log/mount-$1") (is $dir itself on an overlay?)"
}

# --- power -------------------------------------------------------------------------------

# The cgroup of a host in each hierarchy, below this shell's own.
host_cgroups() { # NAME
  local controllers path mount
  while IFS=: read -r _ controllers path; do
    case $controllers in
    "") mount=unified ;;
    name=*) mount=${controllers#name=} ;;
    *) mount=$controllers ;;
    esac
    [ -d "/sys/fs/cgroup/$mount" ] || mount=.
    echo "/sys/fs/cgroup/$mount${path%/}/$netns-$1"
  done </proc/self/cgroup
}

# The cgroups that a host has, wherever it was started from.
found_cgroups() { # NAME
  {
    cat "$dir/hosts/$1/cgroups" 2>/dev/null || true
    find /sys/fs/cgroup -type d -name "$netns-$1" -prune 2>/dev/null || true
  } | sort -u
}

cgroup_pids() { # NAME
  local c
  found_cgroups "$1" | while read -r c; do
    if [ -d "$c" ]; then find "$c" -name cgroup.procs -exec cat {} + 2>/dev/null || true; fi
  done | sort -nu
}

# Runs as the host's own process: moves into the host's cgroups, so that its
# cgroup namespace is rooted there, and into a mount namespace.
boot() { # NAME
  local c
  while read -r c; do
    mkdir -p "$c"
    if [ -e "$c/cpuset.cpus" ] && [ -e "$c/cgroup.clone_children" ]; then
      cat "$c/../cpuset.cpus" >"$c/cpuset.cpus"
      cat "$c/../cpuset.mems" >"$c/cpuset.mems"
      echo 1 >"$c/cgroup.clone_children"
    fi
    echo $$ >"$c/cgroup.procs"
  done <"$dir/hosts/$1/cgroups"
  exec unshare --mount --propagation slave "$here/lab" _machine "$1"
}

# systemd-nspawn keeps locks and sockets under the machine's name, and two labs may
# have hosts of the same name: each host gets folders of its own in their place.
machine() { # NAME
  local at=$dir/hosts/$1
  mount_disk "$1"
  mkdir -p /run/systemd/nspawn
  mount -t tmpfs -o mode=755 nspawn /run/systemd/nspawn
  mount -t tmpfs nspawn /tmp
  exec nsenter --net="/run/netns/$netns" env SYSTEMD_NSPAWN_API_VFS_WRITABLE=yes \
    systemd-nspawn --quiet --directory="$at/root" --machine="$1" --hostname="$1" \
    --register=no --keep-unit --boot --network-bridge=br0 --resolv-conf=off --timezone=off \
    --capability=all --system-call-filter='add_key keyctl bpf perf_event_open' \
    --bind=/dev/kmsg --bind="$at/lib:/var/lib"
}

power_on() { # NAME
  if pid_of "host-$1" >/dev/null && leader "$1" >/dev/null; then return; fi
  [ -d "$dir/hosts/$1/lib" ] || die "$1 has no disk: use lab up $1"
  net_is_up || die "the lab is down"
  if leader "$1" >/dev/null; then say "$1 runs without its supervisor: restarting it"; fi
  power_off "$1" 20
  host_cgroups "$1" >"$dir/hosts/$1/cgroups"
  daemon "host-$1" "$here/lab" _boot "$1"
}

# The host's PID 1 as this machine sees it: a process in the host's cgroups that is
# number 1 in a namespace just below ours. It may outlive its supervisor.
leader() { # NAME
  local pid
  for pid in $(cgroup_pids "$1"); do
    if awk '$1 == "NSpid:" { exit !(NF == 3 && $3 == 1) }' "/proc/$pid/status" 2>/dev/null && alive "$pid"; then
      echo "$pid"
      return
    fi
  done
  return 1
}

power_off() { # NAME SECONDS: 0 pulls the plug
  local pid init p
  init=$(leader "$1") || init=''
  pid=$(pid_of "host-$1") || pid=''
  if [ -n "$init" ]; then
    # What systemd takes as a request to power off.
    if [ "$2" -gt 0 ]; then
      kill -s RTMIN+4 "$init" 2>/dev/null || true
      wait_gone "$init" "$2" || say "$1 is slow to power off: pulling the plug"
    fi
    kill -9 "$init" 2>/dev/null || true
    wait_gone "$init" 10 || die "$1 does not end (process $init)"
  fi
  if [ -n "$pid" ]; then wait_gone "$pid" 10 || end_process "$pid" 2 || die "the supervisor of $1 does not end (process $pid)"; fi
  for p in $(cgroup_pids "$1"); do kill -9 "$p" 2>/dev/null || true; done
  rm -f "$dir/run/host-$1.pid"
  clear_cgroups "$1"
  unmount_below "$dir/hosts/$1"
}

clear_cgroups() { # NAME
  local c i
  found_cgroups "$1" | while read -r c; do
    for i in 1 2 3 4 5; do
      [ -d "$c" ] || break
      find "$c" -depth -type d -exec rmdir {} \; 2>/dev/null || true
      [ ! -d "$c" ] || sleep 0.2
    done
    [ ! -d "$c" ] || say "$c is not empty"
  done
}

drop_disk() { # NAME
  power_off "$1" 0
  rm -rf --one-file-system "${dir:?}/hosts/$1"
}

# --- how to get in ---------------------------------------------------------------------------

# What an SSH client finds at fixed paths: the key, w2's password, and the host keys
# of all hosts, read from their disks.
make_login() {
  [ -e "$dir/id_ed25519" ] || ssh-keygen -q -t ed25519 -N '' -C k8sup-lab -f "$dir/id_ed25519"
  (umask 077; echo "$sudo_password" >"$dir/w2.password")
}

write_known_hosts() {
  local n key
  for n in $(names); do
    host "$n"
    for key in "$dir/hosts/$n/up/etc/ssh/"ssh_host_*_key.pub; do
      if [ -r "$key" ]; then awk -v a="$address" '{ print a, $1, $2 }' "$key"; fi
    done
  done >"$dir/known_hosts.new"
  mv "$dir/known_hosts.new" "$dir/known_hosts"
}

wait_ssh() { # NAME…
  local n end=$(($(now) + 120))
  for n in "$@"; do
    host "$n"
    until wait_port "$address" 22 2; do
      leader "$n" >/dev/null || die "$n ended instead of booting, see: lab logs $n"
      [ "$(now)" -lt $end ] || die "$n does not answer on port 22, see: lab logs $n"
    done
  done
}
