//! The run of one command: the greeting with login shell and sudo, the frame, the output, the end.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use russh::client::Msg;
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf, Sig};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::Connection;
use super::frame::{Nonce, password_line};
use super::handler::explain;
use super::output::Collector;
use crate::remote::{Command, Ending, Lines, Output, RunError, Stream};
use crate::secret::Secret;

/// A session that has ended is free for the next command within this time.
const FREED: Duration = Duration::from_secs(3);
/// Login shell and sudo have this long to get ready.
const GREETING: Duration = Duration::from_secs(60);
/// After its time limit a command has this long to end: TERM, and KILL 5 s later.
const ENDING: Duration = Duration::from_secs(8);
/// What a leftover of the script still prints is waited for this long after the last byte.
const LEFTOVERS: Duration = Duration::from_secs(5);
/// A reader of lines has this long to take the last ones.
const LAST_LINES: Duration = Duration::from_secs(1);
/// As much of what login shell and sudo print is kept.
const MOST_GREETING: usize = 64 * 1024;

type Writer = ChannelWriteHalf<Msg>;
type Writing = Pin<Box<dyn Future<Output = Result<(), russh::Error>> + Send>>;

/// Why a command has no output.
pub(super) enum StartError {
    /// The server opens no session beside those of this connection that are open; nothing was sent.
    Beside,
    /// Anything else.
    Run(RunError),
}

impl From<RunError> for StartError {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

pub(super) async fn run(session: &Connection, command: &Command, lines: Option<&Lines>) -> Result<Output, StartError> {
    let nonce = Nonce::random();
    let frame = nonce.frame(command).map_err(RunError::Refused)?;
    let sudo = command.root && session.inner.at.user != "root";
    let permit = session.command_permit().await;
    let deadline = Instant::now() + command.timeout;
    let starting = start(session, permit, nonce.command_line(sudo));
    let channel = match timeout_at(deadline, starting).await {
        Ok(started) => started?,
        Err(_) => return Err(RunError::Timeout(command.timeout).into()),
    };
    let mut exchange = Exchange {
        session,
        greeting: Some(Greeting::new(&nonce, sudo, frame, session.inner.sudo_password.clone())),
        stdout_preamble: Some(Preamble::new(nonce.ready())),
        collector: Collector::new(lines.is_some()),
        writing: None,
        ending: None,
        channel,
    };
    match timeout_at(deadline, exchange.until_end(lines)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(error.into()),
        Err(_) => {
            // The end of standard input tells the bootstrap to end the script.
            exchange.writing = None;
            let _ = exchange.channel.writer.eof().await;
            let _ = timeout(ENDING, exchange.until_end(lines)).await;
            exchange.hand_out_rest(lines).await;
            return Err(RunError::Timeout(command.timeout).into());
        }
    }
    exchange.hand_out_rest(lines).await;
    Ok(exchange.output(command)?)
}

async fn start(
    session: &Connection,
    permit: Option<OwnedSemaphorePermit>,
    command_line: String,
) -> Result<OpenChannel, StartError> {
    let lost = |error: &russh::Error| RunError::ConnectionLost(session.end_reason().unwrap_or_else(|| explain(error)));
    let over = Instant::now() + FREED;
    let channel = loop {
        match session.open_session().await {
            Ok(channel) => break channel,
            // What runs beside others is not kept waiting for them.
            Err(russh::Error::ChannelOpenFailure(_)) if !session.is_alone() => return Err(StartError::Beside),
            Err(russh::Error::ChannelOpenFailure(_)) if Instant::now() < over => {
                sleep(Duration::from_millis(100)).await;
            }
            Err(russh::Error::ChannelOpenFailure(_)) => {
                let why = format!(
                    "{} opens no session (is MaxSessions 0 in its sshd_config?)",
                    session.at()
                );
                return Err(RunError::Refused(why).into());
            }
            Err(error) => return Err(lost(&error).into()),
        }
    };
    let (reader, writer) = channel.split();
    let channel = OpenChannel {
        reader,
        writer: Arc::new(writer),
        permit,
        closed: false,
    };
    channel
        .writer
        .exec(true, command_line)
        .await
        .map_err(|error| lost(&error))?;
    Ok(channel)
}

/// A channel that is closed when it is dropped, which russh does not do. The permit goes with it.
struct OpenChannel {
    reader: ChannelReadHalf,
    writer: Arc<Writer>,
    permit: Option<OwnedSemaphorePermit>,
    closed: bool,
}

impl Drop for OpenChannel {
    fn drop(&mut self) {
        let permit = self.permit.take();
        if self.closed {
            return;
        }
        let writer = Arc::clone(&self.writer);
        // Without a runtime the connection is gone as well.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = writer.close().await;
                drop(permit);
            });
        }
    }
}

