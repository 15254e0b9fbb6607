//! The steps: each is data, and [`Step::script`] gives the shell that carries it out.
//!
//! A step's shell is a file of `templates/steps`, behind the prelude. Steps do not look at a
//! host to decide whether they are needed: the planner did.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use serde::Serialize;

use super::Reference;
use super::scripts::{self, Script};
use crate::cluster::NodeName;

/// One thing done to one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Step {
    /// Opens in the host's firewall what the cluster needs, and closes what it does not need any more.
    Firewall {
        /// `ufw` or `firewalld`.
        tool: String,
        /// The interface with the host's address.
        interface: String,
        /// Rules to add.
        open: Vec<String>,
        /// Recorded rules to take back.
        close: Vec<String>,
    },
    /// Turns swap off for good.
    SwapOff {
        /// New content of /etc/fstab, when a swap line is in it.
        fstab: Option<String>,
        /// Native swap units to mask.
        units: Vec<String>,
        /// Services that make swap, to disable.
        makers: Vec<String>,
        /// /etc/systemd/zram-generator.conf that silences systemd's zram generator.
        zram: Option<String>,
        /// /etc/rpi/swap.conf.d/99-k8sup.conf that switches rpi-swap off.
        rpi: Option<String>,
        /// Swap is on now.
        active: bool,
    },
    /// Writes the kernel's command line of a Raspberry Pi.
    BootLine {
        /// The file that the firmware reads.
        path: String,
        /// The one line.
        content: String,
    },
    /// Reboots the host, once; the executor waits until it is back.
    Reboot {
        /// Of the boot that is to end.
        boot_id: String,
    },
    /// Waits until a time service has set the clock.
    AwaitClock,
    /// Loads kernel modules and sets sysctls, now and at boot.
    Kernel {
        /// /etc/modules-load.d/k8sup.conf; `None` where none are needed.
        modules: Option<String>,
        /// The sysctls as a file.
        sysctl: String,
        /// Where it is to stand.
        path: String,
    },
    /// Sets the host's name to its Node's name.
    Hostname {
        /// The name.
        name: NodeName,
    },
    /// Installs and holds packages.
    Packages(PackageStep),
    /// Configures containerd.
    Containerd {
        /// The files for each containerd that the host may have; one when it is known.
        variants: Vec<ContainerdFiles>,
        /// What runs is not what its files say: restart it in any case.
        restart: bool,
    },
    /// Makes localhost and the endpoint's name resolve on the host.
    HostsFile {
        /// New content of /etc/hosts.
        content: String,
    },
    /// Gives pods a resolv.conf without a local stub.
    ResolvConf {
        /// /etc/k8sup-resolv.conf.
        content: String,
    },
    /// Puts HAProxy in front of the API servers.
    HaProxy {
        /// /etc/haproxy/haproxy.cfg.
        config: String,
        /// The endpoint's port.
        port: u16,
    },
    /// Proves that TCP ports are in reach of the host.
    Reach {
        /// What for, as `the endpoint`.
        what: String,
        /// Addresses (or names) and ports.
        targets: Vec<(String, u16)>,
        /// Somebody must listen there; otherwise a refused connection is proof enough.
        listening: bool,
    },
    /// Pulls images before they are needed.
    PullImages {
        /// References.
        images: Vec<String>,
        /// Also those of the control plane at this version, as kubeadm names them.
        control_plane: Option<String>,
        /// kubeadm's imageRepository.
        repository: Option<String>,
    },
    /// `kubeadm reset` of a host that is only half in the cluster.
    ClearHalfMade {
        /// It is a controller: its empty or unpromoted etcd data goes, too.
        controller: bool,
    },
    /// Gives a host a machine-id that has none.
    MachineId,
    /// Takes flags out of the kubelet's files that it does not know any more.
    KubeletFlags {
        /// New contents by path.
        files: BTreeMap<String, String>,
    },
    /// Leads a member's kubelet back to its cluster.
    KubeletServer {
        /// URL of the API server.
        server: String,
    },
    /// Keeps others on the host from changing the links of pods.
    LinkSettings {
        /// Contents by path.
        files: BTreeMap<String, String>,
    },
    /// Clears what earlier clusters and other tools left in the way of pods.
    ClearLeft(ClearStep),
    /// `kubeadm init` up to a running control plane.
    Found {
        /// kubeadm's documents.
        config: String,
    },
    /// Waits for a control plane that an earlier run started.
    AwaitApi {
        /// Address of the host.
        address: Ipv4Addr,
    },
    /// The rest of `kubeadm init`.
    Publish {
        /// kubeadm's documents.
        config: String,
    },
    /// Makes a bootstrap token in a running cluster.
    IssueToken,
    /// Applies Flannel's manifest, which the host fetches, checks and the executor patches.
    Flannel {
        /// The patched manifest.
        manifest: String,
    },
    /// Sees that etcd is steady and uploads the certificates for the next controller.
    EtcdTurn {
        /// The controller whose turn it is.
        controller: NodeName,
        /// kubeadm's documents.
        config: String,
    },
    /// `kubeadm join`.
    Join {
        /// `JoinConfiguration`.
        config: String,
        /// kubeconfig with the cluster's CA and the bootstrap token.
        discovery: String,
        /// Address of the host.
        address: Ipv4Addr,
        /// An etcd member comes with it.
        controller: bool,
    },
    /// Removes the token file that an ended `kubeadm join` left beside a working kubelet.
    FinishJoin,
    /// Removes what the cluster still knows of a host: its etcd member and its Node.
    ForgetNode {
        /// The Node.
        node: NodeName,
        /// Its address.
        address: Ipv4Addr,
    },
    /// Sets labels and taints of a Node, and takes off those that k8sup set and the inventory does not list any more.
    NodeSettings {
        /// The Node.
        node: NodeName,
        /// `key=value` arguments; `key-` takes one off.
        labels: Vec<String>,
        /// `key=value:effect` arguments; `key:effect-` takes one off.
        taints: Vec<String>,
        /// What k8sup has put there, now or afterwards: label keys, and `key:effect` of taints.
        announced: Vec<String>,
        /// The same, when this is done.
        managed: Vec<String>,
    },
    /// Sets the resolvers that CoreDNS forwards to.
    Resolvers {
        /// New Corefile.
        corefile: String,
    },
    /// Gives the login user a kubeconfig.
    UserKubeconfig {
        /// The user.
        user: String,
        /// Its home.
        home: String,
    },
    /// Revokes bootstrap tokens and uploaded certificates.
    Revoke,
    /// Evicts the pods of a Node and removes it from the cluster.
    LeaveCluster {
        /// The Node.
        node: NodeName,
        /// Its address, which names its etcd member.
        address: Ipv4Addr,
        /// It has an etcd member.
        controller: bool,
    },
    /// `kubeadm reset` and everything that it leaves.
    ResetNode(ResetStep),
    /// Stops HAProxy where k8sup set it up.
    ResetLoadBalancer,
    /// Puts back what stood on the host before k8sup.
    RestoreHost {
        /// Packages that k8sup installed go, too.
        purge: bool,
    },
}

