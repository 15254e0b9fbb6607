//! Looks at all hosts at once, then at the cluster through one of its controllers.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rand::Rng as _;
use tokio::task::{JoinHandle, JoinSet};

use super::{ClusterFacts, Facts, HostFacts, Observation, Seen, Unreachable, parse};
use crate::cluster::{Cluster, Host, NodeName, Role};
use crate::remote::{Command, Ending, Param, RunError, Session};

const PROBE: &str = concat!(
    include_str!("../../templates/holder.sh"),
    include_str!("../../templates/sections.sh"),
    include_str!("../../templates/probe.sh")
);
const CLUSTER: &str = concat!(
    include_str!("../../templates/sections.sh"),
    include_str!("../../templates/cluster.sh")
);

/// Both scripts limit their own queries; this is for a host that hangs, and long enough for a slow one.
const LIMIT: Duration = Duration::from_secs(60);

/// Learns all facts: one command on every host, side by side, and one more on a controller, the first that is
/// seen to be well.
///
/// A host without a session is unreachable in the facts too; nothing here fails.
pub async fn observe(cluster: &Cluster, sessions: &BTreeMap<NodeName, Result<Session, Unreachable>>) -> Facts {
    observe_raw(cluster, sessions).await.0
}

/// What a script printed, as it came.
#[derive(Debug, Clone)]
pub struct RawText {
    /// Marks its sections.
    pub nonce: String,
    /// All of it; it may hold secrets of the host's files.
    pub text: String,
}

/// What the scripts printed, of which the facts were made.
#[derive(Debug, Clone, Default)]
pub struct Raw {
    /// By host, where it answered.
    pub hosts: BTreeMap<NodeName, RawText>,
    /// By the controller that was asked about its cluster.
    pub cluster: BTreeMap<NodeName, RawText>,
}

/// The same, with what the facts were made of.
pub async fn observe_raw(
    cluster: &Cluster,
    sessions: &BTreeMap<NodeName, Result<Session, Unreachable>>,
) -> (Facts, Raw) {
    let mut raw = Raw::default();
    let mut hosts = BTreeMap::new();
    let mut looks = JoinSet::new();
    for host in &cluster.hosts {
        match sessions.get(&host.name) {
            Some(Ok(session)) => {
                let (name, session, probe) = (host.name.clone(), session.clone(), Probe::of(cluster, host));
                looks.spawn(async move { (name, probe.run(&session).await) });
            }
            Some(Err(unreachable)) => {
                hosts.insert(host.name.clone(), Observation::Unreachable(unreachable.clone()));
            }
            None => {
                hosts.insert(
                    host.name.clone(),
                    Observation::Unreachable(Unreachable::unknown("it was not connected to")),
                );
            }
        }
    }
    let mut first: Option<(NodeName, JoinHandle<Asked>)> = None;
    while let Some(look) = looks.join_next().await {
        let Ok((name, (observation, text))) = look else {
            continue;
        };
        raw.hosts.extend(text.map(|text| (name.clone(), text)));
        if first.is_none()
            && let Some(host) = cluster.role(Role::Controller).find(|host| host.name == name)
            && let Some(Ok(session)) = sessions.get(&name)
            && standing(&observation) == Some(Standing::Well)
        {
            let (host, session) = (host.clone(), session.clone());
            let asking = tokio::spawn(async move { ask(&host, &session).await });
            first = Some((name.clone(), asking));
        }
        hosts.insert(name, observation);
    }
    // A look that panicked has left no name behind.
    for host in &cluster.hosts {
        hosts
            .entry(host.name.clone())
            .or_insert_with(|| Observation::Unreachable(Unreachable::unknown("the look at it ended early")));
    }
    let seen = cluster_facts(cluster, sessions, &hosts, first, &mut raw.cluster).await;
    let facts = Facts {
        hosts,
        cluster: seen,
        ..Facts::default()
    };
    (facts, raw)
}

/// What a controller says of its cluster, and the text that it was read from.
type Asked = (Result<ClusterFacts, String>, Option<RawText>);

/// One run of `templates/probe.sh`.
struct Probe {
    nonce: String,
    command: Command,
}

