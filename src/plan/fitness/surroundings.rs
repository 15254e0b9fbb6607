//! What else is on a host that is to join and may disturb the cluster, or be disturbed by it.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use crate::check::{self, Check, Finding};
use crate::cluster::{Cluster, Host, NodeName, Role};
use crate::concern::{firewall, kubelet, names, packages};
use crate::facts::ruleset::Ruleset;
use crate::facts::surroundings::ResolvConf;
use crate::facts::{ClusterFacts, HostFacts};
use crate::plan::apply::Member;

/// Programs that k8sup brings as packages, where a package never puts them.
const BY_HAND: [&str; 8] = [
    "/usr/local/bin/kubeadm",
    "/usr/local/bin/kubelet",
    "/usr/local/bin/kubectl",
    "/usr/local/bin/crictl",
    "/usr/local/bin/containerd",
    "/usr/local/sbin/containerd",
    "/snap/bin/kubeadm",
    "/snap/bin/kubelet",
];

/// What must not be.
pub(super) fn refused(part: &Member<'_>) -> Vec<Finding> {
    let (name, facts) = (&part.host.name, part.facts);
    let mut found = Vec::new();
    let resolver = match &facts.surroundings.resolv_conf {
        ResolvConf::Missing => Some(("there is no /etc/resolv.conf".to_owned(), "no such file".to_owned())),
        ResolvConf::Dangling(target) => Some((
            "/etc/resolv.conf leads nowhere".to_owned(),
            format!("/etc/resolv.conf -> {target}, which does not exist"),
        )),
        ResolvConf::There if facts.nameservers.is_empty() && !facts.unknown.contains_key("resolv-conf") => Some((
            "/etc/resolv.conf names no server".to_owned(),
            "/etc/resolv.conf without `nameserver`".to_owned(),
        )),
        ResolvConf::There | ResolvConf::Unknown => None,
    };
    found.extend(resolver.map(|(message, evidence)| check::NO_RESOLVER.on(name, message).evidence(evidence)));
    let shadows: Vec<&str> = BY_HAND
        .into_iter()
        .filter(|path| facts.surroundings.paths.contains(*path))
        .collect();
    if !shadows.is_empty() {
        let message = format!("{} would be run instead of the package's", shadows.join(", "));
        found.push(check::SHADOWED.on(name, message).evidence(shadows.join(", ")));
    }
    found.extend(other_start(name, facts));
    found.extend(static_pods(name, facts));
    found
}

/// A service that is needed, and that nobody can start.
pub(super) fn masked(part: &Member<'_>) -> Option<Finding> {
    let (host, facts) = (part.host, part.facts);
    if host.role != Role::LoadBalancer && !part.comes() {
        return None;
    }
    let needed: &[&str] = match host.role {
        Role::LoadBalancer => &["haproxy"],
        Role::Controller | Role::Worker => &["containerd", "kubelet"],
    };
    let masked: Vec<&str> = needed
        .iter()
        .copied()
        .filter(|name| facts.masked.contains(*name))
        .collect();
    let names = masked.join(" ");
    (!masked.is_empty()).then(|| {
        let verb = if masked.len() == 1 { "is" } else { "are" };
        let message = format!("{} {verb} masked and cannot be started", masked.join(" and "));
        check::MASKED
            .on(&host.name, message)
            .evidence(format!("systemctl is-enabled {names}: masked"))
            .hint(format!(
                "somebody has done so on purpose: `systemctl unmask {names}` if it is no longer wanted"
            ))
    })
}

/// A drop-in that starts the kubelet without what kubeadm tells it.
fn other_start(name: &NodeName, facts: &HostFacts) -> Option<Finding> {
    let starts = |text: &str| {
        let line = text
            .lines()
            .rev()
            .find_map(|line| line.trim().strip_prefix("ExecStart="))?;
        (!line.trim().is_empty() && !line.contains("$KUBELET_KUBEADM_ARGS")).then(|| line.trim().to_owned())
    };
    let drop_ins = facts
        .files
        .iter()
        .filter(|(path, _)| path.starts_with(kubelet::DROP_INS));
    let (path, line) = drop_ins
        .filter_map(|(path, file)| Some((path, starts(&file.content)?)))
        .next_back()?;
    Some(
        check::KUBELET_START
            .on(name, format!("{path} starts the kubelet without kubeadm's settings"))
            .evidence(format!("{path}: ExecStart={line}"))
            .hint(format!(
                "move {path} away, then `systemctl daemon-reload`; flags belong into /etc/default/kubelet"
            )),
    )
}

/// Static pods that are not kubeadm's: kubeadm refuses to work in a folder that has some.
fn static_pods(name: &NodeName, facts: &HostFacts) -> Option<Finding> {
    let known = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];
    let folder = "/etc/kubernetes/manifests/";
    let files = facts.kube.files.iter().filter_map(|path| path.strip_prefix(folder));
    // The kubelet reads no file that begins with a dot, and its package brings one.
    let pods = files.filter(|file| !file.starts_with('.'));
    let own: Vec<String> = pods
        .filter(|file| file.strip_suffix(".yaml").is_none_or(|pod| !known.contains(&pod)))
        .map(|file| format!("{folder}{file}"))
        .collect();
    let first = own.first()?;
    let message = format!("{first} is a static pod that is not kubeadm's");
    Some(check::STATIC_PODS.on(name, message).evidence(own.join("\n")))
}

