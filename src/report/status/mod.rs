//! The state of the cluster for a person and for a program, from facts alone.
//!
//! Works on a broken cluster: whatever nobody could tell says so and why. Here is what a status is made of;
//! `collect` takes it from the facts, `judge` finds what is wrong with it, `text` shows it to a person.
//!
//! # JSON, format `k8sup.status/1`
//! ```text
//! { "format": "k8sup.status/1", "cluster": NAME, "endpoint": "HOST:PORT", "version": "vX.Y.Z",
//!   "healthy": BOOL, "asked": NAME|null,
//!   "problems": [{ "severity": "error"|"unknown"|"warning", "host": NAME|null, "message": TEXT, "hint": TEXT|null }],
//!   "hosts": [{ "name": NAME, "role": "load-balancer"|"controller"|"worker", "address": IP,
//!     "reachable": BOOL, "os": TEXT|null, "kubelet": MAYBE "vX.Y.Z",
//!     "node": MAYBE { "ready": BOOL, "message": TEXT, "cordoned": BOOL, "created": RFC3339, "age_seconds": N|null },
//!     "certificate": MAYBE { "path": TEXT, "not_after": UNIX_SECONDS, "days_left": N } }],
//!   "etcd": MAYBE [{ "name": TEXT, "id": TEXT|null, "state": "voter"|"stopped"|"unseen"|"learner"|"missing"|"ghost", "peer_urls": [URL] }],
//!   "load_balancers": [{ "name": NAME, "backends": MAYBE { NAME: TEXT } }],
//!   "addons": [{ "name": TEXT, "rollout": MAYBE { "desired": N, "available": N, "current": BOOL } }] }
//! ```
//! `healthy` is false while there is an error, and while something is unknown that would be one. MAYBE is the value,
//! `null` where there certainly is none, or `{"unknown": REASON}`. The certificate is the one of the host that expires
//! first. Keys may be added; the format's number rises when one changes its meaning or goes.

mod collect;
mod judge;
mod quorum;
mod text;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::text::{clean, with_inventory};
use crate::cluster::{Cluster, NodeName, Role};
use crate::facts::{Facts, Seen};

/// In seconds.
const DAY: i64 = 86_400;
/// Stands in place of its path.
const KUBELET_CERTIFICATE: &str = "the kubelet's client certificate";

/// The state of a cluster.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    format: &'static str,
    cluster: String,
    endpoint: String,
    version: String,
    healthy: bool,
    asked: Option<NodeName>,
    problems: Vec<Problem>,
    hosts: Vec<HostStatus>,
    etcd: Maybe<Vec<MemberStatus>>,
    load_balancers: Vec<BackendStatus>,
    addons: Vec<AddonStatus>,
}

/// A value, none, or nobody knows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Maybe<T> {
    Known(T),
    None,
    Unknown(String),
}

impl<T> Maybe<T> {
    fn of<'a, S>(seen: &'a Seen<S>, make: impl FnOnce(&'a S) -> T) -> Self {
        match seen {
            Seen::Present(value) => Self::Known(make(value)),
            Seen::Absent => Self::None,
            Seen::Unknown(reason) => Self::Unknown(clean(reason)),
        }
    }
}

impl<T: Serialize> Serialize for Maybe<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(value) => value.serialize(serializer),
            Self::None => serializer.serialize_none(),
            Self::Unknown(reason) => BTreeMap::from([("unknown", reason)]).serialize(serializer),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    /// Something does not serve.
    Error,
    /// Nobody could tell whether something serves.
    Unknown,
    /// It serves, but is worth a look.
    Warning,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Problem {
    severity: Severity,
    host: Option<NodeName>,
    message: String,
    hint: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
struct HostStatus {
    name: NodeName,
    role: Role,
    address: Ipv4Addr,
    reachable: bool,
    os: Option<String>,
    kubelet: Maybe<String>,
    node: Maybe<NodeStatus>,
    certificate: Maybe<CertificateStatus>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct NodeStatus {
    ready: bool,
    message: String,
    cordoned: bool,
    created: String,
    age_seconds: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct CertificateStatus {
    path: String,
    not_after: i64,
    days_left: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum MemberState {
    Voter,
    /// Votes, but its etcd does not run.
    Stopped,
    /// Votes, but whether its etcd runs could not be seen.
    Unseen,
    Learner,
    Missing,
    Ghost,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct MemberStatus {
    name: String,
    id: Option<String>,
    state: MemberState,
    peer_urls: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
struct BackendStatus {
    name: NodeName,
    backends: Maybe<BTreeMap<String, String>>,
}

#[derive(Debug, Clone, Serialize)]
struct AddonStatus {
    name: &'static str,
    rollout: Maybe<RolloutStatus>,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct RolloutStatus {
    desired: u64,
    available: u64,
    current: bool,
}

impl Status {
    /// From what was seen; `now` in seconds since the epoch.
    #[must_use]
    pub fn new(cluster: &Cluster, facts: &Facts, now: i64) -> Self {
        let mut status = collect::status(cluster, facts, now);
        status.problems = judge::problems(cluster, facts, &status);
        status.healthy = status
            .problems
            .iter()
            .all(|problem| problem.severity == Severity::Warning);
        status
    }

    /// With advice that names this inventory.
    #[must_use]
    pub fn naming(mut self, inventory: &str) -> Self {
        for hint in self.problems.iter_mut().filter_map(|problem| problem.hint.as_mut()) {
            *hint = with_inventory(hint, inventory);
        }
        self
    }

    /// Nothing is wrong that would keep the cluster from serving; warnings may remain.
    #[must_use]
    pub fn healthy(&self) -> bool {
        self.healthy
    }

    /// For a program: see the module.
    ///
    /// # Errors
    /// When a value cannot be represented in JSON.
    pub fn json(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }
}

#[cfg(test)]
mod tests;
