//! Hosts as people have them: each is put into the state of a report, `check` names it, and `apply` refuses it with
//! nothing changed, or mends it and `reset` gives it back.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::inventory;
use crate::lab::{HOSTS, NODES, feed, rebuild, snapshots, timed};
use crate::left::After;
use crate::life::{compare, unchanged};
use crate::program::k8sup;
use crate::serving::{is_healthy, serves};

/// A state that somebody reported, made on a real host.
struct State {
    host: &'static str,
    /// The check that must name it; empty: it is handled without a word.
    code: &'static str,
    /// Makes it: sh, as root.
    make: &'static str,
    /// Takes it away again.
    mend: &'static str,
}

const fn state(host: &'static str, code: &'static str, make: &'static str, mend: &'static str) -> State {
    State { host, code, make, mend }
}

const fn made(host: &'static str, code: &'static str, make: &'static str) -> State {
    state(host, code, make, "")
}

/// Refused by `check` and `apply`, all at once.
const REFUSED: &[State] = &[
    // Somebody's own haproxy, which would stop serving.
    state(
        "lb-0",
        "K8S-LB-001",
        "install haproxy
        printf '\\nfrontend mine\\n  bind :8080\\n  mode http\\n' >>/etc/haproxy/haproxy.cfg
        systemctl restart haproxy",
        "DEBIAN_FRONTEND=noninteractive apt-get purge -y -qq --autoremove haproxy >/dev/null 2>&1
        rm -rf /etc/haproxy /run/haproxy",
    ),
    state("lb-0", "K8S-NET-012", "hold 6443", "release 6443"),
    // Data where etcd's is to be, and nobody knows whose.
    state(
        "cp1",
        "K8S-OLD-003",
        "mkdir -p /var/lib/etcd; echo mine >/var/lib/etcd/backup.db",
        "rm -r /var/lib/etcd",
    ),
    // A clone of another machine.
    state(
        "cp2",
        "K8S-ID-003",
        "cp /etc/machine-id /var/tmp/machine-id; echo 0123456789abcdef0123456789abcdef >/etc/machine-id",
        "cat /var/tmp/machine-id >/etc/machine-id; rm /var/tmp/machine-id",
    ),
    state(
        "cp3",
        "K8S-ID-003",
        "cp /etc/machine-id /var/tmp/machine-id; echo 0123456789abcdef0123456789abcdef >/etc/machine-id",
        "cat /var/tmp/machine-id >/etc/machine-id; rm /var/tmp/machine-id",
    ),
    // The pod network is taken by a bridge, the service network by a route.
    state(
        "cp3",
        "K8S-NET-006",
        "ip link add docker0 type bridge; ip addr add 10.244.3.1/24 dev docker0; ip link set docker0 up",
        "ip link del docker0",
    ),
    state(
        "w1",
        "K8S-NET-007",
        "ip route add 10.96.0.0/16 via 192.168.7.1",
        "ip route del 10.96.0.0/16",
    ),
    state("w2", "K8S-NET-012", "hold 10250", "release 10250"),
    // Parts of another cluster.
    state(
        "w3",
        "K8S-OLD-001",
        "mkdir -p /etc/kubernetes/pki; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 9 \\
          -subj /CN=kubernetes -keyout /etc/kubernetes/pki/ca.key -out /etc/kubernetes/pki/ca.crt 2>/dev/null",
        "rm -r /etc/kubernetes",
    ),
    state(
        "w2",
        "K8S-OLD-007",
        "mkdir -p /var/lib/kubelet/pods/a/volumes; mount -t tmpfs none /var/lib/kubelet/pods/a/volumes",
        "umount /var/lib/kubelet/pods/a/volumes; rm -r /var/lib/kubelet",
    ),
    // Another distribution of Kubernetes, and a kubelet by hand.
    state(
        "w1",
        "K8S-OLD-006",
        "mkdir -p /var/lib/rancher/k3s /etc/rancher/k3s; printf '#!/bin/sh\\n' >/usr/local/bin/k3s; chmod 755 /usr/local/bin/k3s
        printf '[Service]\\nExecStart=/usr/local/bin/k3s\\n' >/etc/systemd/system/k3s.service",
        "rm -r /var/lib/rancher /etc/rancher /usr/local/bin/k3s /etc/systemd/system/k3s.service",
    ),
    state(
        "w1",
        "K8S-PKG-006",
        "printf '#!/bin/sh\\n' >/usr/local/bin/kubelet; chmod 755 /usr/local/bin/kubelet",
        "rm /usr/local/bin/kubelet",
    ),
    state(
        "w1",
        "K8S-OLD-011",
        "mkdir -p /etc/kubernetes/manifests; echo 'apiVersion: v1' >/etc/kubernetes/manifests/own.yaml",
        "rm -r /etc/kubernetes",
    ),
    state(
        "w1",
        "K8S-KUBELET-003",
        "mkdir -p /etc/systemd/system/kubelet.service.d
        printf '[Service]\\nExecStart=\\nExecStart=/usr/bin/kubelet --own\\n' >/etc/systemd/system/kubelet.service.d/99-own.conf",
        "rm -r /etc/systemd/system/kubelet.service.d",
    ),
    state(
        "w2",
        "K8S-PKG-008",
        "systemctl -q mask containerd kubelet",
        "systemctl -q unmask containerd kubelet",
    ),
    // No way to ask for a name.
    state(
        "w2",
        "K8S-DNS-001",
        "cp -a /etc/resolv.conf /etc/resolv.conf.own; rm /etc/resolv.conf; ln -s /run/nowhere/resolv.conf /etc/resolv.conf",
        "rm /etc/resolv.conf; mv /etc/resolv.conf.own /etc/resolv.conf",
    ),
    // A firewall of somebody's own, which lets in SSH alone.
    state(
        "cp2",
        "K8S-FW-003",
        "install nftables
        nft add table inet mine
        nft 'add chain inet mine input { type filter hook input priority 0; policy drop; }'
        nft add rule inet mine input ct state established,related accept
        nft add rule inet mine input iif lo accept
        nft add rule inet mine input tcp dport 22 accept",
        "nft delete table inet mine; DEBIAN_FRONTEND=noninteractive apt-get purge -y -qq --autoremove nftables >/dev/null 2>&1",
    ),
];