/// What a person should know.
pub(super) fn told(cluster: &Cluster, part: &Member<'_>) -> Vec<Finding> {
    let (host, facts) = (part.host, part.facts);
    let kinds: [(&'static Check, Told); 7] = [
        (&check::WIRELESS, wireless(host, facts)),
        (&check::PROXY, proxy(cluster, facts)),
        (&check::TWO_IPTABLES, two_iptables(facts)),
        (&check::OTHER_RUNTIME, other_runtimes(facts)),
        (&check::RUNC_APPARMOR, runc(facts)),
        (&check::OTHER_PACKAGE, other_packages(cluster, facts)),
        (&check::CLOUD_INIT, cloud_init(cluster, host, facts)),
    ];
    let told = kinds.into_iter().filter_map(|(check, found)| Some((check, found?)));
    told.map(|(check, (message, evidence))| check.on(&host.name, message).evidence(evidence))
        .collect()
}

/// A sentence and what was seen.
type Told = Option<(String, String)>;

fn wireless(host: &Host, facts: &HostFacts) -> Told {
    let interface = firewall::interface(host, facts);
    let device = facts.surroundings.devices.get(&interface)?;
    let driver = device.driver.as_deref().unwrap_or("of unknown driver");
    device.wireless.then(|| {
        let seen = format!("{} on {interface} ({driver})", host.address);
        (format!("the cluster's address is on Wi-Fi ({interface})"), seen)
    })
}

/// A proxy that the cluster's own addresses are not spared.
fn proxy(cluster: &Cluster, facts: &HostFacts) -> Told {
    let proxies = &facts.surroundings.proxies;
    let (variable, value) = proxies
        .iter()
        .find(|(name, _)| !name.eq_ignore_ascii_case("no_proxy") && !name.eq_ignore_ascii_case("all_proxy"))?;
    let spared: Vec<&str> = proxies
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("no_proxy"))
        .flat_map(|(_, list)| list.split(','))
        .map(str::trim)
        .collect();
    let is_spared = |what: &str| {
        spared
            .iter()
            .any(|entry| *entry == "*" || *entry == what || covers(entry, what))
    };
    let mut needed = vec![
        cluster.endpoint.host.clone(),
        cluster.pod_cidr.to_string(),
        cluster.service_cidr.to_string(),
    ];
    needed.extend(cluster.role(Role::Controller).map(|host| host.address.to_string()));
    needed.retain(|what| !is_spared(what));
    (!needed.is_empty()).then(|| {
        let message = format!("{variable} is set for root, and no_proxy lacks {}", needed.join(", "));
        (message, format!("{variable}={value} no_proxy={}", spared.join(",")))
    })
}

/// An entry of `no_proxy`: a network, or a domain and what is below it.
fn covers(entry: &str, what: &str) -> bool {
    let network = |text: &str| {
        text.parse::<Ipv4Net>()
            .ok()
            .or_else(|| Some(Ipv4Net::from(text.parse::<Ipv4Addr>().ok()?)))
    };
    match (network(entry), network(what)) {
        (Some(entry), Some(what)) => entry.contains(&what),
        (None, None) => what.ends_with(&format!(".{}", entry.trim_start_matches('.'))),
        _ => false,
    }
}

fn two_iptables(facts: &HostFacts) -> Told {
    let path = facts.surroundings.iptables.get("iptables")?;
    let tables: Vec<&str> = facts.surroundings.legacy_tables.iter().map(String::as_str).collect();
    let legacy = path.contains("legacy");
    let other = facts.surroundings.ruleset.present().is_some_and(Ruleset::has_nftables);
    if !legacy && !tables.is_empty() {
        let message = "iptables speaks to nftables, but there are rules of the legacy one".to_owned();
        Some((
            message,
            format!("iptables -> {path}; legacy tables: {}", tables.join(", ")),
        ))
    } else if legacy && other {
        let message = "iptables is the legacy one, but nftables has rules, too".to_owned();
        Some((message, format!("iptables -> {path}; nft list ruleset is not empty")))
    } else {
        None
    }
}

fn other_runtimes(facts: &HostFacts) -> Told {
    let runs = |unit: &str| {
        let service = facts.services.get(unit);
        service.is_some_and(|service| service.active || service.enabled)
    };
    let socket = |path: &str| facts.surroundings.sockets.contains(path);
    let mut others = Vec::new();
    for (name, there, seen) in [
        (
            "docker",
            runs("docker") || socket("/run/docker.sock"),
            "docker.service, /run/docker.sock",
        ),
        (
            "CRI-O",
            runs("crio") || socket("/run/crio/crio.sock"),
            "crio.service, /run/crio/crio.sock",
        ),
        (
            "cri-dockerd",
            runs("cri-docker") || socket("/run/cri-dockerd.sock"),
            "cri-docker.service, /run/cri-dockerd.sock",
        ),
    ] {
        if there {
            others.push((name, seen));
        }
    }
    let names: Vec<_> = others.iter().map(|(name, _)| *name).collect();
    let seen: Vec<_> = others.iter().map(|(_, seen)| *seen).collect();
    (!others.is_empty()).then(|| {
        (
            format!("beside containerd there is {}", names.join(" and ")),
            seen.join(", "),
        )
    })
}

