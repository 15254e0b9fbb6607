# Waits, at most a minute, until a time service has set the clock. One that cannot (no way to its servers) does not end
# the run: the hosts' clocks were compared with each other when they were looked at.
is_set() {
  [ ! -e /run/systemd/timesync/synchronized ] || return 0
  case $(uname -m) in x86_64) _call=159 ;; aarch64) _call=171 ;; *) return 0 ;; esac
  # adjtimex, which is only asked: the kernel's flag is the same for every time service.
  perl -e 'my $x = pack "x208"; exit(syscall(0 + shift, $x) < 0 || (unpack "x40 i", $x) & 0x40 ? 1 : 0)' "$_call"
}
if wait_until 60 "the time service to set the clock" is_set; then
  say "the clock is set"
else
  say "the clock is not set after a minute; it is $(date -u '+%Y-%m-%d %H:%M:%S') UTC here"
fi
