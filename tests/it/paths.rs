//! The network proof: what is tried, on whom which commands run, and how the outcome is told.

use std::collections::BTreeMap;

use k8sup::check;
use k8sup::facts::paths::{Answers, Outcome, Path, Paths, Port, Proof, Protocol};
use k8sup::facts::prove::prove;
use k8sup::facts::{Facts, HostFacts, Listener, Seen, Service, Unreachable};
use k8sup::plan::apply;
use k8sup::remote::fake::{FakeReply, FakeSession};
use k8sup::remote::{Command, Param, RunError, Session};

use crate::simulate::World;
use crate::world::{self, HOMELAB, SINGLE, everything, name, only};

fn bare(inventory: &str) -> World {
    World::bare(world::cluster(inventory), |_| "trixie-bare")
}

fn proof(world: &World) -> Proof {
    apply::proof(&world.cluster, &world.facts(), &everything())
}

/// What a host's part is: its ports, and the targets as `PURPOSE HOST PORT`.
fn outline(proof: &Proof, host: &str) -> (Vec<String>, Vec<String>) {
    let part = &proof.parts[&name(host)];
    let listens = part.listens.iter().map(Port::to_string).collect();
    let targets = part.targets.iter().map(|target| {
        let to = target
            .to
            .as_ref()
            .map_or_else(|| target.address.to_string(), ToString::to_string);
        let who = match target.answers {
            Answers::Listener => "",
            Answers::Program => " (program)",
            Answers::Anybody => " (anybody)",
        };
        format!("{:?} {to} {}{who}", target.purpose, target.port)
    });
    (listens, targets.collect())
}

fn listens(facts: &mut HostFacts, address: &str, port: u16, process: &str) {
    facts.listening.push(Listener {
        address: address.to_owned(),
        port,
        process: Some(process.to_owned()),
    });
}

// --- what is tried -----------------------------------------------------------------

#[test]
fn bare_hosts_prove_what_the_cluster_will_need() {
    let proof = proof(&bare(HOMELAB));
    assert_eq!(proof.parts.len(), 7);
    let (listens, targets) = outline(&proof, "lb-0");
    assert_eq!(listens, ["6443/tcp"]);
    assert_eq!(
        targets,
        ["Backend cp1 6443/tcp", "Backend cp2 6443/tcp", "Backend cp3 6443/tcp"]
    );
    let (listens, targets) = outline(&proof, "cp2");
    assert_eq!(listens, ["2379/tcp", "2380/tcp", "6443/tcp", "10250/tcp", "8472/udp"]);
    let expected = "ControlPlane cp1 6443/tcp, ControlPlane cp1 2379/tcp, ControlPlane cp1 2380/tcp, Kubelet cp1 10250/tcp, \
                    PodNetwork cp1 8472/udp, ControlPlane cp3 6443/tcp, ControlPlane cp3 2379/tcp, ControlPlane cp3 2380/tcp, \
                    Kubelet cp3 10250/tcp, PodNetwork cp3 8472/udp, Kubelet w1 10250/tcp, PodNetwork w1 8472/udp, \
                    Kubelet w2 10250/tcp, PodNetwork w2 8472/udp, Kubelet w3 10250/tcp, PodNetwork w3 8472/udp, \
                    Endpoint lb-0 6443/tcp";
    assert_eq!(targets.join(", "), expected);
    let (listens, targets) = outline(&proof, "w1");
    assert_eq!(listens, ["10250/tcp", "8472/udp"]);
    assert_eq!(targets.len(), 6);
    assert_eq!(targets[5], "Endpoint lb-0 6443/tcp");
    let sizes: Vec<u32> = proof.parts[&name("w1")]
        .targets
        .iter()
        .map(|target| target.size)
        .collect();
    assert_eq!(sizes, [1500, 1500, 1500, 1500, 1500, 0]);
}

