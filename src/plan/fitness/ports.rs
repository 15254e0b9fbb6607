//! Who else listens where the cluster must.

use crate::check::{self, Finding};
use crate::cluster::{Cluster, Role};
use crate::plan::apply::Member;
use crate::plan::standing::Standing;
use crate::render::haproxy;

/// API server, etcd (clients, peers, metrics), kubelet (API, health), kube-proxy (metrics, health), controller manager,
/// scheduler.
const CONTROLLER: &[u16] = &[6443, 2379, 2380, 2381, 10250, 10248, 10249, 10256, 10257, 10259];
const WORKER: &[u16] = &[10250, 10248, 10249, 10256];

/// Ports that the host's part in the cluster needs, while somebody else listens on them.
pub(super) fn taken(cluster: &Cluster, part: &Member<'_>) -> Vec<Finding> {
    let (host, facts) = (part.host, part.facts);
    let mine = |process: &str| match (host.role, &part.standing) {
        (Role::LoadBalancer, _) => process == "haproxy",
        // Its own static pods and its kubelet are cleared with the rest.
        (_, Standing::HalfMade(_)) => process.starts_with("kube") || process == "etcd",
        (_, _) => false,
    };
    // With its page of statistics.
    let balancer = [cluster.endpoint.port, 9000];
    let needed: &[u16] = match host.role {
        Role::LoadBalancer => &balancer,
        Role::Controller if part.comes() => CONTROLLER,
        Role::Worker if part.comes() => WORKER,
        Role::Controller | Role::Worker => &[],
    };
    let taken = facts
        .listening
        .iter()
        .filter(|listener| needed.contains(&listener.port));
    // The listener of another look's proof is gone in a moment.
    let passing = |process: &str| process == "k8sup-listen";
    let foreign = taken.filter(|listener| {
        let process = listener.process.as_deref();
        process.is_none_or(|process| !mine(process) && !passing(process))
    });
    let mut found: Vec<Finding> = Vec::new();
    for listener in foreign {
        let process = listener.process.as_deref().unwrap_or("a process that cannot be told");
        let message = format!("port {} is taken by {process}", listener.port);
        if found.iter().all(|finding| finding.message != message) {
            let hint = format!(
                "the {} needs this port: stop {process}, or move it to another port",
                host.role
            );
            found.push(
                check::PORT_TAKEN
                    .on(&host.name, message)
                    .evidence(format!("{}:{} {process}", listener.address, listener.port))
                    .hint(hint),
            );
        }
    }
    found
}

/// haproxy serves something else already, which k8sup's configuration would end.
pub(super) fn other_haproxy(cluster: &Cluster, part: &Member<'_>) -> Option<Finding> {
    let (host, facts) = (part.host, part.facts);
    let file = facts.files.get(haproxy::CONFIG_FILE)?;
    let runs = facts.services.get("haproxy").is_some_and(|service| service.active);
    let ours = facts
        .record
        .present()
        .is_some_and(|record| record.files.contains_key(haproxy::CONFIG_FILE));
    let served = served(&file.content, cluster.endpoint.port);
    if host.role != Role::LoadBalancer || !runs || ours || served.is_empty() {
        return None;
    }
    let message = format!("its haproxy already serves {}, which would end", served.join(", "));
    Some(
        check::OTHER_HAPROXY
            .on(&host.name, message)
            .evidence(haproxy::CONFIG_FILE),
    )
}

/// Frontends of an haproxy.cfg that listen on another port than the endpoint's; pages of statistics do not count.
fn served(config: &str, endpoint: u16) -> Vec<String> {
    let mut sections: Vec<(String, Vec<String>, bool)> = Vec::new();
    for line in config.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        if !line.starts_with(char::is_whitespace) {
            let title = match first {
                "frontend" | "listen" => words.next().unwrap_or_default().to_owned(),
                _ => String::new(),
            };
            sections.push((title, Vec::new(), false));
        } else if let Some((_, binds, stats)) = sections.last_mut() {
            match first {
                "bind" => binds.extend(words.next().map(str::to_owned)),
                "stats" => *stats = true,
                _ => {}
            }
        }
    }
    let other = |bind: &String| bind.rsplit(':').next() != Some(endpoint.to_string().as_str());
    sections
        .into_iter()
        .filter(|(title, binds, stats)| !title.is_empty() && !stats && binds.iter().any(other))
        .map(|(title, binds, _)| format!("{title} ({})", binds.join(", ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::served;

    #[test]
    fn frontends_of_others_are_told_from_the_endpoint_and_from_statistics() {
        let config = "global\n\tdaemon\n\nfrontend kubernetes\n\tbind *:6443\n\nlisten stats\n  bind :9000\n  stats enable\n\
                      # frontend old\nfrontend mysite\n  bind 0.0.0.0:80\n  bind :443 ssl crt /etc/ssl/site.pem\n  default_backend web\n";
        assert_eq!(served(config, 6443), ["mysite (0.0.0.0:80, :443)"]);
        assert_eq!(served("global\n  daemon\ndefaults\n  mode http\n", 6443), [""; 0]);
    }
}
