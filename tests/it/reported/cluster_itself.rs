//! A running cluster that differs from the inventory.

use k8sup::facts::Seen;
use serde_json::json;

use super::{Case, Given, Refused, Warned};
use crate::simulate::World;
use crate::world::{self, HOMELAB, name};

/// The running cluster says this of itself.
fn says(path: &str, value: &str) -> World {
    let mut world = World::built(HOMELAB);
    let Seen::Present(config) = &mut world.api().kubeadm_config else {
        panic!("no configuration")
    };
    *config.pointer_mut(path).unwrap() = json!(value);
    world
}

/// With resolvers for CoreDNS, and what its Corefile is.
fn corefile(is: Seen<String>) -> World {
    let mut world = World::built(HOMELAB);
    world.cluster = world::cluster(&format!("{HOMELAB}dns: {{ resolvers: [192.168.7.1] }}\n"));
    world.api().corefile = is;
    world
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "init-lb-lacks-cert-san: the cluster was founded without it",
        given: Given::Hosts(|| says("/controlPlaneEndpoint", "192.168.7.201:6443")),
        wants: &[Refused("K8S-KUBE-001", "-")],
    },
    Case {
        name: "kubelet-newer-than-cp: a node's kubelet runs another version",
        given: Given::Hosts(|| {
            let mut world = World::built(HOMELAB);
            "v1.35.1".clone_into(&mut world.node(&name("w1")).unwrap().kubelet_version);
            world
        }),
        wants: &[Refused("K8S-KUBE-002", "w1")],
    },
    Case {
        name: "init-lb-lacks-cert-san: the certificate lacks a name",
        given: Given::Hosts(|| {
            let mut world = World::built(HOMELAB);
            world.cluster = world::cluster(&HOMELAB.replace("v1.34.4 }", "v1.34.4, certSans: [api.lan] }"));
            world
        }),
        wants: &[Refused("K8S-KUBE-003", "cp1")],
    },
    Case {
        name: "what-answers-looks-half-made",
        given: Given::Hosts(|| {
            let mut world = World::built(HOMELAB);
            world.host(&name("cp1")).kube.etcd_data = false;
            let Seen::Present(members) = &mut world.api().members else {
                panic!("no members")
            };
            members.retain(|member| member.name != "cp1");
            world
        }),
        wants: &[Refused("K8S-KUBE-004", "cp1")],
    },
    Case {
        name: "a-corefile-of-somebody's-own",
        given: Given::Hosts(|| corefile(Seen::Present(".:53 { whoami }\n".to_owned()))),
        wants: &[Refused("K8S-DNS-006", "-")],
    },
    Case {
        name: "a-corefile-that-cannot-be-read",
        given: Given::Hosts(|| corefile(Seen::Unknown("did not answer within 12 s".to_owned()))),
        wants: &[Warned("K8S-DNS-007", "-")],
    },
    Case {
        name: "a-refusal-that-was-allowed",
        given: Given::Hosts(|| {
            let mut world = super::changed("cp1", |facts| facts.cpus = 1);
            world.cluster.allow.insert("K8S-RES-001".to_owned());
            world
        }),
        wants: &[Warned("K8S-PLAN-003", "cp1"), super::Silent("K8S-RES-001")],
    },
];
