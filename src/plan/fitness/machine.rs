//! The machine itself: processor, memory, and its place in the network.

use super::board;
use super::kernel::without_memory_cgroup;
use crate::check::{self, Finding};
use crate::cluster::{Cluster, Role};
use crate::facts::Seen;
use crate::plan::apply::Member;

/// What kubeadm wants of a controller, in MB.
const CONTROLLER_MB: u64 = 1700;
/// Below this a worker has no room for pods, in MB.
const WORKER_MB: u64 = 900;
/// Where kubeadm has etcd's data.
const ETCD: &str = "/var/lib/etcd";

/// What a host must be for k8sup to work on it at all.
pub(super) fn unfit(part: &Member<'_>) -> Vec<Finding> {
    let (host, facts) = (part.host, part.facts);
    let mut found = Vec::new();
    let node = host.role != Role::LoadBalancer;
    if let Seen::Present(architecture) = &facts.architecture
        && node
        && architecture != "amd64"
        && architecture != "arm64"
    {
        let message = format!(
            "its userland is {architecture} (kernel: {}), for which Kubernetes has no images",
            facts.machine
        );
        found.push(check::ARCHITECTURE.on(&host.name, message));
    }
    if without_memory_cgroup(part) {
        found.extend(board::memory_cgroup(part));
    }
    if !facts.addresses.is_empty() && !facts.addresses.iter().any(|entry| entry.address.addr() == host.address) {
        let own: Vec<_> = facts
            .addresses
            .iter()
            .map(|entry| format!("{} on {}", entry.address, entry.interface))
            .collect();
        let message = format!(
            "none of its interfaces has the inventory's address {}: it has {}",
            host.address,
            own.join(", ")
        );
        found.push(check::ADDRESS.on(&host.name, message));
    }
    found
}

/// Whether a node that is to come is large enough.
pub(super) fn too_small(part: &Member<'_>) -> Vec<Finding> {
    let (name, facts) = (&part.host.name, part.facts);
    let controller = part.host.role == Role::Controller;
    let mut found = Vec::new();
    if controller && facts.cpus == 1 {
        found.push(check::CPUS.on(name, "it has one processor, a controller needs two"));
    }
    let megabytes = facts.memory_kib / 1024;
    if controller && megabytes < CONTROLLER_MB {
        let message = format!("it has {megabytes} MB of memory, a controller needs {CONTROLLER_MB} MB");
        found.push(check::MEMORY.on(name, message));
    } else if megabytes < WORKER_MB {
        found.push(check::WORKER_MEMORY.on(name, format!("it has {megabytes} MB of memory, hardly enough for pods")));
    }
    found
}

/// Something in the folder that etcd is to have, though no etcd of kubeadm's was there: kubeadm would refuse it in the
/// middle of a run, and whether it is needed nobody here can tell.
pub(super) fn strange_data(cluster: &Cluster, part: &Member<'_>) -> Option<Finding> {
    let over = cluster.overrides.kubeadm.as_ref();
    let folder = over.and_then(|over| over.pointer("/etcd/local/dataDir")?.as_str());
    let comes = part.host.role == Role::Controller && part.comes();
    let kube = &part.facts.kube;
    let strange = kube.etcd_dir_used && !kube.has("manifests/etcd.yaml");
    (comes && strange && folder.is_none_or(|folder| folder == ETCD)).then(|| {
        check::ETCD_FOLDER
            .on(
                &part.host.name,
                format!("{ETCD} is not empty, and what is in it is of unknown origin"),
            )
            .hint(format!(
                "nothing in it is deleted: look with `ls -A {ETCD}`, move it away if nobody needs it, and apply again. A \
                 file system's lost+found is in the way too: set etcd.local.dataDir in `kubeadm` to a folder below it"
            ))
    })
}
