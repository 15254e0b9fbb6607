//! Carries a plan out: lanes side by side, gates between them.
//!
//! A lane is one task. It waits for the gates of its next step, runs the step's script on its
//! host, and opens the step's gate. However a lane ends (failure, interruption, panic), the
//! gates that it has not opened are closed with a reason, and what waits for them is not started.
//! Only what cleans up after the lane is still done.

mod board;
pub mod event;
pub mod evidence;
pub mod late;
pub mod lock;
mod reboot;
pub mod smoke;
pub mod verify;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::cluster::NodeName;
use crate::plan::{Gate, Lane, Plan, Planned, Step};
use crate::remote::{Command, Ending, Line, Output, Param, RunError, Session, Stream};
use board::Board;
use event::{Event, Evidence, Outcome, StepError};
pub use late::Late;
use reboot::Away;

/// What a run works with.
#[derive(Debug, Clone)]
pub struct Equipment {
    /// A session for every host that can be reached.
    pub sessions: Arc<BTreeMap<NodeName, Session>>,
    /// The run's own name, as the hosts' lock knows it.
    pub run: String,
    /// Who carries it out, in the words of the lock.
    pub holder: String,
    /// Secrets and late values.
    pub late: Arc<Late>,
    /// Where events go.
    pub events: mpsc::Sender<Event>,
    /// Cancelled by the first Ctrl-C: no new steps, running ones finish.
    pub stop: CancellationToken,
    /// Cancelled by the second Ctrl-C: running steps are ended.
    pub abort: CancellationToken,
}

/// What became of a plan.
#[derive(Debug, Default)]
pub struct Carried {
    /// Steps that failed: at most one a lane, and one that was to clean up after it.
    pub failures: Vec<StepError>,
    /// Hosts with steps that were never started.
    pub not_started: Vec<(NodeName, String)>,
    /// The person stopped it.
    pub interrupted: bool,
    /// Where tokens and uploaded certificates could not be revoked.
    pub unrevoked: Option<NodeName>,
}

impl Carried {
    /// Every step was done.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.failures.is_empty() && self.not_started.is_empty() && !self.interrupted
    }
}

/// Carries out every lane of the plan.
pub async fn carry_out(plan: &Plan, equipment: &Equipment) -> Carried {
    let lanes = plan
        .lanes
        .iter()
        .map(|lane| (lane.host.clone(), lane.role, lane.steps.len()))
        .collect();
    equipment.send(Event::Planned { lanes }).await;
    let board = Arc::new(Board::new(plan));
    let away = Arc::new(Away::default());
    let mut tasks = JoinSet::new();
    let mut hosts = HashMap::new();
    for lane in &plan.lanes {
        let run = LaneRun {
            lane: lane.clone(),
            board: Arc::clone(&board),
            away: Arc::clone(&away),
            equipment: equipment.clone(),
        };
        let task = tasks.spawn(run.run());
        hosts.insert(task.id(), lane.host.clone());
    }
    let _watch = watch_connections(equipment, &away);
    let mut carried = Carried::default();
    while let Some(ended) = tasks.join_next_with_id().await {
        match ended {
            Ok((id, end)) => {
                carried.failures.extend(end.failures);
                if let Some(host) = hosts.remove(&id) {
                    carried
                        .not_started
                        .extend(end.not_started.map(|reason| (host.clone(), reason)));
                    carried.unrevoked = carried.unrevoked.or(end.unrevoked.then_some(host));
                }
            }
            Err(panic) => {
                let Some(host) = hosts.remove(&panic.id()) else {
                    continue;
                };
                let error = defect(host, &panic);
                let finished = Event::StepFinished {
                    host: error.host.clone(),
                    step: error.step.clone(),
                    outcome: Outcome::Failed(error.clone()),
                    took: std::time::Duration::ZERO,
                    files: Vec::new(),
                };
                equipment.send(finished).await;
                carried.failures.push(error);
            }
        }
    }
    carried.interrupted = equipment.stop.is_cancelled();
    carried
}

