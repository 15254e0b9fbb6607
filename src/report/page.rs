//! The timeline of a run as one HTML file that needs nothing else: hosts as rows, steps as bars, gates as marks.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

use super::style::Style;
use super::summary::{Summary, phase_name};
use super::text::{clean, span};
use super::timeline::Bar;

/// Why a report is not there.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The file cannot be written.
    #[error("cannot write the report {file}: {source}")]
    Write {
        /// The file.
        file: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The template did not render.
    #[error("cannot render the report: {0}; this is a fault of k8sup, please report it")]
    Render(#[from] minijinja::Error),
}

#[derive(Serialize)]
struct Page {
    title: String,
    headline: String,
    times: String,
    complete: bool,
    any_failed: bool,
    failures: Vec<Failure>,
    ticks: Vec<Tick>,
    phases: Vec<PhaseBand>,
    lanes: Vec<Lane>,
    path: Vec<PathRow>,
    steps: Vec<StepRow>,
    version: &'static str,
    written: String,
}

#[derive(Serialize)]
struct Failure {
    host: String,
    step: String,
    what: String,
    hint: String,
}

#[derive(Serialize)]
struct Tick {
    left: f64,
    label: String,
}

#[derive(Serialize)]
struct PhaseBand {
    left: f64,
    width: f64,
    name: &'static str,
    took: String,
}

#[derive(Serialize)]
struct Lane {
    host: String,
    role: String,
    /// So near to the bottom that its tips go upwards.
    low: bool,
    bars: Vec<BarBox>,
    marks: Vec<MarkSign>,
}

#[derive(Serialize)]
struct BarBox {
    left: f64,
    width: f64,
    step: String,
    why: String,
    from: String,
    took: String,
    gates: Vec<String>,
    failed: bool,
    path: bool,
}

#[derive(Serialize)]
struct MarkSign {
    left: f64,
    gate: String,
    at: String,
}

#[derive(Serialize)]
struct PathRow {
    host: String,
    step: String,
    took: String,
    began: String,
}

#[derive(Serialize)]
struct StepRow {
    from: String,
    host: String,
    step: String,
    took: String,
    gates: Vec<String>,
    failed: bool,
}

/// Steps of a scale that people count in, seconds.
const SCALES: [u64; 11] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800];
const TICKS: u64 = 12;

/// The part of the run that is drawn: what came before the first step, such as a question, is left out.
struct Axis {
    begin: Duration,
    length: Duration,
}

impl Axis {
    fn of(summary: &Summary) -> Self {
        let bars = &summary.timeline.bars;
        let begin = bars.iter().map(|bar| bar.from).min().unwrap_or_default();
        let end = summary
            .total
            .max(bars.iter().map(|bar| bar.to).max().unwrap_or_default());
        Self {
            begin,
            length: end.saturating_sub(begin).max(Duration::from_secs(1)),
        }
    }

    /// Percent of the width, with two digits.
    fn share(&self, part: Duration) -> f64 {
        (part.as_secs_f64() / self.length.as_secs_f64() * 10_000.0).round() / 100.0
    }

    fn left(&self, at: Duration) -> f64 {
        self.share(at.saturating_sub(self.begin))
    }

    fn label(&self, at: Duration) -> String {
        span(at.saturating_sub(self.begin))
    }

    fn ticks(&self) -> Vec<Tick> {
        let seconds = self.length.as_secs();
        let scale = SCALES
            .into_iter()
            .find(|scale| seconds / scale <= TICKS)
            .unwrap_or(3600);
        (0..=seconds / scale)
            .map(|tick| Duration::from_secs(tick * scale))
            .map(|at| Tick {
                left: self.share(at),
                label: if at.as_secs() < 60 {
                    format!("{} s", at.as_secs())
                } else {
                    span(at)
                },
            })
            .collect()
    }
}

