//! The two streams of a command outside a run: data, messages, warnings, errors.

use std::error::Error;
use std::io::{self, Write};

use serde_json::Value;

use super::failure::{entry, push_hint};
use super::json::named_line;
use super::text::clean;
use super::{Mode, Reporter, Settings, Style, Summary};
use crate::execute::event::Event;

/// Prints for one command. While a [`Reporter`] draws, only the reporter may print.
#[derive(Debug, Clone)]
pub struct Console {
    settings: Settings,
}

impl Console {
    /// As the settings say.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }

    /// How this command reports.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Colours of standard error.
    #[must_use]
    pub fn style(&self) -> Style {
        self.settings.style
    }

    /// Colours of standard output.
    #[must_use]
    pub fn data_style(&self) -> Style {
        self.settings.data_style
    }

    /// Data that was asked for, on standard output.
    ///
    /// # Errors
    /// When it cannot be written. A reader that has seen enough (`| head`) is none.
    pub fn data(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }

    /// JSON that was asked for, indented, on standard output.
    ///
    /// # Errors
    /// As [`Console::data`].
    pub fn data_json(&self, value: &Value) -> io::Result<()> {
        self.data(&(super::json::escape(&format!("{value:#}")) + "\n"))
    }

    /// Text that is ours and ends in a newline, such as a rendered view; nothing when empty.
    pub fn say(&self, text: &str) {
        if text.is_empty() || self.settings.mode == Mode::Json && text.trim().is_empty() {
            return;
        }
        let line = match self.settings.mode {
            Mode::Json => self.json("message", [("message", text.trim_end().into())]),
            Mode::Bars | Mode::Lines => text.to_owned(),
        };
        write(&line);
    }

    /// Something that is not as it should be but stops nothing.
    pub fn warn(&self, message: &str) {
        let message = clean(message);
        let line = match self.settings.mode {
            Mode::Json => self.json("warning", [("message", message.into())]),
            Mode::Bars | Mode::Lines => {
                let mut out = String::new();
                entry(&mut out, "", &self.style().warn("warning:"), &message, self.style());
                out
            }
        };
        write(&line);
    }

    /// What to do, for warnings that were shown together.
    pub fn hint(&self, hint: &str) {
        let hint = clean(hint);
        let line = match self.settings.mode {
            Mode::Json => self.json("message", [("message", format!("hint: {hint}").into())]),
            Mode::Bars | Mode::Lines => {
                let mut out = String::new();
                push_hint(&mut out, &hint, "", self.style());
                out
            }
        };
        write(&line);
    }

    /// Why the command failed, with all its causes, and what to do.
    pub fn fail(&self, error: &dyn Error, hint: Option<&str>) {
        let message = chain(error);
        let line = match self.settings.mode {
            Mode::Json => self.json("error", [("message", message.into()), ("hint", hint.into())]),
            Mode::Bars | Mode::Lines => {
                let mut out = String::new();
                let mut lines = message.lines();
                entry(
                    &mut out,
                    "",
                    &self.style().bad("error:"),
                    lines.next().unwrap_or_default(),
                    self.style(),
                );
                for line in lines {
                    entry(&mut out, "", "", line, self.style());
                }
                if let Some(hint) = hint {
                    out.push('\n');
                    push_hint(&mut out, hint, "", self.style());
                }
                out
            }
        };
        write(&line);
    }

    /// The end of a run.
    pub fn summary(&self, summary: &Summary) {
        let line = match self.settings.mode {
            Mode::Json => match serde_json::to_value(summary) {
                Ok(value) => self.json("summary", [("summary", value)]),
                Err(error) => self.json("unprintable", [("error", error.to_string().into())]),
            },
            Mode::Bars | Mode::Lines => format!("\n{}", summary.render(self.style())),
        };
        write(&line);
    }

    /// Shows events until their senders are gone.
    pub async fn follow(&self, events: tokio::sync::mpsc::Receiver<Event>) -> Summary {
        Reporter::new(self.settings.clone()).run(events).await
    }

    fn json<const N: usize>(&self, name: &str, fields: [(&str, Value); N]) -> String {
        named_line(self.settings.started.elapsed(), name, fields)
    }
}

/// An error and its causes in one line; a cause that its effect already names is left out.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text.lines().map(clean).collect::<Vec<_>>().join("\n")
}

/// A standard error that went away is no reason to stop.
fn write(text: &str) {
    let mut out = io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("failed to read {path}")]
    struct Outer {
        path: &'static str,
        #[source]
        source: io::Error,
    }

    #[test]
    fn an_error_names_its_causes_once() {
        let error = Outer {
            path: "inventory.yaml",
            source: io::Error::other("disk \u{1b}[31mon fire"),
        };
        assert_eq!(chain(&error), "failed to read inventory.yaml: disk on fire");
    }
}
