//! Which ways through the network have to be proven before hosts come into the cluster.
//!
//! Only ways from or to a host that is to come: the others are in use. Where a program listens already it answers for
//! itself; elsewhere the host listens for the time of the proof.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use super::apply::Member;
use super::standing::Standing;
use crate::cluster::{Cluster, Host, NodeName, Role};
use crate::facts::HostFacts;
use crate::facts::paths::{Answers, Part, Port, Proof, Purpose, Target};

const API: u16 = 6443;
const ETCD_CLIENTS: u16 = 2379;
const ETCD_PEERS: u16 = 2380;
const KUBELET: u16 = 10250;
/// The kernel's port for VXLAN.
const VXLAN: u16 = 8472;
const WIREGUARD: u16 = 51820;

/// What Flannel's tunnels add to a packet of a pod.
const VXLAN_HEADERS: u32 = 50;
const WIREGUARD_HEADERS: u32 = 80;
/// Enough to see that a path is there, where nobody knows how large its packets are.
const SMALL: u32 = 100;

/// What has to be proven so that these hosts can come.
pub(super) fn proof(cluster: &Cluster, parts: &[Member<'_>], coming: &BTreeSet<NodeName>) -> Proof {
    let mut proof = Proof::default();
    let taking_part: Vec<&Member<'_>> = parts.iter().filter(|part| takes_part(part, coming)).collect();
    // What ufw or firewalld stops now is opened by a step, and proves nothing.
    let opened: Vec<&NodeName> = taking_part
        .iter()
        .filter(|part| part.facts.firewall().is_opened())
        .map(|part| &part.host.name)
        .collect();
    for from in &taking_part {
        let mut targets = Vec::new();
        for to in taking_part.iter().filter(|to| to.host.name != from.host.name) {
            let comes = coming.contains(&from.host.name) || coming.contains(&to.host.name);
            if comes {
                targets.extend(between(cluster, from, to, coming));
            }
        }
        if coming.contains(&from.host.name) {
            targets.extend(endpoint(cluster, from, &taking_part));
        }
        targets.retain(|target| !opened.iter().any(|host| target.to.as_ref() == Some(*host)));
        if !targets.is_empty() {
            part(&mut proof, from.host).targets = targets;
        }
    }
    let listens: Vec<(NodeName, Port)> = proof
        .parts
        .values()
        .flat_map(|part| &part.targets)
        .filter(|target| target.answers == Answers::Listener)
        .filter_map(|target| Some((target.to.clone()?, target.port)))
        .collect();
    for (host, port) in listens {
        if let Some(host) = cluster.host(&host) {
            part(&mut proof, host).listens.insert(port);
        }
    }
    proof
}

fn part<'a>(proof: &'a mut Proof, host: &Host) -> &'a mut Part {
    proof.parts.entry(host.name.clone()).or_insert_with(|| Part {
        address: host.address,
        listens: BTreeSet::new(),
        targets: Vec::new(),
    })
}

/// A host that has the address which the inventory gives it, and that is in the cluster or is to be.
fn takes_part(part: &Member<'_>, coming: &BTreeSet<NodeName>) -> bool {
    let stands = match part.standing {
        Standing::Bare | Standing::HalfMade(_) => {
            part.host.role == Role::LoadBalancer || coming.contains(&part.host.name)
        }
        Standing::Member | Standing::Unfinished | Standing::Started => true,
        Standing::Foreign(_) | Standing::Unknown(_) => false,
    };
    let mut own = part.facts.addresses.iter().map(|entry| entry.address.addr());
    stands && own.any(|address| address == part.host.address)
}

