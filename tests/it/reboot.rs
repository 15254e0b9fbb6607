//! A reboot in the middle of a lane: the host goes, comes back with another boot, and the lane goes on. Time stands
//! still.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8sup::cluster::{NodeName, Role};
use k8sup::execute::Late;
use k8sup::execute::event::{Event, Outcome};
use k8sup::plan::{Lane, Plan, Planned, Step};
use k8sup::remote::fake::{FakeReply, FakeSession};
use k8sup::remote::{Command, Ending, Param, RunError};
use tokio::time::Instant;

use crate::executor::{Run, run};
use crate::world::name;

/// A reboot and a step after it, and another host that has nothing to do with it.
fn plan() -> Plan {
    let reboot = Step::Reboot {
        boot_id: "first".to_owned(),
    };
    let lane = |host: &str, steps: Vec<Step>| Lane {
        host: name(host),
        role: Role::Worker,
        steps: steps.into_iter().map(|step| Planned::new(step, "it differs")).collect(),
    };
    Plan {
        lanes: vec![
            lane("w1", vec![reboot, Step::FinishJoin]),
            lane("w2", vec![Step::FinishJoin]),
        ],
        ..Plan::default()
    }
}

/// How a machine reboots.
#[derive(Clone, Copy)]
struct Machine {
    /// So long after it was told the connection is lost.
    shuts_down: Duration,
    /// And so long after it was told it can be connected to again; never, when it is longer than anybody waits.
    is_up: Duration,
    /// The id of the boot after that.
    boot: &'static str,
    /// What becomes of the lock that is taken again.
    lock: &'static str,
}

const USUAL: Machine = Machine {
    shuts_down: Duration::from_secs(5),
    is_up: Duration::from_secs(45),
    boot: "second",
    lock: "",
};

/// The machine, and how often it was connected to anew.
fn rebooting(machine: Machine) -> (FakeSession, Arc<AtomicUsize>) {
    let told: Arc<Mutex<Option<Instant>>> = Arc::default();
    let connected: Arc<AtomicUsize> = Arc::default();
    let since = |told: &Mutex<Option<Instant>>| told.lock().unwrap().map(|at: Instant| at.elapsed());
    let handler = {
        let (told, connected) = (Arc::clone(&told), Arc::clone(&connected));
        move |command: &Command| {
            let anew = connected.load(Ordering::SeqCst) > 0;
            let gone = since(&told).is_some_and(|since| since >= machine.shuts_down);
            if gone && !anew {
                return FakeReply::error(RunError::ConnectionLost("connection reset by peer".to_owned()));
            }
            match command.name.as_str() {
                "steps/reboot" => {
                    *told.lock().unwrap() = Some(Instant::now());
                    FakeReply::ok("rebooting\n")
                }
                "boot-id" => FakeReply::ok(if anew { machine.boot } else { "first" }),
                "lock/take" if !machine.lock.is_empty() => {
                    FakeReply::output(Ending::Status(75), format!("{}\nan hour ago\n", machine.lock), "")
                }
                _ => FakeReply::ok(""),
            }
        }
    };
    let again = Arc::clone(&connected);
    let session = FakeSession::new(handler).redialled(move || {
        if since(&told).is_some_and(|since| since >= machine.is_up) {
            again.fetch_add(1, Ordering::SeqCst);
            Ok(())
        } else {
            Err("w1: nothing answers at 192.168.7.204:22".to_owned())
        }
    });
    (session, connected)
}

async fn carried(machine: Machine) -> (Run, FakeSession, usize, Duration) {
    let (session, connected) = rebooting(machine);
    let other = FakeSession::new(|_| FakeReply::ok(""));
    let hosts: BTreeMap<NodeName, FakeSession> = [(name("w1"), session.clone()), (name("w2"), other)].into();
    let started = Instant::now();
    // The cable is out while the machine is down.
    let cut = {
        let session = session.clone();
        tokio::spawn(async move {
            tokio::time::sleep(machine.shuts_down).await;
            session.cut("connection reset by peer");
        })
    };
    let run = run(&plan(), &hosts, Late::fresh()).await;
    cut.abort();
    (run, session, connected.load(Ordering::SeqCst), started.elapsed())
}

