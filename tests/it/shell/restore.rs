//! A host is given back: files that were changed since are kept, and a purge takes its own packages only.

use std::path::Path;
use std::process::Command;

use k8sup::plan::Step;

use crate::root::{Root, bad, good};

#[test]
fn restore_keeps_what_was_changed_since() {
    let root = Root::new();
    root.write("/etc/hosts", "before\n");
    good(&root.step(&Step::HostsFile {
        content: "ours\n".to_owned(),
    }));
    good(&root.step(&Step::ResolvConf {
        content: "nameserver 9.9.9.9\n".to_owned(),
    }));
    root.write("/etc/hosts", "ours\nand theirs\n");
    let text = good(&root.step(&Step::RestoreHost { purge: false }));
    assert_eq!(root.read("/etc/hosts"), "ours\nand theirs\n");
    assert!(
        text.contains("kept") && text.contains("it was changed since k8sup wrote it"),
        "{text}"
    );
    assert!(!root.exists("/etc/k8sup-resolv.conf"));
    // Nothing recorded is nothing to do.
    assert_eq!(good(&root.step(&Step::RestoreHost { purge: true })), "");
}

/// dpkg as far as a purge asks it: one package with one configuration file.
fn haproxy_of_a_package(root: &Root) {
    root.write("/var/lib/k8sup/entries/package", "haproxy\n");
    root.write("/etc/installed", "haproxy\n");
    root.stub(
        "dpkg-query",
        "[ -s /etc/installed ] || exit 1
        case $* in
        *Conffiles*) printf ' /etc/haproxy/haproxy.cfg %s\n /etc/haproxy/errors/503.http %s\n' \
          \"$(printf 'default\n' | md5sum | cut -d' ' -f1)\" \"$(printf 'sorry\n' | md5sum | cut -d' ' -f1)\" ;;
        *) echo 'haproxy installed' ;;
        esac",
    );
    root.stub(
        "apt-get",
        "case $* in
        *-s*) echo 'Purg haproxy' ;;
        *purge*) rm -rf /etc/haproxy/haproxy.cfg /etc/haproxy/errors; : >/etc/installed ;;
        esac",
    );
}

fn purge(root: &Root) -> String {
    good(&root.step(&Step::RestoreHost { purge: true }))
}

/// k8sup's record of the load balancer's configuration. Its key is the path, which lies inside the folder here.
fn record_of_haproxy(root: &Root, before: &str) {
    let config = root.path("/etc/haproxy/haproxy.cfg");
    let key = config.to_str().unwrap().replace('/', "%");
    root.write(&format!("/var/lib/k8sup/files/{key}.before"), before);
    root.write(&format!("/var/lib/k8sup/files/{key}.ours"), &sum_of("ours\n"));
}

fn sum_of(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text");
    std::fs::write(&file, text).unwrap();
    let output = Command::new("sha256sum").arg(&file).output().unwrap();
    String::from_utf8_lossy(&output.stdout)
        .split(' ')
        .next()
        .unwrap()
        .to_owned()
}

#[test]
fn purge_gives_the_administrators_own_files_back() {
    let root = Root::new();
    haproxy_of_a_package(&root);
    record_of_haproxy(&root, "mysite\n");
    root.write("/etc/haproxy/haproxy.cfg", "ours\n");
    root.write("/etc/haproxy/errors/503.http", "my own words\n");
    root.write("/etc/haproxy/certs/site.pem", "theirs\n");
    let text = purge(&root);
    assert_eq!(root.read("/etc/haproxy/haproxy.cfg"), "mysite\n", "{text}");
    assert_eq!(root.read("/etc/haproxy/errors/503.http"), "my own words\n", "{text}");
    assert_eq!(root.read("/etc/haproxy/certs/site.pem"), "theirs\n", "{text}");
    assert!(!root.exists("/var/lib/k8sup"));
}

#[test]
fn purge_leaves_nothing_of_the_package_or_of_k8sup() {
    let root = Root::new();
    haproxy_of_a_package(&root);
    record_of_haproxy(&root, "default\n");
    root.write("/etc/haproxy/haproxy.cfg", "ours\n");
    root.write("/etc/haproxy/errors/503.http", "sorry\n");
    let text = purge(&root);
    let left = Command::new("find")
        .arg(root.path("/etc"))
        .arg(root.path("/var/lib"))
        .output()
        .unwrap();
    assert!(
        !root.exists("/etc/haproxy") && !root.exists("/var/lib/k8sup"),
        "{left:?} {text}"
    );
}

