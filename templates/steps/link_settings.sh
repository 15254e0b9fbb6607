# Tells NetworkManager and systemd-udevd to leave the links of pods alone.
# FILES: `PATH<tab>NUMBER` a line; the contents are FILE_1, FILE_2, …
put_file() {
  eval "_content=\$FILE_$(printf '%s' "$1" | cut -f2)"
  # shellcheck disable=SC2154 # set by eval
  put "$(printf '%s' "$1" | cut -f1)" 644 "$_content"
}
lines "$FILES" put_file
heed_links "$FILES"
