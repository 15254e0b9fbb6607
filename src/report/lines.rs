//! Plain lines, for pipes, CI and `-v`: one a change, and never silent for long.

use std::time::Duration;

use super::failure::step_block;
use super::ledger::Ledger;
use super::style::Style;
use super::summary::phase_name;
use super::text::{clean, count, cut, fit, span};
use crate::cluster::NodeName;
use crate::execute::event::{Event, Outcome, Phase};
use crate::plan::Gate;

/// The longest silence.
pub const HEARTBEAT: Duration = Duration::from_secs(10);

/// Makes lines of events.
#[derive(Debug)]
pub struct Lines {
    style: Style,
    verbose: u8,
    last_spoke: Duration,
    note: Option<String>,
}

/// How a step's script begins a line that says what it waits for.
const WAITING: &str = "waiting for ";

impl Lines {
    /// With `verbose` above zero the output of the steps is shown too.
    #[must_use]
    pub fn new(style: Style, verbose: u8) -> Self {
        Self {
            style,
            verbose,
            last_spoke: Duration::ZERO,
            note: None,
        }
    }

    /// The text for an event that `ledger` has already taken; empty where it says nothing.
    pub fn event(&mut self, at: Duration, event: &Event, ledger: &Ledger) -> String {
        let style = self.style;
        let host_line = |host: &NodeName, verb: String, text: String| {
            format!(
                "{} {}  {verb}  {text}\n",
                stamp(at),
                fit(host.as_str(), ledger.name_width())
            )
        };
        let plain = |text: String| format!("{} {text}\n", stamp(at));
        let text = match event {
            Event::PhaseStarted { phase } => plain(format!("{}: started", phase_name(*phase))),
            Event::PhaseFinished { phase, took } => plain(format!("{}: done in {}", phase_name(*phase), span(*took))),
            Event::Planned { lanes } => {
                let steps = lanes.iter().map(|(_, _, steps)| steps).sum();
                plain(format!("{} on {}", count(steps, "step"), count(lanes.len(), "host")))
            }
            Event::Connected { host } => host_line(host, verb("reached"), String::new()),
            // Why is told with what follows from it, together with what to do.
            Event::Unreachable { host, reason: _ } => host_line(host, style.bad(&verb("lost")), String::new()),
            Event::StepWaiting { host, step, gates } => host_line(
                host,
                style.dim(&verb("waiting")),
                format!("{} until {}", clean(step), gate_list(gates)),
            ),
            Event::StepStarted { host, step, why } => {
                let why = if why.is_empty() {
                    String::new()
                } else {
                    style.dim(&format!(" ({})", clean(why)))
                };
                host_line(host, verb("started"), clean(step) + &why)
            }
            Event::Output { host, stream: _, text } => {
                let text = clean(text);
                match text.strip_prefix(WAITING) {
                    // What a step waits for is never left out: it may take minutes.
                    Some(what) if self.verbose == 0 => host_line(host, verb("waiting"), format!("for {what}")),
                    _ if self.verbose == 0 || text.is_empty() => return String::new(),
                    _ => host_line(host, style.dim(&verb("|")), style.dim(&text)),
                }
            }
            Event::Retrying {
                host,
                step,
                reason,
                pause,
            } => {
                let text = format!("{} again in {}: {}", clean(step), span(*pause), clean(reason));
                host_line(host, style.warn(&verb("retrying")), text)
            }
            Event::StepFinished {
                host,
                step,
                outcome,
                took,
                files: _,
            } => match outcome {
                Outcome::Done => host_line(
                    host,
                    style.good(&verb("done")),
                    format!("{} in {}", clean(step), span(*took)),
                ),
                Outcome::Failed(error) => {
                    let head = format!("{} after {}", clean(step), span(*took));
                    host_line(host, style.bad(&verb("failed")), head) + "\n" + &step_block(error, style) + "\n"
                }
                Outcome::NotStarted { reason } => host_line(
                    host,
                    style.warn(&verb("skipped")),
                    format!("{}: {}", clean(step), clean(reason)),
                ),
            },
            Event::GateOpened { gate, by: _ } => {
                if self.verbose == 0 {
                    return String::new();
                }
                plain(format!("now: {gate}"))
            }
            Event::GateClosed { gate, reason } if self.verbose == 0 && !ledger.is_awaited(gate) => {
                return String::new();
            }
            Event::GateClosed { gate, reason } => plain(format!("{}: {}", style.bad(&in_vain(gate)), clean(reason))),
            // What is waited for is asked for again and again; the sign of life repeats it often enough.
            Event::Note { host: _, message } if self.note.as_deref() == Some(message.as_str()) => {
                return String::new();
            }
            Event::Note {
                host: Some(host),
                message,
            } => host_line(host, verb("note"), clean(message)),
            Event::Note { host: None, message } => plain(clean(message)),
            Event::Interrupted => plain(style.warn(INTERRUPTED)),
        };
        if let Event::Note { host: _, message } = event {
            self.note = Some(message.clone());
        }
        self.last_spoke = at;
        trim_line_ends(&text)
    }

