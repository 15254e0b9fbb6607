//! What is wrong, and what to do about it: problems of a status that was collected.
//!
//! Nothing is looked up or shown here.

use super::quorum;
use super::text::date;
use super::{
    AddonStatus, CertificateStatus, HostStatus, KUBELET_CERTIFICATE, Maybe, MemberState, Problem, RolloutStatus,
    Severity, Status,
};
use crate::cluster::{Cluster, Host, NodeName, Role};
use crate::facts::{ClusterFacts, Facts, HostFacts, Observation, Seen};
use crate::report::text::clean;

/// Certificates that expire sooner are a warning.
pub(super) const SOON_DAYS: i64 = 30;

/// Everything that is wrong, errors first.
pub(super) fn problems(cluster: &Cluster, facts: &Facts, status: &Status) -> Vec<Problem> {
    let mut problems = Problems::default();
    judge_cluster(cluster, facts, &mut problems);
    for (host, about) in cluster.hosts.iter().zip(&status.hosts) {
        judge_host(facts, host, about, &mut problems);
    }
    if let Seen::Present(seen) = &facts.cluster {
        judge_nodes(cluster, seen, &mut problems);
        judge_etcd(status, &mut problems);
        judge_addons(&status.addons, &mut problems);
    }
    if !facts.cluster.is_absent() {
        judge_load_balancers(cluster, status, &mut problems);
    }
    problems.sorted()
}

/// Collects problems.
#[derive(Debug, Default)]
struct Problems(Vec<Problem>);

impl Problems {
    fn error(&mut self, host: Option<&NodeName>, message: String, hint: Option<&str>) {
        self.push(Severity::Error, host, message, hint);
    }

    fn unknown(&mut self, host: Option<&NodeName>, message: String, hint: Option<&str>) {
        self.push(Severity::Unknown, host, message, hint);
    }

    fn warning(&mut self, host: Option<&NodeName>, message: String, hint: Option<&str>) {
        self.push(Severity::Warning, host, message, hint);
    }

    fn push(&mut self, severity: Severity, host: Option<&NodeName>, message: String, hint: Option<&str>) {
        self.0.push(Problem {
            severity,
            host: host.cloned(),
            message,
            hint: hint.map(str::to_owned),
        });
    }

    /// Errors first, warnings last, otherwise in the order of the inventory.
    fn sorted(mut self) -> Vec<Problem> {
        self.0.sort_by_key(|problem| problem.severity);
        self.0
    }
}

fn judge_cluster(cluster: &Cluster, facts: &Facts, problems: &mut Problems) {
    if !facts.cluster.is_absent()
        && let Some((message, hint)) = quorum::lost(cluster, facts)
    {
        problems.error(None, message, Some(&hint));
    }
    match &facts.cluster {
        Seen::Present(_) => {}
        Seen::Absent => problems.error(None, "there is no cluster yet".to_owned(), Some("run `k8sup apply`")),
        Seen::Unknown(reason) => {
            let message = format!("the cluster cannot be asked: {}", clean(reason));
            problems.error(
                None,
                message,
                Some("look at the controllers below; `k8sup plan` tells what is missing"),
            );
        }
    }
}

fn judge_host(facts: &Facts, host: &Host, status: &HostStatus, problems: &mut Problems) {
    let about = Some(&host.name);
    match facts.hosts.get(&host.name) {
        Some(Observation::Seen(seen)) => {
            judge_certificate(status, problems);
            if host.role == Role::Controller && !facts.cluster.is_absent() {
                judge_api_server(host, seen, problems);
            }
            if let Maybe::Known(_) = &status.node {
                judge_membership(facts, host, seen, problems);
            }
        }
        Some(Observation::Unreachable(why)) => {
            problems.error(
                about,
                format!("{}: {}", why.what(), clean(&why.reason)),
                why.hint.as_deref(),
            );
        }
        None => problems.warning(about, "was not looked at".to_owned(), None),
    }
}

fn judge_certificate(status: &HostStatus, problems: &mut Problems) {
    let about = Some(&status.name);
    if let Maybe::Known(CertificateStatus {
        path,
        not_after,
        days_left,
    }) = &status.certificate
    {
        let hint = Some(if path == KUBELET_CERTIFICATE {
            "the kubelet renews it itself while it reaches the API: read `journalctl -u kubelet` there"
        } else {
            "`kubeadm certs renew all` there renews what kubeadm made"
        });
        if *days_left < 0 {
            problems.error(about, format!("{path} expired on {}", date(*not_after)), hint);
        } else if *days_left < SOON_DAYS {
            problems.warning(about, format!("{path} expires in {}", count_days(*days_left)), hint);
        }
    }
}

