//! Joins, etcd's members, and what an ended join leaves.

use k8sup::facts::Seen;

use super::{Before, Brings, Case, Does, DoesNot, Fixed, Given, Runs, homelab};
use crate::simulate::World;
use crate::world::{HOMELAB, name};

const FIRST: &str = "
cluster: { name: homelab, kubernetes: v1.34.4 }
ssh: { user: pi }
loadBalancers: { lb-0: 192.168.7.140 }
controllers: { cp1: 192.168.7.201 }
";
const JOIN: &str = "kubeadm join as controller";
const CLEAR: &str = "clear what is half made";

/// A cluster of one controller; a join of the second ended after so many parts.
fn ended(parts: usize) -> World {
    let mut world = World::built(FIRST);
    world.under(HOMELAB);
    world.prepare();
    world.begin("cp2", JOIN, parts);
    world
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "token-expired-jws",
        given: Given::Hosts(homelab),
        // A file with the CA: nothing waits for a signature.
        wants: &[Brings("w1", "kubeConfigPath:"), Brings("w1", "discovery:")],
    },
    Case {
        name: "certkey-expired",
        given: Given::Hosts(homelab),
        wants: &[
            Before("cp1", "give cp2 its etcd turn", "give cp3 its etcd turn"),
            Runs("cp1", "upload-certs"),
        ],
    },
    Case {
        name: "reupload-each-join",
        given: Given::Hosts(|| {
            let mut world = World::built(HOMELAB);
            world.under(&HOMELAB.replace(
                "cp3: 192.168.7.203",
                "cp3: 192.168.7.203, cp4: 192.168.7.213, cp5: 192.168.7.214",
            ));
            world
        }),
        // Each turn brings the certificates along, long after the init.
        wants: &[
            Before("cp1", "give cp4 its etcd turn", "give cp5 its etcd turn"),
            Runs("cp1", "upload-certs"),
        ],
    },
    Case {
        name: "certkey-forbidden",
        given: Given::Hosts(homelab),
        wants: &[
            Brings("cp1", "system:bootstrappers:kubeadm:default-node-token"),
            Runs("cp1", "upload-certs"),
        ],
    },
    Case {
        name: "certkey-wrong",
        given: Given::Hosts(homelab),
        wants: &[
            Brings("cp1", "<secret:certificate-key>"),
            Brings("cp2", "<secret:certificate-key>"),
        ],
    },
    Case {
        name: "cp-join-concurrent-unnamed",
        given: Given::Hosts(|| ended(6)),
        wants: &[
            Fixed("K8S-OLD-004", "cp2"),
            Fixed("K8S-KUBE-006", "cp2"),
            Does("cp1", "forget the old cp2"),
            Before("cp2", CLEAR, JOIN),
        ],
    },
    Case {
        name: "cp-join-too-many-learners",
        given: Given::Hosts(|| ended(7)),
        wants: &[
            Fixed("K8S-KUBE-006", "cp2"),
            Before("cp1", "forget the old cp2", "give cp2 its etcd turn"),
        ],
    },
    Case {
        name: "cp-join-learner-endpoint",
        given: Given::Hosts(|| ended(8)),
        // It votes: what is left is the last clean-up.
        wants: &[
            Fixed("K8S-OLD-004", "cp2"),
            Does("cp2", "finish the join"),
            DoesNot("cp2", CLEAR),
            DoesNot("cp2", JOIN),
        ],
    },
    Case {
        name: "cp-join-random-50",
        given: Given::Hosts(|| ended(5)),
        wants: &[Fixed("K8S-OLD-004", "cp2"), Before("cp2", CLEAR, JOIN)],
    },
    Case {
        name: "cp-join-peer-not-started",
        given: Given::Hosts(homelab),
        wants: &[
            Before("cp2", "pull images", JOIN),
            Before("w1", "pull images", "kubeadm join as worker"),
        ],
    },
    Case {
        name: "cp-replace-ghost",
        given: Given::Hosts(|| {
            let mut world = World::built(HOMELAB);
            world.reinstall("cp3");
            world
        }),
        wants: &[
            Fixed("K8S-KUBE-006", "cp3"),
            Before("cp1", "forget the old cp3", "give cp3 its etcd turn"),
            Does("cp3", JOIN),
        ],
    },
    Case {
        name: "token-expired-template: an earlier run was ended",
        given: Given::Hosts(|| {
            let mut world = World::built(HOMELAB);
            world.api().uploaded_certs = Seen::Present(());
            world
        }),
        wants: &[
            Fixed("K8S-KUBE-007", "cp1"),
            Does("cp1", "revoke tokens and uploaded certificates"),
        ],
    },
    Case {
        name: "dup-product-uuid: a Raspberry Pi has none",
        given: Given::Hosts(|| {
            let mut world = homelab();
            for host in ["w1", "w2"] {
                world.host(&name(host)).product_uuid = Seen::Absent;
            }
            world
        }),
        wants: &[super::Silent("K8S-ID-004"), Does("w1", "kubeadm join as worker")],
    },
];