/// Tells at once when a host is out of reach: others may be waiting for it without a step of its own. Whoever was
/// rebooted is not lost.
fn watch_connections(equipment: &Equipment, away: &Arc<Away>) -> JoinSet<()> {
    let mut watch = JoinSet::new();
    for (host, session) in equipment.sessions.iter() {
        let (host, session, equipment) = (host.clone(), session.clone(), equipment.clone());
        let away = Arc::clone(away);
        watch.spawn(async move {
            let reason = loop {
                let reason = session.lost().await;
                away.over(&host).await;
                if session.is_lost() {
                    break reason;
                }
            };
            equipment.send(Event::Unreachable { host, reason }).await;
        });
    }
    watch
}

/// A panicking lane is a defect; what its step had reached is not known.
fn defect(host: NodeName, panic: &tokio::task::JoinError) -> StepError {
    StepError {
        host,
        step: "carry out its steps".to_owned(),
        what: format!("the work ended unexpectedly: {panic}"),
        evidence: Vec::new(),
        hint: format!("this is a defect of k8sup: please report it, and {RUN_AGAIN}"),
        host_lost: false,
    }
}

impl Equipment {
    /// Reporting must not decide a run: a reporter that is gone is ignored.
    async fn send(&self, event: Event) {
        let _ = self.events.send(event).await;
    }
}

/// How a lane ended; nothing in it is a lane that is done.
#[derive(Default)]
struct LaneEnd {
    failures: Vec<StepError>,
    not_started: Option<String>,
    unrevoked: bool,
}

struct LaneRun {
    lane: Lane,
    board: Arc<Board>,
    away: Arc<Away>,
    equipment: Equipment,
}

/// Closes the gates that its lane leaves shut, also when the lane panics.
struct Closer {
    gates: Vec<Gate>,
    board: Arc<Board>,
    events: mpsc::Sender<Event>,
    reason: String,
}

impl Closer {
    fn close(&self) {
        for gate in &self.gates {
            if self.board.close(gate, &self.reason) {
                let closed = Event::GateClosed {
                    gate: gate.clone(),
                    reason: self.reason.clone(),
                };
                let _ = self.events.try_send(closed);
            }
        }
    }
}

impl Drop for Closer {
    fn drop(&mut self) {
        self.close();
    }
}

impl LaneRun {
    async fn run(self) -> LaneEnd {
        let host = &self.lane.host;
        let mut closer = Closer {
            gates: self
                .lane
                .steps
                .iter()
                .filter_map(|planned| planned.opens.clone())
                .collect(),
            board: Arc::clone(&self.board),
            events: self.equipment.events.clone(),
            reason: format!("the work on {host} ended unexpectedly"),
        };
        let mut end = LaneEnd::default();
        // Why the lane goes no further.
        let mut stuck: Option<String> = None;
        for planned in &self.lane.steps {
            let cleans_up = end.unrevoked && planned.step.cleans_up();
            if let Some(reason) = stuck.as_ref().filter(|_| !cleans_up) {
                self.not_started(planned, reason).await;
                continue;
            }
            let title = planned.step.title();
            if let Err(reason) = self.wait(planned, &title, cleans_up).await {
                closer.reason.clone_from(&reason);
                closer.close();
                self.not_started(planned, &reason).await;
                end.not_started.get_or_insert_with(|| reason.clone());
                stuck.get_or_insert(reason);
                continue;
            }
            if let Some(reason) = self.left_out(planned).await {
                self.not_started(planned, &reason).await;
                if let Some(gate) = &planned.opens
                    && self.board.close(gate, &reason)
                {
                    self.equipment
                        .send(Event::GateClosed {
                            gate: gate.clone(),
                            reason,
                        })
                        .await;
                }
                continue;
            }
            end.unrevoked |= planned.step.hands_out();
            if let Err(error) = self.carry_out(planned, &title).await {
                closer.reason = format!("{title} failed on {host}");
                closer.close();
                end.failures.push(*error);
                stuck.get_or_insert_with(|| closer.reason.clone());
                continue;
            }
            end.unrevoked &= !planned.step.cleans_up();
            if let Some(gate) = &planned.opens {
                self.board.open(gate);
                let opened = Event::GateOpened {
                    gate: gate.clone(),
                    by: self.lane.host.clone(),
                };
                self.equipment.send(opened).await;
            }
        }
        end
    }

