//! The kernel: modules, control groups, its configuration, and what others set at boot.

use std::collections::BTreeSet;

use crate::check::{self, Finding};
use crate::cluster::{Cluster, Role, Version};
use crate::concern::kernel::{Lack, lack, overruled_for_good};
use crate::concern::preflight;
use crate::facts::Cgroup;
use crate::plan::apply::Member;

/// What stands in the way of a node that is to come.
pub(super) fn unfit(cluster: &Cluster, part: &Member<'_>) -> Vec<Finding> {
    let (name, facts) = (&part.host.name, part.facts);
    let mut found = Vec::new();
    if let Lack::Remedy { modules } = lack(cluster, facts) {
        let message = format!("the kernel {} has no module {}", facts.kernel, modules.join(", "));
        let hint = if facts.platform.container.is_some() {
            format!(
                "the host is a container: load it on the machine that it runs on, `modprobe {}`",
                modules.join("; modprobe ")
            )
        } else if modules == ["vxlan"] {
            "flannel: { backend: host-gw } works without it where all nodes are in one network".to_owned()
        } else {
            "use the distribution's own kernel".to_owned()
        };
        found.push(
            check::MODULES_MISSING
                .on(name, message)
                .evidence(format!("neither loaded nor in /lib/modules/{}", facts.kernel))
                .hint(hint),
        );
    }
    let lacks = missing_cgroups(&facts.cgroup);
    if !lacks.is_empty() {
        let message = format!("these control groups are off: {}", lacks.join(", "));
        found.push(check::CGROUPS.on(name, message));
    }
    if gives_up_cgroup_v1(&cluster.version, &facts.cgroup, cluster.overrides.kubelet.as_ref()) {
        let message = format!(
            "its control groups are of version 1, on which the kubelet of {} does not start",
            cluster.version
        );
        found.push(check::CGROUP_V1.on(name, message));
    }
    let version = &cluster.version;
    if facts.cgroup.version == 1 && (version.major, version.minor) < (1, 35) {
        let message = "control groups are of version 1, on which the kubelet of Kubernetes 1.35 does not start";
        found.push(check::CGROUP_V1_ENDS.on(name, message));
    }
    if preflight::has_no_config(facts) {
        let message = "the kernel's configuration cannot be read, so kubeadm's SystemVerification is left out";
        found.push(
            check::KERNEL_CONFIG
                .on(name, message)
                .evidence(format!("neither /proc/config.gz nor /boot/config-{}", facts.kernel)),
        );
    }
    found
}

/// Files of others that have the last word on a sysctl at boot.
pub(super) fn overruled(part: &Member<'_>) -> Vec<Finding> {
    let lines = overruled_for_good(part.host.role, part.facts);
    let paths: BTreeSet<&str> = lines.iter().map(|line| line.path.as_str()).collect();
    paths
        .into_iter()
        .map(|path| {
            let settings: Vec<_> = lines
                .iter()
                .filter(|line| line.path == path)
                .map(|line| format!("{} = {}", line.key, line.value))
                .collect();
            check::SYSCTL_OVERRULED
                .on(
                    &part.host.name,
                    format!("at boot {path} has the last word and sets {}", settings.join(", ")),
                )
                .evidence(format!("{path}: {}", settings.join("; ")))
        })
        .collect()
}

/// Nothing else than the memory control group's absence, where nobody knows a remedy.
pub(super) fn without_memory_cgroup(part: &Member<'_>) -> bool {
    let node = part.host.role != Role::LoadBalancer;
    node && part.facts.cgroup.version != 0 && !part.facts.cgroup.controllers.contains("memory")
}

/// Of the control groups that kubeadm's own check wants, those that are off; memory is told apart.
fn missing_cgroups(cgroup: &Cgroup) -> Vec<&'static str> {
    let wanted: &[&str] = match cgroup.version {
        1 => &["cpu", "cpuacct", "cpuset", "devices", "freezer"],
        2 => &["cpu", "cpuset", "pids"],
        _ => &[],
    };
    wanted
        .iter()
        .copied()
        .filter(|name| !cgroup.controllers.contains(*name))
        .collect()
}

fn gives_up_cgroup_v1(version: &Version, cgroup: &Cgroup, kubelet: Option<&serde_json::Value>) -> bool {
    let told = kubelet.and_then(|kubelet| kubelet.get("failCgroupV1")?.as_bool());
    cgroup.version == 1 && (version.major, version.minor) >= (1, 35) && told != Some(false)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{gives_up_cgroup_v1, missing_cgroups};
    use crate::cluster::Version;
    use crate::facts::Cgroup;

    fn cgroup(version: u8, controllers: &str) -> Cgroup {
        Cgroup {
            version,
            controllers: controllers.split_whitespace().map(str::to_owned).collect(),
        }
    }

    #[test]
    fn control_groups_of_version_one_end_with_1_35() {
        let (old, new) = (Version::parse("v1.34.4").unwrap(), Version::parse("v1.35.0").unwrap());
        let one = cgroup(1, "memory cpu");
        for (version, cgroup, kubelet, expected) in [
            (&old, &one, None, false),
            (&new, &one, None, true),
            (&new, &one, Some(json!({"failCgroupV1": false})), false),
            (&new, &one, Some(json!({"failCgroupV1": true})), true),
            (&new, &cgroup(2, "memory cpu"), None, false),
        ] {
            assert_eq!(gives_up_cgroup_v1(version, cgroup, kubelet.as_ref()), expected);
        }
    }

    #[test]
    fn control_groups_that_kubeadm_wants_are_named() {
        assert_eq!(missing_cgroups(&cgroup(2, "memory cpu pids io")), ["cpuset"]);
        assert_eq!(
            missing_cgroups(&cgroup(2, "cpuset cpu io memory hugetlb pids")),
            [""; 0]
        );
        assert_eq!(
            missing_cgroups(&cgroup(1, "cpu cpuacct memory devices")),
            ["cpuset", "freezer"]
        );
        assert_eq!(missing_cgroups(&cgroup(0, "")), [""; 0]);
    }
}
