//! What every command begins with: the inventory, the connections, the facts.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::args::Target;
use super::login;
use crate::check::{self, Finding};
use crate::cluster::{self, Cluster, Host, NodeName, SecretSource};
use crate::execute::event::{Event, Phase};
use crate::execute::lock::{Held, Lock};
use crate::exit;
use crate::facts::observe::observe;
use crate::facts::prove::prove;
use crate::facts::{Facts, Observation, Unreachable, saved};
use crate::inventory;
use crate::manifest::ManifestError;
use crate::plan::Plan;
use crate::plan::apply::{self, Intent};
use crate::remote::ssh::known_hosts::HostKey;
use crate::remote::ssh::{ConnectError, ConnectOptions, Connector, known_hosts};
use crate::remote::{Session, secret_source};
use crate::report::table::{Cell, Table};
use crate::report::text::with_inventory;
use crate::report::{Console, Style, Summary};

/// Said when the plan that was shown is not the one that a second look gives, under the lock.
pub const CHANGED_MEANWHILE: &str = "the hosts are not as they were a moment ago, which changes the plan";

/// Nobody is left without a word for longer while hosts are connected to.
pub(super) const PATIENCE: Duration = Duration::from_secs(8);
/// A chain of bastions that are all new takes a round for each.
const MOST_ROUNDS: usize = 12;

/// Every host's session, or why it has none.
pub type Sessions = BTreeMap<NodeName, Result<Session, Unreachable>>;

/// The hosts, connected to.
#[derive(Debug)]
pub struct Fleet {
    /// What the inventory means.
    pub cluster: Cluster,
    /// Every host's session, or why it has none.
    pub sessions: Sessions,
    /// What was saved of the hosts: looked at instead of them.
    pub saved: Option<Facts>,
}

/// Reads the inventory; shows all its problems at once.
///
/// # Errors
/// [`exit::USAGE`], before any connection.
pub fn load(target: &Target, console: &Console) -> Result<Cluster, u8> {
    let text = inventory::open(&target.inventory).map_err(|error| {
        console.fail(&error, None);
        exit::USAGE
    })?;
    understood(&text, target, console)
}

/// What home, user and folder an inventory is read with.
fn environment(target: &Target) -> inventory::Environment {
    let path = &target.inventory;
    let home = home().unwrap_or_else(|| PathBuf::from("/"));
    inventory::Environment {
        user: std::env::var("USER")
            .or_else(|_| std::env::var("LOGNAME"))
            .unwrap_or_else(|_| "root".to_owned()),
        home,
        inventory_dir: path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .map_or_else(|| PathBuf::from("."), PathBuf::from),
    }
}

/// An inventory's text has nothing wrong.
#[must_use]
pub fn is_understood(text: &str, target: &Target) -> bool {
    cluster::load(text, &environment(target)).is_ok()
}

/// What an inventory's text means; shows all its problems at once.
///
/// # Errors
/// As [`load`].
pub fn understood(text: &str, target: &Target, console: &Console) -> Result<Cluster, u8> {
    let name = target.inventory.display().to_string();
    let show = |problems: &[inventory::Problem]| {
        if !problems.is_empty() {
            let shown = inventory::render_problems(problems, text, &name, console.style().has_colour());
            console.say(&format!("{}\n", shown.trim_end()));
        }
    };
    let (mut cluster, warnings) = cluster::load(text, &environment(target)).map_err(|problems| {
        show(&problems);
        exit::USAGE
    })?;
    show(&warnings);
    if let Some(policy) = target.host_keys {
        for host in &mut cluster.hosts {
            host.ssh.rule_host_keys(policy.into());
        }
    }
    named_hosts(&cluster, &target.replace_host_key, console)?;
    Ok(cluster)
}

/// Takes the refusals out of the run that the person takes on themselves.
///
/// # Errors
/// An exit code, when one of them cannot be.
pub fn allow(cluster: &mut Cluster, codes: &[String], console: &Console) -> Result<(), u8> {
    for code in codes {
        let allowed = check::allowable(code).map_err(|error| {
            console.fail(
                &error,
                Some("docs/checks.md lists the checks, and which of them can be allowed"),
            );
            exit::USAGE
        })?;
        cluster.allow.insert(allowed.to_owned());
    }
    Ok(())
}