fn judge_api_server(host: &Host, seen: &HostFacts, problems: &mut Problems) {
    let about = Some(&host.name);
    let hint = Some("read `crictl ps -a` and `journalctl -u kubelet` there");
    match &seen.kube.readyz {
        Seen::Present(answer) if answer.trim() == "ok" => {}
        Seen::Present(answer) => {
            problems.error(
                about,
                format!("its API server is not ready: {}", failed_checks(answer)),
                hint,
            );
        }
        Seen::Absent => problems.error(about, "its API server does not run".to_owned(), hint),
        Seen::Unknown(reason) => {
            problems.unknown(
                about,
                format!("whether its API server is ready is unknown: {}", clean(reason)),
                hint,
            );
        }
    }
}

/// The cluster lists the host: is the host still what the cluster takes it for? A Node stays Ready for a while after
/// its host was installed anew.
fn judge_membership(facts: &Facts, host: &Host, seen: &HostFacts, problems: &mut Problems) {
    let about = Some(&host.name);
    let again = Some("run `k8sup apply`: it forgets the old node and joins the host again");
    let asked = facts
        .cluster
        .present()
        .and_then(|live| match facts.hosts.get(live.asked.as_ref()?)? {
            Observation::Seen(asked) => asked.kube.ca.present(),
            Observation::Unreachable(_) => None,
        });
    let own = seen
        .kube
        .kubeconfigs
        .get("kubelet")
        .and_then(|own| own.ca_spki_sha256.as_ref());
    if seen.kube.is_bare() {
        let message = "the cluster lists it, but nothing of Kubernetes is on it: was it installed anew?";
        problems.error(about, message.to_owned(), again);
    } else if let (Some(asked), Some(own)) = (asked, own)
        && asked.spki_sha256 != *own
    {
        let message = "the cluster lists it, but its kubelet belongs to another cluster";
        problems.error(about, message.to_owned(), Some("`k8sup plan` tells what can be done"));
    } else if !seen.services.get("kubelet").is_some_and(|kubelet| kubelet.active) {
        let hint = Some("read `journalctl -u kubelet` there");
        problems.error(about, "its kubelet does not run".to_owned(), hint);
    }
}

/// The failed checks of a verbose /readyz, else its first line.
fn failed_checks(answer: &str) -> String {
    let failed: Vec<String> = answer
        .lines()
        .filter(|line| line.starts_with("[-]"))
        .map(clean)
        .collect();
    if failed.is_empty() {
        clean(answer.lines().next().unwrap_or_default())
    } else {
        failed.join(", ")
    }
}

fn judge_nodes(cluster: &Cluster, seen: &ClusterFacts, problems: &mut Problems) {
    let nodes = match &seen.nodes {
        Seen::Present(nodes) => nodes,
        Seen::Absent => return problems.error(None, "the API knows no node".to_owned(), None),
        Seen::Unknown(reason) => {
            return problems.error(None, format!("the API does not list nodes: {}", clean(reason)), None);
        }
    };
    for host in cluster.nodes() {
        let about = Some(&host.name);
        let Some(node) = nodes.get(host.name.as_str()) else {
            problems.error(
                about,
                "is not part of the cluster".to_owned(),
                Some("run `k8sup apply`"),
            );
            continue;
        };
        if !node.ready {
            let why = if node.ready_message.is_empty() {
                String::new()
            } else {
                format!(": {}", clean(&node.ready_message))
            };
            problems.error(
                about,
                format!("its node is not Ready{why}"),
                Some("read `journalctl -u kubelet` there"),
            );
        }
        if !node.pressure.is_empty() {
            problems.error(
                about,
                format!(
                    "its node reports {}: pods are evicted and none are placed there",
                    clean(&node.pressure.join(", "))
                ),
                Some("make room there: for disks at least 15 % must be free (`df -h /var/lib`, `crictl rmi --prune`)"),
            );
        }
        match &node.internal_ip {
            Some(address) if *address != host.address.to_string() => {
                let address = clean(address);
                problems.error(
                    about,
                    format!("its node has the address {address}, not {}", host.address),
                    None,
                );
            }
            Some(_) | None => {}
        }
        if node.unschedulable {
            let hint = format!("`kubectl uncordon {}` lets pods onto it again", host.name);
            problems.warning(about, "its node is cordoned".to_owned(), Some(&hint));
        }
        if node.kubelet_version != cluster.version.to_string() {
            let version = clean(&node.kubelet_version);
            problems.warning(
                about,
                format!("its kubelet is {version}, not {}", cluster.version),
                None,
            );
        }
    }
    for name in nodes
        .keys()
        .filter(|name| !cluster.nodes().any(|host| host.name.as_str() == *name))
    {
        problems.warning(None, format!("node {} is not in the inventory", clean(name)), None);
    }
}

