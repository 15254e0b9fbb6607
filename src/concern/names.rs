//! Names: the host's own, the endpoint's, and how pods resolve outside ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::check;
use crate::cluster::{Cluster, Host, Role};
use crate::facts::{HostFacts, Seen};
use crate::plan::{Planned, Step};
use crate::render::host;

const HOSTS: &str = "/etc/hosts";
/// A resolv.conf of ours, for the kubelet.
pub const RESOLV_CONF: &str = "/etc/k8sup-resolv.conf";
const RESOLVED: &str = "/run/systemd/resolve/resolv.conf";

/// The steps that make names right.
#[must_use]
pub fn steps(cluster: &Cluster, this: &Host, facts: &HostFacts) -> Vec<Planned> {
    let mut steps = Vec::new();
    if cluster.set_hostnames && facts.hostname != this.name.as_str() {
        let why = format!("the host calls itself {}", facts.hostname);
        let step = Step::Hostname {
            name: this.name.clone(),
        };
        steps.push(Planned::new(step, why.clone()).fixes([check::HOSTNAME_IS_SET.at_large(why)]));
    }
    steps.extend(hosts_file(cluster, facts));
    if this.role != Role::LoadBalancer && pod_resolv_conf(cluster, facts).as_deref() == Some(RESOLV_CONF) {
        let lines: Vec<_> = cluster
            .dns_resolvers
            .iter()
            .map(|address| format!("nameserver {address}"))
            .collect();
        let content = lines.join(
            "
",
        ) + "
";
        let before = facts.files.get(RESOLV_CONF).map(|file| file.content.as_str());
        if before != Some(content.as_str()) {
            steps.push(
                Planned::new(
                    Step::ResolvConf {
                        content: content.clone(),
                    },
                    "the host's /etc/resolv.conf names a resolver on its loopback, which pods cannot reach",
                )
                .fixes([check::LOCAL_RESOLVER.at_large(format!("nameserver {}", facts.nameservers.join(", ")))])
                .changes(RESOLV_CONF, before, Some(&content)),
            );
        }
    }
    steps
}

/// The file that the kubelet gives to pods instead of /etc/resolv.conf, when that names a local stub.
#[must_use]
pub fn pod_resolv_conf(cluster: &Cluster, facts: &HostFacts) -> Option<String> {
    if !is_local(&facts.nameservers) {
        return None;
    }
    match facts.resolved.present() {
        Some(upstream) if !is_local(upstream) => Some(RESOLVED.to_owned()),
        _ if !cluster.dns_resolvers.is_empty() => Some(RESOLV_CONF.to_owned()),
        _ => None,
    }
}

/// Whether names that pods look up would come back to their own loopback, with no way out known.
#[must_use]
pub fn resolves_in_a_loop(cluster: &Cluster, facts: &HostFacts) -> bool {
    is_local(&facts.nameservers) && pod_resolv_conf(cluster, facts).is_none()
}

fn is_local(nameservers: &[String]) -> bool {
    let mut addresses = nameservers.iter().peekable();
    addresses.peek().is_some()
        && addresses.all(|name| name.parse::<Ipv4Addr>().is_ok_and(|a| a.is_loopback()) || name == "::1")
}

/// What /etc/hosts lacks: the endpoint's name where nothing else resolves it, and localhost, which a resolver would
/// look for with the host's search domain.
fn hosts_file(cluster: &Cluster, facts: &HostFacts) -> Option<Planned> {
    let before = facts.files.get(HOSTS)?.content.as_str();
    let mut entries = Vec::new();
    let mut found = Vec::new();
    let own = host::hosts_with(before, &[]);
    if !names_localhost(&own, "127.0.0.1") {
        found.push(check::LOCALHOST.at_large(format!("{HOSTS} does not name localhost")));
        entries.push((IpAddr::from(Ipv4Addr::LOCALHOST), "localhost".to_owned()));
        if !names_localhost(&own, "::1") {
            entries.push((IpAddr::from(Ipv6Addr::LOCALHOST), "localhost".to_owned()));
        }
    }
    let name = &cluster.endpoint.host;
    let ours = before.lines().skip_while(|line| !line.starts_with(host::HOSTS_BEGIN));
    let ours = ours.flat_map(str::split_whitespace).any(|word| word == name);
    let resolves = facts.endpoint_resolves.present().is_some() && !ours;
    let target = cluster.role(Role::LoadBalancer).next();
    let target = target.or_else(|| cluster.role(Role::Controller).next());
    if let (Some(target), Err(_), false) = (target, name.parse::<Ipv4Addr>(), resolves) {
        found.push(check::ENDPOINT_UNKNOWN.at_large(format!("nothing on the host resolves {name}")));
        entries.push((IpAddr::from(target.address), name.clone()));
    }
    // An entry that is not needed any more is in nobody's way.
    if entries.is_empty() {
        return None;
    }
    let after = host::hosts_with(before, &entries);
    (after != before).then(|| {
        let step = Step::HostsFile { content: after.clone() };
        let reasons: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
        Planned::new(step, reasons.join("; "))
            .fixes(found)
            .changes(HOSTS, Some(before), Some(&after))
    })
}

fn names_localhost(hosts: &str, address: &str) -> bool {
    hosts.lines().any(|line| {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        words.next() == Some(address) && words.any(|name| name == "localhost")
    })
}

/// A host of an image that left its identity to the first boot, which did not make one.
#[must_use]
pub fn machine_id(facts: &HostFacts) -> Option<Planned> {
    let missing = match &facts.machine_id {
        Seen::Absent => true,
        Seen::Present(id) => id == "uninitialized",
        Seen::Unknown(_) => false,
    };
    missing.then(|| {
        let why = "/etc/machine-id is empty";
        Planned::new(Step::MachineId, why).fixes([check::NO_MACHINE_ID.at_large(why)])
    })
}
