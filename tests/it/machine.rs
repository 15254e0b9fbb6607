//! What the machine itself is: kernel, board, disks, clock, distribution, swap. Recorded facts against what k8sup says
//! and plans. Names like `pi-vxlan-module` are those of the reported cases.

use k8sup::check::Finding;
use k8sup::cluster::Cluster;
use k8sup::facts::platform::{Disk, Fdatasync, KernelModules, SysctlLine};
use k8sup::facts::{FileFact, HostFacts, Package, Seen, Service};
use k8sup::plan::{Plan, Step};
use k8sup::render::kubeadm::{NodeTraits, init_config};

use crate::simulate::World;
use crate::world::{self, HOMELAB, SINGLE, everything, name};

/// What comes of a machine that is like this, in the place of cp1.
struct Verdict {
    /// `CODE message` of every finding that refuses or warns.
    found: Vec<String>,
    /// Where nothing refuses.
    plan: Option<Plan>,
}

fn judge(cluster: &Cluster, recording: &'static str, change: impl Fn(&mut HostFacts)) -> Verdict {
    let mut facts = world::facts(cluster, |_| recording);
    change(world::seen(&mut facts, "cp1"));
    let told = |findings: &[Finding]| {
        let line = |finding: &Finding| format!("{} {}", finding.check.code, finding.message);
        findings.iter().map(line).collect()
    };
    match world::try_plan(cluster, &facts, &everything()) {
        Ok(plan) => Verdict {
            found: told(&plan.warnings),
            plan: Some(plan),
        },
        Err(blockers) => Verdict {
            found: told(&blockers),
            plan: None,
        },
    }
}

fn single(recording: &'static str, change: impl Fn(&mut HostFacts)) -> Verdict {
    judge(&world::cluster(SINGLE), recording, change)
}

impl Verdict {
    /// Titles and reasons of the steps on cp1 up to the first of kubeadm's.
    fn steps(&self) -> Vec<String> {
        let plan = self.plan.as_ref().unwrap_or_else(|| panic!("{:#?}", self.found));
        let steps = plan.steps().map(|planned| {
            let mended = planned.fixes.iter().map(|found| format!(" ({})", found.check.code));
            let mended: String = mended.collect();
            format!("{}: {}{mended}", planned.step.title(), planned.why)
        });
        steps.take_while(|line| !line.starts_with("pull")).collect()
    }

    /// The first step whose title begins like this.
    fn step(&self, title: &str) -> Option<&Step> {
        let plan = self.plan.as_ref()?;
        plan.steps()
            .map(|planned| &planned.step)
            .find(|step| step.title().starts_with(title))
    }

    /// The configuration that `kubeadm init` gets.
    fn init(&self) -> &str {
        match self.step("kubeadm init: control plane") {
            Some(Step::Found { config }) => config,
            other => panic!("{other:?} {:#?}", self.found),
        }
    }
}

/// The position of the first line that begins like this.
fn at(lines: &[String], start: &str) -> usize {
    let place = lines.iter().position(|line| line.starts_with(start));
    place.unwrap_or_else(|| panic!("no {start} in {lines:#?}"))
}

/// With what Raspberry Pis have on their disks, out of the way.
fn fast(facts: &mut HostFacts) {
    facts.platform.fdatasync = Seen::Absent;
    facts.platform.board.cards.clear();
}

fn modules(facts: &mut HostFacts) -> &mut KernelModules {
    match &mut facts.platform.modules {
        Seen::Present(modules) => modules,
        other => panic!("{other:?}"),
    }
}

fn file(facts: &mut HostFacts, path: &str, content: &str) {
    let file = FileFact {
        mode: 0o644,
        content: content.to_owned(),
    };
    facts.files.insert(path.to_owned(), file);
}

// --- kernel ------------------------------------------------------------------------

