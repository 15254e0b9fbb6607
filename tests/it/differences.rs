//! What cannot be changed under a running cluster is refused, with both values; the rest is not.

use k8sup::facts::{ClusterFacts, Seen};
use serde_json::json;

use crate::simulate::World;
use crate::world::{self, HOMELAB, everything, name};

fn refused(world: &World) -> Vec<String> {
    world::blockers(&world.cluster, &world.facts(), &everything())
}

/// Changes what the running cluster says of itself.
fn configure(world: &mut World, path: &str, value: &str) {
    let Seen::Present(config) = &mut world.api().kubeadm_config else {
        panic!()
    };
    *config.pointer_mut(path).unwrap() = json!(value);
}

#[test]
fn a_cluster_that_nobody_has_named_takes_the_inventorys_name() {
    for name in ["kubernetes", ""] {
        let mut world = World::built(HOMELAB);
        configure(&mut world, "/clusterName", name);
        let plan = world::try_plan(&world.cluster, &world.facts(), &everything());
        assert!(plan.is_ok_and(|plan| plan.is_empty()), "{name:?}");
    }
}

#[test]
fn values_of_the_running_cluster_are_compared_one_by_one() {
    let rows = [
        (
            "/clusterName",
            "lab",
            "the name of the running cluster is lab, the inventory wants homelab",
        ),
        (
            "/kubernetesVersion",
            "v1.34.3",
            "the Kubernetes version of the running cluster is v1.34.3, the inventory wants v1.34.4",
        ),
        (
            "/controlPlaneEndpoint",
            "api.lan",
            "the control-plane endpoint of the running cluster is api.lan:6443, the inventory wants 192.168.7.140:6443",
        ),
        (
            "/controlPlaneEndpoint",
            "",
            "the control-plane endpoint of the running cluster is not set, the inventory wants 192.168.7.140:6443",
        ),
        (
            "/networking/podSubnet",
            "10.200.0.0/16",
            "the pod CIDR of the running cluster is 10.200.0.0/16, the inventory wants 10.244.0.0/16",
        ),
        (
            "/networking/serviceSubnet",
            "10.0.0.0/16",
            "the service CIDR of the running cluster is 10.0.0.0/16, the inventory wants 10.96.0.0/12",
        ),
        (
            "/networking/dnsDomain",
            "k8s.lan",
            "the DNS domain of the running cluster is k8s.lan, the inventory wants cluster.local",
        ),
    ];
    for (path, value, expected) in rows {
        let mut world = World::built(HOMELAB);
        configure(&mut world, path, value);
        assert_eq!(refused(&world), [format!("cluster: {expected}")]);
    }
}

#[test]
fn kubelets_of_another_version_are_named() {
    let mut world = World::built(HOMELAB);
    world.node(&name("w2")).unwrap().kubelet_version = "v1.33.9".to_owned();
    assert_eq!(
        refused(&world),
        ["w2: its kubelet is v1.33.9, the inventory wants v1.34.4"]
    );
}

#[test]
fn certificates_must_name_what_clients_ask_for() {
    let mut world = World::built(HOMELAB);
    world.under(&HOMELAB.replace("v1.34.4 }", "v1.34.4, certSans: [k8s.example.com] }"));
    let expected: Vec<String> = ["cp1", "cp2", "cp3"]
        .iter()
        .map(|host| format!("{host}: the API server's certificate lacks k8s.example.com"))
        .collect();
    assert_eq!(refused(&world), expected);
}

#[test]
fn controllers_and_workers_can_be_added() {
    let first = HOMELAB
        .replace(", cp2: 192.168.7.202, cp3: 192.168.7.203", "")
        .replace(", w2: 192.168.7.205, w3: 192.168.7.206", "");
    let mut world = World::built(&first);
    world.under(HOMELAB);
    world.converge();
    let Seen::Present(members) = &world.api().members else {
        panic!()
    };
    assert_eq!(members.len(), 3);
}

#[test]
fn another_pod_network_is_left_alone() {
    let mut world = World::built(HOMELAB);
    let live: &mut ClusterFacts = world.api();
    (live.flannel, live.flannel_hash, live.flannel_network) = (Seen::Absent, Seen::Absent, Seen::Absent);
    for host in ["cp1", "w1"] {
        let files = &mut world.host(&name(host)).kube.files;
        files.retain(|file| !file.contains("flannel"));
        files.insert("/etc/cni/net.d/10-calico.conflist".to_owned());
    }
    let refused = refused(&world);
    assert!(
        refused.contains(&"cluster: the running cluster has a pod network that is not Flannel's".to_owned()),
        "{refused:#?}"
    );
}

#[test]
fn several_problems_are_told_at_once() {
    let mut world = World::built(HOMELAB);
    world.under(&HOMELAB.replace("v1.34.4 }", "v1.34.5, podCidr: 10.200.0.0/16 }"));
    let refused = refused(&world);
    // The version, the pod network, and the kubelet of each of six nodes.
    assert_eq!(refused.len(), 8, "{refused:#?}");
}
