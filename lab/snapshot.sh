#!/bin/sh
# snapshot.sh: what there is on a host, as sorted lines that can be compared with
# those of another time. Runs on the host as root: lab snapshot HOST.
#
# Every line is SECTION and what was found. Left out is what changes by itself while
# nobody does anything: logs, caches, leases, random seeds, stamps of timers, the
# times and counters of everything.
set -u
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

have() { command -v "$1" >/dev/null 2>&1; }
# lines SECTION: what comes in, sorted, each line under the section's name.
lines() { sort | sed "s|^|$1 |"; }

# --- files ------------------------------------------------------------------------

# Written by programs for themselves, at times of their own choosing.
volatile() {
  cat <<'LIST'
/etc/.pwd.lock
/etc/ld.so.cache
/etc/group-
/etc/gshadow-
/etc/passwd-
/etc/shadow-
/etc/subuid-
/etc/subgid-
/var/lib/apt
/var/lib/chrony
/var/lib/command-not-found
/var/lib/dbus
/var/lib/dpkg
/var/lib/logrotate
/var/lib/man-db
/var/lib/NetworkManager
/var/lib/private
/var/lib/sudo
/var/lib/systemd
/var/lib/ucf
/var/lib/update-notifier
LIST
}

# PATH TYPE MODE OWNER:GROUP, then the hash of a file or the target of a link.
files() {
  set -- -false
  for at in $(volatile); do set -- "$@" -o -path "$at"; done
  # The folders themselves are listed, what is in them is not.
  find /etc /usr/local /opt /var/lib /root /home /boot -xdev \
    \( "$@" \) -prune -o -printf '%p\t%y\t%m\t%u:%g\t%l\n' 2>/dev/null |
    grep -v -e '/\.bash_history' -e '/\.cache' -e '/\.sudo_as_admin_successful' -e '/__pycache__' | sort >"$work/all"
  # Another file system below, such as a pod's volume, is listed with the mounts.
  awk -F '\t' '$2 == "f" { print $1 }' "$work/all" | tr '\n' '\0' | xargs -0 -r sha256sum 2>/dev/null |
    sed 's/^\\//' >"$work/sums"
  awk -F '\t' '
    NR == FNR { sum[substr($0, 67)] = substr($0, 1, 64); next }
    { print $1, $2, $3, $4, ($2 == "f" ? sum[$1] : $5) }
  ' "$work/sums" "$work/all" | sed 's/ *$//'
}

# --- the network --------------------------------------------------------------------

links() { ip -o link | sed -E 's/^[0-9]+: //; s/@[^:]*:/:/; s/ (qlen|state) [^ ]+//g; s/\\.*//'; }
addresses() { ip -o addr | sed -E 's/^[0-9]+: //; s/\\.*//; s/ +/ /g' | grep -v ' inet6 fe80:'; }
routes() { ip -4 route show table all; ip rule; }

# A chain is named even when it is empty; counters are not of interest.
rules() {
  for tool in iptables ip6tables; do
    for kind in nft legacy; do
      have "$tool-$kind-save" || continue
      "$tool-$kind-save" 2>/dev/null | grep -v '^#' | sed -E "s/\[[0-9]+:[0-9]+\]//g; s/^/$tool-$kind /"
    done
  done
  if have nft; then
    nft list ruleset 2>/dev/null | sed -E 's/counter packets [0-9]+ bytes [0-9]+/counter/g; s/^[[:space:]]+//' |
      grep -v -e '^#' -e '^}*$' | sed 's/^/nft /'
  fi
  if have ipvsadm; then ipvsadm-save -n 2>/dev/null | sed 's/^/ipvs /'; fi
  if have ipset; then ipset list -n 2>/dev/null | sed 's/^/ipset /'; fi
}

# PROTOCOL ADDRESS PROGRAM: what listens, without the ports that are different each time.
ports() {
  ss -Hlntup | awk '{ program = $7; sub(/.*\(\("/, "", program); sub(/".*/, "", program); print $1, $5, program }' | sort -u
}

# --- the system ---------------------------------------------------------------------

# What nspawn and systemd give every host is there before and after.
mounts() { awk '{ print $5, $(NF - 2) }' /proc/self/mountinfo | grep -v -e '^/run/credentials/' -e '^/run/user/' -e '^/proc/sys/fs/binfmt_misc'; }
units() { systemctl list-unit-files --no-legend --no-pager --plain 2>/dev/null | awk '{ print $1, $2 }'; }
running() {
  systemctl list-units --type=service --state=running,failed --no-legend --no-pager --plain 2>/dev/null |
    awk '{ print $1, $3, $4 }' | grep -v -e '^user@' -e '^apt-daily' -e '^dpkg-db-backup' -e '^systemd-tmpfiles' -e '^systemd-\(hostnamed\|timedated\|localed\)'
}
packages() {
  # shellcheck disable=SC2016 # the fields are dpkg's
  dpkg-query -W -f '${Package}:${Architecture} ${Version} ${Status}\n'
  apt-mark showhold 2>/dev/null | sed 's/$/ held/'
}
sysctls() {
  for key in net.ipv4.ip_forward net.ipv4.ip_nonlocal_bind net.ipv4.vs.conntrack net.ipv6.conf.all.forwarding \
    net.bridge.bridge-nf-call-iptables net.bridge.bridge-nf-call-ip6tables \
    net.ipv4.conf.all.rp_filter net.ipv4.conf.default.rp_filter net.ipv4.conf.all.forwarding \
    net.netfilter.nf_conntrack_tcp_timeout_established net.netfilter.nf_conntrack_tcp_timeout_close_wait; do
    if value=$(sysctl -n "$key" 2>/dev/null); then echo "$key = $value"; else echo "$key absent"; fi
  done
}
swaps() { tail -n +2 /proc/swaps | awk '{ print $1, $2 }'; }
# Namespaces and processes that outlive their service.
leftovers() {
  ip netns list 2>/dev/null | awk '{ print "netns", $1 }'
  cat /proc/[0-9]*/comm 2>/dev/null | grep -E '^(containerd-shim.*|kube.*|etcd|flanneld|coredns|haproxy|pause)$' | sort | uniq -c | awk '{ print "process", $2, $1 }'
}
temporary() {
  find /tmp /var/tmp -xdev -mindepth 1 -maxdepth 1 ! -path "$work" ! -name 'systemd-private-*' ! -name '.*-unix' -printf '%p %y %m %u:%g\n'
}
runtime() {
  find /run -xdev -maxdepth 2 \( -path '/run/systemd/*' -o -path '/run/user/*' -o -path '/run/udev/*' -o -path '/run/host/*' -o -path '/run/credentials/*' -o -path '/run/sudo/*' -o -path '/run/log/*' -o -path /run/motd.dynamic -o -path /run/adduser \) -prune -o -printf '%p %y %m %u:%g\n'
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
files | lines file
links | lines link
addresses | lines address
routes | lines route
rules | lines rule
ports | lines port
mounts | lines mount
units | lines unit
running | lines service
packages | lines package
sysctls | lines sysctl
swaps | lines swap
leftovers | lines left
runtime | lines run
temporary | lines temporary
