//! The registry of checks: its codes, its document, and facts that each check finds or lets pass.

use std::collections::BTreeSet;

use k8sup::check::{self, Level, NotAllowable};
use k8sup::execute::verify::has_just_grown;
use k8sup::facts::platform::Disk;
use k8sup::facts::{HostFacts, Listener, Route, Seen, Service};
use k8sup::inventory::schema;
use k8sup::plan::apply;

use crate::simulate::World;
use crate::world::{self, HOMELAB, everything, name};

#[test]
fn codes_are_unique_and_of_one_kind() {
    let codes: BTreeSet<_> = check::ALL.iter().map(|check| check.code).collect();
    assert_eq!(codes.len(), check::ALL.len());
    for check in check::ALL {
        let mut parts = check.code.split('-');
        let (head, group, number) = (parts.next(), parts.next(), parts.next());
        assert_eq!((head, parts.next()), (Some("K8S"), None), "{}", check.code);
        assert!(group.is_some_and(|group| group.chars().all(|c| c.is_ascii_uppercase())));
        assert!(number.is_some_and(|number| number.len() == 3 && number.chars().all(|c| c.is_ascii_digit())));
        assert!(
            check.sentence.ends_with('.') && !check.advice.is_empty(),
            "{}",
            check.code
        );
        assert!(check.level == Level::Refuse || !check.allowable, "{}", check.code);
    }
}

/// `K8SUP_UPDATE=1` writes them anew.
#[test]
fn the_documents_are_those_of_the_code() {
    let schema = serde_json::to_string_pretty(&schema::json()).unwrap() + "\n";
    for (name, text) in [
        ("docs/checks.md", check::document()),
        ("docs/inventory.md", schema::document()),
        ("inventories/schema.json", schema),
    ] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        if std::env::var_os("K8SUP_UPDATE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert_eq!(world::read(name), text, "{name}");
    }
}

#[test]
fn only_what_can_end_well_can_be_allowed() {
    assert_eq!(check::allowable("k8s-net-006"), Ok("K8S-NET-006"));
    assert_eq!(check::allowable("K8S-ID-002"), Err(NotAllowable::Warning("K8S-ID-002")));
    assert_eq!(
        check::allowable("K8S-SWAP-001"),
        Err(NotAllowable::Mended("K8S-SWAP-001"))
    );
    assert!(matches!(
        check::allowable("K8S-ARCH-001"),
        Err(NotAllowable::Never { .. })
    ));
    assert_eq!(
        check::allowable("K8S-NET-999"),
        Err(NotAllowable::Unknown("K8S-NET-999".to_owned()))
    );
}

/// Bare hosts. Those of the recording have control groups of version 1, about which there is a warning.
fn bare(inventory: &str) -> World {
    let mut world = World::bare(world::cluster(inventory), |_| "trixie-bare");
    for facts in world.hosts.values_mut() {
        facts.cgroup.version = 2;
    }
    world
}

/// What is found on bare hosts, one of which is like this: `CODE HOST message`.
fn found(inventory: &str, host: &str, change: impl Fn(&mut HostFacts)) -> Vec<String> {
    let mut world = bare(inventory);
    change(world.host(&name(host)));
    let findings = match world::try_plan(&world.cluster, &world.facts(), &everything()) {
        Ok(plan) => plan.warnings,
        Err(blockers) => blockers,
    };
    findings
        .iter()
        .map(|finding| {
            let host = finding.host.as_ref().map_or("-", |host| host.as_str());
            format!("{} {host} {}", finding.check.code, finding.message)
        })
        .collect()
}

#[test]
fn a_bare_lab_has_nothing_in_the_way() {
    assert_eq!(found(HOMELAB, "cp1", |_| {}), [""; 0]);
}

