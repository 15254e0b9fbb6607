//! What is, taken from the facts and put into the words of a status.
//!
//! Nothing is weighed here: what of it is wrong is for `judge` to say.

use std::collections::BTreeMap;

use super::quorum::{Running, running};
use super::{
    AddonStatus, BackendStatus, CertificateStatus, DAY, HostStatus, KUBELET_CERTIFICATE, Maybe, MemberState,
    MemberStatus, NodeStatus, RolloutStatus, Status,
};
use crate::cluster::{Cluster, Host, NodeName, Role};
use crate::facts::cluster::{Member, NodeFact, Rollout};
use crate::facts::{ClusterFacts, Facts, HostFacts, Observation, Seen};
use crate::report::text::clean;

/// All but the problems.
pub(super) fn status(cluster: &Cluster, facts: &Facts, now: i64) -> Status {
    let hosts = cluster.hosts.iter().map(|host| host_status(facts, host, now)).collect();
    let etcd = asked(
        &facts.cluster,
        |seen| &seen.members,
        |members| members_of(cluster, facts, members),
    );
    let load_balancers = cluster
        .role(Role::LoadBalancer)
        .map(|host| BackendStatus {
            name: host.name.clone(),
            backends: backends_of(facts, &host.name),
        })
        .collect();
    let addons = vec![
        AddonStatus {
            name: "coredns",
            rollout: asked(&facts.cluster, |seen| &seen.coredns, rollout_of),
        },
        AddonStatus {
            name: "kube-proxy",
            rollout: asked(&facts.cluster, |seen| &seen.kube_proxy, rollout_of),
        },
        AddonStatus {
            name: "flannel",
            rollout: asked(&facts.cluster, |seen| &seen.flannel, rollout_of),
        },
    ];
    Status {
        format: "k8sup.status/1",
        cluster: cluster.name.clone(),
        endpoint: cluster.endpoint.to_string(),
        version: cluster.version.to_string(),
        healthy: false,
        asked: facts.cluster.present().and_then(|seen| seen.asked.clone()),
        problems: Vec::new(),
        hosts,
        etcd,
        load_balancers,
        addons,
    }
}

fn host_status(facts: &Facts, host: &Host, now: i64) -> HostStatus {
    let has_node = host.role != Role::LoadBalancer;
    let node = if has_node {
        match asked(
            &facts.cluster,
            |seen| &seen.nodes,
            |nodes| nodes.get(host.name.as_str()),
        ) {
            Maybe::Known(Some(node)) => Maybe::Known(node),
            Maybe::Known(None) | Maybe::None => Maybe::None,
            Maybe::Unknown(reason) => Maybe::Unknown(reason),
        }
    } else {
        Maybe::None
    };
    let mut status = HostStatus {
        name: host.name.clone(),
        role: host.role,
        address: host.address,
        reachable: false,
        os: None,
        kubelet: Maybe::None,
        node: match &node {
            Maybe::Known(node) => Maybe::Known(node_status(node, now)),
            Maybe::None => Maybe::None,
            Maybe::Unknown(reason) => Maybe::Unknown(reason.clone()),
        },
        certificate: Maybe::None,
    };
    let unseen = match facts.hosts.get(&host.name) {
        Some(Observation::Seen(seen)) => {
            status.reachable = true;
            status.os = Some(clean(&seen.os.pretty)).filter(|os| !os.is_empty());
            status.certificate = earliest(seen, now);
            None
        }
        Some(Observation::Unreachable(why)) => Some(clean(&why.reason)),
        None => Some("was not looked at".to_owned()),
    };
    if has_node {
        status.kubelet = match (&node, &unseen, facts.hosts.get(&host.name)) {
            (Maybe::Known(node), ..) => Maybe::Known(clean(&node.kubelet_version)),
            (_, None, Some(Observation::Seen(seen))) => {
                // Debian's version `1.34.4-1.1` without its revision.
                match seen
                    .packages
                    .get("kubelet")
                    .and_then(|package| package.installed.as_deref())
                {
                    Some(version) => Maybe::Known(format!("v{}", clean(version.split('-').next().unwrap_or(version)))),
                    None => Maybe::None,
                }
            }
            (_, Some(reason), _) => Maybe::Unknown(reason.clone()),
            (_, None, _) => Maybe::None,
        };
    }
    if let Some(reason) = unseen {
        status.certificate = Maybe::Unknown(reason);
    }
    status
}

