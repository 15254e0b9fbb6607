//! The machine: identity, size, system, control groups, swap, kernel settings, clocks.

use k8sup::facts::platform::Disk;
use k8sup::facts::{FileFact, HostFacts, Seen};

use super::{Before, Brings, Case, Does, Fixed, Given, Refused, Silent, Told, Warned, changed, homelab, with};
use crate::simulate::World;
use crate::world::name;

/// Two machines that have the same of something.
fn alike(change: impl Fn(&mut k8sup::facts::HostFacts)) -> World {
    let mut world = homelab();
    for host in ["cp2", "w1"] {
        change(world.host(&name(host)));
    }
    world
}

/// The file system of /var/lib.
fn disk(facts: &mut HostFacts) -> &mut Disk {
    let Seen::Present(disks) = &mut facts.platform.disks else {
        panic!("no disks")
    };
    disks.get_mut("/var/lib").unwrap()
}

/// One of the hosts is a Raspberry Pi with Raspberry Pi OS 13.
fn pi(host: &'static str, change: impl FnOnce(&mut HostFacts)) -> World {
    let mut world = with(host, "raspberry-pi-os-trixie");
    change(world.host(&name(host)));
    world
}

fn file(facts: &mut HostFacts, path: &str, content: &str) {
    let content = content.to_owned();
    facts.files.insert(path.to_owned(), FileFact { mode: 0o644, content });
}

const CMDLINE: &str = "/boot/firmware/cmdline.txt";

