//! How a running cluster differs from the inventory in what cannot be changed under it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::standing::missing_sans;
use crate::check::{self, Finding};
use crate::cluster::{Cluster, Host, NodeName, Role};
use crate::facts::{ClusterFacts, Facts, HostFacts, Observation, Seen};
use crate::render::kubeadm;

/// One blocker for each value that differs, with both values.
#[must_use]
pub fn unchangeable(cluster: &Cluster, facts: &Facts, live: Option<&ClusterFacts>) -> Vec<Finding> {
    let Some(live) = live else { return Vec::new() };
    let mut found = Vec::new();
    if let Seen::Present(config) = &live.kubeadm_config {
        found.extend(cluster_configuration(cluster, config));
    }
    let documents = [
        (
            "kubeadm",
            &cluster.overrides.kubeadm,
            &live.kubeadm_config,
            "kube-system/kubeadm-config",
        ),
        (
            "kubelet",
            &cluster.overrides.kubelet,
            &live.kubelet_config,
            "kube-system/kubelet-config",
        ),
        (
            "kubeProxy",
            &cluster.overrides.kube_proxy,
            &live.kube_proxy_config,
            "kube-system/kube-proxy",
        ),
    ];
    for (key, wanted, is, config_map) in documents {
        if let (Some(wanted), Seen::Present(is)) = (wanted, is) {
            found.extend(document(key, wanted, is, config_map));
        }
    }
    found.extend(kubelet_versions(cluster, live));
    found.extend(certificates(cluster, facts));
    found.extend(other_network(facts, live));
    found
}

/// The name that somebody has given to the cluster.
pub(super) fn given_name(config: &Value) -> Option<&str> {
    let name = config.get("clusterName")?.as_str()?;
    // So kubeadm calls one that nobody has named, as most that are built by hand.
    (!name.is_empty() && name != "kubernetes").then_some(name)
}

fn cluster_configuration(cluster: &Cluster, config: &Value) -> Vec<Finding> {
    let text = |path: &str| {
        config
            .pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    // kubeadm fills in the port; a hand-written configuration may leave it out.
    let endpoint = match text("/controlPlaneEndpoint") {
        endpoint if endpoint.is_empty() || endpoint.contains(':') => endpoint,
        host => format!("{host}:6443"),
    };
    let name = given_name(config).unwrap_or(&cluster.name).to_owned();
    let values = [
        ("the name", "cluster.name", name, cluster.name.clone()),
        (
            "the Kubernetes version",
            "cluster.kubernetes",
            text("/kubernetesVersion"),
            cluster.version.to_string(),
        ),
        (
            "the control-plane endpoint",
            "cluster.endpoint",
            endpoint,
            cluster.endpoint.to_string(),
        ),
        (
            "the pod CIDR",
            "cluster.podCidr",
            text("/networking/podSubnet"),
            cluster.pod_cidr.to_string(),
        ),
        (
            "the service CIDR",
            "cluster.serviceCidr",
            text("/networking/serviceSubnet"),
            cluster.service_cidr.to_string(),
        ),
        (
            "the DNS domain",
            "cluster.dnsDomain",
            text("/networking/dnsDomain"),
            cluster.dns_domain.clone(),
        ),
    ];
    values
        .into_iter()
        .filter(|(_, _, is, wanted)| is != wanted)
        .map(|(what, key, is, wanted)| {
            let is = or_none(&is);
            check::DIFFERS
                .at_large(format!(
                    "{what} of the running cluster is {is}, the inventory wants {wanted}"
                ))
                .evidence("configmap kube-system/kubeadm-config")
                .hint(format!(
                    "apply cannot change it under a running cluster: set {key} to what is, or reset and apply anew"
                ))
        })
        .collect()
}

/// What a merged document of the inventory wants, and the running cluster does not have.
fn document(key: &str, wanted: &Value, is: &Value, config_map: &str) -> Vec<Finding> {
    let mut paths = Vec::new();
    lacking(wanted, Some(is), key, &mut paths);
    paths
        .into_iter()
        .map(|(path, wanted, is)| {
            let is = or_none(&is);
            check::DIFFERS
                .at_large(format!(
                    "{path} of the running cluster is {is}, the inventory wants {wanted}"
                ))
                .evidence(format!("configmap {config_map}"))
                .hint(
                    "apply does not change it under a running cluster yet: set it to what is, or reset and apply anew",
                )
        })
        .collect()
}

/// The leaves of `wanted` that `is` lacks or has otherwise: their path and both values.
fn lacking(wanted: &Value, is: Option<&Value>, path: &str, found: &mut Vec<(String, String, String)>) {
    match (wanted, is) {
        (Value::Object(wanted), _) => {
            for (key, value) in wanted.iter().filter(|(key, _)| *key != "apiVersion" && *key != "kind") {
                lacking(value, is.and_then(|is| is.get(key)), &format!("{path}.{key}"), found);
            }
        }
        (Value::Array(items), Some(Value::Array(have))) if items.iter().all(|item| item.get("name").is_some()) => {
            for item in items {
                let name = item.get("name").and_then(Value::as_str).unwrap_or_default();
                let same = have
                    .iter()
                    .find(|other| other.get("name").and_then(Value::as_str) == Some(name));
                lacking(item, same, &format!("{path}.{name}"), found);
            }
        }
        (wanted, Some(is)) if wanted == is || same_duration(wanted, is) => {}
        (wanted, is) => found.push((
            path.to_owned(),
            wanted.to_string(),
            is.map(Value::to_string).unwrap_or_default(),
        )),
    }
}

/// The API writes `1m30s` for what may be given as `90s`.
fn same_duration(one: &Value, other: &Value) -> bool {
    let seconds = |value: &Value| go_duration(value.as_str()?);
    matches!((seconds(one), seconds(other)), (Some(one), Some(other)) if (one - other).abs() < 1e-9)
}

/// Seconds of a duration as Go writes it: `1h0m0s`, `200ms`.
fn go_duration(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut total = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let unit_end = rest[digits..]
            .find(|c: char| c.is_ascii_digit())
            .map_or(rest.len(), |end| digits + end);
        total += number
            * match &rest[digits..unit_end] {
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 1e-3,
                "us" | "µs" => 1e-6,
                "ns" => 1e-9,
                _ => return None,
            };
        rest = &rest[unit_end..];
    }
    Some(total)
}

