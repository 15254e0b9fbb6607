//! Packages: containerd from the distribution, Kubernetes at the exact version, both held.

use crate::check::{self, Finding};
use crate::cluster::{Cluster, Host, Role};
use crate::facts::{HostFacts, Seen};
use crate::plan::step::PackageStep;
use crate::plan::{Planned, Step};
use crate::render::host::{
    self, APT_PROXY_FILE as APT_PROXY, CONTAINERD_SOURCE_FILE as CONTAINERD_SOURCES, KUBERNETES_KEY_FILE as KEY,
    KUBERNETES_SOURCE_FILE as SOURCES,
};

/// Beside the Kubernetes packages: what kubeadm and kube-proxy call, and what Debian leaves out of a minimal system.
const NODE_TOOLS: [&str; 5] = ["conntrack", "ethtool", "iptables", "socat", "cri-tools"];
const KUBERNETES: [&str; 3] = ["kubeadm", "kubectl", "kubelet"];

/// Brings the plugins that Flannel's configuration calls.
const CNI: &str = "kubernetes-cni";
const PLUGINS: [&str; 4] = ["bridge", "host-local", "loopback", "portmap"];

/// Plugins that are gone, though their package is installed.
fn missing_plugins(this: &Host, facts: &HostFacts) -> Vec<&'static str> {
    let known = match &facts.surroundings.cni_plugins {
        Seen::Present(plugins) => Some(plugins),
        Seen::Absent => None,
        Seen::Unknown(_) => return Vec::new(),
    };
    if this.role == Role::LoadBalancer || installed(facts, CNI).is_none() {
        return Vec::new();
    }
    let gone = |name: &&&str| known.is_none_or(|known| !known.contains(**name));
    PLUGINS.iter().filter(gone).copied().collect()
}

/// The package of containerd that the host has or gets.
#[must_use]
pub fn containerd_package<'a>(cluster: &'a Cluster, facts: &HostFacts) -> &'a str {
    if let Some(repository) = &cluster.packages.containerd {
        return &repository.package;
    }
    // Docker's package conflicts with Debian's; whichever is there stays.
    if installed(facts, "containerd.io").is_some() {
        "containerd.io"
    } else {
        "containerd"
    }
}

/// The step that installs and holds what is missing.
#[must_use]
pub fn steps(cluster: &Cluster, this: &Host, facts: &HostFacts) -> Vec<Planned> {
    let mut step = PackageStep {
        key_url: host::release_key_url(cluster),
        ..PackageStep::default()
    };
    let mut reasons = Vec::new();
    if this.role == Role::LoadBalancer {
        want(facts, &mut step, "haproxy", None);
    } else {
        let containerd = containerd_package(cluster, facts);
        want(facts, &mut step, containerd, None);
        for tool in NODE_TOOLS {
            want(facts, &mut step, tool, None);
        }
        for package in KUBERNETES {
            want(facts, &mut step, package, Some(cluster));
        }
        for package in KUBERNETES.into_iter().chain([containerd]) {
            if !facts.packages.get(package).is_some_and(|known| known.held) {
                step.hold.push(package.to_owned());
            }
        }
    }
    let mut found = found(cluster, this, facts, &step);
    if !step.install.is_empty() {
        reasons.push(format!("missing or at another version: {}", step.install.join(" ")));
    }
    let missing = missing_plugins(this, facts);
    if !missing.is_empty() {
        let text = format!("/opt/cni/bin lacks {}", missing.join(", "));
        found.push(check::CNI_PLUGINS.at_large(text.clone()));
        reasons.push(text);
        step.reinstall.push(CNI.to_owned());
    }
    if !step.hold.is_empty() {
        reasons.push(format!("not held: {}", step.hold.join(" ")));
    }
    let content = |path: &str| facts.files.get(path).map(|file| file.content.as_str());
    let mut files: Vec<(&str, String)> = Vec::new();
    if this.role != Role::LoadBalancer {
        let sources = host::kubernetes_sources(cluster);
        if content(SOURCES) != Some(sources.as_str()) || !facts.files.contains_key(KEY) {
            reasons.push("Kubernetes' apt repository is not set up".to_owned());
            files.push((SOURCES, sources.clone()));
            step.sources = Some(sources);
        }
        if let Some(repository) = &cluster.packages.containerd {
            let sources = host::containerd_sources(repository);
            if content(CONTAINERD_SOURCES) != Some(sources.as_str()) {
                reasons.push("containerd's apt repository is not set up".to_owned());
                files.push((CONTAINERD_SOURCES, sources.clone()));
                step.containerd_source = Some(sources);
                step.containerd_key_url.clone_from(&repository.key);
            }
        }
        if !facts.legacy_sources.is_empty() {
            let text = format!("legacy Kubernetes repositories: {}", facts.legacy_sources.join(", "));
            found.push(check::LEGACY_SOURCES.at_large(text.clone()));
            reasons.push(text);
            step.legacy.clone_from(&facts.legacy_sources);
        }
        let twins = twins(cluster, facts);
        if !twins.is_empty() {
            let text = format!("the repository is also in {}", twins.join(", "));
            found.push(check::TWIN_SOURCES.at_large(text.clone()));
            reasons.push(text);
            step.legacy.extend(twins);
        }
        if !facts.services.get("kubelet").is_some_and(|kubelet| kubelet.enabled) {
            reasons.push("kubelet does not start at boot".to_owned());
        }
    }
    if let Some(proxy) = host::apt_proxy(cluster)
        && content(APT_PROXY) != Some(proxy.as_str())
    {
        reasons.push("apt does not know the proxy".to_owned());
        files.push((APT_PROXY, proxy.clone()));
        step.apt_proxy = Some(proxy);
    }
    if reasons.is_empty() {
        return Vec::new();
    }
    let dropped = step.legacy.clone();
    let mut planned = Planned::new(Step::Packages(step), reasons.join("; ")).fixes(found);
    for (path, text) in &files {
        planned = planned.changes(path, content(path), Some(text));
    }
    for path in &dropped {
        planned = planned.changes(
            path,
            Some(content(path).unwrap_or("a legacy Kubernetes source\n")),
            None,
        );
    }
    vec![planned]
}

