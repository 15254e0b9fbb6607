//! The cluster that the golden tests render.

use crate::cluster::{Cluster, Host, NodeName, sample};

/// One load balancer, three controllers, two workers.
pub(crate) fn homelab() -> Cluster {
    sample::cluster(
        "
cluster:
  name: homelab
  kubernetes: v1.34.4
  keyAlgorithm: ECDSA-P256
  certSans: [k8s.example.org]
loadBalancers: { lb-0: 192.168.7.140 }
controllers: { cp1: 192.168.7.201, cp2: 192.168.7.202, cp3: 192.168.7.203 }
workers: { w1: 192.168.7.204, w2: 192.168.7.205 }
flannel: { manifest: kube-flannel.yml }
",
    )
}

/// The host of that name.
pub(crate) fn named<'a>(cluster: &'a Cluster, name: &str) -> &'a Host {
    cluster.host(&NodeName::parse(name).unwrap()).unwrap()
}
