//! containerd.

use k8sup::facts::FileFact;

use super::{Before, Brings, Case, Does, Fixed, Given, Refused, homelab, with};
use crate::world::name;

const CONFIG: &str = "/etc/containerd/config.toml";

pub(super) const CASES: &[Case] = &[
    Case {
        name: "cri-disabled",
        given: Given::Hosts(|| with("w1", "docker-containerd")),
        wants: &[
            Fixed("K8S-CRI-001", "w1"),
            Fixed("K8S-CRI-002", "w1"),
            Brings("w1", "disabled_plugins = []"),
            Does("w1", "configure containerd"),
        ],
    },
    Case {
        name: "cri-disabled-kubeadm-warns",
        given: Given::Hosts(|| with("cp1", "docker-containerd")),
        wants: &[
            Before("cp1", "configure containerd", "pull images"),
            Before("cp1", "pull images", "kubeadm init: control plane"),
            super::Runs("cp1", "crictl"),
        ],
    },
    Case {
        name: "systemdcgroup-false",
        given: Given::Hosts(|| with("w1", "docker-containerd")),
        wants: &[Fixed("K8S-CRI-002", "w1"), Brings("w1", "SystemdCgroup = true")],
    },
    Case {
        name: "systemdcgroup-wrong-table",
        given: Given::Hosts(homelab),
        // The tables of both versions of the format, for whichever the host gets.
        wants: &[
            Brings("w1", "io.containerd.cri.v1.runtime"),
            Brings("w1", "io.containerd.grpc.v1.cri"),
        ],
    },
    Case {
        name: "sandbox-empty",
        given: Given::Hosts(homelab),
        wants: &[Brings("w1", "registry.k8s.io/pause:3.10.1")],
    },
    Case {
        name: "flannel-binary-missing",
        given: Given::Hosts(homelab),
        wants: &[Brings("w1", "/opt/cni/bin")],
    },
    Case {
        name: "a-configuration-that-is-no-toml",
        given: Given::Hosts(|| {
            let mut world = with("w1", "docker-containerd");
            let content = "version = \n".to_owned();
            world
                .host(&name("w1"))
                .files
                .insert(CONFIG.to_owned(), FileFact { mode: 0o644, content });
            world
        }),
        wants: &[Refused("K8S-CRI-003", "w1")],
    },
];
