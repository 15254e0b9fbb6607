//! What the hosts are: the probe's raw text made into typed facts. Parsing is pure.
//!
//! Every fact is present, absent or unknown. Unknown is never taken for absent.

pub mod cluster;
pub mod kube;
pub mod observe;
pub mod parse;
pub mod paths;
pub mod platform;
pub mod prove;
pub mod ruleset;
pub mod saved;
pub mod scrub;
pub mod surroundings;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use crate::cluster::NodeName;
pub use cluster::ClusterFacts;
pub use kube::KubeFacts;
pub use paths::Paths;
pub use platform::Platform;
pub use surroundings::{Firewall, Surroundings};

/// A fact that may be missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Seen<T> {
    /// It is there.
    Present(T),
    /// It is not there.
    #[default]
    Absent,
    /// Nobody can say, and why.
    Unknown(String),
}

impl<T> Seen<T> {
    /// The value where it is present.
    pub fn present(&self) -> Option<&T> {
        match self {
            Self::Present(value) => Some(value),
            Self::Absent | Self::Unknown(_) => None,
        }
    }

    /// Certainly not there.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

/// All that is known about the hosts and the cluster on them.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// One entry for every host of the inventory.
    pub hosts: BTreeMap<NodeName, Observation>,
    /// What the API and etcd say; absent where no controller has a kubeconfig of one.
    pub cluster: Seen<ClusterFacts>,
    /// Ways through the network that were proven for hosts that are to come.
    pub paths: Paths,
}

/// What became of looking at a host.
#[derive(Debug, Clone)]
pub enum Observation {
    /// It answered.
    Seen(Box<HostFacts>),
    /// It did not.
    Unreachable(Unreachable),
}

/// Why a host could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreachable {
    /// True for refused authentication, sudo or host key: trying again does not help.
    pub refused: bool,
    /// One sentence with the evidence.
    pub reason: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Unreachable {
    /// Nothing is known but that nobody got there.
    #[must_use]
    pub fn unknown(reason: &str) -> Self {
        Self {
            refused: false,
            reason: reason.to_owned(),
            hint: None,
        }
    }

    /// What is wrong, as a verb. A refusal may be ours: an unknown host key, a key file that is not there.
    #[must_use]
    pub fn what(&self) -> &'static str {
        if self.refused {
            "cannot be logged in to"
        } else {
            "cannot be reached"
        }
    }

    /// What a person does about it.
    #[must_use]
    pub fn what_to_do(&self) -> &str {
        match (&self.hint, self.refused) {
            (Some(hint), _) => hint,
            (None, true) => "see how it is logged in to (`ssh` in the inventory), then run again",
            (None, false) => "see that it is up and in reach, then run again",
        }
    }
}

/// One host, as `templates/probe.sh` saw it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostFacts {
    /// /etc/os-release.
    pub os: OsRelease,
    /// `dpkg --print-architecture`; absent where there is no dpkg.
    pub architecture: Seen<String>,
    /// `uname -m`.
    pub machine: String,
    /// `uname -r`.
    pub kernel: String,
    /// `hostname`.
    pub hostname: String,
    /// /etc/machine-id.
    pub machine_id: Seen<String>,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// `/sys/class/dmi/id/product_uuid`; absent on a Raspberry Pi.
    pub product_uuid: Seen<String>,
    /// Seconds since the epoch on the host's clock.
    pub clock: u64,
    /// Seconds by which that clock is ahead of ours (negative: behind), as far as it is certain: the time that the probe
    /// took counts for the host. `None` where nobody compared.
    pub clock_skew: Option<i64>,
    /// Processors.
    pub cpus: u32,
    /// `MemTotal` in KiB.
    pub memory_kib: u64,
    /// Free space in KiB of the file system that holds /var/lib.
    pub free_kib: u64,
    /// Kernel, disks, board, clock, and how the system runs.
    pub platform: Platform,
    /// Control groups.
    pub cgroup: Cgroup,
    /// Swap in all its forms.
    pub swap: SwapFacts,
    /// Values of the sysctls that k8sup cares about; absent keys do not exist on the host.
    pub sysctls: BTreeMap<String, String>,
    /// Of the modules that k8sup cares about, those loaded or built in.
    pub modules: BTreeSet<String>,
    /// IPv4 addresses with their interfaces.
    pub addresses: Vec<InterfaceAddress>,
    /// Link names with their MTU.
    pub links: BTreeMap<String, u32>,
    /// MAC addresses of Ethernet links.
    pub macs: BTreeMap<String, String>,
    /// IPv4 routes.
    pub routes: Vec<Route>,
    /// Nameservers of /etc/resolv.conf.
    pub nameservers: Vec<String>,
    /// Nameservers of /run/systemd/resolve/resolv.conf, where systemd-resolved runs.
    pub resolved: Seen<Vec<String>>,
    /// What the endpoint's name resolves to on the host (`getent ahostsv4`); absent for an address or no answer.
    pub endpoint_resolves: Seen<Vec<Ipv4Addr>>,
    /// Debian packages that k8sup cares about, by name; only those known to dpkg.
    pub packages: BTreeMap<String, Package>,
    /// Apt source files that name a legacy Kubernetes repository (`apt.kubernetes.io`, `packages.cloud.google.com`).
    pub legacy_sources: Vec<String>,
    /// systemd units that k8sup cares about, by name; only those that exist. A service's name is without its suffix
    /// (`containerd`), others have theirs (`docker.socket`).
    pub services: BTreeMap<String, Service>,
    /// Services that are masked: nobody can start them.
    pub masked: BTreeSet<String>,
    /// Files that k8sup writes or patches, by path, with their content; absent ones are left out.
    pub files: BTreeMap<String, FileFact>,
    /// containerd.
    pub containerd: Seen<Containerd>,
    /// Image references that the container runtime has.
    pub images: Seen<BTreeSet<String>>,
    /// What kubeadm and the kubelet left on the disk.
    pub kube: KubeFacts,
    /// Listening TCP ports with the process, where it can be told.
    pub listening: Vec<Listener>,
    /// What k8sup recorded of its own changes in /var/lib/k8sup.
    pub record: Seen<Record>,
    /// iptables-save style rules, nft tables and links that kube-proxy or CNI made and that outlive them.
    pub network_leftovers: Vec<String>,
    /// The login user's name, home and ~/.kube/config facts.
    pub login: Login,
    /// Other software, its leftovers, and what stands between the host and the network.
    pub surroundings: Surroundings,
    /// The run of k8sup that is at work on the host.
    pub holder: Option<Holder>,
    /// Lesser facts that could not be read, with the reason; where one is named here, its emptiness means nothing:
    /// `listening`, `legacy-sources`, `leftovers`, `resolv-conf`, `login`, `holder`,
    /// `surroundings`.
    pub unknown: BTreeMap<String, String>,
    /// Services of haproxy as its stats socket sees them: `controller -> UP`; absent where it does not run.
    pub backends: Seen<BTreeMap<String, String>>,
}

