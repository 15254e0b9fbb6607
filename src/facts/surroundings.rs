//! What else is on a host: other software, leftovers of it, and what stands between the host and the network.

use std::collections::{BTreeMap, BTreeSet};

use super::ruleset::Ruleset;
use super::{HostFacts, Seen};

/// The parts of a host that k8sup does not set up, but must know of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Sockets of container runtimes.
    pub sockets: BTreeSet<String>,
    /// Programs and folders of other tools and of earlier clusters.
    pub paths: BTreeSet<String>,
    /// Network devices (not bridges, tunnels or the like).
    pub devices: BTreeMap<String, Device>,
    /// The SSH daemon's public keys: kind and base64.
    pub host_keys: BTreeSet<String>,
    /// Proxy variables of root's commands and of /etc/environment, passwords left out.
    pub proxies: BTreeMap<String, String>,
    /// Names in /opt/cni/bin; absent without that folder.
    pub cni_plugins: Seen<BTreeSet<String>>,
    /// What /etc/resolv.conf is.
    pub resolv_conf: ResolvConf,
    /// Where `iptables` and `ip6tables` lead; only of hosts that are no nodes.
    pub iptables: BTreeMap<String, String>,
    /// Tables of the legacy iptables that are in use, `ip filter`.
    pub legacy_tables: BTreeSet<String>,
    /// Lines of cloud-init's configuration about names, `FILE:LINE`; only of hosts that are no nodes.
    pub cloud_init: Vec<String>,
    /// The packet filter's rules; absent where nothing can list them, and of nodes.
    pub ruleset: Seen<Ruleset>,
}

/// A network device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Device {
    /// It is a radio.
    pub wireless: bool,
    /// Its driver, where it has one.
    pub driver: Option<String>,
}

/// /etc/resolv.conf.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ResolvConf {
    /// Nobody said.
    #[default]
    Unknown,
    /// It can be read.
    There,
    /// There is none.
    Missing,
    /// A link that leads nowhere, and where to.
    Dangling(String),
}

/// Who decides which packets come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Firewall {
    /// Nobody, or nobody who stops any.
    None,
    /// ufw, in which k8sup opens what is needed.
    Ufw,
    /// firewalld, in which k8sup opens what is needed.
    Firewalld,
    /// Rules of a person or another tool, which k8sup does not touch.
    Rules,
}

impl Firewall {
    /// k8sup opens what is needed; until it has, packets may be lost.
    #[must_use]
    pub const fn is_opened(self) -> bool {
        matches!(self, Self::Ufw | Self::Firewalld)
    }
}

impl HostFacts {
    /// The firewall of the host.
    #[must_use]
    pub fn firewall(&self) -> Firewall {
        let installed = |name: &str| {
            self.packages
                .get(name)
                .is_some_and(|package| package.installed.is_some())
        };
        let says_yes = |line: &str| line.trim().eq_ignore_ascii_case("ENABLED=yes");
        let ufw = self
            .files
            .get("/etc/ufw/ufw.conf")
            .is_some_and(|file| file.content.lines().any(says_yes));
        let firewalld = self.services.get("firewalld");
        if ufw && installed("ufw") {
            Firewall::Ufw
        } else if firewalld.is_some_and(|service| service.active || service.enabled) {
            Firewall::Firewalld
        } else if self.surroundings.ruleset.present().is_some_and(Ruleset::stops_packets) {
            Firewall::Rules
        } else {
            Firewall::None
        }
    }
}
