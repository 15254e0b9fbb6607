# shellcheck shell=sh disable=SC2317 # `section` calls the functions
# Looks at a host and prints what it sees as sections of raw text; src/facts/parse reads them.
# It changes nothing, keeps its scratch files in memory (but for the one that measures etcd's disk), and prints no key.
#
# Parameters, set before this script:
#   NONCE          marks the lines that belong to this script and not to a file's content
#   ADDRESS        the host's address inside the cluster
#   ENDPOINT_HOST  host part of the cluster's endpoint: a name or an address
#   LOGIN_USER     whose ~/.kube/config is looked at
#   ETCD_DISK      1: the disk that etcd is to write to is measured, unless the host is in a cluster already

# files NAME=PATH…: the files' contents as sections, byte for byte. One program prints them all:
# starting one for each took longer than everything else.
#   NAME=PATH        one section, also when the file does not exist
#   NAME:=PATTERN    one section for each file that matches and was not shown yet, NAME:PATH
#   file:=PATTERN    the same with the mode, file:MODE:PATH
#   certificate…     nothing but the certificates
#   …kubeconfig…     servers and certificates, never keys or tokens
files() {
  perl -e '
    my ($nonce, $absent, @wanted) = @ARGV;
    my %shown;
    for (@wanted) {
      my ($name, $pattern) = split /=/, $_, 2;
      if ($name !~ /:$/) {
        show($name, $pattern);
        next;
      }
      for my $path (glob $pattern) {
        next if ! -f $path or $path =~ /\s/ or $shown{$path}++;
        my $mode = $name eq "file:" ? sprintf("%o:", (stat $path)[2] & 07777) : "";
        show("$name$mode$path", $path);
      }
    }
    sub show {
      my ($name, $path) = @_;
      my ($status, $text) = (0, "");
      if (! -f $path) {
        $status = $absent;
      } elsif (open my $file, "<", $path) {
        local $/;
        $text = <$file>;
        ($status, $text) = ("1 $!", "") unless defined $text;
      } else {
        $status = "1 $!";
      }
      if ($name =~ /^certificate/) {
        $text = join "\n", $text =~ /-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/sg;
      } elsif ($name =~ /kubeconfig/) {
        my $wanted = qr/(?:server|certificate-authority-data|client-certificate-data|current-context):/;
        $text = join "\n", $text =~ /^\s*(?:- )?$wanted.*/mg;
      }
      print "\@\@$nonce begin $name\n$text\n\@\@$nonce end $name $status\n";
    }' "$NONCE" "$absent" "$@"
}

# later NAME COMMAND [ARGUMENT…]: a slow section, made while the others are, printed at the end.
later() {
  if [ -n "$scratch" ]; then
    section "$@" </dev/null >"$scratch/$1" 2>/dev/null &
  else
    section "$@" </dev/null
  fi
}

have() {
  command -v "$1" >/dev/null 2>&1
}

endpoint() {
  case $ENDPOINT_HOST in
    *[!0-9.]*) ;;
    *) return "$absent" ;;
  esac
  timeout 2 getent ahostsv4 "$ENDPOINT_HOST"
  case $? in
    0) ;;
    2) return "$absent" ;;
    124) echo "no answer from the resolver within 2 s" >&2; return 1 ;;
    *) return 1 ;;
  esac
}

architecture() {
  have dpkg || return "$absent"
  dpkg --print-architecture
}

cgroup() {
  kind=$(stat -fc %T /sys/fs/cgroup) || return 1
  printf 'type %s\n' "$kind"
  if [ "$kind" = cgroup2fs ]; then
    cat /sys/fs/cgroup/cgroup.controllers
  else
    cat /proc/cgroups
  fi
}

# Only what exists is named to find, so that its status means something.
existing() {
  found=
  for path in "$@"; do
    [ ! -e "$path" ] || found="$found $path"
  done
}

# Where systemd looks for units, as far as it exists.
existing /etc/systemd/system /run/systemd/system /run/systemd/generator.early /run/systemd/generator \
  /run/systemd/generator.late /usr/local/lib/systemd/system /usr/lib/systemd/system /lib/systemd/system
unit_folders=$found

# Of the named units those that exist: systemd takes long to find out.
existing_units() {
  units=
  for name in "$@"; do
    for folder in $unit_folders; do
      for path in "$folder"/$name; do
        [ ! -e "$path" ] || units="$units ${path##*/}"
      done
    done
  done
}

