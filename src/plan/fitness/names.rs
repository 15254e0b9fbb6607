//! Names: the hosts' own, and what the endpoint's name means to them.

use std::collections::BTreeMap;

use crate::check::{self, Finding};
use crate::cluster::{Cluster, Role};
use crate::concern::names::resolves_in_a_loop;
use crate::plan::apply::Member;

/// What a person should know about the names of one host.
pub(super) fn oddities(cluster: &Cluster, part: &Member<'_>) -> Vec<Finding> {
    let (name, hostname) = (&part.host.name, &part.facts.hostname);
    let mut found = Vec::new();
    if hostname != name.as_str() && !cluster.set_hostnames {
        let message = format!("the host calls itself {hostname}; its Node will be {name}");
        found.push(check::HOSTNAME_DIFFERS.on(name, message));
    }
    if part.host.role != Role::LoadBalancer && resolves_in_a_loop(cluster, part.facts) {
        let message = "its /etc/resolv.conf names only its own loopback, which pods cannot use";
        found.push(check::RESOLVER_LOOP.on(name, message));
    }
    found
}

/// Hosts that call themselves alike. Nodes and etcd's members are named by the inventory, so nothing breaks; people,
/// logs and DHCP mix them up.
pub(super) fn alike(cluster: &Cluster, parts: &[Member<'_>]) -> Vec<Finding> {
    if cluster.set_hostnames {
        return Vec::new();
    }
    let mut same: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for part in parts {
        let short = part.facts.hostname.split('.').next().unwrap_or_default();
        same.entry(short.to_ascii_lowercase())
            .or_default()
            .push(part.host.name.as_str());
    }
    same.into_iter()
        .filter(|(name, hosts)| !name.is_empty() && hosts.len() > 1)
        .map(|(name, hosts)| check::HOSTNAMES_ALIKE.at_large(format!("{} call themselves {name}", hosts.join(", "))))
        .collect()
}

/// The endpoint's name leads a node somewhere else than to the cluster.
pub(super) fn endpoint_elsewhere(cluster: &Cluster, part: &Member<'_>) -> Option<Finding> {
    let name = &cluster.endpoint.host;
    let addresses = part.facts.endpoint_resolves.present()?;
    let first = addresses.first()?;
    let balancers: Vec<_> = cluster.role(Role::LoadBalancer).collect();
    let controllers: Vec<_> = cluster.role(Role::Controller).collect();
    let why = if addresses.iter().any(std::net::Ipv4Addr::is_loopback) {
        "itself"
    } else if !balancers.is_empty() && !balancers.iter().any(|host| addresses.contains(&host.address)) {
        "none of the load balancers"
    } else if balancers.is_empty()
        && controllers.len() > 1
        && addresses.len() == 1
        && controllers.iter().any(|host| host.address == *first)
    {
        "one of the controllers, which then is needed by all"
    } else {
        return None;
    };
    let list: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    Some(
        check::ENDPOINT_ELSEWHERE
            .on(
                &part.host.name,
                format!("there {name} is {}, which is {why}", list.join(", ")),
            )
            .evidence(format!("getent ahostsv4 {name}: {}", list.join(" "))),
    )
}
