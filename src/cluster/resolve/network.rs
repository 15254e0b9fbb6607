//! Networks, the endpoint and the number of controllers: what holds between hosts.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use super::hosts::Placed;
use super::text::{API_PORT, Wrong, check, cidr, endpoint};
use crate::cluster::{Endpoint, Role};
use crate::inventory::problem::{Problem, Span};
use crate::inventory::raw::Inventory;

/// Pod network where the inventory names none.
const POD_CIDR: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 244, 0, 0), 16);
/// Service network where the inventory names none.
const SERVICE_CIDR: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 96, 0, 0), 12);
/// What a DNS resolver is called in messages.
pub(super) const RESOLVER: &str = "the resolver";
/// Prefix length of a node's share of the pod network.
const NODE_MASK: u8 = 24;

/// The pod network and the service network; a wrong one is reported and left out.
pub(super) fn networks(
    inventory: &Inventory,
    placed: &[Placed],
    problems: &mut Vec<Problem>,
) -> (Option<Ipv4Net>, Option<Ipv4Net>) {
    let nodes = placed.iter().filter(|one| one.role != Role::LoadBalancer).count();
    let section = &inventory.cluster;
    let pod = match &section.pod_cidr {
        None => Some(POD_CIDR),
        Some(at) => check(problems, Some(at), |text| pod_cidr(text, nodes)),
    };
    let service = match &section.service_cidr {
        None => Some(SERVICE_CIDR),
        Some(at) => check(problems, Some(at), |text| service_cidr(text)),
    };
    if section.pod_cidr.is_none()
        && let Some(problem) = too_few(POD_CIDR, nodes).map(|wrong| wrong.at(section.span.clone()))
    {
        problems.push(problem);
    }
    if let (Some(pod), Some(service)) = (pod, service)
        && (pod.contains(&service) || service.contains(&pod))
    {
        let written = [&section.pod_cidr, &section.service_cidr];
        let mut spans = written.iter().filter_map(|at| at.as_ref().map(|at| at.span.clone()));
        let first = spans.next().unwrap_or_else(|| section.span.clone());
        let mut problem = Problem::error(
            first,
            format!("the pod network {pod} overlaps the service network {service}"),
        )
        .hint("pods, services and hosts need networks that do not overlap");
        if let Some(other) = spans.next() {
            problem = problem.also(other, "the service network");
        }
        problems.push(problem);
    }
    (pod, service)
}

fn pod_cidr(text: &str, nodes: usize) -> Result<Ipv4Net, Wrong> {
    let net = cidr(text)?;
    if net.prefix_len() > NODE_MASK {
        return Err(Wrong::new(
            format!("the pod network {net} is too small: each node gets a /{NODE_MASK} of it"),
            "write a /16, such as `10.244.0.0/16`",
        ));
    }
    if NODE_MASK - net.prefix_len() > 16 {
        return Err(Wrong::new(
            format!("the pod network {net} is too large: kubeadm takes at most a /8"),
            "write a /16, such as `10.244.0.0/16`",
        ));
    }
    too_few(net, nodes).map_or(Ok(net), Err)
}

/// What is wrong when there are more nodes than shares of the pod network.
fn too_few(net: Ipv4Net, nodes: usize) -> Option<Wrong> {
    let shares = 1_usize << (NODE_MASK.saturating_sub(net.prefix_len()));
    (nodes > shares).then(|| {
        Wrong::new(
            format!(
                "the pod network {net} is too small: it has {shares} /{NODE_MASK}, and each of the {nodes} nodes takes one"
            ),
            "write a shorter prefix, and leave room for nodes to come: a /16 has 256",
        )
    })
}

fn service_cidr(text: &str) -> Result<Ipv4Net, Wrong> {
    let net = cidr(text)?;
    let example = "write a /12 to /24, such as `10.96.0.0/12`";
    match net.prefix_len() {
        29.. => Err(Wrong::new(
            format!("the service network {net} is too small: kubeadm wants at least 10 addresses"),
            example,
        )),
        ..12 => Err(Wrong::new(
            format!("the service network {net} is too large: kubeadm takes at most a /12"),
            example,
        )),
        _ => Ok(net),
    }
}