# Unit files, masks (links to /dev/null) and who wants them: `path -> target`.
swap_units() {
  # shellcheck disable=SC2086 # a list of paths without blanks
  find $unit_folders -maxdepth 2 -name '*.swap' -printf '%p -> %l\n'
}

swap_unit_sources() {
  for path in /run/systemd/generator*/*.swap; do
    [ -f "$path" ] || continue
    # systemd names fstab, the other generators name themselves.
    if grep -q 'SourcePath=/etc/fstab' "$path"; then
      echo "fstab $path"
    elif grep -q 'zram-generator' "$path"; then
      echo "zram-generator $path"
    fi
  done
  return 0
}

swap_makers() {
  existing_units dphys-swapfile.service zramswap.service zram-config.service zram-swap.service swapspace.service \
    armbian-zram-config.service 'rpi-swap*.service' 'rpi-zram*.service' 'rpi-resize*swap*.service' \
    'systemd-zram-setup@*.service'
  [ -n "$units" ] && [ -d /run/systemd/system ] || return 0
  # shellcheck disable=SC2086 # a list of names without blanks
  systemctl list-unit-files --no-legend --no-pager --plain --full $units || [ $? -eq 1 ]
}

zram_generator() {
  for path in /usr/lib/systemd/system-generators/zram-generator /lib/systemd/system-generators/zram-generator \
    /usr/local/lib/systemd/system-generators/zram-generator /etc/systemd/system-generators/zram-generator; do
    [ ! -x "$path" ] || { echo "generator $path"; break; }
  done
  for path in /etc/systemd/zram-generator.conf /run/systemd/zram-generator.conf \
    /usr/local/lib/systemd/zram-generator.conf /usr/lib/systemd/zram-generator.conf \
    /etc/systemd/zram-generator.conf.d/*.conf /run/systemd/zram-generator.conf.d/*.conf \
    /usr/local/lib/systemd/zram-generator.conf.d/*.conf /usr/lib/systemd/zram-generator.conf.d/*.conf; do
    [ -e "$path" ] || continue
    printf 'file %s\n' "$path"
    sed 's/^/> /' "$path" || return 1
    # A last line without newline must not swallow the next one.
    echo
  done
}

sysctls() {
  cd /proc/sys || return 1
  set --
  for key in net/ipv4/ip_forward net/ipv4/conf/all/forwarding net/ipv4/ip_nonlocal_bind \
    net/ipv4/conf/all/rp_filter net/ipv4/conf/default/rp_filter net/ipv6/conf/all/disable_ipv6 \
    net/bridge/bridge-nf-call-iptables net/bridge/bridge-nf-call-ip6tables \
    net/netfilter/nf_conntrack_max fs/inotify/max_user_instances fs/inotify/max_user_watches \
    vm/overcommit_memory vm/panic_on_oom vm/swappiness kernel/panic kernel/panic_on_oops; do
    [ ! -r "$key" ] || set -- "$@" "$key"
  done
  grep -H '' "$@"
}

modules() {
  read -r release </proc/sys/kernel/osrelease
  wanted='overlay|br_netfilter|vxlan|nf_conntrack|nf_tables|ip_tables|ip_vs|ip_vs_rr|ip_vs_wrr|ip_vs_sh|wireguard|zram'
  # Loaded, built in, and a file system that is known.
  sed -n -E -e "s#^(.*/)?($wanted)(\.ko.*| .*)?\$#\2#p" -e 's/^nodev[[:space:]]+overlay$/overlay/p' \
    /proc/modules "/lib/modules/$release/modules.builtin" /proc/filesystems 2>/dev/null
  IFS='|'
  for name in $wanted; do
    [ ! -d "/sys/module/$name" ] || echo "$name"
  done
  unset IFS
  [ ! -d /proc/sys/net/bridge ] || echo br_netfilter
}

