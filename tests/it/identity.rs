//! Who is who: a machine that is not the one that the inventory means stops everything.

use k8sup::cluster::NodeName;
use k8sup::facts::cluster::{Member, NodeFact};
use k8sup::facts::{HostFacts, Seen};

use crate::simulate::World;
use crate::world::{self, HOMELAB, everything, name, only};

fn refused(world: &World) -> Vec<String> {
    world::blockers(&world.cluster, &world.facts(), &everything())
}

fn hints(world: &World) -> Vec<String> {
    let blockers = world::try_plan(&world.cluster, &world.facts(), &everything()).unwrap_err();
    blockers.into_iter().map(|blocker| blocker.hint).collect()
}

fn warnings(world: &World) -> Vec<String> {
    let plan = world.plan();
    plan.warnings.into_iter().map(|warning| warning.message).collect()
}

/// The machines of the homelab under another inventory, in which these have other names: `(old, new)`.
fn called(inventory: &str, names: &[(&str, &str)]) -> World {
    let mut world = World::built(HOMELAB);
    let machines: Vec<(NodeName, HostFacts)> = names
        .iter()
        .map(|(old, new)| (name(new), world.hosts[&name(old)].clone()))
        .collect();
    world.under(inventory);
    world.hosts.extend(machines);
    world
}

#[test]
fn one_machine_under_two_names_is_found_before_anything_is_done_to_it_twice() {
    for inventory in [
        HOMELAB.to_owned(),
        HOMELAB.replace(
            "cp3: 192.168.7.203 }",
            "cp3: { address: 192.168.7.203, ssh: { host: node.lan } } }",
        ),
    ] {
        for (one, other) in [("w1", "w2"), ("cp2", "cp3"), ("lb-0", "cp3"), ("cp1", "w3")] {
            let mut world = World::bare(world::cluster(&inventory), |_| "trixie-bare");
            let first = world.hosts[&name(one)].clone();
            let second = world.host(&name(other));
            (second.machine_id, second.boot_id) = (first.machine_id, first.boot_id);
            let expected = format!("cluster: {one} and {other} are one and the same machine");
            assert_eq!(refused(&world), [expected.as_str()]);
            // Also when neither is asked for.
            assert_eq!(
                world::blockers(&world.cluster, &world.facts(), &only(&["cp1", "lb-0"])),
                [expected]
            );
        }
    }
}

#[test]
fn the_machine_that_is_listed_twice_is_told_by_where_it_was_reached() {
    let mut world = World::built(HOMELAB);
    world.under(&HOMELAB.replace(
        "w3: 192.168.7.206",
        "w3: 192.168.7.206, w4: 192.168.7.207, w5: 192.168.7.208",
    ));
    let first = world.hosts[&name("w3")].clone();
    for other in ["w4", "w5"] {
        let facts = world.host(&name(other));
        (facts.machine_id, facts.boot_id) = (first.machine_id.clone(), first.boot_id.clone());
    }
    let blockers = world::try_plan(&world.cluster, &world.facts(), &everything()).unwrap_err();
    assert_eq!(blockers.len(), 1);
    assert_eq!(blockers[0].message, "w3, w4 and w5 are one and the same machine");
    let evidence = blockers[0].evidence.as_deref().unwrap();
    assert!(evidence.contains("w4 was reached at 192.168.7.207"), "{evidence}");
}

