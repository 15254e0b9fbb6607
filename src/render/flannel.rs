//! Flannel's manifest: the upstream text, parsed, changed as data and written again.
//!
//! Objects that are not known here stay as they are. What is changed is found by kind and name,
//! and it is an error if it is not there: then upstream has changed and somebody must look.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::yaml;
use crate::cluster::{Cluster, Flannel, NodeName};

/// On the `DaemonSet`: hash of everything that was applied.
pub const MANIFEST_ANNOTATION: &str = "k8sup.dev/manifest-sha256";
/// On the `DaemonSet` and its pods: hash of the `ConfigMap`, so that a change of it restarts them.
pub const CONFIG_ANNOTATION: &str = "k8sup.dev/config-sha256";

const CONFIG_MAP: (&str, &str) = ("ConfigMap", "kube-flannel-cfg");
const DAEMON_SET: (&str, &str) = ("DaemonSet", "kube-flannel-ds");
const CONTAINER: &str = "kube-flannel";
const UPSTREAM_IMAGES: &str = "ghcr.io/flannel-io";
const NODE_ADDRESS: &str = "NODE_ADDRESS";

/// The manifest for this cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// What is applied.
    pub yaml: String,
    /// Value of [`MANIFEST_ANNOTATION`] in it.
    pub sha256: String,
    /// Images that its pods use, each once.
    pub images: Vec<String>,
}

/// Why the manifest cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FlannelError {
    /// Not YAML.
    #[error("flannel's manifest is not valid YAML: {0}")]
    Syntax(String),
    /// An expected object is not there.
    #[error("flannel's manifest has no {kind} {name}; is it kube-flannel.yml of a release?")]
    NoObject {
        /// Kind.
        kind: &'static str,
        /// Name.
        name: &'static str,
    },
    /// An expected field is not there or of another type.
    #[error("{object} of flannel's manifest has no {field}; is it kube-flannel.yml of a release?")]
    NoField {
        /// Kind and name.
        object: String,
        /// Dotted path, with its expected type.
        field: &'static str,
    },
    /// The JSON inside the `ConfigMap` is broken.
    #[error("net-conf.json in ConfigMap kube-flannel-cfg is not valid JSON: {0}")]
    NetConf(String),
    /// A patch of the inventory meets nothing.
    #[error("flannel.patches names {key}, which flannel's manifest does not have; it has {has}")]
    PatchTarget {
        /// As in the inventory.
        key: String,
        /// What could have been named.
        has: String,
    },
    /// The text is not the pinned one.
    #[error("flannel's manifest has SHA-256 {found}, but {wanted} is pinned; nothing was applied")]
    Digest {
        /// Of what was read.
        found: String,
        /// Pinned.
        wanted: String,
    },
}

/// Compares with a pinned SHA-256 in hex.
pub fn verify_digest(bytes: &[u8], sha256: &str) -> Result<(), FlannelError> {
    let found = hex_sha256(bytes);
    if found.eq_ignore_ascii_case(sha256.trim()) {
        Ok(())
    } else {
        Err(FlannelError::Digest {
            found,
            wanted: sha256.trim().to_owned(),
        })
    }
}

/// Changes the upstream manifest to fit the cluster. `interfaces` says for each node which
/// interface carries its cluster address, `None` where that is the default route's, which
/// flanneld finds by itself.
pub fn render(
    manifest: &str,
    cluster: &Cluster,
    interfaces: &BTreeMap<NodeName, Option<String>>,
) -> Result<Rendered, FlannelError> {
    let mut documents: Vec<Value> =
        serde_saphyr::from_multiple(manifest).map_err(|error| FlannelError::Syntax(one_line(&error.to_string())))?;
    documents.retain(|document| !document.is_null());

    set_network(find(&mut documents, CONFIG_MAP)?, cluster)?;
    let daemon_set = find(&mut documents, DAEMON_SET)?;
    // Left over when a manifest is given that was rendered before.
    annotations(daemon_set)?.shift_remove(MANIFEST_ANNOTATION);
    set_pods(daemon_set, cluster, &Interface::common(interfaces))?;
    apply_patches(&mut documents, &cluster.flannel.patches)?;

    let config = find(&mut documents, CONFIG_MAP)?["data"].to_string();
    let config_hash = json!(hex_sha256(config.as_bytes()));
    let daemon_set = find(&mut documents, DAEMON_SET)?;
    annotations(daemon_set)?.insert(CONFIG_ANNOTATION.to_owned(), config_hash.clone());
    let template = daemon_set
        .pointer_mut("/spec/template")
        .ok_or_else(|| missing("object spec.template"))?;
    annotations(template)?.insert(CONFIG_ANNOTATION.to_owned(), config_hash);
    let images = images_of(daemon_set)?;

    let sha256 = hex_sha256(yaml::documents(&documents).as_bytes());
    annotations(find(&mut documents, DAEMON_SET)?)?.insert(MANIFEST_ANNOTATION.to_owned(), json!(sha256));
    Ok(Rendered {
        yaml: yaml::documents(&documents),
        sha256,
        images,
    })
}

