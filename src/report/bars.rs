//! Bars on a terminal: one for all steps and at most eight busy hosts, finished steps above.
//!
//! Drawing is left to indicatif; what the lines say is decided here.

use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::failure::step_block;
use super::ledger::Ledger;
use super::lines::{INTERRUPTED, in_vain};
use super::screen::Screen;
use super::style::Style;
use super::summary::phase_name;
use super::text::{clean, columns, count, fit, span};
use crate::cluster::NodeName;
use crate::execute::event::{Event, Outcome};

/// Nothing is drawn before: what is over sooner needs no bar.
const FIRST_DRAW: Duration = Duration::from_millis(500);
/// Time between two drawings.
pub const REFRESH: Duration = Duration::from_millis(100);
/// Busy hosts with a line of their own.
const BUSY_HOSTS: usize = 8;
/// Columns of a step's title, so that the last line of output has room on 80 columns.
const TITLE_WIDTH: usize = 32;
/// Columns of a host's name.
const NAME_WIDTH: usize = 20;
/// Cells of the overall bar.
const BAR_WIDTH: usize = 20;

/// The drawing.
pub struct Bars {
    multi: MultiProgress,
    style: Style,
    line: ProgressStyle,
    overall: Option<ProgressBar>,
    hosts: Vec<ProgressBar>,
    note: Option<String>,
    begun: Duration,
}

impl Bars {
    /// On standard error, for a run that begins at `begun`.
    #[must_use]
    pub fn on_stderr(style: Style, begun: Duration) -> Self {
        let screen = Box::new(Screen::new(console::Term::buffered_stderr()));
        Self::new(ProgressDrawTarget::term_like_with_hz(screen, 10), style, begun)
    }

    /// On any target.
    #[must_use]
    pub fn new(target: ProgressDrawTarget, style: Style, begun: Duration) -> Self {
        // `wide_msg` cuts to the terminal's width, colours left whole; a template that does
        // not parse would only cost us that.
        let line = ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
        Self {
            multi: MultiProgress::with_draw_target(target),
            style,
            line,
            overall: None,
            hosts: Vec::new(),
            note: None,
            begun,
        }
    }

    /// Prints what stays of an event that `ledger` has already taken.
    pub fn event(&mut self, event: &Event, ledger: &Ledger) {
        let style = self.style;
        let host_line = |mark: String, host: &NodeName, text: String| {
            format!(
                "{mark} {}  {text}",
                fit(host.as_str(), ledger.name_width().min(NAME_WIDTH))
            )
        };
        let text = match event {
            // Why is told with what follows from it, together with what to do.
            Event::Unreachable { host, reason: _ } => host_line(style.bad("✗"), host, "lost".to_owned()),
            Event::Retrying {
                host,
                step,
                reason,
                pause,
            } => {
                let text = format!("{}  again in {}: {}", clean(step), span(*pause), clean(reason));
                host_line(style.warn("↻"), host, text)
            }
            Event::StepFinished {
                host,
                step,
                outcome,
                took,
                files: _,
            } => match outcome {
                Outcome::Done => host_line(
                    style.good("✓"),
                    host,
                    format!("{}  {}", clean(step), style.dim(&span(*took))),
                ),
                Outcome::Failed(error) => format!("\n{}\n", step_block(error, style)),
                // Named together, by reason, in the summary.
                Outcome::NotStarted { reason: _ } => return,
            },
            // What nobody waits for is told by the summary.
            Event::GateClosed { gate, reason: _ } if !ledger.is_awaited(gate) => return,
            Event::GateClosed { gate, reason } => {
                format!("{} {}: {}", style.bad("✗"), style.bad(&in_vain(gate)), clean(reason))
            }
            Event::Note { host, message } => {
                let text = match host {
                    Some(host) => host_line(style.dim("·"), host, clean(message)),
                    None => format!("{} {}", style.dim("·"), clean(message)),
                };
                // What is waited for is said again and again; once is enough here.
                if self.note.as_ref() == Some(&text) {
                    return;
                }
                self.note = Some(text.clone());
                text
            }
            Event::Interrupted => style.warn(INTERRUPTED),
            Event::PhaseStarted { .. }
            | Event::PhaseFinished { .. }
            | Event::Planned { .. }
            | Event::Connected { .. }
            | Event::StepWaiting { .. }
            | Event::StepStarted { .. }
            | Event::Output { .. }
            | Event::GateOpened { .. } => return,
        };
        self.print(&text);
    }

