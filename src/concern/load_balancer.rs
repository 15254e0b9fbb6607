//! HAProxy on a load balancer.

use crate::check;
use crate::cluster::{Cluster, Host, Role};
use crate::facts::HostFacts;
use crate::plan::{Gate, Planned, Step};
use crate::render::flannel::hex_sha256;

const CONFIG: &str = "/etc/haproxy/haproxy.cfg";

/// The step that configures HAProxy, and the proof that it reaches the controllers.
#[must_use]
pub fn steps(cluster: &Cluster, this: &Host, facts: &HostFacts, config: &str) -> Vec<Planned> {
    let before = facts.files.get(CONFIG).map(|file| file.content.as_str());
    let service = facts.services.get("haproxy");
    let listens = facts
        .listening
        .iter()
        .any(|listener| listener.port == cluster.endpoint.port);
    let known = facts.record.present().and_then(|record| record.files.get(CONFIG));
    // What k8sup wrote last, unless somebody else wrote since: then the inventory has changed.
    let as_written =
        before.is_some_and(|before| known.and_then(|file| file.ours.clone()) == Some(hex_sha256(before.as_bytes())));
    let drifted = known.is_some() && (before == Some(config) || !as_written);
    let why = if before != Some(config) {
        format!("{CONFIG} differs")
    } else if !service.is_some_and(|service| service.active && service.enabled) {
        "haproxy does not run, or not at boot".to_owned()
    } else if facts.is_pending("haproxy") {
        format!("{CONFIG} was written, but is not in force yet")
    } else if !listens {
        format!("nothing listens on port {}", cluster.endpoint.port)
    } else {
        return Vec::new();
    };
    let targets = cluster
        .role(Role::Controller)
        .map(|host| (host.address.to_string(), 6443))
        .collect();
    let step = Step::HaProxy {
        config: config.to_owned(),
        port: cluster.endpoint.port,
    };
    let proof = Step::Reach {
        what: "the controllers".to_owned(),
        targets,
        listening: false,
    };
    vec![
        Planned::new(step, why.clone())
            .fixes(drifted.then(|| check::BALANCER_DRIFTED.at_large(why)))
            .changes(CONFIG, before, Some(config)),
        Planned::new(proof, "haproxy forwards to them").opens(Gate::LoadBalancerServes(this.name.clone())),
    ]
}
