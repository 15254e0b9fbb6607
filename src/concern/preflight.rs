//! Checks of kubeadm's own that are left out on a host, because a person or k8sup has answered them.

use crate::check;
use crate::cluster::{Cluster, Host, Role};
use crate::facts::{HostFacts, Seen};

/// Names for `nodeRegistration.ignorePreflightErrors`.
#[must_use]
pub fn ignored(cluster: &Cluster, host: &Host, facts: &HostFacts) -> Vec<&'static str> {
    let allowed = |check: &check::Check| cluster.allow.contains(check.code);
    let controller = host.role == Role::Controller;
    let mut names = Vec::new();
    if controller && allowed(&check::CPUS) {
        names.push("NumCPU");
    }
    if controller && allowed(&check::MEMORY) {
        names.push("Mem");
    }
    if has_no_config(facts) || verifies_cgroup_v1(cluster, facts) {
        names.push("SystemVerification");
    }
    names
}

/// The kernel's configuration can neither be read nor be loaded: kubeadm itself loads the module `configs`.
#[must_use]
pub fn has_no_config(facts: &HostFacts) -> bool {
    let loads = match &facts.platform.modules {
        Seen::Present(modules) => modules.available.contains("configs"),
        Seen::Absent | Seen::Unknown(_) => false,
    };
    facts.platform.kernel_config.is_absent() && !loads
}

/// From 1.35 on kubeadm refuses control groups of version 1 as long as it is not told to leave this out, whatever the
/// kubelet is told.
fn verifies_cgroup_v1(cluster: &Cluster, facts: &HostFacts) -> bool {
    let version = &cluster.version;
    (version.major, version.minor) >= (1, 35) && facts.cgroup.version == 1
}

#[cfg(test)]
mod tests {
    use super::ignored;
    use crate::cluster::Version;
    use crate::facts::{HostFacts, Seen};
    use crate::render::tests::{homelab, named};

    #[test]
    fn what_was_answered_otherwise_is_left_out() {
        let mut cluster = homelab();
        let mut facts = HostFacts::default();
        facts.platform.kernel_config = Seen::Present("/proc/config.gz".to_owned());
        facts.cgroup.version = 1;
        let host = named(&cluster, "cp1").clone();
        assert_eq!(ignored(&cluster, &host, &facts), [""; 0]);
        // What nobody could look at is verified by kubeadm.
        facts.platform.kernel_config = Seen::Unknown("no answer".to_owned());
        assert_eq!(ignored(&cluster, &host, &facts), [""; 0]);
        cluster.version = Version::parse("v1.35.0").unwrap();
        assert_eq!(ignored(&cluster, &host, &facts), ["SystemVerification"]);
        facts.cgroup.version = 2;
        assert_eq!(ignored(&cluster, &host, &facts), [""; 0]);
        cluster.allow = ["K8S-RES-001", "K8S-RES-002"].map(str::to_owned).into();
        assert_eq!(ignored(&cluster, &host, &facts), ["NumCPU", "Mem"]);
        // Of a worker kubeadm asks neither.
        assert_eq!(ignored(&cluster, named(&cluster, "w1"), &facts), [""; 0]);
    }
}
