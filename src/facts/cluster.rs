//! What the API and etcd say about the cluster, asked on one controller.

use std::collections::{BTreeMap, BTreeSet};

use super::Seen;
use crate::cluster::{NodeName, Taint};

/// The cluster, as one of its controllers sees it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClusterFacts {
    /// The controller that was asked.
    pub asked: Option<NodeName>,
    /// Nodes by name; unknown when the API did not answer.
    pub nodes: Seen<BTreeMap<String, NodeFact>>,
    /// etcd's members; unknown when etcd did not answer.
    pub members: Seen<Vec<Member>>,
    /// `ClusterConfiguration` of kube-system/kubeadm-config.
    pub kubeadm_config: Seen<serde_json::Value>,
    /// `KubeletConfiguration` of kube-system/kubelet-config.
    pub kubelet_config: Seen<serde_json::Value>,
    /// `KubeProxyConfiguration` of kube-system/kube-proxy.
    pub kube_proxy_config: Seen<serde_json::Value>,
    /// kube-public/cluster-info exists.
    pub cluster_info: Seen<()>,
    /// `ClusterRoleBinding` kubeadm:cluster-admins exists.
    pub cluster_admins: Seen<()>,
    /// `DaemonSet` kube-system/kube-proxy.
    pub kube_proxy: Seen<Rollout>,
    /// Deployment kube-system/coredns.
    pub coredns: Seen<Rollout>,
    /// Corefile of kube-system/coredns.
    pub corefile: Seen<String>,
    /// `DaemonSet` kube-flannel/kube-flannel-ds.
    pub flannel: Seen<Rollout>,
    /// Annotation `k8sup.dev/manifest-sha256` of Flannel's `DaemonSet`.
    pub flannel_hash: Seen<String>,
    /// `net-conf.json` of Flannel's `ConfigMap`.
    pub flannel_network: Seen<serde_json::Value>,
    /// When the controller manager last renewed its lease, in seconds since the epoch.
    pub controller_manager: Seen<i64>,
    /// Ids of bootstrap tokens.
    pub bootstrap_tokens: Seen<BTreeSet<String>>,
    /// Secret kube-system/kubeadm-certs exists.
    pub uploaded_certs: Seen<()>,
}

/// A Node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeFact {
    /// Condition Ready is True.
    pub ready: bool,
    /// Message of the Ready condition.
    pub ready_message: String,
    /// Of what the kubelet is short, by its conditions: `DiskPressure`, `MemoryPressure`, `PIDPressure`. It evicts pods then.
    pub pressure: Vec<String>,
    /// `InternalIP`.
    pub internal_ip: Option<String>,
    /// kubelet's version, `v1.34.4`.
    pub kubelet_version: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints.
    pub taints: Vec<Taint>,
    /// Annotation `k8sup.dev/managed`: label keys and `key:effect` of taints that k8sup has put there.
    pub managed: BTreeSet<String>,
    /// Annotation flannel.alpha.coreos.com/public-ip.
    pub flannel_public_ip: Option<String>,
    /// podCIDR.
    pub pod_cidr: Option<String>,
    /// Creation time, RFC 3339.
    pub created: String,
    /// Cordoned.
    pub unschedulable: bool,
}

/// A member of etcd.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Member {
    /// Id in hex, as etcdctl takes it.
    pub id: String,
    /// Name; empty before the member started.
    pub name: String,
    /// Peer URLs.
    pub peer_urls: Vec<String>,
    /// Not a voter yet.
    pub learner: bool,
}

/// Replicas of a `DaemonSet` or Deployment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rollout {
    /// Wanted replicas.
    pub desired: u64,
    /// Available ones.
    pub available: u64,
    /// The controller has seen the newest generation and updated all replicas.
    pub current: bool,
}