/// The talk with the remote side from the start of the command line to the end of the channel.
struct Exchange<'a> {
    session: &'a Connection,
    channel: OpenChannel,
    /// Until the bootstrap is ready.
    greeting: Option<Greeting>,
    /// Standard output before the bootstrap's ready line.
    stdout_preamble: Option<Preamble>,
    collector: Collector,
    writing: Option<Writing>,
    ending: Option<Ending>,
}

impl Exchange<'_> {
    /// Listens until the channel has ended. May be dropped and called again.
    async fn until_end(&mut self, lines: Option<&Lines>) -> Result<(), RunError> {
        let greeting_over = Instant::now() + GREETING;
        let mut quiet_over = greeting_over;
        loop {
            tokio::select! {
                message = self.channel.reader.wait() => {
                    quiet_over = Instant::now() + LEFTOVERS;
                    if self.take(message)? {
                        return Ok(());
                    }
                }
                sent = write(&mut self.writing), if self.writing.is_some() => {
                    self.writing = None;
                    if let Err(error) = sent {
                        // The reading side will find the connection lost as well, with the reason.
                        tracing::debug!("{}: writing failed: {error}", self.session.at());
                    }
                }
                () = self.collector.hand_out(lines), if self.collector.has_waiting() => {}
                () = sleep_until(greeting_over), if self.greeting.is_some() => {
                    return Err(self.not_ready(&format!("nothing happened for {} s", GREETING.as_secs())));
                }
                // Something that the script left running still holds its output.
                () = sleep_until(quiet_over), if self.ending.is_some() => return Ok(()),
            }
        }
    }

    /// Takes one message; true when it was the last.
    fn take(&mut self, message: Option<ChannelMsg>) -> Result<bool, RunError> {
        match message {
            Some(ChannelMsg::Data { data }) => self.take_stdout(&data),
            Some(ChannelMsg::ExtendedData { data, ext: 1 }) => self.take_stderr(&data)?,
            // The status may come before or after the last data: only remember it.
            Some(ChannelMsg::ExitStatus { exit_status }) => self.ending = Some(ending_of(exit_status)),
            Some(ChannelMsg::ExitSignal { signal_name, .. }) => {
                self.ending = Some(Ending::Signal(signal_number(&signal_name)));
            }
            Some(ChannelMsg::Failure) => {
                return Err(RunError::Refused(format!(
                    "{} does not run commands",
                    self.session.at()
                )));
            }
            Some(ChannelMsg::Close) => {
                self.channel.closed = true;
                return self.ended().map(|()| true);
            }
            None => {
                self.channel.closed = true;
                let reason = self.session.end_reason();
                if self.ending.is_none() || self.greeting.is_some() {
                    return Err(RunError::ConnectionLost(
                        reason.unwrap_or_else(|| "the server closed the connection".to_owned()),
                    ));
                }
                return Ok(true);
            }
            Some(_) => {}
        }
        Ok(false)
    }

    fn ended(&self) -> Result<(), RunError> {
        match self.ending {
            _ if self.greeting.is_some() => Err(self.not_ready(&match self.ending {
                Some(Ending::Status(status)) => format!("it ended with status {status}"),
                Some(Ending::Signal(signal)) => format!("it was ended by signal {signal}"),
                None => "it ended".to_owned(),
            })),
            Some(_) => Ok(()),
            None => Err(RunError::ConnectionLost(
                "the session was closed before the command ended".to_owned(),
            )),
        }
    }

    fn take_stdout(&mut self, data: &[u8]) {
        match &mut self.stdout_preamble {
            None => self.collector.push(Stream::Stdout, data),
            Some(preamble) => {
                if let Some(rest) = preamble.push(data) {
                    self.stdout_preamble = None;
                    self.collector.push(Stream::Stdout, &rest);
                }
            }
        }
    }

    fn take_stderr(&mut self, data: &[u8]) -> Result<(), RunError> {
        let Some(greeting) = &mut self.greeting else {
            self.collector.push(Stream::Stderr, data);
            return Ok(());
        };
        match greeting.push(data) {
            Heard::Nothing => {}
            Heard::SudoPrompt => {
                let answer = greeting.answer_sudo()?;
                self.write(answer);
            }
            Heard::Ready(rest) => {
                let frame = std::mem::take(&mut greeting.frame);
                self.greeting = None;
                self.write(frame);
                self.collector.push(Stream::Stderr, &rest);
            }
        }
        Ok(())
    }

    fn write(&mut self, bytes: Vec<u8>) {
        let writer = Arc::clone(&self.channel.writer);
        self.writing = Some(Box::pin(async move { writer.data_bytes(bytes).await }));
    }

    /// Login shell or sudo did not get as far as the bootstrap.
    fn not_ready(&self, how: &str) -> RunError {
        let Some(greeting) = &self.greeting else {
            return RunError::ConnectionLost(how.to_owned());
        };
        let stderr = greeting.said();
        if greeting.sudo
            && let Some(refusal) = sudo_refusal(&stderr, &self.session.at().user)
        {
            return RunError::Sudo(refusal);
        }
        let stdout = self.stdout_preamble.as_ref().map(Preamble::said).unwrap_or_default();
        let words: Vec<&str> = stdout
            .lines()
            .chain(stderr.lines())
            .filter(|line| !line.trim().is_empty())
            .collect();
        let last = words[words.len().saturating_sub(5)..].join("; ");
        let said = if last.is_empty() {
            "said nothing".to_owned()
        } else {
            format!("said: {}", cut(&last))
        };
        if greeting.sudo {
            RunError::Sudo(format!("the command did not start: {how} and {said}"))
        } else {
            RunError::Refused(format!(
                "the login shell did not start the command: {how} and {said}; check the shell of {} in /etc/passwd, its \
                 login files, and ForceCommand in sshd_config",
                self.session.at().user
            ))
        }
    }

    async fn hand_out_rest(&mut self, lines: Option<&Lines>) {
        self.collector.finish();
        let _ = timeout(LAST_LINES, async {
            while self.collector.has_waiting() {
                self.collector.hand_out(lines).await;
            }
        })
        .await;
    }

    fn output(self, command: &Command) -> Result<Output, RunError> {
        let ending = self
            .ending
            .ok_or_else(|| RunError::ConnectionLost("the session was closed before the command ended".to_owned()))?;
        let (stdout, stderr) = self.collector.into_texts(&command.name);
        Ok(Output { ending, stdout, stderr })
    }
}