/// Mended by `apply`, or only told.
const MENDED: &[State] = &[
    made("lb-0", "K8S-FW-002", "install firewalld; timeout 20 sh -c 'until firewall-cmd -q --state; do sleep 0.2; done'"),
    made(
        "cp1",
        "K8S-PKG-001",
        "echo 'deb https://apt.kubernetes.io/ kubernetes-xenial main' >/etc/apt/sources.list.d/kubernetes.list",
    ),
    // A resolver of its own, which no pod could ask.
    made(
        "cp1",
        "",
        "mkdir -p /etc/systemd/resolved.conf.d
        printf '[Resolve]\\nDNS=192.168.7.1\\n' >/etc/systemd/resolved.conf.d/lab.conf
        mv /etc/apt/sources.list.d/kubernetes.list /var/tmp/; install systemd-resolved; mv /var/tmp/kubernetes.list /etc/apt/sources.list.d/
        grep -q '^nameserver 127' /etc/resolv.conf",
    ),
    // The lab gives it a line in /etc/fstab.
    made("cp2", "K8S-SWAP-001", ":"),
    // Flannel's links of an earlier cluster.
    made(
        "cp2",
        "K8S-CNI-002",
        "ip link add cni0 type bridge; ip addr add 10.244.7.1/24 dev cni0; ip link set cni0 up
        mkdir -p /var/lib/cni/networks/cbr0; echo old >/var/lib/cni/networks/cbr0/10.244.7.2",
    ),
    made("cp3", "K8S-SWAP-001", "install zram-tools || true"),
    made(
        "cp3",
        "K8S-KUBELET-001",
        "echo 'KUBELET_EXTRA_ARGS=--container-runtime=remote' >/etc/default/kubelet",
    ),
    made("w1", "K8S-FW-001", "install ufw; ufw allow 22/tcp >/dev/null; ufw deny 10250/tcp >/dev/null; ufw --force enable >/dev/null"),
    made(
        "w1",
        "K8S-CNI-001",
        "mkdir -p /etc/cni/net.d
        echo '{\"cniVersion\":\"1.0.0\",\"name\":\"other\",\"plugins\":[{\"type\":\"bridge\"}]}' >/etc/cni/net.d/05-other.conflist",
    ),
    made("w1", "K8S-DNS-003", "sed -i '/localhost/d' /etc/hosts"),
    // Docker beside containerd is told, its swap file is not wanted.
    made("w2", "K8S-CRI-005", "install docker.io iptables"),
    made("w2", "K8S-SWAP-001", "install dphys-swapfile || true"),
    made(
        "w3",
        "K8S-CRI-001",
        "install containerd; mkdir -p /etc/containerd
        printf 'version = 3\\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\", \"io.containerd.cri.v1.runtime\"]\\n' \\
          >/etc/containerd/config.toml
        systemctl restart containerd",
    ),
    made("w3", "K8S-KRN-010", "echo net.ipv4.ip_forward = 0 >/etc/sysctl.d/zz-own.conf"),
];