/// How flanneld is told its interface.
enum Interface<'a> {
    /// It takes the default route's.
    DefaultRoute,
    /// The same name everywhere.
    Named(&'a str),
    /// Names differ. There is one `DaemonSet` for all, so each pod is told its node's address
    /// (the kubelet's, hence the inventory's) and flanneld looks for the interface that has it.
    /// Several `--iface` would not do: the first that exists wins, and a host may well have
    /// another host's name on the wrong network.
    ByAddress,
}

impl<'a> Interface<'a> {
    fn common(interfaces: &'a BTreeMap<NodeName, Option<String>>) -> Self {
        let different: BTreeSet<Option<&str>> = interfaces.values().map(Option::as_deref).collect();
        let mut different = different.into_iter();
        match (different.next().flatten(), different.next()) {
            (None, None) => Self::DefaultRoute,
            (Some(name), None) => Self::Named(name),
            _ => Self::ByAddress,
        }
    }
}

/// Network and backend in the JSON inside the `ConfigMap`; whatever else it says stays.
fn set_network(config_map: &mut Value, cluster: &Cluster) -> Result<(), FlannelError> {
    let no_field = || FlannelError::NoField {
        object: title(CONFIG_MAP),
        field: "text data.net-conf.json",
    };
    let text = config_map
        .pointer("/data/net-conf.json")
        .and_then(Value::as_str)
        .ok_or_else(no_field)?;
    let net_conf: Value = serde_json::from_str(text).map_err(|error| FlannelError::NetConf(error.to_string()))?;
    let Value::Object(mut net_conf) = net_conf else {
        return Err(FlannelError::NetConf("it is not an object".to_owned()));
    };
    net_conf.insert("Network".to_owned(), json!(cluster.pod_cidr.to_string()));
    net_conf.insert("Backend".to_owned(), backend(&cluster.flannel));
    config_map["data"]["net-conf.json"] = json!(format!("{:#}\n", Value::Object(net_conf)));
    Ok(())
}

/// The type is always written: without one flanneld takes `udp`, which is slow.
fn backend(flannel: &Flannel) -> Value {
    let mut backend = json!({ "Type": flannel.backend });
    if flannel.backend == "vxlan" && flannel.vni != 1 {
        backend["VNI"] = json!(flannel.vni);
    }
    let port = match flannel.backend.as_str() {
        "vxlan" => Some("Port"),
        "wireguard" => Some("ListenPort"),
        _ => None,
    };
    if let (Some(key), Some(port)) = (port, flannel.port) {
        backend[key] = json!(port);
    }
    if let Some(mtu) = flannel.mtu {
        backend["MTU"] = json!(mtu);
    }
    backend
}

fn set_pods(daemon_set: &mut Value, cluster: &Cluster, interface: &Interface<'_>) -> Result<(), FlannelError> {
    let pods = pods_of(daemon_set)?;
    // Without an effect it covers all: no taint, not-ready above all, can keep the network away.
    pods.insert("tolerations".to_owned(), json!([{ "operator": "Exists" }]));
    require_linux(pods)?;
    if let Some(repository) = &cluster.flannel.image_repository {
        for container in containers(pods) {
            if let Some(image) = container["image"].as_str().map(|image| moved(image, repository)) {
                container["image"] = json!(image);
            }
        }
    }
    // A pod on the host's network resolves names as the host does, except with this policy, which
    // would ask the cluster's DNS before there is a network to reach it by.
    if pods
        .get("dnsPolicy")
        .is_some_and(|policy| policy == "ClusterFirstWithHostNet")
    {
        pods.insert("dnsPolicy".to_owned(), json!("Default"));
    }

    let container = containers(pods)
        .find(|container| container["name"] == CONTAINER)
        .ok_or_else(|| missing("container kube-flannel"))?;
    // The service's own address leads nowhere until kube-proxy has written its rules, and flanneld
    // gives up after 30 s. The endpoint is reachable from the start.
    set_env(
        container,
        "KUBERNETES_SERVICE_HOST",
        &json!({ "value": cluster.endpoint.host }),
    )?;
    set_env(
        container,
        "KUBERNETES_SERVICE_PORT",
        &json!({ "value": cluster.endpoint.port.to_string() }),
    )?;
    match interface {
        Interface::DefaultRoute => Ok(()),
        Interface::Named(name) => set_iface(container, name),
        Interface::ByAddress => {
            set_env(
                container,
                NODE_ADDRESS,
                &json!({ "valueFrom": { "fieldRef": { "fieldPath": "status.hostIP" } } }),
            )?;
            set_iface(container, &format!("$({NODE_ADDRESS})"))
        }
    }
}

