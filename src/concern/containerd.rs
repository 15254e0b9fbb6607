//! containerd: the CRI on, systemd's cgroups, the pause image, mirrors, the CNI folders.

use std::collections::BTreeMap;

use super::packages;
use crate::check::{self, Finding};
use crate::cluster::Cluster;
use crate::facts::{HostFacts, Seen};
use crate::plan::step::ContainerdFiles;
use crate::plan::{Planned, Step};
use crate::render::containerd::{
    CONFIG_FILE, ContainerdError, DISABLED, Dialect, assert_dump, config_files, mirror_files,
};
use crate::render::host;

const CRICTL: &str = "/etc/crictl.yaml";
const PROXY: &str = "/etc/systemd/system/containerd.service.d/k8sup-proxy.conf";
const CONF_D: &str = "/etc/containerd/conf.d/";

/// The step that configures containerd, when a file or what containerd makes of them differs.
///
/// # Errors
/// When the administrator's own configuration cannot be extended.
pub fn steps(cluster: &Cluster, facts: &HostFacts) -> Result<Vec<Planned>, Finding> {
    // A host without containerd gets whichever its distribution has: the step brings the files for each.
    let known = match &facts.containerd {
        Seen::Present(containerd) => Dialect::of(&containerd.version),
        Seen::Absent => None,
        // It did not say so in time; its package tells the version, too.
        Seen::Unknown(_) => {
            packages::installed(facts, packages::containerd_package(cluster, facts)).and_then(Dialect::of)
        }
    };
    let dialects = known.map_or_else(
        || vec![Dialect::V1, Dialect::V20, Dialect::V21],
        |dialect| vec![dialect],
    );
    let mut variants = Vec::new();
    for dialect in dialects {
        let files = files(cluster, facts, dialect).map_err(|error| Finding {
            evidence: facts
                .files
                .get(CONFIG_FILE)
                .map(|file| file.content.lines().take(20).collect::<Vec<_>>().join("\n")),
            ..check::CONTAINERD_CONFIG.at_large(error.to_string())
        })?;
        variants.push(ContainerdFiles {
            dialect: dialect.label().to_owned(),
            files,
        });
    }
    let mut reasons = Vec::new();
    if known.is_none() {
        reasons.push("containerd is not installed yet".to_owned());
    }
    let content = |path: &str| facts.files.get(path).map(|file| file.content.as_str());
    let shown = variants
        .first()
        .map(|variant| variant.files.clone())
        .unwrap_or_default();
    if known.is_some() {
        let differing: Vec<_> = shown
            .iter()
            .filter(|(path, text)| content(path) != Some(text.as_str()))
            .map(|(path, _)| path.as_str())
            .collect();
        if !differing.is_empty() {
            reasons.push(format!("{} differs", differing.join(", ")));
        }
    }
    if facts.is_pending("containerd") {
        reasons.push("its configuration was written, but is not in force yet".to_owned());
    }
    let deviations = if known.is_some() {
        running(cluster, facts, known)
    } else {
        Vec::new()
    };
    let restart = !deviations.is_empty();
    let wrong = wrong(&deviations);
    reasons.extend(deviations);
    if reasons.is_empty() {
        return Ok(Vec::new());
    }
    let mut planned = Planned::new(Step::Containerd { variants, restart }, reasons.join("; ")).fixes(wrong);
    for (path, text) in &shown {
        planned = planned.changes(path, content(path), Some(text));
    }
    Ok(vec![planned])
}

/// The same, by check.
fn wrong(deviations: &[String]) -> Vec<Finding> {
    let (off, other): (Vec<_>, Vec<_>) = deviations.iter().cloned().partition(|text| text.ends_with(DISABLED));
    [(&check::CRI_OFF, off), (&check::CONTAINERD_SETTINGS, other)]
        .into_iter()
        .filter(|(_, texts)| !texts.is_empty())
        .map(|(check, texts)| check.at_large(texts.join("; ")))
        .collect()
}

/// What is wrong with the containerd that runs.
fn running(cluster: &Cluster, facts: &HostFacts, dialect: Option<Dialect>) -> Vec<String> {
    if !facts
        .services
        .get("containerd")
        .is_some_and(|service| service.active && service.enabled)
    {
        return vec!["containerd does not run, or not at boot".to_owned()];
    }
    match (&facts.containerd, dialect) {
        (Seen::Present(containerd), Some(dialect)) => match &containerd.config {
            Seen::Present(dump) => assert_dump(dump, dialect, cluster),
            Seen::Absent | Seen::Unknown(_) => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn files(cluster: &Cluster, facts: &HostFacts, dialect: Dialect) -> Result<BTreeMap<String, String>, ContainerdError> {
    let drop_ins = facts
        .files
        .iter()
        .filter(|(path, _)| path.strip_prefix(CONF_D).is_some_and(is_toml))
        .map(|(path, file)| (path.clone(), file.content.clone()))
        .collect();
    let existing = facts.files.get(CONFIG_FILE).map(|file| file.content.as_str());
    let mut files = config_files(existing, &drop_ins, dialect, cluster)?;
    files.extend(mirror_files(&cluster.images));
    files.insert(CRICTL.to_owned(), host::crictl_yaml());
    if let Some(proxy) = host::containerd_proxy(cluster) {
        files.insert(PROXY.to_owned(), proxy);
    }
    Ok(files)
}

/// containerd imports `conf.d/*.toml`, by that very ending.
fn is_toml(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| ending == "toml")
}
