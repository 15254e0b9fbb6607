//! What `kubeadm init` and `kubeadm join` have in common: certificates, kubeconfigs, manifests, the kubelet's files, the
//! Node, and the documents that they read.

use std::collections::BTreeMap;

use k8sup::cluster::{Host, NodeName, Taint};
use k8sup::facts::Seen;
use k8sup::facts::cluster::NodeFact;
use k8sup::facts::kube::{Certificate, Kubeconfig};
use serde_json::Value;

use super::World;

impl World {
    /// `node-ip` is the inventory's address, and a resolver file that is named is there.
    pub(super) fn assert_kubelet_arguments(&self, host: &Host, document: &Value) {
        let registration = &document["nodeRegistration"];
        assert_eq!(registration["name"], host.name.as_str());
        let argument = |name: &str| {
            let arguments = registration["kubeletExtraArgs"].as_array().unwrap();
            arguments
                .iter()
                .find(|argument| argument["name"] == name)
                .map(|argument| argument["value"].as_str().unwrap().to_owned())
        };
        assert_eq!(argument("node-ip"), Some(host.address.to_string()));
        let facts = &self.hosts[&host.name];
        match argument("resolv-conf").as_deref() {
            None => {}
            Some("/run/systemd/resolve/resolv.conf") => assert!(facts.resolved.present().is_some()),
            Some(path) => assert!(facts.files.contains_key(path), "{}: no {path}", host.name),
        }
    }

    pub(super) fn pki(&mut self, host: &Host, ca: &Certificate, sans: &Value) {
        let mut apiserver = certificate("CN=kube-apiserver", &format!("apiserver of {}", host.name));
        let own = [host.name.to_string(), host.address.to_string()];
        let sans = sans
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|san| Some(san.as_str()?.to_owned()));
        for san in sans.chain(own) {
            match san.parse() {
                Ok(address) => apiserver.addresses.insert(address),
                Err(_) => apiserver.dns_names.insert(san),
            };
        }
        let kube = &mut self.host(&host.name).kube;
        for file in [
            "ca.crt",
            "ca.key",
            "apiserver.crt",
            "apiserver.key",
            "sa.pub",
            "sa.key",
            "front-proxy-ca.crt",
            "etcd/ca.crt",
            "etcd/peer.crt",
        ] {
            kube.files.insert(format!("/etc/kubernetes/pki/{file}"));
        }
        kube.ca = Seen::Present(ca.clone());
        kube.apiserver = Seen::Present(apiserver);
    }

    pub(super) fn kubeconfigs(&mut self, host: &Host, ca: &Certificate, founding: bool) {
        let server = format!("https://{}", self.cluster.endpoint);
        let mut names = vec!["admin", "controller-manager", "scheduler"];
        if founding {
            names.extend(["super-admin", "kubelet"]);
        }
        let kube = &mut self.host(&host.name).kube;
        for name in names {
            let config = Kubeconfig {
                server: server.clone(),
                ca_spki_sha256: Some(ca.spki_sha256.clone()),
            };
            kube.kubeconfigs.insert(name.to_owned(), config);
            kube.files.insert(format!("/etc/kubernetes/{name}.conf"));
        }
        if founding {
            kube.kubelet = Seen::Present(certificate(
                &format!("O=system:nodes,CN=system:node:{}", host.name),
                "kubelet",
            ));
        }
    }

    pub(super) fn manifests(&mut self, host: &NodeName, names: &[&str]) {
        let files = &mut self.host(host).kube.files;
        files.extend(
            names
                .iter()
                .map(|name| format!("/etc/kubernetes/manifests/{name}.yaml")),
        );
    }

    pub(super) fn bootstrap(&mut self, host: &NodeName, ca: &Certificate) {
        let server = format!("https://{}", self.cluster.endpoint);
        let kube = &mut self.host(host).kube;
        kube.files.insert("/etc/kubernetes/bootstrap-kubelet.conf".to_owned());
        kube.files.insert("/etc/kubernetes/pki/ca.crt".to_owned());
        kube.ca = Seen::Present(ca.clone());
        let config = Kubeconfig {
            server,
            ca_spki_sha256: Some(ca.spki_sha256.clone()),
        };
        kube.kubeconfigs.insert("bootstrap-kubelet".to_owned(), config);
    }

    pub(super) fn kubelet_files(&mut self, host: &NodeName) {
        for file in ["config.yaml", "kubeadm-flags.env"] {
            self.host(host).kube.files.insert(format!("/var/lib/kubelet/{file}"));
        }
        self.host(host).services.get_mut("kubelet").unwrap().active = true;
    }

    pub(super) fn kubelet_identity(&mut self, host: &Host, ca: &Certificate) {
        let server = format!("https://{}", self.cluster.endpoint);
        let kube = &mut self.host(&host.name).kube;
        kube.files.insert("/etc/kubernetes/kubelet.conf".to_owned());
        kube.files
            .insert("/var/lib/kubelet/pki/kubelet-client-current.pem".to_owned());
        let config = Kubeconfig {
            server,
            ca_spki_sha256: Some(ca.spki_sha256.clone()),
        };
        kube.kubeconfigs.insert("kubelet".to_owned(), config);
        kube.kubelet = Seen::Present(certificate(
            &format!("O=system:nodes,CN=system:node:{}", host.name),
            "kubelet",
        ));
    }

    pub(super) fn register(&mut self, host: &Host, document: &Value) {
        let taints = taints(&document["nodeRegistration"]["taints"]).unwrap_or_default();
        let node = NodeFact {
            ready: true,
            internal_ip: Some(host.address.to_string()),
            kubelet_version: self.cluster.version.to_string(),
            labels: BTreeMap::from([("kubernetes.io/hostname".to_owned(), host.name.to_string())]),
            taints,
            flannel_public_ip: Some(host.address.to_string()),
            ..NodeFact::default()
        };
        match &mut self.api().nodes {
            Seen::Present(nodes) => nodes.insert(host.name.to_string(), node),
            other => panic!("{other:?}"),
        };
    }

    pub(super) fn mark_control_plane(&mut self, host: &Host, registration: &Value) {
        let taints = taints(registration).unwrap_or_else(|| {
            vec![Taint {
                key: "node-role.kubernetes.io/control-plane".to_owned(),
                value: String::new(),
                effect: "NoSchedule".to_owned(),
            }]
        });
        let node = self.node(&host.name).unwrap();
        node.labels
            .insert("node-role.kubernetes.io/control-plane".to_owned(), String::new());
        for taint in taints {
            if !node.taints.contains(&taint) {
                node.taints.push(taint);
            }
        }
    }
}

pub(super) fn certificate(subject: &str, key: &str) -> Certificate {
    Certificate {
        subject: subject.to_owned(),
        issuer: "CN=kubernetes".to_owned(),
        spki_sha256: key.to_owned(),
        not_after: 2_000_000_000,
        ..Certificate::default()
    }
}

pub(super) fn documents(text: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

pub(super) fn of_kind<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    documents
        .iter()
        .find(|document| document["kind"] == kind)
        .unwrap_or_else(|| panic!("no {kind}"))
}

/// Taints of a registration; `None` where kubeadm's default holds.
pub(super) fn taints(registration: &Value) -> Option<Vec<Taint>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let taints = registration.as_array()?.iter();
    Some(
        taints
            .map(|taint| Taint {
                key: text(&taint["key"]),
                value: text(&taint["value"]),
                effect: text(&taint["effect"]),
            })
            .collect(),
    )
}
