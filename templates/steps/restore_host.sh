# Puts back what stood on the host before k8sup, by its own record. What was changed since is kept.
# PURGE: 1 removes the packages, too, that k8sup installed.
[ -d "$record" ] || exit 0
entries() { cat "$record/entries/$1" 2>/dev/null || true; }

kept_back
lines "$(entries ufw)" close_ufw
lines "$(entries firewalld)" close_firewalld

unhold() { apt-mark -qq unhold "$1" >/dev/null && say "no longer held: $1"; }
lines "$(entries hold)" unhold

# Whoever changed a file of ours since has the last word on it.
path_of() { printf %s "$1" | tr % /; }
was_changed() { # KEY
  _path=$(path_of "$1")
  [ -e "$_path" ] && [ -s "$record/files/$1.ours" ] &&
    [ "$(sha256sum <"$_path" | cut -d' ' -f1)" != "$(cat "$record/files/$1.ours")" ]
}

if [ "$PURGE" = 1 ] && [ -n "$(entries package)" ]; then
  mend_dpkg
  wanted=$(entries package | while IFS= read -r name; do
    dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$name" 2>/dev/null | awk '$2 != "not-installed" { print $1 }'
  done)
  # dpkg's purge deletes configuration files whoever wrote them. The package's own text may go, all else is saved.
  save() { # PATH MD5
    _key=$(flat "$1")
    if [ "$(md5sum 2>/dev/null <"$record/files/$_key.before" | cut -d' ' -f1)" = "$2" ]; then
      : >"$record/files/$_key.absent"
      rm -f "$record/files/$_key.before"
    fi
    [ -e "$1" ] && [ "$(md5sum <"$1" | cut -d' ' -f1)" != "$2" ] || return 0
    if [ -e "$record/files/$_key.ours" ] && ! was_changed "$_key"; then return 0; fi
    mkdir -p "$record/saved"
    copy "$1" "$record/saved/$_key"
  }
  save_line() { save "${1% *}" "${1##* }"; }
  if [ -n "$wanted" ]; then
    # Nothing of somebody else's may go along.
    # shellcheck disable=SC2086 # one word a package
    others=$(apt-get -s purge $wanted | awk '/^(Purg|Remv)/ { print $2 }' | sort -u | grep -vxF "$wanted" || true)
    if [ -n "$others" ]; then
      die "removing k8sup's packages would remove others too ($(printf '%s' "$others" | tr '\n' ' ')): nothing was removed"
    fi
    # shellcheck disable=SC2086 # one word a package
    lines "$(dpkg-query -W -f '${Conffiles}\n' $wanted | awk '/^ / { print $1, $2 }')" save_line
    for unit in kubelet containerd haproxy; do
      case "
$wanted
" in *"
$unit
"*) systemctl -q stop "$unit" 2>/dev/null || true ;; esac
    done
    # shellcheck disable=SC2086 # one word a package
    apt purge $wanted
  fi
  put_back() {
    _path=$(path_of "$1")
    mkdir -p "$(dirname "$_path")"
    there "$_path" || cp -a "$record/saved/$1" "$_path"
  }
  lines "$(ls "$record/saved" 2>/dev/null)" put_back
fi

# restore KEY: one file, unless somebody has changed it since.
touched=''
restore() {
  _path=$(path_of "$1")
  if was_changed "$1"; then
    if there "$record/files/$1.before"; then
      cp -a "$record/files/$1.before" "$_path.before-k8sup"
      say "kept $_path: it was changed since k8sup wrote it; what stood there before is in $_path.before-k8sup"
    else
      say "kept $_path: it was changed since k8sup wrote it"
    fi
    return 0
  fi
  if there "$record/files/$1.before"; then
    mkdir -p "$(dirname "$_path")"
    cp -a "$record/files/$1.before" "$_path.k8sup-restore"
    mv -T "$_path.k8sup-restore" "$_path"
    say "restored $_path"
  elif there "$_path"; then
    rm -f "$_path"
    say "removed $_path"
  fi
  touched="$touched $_path"
}
for key in "$record"/files/*.before "$record"/files/*.absent; do
  there "$key" || continue
  key=${key##*/}
  restore "${key%.*}"
done

unmask() { systemctl -q unmask "$1" 2>/dev/null || true; }
enable_again() { systemctl -q enable "$1" 2>/dev/null || true; }
disable_again() { systemctl -q disable "$1" 2>/dev/null || true; }
# Limits that were raised stay until the next boot: what runs may need them by now.
setting_back() {
  case $1 in fs.* | *=) ;; *) sysctl -q -w "$1" >/dev/null 2>&1 || true ;; esac
}
swap_on() { swapon "$1" 2>/dev/null || say "swap on $1 comes back with the next boot"; }
lines "$(entries swap-masked)" unmask
lines "$(entries swap-disabled)" enable_again
lines "$(entries enabled)" disable_again
lines "$(entries sysctl)" setting_back
lines "$(entries swap-active)" swap_on
# The first name is the one from before.
lines "$(entries hostname | head -n 1)" hostnamectl set-hostname
systemctl daemon-reload
start_again() { systemctl restart "$1" || say "$1 does not start with the configuration from before"; }
lines "$(entries active)" start_again
heed_links "$touched"
case $touched in
*/etc/containerd/*) if systemctl -q is-active containerd; then systemctl restart containerd || say "containerd does not start with the configuration from before"; fi ;;
esac

# The data of the packages goes with them; of folders that others use, too, only what is empty.
purged() { [ "$PURGE" = 1 ] && entries package | grep -qx "$1"; }
hollow() { if [ -d "$1" ]; then find "$1" -depth -type d -empty -delete; fi; }
if purged 'containerd\(.io\)\{0,1\}'; then
  rm -rf /var/lib/containerd /run/containerd /run/nri
  hollow /opt/containerd
  hollow /etc/containerd
fi
if purged haproxy; then
  rm -rf /run/haproxy /run/haproxy.pid /run/haproxy-master.sock /var/lib/haproxy/dev/log
  hollow /var/lib/haproxy
  hollow /etc/haproxy
fi
if purged kubelet; then
  # A kubelet that was started between makes these for itself.
  rm -f /var/lib/kubelet/pki/kubelet.crt /var/lib/kubelet/pki/kubelet.key
  hollow /var/lib/kubelet
  hollow /etc/kubernetes
fi
if purged kubernetes-cni; then
  hollow /opt/cni
  hollow /etc/cni
fi

empty() { rmdir "$1" 2>/dev/null || true; }
lines "$(entries dir | sort -r)" empty
# Which packages came with k8sup stays known, so that a later reset can still remove them.
if [ "$PURGE" = 0 ] && [ -s "$record/entries/package" ]; then
  mv "$record/entries/package" "$record/package"
  rm -rf "${record:?}/files" "${record:?}/entries"
  mkdir "$record/entries"
  mv "$record/package" "$record/entries/package"
else
  rm -rf "${record:?}"
fi
rm -rf /run/k8sup