    /// One step, between its events.
    async fn carry_out(&self, planned: &Planned, title: &str) -> Result<(), Box<StepError>> {
        let host = &self.lane.host;
        let started = Instant::now();
        self.equipment
            .send(Event::StepStarted {
                host: host.clone(),
                step: title.to_owned(),
                why: planned.why.clone(),
            })
            .await;
        let result = self.step(planned, title).await;
        let outcome = match &result {
            Ok(()) => Outcome::Done,
            Err(error) => Outcome::Failed((**error).clone()),
        };
        self.equipment
            .send(Event::StepFinished {
                host: host.clone(),
                step: title.to_owned(),
                outcome,
                took: started.elapsed(),
                files: planned.files.clone(),
            })
            .await;
        result
    }

    async fn not_started(&self, planned: &Planned, reason: &str) {
        self.equipment
            .send(Event::StepFinished {
                host: self.lane.host.clone(),
                step: planned.step.title(),
                outcome: Outcome::NotStarted {
                    reason: reason.to_owned(),
                },
                took: std::time::Duration::ZERO,
                files: Vec::new(),
            })
            .await;
    }

    /// Waits for the gates of a step. Only the second interrupt keeps what cleans up from being done.
    async fn wait(&self, planned: &Planned, title: &str, cleans_up: bool) -> Result<(), String> {
        let stop = if cleans_up {
            &self.equipment.abort
        } else {
            &self.equipment.stop
        };
        if stop.is_cancelled() {
            return Err("interrupted".to_owned());
        }
        let shut: Vec<Gate> = planned
            .needs
            .iter()
            .chain(&planned.after)
            .chain(&planned.only_if)
            .filter(|gate| self.board.is_shut(gate))
            .cloned()
            .collect();
        if !shut.is_empty() {
            let waiting = Event::StepWaiting {
                host: self.lane.host.clone(),
                step: title.to_owned(),
                gates: shut,
            };
            self.equipment.send(waiting).await;
        }
        let gates = async {
            for gate in &planned.needs {
                self.board.opened(gate).await?;
            }
            for gate in planned.after.iter().chain(&planned.only_if) {
                self.board.decided(gate).await;
            }
            Ok(())
        };
        tokio::select! {
            result = gates => result,
            () = stop.cancelled() => Err("interrupted".to_owned()),
        }
    }

    /// Why a step about another host is left out: that host's gate is closed.
    async fn left_out(&self, planned: &Planned) -> Option<String> {
        for gate in &planned.only_if {
            if let Err(reason) = self.board.opened(gate).await {
                return Some(reason);
            }
        }
        None
    }

    async fn step(&self, planned: &Planned, title: &str) -> Result<(), Box<StepError>> {
        let host = &self.lane.host;
        let failed = |what: String, evidence: Vec<Evidence>, hint: String, host_lost: bool| {
            Box::new(StepError {
                host: host.clone(),
                step: title.to_owned(),
                what,
                evidence,
                hint,
                host_lost,
            })
        };
        let Some(session) = self.equipment.sessions.get(host) else {
            return Err(failed(
                "there is no connection to it".to_owned(),
                Vec::new(),
                RUN_AGAIN.to_owned(),
                true,
            ));
        };
        let script = planned.step.script();
        let mut params = vec![("RUN".to_owned(), Param::Plain(self.equipment.run.clone()))];
        for (name, param) in &script.params {
            match self.equipment.late.resolve(param) {
                Ok(param) => params.push((name.clone(), param)),
                Err(missing) => {
                    let what = format!("{} is not known yet", missing.placeholder());
                    return Err(failed(
                        what,
                        Vec::new(),
                        "this is a defect of k8sup: please report it".to_owned(),
                        false,
                    ));
                }
            }
        }
        let command = Command {
            name: format!("steps/{}", script.name),
            script: script.text,
            params,
            root: true,
            timeout: script.timeout,
        };
        let rebooted = match &planned.step {
            Step::Reboot { boot_id } => Some((boot_id, self.away.leave(host))),
            _ => None,
        };
        let output = tokio::select! {
            result = self.watched(session, &command) => result,
            () = self.equipment.abort.cancelled() => {
                return Err(failed("ended by the second interrupt".to_owned(), Vec::new(), RUN_AGAIN.to_owned(), false));
            }
        };
        if let Some((before, _away)) = &rebooted
            && has_gone(&output)
        {
            let back = self.come_back(session, before).await;
            return back.map_err(|what| failed(what, Vec::new(), LOOK_AT_IT.to_owned(), true));
        }
        match output {
            Ok(output) if output.ok() => {
                if let Some(reference) = script.output {
                    self.equipment.late.learn(reference, &output.stdout);
                }
                Ok(())
            }
            Ok(output) => {
                let mut shown = vec![Evidence {
                    source: "stderr".to_owned(),
                    lines: tail(&output.stderr),
                }];
                shown.extend(evidence::gather(session, &planned.step).await);
                let hint = evidence::hint(&planned.step, &output.stderr);
                Err(failed(ending(&output), shown, hint, false))
            }
            Err(error) => {
                let lost = !matches!(error, RunError::Timeout(_));
                let shown = if lost {
                    Vec::new()
                } else {
                    evidence::gather(session, &planned.step).await
                };
                let hint = match &error {
                    RunError::Sudo(_) => "check `ssh.sudoPassword` of this host in the inventory, and `sudo -l` on it",
                    RunError::ConnectionLost(_) => {
                        "see that the host is up and in reach, then run the same command again: it goes on where it stopped"
                    }
                    RunError::Refused(_) | RunError::Timeout(_) => RUN_AGAIN,
                };
                Err(failed(error.to_string(), shown, hint.to_owned(), lost))
            }
        }
    }

