//! One run at a time: a lock on every host, over when its holder's connection is.
//!
//! The hosts keep it (`templates/lock.sh`); this module takes it, keeps it alive and gives it back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};

use crate::cluster::NodeName;
use crate::facts::{Facts, Observation};
use crate::remote::{Command, Ending, Param, Session};

const SCRIPT: &str = concat!(
    include_str!("../../templates/holder.sh"),
    include_str!("../../templates/lock.sh")
);
/// How often the hosts hear that this run goes on; after a minute of silence the lock is over.
const BEAT: Duration = Duration::from_secs(15);
/// Nothing here takes longer on a host that works.
const LIMIT: Duration = Duration::from_secs(30);
/// What the script says when another run has the lock.
const HELD: Ending = Ending::Status(75);

/// Another run is at work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("another k8sup is at work on {host}: {holder}, since {since}")]
pub struct Held {
    /// Where it was met.
    pub host: NodeName,
    /// Who it is, in its own words.
    pub holder: String,
    /// Since when, by the host's clock.
    pub since: String,
}

impl Held {
    /// The run that is at work on one of the hosts, as far as a look at them tells.
    #[must_use]
    pub fn seen(facts: &Facts) -> Option<Self> {
        facts.hosts.iter().find_map(|(host, observation)| match observation {
            Observation::Seen(seen) => seen.holder.as_ref().map(|holder| Self {
                host: host.clone(),
                holder: holder.who.clone(),
                since: holder.since.clone(),
            }),
            Observation::Unreachable(_) => None,
        })
    }
}

/// The lock on all hosts that could be reached.
#[derive(Debug)]
pub struct Lock {
    run: String,
    holder: String,
    sessions: Arc<BTreeMap<NodeName, Session>>,
    keeper: AbortHandle,
}

impl Lock {
    /// Takes the lock on every host. `holder` says who takes it and what for.
    ///
    /// A host that cannot be asked is not waited for: what is wrong with it shows when it is looked at.
    ///
    /// # Errors
    /// When another run has it on a host; then it is given back on all others.
    pub async fn take(sessions: Arc<BTreeMap<NodeName, Session>>, holder: &str) -> Result<Self, Held> {
        let run = format!("{:032x}", rand::random::<u128>());
        let mut hosts = sessions.iter();
        // Two runs that start together meet on the first host, so that one of them gets all.
        ask_all(hosts.next(), &run, "take", holder).await?;
        if let Err(held) = ask_all(hosts, &run, "take", holder).await {
            // The others' answers do not matter any more.
            let _ = ask_all(sessions.iter(), &run, "release", holder).await;
            return Err(held);
        }
        let keeper = tokio::spawn(keep(Arc::clone(&sessions), run.clone())).abort_handle();
        Ok(Self {
            run,
            holder: holder.to_owned(),
            sessions,
            keeper,
        })
    }

    /// The run's own name, by which a step knows that it may go on.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Who has it, for others to read.
    #[must_use]
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// Gives it back on all hosts.
    pub async fn release(self) {
        self.keeper.abort();
        // A host that does not answer sees the connection end.
        let _ = ask_all(self.sessions.iter(), &self.run, "release", "").await;
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// Takes a run's lock again on a host that has lost it with a reboot.
///
/// # Errors
/// When another run has it by now.
pub(super) async fn take_again(host: &NodeName, session: &Session, run: &str, holder: &str) -> Result<(), Held> {
    ask_all([(host, session)], run, "take", holder).await
}

async fn keep(sessions: Arc<BTreeMap<NodeName, Session>>, run: String) {
    loop {
        tokio::time::sleep(BEAT).await;
        // A step finds out by itself when another run has taken over.
        let _ = ask_all(sessions.iter(), &run, "keep", "").await;
    }
}

async fn ask_all<'a>(
    hosts: impl IntoIterator<Item = (&'a NodeName, &'a Session)>,
    run: &str,
    action: &str,
    holder: &str,
) -> Result<(), Held> {
    let mut asked = JoinSet::new();
    for (host, session) in hosts {
        let (host, session) = (host.clone(), session.clone());
        let command = command(run, action, holder);
        asked.spawn(async move { (host, session.run(&command, None).await) });
    }
    let mut result = Ok(());
    while let Some(answer) = asked.join_next().await {
        if let Ok((host, Ok(output))) = answer
            && output.ending == HELD
        {
            let mut lines = output.stdout.lines().map(|line| line.trim().to_owned());
            let (holder, since) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
            result = Err(Held { host, holder, since });
        }
    }
    result
}

fn command(run: &str, action: &str, holder: &str) -> Command {
    let plain = |name: &str, value: &str| (name.to_owned(), Param::Plain(value.to_owned()));
    Command {
        name: format!("lock/{action}"),
        script: SCRIPT.to_owned(),
        params: vec![plain("ACTION", action), plain("RUN", run), plain("HOLDER", holder)],
        root: true,
        timeout: LIMIT,
    }
}
