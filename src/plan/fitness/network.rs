//! Networks that hosts are in already, against those that the cluster is to have.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use crate::check::{self, Check, Finding};
use crate::cluster::{Cluster, Role};
use crate::facts::HostFacts;
use crate::plan::apply::Member;

/// Pod and service networks that hide something from the host, or are hidden by it.
pub(super) fn overlaps(cluster: &Cluster, part: &Member<'_>) -> Vec<Finding> {
    let known = networks(part.facts);
    let mut found = Vec::new();
    let kinds: [(&'static Check, &str, Ipv4Net); 2] = [
        (&check::POD_CIDR, "pod", cluster.pod_cidr),
        (&check::SERVICE_CIDR, "service", cluster.service_cidr),
    ];
    for (check, what, cidr) in kinds {
        // The first says enough.
        let clash = known
            .iter()
            .find(|(network, _)| network.contains(&cidr) || cidr.contains(network));
        if let Some((network, evidence)) = clash {
            let message = format!("the {what} CIDR {cidr} overlaps {network}, which the host knows already");
            found.push(check.on(&part.host.name, message).evidence(evidence));
        }
    }
    let servers = part.facts.nameservers.iter();
    let hidden = servers
        .filter_map(|server| server.parse::<Ipv4Addr>().ok())
        .find(|server| cluster.service_cidr.contains(server) || cluster.pod_cidr.contains(server));
    if let Some(server) = hidden {
        let message = format!("its nameserver {server} is within the pod or service CIDR, so it could not be reached");
        found.push(
            check::SERVICE_CIDR
                .on(&part.host.name, message)
                .evidence(format!("/etc/resolv.conf: nameserver {server}")),
        );
    }
    found
}

/// Networks of the host with how it knows them, but for those of an earlier cluster and the way to everywhere.
fn networks(facts: &HostFacts) -> Vec<(Ipv4Net, String)> {
    let ours = |interface: &str| {
        interface == "lo" || interface == "cni0" || interface == "kube-ipvs0" || interface.starts_with("flannel")
    };
    let addresses = facts
        .addresses
        .iter()
        .filter(|entry| !ours(&entry.interface))
        .map(|entry| {
            (
                entry.address.trunc(),
                format!("{} on {}", entry.address, entry.interface),
            )
        });
    let routes = facts
        .routes
        .iter()
        .filter(|route| !ours(&route.interface) && route.destination.prefix_len() > 0)
        .map(|route| {
            (
                route.destination,
                format!("route to {} through {}", route.destination, route.interface),
            )
        });
    addresses.chain(routes).collect()
}

/// No way out, or none by the interface that the inventory names.
pub(super) fn without_way(cluster: &Cluster, part: &Member<'_>) -> Vec<Finding> {
    let (host, facts) = (part.host, part.facts);
    let mut found = Vec::new();
    if !facts.addresses.is_empty() && facts.routes.iter().all(|route| route.destination.prefix_len() > 0) {
        found.push(check::NO_DEFAULT_ROUTE.on(&host.name, "it has no default route"));
    }
    let wanted = host.interface.as_ref().or(cluster.flannel.interface.as_ref());
    if let Some(wanted) = wanted.filter(|_| !facts.links.is_empty()) {
        let carries = facts
            .addresses
            .iter()
            .any(|entry| entry.interface == *wanted && entry.address.addr() == host.address);
        let message = if !facts.links.contains_key(wanted) {
            Some(format!("it has no interface {wanted}"))
        } else if !carries {
            Some(format!(
                "its interface {wanted} does not have the address {}",
                host.address
            ))
        } else {
            None
        };
        let links: Vec<_> = facts.links.keys().map(String::as_str).collect();
        found.extend(message.map(|message| {
            check::INTERFACE
                .on(&host.name, message)
                .evidence(format!("interfaces: {}", links.join(", ")))
        }));
    }
    found
}

/// host-gw routes by the nodes' own addresses, so nothing may lie between them.
pub(super) fn host_gateways(cluster: &Cluster, parts: &[Member<'_>]) -> Option<Finding> {
    if cluster.flannel.backend != "host-gw" {
        return None;
    }
    let mut networks: Vec<(Ipv4Net, &str)> = Vec::new();
    for part in parts.iter().filter(|part| part.host.role != Role::LoadBalancer) {
        let own = part
            .facts
            .addresses
            .iter()
            .find(|entry| entry.address.addr() == part.host.address)?;
        networks.push((own.address.trunc(), part.host.name.as_str()));
    }
    let (first, one) = *networks.first()?;
    let (second, other) = *networks.iter().find(|(network, _)| *network != first)?;
    Some(check::HOST_GW.at_large(format!(
        "flannel's backend is host-gw, but {one} is in {first} and {other} in {second}"
    )))
}