/// containerd's files in one dialect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContainerdFiles {
    /// `1`, `2.0` or `2.1`.
    pub dialect: String,
    /// Contents by path.
    pub files: BTreeMap<String, String>,
}

/// What [`Step::Packages`] does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct PackageStep {
    /// Kubernetes' apt source, deb822.
    pub sources: Option<String>,
    /// URL of its signing key.
    pub key_url: String,
    /// apt source of another containerd, deb822.
    pub containerd_source: Option<String>,
    /// URL of its signing key.
    pub containerd_key_url: String,
    /// Source files of legacy repositories, which are removed.
    pub legacy: Vec<String>,
    /// apt.conf text with the proxy.
    pub apt_proxy: Option<String>,
    /// Packages to install, `name` or `name=version`.
    pub install: Vec<String>,
    /// Packages to install once more, since files of theirs are gone.
    pub reinstall: Vec<String>,
    /// Packages to hold.
    pub hold: Vec<String>,
}

/// What [`Step::ClearLeft`] does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct ClearStep {
    /// CNI configuration of others, kept in the record.
    pub aside: Vec<String>,
    /// Files of an earlier Flannel.
    pub stale: Vec<String>,
    /// Links to remove: `cni0`, `flannel.1`, …
    pub links: Vec<String>,
    /// Links, rules, leases or namespaces of an earlier cluster are there.
    pub network: bool,
    /// The CNI's own chains and leases may be Podman's: they stay.
    pub keep_cni: bool,
}