/// Reports each address that lies in the pod network or in the service network.
pub(super) fn outside(
    networks: [(&str, Option<Ipv4Net>, Option<Span>); 2],
    addresses: &[(&str, Ipv4Addr, Span)],
    problems: &mut Vec<Problem>,
) {
    for (what, net, place) in networks {
        let Some(net) = net else { continue };
        for (whose, address, span) in addresses.iter().filter(|(_, address, _)| net.contains(address)) {
            let message = format!("{whose} {address} lies in the {what} network {net}");
            let hint = if *whose == RESOLVER {
                "name a resolver outside of the cluster's own networks".to_owned()
            } else {
                format!("choose another `{what}Cidr`, one that your network does not use")
            };
            let mut problem = Problem::error(span.clone(), message).hint(hint);
            if let Some(place) = &place {
                problem = problem.also(place.clone(), format!("the {what} network"));
            }
            problems.push(problem);
        }
    }
}

/// The endpoint that the inventory names, or the one that follows from its hosts.
pub(super) fn endpoint_of(inventory: &Inventory, placed: &[Placed], problems: &mut Vec<Problem>) -> Option<Endpoint> {
    let role = |role| placed.iter().filter(move |one| one.role == role);
    let balancers = role(Role::LoadBalancer).count();
    let controllers = role(Role::Controller).count();
    let Some(at) = &inventory.cluster.endpoint else {
        if !inventory.load_balancers.readable || !inventory.controllers.readable {
            return None;
        }
        let (only, hint) = match (balancers, controllers) {
            (1, _) => (role(Role::LoadBalancer).next(), ""),
            (0, 1) => (role(Role::Controller).next(), ""),
            (0, 0) => (None, ""),
            (0, _) => (
                None,
                "add a host to `loadBalancers`, or name your own with `cluster.endpoint: HOST:PORT`",
            ),
            (..) => (
                None,
                "a virtual address that moves between them is not built yet: keep one load balancer, or name an address of your own that leads to all of them with `cluster.endpoint`",
            ),
        };
        if !hint.is_empty() {
            let (span, message) = if balancers == 0 {
                let message = format!("{controllers} controllers need a load balancer or an endpoint of your own");
                (inventory.controllers.span.clone(), message)
            } else {
                let message = format!("{balancers} load balancers need an endpoint that leads to all of them");
                (inventory.load_balancers.span.clone(), message)
            };
            problems.push(Problem::error(span, message).hint(hint));
        }
        return only?.address.as_ref().map(|(address, _)| Endpoint {
            host: address.to_string(),
            port: API_PORT,
        });
    };
    let endpoint = check(problems, Some(at), |text| endpoint(text))?;
    let named = role(Role::Controller).find(|one| {
        let name = one.name.as_ref().is_some_and(|name| name.as_str() == endpoint.host);
        name || one
            .address
            .as_ref()
            .is_some_and(|(address, _)| address.to_string() == endpoint.host)
    });
    if let Some(one) = named {
        if controllers > 1 {
            problems.push(
                Problem::error(
                    at.span.clone(),
                    "the endpoint is one of several controllers: without it the cluster is lost",
                )
                .also(one.name_span.clone(), "this controller")
                .hint("name an address that leads to all controllers, or leave `endpoint` out and add a load balancer"),
            );
        } else if balancers == 0 && endpoint.port != API_PORT {
            problems.push(
                Problem::error(
                    at.span.clone(),
                    format!("the controller's API server listens on port {API_PORT}"),
                )
                .hint(format!("write `{}`, or leave `endpoint` out", endpoint.host)),
            );
        }
    }
    Some(endpoint)
}

/// The number of controllers and workers.
pub(super) fn counts(inventory: &Inventory, problems: &mut Vec<Problem>) {
    let section = &inventory.controllers;
    let count = section.hosts.len();
    if section.readable && count == 0 {
        let problem = Problem::error(section.span.clone(), "there is no controller");
        problems.push(problem.hint("write `controllers: { controller-0: 192.168.7.201 }`: one, three or five"));
    } else if count > 0 && count.is_multiple_of(2) {
        let survives = count / 2 - 1;
        let message = format!(
            "{count} controllers survive the loss of {survives}, as {} would: etcd needs more than half of its members",
            count - 1
        );
        let problem = Problem::warning(section.span.clone(), message).label("an even number");
        problems.push(problem.hint(format!("use {} or {}", count - 1, count + 1)));
    }
    let workers = &inventory.workers;
    let tainted = section.hosts.iter().all(|host| host.taints.is_none());
    if workers.readable && workers.hosts.is_empty() && count > 0 && tainted {
        let message = "there is no worker, and controllers take no ordinary pods: they stay pending, CoreDNS apart";
        let problem = Problem::warning(section.span.clone(), message);
        problems.push(problem.hint("add a worker, or write `taints: []` at a controller that is to take pods"));
    }
}