/// Reported as pi-vxlan-module.
#[test]
fn the_kernel_of_ubuntu_on_a_pi_gets_its_package_before_its_modules() {
    let verdict = single("ubuntu-22.04", fast);
    let steps = verdict.steps();
    let (package, kernel) = (
        at(&steps, "install 2 packages: the kernel has no module vxlan"),
        at(&steps, "set kernel"),
    );
    assert!(package < kernel, "{steps:#?}");
    let Some(Step::Packages(step)) = verdict.step("install 2 packages") else {
        panic!("{steps:#?}")
    };
    assert_eq!(
        step.install,
        ["linux-modules-extra-5.15.0-1034-raspi", "linux-modules-extra-raspi"]
    );
    // Once it is there, only what the running kernel lacks.
    let verdict = single("ubuntu-22.04", |facts| {
        fast(facts);
        let installed = Package {
            installed: Some("5.15.0.1034.33".to_owned()),
            held: false,
        };
        facts.packages.insert("linux-modules-extra-raspi".to_owned(), installed);
    });
    at(&verdict.steps(), "install linux-modules-extra-5.15.0-1034-raspi: ");
    for recording in ["ubuntu-24.04", "ubuntu-26.04", "trixie-bare", "raspberry-pi-os-trixie"] {
        let steps = single(recording, fast).steps();
        assert!(
            !steps.iter().any(|line| line.contains("linux-modules-extra")),
            "{recording}: {steps:#?}"
        );
    }
    // Without it in the apt sources nothing else is lost: the backend host-gw needs no module.
    let cluster = world::cluster(&format!("{SINGLE}flannel: {{ backend: host-gw }}\n"));
    let steps = judge(&cluster, "ubuntu-22.04", fast).steps();
    assert!(
        !steps.iter().any(|line| line.contains("linux-modules-extra")),
        "{steps:#?}"
    );
}

#[test]
fn modules_that_nothing_brings_are_refused() {
    let lacks = |name: &'static str| {
        move |facts: &mut HostFacts| {
            fast(facts);
            facts.modules.remove(name);
            facts.cgroup.controllers.insert("memory".to_owned());
            modules(facts).available.remove(name);
        }
    };
    let verdict = single("raspberry-pi-os-trixie", lacks("vxlan"));
    assert_eq!(
        verdict.found,
        ["K8S-KRN-006 the kernel 6.12.47+rpt-rpi-v8 has no module vxlan"]
    );
    assert!(single("raspberry-pi-os-trixie", |_| {}).plan.is_some());
    // A container has the modules of its machine, or none.
    let verdict = single("trixie-bare", lacks("br_netfilter"));
    assert_eq!(
        verdict.found,
        ["K8S-KRN-006 the kernel 6.18.44-fc-v669 has no module br_netfilter"]
    );
    let facts = {
        let cluster = world::cluster(SINGLE);
        let mut facts = world::facts(&cluster, |_| "trixie-bare");
        lacks("br_netfilter")(world::seen(&mut facts, "cp1"));
        world::try_plan(&cluster, &facts, &everything()).unwrap_err()
    };
    assert!(facts[0].hint.contains("on the machine that it runs on"), "{facts:#?}");
}

#[test]
fn a_kernel_whose_modules_are_gone_is_rebooted() {
    let upgraded = |facts: &mut HostFacts| {
        fast(facts);
        facts.cgroup.controllers.insert("memory".to_owned());
        facts.modules.remove("br_netfilter");
        let modules = modules(facts);
        modules.kernels = ["6.12.62+rpt-rpi-v8".to_owned()].into();
        modules.available.clear();
    };
    let steps = single("raspberry-pi-os-trixie", upgraded).steps();
    assert!(
        steps[0].starts_with("reboot: the modules of the running kernel 6.12.47+rpt-rpi-v8 are gone, "),
        "{steps:#?}"
    );
    // Carried out, nothing is left to do.
    let mut world = World::bare(world::cluster(SINGLE), |_| "raspberry-pi-os-trixie");
    upgraded(world.host(&name("cp1")));
    world.converge();
    assert_eq!(world.host(&name("cp1")).kernel, "6.12.62+rpt-rpi-v8");
}

/// Reported as init-configs-module.
#[test]
fn a_kernel_without_a_readable_configuration_is_not_verified() {
    let unreadable = |facts: &mut HostFacts| {
        fast(facts);
        facts.cgroup.controllers.insert("memory".to_owned());
        "6.1.21-v8+".clone_into(&mut facts.kernel);
        facts.platform.kernel_config = Seen::Absent;
        let modules = modules(facts);
        modules.kernels = ["6.1.21-v8+".to_owned()].into();
        modules.available.remove("configs");
    };
    let verdict = single("raspberry-pi-os-bookworm", unreadable);
    assert_eq!(
        verdict.found,
        ["K8S-KRN-008 the kernel's configuration cannot be read, so kubeadm's SystemVerification is left out"]
    );
    assert!(
        verdict
            .init()
            .contains("  ignorePreflightErrors:\n  - SystemVerification\n"),
        "{}",
        verdict.init()
    );
    // kubeadm loads the module itself.
    let verdict = single("raspberry-pi-os-bookworm", |facts| {
        unreadable(facts);
        modules(facts).available.insert("configs".to_owned());
    });
    assert_eq!(verdict.found, [""; 0]);
    assert!(!verdict.init().contains("ignorePreflightErrors"));
}

