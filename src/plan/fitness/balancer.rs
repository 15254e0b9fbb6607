//! The load balancer: somebody else's haproxy, or one that k8sup does not set up.

use crate::check::{self, Finding};
use crate::cluster::{Cluster, Role};
use crate::plan::apply::Member;
use crate::render::haproxy;

/// Several controllers behind an endpoint that is no host of the inventory: how it looks after them nobody here can see.
pub(super) fn of_others(cluster: &Cluster) -> Option<Finding> {
    let balancers = cluster.role(Role::LoadBalancer).count();
    let own = cluster
        .hosts
        .iter()
        .any(|host| host.address.to_string() == cluster.endpoint.host);
    if balancers > 0 || own || cluster.role(Role::Controller).count() < 2 {
        return None;
    }
    let message = format!("{} is not set up by k8sup", cluster.endpoint);
    Some(check::OTHER_BALANCER.at_large(message))
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
