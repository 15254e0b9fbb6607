//! Bars, on a terminal in memory.

use std::time::Duration;

use indicatif::{InMemoryTerm, ProgressDrawTarget};

use super::{host, millis, story};
use crate::cluster::Role;
use crate::execute::event::{Event, Outcome, Phase};
use crate::remote::Stream;
use crate::report::bars::Bars;
use crate::report::ledger::Ledger;
use crate::report::screen::Screen;
use crate::report::style::Style;
use crate::report::{LogFormat, Mode};

/// Bars that are drawn on that terminal.
fn bars_on(term: &InMemoryTerm, style: Style) -> Bars {
    Bars::new(
        ProgressDrawTarget::term_like_with_hz(Box::new(Screen::new(term.clone())), 255),
        style,
        Duration::ZERO,
    )
}

/// What stands on a terminal of that width at a moment of the story.
fn screen(width: u16, until: Duration) -> String {
    let term = InMemoryTerm::new(60, width);
    let mut ledger = Ledger::default();
    let mut bars = bars_on(&term, Style::PLAIN);
    let mut last = Duration::ZERO;
    for (at, event) in story().into_iter().filter(|(at, _)| *at <= until) {
        if at > last + millis(400) {
            bars.tick(at, &ledger);
        }
        last = at;
        ledger.take(at, &event);
        bars.event(&event, &ledger);
    }
    bars.tick(until, &ledger);
    term.contents()
}

#[test]
fn bars_are_drawn_after_half_a_second_only() {
    insta::assert_snapshot!(screen(80, millis(499)), @"✗ w2        lost");
    insta::assert_snapshot!(screen(80, millis(1_500)), @r"
    ✗ w2        lost
    execute ────────────────────  0/7 steps     1s, 2 running
      cp1       containerd configured      1s  reloading containerd
      worker-1  containerd configured      1s
    ");
}

#[test]
fn bars_keep_finished_steps_above() {
    insta::assert_snapshot!(screen(80, millis(65_000)), @r"
    ✗ w2        lost
    ✓ cp1       containerd configured  4.2s
    ✓ worker-1  containerd configured  4.7s
    ↻ cp1       kubeadm init  again in 2.0s: image pull failed
    · the load balancer has 0 of 1 backends up
    execute ━━━━━───────────────  2/7 steps 1m 05s, 1 running, 1 waiting
      cp1  kubeadm init  1m 00s  again in 2.0s: image pull failed
    ");
    insta::assert_snapshot!(screen(200, millis(65_000)), @r"
    ✗ w2        lost
    ✓ cp1       containerd configured  4.2s
    ✓ worker-1  containerd configured  4.7s
    ↻ cp1       kubeadm init  again in 2.0s: image pull failed
    · the load balancer has 0 of 1 backends up
    execute ━━━━━───────────────  2/7 steps 1m 05s, 1 running, 1 waiting
      cp1  kubeadm init  1m 00s  again in 2.0s: image pull failed
    ");
}

#[test]
fn bars_make_way_for_a_failure() {
    let screen = screen(80, millis(250_004));
    let shown: Vec<&str> = screen
        .lines()
        .skip_while(|line| !line.contains("backends up"))
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    · the load balancer has 0 of 1 backends up

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

    ✗ no longer waiting until the cluster is initialised: kubeadm init failed on cp1
            ━━━━━───────────────  2/7 steps 4m 10s, 1 failed
    ");
}

#[test]
fn bars_show_eight_busy_hosts_and_cut_long_lines() {
    for width in [80_u16, 200] {
        let term = InMemoryTerm::new(40, width);
        let mut ledger = Ledger::default();
        let mut bars = bars_on(&term, Style::COLOUR);
        let lanes = (0..12).map(|n| (host(&format!("node-{n}")), Role::Worker, 2)).collect();
        ledger.take(millis(0), &Event::Planned { lanes });
        for n in 0..12 {
            let host = host(&format!("node-{n}"));
            let step = "packages installed from the repository that the inventory names".to_owned();
            ledger.take(
                millis(n),
                &Event::StepStarted {
                    host: host.clone(),
                    step,
                    why: String::new(),
                },
            );
            let text = "\u{1b}[1mGet:1\u{1b}[0m http://mirror/ ü ".to_owned() + &"x".repeat(300);
            ledger.take(
                millis(n),
                &Event::Output {
                    host,
                    stream: Stream::Stdout,
                    text,
                },
            );
        }
        bars.tick(millis(2_500), &ledger);
        let screen = term.contents();
        assert_eq!(screen.lines().count(), 9, "{screen}");
        assert!(
            screen.contains("0/24 steps") && screen.contains("12 running"),
            "{screen}"
        );
        assert!(
            screen.lines().all(|line| line.chars().count() <= usize::from(width)),
            "{screen}"
        );
        assert!(screen.lines().nth(1).unwrap().contains("Get:1 http"), "{screen}");

        // Hosts that are done free their lines, and the end leaves nothing.
        for n in 0..11 {
            let event = Event::StepFinished {
                host: host(&format!("node-{n}")),
                step: "packages".to_owned(),
                outcome: Outcome::Done,
                took: millis(2_000),
                files: Vec::new(),
            };
            ledger.take(millis(2_600), &event);
            bars.event(&event, &ledger);
        }
        bars.tick(millis(2_700), &ledger);
        let screen = term.contents();
        assert_eq!(screen.lines().count(), 11 + 2, "{screen}");
        assert!(screen.lines().last().unwrap().contains("node-11"), "{screen}");
        bars.finish();
        let screen = term.contents();
        assert_eq!(screen.lines().count(), 11, "{screen}");
        assert!(screen.lines().all(|line| line.starts_with("✓ node-")), "{screen}");
    }
}

#[test]
fn bars_only_where_they_can_be_drawn() {
    assert_eq!(Mode::decide(LogFormat::Text, 0, true), Mode::Bars);
    assert_eq!(Mode::decide(LogFormat::Text, 1, true), Mode::Lines);
    assert_eq!(Mode::decide(LogFormat::Text, 0, false), Mode::Lines);
    assert_eq!(Mode::decide(LogFormat::Json, 2, true), Mode::Json);
}

#[test]
fn bars_that_are_dropped_leave_nothing() {
    let term = InMemoryTerm::new(20, 80);
    let mut ledger = Ledger::default();
    let mut bars = bars_on(&term, Style::PLAIN);
    ledger.take(millis(0), &Event::PhaseStarted { phase: Phase::Verify });
    bars.tick(millis(2_000), &ledger);
    assert!(term.contents().contains("verify"), "{}", term.contents());
    drop(bars);
    assert_eq!(term.contents(), "");
}
