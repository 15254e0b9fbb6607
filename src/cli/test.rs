//! `k8sup test`: tries out what people want of a live cluster, and leaves nothing behind.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval_at};

use super::Ended;
use super::args::{DataFormat, Test as Args};
use super::fleet::{self, Fleet, followed};
use super::interrupt::Interrupt;
use super::plan::{print, print_json};
use crate::cluster::NodeName;
use crate::execute::event::Phase;
use crate::execute::smoke::{self, Smoke, Told, Tried, Verdict};
use crate::exit;
use crate::remote::Session;
use crate::report::Console;
use crate::report::text::{clean, span};

/// Nothing is silent for longer.
const SILENCE: Duration = Duration::from_secs(9);

/// Why nothing could be tried, or not to the end.
#[derive(Debug, thiserror::Error)]
enum TestError {
    #[error("no cluster answers")]
    NoCluster,
    #[error("on {host}: {why}")]
    Stopped { host: NodeName, why: String },
    #[error("the namespace {namespace} is left in the cluster: {why}")]
    Left { namespace: String, why: String },
}

/// Runs the command.
pub async fn run(args: &Args, console: &Console) -> Ended {
    let cluster = fleet::load(&args.target, console)?;
    let fleet = fleet::connect(cluster, &args.target, console).await?;
    let ended = tested(args, &fleet, console).await;
    fleet.close().await;
    ended
}

async fn tested(args: &Args, fleet: &Fleet, console: &Console) -> Ended {
    let (facts, _) = followed(
        console,
        |events| async move { fleet.observe(Phase::Observe, &events).await },
    )
    .await;
    let asked = facts.cluster.present().and_then(|live| live.asked.clone());
    let session = asked.as_ref().and_then(|host| fleet.sessions.get(host)?.as_ref().ok());
    let (Some(host), Some(session)) = (asked, session) else {
        let hint = format!("`k8sup status {}` says what there is", args.target.typed());
        console.fail(&TestError::NoCluster, Some(&hint));
        return Err(if fleet.nobody_answers() {
            exit::UNREACHABLE
        } else {
            exit::FAILED
        });
    };
    let smoke = Smoke {
        namespace: format!("k8sup-smoke-{:08x}", rand::random::<u32>()),
        image: args.image.clone(),
        domain: fleet.cluster.dns_domain.clone(),
        outside: args.outside.clone(),
        limit: args.limit,
    };
    let interrupt = Interrupt::listen();
    tried_out(&smoke, (&host, session), args.output, &interrupt, console).await
}

/// Tries everything on one controller. What was made is taken away however that ends.
async fn tried_out(
    smoke: &Smoke,
    (host, session): (&NodeName, &Session),
    output: DataFormat,
    interrupt: &Interrupt,
    console: &Console,
) -> Ended {
    let text = output == DataFormat::Text;
    let (sender, told) = mpsc::channel(16);
    let work = async {
        tokio::select! {
            ended = smoke::run(session, smoke, sender) => Some(ended),
            () = interrupt.stop.cancelled() => None,
        }
    };
    let (ended, shown) = tokio::join!(work, show(told, text, console));
    let cleaned = clean_up(session, &smoke.namespace, interrupt, console).await;
    let Shown { checks, unfinished } = shown?;
    let failed = checks.iter().any(|check| check.verdict == Verdict::Failed);
    if !text {
        let passed = !failed && matches!(&ended, Some(Ok(output)) if output.ok());
        let document = json!({ "format": "k8sup.test/1", "passed": passed, "checks": checks });
        print_json(console, Ok(document))?;
    }
    cleaned?;
    match ended {
        None => {
            console.say("Interrupted: what was made for the test is gone again.\n");
            Err(exit::INTERRUPTED)
        }
        Some(Err(error)) => stopped(host, &error.to_string(), unfinished.as_deref(), console),
        // It did not come to its first check, or broke off in the middle of one.
        Some(Ok(output)) if !failed && !output.ok() => stopped(host, &output.stderr, unfinished.as_deref(), console),
        Some(Ok(_)) if failed => Ok(exit::FAILED),
        Some(Ok(_)) => Ok(exit::DONE),
    }
}

fn stopped(host: &NodeName, why: &str, unfinished: Option<&str>, console: &Console) -> Ended {
    let why = match unfinished {
        Some(check) => format!("{}, while it tried: {check}", clean(why.trim())),
        None => clean(why.trim()),
    };
    console.fail(
        &TestError::Stopped {
            host: host.clone(),
            why,
        },
        Some("run it again"),
    );
    Err(exit::FAILED)
}

/// What was shown.
struct Shown {
    checks: Vec<Tried>,
    /// The check that has begun and not ended.
    unfinished: Option<String>,
}

/// Shows each check as it ends, and what is under way where it takes long.
async fn show(mut told: mpsc::Receiver<Told>, text: bool, console: &Console) -> Result<Shown, u8> {
    let mut checks = Vec::new();
    let mut under_way: Option<(String, Instant)> = None;
    let mut tick = interval_at(tokio::time::Instant::now() + SILENCE, SILENCE);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            one = told.recv() => match one {
                None => {
                    let unfinished = under_way.map(|(name, _)| name);
                    return Ok(Shown { checks, unfinished });
                }
                Some(Told::Begun(name)) => under_way = Some((name, Instant::now())),
                Some(Told::Ended(check)) => {
                    under_way = None;
                    tick.reset();
                    if text {
                        print(console, &row(&check, console))?;
                    }
                    checks.push(check);
                }
            },
            _ = tick.tick() => {
                if let Some((name, since)) = &under_way {
                    console.say(&format!("… {name}: still waiting after {}\n", span(since.elapsed())));
                }
            }
        }
    }
}