packages() {
  have dpkg-query || return "$absent"
  # Status 1: some of the names are not known to dpkg.
  # shellcheck disable=SC2016 # dpkg-query's own variables
  dpkg-query -W -f '${Package} ${db:Status-Abbrev}|${Version}\n' \
    containerd containerd.io docker.io docker-ce moby-engine podman podman-docker cri-o runc crun \
    kubeadm kubelet kubectl kubernetes-cni cri-tools containernetworking-plugins flannel \
    haproxy keepalived etcd etcd-server k3s microk8s \
    conntrack socat iptables nftables ipset ipvsadm ethtool ebtables arptables \
    curl wget ca-certificates gnupg gpg apt-transport-https jq kmod open-iscsi nfs-common \
    chrony systemd-timesyncd ntp ntpsec openntpd systemd-resolved ufw firewalld iptables-persistent \
    dphys-swapfile zram-tools zram-config systemd-zram-generator rpi-swap swapspace \
    linux-modules-extra-raspi apparmor sudo systemd || [ $? -eq 1 ]
}

legacy_sources() {
  set --
  for path in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ ! -f "$path" ] || set -- "$@" "$path"
  done
  [ $# -gt 0 ] || return 0
  grep -lE '^[^#]*(apt\.kubernetes\.io|packages\.cloud\.google\.com/apt.*kubernetes|kubernetes-(xenial|yakkety))' "$@" ||
    [ $? -eq 1 ]
}

services() {
  existing_units containerd.service docker.service docker.socket kubelet.service haproxy.service keepalived.service \
    etcd.service firewalld.service ufw.service nftables.service netfilter-persistent.service crio.service \
    cri-docker.service k3s.service k3s-agent.service rke2-server.service rke2-agent.service \
    k0scontroller.service k0sworker.service snap.microk8s.daemon-kubelite.service snap.k8s.kubelet.service \
    systemd-udevd.service chrony.service \
    systemd-timesyncd.service ntp.service ntpsec.service openntpd.service systemd-resolved.service \
    NetworkManager.service systemd-networkd.service apparmor.service
  [ -n "$units" ] && [ -d /run/systemd/system ] || return 0
  # shellcheck disable=SC2086 # a list of names without blanks
  systemctl show --no-pager -p Id,LoadState,ActiveState,UnitFileState $units
}

images() {
  have ctr && [ -S /run/containerd/containerd.sock ] || return "$absent"
  timeout 5 ctr --connect-timeout 2s -n k8s.io images ls -q
}

containerd_version() {
  have containerd || return "$absent"
  timeout 5 containerd --version
}

containerd_config() {
  have containerd || return "$absent"
  timeout 5 containerd config dump
}

# A container shows that of the machine it runs on.
product_uuid() {
  [ ! -e /run/systemd/container ] && [ -e /sys/class/dmi/id/product_uuid ] || return "$absent"
  cat /sys/class/dmi/id/product_uuid
}

kube_files() {
  existing /etc/kubernetes /etc/cni/net.d /var/lib/kubelet/config.yaml /var/lib/kubelet/kubeadm-flags.env \
    /var/lib/kubelet/instance-config.yaml /var/lib/kubelet/pki/kubelet-client-current.pem
  [ -n "$found" ] || return 0
  # shellcheck disable=SC2086 # a list of paths without blanks
  find $found '(' -type f -o -type l ')' -print
}

etcd() {
  dir=/var/lib/etcd
  manifest=/etc/kubernetes/manifests/etcd.yaml
  if [ -f "$manifest" ]; then
    named=$(sed -n 's/^ *- --data-dir=//p' "$manifest") || return 1
    [ -z "$named" ] || dir=$named
  fi
  printf 'dir %s\n' "$dir"
  [ ! -d "$dir/member" ] || echo member
  if [ -d /var/lib/etcd ]; then
    used=$(ls -A /var/lib/etcd) || return 1
    [ -z "$used" ] || echo used
  fi
}

readyz() {
  case $listening in
    *:6443\ *) ;;
    *) return "$absent" ;;
  esac
  have kubectl && [ -f /etc/kubernetes/admin.conf ] || return "$absent"
  # The request is given up after 4 s; kubectl itself takes seconds to start on a small or busy host.
  timeout -k 1 12 kubectl --kubeconfig /etc/kubernetes/admin.conf --server "https://$ADDRESS:6443" \
    --request-timeout 4s get --raw /readyz 2>&1
  case $? in
    0) ;;
    124 | 137) echo "did not answer within 12 s" >&2; return 1 ;;
    *) return 1 ;;
  esac
}

