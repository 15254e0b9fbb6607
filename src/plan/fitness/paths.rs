//! Ways through the network that were proven, or were not.
//!
//! What fails alike is said once: of all hosts, of the host that nobody reaches, of the host that reaches nobody, and
//! only else of two hosts.

use std::collections::{BTreeMap, BTreeSet};

use super::super::apply::Member;
use super::super::paths::mtu;
use crate::check::{self, Check, Finding};
use crate::cluster::{Cluster, NodeName, Role};
use crate::facts::paths::{Answers, Outcome, Path, Paths, Port, Protocol, Purpose};

/// As many ways are shown as evidence.
const SHOWN: usize = 6;
/// As many hosts are named in a sentence.
const NAMED: usize = 4;

/// What is wrong with the ways.
pub(in super::super) fn findings(cluster: &Cluster, parts: &[Member<'_>], paths: &Paths) -> Vec<Finding> {
    let judge = Judge { cluster };
    let of = |purpose: Purpose| paths.tried.iter().filter(move |path| path.target.purpose == purpose);
    let mut found = judge.endpoint(&of(Purpose::Endpoint).collect::<Vec<_>>());
    for (purpose, check) in [
        (Purpose::Backend, &check::BACKEND_PATH),
        (Purpose::ControlPlane, &check::CONTROL_PLANE_PATH),
        (Purpose::Kubelet, &check::KUBELET_PATH),
        (Purpose::PodNetwork, &check::POD_NETWORK_PATH),
    ] {
        found.extend(Judge::ports(check, &of(purpose).collect::<Vec<_>>()));
    }
    found.extend(judge.sizes(&of(Purpose::PodNetwork).collect::<Vec<_>>()));
    if !paths.tried.is_empty() {
        found.extend(mtus_differ(cluster, parts));
    }
    found.extend(untold(paths));
    found
}

/// The way leads nowhere. Nobody knows whether somebody listens at a foreign endpoint: to be refused is an answer, too.
fn is_blocked(path: &Path) -> bool {
    match path.outcome {
        Outcome::Open | Outcome::Narrow(_) | Outcome::Untold(_) => false,
        Outcome::Refused => path.target.answers != Answers::Anybody,
        Outcome::Silent | Outcome::Stranger | Outcome::Failed(_) => true,
    }
}

fn is_told(path: &Path) -> bool {
    !matches!(path.outcome, Outcome::Untold(_))
}

/// Size of the largest packets that pass where any do.
fn passes(path: &Path) -> Option<u32> {
    match path.outcome {
        Outcome::Open => Some(path.target.size),
        Outcome::Narrow(passes) => Some(passes),
        _ => None,
    }
}

struct Judge<'a> {
    cluster: &'a Cluster,
}