/// The hosts that the person named, as a set; `None` when none were.
///
/// # Errors
/// [`exit::USAGE`] for a host that is not in the inventory.
pub fn named_hosts(cluster: &Cluster, names: &[NodeName], console: &Console) -> Result<Option<BTreeSet<NodeName>>, u8> {
    let unknown: Vec<_> = names
        .iter()
        .filter(|name| cluster.host(name).is_none())
        .map(NodeName::as_str)
        .collect();
    if unknown.is_empty() {
        return Ok((!names.is_empty()).then(|| names.iter().cloned().collect()));
    }
    let known: Vec<_> = cluster.hosts.iter().map(|host| host.name.as_str()).collect();
    let error = std::io::Error::other(format!("not in the inventory: {}", unknown.join(", ")));
    console.fail(&error, Some(&format!("its hosts are {}", known.join(", "))));
    Err(exit::USAGE)
}

/// The hosts: those that answer, or what was saved of them in a folder.
///
/// # Errors
/// As [`connect`]; [`exit::USAGE`] for a folder without facts.
pub async fn reach(cluster: Cluster, target: &Target, facts: Option<&Path>, console: &Console) -> Result<Fleet, u8> {
    let Some(folder) = facts else {
        return connect(cluster, target, console).await;
    };
    match saved::load(folder, &cluster) {
        Ok(facts) => Ok(Fleet {
            cluster,
            sessions: Sessions::new(),
            saved: Some(facts),
        }),
        Err(error) => {
            console.fail(&error, Some("`k8sup facts` writes such a folder"));
            Err(exit::USAGE)
        }
    }
}

/// Connects to all hosts, side by side. Unknown host keys are shown at once and asked about once.
///
/// # Errors
/// An exit code, when a secret cannot be had or the person declines the keys.
pub async fn connect(mut cluster: Cluster, target: &Target, console: &Console) -> Result<Fleet, u8> {
    let forbidden = login::complete(&mut cluster, console).await;
    let options = ConnectOptions {
        sudo_password: prompted_password(&cluster, console)?,
        ..ConnectOptions::default()
    };
    let connector = Connector::new(options);
    let limit = Arc::new(Semaphore::new(usize::from(target.parallel)));
    let mut asked = BTreeSet::new();
    let allowed = cluster.hosts.iter().filter(|host| !forbidden.contains_key(&host.name));
    let mut sessions = dial(&connector, allowed, &limit, console).await;
    sessions.extend(forbidden.into_iter().map(|(name, error)| (name, Err(error))));
    // A bastion that was not known hides what is behind it: each round may bring new keys.
    for _ in 0..MOST_ROUNDS {
        let mut again = settle_host_keys(&cluster, target, &mut sessions, console)?;
        again.extend(login::unlock_keys(&cluster, &sessions, &connector, &mut asked, console));
        if again.is_empty() {
            break;
        }
        sessions.extend(dial(&connector, again.into_iter(), &limit, console).await);
    }
    let sessions = sessions
        .into_iter()
        .map(|(name, result)| {
            let result = result.map_err(|error| unreachable(&name, &error));
            (name, result)
        })
        .collect();
    Ok(Fleet {
        cluster,
        sessions,
        saved: None,
    })
}

pub(super) type Dialled = BTreeMap<NodeName, Result<Session, ConnectError>>;