impl Probe {
    fn of(cluster: &Cluster, host: &Host) -> Self {
        let nonce = nonce();
        let params = [
            ("NONCE", nonce.clone()),
            ("ADDRESS", host.address.to_string()),
            ("ENDPOINT_HOST", cluster.endpoint.host.clone()),
            ("LOGIN_USER", host.ssh.user.clone()),
            ("ETCD_DISK", u8::from(host.role == Role::Controller).to_string()),
        ];
        Self {
            command: command("probe", PROBE, params),
            nonce,
        }
    }

    async fn run(self, session: &Session) -> (Observation, Option<RawText>) {
        let before = now();
        let output = match session.run(&self.command, None).await {
            Ok(output) => output,
            Err(error) => return (Observation::Unreachable(no_output(&error)), None),
        };
        let after = now();
        if !output.ok() {
            return (Observation::Unreachable(failed(output.ending, &output.stderr)), None);
        }
        let observation = match parse::host(&output.stdout, &self.nonce) {
            Ok(facts) => Observation::Seen(Box::new(HostFacts {
                clock_skew: skew(facts.clock, before, after),
                ..facts
            })),
            Err(error) => Observation::Unreachable(Unreachable {
                refused: false,
                reason: error.to_string(),
                hint: Some(
                    "log in with `ssh` and look whether the disk is full or the shell's start files print something"
                        .to_owned(),
                ),
            }),
        };
        let raw = RawText {
            nonce: self.nonce,
            text: output.stdout,
        };
        (observation, Some(raw))
    }
}

fn command<const N: usize>(name: &str, script: &str, params: [(&str, String); N]) -> Command {
    Command {
        name: name.to_owned(),
        script: script.to_owned(),
        params: params
            .into_iter()
            .map(|(name, value)| (name.to_owned(), Param::Plain(value)))
            .collect(),
        root: true,
        timeout: LIMIT,
    }
}

/// Marks that no file on a host can hold by chance or by intent.
fn nonce() -> String {
    format!("{:032x}", rand::rng().random::<u128>())
}

fn now() -> Option<i64> {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()
}

/// How far the host's clock lies outside the time in which it was read.
fn skew(clock: u64, before: Option<i64>, after: Option<i64>) -> Option<i64> {
    let (clock, before, after) = (i64::try_from(clock).ok()?, before?, after?);
    Some(if clock < before {
        clock - before
    } else {
        (clock - after).max(0)
    })
}

fn no_output(error: &RunError) -> Unreachable {
    let (refused, hint) = match error {
        RunError::Sudo(_) => (
            true,
            Some("let the login user run sudo, or name its password in the inventory (ssh.sudoPassword)"),
        ),
        RunError::Timeout(_) => (
            false,
            Some("the host hangs or is overloaded: look at its disk and its load"),
        ),
        RunError::ConnectionLost(_) | RunError::Refused(_) => (false, None),
    };
    Unreachable {
        refused,
        reason: format!("the probe has no answer: {error}"),
        hint: hint.map(str::to_owned),
    }
}

fn failed(ending: Ending, stderr: &str) -> Unreachable {
    let how = match ending {
        Ending::Status(status) => format!("ended with status {status}"),
        Ending::Signal(signal) => format!("was ended by signal {signal}"),
    };
    Unreachable {
        refused: false,
        reason: format!("the probe {how}: {}", tail(stderr)),
        hint: None,
    }
}

/// The last lines of standard error, as one.
pub(super) fn tail(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return "it said nothing".to_owned();
    }
    lines
        .get(lines.len().saturating_sub(3)..)
        .unwrap_or_default()
        .join(" / ")
}

