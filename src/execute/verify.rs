//! Liveness: waits until the cluster serves, and says what does not.
//!
//! The planner compares configuration; whether nodes are Ready, etcd's members vote and
//! backends are up is looked at here.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cluster::{Cluster, NodeName, Role};
use crate::facts::{ClusterFacts, Facts, Observation, Seen};
use crate::remote::{Command, Lines, Param, RunError, Session};

/// Waits on a controller until nodes, kube-proxy, Flannel and CoreDNS are ready, at most 5 min.
///
/// # Errors
/// When the controller cannot be asked. That something is not ready shows in [`problems`].
pub async fn settle(session: &Session, nodes: &[NodeName], lines: &Lines) -> Result<(), RunError> {
    let names = nodes.iter().map(NodeName::as_str).collect::<Vec<_>>().join("\n");
    let command = Command {
        name: "verify".to_owned(),
        script: include_str!("../../templates/verify.sh").to_owned(),
        params: vec![
            ("NODES".to_owned(), Param::Plain(names)),
            ("LIMIT".to_owned(), Param::Plain("300".to_owned())),
        ],
        root: true,
        timeout: Duration::from_secs(360),
    };
    session.run(&command, Some(lines)).await.map(|_| ())
}

/// Seconds in which a new Node's pods may be on their way: images are pulled, Flannel and kube-proxy start.
const YOUNG: i64 = 300;

/// A Node has joined just now, by the clock of the controller that was asked: a run that was ended did not wait for it.
#[must_use]
pub fn has_just_grown(facts: &Facts) -> bool {
    let Some(live) = facts.cluster.present() else {
        return false;
    };
    let asked = live.asked.as_ref().and_then(|host| facts.hosts.get(host));
    let Some(Observation::Seen(asked)) = asked else {
        return false;
    };
    let Ok(now) = i64::try_from(asked.clock) else {
        return false;
    };
    live.nodes.present().into_iter().flatten().any(|(_, node)| {
        let created = node.created.parse::<jiff::Timestamp>();
        created.is_ok_and(|created| now - created.as_second() < YOUNG)
    })
}

/// Something that does not serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The host it is about.
    pub host: Option<NodeName>,
    /// One sentence.
    pub message: String,
}

/// What of the cluster does not serve; hosts in `left_out` are not asked about.
#[must_use]
pub fn problems(cluster: &Cluster, facts: &Facts, left_out: &[NodeName]) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut say = |host: Option<&NodeName>, message: String| {
        found.push(Problem {
            host: host.cloned(),
            message,
        });
    };
    match &facts.cluster {
        Seen::Absent => say(None, "there is no cluster".to_owned()),
        Seen::Unknown(why) => say(None, format!("the cluster does not answer: {why}")),
        Seen::Present(live) => {
            nodes(cluster, live, left_out, &mut say);
            members(cluster, live, left_out, &mut say);
            add_ons(live, &mut say);
        }
    }
    for host in cluster
        .role(Role::LoadBalancer)
        .filter(|host| !left_out.contains(&host.name))
    {
        let Some(Observation::Seen(seen)) = facts.hosts.get(&host.name) else {
            continue;
        };
        match &seen.backends {
            Seen::Present(backends) => {
                for controller in cluster
                    .role(Role::Controller)
                    .filter(|host| !left_out.contains(&host.name))
                {
                    let state = backends
                        .get(controller.name.as_str())
                        .map_or("not listed", String::as_str);
                    if !state.starts_with("UP") {
                        say(Some(&host.name), format!("haproxy sees {} as {state}", controller.name));
                    }
                }
            }
            Seen::Absent => say(Some(&host.name), "haproxy does not run".to_owned()),
            Seen::Unknown(why) => say(
                Some(&host.name),
                format!("haproxy's view of its backends is unknown: {why}"),
            ),
        }
    }
    found
}

fn nodes(
    cluster: &Cluster,
    live: &ClusterFacts,
    left_out: &[NodeName],
    say: &mut impl FnMut(Option<&NodeName>, String),
) {
    let nodes = match &live.nodes {
        Seen::Present(nodes) => nodes,
        Seen::Absent => return say(None, "the API lists no nodes".to_owned()),
        Seen::Unknown(why) => return say(None, format!("the nodes cannot be read: {why}")),
    };
    let mut public: BTreeMap<&str, &NodeName> = BTreeMap::new();
    for host in cluster.nodes().filter(|host| !left_out.contains(&host.name)) {
        let name = Some(&host.name);
        let Some(node) = nodes.get(host.name.as_str()) else {
            say(name, "it has no Node".to_owned());
            continue;
        };
        if !node.ready {
            say(name, format!("its Node is not Ready: {}", node.ready_message));
        }
        if !node.pressure.is_empty() {
            let short = node.pressure.join(", ");
            say(
                name,
                format!("its Node reports {short}: the kubelet evicts pods and takes no new ones"),
            );
        }
        match &node.internal_ip {
            Some(address) if *address == host.address.to_string() => {}
            other => say(
                name,
                format!(
                    "its Node has the address {}, the inventory says {}",
                    other.as_deref().unwrap_or("none"),
                    host.address
                ),
            ),
        }
        match &node.flannel_public_ip {
            None => say(name, "flannel has not registered it".to_owned()),
            Some(address) => {
                if let Some(other) = public.insert(address, &host.name) {
                    say(name, format!("flannel uses {address} for it and for {other}"));
                }
            }
        }
    }
}

fn members(
    cluster: &Cluster,
    live: &ClusterFacts,
    left_out: &[NodeName],
    say: &mut impl FnMut(Option<&NodeName>, String),
) {
    let members = match &live.members {
        Seen::Present(members) => members,
        Seen::Absent => return say(None, "etcd lists no members".to_owned()),
        Seen::Unknown(why) => return say(None, format!("etcd's members cannot be read: {why}")),
    };
    let peer = |address: std::net::Ipv4Addr| format!("https://{address}:2380");
    for host in cluster
        .role(Role::Controller)
        .filter(|host| !left_out.contains(&host.name))
    {
        match members
            .iter()
            .find(|member| member.peer_urls.contains(&peer(host.address)))
        {
            None => say(Some(&host.name), "etcd does not list it".to_owned()),
            Some(member) if member.learner => say(Some(&host.name), "its etcd member does not vote".to_owned()),
            Some(member) if member.name.is_empty() => say(Some(&host.name), "its etcd member never started".to_owned()),
            Some(_) => {}
        }
    }
    // A member that no inventory lists stays until somebody removes it: the plan warns of it.
}

fn add_ons(live: &ClusterFacts, say: &mut impl FnMut(Option<&NodeName>, String)) {
    for (name, rollout) in [
        ("kube-proxy", &live.kube_proxy),
        ("CoreDNS", &live.coredns),
        ("flannel", &live.flannel),
    ] {
        match rollout {
            Seen::Present(rollout) if rollout.current && rollout.available == rollout.desired => {}
            Seen::Present(rollout) => say(
                None,
                format!("{name}: {} of {} available", rollout.available, rollout.desired),
            ),
            Seen::Absent => say(None, format!("{name} is not there")),
            Seen::Unknown(why) => say(None, format!("{name} cannot be read: {why}")),
        }
    }
}