async fn dial<'a>(
    connector: &Connector,
    hosts: impl Iterator<Item = &'a Host>,
    limit: &Arc<Semaphore>,
    console: &Console,
) -> Dialled {
    let mut tasks = JoinSet::new();
    let mut waiting = BTreeSet::new();
    for host in hosts {
        waiting.insert(host.name.clone());
        let (connector, host, limit) = (connector.clone(), host.clone(), Arc::clone(limit));
        tasks.spawn(async move {
            let _permit = limit.acquire().await;
            let result = connector.connect(host.name.as_str(), &host.ssh).await.map(Session::Ssh);
            (host.name, result)
        });
    }
    let mut dialled = BTreeMap::new();
    let mut said = tokio::time::interval(PATIENCE);
    said.tick().await;
    loop {
        tokio::select! {
            done = tasks.join_next() => match done {
                Some(Ok((name, result))) => {
                    waiting.remove(&name);
                    dialled.insert(name, result);
                }
                Some(Err(_)) => {}
                None => return dialled,
            },
            _ = said.tick() => console.say(&format!("still connecting to {}\n", few(&waiting))),
        }
    }
}

/// Names, cut where they are many.
fn few(names: &BTreeSet<NodeName>) -> String {
    let shown: Vec<&str> = names.iter().take(5).map(NodeName::as_str).collect();
    match names.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Remembers the host keys that may be, and gives the hosts to connect to again.
fn settle_host_keys<'a>(
    cluster: &'a Cluster,
    target: &Target,
    sessions: &mut Dialled,
    console: &Console,
) -> Result<Vec<&'a Host>, u8> {
    let mut again = Vec::new();
    let mut unknown = Vec::new();
    for host in &cluster.hosts {
        let Some(Err(error)) = sessions.get(&host.name) else {
            continue;
        };
        if let Some((key, file)) = error.changed_host_key()
            && target.replace_host_key.contains(&host.name)
        {
            remembered(known_hosts::replace(file, key).map(|_| ()), console)?;
            again.push(host);
        } else if let Some((key, file)) = error.unknown_host_key()
            && host.ssh.host_keys == crate::cluster::HostKeys::Ask
        {
            unknown.push((host, key.clone(), file.to_owned()));
        }
    }
    if unknown.is_empty() || !std::io::stdin().is_terminal() {
        // Without a terminal the errors say which option accepts the keys.
        return Ok(again);
    }
    console.say("These hosts are not known yet:\n");
    let keys = unknown.iter().map(|(host, key, _)| (host.name.as_str(), key));
    console.say(&fingerprints(keys, console.style()));
    if !confirm(
        "Are these fingerprints theirs, and are the keys to be remembered? [y/N] ",
        |answer| matches!(answer, "y" | "Y" | "yes"),
    ) {
        console.say("Nothing was sent to them and nothing was remembered.\n");
        return Err(exit::INTERRUPTED);
    }
    for (host, key, file) in &unknown {
        remembered(known_hosts::remember(file, key), console)?;
        again.push(host);
    }
    Ok(again)
}

/// Whose key is whose. A fingerprint is never cut; the address, which the inventory tells too, is.
fn fingerprints<'a>(keys: impl Iterator<Item = (&'a str, &'a HostKey)>, style: Style) -> String {
    let mut table = Table::without_header();
    for (host, key) in keys {
        let address = if key.port == 22 {
            key.host.clone()
        } else {
            format!("{}:{}", key.host, key.port)
        };
        table.row([
            Cell::plain(host),
            Cell::dim(kind(&key.algorithm)),
            Cell::plain(&key.fingerprint),
            Cell::dim(&address),
        ]);
    }
    table.render("  ", style)
}

/// How `ssh-keygen -l` calls an algorithm.
fn kind(algorithm: &str) -> &str {
    let known = [("ed25519", "ED25519"), ("ecdsa", "ECDSA"), ("rsa", "RSA")];
    let found = known.iter().find(|(part, _)| algorithm.contains(part));
    found.map_or(algorithm, |(_, name)| name)
}

fn remembered(result: Result<(), known_hosts::FileError>, console: &Console) -> Result<(), u8> {
    result.map_err(|error| {
        console.fail(&error, None);
        exit::UNREACHABLE
    })
}

fn unreachable(host: &NodeName, error: &ConnectError) -> Unreachable {
    let reason = crate::report::console::chain(error);
    // Whoever shows it names the host: `w1 (pi@10.0.0.1): no answer` becomes `pi@10.0.0.1: no answer`.
    let reason = match reason
        .strip_prefix(&format!("{host} ("))
        .and_then(|rest| rest.split_once(')'))
    {
        Some((login, rest)) => format!("{login}{rest}"),
        None => reason,
    };
    Unreachable {
        refused: error.refused(),
        reason,
        hint: error.hint(),
    }
}

