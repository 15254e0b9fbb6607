//! What happens during a run: the interface between the executor and the reporter.
//!
//! Events are facts in the order in which they happened. A reporter shows them and never
//! calls back. No event carries a secret.

use std::time::Duration;

use serde::Serialize;

use crate::cluster::{NodeName, Role};
use crate::plan::{FileChange, Gate};
use crate::remote::Stream;

/// One thing that happened.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A phase of the run began.
    PhaseStarted {
        /// Which.
        phase: Phase,
    },
    /// A phase of the run ended.
    PhaseFinished {
        /// Which.
        phase: Phase,
        /// How long it took.
        #[serde(serialize_with = "seconds")]
        took: Duration,
    },
    /// The lanes that are about to be carried out.
    Planned {
        /// Host, role and number of steps of each lane.
        lanes: Vec<(NodeName, Role, usize)>,
    },
    /// A host answered and let us in.
    Connected {
        /// The host.
        host: NodeName,
    },
    /// A host was given up.
    Unreachable {
        /// The host.
        host: NodeName,
        /// One sentence with the evidence.
        reason: String,
    },
    /// A step cannot start yet.
    StepWaiting {
        /// The host.
        host: NodeName,
        /// Title of the step.
        step: String,
        /// What it waits for.
        gates: Vec<Gate>,
    },
    /// A step runs.
    StepStarted {
        /// The host.
        host: NodeName,
        /// Title of the step.
        step: String,
        /// Why it is done.
        why: String,
    },
    /// A line of the running step.
    Output {
        /// The host.
        host: NodeName,
        /// Where it came from.
        stream: Stream,
        /// Its text.
        text: String,
    },
    /// A step will be tried again.
    Retrying {
        /// The host.
        host: NodeName,
        /// Title of the step.
        step: String,
        /// Why.
        reason: String,
        /// When.
        #[serde(serialize_with = "seconds")]
        pause: Duration,
    },
    /// A step ended.
    StepFinished {
        /// The host.
        host: NodeName,
        /// Title of the step.
        step: String,
        /// How.
        outcome: Outcome,
        /// How long it ran.
        #[serde(serialize_with = "seconds")]
        took: Duration,
        /// Files that it changed.
        files: Vec<FileChange>,
    },
    /// A gate opened.
    GateOpened {
        /// Which.
        gate: Gate,
        /// The host whose step opened it.
        by: NodeName,
    },
    /// A gate will not open any more.
    GateClosed {
        /// Which.
        gate: Gate,
        /// Why.
        reason: String,
    },
    /// Something outside the lanes that a person should see, such as what verification waits for.
    Note {
        /// The host it is about.
        host: Option<NodeName>,
        /// One sentence.
        message: String,
    },
    /// The person asked to stop: running steps finish, no new ones start.
    Interrupted,
}

/// How a step ended.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub enum Outcome {
    /// It did what it should.
    Done,
    /// It failed.
    Failed(StepError),
    /// It was never started.
    NotStarted {
        /// Why.
        reason: String,
    },
}

/// A failed step, told to a tired person.
#[derive(Debug, Clone, Serialize, thiserror::Error)]
#[error("{host}: {step}: {what}")]
pub struct StepError {
    /// The host.
    pub host: NodeName,
    /// Title of the step.
    pub step: String,
    /// What went wrong, in one sentence fragment.
    pub what: String,
    /// The tail of standard error and of the logs that tell more, by where they come from.
    pub evidence: Vec<Evidence>,
    /// What to do next.
    pub hint: String,
    /// The host itself cannot be used any more (unreachable, sudo refused).
    pub host_lost: bool,
}

/// Lines that show what went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Where they come from: `stderr`, `kubelet`, `etcd`.
    pub source: String,
    /// The lines, at most 20.
    pub lines: Vec<String>,
}

/// The parts of a run, for the times at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Connecting and probing.
    Observe,
    /// Planning.
    Plan,
    /// The lanes.
    Execute,
    /// Waiting until everything is Ready.
    Verify,
    /// Observing and planning again.
    Recheck,
}

fn seconds<S: serde::Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value.as_secs_f64() * 1000.0).round() / 1000.0)
}
