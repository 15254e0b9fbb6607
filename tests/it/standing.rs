//! Where a host stands, and what is done about it: one row for every place at which kubeadm can be ended.

use k8sup::cluster::Role;
use k8sup::facts::kube::Certificate;
use k8sup::facts::{KubeFacts, Observation, Seen};
use k8sup::plan::Plan;
use k8sup::plan::standing::{self, Standing};
use k8sup::render::kubeadm::cert_sans;

use crate::simulate::World;
use crate::world::{self, HOMELAB, everything, name, only};

/// The beginning of [`HOMELAB`]: its load balancer and its first controller.
const FIRST: &str = "
cluster: { name: homelab, kubernetes: v1.34.4 }
ssh: { user: pi }
loadBalancers: { lb-0: 192.168.7.140 }
controllers: { cp1: 192.168.7.201 }
";

const FOUND: &str = "kubeadm init: control plane";
const PUBLISH: &str = "kubeadm init: cluster configuration and add-ons";
const AS_CONTROLLER: &str = "kubeadm join as controller";
const AS_WORKER: &str = "kubeadm join as worker";
const CLEAR: &str = "clear what is half made";
const AWAIT: &str = "wait for the API server";

/// A standing without its reason.
fn kind(standing: &Standing) -> &'static str {
    match standing {
        Standing::Bare => "bare",
        Standing::Member => "member",
        Standing::Unfinished => "unfinished",
        Standing::HalfMade(_) => "half made",
        Standing::Started => "started",
        Standing::Foreign(_) => "foreign",
        Standing::Unknown(_) => "unknown",
    }
}

/// Where a host stands, as the planner sees it.
fn stands(world: &World, host: &str) -> Standing {
    let facts = world.facts();
    let inventory = world.cluster.host(&name(host)).unwrap();
    let seen = &world.hosts[&inventory.name];
    match facts.cluster.present() {
        None => standing::before_cluster(inventory, seen, &cert_sans(&world.cluster)),
        Some(live) => {
            let asked = &world.hosts[live.asked.as_ref().unwrap()];
            let ca = asked.kube.ca.present().map(|ca| ca.spki_sha256.as_str());
            standing::in_cluster(inventory, seen, live, ca)
        }
    }
}

/// Of the titles of a host's steps those that kubeadm has to do with.
fn kubeadm(plan: &Plan, host: &str) -> Vec<String> {
    let ours = [
        FOUND,
        PUBLISH,
        AS_CONTROLLER,
        AS_WORKER,
        CLEAR,
        AWAIT,
        "finish the join",
    ];
    let mut titles = world::titles(plan, host);
    titles.retain(|title| ours.contains(&title.as_str()) || title.starts_with("forget"));
    titles
}

fn prepared(inventory: &str) -> World {
    let mut world = World::bare(world::cluster(inventory), |_| "trixie-bare");
    world.prepare();
    world
}

/// A cluster of one controller, and hosts that are ready to join it.
fn waiting() -> World {
    let mut world = World::built(FIRST);
    world.under(HOMELAB);
    world.prepare();
    world
}

/// After that many parts a host stands where it is expected, and kubeadm has these steps to do on it.
fn assert_goes_on(world: &World, host: &str, parts: usize, standing: &str, steps: &[&str]) -> Plan {
    assert_eq!(kind(&stands(world, host)), standing, "after {parts} parts");
    let plan = world.plan();
    assert_eq!(
        kubeadm(&plan, host),
        steps,
        "after {parts} parts:\n{}",
        world::outline(&plan)
    );
    plan
}

#[test]
fn an_init_that_ended_anywhere_goes_on_from_there() {
    let rows: [(usize, &str, &[&str]); 7] = [
        (0, "bare", &[FOUND, PUBLISH]),
        // Certificates alone are reused.
        (1, "bare", &[FOUND, PUBLISH]),
        (2, "half made", &[CLEAR, FOUND, PUBLISH]),
        (3, "half made", &[CLEAR, FOUND, PUBLISH]),
        (4, "half made", &[CLEAR, FOUND, PUBLISH]),
        // etcd has data: never cleared, whether the API answers or not.
        (5, "started", &[AWAIT]),
        (6, "member", &[PUBLISH]),
    ];
    for (parts, expected, steps) in rows {
        let mut world = prepared(HOMELAB);
        world.begin("cp1", FOUND, parts);
        let plan = assert_goes_on(&world, "cp1", parts, expected, steps);
        assert_eq!(plan.continues.is_some(), expected == "started", "after {parts} parts");
        world.converge();
    }
}

