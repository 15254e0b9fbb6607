//! What the inventory means: valid by construction.
//!
//! Past this module no `Option` means "forgot to check". [`Cluster`] is made from an
//! [`Inventory`](crate::inventory::Inventory) by [`load`],
//! which reports every problem of the file at once.

pub mod decision;
mod load;
pub mod merge;
pub mod name;
pub mod resolve;
#[cfg(test)]
pub(crate) mod sample;
pub mod version;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::PathBuf;

use ipnet::Ipv4Net;
use serde::Serialize;

pub use decision::Decision;
pub use load::load;
pub use name::NodeName;
pub use version::Version;

/// The whole cluster as the inventory wants it.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// Name of the cluster, also of the context in kubeconfig.
    pub name: String,
    /// Exact Kubernetes version.
    pub version: Version,
    /// Where clients and nodes reach the API: `controlPlaneEndpoint` of kubeadm.
    pub endpoint: Endpoint,
    /// Pod network (`networking.podSubnet`); every node gets a /24 of it.
    pub pod_cidr: Ipv4Net,
    /// Service network (`networking.serviceSubnet`).
    pub service_cidr: Ipv4Net,
    /// DNS domain of the cluster, `cluster.local` by default.
    pub dns_domain: String,
    /// `encryptionAlgorithm` of kubeadm, when the inventory names one.
    pub key_algorithm: Option<String>,
    /// Further names and addresses for the API server's certificate.
    pub extra_sans: Vec<String>,
    /// All hosts: load balancers, controllers, workers, each in the inventory's order.
    pub hosts: Vec<Host>,
    /// How Flannel is set up.
    pub flannel: Flannel,
    /// Where packages come from.
    pub packages: Packages,
    /// Where images come from.
    pub images: Images,
    /// Documents merged over ours (maps by key, lists of named items by name).
    pub overrides: Overrides,
    /// Upstream resolvers for CoreDNS; empty means the node's own resolv.conf.
    pub dns_resolvers: Vec<Ipv4Addr>,
    /// Whether k8sup sets each host's hostname to its node name.
    pub set_hostnames: bool,
    /// Proxy for apt and containerd.
    pub proxy: Option<Proxy>,
    /// Codes of the checks whose refusal the person takes on themselves.
    pub allow: BTreeSet<String>,
    /// What cannot be changed later, with where each value comes from.
    pub decisions: Vec<Decision>,
}

/// Host and port of the API as clients see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Endpoint {
    /// An IPv4 address or a DNS name.
    pub host: String,
    /// TCP port, 6443 by default.
    pub port: u16,
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// What a host is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Runs HAProxy in front of the API servers.
    LoadBalancer,
    /// Runs etcd, the API server, the controller manager and the scheduler.
    Controller,
    /// Runs the workloads.
    Worker,
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::LoadBalancer => "load balancer",
            Self::Controller => "controller",
            Self::Worker => "worker",
        })
    }
}

/// One machine of the inventory.
#[derive(Debug, Clone)]
pub struct Host {
    /// Key of the host in the inventory and name of its Node.
    pub name: NodeName,
    /// What it is for.
    pub role: Role,
    /// Its address inside the cluster (advertise address, node-ip).
    pub address: Ipv4Addr,
    /// How to log in.
    pub ssh: SshTarget,
    /// Labels of the Node.
    pub labels: BTreeMap<String, String>,
    /// Taints of the Node, beside kubeadm's own; `None` keeps kubeadm's default.
    pub taints: Option<Vec<Taint>>,
    /// Interface that carries `address`, when the inventory names it.
    pub interface: Option<String>,
}

/// How to log in to a host.
#[derive(Debug, Clone, PartialEq)]
pub struct SshTarget {
    /// Address or name that is dialled.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Login user.
    pub user: String,
    /// Private key files, tried in order, before the agent's keys.
    pub keys: Vec<PathBuf>,
    /// Where sudo's password comes from; `None`: sudo asks for none or the user is root.
    pub sudo_password: Option<SecretSource>,
    /// A host in between.
    pub bastion: Option<Box<Self>>,
    /// Which host keys are accepted.
    pub host_keys: HostKeys,
    /// File with known host keys; new ones are remembered there.
    pub known_hosts: PathBuf,
    /// Further files with known host keys, which are only read.
    pub more_known_hosts: Vec<PathBuf>,
    /// Name under which the host's key is known, in place of host and port (`HostKeyAlias`).
    pub key_alias: Option<String>,
    /// The agent that is asked for keys.
    pub agent: Agent,
    /// Of the agent's keys only those of `keys` are offered (`IdentitiesOnly`).
    pub only_keys: bool,
    /// Which OpenSSH client configuration says what the inventory leaves open.
    pub client: ClientConfig,
    /// What the inventory itself says.
    pub written: Written,
}

/// The private keys that are tried where nobody names one.
pub(crate) fn usual_keys(home: &std::path::Path) -> Vec<PathBuf> {
    ["id_ed25519", "id_ecdsa", "id_rsa"]
        .map(|name| home.join(".ssh").join(name))
        .to_vec()
}

/// An SSH agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agent {
    /// The one that `SSH_AUTH_SOCK` names.
    Environment,
    /// None.
    Off,
    /// The one behind this socket.
    Socket(PathBuf),
}

/// An OpenSSH client configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientConfig {
    /// What `ssh` itself reads: the user's file and the system's.
    User,
    /// This file alone, as with `ssh -F`.
    File(PathBuf),
    /// Not looked at, or looked at already.
    Off,
}

/// Which parts of a login the inventory says itself: they go before the OpenSSH client configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// `port`.
    pub port: bool,
    /// `user`.
    pub user: bool,
    /// `key` or `keys`.
    pub keys: bool,
    /// `bastion`, also `bastion: none`.
    pub bastion: bool,
    /// `hostKeys`, or the option of that name.
    pub host_keys: bool,
    /// `knownHosts`.
    pub known_hosts: bool,
}

