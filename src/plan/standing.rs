//! Where a host stands between bare and member, judged from several facts together.
//!
//! No single file decides: the disk, the certificates' authority, the Node, etcd's member list
//! and the local API server are read side by side, and what cannot be told stays unknown. The
//! tables behind this are kubeadm's phases: what each leaves on the disk and in the cluster.

use crate::cluster::{Host, Role};
use crate::facts::{ClusterFacts, HostFacts, KubeFacts, Seen};

/// Where a controller or worker stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing of kubeadm's that stands in the way.
    Bare,
    /// It belongs to the cluster.
    Member,
    /// It belongs to the cluster, but kubeadm was ended before its last clean-up.
    Unfinished,
    /// An init or join of this cluster was ended half-way and left nothing worth keeping.
    HalfMade(String),
    /// A control plane was started here, and etcd holds data: never to be cleared.
    Started,
    /// It belongs to something else.
    Foreign(String),
    /// Nobody can say, and why.
    Unknown(String),
}

/// What kubeadm makes of them on a controller, and the kubelet's.
const KUBECONFIGS: [&str; 5] = [
    "kubelet.conf",
    "admin.conf",
    "super-admin.conf",
    "controller-manager.conf",
    "scheduler.conf",
];
const MANIFESTS: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// Judges a host while no cluster answers: before `kubeadm init`, or when everything is down.
#[must_use]
pub fn before_cluster(host: &Host, facts: &HostFacts, sans: &[String]) -> Standing {
    let kube = &facts.kube;
    if kube.is_bare() {
        return Standing::Bare;
    }
    if host.role == Role::Worker {
        return if kube.has("kubelet.conf") || kube.ca.present().is_some() {
            Standing::Foreign(format!(
                "it has joined a cluster{} that none of the controllers knows",
                server(kube)
            ))
        } else {
            bare_or_half(kube, "there are parts of an earlier kubeadm run")
        };
    }
    if orphaned(kube) {
        return Standing::Foreign(orphan(kube));
    }
    if is_etcd_alone(kube) {
        return Standing::Foreign("an etcd without a control plane runs here as a static pod".to_owned());
    }
    if kube.etcd_data {
        return Standing::Started;
    }
    if kube.has("kubelet.conf") && kube.has("pki/ca.crt") && !kube.has("pki/apiserver.crt") {
        // kubeadm makes the API server's certificate before anything else of a controller.
        return Standing::Foreign(format!("it has joined a cluster{} as a worker", server(kube)));
    }
    if has_manifest(kube) && !kube.has("manifests/etcd.yaml") && facts.record.present().is_none() {
        // Not ended half-way by k8sup, which would have left its record: a control plane with its etcd elsewhere.
        return Standing::Foreign("static pods of a control plane are there, but no etcd".to_owned());
    }
    if has_manifest(kube) {
        return Standing::HalfMade("static pods are there, but etcd never stored anything".to_owned());
    }
    if KUBECONFIGS.iter().any(|name| kube.has(name)) {
        return Standing::HalfMade("kubeconfigs are there, but no control plane".to_owned());
    }
    // Certificates alone are reused by kubeadm, or were brought on purpose.
    match kube.apiserver.present() {
        Some(certificate) if !covers(certificate, sans) => {
            Standing::HalfMade("its API server certificate lacks names of this cluster".to_owned())
        }
        _ => Standing::Bare,
    }
}

/// Judges a host of a cluster that answers; `ca` is the public key's SHA-256 of its authority.
#[must_use]
pub fn in_cluster(host: &Host, facts: &HostFacts, cluster: &ClusterFacts, ca: Option<&str>) -> Standing {
    let kube = &facts.kube;
    if kube.is_bare() {
        return Standing::Bare;
    }
    match (own_ca(kube), ca) {
        (Some(theirs), Some(ours)) if theirs != ours => {
            return Standing::Foreign(format!("its CA is another cluster's{}", server(kube)));
        }
        (Some(_), None) => {
            return Standing::Unknown("the cluster's CA cannot be read, so it cannot be compared".to_owned());
        }
        _ => {}
    }
    let nodes = match &cluster.nodes {
        Seen::Present(nodes) => nodes,
        Seen::Absent => return Standing::Unknown("the cluster lists no nodes".to_owned()),
        Seen::Unknown(why) => return Standing::Unknown(format!("the cluster's nodes cannot be read: {why}")),
    };
    let node = nodes.contains_key(host.name.as_str());
    if let Some(known) = node_name(kube)
        && known != host.name.as_str()
    {
        return Standing::Foreign(format!(
            "it is the node {known} of this cluster, the inventory calls it {}",
            host.name
        ));
    }
    let identity = kube.has("kubelet.conf") && kube.kubelet.present().is_some();
    let leftover = kube.has("bootstrap-kubelet.conf");
    if let (Seen::Unknown(why), true) = (&kube.kubelet, node) {
        return Standing::Unknown(format!("its kubelet's certificate cannot be read: {why}"));
    }
    if host.role == Role::Worker {
        if identity && node && has_manifest(kube) {
            return Standing::Foreign("it is in this cluster as a controller".to_owned());
        }
        return match (identity, node, leftover) {
            (true, true, false) => Standing::Member,
            (true, true, true) => Standing::Unfinished,
            (true, false, _) => Standing::HalfMade("it has a kubelet identity, but no Node".to_owned()),
            (false, ..) if kube.has("kubelet.conf") || leftover || kube.ca.present().is_some() => {
                Standing::HalfMade("a join ended before the kubelet had its certificate".to_owned())
            }
            (false, ..) => bare_or_half(kube, "there are parts of an earlier kubeadm run"),
        };
    }
    let members = match &cluster.members {
        Seen::Present(members) => members,
        // The disk and the Node say enough to leave it alone, not enough to clear it.
        _ if identity && node && kube.has("manifests/etcd.yaml") => return Standing::Member,
        Seen::Absent => return Standing::Unknown("etcd lists no members".to_owned()),
        Seen::Unknown(why) => return Standing::Unknown(format!("etcd's members cannot be read: {why}")),
    };
    let peer = format!("https://{}:2380", host.address);
    let member = members.iter().find(|member| member.peer_urls.contains(&peer));
    match member {
        Some(member) if !member.learner && !member.name.is_empty() => {
            if orphaned(kube) {
                // Its manifest may be only set aside.
                Standing::Foreign(orphan(kube))
            } else if !kube.etcd_data && cluster.asked.as_ref() != Some(&host.name) {
                // Where the members were read etcd runs, though it may have begun after the look at the disk.
                Standing::HalfMade("etcd counts on it, but its own etcd data is gone".to_owned())
            } else if !identity && !leftover {
                // A voter is never cleared unasked, and without a token its kubelet will not come up by itself.
                Standing::Foreign(
                    "etcd counts on it, but its kubelet has no certificate and no token to get one with".to_owned(),
                )
            } else if leftover || !node || !identity {
                Standing::Unfinished
            } else {
                Standing::Member
            }
        }
        _ if orphaned(kube) => Standing::Foreign(orphan(kube)),
        Some(member) if member.learner => Standing::HalfMade("its etcd member was never promoted".to_owned()),
        Some(_) => Standing::HalfMade("its etcd member never started".to_owned()),
        None if identity && node && !leftover && !has_manifest(kube) => {
            Standing::Foreign("it is in this cluster as a worker".to_owned())
        }
        // The members answered with a majority, so what this host still holds is an old copy.
        None if kube.etcd_data && identity => Standing::HalfMade("etcd's members have let go of it".to_owned()),
        None => Standing::HalfMade("a join ended before it was part of etcd".to_owned()),
    }
}

