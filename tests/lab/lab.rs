//! The lab under test: its hosts, and what each scenario begins and ends with.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// All hosts of the standard inventory.
pub(crate) const HOSTS: [&str; 7] = ["lb-0", "cp1", "cp2", "cp3", "w1", "w2", "w3"];
/// Those that become Nodes.
pub(crate) const NODES: [&str; 6] = ["cp1", "cp2", "cp3", "w1", "w2", "w3"];

/// Runs a scenario, alone; says so and returns where there is no lab to run it on.
pub(crate) fn scenario(name: &str, run: fn()) {
    static ALONE: Mutex<()> = Mutex::new(());
    if std::env::var_os("K8SUP_LAB_TEST").is_none_or(|value| value != "1") {
        step(&format!("skipped: {name} needs the lab (make lab-test)"));
        return;
    }
    assert!(
        std::env::var_os("K8SUP_LAB_DIR").is_some(),
        "the lab tier re-images hosts: set K8SUP_LAB_DIR to a folder for a lab of its own"
    );
    // A scenario that failed leaves nothing that the next one relies on.
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    step(&format!("{name}: begins"));
    let begin = Instant::now();
    run();
    step(&format!("{name}: took {:.0} s", begin.elapsed().as_secs_f64()));
}

/// A line for whoever watches.
pub(crate) fn step(text: &str) {
    // Not println: the harness would hold it back until the scenario ends.
    let _ = writeln!(std::io::stderr().lock(), "    {text}");
}

/// Does `work` and says how long it took.
pub(crate) fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let value = work();
    step(&format!("{:6.1} s  {what}", begin.elapsed().as_secs_f64()));
    value
}

/// The lab's program with these arguments.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("lab/lab"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// The folder of the lab under test.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(std::env::var_os("K8SUP_LAB_DIR").unwrap())
}

/// What a command of the lab printed; it must succeed.
pub(crate) fn lab(arguments: &[&str]) -> String {
    let output = command(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "lab {}: {}",
        arguments.join(" "),
        both(&output)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// As root on a host; whether it succeeded, and everything it printed.
pub(crate) fn try_on(host: &str, arguments: &[&str]) -> (bool, String) {
    let output = command(&[&["exec", host], arguments].concat()).output().unwrap();
    (output.status.success(), both(&output))
}

/// As root on a host; it must succeed.
pub(crate) fn on(host: &str, arguments: &[&str]) -> String {
    lab(&[&["exec", host], arguments].concat())
}

/// As root on a host, with standard input; it must succeed.
pub(crate) fn feed(host: &str, arguments: &[&str], input: &str) -> String {
    let mut child = command(&[&["exec", host], arguments].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{host}: {}: {}",
        arguments.join(" "),
        both(&output)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn both(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Fresh machines under these names.
pub(crate) fn rebuild(hosts: &[&str]) {
    timed(&format!("re-imaged {}", hosts.join(" ")), || {
        lab(&[&["rebuild"], hosts].concat())
    });
}

/// What there is on each host.
pub(crate) fn snapshots(hosts: &[&str]) -> Vec<(String, BTreeSet<String>)> {
    let snapshot = |host: &&str| {
        let lines = lab(&["snapshot", host]).lines().map(str::to_owned).collect();
        ((*host).to_owned(), lines)
    };
    timed("snapshots", || hosts.iter().map(snapshot).collect())
}

/// Asks again until the answer is yes.
pub(crate) fn within(limit: Duration, what: &str, mut ask: impl FnMut() -> Result<(), String>) {
    let begin = Instant::now();
    loop {
        match ask() {
            Ok(()) => return,
            Err(last) => assert!(
                begin.elapsed() < limit,
                "{what}: not within {} s: {last}",
                limit.as_secs()
            ),
        }
        std::thread::sleep(Duration::from_millis(300));
    }
}
