//! The checks: everything that is looked at before the first change, each with a code that stays.
//!
//! This is the registry; where the facts are judged a [`Finding`] is made of a check. `docs/checks.md` is made of it.

use std::fmt::Write as _;

use serde::{Serialize, Serializer};

use crate::cluster::NodeName;

/// What a finding means for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing is changed while it stands.
    Refuse,
    /// A step of apply mends it: [`crate::plan::Planned::fixes`].
    Fix,
    /// A person should know.
    Warn,
}

/// One check.
#[derive(Debug, PartialEq, Eq)]
pub struct Check {
    /// `K8S-NET-006`: never given to another check.
    pub code: &'static str,
    /// What it means when it finds something.
    pub level: Level,
    /// A person may take it on themselves with `--allow`: there is a run that can end well.
    pub allowable: bool,
    /// What is wrong then, in one plain sentence.
    pub sentence: &'static str,
    /// What to do about it.
    pub advice: &'static str,
}

/// What a check has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// By which check.
    #[serde(rename = "code", serialize_with = "code")]
    pub check: &'static Check,
    /// The host it is about; `None`: the cluster, or several hosts.
    pub host: Option<NodeName>,
    /// One sentence with the values.
    pub message: String,
    /// As seen on the host.
    pub evidence: Option<String>,
    /// What to do about it; may be empty.
    pub hint: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference to the field")]
fn code<S: Serializer>(check: &&Check, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(check.code)
}

impl Check {
    /// Found on a host.
    #[must_use]
    pub fn on(&'static self, host: &NodeName, message: impl Into<String>) -> Finding {
        self.found(Some(host.clone()), message.into())
    }

    /// Found in the cluster, or on several hosts.
    #[must_use]
    pub fn at_large(&'static self, message: impl Into<String>) -> Finding {
        self.found(None, message.into())
    }

    fn found(&'static self, host: Option<NodeName>, message: String) -> Finding {
        Finding {
            check: self,
            host,
            message,
            evidence: None,
            hint: self.advice.to_owned(),
        }
    }
}

impl Finding {
    /// With what the host said.
    #[must_use]
    pub fn evidence(mut self, evidence: impl Into<String>) -> Self {
        self.evidence = Some(evidence.into());
        self
    }

    /// With better advice than the check's own.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// All that is wrong is that a host cannot be reached or refuses the login.
    #[must_use]
    pub fn is_out_of_reach(&self) -> bool {
        [&OUT_OF_REACH, &OUT_OF_SIGHT, &LEFT_OUT].contains(&self.check)
    }
}

/// Why a code cannot be allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowable {
    /// It is none.
    #[error("there is no check {0}")]
    Unknown(String),
    /// It only warns.
    #[error("{0} only warns, so there is nothing to allow")]
    Warning(&'static str),
    /// It stops nobody.
    #[error("{0} is mended by apply, so there is nothing to allow")]
    Mended(&'static str),
    /// No run could end well.
    #[error("{code} cannot be allowed: {sentence}")]
    Never {
        /// The check's code.
        code: &'static str,
        /// What it finds.
        sentence: &'static str,
    },
}

/// The code of a check whose refusal a person may take on themselves, as it is written.
///
/// # Errors
/// When there is no such check, or no use in allowing it.
pub fn allowable(code: &str) -> Result<&'static str, NotAllowable> {
    let known = ALL.iter().find(|check| check.code.eq_ignore_ascii_case(code));
    match known {
        None => Err(NotAllowable::Unknown(code.to_owned())),
        Some(check) if check.level == Level::Warn => Err(NotAllowable::Warning(check.code)),
        Some(check) if check.level == Level::Fix => Err(NotAllowable::Mended(check.code)),
        Some(check) if !check.allowable => Err(NotAllowable::Never {
            code: check.code,
            sentence: check.sentence,
        }),
        Some(check) => Ok(check.code),
    }
}