#[test]
fn a_refusal_that_was_allowed_is_left_out_of_kubeadms_checks_too() {
    let small = |facts: &mut HostFacts| {
        facts.cpus = 1;
        facts.memory_kib = 948_000;
    };
    let mut cluster = world::cluster(SINGLE);
    let verdict = judge(&cluster, "ubuntu-24.04", small);
    assert_eq!(verdict.found.len(), 2, "{:#?}", verdict.found);
    cluster.allow = ["K8S-RES-001", "K8S-RES-002"].map(str::to_owned).into();
    let verdict = judge(&cluster, "ubuntu-24.04", small);
    assert!(
        verdict
            .init()
            .contains("  ignorePreflightErrors:\n  - NumCPU\n  - Mem\n"),
        "{}",
        verdict.init()
    );
    let usual = init_config(&cluster, cluster.host(&name("cp1")).unwrap(), &NodeTraits::default());
    assert!(!usual.contains("ignorePreflightErrors"));
}

#[test]
fn settings_that_others_overrule_at_boot_are_put_last() {
    let line = |path: &str, key: &str, value: &str| SysctlLine {
        path: path.to_owned(),
        key: key.to_owned(),
        value: value.to_owned(),
    };
    let forwards = "net.ipv4.ip_forward";
    let place = |lines: &[SysctlLine]| {
        let lines = lines.to_vec();
        let verdict = single("ubuntu-24.04", move |facts| {
            facts.platform.sysctl_lines.clone_from(&lines);
        });
        let path = match verdict.step("set kernel") {
            Some(Step::Kernel { path, .. }) => path.clone(),
            other => panic!("{other:?}"),
        };
        (path, verdict.found)
    };
    let (usual, last) = ("/etc/sysctl.d/90-k8sup.conf", "/etc/sysctl.d/99-zz-k8sup.conf");
    for (path, value, expected) in [
        ("/etc/sysctl.d/99-sysctl.conf", "0", last),
        ("/etc/sysctl.d/99-sysctl.conf", "1", usual),
        ("/usr/lib/sysctl.d/50-default.conf", "0", usual),
    ] {
        assert_eq!(
            place(&[line(path, forwards, value)]),
            (expected.to_owned(), Vec::new()),
            "{path}"
        );
    }
    // The last word counts, whatever stands before it.
    let both = [
        line("/etc/sysctl.d/95-router.conf", forwards, "1"),
        line("/etc/sysctl.d/91-off.conf", forwards, "0"),
    ];
    assert_eq!(place(&both).0, usual);
    // A limit may be higher, not lower.
    let watches = "fs.inotify.max_user_watches";
    assert_eq!(place(&[line("/etc/sysctl.d/99-ide.conf", watches, "1048576")]).0, usual);
    assert_eq!(place(&[line("/etc/sysctl.d/99-ide.conf", watches, "8192")]).0, last);
    let (_, found) = place(&[line("/etc/sysctl.d/zz-own.conf", forwards, "0")]);
    assert_eq!(
        found,
        ["K8S-KRN-010 at boot /etc/sysctl.d/zz-own.conf has the last word and sets net.ipv4.ip_forward = 0"]
    );
    // ufw sets its own when all files were read, where it runs.
    let ufw = |runs: bool| {
        single("ubuntu-24.04", move |facts| {
            facts.platform.sysctl_lines = vec![line("/etc/ufw/sysctl.conf", forwards, "0")];
            let service = Service {
                enabled: runs,
                active: runs,
            };
            facts.services.insert("ufw".to_owned(), service);
        })
        .found
        .iter()
        .filter(|found| found.starts_with("K8S-KRN-010"))
        .count()
    };
    assert_eq!((ufw(true), ufw(false)), (1, 0));
    // Once it stands there, it stays.
    let mut world = World::bare(world::cluster(SINGLE), |_| "ubuntu-24.04");
    world.host(&name("cp1")).platform.sysctl_lines = vec![line("/etc/sysctl.d/99-sysctl.conf", forwards, "0")];
    world.converge();
    world.host(&name("cp1")).platform.sysctl_lines.clear();
    assert!(world.plan().is_empty(), "{}", world::outline(&world.plan()));
}

