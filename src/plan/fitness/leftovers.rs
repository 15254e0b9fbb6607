//! What other tools and earlier clusters have on a host: it would get in the way of the cluster, or the cluster in its.

use std::collections::BTreeSet;

use crate::check::{self, Finding};
use crate::cluster::{Cluster, Role};
use crate::facts::{ClusterFacts, Seen};
use crate::plan::apply::Member;
use crate::plan::standing::Standing;

/// Another distribution of Kubernetes: what it is called, its units, its programs and folders, how it is removed.
type Other = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
);

const OTHERS: [Other; 6] = [
    (
        "k3s",
        &["k3s", "k3s-agent"],
        &["/usr/local/bin/k3s", "/etc/rancher", "/var/lib/rancher"],
        "k3s-uninstall.sh or k3s-agent-uninstall.sh",
    ),
    (
        "rke2",
        &["rke2-server", "rke2-agent"],
        &["/usr/local/bin/rke2", "/etc/rancher", "/var/lib/rancher"],
        "rke2-uninstall.sh",
    ),
    (
        "k0s",
        &["k0scontroller", "k0sworker"],
        &["/usr/local/bin/k0s", "/usr/bin/k0s", "/etc/k0s", "/var/lib/k0s"],
        "k0s stop; k0s reset",
    ),
    (
        "microk8s",
        &["snap.microk8s.daemon-kubelite"],
        &["/var/snap/microk8s"],
        "snap remove --purge microk8s",
    ),
    (
        "Canonical Kubernetes",
        &["snap.k8s.kubelet"],
        &["/var/snap/k8s"],
        "snap remove --purge k8s",
    ),
    ("minikube", &[], &["/var/lib/minikube"], "minikube delete"),
];

/// Another distribution of Kubernetes, running or stopped.
pub(super) fn other_kubernetes(part: &Member<'_>) -> Vec<Finding> {
    let facts = part.facts;
    let mut found = Vec::new();
    // Folders that two of them share are told once.
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for (name, units, paths, remove) in OTHERS {
        let starts = |unit: &&&str| {
            let service = facts.services.get(**unit);
            service.is_some_and(|service| service.active || service.enabled)
        };
        let mut seen: Vec<String> = units
            .iter()
            .filter(starts)
            .map(|unit| format!("{unit}.service"))
            .collect();
        let there = paths
            .iter()
            .filter(|path| facts.surroundings.paths.contains(**path) && told.insert(path));
        let there: Vec<String> = there.map(|path| (*path).to_owned()).collect();
        let message = match (seen.is_empty(), there.is_empty()) {
            (true, true) => continue,
            (true, false) => format!("{name} is or was on the host"),
            (false, _) => format!("{name} runs on the host, or starts at boot"),
        };
        seen.extend(there);
        found.push(
            check::OTHER_KUBERNETES
                .on(&part.host.name, message)
                .evidence(seen.join(", "))
                .hint(format!("remove it (`{remove}`), or what is left of it, then run again")),
        );
    }
    found
}

/// An etcd of a package, where a controller is to have its own.
pub(super) fn other_etcd(part: &Member<'_>) -> Option<Finding> {
    let service = part.facts.services.get("etcd")?;
    let runs = match (service.active, service.enabled) {
        (true, _) => "runs",
        (false, true) => "starts at boot",
        (false, false) => return None,
    };
    (part.host.role == Role::Controller).then(|| {
        check::OTHER_ETCD
            .on(&part.host.name, format!("another etcd is installed and {runs}"))
            .evidence("etcd.service")
    })
}

/// Mounts of pods that are gone.
pub(super) fn mounts(part: &Member<'_>) -> Option<Finding> {
    // Those of a half-made node are unmounted with the rest.
    if part.standing != Standing::Bare {
        return None;
    }
    let left = part.facts.network_leftovers.iter();
    let mounts: Vec<&str> = left.filter_map(|left| left.strip_prefix("mount ")).collect();
    let first = mounts.first()?;
    let message = format!("{first} is a mount, though the host is in no cluster");
    Some(
        check::MOUNTS
            .on(&part.host.name, message)
            .evidence(mounts.join("\n"))
            .hint(format!(
                "`umount {first}`: what is behind it is not deleted, nor looked at"
            )),
    )
}