/// `docs/checks.md`.
#[must_use]
pub fn document() -> String {
    let mut out = "# Checks\n\n\
        `k8sup check`, `plan` and `apply` look at all of this before anything is changed. **refuse**: nothing is changed \
        anywhere while it stands. **fix**: a step of apply mends it. **warn**: a person should know. With `--allow CODE` (or `allow: [CODE]` in the inventory) a \
        refusal that is marked *can be allowed* becomes a warning: the plan says so, and the risk is yours.\n\n\
        | code | level | what is wrong | what to do |\n|---|---|---|---|\n"
        .to_owned();
    for check in ALL {
        let level = match (check.level, check.allowable) {
            (Level::Warn, _) => "warn",
            (Level::Fix, _) => "fix",
            (Level::Refuse, false) => "refuse",
            (Level::Refuse, true) => "refuse, can be allowed",
        };
        let _ = writeln!(
            out,
            "| {} | {level} | {} | {} |",
            check.code, check.sentence, check.advice
        );
    }
    out
}

macro_rules! checks {
    ($($name:ident = $code:literal $level:ident $allowable:literal: $sentence:literal, $advice:literal;)*) => {
        $(#[doc = $sentence] pub static $name: Check = Check {
            code: $code, level: Level::$level, allowable: $allowable, sentence: $sentence, advice: $advice,
        };)*
        /// All of them.
        pub static ALL: &[&Check] = &[$(&$name),*];
    };
}