/// Reported as cgroup-v1-135.
#[test]
fn control_groups_of_version_one_are_told_once() {
    let plan = |hosts: &[&str]| {
        let cluster = world::cluster(HOMELAB);
        let mut facts = world::facts(&cluster, |_| "trixie-bare");
        for host in ["cp1", "cp2", "cp3", "w1", "w2", "w3"] {
            world::seen(&mut facts, host).cgroup.version = if hosts.contains(&host) { 1 } else { 2 };
        }
        let warnings = world::plan(&cluster, &facts).warnings;
        assert!(warnings.iter().all(|found| found.check.code == "K8S-KRN-004"));
        warnings.into_iter().map(|found| found.message).collect::<Vec<_>>()
    };
    let rest = "control groups are of version 1, on which the kubelet of Kubernetes 1.35 does not start";
    assert_eq!(plan(&[]), [""; 0]);
    assert_eq!(plan(&["w1"]), [rest]);
    assert_eq!(plan(&["w1", "cp2"]), [format!("on cp2, w1: {rest}")]);
    assert_eq!(
        plan(&["cp1", "cp2", "cp3", "w1", "w2", "w3"]),
        [format!("on all 6 nodes: {rest}")]
    );
    let world = World::built(HOMELAB);
    assert!(world.plan().warnings.is_empty(), "a cluster that stands must not nag");
}

// --- Raspberry Pi ------------------------------------------------------------------

const NEW: &str = "/boot/firmware/cmdline.txt";
const OLD: &str = "/boot/cmdline.txt";
const MOVED: &str = "DO NOT EDIT THIS FILE\n\nThe file you are looking for has moved to /boot/firmware/cmdline.txt\n";

/// Reported as pi-cmdline-moved.
#[test]
fn the_command_line_of_a_pi_is_written_where_the_firmware_reads_it() {
    let verdict = single("raspberry-pi-os-bookworm", fast);
    let steps = verdict.steps();
    assert_eq!(
        steps[..2],
        [
            "switch the memory control group on: the memory control group is off (K8S-PI-001)",
            "reboot: the memory control group is on from the next boot on",
        ]
    );
    let Some(Step::BootLine { path, content }) = verdict.step("switch the memory") else {
        panic!("{steps:#?}")
    };
    assert_eq!(path, NEW, "{OLD} is the stub that says where it has moved to");
    assert!(content.ends_with(" rootwait cgroup_enable=memory cgroup_memory=1\n") && content.lines().count() == 1);
    assert_eq!(
        verdict.plan.as_ref().unwrap().reboots().collect::<Vec<_>>(),
        [&name("cp1")]
    );

    for (recording, change, code, message) in [
        (
            "raspberry-pi-os-bookworm",
            &(|facts: &mut HostFacts| drop(facts.files.remove(NEW))) as &dyn Fn(&mut HostFacts),
            "K8S-PI-002",
            "the memory control group is off, and /boot/cmdline.txt only says that it has moved, to where there is none",
        ),
        (
            "raspberry-pi-os-bookworm",
            &|facts| file(facts, NEW, "console=tty1\nroot=/dev/sda2 rootwait\n"),
            "K8S-PI-002",
            "the memory control group is off, and /boot/firmware/cmdline.txt has no line, or more than one: the firmware reads only the first",
        ),
        // Told, and still without: this kernel has none.
        (
            "raspberry-pi-os-bookworm",
            &|facts| {
                let line = "rootwait cgroup_enable=memory cgroup_memory=1";
                file(facts, NEW, line);
                line.clone_into(&mut facts.platform.cmdline);
            },
            "K8S-KRN-001",
            "the memory control group is off",
        ),
        // No Raspberry Pi: nobody knows what reads its command line.
        (
            "ubuntu-24.04",
            &|facts| {
                facts.cgroup.controllers.remove("memory");
            },
            "K8S-KRN-001",
            "the memory control group is off",
        ),
    ] {
        let verdict = single(recording, |facts| {
            fast(facts);
            change(facts);
        });
        assert_eq!(verdict.found, [format!("{code} {message}")]);
        assert!(verdict.plan.is_none());
    }
    // Before Bookworm the file is the old one.
    let verdict = single("raspberry-pi-os-bookworm", |facts| {
        let line = facts.files.remove(NEW).unwrap().content;
        file(facts, OLD, &line);
    });
    assert!(matches!(verdict.step("switch the memory"), Some(Step::BootLine { path, .. }) if path == OLD));
    // A load balancer counts no pods.
    let mut facts = world::facts(&world::cluster(HOMELAB), |_| "trixie-bare");
    world::seen(&mut facts, "lb-0").cgroup.controllers.clear();
    assert!(world::try_plan(&world::cluster(HOMELAB), &facts, &everything()).is_ok());
    assert!(MOVED.contains(NEW));
}

