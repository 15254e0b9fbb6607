//! kubeadm's configuration documents, `v1beta4`, exact in everything that kubeadm would else
//! guess on the host or ask the internet for.

use serde_json::{Map, Value, json};

use super::yaml;
use crate::cluster::merge::merge;
use crate::cluster::{Cluster, Host, Role, Taint};
use crate::plan::Reference;

/// The kubeconfig by which a joining host finds the cluster; in memory, for the time of the join.
pub const DISCOVERY_FILE: &str = "/run/k8sup/discovery.conf";
/// containerd's socket, always named: kubeadm gives up where it finds more than one.
pub const CRI_SOCKET: &str = "unix:///run/containerd/containerd.sock";
/// Port of the API server on a controller.
pub const API_PORT: u16 = 6443;

const API_VERSION: &str = "kubeadm.k8s.io/v1beta4";

/// What the configuration of one node takes from the facts about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeTraits {
    /// The resolver file for pods, where /etc/resolv.conf names a stub that only listens on the
    /// host's loopback. It is given to this node's kubelet alone, because the kubelets' common
    /// configuration would give it to all.
    pub resolv_conf: Option<String>,
    /// Checks of kubeadm's that are left out on this host.
    pub ignored_checks: Vec<&'static str>,
}

/// For `kubeadm init` on the first controller: how it starts, the cluster, the kubelets, kube-proxy.
#[must_use]
pub fn init_config(cluster: &Cluster, host: &Host, traits: &NodeTraits) -> String {
    let init = json!({
        "apiVersion": API_VERSION,
        "kind": "InitConfiguration",
        "bootstrapTokens": [{
            "token": Reference::BootstrapToken.placeholder(),
            "ttl": "2h0m0s",
            "description": "made by k8sup for one run",
            "usages": ["signing", "authentication"],
            "groups": ["system:bootstrappers:kubeadm:default-node-token"],
        }],
        "certificateKey": Reference::CertificateKey.placeholder(),
        "localAPIEndpoint": local_endpoint(host),
        "nodeRegistration": registration(host, traits),
        "timeouts": timeouts(),
    });
    yaml::documents(&[
        init,
        cluster_configuration(cluster),
        kubelet_configuration(cluster),
        kube_proxy_configuration(cluster),
    ])
}

/// For `kubeadm join`, as a controller or as a worker by the host's role.
#[must_use]
pub fn join_config(_cluster: &Cluster, host: &Host, traits: &NodeTraits) -> String {
    let mut join = json!({
        "apiVersion": API_VERSION,
        "kind": "JoinConfiguration",
        // By file: the joining host then depends neither on the signature that the controller
        // manager puts on cluster-info nor on five-second polls for it.
        "discovery": {
            "file": { "kubeConfigPath": DISCOVERY_FILE },
            "tlsBootstrapToken": Reference::BootstrapToken.placeholder(),
        },
        "nodeRegistration": registration(host, traits),
        "timeouts": timeouts(),
    });
    if host.role == Role::Controller {
        join["controlPlane"] = json!({
            "localAPIEndpoint": local_endpoint(host),
            "certificateKey": Reference::CertificateKey.placeholder(),
        });
    }
    yaml::document(&join)
}

/// The kubeconfig that [`join_config`] names: the endpoint, its CA, and the bootstrap token.
#[must_use]
pub fn discovery_kubeconfig(cluster: &Cluster) -> String {
    let name = &cluster.name;
    yaml::document(&json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": name,
            "cluster": {
                "server": format!("https://{}", cluster.endpoint),
                "certificate-authority-data": Reference::CaCertData.placeholder(),
            },
        }],
        "users": [{ "name": "bootstrap", "user": { "token": Reference::BootstrapToken.placeholder() } }],
        "contexts": [{ "name": name, "context": { "cluster": name, "user": "bootstrap" } }],
        "current-context": name,
    }))
}

/// For `kubeadm reset`; `skip_phases` is empty or names phases that must not run, as
/// `remove-etcd-member` where /var/lib/etcd is not kubeadm's.
#[must_use]
pub fn reset_config(skip_phases: &[&str]) -> String {
    let mut reset = json!({
        "apiVersion": API_VERSION,
        "kind": "ResetConfiguration",
        "criSocket": CRI_SOCKET,
        "force": true,
        "cleanupTmpDir": true,
        // A mount that is still in use would else end the reset before it has removed anything.
        "unmountFlags": ["MNT_DETACH"],
    });
    if !skip_phases.is_empty() {
        reset["skipPhases"] = json!(skip_phases);
    }
    yaml::document(&reset)
}

