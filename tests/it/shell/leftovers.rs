//! Leftovers are cleared before a join, and files of somebody else's etcd survive a reset.

use k8sup::plan::Step;
use k8sup::plan::step::{ClearStep, PackageStep, ResetStep};

use crate::root::{Root, bad, good};

#[test]
fn configuration_of_others_is_set_aside_and_given_back() {
    let root = Root::new();
    let own = "/etc/cni/net.d/87-podman-bridge.conflist";
    root.write(own, "{}\n");
    root.write("/etc/cni/net.d/10-flannel.conflist", "old\n");
    for path in [
        "/var/lib/cni/networks/podman/10.88.0.2",
        "/var/lib/cni/networks/cbr0/10.244.1.2",
        "/run/flannel/subnet.env",
    ] {
        root.write(path, "");
    }
    std::fs::create_dir_all(root.path("/sys/class/net/cni0")).unwrap();
    let step = |keep_cni: bool| {
        Step::ClearLeft(ClearStep {
            aside: vec![root.path(own).display().to_string()],
            stale: vec![root.path("/etc/cni/net.d/10-flannel.conflist").display().to_string()],
            links: vec!["cni0".to_owned(), "flannel.1".to_owned()],
            network: true,
            keep_cni,
        })
    };
    good(&root.step(&step(true)));
    assert!(!root.exists(own) && !root.exists("/etc/cni/net.d/10-flannel.conflist"));
    assert!(root.exists("/var/lib/cni/networks/podman/10.88.0.2"));
    assert!(!root.exists("/var/lib/cni/networks/cbr0") && !root.exists("/run/flannel"));
    let commands = root.commands();
    assert!(commands.contains(&"ip link delete cni0".to_owned()), "{commands:#?}");
    assert!(
        !commands.iter().any(|line| line.contains("delete flannel.1")),
        "{commands:#?}"
    );
    good(&root.step(&step(false)));
    assert!(!root.exists("/var/lib/cni"));
    good(&root.step(&Step::RestoreHost { purge: false }));
    assert_eq!(root.read(own), "{}\n");
}

#[test]
fn only_chains_of_the_cluster_go() {
    let rules = "*filter\\n:INPUT ACCEPT [0:0]\\n:CNI-abc - [0:0]\\n:KUBE-FORWARD - [0:0]\\n:MINE - [0:0]\\n-A INPUT -j KUBE-FORWARD\\n-A INPUT -j CNI-abc\\n-A INPUT -j MINE\\nCOMMIT\\n";
    for (keep_cni, expected) in [
        (
            true,
            "*filter\n-D INPUT -j KUBE-FORWARD\n-F KUBE-FORWARD\n-X KUBE-FORWARD\nCOMMIT\n",
        ),
        (
            false,
            "*filter\n-D INPUT -j KUBE-FORWARD\n-D INPUT -j CNI-abc\n-F CNI-abc\n-F KUBE-FORWARD\n-X CNI-abc\n-X KUBE-FORWARD\nCOMMIT\n",
        ),
    ] {
        let root = Root::new();
        root.stub("iptables-save", &format!("printf '{rules}'"));
        root.stub("iptables-restore", "cat >/run/restored");
        good(&root.step(&Step::ClearLeft(ClearStep {
            network: true,
            keep_cni,
            ..ClearStep::default()
        })));
        assert_eq!(root.read("/run/restored"), expected);
    }
}

#[test]
fn files_of_another_etcd_survive_a_reset_also_one_that_was_ended() {
    let ca = "/etc/kubernetes/pki/etcd/ca.crt";
    let step = |root: &Root| {
        Step::ResetNode(ResetStep {
            keep: vec![root.path(ca).display().to_string()],
            ..ResetStep::default()
        })
    };
    let root = Root::new();
    root.write(ca, "theirs\n");
    root.write("/etc/kubernetes/pki/ca.crt", "ours\n");
    root.write("/var/lib/etcd/member/wal", "theirs\n");
    root.write("/proc/mounts", "");
    good(&root.step(&step(&root)));
    assert_eq!(root.read(ca), "theirs\n");
    assert!(!root.exists("/etc/kubernetes/pki/ca.crt") && root.exists("/var/lib/etcd/member/wal"));
    // The power goes in the middle.
    let root = Root::new();
    root.write(ca, "theirs\n");
    root.write("/var/lib/k8sup/entries/hold", "");
    good(&root.prelude(&format!("keep {}; rm -rf /etc/kubernetes/pki", root.path(ca).display())));
    assert!(!root.exists(ca));
    good(&root.step(&Step::RestoreHost { purge: false }));
    assert_eq!(root.read(ca), "theirs\n");
    assert!(!root.exists("/var/lib/k8sup"));
}

