# shellcheck shell=sh
# One run of k8sup at a time on a host. The lock is over when its holder's connection is, or has been silent
# for a minute: a run that was killed, or whose link was cut, is in nobody's way.
# ACTION: take, keep or release. RUN: this run's own random name. HOLDER: who takes it, for others to read.
# Ends with 75 when another run has it; then standard output has its holder and since when. holder.sh stands in front.
set -eu
umask 022

# The process of the SSH server that holds this connection, with its start: a number alone may be given again.
connection() {
  _pid=$$
  while [ "${_pid:-1}" -gt 1 ]; do
    case $(cat "/proc/$_pid/comm" 2>/dev/null) in sshd* | dropbear*)
      printf '%s %s' "$_pid" "$(started "$_pid")"
      return ;;
    esac
    _pid=$(awk '$1 == "PPid:" { print $2 }' "/proc/$_pid/status" 2>/dev/null) || true
  done
}
is_ours() { [ "$(field run)" = "$RUN" ]; }
write() { # HOLDER SINCE CONNECTION
  printf '%s\n' "run $RUN" "holder $1" "since $2" "connection $3" "beat $(uptime)" >"$lock.new"
  mv -T "$lock.new" "$lock"
}

# Looking and writing is one act.
exec 9</run/
flock -w 10 9
case $ACTION in
take)
  if is_alive && ! is_ours; then
    printf '%s\n%s\n' "$(field holder)" "$(field since)"
    exit 75
  fi
  mkdir -p "$folder"
  chmod 700 "$folder"
  write "$HOLDER" "$(date -u '+%Y-%m-%d %H:%M:%S UTC')" "$(connection)"
  ;;
keep)
  # A reset takes the lock away with everything else; what somebody else took is theirs.
  if is_ours; then write "$(field holder)" "$(field since)" "$(field connection)"; fi
  ;;
release)
  if is_ours; then rm -rf "$folder"; fi
  ;;
esac
