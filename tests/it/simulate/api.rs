//! What is changed through the API of a cluster that answers: Nodes, tokens, Flannel; and who may do it.

use k8sup::cluster::{NodeName, Taint};
use k8sup::facts::cluster::{NodeFact, Rollout};
use k8sup::facts::{ClusterFacts, Seen};

use super::World;
use super::kubeadm::{documents, of_kind};

impl World {
    /// The cluster, where its API answers.
    pub(crate) fn api(&mut self) -> &mut ClusterFacts {
        self.live.as_mut().unwrap()
    }

    pub(super) fn assert_leads(&mut self, host: &NodeName) {
        let kube = &self.host(host).kube;
        let serves = kube.readyz.present().is_some_and(|answer| answer == "ok");
        assert!(
            kube.has("admin.conf") && serves && self.live.is_some(),
            "{host} cannot act for the cluster"
        );
    }

    /// A Node.
    pub(crate) fn node(&mut self, name: &NodeName) -> Option<&mut NodeFact> {
        match &mut self.api().nodes {
            Seen::Present(nodes) => nodes.get_mut(name.as_str()),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn forget(&mut self, node: &NodeName) {
        match &mut self.api().nodes {
            Seen::Present(nodes) => nodes.remove(node.as_str()),
            other => panic!("{other:?}"),
        };
    }

    pub(super) fn node_settings(&mut self, host: &NodeName, node: &NodeName, labels: &[String], taints: &[String]) {
        self.assert_leads(host);
        let fact = self
            .node(node)
            .unwrap_or_else(|| panic!("node {node} did not register"));
        for label in labels {
            if let Some(key) = label.strip_suffix('-') {
                fact.labels.remove(key);
                continue;
            }
            let (key, value) = label.split_once('=').unwrap();
            fact.labels.insert(key.to_owned(), value.to_owned());
        }
        for text in taints {
            if let Some(gone) = text.strip_suffix('-') {
                let before = fact.taints.len();
                fact.taints
                    .retain(|taint| format!("{}:{}", taint.key, taint.effect) != gone);
                assert!(fact.taints.len() < before, "taint {gone:?} not found");
                continue;
            }
            let (rest, effect) = text.rsplit_once(':').unwrap();
            let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
            let taint = Taint {
                key: key.to_owned(),
                value: value.to_owned(),
                effect: effect.to_owned(),
            };
            fact.taints
                .retain(|other| other.key != taint.key || other.effect != taint.effect);
            fact.taints.push(taint);
        }
    }

    pub(super) fn mint(&mut self) {
        self.minted = true;
        match &mut self.api().bootstrap_tokens {
            Seen::Present(ids) => ids.insert("k8sabc".to_owned()),
            other => panic!("{other:?}"),
        };
    }

    pub(super) fn revoke(&mut self, host: &NodeName) {
        self.assert_leads(host);
        self.minted = false;
        self.api().uploaded_certs = Seen::Absent;
        if let Seen::Present(ids) = &mut self.api().bootstrap_tokens {
            ids.retain(|id| !id.starts_with("k8s"));
        }
    }

    pub(super) fn flannel(&mut self, host: &NodeName, manifest: &str) {
        self.assert_leads(host);
        let documents = documents(manifest);
        let hash = of_kind(&documents, "DaemonSet")["metadata"]["annotations"]["k8sup.dev/manifest-sha256"].clone();
        let network = of_kind(&documents, "ConfigMap")["data"]["net-conf.json"]
            .as_str()
            .unwrap()
            .to_owned();
        let live = self.api();
        live.flannel = Seen::Present(Rollout {
            desired: 1,
            available: 1,
            current: true,
        });
        live.flannel_hash = Seen::Present(hash.as_str().unwrap().to_owned());
        live.flannel_network = Seen::Present(serde_json::from_str(&network).unwrap());
        for facts in self.hosts.values_mut().filter(|facts| facts.kube.has("kubelet.conf")) {
            facts.kube.files.insert("/etc/cni/net.d/10-flannel.conflist".to_owned());
            facts.links.insert("flannel.1".to_owned(), 1450);
        }
    }

    pub(super) fn user_kubeconfig(&mut self, host: &NodeName, user: &str, home: &str) {
        let server = format!("https://{}", self.cluster.endpoint);
        let facts = self.host(host);
        assert!(facts.kube.has("admin.conf"), "{host}: no admin.conf");
        assert_eq!((user, home), (facts.login.user.as_str(), facts.login.home.as_str()));
        facts.login.kubeconfig_ca = Seen::Present(facts.kube.ca.present().unwrap().spki_sha256.clone());
        facts.login.kubeconfig_server = Some(server);
        self.record(host);
    }
}