/// Of Flannel's links of an earlier cluster nothing comes back: no node can use them.
const CLEARED: [&str; 3] = ["cni0", "/var/lib/cni", "10.244.7."];

/// What the states are made with.
const TOOLS: &str = r#"
export DEBIAN_FRONTEND=noninteractive
install() { apt-get update -qq; apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1; }
hold() {
  setsid perl -MIO::Socket::INET -e \
    '$s = IO::Socket::INET->new(LocalPort => shift, Listen => 5, ReuseAddr => 1) or die; sleep 100000' "$1" \
    </dev/null >/dev/null 2>&1 &
  echo $! >"/run/hold-$1"
  for _ in $(seq 50); do if ss -Hltn "sport = :$1" | grep -q .; then return; fi; sleep 0.1; done
  return 1
}
release() { kill "$(cat "/run/hold-$1")"; rm "/run/hold-$1"; }
"#;

fn run(host: &str, script: &str) {
    feed(host, &["bash", "-eu"], &format!("{TOOLS}\n{script}\n"));
}

fn each(what: &str, states: &[State], script: impl Fn(&State) -> &'static str) {
    timed(what, || {
        for state in states {
            run(state.host, script(state));
        }
    });
}

/// Host and code of everything that `check` finds; a finding of several hosts has none.
fn found(inventory: &Path, more: &[&str], code: i32) -> BTreeSet<(Option<String>, String)> {
    let arguments = [&["check", "-o", "json"], more].concat();
    let ran = k8sup(&arguments, inventory).expect(code);
    let said: Value = serde_json::from_str(&ran.stdout).unwrap();
    let mut found = BTreeSet::new();
    collect(&said, None, &mut found);
    found
}

fn collect(value: &Value, host: Option<&str>, found: &mut BTreeSet<(Option<String>, String)>) {
    match value {
        Value::Object(object) => {
            let host = object.get("host").map_or(host, Value::as_str);
            if let Some(code) = object.get("code").and_then(Value::as_str) {
                found.insert((host.map(str::to_owned), code.to_owned()));
            }
            object.values().for_each(|inner| collect(inner, host, found));
        }
        Value::Array(list) => list.iter().for_each(|inner| collect(inner, host, found)),
        _ => {}
    }
}

fn all_are_named(states: &[State], found: &BTreeSet<(Option<String>, String)>) {
    let missing: Vec<String> = states
        .iter()
        .filter(|state| !state.code.is_empty())
        .filter(|state| {
            let names = |(host, code): &(Option<String>, String)| {
                code == state.code && host.as_deref().is_none_or(|host| host == state.host)
            };
            !found.iter().any(names)
        })
        .map(|state| format!("{} on {}", state.code, state.host))
        .collect();
    assert!(missing.is_empty(), "check does not name {missing:#?}\nbut {found:#?}");
}

/// What is wrong is named at once and refused, and not one host is touched.
pub(crate) fn refused() {
    rebuild(&HOSTS);
    let inventory = inventory::standard();
    each("states that are refused", REFUSED, |state| state.make);
    let before = snapshots(&HOSTS);
    all_are_named(REFUSED, &found(&inventory, &[], 6));
    // Somebody else sees the same in what was saved, without the hosts.
    let saved = Path::new(env!("CARGO_TARGET_TMPDIR")).join("saved-facts");
    let _ = std::fs::remove_dir_all(&saved);
    let saved = saved.to_str().unwrap();
    k8sup(&["facts", "-o", saved], &inventory).expect(0);
    all_are_named(REFUSED, &found(&inventory, &["--facts", saved], 6));
    let ran = k8sup(&["apply", "--yes"], &inventory).expect(6);
    for state in REFUSED {
        assert!(ran.stderr.contains(state.code), "apply does not name {}", state.code);
    }
    unchanged(&before);
    each("what a person does about it", REFUSED, |state| state.mend);
}

/// What can be mended is mended, and reset gives it back as it was.
pub(crate) fn mended() {
    rebuild(&HOSTS);
    let inventory = inventory::standard();
    each("states that are mended", MENDED, |state| state.make);
    let mut before = snapshots(&HOSTS);
    for (_, lines) in &mut before {
        lines.retain(|line| !CLEARED.iter().any(|cleared| line.contains(cleared)));
    }
    all_are_named(MENDED, &found(&inventory, &[], 0));
    k8sup(&["apply", "--yes"], &inventory).expect(0);
    serves(&NODES);
    k8sup(&["apply", "--yes"], &inventory).expect(0).says("Nothing to do");
    is_healthy(&inventory);
    k8sup(&["reset", "--yes"], &inventory).expect(0);
    compare(&before, After::Reset);
}
