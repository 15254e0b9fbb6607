//! Who else listens where the cluster must.

use crate::check::{self, Finding};
use crate::cluster::{Cluster, Role};
use crate::plan::apply::Member;
use crate::plan::standing::Standing;

/// API server, etcd (clients, peers, metrics), kubelet (API, health), kube-proxy (metrics, health), controller manager,
/// scheduler.
const CONTROLLER: &[u16] = &[6443, 2379, 2380, 2381, 10250, 10248, 10249, 10256, 10257, 10259];
const WORKER: &[u16] = &[10250, 10248, 10249, 10256];

/// Ports that the host's part in the cluster needs, while somebody else listens on them.
pub(super) fn taken(cluster: &Cluster, part: &Member<'_>) -> Vec<Finding> {
    let (host, facts) = (part.host, part.facts);
    let mine = |process: &str| match (host.role, &part.standing) {
        (Role::LoadBalancer, _) => process == "haproxy",
        // Its own static pods and its kubelet are cleared with the rest.
        (_, Standing::HalfMade(_)) => process.starts_with("kube") || process == "etcd",
        (_, _) => false,
    };
    // With its page of statistics.
    let balancer = [cluster.endpoint.port, 9000];
    let needed: &[u16] = match host.role {
        Role::LoadBalancer => &balancer,
        Role::Controller if part.comes() => CONTROLLER,
        Role::Worker if part.comes() => WORKER,
        Role::Controller | Role::Worker => &[],
    };
    let taken = facts
        .listening
        .iter()
        .filter(|listener| needed.contains(&listener.port));
    // The listener of another look's proof is gone in a moment.
    let passing = |process: &str| process == "k8sup-listen";
    let foreign = taken.filter(|listener| {
        let process = listener.process.as_deref();
        process.is_none_or(|process| !mine(process) && !passing(process))
    });
    let mut found: Vec<Finding> = Vec::new();
    for listener in foreign {
        let process = listener.process.as_deref().unwrap_or("a process that cannot be told");
        let message = format!("port {} is taken by {process}", listener.port);
        if found.iter().all(|finding| finding.message != message) {
            let hint = format!(
                "the {} needs this port: stop {process}, or move it to another port",
                host.role
            );
            found.push(
                check::PORT_TAKEN
                    .on(&host.name, message)
                    .evidence(format!("{}:{} {process}", listener.address, listener.port))
                    .hint(hint),
            );
        }
    }
    found
}