checks! {
    OUT_OF_REACH = "K8S-SSH-001" Refuse false:
        "A host that the cluster cannot be founded without cannot be reached, or refuses the login.",
        "see that it is up and in reach, and how it is logged in to (`ssh` in the inventory)";
    OUT_OF_SIGHT = "K8S-SSH-002" Refuse false:
        "What a host belongs to cannot be told, since its controllers cannot be reached.",
        "see that the controllers are up and in reach, then run again; nothing is changed while this is unknown";
    LEFT_OUT = "K8S-SSH-003" Warn false:
        "A host cannot be reached, or refuses the login, and is left out.",
        "see that it is up and in reach, then run again";

    OS_UNSUPPORTED = "K8S-OS-001" Refuse true:
        "The operating system is none that k8sup knows.",
        "use Debian 12 or 13, Ubuntu 22.04, 24.04 or 26.04, or Raspberry Pi OS (64-bit)";
    OS_UNTRIED = "K8S-OS-002" Warn false:
        "This release of a supported distribution has not been tried.",
        "packages may have other names and settings there than k8sup knows";
    SYSTEMD = "K8S-OS-003" Refuse false:
        "systemd does not run as the first process.",
        "containerd, the kubelet and haproxy are started by systemd: boot the host with it";
    OVERLAY_ROOT = "K8S-OS-004" Refuse true:
        "The root file system forgets every change at the next boot.",
        "switch the overlay off (`raspi-config nonint disable_overlayfs`, or overlayroot in /etc/overlayroot.conf) and reboot";
    REBOOT_WAITS = "K8S-OS-005" Warn false:
        "An upgrade waits for a reboot.",
        "reboot the host before it joins, or whenever it suits you";
    ARCHITECTURE = "K8S-ARCH-001" Refuse false:
        "The userland has 32 bits, or belongs to a processor for which Kubernetes has no images.",
        "install a 64-bit system; a 64-bit kernel alone does not help";

    HOSTNAMES_ALIKE = "K8S-ID-001" Warn false:
        "Hosts call themselves by the same name.",
        "set cluster.setHostnames: true, or rename all but one";
    HOSTNAME_DIFFERS = "K8S-ID-002" Warn false:
        "The host calls itself by another name than the inventory.",
        "cluster.setHostnames: true renames the host";
    MACHINE_IDS_ALIKE = "K8S-ID-003" Refuse true:
        "Machines have the same machine-id, as those made from one image do: flannel's link gets the same MAC address on all of them, and DHCP takes them for one client.",
        "on all but one `rm -f /etc/machine-id /var/lib/dbus/machine-id; systemd-machine-id-setup`, then reboot";
    PRODUCT_UUIDS_ALIKE = "K8S-ID-004" Refuse true:
        "Machines have the same `/sys/class/dmi/id/product_uuid`, which kubeadm wants to be unique.",
        "give each virtual machine one of its own";
    MACS_ALIKE = "K8S-ID-005" Refuse true:
        "Machines have the same MAC address, so the network takes them for one.",
        "give each virtual machine one of its own";
    HOST_KEYS_ALIKE = "K8S-ID-007" Refuse true:
        "Machines show the same SSH host key, as those made from one image do: who has one of them can pass for all.",
        "on all but one `rm /etc/ssh/ssh_host_*; dpkg-reconfigure openssh-server`, then accept the new key";
    LISTED_TWICE = "K8S-ID-006" Refuse false:
        "The inventory lists one and the same machine under several names.",
        "name each machine once: compare `address` and `ssh.host` of these hosts";
    RENAMED = "K8S-ID-008" Refuse false:
        "The machine is another node of the cluster than the inventory says.",
        "put names and addresses in the inventory back as they were";
    MOVED = "K8S-ID-009" Refuse false:
        "A Node or an etcd member has another address than the inventory says.",
        "put names and addresses in the inventory back as they were";
    NO_MACHINE_ID = "K8S-ID-011" Fix false:
        "/etc/machine-id is missing or empty.",
        "apply lets systemd make one";
    HOSTNAME_IS_SET = "K8S-ID-012" Fix false:
        "The host calls itself by another name than the inventory, which is to be its name (cluster.setHostnames).",
        "apply renames it; reset gives it back the name that it had";
    UNLISTED = "K8S-ID-010" Warn false:
        "The cluster has a node or an etcd member that the inventory does not list.",
        "to remove it, list it again, `k8sup reset --host` it, and only then take it out";

    CPUS = "K8S-RES-001" Refuse true:
        "A controller has one processor; kubeadm wants two.",
        "give it two, or choose another machine";
    MEMORY = "K8S-RES-002" Refuse true:
        "A controller has less memory than kubeadm wants (1700 MB).",
        "choose a machine with 2 GB or more";
    WORKER_MEMORY = "K8S-RES-003" Warn false:
        "A worker has less than 900 MB of memory: there is hardly room for pods.",
        "choose a machine with 1 GB or more";
    DISK = "K8S-RES-004" Refuse true:
        "There is too little free space for images, etcd and pods.",
        "make room there, or mount a larger disk";
    INODES = "K8S-RES-005" Refuse true:
        "A file system has hardly any inodes left: below 5 % the kubelet evicts pods.",
        "find the folder with many small files (`du --inodes -x /var | sort -n | tail`)";
    SLOW_DISK = "K8S-RES-006" Warn false:
        "The disk that etcd is to write to is slower than etcd wants.",
        "use an SSD or NVMe disk for controllers, or expect leader elections and slow answers under load";
    SD_CARD = "K8S-RES-007" Warn false:
        "etcd's data is to lie on an SD card, which is slow and wears out by its writes.",
        "boot the controller from an SSD, or mount one on /var/lib/etcd";
    DISK_PRESSURE = "K8S-RES-008" Warn false:
        "A file system has less than 15 % free: the kubelet deletes images below that, and evicts pods below 10 %.",
        "make room there, or mount a larger disk";

    MEMORY_CGROUP = "K8S-KRN-001" Refuse false:
        "The memory control group is off, which the kubelet cannot do without.",
        "see the kernel's command line for `cgroup_disable=memory`, and whether the kernel has CONFIG_MEMCG";
    CGROUPS = "K8S-KRN-002" Refuse false:
        "Control groups that the kubelet needs are off.",
        "see the kernel's command line for `cgroup_disable=`, then reboot";
    CGROUP_V1 = "K8S-KRN-003" Refuse true:
        "The kubelet of Kubernetes 1.35 and later does not start on control groups of version 1.",
        "boot with `systemd.unified_cgroup_hierarchy=1`, or set kubelet: { failCgroupV1: false }";
    CGROUP_V1_ENDS = "K8S-KRN-004" Warn false:
        "Control groups are of version 1, which Kubernetes 1.35 gives up.",
        "before an upgrade to 1.35 boot with `systemd.unified_cgroup_hierarchy=1`";
    MODULES_PACKAGE = "K8S-KRN-005" Fix false:
        "The kernel lacks a module that a package of Ubuntu's has.",
        "`linux-modules-extra` of the running kernel is installed before the modules are loaded";
    MODULES_MISSING = "K8S-KRN-006" Refuse true:
        "The kernel lacks a module that Kubernetes or Flannel needs, and no package is known to bring it.",
        "use the distribution's own kernel; without vxlan `flannel: { backend: host-gw }` works where all nodes are in one network";
    MODULES_GONE = "K8S-KRN-007" Fix false:
        "The modules of the running kernel are gone: it was upgraded since the last boot.",
        "the host is rebooted, when you say so (`apply` asks, or --reboot)";
    KERNEL_CONFIG = "K8S-KRN-008" Warn false:
        "The kernel's configuration cannot be read, so kubeadm cannot verify it.",
        "kubeadm is told to leave its SystemVerification out; k8sup has looked at the control groups and modules itself";
    KERNEL_SETTINGS = "K8S-KRN-009" Fix false:
        "Kernel modules or sysctls are not as Kubernetes (or haproxy) needs them.",
        "apply sets them, now and at boot; reset sets them back";
    SYSCTL_OVERRULED = "K8S-KRN-010" Warn false:
        "A file that is read after k8sup's at boot sets a sysctl to another value than Kubernetes needs.",
        "take the line out of that file, or the setting is lost with the next boot";

    SWAP = "K8S-SWAP-001" Fix false:
        "Swap is on, or would come on at the next boot, with which the kubelet does not start.",
        "apply turns it off for good; reset turns it on again";
    RPI_SWAP = "K8S-SWAP-002" Fix false:
        "Raspberry Pi OS makes swap at every boot (rpi-swap).",
        "a drop-in in /etc/rpi/swap.conf.d sets Mechanism=none; reset takes it away";
    SWAP_RETURNS = "K8S-SWAP-003" Warn false:
        "Swap is on, and what starts it at boot was not found.",
        "it is turned off now: look at `swapon --show` again after the next reboot";
    SWAP_IN_USE = "K8S-SWAP-004" Refuse true:
        "More is in swap than memory is free, so it cannot be turned off.",
        "stop what needs the memory, or choose a machine with more of it";

    CLOCKS_APART = "K8S-TIME-001" Refuse true:
        "Clocks of hosts are more than 5 s apart, which certificates and etcd do not bear.",
        "set the clocks and install a time service: `apt install systemd-timesyncd`";
    NO_TIME_SERVICE = "K8S-TIME-002" Warn false:
        "No time service runs, so the clock will go astray.",
        "`apt install systemd-timesyncd` on the host (or chrony)";
    CLOCK_UNSYNCHRONISED = "K8S-TIME-003" Fix false:
        "A time service runs, but has not set the clock yet.",
        "it is waited for, at most a minute, before certificates are made";
    OUR_CLOCK = "K8S-TIME-004" Warn false:
        "All hosts agree on the time, and this machine does not.",
        "see whether this machine's clock is right: certificates are judged by it";

    NO_RESOLVER = "K8S-DNS-001" Refuse true:
        "/etc/resolv.conf is missing, leads nowhere or names no server: nothing could be fetched, and pods do not start without it.",
        "mend the host's resolver first";
    LOCALHOST = "K8S-DNS-003" Fix false:
        "/etc/hosts does not name localhost, which a resolver may then find somewhere else.",
        "apply adds it; reset takes it out again";
    CLOUD_INIT = "K8S-DNS-008" Warn false:
        "cloud-init writes at every boot what k8sup is to change: /etc/hosts, or the host's name.",
        "set `manage_etc_hosts: false` and `preserve_hostname: true` in /etc/cloud/cloud.cfg.d";
    RESOLVER_LOOP = "K8S-DNS-002" Warn false:
        "/etc/resolv.conf names only the host's own loopback, which pods cannot use.",
        "set dns.resolvers in the inventory";
    ENDPOINT_ELSEWHERE = "K8S-DNS-005" Refuse true:
        "The endpoint's name leads to another address than the cluster's on a host.",
        "correct the name in the DNS or in /etc/hosts of that host";
    ENDPOINT_UNKNOWN = "K8S-DNS-004" Fix false:
        "The endpoint's name does not resolve on a host.",
        "apply writes it into /etc/hosts there; reset takes it out again";
    LOCAL_RESOLVER = "K8S-DNS-009" Fix false:
        "/etc/resolv.conf names only the host's own loopback, which pods cannot use, but other resolvers are known.",
        "apply gives the kubelet a file with the inventory's resolvers; the host's own stays as it is";
    COREFILE = "K8S-DNS-006" Refuse false:
        "CoreDNS' Corefile cannot be changed as the inventory wants.",
        "see `kubectl -n kube-system edit configmap coredns`";
    COREFILE_UNREAD = "K8S-DNS-007" Warn false:
        "CoreDNS' Corefile cannot be read, so its resolvers are left as they are.",
        "see `kubectl -n kube-system get configmap coredns -o yaml`";

    ADDRESS = "K8S-NET-001" Refuse false:
        "None of the host's interfaces has the inventory's address.",
        "correct `address`, or set `ssh.host` where the address to log in differs from the cluster's";
    NO_DEFAULT_ROUTE = "K8S-NET-002" Warn false:
        "There is no default route: packages and images must be in reach another way.",
        "add a route, or name a mirror (`images`, `packages` in the inventory)";
    OTHER_WAY_OUT = "K8S-NET-003" Fix false:
        "The way out of a host (its default route) does not lead through the interface with the cluster's address.",
        "apply tells Flannel which interface to use";
    INTERFACE = "K8S-NET-005" Refuse false:
        "The interface that the inventory names is not there, or lacks the host's address.",
        "correct `interface`";
    POD_CIDR = "K8S-NET-006" Refuse true:
        "The pod CIDR overlaps a network that a host is in or has a route to.",
        "choose another cluster.podCidr: it cannot be changed later";
    SERVICE_CIDR = "K8S-NET-007" Refuse true:
        "The service CIDR overlaps a network that a host is in or has a route to, or one of its nameservers.",
        "choose another cluster.serviceCidr: it cannot be changed later";
    ENDPOINT_PATH = "K8S-NET-008" Refuse true:
        "A node does not reach the endpoint: tried with real packets.",
        "let the endpoint's port in on the load balancer, and see what lies between";
    BACKEND_PATH = "K8S-NET-009" Refuse true:
        "A load balancer does not reach a controller's API server (6443/tcp): tried with real packets.",
        "let the port in on the controllers, and see what lies between";
    CONTROL_PLANE_PATH = "K8S-NET-010" Refuse true:
        "Controllers do not reach each other's API server and etcd (6443, 2379, 2380/tcp): tried with real packets.",
        "let the ports in on the controllers, and see what lies between";
    KUBELET_PATH = "K8S-NET-011" Refuse true:
        "A controller does not reach a kubelet's port (10250/tcp): tried with real packets.",
        "let the port in on the nodes, and see what lies between";
    PORT_TAKEN = "K8S-NET-012" Refuse true:
        "A port that the host's part in the cluster needs is taken by another program.",
        "stop it, or move it to another port";
    POD_NETWORK_PATH = "K8S-NET-013" Refuse true:
        "Flannel's UDP port is not reached from node to node: tried with real packets.",
        "let the port (8472/udp for VXLAN, 51820/udp for WireGuard) in on the nodes, and see what lies between";
    PATH_MTU = "K8S-NET-014" Refuse true:
        "Packets as large as the hosts' links take do not get from node to node in one piece: connections of pods would hang.",
        "set flannel.mtu to what fits, or see why the way takes less than the links";
    HOST_GW = "K8S-NET-015" Refuse true:
        "Flannel's backend host-gw needs all nodes in one network, and they are not.",
        "use the backend vxlan";

    MTUS_DIFFER = "K8S-NET-024" Warn false:
        "The nodes' links have different MTUs: Flannel takes each node's own, and large packets of pods may be lost.",
        "give all links the same MTU, or set flannel.mtu to one that fits the smallest";
    PATHS_UNTOLD = "K8S-NET-025" Warn false:
        "Whether hosts reach each other could not be tried.",
        "k8sup listens for a moment on the ports that are needed, with perl, and connects from host to host";
    PROXY = "K8S-NET-016" Warn false:
        "Root's environment names a proxy, and not all of the cluster's own addresses as exceptions: kubeadm gives both to the control plane.",
        "add them to no_proxy, or take the proxy out of the environment and write `proxy` in the inventory";
    WIRELESS = "K8S-NET-017" Warn false:
        "The cluster's address is on Wi-Fi, whose pauses etcd and the kubelet take for a lost machine.",
        "use a cable, at least for controllers";
    TWO_IPTABLES = "K8S-NET-022" Warn false:
        "Rules are kept by both the legacy iptables and nftables: two firewalls decide, and each sees only its own rules.",
        "move the rules to one of them, and choose it with `update-alternatives --config iptables`";
    NETWORK_MANAGER = "K8S-NET-019" Fix false:
        "`NetworkManager` would manage the links of pods.",
        "apply tells it not to; reset takes that back";
    MAC_POLICY = "K8S-NET-020" Fix false:
        "systemd-udevd may give Flannel's link another MAC address than the other nodes know.",
        "apply tells it not to; reset takes that back";
    UFW = "K8S-FW-001" Fix false:
        "ufw is on, and does not let in all that the cluster needs.",
        "apply opens it, from the hosts that need it; reset closes it again. ufw stays on";
    FIREWALLD = "K8S-FW-002" Fix false:
        "firewalld is on, and does not let in all that the cluster needs.",
        "apply opens it, from the hosts that need it; reset closes it again. firewalld stays on";
    PACKETS_STOPPED = "K8S-FW-003" Refuse true:
        "Rules of the packet filter, which k8sup does not touch, stop what other hosts of the cluster send.",
        "add the rules that are shown, now and in the file that they are loaded from at boot";
    PODS_STOPPED = "K8S-FW-004" Refuse true:
        "Rules of the packet filter, which k8sup does not touch, stop packets of pods that the host is to forward.",
        "add the rules that are shown, now and in the file that they are loaded from at boot";

    OTHER_HAPROXY = "K8S-LB-001" Refuse true:
        "haproxy on the load balancer already serves something that is not k8sup's, and would stop doing so.",
        "give the load balancer a machine of its own; with --allow its haproxy.cfg is replaced, and reset puts it back";

    OTHER_BALANCER = "K8S-LB-002" Warn false:
        "The endpoint leads to a load balancer that is not in the inventory, so its health checks are unknown.",
        "let it ask each controller for /readyz over TLS on port 6443 every 1 to 2 s, use one after the first good \
         answer, and keep connections open for hours: `kubeadm init` waits for it, and watches hang on it";

    BALANCER_DRIFTED = "K8S-LB-003" Fix false:
        "haproxy is not as k8sup had set it up: its file was changed, or it does not run, or not at boot.",
        "apply puts back file and service";

    CRI_OFF = "K8S-CRI-001" Fix false:
        "containerd's CRI plugin is disabled, as Docker's package has it: the kubelet has nobody to talk to.",
        "apply switches it on and keeps the other settings; reset puts the file back";
    CONTAINERD_SETTINGS = "K8S-CRI-002" Fix false:
        "The containerd that runs is not set up as the kubelet needs it.",
        "apply adds what is missing and restarts it; reset puts the files back";
    CONTAINERD_CONFIG = "K8S-CRI-003" Refuse false:
        "containerd's own configuration cannot be extended.",
        "k8sup keeps your settings and only adds its own; it will not guess what this file means";

    OTHER_RUNTIME = "K8S-CRI-005" Warn false:
        "Another container runtime is beside containerd; k8sup names containerd's socket wherever one is named.",
        "nothing has to be done; remove what nobody needs";
    RUNC_APPARMOR = "K8S-CRI-006" Warn false:
        "Ubuntu's runc and containerd of these versions leave pods in Terminating, since the kernel keeps containerd from ending their processes.",
        "`apt install containerd runc` brings newer ones";
    OTHER_CNI = "K8S-CNI-001" Fix false:
        "CNI configuration of something else is there, which the container runtime would take instead of Flannel's.",
        "apply sets it aside; reset puts it back";
    OLD_NETWORK = "K8S-CNI-002" Fix false:
        "Links, rules, leases or configuration of an earlier cluster's network are there.",
        "apply removes them before the host joins";
    CNI_PLUGINS = "K8S-CNI-005" Fix false:
        "Plugins of the package kubernetes-cni are missing in /opt/cni/bin.",
        "apply installs the package once more";
    KUBELET_START = "K8S-KUBELET-003" Refuse true:
        "A drop-in of somebody's own starts the kubelet without kubeadm's settings, so it would not join.",
        "move the drop-in away; flags belong into /etc/default/kubelet";
    KUBELET_FLAGS = "K8S-KUBELET-001" Fix false:
        "The kubelet is given flags that its version does not know, so it would not start.",
        "apply takes them out; reset puts them back";
    KUBELET_SERVER = "K8S-KUBELET-002" Fix false:
        "The kubelet of a member asks another server than its cluster's.",
        "apply leads it back and restarts it";
    BRIDGE_ADDRESS = "K8S-CNI-003" Refuse true:
        "The pods' bridge of a node has an address of another network than the Node's, so no pod starts there.",
        "drain the node, `ip link delete cni0` on it, and uncordon it";
    FLANNEL_PLUGIN = "K8S-CNI-009" Warn false:
        "Flannel's plugin is missing on a node, so no pod starts there.",
        "delete the node's pod of kube-flannel: the new one brings it";
    OTHER_NETWORK = "K8S-CNI-004" Refuse false:
        "The running cluster has a pod network that is not Flannel's.",
        "k8sup sets up Flannel only: keep this cluster as it is, or reset and apply anew";
    FLANNEL_MANIFEST = "K8S-CNI-007" Refuse false:
        "Flannel's manifest cannot be used with what the inventory says about it.",
        "see `flannel` in the inventory";
    FLANNEL_UNREAD = "K8S-CNI-008" Warn false:
        "How Flannel is set up cannot be told, so it is left as it is.",
        "see `kubectl -n kube-flannel get configmap,daemonset`";

    LEGACY_SOURCES = "K8S-PKG-001" Fix false:
        "apt has Kubernetes sources that are gone or wrong, on which every `apt update` fails.",
        "apply moves them away; reset puts them back";
    TWIN_SOURCES = "K8S-PKG-002" Fix false:
        "The Kubernetes repository is in another apt source too, and with two keys apt reads neither.",
        "apply keeps one source and moves the others away; reset puts them back";
    OTHER_VERSION = "K8S-PKG-003" Fix false:
        "A Kubernetes package has another version than the inventory.",
        "apply installs the inventory's, a downgrade too";
    NOT_HELD = "K8S-PKG-004" Fix false:
        "Packages are not held: the next upgrade of the system would change the version of Kubernetes or of containerd.",
        "apply holds them";

    FOREIGN = "K8S-OLD-001" Refuse false:
        "The host belongs to another cluster, or has parts of one that are not this cluster's.",
        "if nothing on it is needed any more: `k8sup reset --host` it, then apply again";
    UNTOLD = "K8S-OLD-002" Refuse false:
        "It cannot be told whether the host belongs to the cluster.",
        "`k8sup status` shows what answers; nothing is changed while this is unknown";
    ETCD_FOLDER = "K8S-OLD-003" Refuse false:
        "The folder that etcd is to have is not empty, and what is in it is of unknown origin.",
        "nothing in it is deleted: look into it, move it away if nobody needs it, and apply again";

    SHADOWED = "K8S-PKG-006" Refuse true:
        "A program that k8sup installs as a package is also there by hand or from a snap, and would be run instead.",
        "remove it, or move it out of the PATH";
    MASKED = "K8S-PKG-008" Refuse false:
        "A service that the cluster needs is masked, so nobody can start it.",
        "somebody has done so on purpose: `systemctl unmask` it if that is no longer wanted";
    OTHER_PACKAGE = "K8S-PKG-007" Warn false:
        "A Kubernetes package has the wanted version, but is not of the project's own repository.",
        "`apt install --reinstall` it once the repository is set up";
    OTHER_ETCD = "K8S-OLD-005" Refuse false:
        "Another etcd is on the host, which would share ports and folder with the cluster's.",
        "give the controller a machine of its own, or remove that etcd if nobody needs it";
    OTHER_KUBERNETES = "K8S-OLD-006" Refuse true:
        "Another distribution of Kubernetes is on the host, or its remains.",
        "remove it with its own means, then run again";
    MOUNTS = "K8S-OLD-007" Refuse true:
        "Something is mounted below /var/lib/kubelet, though the host is in no cluster.",
        "unmount it: what is behind it would be in the kubelet's way, or it in its";
    STATIC_PODS = "K8S-OLD-011" Refuse false:
        "There are static pods that are not kubeadm's, and kubeadm refuses to work beside them.",
        "move them away; on a node of the cluster they may come back into /etc/kubernetes/manifests";
    KUBECONFIGS = "K8S-OLD-010" Refuse true:
        "There are kubeconfigs of kubeadm's that are of another cluster, or of one that is gone.",
        "look whether anything on the host is needed; with --allow it is cleared with `kubeadm reset`";
    HALF_MADE = "K8S-OLD-004" Fix false:
        "An init or join was ended half-way.",
        "apply clears what it left, or does what is missing, and goes on";
    OTHER_KUBECONFIG = "K8S-OLD-008" Fix false:
        "~/.kube/config of the login user is another cluster's.",
        "apply writes this cluster's and keeps a copy; reset puts it back";

    DIFFERS = "K8S-KUBE-001" Refuse false:
        "The running cluster differs from the inventory in what apply cannot change.",
        "set it in the inventory to what is, or reset and apply anew";
    KUBELET_VERSION = "K8S-KUBE-002" Refuse false:
        "A kubelet has another version than the inventory wants.",
        "apply does not upgrade yet: set cluster.kubernetes to what runs";
    CERT_SANS = "K8S-KUBE-003" Refuse false:
        "The API server's certificate lacks names or addresses that clients are to use.",
        "apply does not renew it yet: see `kubeadm init phase certs apiserver`";
    CONTROLLER_MANAGER = "K8S-KUBE-010" Warn false:
        "The controller manager has not renewed its lease for a while: nobody would sign the certificates of kubelets that join.",
        "see `kubectl -n kube-system logs` of the kube-controller-manager pods";
    LEADER_HALF_MADE = "K8S-KUBE-004" Refuse false:
        "The API server that answers is on a host that looks half made.",
        "`k8sup status` shows what the cluster makes of it";

    PI_MEMORY_CGROUP = "K8S-PI-001" Fix false:
        "On a Raspberry Pi the memory control group is off until the kernel is told otherwise.",
        "`cgroup_enable=memory cgroup_memory=1` is put at the end of cmdline.txt, and the host is rebooted, when you say so (`apply` asks, or --reboot); reset puts the line back";
    PI_CMDLINE = "K8S-PI-002" Refuse false:
        "The memory control group of a Raspberry Pi is off, and its cmdline.txt is not the one line that it must be.",
        "put the kernel's parameters on one line of the file that the firmware reads, with `cgroup_enable=memory cgroup_memory=1` at its end, and reboot";
    PI_REBOOT = "K8S-PI-003" Fix false:
        "cmdline.txt switches the memory control group on, but the running kernel was started without it.",
        "the host is rebooted, when you say so (`apply` asks, or --reboot)";
    PI_POWER = "K8S-PI-004" Warn false:
        "The board's firmware reports too little voltage or too much heat.",
        "use the board's own power supply and a short cable, and see to its cooling: writes go wrong when the voltage drops";
    NOT_PUBLISHED = "K8S-KUBE-005" Fix false:
        "kubeadm init was ended before it had published all that joins and add-ons need.",
        "apply publishes what is missing";
    STILL_LISTED = "K8S-KUBE-006" Fix false:
        "The cluster still lists a host that is not in it any more.",
        "apply removes its etcd member and its Node, then lets it join";
    OLD_CREDENTIALS = "K8S-KUBE-007" Fix false:
        "Bootstrap tokens or uploaded certificates of an earlier run are still there.",
        "apply revokes them";

    LEADER_NOT_NAMED = "K8S-PLAN-001" Refuse false:
        "--host leaves out the controller that the cluster is to be founded on.",
        "apply without --host first";
    LEFT_TO_ALL = "K8S-PLAN-002" Warn false:
        "What all hosts share differs, and --host leaves out the host that would change it.",
        "apply without --host";
    ALLOWED = "K8S-PLAN-003" Warn false:
        "A refusal was allowed.",
        "the risk is yours";
    DEFECT = "K8S-PLAN-009" Refuse false:
        "The plan is wrong.",
        "this is a defect of k8sup: please report it";
}
