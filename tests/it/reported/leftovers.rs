//! What earlier clusters and other tools have left.

use k8sup::facts::{FileFact, Seen};

use super::{Brings, Case, Does, DoesNot, Fixed, Given, Refused, Silent, changed, homelab};
use crate::simulate::World;
use crate::world::{HOMELAB, name};

/// A running cluster, and a worker of another one where `w3` should be.
fn foreign_worker() -> World {
    let mut world = World::built(HOMELAB);
    let facts = world.host(&name("w3"));
    if let Seen::Present(ca) = &mut facts.kube.ca {
        "another".clone_into(&mut ca.spki_sha256);
    }
    world
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "services-that-somebody-has-masked",
        given: Given::Hosts(|| {
            let mut world = homelab();
            let mut mask = |host: &str, unit: &str| world.host(&name(host)).masked.insert(unit.to_owned());
            mask("w1", "kubelet");
            mask("lb-0", "haproxy");
            mask("cp1", "haproxy");
            world
        }),
        wants: &[Refused("K8S-PKG-008", "w1"), Refused("K8S-PKG-008", "lb-0")],
    },
    Case {
        name: "a-drop-in-that-starts-the-kubelet-in-another-way",
        given: Given::Hosts(|| {
            changed("w1", |facts| {
                let path = "/etc/systemd/system/kubelet.service.d/99-own.conf".to_owned();
                let content = "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --foo\n".to_owned();
                facts.files.insert(
                    path,
                    FileFact {
                        content,
                        ..FileFact::default()
                    },
                );
            })
        }),
        wants: &[Refused("K8S-KUBELET-003", "w1")],
    },
    Case {
        name: "a-drop-in-as-kubeadm-has-it",
        given: Given::Hosts(|| {
            changed("w1", |facts| {
                let path = "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf".to_owned();
                let content =
                    "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS\n";
                let content = content.to_owned();
                facts.files.insert(
                    path,
                    FileFact {
                        content,
                        ..FileFact::default()
                    },
                );
            })
        }),
        wants: &[Silent("K8S-KUBELET-003")],
    },
    Case {
        name: "static-pods-of-somebodys-own",
        given: Given::Hosts(|| {
            changed("w1", |facts| {
                facts.kube.files.insert("/etc/kubernetes/manifests/own.yaml".to_owned());
            })
        }),
        wants: &[Refused("K8S-OLD-011", "w1")],
    },
    Case {
        name: "what-the-package-of-the-kubelet-brings-is-no-static-pod",
        given: Given::Hosts(|| {
            changed("w1", |facts| {
                let path = "/etc/kubernetes/manifests/.kubelet-keep".to_owned();
                facts.kube.files.insert(path);
            })
        }),
        wants: &[Silent("K8S-OLD-011"), Does("w1", "kubeadm join as worker")],
    },
    Case {
        name: "stale-ca-ignored-preflight",
        given: Given::Hosts(foreign_worker),
        wants: &[Refused("K8S-OLD-001", "w3")],
    },
    Case {
        name: "stale-home-kubeconfig",
        given: Given::Hosts(|| {
            let mut world = World::built(HOMELAB);
            world.host(&name("cp1")).login.kubeconfig_ca = Seen::Present("another".to_owned());
            world
        }),
        wants: &[
            Fixed("K8S-OLD-008", "cp1"),
            Does("cp1", "give pi a kubeconfig"),
            DoesNot("cp2", "give pi a kubeconfig"),
        ],
    },
    Case {
        name: "reset-wipes-external-etcd",
        given: Given::Hosts(|| changed("cp1", |facts| facts.kube.etcd_dir_used = true)),
        wants: &[Refused("K8S-OLD-003", "cp1")],
    },
    Case {
        name: "reset-custom-datadir",
        given: Given::Hosts(|| {
            let mut world = super::prepared(HOMELAB);
            world.begin("cp1", "kubeadm init: control plane", 4);
            world
        }),
        wants: &[
            Does("cp1", "clear what is half made"),
            super::Runs("cp1", "--data-dir="),
        ],
    },
    Case {
        name: "nobody-can-tell-what-a-host-belongs-to",
        given: Given::Hosts(|| {
            let mut world = World::built(HOMELAB);
            world.host(&name("w1")).kube.kubelet = Seen::Unknown("i/o error".to_owned());
            world
        }),
        wants: &[Refused("K8S-OLD-002", "w1")],
    },
    Case {
        name: "apt-legacy-repo",
        given: Given::Hosts(|| {
            changed("w1", |facts| {
                facts.legacy_sources = vec!["/etc/apt/sources.list.d/kubernetes.list".to_owned()];
            })
        }),
        wants: &[
            Fixed("K8S-PKG-001", "w1"),
            Brings("w1", "/etc/apt/sources.list.d/kubernetes.list"),
            Brings("w1", "https://pkgs.k8s.io/core:/stable:/v1.34/deb/"),
        ],
    },
    Case {
        name: "reset-unmount-fails",
        given: Given::Hosts(|| {
            let mut world = super::prepared(HOMELAB);
            world.begin("cp1", "kubeadm init: control plane", 4);
            world
        }),
        wants: &[
            super::Runs("cp1", "MNT_DETACH"),
            super::RunsNo("cp1", "rm -rf /var/lib/kubelet\n"),
        ],
    },
    Case {
        name: "apt-wrong-suite",
        given: Given::Hosts(|| changed("w1", |_| {})),
        wants: &[
            Brings("w1", "Suites: /"),
            Brings("w1", "Signed-By: "),
            super::BringsNo("w1", "kubernetes-xenial"),
        ],
    },
    Case {
        name: "the-same-repository-with-another-key",
        given: Given::Hosts(|| {
            changed("w1", |facts| {
                let file = facts
                    .files
                    .entry("/etc/apt/sources.list.d/k8s.list".to_owned())
                    .or_default();
                "deb [signed-by=/etc/apt/keyrings/k8s.gpg] https://pkgs.k8s.io/core:/stable:/v1.34/deb/ /\n"
                    .clone_into(&mut file.content);
            })
        }),
        wants: &[Fixed("K8S-PKG-002", "w1")],
    },
    Case {
        name: "kubelet-newer-than-cp",
        given: Given::Hosts(|| {
            let mut world = World::built(HOMELAB);
            let packages = &mut world.host(&name("w1")).packages;
            packages.get_mut("kubelet").unwrap().installed = Some("1.35.1-1.1".to_owned());
            packages.get_mut("kubeadm").unwrap().held = false;
            world
        }),
        wants: &[
            Fixed("K8S-PKG-003", "w1"),
            Fixed("K8S-PKG-004", "w1"),
            Brings("w1", "kubelet=1.34.4-*"),
        ],
    },
];
