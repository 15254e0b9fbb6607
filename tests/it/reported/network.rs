//! Networks, interfaces, ports, and Flannel on them.

use k8sup::facts::{InterfaceAddress, Listener, Route, Seen};

use super::{Brings, BringsNo, Case, Fixed, Given, Refused, Told, Warned, bare, changed, homelab};
use crate::simulate::World;
use crate::world::{HOMELAB, name};

fn route(to: &str, through: &str) -> Route {
    Route {
        destination: to.parse().unwrap(),
        interface: through.to_owned(),
    }
}

fn address(of: &str, on: &str) -> InterfaceAddress {
    InterfaceAddress {
        interface: on.to_owned(),
        address: of.parse().unwrap(),
    }
}

fn listens(host: &str, port: u16, process: &str) -> World {
    changed(host, |facts| {
        facts.listening.push(Listener {
            address: "0.0.0.0".to_owned(),
            port,
            process: Some(process.to_owned()),
        });
    })
}

/// Every node's way out is a second interface, as in a virtual machine behind NAT.
fn behind_nat() -> World {
    let mut world = homelab();
    for facts in world.hosts.values_mut() {
        facts.addresses.push(address("10.0.2.15/24", "nat0"));
        facts.routes = vec![route("0.0.0.0/0", "nat0")];
    }
    world
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "hosts-127-0-1-1",
        given: Given::Hosts(homelab),
        wants: &[
            Brings("cp2", "advertiseAddress: \"192.168.7.202\""),
            Brings("cp2", "192.168.7.202"),
            Brings("w1", "192.168.7.204"),
        ],
    },
    Case {
        name: "hosts-127-0-1-1: an address that no interface has",
        given: Given::Hosts(|| changed("w1", |facts| facts.addresses = vec![address("10.0.2.15/24", "eth0")])),
        wants: &[Refused("K8S-NET-001", "w1")],
    },
    Case {
        name: "vip-as-internal-ip",
        given: Given::Hosts(|| {
            let mut world = homelab();
            let facts = world.host(&name("cp1"));
            let own = facts.addresses[0].interface.clone();
            facts.addresses.insert(0, address("192.168.7.200/32", &own));
            world
        }),
        wants: &[
            Brings("cp1", "advertiseAddress: \"192.168.7.201\""),
            BringsNo("cp1", "192.168.7.200"),
        ],
    },
    Case {
        name: "init-no-default-route",
        given: Given::Hosts(|| changed("cp1", |facts| facts.routes.clear())),
        wants: &[
            Warned("K8S-NET-002", "cp1"),
            Brings("cp1", "advertiseAddress: \"192.168.7.201\""),
        ],
    },
    Case {
        name: "flannel-wrong-iface",
        given: Given::Hosts(behind_nat),
        wants: &[Fixed("K8S-NET-003", "w1"), Brings("cp1", "--iface=")],
    },
    Case {
        name: "flannel-iface-k535: interfaces of other names",
        given: Given::Hosts(|| {
            let mut world = behind_nat();
            let own = world.host(&name("w2"));
            own.addresses = vec![address("192.168.7.205/24", "enp3s0"), address("10.0.2.15/24", "nat0")];
            world
        }),
        // By the node's own address, which is right on each.
        wants: &[
            Fixed("K8S-NET-003", "w2"),
            Brings("cp1", "--iface=$(NODE_ADDRESS)"),
            BringsNo("cp1", "--iface=enp3s0"),
        ],
    },
    Case {
        name: "flannel-iface-ha28",
        given: Given::Hosts(|| {
            let mut world = bare(&format!("{HOMELAB}flannel: {{ interface: eth7 }}\n"));
            for facts in world.hosts.values_mut() {
                facts.links.insert("eth7".to_owned(), 1500);
                facts
                    .addresses
                    .iter_mut()
                    .for_each(|entry| "eth7".clone_into(&mut entry.interface));
            }
            world
        }),
        wants: &[Brings("cp1", "--iface=eth7")],
    },
    Case {
        name: "flannel-iface-ha28: it does not exist",
        given: Given::Hosts(|| bare(&format!("{HOMELAB}flannel: {{ interface: eth7 }}\n"))),
        wants: &[Refused("K8S-NET-005", "w1")],
    },
    Case {
        name: "flannel-cni0-gateway",
        given: Given::Inventory(
            "cluster: { name: a, kubernetes: v1.34.4, podCidr: 192.168.0.0/16 }\n\
             controllers: { cp1: 192.168.7.201 }\nworkers: { w1: 192.168.7.204 }\n",
        ),
        wants: &[Told("lies in the pod network")],
    },
    Case {
        name: "flannel-docker0-overlap",
        given: Given::Hosts(|| {
            let mut world = bare(&HOMELAB.replace("v1.34.4 }", "v1.34.4, podCidr: 172.17.0.0/16 }"));
            world
                .host(&name("w1"))
                .addresses
                .push(address("172.17.0.1/16", "docker0"));
            world
        }),
        wants: &[Refused("K8S-NET-006", "w1")],
    },
    Case {
        name: "flannel-cidr-overlap",
        given: Given::Hosts(|| changed("w1", |facts| facts.routes.push(route("10.244.0.0/14", "wg0")))),
        wants: &[Refused("K8S-NET-006", "w1")],
    },
    Case {
        name: "flannel-cidr-overlap: the service network",
        given: Given::Hosts(|| changed("w1", |facts| facts.routes.push(route("10.96.3.0/24", "tun0")))),
        wants: &[Refused("K8S-NET-007", "w1")],
    },
    Case {
        name: "flannel-podcidr-exhausted",
        given: Given::Inventory(
            "cluster: { name: a, kubernetes: v1.34.4, podCidr: 10.244.0.0/24 }\n\
             controllers: { cp1: 10.0.0.1 }\nworkers: { w1: 10.0.0.4 }\n",
        ),
        wants: &[Told("is too small")],
    },
    Case {
        name: "flannel-netconf-mismatch",
        given: Given::Hosts(|| bare(&HOMELAB.replace("v1.34.4 }", "v1.34.4, podCidr: 10.77.0.0/16 }"))),
        wants: &[
            Brings("cp1", "podSubnet: 10.77.0.0/16"),
            Brings("cp1", "\"Network\": \"10.77.0.0/16\""),
            BringsNo("cp1", "10.244.0.0/16"),
        ],
    },
    Case {
        name: "host-gw-over-two-networks",
        given: Given::Hosts(|| {
            let mut world = bare(
                &format!("{HOMELAB}flannel: {{ backend: host-gw }}\n")
                    .replace("w3: 192.168.7.206", "w3: 192.168.9.206"),
            );
            world.host(&name("w3")).addresses = vec![address("192.168.9.206/24", "eth0")];
            world
        }),
        wants: &[Refused("K8S-NET-015", "-")],
    },
    Case {
        name: "haproxy-port-6443-colocated",
        given: Given::Inventory(
            "cluster: { name: a, kubernetes: v1.34.4 }\nloadBalancers: { lb: 10.0.0.1 }\n\
             controllers: { cp1: 10.0.0.1 }\nworkers: { w1: 10.0.0.4 }\n",
        ),
        wants: &[Told("10.0.0.1")],
    },
    Case {
        name: "haproxy-port-6443-colocated: nobody listed it",
        given: Given::Hosts(|| listens("cp2", 6443, "haproxy")),
        wants: &[Refused("K8S-NET-012", "cp2")],
    },
    Case {
        name: "another-pod-network-in-the-cluster",
        given: Given::Hosts(|| {
            let mut world = World::built(HOMELAB);
            world.api().flannel = Seen::Absent;
            let files = &mut world.host(&name("cp1")).kube.files;
            files.retain(|file| !file.contains("flannel"));
            files.insert("/etc/cni/net.d/10-calico.conflist".to_owned());
            world
        }),
        wants: &[Refused("K8S-CNI-004", "-")],
    },
    Case {
        name: "flannel-cannot-be-told",
        given: Given::Hosts(|| {
            let mut world = World::built(HOMELAB);
            let why = "did not answer within 12 s".to_owned();
            world.api().flannel = Seen::Unknown(why.clone());
            world.api().flannel_hash = Seen::Unknown(why);
            world
        }),
        wants: &[Warned("K8S-CNI-008", "-")],
    },
    Case {
        name: "a-patch-that-does-not-fit-flannel's-manifest",
        given: Given::Hosts(|| {
            bare(&format!(
                "{HOMELAB}flannel: {{ patches: {{ DaemonSet/none-such: {{ x: 1 }} }} }}\n"
            ))
        }),
        wants: &[Refused("K8S-CNI-007", "-")],
    },
];