/// Adds the condition to every term, since one term that holds is enough.
fn require_linux(pods: &mut Map<String, Value>) -> Result<(), FlannelError> {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let linux = json!({ "key": "kubernetes.io/os", "operator": "In", "values": ["linux"] });
    let mut field = object(pods.entry("affinity").or_insert(Value::Null), "object affinity")?;
    field = object(
        field.entry("nodeAffinity").or_insert(Value::Null),
        "object affinity.nodeAffinity",
    )?;
    field = object(
        field.entry(REQUIRED).or_insert(Value::Null),
        "object requiredDuringSchedulingIgnoredDuringExecution",
    )?;
    let terms = field.entry("nodeSelectorTerms").or_insert_with(|| json!([{}]));
    for term in terms.as_array_mut().ok_or_else(|| missing("list nodeSelectorTerms"))? {
        let expressions = object(term, "object in nodeSelectorTerms")?
            .entry("matchExpressions")
            .or_insert_with(|| json!([]));
        let expressions = expressions
            .as_array_mut()
            .ok_or_else(|| missing("list matchExpressions"))?;
        if !expressions.contains(&linux) {
            expressions.push(linux.clone());
        }
    }
    Ok(())
}

/// `ghcr.io/flannel-io/flannel:v1` from another registry and path; other images stay.
fn moved(image: &str, repository: &str) -> String {
    image
        .strip_prefix(UPSTREAM_IMAGES)
        .and_then(|rest| rest.strip_prefix('/'))
        .map_or_else(
            || image.to_owned(),
            |rest| format!("{}/{rest}", repository.trim_end_matches('/')),
        )
}

fn set_env(container: &mut Value, name: &str, value: &Value) -> Result<(), FlannelError> {
    let mut entry = json!({ "name": name });
    if let (Value::Object(entry), Value::Object(value)) = (&mut entry, value) {
        entry.extend(value.clone());
    }
    let env = object(container, "object")?.entry("env").or_insert_with(|| json!([]));
    let env = env
        .as_array_mut()
        .ok_or_else(|| missing("list env in container kube-flannel"))?;
    match env.iter_mut().find(|entry| entry["name"] == name) {
        Some(old) => *old = entry,
        None => env.push(entry),
    }
    Ok(())
}

/// Upstream gives its options as `args`; a manifest without `args` may give them in `command`.
fn set_iface(container: &mut Value, interface: &str) -> Result<(), FlannelError> {
    let list = if container["args"].is_array() {
        "args"
    } else {
        "command"
    };
    let Value::Array(arguments) = &mut container[list] else {
        return Err(missing("list args in container kube-flannel"));
    };
    arguments.retain(|argument| {
        !argument
            .as_str()
            .is_some_and(|argument| argument.trim_start_matches('-').starts_with("iface"))
    });
    arguments.push(json!(format!("--iface={interface}")));
    Ok(())
}

/// RFC 7386, by `Kind/name`.
fn apply_patches(documents: &mut [Value], patches: &BTreeMap<String, Value>) -> Result<(), FlannelError> {
    for (key, patch) in patches {
        let has: Vec<String> = documents.iter().map(key_of).collect();
        let Some(document) = documents.iter_mut().find(|document| key_of(document) == *key) else {
            return Err(FlannelError::PatchTarget {
                key: key.clone(),
                has: has.join(", "),
            });
        };
        json_patch::merge(document, patch);
    }
    Ok(())
}

fn key_of(document: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text(&document["kind"]), text(&document["metadata"]["name"]))
}