impl HostFacts {
    /// The unit's configuration was written by a run that ended before it was in force.
    #[must_use]
    pub fn is_pending(&self, unit: &str) -> bool {
        let pending = self.record.present().and_then(|record| record.entries.get("pending"));
        pending.is_some_and(|units| units.iter().any(|pending| pending == unit))
    }
}

/// A run of k8sup that has the lock on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its own random name.
    pub run: String,
    /// Who it is, in its own words.
    pub who: String,
    /// Since when, by the host's clock.
    pub since: String,
}

/// /etc/os-release.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OsRelease {
    /// `debian`.
    pub id: String,
    /// `debian` in derivatives.
    pub id_like: Vec<String>,
    /// `trixie`.
    pub codename: String,
    /// `Debian GNU/Linux 13 (trixie)`.
    pub pretty: String,
    /// `13`; empty for what is not released yet.
    pub version_id: String,
}

/// Control groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cgroup {
    /// 1 or 2.
    pub version: u8,
    /// Enabled controllers.
    pub controllers: BTreeSet<String>,
}

/// Swap in all its forms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwapFacts {
    /// /proc/swaps: names of active areas.
    pub active: Vec<String>,
    /// `*.swap` units that systemd would start at boot and that come neither from fstab nor from the zram generator:
    /// native ones, those of a GPT partition (`systemd-gpt-auto-generator`) and of Raspberry Pi OS (`rpi-swap`).
    pub units: Vec<String>,
    /// Enabled services that make swap: `dphys-swapfile.service`, `zramswap.service`, …
    pub makers: Vec<String>,
    /// systemd's zram generator is installed and configured to make swap at boot, and its unit is not masked.
    pub zram_generator: bool,
}

/// An IPv4 address of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// `eth0`.
    pub interface: String,
    /// Address with prefix length.
    pub address: Ipv4Net,
}

/// An IPv4 route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Destination; 0.0.0.0/0 is the default route.
    pub destination: Ipv4Net,
    /// Interface.
    pub interface: String,
}

/// A Debian package.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Package {
    /// Version, where it is installed.
    pub installed: Option<String>,
    /// `apt-mark hold`.
    pub held: bool,
}

/// A systemd unit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Service {
    /// Starts at boot.
    pub enabled: bool,
    /// Runs.
    pub active: bool,
}

/// A file with its content.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileFact {
    /// Permission bits.
    pub mode: u32,
    /// Content; files that k8sup cares about are text.
    pub content: String,
}

/// containerd.
#[derive(Debug, Clone, PartialEq)]
pub struct Containerd {
    /// `1.7.24`, without a leading v.
    pub version: String,
    /// What `containerd config dump` says, as parsed TOML.
    pub config: Seen<toml::Table>,
}

/// A listening TCP socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Address as `ss` prints it.
    pub address: String,
    /// Port.
    pub port: u16,
    /// Name of the process.
    pub process: Option<String>,
}

/// The login user on the host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Login {
    /// Its name.
    pub user: String,
    /// Its home.
    pub home: String,
    /// SHA-256 (hex) of the cluster CA's public key in ~/.kube/config.
    pub kubeconfig_ca: Seen<String>,
    /// `server:` of ~/.kube/config.
    pub kubeconfig_server: Option<String>,
}

/// What k8sup changed on the host, and what stood before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// Files by path.
    pub files: BTreeMap<String, RecordedFile>,
    /// Other entries by kind (`package`, `service-enabled`, `swap-unit`, …), each with its lines.
    pub entries: BTreeMap<String, Vec<String>>,
}

impl Record {
    /// After a reset that kept the packages: nothing else is recorded any more.
    #[must_use]
    pub fn only_packages(&self) -> bool {
        self.files.is_empty() && self.entries.keys().all(|kind| kind == "package")
    }
}

/// A file that k8sup wrote.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedFile {
    /// Existed before k8sup first wrote it.
    pub existed: bool,
    /// SHA-256 (hex) of what k8sup wrote last.
    pub ours: Option<String>,
}
