//! What has happened so far, added up from the events: all views read it, none writes it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::summary::{HostSummary, Kept, NotStarted, PhaseTime, Summary, Unreached};
use super::text::clean;
use super::timeline::Timeline;
use crate::cluster::{NodeName, Role};
use crate::execute::event::{Event, Evidence, Outcome, Phase, StepError};
use crate::plan::Gate;

/// The state of a run.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Hosts in the order in which they were first heard of; planned lanes first.
    pub order: Vec<NodeName>,
    /// What each host is up to.
    pub hosts: BTreeMap<NodeName, HostState>,
    /// The phase that is under way, with its beginning.
    pub phase: Option<(Phase, Duration)>,
    /// Hosts that answered.
    pub connected: usize,
    /// The newest note.
    pub note: Option<String>,
    phases: Vec<PhaseTime>,
    failures: Vec<StepError>,
    not_started: Vec<NotStarted>,
    unreachable: Vec<Unreached>,
    kept: Vec<Kept>,
    interrupted: bool,
    timeline: Timeline,
}

/// How a step's script begins the line of a file that it leaves as somebody has changed it.
const KEPT: &str = "kept ";

/// What a host is up to.
#[derive(Debug, Default)]
pub struct HostState {
    /// What it is for; unknown before the lanes are known.
    pub role: Option<Role>,
    /// Steps of its lane.
    pub total: usize,
    /// Steps done.
    pub done: usize,
    /// Steps failed.
    pub failed: usize,
    /// Steps that were never started.
    pub not_started: usize,
    /// Now.
    pub now: Now,
}

/// What a host does now.
#[derive(Debug, Default)]
pub enum Now {
    /// Nothing.
    #[default]
    Idle,
    /// Its next step cannot start yet.
    Waiting {
        /// Title of the step.
        step: String,
        /// What it waits for.
        gates: Vec<Gate>,
    },
    /// A step runs.
    Running {
        /// Title of the step.
        step: String,
        /// Since when.
        since: Duration,
        /// Its last line of output, or why it will be tried again.
        last: String,
    },
}

impl Ledger {
    /// Takes note of an event that happened at `at`.
    pub fn take(&mut self, at: Duration, event: &Event) {
        self.timeline.take(at, event);
        match event {
            Event::PhaseStarted { phase } => {
                self.phase = Some((*phase, at));
                self.note = None;
                // Each look counts anew.
                self.connected = 0;
            }
            Event::PhaseFinished { phase, took } => {
                self.phase = None;
                self.phases.push(PhaseTime {
                    phase: *phase,
                    took: *took,
                });
            }
            Event::Planned { lanes } => {
                self.order
                    .retain(|host| !lanes.iter().any(|(planned, ..)| planned == host));
                let later = std::mem::take(&mut self.order);
                for (host, role, steps) in lanes {
                    self.order.push(host.clone());
                    let state = self.hosts.entry(host.clone()).or_default();
                    state.role = Some(*role);
                    // A run may be planned in parts, when facts show only on the way.
                    state.total = state.done + state.failed + state.not_started + *steps;
                }
                self.order.extend(later);
            }
            Event::Connected { host } => {
                self.connected += 1;
                self.host(host);
            }
            Event::Unreachable { host, reason } => {
                self.host(host).now = Now::Idle;
                self.unreachable.push(Unreached {
                    host: host.clone(),
                    reason: clean(reason),
                });
            }
            Event::StepWaiting { host, step, gates } => {
                self.host(host).now = Now::Waiting {
                    step: clean(step),
                    gates: gates.clone(),
                };
            }
            Event::StepStarted { host, step, why: _ } => {
                self.host(host).now = Now::Running {
                    step: clean(step),
                    since: at,
                    last: String::new(),
                };
            }
            Event::Output { host, stream: _, text } => {
                let text = clean(text);
                if let Some(kept) = text.strip_prefix(KEPT).filter(|kept| kept.starts_with('/')) {
                    self.kept.push(Kept {
                        host: host.clone(),
                        what: kept.to_owned(),
                    });
                }
                self.last_line(host, text);
            }
            Event::Retrying {
                host,
                step: _,
                reason,
                pause,
            } => {
                let line = format!("again in {}: {}", super::text::span(*pause), clean(reason));
                self.last_line(host, line);
            }
            Event::StepFinished {
                host,
                step,
                outcome,
                took: _,
                files: _,
            } => self.finish(host, step, outcome),
            Event::Note { host, message } => {
                let about = host.as_ref().map(|host| format!("{host}: ")).unwrap_or_default();
                self.note = Some(about + &clean(message));
            }
            Event::GateOpened { .. } | Event::GateClosed { gate: _, reason: _ } => {}
            Event::Interrupted => self.interrupted = true,
        }
    }

