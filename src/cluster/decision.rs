//! What cannot be changed once a cluster stands, each with where the value comes from.
//!
//! Read off a resolved cluster and the inventory's text; the planner shows them before a cluster is founded.

use serde::{Serialize, Serializer};

use super::{Cluster, Role};
use crate::inventory::Inventory;
use crate::inventory::raw::At;

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// What is decided, as `pod network`.
    pub what: String,
    /// What was chosen.
    pub value: String,
    /// Who says so.
    pub source: Source,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A line of the inventory, from one.
    Line(usize),
    /// Nobody named another.
    Default,
    /// It follows from something else: `from loadBalancers`.
    Follows(String),
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line} of the inventory"),
            Self::Default => f.write_str("default"),
            Self::Follows(from) => f.write_str(from),
        }
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Decision {
    /// A decision.
    #[must_use]
    pub fn new(what: &str, value: impl Into<String>, source: Source) -> Self {
        Self {
            what: what.to_owned(),
            value: value.into(),
            source,
        }
    }
}

/// All that the inventory decides, whether it says so or not.
pub(super) fn of(cluster: &Cluster, inventory: &Inventory, text: &str) -> Vec<Decision> {
    let line = |start: usize| Source::Line(1 + text.get(..start).unwrap_or_default().matches('\n').count());
    let from = |at: Option<&At<String>>| at.map_or(Source::Default, |at| line(at.span.start));
    let number = |at: Option<&At<u64>>| at.map_or(Source::Default, |at| line(at.span.start));
    let (section, flannel) = (&inventory.cluster, &inventory.flannel);
    let endpoint = match &section.endpoint {
        Some(at) => line(at.span.start),
        None if cluster.role(Role::LoadBalancer).next().is_some() => Source::Follows("from loadBalancers".to_owned()),
        None => Source::Follows("from controllers".to_owned()),
    };
    let mut decisions = vec![
        Decision::new("endpoint", cluster.endpoint.to_string(), endpoint),
        Decision::new(
            "version",
            cluster.version.to_string(),
            from(section.kubernetes.as_ref()),
        ),
        Decision::new(
            "pod network",
            cluster.pod_cidr.to_string(),
            from(section.pod_cidr.as_ref()),
        ),
        Decision::new(
            "service network",
            cluster.service_cidr.to_string(),
            from(section.service_cidr.as_ref()),
        ),
        Decision::new(
            "DNS domain",
            cluster.dns_domain.clone(),
            from(section.dns_domain.as_ref()),
        ),
        match &cluster.key_algorithm {
            Some(algorithm) => Decision::new("keys", algorithm.clone(), from(section.key_algorithm.as_ref())),
            None => Decision::new("keys", "RSA-2048", Source::Default),
        },
        Decision::new(
            "CNI",
            format!("Flannel {}", cluster.flannel.version),
            from(flannel.version.as_ref()),
        ),
        Decision::new(
            "CNI backend",
            cluster.flannel.backend.clone(),
            from(flannel.backend.as_ref()),
        ),
    ];
    let port = |port: u16| format!("{port}/udp");
    match cluster.flannel.backend.as_str() {
        "vxlan" => {
            let chosen = cluster.flannel.port.unwrap_or(8472);
            decisions.push(Decision::new("CNI port", port(chosen), number(flannel.port.as_ref())));
            let vni = cluster.flannel.vni.to_string();
            decisions.push(Decision::new("CNI VNI", vni, number(flannel.vni.as_ref())));
        }
        "wireguard" => decisions.push(Decision::new("CNI port", port(51820), Source::Default)),
        _ => {}
    }
    let mtu = cluster
        .flannel
        .mtu
        .map_or_else(|| "what each node's interface leaves".to_owned(), |mtu| mtu.to_string());
    decisions.push(Decision::new("CNI MTU", mtu, number(flannel.mtu.as_ref())));
    let names: Vec<_> = cluster.nodes().map(|host| host.name.as_str()).collect();
    let lines = [&inventory.controllers, &inventory.workers]
        .into_iter()
        .flat_map(|section| &section.hosts)
        .map(|host| line(host.name.span.start));
    let lines: Vec<usize> = lines
        .filter_map(|source| match source {
            Source::Line(line) => Some(line),
            Source::Default | Source::Follows(_) => None,
        })
        .collect();
    let source = match (lines.iter().min(), lines.iter().max()) {
        (Some(first), Some(last)) if first != last => {
            Source::Follows(format!("lines {first} to {last} of the inventory"))
        }
        (Some(only), _) => Source::Line(*only),
        (None, _) => Source::Default,
    };
    decisions.push(Decision::new("node names", names.join(", "), source));
    decisions
}
