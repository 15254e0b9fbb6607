//! Swap in all its forms: what is active now, and what would come back at boot.

use std::collections::{BTreeMap, BTreeSet};

use super::super::SwapFacts;

/// Names of the areas in /proc/swaps.
pub(super) fn active(text: &str) -> Vec<String> {
    text.lines()
        .skip(1)
        .filter_map(|line| Some(line.split_whitespace().next()?.to_owned()))
        .collect()
}

/// Unit files of swap, as the probe lists them.
#[derive(Debug, Default)]
pub(super) struct Units {
    masked: BTreeSet<String>,
    wanted: BTreeSet<String>,
    present: BTreeSet<String>,
}

/// Reads lines of `PATH -> LINK TARGET`.
pub(super) fn units(text: &str) -> Units {
    let mut units = Units::default();
    for line in text.lines() {
        let Some((path, target)) = line.split_once(" ->") else {
            continue;
        };
        let Some((directory, name)) = path.rsplit_once('/') else {
            continue;
        };
        let name = name.to_owned();
        if target.trim() == "/dev/null" {
            units.masked.insert(name);
            continue;
        }
        match directory.rsplit_once('.') {
            Some((_, "wants" | "requires")) => units.wanted.insert(name),
            // Drop-ins.
            Some((_, "d")) => continue,
            _ => units.present.insert(name),
        };
    }
    units
}

/// Puts the forms together: `sources` tells which generated units come from fstab or the zram generator.
pub(super) fn swap(active: Vec<String>, units: &Units, sources: &str, makers: &str, zram: &str) -> SwapFacts {
    let generated: BTreeSet<&str> = sources
        .lines()
        .filter_map(|line| line.split_once(' ')?.1.rsplit_once('/').map(|(_, name)| name))
        .collect();
    let starts = |name: &&String| {
        units.wanted.contains(*name) && !units.masked.contains(*name) && !generated.contains(name.as_str())
    };
    SwapFacts {
        active,
        units: units.present.iter().filter(starts).cloned().collect(),
        makers: enabled(makers),
        zram_generator: zram_devices(zram)
            .iter()
            .any(|device| !units.masked.contains(&format!("dev-{device}.swap"))),
    }
}

/// Names of enabled units in the output of `systemctl list-unit-files`.
fn enabled(text: &str) -> Vec<String> {
    let mut names: Vec<String> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let name = words.next()?;
            matches!(words.next()?, "enabled" | "generated").then(|| name.to_owned())
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Devices that the zram generator would make swap of. Its files are printed as `file PATH` and lines after `> `; the
/// directories come in their order of precedence, drop-ins of the same name hide each other, as does an empty file.
fn zram_devices(text: &str) -> Vec<String> {
    if !text.lines().any(|line| line.starts_with("generator ")) {
        return Vec::new();
    }
    let mut main: Option<Vec<&str>> = None;
    let mut drop_ins: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut files: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("file ") {
            files.push((path, Vec::new()));
        } else if let (Some(content), Some((_, lines))) = (line.strip_prefix("> "), files.last_mut()) {
            lines.push(content.trim());
        }
    }
    for (path, lines) in files {
        let name = path.rsplit('/').next().unwrap_or(path);
        if path.contains(".conf.d/") {
            drop_ins.entry(name).or_insert(lines);
        } else {
            main.get_or_insert(lines);
        }
    }
    let mut devices: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for lines in main.iter().chain(drop_ins.values()) {
        let mut section = None;
        for line in lines {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name.starts_with("zram").then_some(name);
                if let Some(name) = section {
                    devices.entry(name).or_default();
                }
            } else if let (Some(name), Some((key, value))) = (section, line.split_once('=')) {
                devices.entry(name).or_default().insert(key.trim(), value.trim());
            }
        }
    }
    let makes_swap = |settings: &BTreeMap<&str, &str>| {
        !matches!(settings.get("host-memory-limit"), Some(&"0"))
            && !matches!(settings.get("zram-size"), Some(&"0"))
            && !settings.contains_key("mount-point")
            && matches!(settings.get("fs-type"), None | Some(&"swap"))
    };
    devices
        .into_iter()
        .filter(|(_, settings)| makes_swap(settings))
        .map(|(name, _)| name.to_owned())
        .collect()
}