#[test]
fn what_init_has_not_published_yet_is_published() {
    for parts in 0..=8 {
        let mut world = prepared(HOMELAB);
        world.begin("cp1", FOUND, usize::MAX);
        world.begin("cp1", PUBLISH, parts);
        let expected: &[&str] = if parts == 8 { &[] } else { &[PUBLISH] };
        assert_goes_on(&world, "cp1", parts, "member", expected);
        world.converge();
    }
}

#[test]
fn a_join_of_a_worker_that_ended_anywhere_goes_on_from_there() {
    let rows: [(usize, &str, &[&str], &[&str]); 6] = [
        (0, "bare", &[AS_WORKER], &[]),
        (1, "half made", &[CLEAR, AS_WORKER], &[]),
        (2, "half made", &[CLEAR, AS_WORKER], &[]),
        // kubelet.conf without a Node.
        (3, "half made", &[CLEAR, AS_WORKER], &[]),
        (4, "unfinished", &["finish the join"], &[]),
        (5, "member", &[], &[]),
    ];
    for (parts, expected, steps, leader) in rows {
        let mut world = waiting();
        world.begin("w1", AS_WORKER, parts);
        let plan = assert_goes_on(&world, "w1", parts, expected, steps);
        assert_eq!(kubeadm(&plan, "cp1"), leader, "after {parts} parts");
        world.converge();
    }
}

#[test]
fn a_join_of_a_controller_that_ended_anywhere_goes_on_from_there() {
    let forget = "forget the old cp2";
    let rows: [(usize, &str, &[&str], &[&str]); 11] = [
        (0, "bare", &[AS_CONTROLLER], &[]),
        (1, "half made", &[CLEAR, AS_CONTROLLER], &[]),
        (2, "half made", &[CLEAR, AS_CONTROLLER], &[]),
        (3, "half made", &[CLEAR, AS_CONTROLLER], &[]),
        (4, "half made", &[CLEAR, AS_CONTROLLER], &[]),
        // From here on the cluster knows it.
        (5, "half made", &[CLEAR, AS_CONTROLLER], &[forget]),
        (6, "half made", &[CLEAR, AS_CONTROLLER], &[forget]),
        // A learner is left behind.
        (7, "half made", &[CLEAR, AS_CONTROLLER], &[forget]),
        // It votes: never cleared any more.
        (8, "unfinished", &["finish the join"], &[]),
        (9, "member", &[], &[]),
        (10, "member", &[], &[]),
    ];
    for (parts, expected, steps, leader) in rows {
        let mut world = waiting();
        world.begin("cp2", AS_CONTROLLER, parts);
        let plan = assert_goes_on(&world, "cp2", parts, expected, steps);
        assert_eq!(kubeadm(&plan, "cp1"), leader, "after {parts} parts");
        world.converge();
    }
}

#[test]
fn a_host_that_was_installed_anew_is_forgotten_and_joins_again() {
    for (host, join) in [("w2", AS_WORKER), ("cp3", AS_CONTROLLER), ("cp1", AS_CONTROLLER)] {
        let mut world = World::built(HOMELAB);
        world.reinstall(host);
        assert_eq!(stands(&world, host), Standing::Bare);
        let plan = world.plan();
        assert_eq!(kubeadm(&plan, host), [join]);
        let leader = if host == "cp1" { "cp2" } else { "cp1" };
        assert_eq!(kubeadm(&plan, leader), [format!("forget the old {host}")]);
        world.converge();
    }
}

#[test]
fn a_voter_without_its_data_is_cleared_first_and_forgotten_only_then() {
    let mut world = World::built(HOMELAB);
    world.host(&name("cp3")).kube.etcd_data = false;
    assert_eq!(kind(&stands(&world, "cp3")), "half made");
    let plan = world.plan();
    assert_eq!(kubeadm(&plan, "cp3"), [CLEAR, AS_CONTROLLER]);
    let lane = plan.lanes.iter().find(|lane| lane.host.as_str() == "cp1").unwrap();
    let forget = lane
        .steps
        .iter()
        .find(|planned| planned.step.title() == "forget the old cp3")
        .unwrap();
    assert_eq!(format!("{:?}", forget.only_if), "[Cleared(NodeName(\"cp3\"))]");
    world.converge();
}

