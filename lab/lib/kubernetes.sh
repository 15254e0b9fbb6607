# The Kubernetes packages, in repositories laid out like the upstream ones.
# shellcheck shell=bash disable=SC2154 # variables are shared with lab

kubernetes_recipe() { # VERSION
  recipe "$1" "$artifacts/SHA256SUMS" "$cache/keys/lab.gpg" fill_kubernetes deb kubelet_files kubeadm_files sign_repo
}

# deb TREE OUT NAME VERSION DEPENDS DESCRIPTION: packs TREE as a Debian package.
deb() {
  mkdir -p "$1/DEBIAN"
  {
    printf 'Package: %s\nVersion: %s\nArchitecture: amd64\nSection: admin\nPriority: optional\n' "$3" "$4"
    printf 'Maintainer: k8sup lab <lab@example.invalid>\n'
    [ -z "$5" ] || printf 'Depends: %s\n' "$5"
    [ "$3" != kubelet ] || printf 'Recommends: iptables (>= 1.8.4)\n'
    printf 'Description: %s\n' "$6"
  } >"$1/DEBIAN/control"
  dpkg-deb --root-owner-group -Znone -b "$1" "$2/${3}_${4}_amd64.deb" >/dev/null
}

# A repository for one minor version. Where all binaries are one file, kubeadm,
# kubelet and kubectl are links to it, and its package carries the version in its
# name so that two versions can be installed during an upgrade.
fill_kubernetes() { # TREE VERSION BINARIES
  local repo=$1/deb v=$2 bin=$3 tree=$cache/making/deb-$2 r=$2-1.1 p multi=''
  mkdir -p "$repo/amd64"

  if [ -e "$bin/kubernetes-$v" ]; then
    multi=kubernetes-multicall-$v
    install -D "$bin/kubernetes-$v" "$tree/usr/lib/kubernetes/$v/kubernetes"
    deb "$tree" "$repo/amd64" "$multi" "$r" "" "Kubernetes $v in one file (lab build)"
  fi
  for p in kubeadm kubectl kubelet; do
    rm -rf "$tree"
    mkdir -p "$tree/usr/bin" "$tree/DEBIAN"
    if [ -n "$multi" ]; then ln -s "../lib/kubernetes/$v/kubernetes" "$tree/usr/bin/$p"
    else install "$bin/$p-$v" "$tree/usr/bin/$p"; fi
    case $p in
    kubeadm)
      kubeadm_files "$tree"
      deb "$tree" "$repo/amd64" $p "$r" "$multi" "Command-line utility for administering a Kubernetes cluster"
      ;;
    kubectl)
      deb "$tree" "$repo/amd64" $p "$r" "$multi" "Command-line utility for interacting with a Kubernetes cluster"
      ;;
    kubelet)
      kubelet_files "$tree"
      deb "$tree" "$repo/amd64" $p "$r" "${multi:+$multi, }kubernetes-cni (>= 1.2.0), mount, util-linux" "Node agent for Kubernetes clusters"
      ;;
    esac
  done

  rm -rf "$tree"
  for p in bandwidth bridge host-local loopback portmap; do
    install -D "$bin/cni-$p" "$tree/opt/cni/bin/$p"
  done
  deb "$tree" "$repo/amd64" kubernetes-cni 1.9.1-1.1 "" "Binaries required to provision container networking"

  rm -rf "$tree"
  install -D "$bin/crictl" "$tree/usr/bin/crictl"
  deb "$tree" "$repo/amd64" cri-tools 1.34.0-1.1 "" "Command-line utility for interacting with a container runtime"
  rm -rf "$tree"

  (
    cd "$repo" || exit 1
    cp "$cache/keys/lab.asc" Release.key
    apt-ftparchive packages . >Packages
    gzip -kf Packages
    sign_repo . -o APT::FTPArchive::Release::Origin="lab build of Kubernetes v${v%.*}" \
      -o APT::FTPArchive::Release::Architectures=amd64
  )
}

# As upstream packages them: the unit is installed but not enabled.
kubelet_files() { # TREE
  mkdir -p "$1"/usr/lib/systemd/system "$1"/var/lib/kubelet "$1"/etc/kubernetes/manifests "$1"/etc/default
  touch "$1/var/lib/kubelet/.kubelet-keep" "$1/etc/kubernetes/manifests/.kubelet-keep"
  echo KUBELET_EXTRA_ARGS= >"$1/etc/default/kubelet"
  echo /etc/default/kubelet >"$1/DEBIAN/conffiles"
  cat >"$1/usr/lib/systemd/system/kubelet.service" <<'EOF'
[Unit]
Description=kubelet: The Kubernetes Node Agent
Documentation=https://kubernetes.io/docs/
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=10

[Install]
WantedBy=multi-user.target
EOF
  cat >"$1/DEBIAN/postinst" <<'EOF'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
EOF
  cat >"$1/DEBIAN/prerm" <<'EOF'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then systemctl --no-reload disable --now kubelet; fi
EOF
  chmod 755 "$1"/DEBIAN/{postinst,prerm}
}

kubeadm_files() { # TREE
  mkdir -p "$1/usr/lib/systemd/system/kubelet.service.d"
  cat >"$1/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf" <<'EOF'
# How kubeadm runs the kubelet.
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
# Written by "kubeadm init" and "kubeadm join".
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
# For the user's own arguments, as a last resort.
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
EOF
}