    /// A sign of life after a silence.
    pub fn tick(&mut self, at: Duration, ledger: &Ledger) -> Option<String> {
        if at.saturating_sub(self.last_spoke) < HEARTBEAT.saturating_sub(Duration::from_millis(500)) {
            return None;
        }
        self.last_spoke = at;
        Some(format!("{} {}\n", stamp(at), self.style.dim(&heartbeat(at, ledger))))
    }
}

/// What is said when the person asked to stop.
pub(super) const INTERRUPTED: &str = "interrupted: waiting for running steps to end; press again to stop now";

/// Columns that the last line of a running step may take in the sign of life.
const LAST_WIDTH: usize = 60;

/// What is said of a gate that will not open any more.
pub(super) fn in_vain(gate: &Gate) -> String {
    format!("no longer waiting until {gate}")
}

/// What a phase does, for a sentence.
fn doing(phase: Phase) -> &'static str {
    match phase {
        Phase::Observe => "looking at the hosts",
        Phase::Plan => "planning",
        Phase::Execute => "carrying out the plan",
        Phase::Verify => "waiting until the cluster serves",
        Phase::Recheck => "looking at the hosts again",
    }
}

/// What is running and what is waited for, in one line.
pub(super) fn heartbeat(at: Duration, ledger: &Ledger) -> String {
    let running: Vec<String> = ledger
        .running()
        .iter()
        .map(|(host, step, since, last)| {
            let last = if last.is_empty() {
                String::new()
            } else {
                format!(": {}", cut(last, LAST_WIDTH))
            };
            format!("{host} {step} ({}){last}", span(at.saturating_sub(*since)))
        })
        .collect();
    let mut parts = Vec::new();
    if !running.is_empty() {
        parts.push(format!("running: {}", running.join("; ")));
    }
    for (gates, hosts) in by_gates(ledger) {
        parts.push(format!("waiting: {} until {gates}", hosts.join(", ")));
    }
    if parts.is_empty()
        && let Some((phase, since)) = ledger.phase
    {
        let note = ledger.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
        parts.push(format!("{} ({}){note}", doing(phase), span(at.saturating_sub(since))));
        if ledger.connected > 0 {
            parts.push(format!("{} reached", count(ledger.connected, "host")));
        }
    }
    if parts.is_empty() {
        "still at work".to_owned()
    } else {
        format!("still {}", parts.join("; "))
    }
}

/// Waiting hosts, those that wait for the same together.
fn by_gates(ledger: &Ledger) -> Vec<(String, Vec<&str>)> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (host, gates) in ledger.waiting() {
        let gates = gate_list(gates);
        match groups.iter_mut().find(|(known, _)| *known == gates) {
            Some((_, hosts)) => hosts.push(host.as_str()),
            None => groups.push((gates, vec![host.as_str()])),
        }
    }
    groups
}

fn gate_list(gates: &[Gate]) -> String {
    gates.iter().map(Gate::to_string).collect::<Vec<_>>().join(" and ")
}

fn stamp(at: Duration) -> String {
    format!("{:>7}", format!("{:.1}s", at.as_secs_f64()))
}

fn verb(verb: &str) -> String {
    format!("{verb:<8}")
}

fn trim_line_ends(text: &str) -> String {
    text.split('\n').map(str::trim_end).collect::<Vec<_>>().join("\n")
}