    /// Prints a line above the bars.
    pub fn print(&self, text: &str) {
        // A terminal that went away is no reason to stop the run.
        let _ = self.multi.println(text);
    }

    /// Draws the state of things.
    pub fn tick(&mut self, at: Duration, ledger: &Ledger) {
        if at < self.begun + FIRST_DRAW {
            return;
        }
        let overall = match &self.overall {
            Some(bar) => bar,
            None => self.overall.insert(add(&self.multi, &self.line)),
        };
        let running = ledger.running();
        let kept = running.len().min(self.hosts.len());
        let fewer = kept < self.hosts.len();
        for bar in self.hosts.drain(kept..) {
            self.multi.remove(&bar);
        }
        set(overall, overall_line(at, ledger, self.style));
        if fewer {
            // Removing alone draws nothing.
            overall.tick();
        }
        let name_width = running
            .iter()
            .map(|(host, ..)| columns(host.as_str()))
            .max()
            .unwrap_or(0)
            .min(NAME_WIDTH);
        let title_width = running
            .iter()
            .map(|(_, step, ..)| columns(step))
            .max()
            .unwrap_or(0)
            .min(TITLE_WIDTH);
        for (slot, (host, step, since, last)) in running.into_iter().take(BUSY_HOSTS).enumerate() {
            let line = format!(
                "  {}  {}  {:>6}  {}",
                self.style.bold(&fit(host.as_str(), name_width)),
                fit(step, title_width),
                whole_seconds(at.saturating_sub(since)),
                self.style.dim(last),
            );
            if slot == self.hosts.len() {
                self.hosts.push(add(&self.multi, &self.line));
            }
            set(&self.hosts[slot], line);
        }
    }

    /// Takes the bars away; what was printed stays.
    pub fn finish(&mut self) {
        for bar in self.hosts.drain(..).chain(self.overall.take()) {
            self.multi.remove(&bar);
        }
        let _ = self.multi.clear();
    }
}

/// A run that is not followed to its end (the person stopped it) leaves nothing on the terminal either.
impl Drop for Bars {
    fn drop(&mut self) {
        self.finish();
    }
}

fn add(multi: &MultiProgress, style: &ProgressStyle) -> ProgressBar {
    let bar = multi.add(ProgressBar::new_spinner());
    bar.set_style(style.clone());
    bar
}

/// Draws only what changed.
fn set(bar: &ProgressBar, line: String) {
    if bar.message() != line {
        bar.set_message(line);
    }
}

fn overall_line(at: Duration, ledger: &Ledger, style: Style) -> String {
    let (done, failed, total) = ledger.steps();
    let phase = ledger.phase.map_or("", |(phase, _)| phase_name(phase));
    let mut parts = Vec::new();
    if total > 0 {
        parts.push(format!(
            "{}  {done}/{} {:>6}",
            bar(done, total),
            count(total, "step"),
            whole_seconds(at)
        ));
        let (running, waiting) = (ledger.running().len(), ledger.waiting().len());
        if running > 0 {
            parts.push(format!("{running} running"));
        }
        if waiting > 0 {
            parts.push(format!("{waiting} waiting"));
        }
        if failed > 0 {
            parts.push(style.bad(&format!("{failed} failed")));
        }
    } else {
        parts.push(whole_seconds(at));
        if ledger.connected > 0 {
            parts.push(format!("{} reached", count(ledger.connected, "host")));
        }
    }
    format!("{} {}", style.accent(&format!("{phase:<7}")), parts.join(", "))
}

fn bar(done: usize, total: usize) -> String {
    let full = (done * BAR_WIDTH).checked_div(total).unwrap_or(0).min(BAR_WIDTH);
    format!("{}{}", "━".repeat(full), "─".repeat(BAR_WIDTH - full))
}

/// Tenths would flicker.
fn whole_seconds(time: Duration) -> String {
    if time < Duration::from_secs(60) {
        format!("{}s", time.as_secs())
    } else {
        span(time)
    }
}
