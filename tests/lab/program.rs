//! k8sup itself, run as its users run it, inside the lab's network.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::lab::{self, step};

/// Where the program keeps what is its user's: kubeconfigs and logs.
pub(crate) fn home() -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("home");
    std::fs::create_dir_all(&home).unwrap();
    home
}

/// What a run left.
#[derive(Debug)]
pub(crate) struct Ran {
    what: String,
    /// Exit code.
    pub(crate) code: i32,
    /// Data.
    pub(crate) stdout: String,
    /// Everything else.
    pub(crate) stderr: String,
    /// From start to exit.
    pub(crate) took: Duration,
}

impl Ran {
    /// It must have ended with this code.
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "{} ended with {}\n{}{}",
            self.what, self.code, self.stdout, self.stderr
        );
        self
    }

    /// It must have said this.
    pub(crate) fn says(self, text: &str) -> Self {
        let said = self.stdout.contains(text) || self.stderr.contains(text);
        assert!(
            said,
            "{} did not say {text:?}\n{}{}",
            self.what, self.stdout, self.stderr
        );
        self
    }
}

fn command(arguments: &[&str], inventory: &Path) -> Command {
    let mut command = lab::command(&["run", env!("CARGO_BIN_EXE_k8sup")]);
    command
        .args(arguments)
        .arg(inventory)
        .env("HOME", home())
        .env_remove("XDG_STATE_HOME")
        .env_remove("KUBECONFIG");
    command
}

/// Runs a command of k8sup to its end.
pub(crate) fn k8sup(arguments: &[&str], inventory: &Path) -> Ran {
    to_its_end(
        &mut command(arguments, inventory),
        &format!("k8sup {}", arguments.join(" ")),
    )
}

/// A line of a document, as typed by somebody who has k8sup in the PATH and stands in `folder`.
pub(crate) fn typed(line: &str, folder: &Path) -> Ran {
    let programs = Path::new(env!("CARGO_BIN_EXE_k8sup")).parent().unwrap().display();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = lab::command(&["run", "sh", "-ec", line]);
    command
        .current_dir(folder)
        .env("PATH", format!("{programs}:{path}"))
        .env("HOME", home())
        .env_remove("XDG_STATE_HOME")
        .env_remove("KUBECONFIG");
    to_its_end(&mut command, line)
}

fn to_its_end(command: &mut Command, what: &str) -> Ran {
    let begin = Instant::now();
    let output = command.output().unwrap();
    let ran = Ran {
        what: what.to_owned(),
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        took: begin.elapsed(),
    };
    step(&format!("{:6.1} s  {what} -> {}", ran.took.as_secs_f64(), ran.code));
    ran
}

/// An apply that is under way.
pub(crate) struct Running {
    child: Child,
    reader: JoinHandle<()>,
    moment: String,
    begin: Instant,
}

/// Starts `apply`, waits until `reached` says that this is the moment, and waits a little more.
pub(crate) fn apply_until(inventory: &Path, moment: &str, more: Duration, reached: impl Fn(&Value) -> bool) -> Running {
    let begin = Instant::now();
    let mut child = command(&["apply", "--yes", "--log-format", "json"], inventory)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut seen = String::new();
    loop {
        let mut line = String::new();
        let length = lines.read_line(&mut line).unwrap();
        if length == 0 {
            let _ = child.wait();
            panic!("apply ended before {moment}\n{seen}");
        }
        seen.push_str(&line);
        if serde_json::from_str(&line).is_ok_and(|event| reached(&event)) {
            break;
        }
    }
    // Somebody must go on reading, or the program would stand still on a full pipe.
    let reader = std::thread::spawn(move || {
        let mut rest = Vec::new();
        let _ = lines.read_to_end(&mut rest);
    });
    std::thread::sleep(more);
    Running {
        child,
        reader,
        moment: moment.to_owned(),
        begin,
    }
}

impl Running {
    /// Kills it as a power cut would.
    pub(crate) fn kill(mut self) {
        assert!(
            self.child.try_wait().unwrap().is_none(),
            "apply had ended before it was killed"
        );
        self.child.kill().unwrap();
        self.ended("killed");
    }

    /// Ctrl-C, once: what runs is finished, and the exit code tells.
    pub(crate) fn interrupt(self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        assert_eq!(self.ended("interrupted").code(), Some(130));
    }

    fn ended(mut self, how: &str) -> ExitStatus {
        let status = self.child.wait().unwrap();
        self.reader.join().unwrap();
        step(&format!(
            "{:6.1} s  k8sup apply, {how} {}",
            self.begin.elapsed().as_secs_f64(),
            self.moment
        ));
        status
    }
}

/// The event is the start of this host's step.
pub(crate) fn starts(event: &Value, host: &str, title: &str) -> bool {
    event["event"] == "step-started"
        && event["host"] == host
        && event["step"].as_str().is_some_and(|step| step.starts_with(title))
}