/// The file system of /var/lib.
fn disk(facts: &mut HostFacts) -> &mut Disk {
    match &mut facts.platform.disks {
        Seen::Present(disks) => disks.get_mut("/var/lib").unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn machines_that_are_too_small_are_told() {
    let one_cpu = |facts: &mut HostFacts| facts.cpus = 1;
    assert_eq!(
        found(HOMELAB, "cp2", one_cpu),
        ["K8S-RES-001 cp2 it has one processor, a controller needs two"]
    );
    assert_eq!(found(HOMELAB, "w1", one_cpu), [""; 0]);
    let memory = |kib: u64| move |facts: &mut HostFacts| facts.memory_kib = kib;
    assert_eq!(
        found(HOMELAB, "cp2", memory(948_000)),
        ["K8S-RES-002 cp2 it has 925 MB of memory, a controller needs 1700 MB"]
    );
    assert_eq!(found(HOMELAB, "w1", memory(948_000)), [""; 0]);
    assert_eq!(
        found(HOMELAB, "w1", memory(500_000)),
        ["K8S-RES-003 w1 it has 488 MB of memory, hardly enough for pods"]
    );
    assert_eq!(
        found(HOMELAB, "w1", |facts| disk(facts).free_kib = 2_000_000),
        ["K8S-RES-004 w1 1953 MB are free in /var/lib, a worker needs 3072 MB"]
    );
    assert_eq!(
        found(HOMELAB, "w1", |facts| {
            facts.cgroup.controllers.remove("cpuset");
        }),
        ["K8S-KRN-002 w1 these control groups are off: cpuset"]
    );
}

#[test]
fn clocks_are_compared_with_each_other_and_with_ours() {
    // Seconds by which all clocks are ahead of ours, and w2's of the others.
    let told = |all: i64, w2: i64| -> Vec<String> {
        let mut world = bare(HOMELAB);
        for (host, facts) in &mut world.hosts {
            facts.clock_skew = Some(if *host == name("w2") { all + w2 } else { all });
        }
        let findings = match world::try_plan(&world.cluster, &world.facts(), &everything()) {
            Ok(plan) => plan.warnings,
            Err(blockers) => blockers,
        };
        findings.into_iter().map(|found| found.message).collect()
    };
    assert_eq!(told(0, 5), [""; 0]);
    assert_eq!(
        told(0, -40_000_000),
        ["its clock is 462 days earlier than most others'"]
    );
    let told = told(600, 0);
    assert_eq!(
        told,
        ["the hosts agree on the time, and it is 10 min later than this machine's"]
    );
}

#[test]
fn networks_that_a_host_knows_are_not_given_to_the_cluster() {
    let route = |to: &'static str, through: &'static str| {
        move |facts: &mut HostFacts| {
            facts.routes.push(Route {
                destination: to.parse().unwrap(),
                interface: through.to_owned(),
            });
        }
    };
    assert_eq!(
        found(HOMELAB, "w1", route("10.244.0.0/14", "wg0")),
        ["K8S-NET-006 w1 the pod CIDR 10.244.0.0/16 overlaps 10.244.0.0/14, which the host knows already"]
    );
    assert_eq!(
        found(HOMELAB, "w1", route("10.96.3.0/24", "tun0")),
        ["K8S-NET-007 w1 the service CIDR 10.96.0.0/12 overlaps 10.96.3.0/24, which the host knows already"]
    );
    // Of an earlier cluster.
    for link in ["cni0", "flannel.1"] {
        assert_eq!(found(HOMELAB, "w1", route("10.244.3.0/24", link)), [""; 0]);
    }
    assert_eq!(
        found(HOMELAB, "w1", |facts| facts.nameservers = vec!["10.96.0.10".to_owned()]),
        ["K8S-NET-007 w1 its nameserver 10.96.0.10 is within the pod or service CIDR, so it could not be reached"]
    );
    assert_eq!(
        found(HOMELAB, "w1", |facts| facts
            .routes
            .retain(|route| route.destination.prefix_len() > 0)),
        ["K8S-NET-002 w1 it has no default route"]
    );
    let wired = HOMELAB.replace("w1: 192.168.7.204", "w1: { address: 192.168.7.204, interface: eth7 }");
    assert_eq!(found(&wired, "w2", |_| {}), ["K8S-NET-005 w1 it has no interface eth7"]);
}

#[test]
fn ports_of_others_are_told_and_those_of_the_cluster_are_not() {
    let listens = |port: u16, process: &'static str| {
        move |facts: &mut HostFacts| {
            facts.listening.push(Listener {
                address: "0.0.0.0".to_owned(),
                port,
                process: Some(process.to_owned()),
            });
        }
    };
    for (host, port, process) in [
        ("lb-0", 6443, "perl"),
        ("cp2", 6443, "k3s"),
        ("cp2", 2381, "etcd"),
        ("w1", 10250, "k0s"),
    ] {
        assert_eq!(
            found(HOMELAB, host, listens(port, process)),
            [format!("K8S-NET-012 {host} port {port} is taken by {process}")]
        );
    }
    assert_eq!(found(HOMELAB, "lb-0", listens(6443, "haproxy")), [""; 0]);
    // The listener of a proof that somebody else has under way.
    assert_eq!(found(HOMELAB, "cp2", listens(6443, "k8sup-listen")), [""; 0]);
    assert_eq!(found(HOMELAB, "w1", listens(6443, "nginx")), [""; 0]);
}

#[test]
fn a_load_balancer_that_serves_others_is_not_taken_over() {
    let serves = |config: &'static str, active: bool| {
        move |facts: &mut HostFacts| {
            let file = facts.files.entry("/etc/haproxy/haproxy.cfg".to_owned()).or_default();
            config.clone_into(&mut file.content);
            facts
                .services
                .insert("haproxy".to_owned(), Service { enabled: true, active });
        }
    };
    let mysite = "frontend mysite\n  bind *:80\n";
    assert_eq!(
        found(HOMELAB, "lb-0", serves(mysite, true)),
        ["K8S-LB-001 lb-0 its haproxy already serves mysite (*:80), which would end"]
    );
    assert_eq!(found(HOMELAB, "lb-0", serves(mysite, false)), [""; 0]);
    assert_eq!(
        found(HOMELAB, "lb-0", serves("frontend k8s\n  bind *:6443\n", true)),
        [""; 0]
    );
}

