# haproxy ends where k8sup set it up. What stood before comes back with the other files.
if [ -e "$record/files/$(flat /etc/haproxy/haproxy.cfg).ours" ]; then
  systemctl -q stop haproxy 2>/dev/null || true
fi