# Of a node they are no leftovers, and many.
leftovers() {
  [ ! -e /etc/kubernetes/kubelet.conf ] || return "$absent"
  for table in iptables ip6tables; do
    family=
    [ "$table" = iptables ] || family=6
    # Asking the legacy tables would load their modules, where nothing uses them.
    if have "$table-nft-save"; then
      timeout 5 "$table-nft-save" 2>/dev/null | count_rules "$table"
    fi
    if have "$table-legacy-save" && [ -s "/proc/net/ip${family}_tables_names" ]; then
      timeout 5 "$table-legacy-save" 2>/dev/null | count_rules "$table-legacy"
    fi
  done
  if have nft; then
    timeout 5 nft list tables 2>/dev/null |
      sed -n -E 's/^table ([a-z0-9]+ (kube-proxy|flannel-ipv[46]))$/nft table \1/p'
  fi
  for path in /run/netns/cni-*; do
    [ ! -e "$path" ] || echo "network namespace $path"
  done | head -n 20
  sed -n -E 's#^[^ ]+ (/var/lib/kubelet/[^ ]+) .*#mount \1#p' /proc/self/mounts | head -n 20
}

count_rules() {
  rules=$(grep -cE '^-A .*(KUBE-|CNI-|FLANNEL-)|^:(KUBE-|CNI-|FLANNEL-)')
  [ "$rules" -eq 0 ] || echo "$1: $rules rules and chains of kube-proxy, CNI or Flannel"
}