/// What [`Step::ResetNode`] does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct ResetStep {
    /// etcd data directory that kubeadm made; `None`: whatever is in /var/lib/etcd is not ours.
    pub etcd_data_dir: Option<String>,
    /// Its etcd member was removed already, or must not be touched from this host.
    pub keep_member: bool,
    /// CNI configuration files to remove: Flannel's, never another's.
    pub cni_files: Vec<String>,
    /// Home directories to look for a kubeconfig of this cluster in.
    pub homes: Vec<String>,
    /// Links to remove: `cni0`, `flannel.1`, …
    pub links: Vec<String>,
    /// Files of an etcd that is not kubeadm's, which stay.
    pub keep: Vec<String>,
}

/// A step's script, ready for the executor to put references in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepScript {
    /// File name below `templates/steps`, without `.sh`.
    pub name: &'static str,
    /// POSIX sh: the prelude and the step.
    pub text: String,
    /// Parameters, by the names that the script uses.
    pub params: Vec<(String, StepParam)>,
    /// The step is ended when it runs longer.
    pub timeout: Duration,
    /// What its standard output defines.
    pub output: Option<Reference>,
}

/// A parameter of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepParam {
    /// As it is.
    Plain(String),
    /// With [`Reference`] placeholders, which the executor replaces; then it is a secret.
    Sealed(String),
}

const fn minutes(n: u64) -> Duration {
    Duration::from_secs(n * 60)
}

impl Step {
    /// What it does, as a short phrase for a person.
    #[must_use]
    pub fn title(&self) -> String {
        match self {
            Self::Firewall { tool, .. } => format!("open ports in {tool}"),
            Self::SwapOff { .. } => "turn swap off".to_owned(),
            Self::BootLine { .. } => "switch the memory control group on".to_owned(),
            Self::Reboot { .. } => "reboot".to_owned(),
            Self::AwaitClock => "wait for the clock to be set".to_owned(),
            Self::Kernel { .. } => "set kernel modules and sysctls".to_owned(),
            Self::Hostname { name } => format!("set the hostname to {name}"),
            Self::Packages(step) if step.install.is_empty() => "set apt sources and holds".to_owned(),
            Self::Packages(step) if step.install.len() == 1 => format!("install {}", step.install[0]),
            Self::Packages(step) => format!("install {} packages", step.install.len()),
            Self::Containerd { .. } => "configure containerd".to_owned(),
            Self::HostsFile { .. } => "complete /etc/hosts".to_owned(),
            Self::ResolvConf { .. } => "give pods a resolv.conf".to_owned(),
            Self::HaProxy { .. } => "configure haproxy".to_owned(),
            Self::Reach { what, .. } => format!("reach {what}"),
            Self::PullImages { .. } => "pull images".to_owned(),
            Self::ClearHalfMade { .. } => "clear what is half made".to_owned(),
            Self::MachineId => "make a machine-id".to_owned(),
            Self::KubeletFlags { .. } => "take unknown flags from the kubelet".to_owned(),
            Self::KubeletServer { server } => format!("lead the kubelet to {server}"),
            Self::LinkSettings { .. } => "keep others from the links of pods".to_owned(),
            Self::ClearLeft(_) => "clear what others left".to_owned(),
            Self::Found { .. } => "kubeadm init: control plane".to_owned(),
            Self::AwaitApi { .. } => "wait for the API server".to_owned(),
            Self::Publish { .. } => "kubeadm init: cluster configuration and add-ons".to_owned(),
            Self::IssueToken => "issue a bootstrap token".to_owned(),
            Self::Flannel { .. } => "apply flannel".to_owned(),
            Self::EtcdTurn { controller, .. } => format!("give {controller} its etcd turn"),
            Self::Join { controller: true, .. } => "kubeadm join as controller".to_owned(),
            Self::Join { controller: false, .. } => "kubeadm join as worker".to_owned(),
            Self::FinishJoin => "finish the join".to_owned(),
            Self::ForgetNode { node, .. } => format!("forget the old {node}"),
            Self::NodeSettings { node, .. } => format!("label and taint {node}"),
            Self::Resolvers { .. } => "set the resolvers of CoreDNS".to_owned(),
            Self::UserKubeconfig { user, .. } => format!("give {user} a kubeconfig"),
            Self::Revoke => "revoke tokens and uploaded certificates".to_owned(),
            Self::LeaveCluster { node, .. } => format!("take {node} out of the cluster"),
            Self::ResetNode(_) => "kubeadm reset and clean up".to_owned(),
            Self::ResetLoadBalancer => "stop haproxy".to_owned(),
            Self::RestoreHost { purge: false } => "put back what stood before".to_owned(),
            Self::RestoreHost { purge: true } => "put back what stood before, remove packages".to_owned(),
        }
    }