fn find<'a>(
    documents: &'a mut [Value],
    (kind, name): (&'static str, &'static str),
) -> Result<&'a mut Value, FlannelError> {
    documents
        .iter_mut()
        .find(|document| document["kind"] == kind && document["metadata"]["name"] == name)
        .ok_or(FlannelError::NoObject { kind, name })
}

fn title((kind, name): (&str, &str)) -> String {
    format!("{kind} {name}")
}

fn containers(pods: &mut Map<String, Value>) -> impl Iterator<Item = &mut Value> {
    pods.iter_mut()
        .filter(|(key, _)| matches!(key.as_str(), "initContainers" | "containers"))
        .filter_map(|(_, list)| list.as_array_mut())
        .flatten()
        .filter(|container| container.is_object())
}

fn pods_of(daemon_set: &mut Value) -> Result<&mut Map<String, Value>, FlannelError> {
    let pods = daemon_set
        .pointer_mut("/spec/template/spec")
        .and_then(Value::as_object_mut);
    pods.ok_or_else(|| missing("object spec.template.spec"))
}

fn images_of(daemon_set: &mut Value) -> Result<Vec<String>, FlannelError> {
    let images: BTreeSet<String> = containers(pods_of(daemon_set)?)
        .filter_map(|container| container["image"].as_str().map(str::to_owned))
        .collect();
    Ok(images.into_iter().collect())
}

fn annotations(of: &mut Value) -> Result<&mut Map<String, Value>, FlannelError> {
    let metadata = object(of, "object")?.entry("metadata").or_insert(Value::Null);
    object(
        object(metadata, "object metadata")?
            .entry("annotations")
            .or_insert(Value::Null),
        "object metadata.annotations",
    )
}

/// The field as an object; a field that is missing or empty becomes one.
fn object<'a>(value: &'a mut Value, field: &'static str) -> Result<&'a mut Map<String, Value>, FlannelError> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().ok_or_else(|| missing(field))
}

