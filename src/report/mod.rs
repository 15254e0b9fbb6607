//! Tells the person what happens: events become bars, lines or JSON, and a summary.
//!
//! Only this module prints. It gets events and values and never calls back. Standard output
//! carries data that was asked for, standard error everything else.

pub mod bars;
pub mod check_view;
pub mod console;
pub mod failure;
pub mod json;
pub mod ledger;
pub mod lines;
pub mod logfile;
pub mod page;
pub mod plan_view;
pub mod screen;
pub mod status;
pub mod style;
pub mod summary;
pub mod table;
pub mod text;
pub mod timeline;

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::Receiver;
use tokio::time::MissedTickBehavior;

use crate::execute::event::Event;
use bars::Bars;
pub use console::Console;
use json::Json;
use ledger::Ledger;
use lines::Lines;
pub use logfile::LogFile;
pub use style::{ColorWhen, Style};
pub use summary::Summary;

/// Language of standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// For a person.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Bars that move.
    Bars,
    /// Lines that stay.
    Lines,
    /// JSON lines.
    Json,
}

impl Mode {
    /// Bars need a terminal that can move its cursor and that nobody records.
    #[must_use]
    pub fn decide(format: LogFormat, verbose: u8, terminal: bool) -> Self {
        match format {
            LogFormat::Json => Self::Json,
            LogFormat::Text if terminal && verbose == 0 => Self::Bars,
            LogFormat::Text => Self::Lines,
        }
    }
}

/// Standard error is a terminal that bars can be drawn on.
fn can_draw() -> bool {
    io::stderr().is_terminal()
        && std::env::var_os("CI").is_none()
        && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}

/// How this command reports, decided once.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How progress is shown.
    pub mode: Mode,
    /// Number of `-v`.
    pub verbose: u8,
    /// For standard error.
    pub style: Style,
    /// For standard output.
    pub data_style: Style,
    /// When the command began; times are counted from here.
    pub started: Instant,
    /// The debug log, where there is one.
    pub log: Option<LogFile>,
}

impl Settings {
    /// From the flags and the terminal.
    #[must_use]
    pub fn decide(format: LogFormat, color: ColorWhen, verbose: u8) -> Self {
        Self {
            mode: Mode::decide(format, verbose, can_draw()),
            verbose,
            style: Style::for_stderr(color),
            data_style: Style::for_stdout(color),
            started: Instant::now(),
            log: None,
        }
    }
}

/// Follows one run.
pub struct Reporter {
    settings: Settings,
    ledger: Ledger,
    view: View,
    out: Box<dyn Write + Send>,
}

enum View {
    Bars(Box<Bars>),
    Lines(Lines),
    Json(Json),
}

impl Reporter {
    /// On standard error.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let view = match settings.mode {
            Mode::Bars => View::Bars(Box::new(Bars::on_stderr(settings.style, settings.started.elapsed()))),
            Mode::Lines => View::Lines(Lines::new(settings.style, settings.verbose)),
            Mode::Json => View::Json(Json::default()),
        };
        Self {
            settings,
            ledger: Ledger::default(),
            view,
            out: Box::new(io::stderr()),
        }
    }

    /// Shows events until their senders are gone.
    pub async fn run(mut self, mut events: Receiver<Event>) -> Summary {
        let mut ticks = tokio::time::interval(bars::REFRESH);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => {
                        let at = self.now();
                        self.event(at, &event);
                    }
                    None => break,
                },
                _ = ticks.tick() => {
                    let at = self.now();
                    self.tick(at);
                }
            }
        }
        let end = self.now();
        self.finish(end)
    }

    fn now(&self) -> Duration {
        self.settings.started.elapsed()
    }

    fn event(&mut self, at: Duration, event: &Event) {
        self.log(at, event);
        self.ledger.take(at, event);
        match &mut self.view {
            View::Bars(bars) => bars.event(event, &self.ledger),
            View::Lines(lines) => {
                let text = lines.event(at, event, &self.ledger);
                self.write(&text);
            }
            View::Json(json) => {
                let text = json.event(at, event);
                self.write(&text);
            }
        }
    }

    fn tick(&mut self, at: Duration) {
        let text = match &mut self.view {
            View::Bars(bars) => {
                bars.tick(at, &self.ledger);
                None
            }
            View::Lines(lines) => lines.tick(at, &self.ledger),
            View::Json(json) => json.tick(at, &self.ledger),
        };
        if let Some(text) = text {
            self.write(&text);
        }
    }

    fn finish(mut self, at: Duration) -> Summary {
        if let View::Bars(bars) = &mut self.view {
            bars.finish();
        }
        let mut summary = self.ledger.summary(at);
        summary.log = self.settings.log.as_ref().map(|log| log.path().to_owned());
        summary
    }

    /// The first line that cannot be written ends the log, with a warning.
    fn log(&mut self, at: Duration, event: &Event) {
        let Some(log) = &self.settings.log else { return };
        if let Err(error) = log.event(at, event) {
            self.settings.log = None;
            let message = console::chain(&error);
            match &self.view {
                View::Bars(bars) => bars.print(&format!("{} {message}", self.settings.style.warn("warning:"))),
                View::Lines(_) => self.write(&format!("{} {message}\n", self.settings.style.warn("warning:"))),
                View::Json(_) => self.write(&json::named_line(at, "warning", [("message", message.into())])),
            }
        }
    }

    /// A standard error that went away is no reason to stop the run.
    fn write(&mut self, text: &str) {
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }
}

#[cfg(test)]
mod tests;