impl SshTarget {
    /// The usual port and agent, no keys, unknown host keys to be asked about, no OpenSSH configuration.
    #[must_use]
    pub fn new(host: &str, user: &str, known_hosts: PathBuf) -> Self {
        Self {
            host: host.to_owned(),
            port: 22,
            user: user.to_owned(),
            keys: Vec::new(),
            sudo_password: None,
            bastion: None,
            host_keys: HostKeys::Ask,
            known_hosts,
            more_known_hosts: Vec::new(),
            key_alias: None,
            agent: Agent::Environment,
            only_keys: false,
            client: ClientConfig::Off,
            written: Written::default(),
        }
    }

    /// The bastions on the way, the one next to the host first.
    pub fn way(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(self.bastion.as_deref(), |hop| hop.bastion.as_deref())
    }

    /// A host that is a bastion on its own way is reached as that bastion is.
    pub(crate) fn leave_out_itself(&mut self) {
        let itself = self.way().find(|hop| (&hop.host, hop.port) == (&self.host, self.port));
        if let Some(way) = itself.map(|hop| hop.bastion.clone()) {
            self.bastion = way;
        }
    }

    /// Takes a person's word about unknown host keys, for the host and for all bastions on the way.
    pub fn rule_host_keys(&mut self, rule: HostKeys) {
        self.host_keys = rule;
        self.written.host_keys = true;
        if let Some(bastion) = &mut self.bastion {
            bastion.rule_host_keys(rule);
        }
    }
}

/// What to do about a host key that is not known yet. A changed key is refused always.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostKeys {
    /// Show all new fingerprints at once and ask; without a terminal refuse.
    Ask,
    /// Refuse.
    Strict,
    /// Accept and remember.
    AcceptNew,
}

/// Where a secret is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// An environment variable.
    Env(String),
    /// The first line of a file.
    File(PathBuf),
    /// Asked for on the terminal.
    Prompt,
}

/// A Node's taint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Taint {
    /// Key, qualified or not.
    pub key: String,
    /// Value, may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// Flannel's settings.
#[derive(Debug, Clone)]
pub struct Flannel {
    /// Version, as `v0.28.9`.
    pub version: String,
    /// URL or file of the upstream manifest.
    pub manifest: ManifestSource,
    /// Expected SHA-256 of the manifest, hex; `None` only for a file that the inventory names.
    pub sha256: Option<String>,
    /// `vxlan`, `host-gw` or `wireguard`.
    pub backend: String,
    /// VXLAN network identifier; 1 makes the link `flannel.1`.
    pub vni: u32,
    /// UDP port of VXLAN; `None` is the kernel's 8472.
    pub port: Option<u16>,
    /// MTU of the pod network, when it must not be derived.
    pub mtu: Option<u32>,
    /// Interface, when it is the same everywhere; a host's own comes first.
    pub interface: Option<String>,
    /// Registry and path instead of `ghcr.io/flannel-io`.
    pub image_repository: Option<String>,
    /// JSON merge patches (RFC 7386) for objects of the manifest, by `Kind/name`.
    pub patches: BTreeMap<String, serde_json::Value>,
}

/// Where a manifest is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManifestSource {
    /// Fetched over HTTP(S) by the first controller.
    Url(String),
    /// A file beside the inventory.
    File(PathBuf),
}

/// Package sources.
#[derive(Debug, Clone)]
pub struct Packages {
    /// Base URL of the Kubernetes repository; `core:/stable:/v1.34/deb/` is appended.
    pub repository: String,
    /// Debian revision of kubeadm, kubelet and kubectl, as `1.1`; `None` takes the newest there is.
    pub revision: Option<String>,
    /// An apt line for containerd instead of the distribution's, with its key's URL.
    pub containerd: Option<ContainerdRepository>,
}

/// Another repository for containerd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerdRepository {
    /// `URL SUITE COMPONENT…`, as in a one-line apt source.
    pub source: String,
    /// URL of the repository's signing key.
    pub key: String,
    /// Name of the package, `containerd.io` in Docker's repository.
    pub package: String,
}

/// Image sources.
#[derive(Debug, Clone, Default)]
pub struct Images {
    /// `imageRepository` of kubeadm; `None` is `registry.k8s.io`.
    pub repository: Option<String>,
    /// Mirrors by registry (`docker.io`; `*` is every registry), tried in order.
    pub mirrors: BTreeMap<String, Vec<String>>,
}

/// Documents of the inventory that are merged over the rendered ones.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// Over `ClusterConfiguration`.
    pub kubeadm: Option<serde_json::Value>,
    /// Over `KubeletConfiguration`.
    pub kubelet: Option<serde_json::Value>,
    /// Over `KubeProxyConfiguration`.
    pub kube_proxy: Option<serde_json::Value>,
}

/// Proxy settings for the hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Proxy for http URLs.
    pub http: Option<String>,
    /// Proxy for https URLs.
    pub https: Option<String>,
    /// Never proxied, beside the cluster's own networks and hosts.
    pub no_proxy: Vec<String>,
}

impl Cluster {
    /// Hosts of one role, in the inventory's order.
    pub fn role(&self, role: Role) -> impl Iterator<Item = &Host> {
        self.hosts.iter().filter(move |host| host.role == role)
    }

    /// Controllers and workers: the hosts that become Nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter().filter(|host| host.role != Role::LoadBalancer)
    }

    /// The host of that name.
    #[must_use]
    pub fn host(&self, name: &NodeName) -> Option<&Host> {
        self.hosts.iter().find(|host| &host.name == name)
    }
}