#[test]
fn the_endpoints_name_must_lead_to_the_cluster() {
    let named = HOMELAB.replace("v1.34.4 }", "v1.34.4, endpoint: k8s.lan }");
    let leads = |to: &'static str| {
        move |facts: &mut HostFacts| facts.endpoint_resolves = Seen::Present(vec![to.parse().unwrap()])
    };
    assert_eq!(found(&named, "w1", leads("192.168.7.140")), [""; 0]);
    assert_eq!(
        found(&named, "w1", leads("127.0.1.1")),
        ["K8S-DNS-005 w1 there k8s.lan is 127.0.1.1, which is itself"]
    );
    assert_eq!(
        found(&named, "w1", leads("192.168.7.201")),
        ["K8S-DNS-005 w1 there k8s.lan is 192.168.7.201, which is none of the load balancers"]
    );
}

#[test]
fn a_cluster_that_has_just_grown_is_told_from_one_that_stands() {
    let mut world = World::built(HOMELAB);
    let node = world.node(&name("w3")).unwrap();
    node.created = "2026-11-30T20:00:00Z".to_owned();
    let joined = node.created.parse::<jiff::Timestamp>().unwrap().as_second();
    for (later, grown) in [(1, true), (299, true), (300, false), (86_400, false)] {
        let hosts: Vec<_> = world.hosts.keys().cloned().collect();
        for host in hosts {
            world.host(&host).clock = u64::try_from(joined + later).unwrap();
            if let Some(other) = world.node(&host).filter(|_| host != name("w3")) {
                other.created = "2026-11-01T20:00:00Z".to_owned();
            }
        }
        assert_eq!(has_just_grown(&world.facts()), grown, "{later} s");
    }
    let bare = World::bare(world::cluster(HOMELAB), |_| "trixie-bare");
    assert!(!has_just_grown(&bare.facts()));
}

#[test]
fn hosts_that_call_themselves_alike_are_told() {
    let mut world = bare(HOMELAB);
    for host in ["w1", "w2"] {
        world.host(&name(host)).hostname = "raspberrypi".to_owned();
    }
    let told: Vec<String> = world.plan().warnings.into_iter().map(|found| found.message).collect();
    assert!(
        told.contains(&"w1, w2 call themselves raspberrypi".to_owned()),
        "{told:#?}"
    );
    assert_eq!(told.len(), 3);
}

#[test]
fn what_a_step_mends_is_told_with_its_host() {
    let mut world = World::bare(world::cluster(HOMELAB), |_| "trixie-bare");
    world.host(&name("w2")).swap.active = vec!["/dev/zram0".to_owned()];
    let plan = world.plan();
    let mended: Vec<_> = plan
        .fixes()
        .filter(|fix| fix.check.code == "K8S-SWAP-001")
        .map(|fix| (fix.host.clone(), fix.message.as_str()))
        .collect();
    assert_eq!(mended, [(Some(name("w2")), "swap is on: /dev/zram0")]);
}

#[test]
fn what_is_to_be_mended_is_told_beside_what_stands_in_the_way() {
    let mut world = World::bare(world::cluster(HOMELAB), |_| "trixie-bare");
    world.host(&name("w2")).swap.active = vec!["/dev/zram0".to_owned()];
    world.host(&name("cp1")).cpus = 1;
    world.host(&name("w1")).hostname = "raspberrypi".to_owned();
    let found = apply::examine(&world.cluster, &world.facts(), &everything());
    let of = |host: &str| -> Vec<(&str, Level)> {
        let about = |finding: &&check::Finding| finding.host == Some(name(host)) && finding.check.code != "K8S-KRN-009";
        let found = found.iter().filter(about);
        found.map(|finding| (finding.check.code, finding.check.level)).collect()
    };
    assert_eq!(of("cp1"), [("K8S-RES-001", Level::Refuse)]);
    assert_eq!(of("w1"), [("K8S-ID-002", Level::Warn)]);
    // Nobody knows what starts it.
    assert_eq!(of("w2"), [("K8S-SWAP-001", Level::Fix), ("K8S-SWAP-003", Level::Warn)]);
    let kernel = found.iter().filter(|finding| finding.check.code == "K8S-KRN-009");
    assert_eq!(kernel.count(), world.cluster.hosts.len());
}

#[test]
fn only_the_first_plan_tells_what_cannot_be_taken_back() {
    let world = World::bare(world::cluster(HOMELAB), |_| "trixie-bare");
    let told: Vec<_> = world.plan().decisions.into_iter().map(|one| one.what).collect();
    assert!(
        told.contains(&"pod network".to_owned()) && told.contains(&"amd64 nodes".to_owned()),
        "{told:?}"
    );
    let mut world = World::built(HOMELAB);
    world.reinstall("w3");
    let plan = world.plan();
    assert!(!plan.is_empty() && plan.decisions.is_empty());
}
