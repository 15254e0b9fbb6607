# Debian packages at the wanted versions.
# SOURCES: content of the Kubernetes source file, empty for none; KEY_URL: its signing key.
# EXTRA_SOURCE, EXTRA_KEY_URL: another source for containerd, likewise. LEGACY: source files to remove, one a line.
# REINSTALL: packages that lack files, one a line. INSTALL: packages, `name` or `name=version`, one a line. HOLD: packages to hold, one a line. APT_PROXY: apt.conf text.
keyrings=/etc/apt/keyrings

# fetch_key NAME URL: apt's own downloader, since a bare host has no curl.
fetch_key() {
  [ ! -s "$keyrings/$1" ] || return 0
  case $2 in https:*)
    is_installed ca-certificates || { apt update && apt install --no-install-recommends ca-certificates; } ;;
  esac
  folder "$keyrings"
  remember "$keyrings/$1"
  /usr/lib/apt/apt-helper -qq -o Acquire::Retries=3 download-file "$2" "$keyrings/$1.new" ||
    die "cannot fetch the repository's key from $2"
  grep -q 'BEGIN PGP PUBLIC KEY' "$keyrings/$1.new" || die "$2 is not an armoured key"
  chmod 644 "$keyrings/$1.new"
  mv -T "$keyrings/$1.new" "$keyrings/$1"
  ours "$keyrings/$1"
}

mend_dpkg
if [ -n "$APT_PROXY" ]; then put /etc/apt/apt.conf.d/90-k8sup-proxy 644 "$APT_PROXY"; fi
lines "$LEGACY" drop
if [ -n "$SOURCES" ]; then
  fetch_key k8sup-kubernetes.asc "$KEY_URL"
  put /etc/apt/sources.list.d/k8sup-kubernetes.sources 644 "$SOURCES"
fi
if [ -n "$EXTRA_SOURCE" ]; then
  fetch_key k8sup-containerd.asc "$EXTRA_KEY_URL"
  put /etc/apt/sources.list.d/k8sup-containerd.list 644 "$EXTRA_SOURCE"
fi

if [ -n "$INSTALL" ]; then
  apt update
  say "installing $(printf '%s' "$INSTALL" | tr '\n' ' ')"
  set -- --no-install-recommends --allow-change-held-packages --allow-downgrades
  # shellcheck disable=SC2046 # one word a package
  set -- "$@" $(printf '%s' "$INSTALL")
  # What comes along as a dependency goes with --purge, too; known before, also when this is ended half-way.
  new=$(apt-get -s -qq install "$@" | awk '$1 == "Inst" { print $2 }')
  note_new() { is_installed "$1" || note package "$1"; }
  lines "$new" note_new
  apt install "$@"
fi

if [ -n "$REINSTALL" ]; then
  [ -n "$INSTALL" ] || apt update
  # shellcheck disable=SC2086 # one word a package
  apt install --reinstall --allow-change-held-packages $REINSTALL
fi

hold() {
  apt-mark showhold | grep -qxF "$1" && return 0
  note hold "$1"
  apt-mark -qq hold "$1" >/dev/null
}
lines "$HOLD" hold

enable_unit() {
  is_installed "$1" || return 0
  systemctl -q is-enabled "$1" 2>/dev/null || {
    note enabled "$1"
    systemctl -q enable "$1"
  }
}
enable_unit kubelet