#[test]
fn a_controller_that_etcd_has_let_go_of_joins_again() {
    let mut world = World::built(HOMELAB);
    match &mut world.api().members {
        Seen::Present(members) => members.retain(|member| member.name != "cp3"),
        other => panic!("{other:?}"),
    }
    assert_eq!(kind(&stands(&world, "cp3")), "half made");
    world.converge();
}

#[test]
fn what_is_somebody_elses_is_left_alone() {
    type Change = fn(&mut KubeFacts);
    let other = || Certificate {
        spki_sha256: "another authority".to_owned(),
        ..Certificate::default()
    };
    let rows: [(&str, &str, Change, &str); 6] = [
        (
            "cp2",
            "orphan etcd data",
            |kube| kube.etcd_data = true,
            "holds etcd data, but kubeadm's etcd manifest is missing",
        ),
        (
            "w1",
            "a worker of another cluster",
            |kube| {
                kube.files.insert("/etc/kubernetes/kubelet.conf".to_owned());
                kube.files.insert("/etc/kubernetes/pki/ca.crt".to_owned());
                kube.ca = Seen::Present(Certificate {
                    spki_sha256: "another authority".to_owned(),
                    ..Certificate::default()
                });
            },
            "its CA is another cluster's",
        ),
        (
            "cp2",
            "a controller of another cluster",
            |kube| {
                kube.files.insert("/etc/kubernetes/manifests/etcd.yaml".to_owned());
                kube.files.insert("/etc/kubernetes/pki/ca.crt".to_owned());
                kube.etcd_data = true;
                kube.ca = Seen::Present(Certificate {
                    spki_sha256: "another authority".to_owned(),
                    ..Certificate::default()
                });
            },
            "its CA is another cluster's",
        ),
        (
            "cp3",
            "orphan etcd data in a folder of its own",
            |kube| {
                kube.etcd_data = true;
                kube.etcd_data_dir = "/data/etcd".to_owned();
            },
            "/data/etcd holds etcd data",
        ),
        (
            "w2",
            "a certificate that cannot be read",
            |kube| {
                kube.files.insert("/etc/kubernetes/pki/ca.crt".to_owned());
                kube.kubelet = Seen::Unknown("i/o error".to_owned());
                kube.ca = Seen::Present(Certificate {
                    spki_sha256: "another authority".to_owned(),
                    ..Certificate::default()
                });
            },
            "its CA is another cluster's",
        ),
        (
            "w3",
            "another cluster's kubelet without a certificate file",
            |kube| {
                kube.files.insert("/etc/kubernetes/kubelet.conf".to_owned());
                let config = k8sup::facts::kube::Kubeconfig {
                    server: "https://10.0.0.1:6443".to_owned(),
                    ca_spki_sha256: Some("another authority".to_owned()),
                };
                kube.kubeconfigs.insert("kubelet".to_owned(), config);
            },
            "another cluster's at https://10.0.0.1:6443",
        ),
    ];
    assert_eq!(other().spki_sha256, "another authority");
    for (host, what, change, expected) in rows {
        let mut world = waiting();
        change(&mut world.host(&name(host)).kube);
        assert_eq!(kind(&stands(&world, host)), "foreign", "{what}");
        let blockers = world::blockers(&world.cluster, &world.facts(), &everything());
        assert!(
            blockers
                .iter()
                .any(|line| line.starts_with(host) && line.contains(expected)),
            "{what}: {blockers:#?}"
        );
    }
}

#[test]
fn before_there_is_a_cluster_other_peoples_things_are_left_alone_too() {
    let mut world = prepared(HOMELAB);
    world.host(&name("cp2")).kube.etcd_data = true;
    world
        .host(&name("w1"))
        .kube
        .files
        .insert("/etc/kubernetes/kubelet.conf".to_owned());
    let blockers = world::blockers(&world.cluster, &world.facts(), &everything());
    assert_eq!(
        blockers,
        [
            "cp2: /var/lib/etcd holds etcd data, but kubeadm's etcd manifest is missing",
            "w1: it has joined a cluster that none of the controllers knows",
        ]
    );
}

