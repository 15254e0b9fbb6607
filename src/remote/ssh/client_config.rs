//! The user's OpenSSH client configuration: what `ssh HOST` would do completes what the inventory leaves open.
//!
//! It is taken as `ssh -G` tells it, so that Match, Include, tokens and wildcards are OpenSSH's own business. Only what
//! differs from OpenSSH's defaults counts. Without `ssh` on this machine there is nothing to take.

mod settings;
mod taken;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::{Mutex, OnceCell, Semaphore};
use tokio::task::JoinSet;

use super::error::{ConfigProblem, ConnectError, Hop};
use crate::cluster::{ClientConfig, SshTarget, Written, usual_keys};
use settings::{Jump, Settings, jumps};

/// As many `ssh -G` run side by side.
const AT_ONCE: usize = 8;
/// `Match exec` may run anything; this long is enough for it.
const LIMIT: Duration = Duration::from_secs(10);
/// More hosts in a row are somebody's mistake.
const LONGEST_WAY: usize = 8;

/// The logins of a run, completed.
#[derive(Debug, Default)]
pub struct Completed {
    /// By name: the login, or why the configuration forbids it.
    pub logins: BTreeMap<String, Result<SshTarget, ConnectError>>,
    /// What the configuration says and k8sup does not follow, with the names of those it says it for.
    pub notes: BTreeMap<String, Vec<String>>,
}

/// Completes logins, side by side.
pub async fn complete(logins: impl IntoIterator<Item = (String, SshTarget)>) -> Completed {
    let client = Arc::new(Client {
        permits: Semaphore::new(AT_ONCE),
        answers: Mutex::default(),
    });
    let mut tasks = JoinSet::new();
    for (name, target) in logins {
        let client = Arc::clone(&client);
        tasks.spawn(async move {
            let mut notes = Vec::new();
            let at = Hop::new(&name, &target);
            let asked = client.completed(target, Vec::new(), &mut notes).await;
            let login = asked.map_err(|why| ConnectError::ClientConfig { at, why });
            (name, login, notes)
        });
    }
    let mut completed = Completed::default();
    while let Some(done) = tasks.join_next().await {
        if let Ok((name, login, notes)) = done {
            for note in notes {
                let names = completed.notes.entry(note).or_default();
                if !names.contains(&name) {
                    names.push(name.clone());
                }
            }
            completed.logins.insert(name, login);
        }
    }
    completed.notes.values_mut().for_each(|names| names.sort());
    completed
}

type Answer = Result<Option<Settings>, ConfigProblem>;

/// OpenSSH's client; each question is asked once.
struct Client {
    permits: Semaphore,
    answers: Mutex<HashMap<Vec<OsString>, Arc<OnceCell<Answer>>>>,
}

impl Client {
    /// Completes a login and the bastions on the way to it. `from` are the names that were asked for before it.
    async fn completed(
        &self,
        target: SshTarget,
        mut from: Vec<String>,
        notes: &mut Vec<String>,
    ) -> Result<SshTarget, ConfigProblem> {
        let mut completed = target.clone();
        if let Some(bastion) = target.bastion.clone() {
            completed.bastion = Some(Box::new(Box::pin(self.completed(*bastion, Vec::new(), notes)).await?));
        }
        let file: Vec<OsString> = match &target.client {
            ClientConfig::Off => return Ok(completed),
            ClientConfig::User => Vec::new(),
            ClientConfig::File(path) => vec!["-F".into(), path.into()],
        };
        let defaults = self.ask(vec!["-F".into(), "none".into(), "-G".into(), "host".into()]);
        let question = [file, question(&target)].concat();
        let (defaults, said) = tokio::try_join!(defaults, self.ask(question))?;
        let (Some(defaults), Some(said)) = (defaults, said) else {
            return Ok(completed);
        };
        let said = said.but(&defaults);
        taken::take(&mut completed, &said, &defaults, notes)?;
        completed.client = ClientConfig::Off;
        if target.written.bastion {
            return Ok(completed);
        }
        let Some(value) = said.one("proxyjump") else {
            return Ok(completed);
        };
        from.push(target.host.clone());
        let jumps = jumps(value).ok_or_else(|| ConfigProblem::Value {
            keyword: "ProxyJump",
            value: value.to_owned(),
        })?;
        let mut way: Option<Box<SshTarget>> = None;
        for jump in jumps {
            if from.contains(&jump.host) || from.len() > LONGEST_WAY {
                return Err(ConfigProblem::Round([from, vec![jump.host]].concat().join(" → ")));
            }
            // Only the first jump has a way of its own; the others are behind those before them.
            let mut hop = jump_target(&jump, &target, &defaults);
            hop.written.bastion = way.is_some();
            let mut hop = Box::pin(self.completed(hop, from.clone(), notes)).await?;
            if way.is_some() {
                hop.bastion = way;
            }
            way = Some(Box::new(hop));
        }
        completed.bastion = way;
        completed.leave_out_itself();
        Ok(completed)
    }

    async fn ask(&self, arguments: Vec<OsString>) -> Answer {
        let answer = {
            let mut answers = self.answers.lock().await;
            Arc::clone(answers.entry(arguments.clone()).or_default())
        };
        answer
            .get_or_init(|| async {
                // The semaphore is never closed.
                let _permit = self.permits.acquire().await;
                run(&arguments).await
            })
            .await
            .clone()
    }
}

/// What `ssh` is asked about a login.
fn question(target: &SshTarget) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["-G".into()];
    if target.written.user {
        arguments.extend(["-l".into(), (&target.user).into()]);
    }
    if target.written.port {
        arguments.extend(["-p".into(), target.port.to_string().into()]);
    }
    arguments.extend(["--".into(), (&target.host).into()]);
    arguments
}

/// A jump as `ssh` would log in to it: as the local user with the usual keys. Which host keys are accepted is the
/// inventory's to say, where it does.
fn jump_target(jump: &Jump, behind: &SshTarget, defaults: &Settings) -> SshTarget {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    SshTarget {
        host: jump.host.clone(),
        port: jump.port.unwrap_or(22),
        user: (jump.user.as_deref().or(defaults.one("user"))).map_or_else(|| behind.user.clone(), str::to_owned),
        keys: home.map_or_else(Vec::new, |home| usual_keys(&home)),
        sudo_password: None,
        bastion: None,
        written: Written {
            port: jump.port.is_some(),
            user: jump.user.is_some(),
            keys: false,
            bastion: false,
            host_keys: behind.written.host_keys,
            known_hosts: behind.written.known_hosts,
        },
        ..behind.clone()
    }
}

async fn run(arguments: &[OsString]) -> Answer {
    let output = Command::new("ssh")
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = match tokio::time::timeout(LIMIT, output).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            tracing::debug!("there is no ssh on this machine, so no OpenSSH configuration is looked at");
            return Ok(None);
        }
        Ok(Err(error)) => return Err(ConfigProblem::Unreadable(format!("ssh cannot be run: {error}"))),
        Err(_) => {
            let why = format!("`ssh -G` did not end within {} s (a `Match exec`?)", LIMIT.as_secs());
            return Err(ConfigProblem::Unreadable(why));
        }
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().find(|line| !line.starts_with("Pseudo-terminal"));
        return Err(ConfigProblem::Unreadable(
            line.unwrap_or("ssh said nothing").trim().to_owned(),
        ));
    }
    Ok(Some(Settings::parse(&String::from_utf8_lossy(&output.stdout))))
}