/// `sudoPassword: prompt` is asked once for all hosts, before the first connection.
fn prompted_password(cluster: &Cluster, console: &Console) -> Result<Option<crate::secret::Secret>, u8> {
    if !cluster
        .hosts
        .iter()
        .any(|host| host.ssh.sudo_password == Some(SecretSource::Prompt))
    {
        return Ok(None);
    }
    secret_source::resolve(&SecretSource::Prompt, "Password for sudo")
        .map(Some)
        .map_err(|error| {
            console.fail(&error, Some(&error.hint()));
            exit::USAGE
        })
}

/// Asks on the terminal; true when the answer is right. End of input is a no.
pub fn confirm(question: &str, right: impl Fn(&str) -> bool) -> bool {
    let mut out = std::io::stderr().lock();
    let mut answer = String::new();
    out.write_all(question.as_bytes()).and_then(|()| out.flush()).is_ok()
        && std::io::stdin().lock().read_line(&mut answer).is_ok()
        && right(answer.trim())
}

impl Fleet {
    /// Looks at all hosts and at the cluster.
    pub async fn observe(&self, phase: Phase, events: &mpsc::Sender<Event>) -> Facts {
        if let Some(facts) = &self.saved {
            return facts.clone();
        }
        timed(phase, events, self.look_and_tell(events)).await
    }

    /// The same before an apply: hosts that are to come prove which others they reach.
    pub async fn observe_before(&self, intent: &Intent, events: &mpsc::Sender<Event>) -> Facts {
        if let Some(facts) = &self.saved {
            return facts.clone();
        }
        let look = async {
            let facts = self.look_and_tell(events).await;
            if Held::seen(&facts).is_some() {
                // Whoever is at work there changes what would be tried.
                return facts;
            }
            let proof = apply::proof(&self.cluster, &facts, intent);
            let paths = prove(&proof, &self.sessions).await;
            Facts { paths, ..facts }
        };
        timed(Phase::Observe, events, look).await
    }

    async fn look_and_tell(&self, events: &mpsc::Sender<Event>) -> Facts {
        let facts = self.look().await;
        for (host, observation) in &facts.hosts {
            let event = match observation {
                Observation::Seen(_) => Event::Connected { host: host.clone() },
                Observation::Unreachable(why) => Event::Unreachable {
                    host: host.clone(),
                    reason: why.reason.clone(),
                },
            };
            let _ = events.send(event).await;
        }
        facts
    }

    /// The same without a word.
    pub async fn look(&self) -> Facts {
        match &self.saved {
            Some(facts) => facts.clone(),
            None => observe(&self.cluster, &self.sessions).await,
        }
    }

