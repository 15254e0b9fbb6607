//! Clearing half-made nodes and resetting whole ones: what must go first, and what is nobody's business here.

use k8sup::plan::Step;
use k8sup::plan::step::ResetStep;

use crate::root::{Root, bad, good};

#[test]
fn clearing_takes_etcds_data_from_where_it_is_and_before_the_rest() {
    let clear = Step::ClearHalfMade { controller: true };
    let root = Root::new();
    root.write(
        "/etc/kubernetes/manifests/etcd.yaml",
        "    - --data-dir=/var/lib/other/etcd\n",
    );
    root.write("/var/lib/other/etcd/member/wal", "x");
    root.write("/var/lib/etcd/somebody", "x");
    root.write(
        "/etc/kubernetes/manifests/etcd.yaml",
        &root.rooted("    - --data-dir=/var/lib/other/etcd\n"),
    );
    root.stub(
        "kubeadm",
        "case $1 in reset) [ ! -e /var/lib/other/etcd/member ] || exit 1; rm -rf /etc/kubernetes/manifests ;; esac",
    );
    good(&root.step(&clear));
    assert!(
        root.exists("/var/lib/other/etcd") && !root.exists("/var/lib/other/etcd/member"),
        "the folder may be a mount point"
    );
    assert!(root.exists("/var/lib/etcd/somebody"), "that is somebody else's");
    assert!(!root.exists("/run/k8sup/reset.yaml"));

    // What kubeadm leaves is told.
    let root = Root::new();
    root.write("/etc/kubernetes/kubelet.conf", "x");
    assert!(bad(&root.step(&clear)).contains("kubeadm reset left"));

    // A worker's /var/lib/etcd is nobody's business.
    let root = Root::new();
    root.write("/var/lib/etcd/member", "x");
    good(&root.step(&Step::ClearHalfMade { controller: false }));
    assert!(root.exists("/var/lib/etcd/member"));
}

#[test]
fn only_rules_of_kubernetes_are_taken_away() {
    let root = Root::new();
    root.write("/proc/mounts", "");
    root.stub(
        "iptables-save",
        "cat <<'END'\n*filter\n:INPUT ACCEPT [0:0]\n:KUBE-FIREWALL - [0:0]\n:DOCKER - [0:0]\n:FLANNEL-FWD - [0:0]\n\
         -A INPUT -j KUBE-FIREWALL\n-A INPUT -p tcp --dport 22 -j ACCEPT\n-A FORWARD -m comment --comment \"flanneld forward\" -j FLANNEL-FWD\n\
         -A KUBE-FIREWALL -m mark --mark 0x8000 -j DROP\n-A DOCKER -j RETURN\nCOMMIT\n*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -s 172.17.0.0/16 -j MASQUERADE\nCOMMIT\nEND",
    );
    root.stub(
        "iptables-restore",
        "cat >/etc/restored; printf '%s\\n' \"$*\" >>/etc/restored",
    );
    let reset = Step::ResetNode(ResetStep {
        homes: vec!["/root".to_owned()],
        ..ResetStep::default()
    });
    good(&root.step(&reset));
    assert_eq!(
        root.read("/etc/restored"),
        "*filter\n-D INPUT -j KUBE-FIREWALL\n-D FORWARD -m comment --comment \"flanneld forward\" -j FLANNEL-FWD\n\
         -F KUBE-FIREWALL\n-F FLANNEL-FWD\n-X KUBE-FIREWALL\n-X FLANNEL-FWD\nCOMMIT\n--noflush\n"
    );
}

#[test]
fn a_reset_that_ends_early_still_knows_whose_etcd_it_was() {
    let root = Root::new();
    root.write("/proc/mounts", "");
    root.write("/etc/kubernetes/manifests/etcd.yaml", "x");
    root.write("/var/lib/etcd/member/wal", "x");
    root.stub("systemctl", "case $* in *is-active*containerd*) exit 0 ;; esac");
    root.stub("kubeadm", "exit 1");
    let reset = Step::ResetNode(ResetStep {
        etcd_data_dir: Some(root.path("/var/lib/etcd").to_str().unwrap().to_owned()),
        keep_member: true,
        ..ResetStep::default()
    });
    assert!(bad(&root.step(&reset)).contains("kubeadm reset failed"));
    assert!(!root.exists("/var/lib/etcd") && root.exists("/etc/kubernetes/manifests/etcd.yaml"));
}

#[test]
fn reset_stops_before_it_deletes_through_a_mount() {
    let root = Root::new();
    // umount is a stub, so it stays mounted.
    root.write(
        "/proc/mounts",
        &root.rooted("server:/data /var/lib/kubelet/pods/1/volumes/data nfs rw 0 0\n"),
    );
    root.write("/var/lib/kubelet/pods/1/volumes/data/precious", "x");
    let reset = Step::ResetNode(ResetStep {
        homes: vec!["/root".to_owned()],
        ..ResetStep::default()
    });
    let text = bad(&root.step(&reset));
    assert!(text.contains("still mounted"), "{text}");
    assert!(root.exists("/var/lib/kubelet/pods/1/volumes/data/precious"));
}

#[test]
fn reset_leaves_what_is_somebodys_own() {
    let root = Root::new();
    root.write("/proc/mounts", "");
    root.write("/etc/kubernetes/pki/ca.crt", "CA");
    root.write("/etc/kubernetes/admin.conf", "x");
    root.write("/etc/kubernetes/admin-audit.conf", "mine");
    root.write("/etc/kubernetes/audit-policy.yaml", "mine");
    let ours = "    certificate-authority-data: Q0E=\n    server: https://192.168.7.140:6443\n";
    root.write("/root/.kube/config", ours);
    root.write(
        "/home/pi/.kube/config",
        &format!("{ours}  - cluster:\n    server: https://work:6443\n"),
    );
    let homes = ["/root", "/home/pi"].map(|home| root.path(home).to_str().unwrap().to_owned());
    let text = good(&root.step(&Step::ResetNode(ResetStep {
        homes: homes.to_vec(),
        ..ResetStep::default()
    })));
    assert!(root.exists("/etc/kubernetes/admin-audit.conf") && root.exists("/etc/kubernetes/audit-policy.yaml"));
    assert!(!root.exists("/etc/kubernetes/admin.conf") && !root.exists("/root/.kube/config"));
    assert!(root.exists("/home/pi/.kube/config"), "{text}");
    assert!(text.contains("it has other clusters than this one"), "{text}");
}