/// Files of another cluster's authority.
fn foreign_authority(kube: &mut KubeFacts) {
    kube.files.insert("/etc/kubernetes/pki/ca.crt".to_owned());
    kube.files.insert("/etc/kubernetes/pki/ca.key".to_owned());
    kube.ca = Seen::Present(Certificate {
        spki_sha256: "another authority".to_owned(),
        ..Certificate::default()
    });
}

#[test]
fn an_authority_of_its_own_makes_a_controller_foreign() {
    let expected = |host: &str, founder: &str| {
        format!(
            "{host}: its certificate authority in /etc/kubernetes/pki is not that of {founder}, on which the cluster is founded"
        )
    };
    // The founder brings one, or none.
    for (brought, half_made) in [(false, false), (true, false), (false, true)] {
        let mut world = prepared(HOMELAB);
        if brought {
            world.begin("cp1", FOUND, 1);
        }
        let kube = &mut world.host(&name("cp3")).kube;
        foreign_authority(kube);
        if half_made {
            for file in ["admin.conf", "kubelet.conf", "pki/apiserver.crt"] {
                kube.files.insert(format!("/etc/kubernetes/{file}"));
            }
            // Nobody's but the owner's: k8sup was never here.
            world.host(&name("cp3")).record = Seen::Absent;
        }
        let blockers = world::blockers(&world.cluster, &world.facts(), &everything());
        assert_eq!(blockers, [expected("cp3", "cp1")], "{brought} {half_made}");
    }
    // Beside a control plane that is silent.
    let mut world = World::built(HOMELAB);
    world.silence();
    world.reinstall("cp1");
    foreign_authority(&mut world.host(&name("cp1")).kube);
    assert_eq!(
        world::blockers(&world.cluster, &world.facts(), &everything()),
        [expected("cp1", "cp2")]
    );
    // The same authority on all of them is on purpose.
    let mut world = prepared(HOMELAB);
    for host in ["cp1", "cp2"] {
        foreign_authority(&mut world.host(&name(host)).kube);
    }
    assert_eq!(kubeadm(&world.plan(), "cp1"), [FOUND, PUBLISH]);
}

#[test]
fn what_k8sup_left_half_made_on_another_controller_is_cleared_with_a_new_founder() {
    let mut world = waiting();
    world.begin("cp2", AS_CONTROLLER, 4);
    world.reinstall("cp1");
    world.live = None;
    assert_eq!(kubeadm(&world.plan(), "cp2"), [CLEAR, AS_CONTROLLER]);
}

#[test]
fn a_node_of_a_cluster_that_none_of_the_controllers_knows_is_not_cleared_as_a_controller() {
    let world = World::built(HOMELAB);
    let worker = world.hosts[&name("w1")].clone();
    let mut world = prepared(HOMELAB);
    for host in ["cp1", "cp2"] {
        world.host(&name(host)).kube = worker.kube.clone();
        assert_eq!(
            stands(&world, host),
            Standing::Foreign("it has joined a cluster at https://192.168.7.140:6443 as a worker".to_owned())
        );
    }
    // Nor a control plane whose etcd is on other machines.
    let mut world = prepared(HOMELAB);
    world.begin("cp1", FOUND, 4);
    let controller = world.host(&name("cp1"));
    controller.kube.files.remove("/etc/kubernetes/manifests/etcd.yaml");
    controller.record = Seen::Absent;
    assert_eq!(
        stands(&world, "cp1"),
        Standing::Foreign("static pods of a control plane are there, but no etcd".to_owned())
    );
}

#[test]
fn data_in_etcds_folder_that_nobody_knows_is_found_before_anything_is_done() {
    let strange = |host: &str| format!("{host}: /var/lib/etcd is not empty, and what is in it is of unknown origin");
    for host in ["cp1", "cp3"] {
        let mut world = World::bare(world::cluster(HOMELAB), |_| "trixie-bare");
        world.host(&name(host)).kube.etcd_dir_used = true;
        assert_eq!(
            world::blockers(&world.cluster, &world.facts(), &everything()),
            [strange(host)]
        );
        // With a folder of its own for etcd it is in nobody's way.
        world.under(&format!(
            "{HOMELAB}kubeadm: {{ etcd: {{ local: {{ dataDir: /data/etcd }} }} }}\n"
        ));
        assert!(!world.plan().is_empty());
    }
    // In a cluster, and of a join that was ended before etcd: the clearing would take it along.
    let mut world = waiting();
    world.begin("cp3", AS_CONTROLLER, 4);
    world.host(&name("cp2")).kube.etcd_dir_used = true;
    world.host(&name("cp3")).kube.etcd_dir_used = true;
    assert_eq!(kind(&stands(&world, "cp3")), "half made");
    assert_eq!(
        world::blockers(&world.cluster, &world.facts(), &everything()),
        [strange("cp2"), strange("cp3")]
    );
    // A worker's is its own business, and so is that of a host which is left out.
    let mut world = waiting();
    world.host(&name("w1")).kube.etcd_dir_used = true;
    world.host(&name("cp2")).kube.etcd_dir_used = true;
    let facts = world.facts();
    assert!(world::try_plan(&world.cluster, &facts, &only(&["w1", "cp3"])).is_ok());
}