/// `ClusterConfiguration` as kubeadm is given it and as it stands in the cluster afterwards.
#[must_use]
pub fn cluster_configuration(cluster: &Cluster) -> Value {
    let mut document = json!({
        "apiVersion": API_VERSION,
        "kind": "ClusterConfiguration",
        "clusterName": cluster.name,
        "kubernetesVersion": cluster.version.to_string(),
        "controlPlaneEndpoint": cluster.endpoint.to_string(),
        "networking": {
            "podSubnet": cluster.pod_cidr.to_string(),
            "serviceSubnet": cluster.service_cidr.to_string(),
            "dnsDomain": cluster.dns_domain,
        },
        "apiServer": { "certSANs": cert_sans(cluster) },
    });
    if let Some(repository) = &cluster.images.repository {
        document["imageRepository"] = json!(repository.trim_end_matches('/'));
    }
    if let Some(algorithm) = &cluster.key_algorithm {
        document["encryptionAlgorithm"] = json!(algorithm);
    }
    with_override(document, cluster.overrides.kubeadm.as_ref())
}

/// `KubeletConfiguration` of all nodes.
#[must_use]
pub fn kubelet_configuration(cluster: &Cluster) -> Value {
    let document = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": "systemd",
    });
    with_override(document, cluster.overrides.kubelet.as_ref())
}

/// `KubeProxyConfiguration` of all nodes.
#[must_use]
pub fn kube_proxy_configuration(cluster: &Cluster) -> Value {
    let document = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clusterCIDR": cluster.pod_cidr.to_string(),
    });
    with_override(document, cluster.overrides.kube_proxy.as_ref())
}

/// Every name and address by which a client may reach an API server, from the start: a
/// certificate that lacks one later is an error of kubeadm's, not made anew.
#[must_use]
pub fn cert_sans(cluster: &Cluster) -> Vec<String> {
    let hosts = cluster.role(Role::LoadBalancer).chain(cluster.role(Role::Controller));
    let names = std::iter::once(cluster.endpoint.host.clone())
        .chain(hosts.flat_map(|host| [host.name.to_string(), host.address.to_string()]))
        .chain(cluster.extra_sans.iter().cloned());
    let mut sans = Vec::new();
    for name in names {
        if !sans.contains(&name) {
            sans.push(name);
        }
    }
    sans
}

fn with_override(mut document: Value, over: Option<&Value>) -> Value {
    if let Some(over) = over {
        merge(&mut document, over);
    }
    document
}

fn local_endpoint(host: &Host) -> Value {
    json!({ "advertiseAddress": host.address.to_string(), "bindPort": API_PORT })
}

fn registration(host: &Host, traits: &NodeTraits) -> Value {
    // Without node-ip the kubelet guesses from the hostname and the default route.
    let mut kubelet_args = vec![json!({ "name": "node-ip", "value": host.address.to_string() })];
    if let Some(path) = &traits.resolv_conf {
        kubelet_args.push(json!({ "name": "resolv-conf", "value": path }));
    }
    let mut registration = Map::new();
    registration.insert("name".to_owned(), json!(host.name.as_str()));
    registration.insert("criSocket".to_owned(), json!(CRI_SOCKET));
    // No key leaves kubeadm's own taint on controllers; an empty list is no taint at all.
    if let Some(taints) = &host.taints {
        registration.insert("taints".to_owned(), taints.iter().map(taint).collect());
    }
    registration.insert("kubeletExtraArgs".to_owned(), Value::Array(kubelet_args));
    if !traits.ignored_checks.is_empty() {
        registration.insert("ignorePreflightErrors".to_owned(), json!(traits.ignored_checks));
    }
    registration.insert("imagePullPolicy".to_owned(), json!("IfNotPresent"));
    registration.insert("imagePullSerial".to_owned(), json!(false));
    Value::Object(registration)
}

fn taint(taint: &Taint) -> Value {
    let Taint { key, value, effect } = taint;
    let mut object = json!({ "key": key, "effect": effect });
    if !value.is_empty() {
        object["value"] = json!(value);
    }
    object
}

