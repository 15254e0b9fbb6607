//! The firewall that a host has: what the cluster needs is opened in it, from the hosts that need it, and nothing else.
//!
//! ufw and firewalld are told to; rules that a person keeps by hand are not touched, only compared.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use crate::check;
use crate::cluster::{Cluster, Host, Role};
use crate::facts::ruleset::{Packet, Stop};
use crate::facts::{Firewall, HostFacts};
use crate::plan::{Gate, Planned, Step};

pub mod firewalld;
pub mod ufw;

/// Clients and peers of etcd, the API server, the kubelet.
const CONTROLLERS: &[u16] = &[2379, 2380, 6443, 10250];
/// What the cluster has whichever port its endpoint has.
const API: u16 = 6443;
const KUBELET: u16 = 10250;
/// The kernel's own for VXLAN.
const VXLAN: u16 = 8472;
/// Flannel's for `WireGuard`.
const WIREGUARD: u16 = 51820;

/// Ports that must be open on a host for some others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// For whom.
    pub from: Vec<Ipv4Net>,
    /// `tcp` or `udp`.
    pub protocol: &'static str,
    /// In ascending order.
    pub ports: Vec<u16>,
}

/// What a host must let in.
#[must_use]
pub fn needed(cluster: &Cluster, this: &Host) -> Vec<Opening> {
    let of = |roles: &[Role]| -> Vec<Ipv4Net> {
        let others = cluster.hosts.iter().filter(|host| host.name != this.name);
        others
            .filter(|host| roles.contains(&host.role))
            .map(|host| Ipv4Net::from(host.address))
            .collect()
    };
    let tcp = |from: Vec<Ipv4Net>, ports: &[u16]| Opening {
        from,
        protocol: "tcp",
        ports: ports.to_vec(),
    };
    let mut openings = match this.role {
        Role::LoadBalancer => vec![tcp(of(&[Role::Controller, Role::Worker]), &[cluster.endpoint.port])],
        Role::Controller => {
            // Pods reach the API by its service, which leads to the controllers themselves.
            let mut clients = of(&[Role::LoadBalancer, Role::Worker]);
            clients.push(cluster.pod_cidr);
            vec![tcp(of(&[Role::Controller]), CONTROLLERS), tcp(clients, &[API])]
        }
        Role::Worker => vec![tcp(of(&[Role::Controller]), &[KUBELET])],
    };
    if let (Some(port), true) = (tunnel(cluster), this.role != Role::LoadBalancer) {
        openings.push(Opening {
            from: of(&[Role::Controller, Role::Worker]),
            protocol: "udp",
            ports: vec![port],
        });
    }
    openings.retain(|opening| !opening.from.is_empty());
    openings
}

/// The UDP port of Flannel's backend.
fn tunnel(cluster: &Cluster) -> Option<u16> {
    match cluster.flannel.backend.as_str() {
        "vxlan" => Some(cluster.flannel.port.unwrap_or(VXLAN)),
        "wireguard" => Some(WIREGUARD),
        _ => None,
    }
}

/// Packets of pods that a host forwards; load balancers have none.
#[must_use]
pub fn forwarded(cluster: &Cluster, this: &Host) -> Option<Ipv4Net> {
    (this.role != Role::LoadBalancer).then_some(cluster.pod_cidr)
}

/// The step that opens what is still closed, and closes what k8sup opened for hosts that are gone.
#[must_use]
pub fn steps(cluster: &Cluster, this: &Host, facts: &HostFacts) -> Vec<Planned> {
    let (tool, open, close) = match facts.firewall() {
        Firewall::Ufw => {
            let (open, close) = difference(facts, "ufw", &ufw::rules(cluster, this), |rule| {
                ufw::is_there(facts, rule)
            });
            ("ufw", open, close)
        }
        Firewall::Firewalld => {
            let (open, close) = difference(facts, "firewalld", &firewalld::rules(cluster, this), |rule| {
                firewalld::is_there(facts, rule)
            });
            ("firewalld", open, close)
        }
        Firewall::None | Firewall::Rules => return Vec::new(),
    };
    let why = match (open.len(), close.len()) {
        (0, 0) => return Vec::new(),
        (0, _) => format!("{tool} lets in hosts that are not in the inventory any more"),
        (_, _) => format!("{tool} is on, and does not let in all that the cluster needs"),
    };
    let step = Step::Firewall {
        tool: tool.to_owned(),
        interface: interface(this, facts),
        open,
        close,
    };
    let check = if tool == "ufw" { &check::UFW } else { &check::FIREWALLD };
    vec![
        Planned::new(step, why.clone())
            .fixes([check.at_large(why)])
            .opens(Gate::LetsIn(this.name.clone())),
    ]
}

/// The host's firewall is one that k8sup opens, and has not opened yet: packets between hosts prove nothing.
#[must_use]
pub fn is_still_closed(cluster: &Cluster, this: &Host, facts: &HostFacts) -> bool {
    facts.firewall().is_opened() && !steps(cluster, this, facts).is_empty()
}

