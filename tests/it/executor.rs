//! Carrying a plan out: gates, failures, interruption, late values. Hosts are fake, time stands still.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8sup::cluster::{NodeName, Role};
use k8sup::execute::event::{Event, Outcome, StepError};
use k8sup::execute::{Carried, Equipment, Late, carry_out};
use k8sup::plan::{Gate, Lane, Plan, Planned, Step};
use k8sup::remote::fake::{FakeReply, FakeSession};
use k8sup::remote::{Command, Ending, Param, RunError, Session};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::world::{self, HOMELAB, name};

/// What a finished run left.
pub(crate) struct Run {
    pub carried: Carried,
    pub events: Vec<Event>,
}

/// Runs a plan on fake hosts; `act` may use the tokens meanwhile.
pub(crate) async fn run(plan: &Plan, hosts: &BTreeMap<NodeName, FakeSession>, late: Late) -> Run {
    run_while(plan, hosts, late, |_, _| async {}).await
}

async fn run_while<F: Future<Output = ()>>(
    plan: &Plan,
    hosts: &BTreeMap<NodeName, FakeSession>,
    late: Late,
    act: impl FnOnce(CancellationToken, CancellationToken) -> F,
) -> Run {
    let (sender, mut receiver) = mpsc::channel(16);
    let sessions = hosts
        .iter()
        .map(|(name, fake)| (name.clone(), Session::Fake(fake.clone())));
    let (stop, abort) = (CancellationToken::new(), CancellationToken::new());
    let equipment = Equipment {
        sessions: Arc::new(sessions.collect()),
        run: "0123".to_owned(),
        holder: "k8sup apply by me".to_owned(),
        late: Arc::new(late),
        events: sender,
        stop: stop.clone(),
        abort: abort.clone(),
    };
    let work = async {
        let carried = carry_out(plan, &equipment).await;
        drop(equipment);
        carried
    };
    let collect = async {
        let mut events = Vec::new();
        while let Some(event) = receiver.recv().await {
            events.push(event);
        }
        events
    };
    let (carried, events, ()) = tokio::join!(work, collect, act(stop, abort));
    Run { carried, events }
}

/// What a healthy host says.
pub(crate) fn healthy(command: &Command) -> FakeReply {
    match command.name.as_str() {
        "steps/found" | "steps/publish" | "steps/issue_token" => FakeReply::ok("working\nca-cert-data Q0EtUEVN\n"),
        "evidence" => FakeReply::ok("@@ kubelet (active)\nE failed to sync\n@@ etcd (RUNNING)\n"),
        _ => FakeReply::ok("working\n"),
    }
}

pub(crate) fn fakes(
    plan: &Plan,
    handler: impl Fn(&str, &Command) -> FakeReply + Clone + Send + Sync + 'static,
) -> BTreeMap<NodeName, FakeSession> {
    plan.lanes
        .iter()
        .map(|lane| {
            let (host, handler) = (lane.host.clone(), handler.clone());
            (
                lane.host.clone(),
                FakeSession::new(move |command| handler(host.as_str(), command)),
            )
        })
        .collect()
}

/// The whole plan of a fresh lab.
pub(crate) fn fresh() -> Plan {
    let cluster = world::cluster(HOMELAB);
    world::plan(&cluster, &world::facts(&cluster, |_| "trixie-bare"))
}

fn lane(host: &str, steps: Vec<Planned>) -> Lane {
    Lane {
        host: name(host),
        role: Role::Worker,
        steps,
    }
}

fn lanes(lanes: Vec<Lane>) -> Plan {
    Plan {
        lanes,
        ..Plan::default()
    }
}

/// A step with nothing special about it, by its title.
fn some(title: &str) -> Planned {
    Planned::new(Step::Hostname { name: name(title) }, "it differs")
}

/// How many steps have an end: at the end of a run every planned one.
fn ends(events: &[Event]) -> usize {
    let finished = |event: &&Event| matches!(event, Event::StepFinished { .. });
    events.iter().filter(finished).count()
}

