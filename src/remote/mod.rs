//! The one way to touch a host: run a [`Command`], get bounded lines while it runs and an
//! [`Output`] at the end.
//!
//! A command is a POSIX `sh` script with parameters. Script and parameters travel on the
//! command's standard input, never in argv or in an environment, behind sudo when it needs
//! root. Dropping the future ends the remote process. Only `remote::ssh` names russh.

pub mod fake;
mod quote;
pub mod secret_source;
pub mod ssh;

use std::time::Duration;

use tokio::sync::mpsc;

pub use quote::quote;

use crate::secret::Secret;

/// A script to run on a host.
#[derive(Debug, Clone)]
pub struct Command {
    /// Names the command in logs and errors, as `probe` or `steps/containerd`.
    pub name: String,
    /// POSIX sh. Its standard input is empty.
    pub script: String,
    /// Shell variables set before the script starts.
    pub params: Vec<(String, Param)>,
    /// Run as root, through sudo where the login user is not root.
    pub root: bool,
    /// The command is ended when it runs longer.
    pub timeout: Duration,
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Param {
    /// May be shown.
    Plain(String),
    /// Must not be shown.
    Secret(Secret),
}

/// Where a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// One line of a running command, without its newline, cut at 4 KiB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Where it came from.
    pub stream: Stream,
    /// Its text; invalid UTF-8 is replaced.
    pub text: String,
}

/// Takes the lines of a running command. `None` in place of it drops them.
pub type Lines = mpsc::Sender<Line>;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Exited with this status.
    Status(u32),
    /// Killed by a signal.
    Signal(i32),
}

/// What a command left behind.
#[derive(Debug, Clone)]
pub struct Output {
    /// How it ended.
    pub ending: Ending,
    /// Standard output, at most 8 MiB.
    pub stdout: String,
    /// The last 64 KiB of standard error.
    pub stderr: String,
}

impl Output {
    /// Exit status 0.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.ending == Ending::Status(0)
    }
}

/// Why a command has no [`Output`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum RunError {
    /// The connection ended while the command ran: it may or may not have finished.
    #[error("the connection was lost: {0}")]
    ConnectionLost(String),
    /// The command ran longer than its limit and was ended.
    #[error("did not finish within {} s", .0.as_secs())]
    Timeout(Duration),
    /// sudo refused: wrong or missing password, not allowed, requires a terminal.
    #[error("sudo refused: {0}")]
    Sudo(String),
    /// The server did not open a session for the command.
    #[error("the server refused to run a command: {0}")]
    Refused(String),
}

/// A connection to one host.
#[derive(Debug, Clone)]
pub enum Session {
    /// Over SSH.
    Ssh(ssh::SshSession),
    /// Scripted, for tests.
    Fake(fake::FakeSession),
}

impl Session {
    /// Runs a command to its end, handing its lines to `lines` as they come.
    ///
    /// # Errors
    /// When there is no end to report: see [`RunError`]. A non-zero status is an [`Output`].
    pub async fn run(&self, command: &Command, lines: Option<&Lines>) -> Result<Output, RunError> {
        match self {
            Self::Ssh(session) => session.run(command, lines).await,
            Self::Fake(session) => session.run(command, lines).await,
        }
    }

    /// Connects anew, once: the host was rebooted. All clones have the new connection.
    ///
    /// # Errors
    /// Why there is none, in one sentence; then the session stays as it is.
    pub async fn reconnect(&self) -> Result<(), String> {
        match self {
            Self::Ssh(session) => session.reconnect().await.map_err(|error| error.to_string()),
            Self::Fake(session) => session.reconnect(),
        }
    }

    /// Waits until the connection is lost, and says why.
    pub async fn lost(&self) -> String {
        match self {
            Self::Ssh(session) => session.ended().await,
            Self::Fake(session) => session.lost().await,
        }
    }

    /// The connection of now is lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        match self {
            Self::Ssh(session) => session.is_closed(),
            Self::Fake(session) => session.is_cut(),
        }
    }

    /// Says goodbye to the host. Commands that still run are ended.
    pub async fn close(&self) {
        match self {
            Self::Ssh(session) => session.close().await,
            Self::Fake(_) => {}
        }
    }
}