/// Asks one controller after the other until one knows both the nodes and etcd's members, else takes the one that
/// knows most. `first` has been asked already.
async fn cluster_facts(
    cluster: &Cluster,
    sessions: &BTreeMap<NodeName, Result<Session, Unreachable>>,
    hosts: &BTreeMap<NodeName, Observation>,
    mut first: Option<(NodeName, JoinHandle<Asked>)>,
    texts: &mut BTreeMap<NodeName, RawText>,
) -> Seen<ClusterFacts> {
    let candidates = candidates(cluster, hosts, first.as_ref().map(|(name, _)| name));
    if candidates.is_empty() {
        return without_candidate(cluster, hosts);
    }
    let mut best: Option<(u8, ClusterFacts)> = None;
    let mut reasons = Vec::new();
    for host in candidates {
        let Some(Ok(session)) = sessions.get(&host.name) else {
            continue;
        };
        let (answer, text) = match first.take() {
            Some((_, asking)) => asking.await.unwrap_or_else(|error| (Err(error.to_string()), None)),
            None => ask(host, session).await,
        };
        texts.extend(text.map(|text| (host.name.clone(), text)));
        match answer {
            Ok(facts) => {
                let known = known(&facts);
                if known == 0 {
                    reasons.push(format!("{}: {}", host.name, silence(&facts)));
                } else if best.as_ref().is_none_or(|(best, _)| known > *best) {
                    best = Some((known, facts));
                }
                if known == 3 {
                    break;
                }
            }
            Err(reason) => reasons.push(format!("{}: {reason}", host.name)),
        }
    }
    best.map_or_else(|| Seen::Unknown(reasons.join("; ")), |(_, facts)| Seen::Present(facts))
}

/// What a controller can tell of its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// Has etcd, and its API server is ready.
    Well,
    /// Has an admin.conf, at least.
    Doubtful,
}

fn standing(observation: &Observation) -> Option<Standing> {
    let Observation::Seen(facts) = observation else {
        return None;
    };
    let ready = || facts.kube.readyz.present().is_some_and(|answer| answer == "ok");
    match facts.kube.has("admin.conf") {
        true if facts.kube.has("manifests/etcd.yaml") && ready() => Some(Standing::Well),
        true => Some(Standing::Doubtful),
        false => None,
    }
}

/// Controllers with an admin.conf: the one that was asked already, those that are well, the others.
fn candidates<'a>(
    cluster: &'a Cluster,
    hosts: &BTreeMap<NodeName, Observation>,
    first: Option<&NodeName>,
) -> Vec<&'a Host> {
    let controllers = cluster.role(Role::Controller);
    let mut ranked: Vec<(Standing, &Host)> = controllers
        .filter_map(|host| Some((standing(hosts.get(&host.name)?)?, host)))
        .collect();
    // Stable: the inventory's order decides between equals.
    ranked.sort_by_key(|(standing, host)| (Some(&host.name) != first, *standing));
    ranked.into_iter().map(|(_, host)| host).collect()
}

/// No controller that was seen knows a cluster; one that was not seen may.
fn without_candidate(cluster: &Cluster, hosts: &BTreeMap<NodeName, Observation>) -> Seen<ClusterFacts> {
    let unseen: Vec<&str> = cluster
        .role(Role::Controller)
        .filter(|host| !matches!(hosts.get(&host.name), Some(Observation::Seen(_))))
        .map(|host| host.name.as_str())
        .collect();
    if unseen.is_empty() {
        Seen::Absent
    } else {
        Seen::Unknown(format!("{} could not be looked at", unseen.join(", ")))
    }
}

async fn ask(host: &Host, session: &Session) -> Asked {
    let nonce = nonce();
    let params = [("NONCE", nonce.clone()), ("ADDRESS", host.address.to_string())];
    let output = match session.run(&command("cluster", CLUSTER, params), None).await {
        Ok(output) => output,
        Err(error) => return (Err(error.to_string()), None),
    };
    if !output.ok() {
        return (Err(failed(output.ending, &output.stderr).reason), None);
    }
    let facts = ClusterFacts {
        asked: Some(host.name.clone()),
        ..parse::cluster(&output.stdout, &nonce)
    };
    let text = output.stdout;
    (Ok(facts), Some(RawText { nonce, text }))
}

/// 3: nodes and members, 2: nodes, 1: members, 0: neither.
fn known(facts: &ClusterFacts) -> u8 {
    let nodes = !matches!(facts.nodes, Seen::Unknown(_));
    let members = !matches!(facts.members, Seen::Unknown(_));
    2 * u8::from(nodes) + u8::from(members)
}

fn silence(facts: &ClusterFacts) -> String {
    match &facts.nodes {
        Seen::Unknown(reason) => reason.clone(),
        Seen::Present(_) | Seen::Absent => "no answer".to_owned(),
    }
}
