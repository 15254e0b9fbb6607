# The Debian part: a base tree for each release, and a signed mirror of the packages
# that a provisioner may want. Both are cache entries.
# shellcheck shell=bash disable=SC2154 # variables are shared with lab

find_mirror() {
  # shellcheck disable=SC2016 # $(REPO_URI) is for apt
  apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' \
    'Created-By: Packages' 2>/dev/null | sort -u | head -n 1
}

# The Debian mirror that this machine uses itself.
mirror() {
  local uri
  uri=$(find_mirror)
  if [ -z "$uri" ]; then
    apt-get update -qq >/dev/null 2>&1 || true
    uri=$(find_mirror)
  fi
  [ -n "$uri" ] || die "apt on this machine knows no Debian mirror"
  echo "$uri"
}

source_line() { # RELEASE
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(mirror) $1 main"
}

# The systemd of forky refuses to boot on a machine with cgroup v1. There, and
# only there, the forky hosts get the one of trixie.
old_systemd() { # RELEASE
  [ "$1" = forky ] && [ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ]
}

source_lines() { # RELEASE
  source_line "$1"
  if old_systemd "$1"; then source_line trixie; fi
}
pins() { # RELEASE
  if old_systemd "$1"; then
    printf 'Package: *\nPin: release n=trixie\nPin-Priority: 100\n\n'
    printf 'Package: src:systemd\nPin: release n=trixie\nPin-Priority: 1001\n'
  fi
}

# --- the key that signs the lab's repositories -----------------------------------

# It belongs to the cache, since the mirrors and base trees there do.
lab_gpg() { gpg --homedir "$cache/keys/gnupg" --batch --quiet "$@"; }
end_gpg_agent() { [ ! -d "$1/gnupg" ] || gpgconf --homedir "$1/gnupg" --kill all; }

make_signing_key() {
  local tree=$cache/making/keys
  [ ! -d "$cache/keys" ] || return 0
  install -d -m 700 "$tree" "$tree/gnupg"
  gpg --homedir "$tree/gnupg" --batch --quiet --passphrase '' --quick-generate-key 'k8sup lab' ed25519 sign never 2>/dev/null
  gpg --homedir "$tree/gnupg" --batch --quiet --armor --export >"$tree/lab.asc"
  gpg --homedir "$tree/gnupg" --batch --quiet --export >"$tree/lab.gpg"
  end_gpg_agent "$tree"
  mv "$tree" "$cache/keys"
}

# --- the base trees -----------------------------------------------------------------

base_packages=systemd-sysv,dbus,udev,openssh-server,sudo,iproute2,iputils-ping,procps,kmod,ca-certificates,openssl,passwd,login,mount,netbase,perl-base

base_recipe() { # RELEASE
  recipe "$1" "$base_packages" "$(uname -r)" "$(pins "$1")" "$cache/keys/lab.gpg" "$sudo_password" "$gateway" \
    fill_base dress_base allow_low_oom_scores pretend_modules
}

fill_base() { # TREE RELEASE
  local tree=$1 release=$2 pins
  pins=$cache/making/pins-$release
  pins "$release" >"$pins"
  # Debian's testing may be past the date its Release file was valid until. Only
  # the lab accepts that: the hosts see the lab's own signed mirror.
  # shellcheck disable=SC2016 # $1 is the hook's
  source_lines "$release" | mmdebstrap --quiet --variant=apt --aptopt='Acquire::Check-Valid-Until "false"' \
    --setup-hook='mkdir -p "$1/etc/apt/preferences.d"' --setup-hook="cp '$pins' \"\$1/etc/apt/preferences.d/lab\"" \
    --include="$base_packages" "$release" "$tree" - 2>"$dir/log/base-$release" ||
    { say "mmdebstrap failed for $release:"; tail -n 5 "$dir/log/base-$release" >&2; return 1; }
  rm -f "$tree/etc/apt/apt.conf.d/99mmdebstrap" "$tree/etc/apt/preferences.d/lab"
  dress_base "$release" "$tree"
}

