//! The founding of a cluster.

use super::{
    Before, Brings, Case, Does, DoesNot, Fixed, Given, Nothing, Refused, Runs, RunsNo, Told, homelab, prepared,
};
use crate::simulate::World;
use crate::world::HOMELAB;

const FOUND: &str = "kubeadm init: control plane";
const PUBLISH: &str = "kubeadm init: cluster configuration and add-ons";

/// An init that ended after so many parts.
fn ended(parts: usize) -> World {
    let mut world = prepared(HOMELAB);
    world.begin("cp1", FOUND, parts);
    world
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "init-upload-config-via-lb",
        given: Given::Hosts(homelab),
        wants: &[
            Before("cp1", FOUND, PUBLISH),
            Brings("cp1", "kubernetesAPICall: 5m0s"),
            Brings("lb-0", "rise 1"),
        ],
    },
    Case {
        name: "init-upload-config-via-lb: it was ended there",
        given: Given::Hosts(|| {
            let mut world = ended(usize::MAX);
            world.begin("cp1", PUBLISH, 1);
            world
        }),
        wants: &[
            Fixed("K8S-KUBE-005", "cp1"),
            Does("cp1", PUBLISH),
            DoesNot("cp1", FOUND),
            DoesNot("cp1", "clear what is half made"),
        ],
    },
    Case {
        name: "init-ports-in-use-rerun",
        given: Given::Hosts(|| World::built(HOMELAB)),
        wants: &[Nothing],
    },
    Case {
        name: "an-init-that-was-ended-before-etcd-had-data",
        given: Given::Hosts(|| ended(3)),
        wants: &[
            Fixed("K8S-OLD-004", "cp1"),
            Before("cp1", "clear what is half made", FOUND),
        ],
    },
    Case {
        name: "an-init-that-was-ended-with-etcd's-data-there",
        given: Given::Hosts(|| ended(5)),
        wants: &[
            Does("cp1", "wait for the API server"),
            DoesNot("cp1", "clear what is half made"),
        ],
    },
    Case {
        name: "init-stdout-no-cp-join",
        given: Given::Hosts(homelab),
        wants: &[
            Brings("cp2", "certificateKey:"),
            Brings("cp2", "controlPlane:"),
            RunsNo("cp1", "print-join-command"),
        ],
    },
    Case {
        name: "init-slow-pi-k8s-on-raspbian",
        given: Given::Hosts(homelab),
        // kubeadm makes the probe's patience of it: a failure each 10 s, so 60 of them.
        wants: &[
            Brings("cp1", "controlPlaneComponentHealthCheck: 10m0s"),
            Brings("cp2", "etcdAPICall: 5m0s"),
        ],
    },
    Case {
        name: "init-no-default-route-airgap",
        given: Given::Hosts(homelab),
        wants: &[
            Brings("cp1", "kubernetesVersion: v1.34.4"),
            Brings("cp1", "imagePullPolicy: IfNotPresent"),
        ],
    },
    Case {
        name: "config-v1beta3-on-137",
        given: Given::Hosts(homelab),
        wants: &[
            Brings("cp1", "kubeadm.k8s.io/v1beta4"),
            Brings("w1", "kubeadm.k8s.io/v1beta4"),
        ],
    },
    Case {
        name: "config-v1beta3-on-137: a version without v1beta4",
        given: Given::Inventory("cluster: { name: a, kubernetes: v1.30.3 }\ncontrollers: { cp1: 10.0.0.1 }\n"),
        wants: &[Told("is too old")],
    },
    Case {
        name: "config-flag-mix",
        given: Given::Hosts(homelab),
        wants: &[
            Runs("cp1", "--config"),
            RunsNo("cp1", "--certificate-key"),
            RunsNo("cp2", "--certificate-key"),
            RunsNo("cp2", "--apiserver-advertise-address"),
            RunsNo("w1", "--discovery-token"),
        ],
    },
    Case {
        name: "token-expired-template",
        given: Given::Hosts(homelab),
        wants: &[
            Brings("cp1", "ttl: 2h0m0s"),
            Does("cp1", "revoke tokens and uploaded certificates"),
        ],
    },
    Case {
        name: "systemdcgroup-false: the kubelet's side",
        given: Given::Hosts(homelab),
        wants: &[Brings("cp1", "cgroupDriver: systemd")],
    },
    Case {
        name: "multi-cri",
        given: Given::Hosts(homelab),
        wants: &[
            Brings("cp1", "criSocket: unix:///run/containerd/containerd.sock"),
            Brings("w1", "criSocket: unix:///run/containerd/containerd.sock"),
        ],
    },
    Case {
        name: "multi-cri-kubekey",
        given: Given::Hosts(|| ended(3)),
        wants: &[Runs("cp1", "criSocket: unix:///run/containerd/containerd.sock")],
    },
    Case {
        name: "no-controller-in-reach",
        given: Given::Hosts(|| {
            let mut world = homelab();
            for host in ["cp1", "cp2", "cp3"] {
                world.down.insert(crate::world::name(host));
            }
            world
        }),
        wants: &[Refused("K8S-SSH-001", "cp1")],
    },
];