fn row(check: &Tried, console: &Console) -> String {
    let style = console.data_style();
    let sign = match check.verdict {
        Verdict::Passed => style.good("✓"),
        Verdict::Skipped => style.dim("-"),
        Verdict::Failed => style.bad("✗"),
    };
    let mut row = format!("{sign} {}  {}\n", check.name, style.dim(&span(check.took)));
    for line in &check.evidence {
        let _ = writeln!(row, "    {}", clean(line));
    }
    row
}

/// Takes away what was made, unless the person cannot wait for it.
async fn clean_up(session: &Session, namespace: &str, interrupt: &Interrupt, console: &Console) -> Result<(), u8> {
    let (why, code) = tokio::select! {
        ended = smoke::clean_up(session, namespace) => match ended {
            Ok(output) if output.ok() => return Ok(()),
            Ok(output) => (clean(output.stderr.trim()), exit::FAILED),
            Err(error) => (error.to_string(), exit::FAILED),
        },
        () = interrupt.abort.cancelled() => ("interrupted".to_owned(), exit::INTERRUPTED),
    };
    let hint = format!("`kubectl delete namespace {namespace}`; the next `k8sup test` after half an hour does it, too");
    let namespace = namespace.to_owned();
    console.fail(&TestError::Left { namespace, why }, Some(&hint));
    Err(code)
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::remote::fake::{FakeReply, FakeSession};
    use crate::remote::{Param, RunError};
    use crate::report::{ColorWhen, LogFormat, Settings};

    /// How a test on this host ends, after as many Ctrl-C, and what was run there with which namespace.
    async fn ending(fake: FakeSession, interrupts: usize) -> (Ended, String) {
        let smoke = Smoke {
            namespace: "k8sup-smoke-x".to_owned(),
            image: "busybox:1.37".to_owned(),
            domain: "cluster.local".to_owned(),
            outside: String::new(),
            limit: 60,
        };
        let interrupt = Interrupt {
            stop: CancellationToken::new(),
            abort: CancellationToken::new(),
        };
        let press = async {
            for token in [&interrupt.stop, &interrupt.abort].into_iter().take(interrupts) {
                tokio::time::sleep(Duration::from_secs(1)).await;
                token.cancel();
            }
        };
        let console = Console::new(Settings::decide(LogFormat::Text, ColorWhen::Never, 0));
        let session = Session::Fake(fake.clone());
        let host = NodeName::parse("cp1").unwrap();
        let work = tried_out(&smoke, (&host, &session), DataFormat::Text, &interrupt, &console);
        let (ended, ()) = tokio::join!(work, press);
        let run = fake.commands().into_iter().map(|command| match &command.params[0] {
            (_, Param::Plain(space)) => format!("{} {space}", command.name),
            (_, Param::Secret(_)) => "a secret".to_owned(),
        });
        (ended, run.collect::<Vec<_>>().join(", "))
    }

    /// A host where the test ends so, and cleaning up so.
    fn host(test: FakeReply, end: FakeReply) -> FakeSession {
        FakeSession::new(move |command| match command.name.as_str() {
            "smoke" => test.clone(),
            _ => end.clone(),
        })
    }

    const BOTH: &str = "smoke k8sup-smoke-x, smoke_end k8sup-smoke-x";

    #[tokio::test(start_paused = true)]
    async fn what_was_made_is_taken_away_however_the_test_ends() {
        let lost = || FakeReply::error(RunError::ConnectionLost("cable".to_owned()));
        let gone = || FakeReply::ok("");
        let cases = [
            (FakeReply::ok("begin exec\npassed exec\n"), 0, Ok(exit::DONE)),
            (FakeReply::ok("begin exec\nfailed exec\n"), 0, Ok(exit::FAILED)),
            (FakeReply::failed(1, "no space left"), 0, Err(exit::FAILED)),
            (lost(), 0, Err(exit::FAILED)),
            (FakeReply::hang(), 0, Err(exit::FAILED)),
            (FakeReply::hang(), 1, Err(exit::INTERRUPTED)),
        ];
        for (test, interrupts, wanted) in cases {
            let said = format!("{test:?}");
            let found = ending(host(test, gone()), interrupts).await;
            assert_eq!(found, (wanted, BOTH.to_owned()), "{said}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_is_a_failure_and_the_second_interrupt_does_not_wait() {
        let passed = FakeReply::ok("begin exec\npassed exec\n");
        let refused = FakeReply::failed(1, "the API server does not answer");
        let found = ending(host(passed, refused), 0).await;
        assert_eq!(found, (Err(exit::FAILED), BOTH.to_owned()));
        let found = ending(host(FakeReply::hang(), FakeReply::hang()), 2).await;
        assert_eq!(found, (Err(exit::INTERRUPTED), BOTH.to_owned()));
    }
}
