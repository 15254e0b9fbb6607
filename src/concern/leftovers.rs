//! What earlier clusters and other tools left in the way of pods: CNI configuration, links, rules, leases.

use std::path::Path;

use crate::check;
use crate::facts::HostFacts;
use crate::plan::reset::{FLANNEL_CNI, is_ours};
use crate::plan::step::ClearStep;
use crate::plan::{Planned, Step};

const CNI: &str = "/etc/cni/net.d/";
/// Of these a container runtime takes the first, by its name.
const ENDINGS: [&str; 3] = ["conf", "conflist", "json"];

/// The step that clears them from a host that is to join.
#[must_use]
pub fn steps(facts: &HostFacts) -> Option<Planned> {
    let configs = facts.kube.files.iter().filter(|file| {
        let ending = Path::new(file).extension().and_then(|ending| ending.to_str());
        file.starts_with(CNI) && ending.is_some_and(|ending| ENDINGS.contains(&ending))
    });
    let (stale, aside): (Vec<_>, Vec<_>) = configs.cloned().partition(|file| file == FLANNEL_CNI);
    let links: Vec<String> = facts.links.keys().filter(|name| is_ours(name)).cloned().collect();
    let installed = |name: &str| {
        let package = facts.packages.get(name);
        package.is_some_and(|package| package.installed.is_some())
    };
    // They have networks of their own by the same plugins.
    let keep_cni = installed("podman") || installed("cri-o");
    let of_cni = |left: &&String| keep_cni && (left.contains("kube-proxy, CNI or Flannel") || left.contains("/cni-"));
    let mut left: Vec<&str> = facts
        .network_leftovers
        .iter()
        .filter(|left| !left.starts_with("mount ") && !of_cni(left))
        .map(String::as_str)
        .collect();
    let folders: &[&str] = if keep_cni {
        &["/run/flannel"]
    } else {
        &["/run/flannel", "/var/lib/cni"]
    };
    left.extend(
        folders
            .iter()
            .filter(|folder| facts.surroundings.paths.contains(**folder)),
    );
    let network = !left.is_empty() || !links.is_empty();
    let mut reasons = Vec::new();
    if !aside.is_empty() {
        reasons.push(check::OTHER_CNI.at_large(format!("{} would be taken instead of Flannel's", aside.join(", "))));
    }
    if !stale.is_empty() || network {
        let all: Vec<&str> = stale.iter().map(String::as_str).chain(left).collect();
        let what = if all.is_empty() {
            links.join(", ")
        } else {
            all.join(", ")
        };
        reasons.push(check::OLD_NETWORK.at_large(format!("left of an earlier cluster: {what}")));
    }
    (!reasons.is_empty()).then(|| {
        let step = ClearStep {
            aside,
            stale,
            links,
            network,
            keep_cni,
        };
        let why: Vec<&str> = reasons.iter().map(|found| found.message.as_str()).collect();
        Planned::new(Step::ClearLeft(step), why.join("; ")).fixes(reasons)
    })
}
