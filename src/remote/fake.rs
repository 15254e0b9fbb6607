//! A host that exists only in a test: answers commands from a function and remembers them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::{Command, Ending, Line, Lines, Output, RunError, Stream};

type Redial = dyn Fn() -> Result<(), String> + Send + Sync;
type Handler = dyn Fn(&Command) -> FakeReply + Send + Sync;

/// A session whose answers come from a function. Clones share what they saw.
#[derive(Clone)]
pub struct FakeSession {
    handler: Arc<Handler>,
    seen: Arc<Mutex<Vec<Command>>>,
    cut: Arc<watch::Sender<Option<String>>>,
    redial: Arc<Redial>,
}

/// What a fake host does with a command.
#[derive(Debug, Clone)]
pub struct FakeReply {
    /// How long it takes, in tokio's time.
    pub delay: Duration,
    /// Lines handed out before it ends.
    pub lines: Vec<Line>,
    /// How it ends.
    pub end: FakeEnd,
}

/// How a fake command ends.
#[derive(Debug, Clone)]
pub enum FakeEnd {
    /// With an output.
    Output(Output),
    /// Without one.
    Error(RunError),
    /// Not before its time limit.
    Hang,
}

impl FakeReply {
    /// Exit status 0 and this standard output.
    #[must_use]
    pub fn ok(stdout: impl Into<String>) -> Self {
        Self::output(Ending::Status(0), stdout, "")
    }

    /// Another exit status and this standard error.
    #[must_use]
    pub fn failed(status: u32, stderr: impl Into<String>) -> Self {
        Self::output(Ending::Status(status), "", stderr)
    }

    /// Any ending; the lines are those of both outputs.
    #[must_use]
    pub fn output(ending: Ending, stdout: impl Into<String>, stderr: impl Into<String>) -> Self {
        let (stdout, stderr) = (stdout.into(), stderr.into());
        let lines_of = |stream: Stream, text: &str| -> Vec<Line> {
            text.lines()
                .map(|text| Line {
                    stream,
                    text: text.to_owned(),
                })
                .collect()
        };
        let mut lines = lines_of(Stream::Stdout, &stdout);
        lines.extend(lines_of(Stream::Stderr, &stderr));
        Self {
            delay: Duration::ZERO,
            lines,
            end: FakeEnd::Output(Output { ending, stdout, stderr }),
        }
    }

    /// No output but this error.
    #[must_use]
    pub fn error(error: RunError) -> Self {
        Self {
            delay: Duration::ZERO,
            lines: Vec::new(),
            end: FakeEnd::Error(error),
        }
    }

    /// Never ends by itself: dropped, or stopped by its time limit.
    #[must_use]
    pub fn hang() -> Self {
        Self {
            delay: Duration::ZERO,
            lines: Vec::new(),
            end: FakeEnd::Hang,
        }
    }

    /// The same, later.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }
}

impl FakeSession {
    /// A host that answers with this function.
    pub fn new(handler: impl Fn(&Command) -> FakeReply + Send + Sync + 'static) -> Self {
        Self {
            handler: Arc::new(handler),
            seen: Arc::default(),
            cut: Arc::default(),
            redial: Arc::new(|| Ok(())),
        }
    }

    /// The same, where this says whether it can be connected to anew.
    #[must_use]
    pub fn redialled(self, redial: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self {
            redial: Arc::new(redial),
            ..self
        }
    }

    /// Connects anew: the cable is in again.
    ///
    /// # Errors
    /// As the function says that was given for it.
    pub fn reconnect(&self) -> Result<(), String> {
        (self.redial)()?;
        self.cut.send_replace(None);
        Ok(())
    }

    /// Pulls the cable, for this reason.
    pub fn cut(&self, reason: &str) {
        self.cut.send_replace(Some(reason.to_owned()));
    }

    /// The cable is out.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut.borrow().is_some()
    }

    /// Waits until the cable is pulled, and says why.
    pub async fn lost(&self) -> String {
        let mut reason = self.cut.subscribe();
        let cut = reason
            .wait_for(Option::is_some)
            .await
            .map(|reason| reason.clone().unwrap_or_default());
        match cut {
            Ok(reason) => reason,
            Err(_) => std::future::pending().await,
        }
    }

    /// The commands so far, in the order in which they started.
    #[must_use]
    pub fn commands(&self) -> Vec<Command> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The names of the commands so far.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.commands().into_iter().map(|command| command.name).collect()
    }

    /// Answers a command as the function says, within the command's time limit.
    pub async fn run(&self, command: &Command, lines: Option<&Lines>) -> Result<Output, RunError> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(command.clone());
        let FakeReply {
            delay,
            lines: said,
            end,
        } = (self.handler)(command);
        let reply = async {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            if let Some(lines) = lines {
                for line in said {
                    // A reader that went away misses lines and nothing else.
                    let _ = lines.send(line).await;
                }
            }
            match end {
                FakeEnd::Output(output) => Ok(output),
                FakeEnd::Error(error) => Err(error),
                FakeEnd::Hang => std::future::pending().await,
            }
        };
        match tokio::time::timeout(command.timeout, reply).await {
            Ok(result) => result,
            Err(_) => Err(RunError::Timeout(command.timeout)),
        }
    }
}

impl fmt::Debug for FakeSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeSession")
            .field("seen", &self.names())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{FakeReply, FakeSession};
    use crate::remote::{Command, Ending, RunError, Session};

    fn command(name: &str) -> Command {
        Command {
            name: name.to_owned(),
            script: "true".to_owned(),
            params: Vec::new(),
            root: true,
            timeout: Duration::from_secs(5),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_scripted_and_commands_remembered() {
        let fake = FakeSession::new(|command| match command.name.as_str() {
            "probe" => FakeReply::ok("one\ntwo\n").after(Duration::from_secs(2)),
            "hang" => FakeReply::hang(),
            "lost" => FakeReply::error(RunError::ConnectionLost("cable".to_owned())),
            _ => FakeReply::failed(3, "no\n"),
        });
        let session = Session::Fake(fake.clone());
        let (sender, mut receiver) = tokio::sync::mpsc::channel(8);

        let started = tokio::time::Instant::now();
        let output = session.run(&command("probe"), Some(&sender)).await.unwrap();
        assert_eq!((output.ok(), output.stdout.as_str()), (true, "one\ntwo\n"));
        assert_eq!(started.elapsed(), Duration::from_secs(2));
        assert_eq!(receiver.recv().await.unwrap().text, "one");

        assert!(matches!(
            session.run(&command("hang"), None).await,
            Err(RunError::Timeout(_))
        ));
        assert!(matches!(
            session.run(&command("lost"), None).await,
            Err(RunError::ConnectionLost(_))
        ));
        let failed = session.run(&command("other"), None).await.unwrap();
        assert_eq!((failed.ending, failed.stderr.as_str()), (Ending::Status(3), "no\n"));
        assert_eq!(fake.names(), ["probe", "hang", "lost", "other"]);
    }
}
