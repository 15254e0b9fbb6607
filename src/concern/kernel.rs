//! Kernel modules and sysctls that Kubernetes and HAProxy need.

use crate::check;
use crate::cluster::{Cluster, Host, Role};
use crate::facts::platform::SysctlLine;
use crate::facts::{HostFacts, Seen};
use crate::plan::step::PackageStep;
use crate::plan::{Planned, Step};
use crate::render::host::{
    self, MODULES_FILE as MODULES, SYSCTL_FILE as SYSCTL, SYSCTL_FILE_AT_LAST as SYSCTL_AT_LAST,
};

/// The steps that load and persist them, when a file or a live value differs.
#[must_use]
pub fn steps(cluster: &Cluster, this: &Host, facts: &HostFacts) -> Vec<Planned> {
    let balancer = this.role == Role::LoadBalancer;
    let modules = (!balancer).then(|| host::modules_file(cluster));
    let sysctl = host::sysctl_file(this.role);
    let path = sysctl_path(this.role, facts);
    let content = |path: &str| facts.files.get(path).map(|file| file.content.as_str());
    let mut steps = Vec::new();
    let mut reasons = Vec::new();
    let mut found = Vec::new();
    if content(path) != Some(sysctl.as_str()) {
        let why = if path == SYSCTL_AT_LAST && content(SYSCTL) == Some(sysctl.as_str()) {
            format!("another file would overrule {SYSCTL} at boot")
        } else {
            format!("{path} differs")
        };
        reasons.push(why);
    }
    if let Some(modules) = &modules {
        if content(MODULES) != Some(modules.as_str()) {
            reasons.push(format!("{MODULES} differs"));
        }
        let missing: Vec<_> = settings(modules)
            .filter(|name| !facts.modules.contains(*name))
            .collect();
        if !missing.is_empty() {
            found.push(format!("not loaded: {}", missing.join(", ")));
        }
        if let Lack::Package { modules, packages } = lack(cluster, facts) {
            let step = PackageStep {
                apt_proxy: host::apt_proxy(cluster),
                install: packages,
                ..PackageStep::default()
            };
            let why = format!("the kernel has no module {}", modules.join(", "));
            steps.push(Planned::new(Step::Packages(step), why.clone()).fixes([check::MODULES_PACKAGE.at_large(why)]));
        }
    }
    for (name, wanted) in wanted(&sysctl) {
        match facts.sysctls.get(name) {
            Some(value) if enough(name, value, wanted) => {}
            Some(value) => found.push(format!("{name} is {value}")),
            None => reasons.push(format!("{name} is not there yet")),
        }
    }
    let wrong = (!found.is_empty()).then(|| check::KERNEL_SETTINGS.at_large(found.join("; ")));
    reasons.extend(found);
    if reasons.is_empty() {
        return steps;
    }
    let mut planned = Planned::new(
        Step::Kernel {
            modules: modules.clone(),
            sysctl: sysctl.clone(),
            path: path.to_owned(),
        },
        reasons.join("; "),
    )
    .fixes(wrong)
    .changes(path, content(path), Some(&sysctl));
    if let Some(modules) = &modules {
        planned = planned.changes(MODULES, content(MODULES), Some(modules));
    }
    steps.push(planned);
    steps
}

/// What the running kernel lacks of the modules that a node needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    /// Nothing, as far as can be told.
    Nothing,
    /// A package brings them.
    Package {
        /// The modules.
        modules: Vec<&'static str>,
        /// The packages.
        packages: Vec<String>,
    },
    /// Its modules are gone from the disk; those of another kernel are there.
    Reboot {
        /// The modules.
        modules: Vec<&'static str>,
    },
    /// Nothing is known to bring them.
    Remedy {
        /// The modules.
        modules: Vec<&'static str>,
    },
}

/// Compares what is loaded, built in or can be loaded with what is needed.
#[must_use]
pub fn lack(cluster: &Cluster, facts: &HostFacts) -> Lack {
    let Seen::Present(known) = &facts.platform.modules else {
        return Lack::Nothing;
    };
    let mut modules = host::modules(cluster);
    modules.retain(|name| !facts.modules.contains(*name) && !known.available.contains(*name));
    if modules.is_empty() {
        return Lack::Nothing;
    }
    let kernel = &facts.kernel;
    let has_modules = known.kernels.contains(kernel);
    // A container's kernel is another machine's business.
    if facts.platform.container.is_some() {
        Lack::Remedy { modules }
    } else if !has_modules && !known.kernels.is_empty() {
        Lack::Reboot { modules }
    } else if has_modules && facts.os.id == "ubuntu" {
        let mut packages = vec![format!("linux-modules-extra-{kernel}")];
        let installed = facts.packages.get("linux-modules-extra-raspi");
        if kernel.ends_with("-raspi") && installed.is_none_or(|package| package.installed.is_none()) {
            // With it the next kernel has them, too.
            packages.push("linux-modules-extra-raspi".to_owned());
        }
        Lack::Package { modules, packages }
    } else {
        Lack::Remedy { modules }
    }
}

/// Where our sysctls are to stand: with the usual name, unless that would be overruled at boot.
fn sysctl_path(role: Role, facts: &HostFacts) -> &'static str {
    let overruled = !overruling(role, facts, SYSCTL).is_empty();
    if overruled || facts.files.contains_key(SYSCTL_AT_LAST) {
        SYSCTL_AT_LAST
    } else {
        SYSCTL
    }
}

/// Lines of others that are read after our file, wherever we put it, and set something otherwise.
#[must_use]
pub fn overruled_for_good(role: Role, facts: &HostFacts) -> Vec<&SysctlLine> {
    overruling(role, facts, SYSCTL_AT_LAST)
}

/// Lines that are read after this file of ours and set something otherwise. systemd reads all folders' files in the
/// order of their names, the last line wins; ufw sets its own when all of them were read.
fn overruling<'a>(role: Role, facts: &'a HostFacts, ours: &str) -> Vec<&'a SysctlLine> {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let ufw = |path: &str| path == "/etc/ufw/sysctl.conf";
    let ufw_runs = facts.services.get("ufw").is_some_and(|ufw| ufw.enabled || ufw.active);
    let last = |key: &str| {
        let lines = facts.platform.sysctl_lines.iter();
        lines
            .filter(|line| line.key == key && line.path != SYSCTL && line.path != SYSCTL_AT_LAST)
            .filter(|line| {
                if ufw(&line.path) {
                    ufw_runs
                } else {
                    name(&line.path) > name(ours)
                }
            })
            .max_by_key(|line| (ufw(&line.path), name(&line.path)))
    };
    host::sysctls(role)
        .iter()
        .filter_map(|(key, wanted)| last(key).filter(|line| !enough(key, &line.value, wanted)))
        .collect()
}

fn wanted(sysctl: &str) -> impl Iterator<Item = (&str, &str)> {
    settings(sysctl)
        .filter_map(|line| line.split_once('='))
        .map(|(name, wanted)| (name.trim(), wanted.trim()))
}

/// Limits may be higher than wanted, switches must match.
fn enough(name: &str, value: &str, wanted: &str) -> bool {
    match (value.parse::<u64>(), wanted.parse::<u64>()) {
        (Ok(value), Ok(wanted)) if name.starts_with("fs.inotify.") => value >= wanted,
        _ => value == wanted,
    }
}

fn settings(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}
