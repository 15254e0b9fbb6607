# Takes flags out of the kubelet's files that it does not know any more.
# FILES: `PATH<tab>NUMBER` a line; the contents are FILE_1, FILE_2, …
put_file() {
  eval "_content=\$FILE_$(printf '%s' "$1" | cut -f2)"
  # shellcheck disable=SC2154 # set by eval
  put "$(printf '%s' "$1" | cut -f1)" - "$_content"
}
lines "$FILES" put_file
systemctl daemon-reload
if systemctl -q is-active kubelet; then systemctl restart kubelet; fi