impl Judge<'_> {
    fn endpoint(&self, tried: &[&Path]) -> Vec<Finding> {
        let told = tried.iter().filter(|path| is_told(path)).count();
        let blocked: Vec<&Path> = tried.iter().copied().filter(|path| is_blocked(path)).collect();
        let Some(first) = blocked.first() else {
            return Vec::new();
        };
        let endpoint = &self.cluster.endpoint;
        let why = reasons(&blocked);
        let check = &check::ENDPOINT_PATH;
        let finding = match (&first.target.to, &blocked[..]) {
            (Some(to), [_, _, ..]) if blocked.len() == told => {
                check.on(to, format!("no node reaches the endpoint {endpoint} there: {why}"))
            }
            (_, [only]) => check.on(&only.from, format!("it does not reach the endpoint {endpoint}: {why}")),
            _ => {
                let who = names(blocked.iter().map(|path| &path.from));
                check.at_large(format!("{who} do not reach the endpoint {endpoint}: {why}"))
            }
        };
        vec![Self::advised(finding.evidence(evidence(&blocked)), &blocked)]
    }

    /// Ports that are blocked, grouped.
    fn ports(check: &'static Check, tried: &[&Path]) -> Vec<Finding> {
        let mut open = Grouping::of(tried);
        let mut found = Vec::new();
        let mut say = |finding: Finding, blocked: &[&Path]| {
            found.push(Self::advised(finding.evidence(evidence(blocked)), blocked));
        };
        let everywhere = open.nobody_reaches();
        if everywhere.len() > 1 && everywhere.len() == open.targets().len() {
            let blocked = open.take(|path| everywhere.contains_key(to(path)));
            let message = format!(
                "none of the hosts reaches the others' {}: {}",
                listed_ports(&blocked),
                reasons(&blocked)
            );
            say(check.at_large(message), &blocked);
        } else {
            for (host, ports) in everywhere {
                let blocked = open.take(|path| to(path) == &host && ports.contains(&path.target.port));
                let message = format!(
                    "nobody reaches its {} ({} tried): {}",
                    listed_ports(&blocked),
                    names(blocked.iter().map(|path| &path.from)),
                    reasons(&blocked)
                );
                say(check.on(&host, message), &blocked);
            }
        }
        for (host, ports) in open.reaches_nobody() {
            let blocked = open.take(|path| path.from == host && ports.contains(&path.target.port));
            let message = format!(
                "it reaches nobody's {} ({} tried): {}",
                listed_ports(&blocked),
                names(blocked.iter().map(|path| to(path))),
                reasons(&blocked)
            );
            say(check.on(&host, message), &blocked);
        }
        for (host, ports, sources) in open.rest() {
            let blocked = open
                .take(|path| to(path) == &host && ports.contains(&path.target.port) && sources.contains(&path.from));
            let verb = if sources.len() == 1 {
                "does not reach"
            } else {
                "do not reach"
            };
            let message = format!(
                "{} {verb} its {}: {}",
                names(sources.iter()),
                listed_ports(&blocked),
                reasons(&blocked)
            );
            say(check.on(&host, message), &blocked);
        }
        found
    }

    /// Ways on which large packets are lost: all of them, those of one host, or what is left host by host.
    fn sizes(&self, tried: &[&Path]) -> Vec<Finding> {
        let open: Vec<&Path> = tried.iter().copied().filter(|path| passes(path).is_some()).collect();
        let lost = open
            .iter()
            .copied()
            .filter(|path| passes(path) < Some(path.target.size));
        let mut narrow = Grouping {
            blocked: lost.collect(),
            told: open,
        };
        if narrow.blocked.len() > 2 && narrow.blocked.len() == narrow.told.len() {
            return vec![self.narrow(None, "from host to host", &narrow.blocked)];
        }
        let (no_way_in, no_way_out) = (narrow.nobody_reaches(), narrow.reaches_nobody());
        let mut found = Vec::new();
        for host in no_way_in.keys().chain(no_way_out.keys()) {
            let (way_in, way_out) = (no_way_in.contains_key(host), no_way_out.contains_key(host));
            let lost = narrow.take(|path| way_in && to(path) == host || way_out && &path.from == host);
            let way = if way_in {
                "to it from any other host"
            } else {
                "from it to any other host"
            };
            found.extend((!lost.is_empty()).then(|| self.narrow(Some(host), way, &lost)));
        }
        while let Some(host) = narrow.blocked.first().map(|path| to(path).clone()) {
            let lost = narrow.take(|path| to(path) == &host || path.from == host);
            let others = lost
                .iter()
                .flat_map(|path| [&path.from, to(path)])
                .filter(|other| **other != host);
            let way = format!("between it and {}", names(others));
            found.push(self.narrow(Some(&host), &way, &lost));
        }
        found
    }

    fn narrow(&self, host: Option<&NodeName>, way: &str, lost: &[&Path]) -> Finding {
        let passes = lost.iter().copied().filter_map(passes).min().unwrap_or_default();
        let size = lost.iter().map(|path| path.target.size).max().unwrap_or_default();
        let message = format!("packets of {size} bytes do not get {way} in one piece, those of {passes} bytes do");
        let check = &check::PATH_MTU;
        let finding = match host {
            Some(host) => check.on(host, message),
            None => check.at_large(message),
        };
        finding.evidence(evidence(lost)).hint(self.smaller(passes))
    }

    fn smaller(&self, passes: u32) -> String {
        let headers = if self.cluster.flannel.backend == "wireguard" {
            80
        } else {
            50
        };
        format!(
            "set flannel.mtu to {}, so that the pods' packets fit, or see why the way takes less than the hosts' links",
            passes.saturating_sub(headers)
        )
    }

    /// With advice that fits what was seen.
    fn advised(finding: Finding, blocked: &[&Path]) -> Finding {
        if blocked.iter().any(|path| path.outcome == Outcome::Stranger) {
            return finding.hint(
                "another machine has the same address, or something in between translates addresses: see `ip neigh` and \
                 `arping` from there",
            );
        }
        let targets: BTreeSet<&NodeName> = blocked.iter().filter_map(|path| path.target.to.as_ref()).collect();
        let ports: BTreeSet<Port> = blocked.iter().map(|path| path.target.port).collect();
        let sources: BTreeSet<&NodeName> = blocked.iter().map(|path| &path.from).collect();
        let only = |hosts: &BTreeSet<&NodeName>| hosts.first().filter(|_| hosts.len() == 1).map(|host| (*host).clone());
        let hint = match (only(&targets), only(&sources)) {
            (Some(to), from) => Self::opening(&to, from.as_ref(), &ports),
            (None, Some(from)) => format!(
                "see with `nft list ruleset` and `iptables -S` what {from} does not let out, else it is a firewall next to it"
            ),
            (None, None) => return finding,
        };
        finding.hint(hint)
    }

    /// Where a person looks who wants these ports open; `from` alone does not get there. ufw and firewalld k8sup opens
    /// itself.
    fn opening(host: &NodeName, from: Option<&NodeName>, ports: &BTreeSet<Port>) -> String {
        let list: Vec<String> = ports.iter().map(Port::to_string).collect();
        let list = list.join(", ");
        let (out, themselves) = match from {
            Some(from) => (format!(", and out of {from}"), "the hosts themselves keep"),
            None => (String::new(), "the host itself keeps"),
        };
        format!(
            "let {list} in on {host}{out}: `nft list ruleset` and `iptables -S` show what {themselves} back, else it is a \
             firewall in between"
        )
    }
}

