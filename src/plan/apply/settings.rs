//! Labels and taints of a Node: what the inventory lists is set; what k8sup has set and the inventory does not list any
//! more is taken off. What others have put there stays.

use std::collections::BTreeSet;

use super::Planner;
use crate::cluster::{Host, Role, Taint};
use crate::facts::cluster::NodeFact;
use crate::plan::{Planned, Step};

const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

impl Planner<'_> {
    /// What a Node lacks or has too much; a new Node's taints are kubeadm's business.
    pub(super) fn node_settings(&self, host: &Host, new: bool) -> Option<Planned> {
        let node = self
            .live
            .and_then(|live| live.nodes.present()?.get(host.name.as_str()))
            .filter(|_| !new);
        let mut wanted = host.labels.clone();
        if host.role == Role::Controller && !new {
            wanted.insert(CONTROL_PLANE.to_owned(), String::new());
        }
        let mut labels: Vec<String> = wanted
            .iter()
            .filter(|(key, value)| node.is_none_or(|node| node.labels.get(*key) != Some(*value)))
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let mut taints: Vec<String> = taints(host)
            .iter()
            .filter(|taint| !new && node.is_none_or(|node| !node.taints.contains(taint)))
            .map(|taint| match taint.value.as_str() {
                "" => entry(taint),
                value => format!("{}={value}:{}", taint.key, taint.effect),
            })
            .collect();
        let record = Record::of(host, node);
        if labels.is_empty() && taints.is_empty() && !record.changes() {
            return None;
        }
        let mut reasons = Vec::new();
        if !labels.is_empty() || !taints.is_empty() {
            let lacking: Vec<&str> = labels.iter().chain(&taints).map(String::as_str).collect();
            reasons.push(format!("it lacks {}", lacking.join(", ")));
        }
        let dropped: Vec<String> = record.announced.difference(&record.managed).cloned().collect();
        if !dropped.is_empty() {
            reasons.push(format!("the inventory lists no more: {}", dropped.join(", ")));
        }
        if reasons.is_empty() {
            reasons.push("the Node is to know which of its taints are the inventory's".to_owned());
        }
        for gone in dropped {
            if node.is_some_and(|node| node.labels.contains_key(&gone)) {
                labels.push(format!("{gone}-"));
            } else if node.is_some_and(|node| node.taints.iter().any(|taint| entry(taint) == gone)) {
                taints.push(format!("{gone}-"));
            }
        }
        Some(Planned::new(
            Step::NodeSettings {
                node: host.name.clone(),
                labels,
                taints,
                announced: record.announced.into_iter().collect(),
                managed: record.managed.into_iter().collect(),
            },
            reasons.join("; "),
        ))
    }
}

/// Label keys, and `key:effect` of taints, that k8sup has put on a Node.
struct Record {
    /// As the Node has it now.
    known: BTreeSet<String>,
    /// With what comes; nothing is dropped from it before it is off.
    announced: BTreeSet<String>,
    /// In the end.
    managed: BTreeSet<String>,
}

impl Record {
    fn of(host: &Host, node: Option<&NodeFact>) -> Self {
        let known = node.map(|node| node.managed.clone()).unwrap_or_default();
        let set_labels = host
            .labels
            .iter()
            .filter(|(key, value)| node.is_none_or(|node| node.labels.get(*key) != Some(*value)))
            .map(|(key, _)| key.clone());
        let set_taints = host
            .taints
            .iter()
            .flatten()
            .filter(|taint| node.is_none_or(|node| !node.taints.contains(taint)))
            .map(entry);
        // kubeadm's own are never taken off.
        let set: BTreeSet<String> = set_labels.chain(set_taints).filter(|entry| !kubeadms(entry)).collect();
        let listed =
            |entry: &String| host.labels.contains_key(entry) || taints(host).iter().any(|t| self::entry(t) == *entry);
        Self {
            announced: known.union(&set).cloned().collect(),
            managed: known
                .iter()
                .filter(|entry| listed(entry))
                .chain(&set)
                .cloned()
                .collect(),
            known,
        }
    }

    fn changes(&self) -> bool {
        self.known != self.managed
    }
}

/// The taints that the Node is to have.
fn taints(host: &Host) -> Vec<Taint> {
    match (&host.taints, host.role) {
        (Some(taints), _) => taints.clone(),
        (None, Role::Controller) => vec![Taint {
            key: CONTROL_PLANE.to_owned(),
            value: String::new(),
            effect: "NoSchedule".to_owned(),
        }],
        (None, _) => Vec::new(),
    }
}

fn entry(taint: &Taint) -> String {
    format!("{}:{}", taint.key, taint.effect)
}

fn kubeadms(entry: &str) -> bool {
    entry.split(':').next() == Some(CONTROL_PLANE)
}
