//! The kubelet's own settings: flags that it does not know any more, and the server that it asks.

use std::collections::BTreeMap;

use crate::check;
use crate::cluster::{Cluster, Host, Role, Version};
use crate::facts::HostFacts;
use crate::plan::{Planned, Step};

const DEFAULTS: &str = "/etc/default/kubelet";
/// Where people put drop-ins of the kubelet's unit.
pub const DROP_INS: &str = "/etc/systemd/system/kubelet.service.d/";

/// Flags with the minor version of Kubernetes that does not know them any more: the kubelet ends with an error then.
const REMOVED: [(&str, u32); 12] = [
    ("--dynamic-config-dir", 24),
    ("--network-plugin", 24),
    ("--network-plugin-mtu", 24),
    ("--cni-bin-dir", 24),
    ("--cni-conf-dir", 24),
    ("--cni-cache-dir", 24),
    ("--docker-endpoint", 24),
    ("--image-pull-progress-deadline", 24),
    ("--experimental-dockershim-root-directory", 24),
    ("--non-masquerade-cidr", 24),
    ("--container-runtime", 27),
    ("--pod-infra-container-image", 35),
];

/// The step that takes such flags out of the files that people put them into.
#[must_use]
pub fn flags(cluster: &Cluster, facts: &HostFacts) -> Option<Planned> {
    let mut files = BTreeMap::new();
    let mut reasons = Vec::new();
    let named = facts
        .files
        .iter()
        .filter(|(path, _)| *path == DEFAULTS || path.starts_with(DROP_INS));
    for (path, file) in named {
        let (text, gone) = without_removed(&file.content, &cluster.version);
        if !gone.is_empty() {
            reasons.push(format!("{path} gives the kubelet {}", gone.join(", ")));
            files.insert(path.clone(), text);
        }
    }
    if files.is_empty() {
        return None;
    }
    let why = format!("{}, unknown to {}", reasons.join("; "), cluster.version);
    let mut planned = Planned::new(Step::KubeletFlags { files: files.clone() }, why.clone())
        .fixes([check::KUBELET_FLAGS.at_large(why)]);
    for (path, text) in &files {
        let before = facts.files.get(path).map(|file| file.content.as_str());
        planned = planned.changes(path, before, Some(text));
    }
    Some(planned)
}

/// The text without flags that this version does not know, and which those were. Comments stay as they are.
fn without_removed(text: &str, version: &Version) -> (String, Vec<&'static str>) {
    let mut gone = Vec::new();
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let mut line = line.to_owned();
        if !line.trim_start().starts_with('#') {
            for (flag, _) in REMOVED.iter().filter(|(_, since)| version.minor >= *since) {
                while let Some((from, to)) = place(&line, flag) {
                    line.replace_range(from..to, "");
                    if !gone.contains(flag) {
                        gone.push(*flag);
                    }
                }
            }
        }
        out += &line;
    }
    (out, gone)
}

/// Where a flag stands in a line, with its value and the blank before or behind it.
fn place(line: &str, flag: &str) -> Option<(usize, usize)> {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'');
    for (from, _) in line.match_indices(flag) {
        let before = line[..from].chars().next_back();
        if before.is_some_and(|c| !ends(c) && c != '=') {
            continue;
        }
        let rest = &line[from + flag.len()..];
        let length = |text: &str| text.find(ends).unwrap_or(text.len());
        let mut to = from + flag.len();
        if rest.starts_with('=') {
            to += length(rest);
        } else if let Some(value) = rest.strip_prefix(' ') {
            if !value.starts_with(|c: char| c == '-' || ends(c)) {
                to += 1 + length(value);
            }
        } else if !rest.is_empty() && !rest.starts_with(ends) {
            // Another flag that begins alike.
            continue;
        }
        let blank_before = before == Some(' ');
        if line[to..].starts_with(' ') {
            to += 1;
            return Some((from, to));
        }
        return Some((if blank_before { from - 1 } else { from }, to));
    }
    None
}

/// The step that leads a member's kubelet back to its cluster. A controller's may ask its own API server (as kubeadm sets
/// it up from 1.33 on) or the endpoint (as it was before).
#[must_use]
pub fn server(cluster: &Cluster, this: &Host, facts: &HostFacts) -> Option<Planned> {
    let is = &facts.kube.kubeconfigs.get("kubelet")?.server;
    let endpoint = format!("https://{}", cluster.endpoint);
    let own = format!("https://{}:6443", this.address);
    let controller = this.role == Role::Controller;
    if is.is_empty() || *is == endpoint || controller && *is == own {
        return None;
    }
    let local = cluster.version.minor >= 33 && controller;
    let server = if local { own } else { endpoint };
    let why = format!("/etc/kubernetes/kubelet.conf leads to {is}");
    let step = Step::KubeletServer { server };
    Some(Planned::new(step, why.clone()).fixes([check::KUBELET_SERVER.at_large(why)]))
}

#[cfg(test)]
mod tests {
    use super::without_removed;
    use crate::cluster::Version;

    #[test]
    fn flags_go_where_the_version_does_not_know_them() {
        let (old, new) = (Version::parse("v1.34.4").unwrap(), Version::parse("v1.35.0").unwrap());
        let pause = "KUBELET_EXTRA_ARGS=--pod-infra-container-image=registry/pause:3.9\n";
        for (version, text, expected) in [
            (&old, pause, pause),
            (&new, pause, "KUBELET_EXTRA_ARGS=\n"),
            (
                &old,
                "KUBELET_EXTRA_ARGS=\"--container-runtime=remote --v=2\"\n",
                "KUBELET_EXTRA_ARGS=\"--v=2\"\n",
            ),
            (
                &old,
                "KUBELET_EXTRA_ARGS=--v=2 --network-plugin cni --container-runtime remote",
                "KUBELET_EXTRA_ARGS=--v=2",
            ),
            (
                &old,
                "A=\"--container-runtime-endpoint=unix:///run/x --network-plugin\"\n",
                "A=\"--container-runtime-endpoint=unix:///run/x\"\n",
            ),
            (&old, "# --network-plugin=cni\n", "# --network-plugin=cni\n"),
        ] {
            let (found, gone) = without_removed(text, version);
            assert_eq!(found, expected);
            assert_eq!(gone.is_empty(), text == expected, "{text}");
        }
    }
}