#[test]
fn machines_of_one_image_are_refused_until_they_are_in_the_cluster_or_allowed() {
    let mut world = World::bare(world::cluster(HOMELAB), |_| "trixie-bare");
    for host in ["w1", "w2"] {
        world.host(&name(host)).machine_id = Seen::Present("of the image".to_owned());
    }
    for host in ["cp1", "w3"] {
        world.host(&name(host)).product_uuid = Seen::Present("4c4c4544-0042-3510".to_owned());
    }
    for host in ["cp3", "lb-0"] {
        // What a maker of boards gives to all of them says nothing.
        world.host(&name(host)).product_uuid = Seen::Present("03000200-0400-0500-0006-000700080009".to_owned());
    }
    for host in ["cp2", "w2"] {
        let macs = &mut world.host(&name(host)).macs;
        for mac in macs.values_mut() {
            "02:00:00:00:00:01".clone_into(mac);
        }
        // Of a link without the host's address it is nobody's business.
        macs.insert("docker0".to_owned(), "02:42:00:00:00:01".to_owned());
    }
    let expected = [
        "cluster: w1 and w2 have the same machine-id",
        "cluster: cp1 and w3 have the same product_uuid",
        "cluster: cp2 and w2 have the same MAC address",
    ];
    assert_eq!(refused(&world), expected);
    let found = world::try_plan(&world.cluster, &world.facts(), &everything()).unwrap_err();
    assert!(found[0].hint.contains("systemd-machine-id-setup") && found[0].hint.contains("reboot"));

    let codes = ["K8S-ID-003", "K8S-ID-004", "K8S-ID-005"];
    world.cluster.allow = codes.iter().map(|code| (*code).to_owned()).collect();
    let told = warnings(&world);
    // And the control groups of the recording.
    assert_eq!(told.len(), 4, "{told:#?}");
    assert_eq!(
        told[0],
        "allowed, at your own risk (K8S-ID-003): w1 and w2 have the same machine-id"
    );
    world.converge();
    assert_eq!(warnings(&world), [""; 0]);
    // One more of them.
    world.under(&HOMELAB.replace("w3: 192.168.7.206", "w3: 192.168.7.206, w4: 192.168.7.207"));
    world.host(&name("w4")).machine_id = Seen::Present("of the image".to_owned());
    assert_eq!(refused(&world), ["cluster: w1, w2 and w4 have the same machine-id"]);
    // What cannot be read is the same as nothing.
    let mut world = World::bare(world::cluster(HOMELAB), |_| "trixie-bare");
    for host in ["w1", "w2"] {
        world.host(&name(host)).machine_id = Seen::Absent;
        world.host(&name(host)).boot_id = String::new();
    }
    assert_eq!(warnings(&world).len(), 1, "nothing but the recording's control groups");
}

#[test]
fn a_node_that_the_inventory_calls_by_another_name_is_left_alone() {
    let rows = [
        ("w3: 192.168.7.206", "w4: 192.168.7.206", "w3", "w4", "192.168.7.206"),
        (
            "cp3: 192.168.7.203",
            "cp4: 192.168.7.203",
            "cp3",
            "cp4",
            "192.168.7.203",
        ),
        (
            "cp1: 192.168.7.201",
            "cp4: 192.168.7.201",
            "cp1",
            "cp4",
            "192.168.7.201",
        ),
    ];
    for (from, to, old, new, address) in rows {
        for silent in [false, true] {
            let mut world = called(&HOMELAB.replace(from, to), &[(old, new)]);
            if silent {
                world.silence();
            }
            assert_eq!(
                refused(&world),
                [format!(
                    "{new}: {address} is node {old} of this cluster (its kubelet's certificate says so), \
                     the inventory calls it {new}"
                )],
                "silent: {silent}"
            );
            if !silent {
                // What the hint says is true: the machine leaves under the name that the cluster knows.
                let mut world = world.clone();
                let plan = world::reset(&world, &[new]);
                let leader = if old == "cp1" { "cp2" } else { "cp1" };
                assert_eq!(world::titles(&plan, leader), [format!("take {old} out of the cluster")]);
                world.carry_out(&plan);
                world.converge();
                assert!(world.node(&name(old)).is_none() && world.node(&name(new)).is_some());
            }
            assert_eq!(
                hints(&world),
                [format!(
                    "call it {old} in the inventory. To give it another name, let it join anew: \
                     `k8sup reset --host {new}`, then apply"
                )]
            );
        }
    }
}