# Other software, leftovers, and what stands between the host and the network, one thing a line. Nothing but the shell's
# own words, on a node: it is asked each time.
surroundings() {
  for path in /run/containerd/containerd.sock /run/crio/crio.sock /run/cri-dockerd.sock /run/docker.sock \
    /run/k3s/containerd/containerd.sock /run/k0s/containerd.sock; do
    [ ! -S "$path" ] || echo "socket $path"
  done
  existing /var/lib/cni /run/flannel /usr/local/bin/k3s /etc/rancher /var/lib/rancher /usr/local/bin/rke2 \
    /usr/local/bin/k0s /usr/bin/k0s /etc/k0s /var/lib/k0s /var/snap/microk8s /var/snap/k8s /var/lib/minikube \
    /snap/bin/kubeadm /snap/bin/kubelet /snap/bin/kubectl /usr/local/bin/kubeadm /usr/local/bin/kubelet \
    /usr/local/bin/kubectl /usr/local/bin/crictl /usr/local/bin/containerd /usr/local/sbin/containerd \
    /usr/local/bin/runc /usr/local/sbin/runc
  for path in $found; do echo "path $path"; done
  for path in /sys/class/net/*; do
    [ -e "$path/device" ] || continue
    kind=wired driver=
    [ ! -e "$path/phy80211" ] && [ ! -d "$path/wireless" ] || kind=wireless
    if [ -r "$path/device/uevent" ]; then
      while read -r line; do case $line in DRIVER=*) driver=${line#DRIVER=} ;; esac; done <"$path/device/uevent"
    fi
    echo "device ${path##*/} $kind $driver"
  done
  for path in /etc/ssh/ssh_host_*_key.pub; do
    # The rest of the line names a person.
    [ ! -r "$path" ] || { read -r kind key line <"$path"; echo "host-key $kind $key"; }
  done
  for line in http_proxy https_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY; do
    eval "value=\${$line-}"
    [ -z "$value" ] || echo "$line=$value"
  done | proxy_lines
  [ ! -r /etc/environment ] || proxy_lines </etc/environment
  if [ -d /opt/cni/bin ]; then
    echo cni-plugins
    for path in /opt/cni/bin/*; do [ ! -f "$path" ] || echo "cni-plugin ${path##*/}"; done
  fi
  if [ -e /etc/resolv.conf ]; then
    echo 'resolv-conf there'
  elif [ -L /etc/resolv.conf ]; then
    echo "resolv-conf dangling $(readlink -m /etc/resolv.conf)"
  else
    echo 'resolv-conf missing'
  fi
  for family in ip ip6; do
    [ ! -r "/proc/net/${family}_tables_names" ] || while read -r line; do echo "legacy $family $line"; done <"/proc/net/${family}_tables_names"
  done
  [ ! -e /etc/kubernetes/kubelet.conf ] || return 0
  for kind in iptables ip6tables; do
    path=$(command -v "$kind") && echo "$kind $(readlink -f "$path")"
  done
  [ ! -d /etc/cloud ] ||
    grep -HsE '^[[:space:]]*(manage_etc_hosts|preserve_hostname)[[:space:]]*:' /etc/cloud/cloud.cfg /etc/cloud/cloud.cfg.d/*.cfg |
    while read -r line; do [ -e /etc/cloud/cloud-init.disabled ] || echo "cloud-init $line"; done
  return 0
}

# Passwords are left out.
proxy_lines() {
  while read -r line; do
    line=${line#export }
    case $line in
      [A-Za-z]*_proxy=* | [A-Z]*_PROXY=*) ;;
      *) continue ;;
    esac
    case $line in *://*@*) line="${line%%://*}://***@${line##*@}" ;; esac
    echo "proxy $line"
  done
}

# What the packet filter does. The rules of a node are kube-proxy's, by the thousand.
ruleset() {
  [ ! -e /etc/kubernetes/kubelet.conf ] || return "$absent"
  listed=
  if have nft; then
    listed=1
    timeout 2 nft list ruleset | head -n 2000
  elif have iptables-nft-save; then
    listed=1
    timeout 2 iptables-nft-save | head -n 2000
  fi
  if have iptables-legacy-save && [ -s /proc/net/ip_tables_names ]; then
    listed=1
    timeout 2 iptables-legacy-save | head -n 2000
  fi
  [ -n "$listed" ] || return "$absent"
}

backends() {
  [ -S /run/haproxy/admin.sock ] || return "$absent"
  perl -MIO::Socket::UNIX -e '
    alarm 2;
    my $s = IO::Socket::UNIX->new(Peer => "/run/haproxy/admin.sock") or die "cannot connect to the stats socket: $!\n";
    print $s "show stat -1 4 -1\n"; # servers of all proxies
    print while <$s>;'
}

# Names of all files of the record, and the lines of those that hold no copy of a host's file.
record() {
  [ -d /var/lib/k8sup ] || return "$absent"
  cd /var/lib/k8sup || return 1
  existing files entries
  [ -n "$found" ] || return 0
  # shellcheck disable=SC2086 # a list of paths without blanks
  find $found '(' -type f -o -type l ')' -printf 'name %p\n' || return 1
  # shellcheck disable=SC2086
  find $found -type f '(' -path 'files/*.ours' -o -path 'entries/*' ')' -exec grep -H '' '{}' + || [ $? -eq 1 ]
}

holder() {
  [ -e "$lock" ] && is_alive || return "$absent"
  field run
  field holder
  field since
}

# Only what is to come into a cluster is asked what takes longer.
is_node() { [ -e /etc/kubernetes/kubelet.conf ]; }
not_on_nodes() {
  echo "not looked at on a host that is in a cluster" >&2
  return 1
}

# What the kernel can load, and for which kernels there are modules at all.
available_modules() {
  ! is_node || not_on_nodes || return 1
  for path in /lib/modules/*; do
    [ ! -d "$path" ] || echo "installed ${path##*/}"
  done
  read -r release </proc/sys/kernel/osrelease
  [ -r "/lib/modules/$release/modules.dep" ] || return 0
  grep -ohE '/(overlay|br_netfilter|vxlan|wireguard|nf_conntrack|ip_tables|iptable_nat|nf_tables|nft_compat|configs)\.ko' \
    "/lib/modules/$release/modules.dep" "/lib/modules/$release/modules.builtin" || [ $? -eq 1 ]
}

# Where kubeadm looks for the kernel's configuration, in its order.
kernel_config() {
  read -r release </proc/sys/kernel/osrelease
  for path in /proc/config.gz "/boot/config-$release" "/usr/src/linux-$release/.config" /usr/src/linux/.config \
    "/usr/lib/modules/$release/config" "/usr/lib/ostree-boot/config-$release" "/usr/lib/kernel/config-$release" \
    "/usr/src/linux-headers-$release/.config" "/lib/modules/$release/build/.config"; do
    [ ! -r "$path" ] || { echo "$path"; return 0; }
  done
  return "$absent"
}