    /// From here on there is something that could let another machine in, until [`Step::Revoke`].
    #[must_use]
    pub const fn hands_out(&self) -> bool {
        matches!(self, Self::Publish { .. } | Self::IssueToken | Self::EtcdTurn { .. })
    }

    /// Done whatever else failed or was interrupted, once there is something to clean up.
    #[must_use]
    pub const fn cleans_up(&self) -> bool {
        matches!(self, Self::Revoke)
    }

    /// The shell that carries it out.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "one arm a step: a table reads best in one place")]
    pub fn script(&self) -> StepScript {
        match self {
            Self::Firewall {
                tool,
                interface,
                open,
                close,
            } => script(scripts::FIREWALL, minutes(10))
                .plain("TOOL", tool)
                .plain("INTERFACE", interface)
                .lines("OPEN", open)
                .lines("CLOSE", close),
            Self::SwapOff {
                fstab,
                units,
                makers,
                zram,
                rpi,
                active,
            } => script(scripts::SWAP_OFF, minutes(5))
                .plain("FSTAB", fstab.as_deref().unwrap_or_default())
                .lines("UNITS", units)
                .lines("MAKERS", makers)
                .plain("ZRAM", zram.as_deref().unwrap_or_default())
                .plain("RPI", rpi.as_deref().unwrap_or_default())
                .flag("ACTIVE", *active),
            Self::BootLine { path, content } => script(scripts::BOOT_LINE, minutes(1))
                .plain("FILE", path)
                .plain("CONTENT", content),
            Self::Reboot { boot_id } => script(scripts::REBOOT, minutes(2)).plain("BOOT_ID", boot_id),
            Self::AwaitClock => script(scripts::AWAIT_CLOCK, minutes(2)),
            Self::Kernel { modules, sysctl, path } => script(scripts::KERNEL, minutes(1))
                .plain("MODULES_FILE", modules.as_deref().unwrap_or_default())
                .plain("SYSCTL_FILE", sysctl)
                .plain("SYSCTL_PATH", path),
            Self::Hostname { name } => script(scripts::HOSTNAME, minutes(1)).plain("NAME", name.as_str()),
            Self::Packages(step) => script(scripts::PACKAGES, minutes(30))
                .plain("SOURCES", step.sources.as_deref().unwrap_or_default())
                .plain("KEY_URL", &step.key_url)
                .plain("EXTRA_SOURCE", step.containerd_source.as_deref().unwrap_or_default())
                .plain("EXTRA_KEY_URL", &step.containerd_key_url)
                .lines("LEGACY", &step.legacy)
                .plain("APT_PROXY", step.apt_proxy.as_deref().unwrap_or_default())
                .lines("INSTALL", &step.install)
                .lines("REINSTALL", &step.reinstall)
                .lines("HOLD", &step.hold),
            Self::Containerd { variants, restart } => containerd_script(variants).flag("RESTART", *restart),
            Self::HostsFile { content } => script(scripts::HOSTS_FILE, minutes(1)).plain("HOSTS", content),
            Self::ResolvConf { content } => script(scripts::RESOLV_CONF, minutes(1)).plain("CONTENT", content),
            Self::HaProxy { config, port } => script(scripts::HAPROXY, minutes(2))
                .plain("CONFIG", config)
                .plain("PORT", &port.to_string()),
            Self::Reach {
                what: _,
                targets,
                listening,
            } => {
                let want = if *listening { "accept" } else { "any" };
                let targets: Vec<_> = targets
                    .iter()
                    .map(|(host, port)| format!("{host} {port} {want}"))
                    .collect();
                script(scripts::REACH, minutes(2)).lines("TARGETS", &targets)
            }
            Self::PullImages {
                images,
                control_plane,
                repository,
            } => script(scripts::PULL_IMAGES, minutes(30))
                .lines("IMAGES", images)
                .plain("CONTROL_PLANE", control_plane.as_deref().unwrap_or_default())
                .plain("REPOSITORY", repository.as_deref().unwrap_or_default()),
            Self::ClearHalfMade { controller } => {
                script(scripts::CLEAR_HALF_MADE, minutes(5)).flag("CONTROLLER", *controller)
            }
            Self::MachineId => script(scripts::MACHINE_ID, minutes(1)),
            Self::KubeletFlags { files } => with_files(script(scripts::KUBELET_FLAGS, minutes(2)), files),
            Self::KubeletServer { server } => script(scripts::KUBELET_SERVER, minutes(3)).plain("SERVER", server),
            Self::LinkSettings { files } => with_files(script(scripts::LINK_SETTINGS, minutes(2)), files),
            Self::ClearLeft(step) => script(scripts::CLEAR_LEFT, minutes(3))
                .lines("ASIDE", &step.aside)
                .lines("STALE", &step.stale)
                .lines("LINKS", &step.links)
                .flag("NETWORK", step.network)
                .plain(
                    "CHAINS",
                    if step.keep_cni {
                        "KUBE|FLANNEL"
                    } else {
                        "KUBE|CNI|FLANNEL"
                    },
                ),
            Self::Found { config } => script(scripts::FOUND, minutes(20))
                .sealed("CONFIG", config)
                .gives(Reference::CaCertData),
            Self::AwaitApi { address } => script(scripts::AWAIT_API, minutes(5)).plain("ADDRESS", &address.to_string()),
            Self::Publish { config } => script(scripts::PUBLISH, minutes(15))
                .sealed("CONFIG", config)
                .gives(Reference::CaCertData),
            Self::IssueToken => script(scripts::ISSUE_TOKEN, minutes(2))
                .sealed("TOKEN", Reference::BootstrapToken.placeholder())
                .gives(Reference::CaCertData),
            Self::Flannel { manifest } => script(scripts::FLANNEL, minutes(3)).plain("MANIFEST", manifest),
            Self::EtcdTurn { controller: _, config } => script(scripts::ETCD_TURN, minutes(5)).sealed("CONFIG", config),
            Self::Join {
                config,
                discovery,
                address,
                controller,
            } => script(scripts::JOIN, minutes(20))
                .sealed("CONFIG", config)
                .sealed("DISCOVERY", discovery)
                .plain("ADDRESS", &address.to_string())
                .flag("CONTROLLER", *controller),
            Self::FinishJoin => script(scripts::FINISH_JOIN, minutes(4)),
            Self::ForgetNode { node, address } => script(scripts::FORGET_NODE, minutes(2))
                .plain("NODE", node.as_str())
                .plain("ADDRESS", &address.to_string()),
            Self::NodeSettings {
                node,
                labels,
                taints,
                announced,
                managed,
            } => script(scripts::NODE_SETTINGS, minutes(4))
                .plain("NODE", node.as_str())
                .plain("ANNOUNCED", &announced.join(" "))
                .plain("MANAGED", &managed.join(" "))
                .lines("LABELS", labels)
                .lines("TAINTS", taints),
            Self::Resolvers { corefile } => {
                let patch = serde_json::json!({ "data": { "Corefile": corefile } });
                script(scripts::RESOLVERS, minutes(2)).plain("PATCH", &patch.to_string())
            }
            Self::UserKubeconfig { user, home } => script(scripts::USER_KUBECONFIG, minutes(1))
                .plain("LOGIN_USER", user)
                .plain("LOGIN_HOME", home),
            Self::Revoke => script(scripts::REVOKE, minutes(2)),
            Self::LeaveCluster {
                node,
                address,
                controller,
            } => script(scripts::LEAVE_CLUSTER, minutes(5))
                .plain("NODE", node.as_str())
                .plain("ADDRESS", &address.to_string())
                .flag("CONTROLLER", *controller),
            Self::ResetNode(step) => script(scripts::RESET_NODE, minutes(10))
                .plain("ETCD_DATA_DIR", step.etcd_data_dir.as_deref().unwrap_or_default())
                .lines("CNI_FILES", &step.cni_files)
                .flag("KEEP_MEMBER", step.keep_member)
                .lines("HOMES", &step.homes)
                .lines("LINKS", &step.links)
                .lines("KEEP", &step.keep),
            Self::ResetLoadBalancer => script(scripts::RESET_LOAD_BALANCER, minutes(2)),
            Self::RestoreHost { purge } => script(scripts::RESTORE_HOST, minutes(10)).flag("PURGE", *purge),
        }
    }
}

