//! `k8sup status`: what is, also of a broken cluster.

use super::Ended;
use super::args::{DataFormat, Status as Args};
use super::fleet::{self, followed};
use super::plan::{print, print_json};
use crate::execute::event::Phase;
use crate::exit;
use crate::facts::saved;
use crate::report::Console;
use crate::report::status::Status;

/// Runs the command.
pub async fn run(args: &Args, console: &Console) -> Ended {
    let cluster = fleet::load(&args.target, console)?;
    let fleet = &fleet::reach(cluster, &args.target, args.facts.as_deref(), console).await?;
    let (facts, _) = followed(
        console,
        |events| async move { fleet.observe(Phase::Observe, &events).await },
    )
    .await;
    fleet.close().await;
    fleet::say_who_is_at_work(&facts, console);
    // What was saved is judged by the time at which it was.
    let now = args.facts.as_ref().and_then(|_| saved::time(&facts));
    let now = now.unwrap_or_else(|| jiff::Timestamp::now().as_second());
    let view = Status::new(&fleet.cluster, &facts, now).naming(&args.target.typed());
    match args.output {
        DataFormat::Text => print(console, &view.render(console.data_style()))?,
        DataFormat::Json => print_json(console, view.json())?,
    }
    let all_gone = fleet.nobody_answers();
    Ok(match (view.healthy(), args.exit_code) {
        _ if all_gone => exit::UNREACHABLE,
        (false, true) => exit::FAILED,
        _ => exit::DONE,
    })
}
