//! The end of a run: what is done, what is not, and how long it took.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::failure::{entry, line, push_hint};
use super::style::Style;
use super::table::{Cell, Table};
use super::text::{clean, count, span};
use super::timeline::Timeline;
use crate::cluster::{NodeName, Role};
use crate::execute::event::{Phase, StepError};

/// What became of a run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Summary {
    /// Every planned lane, in its order.
    pub hosts: Vec<HostSummary>,
    /// Failed steps in the order in which they failed.
    pub failures: Vec<StepError>,
    /// Steps that were not started.
    pub not_started: Vec<NotStarted>,
    /// Hosts that were given up.
    pub unreachable: Vec<Unreached>,
    /// Files that were left as somebody has changed them.
    pub kept: Vec<Kept>,
    /// Time by phase, in order.
    pub phases: Vec<PhaseTime>,
    /// Time from the beginning to the end.
    #[serde(serialize_with = "seconds")]
    pub total: Duration,
    /// The person asked to stop.
    pub interrupted: bool,
    /// The debug log.
    pub log: Option<PathBuf>,
    /// When each step ran.
    #[serde(skip)]
    pub timeline: Timeline,
}

/// One lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostSummary {
    /// The host.
    pub host: NodeName,
    /// What it is for.
    pub role: Role,
    /// Steps planned.
    pub total: usize,
    /// Steps done.
    pub done: usize,
    /// Steps failed.
    pub failed: usize,
    /// Steps not started.
    pub not_started: usize,
}

/// Steps of one host that were not started for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotStarted {
    /// The host.
    pub host: NodeName,
    /// Titles of the steps; empty for a step that nothing was heard of.
    pub steps: Vec<String>,
    /// Why.
    pub reason: String,
}

/// A host that was given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unreached {
    /// The host.
    pub host: NodeName,
    /// Why.
    pub reason: String,
}

/// A file that was left as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// The host.
    pub host: NodeName,
    /// The file, and why.
    pub what: String,
}

/// Time of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PhaseTime {
    /// The phase.
    pub phase: Phase,
    /// Its time.
    #[serde(serialize_with = "seconds")]
    pub took: Duration,
}

/// Steps that took less are not told of.
const WORTH_TELLING: Duration = Duration::from_secs(1);

/// How a phase is called in front of a person.
#[must_use]
pub fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Observe => "observe",
        Phase::Plan => "plan",
        Phase::Execute => "execute",
        Phase::Verify => "verify",
        Phase::Recheck => "recheck",
    }
}