/// Ubuntu 24.04's first runc has an `AppArmor` profile that containerd before 1.7.16 does not know how to signal through.
fn runc(facts: &HostFacts) -> Told {
    let runc = packages::installed(facts, "runc")?;
    let containerd = packages::installed(facts, "containerd")?;
    let numbers: Vec<u32> = containerd
        .split(|c: char| !c.is_ascii_digit())
        .take(3)
        .filter_map(|part| part.parse().ok())
        .collect();
    let affected = facts.os.id == "ubuntu"
        && facts.os.codename == "noble"
        && runc.starts_with("1.1.12-0ubuntu3")
        && numbers.as_slice() < [1, 7, 16].as_slice();
    affected.then(|| {
        (
            "its runc and containerd leave pods in Terminating".to_owned(),
            format!("runc {runc}, containerd {containerd}"),
        )
    })
}

/// The project's packages have versions that end in `-1.1`, say.
fn other_packages(cluster: &Cluster, facts: &HostFacts) -> Told {
    let of_project = |version: &str| {
        let revision = version.rsplit_once('-').map_or("", |(_, revision)| revision);
        let numbers = revision.split_once('.');
        let number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        numbers.is_some_and(|(first, second)| number(first) && number(second))
    };
    let others: Vec<String> = ["kubeadm", "kubelet", "kubectl"]
        .into_iter()
        .filter_map(|name| Some((name, packages::installed(facts, name)?)))
        .filter(|(_, version)| packages::is_wanted_version(cluster, version) && !of_project(version))
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    (!others.is_empty()).then(|| {
        let message = format!("{} is not of the Kubernetes project's repository", others.join(", "));
        (message, others.join(", "))
    })
}

fn cloud_init(cluster: &Cluster, host: &Host, facts: &HostFacts) -> Told {
    let says = |key: &str, value: &str| {
        let mut lines = facts.surroundings.cloud_init.iter();
        lines
            .rfind(|line| {
                let said = line.split_once(&format!("{key}:")).map(|(_, rest)| rest);
                said.is_some_and(|rest| {
                    rest.split('#')
                        .next()
                        .unwrap_or_default()
                        .trim()
                        .trim_matches(['"', '\''])
                        == value
                })
            })
            .cloned()
    };
    let hosts = names::steps(cluster, host, facts)
        .iter()
        .any(|planned| matches!(planned.step, crate::plan::Step::HostsFile { .. }));
    let hosts = hosts.then(|| says("manage_etc_hosts", "true")).flatten();
    let renamed = cluster.set_hostnames && facts.hostname != host.name.as_str();
    let name = renamed.then(|| says("preserve_hostname", "false")).flatten();
    match (hosts, name) {
        (Some(line), _) => Some(("cloud-init writes /etc/hosts anew at every boot".to_owned(), line)),
        (None, Some(line)) => Some(("cloud-init sets the host's name anew at every boot".to_owned(), line)),
        (None, None) => None,
    }
}

/// Seconds after which the controller manager's lease of 15 s has certainly ended.
const STALE: i64 = 60;

/// Nobody would sign the certificates of those that join.
pub(super) fn controller_manager(parts: &[Member<'_>], live: Option<&ClusterFacts>) -> Option<Finding> {
    let live = live?;
    let renewed = *live.controller_manager.present()?;
    let asked = parts.iter().find(|part| Some(&part.host.name) == live.asked.as_ref())?;
    let age = i64::try_from(asked.facts.clock).ok()?.saturating_sub(renewed);
    (age > STALE).then(|| {
        let message = format!(
            "the controller manager has not renewed its lease for {age} s: nobody signs for kubelets that join"
        );
        check::CONTROLLER_MANAGER
            .at_large(message)
            .evidence("lease kube-system/kube-controller-manager: renewTime")
    })
}

#[cfg(test)]
mod tests {
    use super::covers;

    #[test]
    fn exceptions_of_a_proxy_are_networks_and_domains() {
        for (entry, what, expected) in [
            ("192.168.0.0/16", "192.168.7.201", true),
            ("192.168.7.201", "192.168.7.201", true),
            ("10.0.0.0/8", "10.244.0.0/16", true),
            ("10.244.1.0/24", "10.244.0.0/16", false),
            (".lan", "k8s.lan", true),
            ("lan", "k8s.lan", true),
            ("an", "k8s.lan", false),
            ("", "192.168.7.201", false),
        ] {
            assert_eq!(covers(entry, what), expected, "{entry} {what}");
        }
    }
}