#[test]
fn a_line_without_its_boot_needs_nothing_but_the_boot() {
    let written = |facts: &mut HostFacts| {
        fast(facts);
        file(facts, NEW, "rootwait cgroup_enable=memory cgroup_memory=1\n");
    };
    let steps = single("raspberry-pi-os-trixie", written).steps();
    assert!(
        steps[0].starts_with("reboot: ") && steps[0].ends_with("(K8S-PI-003)"),
        "{steps:#?}"
    );
    assert!(!steps.iter().any(|line| line.starts_with("switch the memory")));
}

#[test]
fn a_pi_is_set_up_with_one_reboot_and_reset_puts_its_line_back() {
    for recording in ["raspberry-pi-os-bookworm", "raspberry-pi-os-trixie", "ubuntu-22.04"] {
        let mut world = World::bare(world::cluster(SINGLE), |_| recording);
        let before = world.host(&name("cp1")).files[NEW].clone();
        world.converge();
        let reboots = world.done.iter().filter(|(_, title)| title == "reboot").count();
        assert_eq!(reboots, 1, "{recording}");
        assert!(
            world.host(&name("cp1")).files[NEW]
                .content
                .contains("cgroup_enable=memory")
        );
        let reset = world::reset(&world, &["cp1"]);
        world.carry_out(&reset);
        assert_eq!(world.host(&name("cp1")).files[NEW], before, "{recording}");
    }
}

#[test]
fn what_the_firmware_says_about_power_is_told() {
    let told = |bits: u32, alarm: bool| {
        let found = single("raspberry-pi-os-trixie", |facts| {
            fast(facts);
            facts.platform.board.throttled = bits;
            facts.platform.board.undervoltage = alarm;
        })
        .found;
        found.join(", ")
    };
    assert_eq!(told(0, false), "");
    assert_eq!(
        told(0x5_0005, false),
        "K8S-PI-004 the voltage is too low, it is throttled"
    );
    assert_eq!(
        told(0x5_0000, false),
        "K8S-PI-004 the voltage was too low since it booted, it was throttled since it booted"
    );
    assert_eq!(told(0, true), "K8S-PI-004 the voltage is too low");
    assert_eq!(told(0x8, false), "K8S-PI-004 it is too hot");
    // Of a member only what is so now: the firmware remembers until the next boot.
    let mut world = World::bare(world::cluster(SINGLE), |_| "raspberry-pi-os-trixie");
    world.converge();
    world.host(&name("cp1")).platform.board.throttled = 0x5_0000;
    assert!(world.plan().warnings.is_empty());
    world.host(&name("cp1")).platform.board.throttled = 0x5_0001;
    assert_eq!(world.plan().warnings[0].message, "the voltage is too low");
}

// --- disks -------------------------------------------------------------------------

/// Reported as cp-join-random-50 and init-slow-pi: etcd on a slow disk.
#[test]
fn etcd_is_told_of_a_slow_disk_before_it_gets_one() {
    let verdict = single("raspberry-pi-os-trixie", |_| {});
    assert_eq!(
        verdict.found,
        [
            "K8S-RES-006 the SD card takes 52 ms (99 of 100 writes) to have something for good; etcd wants 10 ms or less, says its documentation",
            "K8S-RES-007 etcd's data is to lie on an SD card (/dev/mmcblk0p2)",
        ]
    );
    let emmc = single("raspberry-pi-os-trixie", |facts| {
        facts
            .platform
            .board
            .cards
            .insert("mmcblk0".to_owned(), "MMC".to_owned());
        facts.platform.fdatasync = Seen::Present(Fdatasync {
            folder: "/var/lib".to_owned(),
            samples: 100,
            p99_ms: 9.9,
        });
    });
    assert_eq!(emmc.found, [""; 0]);
    // A disk of its own for etcd is what counts.
    let own = single("raspberry-pi-os-trixie", |facts| {
        let ssd = Disk {
            mount: "/var/lib/etcd".to_owned(),
            device: "/dev/sda1".to_owned(),
            kind: "ext4".to_owned(),
            size_kib: 100_000_000,
            free_kib: 90_000_000,
            inodes: 1_000_000,
            free_inodes: 999_000,
        };
        disks(facts).insert("/var/lib/etcd".to_owned(), ssd);
        facts.platform.fdatasync = Seen::Absent;
    });
    assert_eq!(own.found, [""; 0]);
    // Workers have no etcd, members serve already.
    let cluster = world::cluster(HOMELAB);
    let facts = world::facts(&cluster, |host| match host.name.as_str() {
        "w1" => "raspberry-pi-os-trixie",
        _ => "ubuntu-24.04",
    });
    assert!(world::plan(&cluster, &facts).warnings.is_empty());
    let mut world = World::bare(world::cluster(SINGLE), |_| "raspberry-pi-os-trixie");
    world.converge();
    assert!(world.plan().warnings.is_empty(), "{}", world::outline(&world.plan()));
}

