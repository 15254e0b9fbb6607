# HAProxy in front of the API servers: checked, swapped in, reloaded, rolled back when it does not serve.
# CONFIG: haproxy.cfg. PORT: the endpoint's port.
cfg=/etc/haproxy/haproxy.cfg
(umask 022 && printf %s "$CONFIG" >/run/k8sup/haproxy.cfg)
haproxy -c -q -f /run/k8sup/haproxy.cfg || die "haproxy refuses the new configuration; the old one is untouched"
before=''
key=$record/files/$(flat "$cfg")
known=$(cat "$key.ours" 2>/dev/null) || true
if there "$cfg"; then
  before=/run/k8sup/haproxy.before
  cp -a "$cfg" "$before"
fi
if [ -z "$known" ] && systemctl -q is-active haproxy && ! grep -qxF haproxy "$record/entries/package" 2>/dev/null; then
  note active haproxy
fi
if differs "$cfg" "$CONFIG"; then pend haproxy; fi
put "$cfg" 644 "$CONFIG"
if ! systemctl -q is-enabled haproxy; then
  note enabled haproxy
  systemctl -q enable haproxy
fi
# Somebody else on the port, or the workers of before, are no proof that the new configuration is in force.
workers() { pgrep -P "$(systemctl show -p MainPID --value haproxy)" 2>/dev/null || true; }
listening() { ss -Hltnp "sport = :$PORT" | grep -o 'pid=[0-9]*' | cut -d= -f2; }
old=''
serves() {
  systemctl -q is-active haproxy || return 1
  for _pid in $(listening); do
    if workers | grep -qx "$_pid" && ! printf '%s\n' "$old" | grep -qx "$_pid"; then return 0; fi
  done
  return 1
}
if systemctl -q is-active haproxy; then
  # What runs may have been started with another file than the one that is there.
  if is_pending haproxy || ! serves; then
    old=$(workers)
    systemctl reload haproxy || true
  fi
else
  systemctl restart haproxy || true
fi
wait_until 10 "haproxy on port $PORT" serves || {
  journalctl -u haproxy -n 20 --no-pager -o cat >&2
  ss -Hltnp "sport = :$PORT" >&2
  if [ -n "$before" ] && [ "$changed" = 1 ]; then
    rm -f "$cfg"
    cp -a "$before" "$cfg"
    # As if nothing had been written.
    if [ -n "$known" ]; then printf '%s\n' "$known" >"$key.ours"; else rm -f "$key.before" "$key.absent" "$key.ours"; fi
    settle haproxy
    systemctl restart haproxy || true
    die "haproxy does not serve port $PORT with the new configuration; the one before is back"
  fi
  die "haproxy does not serve port $PORT"
}
settle haproxy
rm -f /run/k8sup/haproxy.cfg /run/k8sup/haproxy.before
