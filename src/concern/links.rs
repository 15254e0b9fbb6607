//! Links of pods: who on the host must keep their hands off them.

use std::collections::BTreeMap;

use crate::check;
use crate::cluster::Cluster;
use crate::facts::HostFacts;
use crate::plan::{Planned, Step};

/// Tells `NetworkManager` what is not its own.
pub const NETWORK_MANAGER: &str = "/etc/NetworkManager/conf.d/k8sup.conf";
/// Tells systemd-udevd to leave Flannel's MAC addresses alone.
pub const LINK: &str = "/etc/systemd/network/50-k8sup-flannel.link";

/// The step that tells `NetworkManager` and systemd-udevd, where they run, to leave the links of pods alone.
#[must_use]
pub fn steps(cluster: &Cluster, facts: &HostFacts) -> Option<Planned> {
    let runs = |unit: &str| facts.services.get(unit).is_some_and(|service| service.active);
    let content = |path: &str| facts.files.get(path).map(|file| file.content.as_str());
    let mut files = BTreeMap::new();
    let mut found = Vec::new();
    if runs("NetworkManager") && content(NETWORK_MANAGER) != Some(NETWORK_MANAGER_TEXT) {
        found.push(check::NETWORK_MANAGER.at_large("NetworkManager would manage the links of pods"));
        files.insert(NETWORK_MANAGER.to_owned(), NETWORK_MANAGER_TEXT.to_owned());
    }
    if cluster.flannel.backend == "vxlan" && runs("systemd-udevd") && content(LINK) != Some(LINK_TEXT) {
        found.push(check::MAC_POLICY.at_large("systemd-udevd may change the MAC address of Flannel's link"));
        files.insert(LINK.to_owned(), LINK_TEXT.to_owned());
    }
    if files.is_empty() {
        return None;
    }
    let why: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
    let mut planned = Planned::new(Step::LinkSettings { files: files.clone() }, why.join("; ")).fixes(found);
    for (path, text) in &files {
        planned = planned.changes(path, content(path), Some(text));
    }
    Some(planned)
}

const NETWORK_MANAGER_TEXT: &str = "# managed by k8sup
[keyfile]
unmanaged-devices+=interface-name:cni*;interface-name:flannel*;interface-name:veth*
";
const LINK_TEXT: &str = "# managed by k8sup
[Match]
OriginalName=flannel*

[Link]
MACAddressPolicy=none
";