#[test]
fn flannels_port_and_size_are_those_of_the_inventory() {
    for (flannel, expected) in [
        ("", Some((8472, 1500))),
        ("flannel: { port: 4789 }", Some((4789, 1500))),
        ("flannel: { mtu: 1400 }", Some((8472, 1450))),
        ("flannel: { backend: wireguard, mtu: 1400 }", Some((51820, 1480))),
        ("flannel: { backend: host-gw }", None),
    ] {
        let proof = proof(&bare(&format!("{HOMELAB}{flannel}\n")));
        let mut targets = proof.parts[&name("w1")].targets.iter();
        let udp = targets.find(|target| target.port.protocol == Protocol::Udp);
        assert_eq!(
            udp.map(|target| (target.port.number, target.size)),
            expected,
            "{flannel}"
        );
    }
    let mut world = bare(HOMELAB);
    let links = &mut world.host(&name("w2")).links;
    for mtu in links.values_mut() {
        *mtu = 1400;
    }
    let proof = proof(&world);
    let targets = &proof.parts[&name("w1")].targets;
    let to_w2 = targets.iter().find(|target| target.to == Some(name("w2"))).unwrap();
    assert_eq!(to_w2.size, 1400, "what both links take");
}

#[test]
fn a_converged_cluster_proves_nothing() {
    assert_eq!(proof(&World::built(HOMELAB)), Proof::default());
    // Nor does one with hosts that are to come, but were not named.
    let mut world = World::built(HOMELAB);
    world.reinstall("w2");
    let proof = apply::proof(&world.cluster, &world.facts(), &only(&["w1"]));
    assert_eq!(proof, Proof::default());
}

#[test]
fn members_answer_with_their_own_programs() {
    let mut world = World::built(HOMELAB);
    world.reinstall("w2");
    listens(world.host(&name("lb-0")), "*", 6443, "haproxy");
    // Its kubelet does not run, so nobody knows whether the port would be in reach; and nothing else listens there.
    world.host(&name("w1")).listening.clear();
    let proof = proof(&world);
    let (listening, targets) = outline(&proof, "w2");
    assert_eq!(listening, ["10250/tcp", "8472/udp"]);
    assert_eq!(targets, ["Endpoint lb-0 6443/tcp (program)"]);
    for (host, part) in &proof.parts {
        assert!(*host == name("w2") || part.listens.is_empty(), "{host}");
    }
    assert_eq!(
        outline(&proof, "cp1").1,
        ["Kubelet w2 10250/tcp", "PodNetwork w2 8472/udp"]
    );
    assert_eq!(outline(&proof, "w1").1, ["PodNetwork w2 8472/udp"]);
    assert!(!proof.parts.contains_key(&name("lb-0")));

    // A controller that is to come reaches those that are there, where they listen for others.
    let mut world = World::built(HOMELAB);
    world.reinstall("cp3");
    let cp1 = world.host(&name("cp1"));
    cp1.listening.clear();
    listens(cp1, "*", 6443, "kube-apiserver");
    listens(cp1, "127.0.0.1", 2379, "etcd");
    listens(cp1, "192.168.7.201", 2379, "etcd");
    listens(cp1, "127.0.0.1", 10250, "kubelet");
    world.host(&name("cp2")).listening.clear();
    listens(world.host(&name("lb-0")), "0.0.0.0%eth0", 6443, "haproxy");
    let proof = self::proof(&world);
    assert_eq!(
        outline(&proof, "cp3").1,
        [
            "ControlPlane cp1 6443/tcp (program)",
            "ControlPlane cp1 2379/tcp (program)",
            "Endpoint lb-0 6443/tcp (program)"
        ]
    );
    assert_eq!(outline(&proof, "lb-0").1, ["Backend cp3 6443/tcp"]);
}

#[test]
fn endpoints_of_all_kinds() {
    let named = |endpoint: &str| HOMELAB.replace("v1.34.4 }", &format!("v1.34.4, endpoint: {endpoint} }}"));
    let last = |world: &World| outline(&proof(world), "w1").1.pop().unwrap();
    assert_eq!(
        last(&bare(&named("192.168.7.9:8443"))),
        "Endpoint 192.168.7.9 8443/tcp (anybody)"
    );
    // A name that nothing resolves becomes the load balancer's, as k8sup will write it down.
    let mut world = bare(&named("k8s.lan"));
    assert_eq!(last(&world), "Endpoint lb-0 6443/tcp");
    world.host(&name("w1")).endpoint_resolves = Seen::Present(vec!["10.1.2.3".parse().unwrap()]);
    assert_eq!(last(&world), "Endpoint 10.1.2.3 6443/tcp (anybody)");
    // haproxy on the load balancer goes on.
    let mut world = bare(HOMELAB);
    listens(world.host(&name("lb-0")), "192.168.7.140", 6443, "haproxy");
    assert_eq!(last(&world), "Endpoint lb-0 6443/tcp (program)");
    assert!(proof(&world).parts[&name("lb-0")].listens.is_empty());
    // A controller alone has nobody to reach.
    assert_eq!(proof(&bare(SINGLE)), Proof::default());
    let two = format!("{SINGLE}workers: {{ w1: 192.168.7.204 }}\n");
    assert_eq!(last(&bare(&two)), "Endpoint cp1 6443/tcp");
}

