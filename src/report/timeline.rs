//! When each step ran and what it had waited for; which chain of steps the whole time went to.

use std::collections::BTreeMap;
use std::time::Duration;

use super::text::clean;
use crate::cluster::NodeName;
use crate::execute::event::{Event, Outcome, Phase};
use crate::plan::Gate;

/// All that is needed to draw a run; times are since the program started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Steps in the order in which they ended.
    pub bars: Vec<Bar>,
    /// Gates in the order in which they opened.
    pub marks: Vec<Mark>,
    /// Phases in the order in which they ended.
    pub phases: Vec<(Phase, Duration, Duration)>,
    begun: BTreeMap<NodeName, Begun>,
    phase_begun: Duration,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar {
    /// Its host.
    pub host: NodeName,
    /// Its title.
    pub step: String,
    /// Why it was done.
    pub why: String,
    /// What it could not start without, and was not there yet.
    pub gates: Vec<Gate>,
    /// When it began.
    pub from: Duration,
    /// When it ended.
    pub to: Duration,
    /// Whether it did what it should.
    pub failed: bool,
}

impl Bar {
    /// How long it ran.
    #[must_use]
    pub fn took(&self) -> Duration {
        self.to.saturating_sub(self.from)
    }
}

/// A gate that opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Which.
    pub gate: Gate,
    /// The host whose step opened it.
    pub host: NodeName,
    /// When.
    pub at: Duration,
}

/// A step that is under way, or waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Begun {
    step: String,
    why: String,
    gates: Vec<Gate>,
    from: Duration,
}

/// A link of the critical path.
#[derive(Debug, Clone, Copy)]
pub struct Link<'a> {
    /// The step.
    pub bar: &'a Bar,
    /// The gate that it waited for last; `None`: it followed on its host.
    pub after: Option<&'a Gate>,
}

impl Timeline {
    /// Takes note of an event that happened at `at`.
    pub fn take(&mut self, at: Duration, event: &Event) {
        match event {
            Event::PhaseStarted { .. } => self.phase_begun = at,
            Event::PhaseFinished { phase, .. } => self.phases.push((*phase, self.phase_begun, at)),
            Event::StepWaiting { host, gates, .. } => {
                self.begun.entry(host.clone()).or_default().gates.clone_from(gates);
            }
            Event::StepStarted { host, step, why } => {
                let begun = self.begun.entry(host.clone()).or_default();
                begun.step = clean(step);
                begun.why = clean(why);
                begun.from = at;
            }
            Event::StepFinished { host, outcome, .. } => {
                let begun = self.begun.remove(host).unwrap_or_default();
                let failed = match outcome {
                    Outcome::Done => false,
                    Outcome::Failed(_) => true,
                    Outcome::NotStarted { .. } => return,
                };
                self.bars.push(Bar {
                    host: host.clone(),
                    step: begun.step,
                    why: begun.why,
                    gates: begun.gates,
                    from: begun.from,
                    to: at,
                    failed,
                });
            }
            Event::GateOpened { gate, by } => self.marks.push(Mark {
                gate: gate.clone(),
                host: by.clone(),
                at,
            }),
            _ => {}
        }
    }

    /// Adds what came after.
    pub fn absorb(&mut self, later: Self) {
        self.bars.extend(later.bars);
        self.marks.extend(later.marks);
        self.phases.extend(later.phases);
    }

