//! The plan of `reset`: hosts become bare again.
//!
//! Workers side by side, controllers one after the other with their etcd members removed, the
//! first one last, load balancers at the end. With only some hosts named, the rest of the
//! cluster lives on, and one of its controllers takes them out of it first.

use std::collections::BTreeSet;
use std::path::Path;

use super::differences::given_name;
use super::identity::is_one_machine;
use super::standing::{self, node_name, own_ca};
use super::step::ResetStep;
use super::{Gate, Lane, Plan, Planned, Step};
use crate::check::{self, Finding};
use crate::cluster::{Cluster, Host, NodeName, Role};
use crate::facts::{Facts, HostFacts, Observation};

/// What the person wants to be reset.
#[derive(Debug, Clone, Default)]
pub struct ResetIntent {
    /// Only these hosts; `None` is all.
    pub only: Option<BTreeSet<NodeName>>,
    /// Packages that k8sup installed go, too.
    pub purge: bool,
}

/// Plans a reset.
///
/// # Errors
/// When another cluster than the inventory's runs there, or a host that was named is in truth another one of the
/// inventory, which was not.
pub fn plan(cluster: &Cluster, facts: &Facts, intent: &ResetIntent) -> Result<Plan, Vec<Finding>> {
    let mistaken = mistaken(cluster, facts, intent);
    if mistaken.is_empty() {
        Ok(planned(cluster, facts, intent))
    } else {
        Err(mistaken)
    }
}

/// What would go without being meant: a cluster of another name, and hosts whose machines are others of the inventory.
fn mistaken(cluster: &Cluster, facts: &Facts, intent: &ResetIntent) -> Vec<Finding> {
    let mut found = Vec::new();
    let live = facts.cluster.present().and_then(|live| live.kubeadm_config.present());
    if let Some(running) = live.and_then(given_name).filter(|name| *name != cluster.name) {
        let message = format!(
            "the cluster that runs on these hosts is {running}, the inventory's is {}",
            cluster.name
        );
        let hint = format!("if it is to go: set cluster.name to {running}");
        found.push(check::DIFFERS.at_large(message).hint(hint));
    }
    let chosen = |host: &&Host| intent.only.as_ref().is_none_or(|only| only.contains(&host.name));
    for host in cluster.hosts.iter().filter(chosen) {
        if let Some(Observation::Seen(seen)) = facts.hosts.get(&host.name)
            && standing::is_etcd_alone(&seen.kube)
        {
            let message =
                "an etcd without a control plane runs here as a static pod: it is some cluster's external one";
            let evidence = "/etc/kubernetes/manifests/etcd.yaml, and no /etc/kubernetes/pki/ca.crt";
            found.push(check::OTHER_ETCD.on(&host.name, message).evidence(evidence));
        }
    }
    let Some(only) = &intent.only else { return found };
    for host in cluster.hosts.iter().filter(|host| only.contains(&host.name)) {
        let Some(Observation::Seen(seen)) = facts.hosts.get(&host.name) else {
            continue;
        };
        let known = known_as(host, facts);
        let spared = |name: &NodeName| !only.contains(name) && cluster.hosts.iter().any(|other| other.name == *name);
        if spared(&known) {
            let message = format!("{} is {known} in the cluster, which was not named", host.address);
            found.push(check::RENAMED.on(&host.name, message));
        }
        let twin = cluster.hosts.iter().find(|other| {
            let facts = facts.hosts.get(&other.name);
            spared(&other.name) && matches!(facts, Some(Observation::Seen(other)) if is_one_machine(other, seen))
        });
        if let Some(twin) = twin {
            let message = format!("{} and {} are one and the same machine", host.name, twin.name);
            found.push(check::LISTED_TWICE.at_large(message));
        }
    }
    found
}