/// How the steps of a host ended, by title.
fn outcomes(run: &Run, host: &str) -> Vec<String> {
    run.events
        .iter()
        .filter_map(|event| match event {
            Event::StepFinished {
                host: at,
                step,
                outcome,
                ..
            } if at.as_str() == host => Some(match outcome {
                Outcome::Done => format!("{step}: done"),
                Outcome::Failed(error) => format!("{step}: {}", error.what),
                Outcome::NotStarted { reason } => format!("{step}: not started: {reason}"),
            }),
            _ => None,
        })
        .collect()
}

/// When the commands of each host began and ended.
type Times = BTreeMap<String, Vec<(Instant, Instant)>>;

#[tokio::test(start_paused = true)]
async fn no_step_starts_before_its_gates_are_open() {
    let plan = fresh();
    // When each command began and ended, in tokio's time.
    let log: Arc<Mutex<Times>> = Arc::default();
    for seed in 0..20u64 {
        log.lock().unwrap().clear();
        let seen = Arc::clone(&log);
        let hosts = fakes(&plan, move |host, command| {
            // Some hosts are slow, some steps are slow, and each time others.
            let number = host
                .bytes()
                .chain(command.name.bytes())
                .fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
            let delay = Duration::from_secs(number % 59);
            let now = Instant::now();
            seen.lock()
                .unwrap()
                .entry(host.to_owned())
                .or_default()
                .push((now, now + delay));
            healthy(command).after(delay)
        });
        let run = run(&plan, &hosts, Late::fresh()).await;
        assert!(run.carried.complete(), "{:#?}", run.carried);
        let log = log.lock().unwrap();
        let mut ended: BTreeMap<&Gate, Instant> = BTreeMap::new();
        for lane in &plan.lanes {
            let times = &log[lane.host.as_str()];
            assert_eq!(times.len(), lane.steps.len());
            ended.extend(
                lane.steps
                    .iter()
                    .zip(times)
                    .filter_map(|(planned, (_, end))| Some((planned.opens.as_ref()?, *end))),
            );
        }
        for lane in &plan.lanes {
            for (planned, (begin, _)) in lane.steps.iter().zip(&log[lane.host.as_str()]) {
                for gate in planned.needs.iter().chain(&planned.after).chain(&planned.only_if) {
                    assert!(
                        begin >= &ended[gate],
                        "{}: {} before {gate}",
                        lane.host,
                        planned.step.title()
                    );
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_fails_stops_nobody_else() {
    let plan = fresh();
    let hosts = fakes(&plan, |host, command| match (host, command.name.as_str()) {
        ("w2", "steps/packages") => FakeReply::failed(100, "E: Unable to locate package kubeadm\n"),
        _ => healthy(command),
    });
    let run = run(&plan, &hosts, Late::fresh()).await;
    let failures: Vec<String> = run.carried.failures.iter().map(ToString::to_string).collect();
    assert_eq!(
        failures,
        ["w2: install 9 packages: E: Unable to locate package kubeadm"]
    );
    assert_eq!(
        run.carried.failures[0].hint,
        "the package is in none of the host's apt sources: see `packages` in the inventory"
    );
    assert!(!run.carried.failures[0].host_lost);
    assert!(run.carried.not_started.is_empty(), "{:?}", run.carried.not_started);
    for host in ["lb-0", "cp1", "cp2", "cp3", "w1", "w3"] {
        let ended = outcomes(&run, host);
        assert!(ended.iter().all(|line| line.ends_with(": done")), "{host}: {ended:#?}");
    }
    let ended = outcomes(&run, "w2");
    assert!(
        ended
            .last()
            .unwrap()
            .ends_with("kubeadm join as worker: not started: install 9 packages failed on w2"),
        "{ended:#?}"
    );
    assert_eq!(ends(&run.events), plan.len());
    let revoked = hosts[&name("cp1")].names();
    assert_eq!(
        revoked.last().unwrap(),
        "steps/revoke",
        "tokens are revoked although a worker failed"
    );
}

#[tokio::test(start_paused = true)]
async fn when_the_first_controller_fails_nobody_joins() {
    let plan = fresh();
    let hosts = fakes(&plan, |_, command| match command.name.as_str() {
        "steps/found" => FakeReply::failed(
            1,
            "error execution phase preflight: [preflight] Some fatal errors occurred:\n\t[ERROR NumCPU]: the number of available CPUs 1 is less than the required 2\nTo see the stack trace of this error execute with --v=5 or higher\n",
        ),
        _ => healthy(command),
    });
    let run = run(&plan, &hosts, Late::fresh()).await;
    let [error] = &run.carried.failures[..] else {
        panic!("{:#?}", run.carried)
    };
    assert_eq!(
        error.what,
        "[ERROR NumCPU]: the number of available CPUs 1 is less than the required 2"
    );
    assert_eq!(error.hint, "a controller needs two processors");
    let sources: Vec<&str> = error.evidence.iter().map(|evidence| evidence.source.as_str()).collect();
    assert_eq!(
        sources,
        ["stderr", "kubelet (active)"],
        "sections without lines are left out"
    );
    let mut waited: Vec<(String, String)> = run
        .carried
        .not_started
        .iter()
        .map(|(host, why)| (host.to_string(), why.clone()))
        .collect();
    waited.sort();
    let reason = "kubeadm init: control plane failed on cp1".to_owned();
    let expected: Vec<(String, String)> = ["cp2", "cp3", "w1", "w2", "w3"]
        .iter()
        .map(|host| ((*host).to_owned(), reason.clone()))
        .collect();
    assert_eq!(waited, expected);
    let closed: Vec<String> = run
        .events
        .iter()
        .filter_map(|event| match event {
            Event::GateClosed { gate, reason: why } if *why == reason => Some(gate.to_string()),
            _ => None,
        })
        .collect();
    assert!(closed.contains(&"the cluster is initialised".to_owned()), "{closed:?}");
    for (host, fake) in &hosts {
        assert!(!fake.names().iter().any(|command| command == "steps/join"), "{host}");
    }
    assert!(outcomes(&run, "lb-0").iter().all(|line| line.ends_with(": done")));
    assert_eq!(ends(&run.events), plan.len());
}

#[tokio::test(start_paused = true)]
async fn each_way_to_fail_is_told_apart() {
    const AGAIN: &str = "run the same command again: it goes on where it stopped";
    let rows: Vec<(FakeReply, &str, bool, &str, bool)> = vec![
        (
            FakeReply::failed(3, "one\n\ntwo\n"),
            "two",
            false,
            "mend the cause",
            true,
        ),
        (
            FakeReply::failed(4, ""),
            "ended with status 4",
            false,
            "mend the cause",
            true,
        ),
        (
            FakeReply::output(Ending::Signal(9), "", ""),
            "was ended by signal 9",
            false,
            "mend the cause",
            true,
        ),
        (FakeReply::hang(), "did not finish within 1200 s", false, AGAIN, true),
        (
            FakeReply::error(RunError::ConnectionLost("keepalive".to_owned())),
            "the connection was lost: keepalive",
            true,
            "see that the host is up",
            false,
        ),
        (
            FakeReply::error(RunError::Sudo("a password is required".to_owned())),
            "sudo refused: a password is required",
            true,
            "ssh.sudoPassword",
            false,
        ),
        (
            FakeReply::error(RunError::Refused("no session".to_owned())),
            "the server refused to run a command: no session",
            true,
            AGAIN,
            false,
        ),
    ];
    for (reply, what, host_lost, hint, asks_for_evidence) in rows {
        let found = Planned::new(
            Step::Found {
                config: "config".to_owned(),
            },
            "there is no cluster yet",
        );
        let plan = lanes(vec![lane("cp1", vec![found, some("next")])]);
        let hosts = fakes(&plan, move |_, command| match command.name.as_str() {
            "steps/found" => reply.clone(),
            _ => healthy(command),
        });
        let run = run(&plan, &hosts, Late::fresh()).await;
        let [
            StepError {
                host,
                step,
                what: found,
                evidence,
                hint: told,
                host_lost: lost,
            },
        ] = &run.carried.failures[..]
        else {
            panic!("{what}: {:#?}", run.carried)
        };
        assert_eq!(
            (host.as_str(), step.as_str(), found.as_str(), *lost),
            ("cp1", "kubeadm init: control plane", what, host_lost)
        );
        assert!(told.contains(hint), "{what}: {told}");
        let asked = hosts[&name("cp1")].names().contains(&"evidence".to_owned());
        assert_eq!(asked, asks_for_evidence, "{what}");
        assert_eq!(
            evidence.iter().any(|evidence| evidence.source == "kubelet (active)"),
            asks_for_evidence,
            "{what}"
        );
        assert_eq!(
            outcomes(&run, "cp1")[1],
            "set the hostname to next: not started: kubeadm init: control plane failed on cp1"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_without_a_session_is_lost() {
    let plan = lanes(vec![lane("w1", vec![some("a")])]);
    let run = run(&plan, &BTreeMap::new(), Late::fresh()).await;
    assert_eq!(run.carried.failures[0].what, "there is no connection to it");
    assert!(run.carried.failures[0].host_lost);
}

/// The step that the first controller was given last.
fn last_of_cp1(hosts: &BTreeMap<NodeName, FakeSession>) -> String {
    let names = hosts[&name("cp1")].names();
    names.into_iter().rfind(|name| name.starts_with("steps/")).unwrap()
}

#[tokio::test(start_paused = true)]
async fn tokens_are_revoked_though_the_controller_that_does_it_failed_before() {
    let plan = fresh();
    let hosts = fakes(&plan, |_, command| match command.name.as_str() {
        "steps/etcd_turn" => FakeReply::failed(1, "etcd has no leader\n"),
        _ => healthy(command),
    });
    let ended = run(&plan, &hosts, Late::fresh()).await;
    assert_eq!(ended.carried.failures.len(), 1, "{:#?}", ended.carried);
    assert_eq!(
        (last_of_cp1(&hosts).as_str(), ended.carried.unrevoked),
        ("steps/revoke", None)
    );
    // Not before the others are done with them.
    let joins = hosts[&name("w3")].names();
    assert!(joins.contains(&"steps/join".to_owned()), "{joins:?}");
    assert_eq!(ends(&ended.events), plan.len());

    let hosts = fakes(&plan, |_, command| match command.name.as_str() {
        "steps/etcd_turn" | "steps/revoke" => FakeReply::failed(1, "etcd has no leader\n"),
        _ => healthy(command),
    });
    let ended = run(&plan, &hosts, Late::fresh()).await;
    assert_eq!(ended.carried.unrevoked, Some(name("cp1")));
    assert_eq!(ended.carried.failures.len(), 2);

    // Nothing was handed out: nothing is to be revoked.
    let hosts = fakes(&plan, |_, command| match command.name.as_str() {
        "steps/found" => FakeReply::failed(1, "no\n"),
        _ => healthy(command),
    });
    let ended = run(&plan, &hosts, Late::fresh()).await;
    assert_eq!(
        (last_of_cp1(&hosts).as_str(), ended.carried.unrevoked),
        ("steps/found", None)
    );
}

#[tokio::test(start_paused = true)]
async fn tokens_are_revoked_after_the_first_interrupt_and_left_by_the_second() {
    let plan = fresh();
    let slow = |_: &str, command: &Command| match command.name.as_str() {
        "steps/join" => healthy(command).after(Duration::from_secs(600)),
        _ => healthy(command),
    };
    let hosts = fakes(&plan, slow);
    let ended = run_while(&plan, &hosts, Late::fresh(), |stop, _| async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        stop.cancel();
    })
    .await;
    assert!(ended.carried.interrupted);
    assert_eq!(
        (last_of_cp1(&hosts).as_str(), ended.carried.unrevoked.clone()),
        ("steps/revoke", None)
    );
    let joined = outcomes(&ended, "w1");
    assert!(
        joined.iter().any(|line| line == "kubeadm join as worker: done"),
        "{joined:#?}"
    );

    let hosts = fakes(&plan, slow);
    let ended = run_while(&plan, &hosts, Late::fresh(), |stop, abort| async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        stop.cancel();
        abort.cancel();
    })
    .await;
    assert_eq!(ended.carried.unrevoked, Some(name("cp1")));
    assert_ne!(last_of_cp1(&hosts), "steps/revoke");
}

#[tokio::test(start_paused = true)]
async fn a_cable_that_is_pulled_is_told_at_once() {
    let plan = lanes(vec![lane("w1", vec![some("a")])]);
    let mut hosts = fakes(&plan, |_, command| healthy(command).after(Duration::from_secs(60)));
    // Nothing is to be done on it, but others need it.
    let balancer = FakeSession::new(healthy);
    hosts.insert(name("lb-0"), balancer.clone());
    let ended = run_while(&plan, &hosts, Late::fresh(), |_, _| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        balancer.cut("the host does not answer any more");
    })
    .await;
    assert!(ended.carried.failures.is_empty());
    let place = |wanted: &dyn Fn(&Event) -> bool| ended.events.iter().position(wanted).unwrap();
    let told = place(&|event| matches!(event, Event::Unreachable { host, .. } if *host == name("lb-0")));
    assert!(told < place(&|event| matches!(event, Event::StepFinished { .. })));
}

#[tokio::test(start_paused = true)]
async fn the_first_interrupt_lets_running_steps_finish() {
    let gate = Gate::Cleared(name("w1"));
    let plan = lanes(vec![
        lane("w1", vec![some("a").opens(gate.clone()), some("b")]),
        lane("w2", vec![some("c").needs([Gate::Initialised]), some("d")]),
        lane("w3", vec![some("e"), some("f").opens(Gate::Initialised)]),
        lane("w4", vec![some("g").after([gate])]),
    ]);
    let hosts = fakes(&plan, |_, command| healthy(command).after(Duration::from_secs(10)));
    let run = run_while(&plan, &hosts, Late::fresh(), |stop, _| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.cancel();
    })
    .await;
    assert!(run.carried.interrupted && run.carried.failures.is_empty());
    assert_eq!(
        outcomes(&run, "w1"),
        [
            "set the hostname to a: done",
            "set the hostname to b: not started: interrupted"
        ]
    );
    for (host, first) in [("w2", "c"), ("w4", "g")] {
        assert_eq!(
            outcomes(&run, host)[0],
            format!("set the hostname to {first}: not started: interrupted")
        );
        assert_eq!(hosts[&name(host)].names(), [""; 0]);
    }
    assert_eq!(hosts[&name("w3")].names().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_second_interrupt_ends_running_steps() {
    let plan = lanes(vec![lane("w1", vec![some("a"), some("b")])]);
    let hosts = fakes(&plan, |_, _| FakeReply::hang());
    let begun = Instant::now();
    let run = run_while(&plan, &hosts, Late::fresh(), |stop, abort| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.cancel();
        tokio::time::sleep(Duration::from_secs(1)).await;
        abort.cancel();
    })
    .await;
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
    assert_eq!(run.carried.failures[0].what, "ended by the second interrupt");
    assert_eq!(outcomes(&run, "w1").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_panics_closes_its_gates_and_is_named() {
    let plan = lanes(vec![
        lane("w1", vec![some("a")]),
        lane("cp1", vec![some("b").opens(Gate::Initialised)]),
        lane("w2", vec![some("c").needs([Gate::Initialised])]),
    ]);
    let hosts = fakes(&plan, |host, command| {
        assert!(host != "cp1", "a defect of the test's making");
        healthy(command)
    });
    let run = run(&plan, &hosts, Late::fresh()).await;
    let [error] = &run.carried.failures[..] else {
        panic!("{:#?}", run.carried)
    };
    assert_eq!(error.host.as_str(), "cp1");
    assert!(error.what.contains("a defect of the test's making"), "{}", error.what);
    assert!(error.hint.contains("please report it"));
    assert_eq!(outcomes(&run, "w1"), ["set the hostname to a: done"]);
    assert_eq!(
        outcomes(&run, "w2"),
        ["set the hostname to c: not started: the work on cp1 ended unexpectedly"]
    );
    assert!(!run.carried.complete());
}

#[tokio::test(start_paused = true)]
async fn what_a_step_finds_out_reaches_those_that_need_it() {
    let plan = fresh();
    let hosts = fakes(&plan, |_, command| healthy(command));
    let run = run(&plan, &hosts, Late::fresh()).await;
    assert!(run.carried.complete());
    let commands = hosts[&name("w1")].commands();
    let join = commands.iter().find(|command| command.name == "steps/join").unwrap();
    let sealed = |command: &Command, name: &str| {
        let (_, value) = command.params.iter().find(|(param, _)| param == name).unwrap();
        match value {
            Param::Secret(secret) => secret.reveal().to_owned(),
            Param::Plain(text) => panic!("{name} is not sealed: {text}"),
        }
    };
    let (config, discovery) = (sealed(join, "CONFIG"), sealed(join, "DISCOVERY"));
    assert!(
        discovery.contains("certificate-authority-data: \"Q0EtUEVN\"\n"),
        "{discovery}"
    );
    assert!(
        !discovery.contains("<late:") && !discovery.contains("<secret:") && !config.contains("<secret:"),
        "{config}{discovery}"
    );
    // The same token was given to kubeadm init.
    let commands = hosts[&name("cp1")].commands();
    let found = commands.iter().find(|command| command.name == "steps/found").unwrap();
    let given = sealed(found, "CONFIG");
    let (_, token) = config.split_once("tlsBootstrapToken: ").unwrap();
    let token = token.lines().next().unwrap().trim_matches('"');
    assert!(
        given.contains(token) && token.starts_with("k8s") && token.len() == 23,
        "{token}"
    );
    // Nobody is shown the CA's line.
    let shown = run
        .events
        .iter()
        .any(|event| matches!(event, Event::Output { text, .. } if text.contains("Q0EtUEVN")));
    assert!(!shown);
    assert!(
        run.events
            .iter()
            .any(|event| matches!(event, Event::Output { text, .. } if text == "working"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_late_value_that_nobody_found_out_is_an_error() {
    let join = Step::Join {
        config: "token: <secret:bootstrap-token>".to_owned(),
        discovery: "ca: <late:ca-cert>".to_owned(),
        address: "192.168.7.204".parse().unwrap(),
        controller: false,
    };
    let plan = lanes(vec![lane("w1", vec![Planned::new(join, "it is not in the cluster")])]);
    let hosts = fakes(&plan, |_, command| healthy(command));
    let failed = run(&plan, &hosts, Late::fresh()).await;
    assert_eq!(failed.carried.failures[0].what, "<late:ca-cert> is not known yet");
    assert_eq!(hosts[&name("w1")].names(), [""; 0], "nothing was run");
}

#[tokio::test(start_paused = true)]
async fn a_step_about_a_host_that_failed_is_left_out_and_its_lane_goes_on() {
    let cleared = Gate::Cleared(name("w1"));
    let forgotten = Gate::Forgotten(name("w1"));
    let plan = lanes(vec![
        lane(
            "w1",
            vec![some("a").opens(cleared.clone()), some("b").needs([forgotten.clone()])],
        ),
        lane("cp1", vec![some("c").only_if(cleared).opens(forgotten), some("d")]),
    ]);
    let hosts = fakes(&plan, |host, command| match host {
        "w1" => FakeReply::failed(1, "no\n").after(Duration::from_secs(5)),
        _ => healthy(command),
    });
    let run = run(&plan, &hosts, Late::fresh()).await;
    assert_eq!(
        outcomes(&run, "cp1"),
        [
            "set the hostname to c: not started: set the hostname to a failed on w1",
            "set the hostname to d: done"
        ]
    );
    assert_eq!(
        outcomes(&run, "w1")[1],
        "set the hostname to b: not started: set the hostname to a failed on w1"
    );
    assert_eq!(run.carried.failures.len(), 1);
    assert!(run.events.iter().any(|event| matches!(
        event,
        Event::GateClosed {
            gate: Gate::Forgotten(_),
            ..
        }
    )));
}
