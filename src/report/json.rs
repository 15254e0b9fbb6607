//! Events as JSON, one a line: for `--log-format json` and for the debug log.
//!
//! Every line has `at` (seconds since the command began) and `event`; the rest is the
//! event's own. Lines that are no event of the run are `heartbeat`, `message` and `summary`.

use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

use super::ledger::Ledger;
use super::lines::{HEARTBEAT, heartbeat};

/// An event as one line, ending in a newline.
#[must_use]
pub fn event_line<T: Serialize>(at: Duration, event: &T) -> String {
    match serde_json::to_value(event) {
        Ok(Value::Object(fields)) => finish(at, fields),
        Ok(other) => named_line(at, "value", [("value", other)]),
        Err(error) => named_line(at, "unprintable", [("error", error.to_string().into())]),
    }
}

/// A line that is no event of the executor's.
#[must_use]
pub fn named_line<const N: usize>(at: Duration, name: &str, fields: [(&str, Value); N]) -> String {
    let mut map = Map::new();
    map.insert("event".to_owned(), name.into());
    map.extend(fields.map(|(key, value)| (key.to_owned(), value)));
    finish(at, map)
}

fn finish(at: Duration, fields: Map<String, Value>) -> String {
    let mut map = Map::new();
    let millis = (at.as_secs_f64() * 1000.0).round() / 1000.0;
    map.insert("at".to_owned(), millis.into());
    map.extend(fields);
    escape(&Value::Object(map).to_string()) + "\n"
}

/// JSON leaves DEL and the C1 controls as they are; a terminal would obey them.
#[must_use]
pub fn escape(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if matches!(c, '\u{7f}'..='\u{9f}') {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// Speaks up after a silence.
#[derive(Debug, Default)]
pub struct Json {
    last_spoke: Duration,
}

impl Json {
    /// The line of an event.
    pub fn event<T: Serialize>(&mut self, at: Duration, event: &T) -> String {
        self.last_spoke = at;
        event_line(at, event)
    }

    /// A sign of life after a silence.
    pub fn tick(&mut self, at: Duration, ledger: &Ledger) -> Option<String> {
        if at.saturating_sub(self.last_spoke) < HEARTBEAT.saturating_sub(Duration::from_millis(500)) {
            return None;
        }
        self.last_spoke = at;
        Some(named_line(at, "heartbeat", [("message", heartbeat(at, ledger).into())]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::NodeName;
    use crate::execute::event::Event;
    use crate::remote::Stream;

    #[test]
    fn an_event_is_one_line_that_no_terminal_obeys() {
        let event = Event::Output {
            host: NodeName::parse("cp1").unwrap(),
            stream: Stream::Stdout,
            text: "two\nlines \u{1b}[31m \u{9b}2J".to_owned(),
        };
        let line = event_line(Duration::from_millis(1_234), &event);
        insta::assert_snapshot!(line.trim_end(), @r#"{"at":1.234,"event":"output","host":"cp1","stream":"stdout","text":"two\nlines \u001b[31m \u009b2J"}"#);
        let back: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(back["text"], "two\nlines \u{1b}[31m \u{9b}2J");
    }

    #[test]
    fn silence_is_broken() {
        let mut json = Json::default();
        let ledger = Ledger::default();
        assert_eq!(json.tick(Duration::from_secs(9), &ledger), None);
        let line = json.tick(Duration::from_secs(10), &ledger).unwrap();
        insta::assert_snapshot!(line.trim_end(), @r#"{"at":10.0,"event":"heartbeat","message":"still at work"}"#);
        assert_eq!(json.tick(Duration::from_secs(19), &ledger), None);
    }
}