# What an installer or an SD card image would have set up on every host.
dress_base() { # RELEASE TREE
  local release=$1 tree=${2:?} units=$2/etc/systemd/system
  rm -f "$tree"/etc/ssh/ssh_host_* "$tree/etc/apt/sources.list" "$tree"/etc/apt/sources.list.d/*
  rm -f "$tree/etc/machine-id" "$tree/etc/hostname" "$tree/etc/resolv.conf"
  echo "nameserver $gateway" >"$tree/etc/resolv.conf"
  cp "$cache/keys/lab.gpg" "$tree/usr/share/keyrings/k8sup-lab.gpg"
  cat >"$tree/etc/apt/sources.list.d/debian.sources" <<EOF
Types: deb
URIs: http://$gateway/debian
Suites: $release
Components: main
Signed-By: /usr/share/keyrings/k8sup-lab.gpg
EOF
  # Disks of test hosts need not survive a power cut in the middle of dpkg.
  echo force-unsafe-io >"$tree/etc/dpkg/dpkg.cfg.d/lab"
  printf '/dev/mmcblk0p2 / ext4 defaults,noatime 0 1\n' >"$tree/etc/fstab"

  chroot "$tree" useradd -m -s /bin/bash -G sudo pi
  chroot "$tree" usermod -p "$(openssl passwd -6 "$sudo_password")" pi

  # nspawn mounts the cgroup hierarchies read-only; the kubelet and runc need
  # them writable. Pods need shared mounts, which a real boot has by default.
  cat >"$units/lab-mounts.service" <<'EOF'
[Unit]
Description=Writable cgroups and shared mounts, as on a real machine
DefaultDependencies=no
Before=sysinit.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'for m in /sys/fs/cgroup /sys/fs/cgroup/*; do mount -o remount,bind,rw $m 2>/dev/null || true; done; mount --make-rshared /'
[Install]
WantedBy=sysinit.target
EOF
  allow_low_oom_scores "$tree"
  systemctl --root="$tree" -q enable lab-mounts ssh systemd-networkd
  # The disk of a host is not a block device, and nobody sits at its console.
  systemctl --root="$tree" -q mask console-getty.service systemd-remount-fs.service
  pretend_modules "$tree"
}

# Without CAP_SYS_RESOURCE no process may lower its OOM score, and runc fails on
# the pods that ask for it. containerd finds this wrapper first in its PATH, so
# its configuration stays what it would be on a real machine.
allow_low_oom_scores() { # TREE
  cat >"$1/usr/local/sbin/runc" <<'EOF'
#!/bin/sh
# runc of a lab host: no negative OOM scores
previous=
for a in "$@"; do
  if [ "$previous" = --bundle ] && [ -f "$a/config.json" ]; then
    sed -i 's/"oomScoreAdj":-[0-9]*/"oomScoreAdj":0/' "$a/config.json"
  fi
  previous=$a
done
exec /usr/sbin/runc "$@"
EOF
  chmod 755 "$1/usr/local/sbin/runc"
}

# This kernel has everything built in and no /lib/modules. With the list of
# built-in modules `modprobe overlay` succeeds, as it does on a real machine.
pretend_modules() { # TREE
  local modules m
  modules=$1/lib/modules/$(uname -r)
  mkdir -p "$modules"
  for m in fs/overlayfs/overlay net/bridge/bridge net/bridge/br_netfilter \
    net/netfilter/nf_conntrack drivers/net/vxlan/vxlan; do
    echo "kernel/$m.ko"
  done >"$modules/modules.builtin"
  touch "$modules/modules.order" "$modules/modules.builtin.modinfo"
  chroot "$1" depmod 2>/dev/null || true
}

# --- the mirror ---------------------------------------------------------------------

# scratch_apt DIR STATUS ARGUMENT…: apt-get with lists and caches of its own,
# for a tree whose dpkg status is STATUS; DIR/sources.list says where from.
scratch_apt() {
  local at=$1 status=$2
  shift 2
  mkdir -p "$at"/etc/apt/{apt.conf.d,preferences.d,trusted.gpg.d} \
    "$at"/var/lib/apt/lists/partial "$at"/var/cache/apt/archives/partial
  apt-get -qq -y -o Dir="$at" -o Dir::State::status="$status" -o Dir::Etc::sourcelist="$at/sources.list" \
    -o Dir::Etc::sourceparts=- -o APT::Sandbox::User=root -o Debug::NoLocking=1 -o Acquire::Check-Valid-Until=false "$@"
}

debian_recipe() { # RELEASE
  recipe "$1" "$(base_recipe "$1")" "${debian_packages[*]}" fill_debian sign_repo scratch_apt
}

# The packages in the list and what they depend on, beyond what the base tree has.
fill_debian() { # TREE RELEASE BASE
  local repo=$1 release=$2 status=$3/var/lib/dpkg/status scratch=$cache/making/apt-$2
  local lists=$repo/dists/$release/main/binary-amd64
  mkdir -p "$lists" "$repo/pool/$release/partial" "$scratch/etc/apt/preferences.d"
  source_lines "$release" >"$scratch/sources.list"
  pins "$release" >"$scratch/etc/apt/preferences.d/lab"
  scratch_apt "$scratch" "$status" update || return 1
  scratch_apt "$scratch" "$status" -o Dir::Cache::archives="$repo/pool/$release/" \
    install --download-only "${debian_packages[@]}" >/dev/null || { say "cannot fetch the packages for $release"; return 1; }
  rm -rf "$scratch" "$repo/pool/$release/partial" "$repo/pool/$release/lock"
  (
    cd "$repo" || exit 1
    apt-ftparchive packages "pool/$release" >"$lists/Packages"
    gzip -kf "$lists/Packages"
    sign_repo "dists/$release" -o APT::FTPArchive::Release::Origin=Debian -o APT::FTPArchive::Release::Label=Debian \
      -o APT::FTPArchive::Release::Suite="$release" -o APT::FTPArchive::Release::Codename="$release" \
      -o APT::FTPArchive::Release::Components=main -o APT::FTPArchive::Release::Architectures=amd64
  )
}

# The Release file is made outside the folder that it lists. Signing takes turns:
# the one who is done first would end the agent of the others.
sign_repo() { # DIR [OPTION…]
  local at=$1 release
  shift
  release=$(mktemp "$cache/making/Release.XXXXXX")
  rm -f "$at"/{Release,InRelease,Release.gpg}
  apt-ftparchive "$@" release "$at" >"$release"
  chmod 644 "$release"
  mv "$release" "$at/Release"
  (
    flock 7
    lab_gpg --clearsign -o "$at/InRelease" "$at/Release"
    lab_gpg --armor --detach-sign -o "$at/Release.gpg" "$at/Release"
    end_gpg_agent "$cache/keys"
  ) 7>"$cache/making/signing"
}
