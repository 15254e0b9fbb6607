//! What a command prints, kept within bounds and cut into lines.

use std::collections::VecDeque;

use crate::remote::{Line, Lines, Stream};

/// Longer lines are cut.
const LONGEST_LINE: usize = 4 * 1024;
/// More standard output is dropped.
const MOST_STDOUT: usize = 8 * 1024 * 1024;
/// Of standard error the end is kept.
const MOST_STDERR: usize = 64 * 1024;
/// Lines that wait for a slow reader; the oldest go first.
const MOST_WAITING: usize = 1024;

/// Collects both streams of one command.
#[derive(Debug)]
pub(super) struct Collector {
    stdout: Vec<u8>,
    dropped: bool,
    stderr: Vec<u8>,
    cutters: [Cutter; 2],
    waiting: VecDeque<Line>,
    wanted: bool,
}

impl Collector {
    /// Lines are only made when somebody wants them.
    pub(super) fn new(wanted: bool) -> Self {
        Self {
            stdout: Vec::new(),
            dropped: false,
            stderr: Vec::new(),
            cutters: [Cutter::default(), Cutter::default()],
            waiting: VecDeque::new(),
            wanted,
        }
    }

    pub(super) fn push(&mut self, stream: Stream, data: &[u8]) {
        match stream {
            Stream::Stdout => {
                let room = MOST_STDOUT - self.stdout.len();
                self.dropped |= data.len() > room;
                self.stdout.extend_from_slice(&data[..data.len().min(room)]);
            }
            Stream::Stderr => {
                self.stderr.extend_from_slice(data);
                if self.stderr.len() > 2 * MOST_STDERR {
                    self.stderr.drain(..self.stderr.len() - MOST_STDERR);
                }
            }
        }
        if self.wanted {
            let cutter = &mut self.cutters[usize::from(stream == Stream::Stderr)];
            let waiting = &mut self.waiting;
            cutter.push(data, &mut |text| keep_waiting(waiting, Line { stream, text }));
        }
    }

    /// Takes the lines without a newline at the very end.
    pub(super) fn finish(&mut self) {
        for (stream, cutter) in [Stream::Stdout, Stream::Stderr].into_iter().zip(&mut self.cutters) {
            if let Some(text) = cutter.rest() {
                keep_waiting(&mut self.waiting, Line { stream, text });
            }
        }
    }

    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Hands out the oldest waiting line as soon as the reader takes it. Nothing is lost when
    /// the future is dropped. Without a reader the lines are dropped.
    pub(super) async fn hand_out(&mut self, lines: Option<&Lines>) {
        let Some(lines) = lines else {
            self.waiting.clear();
            return;
        };
        if let Ok(permit) = lines.reserve().await {
            if let Some(line) = self.waiting.pop_front() {
                permit.send(line);
            }
        } else {
            self.waiting.clear();
            self.wanted = false;
        }
    }

    /// Standard output and the tail of standard error.
    pub(super) fn into_texts(self, name: &str) -> (String, String) {
        if self.dropped {
            tracing::warn!("{name}: standard output is longer than {MOST_STDOUT} bytes; the rest was dropped");
        }
        let tail = &self.stderr[self.stderr.len().saturating_sub(MOST_STDERR)..];
        (text_of(&self.stdout), text_of(tail))
    }
}

fn keep_waiting(waiting: &mut VecDeque<Line>, line: Line) {
    if waiting.len() >= MOST_WAITING {
        waiting.pop_front();
    }
    waiting.push_back(line);
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Cuts a stream into lines.
#[derive(Debug, Default)]
struct Cutter {
    line: Vec<u8>,
    /// Something was read since the last newline.
    open: bool,
}

impl Cutter {
    fn push(&mut self, data: &[u8], give: &mut impl FnMut(String)) {
        for part in data.split_inclusive(|byte| *byte == b'\n') {
            let (text, ended) = match part.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (part, false),
            };
            let room = LONGEST_LINE - self.line.len();
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            self.open = true;
            if ended && let Some(line) = self.rest() {
                give(line);
            }
        }
    }

    /// The line so far, as a terminal would show it: what a carriage return overwrites is gone.
    fn rest(&mut self) -> Option<String> {
        if !std::mem::take(&mut self.open) {
            return None;
        }
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        let shown = line.rsplit(|byte| *byte == b'\r').next().unwrap_or_default();
        Some(text_of(shown))
    }
}

#[cfg(test)]
mod tests {
    use super::{Collector, LONGEST_LINE, MOST_STDERR, MOST_STDOUT, MOST_WAITING};
    use crate::remote::Stream;

    fn lines_of(chunks: &[&[u8]]) -> Vec<String> {
        let mut collector = Collector::new(true);
        for chunk in chunks {
            collector.push(Stream::Stdout, chunk);
        }
        collector.finish();
        collector.waiting.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn lines_do_not_depend_on_packets() {
        assert_eq!(lines_of(&[b"one\ntw", b"o\n\nthr", b"ee"]), ["one", "two", "", "three"]);
        assert_eq!(lines_of(&[b"gr\xc3", b"\xbc\xc3\x9fe\n"]), ["grüße"]);
        assert_eq!(lines_of(&[b"10%\r50%\r100%\r\n", b"\xff\n"]), ["100%", "\u{fffd}"]);
        assert_eq!(lines_of(&[b""]), Vec::<String>::new());
    }

    #[test]
    fn everything_is_bounded() {
        let mut collector = Collector::new(true);
        collector.push(Stream::Stdout, &vec![b'x'; 2 * LONGEST_LINE]);
        collector.push(Stream::Stdout, b"\nnext\n");
        assert_eq!(collector.waiting[0].text.len(), LONGEST_LINE);
        assert_eq!(collector.waiting[1].text, "next");
        for number in 0..2 * MOST_WAITING {
            collector.push(Stream::Stderr, format!("{number}\n").as_bytes());
        }
        assert_eq!(collector.waiting.len(), MOST_WAITING);
        assert_eq!(
            collector.waiting.back().unwrap().text,
            format!("{}", 2 * MOST_WAITING - 1)
        );
        for _ in 0..10 {
            collector.push(Stream::Stdout, &vec![b'o'; 1024 * 1024]);
            collector.push(Stream::Stderr, &vec![b'e'; 100 * 1024]);
        }
        collector.push(Stream::Stderr, b"the end");
        let (stdout, stderr) = collector.into_texts("test");
        assert_eq!(stdout.len(), MOST_STDOUT);
        assert_eq!(stderr.len(), MOST_STDERR);
        assert!(stderr.ends_with("the end"));
    }
}