fn script((name, text): Script, timeout: Duration) -> StepScript {
    StepScript {
        name,
        text: format!("{}\n{text}", scripts::PRELUDE),
        params: Vec::new(),
        timeout,
        output: None,
    }
}

/// The files as parameters of their own, and `FILES` with their paths.
fn with_files(mut made: StepScript, files: &BTreeMap<String, String>) -> StepScript {
    let mut list = Vec::new();
    for (index, (path, content)) in files.iter().enumerate() {
        let number = index + 1;
        list.push(format!("{path}\t{number}"));
        made = made.plain(&format!("FILE_{number}"), content);
    }
    made.lines("FILES", &list)
}

fn containerd_script(variants: &[ContainerdFiles]) -> StepScript {
    let mut made = script(scripts::CONTAINERD, minutes(3));
    let mut list = Vec::new();
    for variant in variants {
        for (path, content) in &variant.files {
            let number = list.len() + 1;
            list.push(format!("{}\t{path}\t{number}", variant.dialect));
            made = made.plain(&format!("FILE_{number}"), content);
        }
    }
    made.lines("FILES", &list)
}

impl StepScript {
    fn plain(mut self, name: &str, value: &str) -> Self {
        self.params.push((name.to_owned(), StepParam::Plain(value.to_owned())));
        self
    }

    fn sealed(mut self, name: &str, value: &str) -> Self {
        self.params.push((name.to_owned(), StepParam::Sealed(value.to_owned())));
        self
    }

    fn lines(self, name: &str, values: &[String]) -> Self {
        self.plain(name, &values.join("\n"))
    }

    fn flag(self, name: &str, value: bool) -> Self {
        self.plain(name, if value { "1" } else { "0" })
    }

    fn gives(mut self, reference: Reference) -> Self {
        self.output = Some(reference);
        self
    }
}
