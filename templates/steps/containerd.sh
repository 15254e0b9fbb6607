# containerd's configuration: the CRI on, systemd's cgroups, the pause image, mirrors, CNI folders.
# FILES: `DIALECT<tab>PATH<tab>NUMBER` a line; the contents are FILE_1, FILE_2, … A dialect is the
# containerd that reads the file: 1, 2.0 or 2.1 (and later).
case $(containerd --version | awk '{ print $3 }' | tr -d v) in
1.*) dialect=1 ;;
2.0 | 2.0.* | 2.0~* | 2.0-*) dialect=2.0 ;;
2.*) dialect=2.1 ;;
*) die "this containerd is of no known kind: $(containerd --version)" ;;
esac
found=0
put_file() {
  [ "$(printf '%s' "$1" | cut -f1)" = "$dialect" ] || return 0
  found=1
  _path=$(printf '%s' "$1" | cut -f2)
  eval "_content=\$FILE_$(printf '%s' "$1" | cut -f3)"
  # hosts.toml and crictl.yaml are read when they are needed.
  # shellcheck disable=SC2154 # set by eval
  case $_path in
  /etc/containerd/certs.d/* | /etc/crictl.yaml) ;;
  *) if differs "$_path" "$_content"; then pend containerd; fi ;;
  esac
  put "$_path" 644 "$_content"
}
lines "$FILES" put_file
[ "$found" = 1 ] || die "the host had another containerd when this was planned: run the same command again"
folder /opt/cni/bin
folder /etc/cni/net.d

systemctl daemon-reload
if ! systemctl -q is-enabled containerd; then
  note enabled containerd
  systemctl -q enable containerd
fi
# A file that was right all along may have been written by somebody after containerd started.
if is_pending containerd || [ "$RESTART" = 1 ] || ! systemctl -q is-active containerd; then systemctl restart containerd; fi
ready() { crictl --timeout 2s info; }
wait_until 60 "containerd's CRI" ready || {
  journalctl -u containerd -n 20 --no-pager -o cat >&2
  die "containerd does not serve the CRI"
}
settle containerd
