//! `kubeadm init`: a control plane is founded and what it publishes, part by part.

use std::collections::{BTreeMap, BTreeSet};

use k8sup::cluster::{NodeName, Role};
use k8sup::facts::cluster::Rollout;
use k8sup::facts::kube::Certificate;
use k8sup::facts::{ClusterFacts, Seen};
use serde_json::Value;

use super::World;
use super::etcd::voter;
use super::kubeadm::{certificate, documents, of_kind};

/// A Corefile like kubeadm's.
const COREFILE: &str = ".:53 {\n    errors\n    kubernetes cluster.local\n    forward . /etc/resolv.conf {\n       max_concurrent 1000\n    }\n    cache 30\n}\n";

impl World {
    pub(super) fn found(&mut self, name: &NodeName, config: &str, parts: usize) {
        self.assert_prepared(name);
        let host = self.inventory(name);
        let documents = documents(config);
        let init = of_kind(&documents, "InitConfiguration");
        assert_eq!(init["localAPIEndpoint"]["advertiseAddress"], host.address.to_string());
        self.assert_kubelet_arguments(&host, init);
        let kube = &self.host(name).kube;
        let manifest = kube
            .files
            .iter()
            .find(|file| file.starts_with("/etc/kubernetes/manifests/"));
        assert_eq!(manifest, None, "[ERROR FileAvailable] on {name}");
        assert!(
            !kube.etcd_data && !kube.etcd_dir_used,
            "[ERROR DirAvailable--var-lib-etcd] on {name}"
        );
        assert!(
            !self
                .hosts
                .iter()
                .any(|(other, facts)| other != name && facts.kube.etcd_data),
            "a second cluster is founded on {name}"
        );
        // A certificate authority that is there is used.
        if let Seen::Present(ca) = &self.host(name).kube.ca {
            self.ca = Some(ca.clone());
        } else {
            self.ca = None;
        }
        let ca = self.authority();
        let sans = of_kind(&documents, "ClusterConfiguration")["apiServer"]["certSANs"].clone();
        if parts > 0 {
            self.pki(&host, &ca, &sans);
        }
        if parts > 1 {
            self.kubeconfigs(&host, &ca, true);
        }
        if parts > 2 {
            self.manifests(name, &["etcd"]);
        }
        if parts > 3 {
            self.manifests(name, &["kube-apiserver", "kube-controller-manager", "kube-scheduler"]);
        }
        if parts > 4 {
            // The kubelet starts, and with it everything else.
            self.kubelet_files(name);
            self.host(name).kube.etcd_data = true;
            self.host(name).kube.readyz = Seen::Unknown("connection refused".to_owned());
            self.live = Some(ClusterFacts {
                nodes: Seen::Present(BTreeMap::new()),
                members: Seen::Present(vec![voter(&host)]),
                bootstrap_tokens: Seen::Present(BTreeSet::new()),
                ..ClusterFacts::default()
            });
        }
        if parts > 5 {
            self.host(name).kube.readyz = Seen::Present("ok".to_owned());
            self.register(&host, init);
        }
    }

    pub(super) fn await_api(&mut self, host: &NodeName) {
        assert!(self.live.is_some(), "{host}: no control plane was started");
        self.host(host).kube.readyz = Seen::Present("ok".to_owned());
        // Its kubelet registers itself as soon as somebody answers.
        if self.node(host).is_none() {
            let host = self.inventory(host);
            self.register(&host, &Value::Null);
        }
    }

    pub(super) fn publish(&mut self, name: &NodeName, config: &str, parts: usize) {
        self.assert_leads(name);
        assert!(
            self.cluster.role(Role::LoadBalancer).next().is_none()
                || self
                    .cluster
                    .role(Role::LoadBalancer)
                    .any(|host| self.hosts[&host.name].services.get("haproxy").is_some_and(|s| s.active)),
            "the endpoint leads nowhere"
        );
        let documents = documents(config);
        let host = self.inventory(name);
        let taints = of_kind(&documents, "InitConfiguration")["nodeRegistration"]["taints"].clone();
        let live = self.live.as_mut().unwrap();
        let whole = Rollout {
            desired: 1,
            available: 1,
            current: true,
        };
        if parts > 0 {
            live.cluster_admins = Seen::Present(());
            live.kubeadm_config = Seen::Present(of_kind(&documents, "ClusterConfiguration").clone());
        }
        if parts > 1 {
            live.kubelet_config = Seen::Present(of_kind(&documents, "KubeletConfiguration").clone());
        }
        if parts > 2 {
            live.uploaded_certs = Seen::Present(());
        }
        if parts > 3 {
            self.mark_control_plane(&host, &taints);
        }
        if parts > 4 {
            self.mint();
        }
        let live = self.live.as_mut().unwrap();
        if parts > 5 {
            live.cluster_info = Seen::Present(());
        }
        if parts > 6 {
            live.coredns = Seen::Present(whole);
            live.corefile = Seen::Present(COREFILE.to_owned());
        }
        if parts > 7 {
            live.kube_proxy = Seen::Present(whole);
            live.kube_proxy_config = Seen::Present(of_kind(&documents, "KubeProxyConfiguration").clone());
        }
    }

    fn authority(&mut self) -> Certificate {
        if self.ca.is_none() {
            self.authorities += 1;
            self.ca = Some(certificate("CN=kubernetes", &format!("authority {}", self.authorities)));
        }
        self.ca.clone().unwrap()
    }
}
