//! k8sup is killed in the middle of what it does; running it again converges, and whatever was
//! healthy is not touched.

use std::path::Path;
use std::time::Duration;

use crate::inventory;
use crate::lab::{HOSTS, NODES, on, rebuild};
use crate::life_signs::{LifeSigns, life_signs};
use crate::program::{apply_until, k8sup, starts};
use crate::serving::{is_healthy, nodes_are_ready};

/// Killed while packages are unpacked, in init, in a controller's and in a worker's join; stopped by Ctrl-C.
pub(crate) fn killed() {
    rebuild(&HOSTS);
    let inventory = inventory::standard();
    apply_until(&inventory, "while dpkg is at work", Duration::from_secs(8), |event| {
        starts(event, "w2", "install ")
    })
    .kill();
    apply_until(&inventory, "in kubeadm init", Duration::from_secs(6), |event| {
        starts(event, "cp1", "kubeadm init: control plane")
    })
    .kill();
    let first = apply_until(&inventory, "in cp2's join", Duration::from_secs(8), |event| {
        starts(event, "cp2", "kubeadm join")
    });
    let second = k8sup(&["apply", "--yes"], &inventory);
    second
        .expect(6)
        .says("another k8sup is at work on")
        .says("k8sup apply by");
    first.kill();
    let first = life_signs(&["cp1"]);
    apply_until(&inventory, "in cp3's join", Duration::from_secs(1), |event| {
        starts(event, "cp3", "kubeadm join")
    })
    .interrupt();
    nothing_lets_a_machine_in();
    converges(&inventory);
    first.go_on(&LifeSigns::all);

    // A worker is replaced by a new machine, and its join is killed.
    let others = ["lb-0", "cp1", "cp2", "cp3", "w2", "w3"];
    let healthy = life_signs(&others);
    rebuild(&["w1"]);
    apply_until(&inventory, "in w1's join", Duration::from_secs(2), |event| {
        starts(event, "w1", "kubeadm join")
    })
    .kill();
    converges(&inventory);
    nothing_lets_a_machine_in();
    healthy.go_on(&LifeSigns::all);
}

/// No bootstrap token and no uploaded certificates are left.
fn nothing_lets_a_machine_in() {
    // The login user may have no kubeconfig yet.
    let admin = "KUBECONFIG=/etc/kubernetes/admin.conf KUBECACHEDIR=/dev/shm/kubectl exec kubectl";
    let secrets = on(
        "cp1",
        &["sh", "-c", &format!("{admin} -n kube-system get secrets -o name")],
    );
    let left: Vec<&str> = secrets
        .lines()
        .filter(|name| name.contains("bootstrap-token") || name.contains("kubeadm-certs"))
        .collect();
    assert!(left.is_empty(), "not revoked: {left:?}");
}

fn converges(inventory: &Path) {
    k8sup(&["apply", "--yes"], inventory).expect(0);
    nodes_are_ready(&NODES);
    k8sup(&["plan", "--exit-code"], inventory).expect(0);
    is_healthy(inventory);
}
