#!/bin/sh
# After a failure: what the host's own logs say. Each source is a marked section of a few lines.
# UNITS: systemd units to look at, one a line.
set -u
section() { printf '@@ %s\n' "$1"; }
printf '%s\n' "$UNITS" | while IFS= read -r unit; do
  [ -n "$unit" ] || continue
  systemctl cat "$unit" >/dev/null 2>&1 || continue
  section "$unit ($(systemctl is-active "$unit"))"
  journalctl -u "$unit" -n 60 --no-pager -o cat 2>/dev/null |
    grep -iE 'error|fail|fatal|refus|denied|cannot|unable|panic' | cut -c1-300 | tail -n 8
done
if command -v crictl >/dev/null && systemctl -q is-active containerd; then
  for name in etcd kube-apiserver kube-flannel; do
    id=$(timeout 5 crictl ps -a -q --name "^$name\$" 2>/dev/null | head -n 1)
    [ -n "$id" ] || continue
    state=$(timeout 5 crictl ps -a --id "$id" -o json 2>/dev/null | sed -n 's/.*"state": "CONTAINER_\([A-Z]*\)".*/\1/p' | head -n 1)
    section "$name (${state:-unknown})"
    timeout 5 crictl logs --tail 40 "$id" 2>&1 | grep -iE '"level":"(warn|error|fatal)|^[EF][0-9]|error|fatal' | cut -c1-300 | tail -n 6
  done
fi
exit 0
