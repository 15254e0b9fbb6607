//! What kubeadm and the kubelet leave on a disk.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use super::Seen;

/// The state of Kubernetes on one host, as far as its disk and its own ports tell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KubeFacts {
    /// Which of these exist: every file below /etc/kubernetes, /var/lib/kubelet/{config.yaml,
    /// kubeadm-flags.env,instance-config.yaml}, /var/lib/kubelet/pki/kubelet-client-current.pem,
    /// /etc/cni/net.d/*.
    pub files: BTreeSet<String>,
    /// /etc/kubernetes/pki/ca.crt.
    pub ca: Seen<Certificate>,
    /// /etc/kubernetes/pki/apiserver.crt.
    pub apiserver: Seen<Certificate>,
    /// The kubelet's client certificate.
    pub kubelet: Seen<Certificate>,
    /// Certificates below /etc/kubernetes/pki and inside the kubeconfigs, by path.
    pub certificates: BTreeMap<String, Certificate>,
    /// kubeconfigs of /etc/kubernetes, by file name without `.conf`.
    pub kubeconfigs: BTreeMap<String, Kubeconfig>,
    /// etcd's data directory (of the static pod's manifest, else /var/lib/etcd) holds `member`.
    pub etcd_data: bool,
    /// The directory meant by `etcd_data`.
    pub etcd_data_dir: String,
    /// /var/lib/etcd is a directory with anything in it.
    pub etcd_dir_used: bool,
    /// Answer of the local API server to /readyz: `ok`, or its error; absent where nothing listens on 6443.
    pub readyz: Seen<String>,
    /// Static pods and other kubelet configuration drift: content of /var/lib/kubelet/config.yaml.
    pub kubelet_config: Seen<String>,
    /// Content of /var/lib/kubelet/kubeadm-flags.env.
    pub kubelet_flags: Seen<String>,
}

/// A certificate, without its key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Certificate {
    /// Subject as text, `CN=kubernetes`.
    pub subject: String,
    /// Issuer as text.
    pub issuer: String,
    /// SHA-256 (hex) of the subject public key info: the pin that kubeadm uses.
    pub spki_sha256: String,
    /// DNS names of the subject alternative names.
    pub dns_names: BTreeSet<String>,
    /// IPv4 addresses of the subject alternative names.
    pub addresses: BTreeSet<Ipv4Addr>,
    /// End of validity, seconds since the epoch.
    pub not_after: i64,
    /// The certificate itself.
    pub pem: String,
}

/// A kubeconfig, without its credentials.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kubeconfig {
    /// `server:` of the first cluster.
    pub server: String,
    /// SHA-256 (hex) of the CA's public key.
    pub ca_spki_sha256: Option<String>,
}

impl KubeFacts {
    /// Whether the file exists; `path` is relative to /etc/kubernetes.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.files.contains(&format!("/etc/kubernetes/{path}"))
    }

    /// Nothing of kubeadm's is on the disk.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        !self.etcd_data
            && !self
                .files
                .iter()
                // The kubelet's package keeps its empty folders with a file of that name.
                .filter(|file| !file.ends_with("/.kubelet-keep"))
                .any(|file| file.starts_with("/etc/kubernetes/") || file.starts_with("/var/lib/kubelet/"))
    }
}
