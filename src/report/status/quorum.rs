//! Whether etcd can have a quorum, judged by what runs on the controllers: without one it cannot be asked itself.

use crate::cluster::{Cluster, Role};
use crate::facts::{Facts, Observation};

/// etcd's client port.
const CLIENT: u16 = 2379;

/// Whether etcd runs on a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Running {
    Yes,
    No,
    /// The host or its sockets could not be looked at.
    Unseen,
}

pub(super) fn running(observation: Option<&Observation>) -> Running {
    match observation {
        Some(Observation::Seen(seen)) if seen.unknown.contains_key("listening") => Running::Unseen,
        Some(Observation::Seen(seen)) if seen.listening.iter().any(|socket| socket.port == CLIENT) => Running::Yes,
        Some(Observation::Seen(_)) => Running::No,
        Some(Observation::Unreachable(_)) | None => Running::Unseen,
    }
}

/// What is said when too few of the inventory's controllers run etcd, as far as can be seen; and what to do. Nothing
/// where not one controller could be looked at.
pub(super) fn lost(cluster: &Cluster, facts: &Facts) -> Option<(String, String)> {
    let mut up = 0;
    let mut unseen = 0;
    let mut silent = Vec::new();
    for host in cluster.role(Role::Controller) {
        match running(facts.hosts.get(&host.name)) {
            Running::Yes => up += 1,
            Running::No => silent.push(format!("{} (does not run there)", host.name)),
            Running::Unseen => {
                unseen += 1;
                silent.push(format!("{} (out of reach)", host.name));
            }
        }
    }
    let all = up + silent.len();
    let needed = all / 2 + 1;
    if up >= needed || unseen == all {
        return None;
    }
    let silent = silent.join(", ");
    Some((
        format!("etcd has no quorum: {needed} of {all} controllers are needed, and it is seen on {up}; not on {silent}"),
        "start those machines again: etcd goes on by itself when enough of them run. Until then pods keep running, but nothing can be changed".to_owned(),
    ))
}