#[test]
fn hosts_that_are_not_as_they_are_meant_take_no_part() {
    let mut world = bare(HOMELAB);
    world.host(&name("w1")).addresses.clear();
    let silent = name("w2");
    world.down.insert(silent.clone());
    let proof = proof(&world);
    assert!(!proof.parts.contains_key(&name("w1")) && !proof.parts.contains_key(&silent));
    assert_eq!(proof.parts.len(), 5);
}

// --- on whom which commands run --------------------------------------------------------

fn param<'a>(command: &'a Command, wanted: &str) -> &'a str {
    match command.params.iter().find(|(name, _)| name == wanted) {
        Some((_, Param::Plain(value))) => value,
        _ => panic!("{} has no {wanted}", command.name),
    }
}

/// A host on which all goes well.
fn well(command: &Command) -> FakeReply {
    let each = |list: &str, say: &dyn Fn(&[&str]) -> String| -> String {
        list.lines()
            .map(|line| say(&line.split(' ').collect::<Vec<_>>()))
            .collect()
    };
    FakeReply::ok(match command.name.as_str() {
        "paths/listen" => {
            each(param(command, "PORTS"), &|port| {
                format!("bound {} {}\n", port[0], port[1])
            }) + "listener 7 1234\n"
        }
        "paths/prove" => {
            each(param(command, "TARGETS"), &|target| {
                let size = if target[0] == "udp" { target[3] } else { "" };
                format!("{} {} {} open {size}\n", target[0], target[1], target[2])
            }) + "done\n"
        }
        _ => String::new(),
    })
}

type Fakes = BTreeMap<String, FakeSession>;

/// Carries a proof out on hosts that answer so.
fn carried_out(
    world: &World,
    answer: impl Fn(&str, &Command) -> FakeReply + Clone + Send + Sync + 'static,
) -> (Paths, Fakes) {
    let fakes: Fakes = world
        .hosts
        .keys()
        .map(|host| {
            let (host, answer) = (host.to_string(), answer.clone());
            (host.clone(), FakeSession::new(move |command| answer(&host, command)))
        })
        .collect();
    let sessions = fakes
        .iter()
        .map(|(host, fake)| (name(host), Ok::<_, Unreachable>(Session::Fake(fake.clone()))))
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let paths = runtime.block_on(prove(&proof(world), &sessions));
    (paths, fakes)
}

#[test]
fn three_commands_a_host_and_none_on_a_converged_cluster() {
    let world = bare(HOMELAB);
    let (paths, fakes) = carried_out(&world, |_, command| well(command));
    for (host, fake) in &fakes {
        assert_eq!(fake.names(), ["paths/listen", "paths/prove", "paths/end"], "{host}");
    }
    // 3 backends; 3 x 2 of the control plane on 3 ports; 3 x 5 kubelets; 6 x 5 of the pod network; 6 times the endpoint.
    assert_eq!(paths.tried.len(), 3 + 18 + 15 + 30 + 6);
    assert!(paths.tried.iter().all(|path| path.outcome == Outcome::Open) && paths.mute.is_empty());
    let commands = fakes["w1"].commands();
    assert_eq!(param(&commands[0], "PEERS").lines().count(), 7);
    assert_eq!(param(&commands[0], "ADDRESS"), "192.168.7.204");
    assert_eq!(param(&commands[0], "PORTS"), "tcp 10250\nudp 8472");
    assert!(param(&commands[1], "TARGETS").contains("tcp 192.168.7.140 6443 ours"));
    assert_eq!(
        (param(&commands[2], "PID"), param(&commands[2], "START")),
        ("7", "1234")
    );
    let nonces: Vec<&str> = commands[..2].iter().map(|command| param(command, "NONCE")).collect();
    assert!(nonces[0] == nonces[1] && nonces[0].len() == 32);

    let (paths, fakes) = carried_out(&World::built(HOMELAB), |_, command| well(command));
    assert_eq!(paths, Paths::default());
    assert!(fakes.values().all(|fake| fake.names().is_empty()));

    // One that comes asks one command of each member, and listens alone.
    let mut world = World::built(HOMELAB);
    world.reinstall("w2");
    let (_, fakes) = carried_out(&world, |_, command| well(command));
    assert_eq!(fakes["cp1"].names(), ["paths/prove"]);
    assert_eq!(fakes["w2"].names(), ["paths/listen", "paths/prove", "paths/end"]);
}