    /// The intent of an apply: the hosts that were named, and Flannel's manifest.
    ///
    /// # Errors
    /// An exit code, when the manifest cannot be had.
    pub async fn intent(&self, only: Option<BTreeSet<NodeName>>, console: &Console) -> Result<Intent, u8> {
        if self.nobody_answers() {
            return Err(self.nobody(console));
        }
        let cache = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(home()?.join(".cache")));
        let cache = cache.map(|folder| folder.join("k8sup"));
        match crate::manifest::upstream(&self.cluster.flannel, &self.sessions, cache.as_deref()).await {
            Ok(manifest) => Ok(Intent { only, manifest }),
            Err(error @ ManifestError::Fetch { .. }) if self.saved.is_some() => {
                let hint = "nobody is connected to here: fetch it yourself and name the file as `flannel.manifest` in a \
                            copy of the inventory";
                console.fail(&error, Some(hint));
                Err(exit::FAILED)
            }
            Err(error) => {
                console.fail(&error, Some(error.hint()));
                Err(exit::FAILED)
            }
        }
    }

    /// There is nothing to look at.
    #[must_use]
    pub fn nobody_answers(&self) -> bool {
        self.saved.is_none() && self.reachable().next().is_none()
    }

    /// Says why no host can be reached, each with its own reason; gives the exit code.
    #[must_use]
    pub fn nobody(&self, console: &Console) -> u8 {
        let mut hints: Vec<&str> = Vec::new();
        for host in &self.cluster.hosts {
            let Some(Err(why)) = self.sessions.get(&host.name) else {
                continue;
            };
            console.warn(&format!("{}: {}", host.name, why.reason));
            if !hints.contains(&why.what_to_do()) {
                hints.push(why.what_to_do());
            }
        }
        console.fail(&std::io::Error::other("none of the hosts can be reached"), None);
        console.say("\n");
        for hint in hints {
            console.hint(hint);
        }
        exit::UNREACHABLE
    }

    /// Hosts with a session.
    pub fn reachable(&self) -> impl Iterator<Item = (&NodeName, &Session)> {
        self.sessions
            .iter()
            .filter_map(|(name, session)| Some((name, session.as_ref().ok()?)))
    }

    /// The sessions alone, for the executor.
    #[must_use]
    pub fn open_sessions(&self) -> Arc<BTreeMap<NodeName, Session>> {
        Arc::new(
            self.reachable()
                .map(|(name, session)| (name.clone(), session.clone()))
                .collect(),
        )
    }

    /// The lock on all hosts, for a command that changes them.
    ///
    /// # Errors
    /// An exit code, when another run has it.
    pub async fn lock(&self, command: &str, console: &Console) -> Result<Lock, u8> {
        let holder = format!("k8sup {command} by {} (process {})", who(), std::process::id());
        let taken = Lock::take(self.open_sessions(), &holder).await;
        taken.map_err(|held| refuse(&held, console))
    }

    /// Says goodbye to all hosts.
    pub async fn close(&self) {
        for (_, session) in self.reachable() {
            if let Session::Ssh(session) = session {
                session.close().await;
            }
        }
    }
}

/// Refuses a command that changes hosts while another run does.
///
/// # Errors
/// [`exit::BLOCKED`], when the facts show one at work.
pub fn alone(facts: &Facts, console: &Console) -> Result<(), u8> {
    Held::seen(facts).map_or(Ok(()), |held| Err(refuse(&held, console)))
}

fn refuse(held: &Held, console: &Console) -> u8 {
    let hint = "let it finish, or end it: its lock goes with its connections, at most a minute later";
    console.fail(held, Some(hint));
    exit::BLOCKED
}

/// Says that what is shown may change while it is read.
pub fn say_who_is_at_work(facts: &Facts, console: &Console) {
    if let Some(held) = Held::seen(facts) {
        console.warn(&held.to_string());
    }
}

impl Target {
    /// The inventory as the person would type it.
    #[must_use]
    pub fn typed(&self) -> String {
        let path = self.inventory.display().to_string();
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@,~".contains(c);
        if path.chars().all(plain) {
            path
        } else {
            crate::remote::quote(&path)
        }
    }

    /// A plan whose advice names this inventory.
    ///
    /// # Errors
    /// With the blockers, whose advice names it, too.
    pub fn name_in(&self, planned: Result<Plan, Vec<Finding>>) -> Result<Plan, Vec<Finding>> {
        match planned {
            Ok(mut plan) => {
                self.name_in_findings(&mut plan.warnings);
                Ok(plan)
            }
            Err(mut blockers) => {
                self.name_in_findings(&mut blockers);
                Err(blockers)
            }
        }
    }

    /// Findings whose advice names this inventory.
    pub fn name_in_findings(&self, findings: &mut [Finding]) {
        let inventory = self.typed();
        for finding in findings {
            finding.message = with_inventory(&finding.message, &inventory);
            finding.hint = with_inventory(&finding.hint, &inventory);
        }
    }
}

/// Frames work with the events of a phase.
pub async fn timed<T>(phase: Phase, events: &mpsc::Sender<Event>, work: impl Future<Output = T>) -> T {
    let started = std::time::Instant::now();
    let _ = events.send(Event::PhaseStarted { phase }).await;
    let result = work.await;
    let _ = events
        .send(Event::PhaseFinished {
            phase,
            took: started.elapsed(),
        })
        .await;
    result
}