/// The page.
///
/// # Errors
/// Only when the template is wrong.
pub fn render(title: &str, summary: &Summary, written: &str) -> Result<String, PageError> {
    let timeline = &summary.timeline;
    let axis = Axis::of(summary);
    let path = timeline.critical_path();
    let gates = |bar: &Bar| bar.gates.iter().map(|gate| format!("until {gate}")).collect::<Vec<_>>();
    let drawn: Vec<_> = summary
        .hosts
        .iter()
        .filter(|host| timeline.bars.iter().any(|bar| bar.host == host.host))
        .collect();
    let lanes = drawn.iter().enumerate().map(|(place, host)| Lane {
        host: host.host.to_string(),
        role: host.role.to_string(),
        low: place >= 4 && place + 3 >= drawn.len(),
        bars: timeline
            .bars
            .iter()
            .filter(|bar| bar.host == host.host)
            .map(|bar| BarBox {
                left: axis.left(bar.from),
                width: axis.share(bar.took()),
                step: bar.step.clone(),
                why: bar.why.clone(),
                from: axis.label(bar.from),
                took: span(bar.took()),
                gates: gates(bar),
                failed: bar.failed,
                path: path.iter().any(|link| std::ptr::eq(link.bar, bar)),
            })
            .collect(),
        marks: timeline
            .marks
            .iter()
            .filter(|mark| mark.host == host.host)
            .map(|mark| MarkSign {
                left: axis.left(mark.at),
                gate: mark.gate.to_string(),
                at: axis.label(mark.at),
            })
            .collect(),
    });
    let mut in_order: Vec<&Bar> = timeline.bars.iter().collect();
    in_order.sort_by_key(|bar| bar.from);
    let page = Page {
        title: title.to_owned(),
        headline: summary.headline(Style::PLAIN),
        times: summary.times(),
        complete: summary.is_complete(),
        any_failed: timeline.bars.iter().any(|bar| bar.failed),
        failures: summary
            .failures
            .iter()
            .map(|error| Failure {
                host: error.host.to_string(),
                step: clean(&error.step),
                what: clean(&error.what),
                hint: clean(&error.hint),
            })
            .collect(),
        ticks: axis.ticks(),
        phases: timeline
            .phases
            .iter()
            .filter(|(_, _, to)| *to > axis.begin)
            .map(|(phase, from, to)| PhaseBand {
                left: axis.left(*from),
                width: axis.share(to.saturating_sub(axis.begin.max(*from))),
                name: phase_name(*phase),
                took: span(to.saturating_sub(*from)),
            })
            .collect(),
        lanes: lanes.collect(),
        path: path
            .iter()
            .map(|link| PathRow {
                host: link.bar.host.to_string(),
                step: link.bar.step.clone(),
                took: span(link.bar.took()),
                began: link.after.map_or_else(String::new, |gate| format!("when {gate}")),
            })
            .collect(),
        steps: in_order
            .into_iter()
            .map(|bar| StepRow {
                from: axis.label(bar.from),
                host: bar.host.to_string(),
                step: bar.step.clone(),
                took: span(bar.took()),
                gates: gates(bar),
                failed: bar.failed,
            })
            .collect(),
        version: env!("CARGO_PKG_VERSION"),
        written: written.to_owned(),
    };
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // The name decides that what hosts have said is escaped.
    let template = include_str!("../../templates/report.html.j2");
    Ok(environment.render_named_str("report.html", template, Serde(page))?)
}

/// Writes the page in one step, so that nobody sees half of it.
///
/// # Errors
/// When it cannot be written.
pub fn write(file: &Path, title: &str, summary: &Summary) -> Result<(), PageError> {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    let page = render(title, summary, &now)?;
    let folder = file
        .parent()
        .filter(|folder| *folder != Path::new(""))
        .unwrap_or(Path::new("."));
    let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut new| {
        new.write_all(page.as_bytes())?;
        new.persist(file).map_err(|error| error.error)
    });
    written.map(|_| ()).map_err(|source| PageError::Write {
        file: file.display().to_string(),
        source,
    })
}
