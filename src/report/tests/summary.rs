//! The summary: of a failed, a short, a divided and an interrupted run.

use std::time::Duration;

use super::{host, millis, story};
use crate::cluster::Role;
use crate::execute::event::{Event, Outcome, Phase};
use crate::remote::Stream;
use crate::report::ledger::Ledger;
use crate::report::style::Style;
use crate::report::summary::{PhaseTime, Summary};

#[test]
fn the_summary_says_what_is_done_and_what_is_not() {
    let mut ledger = Ledger::default();
    for (at, event) in story() {
        ledger.take(at, &event);
    }
    let mut summary = ledger.summary(millis(250_100));
    summary.log = Some("/home/pi/.local/state/k8sup/logs/apply.jsonl".into());
    assert!(!summary.is_complete());
    assert_eq!(summary.steps(), (2, 1, 4));
    insta::assert_snapshot!(summary.render(Style::PLAIN), @r"
    Not finished after 4m 10s: 2 of 7 steps done, 1 failed, 4 not started, 1 host unreachable

      ✗  cp1       controller  1 of 3 done, 1 failed, 1 not started
      -  worker-1  worker      1 of 2 done, 1 not started
      -  w2        worker      0 of 2 done, 2 not started

    Unreachable:
      ✗ w2: 192.168.7.205:22: timed out

    Failed:
      ✗ cp1: kubeadm init: the API server did not answer within 240 s
        hint: read `journalctl -u kubelet` on cp1

    Not started:
      - the cluster is not initialised
          worker-1: joined
          cp1: Flannel applied
      - the host cannot be reached
          w2: 2 steps

    Time: observe 0.3s, execute 4m 09s, total 4m 10s
    Debug log: /home/pi/.local/state/k8sup/logs/apply.jsonl
    ");
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["hosts"][0]["failed"], 1);
    assert_eq!(json["total"], 250.1);
}

#[test]
fn a_summary_of_success_is_short() {
    let mut ledger = Ledger::default();
    for event in [
        Event::Planned {
            lanes: vec![(host("cp1"), Role::Controller, 1)],
        },
        Event::StepStarted {
            host: host("cp1"),
            step: "swap off".to_owned(),
            why: String::new(),
        },
        Event::StepFinished {
            host: host("cp1"),
            step: "swap off".to_owned(),
            outcome: Outcome::Done,
            took: millis(100),
            files: Vec::new(),
        },
        Event::PhaseFinished {
            phase: Phase::Execute,
            took: millis(900),
        },
    ] {
        ledger.take(Duration::ZERO, &event);
    }
    let mut summary = Summary {
        phases: vec![PhaseTime {
            phase: Phase::Observe,
            took: millis(400),
        }],
        ..Summary::default()
    };
    summary.absorb(ledger.summary(millis(1_300)));
    assert!(summary.is_complete());
    insta::assert_snapshot!(summary.render(Style::PLAIN), @r"
    Done in 1.3s: 1 of 1 step done

      ✓  cp1  controller  1 of 1 done

    Time: observe 0.4s, execute 0.9s, total 1.3s
    ");
}

#[test]
fn a_run_in_two_parts_counts_each_host_once() {
    let part = |step: &str, at: u64| {
        let mut ledger = Ledger::default();
        ledger.take(
            millis(0),
            &Event::Planned {
                lanes: vec![(host("cp1"), Role::Controller, 1)],
            },
        );
        let done = Event::StepFinished {
            host: host("cp1"),
            step: step.to_owned(),
            outcome: Outcome::Done,
            took: millis(1),
            files: Vec::new(),
        };
        ledger.take(millis(1), &done);
        ledger.summary(millis(at))
    };
    let mut summary = part("kubeadm init", 900);
    summary.absorb(part("apply flannel", 1_500));
    assert_eq!(
        (summary.hosts.len(), summary.steps(), summary.total),
        (1, (2, 0, 0), millis(1_500))
    );
    assert!(summary.is_complete());
}

#[test]
fn an_interrupted_run_names_the_steps_that_are_left() {
    let mut ledger = Ledger::default();
    ledger.take(
        Duration::ZERO,
        &Event::Planned {
            lanes: vec![(host("w1"), Role::Worker, 4)],
        },
    );
    ledger.take(Duration::ZERO, &Event::Interrupted);
    let summary = ledger.summary(millis(2_000));
    assert_eq!(summary.steps(), (0, 0, 4));
    insta::assert_snapshot!(summary.render(Style::PLAIN), @r"
    Interrupted after 2.0s: 0 of 4 steps done, 4 not started

      -  w1  worker  0 of 4 done, 4 not started

    Not started:
      - the run was interrupted
          w1: 4 steps

    Run the same command again to go on.

    Time: total 2.0s
    ");
}

#[test]
fn files_that_were_left_stand_in_the_summary() {
    let mut ledger = Ledger::default();
    for text in [
        "kept /etc/haproxy/haproxy.cfg: it was changed since k8sup wrote it",
        "kept waiting",
        "removed /etc/crictl.yaml",
    ] {
        let output = Event::Output {
            host: host("lb-0"),
            stream: Stream::Stdout,
            text: text.to_owned(),
        };
        ledger.take(Duration::ZERO, &output);
    }
    let mut summary = Summary::default();
    summary.absorb(ledger.summary(millis(2_000)));
    let text = summary.render(Style::PLAIN);
    let kept: Vec<&str> = text.lines().skip_while(|line| *line != "Kept:").take(3).collect();
    assert_eq!(
        kept,
        [
            "Kept:",
            "  ! lb-0: /etc/haproxy/haproxy.cfg: it was changed since k8sup wrote it",
            ""
        ]
    );
}

#[test]
fn hosts_without_a_part_in_a_run_may_be_out_of_reach() {
    let mut ledger = Ledger::default();
    for name in ["w1", "w2"] {
        ledger.take(
            millis(10),
            &Event::Unreachable {
                host: host(name),
                reason: "timed out".to_owned(),
            },
        );
    }
    let summary = ledger.summary(millis(100));
    let about = |names: &[&str]| {
        let names = names.iter().map(|name| host(name)).collect();
        summary.about(Some(&names)).unreachable.len()
    };
    assert_eq!((about(&["cp1"]), about(&["w1"]), about(&["w1", "w2"])), (0, 1, 2));
    assert_eq!(summary.about(None).unreachable.len(), 2);
}