#[test]
fn packages_that_lack_files_are_installed_once_more() {
    let root = Root::new();
    good(&root.step(&Step::Packages(PackageStep {
        reinstall: vec!["kubernetes-cni".to_owned()],
        ..PackageStep::default()
    })));
    let commands = root.commands();
    assert!(
        commands.iter().any(|line| line.starts_with("apt-get")
            && line.ends_with("install --reinstall --allow-change-held-packages kubernetes-cni")),
        "{commands:#?}"
    );
}

#[test]
fn the_kubelet_is_led_elsewhere_and_its_key_stays_where_it_is() {
    use std::os::unix::fs::PermissionsExt;
    let root = Root::new();
    let conf = "/etc/kubernetes/kubelet.conf";
    let text = |server: &str| {
        format!("clusters:\n- cluster:\n    server: {server}\nusers:\n- user:\n    client-key-data: c2VjcmV0\n")
    };
    root.write(conf, &text("https://192.168.1.11:6443"));
    std::fs::set_permissions(root.path(conf), PermissionsExt::from_mode(0o600)).unwrap();
    let said = good(&root.step(&Step::KubeletServer {
        server: "https://192.168.7.140:6443".to_owned(),
    }));
    assert_eq!(root.read(conf), text("https://192.168.7.140:6443"));
    assert_eq!(
        std::fs::metadata(root.path(conf)).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(!said.contains("c2VjcmV0") && !root.exists("/var/lib/k8sup/files"));
    assert_eq!(
        root.commands(),
        ["systemctl restart kubelet", "systemctl -q is-active kubelet"]
    );
    assert!(!root.exists("/etc/kubernetes/kubelet.conf.k8sup"));
}

#[test]
fn files_for_links_and_the_kubelet_come_and_go() {
    let root = Root::new();
    root.write("/etc/default/kubelet", "KUBELET_EXTRA_ARGS=--network-plugin=cni\n");
    let files = |path: &str, text: &str| [(root.path(path).display().to_string(), text.to_owned())].into();
    good(&root.step(&Step::KubeletFlags {
        files: files("/etc/default/kubelet", "KUBELET_EXTRA_ARGS=\n"),
    }));
    assert_eq!(
        root.commands(),
        [
            "systemctl daemon-reload",
            "systemctl -q is-active kubelet",
            "systemctl restart kubelet"
        ]
    );
    let link = "/etc/systemd/network/50-k8sup-flannel.link";
    let manager = "/etc/NetworkManager/conf.d/k8sup.conf";
    good(&root.step(&Step::LinkSettings {
        files: files(link, "[Match]\n"),
    }));
    assert_eq!(root.commands(), ["udevadm control --reload"]);
    good(&root.step(&Step::LinkSettings {
        files: files(manager, "[keyfile]\n"),
    }));
    assert_eq!(root.commands(), ["nmcli general reload conf"]);
    good(&root.step(&Step::RestoreHost { purge: false }));
    assert_eq!(
        root.read("/etc/default/kubelet"),
        "KUBELET_EXTRA_ARGS=--network-plugin=cni\n"
    );
    assert!(!root.exists(link) && !root.exists(manager));
    let commands = root.commands();
    assert!(
        commands.contains(&"udevadm control --reload".to_owned())
            && commands.contains(&"nmcli general reload conf".to_owned())
    );
}

#[test]
fn a_machine_id_is_made() {
    let root = Root::new();
    let text = bad(&root.step(&Step::MachineId));
    assert!(text.contains("made no"), "{text}");
    root.stub("systemd-machine-id-setup", "echo 0123 >/etc/machine-id");
    good(&root.step(&Step::MachineId));
}

#[test]
fn images_that_are_there_are_not_asked_for() {
    let root = Root::new();
    root.stub(
        "crictl",
        "case $* in 'inspecti -q '*pause*) exit 0 ;; inspecti*) exit 1 ;; esac",
    );
    let said = good(&root.step(&Step::PullImages {
        images: vec![
            "registry.k8s.io/pause:3.10.1".to_owned(),
            "registry.k8s.io/kube-proxy:v1.34.4".to_owned(),
        ],
        control_plane: None,
        repository: None,
    }));
    assert!(
        said.contains("has registry.k8s.io/pause:3.10.1") && said.contains("pulled registry.k8s.io/kube-proxy:v1.34.4")
    );
    let pulls: Vec<_> = root
        .commands()
        .into_iter()
        .filter(|line| line.contains("pull"))
        .collect();
    assert_eq!(pulls, ["crictl pull registry.k8s.io/kube-proxy:v1.34.4"]);
}