/// kubeadm's own are for a data centre; a Raspberry Pi with an SD card is slower.
fn timeouts() -> Value {
    json!({
        "controlPlaneComponentHealthCheck": "10m0s",
        "kubeletHealthCheck": "4m0s",
        "kubernetesAPICall": "5m0s",
        "etcdAPICall": "5m0s",
        "tlsBootstrap": "10m0s",
        "discovery": "5m0s",
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        NodeTraits, cert_sans, cluster_configuration, discovery_kubeconfig, init_config, join_config, reset_config,
    };
    use crate::cluster::{Host, Taint};
    use crate::render::tests::{homelab, named};

    fn parse(text: &str) -> Vec<Value> {
        serde_saphyr::from_multiple(text).unwrap()
    }

    #[test]
    fn init_golden() {
        let cluster = homelab();
        insta::assert_snapshot!(init_config(&cluster, named(&cluster, "cp1"), &NodeTraits::default()));
    }

    #[test]
    fn join_controller_golden() {
        let cluster = homelab();
        insta::assert_snapshot!(join_config(&cluster, named(&cluster, "cp2"), &NodeTraits::default()));
    }

    #[test]
    fn join_worker_golden() {
        let cluster = homelab();
        let traits = NodeTraits {
            resolv_conf: Some("/run/systemd/resolve/resolv.conf".to_owned()),
            ..NodeTraits::default()
        };
        insta::assert_snapshot!(join_config(&cluster, named(&cluster, "w1"), &traits));
    }

    #[test]
    fn discovery_golden() {
        insta::assert_snapshot!(discovery_kubeconfig(&homelab()));
    }

    #[test]
    fn reset_golden() {
        insta::assert_snapshot!(reset_config(&["remove-etcd-member"]));
        assert!(!reset_config(&[]).contains("skipPhases"));
    }

    #[test]
    fn sans_are_complete_and_named_once() {
        assert_eq!(
            cert_sans(&homelab()),
            [
                "192.168.7.140",
                "lb-0",
                "cp1",
                "192.168.7.201",
                "cp2",
                "192.168.7.202",
                "cp3",
                "192.168.7.203",
                "k8s.example.org"
            ]
        );
    }

    #[test]
    fn taints_given_replace_kubeadms_own() {
        let cluster = homelab();
        let mut host = named(&cluster, "cp1").clone();
        let taints = |host: &Host| {
            let documents = parse(&init_config(&cluster, host, &NodeTraits::default()));
            documents[0]["nodeRegistration"].get("taints").cloned()
        };
        assert_eq!(taints(&host), None);
        host.taints = Some(Vec::new());
        assert_eq!(taints(&host), Some(json!([])));
        host.taints = Some(vec![Taint {
            key: "disk".to_owned(),
            value: "slow".to_owned(),
            effect: "NoSchedule".to_owned(),
        }]);
        assert_eq!(
            taints(&host),
            Some(json!([{ "key": "disk", "effect": "NoSchedule", "value": "slow" }]))
        );
    }

    #[test]
    fn overrides_are_merged() {
        let mut cluster = homelab();
        cluster.images.repository = Some("mirror.lan/k8s/".to_owned());
        cluster.overrides.kubeadm = Some(json!({ "apiServer": { "extraArgs": [{ "name": "v", "value": "2" }] } }));
        cluster.overrides.kubelet = Some(json!({ "maxPods": 60 }));
        cluster.overrides.kube_proxy = Some(json!({ "mode": "nftables" }));
        let documents = parse(&init_config(&cluster, named(&cluster, "cp1"), &NodeTraits::default()));
        assert_eq!(documents[1], cluster_configuration(&cluster));
        assert_eq!(documents[1]["imageRepository"], "mirror.lan/k8s");
        assert_eq!(
            documents[1]["apiServer"]["extraArgs"],
            json!([{ "name": "v", "value": "2" }])
        );
        assert_eq!(documents[1]["apiServer"]["certSANs"][0], "192.168.7.140");
        assert_eq!(
            (&documents[2]["maxPods"], &documents[2]["cgroupDriver"]),
            (&json!(60), &json!("systemd"))
        );
        assert_eq!(
            (&documents[3]["mode"], &documents[3]["clusterCIDR"]),
            (&json!("nftables"), &json!("10.244.0.0/16"))
        );
    }
}