#[test]
fn swapped_names_are_refused_with_both() {
    for (one, other) in [("cp2", "cp3"), ("w1", "w3"), ("cp1", "cp2")] {
        for silent in [false, true] {
            let mut world = World::built(HOMELAB);
            let (first, second) = (
                world.cluster.host(&name(one)).unwrap().address.to_string(),
                world.cluster.host(&name(other)).unwrap().address.to_string(),
            );
            let swapped = HOMELAB
                .replace(&format!("{one}: {first}"), &format!("{one}: X"))
                .replace(&format!("{other}: {second}"), &format!("{other}: {first}"))
                .replace(&format!("{one}: X"), &format!("{one}: {second}"));
            let (machine, another) = (world.hosts[&name(one)].clone(), world.hosts[&name(other)].clone());
            world.under(&swapped);
            world.hosts.extend([(name(one), another), (name(other), machine)]);
            if silent {
                world.silence();
            }
            let mut told = refused(&world);
            told.sort();
            // Also what a certificate does not tell is compared, but told once.
            assert_eq!(
                told,
                [
                    format!(
                        "{one}: {second} is node {other} of this cluster (its kubelet's certificate says so), the inventory calls it {one}"
                    ),
                    format!(
                        "{other}: {first} is node {one} of this cluster (its kubelet's certificate says so), the inventory calls it {other}"
                    ),
                ],
                "silent: {silent}"
            );
            assert!(hints(&world)[0].contains("put its names and addresses back as they were"));
        }
    }
}

/// The host has this address now, and so says the inventory.
fn readdressed(host: &str, from: &str, to: &str) -> World {
    let mut world = World::built(HOMELAB);
    world.under(&HOMELAB.replace(&format!("{host}: {from}"), &format!("{host}: {to}")));
    world.host(&name(host)).addresses[0].address = format!("{to}/24").parse().unwrap();
    world
}

#[test]
fn a_host_with_a_new_address_must_join_anew() {
    for (host, from) in [
        ("w2", "192.168.7.205"),
        ("cp3", "192.168.7.203"),
        ("cp1", "192.168.7.201"),
    ] {
        let world = readdressed(host, from, "192.168.7.219");
        let told = refused(&world);
        let expected = format!("{host}: in the cluster {host} is at {from}, the inventory has it at 192.168.7.219");
        assert!(told.contains(&expected), "{told:#?}");
        assert!(
            hints(&world)
                .iter()
                .any(|hint| hint.contains(&format!("set it to {from}"))
                    && hint.contains(&format!("`k8sup reset --host {host}`, then apply"))),
            "{:#?}",
            hints(&world)
        );
    }
    // What the hint says is true, also for etcd, which still has the old address.
    for (host, from) in [
        ("w2", "192.168.7.205"),
        ("cp3", "192.168.7.203"),
        ("cp1", "192.168.7.201"),
    ] {
        let mut world = readdressed(host, from, "192.168.7.219");
        let plan = world::reset(&world, &[host]);
        world.carry_out(&plan);
        world.converge();
        let Seen::Present(members) = &world.api().members else {
            panic!()
        };
        assert_eq!(members.len(), 3);
    }
    // A control plane knows its address also when it is silent; a worker's only the API would know.
    let mut world = readdressed("cp3", "192.168.7.203", "192.168.7.219");
    world.silence();
    assert_eq!(
        refused(&world),
        ["cp3: its control plane was not made for 192.168.7.219, where the inventory has it"]
    );
}

#[test]
fn a_mistyped_address_of_a_host_that_is_not_in_reach_there_changes_nothing() {
    for host in ["cp2", "w2"] {
        let mut world = World::built(HOMELAB);
        let from = world.cluster.host(&name(host)).unwrap().address.to_string();
        world.under(&HOMELAB.replace(&from, "192.168.7.219"));
        world.down.insert(name(host));
        assert_eq!(
            refused(&world),
            [format!(
                "{host}: in the cluster {host} is at {from}, the inventory has it at 192.168.7.219"
            )]
        );
    }
}

