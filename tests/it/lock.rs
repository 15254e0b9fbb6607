//! One run at a time: what a host makes of two that come together, and what k8sup makes of its answer.

use std::collections::BTreeMap;
use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

use k8sup::execute::lock::{Held, Lock};
use k8sup::remote::fake::{FakeReply, FakeSession};
use k8sup::remote::{Command, Ending, Param, Session};

use crate::root::Root;
use crate::world::{self, name};

/// A host with a clock that counts from its boot.
fn host() -> Root {
    let root = Root::new();
    at(&root, 1000);
    root
}

fn at(root: &Root, uptime: u32) {
    root.write("/proc/uptime", &format!("{uptime}.42 17.00\n"));
}

fn lock(root: &Root, action: &str, run: &str) -> Output {
    let params = [
        ("ACTION", action.to_owned()),
        ("RUN", run.to_owned()),
        // Only who takes it says who it is.
        (
            "HOLDER",
            if action == "take" {
                format!("{run} by pi@laptop")
            } else {
                String::new()
            },
        ),
    ];
    let script = world::read("templates/holder.sh") + &world::read("templates/lock.sh");
    root.run(&params, &script)
}

fn take(root: &Root, run: &str) -> (i32, String) {
    let output = lock(root, "take", run);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (
        output.status.code().unwrap(),
        text + &String::from_utf8_lossy(&output.stderr),
    )
}

#[test]
fn the_second_is_told_who_was_first() {
    let root = host();
    assert_eq!(take(&root, "a").0, 0);
    assert_eq!(take(&root, "a").0, 0, "its own lock is in nobody's way");
    let (status, said) = take(&root, "b");
    assert_eq!(status, 75, "{said}");
    assert!(
        said.starts_with("a by pi@laptop\n20") && said.trim_end().ends_with("UTC"),
        "{said}"
    );
    lock(&root, "release", "b");
    assert_eq!(take(&root, "b").0, 75, "only the holder gives it back");
    lock(&root, "release", "a");
    assert!(!root.exists("/run/k8sup"));
    assert_eq!(take(&root, "b").0, 0);
}

#[test]
fn a_silent_holder_loses_it_and_is_stopped() {
    let root = host();
    take(&root, "a");
    at(&root, 1050);
    lock(&root, "keep", "a");
    at(&root, 1105);
    let (status, said) = take(&root, "b");
    assert_eq!(status, 75, "it was heard 55 s ago");
    assert!(said.starts_with("a by pi@laptop\n20"), "{said}");
    at(&root, 1111);
    assert_eq!(take(&root, "b").0, 0);
    // It wakes up: nothing of it is done any more, and the other's lock stays.
    lock(&root, "keep", "a");
    assert!(root.read("/run/k8sup/lock").contains("run b\n"));
    let step = |run: &str| {
        let text = format!("{}\nsay done\n", world::read("templates/prelude.sh"));
        root.run(&[("RUN", run.to_owned())], &text)
    };
    let late = step("a");
    assert!(!late.status.success());
    let why = String::from_utf8_lossy(&late.stderr).into_owned();
    assert!(
        why.contains("another run of k8sup has taken over on this host: b by pi@laptop"),
        "{why}"
    );
    assert!(step("b").status.success());
}

#[test]
fn the_lock_is_over_when_the_connection_is() {
    let root = host();
    take(&root, "a");
    let connected = |start: &str| {
        let stat = format!("77 (sshd-session) S 1 77 77 0 -1 4194560 1 0 0 0 5 3 0 0 20 0 1 0 {start} 1 1");
        root.write("/proc/77/stat", &stat);
    };
    let text = root
        .read("/run/k8sup/lock")
        .replace("connection ", "connection 77 4242");
    root.write("/run/k8sup/lock", &text);
    connected("4242");
    assert_eq!(take(&root, "b").0, 75);
    // Another process under the same number.
    connected("9999");
    assert_eq!(take(&root, "b").0, 0);
}

#[test]
fn a_reset_host_has_no_lock_to_keep() {
    let root = host();
    lock(&root, "keep", "a");
    lock(&root, "release", "a");
    assert!(!root.exists("/run/k8sup"));
}

fn action(command: &Command) -> String {
    command
        .params
        .iter()
        .find_map(|(name, value)| match value {
            Param::Plain(value) if name == "ACTION" => Some(value.clone()),
            _ => None,
        })
        .unwrap()
}

/// Hosts of which `held` has another run's lock.
fn hosts(held: Option<&'static str>) -> BTreeMap<String, FakeSession> {
    let fake = |host: &&str| {
        let holds = held == Some(*host);
        FakeSession::new(move |command| match action(command).as_str() {
            "take" if holds => FakeReply::output(
                Ending::Status(75),
                "k8sup reset by pi@laptop (process 7)\n2026-11-30 20:15:00 UTC\n",
                "",
            ),
            _ => FakeReply::ok(""),
        })
    };
    ["cp1", "cp2", "w1"]
        .iter()
        .map(|host| ((*host).to_owned(), fake(host)))
        .collect()
}

async fn taken(hosts: &BTreeMap<String, FakeSession>) -> Result<Lock, Held> {
    let sessions = hosts
        .iter()
        .map(|(host, fake)| (name(host), Session::Fake(fake.clone())));
    Lock::take(Arc::new(sessions.collect()), "k8sup apply by me").await
}

fn actions(hosts: &BTreeMap<String, FakeSession>, host: &str) -> Vec<String> {
    hosts[host].commands().iter().map(action).collect()
}

#[tokio::test(start_paused = true)]
async fn it_is_taken_kept_and_given_back_on_all_hosts() {
    let hosts = hosts(None);
    let lock = taken(&hosts).await.unwrap();
    tokio::time::sleep(Duration::from_secs(40)).await;
    lock.release().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    for host in ["cp1", "cp2", "w1"] {
        assert_eq!(actions(&hosts, host), ["take", "keep", "keep", "release"], "{host}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_held_is_named_and_the_others_are_given_back() {
    let some = hosts(Some("w1"));
    let held = taken(&some).await.unwrap_err();
    assert_eq!(
        held.to_string(),
        "another k8sup is at work on w1: k8sup reset by pi@laptop (process 7), since 2026-11-30 20:15:00 UTC"
    );
    assert_eq!(actions(&some, "cp2"), ["take", "release"]);
    // The first host decides between two that start together.
    let first = hosts(Some("cp1"));
    taken(&first).await.unwrap_err();
    assert_eq!(actions(&first, "cp2"), [""; 0]);
}