fn disks(facts: &mut HostFacts) -> &mut std::collections::BTreeMap<String, Disk> {
    match &mut facts.platform.disks {
        Seen::Present(disks) => disks,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_file_system_must_have_room_for_what_comes_to_it() {
    let disk = |mount: &str, free_mb: u64| Disk {
        mount: mount.to_owned(),
        device: "/dev/sdb1".to_owned(),
        kind: "ext4".to_owned(),
        size_kib: free_mb * 1024 * 4,
        free_kib: free_mb * 1024,
        inodes: 1000,
        free_inodes: 900,
    };
    let with = |folders: &[(&str, Disk)]| {
        let folders = folders.to_vec();
        single("ubuntu-24.04", move |facts| {
            for (folder, disk) in &folders {
                disks(facts).insert((*folder).to_owned(), disk.clone());
            }
        })
        .found
    };
    assert_eq!(
        with(&[("/var/lib", disk("/", 4000))]),
        ["K8S-RES-004 4000 MB are free in /var/lib, a controller needs 4096 MB"]
    );
    // With images and etcd elsewhere little is needed there.
    let (images, etcd) = (
        ("/var/lib/containerd", disk("/var/lib/containerd", 9000)),
        ("/var/lib/etcd", disk("/var/lib/etcd", 2000)),
    );
    assert_eq!(
        with(&[("/var/lib", disk("/", 600)), images.clone(), etcd.clone()]),
        [""; 0]
    );
    assert_eq!(
        with(&[images, ("/var/lib/etcd", disk("/var/lib/etcd", 500))]),
        ["K8S-RES-004 500 MB are free in /var/lib/etcd, a controller needs 1024 MB"]
    );
    let full = Disk {
        free_inodes: 40,
        ..disk("/", 90_000)
    };
    assert_eq!(
        with(&[("/var/lib", full)]),
        ["K8S-RES-005 40 of 1000 inodes are free in /var/lib"]
    );
    // Room for the images is not yet room for the kubelet.
    let crowded = Disk {
        size_kib: 100_000 * 1024,
        ..disk("/", 12_900)
    };
    assert_eq!(
        with(&[("/var/lib", crowded)]),
        ["K8S-RES-008 only 12 % of /var/lib are free"]
    );
    // btrfs has no number of them.
    let endless = Disk {
        inodes: 0,
        free_inodes: 0,
        ..disk("/", 90_000)
    };
    assert_eq!(with(&[("/var/lib", endless)]), [""; 0]);
}

// --- time --------------------------------------------------------------------------

/// Reported as pi-clock.
#[test]
fn a_clock_that_is_not_set_yet_is_waited_for_before_certificates_are_made() {
    let unset = |facts: &mut HostFacts| {
        fast(facts);
        facts.platform.clock_unsynchronised = Seen::Present(true);
    };
    for (recording, service) in [
        ("raspberry-pi-os-trixie", "systemd-timesyncd"),
        ("ubuntu-26.04", "chrony"),
    ] {
        let verdict = single(recording, unset);
        let all: Vec<String> = verdict
            .plan
            .as_ref()
            .unwrap()
            .steps()
            .map(|planned| format!("{}: {}", planned.step.title(), planned.why))
            .collect();
        let wait = at(
            &all,
            &format!("wait for the clock to be set: {service} runs, but has not set the clock yet"),
        );
        assert!(wait < at(&all, "kubeadm init: control plane"), "{all:#?}");
        let fixes = verdict.plan.as_ref().unwrap().fixes();
        assert_eq!(fixes.filter(|found| found.check.code == "K8S-TIME-003").count(), 1);
    }
    assert!(
        single("raspberry-pi-os-trixie", |_| {})
            .step("wait for the clock")
            .is_none()
    );
    // In containers it is the machine's clock, and its time service.
    assert!(single("trixie-bare", unset).step("wait for the clock").is_none());
    // Once in the cluster nobody waits.
    let mut world = World::bare(world::cluster(SINGLE), |_| "raspberry-pi-os-trixie");
    unset(world.host(&name("cp1")));
    world.converge();
}

#[test]
fn a_host_without_a_time_service_is_offered_one() {
    let without = |facts: &mut HostFacts| {
        fast(facts);
        facts
            .services
            .retain(|service, _| !["systemd-timesyncd", "chrony"].contains(&service.as_str()));
    };
    let found = |recording: &'static str, change: &dyn Fn(&mut HostFacts)| {
        let cluster = world::cluster(SINGLE);
        let mut facts = world::facts(&cluster, |_| recording);
        change(world::seen(&mut facts, "cp1"));
        let warnings = world::plan(&cluster, &facts).warnings;
        let time = warnings.into_iter().filter(|found| found.check.code == "K8S-TIME-002");
        time.map(|found| found.hint).collect::<Vec<_>>()
    };
    assert_eq!(
        found("raspberry-pi-os-trixie", &without),
        ["`apt install systemd-timesyncd` on the host (or chrony)"]
    );
    let stopped = |facts: &mut HostFacts| facts.services.get_mut("chrony").unwrap().active = false;
    assert_eq!(
        found("ubuntu-26.04", &stopped),
        ["on the host: `systemctl enable --now chrony`"]
    );
    assert_eq!(found("ubuntu-26.04", &|_| {}), [""; 0]);
    assert_eq!(
        found("trixie-bare", &without),
        [""; 0],
        "a container's clock is its machine's"
    );
}

// --- distribution ------------------------------------------------------------------

/// Reported as haproxy-selinux, flannel-networkmanager and flannel-nft-rhel10: not on a system of that kind.
#[test]
fn systems_that_nobody_knows_are_refused_by_name() {
    let other = |facts: &mut HostFacts| {
        let os = &mut facts.os;
        "rocky".clone_into(&mut os.id);
        os.id_like = ["rhel", "centos", "fedora"].map(str::to_owned).to_vec();
        "9.5".clone_into(&mut os.version_id);
        "Rocky Linux 9.5 (Blue Onyx)".clone_into(&mut os.pretty);
    };
    let cluster = world::cluster(SINGLE);
    let mut facts = world::facts(&cluster, |_| "ubuntu-24.04");
    other(world::seen(&mut facts, "cp1"));
    let [finding] = &world::try_plan(&cluster, &facts, &everything()).unwrap_err()[..] else {
        panic!()
    };
    assert_eq!(finding.message, "Rocky Linux 9.5 (Blue Onyx) is not supported");
    assert_eq!(finding.evidence.as_deref(), Some("ID=rocky VERSION_ID=9.5"));
    for word in ["use Debian 12 or 13", "SELinux"] {
        assert!(finding.hint.contains(word), "{}", finding.hint);
    }
    // A member that is there already is not put out for it.
    let mut world = World::built(HOMELAB);
    other(world.host(&name("w1")));
    assert!(world.plan().is_empty());
    // A load balancer is only refused before anything is on it.
    let mut world = World::bare(world::cluster(HOMELAB), |_| "ubuntu-24.04");
    other(world.host(&name("lb-0")));
    assert_eq!(
        world::blockers(&world.cluster, &world.facts(), &everything()),
        ["lb-0: Rocky Linux 9.5 (Blue Onyx) is not supported"]
    );
    let forky = single("forky-packages", |facts| facts.cgroup.version = 2);
    assert_eq!(
        forky.found,
        ["K8S-OS-002 Debian GNU/Linux forky/sid has not been tried"]
    );
}

#[test]
fn first_class_systems_have_nothing_in_the_way() {
    for recording in [
        "trixie-bare",
        "bookworm-bare",
        "ubuntu-22.04",
        "ubuntu-24.04",
        "ubuntu-26.04",
        "raspberry-pi-os-bookworm",
        "raspberry-pi-os-trixie",
    ] {
        let verdict = single(recording, |facts| {
            fast(facts);
            facts.cgroup.version = 2;
        });
        assert_eq!(verdict.found, [""; 0], "{recording}");
        assert!(verdict.plan.is_some());
    }
}

#[test]
fn a_system_that_does_not_last_is_refused() {
    let found = |change: fn(&mut HostFacts)| single("ubuntu-24.04", change).found;
    assert_eq!(
        found(|facts| facts.platform.without_systemd = true),
        ["K8S-OS-003 systemd does not run as its first process"]
    );
    for (cmdline, expected) in [
        ("root=/dev/mmcblk0p2 boot=overlay rootwait", 1),
        ("root=/dev/sda1 overlayroot=tmpfs", 1),
        ("root=/dev/sda1 overlayroot=disabled", 0),
        ("root=/dev/sda1 boot=overlayfoo", 0),
    ] {
        let found = single("ubuntu-24.04", |facts| cmdline.clone_into(&mut facts.platform.cmdline)).found;
        assert_eq!(found.len(), expected, "{cmdline}: {found:?}");
        assert!(found.iter().all(|found| found.starts_with("K8S-OS-004 ")));
    }
    assert_eq!(
        found(|facts| facts.platform.reboot_required = true),
        ["K8S-OS-005 an upgrade waits for a reboot"]
    );
}

// --- swap --------------------------------------------------------------------------

/// Reported as swap-rpi-zram and swap-dphys.
#[test]
fn swap_of_raspberry_pi_os_goes_by_its_own_setting() {
    let verdict = single("raspberry-pi-os-trixie", fast);
    let Some(Step::SwapOff { units, makers, rpi, .. }) = verdict.step("turn swap off") else {
        panic!()
    };
    assert_eq!(
        (units.as_slice(), makers.len()),
        (&["dev-zram0.swap".to_owned()][..], 0)
    );
    assert_eq!(rpi.as_deref(), Some("# managed by k8sup\n[Main]\nMechanism=none\n"));
    let fixes = verdict.plan.as_ref().unwrap().fixes();
    assert_eq!(fixes.filter(|found| found.check.code == "K8S-SWAP-002").count(), 1);
    let mut world = World::bare(world::cluster(SINGLE), |_| "raspberry-pi-os-trixie");
    world.converge();
    // Its generator says nothing else any more, whatever lies in /run until the next boot.
    assert!(world.plan().is_empty(), "{}", world::outline(&world.plan()));

    let Some(Step::SwapOff { makers, rpi, .. }) = single("raspberry-pi-os-bookworm", fast).plan.and_then(|plan| {
        plan.steps()
            .map(|planned| planned.step.clone())
            .find(|step| matches!(step, Step::SwapOff { .. }))
    }) else {
        panic!()
    };
    assert_eq!(
        (makers.as_slice(), rpi),
        (&["dphys-swapfile.service".to_owned()][..], None)
    );
}

#[test]
fn swap_that_cannot_go_or_may_come_back_is_told() {
    let on = |facts: &mut HostFacts| {
        fast(facts);
        facts.swap = k8sup::facts::SwapFacts {
            active: vec!["/dev/sda3".to_owned()],
            ..k8sup::facts::SwapFacts::default()
        };
        facts.files.remove("/etc/fstab");
    };
    assert_eq!(
        single("ubuntu-24.04", on).found,
        ["K8S-SWAP-003 swap is on (/dev/sda3), and what starts it at boot was not found"]
    );
    let full = |facts: &mut HostFacts| {
        facts.platform.swap_used_kib = 3_000_000;
        facts.platform.available_kib = 1_000_000;
    };
    let verdict = single("ubuntu-24.04", full);
    assert_eq!(
        verdict.found,
        ["K8S-SWAP-004 2929 MB are in swap and 976 MB of memory are free, so swap cannot be turned off"]
    );
    assert!(verdict.plan.is_none());
}

/// Reported as pi-32bit: the kernel has 64 bits, what runs on it has 32.
#[test]
fn a_userland_of_32_bits_is_refused_whatever_the_kernel_is() {
    let verdict = single("raspberry-pi-os-bookworm", |facts| {
        fast(facts);
        facts.architecture = Seen::Present("armhf".to_owned());
    });
    assert_eq!(
        verdict.found,
        ["K8S-ARCH-001 its userland is armhf (kernel: aarch64), for which Kubernetes has no images"]
    );
}

/// Reported as init-slow-pi: told before anything is changed, and taken upon oneself where one must.
#[test]
fn a_small_pi_is_told_before_anything_is_changed() {
    let small = |facts: &mut HostFacts| {
        fast(facts);
        facts.memory_kib = 948_304;
    };
    let verdict = single("raspberry-pi-os-bookworm", small);
    assert_eq!(
        verdict.found,
        ["K8S-RES-002 it has 926 MB of memory, a controller needs 1700 MB"]
    );
    let mut cluster = world::cluster(SINGLE);
    cluster.allow.insert("K8S-RES-002".to_owned());
    let init = judge(&cluster, "raspberry-pi-os-bookworm", small).init().to_owned();
    assert!(init.contains("  ignorePreflightErrors:\n  - Mem\n"), "{init}");
    // Reported as init-slow-pi-k8s-on-raspbian: kubeadm gives the API server's startup probe one failure for each 10 s of it.
    assert!(init.contains("  controlPlaneComponentHealthCheck: 10m0s\n"), "{init}");
}
