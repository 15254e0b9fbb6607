//! Waiting for a host that was rebooted: its connection is lost and made again, and its boot has another id.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::lock;
use crate::cluster::NodeName;
use crate::remote::{Command, RunError, Session};

/// Within this a host must be back; a board with a file system check takes some minutes.
const LIMIT: Duration = Duration::from_secs(600);
/// Between two looks.
const PAUSE: Duration = Duration::from_secs(2);
/// How often the wait is told of.
const TOLD: Duration = Duration::from_secs(10);

/// Hosts that are away because they were told to: nobody else needs to hear of it.
#[derive(Debug, Default)]
pub(super) struct Away(watch::Sender<BTreeSet<NodeName>>);

/// For as long as it lives, the host is away.
pub(super) struct Leave<'a> {
    away: &'a Away,
    host: &'a NodeName,
}

impl Away {
    /// The host goes away, until what this gives is dropped.
    pub(super) fn leave<'a>(&'a self, host: &'a NodeName) -> Leave<'a> {
        self.0.send_modify(|hosts| {
            hosts.insert(host.clone());
        });
        Leave { away: self, host }
    }

    /// Waits until the host is back, or given up; not at all where it is not away.
    pub(super) async fn over(&self, host: &NodeName) {
        // The sender is ours: it does not go away.
        let _ = self.0.subscribe().wait_for(|hosts| !hosts.contains(host)).await;
    }
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.away.0.send_modify(|hosts| {
            hosts.remove(self.host);
        });
    }
}

/// Waits until the host has another boot id than `before`, and takes the run's lock on it again. What it waits for goes
/// to `told`.
///
/// # Errors
/// In plain words, when it does not come back in time or belongs to another run then.
pub(super) async fn come_back(
    host: &NodeName,
    session: &Session,
    before: &str,
    (run, holder): (&str, &str),
    told: &mpsc::Sender<String>,
) -> Result<(), String> {
    let started = Instant::now();
    let mut tell_at = started;
    loop {
        let missing = match look(session).await {
            Ok(boot_id) if boot_id.is_empty() => "it does not tell its boot id".to_owned(),
            Ok(boot_id) if boot_id == before => "it has not gone down yet".to_owned(),
            Ok(_) => break,
            // Whatever became of the old connection, only a new one leads to the host.
            Err(error) => match session.reconnect().await {
                Ok(()) => error.to_string(),
                Err(reason) => reason,
            },
        };
        let now = Instant::now();
        let gone = now - started;
        if gone >= LIMIT {
            let minutes = LIMIT.as_secs() / 60;
            return Err(format!(
                "did not come back within {minutes} min after its reboot: {missing}"
            ));
        }
        if now >= tell_at {
            let left = LIMIT.saturating_sub(gone).as_secs();
            // Nobody has to listen.
            let _ = told
                .send(format!("waiting for it to come back, at most {left} s more: {missing}"))
                .await;
            tell_at = now + TOLD;
        }
        tokio::time::sleep(PAUSE).await;
    }
    // The lock lies in memory.
    lock::take_again(host, session, run, holder)
        .await
        .map_err(|held| format!("came back, and {held}"))
}

/// The boot id of now.
async fn look(session: &Session) -> Result<String, RunError> {
    let command = Command {
        name: "boot-id".to_owned(),
        script: "cat /proc/sys/kernel/random/boot_id\n".to_owned(),
        params: Vec::new(),
        root: false,
        timeout: Duration::from_secs(10),
    };
    let output = session.run(&command, None).await?;
    Ok(output.stdout.trim().to_owned())
}
