//! Packet filters that k8sup does not touch.

use crate::check::{self, Check, Finding};
use crate::cluster::{Cluster, Role};
use crate::concern::firewall::{self, Stopped};
use crate::plan::apply::Member;
use crate::render::haproxy;

/// What the host's own rules would stop, with the commands that let it in.
pub(super) fn stops(cluster: &Cluster, part: &Member<'_>) -> Vec<Finding> {
    let (host, facts) = (part.host, part.facts);
    let record = facts.record.present();
    let serves = record.is_some_and(|record| record.files.contains_key(haproxy::CONFIG_FILE));
    // What is in the cluster already has shown that packets come through.
    if !part.comes() && (host.role != Role::LoadBalancer || serves) {
        return Vec::new();
    }
    let kinds: [(&'static Check, &str, Stopped); 2] = [
        (
            &check::PACKETS_STOPPED,
            "its packet filter stops what other hosts of the cluster send",
            firewall::stopped(cluster, host, facts),
        ),
        (
            &check::PODS_STOPPED,
            "its packet filter stops what pods send through it",
            firewall::pods_stopped(cluster, host, facts),
        ),
    ];
    kinds
        .into_iter()
        .filter(|(_, _, stopped)| !stopped.by.is_empty())
        .map(|(check, message, stopped)| {
            let chains: Vec<_> = stopped
                .by
                .iter()
                .map(|(chain, rule)| format!("chain {chain}: {rule}"))
                .collect();
            check.on(&host.name, message).evidence(chains.join("\n")).hint(format!(
                "add these rules, now and in the file that they are loaded from at boot: {}",
                stopped.commands.join("; ")
            ))
        })
        .collect()
}
