//! Whether hosts can become part of a cluster: what no step could mend, found before the first change.
//!
//! One module for each kind of trouble, each a function from facts to findings. What would have been in the way of a
//! host that is a member by now is not looked for: it runs.

mod balancer;
mod board;
mod clocks;
mod disks;
mod firewall;
mod kernel;
mod leftovers;
mod machine;
mod names;
mod network;
pub(super) mod paths;
mod ports;
mod surroundings;
mod swap;
mod system;

use super::apply::Member;
use crate::check::{Finding, Level};
use crate::cluster::{Cluster, NodeName, Role};
use crate::facts::ClusterFacts;

/// Everything found on the hosts that can be looked at; `named` are those that are to be changed.
pub(super) fn findings(
    cluster: &Cluster,
    parts: &[Member<'_>],
    named: &[&Member<'_>],
    live: Option<&ClusterFacts>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for part in parts {
        found.extend(system::unfit(part));
        found.extend(machine::unfit(part));
        found.extend(kernel::overruled(part));
        found.extend(board::power(part));
        found.extend(names::oddities(cluster, part));
    }
    found.extend(names::alike(cluster, parts));
    for part in named {
        found.extend(ports::taken(cluster, part));
        found.extend(balancer::other_haproxy(cluster, part));
        found.extend(firewall::stops(cluster, part));
        found.extend(leftovers::pod_network(part, live));
        found.extend(machine::strange_data(cluster, part));
        found.extend(surroundings::masked(part));
        if part.host.role != Role::LoadBalancer {
            found.extend(swap::stubborn(part));
        }
    }
    let coming: Vec<&Member<'_>> = named.iter().copied().filter(|part| part.comes()).collect();
    for part in &coming {
        found.extend(surroundings::refused(part));
        found.extend(surroundings::told(cluster, part));
        found.extend(leftovers::other_kubernetes(part));
        found.extend(leftovers::other_etcd(part));
        found.extend(leftovers::mounts(part));
        found.extend(leftovers::kubeconfigs(cluster, part));
        found.extend(machine::too_small(part));
        found.extend(kernel::unfit(cluster, part));
        found.extend(disks::too_small(part));
        found.extend(disks::etcds(part));
        found.extend(network::overlaps(cluster, part));
        found.extend(network::without_way(cluster, part));
        found.extend(names::endpoint_elsewhere(cluster, part));
    }
    if !coming.is_empty() {
        found.extend(balancer::of_others(cluster));
        found.extend(surroundings::controller_manager(parts, live));
        found.extend(clocks::unkept(&coming));
        found.extend(clocks::apart(parts));
        found.extend(network::host_gateways(cluster, parts));
    }
    together(found, parts)
}

/// Warnings that say the same of several hosts, as one.
fn together(found: Vec<Finding>, parts: &[Member<'_>]) -> Vec<Finding> {
    let alike = |one: &Finding, other: &Finding| {
        one.check == other.check
            && one.check.level == Level::Warn
            && one.message == other.message
            && one.hint == other.hint
    };
    let mut told: Vec<(Finding, Vec<NodeName>)> = Vec::new();
    for finding in found {
        let Some(host) = finding.host.clone() else {
            told.push((finding, Vec::new()));
            continue;
        };
        match told
            .iter_mut()
            .find(|(known, hosts)| !hosts.is_empty() && alike(known, &finding))
        {
            Some((_, hosts)) => hosts.push(host),
            None => told.push((finding, vec![host])),
        }
    }
    let nodes = parts.iter().filter(|part| part.host.role != Role::LoadBalancer).count();
    let several = |(finding, hosts): (Finding, Vec<NodeName>)| {
        if hosts.len() < 2 {
            return finding;
        }
        let who = match hosts.len() {
            all if all == parts.len() => format!("all {all} hosts"),
            all if all == nodes => format!("all {all} nodes"),
            _ => hosts.iter().map(NodeName::as_str).collect::<Vec<_>>().join(", "),
        };
        Finding {
            host: None,
            message: format!("on {who}: {}", finding.message),
            // What each of them said may differ.
            evidence: None,
            ..finding
        }
    };
    told.into_iter().map(several).collect()
}