fn planned(cluster: &Cluster, facts: &Facts, intent: &ResetIntent) -> Plan {
    let chosen = |host: &Host| intent.only.as_ref().is_none_or(|only| only.contains(&host.name));
    let survivor = survivor(cluster, facts, intent);
    let mut plan = Plan::default();
    // Controllers leave one after the other, the first of the inventory last.
    let mut before: Vec<Gate> = cluster
        .role(Role::Worker)
        .filter(|host| chosen(host))
        .map(|host| Gate::Cleared(host.name.clone()))
        .collect();
    let mut leaving = Vec::new();
    let order = cluster
        .role(Role::LoadBalancer)
        .chain(cluster.role(Role::Controller))
        .chain(cluster.role(Role::Worker))
        .collect::<Vec<_>>()
        .into_iter()
        .rev();
    let mut lanes = Vec::new();
    for host in order.filter(|host| chosen(host)) {
        if let Some(leave) = survivor.and_then(|_| leave(host, facts)) {
            leaving.push(leave);
        }
        let seen = match facts.hosts.get(&host.name) {
            Some(Observation::Seen(seen)) => seen,
            Some(Observation::Unreachable(why)) => {
                let what = why.what();
                let message = format!("not reset, since it {what}: {}", why.reason);
                plan.left_out.push(host.name.clone());
                plan.warnings
                    .push(check::LEFT_OUT.on(&host.name, message).hint(why.what_to_do()));
                continue;
            }
            None => continue,
        };
        let mut steps = reset_host(host, seen, survivor.is_some(), intent.purge);
        let Some(first) = steps.first_mut() else { continue };
        match host.role {
            Role::Worker => {}
            Role::Controller => {
                first.after.clone_from(&before);
                before = vec![Gate::Cleared(host.name.clone())];
            }
            Role::LoadBalancer => first.after.clone_from(&before),
        }
        if survivor.is_some() && host.role != Role::LoadBalancer {
            first.needs.push(Gate::Forgotten(host.name.clone()));
        }
        if let Some(last) = steps.last_mut() {
            last.opens = Some(Gate::Cleared(host.name.clone()));
        }
        lanes.push(Lane {
            host: host.name.clone(),
            role: host.role,
            steps,
        });
    }
    if let Some(survivor) = survivor
        && !leaving.is_empty()
    {
        lanes.push(Lane {
            host: survivor.name.clone(),
            role: survivor.role,
            steps: leaving,
        });
    }
    lanes.reverse();
    plan.warnings.reverse();
    plan.left_out.reverse();
    keep_existing_gates(&mut lanes);
    plan.lanes = lanes;
    plan
}

/// A controller that stays, when only some hosts are reset and a cluster answers on it.
fn survivor<'a>(cluster: &'a Cluster, facts: &Facts, intent: &ResetIntent) -> Option<&'a Host> {
    let only = intent.only.as_ref()?;
    let live = facts.cluster.present()?;
    live.nodes.present()?;
    let stays = |host: &&Host| !only.contains(&host.name) && serves(facts, host);
    cluster.role(Role::Controller).find(stays)
}

fn serves(facts: &Facts, host: &Host) -> bool {
    match facts.hosts.get(&host.name) {
        Some(Observation::Seen(seen)) => seen.kube.readyz.present().is_some_and(|answer| answer == "ok"),
        Some(Observation::Unreachable(_)) | None => false,
    }
}

fn leave(host: &Host, facts: &Facts) -> Option<Planned> {
    let live = facts.cluster.present()?;
    let known = known_as(host, facts);
    let peer = format!("https://{}:2380", host.address);
    let node = live
        .nodes
        .present()
        .is_some_and(|nodes| nodes.contains_key(known.as_str()));
    let members = live.members.present();
    // By its name, where it has got a new address since.
    let member = members.and_then(|all| {
        let named = all.iter().find(|member| member.name == known.as_str());
        named.or_else(|| all.iter().find(|member| member.peer_urls.contains(&peer)))
    });
    if !node && member.is_none() {
        return None;
    }
    let voted_at = member.and_then(|member| {
        let url = member.peer_urls.first()?.strip_prefix("https://")?;
        url.strip_suffix(":2380")?.parse().ok()
    });
    let step = Step::LeaveCluster {
        node: known,
        address: voted_at.unwrap_or(host.address),
        controller: host.role == Role::Controller || member.is_some(),
    };
    Some(Planned::new(step, "the cluster lives on without it").opens(Gate::Forgotten(host.name.clone())))
}

/// The name under which the cluster knows the machine: its kubelet's certificate is right where the inventory differs.
fn known_as(host: &Host, facts: &Facts) -> NodeName {
    let kube = |name: &NodeName| match facts.hosts.get(name) {
        Some(Observation::Seen(seen)) => Some(&seen.kube),
        Some(Observation::Unreachable(_)) | None => None,
    };
    let certified = kube(&host.name).and_then(|own| {
        let asked = kube(facts.cluster.present()?.asked.as_ref()?)?;
        let same = own_ca(own).is_some() && own_ca(own) == own_ca(asked);
        same.then(|| NodeName::parse(node_name(own)?).ok()).flatten()
    });
    certified.unwrap_or_else(|| host.name.clone())
}

fn reset_host(host: &Host, facts: &HostFacts, keep_member: bool, purge: bool) -> Vec<Planned> {
    let mut steps = Vec::new();
    let restores = facts
        .record
        .present()
        .is_some_and(|record| purge || !record.only_packages());
    if host.role == Role::LoadBalancer {
        if restores {
            steps.push(Planned::new(Step::ResetLoadBalancer, "haproxy was set up by k8sup"));
        }
    } else if let Some(why) = leftovers(facts).first() {
        steps.push(Planned::new(
            Step::ResetNode(node_step(facts, keep_member)),
            why.clone(),
        ));
    }
    if restores {
        let packages = recorded_packages(facts).collect::<Vec<_>>().join(", ");
        let why = if purge && !packages.is_empty() {
            format!("k8sup has a record of its changes; it installed {packages}")
        } else {
            "k8sup has a record of its changes".to_owned()
        };
        steps.push(Planned::new(Step::RestoreHost { purge }, why));
    }
    steps
}

