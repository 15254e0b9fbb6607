//! Lines: the run, signs of life, and what is said only once.

use std::time::Duration;

use super::{host, millis, story};
use crate::execute::event::{Event, Phase};
use crate::remote::Stream;
use crate::report::ledger::Ledger;
use crate::report::lines::Lines;
use crate::report::style::Style;

/// Everything that a reporter of lines would write, ticking every second in between.
fn lines(verbose: u8) -> String {
    let mut ledger = Ledger::default();
    let mut view = Lines::new(Style::PLAIN, verbose);
    let mut out = String::new();
    let mut clock = Duration::ZERO;
    for (at, event) in story() {
        while clock + Duration::from_secs(1) < at {
            clock += Duration::from_secs(1);
            out.extend(view.tick(clock, &ledger));
        }
        ledger.take(at, &event);
        out += &view.event(at, &event, &ledger);
    }
    out
}

#[test]
fn lines_tell_the_run() {
    let text = lines(0);
    let shown: Vec<&str> = text.lines().filter(|line| !line.contains("still running")).collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
       0.0s observe: started
       0.2s cp1  reached
       0.2s worker-1  reached
       0.3s w2        lost
       0.3s observe: done in 0.3s
       0.3s execute: started
       0.3s 7 steps on 3 hosts
       0.3s cp1       started   containerd configured (SystemdCgroup is false)
       0.3s worker-1  started   containerd configured (SystemdCgroup is false)
       4.5s cp1       done      containerd configured in 4.2s
       4.5s cp1       started   kubeadm init
       5.0s worker-1  done      containerd configured in 4.7s
       5.0s worker-1  waiting   joined until the cluster is initialised and load balancer lb-0 serves
       7.0s cp1       retrying  kubeadm init again in 2.0s: image pull failed
      30.0s the load balancer has 0 of 1 backends up
     250.0s cp1       failed    kubeadm init after 4m 05s

    ✗ cp1: kubeadm init
      the API server did not answer within 240 s
      stderr:
        [wait-control-plane] waiting
        error: timed out
      kubelet:
        … 2 lines before, in the debug log
        line 3
        line 4
        line 5
        line 6
        line 7
        line 8
        line 9
        line 10
        line 11
        line 12
        line 13
        line 14
        line 15
        line 16
        line 17
        line 18
        line 19
        line 20
        line 21
        line 22
      hint: read `journalctl -u kubelet` on cp1

     250.0s no longer waiting until the cluster is initialised: kubeadm init failed on cp1
     250.0s worker-1  skipped   joined: the cluster is not initialised
     250.0s cp1       skipped   Flannel applied: the cluster is not initialised
     250.0s execute: done in 4m 09s
    ");
}

#[test]
fn lines_are_never_silent_for_longer_than_ten_seconds() {
    let text = lines(0);
    let times: Vec<f64> = text
        .lines()
        .filter_map(|line| line.trim_start().split_once("s ")?.0.parse().ok())
        .collect();
    assert!(times.len() > 30);
    for pair in times.windows(2) {
        assert!(pair[1] - pair[0] <= 10.0, "{pair:?}");
    }
    let heartbeat = text.lines().find(|line| line.contains("still")).unwrap();
    insta::assert_snapshot!(heartbeat, @"  17.0s still running: cp1 kubeadm init (12.5s): again in 2.0s: image pull failed; waiting: worker-1 until the cluster is initialised and load balancer lb-0 serves");
}

#[test]
fn verbose_lines_show_cleaned_output() {
    let text = lines(1);
    let line = text.lines().find(|line| line.contains("reloading")).unwrap();
    insta::assert_snapshot!(line, @"   0.9s cp1       |         reloading containerd");
    assert!(!lines(0).contains("reloading"));
}

#[test]
fn a_sign_of_life_says_what_is_waited_for() {
    let mut ledger = Ledger::default();
    ledger.take(Duration::ZERO, &Event::PhaseStarted { phase: Phase::Verify });
    let note = Event::Note {
        host: Some(host("cp1")),
        message: "waiting for CoreDNS".to_owned(),
    };
    ledger.take(millis(100), &note);
    let mut view = Lines::new(Style::PLAIN, 0);
    insta::assert_snapshot!(view.tick(millis(12_000), &ledger).unwrap(), @"  12.0s still waiting until the cluster serves (12.0s): cp1: waiting for CoreDNS");
    ledger.take(millis(12_000), &Event::PhaseStarted { phase: Phase::Execute });
    let started = Event::StepStarted {
        host: host("w1"),
        step: "pull images".to_owned(),
        why: String::new(),
    };
    ledger.take(millis(12_000), &started);
    let output = Event::Output {
        host: host("w1"),
        stream: Stream::Stdout,
        text: "waiting for registry.k8s.io".to_owned(),
    };
    ledger.take(millis(12_100), &output);
    insta::assert_snapshot!(view.tick(millis(24_000), &ledger).unwrap(), @"  24.0s still running: w1 pull images (12.0s): waiting for registry.k8s.io");
}

#[test]
fn a_note_that_is_said_again_and_again_is_one_line() {
    let note = |message: &str| Event::Note {
        host: None,
        message: message.to_owned(),
    };
    let (ledger, mut view) = (Ledger::default(), Lines::new(Style::PLAIN, 0));
    let mut out = String::new();
    for (second, message) in ["waiting: a", "waiting: a", "waiting: b", "waiting: a"]
        .iter()
        .enumerate()
    {
        out += &view.event(Duration::from_secs(second as u64), &note(message), &ledger);
    }
    assert_eq!(out.lines().count(), 3, "{out}");
}
