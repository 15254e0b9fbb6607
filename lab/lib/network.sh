# The lab's network and what answers in it at the gateway's address: packages on
# port 80, images on port 5000, names on port 53.
# shellcheck shell=bash disable=SC2154 # variables are shared with lab

# `ip netns exec` would remount /sys and hide the cgroups, hence nsenter.
in_net() { nsenter --net="/run/netns/$netns" -- "$@"; }
net_is_up() { in_net ip link show br0 >/dev/null 2>&1; }

net_up() {
  if net_is_up; then return; fi
  net_down
  ip netns add "$netns"
  in_net ip link set lo up
  in_net ip link add br0 type bridge
  in_net ip addr add "$gateway/24" dev br0
  in_net ip link set br0 up
}

# Ends what still runs in the network, such as a `lab run`, and removes it.
net_down() {
  local pid
  for pid in $(ip netns pids "$netns" 2>/dev/null || true); do
    if is_ancestor "$pid"; then continue; fi
    end_process "$pid" 2 || say "process $pid in $netns does not end"
  done
  ip netns del "$netns" 2>/dev/null || true
  # Left by `ip netns add` when it was killed halfway.
  rm -f "/run/netns/$netns" 2>/dev/null || true
}

is_ancestor() { # PID: of this shell, or itself
  local p=$$
  while [ "${p:-0}" -gt 1 ]; do
    [ "$p" != "$1" ] || return 0
    p=$(awk '$1 == "PPid:" { print $2 }' "/proc/$p/status" 2>/dev/null || true)
  done
  return 1
}

wait_open() { # ADDRESS PORT SECONDS
  # shellcheck disable=SC2016 # $0 and $1 are the inner shell's
  timeout "$3" bash -c 'until (: <"/dev/tcp/$0/$1") 2>/dev/null; do sleep 0.1; done' "$1" "$2"
}
wait_port() { in_net bash -c "$(declare -f wait_open); wait_open $*"; }

# --- the services ---------------------------------------------------------------------

# The file server shows this folder, which has nothing but links into the cache.
fill_www() {
  local www=$dir/www r v
  rm -rf "$www.new"
  mkdir -p "$www.new/debian"/{dists,pool} "$www.new/core:/stable:" "$www.new/flannel/releases/download"
  for r in "${releases[@]}"; do
    ln -s "$(used "debian-$r")/dists/$r" "$www.new/debian/dists/$r"
    ln -s "$(used "debian-$r")/pool/$r" "$www.new/debian/pool/$r"
  done
  for v in "${versions[@]}"; do ln -s "$(used "kubernetes-${v%.*}")" "$www.new/core:/stable:/v${v%.*}"; done
  # As Flannel's release page has it.
  cp -r "$here/upstream/flannel/." "$www.new/flannel/releases/download"
  rm -rf "$www"
  mv "$www.new" "$www"
}

services_up() {
  local new
  # Another set of images: the registry has to look there.
  new=$(registry_config "$(used images)" "$registry" true)
  if [ "$(cat "$dir/registry.yml" 2>/dev/null)" != "$new" ]; then
    end_daemon registry
    echo "$new" >"$dir/registry.yml"
  fi
  pid_of http >/dev/null ||
    daemon http nsenter --net="/run/netns/$netns" python3 -m http.server 80 --bind "$gateway" --directory "$dir/www" --protocol HTTP/1.1
  pid_of registry >/dev/null ||
    daemon registry nsenter --net="/run/netns/$netns" docker-registry serve "$dir/registry.yml"
  # Names of the lab, and a zone that stands for the outside world. Everything else
  # does not exist, and is said to at once.
  pid_of resolver >/dev/null ||
    daemon resolver nsenter --net="/run/netns/$netns" dnsmasq --keep-in-foreground --conf-file=/dev/null --pid-file= \
      --user=root --no-resolv --no-hosts --bind-interfaces --listen-address="$gateway" --addn-hosts="$dir/names" \
      --address=/#/
  wait_port "$gateway" 80 10 || die "the file server did not start, see $dir/log/http"
  wait_port "$gateway" 5000 10 || die "the registry did not start, see $dir/log/registry"
  wait_port "$gateway" 53 10 || die "the resolver did not start, see $dir/log/resolver"
}

services_down() {
  local s
  for s in http registry resolver; do end_daemon $s; done
}

# Every host is NAME.lab.test; api.lab.test is the load balancer. Written out one by one,
# for only such names have no IPv6 address, and others do not exist.
write_names() {
  local pid
  {
    printf '%s gateway.lab.test outside.lab.test www.outside.lab.test\n192.168.7.140 api.lab.test\n' "$gateway"
    table | awk '{ print $2, $1 ".lab.test" }'
  } >"$dir/names.new"
  mv "$dir/names.new" "$dir/names"
  if pid=$(pid_of resolver); then kill -HUP "$pid"; fi
}