# What sets at boot what k8sup sets, too. /etc/sysctl.conf itself is only read where 99-sysctl.conf leads to it.
sysctl_files() {
  keys='net[./]ipv4[./](ip_forward|conf[./]all[./]forwarding|ip_nonlocal_bind)'
  keys="$keys|net[./]bridge[./]bridge-nf-call-ip6?tables|fs[./]inotify[./]max_user_(instances|watches)"
  grep -HsE "^[[:space:]]*-?[[:space:]]*($keys)[[:space:]]*=" /etc/sysctl.d/*.conf /run/sysctl.d/*.conf \
    /usr/local/lib/sysctl.d/*.conf /usr/lib/sysctl.d/*.conf /etc/ufw/sysctl.conf
  return 0
}

disks() {
  ! is_node || not_on_nodes || return 1
  existing /var/lib /var/lib/etcd /var/lib/containerd /var/lib/kubelet /var/log
  # shellcheck disable=SC2086 # a list of paths without blanks
  timeout 2 df -k --output=file,target,source,fstype,size,avail,itotal,iavail $found
}

# A Raspberry Pi says what it is and how it fares.
board() {
  [ ! -r /proc/device-tree/model ] || printf 'model %s\n' "$(tr -d '\0' </proc/device-tree/model)"
  for path in /sys/devices/platform/soc/soc:firmware/get_throttled /sys/devices/platform/soc*/*firmware*/get_throttled \
    /sys/devices/platform/*firmware*/get_throttled; do
    [ -r "$path" ] || continue
    read -r value <"$path"
    echo "throttled $value"
    break
  done
  for path in /sys/class/hwmon/hwmon*/in0_lcrit_alarm; do
    [ -r "$path" ] || continue
    read -r name <"${path%/*}/name"
    read -r value <"$path"
    [ "$name" != rpi_volt ] || echo "undervoltage $value"
  done
  for path in /sys/block/mmcblk[0-9]/device/type; do
    [ -r "$path" ] || continue
    read -r value <"$path"
    path=${path%/device/type}
    echo "block ${path##*/} $value"
  done
}

# How the system runs.
running() {
  [ ! -d /run/systemd/system ] || echo systemd
  [ ! -e /run/reboot-required ] || echo reboot-required
  [ ! -e /run/systemd/timesync/synchronized ] || echo synchronized
  [ ! -r /run/systemd/container ] || { read -r value </run/systemd/container; echo "container $value"; }
}

# Whether the kernel knows its clock to be right (adjtimex), and how long etcd's disk takes to have something for good:
# etcd writes into files that have their size already, about 2300 bytes at a time. Perl's own clock has only seconds.
measured() {
  ! is_node || not_on_nodes || return 1
  folder=
  if [ "$ETCD_DISK" = 1 ]; then
    folder=/var/lib
    [ ! -d /var/lib/etcd ] || folder=/var/lib/etcd
  fi
  # shellcheck disable=SC2016 # perl's own variables
  timeout -k 1 4 perl -e '
    use Fcntl;
    my ($folder, $machine) = @ARGV;
    # clock_gettime, fdatasync, adjtimex
    my %numbers = ("x86_64" => [228, 75, 159], "aarch64" => [113, 83, 171]);
    my $call = $numbers{$machine} or die "no numbers of system calls for $machine\n";
    my $timex = pack "x208";
    if (syscall($call->[2], $timex) >= 0) {
      print "unsynchronised ", (unpack "x40 i", $timex) & 0x40 ? 1 : 0, "\n";
    }
    exit 0 unless length $folder;
    sub now {
      my $time = pack "q2", 0, 0;
      syscall($call->[0], 1, $time) == 0 or die "no clock: $!\n";
      my ($seconds, $nanoseconds) = unpack "q2", $time;
      return $seconds + $nanoseconds / 1e9;
    }
    our $file = "$folder/.k8sup-fsync-$$";
    $SIG{TERM} = $SIG{HUP} = $SIG{INT} = sub { exit 1 };
    END { unlink $file if defined $file && -e $file }
    sysopen my $disk, $file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600 or die "$file: $!\n";
    my $block = substr "k8sup measures " x 192, 0, 2300;
    syswrite $disk, $block for 1 .. 100;
    syscall $call->[1], fileno $disk;
    sysseek $disk, 0, 0;
    my ($end, @took) = (now() + 0.25);
    while (@took < 100 && (now() < $end || @took < 5 && now() < $end + 1)) {
      my $start = now();
      syswrite $disk, $block;
      syscall($call->[1], fileno $disk) == 0 or die "fdatasync in $folder: $!\n";
      push @took, 1000 * (now() - $start);
    }
    @took = sort { $a <=> $b } @took;
    my $p99 = int(0.99 * @took);
    $p99 = $#took if $p99 > $#took;
    printf "fdatasync %s samples %d p99 %.3f ms\n", $folder, scalar @took, $took[$p99];' "$folder" "$(uname -m)"
}