fn node_status(node: &NodeFact, now: i64) -> NodeStatus {
    NodeStatus {
        ready: node.ready,
        message: clean(&node.ready_message),
        cordoned: node.unschedulable,
        created: clean(&node.created),
        age_seconds: node
            .created
            .parse::<jiff::Timestamp>()
            .ok()
            .map(|created| (now - created.as_second()).max(0)),
    }
}

/// The certificate of the host that expires first.
fn earliest(seen: &HostFacts, now: i64) -> Maybe<CertificateStatus> {
    let own = seen
        .kube
        .kubelet
        .present()
        .map(|certificate| (KUBELET_CERTIFICATE, certificate));
    let all = seen
        .kube
        .certificates
        .iter()
        .map(|(path, certificate)| (path.as_str(), certificate))
        .chain(own);
    all.min_by_key(|(_, certificate)| certificate.not_after)
        .map_or(Maybe::None, |(path, certificate)| {
            let not_after = certificate.not_after;
            Maybe::Known(CertificateStatus {
                path: clean(path),
                not_after,
                days_left: (not_after - now).div_euclid(DAY),
            })
        })
}

/// A fact of the cluster's, none where there is no cluster.
fn asked<'a, S, T>(
    cluster: &'a Seen<ClusterFacts>,
    field: impl FnOnce(&'a ClusterFacts) -> &'a Seen<S>,
    make: impl FnOnce(&'a S) -> T,
) -> Maybe<T>
where
    S: 'a,
{
    match cluster {
        Seen::Present(seen) => Maybe::of(field(seen), make),
        Seen::Absent => Maybe::None,
        Seen::Unknown(reason) => Maybe::Unknown(clean(reason)),
    }
}

fn rollout_of(rollout: &Rollout) -> RolloutStatus {
    let Rollout {
        desired,
        available,
        current,
    } = *rollout;
    RolloutStatus {
        desired,
        available,
        current,
    }
}

/// Every controller and every member, controllers first.
fn members_of(cluster: &Cluster, facts: &Facts, members: &[Member]) -> Vec<MemberStatus> {
    let mut rest: Vec<&Member> = members.iter().collect();
    let mut all = Vec::new();
    for host in cluster.role(Role::Controller) {
        // A member that has not started has no name yet; its peer URL tells whose it is.
        let peer = format!("//{}:", host.address);
        let position = rest
            .iter()
            .position(|member| member.name == host.name.as_str())
            .or_else(|| {
                rest.iter()
                    .position(|m| m.name.is_empty() && m.peer_urls.iter().any(|url| url.contains(&peer)))
            });
        let member = position.map(|position| rest.remove(position));
        all.push(MemberStatus {
            name: host.name.as_str().to_owned(),
            id: member.map(|member| clean(&member.id)),
            state: match member {
                Some(member) if member.learner => MemberState::Learner,
                Some(_) => match running(facts.hosts.get(&host.name)) {
                    Running::Yes => MemberState::Voter,
                    Running::No => MemberState::Stopped,
                    Running::Unseen => MemberState::Unseen,
                },
                None => MemberState::Missing,
            },
            peer_urls: member.map(|member| member.peer_urls.clone()).unwrap_or_default(),
        });
    }
    all.extend(rest.into_iter().map(|member| MemberStatus {
        name: clean(&member.name),
        id: Some(clean(&member.id)),
        state: MemberState::Ghost,
        peer_urls: member.peer_urls.clone(),
    }));
    all
}

fn backends_of(facts: &Facts, host: &NodeName) -> Maybe<BTreeMap<String, String>> {
    match facts.hosts.get(host) {
        Some(Observation::Seen(seen)) => Maybe::of(&seen.backends, |backends| {
            backends
                .iter()
                .map(|(name, state)| (clean(name), clean(state)))
                .collect()
        }),
        Some(Observation::Unreachable(why)) => Maybe::Unknown(clean(&why.reason)),
        None => Maybe::Unknown("was not looked at".to_owned()),
    }
}
