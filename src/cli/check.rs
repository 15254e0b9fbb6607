//! `k8sup check`: everything that must be right before the first change; changes nothing.

use super::Ended;
use super::args::{Check as Args, DataFormat};
use super::fleet::{self, followed};
use super::plan::{print, print_json};
use crate::exit;
use crate::plan::apply;
use crate::report::Console;
use crate::report::check_view::Examined;

/// Runs the command.
pub async fn run(args: &Args, console: &Console) -> Ended {
    let mut cluster = fleet::load(&args.target, console)?;
    fleet::allow(&mut cluster, &args.allow, console)?;
    let fleet = &fleet::reach(cluster, &args.target, args.facts.as_deref(), console).await?;
    let intent = &fleet.intent(None, console).await?;
    let (facts, _) = followed(
        console,
        |events| async move { fleet.observe_before(intent, &events).await },
    )
    .await;
    fleet.close().await;
    fleet::say_who_is_at_work(&facts, console);
    let mut findings = apply::examine(&fleet.cluster, &facts, intent);
    args.target.name_in_findings(&mut findings);
    let examined = Examined {
        cluster: &fleet.cluster,
        facts: &facts,
        findings: &findings,
    };
    match args.output {
        DataFormat::Text => print(console, &examined.text(console.data_style()))?,
        DataFormat::Json => print_json(console, examined.json())?,
    }
    let refusals = examined.refusals();
    Ok(match (refusals.is_empty(), examined.unreachable()) {
        (false, _) => exit::blocked(&refusals),
        (true, 0) => exit::DONE,
        (true, _) => exit::UNREACHABLE,
    })
}