#[test]
fn hosts_that_cannot_take_part_are_told_and_listeners_are_ended_all_the_same() {
    let world = bare(HOMELAB);
    let (paths, fakes) = carried_out(&world, |host, command| match (host, command.name.as_str()) {
        ("w1", "paths/listen") => FakeReply::failed(127, "sh: 5: perl: not found\n"),
        ("w2", "paths/prove") => FakeReply::error(RunError::ConnectionLost("cable".to_owned())),
        ("w3", "paths/prove") => FakeReply::ok("tcp 192.168.7.140 6443 open\n"),
        ("cp3", "paths/listen") => FakeReply::ok(
            "bound tcp 6443\ntaken tcp 10250 in use\ntaken udp 8472 in use\nfailed tcp 2379 no\nlistener 9 1\n",
        ),
        _ => well(command),
    });
    assert_eq!(fakes["w1"].names(), ["paths/listen", "paths/prove"]);
    for host in ["w2", "w3", "cp3"] {
        assert_eq!(fakes[host].names().last().unwrap(), "paths/end", "{host}");
    }
    let prover = fakes["cp1"].commands().remove(1);
    let targets = param(&prover, "TARGETS");
    assert!(!targets.contains("192.168.7.204"), "nobody listens on w1: {targets}");
    let to_cp3: Vec<&str> = targets.lines().filter(|line| line.contains("192.168.7.203")).collect();
    assert_eq!(to_cp3, ["tcp 192.168.7.203 10250 any", "tcp 192.168.7.203 6443 ours"]);

    let told = told(&world, paths);
    assert_eq!(
        told,
        [
            "K8S-NET-025 w1 nothing could listen there: sh: 5: perl: not found",
            "K8S-NET-025 w2 it could try nothing: the connection was lost: cable",
            "K8S-NET-025 w3 it could try nothing: its answer was cut short",
            "K8S-NET-025 cp3 whether its port 2379/tcp is in reach could not be tried: nothing can listen there: no",
            "K8S-NET-025 cp3 whether its port 2380/tcp is in reach could not be tried: nothing listens there",
            "K8S-NET-025 cp3 whether its port 8472/udp is in reach could not be tried: the port is in use there",
        ]
    );
}

// --- how it is told ---------------------------------------------------------------------

/// `CODE HOST message` of all that the plan finds.
fn told(world: &World, paths: Paths) -> Vec<String> {
    findings(world, paths).into_iter().map(|(line, _, _)| line).collect()
}

fn findings(world: &World, paths: Paths) -> Vec<(String, String, String)> {
    let facts = Facts { paths, ..world.facts() };
    let found = match world::try_plan(&world.cluster, &facts, &everything()) {
        Ok(plan) => plan.warnings,
        Err(blockers) => blockers,
    };
    // What else is to be said about the recorded machines is said elsewhere.
    let about_paths = |finding: &k8sup::check::Finding| {
        let code = finding.check.code;
        code.starts_with("K8S-NET-") || finding.check == &check::ALLOWED
    };
    let line = |finding: k8sup::check::Finding| {
        let host = finding.host.as_ref().map_or("-", |host| host.as_str());
        let line = format!("{} {host} {}", finding.check.code, finding.message);
        (line, finding.evidence.unwrap_or_default(), finding.hint)
    };
    found.into_iter().filter(about_paths).map(line).collect()
}

/// Everything tried, and open but for what `change` says.
fn tried(world: &World, change: impl Fn(&str, &str, Port) -> Option<Outcome>) -> Paths {
    let proof = proof(world);
    let parts = proof.parts.into_iter();
    let paths = parts.flat_map(|(from, part)| {
        let way = move |target: k8sup::facts::paths::Target| (from.clone(), target);
        part.targets.into_iter().map(way)
    });
    let tried = paths.map(|(from, target)| {
        let to = target.to.as_ref().map_or("", |to| to.as_str());
        let outcome = change(from.as_str(), to, target.port).unwrap_or(Outcome::Open);
        Path { from, target, outcome }
    });
    Paths {
        tried: tried.collect(),
        ..Paths::default()
    }
}

