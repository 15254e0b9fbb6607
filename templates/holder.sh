# shellcheck shell=sh disable=SC2317 # for the script behind this one
# Who has the lock on this host; it stands in front of lock.sh and of probe.sh.
# It is over when its holder's connection is, or has been silent for a minute.
folder=/run/k8sup
lock=$folder/lock
silence=60

# In seconds since boot: clocks are set while machines run, this one goes on.
uptime() { cut -d. -f1 /proc/uptime; }
started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
field() { sed -n "s/^$1 //p" "$lock" 2>/dev/null; }
is_alive() {
  [ -e "$lock" ] || return 1
  _beat=$(field beat)
  [ $(($(uptime) - ${_beat:-0})) -le "$silence" ] || return 1
  _held=$(field connection)
  [ -z "$_held" ] || [ "$(started "${_held% *}")" = "${_held#* }" ]
}