/// What one host has to reach of another, beside the endpoint.
fn between(cluster: &Cluster, from: &Member<'_>, to: &Member<'_>, coming: &BTreeSet<NodeName>) -> Vec<Target> {
    use Role::{Controller, LoadBalancer, Worker};
    let mut targets = Vec::new();
    let mut tcp = |purpose: Purpose, numbers: &[u16]| {
        for number in numbers {
            targets.extend(
                answers(to, *number, coming.contains(&to.host.name)).map(|answers| Target {
                    purpose,
                    to: Some(to.host.name.clone()),
                    address: to.host.address,
                    port: Port::tcp(*number),
                    answers,
                    size: 0,
                }),
            );
        }
    };
    match (from.host.role, to.host.role) {
        (LoadBalancer, Controller) => tcp(Purpose::Backend, &[API]),
        (Controller, Controller) => {
            tcp(Purpose::ControlPlane, &[API, ETCD_CLIENTS, ETCD_PEERS]);
            tcp(Purpose::Kubelet, &[KUBELET]);
        }
        (Controller, Worker) => tcp(Purpose::Kubelet, &[KUBELET]),
        (Worker, _) | (LoadBalancer, Worker) | (_, LoadBalancer) => {}
    }
    let nodes = from.host.role != LoadBalancer && to.host.role != LoadBalancer;
    // The kernel of a member swallows what comes to Flannel's port.
    if nodes && coming.contains(&to.host.name) {
        targets.extend(pod_network(cluster, from, to));
    }
    targets
}

/// Flannel's way to another node; host-gw has none of its own.
fn pod_network(cluster: &Cluster, from: &Member<'_>, to: &Member<'_>) -> Option<Target> {
    let flannel = &cluster.flannel;
    let (number, headers) = match flannel.backend.as_str() {
        "vxlan" => (flannel.port.unwrap_or(VXLAN), VXLAN_HEADERS),
        "wireguard" => (WIREGUARD, WIREGUARD_HEADERS),
        _ => return None,
    };
    let links = [mtu(from), mtu(to), flannel.mtu.map(|pods| pods + headers)];
    Some(Target {
        purpose: Purpose::PodNetwork,
        to: Some(to.host.name.clone()),
        address: to.host.address,
        port: Port::udp(number),
        answers: Answers::Listener,
        size: links.into_iter().flatten().min().unwrap_or(SMALL).max(SMALL),
    })
}

/// MTU of the link that carries the host's address.
pub(super) fn mtu(part: &Member<'_>) -> Option<u32> {
    let mut addresses = part.facts.addresses.iter();
    let own = addresses.find(|entry| entry.address.addr() == part.host.address)?;
    part.facts.links.get(&own.interface).copied()
}

/// The endpoint as a node calls it.
fn endpoint(cluster: &Cluster, from: &Member<'_>, parts: &[&Member<'_>]) -> Option<Target> {
    let number = cluster.endpoint.port;
    let address = endpoint_address(cluster, from.facts)?;
    let host = cluster.hosts.iter().find(|host| host.address == address);
    let target = |answers| Target {
        purpose: Purpose::Endpoint,
        to: host.map(|host| host.name.clone()),
        address,
        port: Port::tcp(number),
        answers,
        size: 0,
    };
    let Some(host) = host else {
        return Some(target(Answers::Anybody));
    };
    let there = parts.iter().find(|part| part.host.name == host.name)?;
    let may_listen = there.host.role == Role::LoadBalancer || there.comes();
    // To itself there is no way to prove.
    (host.name != from.host.name)
        .then(|| answers(there, number, may_listen).map(target))
        .flatten()
}

/// What the endpoint's name is to the host, or will be when k8sup has written it down.
fn endpoint_address(cluster: &Cluster, facts: &HostFacts) -> Option<Ipv4Addr> {
    let resolved = || facts.endpoint_resolves.present()?.first().copied();
    let written = || {
        let balancer = cluster.role(Role::LoadBalancer).next();
        let host = balancer.or_else(|| cluster.role(Role::Controller).next())?;
        Some(host.address)
    };
    cluster.endpoint.host.parse().ok().or_else(resolved).or_else(written)
}

/// Who answers at a TCP port of the host: what listens there already, or a listener where there may be one.
fn answers(to: &Member<'_>, number: u16, may_listen: bool) -> Option<Answers> {
    let wide =
        |address: &str| matches!(address, "*" | "0.0.0.0" | "[::]" | "::") || address == to.host.address.to_string();
    let is_there = to.facts.listening.iter().any(|listener| {
        let address = listener.address.split('%').next().unwrap_or_default();
        listener.port == number && wide(address)
    });
    match (is_there, may_listen) {
        (true, _) => Some(Answers::Program),
        (false, true) => Some(Answers::Listener),
        (false, false) => None,
    }
}
