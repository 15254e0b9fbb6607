//! Who is who: whether the machines are the ones that the inventory means.
//!
//! Names and addresses are a person's; machine ids, certificates, Nodes and etcd members are facts. Where they
//! contradict each other nothing is changed, since every step would be done to the wrong machine.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use sha2::{Digest as _, Sha256};

use super::apply::Member;
use super::standing::{Standing, node_name, own_ca};
use crate::check::{self, Check, Finding};
use crate::cluster::{Cluster, Host, NodeName, Role};
use crate::facts::{ClusterFacts, HostFacts};

const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// Contradictions between the inventory and what machines and cluster say of themselves; `ca` is the public key's
/// SHA-256 of the authority of the cluster that answers.
pub(super) fn contradictions(
    cluster: &Cluster,
    parts: &[Member<'_>],
    live: Option<&ClusterFacts>,
    ca: Option<&str>,
) -> Vec<Finding> {
    let mut found = listed_twice(parts);
    for part in parts {
        found.extend(renamed(cluster, part, live.is_some(), ca));
    }
    let told: BTreeSet<_> = found.iter().filter_map(|blocker| blocker.host.clone()).collect();
    for host in cluster.nodes().filter(|host| !told.contains(&host.name)) {
        let part = parts.iter().find(|part| part.host.name == host.name);
        found.extend(match live {
            Some(live) => moved(host, part, live),
            None => part.and_then(moved_in_silence),
        });
    }
    found
}

/// What else is odd about who is who.
pub(super) fn oddities(cluster: &Cluster, parts: &[Member<'_>], live: Option<&ClusterFacts>) -> Vec<Finding> {
    let mut found = clones(parts);
    if let Some(live) = live {
        found.extend(unlisted(cluster, live));
    }
    found
}

/// One machine under several names: its ids are the same, and so is the boot that it runs since.
fn listed_twice(parts: &[Member<'_>]) -> Vec<Finding> {
    let mut machines: BTreeMap<(&str, &str), Vec<&Host>> = BTreeMap::new();
    for part in parts {
        if let (Some(machine), boot) = (part.facts.machine_id.present(), part.facts.boot_id.as_str())
            && !boot.is_empty()
        {
            machines.entry((machine, boot)).or_default().push(part.host);
        }
    }
    machines
        .into_iter()
        .filter(|(_, hosts)| hosts.len() > 1)
        .map(|((machine, boot), hosts)| {
            let who = names(hosts.iter().map(|host| &host.name));
            let reached: Vec<_> = hosts
                .iter()
                .map(|host| format!("{} was reached at {}", host.name, host.ssh.host))
                .collect();
            check::LISTED_TWICE
                .at_large(format!("{who} are one and the same machine"))
                .evidence(format!("machine-id {machine}, boot id {boot}: {}", reached.join(", ")))
        })
        .collect()
}

/// The kubelet's certificate is for another Node than the inventory's.
fn renamed(cluster: &Cluster, part: &Member<'_>, answers: bool, ca: Option<&str>) -> Option<Finding> {
    let (host, kube) = (part.host, &part.facts.kube);
    let known = node_name(kube).filter(|known| *known != host.name.as_str())?;
    let whose = match (own_ca(kube), ca) {
        (Some(own), Some(ours)) if own != ours => return None,
        (Some(_), Some(_)) => "this cluster",
        _ if host.role == Role::LoadBalancer => return None,
        _ => match part.standing {
            _ if answers => "this cluster",
            Standing::Member | Standing::Unfinished | Standing::Started => "this cluster",
            Standing::Unknown(_) => "a cluster",
            // Nothing is lost with it, or it is told otherwise.
            Standing::Bare | Standing::HalfMade(_) | Standing::Foreign(_) => return None,
        },
    };
    let hint = match cluster.hosts.iter().find(|other| other.name.as_str() == known) {
        Some(other) => format!(
            "the inventory has {known} at {}: put its names and addresses back as they were",
            other.address
        ),
        None if host.role == Role::LoadBalancer => {
            "a load balancer needs a machine of its own: correct its `address`".to_owned()
        }
        None => format!(
            "call it {known} in the inventory. To give it another name, let it join anew: \
             `k8sup reset --host {}`, then apply",
            host.name
        ),
    };
    let message = format!(
        "{} is node {known} of {whose} (its kubelet's certificate says so), the inventory calls it {}",
        host.address, host.name
    );
    Some(Finding {
        evidence: kube.kubelet.present().map(|certificate| certificate.subject.clone()),
        hint,
        ..check::RENAMED.on(&host.name, message)
    })
}

/// The Node or the etcd member of that name has another address than the inventory's.
fn moved(host: &Host, part: Option<&Member<'_>>, live: &ClusterFacts) -> Option<Finding> {
    let controller = host.role == Role::Controller;
    let comes_anew = part.is_some_and(Member::comes);
    let node = live.nodes.present().and_then(|nodes| nodes.get(host.name.as_str()));
    if let Some(node) = node
        && let Some(Ok(is)) = node.internal_ip.as_deref().map(str::parse::<Ipv4Addr>)
        && is != host.address
        // A worker that is gone may come back with any address: its old Node is forgotten.
        && (controller || node.ready || part.is_some() && !comes_anew)
    {
        let message = format!(
            "in the cluster {} is at {is}, the inventory has it at {}",
            host.name, host.address
        );
        let evidence = format!("InternalIP {is} of node {}", host.name);
        return Some(elsewhere(host, message, evidence, &is.to_string()));
    }
    if !controller {
        return None;
    }
    let peer = format!("https://{}:2380", host.address);
    let members = live.members.present()?;
    let there = members.iter().find(|member| member.peer_urls.contains(&peer));
    if let Some(member) = there
        && !member.name.is_empty()
        && member.name != host.name.as_str()
    {
        let message = format!(
            "etcd's member at {} is {}, the inventory has {} there",
            host.address, member.name, host.name
        );
        return Some(
            check::MOVED
                .on(&host.name, message)
                .evidence(format!("member {} {} {peer}", member.id, member.name))
                .hint("put names and addresses of the controllers back as they were"),
        );
    }
    let named = members.iter().find(|member| member.name == host.name.as_str())?;
    let urls = named.peer_urls.join(", ");
    (!named.peer_urls.contains(&peer)).then(|| {
        let message = format!(
            "etcd has {} at {urls}, the inventory has it at {}",
            host.name, host.address
        );
        let evidence = format!("member {} {} {urls}", named.id, named.name);
        let is = urls.trim_start_matches("https://").trim_end_matches(":2380");
        elsewhere(host, message, evidence, is)
    })
}

/// A control plane that gives no answer was made for another address.
fn moved_in_silence(part: &Member<'_>) -> Option<Finding> {
    let (host, certificate) = (part.host, part.facts.kube.apiserver.present()?);
    if part.standing != Standing::Started || certificate.addresses.contains(&host.address) {
        return None;
    }
    let is: Vec<String> = certificate.addresses.iter().map(ToString::to_string).collect();
    let message = format!(
        "its control plane was not made for {}, where the inventory has it",
        host.address
    );
    Some(
        check::MOVED
            .on(&host.name, message)
            .evidence(format!("/etc/kubernetes/pki/apiserver.crt is for {}", is.join(", ")))
            .hint(
                "a control plane keeps its address: give the host back the one that it had, there and in the inventory",
            ),
    )
}

fn elsewhere(host: &Host, message: String, evidence: String, is: &str) -> Finding {
    check::MOVED.on(&host.name, message).evidence(evidence).hint(format!(
        "if the inventory is wrong, set it to {is}. If the host has got a new address, it must join anew: \
             `k8sup reset --host {}`, then apply",
        host.name
    ))
}

/// Machines that were made from one image and kept its identity.
fn clones(parts: &[Member<'_>]) -> Vec<Finding> {
    type Identity = for<'a> fn(&Host, &'a HostFacts) -> Option<&'a String>;
    let kinds: [(&'static Check, &str, Identity); 4] = [
        (&check::MACHINE_IDS_ALIKE, "machine-id", |_, facts| {
            facts.machine_id.present()
        }),
        (&check::PRODUCT_UUIDS_ALIKE, "product_uuid", |_, facts| {
            facts.product_uuid.present().filter(|id| !is_nobodys(id))
        }),
        (&check::HOST_KEYS_ALIKE, "SSH host key", |_, facts| {
            let keys = &facts.surroundings.host_keys;
            keys.iter()
                .find(|key| key.starts_with("ssh-ed25519 "))
                .or_else(|| keys.first())
        }),
        (&check::MACS_ALIKE, "MAC address", |host, facts| {
            let own = facts
                .addresses
                .iter()
                .find(|entry| entry.address.addr() == host.address)?;
            facts.macs.get(&own.interface)
        }),
    ];
    let mut found = Vec::new();
    for (check, what, identity) in kinds {
        let mut same: BTreeMap<&String, Vec<&Member<'_>>> = BTreeMap::new();
        for part in parts {
            if let Some(id) = identity(part.host, part.facts) {
                let group = same.entry(id).or_default();
                // One machine that is listed twice is told by itself.
                if group.iter().all(|other| !is_one_machine(other.facts, part.facts)) {
                    group.push(part);
                }
            }
        }
        for (id, group) in same.into_iter().filter(|(_, group)| group.len() > 1) {
            // What runs so already is not nagged about.
            if group.iter().any(|part| part.comes()) {
                let who = names(group.iter().map(|part| &part.host.name));
                let id = fingerprint(id).unwrap_or_else(|| id.clone());
                found.push(
                    check
                        .at_large(format!("{who} have the same {what}"))
                        .evidence(format!("{what} {id}")),
                );
            }
        }
    }
    found
}

/// Of a public SSH key, as `ssh-keygen -l` prints it.
fn fingerprint(key: &str) -> Option<String> {
    let (kind, key) = key.split_once(' ')?;
    let key = STANDARD.decode(key).ok()?;
    Some(format!("{kind} SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(key))))
}

/// The same machine since the same boot.
pub(super) fn is_one_machine(one: &HostFacts, other: &HostFacts) -> bool {
    let known = one.machine_id.present().is_some() && !one.boot_id.is_empty();
    known && one.machine_id == other.machine_id && one.boot_id == other.boot_id
}

/// Makers of boards that give all of them the same identity.
fn is_nobodys(uuid: &str) -> bool {
    let uuid = uuid.to_ascii_lowercase();
    uuid.chars().all(|c| matches!(c, '0' | '-'))
        || uuid.chars().all(|c| matches!(c, 'f' | '-'))
        || uuid == "03000200-0400-0500-0006-000700080009"
}

/// Nodes and voters that the inventory does not list (any more).
fn unlisted(cluster: &Cluster, live: &ClusterFacts) -> Vec<Finding> {
    let listed = |name: &str| cluster.nodes().any(|host| host.name.as_str() == name);
    let balanced = cluster.role(Role::LoadBalancer).next().is_some();
    let voter = if balanced {
        "it keeps its vote in etcd, but haproxy does not forward to it"
    } else {
        "it keeps its vote in etcd"
    };
    let remove =
        |name: &str| format!("to remove it, list it again, `k8sup reset --host {name}`, and only then take it out");
    let mut found = Vec::new();
    let nodes = live.nodes.present();
    for (name, node) in nodes.into_iter().flatten().filter(|(name, _)| !listed(name)) {
        let address = node
            .internal_ip
            .as_deref()
            .map(|ip| format!(" ({ip})"))
            .unwrap_or_default();
        let (what, stays) = if node.labels.contains_key(CONTROL_PLANE) {
            ("controller", voter)
        } else {
            ("worker", "it is left as it is")
        };
        found.push(format!(
            "the cluster has the {what} {name}{address}, which the inventory does not list: {stays}; {}",
            remove(name)
        ));
    }
    for member in live.members.present().into_iter().flatten() {
        let told = nodes.is_some_and(|nodes| nodes.contains_key(&member.name));
        let ours = cluster.role(Role::Controller).any(|host| {
            host.name.as_str() == member.name || member.peer_urls.contains(&format!("https://{}:2380", host.address))
        });
        if !told && !ours {
            let (name, urls) = (&member.name, member.peer_urls.join(", "));
            found.push(format!(
                "etcd has the member {name} at {urls}, which is neither a node nor in the inventory: it keeps its vote; {}",
                remove(name)
            ));
        }
    }
    found
        .into_iter()
        .map(|message| check::UNLISTED.at_large(message).hint(""))
        .collect()
}

/// `a`, `a and b`, `a, b and c`.
fn names<'a>(names: impl Iterator<Item = &'a NodeName>) -> String {
    let names: Vec<&str> = names.map(NodeName::as_str).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}