#[test]
fn what_fails_alike_is_told_once() {
    use Outcome::{Failed, Narrow, Refused, Silent, Stranger};
    type Change = fn(&str, &str, Port) -> Option<Outcome>;
    let world = bare(HOMELAB);
    let table: &[(Change, &[&str])] = &[
        (|_, _, _| None, &[]),
        (
            |_, to, port| (to == "cp2" && port == Port::tcp(2379)).then_some(Silent),
            &["K8S-NET-010 cp2 nobody reaches its port 2379/tcp (cp1, cp3 tried): no answer"],
        ),
        (
            |_, to, port| (to == "cp2" && matches!(port.number, 2379 | 2380)).then_some(Refused),
            &["K8S-NET-010 cp2 nobody reaches its ports 2379/tcp, 2380/tcp (cp1, cp3 tried): refused by a firewall"],
        ),
        (
            |from, to, port| (from == "w1" && to == "w2" && port == Port::udp(8472)).then_some(Silent),
            &["K8S-NET-013 w2 w1 does not reach its port 8472/udp: no answer"],
        ),
        (
            |from, to, port| (from.starts_with('w') && to == "w2" && port == Port::udp(8472)).then_some(Silent),
            &["K8S-NET-013 w2 w1, w3 do not reach its port 8472/udp: no answer"],
        ),
        (
            |from, _, port| {
                (from == "w1" && port == Port::udp(8472)).then_some(Failed("Operation not permitted".to_owned()))
            },
            &["K8S-NET-013 w1 it reaches nobody's port 8472/udp (5 hosts tried): Operation not permitted"],
        ),
        (
            |_, _, port| (port == Port::udp(8472)).then_some(Silent),
            &["K8S-NET-013 - none of the hosts reaches the others' port 8472/udp: no answer"],
        ),
        (
            |from, to, _| (from == "lb-0" && to == "cp1").then_some(Silent),
            &["K8S-NET-009 cp1 lb-0 does not reach its port 6443/tcp: no answer"],
        ),
        (
            |from, _, _| (from == "lb-0").then_some(Silent),
            &["K8S-NET-009 lb-0 it reaches nobody's port 6443/tcp (cp1, cp2, cp3 tried): no answer"],
        ),
        (
            |_, to, port| (to == "w3" && port.number == 10250).then_some(Stranger),
            &["K8S-NET-011 w3 nobody reaches its port 10250/tcp (cp1, cp2, cp3 tried): somebody else answers"],
        ),
        (
            |_, to, _| (to == "lb-0").then_some(Silent),
            &["K8S-NET-008 lb-0 no node reaches the endpoint 192.168.7.140:6443 there: no answer"],
        ),
        (
            |from, to, _| (to == "lb-0" && matches!(from, "w1" | "w2")).then_some(Silent),
            &["K8S-NET-008 - w1, w2 do not reach the endpoint 192.168.7.140:6443: no answer"],
        ),
        (
            |from, to, _| (to == "lb-0" && from == "w1").then_some(Refused),
            &["K8S-NET-008 w1 it does not reach the endpoint 192.168.7.140:6443: refused by a firewall"],
        ),
        (
            |_, _, port| (port == Port::udp(8472)).then_some(Narrow(1420)),
            &["K8S-NET-014 - packets of 1500 bytes do not get from host to host in one piece, those of 1420 bytes do"],
        ),
        (
            |from, to, port| (port == Port::udp(8472) && (from == "w1" || to == "w1")).then_some(Narrow(1420)),
            &[
                "K8S-NET-014 w1 packets of 1500 bytes do not get to it from any other host in one piece, those of 1420 bytes do",
            ],
        ),
        (
            |from, to, port| (port == Port::udp(8472) && from == "w1" && to == "w2").then_some(Narrow(1420)),
            &["K8S-NET-014 w2 packets of 1500 bytes do not get between it and w1 in one piece, those of 1420 bytes do"],
        ),
        // A machine that is cut off: once a kind.
        (
            |_, to, _| (to == "cp2").then_some(Silent),
            &[
                "K8S-NET-009 cp2 lb-0 does not reach its port 6443/tcp: no answer",
                "K8S-NET-010 cp2 nobody reaches its ports 2379/tcp, 2380/tcp, 6443/tcp (cp1, cp3 tried): no answer",
                "K8S-NET-011 cp2 nobody reaches its port 10250/tcp (cp1, cp3 tried): no answer",
                "K8S-NET-013 cp2 nobody reaches its port 8472/udp (5 hosts tried): no answer",
            ],
        ),
    ];
    for (change, expected) in table {
        assert_eq!(told(&world, tried(&world, change)), *expected);
    }
}

