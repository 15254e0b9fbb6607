//! Clusters that k8sup did not make: one that matches the inventory is adopted, anything that
//! differs in what cannot be changed is refused before anything is changed.

use std::path::Path;

use crate::inventory::{self, replaced};
use crate::lab::{feed, rebuild, timed};
use crate::life_signs::{LifeSigns, life_signs};
use crate::program::k8sup;
use crate::serving::serves;
use crate::single;

/// What the installation guides say, for a host of the lab.
const PREPARE: &str = r##"
export DEBIAN_FRONTEND=noninteractive
modprobe overlay
modprobe br_netfilter
printf 'net.ipv4.ip_forward = 1\nnet.bridge.bridge-nf-call-iptables = 1\nnet.bridge.bridge-nf-call-ip6tables = 1\n' >/etc/sysctl.d/k8s.conf
sysctl -q --system
apt-get update -qq
apt-get install -y -qq --no-install-recommends curl containerd
mkdir -p /etc/apt/keyrings /etc/containerd/certs.d/_default
curl -fsS http://192.168.7.1/core:/stable:/v1.34/deb/Release.key -o /etc/apt/keyrings/kubernetes-apt-keyring.asc
echo 'deb [signed-by=/etc/apt/keyrings/kubernetes-apt-keyring.asc] http://192.168.7.1/core:/stable:/v1.34/deb/ /' >/etc/apt/sources.list.d/kubernetes.list
apt-get update -qq
apt-get install -y -qq --no-install-recommends kubeadm kubelet kubectl cri-tools conntrack iptables socat ethtool
apt-mark -qq hold kubeadm kubelet kubectl
containerd config default | sed -E '
  s#^( *)sandbox(_image)? = .*#\1sandbox\2 = "registry.k8s.io/pause:3.10.1"#
  s#SystemdCgroup = .*#SystemdCgroup = true#
  s#^( *)config_path = ..$#\1config_path = "/etc/containerd/certs.d"#
  s#^( *)bin_dir = "/usr/lib/cni"#\1bin_dir = "/opt/cni/bin"#
  s#^( *)bin_dirs = .*#\1bin_dirs = ["/opt/cni/bin"]#' >/etc/containerd/config.toml
printf '[host."http://192.168.7.1:5000"]\n  capabilities = ["pull", "resolve"]\n' >/etc/containerd/certs.d/_default/hosts.toml
systemctl restart containerd
systemctl -q enable kubelet
"##;

const INIT: &str = r"
kubeadm init --kubernetes-version v1.34.4 --pod-network-cidr 10.244.0.0/16 --control-plane-endpoint 192.168.7.201:6443 \
  --apiserver-advertise-address 192.168.7.201
export KUBECONFIG=/etc/kubernetes/admin.conf
kubectl apply -f http://192.168.7.1/flannel/releases/download/v0.28.10/kube-flannel.yml
";

/// As root, by hand; gives the last line.
fn typed(host: &str, script: &str) -> String {
    let said = feed(host, &["sh", "-eu", "-s"], script);
    said.lines().last().unwrap_or_default().to_owned()
}

/// Adopted when it matches, refused when it does not.
pub(crate) fn adopted_or_refused() {
    let hosts = ["cp1", "w3"];
    rebuild(&hosts);
    timed("kubeadm init and join by hand", || {
        std::thread::scope(|scope| {
            for host in hosts {
                scope.spawn(move || typed(host, PREPARE));
            }
        });
        typed("cp1", INIT);
        let join = typed("cp1", "kubeadm token create --print-join-command");
        typed("w3", &join);
    });
    let inventory = single::direct();
    refused(&inventory);

    let before = life_signs(&hosts);
    k8sup(&["apply", "--yes"], &inventory).expect(0);
    serves(&hosts);
    // containerd and the kubelet may be configured anew; the host and the control plane go on.
    before.go_on(&LifeSigns::of_control_plane);
    k8sup(&["apply", "--yes"], &inventory).expect(0).says("Nothing to do");

    // The controller is lost with its cluster; the worker still belongs to that one.
    rebuild(&["cp1"]);
    k8sup(&["apply", "--yes"], &inventory).expect(6).says("w3");
}

/// Each with the running cluster's value and the inventory's.
fn refused(inventory: &Path) {
    let text = std::fs::read_to_string(inventory).unwrap();
    for (name, from, to, values) in [
        (
            "other-pods",
            "v1.34.4",
            "v1.34.4, podCidr: 10.250.0.0/16",
            ["10.244.0.0/16", "10.250.0.0/16"],
        ),
        ("other-version", "v1.34.4", "v1.34.3", ["v1.34.4", "v1.34.3"]),
        (
            "other-endpoint",
            "v1.34.4",
            "v1.34.4, endpoint: 'api.lab.test:6443'",
            ["192.168.7.201:6443", "api.lab.test:6443"],
        ),
    ] {
        let other = inventory::of(&format!("{name}.yaml"), &replaced(&text, from, to));
        k8sup(&["apply", "--yes"], &other)
            .expect(6)
            .says(values[0])
            .says(values[1]);
    }
}
