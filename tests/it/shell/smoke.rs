//! The smoke test's script, ended in the middle as Ctrl-C does it.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::root::Root;
use crate::world;

/// A kubectl that says where it was called, and never answers.
const SILENT: &str = "#!/bin/sh\ntouch \"$TMPDIR/../called\"\nexec sleep 60\n";

fn entries(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn one_that_is_ended_leaves_no_files_on_the_controller() {
    let root = Root::new();
    root.program("/opt/kubectl", SILENT);
    let scratch = root.path("/opt/scratch");
    std::fs::create_dir(&scratch).unwrap();
    let path = format!("{}:{}", root.path("/opt").display(), std::env::var("PATH").unwrap());
    let mut running = Command::new("sh")
        .args(["-c", &world::read("templates/smoke.sh")])
        .env("PATH", path)
        .env("TMPDIR", &scratch)
        .env("SPACE", "k8sup-smoke-x")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !root.exists("/opt/called") {
        assert!(begun.elapsed() < Duration::from_secs(20), "kubectl was not called");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(entries(&scratch), 1, "it has a folder of its own while it runs");
    // The bootstrap ends the script's whole process group.
    let group = format!("-{}", running.id());
    assert!(
        Command::new("kill")
            .args(["-TERM", "--", &group])
            .status()
            .unwrap()
            .success()
    );
    running.wait().unwrap();
    assert_eq!(entries(&scratch), 0);
}
