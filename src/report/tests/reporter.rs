//! The reporter, which follows the events to their end.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::{host, story};
use crate::report::{Mode, Reporter, Settings, Style};

/// What a reporter wrote.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_reporter_follows_until_the_senders_are_gone() {
    let settings = Settings {
        mode: Mode::Json,
        verbose: 0,
        style: Style::PLAIN,
        data_style: Style::PLAIN,
        started: Instant::now(),
        log: None,
    };
    let paper = Paper::default();
    let mut reporter = Reporter::new(settings);
    reporter.out = Box::new(paper.clone());
    let (sender, receiver) = tokio::sync::mpsc::channel(2);
    let run = tokio::spawn(reporter.run(receiver));
    let sent = story().len();
    for (_, event) in story() {
        sender.send(event).await.unwrap();
    }
    drop(sender);
    let summary = run.await.unwrap();
    assert_eq!(summary.failures.len(), 1);
    assert_eq!(summary.unreachable[0].host, host("w2"));
    let text = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
    assert_eq!(text.lines().count(), sent);
    for line in text.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(value["at"].is_f64() && value["event"].is_string(), "{line}");
    }
}