#[test]
fn a_worker_that_was_installed_anew_may_come_back_at_another_address() {
    let mut world = readdressed("w2", "192.168.7.205", "192.168.7.219");
    world.reinstall("w2");
    // As long as its old Node is ready, it is another machine.
    assert!(refused(&world)[0].starts_with("w2: in the cluster w2 is at 192.168.7.205"));
    world.node(&name("w2")).unwrap().ready = false;
    assert_eq!(world::titles(&world.plan(), "cp1")[1..2], ["forget the old w2"]);
    world.converge();
    // A controller has its vote at the old address.
    let mut world = readdressed("cp3", "192.168.7.203", "192.168.7.219");
    world.reinstall("cp3");
    world.node(&name("cp3")).unwrap().ready = false;
    assert!(refused(&world)[0].starts_with("cp3: in the cluster cp3 is at 192.168.7.203"));
}

#[test]
fn etcds_members_are_compared_by_name_and_address_too() {
    // With nothing left of Node and certificate, they alone know.
    let mut world = readdressed("cp3", "192.168.7.203", "192.168.7.219");
    world.reinstall("cp3");
    let Seen::Present(nodes) = &mut world.api().nodes else {
        panic!()
    };
    nodes.remove("cp3");
    assert_eq!(
        refused(&world),
        ["cp3: etcd has cp3 at https://192.168.7.203:2380, the inventory has it at 192.168.7.219"]
    );
    let mut world = called(
        &HOMELAB.replace("cp3: 192.168.7.203", "cp4: 192.168.7.203"),
        &[("cp3", "cp4")],
    );
    world.reinstall("cp4");
    assert_eq!(
        refused(&world),
        ["cp4: etcd's member at 192.168.7.203 is cp3, the inventory has cp4 there"]
    );
}

#[test]
fn a_load_balancer_on_a_node_of_the_cluster_is_refused() {
    let world = called(
        &HOMELAB
            .replace("lb-0: 192.168.7.140", "lb-0: 192.168.7.206")
            .replace(", w3: 192.168.7.206", "")
            .replace("v1.34.4 }", "v1.34.4, endpoint: 192.168.7.140 }"),
        &[("w3", "lb-0")],
    );
    assert!(
        refused(&world)
            .iter()
            .any(|line| line.starts_with("lb-0: 192.168.7.206 is node w3 of this cluster")),
        "{:#?}",
        refused(&world)
    );
}

#[test]
fn what_the_inventory_does_not_list_any_more_is_named() {
    let mut world = World::built(HOMELAB);
    world.under(
        &HOMELAB
            .replace(", cp3: 192.168.7.203", "")
            .replace(", w3: 192.168.7.206", ""),
    );
    let remove =
        |host: &str| format!("to remove it, list it again, `k8sup reset --host {host}`, and only then take it out");
    assert_eq!(
        warnings(&world),
        [
            format!(
                "the cluster has the controller cp3 (192.168.7.203), which the inventory does not list: it keeps its \
                 vote in etcd, but haproxy does not forward to it; {}",
                remove("cp3")
            ),
            format!(
                "the cluster has the worker w3 (192.168.7.206), which the inventory does not list: it is left as it is; {}",
                remove("w3")
            ),
        ]
    );
    // A voter whose Node is gone, and one that never was a Node.
    let Seen::Present(nodes) = &mut world.api().nodes else {
        panic!()
    };
    nodes.remove("cp3");
    nodes.insert("other".to_owned(), NodeFact::default());
    let Seen::Present(members) = &mut world.api().members else {
        panic!()
    };
    members.push(Member {
        id: "1f".to_owned(),
        name: "elsewhere".to_owned(),
        peer_urls: vec!["https://10.0.0.9:2380".to_owned()],
        learner: false,
    });
    let told = warnings(&world);
    for (expected, line) in [
        "the cluster has the worker other, which",
        "the cluster has the worker w3 (192.168.7.206)",
        "etcd has the member cp3 at https://192.168.7.203:2380, which is neither a node nor in the inventory",
        "etcd has the member elsewhere at https://10.0.0.9:2380",
    ]
    .iter()
    .zip(&told)
    {
        assert!(line.starts_with(expected), "{told:#?}");
    }
    assert_eq!(told.len(), 4);
}