#[test]
fn purge_that_was_ended_half_way_goes_on() {
    let root = Root::new();
    haproxy_of_a_package(&root);
    record_of_haproxy(&root, "mysite\n");
    root.write("/etc/haproxy/haproxy.cfg", "ours, and changed since\n");
    root.write("/etc/haproxy/errors/503.http", "my own words\n");
    // The purge is done, and then the power goes.
    let purged = "case $* in
        *-s*) echo 'Purg haproxy' ;;
        *purge*) rm -rf /etc/haproxy; : >/etc/installed; exit 1 ;;
        esac";
    root.stub("apt-get", purged);
    bad(&root.step(&Step::RestoreHost { purge: true }));
    assert!(!root.exists("/etc/haproxy"));
    let text = purge(&root);
    assert_eq!(root.read("/etc/haproxy/haproxy.cfg"), "ours, and changed since\n");
    assert_eq!(root.read("/etc/haproxy/haproxy.cfg.before-k8sup"), "mysite\n");
    assert_eq!(root.read("/etc/haproxy/errors/503.http"), "my own words\n");
    assert!(
        text.contains("kept /etc/haproxy/haproxy.cfg") || text.contains("haproxy.cfg.before-k8sup"),
        "{text}"
    );
}

/// A link as administrators make them, relative to its own folder.
fn link(root: &Root, at: &str, to: &str) {
    let at = root.path(at);
    std::fs::create_dir_all(at.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(to, at).unwrap();
}

#[test]
fn a_file_that_is_a_link_comes_back_as_one() {
    let root = Root::new();
    link(&root, "/etc/hosts", "../srv/hosts");
    root.write("/srv/hosts", "before\n");
    // One that leads nowhere.
    link(&root, "/etc/k8sup-resolv.conf", "nowhere");
    good(&root.step(&Step::HostsFile {
        content: "ours\n".to_owned(),
    }));
    good(&root.step(&Step::ResolvConf {
        content: "nameserver 9.9.9.9\n".to_owned(),
    }));
    assert_eq!(root.read("/etc/hosts"), "ours\n");
    assert_eq!(
        root.read("/srv/hosts"),
        "before\n",
        "what it leads to is somebody else's"
    );
    good(&root.step(&Step::RestoreHost { purge: false }));
    for (at, to) in [("/etc/hosts", "../srv/hosts"), ("/etc/k8sup-resolv.conf", "nowhere")] {
        assert_eq!(std::fs::read_link(root.path(at)).unwrap(), Path::new(to));
    }
}

#[test]
fn what_ran_before_runs_again_under_its_first_name() {
    let root = Root::new();
    root.write("/etc/haproxy/haproxy.cfg", "mysite\n");
    root.write("/etc/worker", "11\n");
    root.stub("pgrep", "cat /etc/worker");
    root.stub("ss", "echo \"pid=$(cat /etc/worker),\"");
    root.stub("systemctl", "case $1 in reload) echo 12 >/etc/worker ;; esac");
    good(&root.step(&Step::HaProxy {
        config: "ours\n".to_owned(),
        port: 6443,
    }));
    for (before, name) in [("lb-0", "balancer"), ("balancer", "edge")] {
        root.write("/proc/sys/kernel/hostname", before);
        good(&root.step(&Step::Hostname {
            name: crate::world::name(name),
        }));
    }
    root.commands();
    good(&root.step(&Step::RestoreHost { purge: false }));
    assert_eq!(root.read("/etc/haproxy/haproxy.cfg"), "mysite\n");
    let commands = root.commands();
    let at = |wanted: &str| commands.iter().position(|command| command == wanted);
    assert!(at("systemctl restart haproxy").is_some(), "{commands:#?}");
    let names: Vec<_> = commands
        .iter()
        .filter(|command| command.starts_with("hostnamectl"))
        .collect();
    assert_eq!(names, ["hostnamectl set-hostname lb-0"], "{commands:#?}");
}

#[test]
fn purge_takes_what_the_kubelet_made_for_itself() {
    let root = Root::new();
    root.write("/var/lib/k8sup/entries/package", "kubelet\n");
    for file in ["kubelet.crt", "kubelet.key"] {
        root.write(&format!("/var/lib/kubelet/pki/{file}"), "made by itself\n");
    }
    root.write("/etc/kubernetes/own/notes.txt", "mine\n");
    purge(&root);
    assert!(!root.exists("/var/lib/kubelet"));
    assert_eq!(root.read("/etc/kubernetes/own/notes.txt"), "mine\n");
}