impl Summary {
    /// Every planned step is done and every host was there.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.failures.is_empty() && self.not_started.is_empty() && self.unreachable.is_empty() && !self.interrupted
    }

    /// Steps done, failed, not started.
    #[must_use]
    pub fn steps(&self) -> (usize, usize, usize) {
        self.hosts.iter().fold((0, 0, 0), |(done, failed, not_started), host| {
            (done + host.done, failed + host.failed, not_started + host.not_started)
        })
    }

    /// The same of a run that is only about these hosts: that others, which had no part in it, are out of reach is no
    /// matter of it.
    #[must_use]
    pub fn about(&self, only: Option<&BTreeSet<NodeName>>) -> Self {
        let mut summary = self.clone();
        if let Some(only) = only {
            let had_part = |host: &NodeName| self.hosts.iter().any(|lane| &lane.host == host);
            summary
                .unreachable
                .retain(|unreached| only.contains(&unreached.host) || had_part(&unreached.host));
        }
        summary
    }

    /// Adds what came after, so that a run followed in parts ends in one summary.
    pub fn absorb(&mut self, later: Self) {
        let Self {
            hosts,
            failures,
            not_started,
            unreachable,
            kept,
            phases,
            total,
            interrupted,
            log,
            timeline,
        } = later;
        for host in hosts {
            match self.hosts.iter_mut().find(|known| known.host == host.host) {
                Some(known) => {
                    known.total += host.total;
                    known.done += host.done;
                    known.failed += host.failed;
                    known.not_started += host.not_started;
                }
                None => self.hosts.push(host),
            }
        }
        self.failures.extend(failures);
        self.not_started.extend(not_started);
        for unreached in unreachable {
            // Once a host: how it was lost says more than that a later look did not get there.
            if self.unreachable.iter().all(|known| known.host != unreached.host) {
                self.unreachable.push(unreached);
            }
        }
        self.kept.extend(kept);
        self.phases.extend(phases);
        // Times are counted from the beginning of the command, so the later one holds both.
        self.total = self.total.max(total);
        self.interrupted |= interrupted;
        self.log = log.or(self.log.take());
        self.timeline.absorb(timeline);
    }

    /// As text, ending in a newline.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        let mut out = String::new();
        line(&mut out, &self.headline(style));
        self.push_hosts(&mut out, style);
        if !self.unreachable.is_empty() {
            line(&mut out, &format!("\n{}", style.bold("Unreachable:")));
            for Unreached { host, reason } in &self.unreachable {
                let text = format!("{host}: {}", clean(reason));
                entry(&mut out, "  ", &style.bad("✗"), &text, style);
            }
        }
        if !self.failures.is_empty() {
            line(&mut out, &format!("\n{}", style.bold("Failed:")));
            for error in &self.failures {
                let what = clean(&format!("{}: {}: {}", error.host, error.step, error.what));
                entry(&mut out, "  ", &style.bad("✗"), &what, style);
                push_hint(&mut out, &error.hint, "    ", style);
            }
        }
        self.push_not_started(&mut out, style);
        if !self.kept.is_empty() {
            line(&mut out, &format!("\n{}", style.bold("Kept:")));
            for Kept { host, what } in &self.kept {
                entry(
                    &mut out,
                    "  ",
                    &style.warn("!"),
                    &format!("{host}: {}", clean(what)),
                    style,
                );
            }
        }
        if self.interrupted {
            line(&mut out, "\nRun the same command again to go on.");
        }
        self.push_critical_path(&mut out, style);
        out.push('\n');
        entry(&mut out, "", "Time:", &self.times(), style);
        if let Some(log) = &self.log
            && !self.is_complete()
        {
            line(&mut out, &format!("Debug log: {}", log.display()));
        }
        out
    }

    pub(super) fn headline(&self, style: Style) -> String {
        let (done, failed, not_started) = self.steps();
        let total: usize = self.hosts.iter().map(|host| host.total).sum();
        let mut parts = vec![format!("{done} of {} done", count(total, "step"))];
        if failed > 0 {
            parts.push(format!("{failed} failed"));
        }
        if not_started > 0 {
            parts.push(format!("{not_started} not started"));
        }
        if !self.unreachable.is_empty() {
            parts.push(format!("{} unreachable", count(self.unreachable.len(), "host")));
        }
        let what = parts.join(", ");
        let time = span(self.total);
        if self.interrupted {
            format!("{}: {what}", style.warn(&format!("Interrupted after {time}")))
        } else if self.is_complete() {
            format!("{}: {what}", style.good(&format!("Done in {time}")))
        } else {
            format!("{}: {what}", style.bad(&format!("Not finished after {time}")))
        }
    }

    fn push_hosts(&self, out: &mut String, style: Style) {
        if self.hosts.is_empty() {
            return;
        }
        let mut table = Table::without_header();
        for host in &self.hosts {
            let HostSummary {
                host,
                role,
                total,
                done,
                failed,
                not_started,
            } = host;
            let mut parts = vec![format!("{done} of {total} done")];
            if *failed > 0 {
                parts.push(format!("{failed} failed"));
            }
            if *not_started > 0 {
                parts.push(format!("{not_started} not started"));
            }
            let state = parts.join(", ");
            let (mark, cell) = if *failed > 0 {
                (Cell::bad("✗"), Cell::bad(&state))
            } else if *not_started > 0 {
                (Cell::warn("-"), Cell::warn(&state))
            } else {
                (Cell::good("✓"), Cell::plain(&state))
            };
            table.row([mark, Cell::plain(host.as_str()), Cell::dim(&role.to_string()), cell]);
        }
        out.push('\n');
        out.push_str(&table.render("  ", style));
    }

    /// By reason, so that one cause is named once.
    fn push_not_started(&self, out: &mut String, style: Style) {
        if self.not_started.is_empty() {
            return;
        }
        line(out, &format!("\n{}", style.bold("Not started:")));
        let mut reasons: Vec<&str> = Vec::new();
        for entry in &self.not_started {
            if !reasons.contains(&entry.reason.as_str()) {
                reasons.push(&entry.reason);
            }
        }
        for reason in reasons {
            entry(out, "  ", &style.warn("-"), &clean(reason), style);
            let mut hosts: Vec<(&NodeName, Vec<&str>)> = Vec::new();
            for NotStarted { host, steps, reason: _ } in self.not_started.iter().filter(|entry| entry.reason == reason)
            {
                let steps = steps.iter().map(String::as_str);
                match hosts.iter_mut().find(|(known, _)| *known == host) {
                    Some((_, known)) => known.extend(steps),
                    None => hosts.push((host, steps.collect())),
                }
            }
            for (host, steps) in hosts {
                let named: Vec<String> = steps
                    .iter()
                    .filter(|step| !step.is_empty())
                    .map(|step| clean(step))
                    .collect();
                let text = if named.len() == steps.len() {
                    named.join(", ")
                } else {
                    count(steps.len(), "step")
                };
                entry(out, "      ", &format!("{host}:"), &text, style);
            }
        }
    }

    /// What the time went to, where it took long enough to ask.
    fn push_critical_path(&self, out: &mut String, style: Style) {
        let path = self.timeline.critical_path();
        let long: Vec<_> = path.iter().filter(|link| link.bar.took() >= WORTH_TELLING).collect();
        if long.len() < 2 || !self.is_complete() {
            return;
        }
        line(
            out,
            &format!("\n{}", style.bold("What the time went to, one after the other:")),
        );
        let mut table = Table::without_header();
        for link in long {
            let after = link.after.map(|gate| format!("when {gate}")).unwrap_or_default();
            table.row([
                Cell::plain(link.bar.host.as_str()),
                Cell::plain(&link.bar.step),
                Cell::plain(&span(link.bar.took())),
                Cell::dim(&after),
            ]);
        }
        out.push_str(&table.render("  ", style));
    }

    pub(super) fn times(&self) -> String {
        let mut phases: Vec<PhaseTime> = Vec::new();
        for time in &self.phases {
            match phases.iter_mut().find(|known| known.phase == time.phase) {
                Some(known) => known.took += time.took,
                None => phases.push(*time),
            }
        }
        let mut parts: Vec<String> = phases
            .iter()
            .map(|time| format!("{} {}", phase_name(time.phase), span(time.took)))
            .collect();
        parts.push(format!("total {}", span(self.total)));
        parts.join(", ")
    }
}

fn seconds<S: serde::Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value.as_secs_f64() * 1000.0).round() / 1000.0)
}