#[test]
fn the_evidence_is_shown_and_what_k8sup_opens_is_not_tried() {
    let mut world = bare(HOMELAB);
    let blocked = |_: &str, to: &str, port: Port| (to == "w2" && port == Port::udp(8472)).then_some(Outcome::Refused);
    let hint = |world: &World| findings(world, tried(world, blocked)).remove(0).2;
    assert!(hint(&world).starts_with("let 8472/udp in on w2: `nft list ruleset`"));
    let (_, evidence, _) = findings(&world, tried(&world, blocked)).remove(0);
    assert_eq!(
        evidence.lines().next().unwrap(),
        "cp1 -> w2 192.168.7.205:8472 udp: refused, though something listens there"
    );
    assert_eq!(evidence.lines().count(), 5);
    // What firewalld stops now is opened by a step: nobody tries it.
    let running = Service {
        enabled: true,
        active: true,
    };
    world.host(&name("w2")).services.insert("firewalld".to_owned(), running);
    world
        .host(&name("w2"))
        .packages
        .entry("firewalld".to_owned())
        .or_default()
        .installed = Some("2.3.1-1".to_owned());
    assert!(findings(&world, tried(&world, blocked)).is_empty());
    let world = bare(HOMELAB);
    for (from, to, expected) in [
        ("w1", "w2", "let 8472/udp in on w2, and out of w1: "),
        (
            "w1",
            "",
            "see with `nft list ruleset` and `iptables -S` what w1 does not let out",
        ),
        ("", "", "let the port (8472/udp for VXLAN"),
    ] {
        let blocked = |source: &str, target: &str, port: Port| {
            let matches = source.starts_with(from) && target.starts_with(to) && port == Port::udp(8472);
            matches.then_some(Outcome::Silent)
        };
        let (_, _, hint) = findings(&world, tried(&world, blocked)).remove(0);
        assert!(hint.starts_with(expected), "{hint}");
    }
    let narrow = |_: &str, _: &str, port: Port| (port.protocol == Protocol::Udp).then_some(Outcome::Narrow(1420));
    let (_, _, hint) = findings(&world, tried(&world, narrow)).remove(0);
    assert!(hint.starts_with("set flannel.mtu to 1370, "), "{hint}");
}

#[test]
fn a_foreign_endpoint_may_refuse_and_must_not_be_silent() {
    let foreign = HOMELAB.replace("v1.34.4 }", "v1.34.4, endpoint: 192.168.7.9 }");
    let world = bare(&foreign);
    let outcome = |outcome: Outcome| move |_: &str, to: &str, _: Port| to.is_empty().then(|| outcome.clone());
    assert_eq!(told(&world, tried(&world, outcome(Outcome::Refused))), [""; 0]);
    assert_eq!(
        told(&world, tried(&world, outcome(Outcome::Silent))),
        ["K8S-NET-008 - 6 hosts do not reach the endpoint 192.168.7.9:6443: no answer"]
    );
}

#[test]
fn a_person_may_take_it_on_themselves() {
    let world = bare(&format!("{HOMELAB}allow: [K8S-NET-013]\n"));
    let silent = |_: &str, to: &str, port: Port| (to == "w2" && port == Port::udp(8472)).then_some(Outcome::Silent);
    let told = told(&world, tried(&world, silent));
    assert_eq!(told.len(), 1);
    assert!(
        told[0].starts_with("K8S-PLAN-003 w2 allowed, at your own risk (K8S-NET-013): "),
        "{told:?}"
    );
}

#[test]
fn links_of_different_sizes_are_told_unless_flannel_is_told_one() {
    for (flannel, expected) in [
        (
            "",
            &["K8S-NET-024 - the nodes' links have different MTUs: 1500 on 5 hosts, 9000 on w2"][..],
        ),
        ("flannel: { mtu: 1450 }", &[]),
    ] {
        let mut world = bare(&format!("{HOMELAB}{flannel}\n"));
        for mtu in world.host(&name("w2")).links.values_mut() {
            *mtu = 9000;
        }
        assert_eq!(told(&world, tried(&world, |_, _, _| None)), expected);
    }
}