#[test]
fn a_voter_whose_manifest_is_set_aside_keeps_its_data() {
    let mut world = World::built(HOMELAB);
    let kube = &mut world.host(&name("cp3")).kube;
    kube.files.remove("/etc/kubernetes/manifests/etcd.yaml");
    let orphan = "/var/lib/etcd holds etcd data, but kubeadm's etcd manifest is missing";
    assert_eq!(stands(&world, "cp3"), Standing::Foreign(orphan.to_owned()));
    // Nor is a learner's taken for granted.
    match &mut world.api().members {
        Seen::Present(members) => members
            .iter_mut()
            .filter(|m| m.name == "cp3")
            .for_each(|m| m.learner = true),
        other => panic!("{other:?}"),
    }
    assert_eq!(stands(&world, "cp3"), Standing::Foreign(orphan.to_owned()));
    let blockers = world::try_plan(&world.cluster, &world.facts(), &everything()).unwrap_err();
    assert!(
        blockers[0].hint.starts_with("nothing is deleted"),
        "{}",
        blockers[0].hint
    );
}

#[test]
fn certificates_that_lack_names_are_made_anew() {
    let mut world = prepared(HOMELAB);
    world.begin("cp1", FOUND, 1);
    if let Seen::Present(certificate) = &mut world.host(&name("cp1")).kube.apiserver {
        certificate.addresses.clear();
    }
    assert_eq!(kind(&stands(&world, "cp1")), "half made");
    world.converge();
}

#[test]
fn a_healthy_host_in_another_role_is_not_made_anew() {
    let mut world = World::built(HOMELAB);
    world.under(
        &HOMELAB
            .replace("cp3: 192.168.7.203", "cp3: 192.168.7.203, w3: 192.168.7.206")
            .replace(", w3: 192.168.7.206 }\n", " }\n"),
    );
    let promoted = HOMELAB
        .replace("cp3: 192.168.7.203", "cp3: 192.168.7.203, w1: 192.168.7.204")
        .replace("workers: { w1: 192.168.7.204, ", "workers: { ");
    world.under(&promoted);
    assert_eq!(world.cluster.host(&name("w1")).unwrap().role, Role::Controller);
    assert_eq!(
        stands(&world, "w1"),
        Standing::Foreign("it is in this cluster as a worker".to_owned())
    );
    // Nor the other way round: it would keep its vote and its control plane.
    let demoted = HOMELAB
        .replace(", cp3: 192.168.7.203", "")
        .replace("workers: { ", "workers: { cp3: 192.168.7.203, ");
    let mut world = World::built(HOMELAB);
    world.under(&demoted);
    assert_eq!(
        stands(&world, "cp3"),
        Standing::Foreign("it is in this cluster as a controller".to_owned())
    );
    let plan = world::reset(&world, &["cp3"]);
    world.carry_out(&plan);
    let Seen::Present(members) = &world.api().members else {
        panic!()
    };
    assert_eq!(members.len(), 2, "its vote goes with it");
    world.converge();
}

