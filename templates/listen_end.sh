# Ends the listener that listen.sh has started, and waits until its ports are free.
# PID and START are what it printed: a number alone may be another process by now.
# shellcheck shell=sh
set -eu
# What only waits for its parent to take notice has no ports any more.
is_there() {
  read -r _stat 2>/dev/null <"/proc/$PID/stat" || return 1
  # shellcheck disable=SC2086 # words
  set -- ${_stat##*) }
  [ "$1" != Z ] && [ "${20}" = "$START" ]
}
_tries=0
while is_there; do
  case $_tries in
  0) kill -TERM "$PID" || true ;;
  40) kill -KILL "$PID" || true ;;
  80)
    echo "the listener (process $PID) does not end" >&2
    exit 1 ;;
  *) sleep 0.05 ;;
  esac
  _tries=$((_tries + 1))
done
