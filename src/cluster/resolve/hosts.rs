//! The hosts of an inventory: each by itself, then against each other.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use super::labels::{labels, taints};
use super::login::{Login, login, target};
use super::text::{address, check, interface, name};
use crate::cluster::{Host, NodeName, Role};
use crate::inventory::Environment;
use crate::inventory::problem::{Problem, Span, quoted};
use crate::inventory::raw::{HostSection, HostsSection, Inventory};

/// A host as far as it could be understood, with its places.
pub(super) struct Placed {
    pub(super) role: Role,
    pub(super) name_span: Span,
    pub(super) name: Option<NodeName>,
    pub(super) address: Option<(Ipv4Addr, Span)>,
    /// There only when nothing about the host is wrong.
    pub(super) host: Option<Host>,
}

/// Checks all hosts, in the order load balancers, controllers, workers.
pub(super) fn hosts(inventory: &Inventory, environment: &Environment, problems: &mut Vec<Problem>) -> Vec<Placed> {
    let all = login(&inventory.ssh, environment, problems);
    let mut placed = Vec::new();
    for (role, section) in sections(inventory) {
        placed.extend(
            section
                .hosts
                .iter()
                .map(|host| one(host, role, &all, environment, problems)),
        );
    }
    twice(inventory, problems);
    same_address(&placed, problems);
    same_login(&placed, problems);
    if let Some(first) = placed
        .iter()
        .find(|one| one.host.as_ref().is_some_and(|host| host.ssh.user.is_empty()))
    {
        let problem = Problem::error(first.name_span.clone(), "no user is known to log in as");
        problems.push(problem.hint("write `ssh: { user: NAME }` at the top of the inventory"));
    }
    placed
}

/// The three groups of hosts.
pub(super) fn sections(inventory: &Inventory) -> [(Role, &HostsSection); 3] {
    [
        (Role::LoadBalancer, &inventory.load_balancers),
        (Role::Controller, &inventory.controllers),
        (Role::Worker, &inventory.workers),
    ]
}

fn one(host: &HostSection, role: Role, all: &Login, environment: &Environment, problems: &mut Vec<Problem>) -> Placed {
    let name = check(problems, Some(&host.name), |text| name("name of a host", text));
    let at = check(problems, host.address.as_ref(), |text| address(text))
        .zip(host.address.as_ref().map(|at| at.span.clone()));
    let own = login(&host.ssh, environment, problems);
    let labels = labels(&host.labels, problems);
    let taints = host.taints.as_ref().map(|written| taints(written, role, problems));
    let interface = check(problems, host.interface.as_ref(), |text| interface(text));
    if role == Role::LoadBalancer && (taints.is_some() || !labels.is_empty()) {
        let message = format!(
            "the load balancer {} cannot have labels or taints",
            quoted(&host.name.value)
        );
        problems
            .push(Problem::error(host.name.span.clone(), message).hint("a load balancer is not a Node: remove them"));
    }
    let resolved = name.clone().zip(at.clone()).map(|(name, (address, _))| Host {
        name,
        role,
        address,
        ssh: target(&own, all, &address.to_string(), environment),
        labels,
        taints,
        interface,
    });
    Placed {
        role,
        name_span: host.name.span.clone(),
        name,
        address: at,
        host: resolved,
    }
}

/// A name in two groups; within one group the key is a duplicate already.
fn twice(inventory: &Inventory, problems: &mut Vec<Problem>) {
    let mut seen: HashMap<&str, (Role, Span)> = HashMap::new();
    for (role, section) in sections(inventory) {
        for host in &section.hosts {
            let name = host.name.value.as_str();
            if let Some((other, span)) = seen.get(name) {
                problems.push(
                    Problem::error(
                        host.name.span.clone(),
                        format!("the host {} is named twice", quoted(name)),
                    )
                    .label(format!("here as {role}"))
                    .also(span.clone(), format!("first as {other}"))
                    .hint("a host has one name and one role"),
                );
            } else {
                seen.insert(name, (role, host.name.span.clone()));
            }
        }
    }
}

/// An address that two hosts have.
fn same_address(placed: &[Placed], problems: &mut Vec<Problem>) {
    let mut seen: HashMap<Ipv4Addr, &Placed> = HashMap::new();
    for one in placed {
        let Some((address, span)) = &one.address else { continue };
        let Some(other) = seen.get(address) else {
            seen.insert(*address, one);
            continue;
        };
        let hint = if other.role == Role::LoadBalancer && one.role == Role::Controller {
            "a load balancer and an API server cannot share a machine: both listen on port 6443"
        } else if other.role == one.role {
            "each host has an address of its own"
        } else {
            "a machine has one role: give each role a machine of its own"
        };
        let first = other
            .address
            .as_ref()
            .map_or(other.name_span.clone(), |(_, span)| span.clone());
        problems.push(
            Problem::error(span.clone(), format!("the address {address} is given twice"))
                .label(format!("here of a {}", one.role))
                .also(first, format!("first of a {}", other.role))
                .hint(hint),
        );
    }
}

/// Two hosts that are logged in to in the same place, though their addresses differ.
fn same_login(placed: &[Placed], problems: &mut Vec<Problem>) {
    let mut seen: HashMap<(&str, u16), &Placed> = HashMap::new();
    for one in placed {
        let Some(host) = &one.host else { continue };
        match seen.get(&(host.ssh.host.as_str(), host.ssh.port)) {
            Some(other) if other.host.as_ref().is_some_and(|other| other.address != host.address) => problems.push(
                Problem::error(
                    one.name_span.clone(),
                    format!(
                        "SSH to {} port {} leads to two hosts of the inventory",
                        host.ssh.host, host.ssh.port
                    ),
                )
                .also(other.name_span.clone(), "first this one")
                .hint("check `ssh.host` and `ssh.port` of both"),
            ),
            Some(_) => {}
            None => {
                seen.insert((&host.ssh.host, host.ssh.port), one);
            }
        }
    }
}
