//! The timeline as people see it: in a real browser, by day and by night.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use k8sup::cluster::{NodeName, Role};
use k8sup::execute::event::{Event, Outcome, Phase, StepError};
use k8sup::plan::Gate;
use k8sup::report::ledger::Ledger;
use k8sup::report::{Summary, page};

use crate::world::name;

fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn step(ledger: &mut Ledger, host: &NodeName, step: &str, from: u64, to: u64, outcome: Outcome) {
    let started = Event::StepStarted {
        host: host.clone(),
        step: step.to_owned(),
        why: "it is not there".to_owned(),
    };
    let finished = Event::StepFinished {
        host: host.clone(),
        step: step.to_owned(),
        outcome,
        took: at(to - from),
        files: Vec::new(),
    };
    ledger.take(at(from), &started);
    ledger.take(at(to), &finished);
}

/// A run with so many workers; the last one fails.
fn run(workers: usize) -> Summary {
    let mut ledger = Ledger::default();
    let controller = name("cp1");
    let workers: Vec<NodeName> = (1..=workers).map(|number| name(&format!("worker-{number}"))).collect();
    let mut lanes = vec![(controller.clone(), Role::Controller, 2)];
    lanes.extend(workers.iter().map(|worker| (worker.clone(), Role::Worker, 2)));
    ledger.take(at(0), &Event::PhaseStarted { phase: Phase::Execute });
    ledger.take(at(0), &Event::Planned { lanes });
    step(&mut ledger, &controller, "install packages", 0, 9_000, Outcome::Done);
    step(
        &mut ledger,
        &controller,
        "kubeadm init: control plane",
        9_000,
        30_000,
        Outcome::Done,
    );
    let opened = Event::GateOpened {
        gate: Gate::Initialised,
        by: controller,
    };
    ledger.take(at(30_000), &opened);
    for (number, worker) in (0..).zip(&workers) {
        let ready = 5_000 + number * 300;
        step(&mut ledger, worker, "install packages", 0, ready, Outcome::Done);
        let waits = Event::StepWaiting {
            host: worker.clone(),
            step: "kubeadm join as worker".to_owned(),
            gates: vec![Gate::Initialised],
        };
        ledger.take(at(ready), &waits);
        let outcome = if number + 1 == workers.len() as u64 {
            Outcome::Failed(StepError {
                host: worker.clone(),
                step: "kubeadm join as worker".to_owned(),
                what: "<script>alert(1)</script> & ended with status 1".to_owned(),
                evidence: Vec::new(),
                hint: "run again".to_owned(),
                host_lost: false,
            })
        } else {
            Outcome::Done
        };
        step(
            &mut ledger,
            worker,
            "kubeadm join as worker",
            30_000,
            40_000 + number * 100,
            outcome,
        );
    }
    ledger.take(
        at(46_000),
        &Event::PhaseFinished {
            phase: Phase::Execute,
            took: at(46_000),
        },
    );
    ledger.summary(at(60_000))
}

#[test]
fn what_hosts_say_is_text_and_nothing_else() {
    let page = page::render("<b>lab</b>", &run(2), "today").unwrap();
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script>"), "{page}");
    assert!(page.contains("<title>&lt;b&gt;lab"), "{page}");
    for foreign in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(foreign), "the page asks others for {foreign}");
    }
    for words in [
        "until the cluster is initialised",
        "when the cluster is initialised",
        "Not finished after 1m 00s",
    ] {
        assert!(page.contains(words), "{words} is missing in {page}");
    }
}

#[test]
fn a_run_without_steps_says_so() {
    let page = page::render("lab", &Summary::default(), "today").unwrap();
    assert!(page.contains("No step was carried out"), "{page}");
}

/// In place of a person's eyes: the colours, and whether anything sticks out or lies on something else.
const LOOK: &str = "<script>
  const rect = one => one.getBoundingClientRect();
  const out = (inner, outer) => rect(inner).left < rect(outer).left - 1 || rect(inner).right > rect(outer).right + 1;
  const bars = [...document.querySelectorAll('.bar')];
  const hidden = bars.filter(bar => { const tip = bar.querySelector('.tip'); tip.style.display = 'block';
    const bad = out(tip, document.body) || rect(tip).top < 0; tip.style.display = ''; return bad; });
  const said = {
    back: getComputedStyle(document.body).backgroundColor,
    bars: bars.length,
    critical: document.querySelectorAll('.bar.path').length,
    failed: document.querySelectorAll('.bar.failed').length,
    outside: bars.filter(bar => out(bar, bar.parentElement)).length,
    hidden: hidden.length,
    wide: document.documentElement.scrollWidth > innerWidth,
  };
  document.title = 'said ' + JSON.stringify(said);
</script>";

fn browser() -> Option<&'static str> {
    let known = ["chromium", "chromium-browser", "google-chrome"];
    known.into_iter().find(|name| {
        let asked = Command::new(name).arg("--version").output();
        asked.is_ok_and(|output| output.status.success())
    })
}

/// What a browser makes of the page.
fn looked_at(browser: &str, page: &Path, dark: bool, width: u32) -> serde_json::Value {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new("timeout")
        .args([
            "60",
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!dark)))
        .arg(format!("--window-size={width},900"))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let said = dom
        .split("<title>said ")
        .nth(1)
        .and_then(|rest| rest.split("</title>").next());
    let said = said.unwrap_or_else(|| panic!("{browser} shows {dom}\n{}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(said).unwrap()
}

#[test]
fn a_browser_shows_it_by_day_and_by_night() {
    let Some(browser) = browser() else {
        println!("skipped: no chromium here (scripts/browser.sh installs it)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for workers in [6, 40] {
        let file: PathBuf = folder.path().join(format!("{workers}.html"));
        std::fs::write(&file, page::render("lab", &run(workers), "today").unwrap() + LOOK).unwrap();
        for (dark, back, width) in [(false, "rgb(255, 255, 255)", 1280), (true, "rgb(13, 17, 23)", 800)] {
            let said = looked_at(browser, &file, dark, width);
            let wanted = serde_json::json!({
                "back": back, "bars": 2 + 2 * workers, "critical": 2, "failed": 1, "outside": 0, "hidden": 0, "wide": false,
            });
            assert_eq!(said, wanted, "{workers} workers, dark: {dark}");
        }
    }
}