    /// The chain of steps that the run could not be shorter than, first to last: the last step to end, what it had
    /// waited for, and so on.
    #[must_use]
    pub fn critical_path(&self) -> Vec<Link<'_>> {
        let mut path = Vec::new();
        let mut last = self.bars.iter().max_by_key(|bar| bar.to);
        while let Some(bar) = last {
            let (before, after) = self.before(bar);
            path.push(Link { bar, after });
            last = before;
        }
        path.reverse();
        path
    }

    /// The step that had to end before this one could begin, and the gate that it opened.
    fn before(&self, bar: &Bar) -> (Option<&Bar>, Option<&Gate>) {
        let own = self
            .bars
            .iter()
            .filter(|other| other.host == bar.host && other.to <= bar.from);
        let own = own.max_by_key(|other| other.to).map(|other| (other, None));
        let awaited = self.marks.iter().filter(|mark| bar.gates.contains(&mark.gate));
        let openers = awaited.filter_map(|mark| {
            let ended = self
                .bars
                .iter()
                .filter(|other| other.host == mark.host && other.to <= mark.at);
            let opener = ended.max_by_key(|other| other.to)?;
            Some((opener, Some(&mark.gate)))
        });
        // Each link began before the next one, so the chain has an end.
        let earlier = |(other, _): &(&Bar, Option<&Gate>)| other.from < bar.from;
        let (before, after) = own
            .into_iter()
            .chain(openers)
            .filter(earlier)
            .max_by_key(|(other, _)| other.to)
            .unzip();
        (before, after.flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(host: &str) -> NodeName {
        NodeName::parse(host).unwrap()
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn run(events: &[(u64, Event)]) -> Timeline {
        let mut timeline = Timeline::default();
        for (at, event) in events {
            timeline.take(seconds(*at), event);
        }
        timeline
    }

    fn starts(host: &str, step: &str) -> Event {
        Event::StepStarted {
            host: name(host),
            step: step.to_owned(),
            why: "it is not there".to_owned(),
        }
    }

    fn ends(host: &str, step: &str) -> Event {
        Event::StepFinished {
            host: name(host),
            step: step.to_owned(),
            outcome: Outcome::Done,
            took: Duration::ZERO,
            files: Vec::new(),
        }
    }

    fn waits(host: &str, gate: Gate) -> Event {
        Event::StepWaiting {
            host: name(host),
            step: "join".to_owned(),
            gates: vec![gate],
        }
    }

    #[test]
    fn the_critical_path_goes_through_gates_and_lanes() {
        let timeline = run(&[
            (0, starts("cp1", "packages")),
            (0, starts("w1", "packages")),
            (4, ends("cp1", "packages")),
            (4, starts("cp1", "init")),
            (9, ends("w1", "packages")),
            (9, waits("w1", Gate::Initialised)),
            (20, ends("cp1", "init")),
            (
                20,
                Event::GateOpened {
                    gate: Gate::Initialised,
                    by: name("cp1"),
                },
            ),
            (20, starts("cp1", "flannel")),
            (20, starts("w1", "join")),
            (22, ends("cp1", "flannel")),
            (30, ends("w1", "join")),
        ]);
        let path: Vec<String> = timeline
            .critical_path()
            .iter()
            .map(|link| format!("{} {} {:?}", link.bar.host, link.bar.step, link.after))
            .collect();
        assert_eq!(
            path,
            ["cp1 packages None", "cp1 init None", "w1 join Some(Initialised)"]
        );
    }

    #[test]
    fn what_was_open_already_is_no_link() {
        let timeline = run(&[
            (0, starts("cp1", "init")),
            (0, starts("w1", "packages")),
            (5, ends("cp1", "init")),
            (
                5,
                Event::GateOpened {
                    gate: Gate::Initialised,
                    by: name("cp1"),
                },
            ),
            (9, ends("w1", "packages")),
            (9, starts("w1", "join")),
            (12, ends("w1", "join")),
        ]);
        let path: Vec<&str> = timeline
            .critical_path()
            .iter()
            .map(|link| link.bar.step.as_str())
            .collect();
        assert_eq!(path, ["packages", "join"]);
    }

    #[test]
    fn a_step_that_never_started_has_no_bar() {
        let not_started = Event::StepFinished {
            host: name("w1"),
            step: "join".to_owned(),
            outcome: Outcome::NotStarted {
                reason: "cp1 failed".to_owned(),
            },
            took: Duration::ZERO,
            files: Vec::new(),
        };
        assert_eq!(run(&[(1, waits("w1", Gate::Initialised)), (3, not_started)]).bars, []);
    }
}
