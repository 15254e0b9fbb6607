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
    let text = args.output == DataFormat::Text;
    let (sender, told) = mpsc::channel(16);
    let work = async {
        tokio::select! {
            ended = smoke::run(session, &smoke, sender) => Some(ended),
            () = interrupt.stop.cancelled() => None,
        }
    };
    let (ended, checks) = tokio::join!(work, show(told, text, console));
    let checks = checks?;
    clean_up(session, &smoke.namespace, &interrupt, console).await?;
    let failed = checks.iter().any(|check| check.verdict == Verdict::Failed);
    if !text {
        let document = json!({ "format": "k8sup.test/1", "passed": !failed && ended.is_some(), "checks": checks });
        print_json(console, Ok(document))?;
    }
    match ended {
        None => {
            console.say("Interrupted: what was made for the test is gone again.\n");
            Err(exit::INTERRUPTED)
        }
        Some(Err(error)) => stopped(&host, &error.to_string(), console),
        // It did not come to its first check, or broke off in the middle of one.
        Some(Ok(output)) if !failed && !output.ok() => stopped(&host, &output.stderr, console),
        Some(Ok(_)) if failed => Ok(exit::FAILED),
        Some(Ok(_)) => Ok(exit::DONE),
    }
}

fn stopped(host: &NodeName, why: &str, console: &Console) -> Ended {
    let why = clean(why.trim());
    console.fail(
        &TestError::Stopped {
            host: host.clone(),
            why,
        },
        Some("run it again"),
    );
    Err(exit::FAILED)
}

/// Shows each check as it ends, and what is under way where it takes long.
async fn show(mut told: mpsc::Receiver<Told>, text: bool, console: &Console) -> Result<Vec<Tried>, u8> {
    let mut checks = Vec::new();
    let mut under_way: Option<(String, Instant)> = None;
    let mut tick = interval_at(tokio::time::Instant::now() + SILENCE, SILENCE);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            one = told.recv() => match one {
                None => return Ok(checks),
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
    let why = tokio::select! {
        ended = smoke::clean_up(session, namespace) => match ended {
            Ok(output) if output.ok() => return Ok(()),
            Ok(output) => clean(output.stderr.trim()),
            Err(error) => error.to_string(),
        },
        () = interrupt.abort.cancelled() => "interrupted".to_owned(),
    };
    let hint = format!("`kubectl delete namespace {namespace}`; the next `k8sup test` after half an hour does it, too");
    let namespace = namespace.to_owned();
    console.fail(&TestError::Left { namespace, why }, Some(&hint));
    Err(exit::FAILED)
}
