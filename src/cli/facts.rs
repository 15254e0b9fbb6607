//! `k8sup facts`: what the hosts are, saved for others to look at.

use super::Ended;
use super::args::Facts as Args;
use super::fleet::{self, followed, timed};
use crate::execute::event::Phase;
use crate::exit;
use crate::facts::observe::observe_raw;
use crate::facts::{Observation, saved};
use crate::report::Console;
use crate::report::text::count;

/// Runs the command.
pub async fn run(args: &Args, console: &Console) -> Ended {
    let cluster = fleet::load(&args.target, console)?;
    let fleet = &fleet::connect(cluster, &args.target, console).await?;
    if fleet.nobody_answers() {
        return Err(fleet.nobody(console));
    }
    let ((facts, raw), _) = followed(console, |events| async move {
        let look = observe_raw(&fleet.cluster, &fleet.sessions);
        timed(Phase::Observe, &events, look).await
    })
    .await;
    fleet.close().await;
    let me = std::env::var("USER").unwrap_or_default();
    let written = saved::save(&args.output, &fleet.cluster, &facts, &raw, &[&me]).map_err(|error| {
        console.fail(&error, Some("name a folder that is empty, or that does not exist yet"));
        exit::USAGE
    })?;
    let mut unseen = 0;
    for host in &fleet.cluster.hosts {
        if let Some(Observation::Unreachable(why)) = facts.hosts.get(&host.name) {
            console.warn(&format!("{}: {}", host.name, why.reason));
            unseen += 1;
        }
    }
    console.say(&format!(
        "{} in {}: secrets, people's names and comments in files are masked; host names and addresses are not. \
         Look through them before you send them to anybody, with the inventory.\n",
        count(written.len(), "file"),
        args.output.display()
    ));
    Ok(if unseen > 0 { exit::PARTIAL } else { exit::DONE })
}
