//! What stands below everything else on a host: kernel, disks, board, clock, and how the system runs.

use std::collections::{BTreeMap, BTreeSet};

use super::Seen;

/// The ground that a host stands on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Platform {
    /// /proc/cmdline.
    pub cmdline: String,
    /// What the kernel can load; unknown on hosts that are in a cluster.
    pub modules: Seen<KernelModules>,
    /// Where the kernel's configuration can be read.
    pub kernel_config: Seen<String>,
    /// Lines of sysctl files that are read at boot, about what k8sup sets, too.
    pub sysctl_lines: Vec<SysctlLine>,
    /// File systems by the folders on them; unknown on hosts that are in a cluster.
    pub disks: Seen<BTreeMap<String, Disk>>,
    /// A single-board computer.
    pub board: Board,
    /// systemd is not the first process.
    pub without_systemd: bool,
    /// An upgrade waits for a reboot.
    pub reboot_required: bool,
    /// The host is a container of this kind.
    pub container: Option<String>,
    /// The kernel does not know its clock to be right; unknown on hosts that are in a cluster.
    pub clock_unsynchronised: Seen<bool>,
    /// How long the disk of etcd's data takes to have something for good; absent where it was not measured.
    pub fdatasync: Seen<Fdatasync>,
    /// `MemAvailable` in KiB; 0 where the kernel does not say.
    pub available_kib: u64,
    /// Swap that is in use, in KiB.
    pub swap_used_kib: u64,
}

/// What a kernel can load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelModules {
    /// Kernels that have modules on the disk.
    pub kernels: BTreeSet<String>,
    /// Of the modules that k8sup cares about, those that the running kernel has.
    pub available: BTreeSet<String>,
}

/// A setting in a sysctl file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SysctlLine {
    /// The file.
    pub path: String,
    /// `net.ipv4.ip_forward`.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// A file system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disk {
    /// Where it is mounted.
    pub mount: String,
    /// `/dev/mmcblk0p2`.
    pub device: String,
    /// `ext4`.
    pub kind: String,
    /// Its size in KiB.
    pub size_kib: u64,
    /// What is free of it.
    pub free_kib: u64,
    /// Its inodes; 0 where it has no fixed number.
    pub inodes: u64,
    /// What is free of them.
    pub free_inodes: u64,
}

/// A single-board computer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Board {
    /// `Raspberry Pi 4 Model B Rev 1.4`; empty elsewhere.
    pub model: String,
    /// The firmware's bits about power and heat: 0 to 3 now, 16 to 19 since boot.
    pub throttled: u32,
    /// The sensor says that the voltage is too low.
    pub undervoltage: bool,
    /// Kinds of block devices on the memory card bus by name: `mmcblk0` is `SD` or `MMC`.
    pub cards: BTreeMap<String, String>,
}

impl Board {
    /// A Raspberry Pi.
    #[must_use]
    pub fn is_raspberry_pi(&self) -> bool {
        self.model.starts_with("Raspberry Pi")
    }
}

/// A measurement of a disk.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fdatasync {
    /// The folder that was written to.
    pub folder: String,
    /// How often.
    pub samples: u32,
    /// Milliseconds within which 99 of 100 were done.
    pub p99_ms: f64,
}
