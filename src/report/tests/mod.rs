//! One run, told in every way: the story and what the tests of all tellers need.

mod bars;
mod failure;
mod lines;
mod reporter;
mod summary;

use std::time::Duration;

use crate::cluster::{NodeName, Role};
use crate::execute::event::{Event, Evidence, Outcome, Phase, StepError};
use crate::plan::Gate;
use crate::remote::Stream;

fn host(name: &str) -> NodeName {
    NodeName::parse(name).unwrap()
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn failed_init() -> StepError {
    StepError {
        host: host("cp1"),
        step: "kubeadm init".to_owned(),
        what: "the API server did not answer within 240 s".to_owned(),
        evidence: vec![
            Evidence {
                source: "stderr".to_owned(),
                lines: vec![
                    "[wait-control-plane] waiting".to_owned(),
                    "\u{1b}[31merror:\u{1b}[0m timed out".to_owned(),
                ],
            },
            Evidence {
                source: "kubelet".to_owned(),
                lines: (1..=22).map(|n| format!("line {n}")).collect(),
            },
        ],
        hint: "read `journalctl -u kubelet` on cp1".to_owned(),
        host_lost: false,
    }
}

/// Two hosts are prepared, one of them fails, the other waits for it in vain.
#[expect(clippy::too_many_lines, reason = "a story is told in one go")]
fn story() -> Vec<(Duration, Event)> {
    let step = |name: &str, title: &str| (host(name), title.to_owned());
    let started = |name, title, why: &str| {
        let (host, step) = step(name, title);
        Event::StepStarted {
            host,
            step,
            why: why.to_owned(),
        }
    };
    let finished = |name, title, outcome, took| {
        let (host, step) = step(name, title);
        Event::StepFinished {
            host,
            step,
            outcome,
            took: millis(took),
            files: Vec::new(),
        }
    };
    vec![
        (millis(0), Event::PhaseStarted { phase: Phase::Observe }),
        (millis(210), Event::Connected { host: host("cp1") }),
        (millis(230), Event::Connected { host: host("worker-1") }),
        (
            millis(300),
            Event::Unreachable {
                host: host("w2"),
                reason: "192.168.7.205:22: timed out".to_owned(),
            },
        ),
        (
            millis(310),
            Event::PhaseFinished {
                phase: Phase::Observe,
                took: millis(310),
            },
        ),
        (millis(320), Event::PhaseStarted { phase: Phase::Execute }),
        (
            millis(321),
            Event::Planned {
                lanes: vec![
                    (host("cp1"), Role::Controller, 3),
                    (host("worker-1"), Role::Worker, 2),
                    (host("w2"), Role::Worker, 2),
                ],
            },
        ),
        (
            millis(330),
            started("cp1", "containerd configured", "SystemdCgroup is false"),
        ),
        (
            millis(340),
            started("worker-1", "containerd configured", "SystemdCgroup is false"),
        ),
        (
            millis(900),
            Event::Output {
                host: host("cp1"),
                stream: Stream::Stdout,
                text: "\u{1b}[32mreloading\u{1b}[0m\u{7} containerd".to_owned(),
            },
        ),
        (
            millis(4_530),
            finished("cp1", "containerd configured", Outcome::Done, 4_200),
        ),
        (millis(4_531), started("cp1", "kubeadm init", "")),
        (
            millis(5_000),
            finished("worker-1", "containerd configured", Outcome::Done, 4_660),
        ),
        (
            millis(5_001),
            Event::StepWaiting {
                host: host("worker-1"),
                step: "joined".to_owned(),
                gates: vec![Gate::Initialised, Gate::LoadBalancerServes(host("lb-0"))],
            },
        ),
        (
            millis(7_000),
            Event::Retrying {
                host: host("cp1"),
                step: "kubeadm init".to_owned(),
                reason: "image pull failed".to_owned(),
                pause: millis(2_000),
            },
        ),
        (
            millis(30_000),
            Event::Note {
                host: None,
                message: "the load balancer has 0 of 1 backends up".to_owned(),
            },
        ),
        (
            millis(250_000),
            finished("cp1", "kubeadm init", Outcome::Failed(failed_init()), 245_469),
        ),
        (
            millis(250_001),
            Event::GateClosed {
                gate: Gate::Initialised,
                reason: "kubeadm init failed on cp1".to_owned(),
            },
        ),
        (
            millis(250_002),
            finished(
                "worker-1",
                "joined",
                Outcome::NotStarted {
                    reason: "the cluster is not initialised".to_owned(),
                },
                0,
            ),
        ),
        (
            millis(250_003),
            finished(
                "cp1",
                "Flannel applied",
                Outcome::NotStarted {
                    reason: "the cluster is not initialised".to_owned(),
                },
                0,
            ),
        ),
        (
            millis(250_004),
            Event::PhaseFinished {
                phase: Phase::Execute,
                took: millis(249_684),
            },
        ),
    ]
}
