//! Preparing a host: swap, kernel, containerd, images, and whether it reaches the endpoint.

use k8sup::plan::Step;
use k8sup::plan::step::ContainerdFiles;

use crate::root::{Root, bad, good};

#[test]
fn swap_goes_and_restore_brings_it_back() {
    let root = Root::new();
    root.write("/etc/fstab", "/swap none swap sw 0 0\n");
    root.write(
        "/proc/swaps",
        "Filename Type Size Used Priority\n/swap file 1 0 -2\n/dev/zram0 partition 1 0 5\n",
    );
    good(&root.step(&swap_off()));
    assert_eq!(
        root.commands(),
        [
            "systemctl -q mask --now mnt-extra.swap",
            "systemctl -q disable --now dphys-swapfile.service",
            "systemctl daemon-reload",
            "swapoff /swap",
            "swapoff /dev/zram0"
        ]
    );
    assert_eq!(root.read("/etc/systemd/zram-generator.conf"), "# none\n");

    let text = good(&root.step(&Step::RestoreHost { purge: false }));
    assert_eq!(root.read("/etc/fstab"), "/swap none swap sw 0 0\n");
    assert!(
        !root.exists("/etc/systemd/zram-generator.conf") && !root.exists("/var/lib/k8sup"),
        "{text}"
    );
    assert_eq!(
        root.commands(),
        [
            "systemctl -q unmask mnt-extra.swap",
            "systemctl -q enable dphys-swapfile.service",
            "swapon /swap",
            "swapon /dev/zram0",
            "systemctl daemon-reload"
        ]
    );
}

#[test]
fn swap_that_does_not_fit_into_memory_is_told() {
    let root = Root::new();
    root.write("/proc/swaps", "Filename\n/swap file\n");
    root.stub("swapoff", "exit 12");
    let step = Step::SwapOff {
        fstab: None,
        units: Vec::new(),
        makers: Vec::new(),
        zram: None,
        rpi: None,
        active: true,
    };
    assert!(bad(&root.step(&step)).contains("is there too little memory"));
}

fn swap_off() -> Step {
    Step::SwapOff {
        fstab: Some("# k8sup: /swap none swap sw 0 0\n".to_owned()),
        units: vec!["mnt-extra.swap".to_owned()],
        makers: vec!["dphys-swapfile.service".to_owned()],
        zram: Some("# none\n".to_owned()),
        rpi: None,
        active: true,
    }
}

#[test]
fn modules_are_loaded_and_settings_noted_before_they_change() {
    let root = Root::new();
    root.stub("sysctl", "case $1 in -n) echo 0 ;; esac");
    let step = Step::Kernel {
        modules: Some("# managed by k8sup\noverlay\nbr_netfilter\n".to_owned()),
        sysctl: "# managed by k8sup\nnet.ipv4.ip_forward = 1\n".to_owned(),
        path: root.path("/etc/sysctl.d/90-k8sup.conf").to_str().unwrap().to_owned(),
    };
    good(&root.step(&step));
    assert_eq!(
        root.commands(),
        [
            "modprobe overlay",
            "modprobe br_netfilter",
            "sysctl -n net.ipv4.ip_forward",
            "sysctl -q -p /etc/sysctl.d/90-k8sup.conf"
        ]
    );
    assert_eq!(root.read("/var/lib/k8sup/entries/sysctl"), "net.ipv4.ip_forward=0\n");
    root.stub("sysctl", "case $1 in -n) echo 1 ;; esac");
    good(&root.step(&step));
    assert_eq!(
        root.read("/var/lib/k8sup/entries/sysctl"),
        "net.ipv4.ip_forward=0\n",
        "the first value counts"
    );
    root.stub("modprobe", "exit 1");
    assert!(bad(&root.step(&step)).contains("the kernel has no module overlay"));
}

#[test]
fn containerd_gets_the_files_of_its_own_version() {
    for (version, dialect) in [
        ("1.7.24~ds1", "1"),
        ("v1.6.20", "1"),
        ("2.0.5", "2.0"),
        ("v2.1.4", "2.1"),
        ("2.2.0", "2.1"),
        ("2.10.1", "2.1"),
    ] {
        let root = Root::new();
        root.stub(
            "containerd",
            &format!("echo 'containerd github.com/containerd/containerd {version} abc'"),
        );
        good(&root.step(&containerd(&root, &["1", "2.0", "2.1"])));
        assert_eq!(
            root.read("/etc/containerd/config.toml"),
            format!("for {dialect}\n"),
            "{version}"
        );
        assert!(root.commands().contains(&"systemctl restart containerd".to_owned()));
        assert!(root.exists("/opt/cni/bin") && root.exists("/etc/cni/net.d"));
        // Again: nothing differs, so it is not restarted.
        good(&root.step(&containerd(&root, &["1", "2.0", "2.1"])));
        assert!(
            !root.commands().contains(&"systemctl restart containerd".to_owned()),
            "{version}"
        );
    }
    let root = Root::new();
    root.stub(
        "containerd",
        "echo 'containerd github.com/containerd/containerd 2.1.4 abc'",
    );
    assert!(bad(&root.step(&containerd(&root, &["1"]))).contains("run the same command again"));
}