    /// Waits until a host that was told to reboot is back, and tells of the wait.
    async fn come_back(&self, session: &Session, before: &str) -> Result<(), String> {
        let (told, mut received) = mpsc::channel::<String>(8);
        let Equipment { run, holder, .. } = &self.equipment;
        let host = &self.lane.host;
        let wait = async {
            let back = reboot::come_back(host, session, before, (run, holder), &told).await;
            drop(told);
            back
        };
        let forward = async {
            while let Some(text) = received.recv().await {
                let event = Event::Output {
                    host: host.clone(),
                    stream: Stream::Stdout,
                    text,
                };
                self.equipment.send(event).await;
            }
        };
        tokio::select! {
            (back, ()) = async { tokio::join!(wait, forward) } => back,
            () = self.equipment.abort.cancelled() => Err("ended by the second interrupt".to_owned()),
        }
    }

    /// Runs a command while its lines become events.
    async fn watched(&self, session: &Session, command: &Command) -> Result<Output, RunError> {
        let (lines, mut received) = mpsc::channel::<Line>(256);
        let forward = async {
            while let Some(line) = received.recv().await {
                // The CA is no secret, but a line of base64 is of no use to anybody.
                if !line.text.starts_with("ca-cert-data ") {
                    let event = Event::Output {
                        host: self.lane.host.clone(),
                        stream: line.stream,
                        text: line.text,
                    };
                    self.equipment.send(event).await;
                }
            }
        };
        let run = async {
            let result = session.run(command, Some(&lines)).await;
            drop(lines);
            result
        };
        tokio::join!(run, forward).0
    }
}

const LOOK_AT_IT: &str =
    "look at its screen, or at its power; then run the same command again: it goes on where it stopped";
const RUN_AGAIN: &str = "run the same command again: it goes on where it stopped";

/// A host that was told to reboot goes: it may have gone before its shell could say so.
fn has_gone(output: &Result<Output, RunError>) -> bool {
    match output {
        Ok(output) => output.ok(),
        Err(error) => matches!(error, RunError::ConnectionLost(_)),
    }
}

fn ending(output: &Output) -> String {
    match output.ending {
        Ending::Status(status) => {
            // kubeadm's preflight and dpkg name their findings in between; else the last line is where a tool says what it could not do,
            // but for advice that is of no use here.
            let finding = |line: &&str| line.trim_start().starts_with("[ERROR ") || line.starts_with("dpkg: error");
            let says = |line: &&str| !line.trim().is_empty() && !line.starts_with("To see the stack trace");
            let lines = || output.stderr.lines();
            lines().find(finding).or_else(|| lines().rev().find(says)).map_or_else(
                || format!("ended with status {status}"),
                |line| line.trim().chars().take(300).collect(),
            )
        }
        Ending::Signal(signal) => format!("was ended by signal {signal}"),
    }
}

/// The last 20 lines.
fn tail(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(20)..]
        .iter()
        .map(|line| (*line).to_owned())
        .collect()
}