async fn write(writing: &mut Option<Writing>) -> Result<(), russh::Error> {
    match writing {
        Some(writing) => writing.await,
        None => std::future::pending().await,
    }
}

/// Shells report a process that a signal ended as 128 and the signal.
fn ending_of(status: u32) -> Ending {
    match i32::try_from(status) {
        Ok(number @ 129..=159) => Ending::Signal(number - 128),
        _ => Ending::Status(status),
    }
}

fn signal_number(signal: &Sig) -> i32 {
    match signal {
        Sig::HUP => 1,
        Sig::INT => 2,
        Sig::QUIT => 3,
        Sig::ILL => 4,
        Sig::ABRT => 6,
        Sig::FPE => 8,
        Sig::KILL => 9,
        Sig::USR1 => 10,
        Sig::SEGV => 11,
        Sig::PIPE => 13,
        Sig::ALRM => 14,
        Sig::TERM => 15,
        Sig::Custom(name) => match name.as_str() {
            "BUS" => 7,
            "SYS" => 31,
            "XCPU" => 24,
            "XFSZ" => 25,
            "USR2" => 12,
            // A signal without a number here: still a signal.
            _ => 0,
        },
    }
}

/// Standard error until the bootstrap is ready, and what it waits for.
struct Greeting {
    heard: Vec<u8>,
    ready: String,
    prompt: String,
    sudo: bool,
    asked: bool,
    password: Option<Secret>,
    frame: Vec<u8>,
}