fn judge_etcd(status: &Status, problems: &mut Problems) {
    let members = match &status.etcd {
        Maybe::Known(members) => members,
        Maybe::None => return problems.error(None, "etcd has no members".to_owned(), None),
        Maybe::Unknown(reason) => {
            return problems.unknown(None, format!("etcd does not list its members: {reason}"), None);
        }
    };
    for member in members {
        let name = &member.name;
        match member.state {
            // Out of reach has been said of the host.
            MemberState::Voter | MemberState::Unseen => {}
            MemberState::Stopped => problems.error(
                None,
                format!("etcd member {name} votes, but etcd does not run there"),
                Some("read `crictl ps -a` and `journalctl -u kubelet` there"),
            ),
            MemberState::Learner => {
                problems.warning(
                    None,
                    format!("etcd member {name} is a learner and does not vote yet"),
                    None,
                );
            }
            MemberState::Missing => {
                problems.error(
                    None,
                    format!("controller {name} has no etcd member"),
                    Some("run `k8sup apply`"),
                );
            }
            MemberState::Ghost => {
                let name = if name.is_empty() { "without a name" } else { name };
                let id = member.id.as_deref().unwrap_or_default();
                let hint = "it counts for the quorum; remove it with `etcdctl member remove` when its host is gone";
                let message = format!("etcd member {name} ({id}) belongs to no controller of the inventory");
                problems.error(None, message, Some(hint));
            }
        }
    }
}

fn judge_addons(addons: &[AddonStatus], problems: &mut Problems) {
    for AddonStatus { name, rollout } in addons {
        match rollout {
            Maybe::Known(rollout) if rollout.available < rollout.desired => {
                let RolloutStatus {
                    desired,
                    available,
                    current: _,
                } = rollout;
                problems.error(
                    None,
                    format!("{name}: {available} of {desired} pods are available"),
                    None,
                );
            }
            Maybe::Known(rollout) if !rollout.current => {
                problems.warning(None, format!("{name} is being rolled out"), None);
            }
            Maybe::Known(_) => {}
            Maybe::None => problems.error(None, format!("{name} is missing"), Some("run `k8sup apply`")),
            Maybe::Unknown(reason) => problems.unknown(None, format!("{name} cannot be judged: {reason}"), None),
        }
    }
}

fn judge_load_balancers(cluster: &Cluster, status: &Status, problems: &mut Problems) {
    for balancer in &status.load_balancers {
        let about = Some(&balancer.name);
        let backends = match &balancer.backends {
            Maybe::Known(backends) => backends,
            Maybe::None => {
                problems.error(
                    about,
                    "HAProxy does not run".to_owned(),
                    Some("read `journalctl -u haproxy` there"),
                );
                continue;
            }
            // An unreachable host has been named already.
            Maybe::Unknown(reason) => {
                if status
                    .hosts
                    .iter()
                    .any(|host| host.name == balancer.name && host.reachable)
                {
                    problems.unknown(about, format!("HAProxy cannot be asked: {reason}"), None);
                }
                continue;
            }
        };
        for controller in cluster.role(Role::Controller) {
            match backends.get(controller.name.as_str()) {
                Some(state) if is_up(state) => {}
                Some(state) => {
                    problems.error(about, format!("its backend {} is {state}", controller.name), None);
                }
                None => problems.error(
                    about,
                    format!("it has no backend for {}", controller.name),
                    Some("run `k8sup apply`"),
                ),
            }
        }
    }
}

/// HAProxy says `UP`, or `UP 1/2` while a check has failed once.
pub(super) fn is_up(state: &str) -> bool {
    state.split_whitespace().next() == Some("UP")
}

fn count_days(days: i64) -> String {
    if days == 1 {
        "1 day".to_owned()
    } else {
        format!("{days} days")
    }
}