/// Runs work while its events are shown; gives its result and what the reporter saw.
pub async fn followed<T, F: Future<Output = T>>(
    console: &Console,
    work: impl FnOnce(mpsc::Sender<Event>) -> F,
) -> (T, Summary) {
    let (sender, receiver) = mpsc::channel(1024);
    // The work holds the only sender: when it is done, the reporter ends.
    tokio::join!(work(sender), console.follow(receiver))
}

/// The person at this machine, for others to read.
fn who() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname");
    format!(
        "{}@{}",
        user.as_deref().unwrap_or("somebody"),
        machine.as_deref().map_or("somewhere", str::trim)
    )
}

/// Home of the local user.
#[must_use]
pub fn home() -> Option<PathBuf> {
    std::env::var_os("HOME")
        .filter(|home| !home.is_empty())
        .map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cluster::HostKeys;
    use crate::remote::ssh::{Hop, KeyProblem, TriedKey};

    fn at() -> Arc<Hop> {
        Arc::new(Hop {
            name: "w1".to_owned(),
            user: "pi".to_owned(),
            host: "192.168.7.204".to_owned(),
            port: 22,
        })
    }

    fn key() -> HostKey {
        HostKey {
            host: "192.168.7.204".to_owned(),
            port: 22,
            algorithm: "ecdsa-sha2-nistp256".to_owned(),
            fingerprint: format!("SHA256:{}", "x".repeat(43)),
            openssh: String::new(),
        }
    }

    #[test]
    fn each_reason_has_its_own_advice() {
        let told = |error: &ConnectError| {
            let why = unreachable(&NodeName::parse("w1").unwrap(), error);
            assert!(why.reason.starts_with("pi@192.168.7.204: "), "{}", why.reason);
            assert!(why.refused);
            why.what_to_do().to_owned()
        };
        let unknown = ConnectError::HostKeyUnknown {
            at: at(),
            key: Box::new(key()),
            file: "/home/me/.ssh/known_hosts".into(),
            policy: HostKeys::Ask,
        };
        let hint = told(&unknown);
        for word in ["--host-keys accept-new", "ssh.hostKeys", "/home/me/.ssh/known_hosts"] {
            assert!(hint.contains(word), "{hint}");
        }
        let changed = ConnectError::HostKeyChanged {
            at: at(),
            known: Vec::new(),
            offered: Box::new(key()),
            file: "/home/me/.ssh/known_hosts".into(),
        };
        assert!(told(&changed).contains("--replace-host-key w1"));
        let refused = ConnectError::Authentication {
            at: at(),
            tried: vec![TriedKey {
                key: "/home/me/.ssh/id".to_owned(),
                outcome: "not accepted".to_owned(),
            }],
            agent: None,
            server: "the server takes publickey".to_owned(),
            locked: Vec::new(),
        };
        let hint = told(&refused);
        assert!(hint.contains("ssh.user") && hint.contains("ssh.key"), "{hint}");
        let missing = ConnectError::KeyFile {
            at: at(),
            path: "/home/me/.ssh/none".into(),
            why: KeyProblem::NotFound,
        };
        assert!(told(&missing).contains("ssh.key"));
    }

    #[test]
    fn fingerprints_fit_on_eighty_columns_uncut() {
        let key = key();
        for (width, address) in [(80, false), (200, true)] {
            let text = fingerprints([("worker-1", &key)].into_iter(), Style::PLAIN.wide(width));
            assert!(text.contains(&key.fingerprint), "{text}");
            assert_eq!(text.contains("192.168.7.204"), address, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        }
    }

    #[test]
    fn the_inventory_is_named_as_it_is_typed() {
        let target = |path: &str| Target {
            inventory: path.into(),
            host_keys: None,
            replace_host_key: Vec::new(),
            parallel: 1,
        };
        assert_eq!(target("inventories/lab.yaml").typed(), "inventories/lab.yaml");
        assert_eq!(target("my lab.yaml").typed(), "'my lab.yaml'");
    }
}