enum Heard {
    Nothing,
    SudoPrompt,
    Ready(Vec<u8>),
}

impl Greeting {
    fn new(nonce: &Nonce, sudo: bool, frame: Vec<u8>, password: Option<Secret>) -> Self {
        Self {
            heard: Vec::new(),
            ready: nonce.ready(),
            prompt: nonce.sudo_prompt(),
            sudo,
            asked: false,
            password,
            frame,
        }
    }

    fn push(&mut self, data: &[u8]) -> Heard {
        self.heard.extend_from_slice(data);
        if let Some(at) = find(&self.heard, self.ready.as_bytes()) {
            return Heard::Ready(self.heard.split_off(at + self.ready.len()));
        }
        if self.sudo
            && let Some(at) = find(&self.heard, self.prompt.as_bytes())
        {
            self.heard.drain(at..at + self.prompt.len());
            return Heard::SudoPrompt;
        }
        forget_start(&mut self.heard);
        Heard::Nothing
    }

    fn answer_sudo(&mut self) -> Result<Vec<u8>, RunError> {
        if self.asked {
            return Err(RunError::Sudo(
                "the password is wrong; check what `sudoPassword` of this host names".to_owned(),
            ));
        }
        self.asked = true;
        match &self.password {
            Some(password) => Ok(password_line(password)),
            None => Err(RunError::Sudo(
                "a password is required; name its source with `sudoPassword`, or give the user NOPASSWD in sudoers"
                    .to_owned(),
            )),
        }
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&self.heard).into_owned()
    }
}

/// Standard output before the bootstrap: what login files print.
struct Preamble {
    heard: Vec<u8>,
    ready: String,
}

impl Preamble {
    fn new(ready: String) -> Self {
        Self {
            heard: Vec::new(),
            ready,
        }
    }

    /// What follows the ready line, once it is there.
    fn push(&mut self, data: &[u8]) -> Option<Vec<u8>> {
        self.heard.extend_from_slice(data);
        if let Some(at) = find(&self.heard, self.ready.as_bytes()) {
            return Some(self.heard.split_off(at + self.ready.len()));
        }
        forget_start(&mut self.heard);
        None
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&self.heard).into_owned()
    }
}

