//! The smoke test: whether a live cluster does what people want of one, check by check.
//!
//! `templates/smoke.sh` makes pods in a namespace of its own and tries them out; what it has made is taken away
//! afterwards by another script, also when the first was ended.

use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::mpsc;

use crate::remote::{Command, Line, Output, Param, RunError, Session, Stream};

/// What is tried, and with what.
#[derive(Debug, Clone)]
pub struct Smoke {
    /// Namespace that nobody else has.
    pub namespace: String,
    /// Image with sh, httpd, wget, nslookup and sleep.
    pub image: String,
    /// DNS domain of the cluster.
    pub domain: String,
    /// A name outside of the cluster; empty when none is to be asked for.
    pub outside: String,
    /// Seconds in which pods must have started.
    pub limit: u64,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It works.
    Passed,
    /// Nothing can be said.
    Skipped,
    /// It does not work.
    Failed,
}

/// One thing that was tried.
#[derive(Debug, Clone, Serialize)]
pub struct Tried {
    /// In a few words.
    pub name: String,
    /// How it ended.
    pub verdict: Verdict,
    /// Seconds it took.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub took: Duration,
    /// What was seen, where it did not pass.
    pub evidence: Vec<String>,
}

fn seconds<S: serde::Serializer>(took: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((took.as_secs_f64() * 10.0).round() / 10.0)
}

/// What the test tells while it runs.
#[derive(Debug, Clone)]
pub enum Told {
    /// A check has begun.
    Begun(String),
    /// A check has ended.
    Ended(Tried),
}

/// Tries everything, on a controller; `tell` hears of each check as it begins and ends.
///
/// # Errors
/// When the controller cannot be asked any more. That something does not work is a [`Tried`].
pub async fn run(session: &Session, smoke: &Smoke, tell: mpsc::Sender<Told>) -> Result<Output, RunError> {
    let command = Command {
        name: "smoke".to_owned(),
        script: include_str!("../../templates/smoke.sh").to_owned(),
        params: vec![
            ("SPACE".to_owned(), Param::Plain(smoke.namespace.clone())),
            ("IMAGE".to_owned(), Param::Plain(smoke.image.clone())),
            ("DOMAIN".to_owned(), Param::Plain(smoke.domain.clone())),
            ("OUTSIDE".to_owned(), Param::Plain(smoke.outside.clone())),
            ("LIMIT".to_owned(), Param::Plain(smoke.limit.to_string())),
        ],
        root: true,
        timeout: Duration::from_secs(smoke.limit * 3 + 300),
    };
    let (sender, lines) = mpsc::channel(64);
    let work = async {
        let ended = session.run(&command, Some(&sender)).await;
        drop(sender);
        ended
    };
    tokio::join!(work, read(lines, tell)).0
}

/// Takes away what was made; waits until it is gone.
///
/// # Errors
/// When the controller cannot be asked any more.
pub async fn clean_up(session: &Session, namespace: &str) -> Result<Output, RunError> {
    let command = Command {
        name: "smoke_end".to_owned(),
        script: include_str!("../../templates/smoke_end.sh").to_owned(),
        params: vec![("SPACE".to_owned(), Param::Plain(namespace.to_owned()))],
        root: true,
        timeout: Duration::from_secs(120),
    };
    session.run(&command, None).await
}

async fn read(mut lines: mpsc::Receiver<Line>, tell: mpsc::Sender<Told>) {
    let mut begun = Instant::now();
    let mut evidence = Vec::new();
    while let Some(line) = lines.recv().await {
        if line.stream != Stream::Stdout {
            continue;
        }
        let (word, rest) = line.text.split_once(' ').unwrap_or((&line.text, ""));
        let verdict = match word {
            "begin" => {
                begun = Instant::now();
                evidence.clear();
                let _ = tell.send(Told::Begun(rest.to_owned())).await;
                continue;
            }
            "said" => {
                evidence.push(rest.to_owned());
                continue;
            }
            "passed" => Verdict::Passed,
            "skipped" => Verdict::Skipped,
            "failed" => Verdict::Failed,
            _ => continue,
        };
        let said = std::mem::take(&mut evidence);
        let check = Tried {
            name: rest.to_owned(),
            verdict,
            took: begun.elapsed(),
            evidence: if verdict == Verdict::Passed { Vec::new() } else { said },
        };
        let _ = tell.send(Told::Ended(check)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::fake::{FakeReply, FakeSession};

    fn smoke() -> Smoke {
        Smoke {
            namespace: "k8sup-smoke-x".to_owned(),
            image: "busybox:1.37".to_owned(),
            domain: "cluster.local".to_owned(),
            outside: String::new(),
            limit: 60,
        }
    }

    #[tokio::test]
    async fn each_check_is_told_with_what_was_seen() {
        let fake = FakeSession::new(|_| {
            FakeReply::ok(
                "begin exec\nsaid noise\npassed exec\nbegin logs\nsaid from w1: no log\nsaid from w2: no log\nfailed logs\n\
                 begin names\nsaid no name\nskipped names\n",
            )
        });
        let (sender, mut told) = mpsc::channel(16);
        run(&Session::Fake(fake), &smoke(), sender).await.unwrap();
        let mut checks = Vec::new();
        while let Some(one) = told.recv().await {
            if let Told::Ended(check) = one {
                checks.push((check.name, check.verdict, check.evidence.join("; ")));
            }
        }
        let wanted = [
            ("exec", Verdict::Passed, ""),
            ("logs", Verdict::Failed, "from w1: no log; from w2: no log"),
            ("names", Verdict::Skipped, "no name"),
        ];
        let wanted = wanted.map(|(name, verdict, seen)| (name.to_owned(), verdict, seen.to_owned()));
        assert_eq!(checks, wanted);
    }
}