scratch=$(mktemp -d /run/k8sup-probe.XXXXXX 2>/dev/null) || scratch=
if [ -n "$scratch" ]; then
  trap 'rm -rf "$scratch"' EXIT
  trap 'exit 1' HUP INT TERM
fi

section clock date +%s
listening=$(ss -Hltnp 2>/dev/null)

later measured measured
later endpoint endpoint
later readyz readyz
later containerd-version containerd_version
later containerd-config containerd_config
later images images
later leftovers leftovers
later backends backends
later ruleset ruleset
later services services
later swap-makers swap_makers

section architecture architecture
section machine uname -m
section product-uuid product_uuid
section cpus nproc
section free df -kP /var/lib
section cgroup cgroup
section swap-units swap_units
section swap-unit-sources swap_unit_sources
section zram-generator zram_generator
section sysctls sysctls
section modules modules
section addresses ip -j addr show
section routes ip -j -4 route show
section packages packages
section legacy-sources legacy_sources
section listening printf '%s\n' "$listening"
section kube-files kube_files
section etcd etcd
section surroundings surroundings
section available-modules available_modules
section kernel-config kernel_config
section sysctl-files sysctl_files
section disks disks
section board board
section running running
section record record
section holder holder

login=$(getent passwd "$LOGIN_USER")
section login printf '%s\n' "$login"
home=${login%:*}
home=${home##*:}
[ -n "$home" ] || home=/nonexistent

files os-release=/etc/os-release machine-id=/etc/machine-id boot-id=/proc/sys/kernel/random/boot_id \
  hostname=/proc/sys/kernel/hostname kernel=/proc/sys/kernel/osrelease meminfo=/proc/meminfo swaps=/proc/swaps \
  cmdline=/proc/cmdline \
  resolv-conf=/etc/resolv.conf resolved=/run/systemd/resolve/resolv.conf \
  kubelet-config=/var/lib/kubelet/config.yaml kubelet-flags=/var/lib/kubelet/kubeadm-flags.env \
  login-kubeconfig="$home/.kube/config" 'kubeconfig:=/etc/kubernetes/*.conf' \
  'certificate:=/etc/kubernetes/pki/*.crt' 'certificate:=/etc/kubernetes/pki/etcd/*.crt' \
  certificate:=/var/lib/kubelet/pki/kubelet-client-current.pem \
  file:=/etc/fstab file:=/etc/hosts file:=/etc/hostname file:=/etc/modules-load.d/k8sup.conf \
  file:=/etc/sysctl.d/90-k8sup.conf file:=/etc/sysctl.d/99-zz-k8sup.conf \
  file:=/etc/k8sup-resolv.conf file:=/etc/containerd/config.toml \
  'file:=/etc/containerd/k8sup-*.toml' 'file:=/etc/containerd/conf.d/*.toml' \
  'file:=/etc/containerd/certs.d/*/hosts.toml' file:=/etc/crictl.yaml \
  'file:=/etc/apt/sources.list.d/*kubernetes*' 'file:=/etc/apt/sources.list.d/*k8s*' \
  'file:=/etc/apt/keyrings/*k8sup*.asc' 'file:=/etc/apt/keyrings/*kubernetes*.asc' \
  'file:=/etc/apt/apt.conf.d/*k8sup*' file:=/etc/default/kubelet file:=/etc/haproxy/haproxy.cfg \
  'file:=/etc/systemd/system/containerd.service.d/*.conf' 'file:=/etc/systemd/system/haproxy.service.d/*.conf' \
  'file:=/etc/systemd/system/kubelet.service.d/*.conf' file:=/etc/systemd/zram-generator.conf \
  file:=/etc/rpi/swap.conf 'file:=/etc/rpi/swap.conf.d/*.conf' \
  file:=/etc/NetworkManager/conf.d/k8sup.conf file:=/etc/systemd/network/50-k8sup-flannel.link \
  file:=/etc/ufw/ufw.conf file:=/etc/ufw/user.rules 'file:=/etc/firewalld/zones/*.xml' \
  file:=/boot/firmware/current/cmdline.txt file:=/boot/firmware/cmdline.txt file:=/boot/cmdline.txt

wait
if [ -n "$scratch" ]; then
  cat "$scratch"/*
fi
printf '@@%s done\n' "$NONCE"
exit 0
