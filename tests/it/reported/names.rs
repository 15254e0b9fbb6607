//! Names: of the endpoint, of resolvers, of nodes in the cluster.

use k8sup::facts::Seen;

use super::{Brings, Case, Does, Fixed, Given, Refused, Silent, Told, Warned, bare, changed};
use crate::simulate::World;
use crate::world::{self, HOMELAB, name};

/// The endpoint has a name.
fn named() -> World {
    bare(&HOMELAB.replace("v1.34.4 }", "v1.34.4, endpoint: k8s-api.lan }"))
}

fn leads(host: &str, to: &str) -> World {
    let mut world = named();
    world.host(&name(host)).endpoint_resolves = Seen::Present(vec![to.parse().unwrap()]);
    world
}

/// A running cluster under another inventory.
fn relisted(from: &str, to: &str) -> World {
    let mut world = World::built(HOMELAB);
    world.cluster = world::cluster(&HOMELAB.replace(from, to));
    world
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "cpe-name-unresolvable",
        given: Given::Hosts(named),
        wants: &[
            Fixed("K8S-DNS-004", "w1"),
            Brings("w1", "192.168.7.140\tk8s-api.lan"),
            Does("w1", "complete /etc/hosts"),
        ],
    },
    Case {
        name: "cpe-name-unresolvable: it resolves to something else",
        given: Given::Hosts(|| leads("w1", "127.0.1.1")),
        wants: &[Refused("K8S-DNS-005", "w1")],
    },
    Case {
        name: "a-stub-resolver-and-no-other-known",
        given: Given::Hosts(|| {
            changed("w1", |facts| {
                facts.nameservers = vec!["127.0.0.1".to_owned()];
                facts.resolved = Seen::Absent;
            })
        }),
        wants: &[Warned("K8S-DNS-002", "w1")],
    },
    Case {
        name: "a-stub-resolver-and-the-inventory's-resolvers",
        given: Given::Hosts(|| {
            let mut world = bare(&format!("{HOMELAB}dns: {{ resolvers: [192.168.7.1] }}\n"));
            let facts = world.host(&name("w1"));
            facts.nameservers = vec!["127.0.0.1".to_owned()];
            facts.resolved = Seen::Absent;
            world
        }),
        wants: &[
            Fixed("K8S-DNS-009", "w1"),
            Silent("K8S-DNS-002"),
            Brings("w1", "nameserver 192.168.7.1"),
            Brings("w1", "/etc/k8sup-resolv.conf"),
        ],
    },
    Case {
        name: "init-lb-lacks-cert-san",
        given: Given::Inventory(
            "cluster: { name: a, kubernetes: v1.34.4, endpoint: 10.0.0.1 }\n\
             controllers: { cp1: 10.0.0.1, cp2: 10.0.0.2, cp3: 10.0.0.3 }\nworkers: { w1: 10.0.0.4 }\n",
        ),
        wants: &[Told("the endpoint is one of several controllers")],
    },
    Case {
        name: "a-machine-under-two-names",
        given: Given::Hosts(|| {
            let mut world = bare(HOMELAB);
            let (id, boot) = (
                world.host(&name("w1")).machine_id.clone(),
                world.host(&name("w1")).boot_id.clone(),
            );
            let other = world.host(&name("w2"));
            (other.machine_id, other.boot_id) = (id, boot);
            world
        }),
        wants: &[Refused("K8S-ID-006", "-")],
    },
    Case {
        name: "a-node-under-another-name",
        given: Given::Hosts(|| {
            let mut world = World::built(HOMELAB);
            let facts = world.hosts.remove(&name("w3")).unwrap();
            world.cluster = world::cluster(&HOMELAB.replace("w3:", "rack-3:"));
            world.hosts.insert(name("rack-3"), facts);
            world
        }),
        wants: &[Refused("K8S-ID-008", "rack-3")],
    },
    Case {
        name: "a-node-at-another-address",
        given: Given::Hosts(|| {
            let mut world = relisted("w3: 192.168.7.206", "w3: 192.168.7.216");
            for entry in &mut world.host(&name("w3")).addresses {
                if entry.interface.starts_with('e') || entry.interface.starts_with("host") {
                    entry.address = "192.168.7.216/24".parse().unwrap();
                }
            }
            world
        }),
        wants: &[Refused("K8S-ID-009", "w3")],
    },
    Case {
        name: "a-node-that-is-in-no-inventory",
        given: Given::Hosts(|| {
            let mut world = relisted(", w3: 192.168.7.206", "");
            world.hosts.remove(&name("w3"));
            world
        }),
        wants: &[Warned("K8S-ID-010", "-")],
    },
];