fn containerd(root: &Root, dialects: &[&str]) -> Step {
    let variant = |dialect: &&str| ContainerdFiles {
        dialect: (*dialect).to_owned(),
        files: [
            (
                root.path("/etc/containerd/config.toml").to_str().unwrap().to_owned(),
                format!("for {dialect}\n"),
            ),
            (
                root.path("/etc/crictl.yaml").to_str().unwrap().to_owned(),
                "crictl\n".to_owned(),
            ),
        ]
        .into(),
    };
    Step::Containerd {
        variants: dialects.iter().map(variant).collect(),
        restart: false,
    }
}

#[test]
fn images_are_pulled_with_patience_and_named_when_they_cannot_be() {
    let root = Root::new();
    root.stub("kubeadm", "printf 'registry.k8s.io/etcd:3.6.5-0\\nregistry.k8s.io/kube-proxy:v1.34.4\\nregistry.k8s.io/coredns/coredns:v1.12.1\\n'");
    root.stub("crictl", "case $* in 'inspecti -q loaded:1') exit 0 ;; inspecti*) exit 1 ;; esac; case $2 in *flaky*) [ -e /etc/tried ] || { : >/etc/tried; exit 1; } ;; *missing*) echo 'not found' >&2; exit 1 ;; esac");
    let pull = |images: &[&str]| Step::PullImages {
        images: images.iter().map(|image| (*image).to_owned()).collect(),
        control_plane: Some("v1.34.4".to_owned()),
        repository: None,
    };
    let text = good(&root.step(&pull(&["flaky:1", "loaded:1", "pause:3"])));
    let mut pulled: Vec<&str> = text.lines().collect();
    pulled.sort_unstable();
    assert_eq!(
        pulled,
        [
            "has loaded:1",
            "pulled flaky:1",
            "pulled pause:3",
            "pulled registry.k8s.io/etcd:3.6.5-0"
        ]
    );
    let text = bad(&root.step(&pull(&["missing:1"])));
    assert!(text.contains("cannot pull missing:1: not found"), "{text}");
}

#[test]
fn reach_tells_silence_from_refusal() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let closed = {
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        other.local_addr().unwrap().port()
    };
    let reach = |port, listening| Step::Reach {
        what: "it".to_owned(),
        targets: vec![("127.0.0.1".to_owned(), port)],
        listening,
    };
    let root = Root::new();
    good(&root.step(&reach(port, true)));
    good(&root.step(&reach(closed, false)));
    assert!(bad(&root.step(&reach(closed, true))).contains("is out of reach from here: Connection refused"));
}

/// containerd's step with these files, as `(path, content)`.
fn containerd_step(root: &Root, files: &[(&str, &str)]) -> Step {
    let files = files
        .iter()
        .map(|(path, text)| (root.path(path).to_str().unwrap().to_owned(), (*text).to_owned()))
        .collect();
    Step::Containerd {
        variants: vec![ContainerdFiles {
            dialect: "2.1".to_owned(),
            files,
        }],
        restart: false,
    }
}

#[test]
fn containerd_is_restarted_by_the_run_after_the_one_that_wrote() {
    let root = Root::new();
    root.stub(
        "containerd",
        "echo 'containerd github.com/containerd/containerd v2.1.4 abc'",
    );
    let step = containerd_step(&root, &[("/etc/containerd/config.toml", "version = 3\n")]);
    let restarts = |root: &Root| {
        let commands = root.commands();
        commands
            .iter()
            .filter(|line| *line == "systemctl restart containerd")
            .count()
    };
    // Something fails between the file and the restart.
    root.stub("systemctl", "case $* in *daemon-reload*) exit 1 ;; esac");
    bad(&root.step(&step));
    assert_eq!(root.read("/etc/containerd/config.toml"), "version = 3\n");
    assert_eq!(root.read("/var/lib/k8sup/entries/pending"), "containerd\n");
    assert_eq!(restarts(&root), 0);
    root.stub("systemctl", "");
    good(&root.step(&step));
    assert_eq!(restarts(&root), 1);
    assert!(!root.exists("/var/lib/k8sup/entries/pending"));
    good(&root.step(&step));
    assert_eq!(restarts(&root), 0, "nothing is new");
}
