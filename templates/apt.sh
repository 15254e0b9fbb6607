# apt and dpkg, as the steps that install and remove packages use them.
export DEBIAN_FRONTEND=noninteractive

# Who holds the lock of a file, as `PID (NAME)`.
holder() {
  _pid=$(awk -v inode="$(stat -c %i "$1" 2>/dev/null)" '{ n = split($6, part, ":") } part[n] == inode { print $5; exit }' /proc/locks)
  [ -n "$_pid" ] && printf '%s (%s)' "$_pid" "$(cat "/proc/$_pid/comm" 2>/dev/null)"
}

# Another package manager (unattended-upgrades, an installer) is waited for, by name, for ten minutes.
await_locks() {
  for _lock in /var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock /var/cache/apt/archives/lock; do
    _tries=0
    while _who=$(holder "$_lock"); do
      [ $((_tries % 16)) -ne 0 ] || say "waiting for process $_who to let go of $_lock"
      _tries=$((_tries + 1))
      [ "$_tries" -lt 1200 ] || die "process $_who has held $_lock for ten minutes"
      sleep 0.5
    done
  done
}

# unbroken COMMAND…: what dpkg has begun goes on to its end when this run's connection is lost: in a
# session of its own, holding nothing of the connection. Whoever comes next waits for its locks.
unbroken() {
  await_locks
  if setsid "$@" </dev/null >"/run/k8sup/apt-out.$$" 2>"/run/k8sup/apt.$$"; then
    rm -f "/run/k8sup/apt.$$" "/run/k8sup/apt-out.$$"
    return 0
  fi
  # What a package's own script says goes to standard output.
  tail -n 12 "/run/k8sup/apt-out.$$" >&2
  cat "/run/k8sup/apt.$$" >&2
  return 100
}

# Who takes a lock between the look and the use is waited for by apt itself, or by one more look.
apt() {
  for _again in 1 2 3; do
    if unbroken apt-get -qq -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 \
      -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@"; then
      return 0
    fi
    grep -q 'Could not get lock' "/run/k8sup/apt.$$" || break
  done
  return 100
}

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# Packages that are neither installed nor gone, as `STATUS NAME=VERSION`. What only misses a trigger or a
# checksum is no matter.
unfinished() {
  dpkg-query -W -f '${db:Status-Abbrev}|${Package}=${Version}\n' |
    awk -F '|' 'substr($1, 2, 1) ~ /[HUF]/ || substr($1, 3, 1) == "R" { print $1, $2 }'
}

# dpkg does nothing more when it was ended half-way (a power cut), until what it began is finished.
mend_dpkg() {
  await_locks
  if [ -z "$(unfinished)" ] && [ -z "$(ls /var/lib/dpkg/updates 2>/dev/null)" ]; then return 0; fi
  say "dpkg was interrupted on this host: finishing what it began"
  unbroken dpkg --configure -a --force-confdef --force-confold || true
  # Half unpacked: only unpacking it again helps.
  _broken=$(unfinished | awk '$1 ~ /^.H|R$/ { print $2 }')
  if [ -n "$_broken" ]; then
    apt update || true
    # shellcheck disable=SC2086 # one word a package
    apt install --reinstall --allow-change-held-packages $_broken || true
  fi
  apt install -f || true
  _left=$(unfinished)
  [ -z "$_left" ] || die "dpkg was interrupted on this host, and these packages cannot be finished:
$_left"
}
