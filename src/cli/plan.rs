//! `k8sup plan`: what apply would do, without doing it.

use super::Ended;
use super::args::{DataFormat, Plan as Args};
use super::fleet::{self, followed, timed};
use crate::check::Finding;
use crate::execute::event::Phase;
use crate::exit;
use crate::plan::{Plan, apply};
use crate::report::{Console, failure, plan_view};

/// Runs the command.
pub async fn run(args: &Args, console: &Console) -> Ended {
    let mut cluster = fleet::load(&args.target, console)?;
    fleet::allow(&mut cluster, &args.allow, console)?;
    let only = fleet::named_hosts(&cluster, &args.hosts, console)?;
    let fleet = &fleet::reach(cluster, &args.target, args.facts.as_deref(), console).await?;
    let intent = &fleet.intent(only, console).await?;
    let ((facts, planned), _) = followed(console, |events| async move {
        let facts = fleet.observe_before(intent, &events).await;
        let planned = timed(Phase::Plan, &events, async {
            apply::plan(&fleet.cluster, &facts, intent)
        });
        let planned = planned.await;
        (facts, planned)
    })
    .await;
    fleet.close().await;
    fleet::say_who_is_at_work(&facts, console);
    let name = &fleet.cluster.name;
    match args.target.name_in(planned) {
        Ok(plan) => {
            match args.output {
                DataFormat::Text => print(console, &plan_view::render(&plan, args.diff, console.data_style()))?,
                DataFormat::Json => print_json(console, plan_view::json(name, &plan))?,
            }
            Ok(match (args.exit_code, plan.is_empty(), plan.left_out.is_empty()) {
                (true, false, _) => exit::CHANGES,
                (true, true, false) => exit::PARTIAL,
                (true, true, true) | (false, ..) => exit::DONE,
            })
        }
        Err(blockers) => {
            if args.output == DataFormat::Json {
                print_json(console, plan_view::blockers_json(name, &blockers))?;
            }
            Ok(blocked(&blockers, console))
        }
    }
}

/// Shows what stands in the way; gives the exit code that it means.
#[must_use]
pub fn blocked(blockers: &[Finding], console: &Console) -> u8 {
    console.say(&failure::blockers(blockers, console.style()));
    exit::blocked(blockers)
}

/// The plan, for a person who is about to say yes.
pub fn show(plan: &Plan, full: bool, console: &Console) {
    console.say(&plan_view::render(plan, full, console.style()));
}

/// Prints data.
///
/// # Errors
/// [`exit::UNEXPECTED`], when standard output cannot be written.
pub fn print(console: &Console, text: &str) -> Result<(), u8> {
    console.data(text).map_err(|error| unexpected(console, &error))
}

/// Prints data as JSON.
///
/// # Errors
/// As [`print`].
pub fn print_json(console: &Console, value: Result<serde_json::Value, serde_json::Error>) -> Result<(), u8> {
    let value = value.map_err(|error| unexpected(console, &error))?;
    console.data_json(&value).map_err(|error| unexpected(console, &error))
}

/// Shows an error that should not happen.
pub fn unexpected(console: &Console, error: &dyn std::error::Error) -> u8 {
    console.fail(error, None);
    exit::UNEXPECTED
}