/// Ways of one purpose, and which of the blocked ones were not told yet.
struct Grouping<'a> {
    told: Vec<&'a Path>,
    blocked: Vec<&'a Path>,
}

type PortsOf = BTreeMap<NodeName, BTreeSet<Port>>;

impl<'a> Grouping<'a> {
    fn of(tried: &[&'a Path]) -> Self {
        let told: Vec<&Path> = tried.iter().copied().filter(|path| is_told(path)).collect();
        let blocked = told.iter().copied().filter(|path| is_blocked(path)).collect();
        Self { told, blocked }
    }

    fn targets(&self) -> BTreeSet<&NodeName> {
        self.told.iter().map(|path| to(path)).collect()
    }

    /// Ports that two hosts or more have tried, and none has reached.
    fn nobody_reaches(&self) -> PortsOf {
        self.all_alike(|path| to(path))
    }

    /// Ports that the host has tried on two others or more, and has reached on none.
    fn reaches_nobody(&self) -> PortsOf {
        self.all_alike(|path| &path.from)
    }

    fn all_alike(&self, host: impl Fn(&Path) -> &NodeName) -> PortsOf {
        let mut ports = PortsOf::new();
        for path in &self.blocked {
            let same = |other: &&&Path| host(other) == host(path) && other.target.port == path.target.port;
            let (told, blocked) = (
                self.told.iter().filter(same).count(),
                self.blocked.iter().filter(same).count(),
            );
            if told > 1 && told == blocked {
                ports.entry(host(path).clone()).or_default().insert(path.target.port);
            }
        }
        ports
    }

    /// What is left: for each host the ports, and who does not reach them.
    fn rest(&self) -> Vec<(NodeName, BTreeSet<Port>, BTreeSet<NodeName>)> {
        let mut ports: BTreeMap<(&NodeName, &NodeName), BTreeSet<Port>> = BTreeMap::new();
        for path in &self.blocked {
            ports
                .entry((to(path), &path.from))
                .or_default()
                .insert(path.target.port);
        }
        let mut sources: BTreeMap<(&NodeName, BTreeSet<Port>), BTreeSet<NodeName>> = BTreeMap::new();
        for ((to, from), ports) in ports {
            sources.entry((to, ports)).or_default().insert(from.clone());
        }
        let rest = sources.into_iter();
        rest.map(|((to, ports), sources)| (to.clone(), ports, sources))
            .collect()
    }

    /// Takes out what is told now.
    fn take(&mut self, told: impl Fn(&Path) -> bool) -> Vec<&'a Path> {
        let (taken, rest) = self.blocked.iter().copied().partition(|path| told(path));
        self.blocked = rest;
        taken
    }
}

