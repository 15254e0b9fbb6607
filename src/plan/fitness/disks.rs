//! Disks: room for images and data, and whether etcd's is fast enough.

use std::collections::BTreeMap;

use crate::check::{self, Finding};
use crate::cluster::Role;
use crate::facts::platform::Disk;
use crate::facts::{HostFacts, Seen};
use crate::plan::apply::Member;

/// What etcd's documentation wants of its disk: 99 of 100 writes for good within so many milliseconds
/// (etcd.io, "Hardware recommendations" and "Metrics": `wal_fsync_duration_seconds`).
const ETCD_MS: f64 = 10.0;
/// Below this share of free inodes the kubelet evicts pods.
const INODES_PERCENT: u64 = 5;

/// Below this share of free space the kubelet deletes images.
const PRESSURE_PERCENT: u64 = 15;

/// Folders on a file system of their own, and what a node of this kind needs there in MB. What is on the same file
/// system is needed together.
fn needs(controller: bool) -> [(&'static str, u64); 4] {
    [
        // Images of the control plane take about 1 GB unpacked, those of a worker half of that, and pods want to write.
        ("/var/lib/containerd", if controller { 2560 } else { 2048 }),
        ("/var/lib/kubelet", if controller { 512 } else { 1024 }),
        ("/var/lib/etcd", if controller { 1024 } else { 0 }),
        ("/var/lib", 0),
    ]
}

/// What stands in the way of a node that is to come.
pub(super) fn too_small(part: &Member<'_>) -> Vec<Finding> {
    let (name, facts) = (&part.host.name, part.facts);
    let controller = part.host.role == Role::Controller;
    let Seen::Present(disks) = &facts.platform.disks else {
        return room_in_var_lib(part);
    };
    // A folder that is not there yet will lie where /var/lib does.
    let disk_of = |folder: &str| disks.get(folder).or_else(|| disks.get("/var/lib"));
    let mut wanted: BTreeMap<&str, (&Disk, u64, Vec<&str>)> = BTreeMap::new();
    for (folder, megabytes) in needs(controller) {
        if let Some(disk) = disk_of(folder) {
            let entry = wanted.entry(disk.mount.as_str()).or_insert((disk, 0, Vec::new()));
            entry.1 += megabytes;
            entry.2.push(folder);
        }
    }
    let mut found = Vec::new();
    for (mount, (disk, needed, folders)) in &wanted {
        let free = disk.free_kib / 1024;
        let place = if folders.contains(&"/var/lib") {
            "/var/lib"
        } else {
            mount
        };
        let evidence = format!(
            "df: {} on {mount} ({}), {free} of {} MB free",
            disk.device,
            disk.kind,
            disk.size_kib / 1024
        );
        if free < *needed {
            let message = format!("{free} MB are free in {place}, a {} needs {needed} MB", part.host.role);
            found.push(check::DISK.on(name, message).evidence(evidence));
        } else if disk.size_kib > 0 && disk.free_kib * 100 / disk.size_kib < PRESSURE_PERCENT {
            let share = disk.free_kib * 100 / disk.size_kib;
            let message = format!("only {share} % of {place} are free");
            found.push(check::DISK_PRESSURE.on(name, message).evidence(evidence));
        }
        // Some file systems make inodes as they need them, and say 0.
        if disk.inodes > 0 && disk.free_inodes * 100 / disk.inodes < INODES_PERCENT {
            let message = format!("{} of {} inodes are free in {place}", disk.free_inodes, disk.inodes);
            let evidence = format!("df -i: {} on {mount}", disk.device);
            found.push(check::INODES.on(name, message).evidence(evidence));
        }
    }
    found
}

/// Where nobody could look at the file systems one by one.
fn room_in_var_lib(part: &Member<'_>) -> Vec<Finding> {
    let needed: u64 = needs(part.host.role == Role::Controller)
        .iter()
        .map(|(_, megabytes)| megabytes)
        .sum();
    let free = part.facts.free_kib / 1024;
    if free >= needed {
        return Vec::new();
    }
    let message = format!("{free} MB are free in /var/lib, a {} needs {needed} MB", part.host.role);
    vec![check::DISK.on(&part.host.name, message)]
}

/// What etcd is to write to, on a controller that is to come.
pub(super) fn etcds(part: &Member<'_>) -> Vec<Finding> {
    let (name, facts) = (&part.host.name, part.facts);
    let mut found = Vec::new();
    if part.host.role != Role::Controller {
        return found;
    }
    let card = sd_card(facts);
    if let Seen::Present(measured) = &facts.platform.fdatasync
        && measured.p99_ms > ETCD_MS
    {
        let what = match card {
            Some(_) => "the SD card".to_owned(),
            None => format!("the disk of {}", measured.folder),
        };
        let message = format!(
            "{what} takes {:.0} ms (99 of 100 writes) to have something for good; etcd wants {ETCD_MS:.0} ms or less, \
             says its documentation",
            measured.p99_ms
        );
        let evidence = format!(
            "fdatasync in {}: p99 of {} is {:.1} ms",
            measured.folder, measured.samples, measured.p99_ms
        );
        found.push(check::SLOW_DISK.on(name, message).evidence(evidence));
    }
    if let Some((device, mount)) = card {
        let message = format!("etcd's data is to lie on an SD card ({device})");
        found.push(
            check::SD_CARD
                .on(name, message)
                .evidence(format!("{device} on {mount}")),
        );
    }
    found
}

/// The SD card that holds etcd's folder, and where it is mounted. An eMMC calls itself MMC.
fn sd_card(facts: &HostFacts) -> Option<(&str, &str)> {
    let disks = facts.platform.disks.present()?;
    let disk = disks.get("/var/lib/etcd").or_else(|| disks.get("/var/lib"))?;
    let block = disk.device.strip_prefix("/dev/")?;
    let card = |(name, kind): &(&String, &String)| *kind == "SD" && block.starts_with(name.as_str());
    facts.platform.board.cards.iter().find(card)?;
    Some((disk.device.as_str(), disk.mount.as_str()))
}