fn missing(field: &'static str) -> FlannelError {
    FlannelError::NoField {
        object: title(DAEMON_SET),
        field,
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// SHA-256 in hexadecimal.
pub(crate) fn hex_sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            use std::fmt::Write;
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{CONFIG_ANNOTATION, FlannelError, MANIFEST_ANNOTATION, Rendered, render, verify_digest};
    use crate::cluster::{Cluster, NodeName};
    use crate::render::tests::homelab;

    const UPSTREAM: &str = include_str!("../../tests/fixtures/kube-flannel.yml");

    fn interfaces(names: &[Option<&str>]) -> BTreeMap<NodeName, Option<String>> {
        let name = |i| NodeName::parse(&format!("node-{i}")).unwrap();
        names
            .iter()
            .enumerate()
            .map(|(i, interface)| (name(i), interface.map(str::to_owned)))
            .collect()
    }

    fn rendered(cluster: &Cluster, names: &[Option<&str>]) -> (Rendered, Vec<Value>) {
        let rendered = render(UPSTREAM, cluster, &interfaces(names)).unwrap();
        let documents = serde_saphyr::from_multiple(&rendered.yaml).unwrap();
        (rendered, documents)
    }

    fn object<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
        documents.iter().find(|document| document["kind"] == kind).unwrap()
    }

    fn net_conf(documents: &[Value]) -> Value {
        serde_json::from_str(
            object(documents, "ConfigMap")["data"]["net-conf.json"]
                .as_str()
                .unwrap(),
        )
        .unwrap()
    }

    #[test]
    fn golden() {
        let (rendered, _) = rendered(&homelab(), &[None, None]);
        insta::assert_snapshot!(rendered.yaml);
        assert_eq!(
            rendered.images,
            [
                "ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel3",
                "ghcr.io/flannel-io/flannel:v0.28.10"
            ]
        );
    }

    #[test]
    fn only_what_is_meant_to_differs_from_upstream() {
        let upstream: Vec<Value> = serde_saphyr::from_multiple(UPSTREAM).unwrap();
        let (_, documents) = rendered(&homelab(), &[None]);
        assert_eq!(upstream.len(), documents.len());
        for (before, after) in upstream.iter().zip(&documents) {
            let patch = json_patch::diff(before, after);
            let allowed = [
                "/metadata/annotations",
                "/data/net-conf.json",
                "/spec/template/metadata/annotations",
                "/spec/template/spec/tolerations/0/effect",
                "/spec/template/spec/containers/0/env/",
            ];
            for operation in patch.iter() {
                let place = operation.path().to_string();
                assert!(allowed.iter().any(|allowed| place.starts_with(allowed)), "{operation}");
            }
        }
        assert_eq!(net_conf(&documents), net_conf(&upstream));
    }

    #[test]
    fn the_network_and_backend_are_the_inventorys() {
        let mut cluster = homelab();
        cluster.pod_cidr = "10.42.0.0/16".parse().unwrap();
        cluster.flannel.vni = 7;
        cluster.flannel.port = Some(4789);
        cluster.flannel.mtu = Some(1400);
        let (_, documents) = rendered(&cluster, &[]);
        assert_eq!(
            net_conf(&documents),
            json!({ "Network": "10.42.0.0/16", "EnableNFTables": false, "Backend": { "Type": "vxlan", "VNI": 7, "Port": 4789, "MTU": 1400 } })
        );
        cluster.flannel.backend = "wireguard".to_owned();
        let (_, documents) = rendered(&cluster, &[]);
        assert_eq!(
            net_conf(&documents)["Backend"],
            json!({ "Type": "wireguard", "ListenPort": 4789, "MTU": 1400 })
        );
    }

    #[test]
    fn flanneld_is_told_its_interface_only_where_it_must_be() {
        let arguments = |names: &[Option<&str>]| {
            let (_, documents) = rendered(&homelab(), names);
            object(&documents, "DaemonSet")["spec"]["template"]["spec"]["containers"][0].clone()
        };
        let upstream = json!(["--ip-masq", "--kube-subnet-mgr", "--healthz-port=8081"]);
        assert_eq!(arguments(&[None, None])["args"], upstream);
        assert_eq!(arguments(&[])["args"], upstream);
        assert_eq!(arguments(&[Some("eth1"), Some("eth1")])["args"][3], "--iface=eth1");
        for mixed in [&[Some("eth1"), None][..], &[Some("eth0"), Some("eth1")]] {
            let container = arguments(mixed);
            assert_eq!(container["args"][3], "--iface=$(NODE_ADDRESS)");
            let env = container["env"].as_array().unwrap();
            let address = env.iter().find(|entry| entry["name"] == "NODE_ADDRESS").unwrap();
            assert_eq!(address["valueFrom"]["fieldRef"]["fieldPath"], "status.hostIP");
        }
    }

    #[test]
    fn no_taint_keeps_it_away_and_it_calls_the_endpoint() {
        let (_, documents) = rendered(&homelab(), &[]);
        let pods = &object(&documents, "DaemonSet")["spec"]["template"]["spec"];
        assert_eq!(pods["tolerations"], json!([{ "operator": "Exists" }]));
        let env = pods["containers"][0]["env"].as_array().unwrap();
        assert!(env.contains(&json!({ "name": "KUBERNETES_SERVICE_HOST", "value": "192.168.7.140" })));
        assert!(env.contains(&json!({ "name": "KUBERNETES_SERVICE_PORT", "value": "6443" })));
    }

    #[test]
    fn linux_is_required_also_where_upstream_has_no_affinity() {
        let without = UPSTREAM.replacen("affinity:", "nodeName: null\n      x-affinity:", 1);
        let rendered = render(&without, &homelab(), &interfaces(&[])).unwrap();
        let documents: Vec<Value> = serde_saphyr::from_multiple(&rendered.yaml).unwrap();
        let affinity = &object(&documents, "DaemonSet")["spec"]["template"]["spec"]["affinity"]["nodeAffinity"];
        assert_eq!(
            affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"],
            json!([{ "matchExpressions": [{ "key": "kubernetes.io/os", "operator": "In", "values": ["linux"] }] }])
        );
    }

    #[test]
    fn images_come_from_the_inventorys_repository() {
        let mut cluster = homelab();
        cluster.flannel.image_repository = Some("mirror.lan/flannel/".to_owned());
        let (rendered, _) = rendered(&cluster, &[]);
        assert_eq!(
            rendered.images,
            [
                "mirror.lan/flannel/flannel-cni-plugin:v1.9.1-flannel3",
                "mirror.lan/flannel/flannel:v0.28.10"
            ]
        );
    }

    #[test]
    fn patches_of_the_inventory_are_merged() {
        let mut cluster = homelab();
        let limits =
            json!({ "spec": { "updateStrategy": { "type": "OnDelete" } }, "metadata": { "labels": { "tier": null } } });
        cluster
            .flannel
            .patches
            .insert("DaemonSet/kube-flannel-ds".to_owned(), limits);
        let (_, documents) = rendered(&cluster, &[]);
        let daemon_set = object(&documents, "DaemonSet");
        assert_eq!(daemon_set["spec"]["updateStrategy"]["type"], "OnDelete");
        assert_eq!(daemon_set["metadata"]["labels"].get("tier"), None);

        cluster
            .flannel
            .patches
            .insert("Daemonset/kube-flannel".to_owned(), json!({}));
        let error = render(UPSTREAM, &cluster, &interfaces(&[])).unwrap_err().to_string();
        assert!(
            error.starts_with("flannel.patches names Daemonset/kube-flannel, which"),
            "{error}"
        );
        assert!(error.contains("DaemonSet/kube-flannel-ds"), "{error}");
    }

    #[test]
    fn a_changed_config_map_restarts_the_pods_and_a_changed_pod_does_not_touch_its_hash() {
        let hashes = |cluster: &Cluster, names: &[Option<&str>]| {
            let (rendered, documents) = rendered(cluster, names);
            let daemon_set = object(&documents, "DaemonSet").clone();
            let config = daemon_set["spec"]["template"]["metadata"]["annotations"][CONFIG_ANNOTATION].clone();
            assert_eq!(daemon_set["metadata"]["annotations"][CONFIG_ANNOTATION], config);
            assert_eq!(
                daemon_set["metadata"]["annotations"][MANIFEST_ANNOTATION],
                json!(rendered.sha256)
            );
            (config, rendered.sha256)
        };
        let mut cluster = homelab();
        let first = hashes(&cluster, &[None]);
        assert_eq!(first, hashes(&cluster, &[None, None]));
        let other_interface = hashes(&cluster, &[Some("eth1")]);
        assert_eq!(first.0, other_interface.0);
        assert_ne!(first.1, other_interface.1);
        cluster.flannel.mtu = Some(1400);
        let other_config = hashes(&cluster, &[None]);
        assert_ne!(first.0, other_config.0);
        assert_ne!(first.1, other_config.1);
    }

    #[test]
    fn a_manifest_that_is_something_else_is_refused_by_name() {
        let refusal = |text: &str| render(text, &homelab(), &interfaces(&[])).unwrap_err().to_string();
        assert_eq!(
            refusal(&UPSTREAM.replace("kube-flannel-ds", "kube-flannel")),
            "flannel's manifest has no DaemonSet kube-flannel-ds; is it kube-flannel.yml of a release?"
        );
        assert_eq!(
            refusal(&UPSTREAM.replace("net-conf.json", "net.json")),
            "ConfigMap kube-flannel-cfg of flannel's manifest has no text data.net-conf.json; is it kube-flannel.yml of a release?"
        );
        assert_eq!(
            refusal(&UPSTREAM.replace("- name: kube-flannel\n", "- name: flanneld\n")),
            "DaemonSet kube-flannel-ds of flannel's manifest has no container kube-flannel; is it kube-flannel.yml of a release?"
        );
        assert!(refusal(&UPSTREAM.replace("\"Network\"", "Network")).starts_with("net-conf.json in ConfigMap"));
        assert!(refusal("<html>404: Not Found</html>").starts_with("flannel's manifest"));
        assert!(refusal("a: [").starts_with("flannel's manifest is not valid YAML"));
    }

    #[test]
    fn a_digest_is_compared() {
        let abc = "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD\n";
        assert_eq!(verify_digest(b"abc", abc), Ok(()));
        assert!(matches!(verify_digest(b"abd", abc), Err(FlannelError::Digest { .. })));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn rendering_what_was_rendered_changes_nothing(
            names in prop::collection::vec(prop::option::of("eth[01]"), 0..4), vni in 1_u32..4, mtu in prop::option::of(1280_u32..1500)
        ) {
            let mut cluster = homelab();
            cluster.flannel.vni = vni;
            cluster.flannel.mtu = mtu;
            cluster.flannel.image_repository = Some("mirror.lan/flannel".to_owned());
            let names: Vec<Option<&str>> = names.iter().map(Option::as_deref).collect();
            let once = render(UPSTREAM, &cluster, &interfaces(&names)).unwrap();
            let twice = render(&once.yaml, &cluster, &interfaces(&names)).unwrap();
            prop_assert_eq!(once, twice);
        }
    }
}