/// What is wrong with the packages that the host has already.
fn found(cluster: &Cluster, this: &Host, facts: &HostFacts, step: &PackageStep) -> Vec<Finding> {
    let mut found = Vec::new();
    let node = this.role != Role::LoadBalancer;
    let others: Vec<_> = KUBERNETES
        .into_iter()
        .filter(|_| node)
        .filter_map(|package| Some((package, installed(facts, package)?)))
        .filter(|(_, version)| !is_wanted_version(cluster, version))
        .map(|(package, version)| format!("{package} is {version}"))
        .collect();
    if !others.is_empty() {
        let text = format!("{}; the inventory wants {}", others.join(", "), cluster.version);
        found.push(check::OTHER_VERSION.at_large(text));
    }
    let free: Vec<_> = step
        .hold
        .iter()
        .filter(|package| installed(facts, package).is_some())
        .map(String::as_str)
        .collect();
    if !free.is_empty() {
        found.push(check::NOT_HELD.at_large(format!("not held: {}", free.join(" "))));
    }
    found
}

/// Source files of somebody else's that name the same repository: with another key apt would
/// refuse to read any source at all.
fn twins(cluster: &Cluster, facts: &HostFacts) -> Vec<String> {
    let uri = host::kubernetes_repository(cluster);
    let uri = uri.trim_end_matches('/');
    let names_it = |line: &str| !line.trim_start().starts_with('#') && line.contains(uri);
    facts
        .files
        .iter()
        .filter(|(path, _)| path.starts_with("/etc/apt/sources.list.d/") && *path != SOURCES)
        // Anything else in that folder is not read by apt.
        .filter(|(path, _)| matches!(path.rsplit_once('.'), Some((_, "list" | "sources"))))
        .filter(|(path, file)| !facts.legacy_sources.contains(path) && file.content.lines().any(names_it))
        .map(|(path, _)| path.clone())
        .collect()
}

/// Version of an installed package.
#[must_use]
pub fn installed<'a>(facts: &'a HostFacts, package: &str) -> Option<&'a str> {
    facts.packages.get(package)?.installed.as_deref()
}

/// Whether a Debian version is the Kubernetes version that the inventory wants.
#[must_use]
pub fn is_wanted_version(cluster: &Cluster, debian: &str) -> bool {
    let wanted = cluster.version.to_string();
    let wanted = wanted.trim_start_matches('v');
    match (debian.split_once('-'), &cluster.packages.revision) {
        (Some((upstream, revision)), Some(wanted_revision)) => upstream == wanted && revision == wanted_revision,
        (Some((upstream, _)), None) => upstream == wanted,
        (None, _) => debian == wanted,
    }
}

fn want(facts: &HostFacts, step: &mut PackageStep, package: &str, exact: Option<&Cluster>) {
    match (installed(facts, package), exact) {
        (Some(_), None) => {}
        (Some(version), Some(cluster)) if is_wanted_version(cluster, version) => {}
        (_, Some(cluster)) => {
            let version = cluster.version.to_string();
            let revision = cluster.packages.revision.as_deref().unwrap_or("*");
            step.install
                .push(format!("{package}={}-{revision}", version.trim_start_matches('v')));
        }
        (None, None) => step.install.push(package.to_owned()),
    }
}