/// Hosts that somebody was told are out of reach.
fn unreachable(run: &Run) -> Vec<String> {
    run.events
        .iter()
        .filter_map(|event| match event {
            Event::Unreachable { host, .. } => Some(host.to_string()),
            _ => None,
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_lane_goes_on_when_the_host_is_back() {
    let (run, session, connected, took) = carried(USUAL).await;
    assert!(run.carried.complete(), "{:#?}", run.carried);
    assert_eq!(connected, 1);
    assert!(
        took >= Duration::from_secs(45) && took < Duration::from_secs(60),
        "{took:?}"
    );
    assert_eq!(unreachable(&run), [""; 0], "it was told to go");
    let names = session.names();
    let place = |wanted: &str| names.iter().position(|name| name == wanted).unwrap();
    assert!(place("steps/reboot") < place("lock/take") && place("lock/take") < place("steps/finish_join"));
    // The lock is this run's, in its own words.
    let taken = session
        .commands()
        .into_iter()
        .find(|command| command.name == "lock/take")
        .unwrap();
    for (param, value) in [("RUN", "0123"), ("HOLDER", "k8sup apply by me")] {
        assert!(
            taken
                .params
                .contains(&(param.to_owned(), Param::Plain(value.to_owned()))),
            "{taken:#?}"
        );
    }
    let waits = run
        .events
        .iter()
        .filter(|event| matches!(event, Event::Output { text, .. } if text.starts_with("waiting for it to come back, at most ")))
        .count();
    assert!((3..=6).contains(&waits), "told now and then: {waits}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_lost_at_once_is_no_failure() {
    let at_once = Machine {
        shuts_down: Duration::ZERO,
        ..USUAL
    };
    let (session, _) = rebooting(at_once);
    // The shell of the step itself is gone, too.
    let told = session.clone();
    let session = FakeSession::new(move |command| match command.name.as_str() {
        "steps/reboot" => FakeReply::error(RunError::ConnectionLost("closed by the host".to_owned())),
        "boot-id" => FakeReply::ok("second"),
        _ => {
            assert!(told.names().is_empty());
            FakeReply::ok("")
        }
    });
    let hosts = [
        (name("w1"), session),
        (name("w2"), FakeSession::new(|_| FakeReply::ok(""))),
    ]
    .into();
    let run = run(&plan(), &hosts, Late::fresh()).await;
    assert!(run.carried.complete(), "{:#?}", run.carried);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_never_comes_back_is_told_in_plain_words() {
    let dead = Machine {
        is_up: Duration::from_secs(100_000),
        ..USUAL
    };
    let (run, session, _, took) = carried(dead).await;
    let [error] = &run.carried.failures[..] else {
        panic!("{:#?}", run.carried)
    };
    assert_eq!(
        error.what,
        "did not come back within 10 min after its reboot: w1: nothing answers at 192.168.7.204:22"
    );
    assert!(
        error.host_lost && error.hint.contains("look at its screen"),
        "{error:#?}"
    );
    assert!(
        took >= Duration::from_secs(600) && took < Duration::from_secs(630),
        "{took:?}"
    );
    assert!(!session.names().contains(&"steps/finish_join".to_owned()));
    let done = |host: &str| {
        run.events.iter().any(|event| {
            matches!(event, Event::StepFinished { host: at, step, outcome: Outcome::Done, .. }
                if at.as_str() == host && step == "finish the join")
        })
    };
    assert!(done("w2") && !done("w1"), "the others go on");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_go_down_is_told_apart() {
    let stuck = Machine {
        shuts_down: Duration::from_secs(100_000),
        ..USUAL
    };
    let (run, ..) = carried(stuck).await;
    let error = &run.carried.failures[0];
    assert_eq!(
        error.what,
        "did not come back within 10 min after its reboot: it has not gone down yet"
    );
}

#[tokio::test(start_paused = true)]
async fn somebody_elses_run_on_the_host_that_came_back_is_respected() {
    let taken = Machine {
        lock: "k8sup reset by her",
        ..USUAL
    };
    let (run, session, ..) = carried(taken).await;
    let error = &run.carried.failures[0];
    assert!(
        error
            .what
            .starts_with("came back, and another k8sup is at work on w1: k8sup reset by her"),
        "{}",
        error.what
    );
    assert!(!session.names().contains(&"steps/finish_join".to_owned()));
}