pub(super) const CASES: &[Case] = &[
    Case {
        name: "dup-hostname",
        given: Given::Hosts(|| alike(|facts| "raspberrypi".clone_into(&mut facts.hostname))),
        // Nodes and members are named by the inventory.
        wants: &[
            Warned("K8S-ID-001", "-"),
            Warned("K8S-ID-002", "w1"),
            Brings("cp2", "name: cp2"),
            Brings("w1", "name: w1"),
        ],
    },
    Case {
        name: "dup-hostname-cp",
        given: Given::Hosts(|| {
            let mut world = homelab();
            "CP1.lan".clone_into(&mut world.host(&name("cp2")).hostname);
            world
        }),
        wants: &[Warned("K8S-ID-001", "-"), Brings("cp2", "name: cp2")],
    },
    Case {
        name: "hostname-is-set-when-asked-for",
        given: Given::Hosts(|| {
            let mut world = super::bare(&crate::world::HOMELAB.replace("v1.34.4 }", "v1.34.4, setHostnames: true }"));
            "raspberrypi".clone_into(&mut world.host(&name("w1")).hostname);
            world
        }),
        wants: &[Fixed("K8S-ID-012", "w1"), Silent("K8S-ID-002")],
    },
    Case {
        name: "underscore-name",
        given: Given::Inventory("cluster: { name: a, kubernetes: v1.34.4 }\ncontrollers: { node_1: 10.0.0.1 }\n"),
        wants: &[Told("node_1")],
    },
    Case {
        name: "dup-product-uuid",
        given: Given::Hosts(|| {
            alike(|facts| facts.product_uuid = Seen::Present("4c4c4544-0042-3510-8051-b4c04f564432".to_owned()))
        }),
        wants: &[Refused("K8S-ID-004", "-")],
    },
    Case {
        name: "dup-product-uuid: the same MAC address",
        given: Given::Hosts(|| {
            alike(|facts| {
                for mac in facts.macs.values_mut() {
                    "52:54:00:aa:bb:cc".clone_into(mac);
                }
            })
        }),
        wants: &[Refused("K8S-ID-005", "-")],
    },
    Case {
        name: "dup-machine-id-pi",
        given: Given::Hosts(|| alike(|facts| facts.machine_id = Seen::Present("deadbeefdeadbeef".to_owned()))),
        wants: &[Refused("K8S-ID-003", "-")],
    },
    Case {
        name: "init-slow-pi",
        given: Given::Hosts(|| changed("cp1", |facts| facts.memory_kib = 948_000)),
        wants: &[Refused("K8S-RES-002", "cp1")],
    },
    Case {
        name: "a-controller-with-one-processor",
        given: Given::Hosts(|| changed("cp1", |facts| facts.cpus = 1)),
        wants: &[Refused("K8S-RES-001", "cp1")],
    },
    Case {
        name: "a-worker-without-room-for-pods",
        given: Given::Hosts(|| changed("w1", |facts| facts.memory_kib = 500_000)),
        wants: &[Warned("K8S-RES-003", "w1")],
    },
    Case {
        name: "a-small-disk",
        given: Given::Hosts(|| changed("w1", |facts| disk(facts).free_kib = 1_000_000)),
        wants: &[Refused("K8S-RES-004", "w1")],
    },
    Case {
        name: "a-disk-without-inodes",
        given: Given::Hosts(|| {
            changed("w1", |facts| {
                let disk = disk(facts);
                (disk.inodes, disk.free_inodes) = (1000, 40);
            })
        }),
        wants: &[Refused("K8S-RES-005", "w1")],
    },
    Case {
        name: "cp-join-random-50: a slow disk, an SD card",
        given: Given::Hosts(|| pi("cp1", |_| {})),
        wants: &[Warned("K8S-RES-006", "cp1"), Warned("K8S-RES-007", "cp1")],
    },
    Case {
        name: "cp-join-random-50: a worker has no etcd",
        given: Given::Hosts(|| pi("w1", |_| {})),
        wants: &[Silent("K8S-RES-006"), Silent("K8S-RES-007")],
    },
    Case {
        name: "pi-32bit",
        given: Given::Hosts(|| {
            changed("w1", |facts| {
                facts.architecture = Seen::Present("armhf".to_owned());
                "aarch64".clone_into(&mut facts.machine);
            })
        }),
        wants: &[Refused("K8S-ARCH-001", "w1")],
    },
    Case {
        name: "haproxy-selinux: a distribution that is none of ours",
        given: Given::Hosts(|| {
            changed("lb-0", |facts| {
                "rocky".clone_into(&mut facts.os.id);
                "Rocky Linux 9.4".clone_into(&mut facts.os.pretty);
                facts.os.id_like = vec!["rhel".to_owned(), "fedora".to_owned()];
            })
        }),
        wants: &[Refused("K8S-OS-001", "lb-0")],
    },
    Case {
        name: "memory-cgroup-off",
        given: Given::Hosts(|| {
            changed("w1", |facts| {
                facts.cgroup.controllers.remove("memory");
            })
        }),
        wants: &[Refused("K8S-KRN-001", "w1")],
    },
    Case {
        name: "cpuset-off",
        given: Given::Hosts(|| {
            changed("w1", |facts| {
                facts.cgroup.controllers.remove("cpuset");
            })
        }),
        wants: &[Refused("K8S-KRN-002", "w1")],
    },
    Case {
        name: "cgroup-v1-135",
        given: Given::Hosts(|| {
            let mut world = changed("w1", |facts| facts.cgroup.version = 1);
            // k8sup does not build it yet; the check is there before it does.
            world.cluster.version = k8sup::cluster::Version::parse("v1.35.0").unwrap();
            world
        }),
        wants: &[Refused("K8S-KRN-003", "w1")],
    },
    Case {
        name: "inotify-128",
        given: Given::Hosts(|| {
            changed("w1", |facts| {
                facts
                    .sysctls
                    .insert("fs.inotify.max_user_instances".to_owned(), "128".to_owned());
            })
        }),
        wants: &[
            Fixed("K8S-KRN-009", "w1"),
            Brings("w1", "fs.inotify.max_user_instances = 8192"),
            Brings("w1", "fs.inotify.max_user_watches = 524288"),
        ],
    },
    Case {
        name: "ip-forward-dns-endpoint",
        given: Given::Hosts(|| {
            changed("w1", |facts| {
                facts.sysctls.insert("net.ipv4.ip_forward".to_owned(), "0".to_owned());
            })
        }),
        wants: &[Fixed("K8S-KRN-009", "w1"), Brings("w1", "net.ipv4.ip_forward = 1")],
    },
    Case {
        name: "swap-dphys",
        given: Given::Hosts(|| {
            let mut world = with("w1", "raspberry-pi-os-bookworm");
            world.host(&name("w1")).cgroup.controllers.insert("memory".to_owned());
            world
        }),
        wants: &[
            Fixed("K8S-SWAP-001", "w1"),
            Does("w1", "turn swap off"),
            Brings("w1", "dphys-swapfile.service"),
        ],
    },
    Case {
        name: "pi-vxlan-module",
        given: Given::Hosts(|| with("w1", "ubuntu-22.04")),
        wants: &[
            Fixed("K8S-KRN-005", "w1"),
            Brings("w1", "linux-modules-extra-raspi"),
            Before("w1", "install 2 packages", "set kernel modules and sysctls"),
        ],
    },
    Case {
        name: "modules-of-a-kernel-that-is-gone",
        given: Given::Hosts(|| {
            pi("w1", |facts| {
                facts.modules.remove("vxlan");
                let Seen::Present(modules) = &mut facts.platform.modules else {
                    panic!("no modules")
                };
                modules.kernels = ["6.12.62+rpt-rpi-v8".to_owned()].into();
                modules.available.clear();
            })
        }),
        wants: &[Fixed("K8S-KRN-007", "w1"), Does("w1", "reboot")],
    },
    Case {
        name: "swap-rpi-zram",
        given: Given::Hosts(|| pi("w1", |_| {})),
        wants: &[
            Fixed("K8S-SWAP-002", "w1"),
            Brings("w1", "Mechanism=none"),
            Brings("w1", "dev-zram0.swap"),
        ],
    },
    Case {
        name: "swap-that-nobody-starts",
        given: Given::Hosts(|| changed("w1", |facts| facts.swap.active = vec!["/dev/sda3".to_owned()])),
        wants: &[Fixed("K8S-SWAP-001", "w1"), Warned("K8S-SWAP-003", "w1")],
    },
    Case {
        name: "swap-that-memory-cannot-take",
        given: Given::Hosts(|| {
            changed("w1", |facts| {
                facts.swap.active = vec!["/dev/sda3".to_owned()];
                (facts.platform.swap_used_kib, facts.platform.available_kib) = (3_000_000, 1_000_000);
            })
        }),
        wants: &[Refused("K8S-SWAP-004", "w1")],
    },
    Case {
        name: "pi-cmdline-moved",
        given: Given::Hosts(|| {
            pi("w1", |facts| {
                facts.cgroup.controllers.remove("memory");
                file(
                    facts,
                    "/boot/cmdline.txt",
                    "The file you are looking for has moved to /boot/firmware/cmdline.txt\n",
                );
                file(facts, CMDLINE, "console=tty1 rootwait\n");
                "console=tty1 rootwait".clone_into(&mut facts.platform.cmdline);
            })
        }),
        wants: &[
            Fixed("K8S-PI-001", "w1"),
            Brings("w1", CMDLINE),
            Brings("w1", "console=tty1 rootwait cgroup_enable=memory cgroup_memory=1"),
            Before("w1", "switch the memory control group on", "reboot"),
        ],
    },
    Case {
        name: "pi-cmdline-moved: more than one line",
        given: Given::Hosts(|| {
            pi("w1", |facts| {
                facts.cgroup.controllers.remove("memory");
                file(facts, CMDLINE, "console=tty1\nrootwait\n");
            })
        }),
        wants: &[Refused("K8S-PI-002", "w1")],
    },
    Case {
        name: "pi-cmdline-moved: written, and not booted since",
        given: Given::Hosts(|| {
            pi("w1", |facts| {
                facts.cgroup.controllers.remove("memory");
                file(facts, CMDLINE, "rootwait cgroup_enable=memory cgroup_memory=1\n");
                "rootwait".clone_into(&mut facts.platform.cmdline);
            })
        }),
        wants: &[Fixed("K8S-PI-003", "w1"), Does("w1", "reboot")],
    },
    Case {
        name: "a-weak-power-supply",
        given: Given::Hosts(|| pi("w1", |facts| facts.platform.board.throttled = 0x5_0005)),
        wants: &[Warned("K8S-PI-004", "w1")],
    },
    Case {
        name: "cgroup-v1-135: told in time",
        given: Given::Hosts(|| changed("w1", |facts| facts.cgroup.version = 1)),
        wants: &[Warned("K8S-KRN-004", "-"), Silent("K8S-KRN-003")],
    },
    Case {
        name: "a-release-that-nobody-has-tried",
        given: Given::Hosts(|| with("w3", "forky-packages")),
        wants: &[Warned("K8S-OS-002", "w3")],
    },
    Case {
        name: "no-systemd",
        given: Given::Hosts(|| changed("w1", |facts| facts.platform.without_systemd = true)),
        wants: &[Refused("K8S-OS-003", "w1")],
    },
    Case {
        name: "a-root-that-forgets",
        given: Given::Hosts(|| {
            changed("w1", |facts| {
                "boot=overlay rootwait".clone_into(&mut facts.platform.cmdline);
            })
        }),
        wants: &[Refused("K8S-OS-004", "w1")],
    },
    Case {
        name: "an-upgrade-waits-for-a-reboot",
        given: Given::Hosts(|| changed("w1", |facts| facts.platform.reboot_required = true)),
        wants: &[Warned("K8S-OS-005", "w1")],
    },
    Case {
        name: "pi-clock",
        given: Given::Hosts(|| pi("w1", |facts| facts.platform.clock_unsynchronised = Seen::Present(true))),
        wants: &[
            Fixed("K8S-TIME-003", "w1"),
            Before("w1", "wait for the clock to be set", "kubeadm join as worker"),
        ],
    },
    Case {
        name: "pi-clock: nobody sets it",
        given: Given::Hosts(|| {
            pi("w1", |facts| {
                facts.services.remove("systemd-timesyncd");
                facts.platform.clock_unsynchronised = Seen::Present(true);
            })
        }),
        wants: &[Warned("K8S-TIME-002", "w1")],
    },
    Case {
        name: "one-clock-is-astray",
        given: Given::Hosts(|| {
            let mut world = homelab();
            for host in ["lb-0", "cp1", "cp2", "cp3", "w1", "w2"] {
                world.host(&name(host)).clock_skew = Some(0);
            }
            // Booted without a battery: the epoch of its image.
            world.host(&name("w3")).clock_skew = Some(-40_000_000);
            world
        }),
        wants: &[Refused("K8S-TIME-001", "w3")],
    },
    Case {
        name: "this-machine's-clock-is-astray",
        given: Given::Hosts(|| {
            let mut world = homelab();
            for facts in world.hosts.values_mut() {
                facts.clock_skew = Some(600);
            }
            world
        }),
        wants: &[Warned("K8S-TIME-004", "-")],
    },
];
