//! What the API server and etcd answered, made into [`ClusterFacts`].

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::super::Seen;
use super::super::cluster::{ClusterFacts, Member, NodeFact, Rollout};
use super::{Sections, sections};
use crate::cluster::Taint;

/// Reads what `templates/cluster.sh` printed. What is not there is unknown.
#[must_use]
pub fn cluster(raw: &str, nonce: &str) -> ClusterFacts {
    let sections = sections(raw, nonce);
    let objects = Objects::read(&sections);
    let secrets = seen(&sections, "nodes", |text| Ok(secret_names(text)));
    let flannel = || objects.get("DaemonSet", "kube-flannel", "kube-flannel-ds");
    ClusterFacts {
        asked: None,
        nodes: seen(&sections, "nodes", nodes),
        members: seen(&sections, "members", members),
        kubeadm_config: objects.document("kube-system", "kubeadm-config", "ClusterConfiguration"),
        kubelet_config: objects.document("kube-system", "kubelet-config", "kubelet"),
        kube_proxy_config: objects.document("kube-system", "kube-proxy", "config.conf"),
        cluster_info: objects.exists("ConfigMap", "kube-public", "cluster-info"),
        cluster_admins: objects.exists("ClusterRoleBinding", "", "kubeadm:cluster-admins"),
        kube_proxy: and_then(objects.get("DaemonSet", "kube-system", "kube-proxy"), |set| {
            Seen::Present(daemon_set(set))
        }),
        coredns: and_then(objects.get("Deployment", "kube-system", "coredns"), |found| {
            Seen::Present(deployment(found))
        }),
        corefile: and_then(objects.data("kube-system", "coredns", "Corefile"), |text| {
            Seen::Present(text.to_owned())
        }),
        flannel: and_then(flannel(), |set| Seen::Present(daemon_set(set))),
        flannel_hash: and_then(flannel(), |set| {
            text(set, "/metadata/annotations/k8sup.dev~1manifest-sha256").map_or(Seen::Absent, Seen::Present)
        }),
        flannel_network: and_then(
            objects.data("kube-flannel", "kube-flannel-cfg", "net-conf.json"),
            |text| {
                serde_json::from_str(text)
                    .map_or_else(|error| Seen::Unknown(format!("net-conf.json: {error}")), Seen::Present)
            },
        ),
        controller_manager: and_then(
            objects.get("Lease", "kube-system", "kube-controller-manager"),
            |lease| {
                text(lease, "/spec/renewTime")
                    .and_then(|time| time.parse::<jiff::Timestamp>().ok())
                    .map_or(Seen::Absent, |time| Seen::Present(time.as_second()))
            },
        ),
        bootstrap_tokens: and_then(as_ref(&secrets), |names: &BTreeSet<String>| {
            Seen::Present(
                names
                    .iter()
                    .filter_map(|name| name.strip_prefix("bootstrap-token-"))
                    .map(str::to_owned)
                    .collect(),
            )
        }),
        uploaded_certs: and_then(as_ref(&secrets), |names: &BTreeSet<String>| {
            if names.contains("kubeadm-certs") {
                Seen::Present(())
            } else {
                Seen::Absent
            }
        }),
    }
}

fn seen<T>(sections: &Sections, name: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Seen<T> {
    and_then(sections.get(name), |text| {
        parse(text).map_or_else(Seen::Unknown, Seen::Present)
    })
}

fn and_then<T, U>(seen: Seen<T>, next: impl FnOnce(T) -> Seen<U>) -> Seen<U> {
    match seen {
        Seen::Present(value) => next(value),
        Seen::Absent => Seen::Absent,
        Seen::Unknown(reason) => Seen::Unknown(reason),
    }
}

fn as_ref<T>(seen: &Seen<T>) -> Seen<&T> {
    match seen {
        Seen::Present(value) => Seen::Present(value),
        Seen::Absent => Seen::Absent,
        Seen::Unknown(reason) => Seen::Unknown(reason.clone()),
    }
}

/// Objects that were asked for by name.
struct Objects {
    items: Vec<Value>,
    /// Why an object that is not among them may exist all the same.
    doubt: Option<String>,
}

impl Objects {
    fn read(sections: &Sections) -> Self {
        match sections.get("objects") {
            // kubectl prints nothing when not one of them exists.
            Seen::Present(text) if text.trim().is_empty() => Self {
                items: Vec::new(),
                doubt: None,
            },
            Seen::Present(text) => match serde_json::from_str::<Value>(text) {
                Ok(Value::Object(mut list)) => match list.remove("items") {
                    Some(Value::Array(items)) => Self { items, doubt: None },
                    _ => Self {
                        items: vec![Value::Object(list)],
                        doubt: None,
                    },
                },
                Ok(_) => Self {
                    items: Vec::new(),
                    doubt: Some("kubectl printed no object".to_owned()),
                },
                Err(error) => Self {
                    items: Vec::new(),
                    doubt: Some(format!("kubectl printed no JSON: {error}")),
                },
            },
            Seen::Absent => Self {
                items: Vec::new(),
                doubt: None,
            },
            Seen::Unknown(reason) => Self {
                items: Vec::new(),
                doubt: Some(reason),
            },
        }
    }

    fn get(&self, kind: &str, namespace: &str, name: &str) -> Seen<&Value> {
        let wanted = |item: &&Value| {
            item.get("kind").and_then(Value::as_str) == Some(kind)
                && item.pointer("/metadata/name").and_then(Value::as_str) == Some(name)
                && item
                    .pointer("/metadata/namespace")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    == namespace
        };
        match (self.items.iter().find(wanted), &self.doubt) {
            (Some(item), _) => Seen::Present(item),
            (None, Some(reason)) => Seen::Unknown(reason.clone()),
            (None, None) => Seen::Absent,
        }
    }

    fn exists(&self, kind: &str, namespace: &str, name: &str) -> Seen<()> {
        and_then(self.get(kind, namespace, name), |_| Seen::Present(()))
    }

    /// An entry of a `ConfigMap`.
    fn data(&self, namespace: &str, name: &str, key: &str) -> Seen<&str> {
        and_then(self.get("ConfigMap", namespace, name), |map| {
            map.get("data")
                .and_then(|data| data.get(key)?.as_str())
                .map_or(Seen::Absent, Seen::Present)
        })
    }

    /// An entry of a `ConfigMap` that is a YAML document.
    fn document(&self, namespace: &str, name: &str, key: &str) -> Seen<Value> {
        and_then(self.data(namespace, name, key), |text| {
            serde_saphyr::from_str(text).map_or_else(
                |error| Seen::Unknown(format!("{key} of {name} is no YAML: {error}")),
                Seen::Present,
            )
        })
    }
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer)?.as_str().map(str::to_owned)
}