#[test]
fn what_cannot_be_read_is_not_taken_for_absent() {
    let mut world = World::built(HOMELAB);
    world.host(&name("w1")).kube.kubelet = Seen::Unknown("i/o error".to_owned());
    assert_eq!(kind(&stands(&world, "w1")), "unknown");
    let blockers = world::blockers(&world.cluster, &world.facts(), &everything());
    assert_eq!(
        blockers,
        [
            "w1: it cannot be told whether it belongs to the cluster: its kubelet's certificate cannot be read: i/o error"
        ]
    );

    let mut world = World::built(HOMELAB);
    world.host(&name("cp1")).kube.ca = Seen::Unknown("i/o error".to_owned());
    for host in ["cp2", "w1"] {
        assert_eq!(kind(&stands(&world, host)), "unknown", "{host}");
    }

    // With etcd silent, members are left alone and nobody is cleared.
    for (parts, expected) in [(3, "unknown"), (5, "unknown"), (7, "member"), (10, "member")] {
        let mut world = waiting();
        world.begin("cp2", AS_CONTROLLER, parts);
        world.api().members = Seen::Unknown("context deadline exceeded".to_owned());
        assert_eq!(kind(&stands(&world, "cp1")), "member");
        assert_eq!(kind(&stands(&world, "cp2")), expected, "after {parts} parts");
    }
}

#[test]
fn the_controller_that_answers_is_never_cleared() {
    let mut world = World::built(HOMELAB);
    world.host(&name("cp1")).kube.etcd_data = false;
    // Its etcd was asked for the members: the data has come since its disk was looked at.
    assert_eq!(kind(&stands(&world, "cp1")), "member");
    let Seen::Present(members) = &mut world.api().members else {
        panic!()
    };
    members.retain(|member| member.name != "cp1");
    let blockers = world::blockers(&world.cluster, &world.facts(), &everything());
    assert_eq!(
        blockers,
        ["cp1: its API server answers, but a join ended before it was part of etcd"]
    );
}

#[test]
fn a_control_plane_that_is_silent_is_waited_for() {
    let mut world = World::built(HOMELAB);
    world.silence();
    for host in ["cp1", "cp2", "cp3"] {
        assert_eq!(stands(&world, host), Standing::Started);
    }
    let plan = world.plan();
    for host in ["cp1", "cp2", "cp3"] {
        assert_eq!(world::titles(&plan, host), [AWAIT]);
    }
    assert!(plan.continues.is_some());
    // Its workers are its own, and nobody is asked to reset them.
    assert_eq!(world::titles(&plan, "w1"), [""; 0]);
    // Also with one of them gone for good: what was started is no new cluster.
    world.down.insert(name("cp1"));
    let plan = world.plan();
    assert_eq!(world::titles(&plan, "cp2"), [AWAIT]);
    assert_eq!(world::titles(&plan, "cp1"), [""; 0]);
    world.down.clear();
    world.converge();
}

#[test]
fn no_second_cluster_is_founded_beside_one_that_is_out_of_sight() {
    let mut world = World::built(FIRST);
    world.under(HOMELAB);
    world.prepare();
    world.down.insert(name("cp1"));
    let blocked = "cp1: the controller cannot be reached, and a new cluster needs it: no route to host";
    for intent in [everything(), only(&["cp2"]), only(&["cp2", "cp3", "w1"])] {
        assert_eq!(world::blockers(&world.cluster, &world.facts(), &intent)[0], blocked);
    }
}

#[test]
fn workers_of_a_cluster_that_is_out_of_sight_are_not_to_be_reset() {
    let mut world = World::built(&HOMELAB.replace(", cp2: 192.168.7.202, cp3: 192.168.7.203", ""));
    world.down.insert(name("cp1"));
    let blockers = world::blockers(&world.cluster, &world.facts(), &everything());
    assert_eq!(
        blockers[0],
        "cp1: the controller cannot be reached, and a new cluster needs it: no route to host"
    );
    let unknown = "it cannot be told whether it belongs to the cluster: a controller could not be looked at";
    assert_eq!(
        blockers[1..],
        ["w1", "w2", "w3"].map(|host| format!("{host}: {unknown}"))
    );
    // With a control plane that is only silent, a stranger is still told apart.
    world.down.clear();
    world.silence();
    if let Seen::Present(ca) = &mut world.host(&name("w2")).kube.ca {
        ca.spki_sha256 = "another authority".to_owned();
    }
    let blockers = world::blockers(&world.cluster, &world.facts(), &everything());
    assert_eq!(
        blockers,
        ["w2: it has joined a cluster at https://192.168.7.140:6443 that none of the controllers knows"]
    );
}

#[test]
fn an_observation_is_only_as_good_as_its_hosts() {
    // The helper that all of the above rests on: a host that is down is no fact.
    let mut world = World::built(HOMELAB);
    world.down.insert(name("w1"));
    assert!(matches!(world.facts().hosts[&name("w1")], Observation::Unreachable(_)));
}