fn forget_start(heard: &mut Vec<u8>) {
    if heard.len() > 2 * MOST_GREETING {
        heard.drain(..heard.len() - MOST_GREETING);
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// The line in which sudo says no, with what to do about it.
fn sudo_refusal(stderr: &str, user: &str) -> Option<String> {
    let advice = |line: &str| {
        let has = |text: &str| line.contains(text);
        if has("terminal is required") || has("must have a tty") || has("no tty present") {
            Some(format!("take `requiretty` away for {user} in sudoers"))
        } else if has("password is required") {
            Some("name the password's source with `sudoPassword`, or give the user NOPASSWD in sudoers".to_owned())
        } else if has("incorrect password") || has("Sorry, try again") {
            Some("check what `sudoPassword` of this host names".to_owned())
        } else if has("not in the sudoers file") || has("may not run sudo") || has("not allowed to") {
            Some(format!("let {user} run everything in sudoers, or log in as root"))
        } else if has("sudo: not found") || has("sudo: command not found") || has("sudo’: No such file") {
            Some("install sudo, or log in as root".to_owned())
        } else if has("no new privileges") || has("effective uid is not 0") || has("must be owned by uid 0") {
            Some("sudo cannot work on this host; log in as root".to_owned())
        } else {
            None
        }
    };
    stderr
        .lines()
        .rev()
        .map(str::trim)
        .find_map(|line| Some(format!("{}; {}", cut(line), advice(line)?)))
}

fn cut(text: &str) -> String {
    const MOST: usize = 300;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(MOST).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::{Ending, Greeting, Heard, Nonce, Preamble, ending_of, sudo_refusal};
    use crate::secret::Secret;

    #[test]
    fn the_greeting_is_heard_in_any_pieces() {
        let nonce = Nonce::random();
        let before = format!("We trust you\n{}", nonce.sudo_prompt());
        let after = format!("\n{}rest", nonce.ready());
        for size in 1..before.len() {
            let mut greeting = Greeting::new(&nonce, true, Vec::new(), Some(Secret::new("raspberry")));
            let prompts = before
                .as_bytes()
                .chunks(size)
                .filter(|chunk| matches!(greeting.push(chunk), Heard::SudoPrompt))
                .count();
            assert_eq!(prompts, 1, "{size}");
            assert_eq!(greeting.answer_sudo().unwrap(), b"raspberry\n");
            let mut rest: Option<Vec<u8>> = None;
            for chunk in after.as_bytes().chunks(size) {
                match &mut rest {
                    Some(rest) => rest.extend_from_slice(chunk),
                    None => {
                        if let Heard::Ready(text) = greeting.push(chunk) {
                            rest = Some(text);
                        }
                    }
                }
            }
            assert_eq!(rest.as_deref(), Some(b"rest".as_slice()), "{size}");
        }
    }

    #[test]
    fn a_second_prompt_means_a_wrong_password() {
        let nonce = Nonce::random();
        let mut greeting = Greeting::new(&nonce, true, Vec::new(), Some(Secret::new("x")));
        assert!(matches!(
            greeting.push(nonce.sudo_prompt().as_bytes()),
            Heard::SudoPrompt
        ));
        greeting.answer_sudo().unwrap();
        assert!(matches!(
            greeting.push(nonce.sudo_prompt().as_bytes()),
            Heard::SudoPrompt
        ));
        assert!(greeting.answer_sudo().unwrap_err().to_string().contains("wrong"));
    }

    #[test]
    fn login_files_may_print() {
        let mut preamble = Preamble::new("ready\n".to_owned());
        assert!(preamble.push(b"welcome\nrea").is_none());
        assert_eq!(preamble.push(b"dy\nout").unwrap(), b"out");
    }

    #[test]
    fn sudo_says_no_in_many_ways() {
        for (said, advice) in [
            (
                "sudo: a terminal is required to read the password; either use ...\n",
                "requiretty",
            ),
            ("sudo: sorry, you must have a tty to run sudo\n", "requiretty"),
            (
                "Sorry, try again.\nsudo: 1 incorrect password attempt\n",
                "sudoPassword",
            ),
            (
                "pi is not in the sudoers file.\nThis incident has been reported to the administrator.\n",
                "log in as root",
            ),
            ("sh: 1: sudo: not found\n", "install sudo"),
        ] {
            let refusal = sudo_refusal(said, "pi").unwrap();
            assert!(refusal.contains(advice), "{refusal}");
        }
        assert_eq!(sudo_refusal("all is well\n", "pi"), None);
    }

    #[test]
    fn signals_are_told_from_statuses() {
        assert_eq!(ending_of(0), Ending::Status(0));
        assert_eq!(ending_of(128), Ending::Status(128));
        assert_eq!(ending_of(143), Ending::Signal(15));
        assert_eq!(ending_of(255), Ending::Status(255));
    }
}
