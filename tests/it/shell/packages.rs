//! Packages: what apt and dpkg are asked, what they left unfinished, and keys of repositories.

use k8sup::plan::Step;
use k8sup::plan::step::PackageStep;

use crate::root::{Root, bad, good};

#[test]
fn packages_are_installed_held_and_noted() {
    let root = Root::new();
    root.write(
        "/etc/apt/sources.list.d/kubernetes.list",
        "deb https://apt.kubernetes.io/ kubernetes-xenial main\n",
    );
    root.program(
        "usr/lib/apt/apt-helper",
        "#!/bin/sh\nfor last; do :; done\nprintf -- '-----BEGIN PGP PUBLIC KEY BLOCK-----\\n' >\"$last\"\n",
    );
    root.write("/etc/installed", "perl\nca-certificates\n");
    root.stub("dpkg-query", "case $* in *Package*) sed 's/$/ installed/' /etc/installed ;; *) grep -qxF \"${4:-x}\" /etc/installed && echo installed || exit 1 ;; esac");
    root.stub(
        "apt-get",
        "case $* in *-s*'install '*) printf 'Inst containerd (1)\\nInst runc (1)\\nInst kubelet (1)\\nConf runc (1)\\n' ;;
        *'install '*) printf 'containerd\\nrunc\\nkubelet\\n' >>/etc/installed ;; esac",
    );
    // Somebody holds apt's lock until we have slept once.
    root.write("/var/lib/apt/lists/lock", "");
    let inode = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(root.path("/var/lib/apt/lists/lock")).unwrap());
    root.write(
        "/proc/locks",
        &format!("1: POSIX  ADVISORY  WRITE 77 08:01:{inode} 0 EOF\n"),
    );
    root.write("/proc/77/comm", "unattended-upgr\n");
    root.stub("sleep", ": >/proc/locks");
    root.stub("systemctl", "case $* in *is-enabled*) exit 1 ;; esac");
    let step = Step::Packages(PackageStep {
        sources: Some("Types: deb\n".to_owned()),
        key_url: "https://pkgs.k8s.io/core:/stable:/v1.34/deb/Release.key".to_owned(),
        legacy: vec![
            root.path("/etc/apt/sources.list.d/kubernetes.list")
                .to_str()
                .unwrap()
                .to_owned(),
        ],
        install: vec!["containerd".to_owned(), "kubelet=1.34.4-*".to_owned()],
        hold: vec!["kubelet".to_owned()],
        ..PackageStep::default()
    });
    let text = good(&root.step(&step));
    assert!(
        text.contains("waiting for process 77 (unattended-upgr) to let go of"),
        "{text}"
    );
    assert!(text.contains("installing containerd kubelet=1.34.4-*"), "{text}");
    assert!(!root.exists("/etc/apt/sources.list.d/kubernetes.list"));
    assert_eq!(
        root.read("/etc/apt/sources.list.d/k8sup-kubernetes.sources"),
        "Types: deb\n"
    );
    let commands = root.commands();
    let install = commands
        .iter()
        .find(|line| line.contains(" install ") && line.contains("Lock::Timeout"))
        .unwrap();
    assert!(
        install.ends_with("containerd kubelet=1.34.4-*") && install.contains("--no-install-recommends"),
        "{install}"
    );
    assert!(
        commands.contains(&"apt-mark -qq hold kubelet".to_owned())
            && commands.contains(&"systemctl -q enable kubelet".to_owned()),
        "{commands:#?}"
    );
    let noted = root.read("/var/lib/k8sup/entries/package");
    for package in ["containerd", "kubelet", "runc"] {
        assert!(
            noted.lines().any(|line| line == package),
            "{package} is not noted: {noted}"
        );
    }
    assert!(!noted.contains("perl"));

    // A repository that lacks the version ends it, with apt's own words.
    root.stub(
        "apt-get",
        "case $* in *'install '*) echo \"E: Version '1.34.4-*' for 'kubelet' was not found\" >&2; exit 100 ;; esac",
    );
    assert!(bad(&root.step(&step)).contains("was not found"));
}

#[test]
fn a_key_that_is_no_key_is_refused() {
    let root = Root::new();
    root.write("/proc/locks", "");
    root.program(
        "usr/lib/apt/apt-helper",
        "#!/bin/sh\nfor last; do :; done\necho '<html>login</html>' >\"$last\"\n",
    );
    root.stub("dpkg-query", "echo installed");
    let step = Step::Packages(PackageStep {
        sources: Some("x\n".to_owned()),
        key_url: "https://portal.lan/Release.key".to_owned(),
        ..PackageStep::default()
    });
    assert!(bad(&root.step(&step)).contains("https://portal.lan/Release.key is not an armoured key"));
    assert!(!root.exists("/etc/apt/sources.list.d/k8sup-kubernetes.sources"));
}

#[test]
fn what_dpkg_has_begun_is_finished_first() {
    let root = Root::new();
    let step = Step::Packages(PackageStep {
        install: vec!["kubelet=1.34.4-*".to_owned()],
        ..PackageStep::default()
    });
    // Half unpacked, until it is unpacked again.
    root.write("/etc/kubelet", "iHR|kubelet=1.34.4-1.1\n");
    root.stub(
        "dpkg-query",
        "case $* in *Abbrev*) echo 'ii |bash=5'; echo 'it |man-db=2'; cat /etc/kubelet ;; *) exit 1 ;; esac",
    );
    root.stub("apt-get", "case $* in *--reinstall*) : >/etc/kubelet ;; esac");
    let text = good(&root.step(&step));
    assert!(text.contains("finishing what it began"), "{text}");
    let commands = root.commands();
    let place = |part: &str| {
        commands
            .iter()
            .position(|line| line.contains(part))
            .unwrap_or_else(|| panic!("no {part}: {commands:#?}"))
    };
    assert!(place("dpkg --configure -a") < place("--reinstall"));
    assert!(place("--reinstall --allow-change-held-packages kubelet=1.34.4-1.1") < place("--no-install-recommends"));
    // What cannot be mended is told, and nothing else is tried.
    root.write("/etc/kubelet", "iF |kubelet=1.34.4-1.1\n");
    root.stub(
        "apt-get",
        "case $* in *install*) echo 'dpkg: error processing package kubelet' >&2; exit 100 ;; esac",
    );
    let text = bad(&root.step(&step));
    assert!(text.contains("cannot be finished:\niF  kubelet=1.34.4-1.1"), "{text}");
}