/// Packages that k8sup installed on the host, by its own record.
pub fn recorded_packages(facts: &HostFacts) -> impl Iterator<Item = &str> {
    let recorded = facts.record.present().and_then(|record| record.entries.get("package"));
    recorded.into_iter().flatten().map(String::as_str)
}

fn node_step(facts: &HostFacts, keep_member: bool) -> ResetStep {
    let kube = &facts.kube;
    // Only for an etcd of its own does kubeadm make a peer certificate; the CA alone may be an external etcd's.
    let kubeadms_etcd =
        (kube.has("manifests/etcd.yaml") || kube.has("pki/etcd/peer.crt")) && !standing::has_others_etcd(facts);
    let data_dir = if kube.etcd_data_dir.is_empty() {
        "/var/lib/etcd"
    } else {
        kube.etcd_data_dir.as_str()
    };
    let links = facts.links.keys().filter(|name| is_ours(name)).cloned();
    let mut homes = vec![facts.login.home.clone(), "/root".to_owned()];
    homes.dedup();
    ResetStep {
        etcd_data_dir: kubeadms_etcd.then(|| data_dir.to_owned()),
        keep_member,
        cni_files: kube.files.iter().filter(|file| *file == FLANNEL_CNI).cloned().collect(),
        homes,
        links: links.collect(),
        keep: kube
            .files
            .iter()
            .filter(|file| is_of_others_etcd(facts, file))
            .cloned()
            .collect(),
    }
}

/// A certificate or key of an etcd that is not kubeadm's, or for its clients.
fn is_of_others_etcd(facts: &HostFacts, file: &str) -> bool {
    let inside = file.strip_prefix("/etc/kubernetes/pki/");
    standing::has_others_etcd(facts)
        && inside.is_some_and(|file| file.starts_with("etcd/") || file.starts_with("apiserver-etcd-client."))
}

/// Links of Flannel, the bridge plugin and kube-proxy.
pub(crate) fn is_ours(link: &str) -> bool {
    link == "cni0" || link == "kube-ipvs0" || link.starts_with("flannel.") || link == "flannel-wg"
}

/// What Flannel's init container writes.
pub(crate) const FLANNEL_CNI: &str = "/etc/cni/net.d/10-flannel.conflist";
/// kubeadm's and the kubelet's, in /etc/kubernetes.
const KUBECONFIGS: [&str; 6] = [
    "admin.conf",
    "super-admin.conf",
    "kubelet.conf",
    "bootstrap-kubelet.conf",
    "controller-manager.conf",
    "scheduler.conf",
];

/// Files of kubeadm, the kubelet and Flannel; others in the same folders are somebody's own.
fn is_of_a_cluster(file: &str) -> bool {
    if file.starts_with("/etc/cni/net.d/") {
        return file == FLANNEL_CNI;
    }
    let Some(inside) = file.strip_prefix("/etc/kubernetes/") else {
        return true;
    };
    match inside.split_once('/') {
        Some(("manifests", name)) => Path::new(name).extension().is_some_and(|found| found == "yaml"),
        Some((folder, _)) => matches!(folder, "pki" | "tmp"),
        None => KUBECONFIGS.contains(&inside),
    }
}

/// What of Kubernetes is on a host; empty means that it is clean.
#[must_use]
pub fn leftovers(facts: &HostFacts) -> Vec<String> {
    let kube = &facts.kube;
    let mut found: Vec<String> = kube
        .files
        .iter()
        .filter(|file| is_of_a_cluster(file) && !is_of_others_etcd(facts, file))
        .map(|file| format!("file {file}"))
        .collect();
    if kube.etcd_data {
        found.push(format!("etcd data in {}", kube.etcd_data_dir));
    }
    found.extend(
        facts
            .links
            .keys()
            .filter(|name| is_ours(name))
            .map(|name| format!("link {name}")),
    );
    found.extend(facts.network_leftovers.iter().cloned());
    let mut known = BTreeSet::new();
    found.retain(|item| known.insert(item.clone()));
    found
}

/// A needed gate without an opener would count as open: here that is right (the cluster has
/// forgotten the host before), but the plan should not name it.
fn keep_existing_gates(lanes: &mut [Lane]) {
    let opened: BTreeSet<Gate> = lanes
        .iter()
        .flat_map(|lane| &lane.steps)
        .filter_map(|planned| planned.opens.clone())
        .collect();
    for planned in lanes.iter_mut().flat_map(|lane| &mut lane.steps) {
        planned.needs.retain(|gate| opened.contains(gate));
        planned.after.retain(|gate| opened.contains(gate));
    }
}
