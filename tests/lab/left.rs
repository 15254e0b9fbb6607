//! What `reset` may leave on a host, each with its reason: the README quotes these.

use std::collections::BTreeSet;

/// What was done before the hosts are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// `reset`: the packages stay.
    Reset,
    /// `reset --purge`.
    Purge,
}
use After::{Purge, Reset};

/// Lines of a snapshot that may come (`+`) or change (both signs), and why. `…` stands for anything.
/// The files of packages that stay are not listed here: the packages' own lists say which they are.
pub(crate) const LEFT: &[(&[After], &str, &str)] = &[
    (
        &[Reset],
        "package … install ok installed",
        "packages stay, so that the next apply is quick; --purge removes them",
    ),
    (
        &[Reset],
        "file /var/lib/k8sup…",
        "the names of the packages that came with k8sup, for a later --purge",
    ),
    (
        &[Reset],
        "+ unit containerd.service enabled",
        "the package starts its service at boot",
    ),
    (
        &[Reset],
        "+ unit haproxy.service enabled",
        "the package starts its service at boot",
    ),
    (
        &[Reset],
        "+ unit kubelet.service disabled",
        "the package brings the unit",
    ),
    (
        &[Reset],
        "file /etc/systemd/system/….wants/containerd.service …",
        "the package starts its service at boot",
    ),
    (
        &[Reset],
        "file /etc/systemd/system/….wants/haproxy.service …",
        "the package starts its service at boot",
    ),
    (&[Reset], "+ file /etc/alternatives/…", "the packages' alternatives"),
    (
        &[Reset],
        "file /etc/rc….d/…haproxy …",
        "the package's links for System V",
    ),
    (
        &[Reset],
        "service containerd.service active running",
        "containerd goes on, with the configuration from before",
    ),
    (
        &[Reset],
        "port tcp 127.0.0.1:… containerd",
        "containerd's streaming port",
    ),
    (
        &[Reset],
        "file /var/lib/containerd…",
        "containerd's own data, with the images that were pulled",
    ),
    (&[Reset], "+ file /opt/containerd…", "containerd's own folders"),
    (&[Reset], "+ file /etc/cni d …", "made by containerd; empty"),
    (&[Reset], "+ file /etc/cni/net.d d …", "made by containerd; empty"),
    (&[Reset], "+ run /run/containerd…", "containerd's sockets"),
    (&[Reset], "+ run /run/nri…", "containerd's sockets"),
    (
        &[Reset],
        "file /var/lib/haproxy/dev/log …",
        "haproxy's mount point for its log socket",
    ),
    (
        &[Reset, Purge],
        "run /run/haproxy…",
        "left by haproxy when it is stopped, gone with the next boot",
    ),
    (
        &[Reset, Purge],
        "run /run/netns d …",
        "an empty folder of ip netns, gone with the next boot",
    ),
    (
        &[Reset, Purge],
        "run /run/xtables.lock …",
        "the lock of iptables, gone with the next boot",
    ),
    (
        &[Reset],
        "rule ip…tables-nft *…",
        "tables that are empty now: the kernel keeps them",
    ),
    (
        &[Reset],
        "rule ip…tables-nft :… ACCEPT ",
        "their built-in chains, empty and accepting",
    ),
    (&[Reset], "+ rule ip…tables-nft COMMIT", "the end of such a table"),
    (
        &[Reset, Purge],
        "sysctl net.netfilter.nf_conntrack_tcp_timeout_…",
        "kube-proxy sets them until the next boot",
    ),
    (
        &[Reset, Purge],
        "+ file /etc/firewalld/zones/public.xml…",
        "firewalld's own copy of the zone that was opened, with nothing of k8sup's in it",
    ),
    (
        &[Reset, Purge],
        "file /etc/passwd …",
        "Debian keeps the users of removed packages (haproxy)",
    ),
    (
        &[Reset, Purge],
        "file /etc/group …",
        "Debian keeps the groups of removed packages (haproxy)",
    ),
    (
        &[Reset, Purge],
        "file /etc/shadow …",
        "Debian keeps the users of removed packages (haproxy)",
    ),
    (
        &[Reset, Purge],
        "file /etc/gshadow …",
        "Debian keeps the groups of removed packages (haproxy)",
    ),
];

/// Differences between two snapshots of a host that nobody has accounted for.
pub(crate) fn unexplained(
    before: &BTreeSet<String>,
    now: &BTreeSet<String>,
    after: After,
    packaged: &BTreeSet<String>,
) -> Vec<String> {
    // A pattern without a sign holds for both.
    let documented = |line: &str| {
        LEFT.iter().any(|(when, pattern, _)| {
            let about = if pattern.starts_with("+ ") { line } else { &line[2..] };
            when.contains(&after) && matches(pattern, about)
        })
    };
    let of_package = |line: &str| {
        let path = line.strip_prefix("+ file ").and_then(|rest| rest.split(' ').next());
        path.is_some_and(|path| packaged.contains(path))
    };
    let gone = before.difference(now).map(|line| format!("- {line}"));
    let new = now.difference(before).map(|line| format!("+ {line}"));
    gone.chain(new)
        .filter(|line| !documented(line) && !of_package(line))
        .collect()
}

fn matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[test]
fn patterns_match_whole_lines() {
    for (pattern, line, right) in [
        ("link cni0", "link cni0", true),
        ("link cni0", "link cni01", false),
        ("file /etc/…", "file /etc/x f 644", true),
        ("file … f 644…", "file /etc/x f 644 root", true),
        ("file …x d…", "file /etc/y d 755", false),
        ("a…aa", "aa", false),
    ] {
        assert_eq!(matches(pattern, line), right, "{pattern} {line}");
    }
}
