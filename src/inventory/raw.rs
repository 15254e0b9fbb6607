//! The shape of an inventory: what the user wrote, each value with its place.
//!
//! Nothing is judged here beyond "text", "number", "list" and "map": what the values mean is
//! [`resolve`](crate::cluster::resolve)'s business. `None` means that a key is absent, or that
//! its value could not be read and a problem says so.

use super::problem::Span;
use super::tree::Node;

/// A value and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub span: Span,
}

/// A whole inventory.
#[derive(Debug, Clone, Default)]
pub struct Inventory {
    /// `cluster`.
    pub cluster: ClusterSection,
    /// `ssh`: the defaults of all hosts.
    pub ssh: SshSection,
    /// `loadBalancers`.
    pub load_balancers: HostsSection,
    /// `controllers`.
    pub controllers: HostsSection,
    /// `workers`.
    pub workers: HostsSection,
    /// `flannel`.
    pub flannel: FlannelSection,
    /// `packages`.
    pub packages: PackagesSection,
    /// `images`.
    pub images: ImagesSection,
    /// `kubeadm`: a map to merge over `ClusterConfiguration`.
    pub kubeadm: Option<Node>,
    /// `kubelet`: a map to merge over `KubeletConfiguration`.
    pub kubelet: Option<Node>,
    /// `kubeProxy`: a map to merge over `KubeProxyConfiguration`.
    pub kube_proxy: Option<Node>,
    /// `allow`.
    pub allow: Vec<At<String>>,
    /// `dns.resolvers`.
    pub dns_resolvers: Vec<At<String>>,
    /// `proxy`.
    pub proxy: Option<ProxySection>,
}

/// `cluster`.
#[derive(Debug, Clone, Default)]
pub struct ClusterSection {
    /// Where the section's key stands.
    pub span: Span,
    /// `name`.
    pub name: Option<At<String>>,
    /// `kubernetes`.
    pub kubernetes: Option<At<String>>,
    /// `podCidr`.
    pub pod_cidr: Option<At<String>>,
    /// `serviceCidr`.
    pub service_cidr: Option<At<String>>,
    /// `dnsDomain`.
    pub dns_domain: Option<At<String>>,
    /// `endpoint`.
    pub endpoint: Option<At<String>>,
    /// `certSans`.
    pub cert_sans: Vec<At<String>>,
    /// `keyAlgorithm`.
    pub key_algorithm: Option<At<String>>,
    /// `setHostnames`.
    pub set_hostnames: Option<At<bool>>,
}

/// `ssh`, of all hosts or of one.
#[derive(Debug, Clone, Default)]
pub struct SshSection {
    /// `host`, only of one host.
    pub host: Option<At<String>>,
    /// `user`.
    pub user: Option<At<String>>,
    /// `port`.
    pub port: Option<At<u64>>,
    /// `key` or `keys`.
    pub keys: Option<Vec<At<String>>>,
    /// `bastion`.
    pub bastion: Option<BastionSection>,
    /// `sudoPassword`.
    pub sudo_password: Option<At<PasswordSection>>,
    /// `hostKeys`.
    pub host_keys: Option<At<String>>,
    /// `knownHosts`.
    pub known_hosts: Option<At<String>>,
    /// `config`.
    pub config: Option<At<String>>,
}

/// `ssh.bastion`.
#[derive(Debug, Clone)]
pub enum BastionSection {
    /// `none`: this host is reached directly, whatever the others do.
    Direct,
    /// A host in between.
    Through(Box<SshSection>),
}

/// `ssh.sudoPassword`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PasswordSection {
    /// `none`: sudo asks this user for none, whatever it asks on the others.
    None,
    /// `prompt`.
    Prompt,
    /// `{ env: NAME }`.
    Env(At<String>),
    /// `{ file: PATH }`.
    File(At<String>),
}

/// `loadBalancers`, `controllers` or `workers`.
#[derive(Debug, Clone, Default)]
pub struct HostsSection {
    /// Where the section's key stands; the file's first line where there is none.
    pub span: Span,
    /// False where something stands here that is no map of hosts.
    pub readable: bool,
    /// The hosts in the file's order.
    pub hosts: Vec<HostSection>,
}

/// One host.
#[derive(Debug, Clone)]
pub struct HostSection {
    /// Its key.
    pub name: At<String>,
    /// `address`.
    pub address: Option<At<String>>,
    /// `ssh`.
    pub ssh: SshSection,
    /// `labels`.
    pub labels: Vec<(At<String>, At<String>)>,
    /// `taints`.
    pub taints: Option<Vec<TaintSection>>,
    /// `interface`.
    pub interface: Option<At<String>>,
}

/// One of `taints`.
#[derive(Debug, Clone)]
pub enum TaintSection {
    /// `key=value:Effect`.
    Text(At<String>),
    /// A map.
    Map {
        /// Where it stands.
        span: Span,
        /// `key`.
        key: Option<At<String>>,
        /// `value`.
        value: Option<At<String>>,
        /// `effect`.
        effect: Option<At<String>>,
    },
}

/// `flannel`.
#[derive(Debug, Clone, Default)]
pub struct FlannelSection {
    /// `version`.
    pub version: Option<At<String>>,
    /// `manifest`.
    pub manifest: Option<At<String>>,
    /// `sha256`.
    pub sha256: Option<At<String>>,
    /// `backend`.
    pub backend: Option<At<String>>,
    /// `vni`.
    pub vni: Option<At<u64>>,
    /// `port`.
    pub port: Option<At<u64>>,
    /// `mtu`.
    pub mtu: Option<At<u64>>,
    /// `interface`.
    pub interface: Option<At<String>>,
    /// `imageRepository`.
    pub image_repository: Option<At<String>>,
    /// `patches`, by `Kind/name`.
    pub patches: Vec<(At<String>, Node)>,
}

/// `packages`.
#[derive(Debug, Clone, Default)]
pub struct PackagesSection {
    /// `repository`.
    pub repository: Option<At<String>>,
    /// `revision`.
    pub revision: Option<At<String>>,
    /// `containerd`.
    pub containerd: Option<ContainerdSection>,
}

/// `packages.containerd`.
#[derive(Debug, Clone, Default)]
pub struct ContainerdSection {
    /// `source`.
    pub source: Option<At<String>>,
    /// `key`.
    pub key: Option<At<String>>,
    /// `package`.
    pub package: Option<At<String>>,
}

/// `images`.
#[derive(Debug, Clone, Default)]
pub struct ImagesSection {
    /// `repository`.
    pub repository: Option<At<String>>,
    /// `mirrors`, by registry.
    pub mirrors: Vec<(At<String>, Vec<At<String>>)>,
}

/// `proxy`.
#[derive(Debug, Clone, Default)]
pub struct ProxySection {
    /// Where the section's key stands.
    pub span: Span,
    /// `http`.
    pub http: Option<At<String>>,
    /// `https`.
    pub https: Option<At<String>>,
    /// `noProxy`.
    pub no_proxy: Vec<At<String>>,
}
