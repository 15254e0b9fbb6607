//! Sections about kernel, disks, board and clock made into [`Platform`].

use std::collections::BTreeMap;

use super::super::Seen;
use super::super::platform::{Board, Disk, Fdatasync, KernelModules, Platform, SysctlLine};
use super::Sections;

/// Puts the sections together. None of them is needed for a host to be understood.
pub(super) fn platform(sections: &Sections) -> Platform {
    let text = |name: &str| sections.get(name).present().copied().unwrap_or_default();
    let running: Vec<&str> = text("running").lines().map(str::trim).collect();
    let measured = sections.get("measured");
    Platform {
        cmdline: text("cmdline").trim().to_owned(),
        modules: seen(sections.get("available-modules"), |text| Some(modules(text))),
        kernel_config: seen(sections.get("kernel-config"), |text| Some(text.trim().to_owned())),
        sysctl_lines: sysctl_lines(text("sysctl-files")),
        disks: seen(sections.get("disks"), |text| Some(disks(text))),
        board: board(text("board")),
        // A probe that did not look is no proof.
        without_systemd: sections.get("running").present().is_some() && !running.contains(&"systemd"),
        reboot_required: running.contains(&"reboot-required"),
        container: running
            .iter()
            .find_map(|line| line.strip_prefix("container "))
            .map(str::to_owned),
        clock_unsynchronised: seen(measured.clone(), |text| unsynchronised(text, &running)),
        fdatasync: seen(measured, fdatasync),
        available_kib: available(text("meminfo")),
        swap_used_kib: swap_used(text("swaps")),
    }
}

/// What a section says; absent where it does not speak of it.
fn seen<T>(section: Seen<&str>, parse: impl FnOnce(&str) -> Option<T>) -> Seen<T> {
    match section {
        Seen::Present(text) => parse(text).map_or(Seen::Absent, Seen::Present),
        Seen::Absent => Seen::Absent,
        Seen::Unknown(reason) => Seen::Unknown(reason),
    }
}

/// Lines `installed 6.12.25+rpt-rpi-v8` and `/vxlan.ko`.
fn modules(text: &str) -> KernelModules {
    let mut modules = KernelModules::default();
    for line in text.lines().map(str::trim) {
        if let Some(kernel) = line.strip_prefix("installed ") {
            modules.kernels.insert(kernel.to_owned());
        } else if let Some(name) = line.strip_prefix('/').and_then(|line| line.strip_suffix(".ko")) {
            modules.available.insert(name.to_owned());
        }
    }
    modules
}

/// Lines `/etc/sysctl.d/99-own.conf:net.ipv4.ip_forward=0`; a slash may stand for the dot, a minus before the key.
fn sysctl_lines(text: &str) -> Vec<SysctlLine> {
    let line = |line: &str| {
        let (path, setting) = line.split_once(':')?;
        let (key, value) = setting.split_once('=')?;
        Some(SysctlLine {
            path: path.to_owned(),
            key: key.trim().trim_start_matches('-').trim().replace('/', "."),
            value: value.trim().to_owned(),
        })
    };
    text.lines().filter_map(line).collect()
}

/// `df --output=file,target,source,fstype,size,avail,itotal,iavail`.
fn disks(text: &str) -> BTreeMap<String, Disk> {
    let disk = |line: &str| {
        let mut words = line.split_whitespace();
        let mut word = || words.next().map(str::to_owned);
        let (path, mount, device, kind) = (word()?, word()?, word()?, word()?);
        let mut number = || words.next().map(|word| word.parse().unwrap_or_default());
        Some((
            path,
            Disk {
                mount,
                device,
                kind,
                size_kib: number()?,
                free_kib: number()?,
                inodes: number()?,
                free_inodes: number()?,
            },
        ))
    };
    text.lines().skip(1).filter_map(disk).collect()
}

fn board(text: &str) -> Board {
    let mut board = Board::default();
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("model", model)) => model.trim().clone_into(&mut board.model),
            Some(("throttled", bits)) => {
                let bits = bits.trim().trim_start_matches("0x");
                board.throttled = u32::from_str_radix(bits, 16).unwrap_or_default();
            }
            Some(("undervoltage", alarm)) => board.undervoltage |= alarm.trim() == "1",
            Some(("block", rest)) => {
                if let Some((name, kind)) = rest.split_once(' ') {
                    board.cards.insert(name.to_owned(), kind.trim().to_owned());
                }
            }
            _ => {}
        }
    }
    board
}

/// timesyncd says so by a file, too: then nobody asks the kernel.
fn unsynchronised(text: &str, running: &[&str]) -> Option<bool> {
    let flag = text
        .lines()
        .find_map(|line| Some(line.strip_prefix("unsynchronised ")?.trim() == "1"))?;
    Some(flag && !running.contains(&"synchronized"))
}

/// `fdatasync /var/lib samples 100 p99 3.986 ms`.
fn fdatasync(text: &str) -> Option<Fdatasync> {
    let line = text.lines().find_map(|line| line.strip_prefix("fdatasync "))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [folder, "samples", samples, "p99", p99, "ms"] => Some(Fdatasync {
            folder: folder.to_owned(),
            samples: samples.parse().ok()?,
            p99_ms: p99.parse().ok()?,
        }),
        _ => None,
    }
}

fn available(meminfo: &str) -> u64 {
    let value = |line: &str| {
        line.strip_prefix("MemAvailable:")?
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    };
    meminfo.lines().find_map(value).unwrap_or_default()
}

/// The fourth column of /proc/swaps.
fn swap_used(text: &str) -> u64 {
    let used = |line: &str| line.split_whitespace().nth(3)?.parse::<u64>().ok();
    text.lines().skip(1).filter_map(used).sum()
}
