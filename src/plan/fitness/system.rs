//! The operating system: which one it is, and whether it runs as a host of a cluster must.

use std::cmp::Ordering;

use crate::check::{self, Finding};
use crate::cluster::Role;
use crate::facts::OsRelease;
use crate::plan::apply::Member;

/// Releases that are known, oldest first.
const DEBIAN: [u32; 2] = [12, 13];
/// Those of Ubuntu, with long support, as year and month.
const UBUNTU: [(u32, u32); 3] = [(22, 4), (24, 4), (26, 4)];

/// The host is to be set up: as a node, or as a load balancer that k8sup has not touched yet.
fn comes(part: &Member<'_>) -> bool {
    part.comes() || part.host.role == Role::LoadBalancer && part.facts.record.present().is_none()
}

/// What the system must be before anything is put on it.
pub(super) fn unfit(part: &Member<'_>) -> Vec<Finding> {
    let (name, facts) = (&part.host.name, part.facts);
    let mut found = Vec::new();
    if !comes(part) {
        return found;
    }
    let os = &facts.os;
    match known(os) {
        Known::Well => {}
        Known::Untried => {
            let message = format!("{} has not been tried", pretty(os));
            found.push(check::OS_UNTRIED.on(name, message));
        }
        Known::Not(hint) => {
            let message = format!("{} is not supported", pretty(os));
            let evidence = format!("ID={} VERSION_ID={}", os.id, os.version_id);
            let hint = format!("{}. {hint}", check::OS_UNSUPPORTED.advice);
            found.push(check::OS_UNSUPPORTED.on(name, message).evidence(evidence).hint(hint));
        }
    }
    let platform = &facts.platform;
    if platform.without_systemd {
        let message = "systemd does not run as its first process";
        found.push(
            check::SYSTEMD
                .on(name, message)
                .evidence("there is no /run/systemd/system"),
        );
    }
    let overlay =
        |word: &&str| *word == "boot=overlay" || word.starts_with("overlayroot=") && *word != "overlayroot=disabled";
    if let Some(word) = platform.cmdline.split_whitespace().find(overlay) {
        let message = "its root file system forgets every change at the next boot";
        found.push(
            check::OVERLAY_ROOT
                .on(name, message)
                .evidence(format!("/proc/cmdline: {word}")),
        );
    }
    if platform.reboot_required {
        let message = "an upgrade waits for a reboot";
        found.push(check::REBOOT_WAITS.on(name, message).evidence("/run/reboot-required"));
    }
    found
}

fn pretty(os: &OsRelease) -> &str {
    match (os.pretty.as_str(), os.id.as_str()) {
        ("", "") => "a system without /etc/os-release",
        ("", id) => id,
        (pretty, _) => pretty,
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Known {
    Well,
    Untried,
    /// And what would be needed.
    Not(&'static str),
}

const TOO_OLD: &str = "This release is too old: its containerd, systemd and kernel lack what Kubernetes needs";
const DERIVED: &str = "It is derived from Debian, and has apt; whether its packages are Debian's nobody has tried";
const OTHER: &str =
    "k8sup would need its package manager, its names of packages, and what it guards with (SELinux, firewalld)";

/// Raspberry Pi OS calls itself Debian, too, where it has 64 bits.
fn known(os: &OsRelease) -> Known {
    match os.id.as_str() {
        "debian" | "raspbian" => match os.version_id.split('.').next().unwrap_or_default().parse::<u32>() {
            Ok(release) => rank(&DEBIAN, &release),
            // Testing and unstable have no number.
            Err(_) => Known::Untried,
        },
        "ubuntu" => match os
            .version_id
            .split_once('.')
            .map(|(year, month)| (year.parse(), month.parse()))
        {
            Some((Ok(year), Ok(month))) => rank(&UBUNTU, &(year, month)),
            _ => Known::Untried,
        },
        _ if os.id_like.iter().any(|like| like == "debian" || like == "ubuntu") => Known::Not(DERIVED),
        _ => Known::Not(OTHER),
    }
}

fn rank<T: Ord>(releases: &[T], release: &T) -> Known {
    match releases.first().map(|oldest| release.cmp(oldest)) {
        Some(Ordering::Less) | None => Known::Not(TOO_OLD),
        Some(_) if releases.contains(release) => Known::Well,
        Some(_) => Known::Untried,
    }
}

#[cfg(test)]
mod tests {
    use super::{DERIVED, Known, OTHER, TOO_OLD, known};
    use crate::facts::OsRelease;

    #[test]
    fn systems_are_known_tried_or_neither() {
        let os = |id: &str, version: &str, like: &str| OsRelease {
            id: id.to_owned(),
            version_id: version.to_owned(),
            id_like: like.split_whitespace().map(str::to_owned).collect(),
            ..OsRelease::default()
        };
        for (id, version, like, expected) in [
            ("debian", "12", "", Known::Well),
            ("debian", "13", "", Known::Well),
            ("debian", "11", "", Known::Not(TOO_OLD)),
            ("debian", "14", "", Known::Untried),
            ("debian", "", "", Known::Untried),
            ("raspbian", "12", "debian", Known::Well),
            ("ubuntu", "22.04", "debian", Known::Well),
            ("ubuntu", "24.04", "debian", Known::Well),
            ("ubuntu", "26.04", "debian", Known::Well),
            ("ubuntu", "25.10", "debian", Known::Untried),
            ("ubuntu", "26.10", "debian", Known::Untried),
            ("ubuntu", "20.04", "debian", Known::Not(TOO_OLD)),
            ("linuxmint", "22.1", "ubuntu debian", Known::Not(DERIVED)),
            ("kali", "2026.1", "debian", Known::Not(DERIVED)),
            ("rocky", "9.5", "rhel centos fedora", Known::Not(OTHER)),
            ("alpine", "3.22", "", Known::Not(OTHER)),
            ("", "", "", Known::Not(OTHER)),
        ] {
            assert_eq!(known(&os(id, version, like)), expected, "{id} {version}");
        }
    }
}