/// Whether a certificate names all of these.
#[must_use]
pub fn covers(certificate: &crate::facts::kube::Certificate, sans: &[String]) -> bool {
    missing_sans(certificate, sans).is_empty()
}

/// The names that a certificate lacks.
#[must_use]
pub fn missing_sans(certificate: &crate::facts::kube::Certificate, sans: &[String]) -> Vec<String> {
    sans.iter()
        .filter(|name| match name.parse() {
            Ok(address) => !certificate.addresses.contains(&address),
            Err(_) => !certificate.dns_names.contains(*name),
        })
        .cloned()
        .collect()
}

fn bare_or_half(kube: &KubeFacts, why: &str) -> Standing {
    // The kubelet's package and our own folder leave empty places, which are not in the way.
    let in_the_way = ["kubelet.conf", "bootstrap-kubelet.conf", "pki/ca.crt"];
    if in_the_way.iter().any(|file| kube.has(file))
        || has_manifest(kube)
        || kube.files.contains("/var/lib/kubelet/config.yaml")
    {
        Standing::HalfMade(why.to_owned())
    } else {
        Standing::Bare
    }
}

/// Data of an etcd, and nothing of kubeadm's to say whose: never cleared.
pub(super) fn orphaned(kube: &KubeFacts) -> bool {
    kube.etcd_data && !kube.has("manifests/etcd.yaml")
}

/// An etcd that kubeadm made on a machine of its own, as its guide to external etcd does: never a part of this cluster.
pub(super) fn is_etcd_alone(kube: &KubeFacts) -> bool {
    let control_plane = ["pki/ca.crt", "manifests/kube-apiserver.yaml", "admin.conf"];
    kube.has("manifests/etcd.yaml") && kube.etcd_data && !control_plane.iter().any(|file| kube.has(file))
}

/// An etcd that is not kubeadm's is here, or the certificates of one elsewhere: only of its own does kubeadm have the
/// authority's key.
pub(super) fn has_others_etcd(facts: &HostFacts) -> bool {
    let kube = &facts.kube;
    let installed = ["etcd", "etcd-server"].iter().any(|name| {
        let package = facts.packages.get(*name);
        package.is_some_and(|package| package.installed.is_some())
    });
    let brought = kube.has("pki/etcd/ca.crt") && !kube.has("pki/etcd/ca.key");
    !kube.has("manifests/etcd.yaml") && (installed || facts.services.contains_key("etcd") || brought)
}

fn orphan(kube: &KubeFacts) -> String {
    format!(
        "{} holds etcd data, but kubeadm's etcd manifest is missing",
        kube.etcd_data_dir
    )
}

fn has_manifest(kube: &KubeFacts) -> bool {
    MANIFESTS.iter().any(|name| kube.has(&format!("manifests/{name}.yaml")))
}

/// The authority that the host trusts: of its pki, else of its kubelet's kubeconfig.
pub(super) fn own_ca(kube: &KubeFacts) -> Option<&str> {
    kube.ca.present().map(|ca| ca.spki_sha256.as_str()).or_else(|| {
        ["kubelet", "bootstrap-kubelet", "admin"]
            .iter()
            .find_map(|name| kube.kubeconfigs.get(*name)?.ca_spki_sha256.as_deref())
    })
}

/// The Node that the kubelet's certificate is for.
pub(super) fn node_name(kube: &KubeFacts) -> Option<&str> {
    let (_, name) = kube.kubelet.present()?.subject.split_once("CN=system:node:")?;
    Some(name.split([',', ' ', '+']).next().unwrap_or(name))
}

fn server(kube: &KubeFacts) -> String {
    ["kubelet", "admin", "bootstrap-kubelet"]
        .iter()
        .find_map(|name| kube.kubeconfigs.get(*name))
        .map(|config| format!(" at {}", config.server))
        .unwrap_or_default()
}