/// Rules that are to come, and recorded ones that are to go.
fn difference(
    facts: &HostFacts,
    kind: &str,
    wanted: &[String],
    is_there: impl Fn(&str) -> bool,
) -> (Vec<String>, Vec<String>) {
    let open = wanted.iter().filter(|rule| !is_there(rule)).cloned().collect();
    let kept: BTreeSet<&str> = wanted.iter().map(String::as_str).collect();
    let recorded = facts.record.present().and_then(|record| record.entries.get(kind));
    let close = recorded
        .into_iter()
        .flatten()
        .filter(|entry| !kept.contains(rule_of(kind, entry)))
        .cloned()
        .collect();
    (open, close)
}

/// Of firewalld the record has the zone in front.
fn rule_of<'a>(kind: &str, entry: &'a str) -> &'a str {
    match (kind, entry.split_once(' ')) {
        ("firewalld", Some((_, rule))) => rule,
        _ => entry,
    }
}

/// The interface with the host's address.
#[must_use]
pub fn interface(this: &Host, facts: &HostFacts) -> String {
    facts
        .addresses
        .iter()
        .find(|entry| entry.address.addr() == this.address)
        .map(|entry| entry.interface.clone())
        .unwrap_or_default()
}

/// What rules that k8sup does not touch would stop: the chains, and the commands that let it in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stopped {
    /// Each chain with the rule that stops the first packet.
    pub by: BTreeMap<String, String>,
    /// What to add, one command a line.
    pub commands: Vec<String>,
}

/// What of the packets that the cluster sends to the host its own rules stop; empty means that nothing does.
#[must_use]
pub fn stopped(cluster: &Cluster, this: &Host, facts: &HostFacts) -> Stopped {
    let mut stopped = Stopped::default();
    let (Firewall::Rules, Some(ruleset)) = (facts.firewall(), facts.surroundings.ruleset.present()) else {
        return stopped;
    };
    let interface = interface(this, facts);
    for opening in needed(cluster, this) {
        let mut closed: BTreeMap<String, BTreeSet<Ipv4Net>> = BTreeMap::new();
        for from in &opening.from {
            let stops = opening.ports.iter().find_map(|port| {
                ruleset.stops(&Packet {
                    hook: "input",
                    // Pods come in by their bridge.
                    interface: if from.prefix_len() == 32 { &interface } else { "cni0" },
                    from: some_address(*from),
                    to: this.address,
                    protocol: opening.protocol,
                    port: *port,
                })
            });
            if let Some(Stop { chain, rule }) = stops {
                stopped.by.entry(chain.clone()).or_insert(rule);
                closed.entry(chain).or_default().insert(*from);
            }
        }
        for (chain, from) in closed {
            stopped.commands.push(command(&chain, &from, &opening));
        }
    }
    stopped
}

/// The same of the packets of pods that the host is to forward.
#[must_use]
pub fn pods_stopped(cluster: &Cluster, this: &Host, facts: &HostFacts) -> Stopped {
    let mut stopped = Stopped::default();
    let (Firewall::Rules, Some(ruleset)) = (facts.firewall(), facts.surroundings.ruleset.present()) else {
        return stopped;
    };
    let Some(pods) = forwarded(cluster, this) else {
        return stopped;
    };
    let packet = Packet {
        hook: "forward",
        interface: "cni0",
        from: some_address(pods),
        to: some_address(pods),
        protocol: "tcp",
        port: 8080,
    };
    if let Some(Stop { chain, rule }) = ruleset.stops(&packet) {
        stopped.commands.extend(forward_commands(&chain, pods));
        stopped.by.insert(chain, rule);
    }
    stopped
}

fn some_address(network: Ipv4Net) -> Ipv4Addr {
    network.hosts().next().unwrap_or_else(|| network.addr())
}

fn plain(network: Ipv4Net) -> String {
    if network.prefix_len() == 32 {
        network.addr().to_string()
    } else {
        network.to_string()
    }
}

fn command(chain: &str, from: &BTreeSet<Ipv4Net>, opening: &Opening) -> String {
    let from: Vec<String> = from.iter().copied().map(plain).collect();
    let ports: Vec<String> = opening.ports.iter().map(u16::to_string).collect();
    let protocol = opening.protocol;
    if let Some(chain) = iptables_chain(chain) {
        format!(
            "iptables -I {chain} -s {} -p {protocol} -m multiport --dports {} -j ACCEPT",
            from.join(","),
            ports.join(",")
        )
    } else {
        format!(
            "nft insert rule {chain} ip saddr '{{ {} }}' {protocol} dport '{{ {} }}' accept",
            from.join(", "),
            ports.join(", ")
        )
    }
}

fn forward_commands(chain: &str, pods: Ipv4Net) -> [String; 2] {
    match iptables_chain(chain) {
        Some(chain) => ["-s", "-d"].map(|way| format!("iptables -I {chain} {way} {pods} -j ACCEPT")),
        None => ["saddr", "daddr"].map(|way| format!("nft insert rule {chain} ip {way} {pods} accept")),
    }
}

/// A chain that the program `iptables` manages.
fn iptables_chain(chain: &str) -> Option<&str> {
    let name = chain
        .strip_prefix("iptables ")
        .or_else(|| chain.strip_prefix("ip filter "))?;
    matches!(name, "INPUT" | "FORWARD").then_some(name)
}