/// kubeadm's kubeconfigs of another cluster, or of one whose authority is gone. What k8sup itself left half made, by
/// its record, is cleared without a question.
pub(super) fn kubeconfigs(cluster: &Cluster, part: &Member<'_>) -> Option<Finding> {
    let (host, facts, kube) = (part.host, part.facts, &part.facts.kube);
    let ours = facts.record.present().is_some_and(|record| !record.only_packages());
    if ours || kube.kubeconfigs.is_empty() {
        return None;
    }
    let mut servers: Vec<String> = cluster
        .role(Role::Controller)
        .map(|controller| format!("https://{}:6443", controller.address))
        .collect();
    servers.push(format!("https://{}", cluster.endpoint));
    let authority = kube.ca.present().map(|ca| &ca.spki_sha256);
    let (name, config, why) = kube.kubeconfigs.iter().find_map(|(name, config)| {
        let why = if !servers.contains(&config.server) {
            format!("is for {}, which is not this cluster", config.server)
        } else if kube.ca.is_absent() {
            "is there, but /etc/kubernetes/pki/ca.crt is not".to_owned()
        } else if authority.is_some() && config.ca_spki_sha256.as_ref() != authority {
            "is of another authority than /etc/kubernetes/pki/ca.crt".to_owned()
        } else {
            return None;
        };
        Some((name, config, why))
    })?;
    let files: Vec<_> = kube
        .kubeconfigs
        .keys()
        .map(|name| format!("/etc/kubernetes/{name}.conf"))
        .collect();
    Some(
        check::KUBECONFIGS
            .on(&host.name, format!("/etc/kubernetes/{name}.conf {why}"))
            .evidence(format!("{} (server: {})", files.join(", "), config.server))
            .hint(format!(
                "an earlier cluster's, it seems. If nothing on the host is needed: `k8sup reset --host {}`, or --allow {}, \
                 which clears it with `kubeadm reset`",
                host.name,
                check::KUBECONFIGS.code
            )),
    )
}

/// A node's own network against what the cluster gave it.
pub(super) fn pod_network(part: &Member<'_>, live: Option<&ClusterFacts>) -> Vec<Finding> {
    let (host, facts) = (part.host, part.facts);
    if !matches!(part.standing, Standing::Member | Standing::Unfinished) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let nodes = live.and_then(|live| live.nodes.present());
    let node = nodes.and_then(|nodes| nodes.get(host.name.as_str()));
    let pods: Option<ipnet::Ipv4Net> = node.and_then(|node| node.pod_cidr.as_deref()?.parse().ok());
    let bridge = facts.addresses.iter().find(|entry| entry.interface == "cni0");
    if let (Some(pods), Some(bridge)) = (pods, bridge)
        && !pods.contains(&bridge.address.addr())
    {
        let message = format!(
            "cni0 has the address {}, but the pods of the Node are in {pods}",
            bridge.address
        );
        found.push(check::BRIDGE_ADDRESS.on(&host.name, message).evidence(format!(
            "ip addr show cni0: {}; podCIDR of node {}: {pods}",
            bridge.address, host.name
        )));
    }
    let applied = live.is_some_and(|live| live.flannel.present().is_some());
    let flannel = "/etc/cni/net.d/10-flannel.conflist";
    if let Seen::Present(plugins) = &facts.surroundings.cni_plugins
        && applied
        // Its init container has been here.
        && facts.kube.files.contains(flannel)
        && !plugins.contains("flannel")
    {
        let names: Vec<_> = plugins.iter().map(String::as_str).collect();
        found.push(
            check::FLANNEL_PLUGIN
                .on(&host.name, "/opt/cni/bin lacks flannel, so no pod starts there")
                .evidence(format!("ls /opt/cni/bin: {}", names.join(" "))),
        );
    }
    found
}