/// Whom the way leads to; only an endpoint may be nobody's.
fn to(path: &Path) -> &NodeName {
    path.target.to.as_ref().unwrap_or(&path.from)
}

/// `port 2379/tcp`, `ports 2379/tcp, 2380/tcp`.
fn listed_ports(paths: &[&Path]) -> String {
    let ports: BTreeSet<Port> = paths.iter().map(|path| path.target.port).collect();
    let word = if ports.len() == 1 { "port" } else { "ports" };
    let list: Vec<String> = ports.iter().map(Port::to_string).collect();
    format!("{word} {}", list.join(", "))
}

fn names<'a>(hosts: impl Iterator<Item = &'a NodeName>) -> String {
    let hosts: BTreeSet<&str> = hosts.map(NodeName::as_str).collect();
    if hosts.len() > NAMED {
        return format!("{} hosts", hosts.len());
    }
    hosts.into_iter().collect::<Vec<_>>().join(", ")
}

/// Why, once for all.
fn reasons(paths: &[&Path]) -> String {
    let mut all: Vec<&str> = Vec::new();
    for path in paths {
        let reason = reason(path);
        if !all.contains(&reason) {
            all.push(reason);
        }
    }
    all.join("; ")
}

fn reason(path: &Path) -> &str {
    match &path.outcome {
        Outcome::Open | Outcome::Narrow(_) => "reached",
        // Somebody listens there, that is known; the host itself would not refuse.
        Outcome::Refused => "refused by a firewall",
        Outcome::Silent => "no answer",
        Outcome::Stranger => "somebody else answers",
        Outcome::Failed(reason) | Outcome::Untold(reason) => reason,
    }
}

/// The ways one by one, not all of them.
fn evidence(paths: &[&Path]) -> String {
    let line = |path: &&Path| {
        let Path { from, target, outcome } = path;
        let protocol = match target.port.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        };
        let to = match &target.to {
            Some(host) => format!("{host} "),
            None => String::new(),
        };
        let what = match outcome {
            Outcome::Narrow(passes) => format!("{} bytes are lost, {passes} bytes pass", target.size),
            Outcome::Refused => "refused, though something listens there".to_owned(),
            _ => reason(path).to_owned(),
        };
        format!(
            "{from} -> {to}{}:{} {protocol}: {what}",
            target.address, target.port.number
        )
    };
    let mut lines: Vec<String> = paths.iter().take(SHOWN).map(line).collect();
    if paths.len() > SHOWN {
        lines.push(format!("and {} more", paths.len() - SHOWN));
    }
    lines.join("\n")
}

/// Flannel takes its MTU on each node from that node's link, unless it is told one.
fn mtus_differ(cluster: &Cluster, parts: &[Member<'_>]) -> Option<Finding> {
    let mut hosts: BTreeMap<u32, Vec<&NodeName>> = BTreeMap::new();
    for part in parts.iter().filter(|part| part.host.role != Role::LoadBalancer) {
        if let Some(mtu) = mtu(part) {
            hosts.entry(mtu).or_default().push(&part.host.name);
        }
    }
    if hosts.len() < 2 || cluster.flannel.mtu.is_some() || cluster.flannel.backend == "host-gw" {
        return None;
    }
    let list: Vec<String> = hosts
        .into_iter()
        .map(|(mtu, hosts)| format!("{mtu} on {}", names(hosts.into_iter())))
        .collect();
    Some(check::MTUS_DIFFER.at_large(format!("the nodes' links have different MTUs: {}", list.join(", "))))
}

/// What could not be tried.
fn untold(paths: &Paths) -> Vec<Finding> {
    let check = &check::PATHS_UNTOLD;
    let mut found: Vec<Finding> = paths
        .mute
        .iter()
        .map(|(host, reason)| check.on(host, reason.clone()))
        .collect();
    let mut ports: BTreeMap<(&NodeName, &str), Vec<&Path>> = BTreeMap::new();
    for path in &paths.tried {
        // That a host is mute says it all.
        if let Outcome::Untold(reason) = &path.outcome
            && !paths.mute.contains_key(to(path))
        {
            ports.entry((to(path), reason)).or_default().push(path);
        }
    }
    for ((host, reason), untold) in ports {
        let message = format!(
            "whether its {} is in reach could not be tried: {reason}",
            listed_ports(&untold)
        );
        found.push(check.on(host, message));
    }
    found
}