fn count(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

fn seen_newest(value: &Value) -> bool {
    count(value, "/status/observedGeneration") >= count(value, "/metadata/generation")
}

fn daemon_set(set: &Value) -> Rollout {
    let desired = count(set, "/status/desiredNumberScheduled");
    Rollout {
        desired,
        available: count(set, "/status/numberAvailable"),
        current: seen_newest(set) && count(set, "/status/updatedNumberScheduled") >= desired,
    }
}

fn deployment(found: &Value) -> Rollout {
    // The API server fills in 1 where a manifest leaves the number out.
    let desired = count(found, "/spec/replicas");
    Rollout {
        desired,
        available: count(found, "/status/availableReplicas"),
        current: seen_newest(found) && count(found, "/status/updatedReplicas") >= desired,
    }
}

/// Lines of `secret NAME`.
fn secret_names(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("secret "))
        .map(|name| name.trim().to_owned())
        .collect()
}

/// Lines of `node JSON`.
fn nodes(text: &str) -> Result<BTreeMap<String, NodeFact>, String> {
    let mut nodes = BTreeMap::new();
    for json in text.lines().filter_map(|line| line.strip_prefix("node ")) {
        let item: Value = serde_json::from_str(json).map_err(|error| format!("kubectl printed no JSON: {error}"))?;
        let name = self::text(&item, "/metadata/name").ok_or("kubectl printed a node without a name")?;
        nodes.insert(name, node(&item));
    }
    Ok(nodes)
}

fn node(item: &Value) -> NodeFact {
    let list = |pointer: &str| {
        item.pointer(pointer)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default()
    };
    let is = |entry: &&Value, kind: &str| entry.get("type").and_then(Value::as_str) == Some(kind);
    let ready = list("/status/conditions").iter().find(|entry| is(entry, "Ready"));
    let labels = item.pointer("/metadata/labels").and_then(Value::as_object);
    NodeFact {
        ready: ready.and_then(|entry| entry.get("status")?.as_str()) == Some("True"),
        ready_message: ready.and_then(|entry| text(entry, "/message")).unwrap_or_default(),
        pressure: list("/status/conditions")
            .iter()
            .filter(|entry| entry.get("status").and_then(Value::as_str) == Some("True"))
            .filter_map(|entry| text(entry, "/type"))
            .filter(|kind| kind.ends_with("Pressure"))
            .collect(),
        internal_ip: list("/status/addresses")
            .iter()
            .find(|entry| is(entry, "InternalIP"))
            .and_then(|entry| text(entry, "/address")),
        kubelet_version: text(item, "/status/nodeInfo/kubeletVersion").unwrap_or_default(),
        labels: labels
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect(),
        taints: list("/spec/taints")
            .iter()
            .filter_map(|entry| {
                let value = text(entry, "/value").unwrap_or_default();
                Some(Taint {
                    key: text(entry, "/key")?,
                    value,
                    effect: text(entry, "/effect")?,
                })
            })
            .collect(),
        managed: text(item, "/metadata/annotations/k8sup.dev~1managed")
            .map(|entries| entries.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default(),
        flannel_public_ip: text(item, "/metadata/annotations/flannel.alpha.coreos.com~1public-ip"),
        pod_cidr: text(item, "/spec/podCIDR"),
        created: text(item, "/metadata/creationTimestamp").unwrap_or_default(),
        unschedulable: item
            .pointer("/spec/unschedulable")
            .and_then(Value::as_bool)
            .unwrap_or_default(),
    }
}

#[derive(Deserialize)]
struct RawMembers {
    members: Vec<RawMember>,
}

#[derive(Deserialize)]
struct RawMember {
    #[serde(rename = "ID")]
    id: RawId,
    #[serde(default)]
    name: String,
    #[serde(default, rename = "peerURLs")]
    peer_urls: Vec<String>,
    #[serde(default, rename = "isLearner")]
    learner: bool,
}

/// etcdctl prints ids as decimal numbers in JSON, beyond what a double holds, but takes and otherwise shows them in hex.
#[derive(Deserialize)]
#[serde(untagged)]
enum RawId {
    Number(u64),
    Hex(String),
}

fn members(json: &str) -> Result<Vec<Member>, String> {
    let raw: RawMembers =
        serde_json::from_str(json).map_err(|error| format!("`etcdctl member list` printed no JSON: {error}"))?;
    let id = |id| match id {
        RawId::Number(id) => format!("{id:x}"),
        RawId::Hex(id) => id,
    };
    Ok(raw
        .members
        .into_iter()
        .map(|member| Member {
            id: id(member.id),
            name: member.name,
            peer_urls: member.peer_urls,
            learner: member.learner,
        })
        .collect())
}