    fn host(&mut self, host: &NodeName) -> &mut HostState {
        if !self.hosts.contains_key(host) {
            self.order.push(host.clone());
        }
        self.hosts.entry(host.clone()).or_default()
    }

    fn last_line(&mut self, host: &NodeName, line: String) {
        if let Now::Running { last, .. } = &mut self.host(host).now
            && !line.is_empty()
        {
            *last = line;
        }
    }

    fn finish(&mut self, host: &NodeName, step: &str, outcome: &Outcome) {
        let state = self.host(host);
        state.now = Now::Idle;
        match outcome {
            Outcome::Done => state.done += 1,
            Outcome::Failed(error) => {
                state.failed += 1;
                self.failures.push(cleaned(error));
            }
            Outcome::NotStarted { reason } => {
                state.not_started += 1;
                self.not_started.push(NotStarted {
                    host: host.clone(),
                    steps: vec![clean(step)],
                    reason: clean(reason),
                });
            }
        }
    }

    /// Steps done, failed and in all.
    #[must_use]
    pub fn steps(&self) -> (usize, usize, usize) {
        self.hosts.values().fold((0, 0, 0), |(done, failed, total), host| {
            (done + host.done, failed + host.failed, total + host.total)
        })
    }

    /// Hosts that carry out a step, the longest-running first.
    #[must_use]
    pub fn running(&self) -> Vec<(&NodeName, &str, Duration, &str)> {
        let mut running: Vec<_> = self
            .order
            .iter()
            .filter_map(|host| match &self.hosts.get(host)?.now {
                Now::Running { step, since, last } => Some((host, step.as_str(), *since, last.as_str())),
                Now::Idle | Now::Waiting { .. } => None,
            })
            .collect();
        running.sort_by_key(|(_, _, since, _)| *since);
        running
    }

    /// Hosts that wait, with what they wait for, in the order of the lanes.
    #[must_use]
    pub fn waiting(&self) -> Vec<(&NodeName, &[Gate])> {
        self.order
            .iter()
            .filter_map(|host| match &self.hosts.get(host)?.now {
                Now::Waiting { gates, .. } => Some((host, gates.as_slice())),
                Now::Idle | Now::Running { .. } => None,
            })
            .collect()
    }

    /// Some host waits for the gate.
    #[must_use]
    pub fn is_awaited(&self, gate: &Gate) -> bool {
        self.waiting().iter().any(|(_, gates)| gates.contains(gate))
    }

    /// Columns that the longest name of a host takes.
    #[must_use]
    pub fn name_width(&self) -> usize {
        self.order
            .iter()
            .map(|host| super::text::columns(host.as_str()))
            .max()
            .unwrap_or(0)
    }

    /// The end of the run. Planned steps that nothing was heard of count as not started.
    #[must_use]
    pub fn summary(mut self, total: Duration) -> Summary {
        let reason = if self.interrupted {
            "the run was interrupted"
        } else {
            "the run ended before their turn"
        };
        let mut hosts = Vec::new();
        for host in &self.order {
            let Some(state) = self.hosts.get(host) else { continue };
            let Some(role) = state.role else { continue };
            let missing = state
                .total
                .saturating_sub(state.done + state.failed + state.not_started);
            if missing > 0 {
                let lost = self.unreachable.iter().find(|unreached| &unreached.host == host);
                self.not_started.push(NotStarted {
                    host: host.clone(),
                    steps: vec![String::new(); missing],
                    reason: lost.map_or_else(|| reason.to_owned(), |_| "the host cannot be reached".to_owned()),
                });
            }
            hosts.push(HostSummary {
                host: host.clone(),
                role,
                total: state.total,
                done: state.done,
                failed: state.failed,
                not_started: state.not_started + missing,
            });
        }
        Summary {
            hosts,
            failures: self.failures,
            not_started: self.not_started,
            unreachable: self.unreachable,
            phases: self.phases,
            kept: self.kept,
            total,
            interrupted: self.interrupted,
            log: None,
            timeline: self.timeline,
        }
    }
}

/// A failure whose every line may be shown.
fn cleaned(error: &StepError) -> StepError {
    let StepError {
        host,
        step,
        what,
        evidence,
        hint,
        host_lost,
    } = error;
    StepError {
        host: host.clone(),
        step: clean(step),
        what: clean(what),
        evidence: evidence
            .iter()
            .map(|Evidence { source, lines }| Evidence {
                source: clean(source),
                lines: lines.iter().map(|line| clean(line)).collect(),
            })
            .collect(),
        hint: clean(hint),
        host_lost: *host_lost,
    }
}