fn or_none(value: &str) -> &str {
    if value.is_empty() { "not set" } else { value }
}

fn kubelet_versions(cluster: &Cluster, live: &ClusterFacts) -> Vec<Finding> {
    let nodes = live.nodes.present().into_iter().flatten();
    let wanted = cluster.version.to_string();
    nodes
        .filter(|(name, node)| {
            let ours = cluster.nodes().any(|host| host.name.as_str() == *name);
            ours && !node.kubelet_version.is_empty() && node.kubelet_version != wanted
        })
        .map(|(name, node)| Finding {
            host: NodeName::parse(name).ok(),
            ..check::KUBELET_VERSION.at_large(format!(
                "its kubelet is {}, the inventory wants {wanted}",
                node.kubelet_version
            ))
        })
        .collect()
}

fn certificates(cluster: &Cluster, facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    for host in cluster.role(Role::Controller) {
        let Some(Observation::Seen(seen)) = facts.hosts.get(&host.name) else {
            continue;
        };
        // Only of a controller that serves: a half-made one is made anew.
        let (Some(certificate), true) = (seen.kube.apiserver.present(), serves(seen)) else {
            continue;
        };
        let missing = missing_sans(certificate, &needed_sans(cluster, host));
        if !missing.is_empty() {
            let hint = format!(
                "apply does not renew it yet. On {}: add them to certSANs in configmap kube-system/kubeadm-config, move \
                 apiserver.crt and .key away and run `kubeadm init phase certs apiserver --config …`",
                host.name
            );
            found.push(
                check::CERT_SANS
                    .on(
                        &host.name,
                        format!("the API server's certificate lacks {}", missing.join(", ")),
                    )
                    .evidence("/etc/kubernetes/pki/apiserver.crt")
                    .hint(hint),
            );
        }
    }
    found
}

/// Without the other controllers: a certificate names those that were there when it was made, and nobody
/// asks one controller by another's name.
fn needed_sans(cluster: &Cluster, host: &Host) -> Vec<String> {
    let others = cluster.role(Role::Controller).filter(|other| other.name != host.name);
    let theirs: Vec<String> = others
        .flat_map(|other| [other.name.to_string(), other.address.to_string()])
        .collect();
    let asked_for = |san: &String| *san == cluster.endpoint.host || cluster.extra_sans.contains(san);
    kubeadm::cert_sans(cluster)
        .into_iter()
        .filter(|san| asked_for(san) || !theirs.contains(san))
        .collect()
}

fn serves(facts: &HostFacts) -> bool {
    facts.kube.readyz.present().is_some_and(|answer| answer == "ok")
}

/// A pod network that is not Flannel's is left alone, and so is its cluster.
fn other_network(facts: &Facts, live: &ClusterFacts) -> Vec<Finding> {
    if !live.flannel.is_absent() {
        return Vec::new();
    }
    let nodes = live.nodes.present();
    let mut configs: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, observation) in &facts.hosts {
        let Observation::Seen(seen) = observation else { continue };
        if !nodes.is_some_and(|nodes| nodes.get(name.as_str()).is_some_and(|node| node.ready)) {
            continue;
        }
        for file in seen
            .kube
            .files
            .iter()
            // Flannel's own stays when somebody deletes its objects, which are applied again then.
            .filter(|file| file.starts_with("/etc/cni/net.d/") && !file.contains("flannel"))
        {
            configs.entry(file).or_default().push(name.as_str());
        }
    }
    configs
        .into_iter()
        .map(|(file, hosts)| {
            check::OTHER_NETWORK
                .at_large("the running cluster has a pod network that is not Flannel's")
                .evidence(format!("{file} on {}", hosts.join(", ")))
        })
        .collect()
}
