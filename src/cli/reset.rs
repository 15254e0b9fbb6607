//! `k8sup reset`: takes the cluster off its hosts and proves that they are clean.

use std::collections::BTreeSet;
use std::io::IsTerminal;

use super::Ended;
use super::args::Reset as Args;
use super::fleet::{self, Fleet, confirm, followed};
use super::interrupt::Interrupt;
use super::plan::{blocked, show};
use super::support;
use crate::execute::event::Phase;
use crate::execute::lock::Lock;
use crate::exit;
use crate::facts::{Facts, Observation};
use crate::plan::reset::{ResetIntent, leftovers, plan, recorded_packages};
use crate::plan::{Plan, check_gates};
use crate::report::{Console, Summary, plan_view};

/// How much of what is left on a host is named.
const SHOWN: usize = 6;

/// Runs the command.
pub async fn run(args: &Args, console: &Console) -> Ended {
    let cluster = fleet::load(&args.target, console)?;
    let only = fleet::named_hosts(&cluster, &args.hosts, console)?;
    if !args.yes && !std::io::stdin().is_terminal() {
        let error = std::io::Error::other("reset asks for the cluster's name, and there is no terminal to ask on");
        console.fail(&error, Some("add --yes when you are sure"));
        return Err(exit::USAGE);
    }
    let fleet = fleet::connect(cluster, &args.target, console).await?;
    let run = Run {
        fleet: &fleet,
        intent: &ResetIntent {
            only,
            purge: args.purge,
        },
        args,
        console,
    };
    let ended = run.story().await;
    fleet.close().await;
    ended
}

struct Run<'a> {
    fleet: &'a Fleet,
    intent: &'a ResetIntent,
    args: &'a Args,
    console: &'a Console,
}

impl Run<'_> {
    async fn story(&self) -> Ended {
        let (facts, summary) = self.observe(Phase::Observe).await;
        fleet::alone(&facts, self.console)?;
        let plan = self.plan(&facts)?;
        if plan.is_empty() {
            return Ok(self.nothing_to_do(&facts, &plan));
        }
        if !self.agreed(&plan) {
            return Err(exit::INTERRUPTED);
        }
        let lock = self.fleet.lock("reset", self.console).await?;
        let ended = self.change(&lock, plan, summary).await;
        lock.release().await;
        ended
    }

    async fn observe(&self, phase: Phase) -> (Facts, Summary) {
        followed(self.console, |events| async move {
            self.fleet.observe(phase, &events).await
        })
        .await
    }

    fn plan(&self, facts: &Facts) -> Result<Plan, u8> {
        let plan =
            plan(&self.fleet.cluster, facts, self.intent).map_err(|findings| blocked(&findings, self.console))?;
        if let Err(defect) = check_gates(&plan) {
            self.console.fail(
                &std::io::Error::other(format!("the plan is wrong: {defect}")),
                Some("this is a defect of k8sup: please report it"),
            );
            return Err(exit::UNEXPECTED);
        }
        Ok(plan)
    }

    /// Shows what will be done, and asks for the cluster's name unless a yes was given.
    fn agreed(&self, plan: &Plan) -> bool {
        show(plan, false, self.console);
        let name = &self.fleet.cluster.name;
        let question = format!("This cannot be undone. Type the cluster's name ({name}) to go on: ");
        let agreed = self.args.yes || confirm(&question, |answer| answer == name);
        if !agreed {
            self.console.say("Nothing was changed.\n");
        }
        agreed
    }

    /// Only this run changes the hosts now.
    async fn change(&self, lock: &Lock, shown: Plan, mut summary: Summary) -> Ended {
        // Somebody may have changed them since: what is done is what the person has seen.
        let facts = self.fleet.look().await;
        let plan = self.plan(&facts)?;
        if plan.is_empty() {
            return Ok(self.nothing_to_do(&facts, &plan));
        }
        if plan.lanes != shown.lanes {
            self.console.warn(fleet::CHANGED_MEANWHILE);
            if !self.agreed(&plan) {
                return Err(exit::INTERRUPTED);
            }
        }
        let interrupt = Interrupt::listen();
        let (carried, seen) = followed(self.console, |events| {
            interrupt.carry_out(&plan, self.fleet, lock, events)
        })
        .await;
        summary.absorb(seen);
        let (facts, seen) = self.observe(Phase::Recheck).await;
        summary.absorb(seen);
        self.console.summary(&summary.about(self.intent.only.as_ref()));
        if carried.interrupted {
            return Ok(exit::INTERRUPTED);
        }
        self.console.say("\n");
        let code = self.proof(&facts, carried.complete(), "");
        if code == exit::FAILED {
            support::keep(self.fleet, &plan, &self.args.target, self.console).await;
        }
        Ok(code)
    }

    fn nothing_to_do(&self, facts: &Facts, plan: &Plan) -> u8 {
        self.console
            .say(&plan_view::render_warnings(&plan.warnings, self.console.style()));
        self.proof(facts, true, "Nothing to reset: ")
    }

    /// The proof: what a second look finds on the hosts.
    fn proof(&self, facts: &Facts, complete: bool, before: &str) -> u8 {
        let Self {
            args, intent, console, ..
        } = self;
        let mut dirty = 0;
        let mut clean = 0;
        let mut unseen = Vec::new();
        let mut packages = BTreeSet::new();
        for (name, observation) in &facts.hosts {
            if intent.only.as_ref().is_some_and(|only| !only.contains(name)) {
                continue;
            }
            match observation {
                // Why has been told.
                Observation::Unreachable(_) => unseen.push(name.as_str()),
                Observation::Seen(seen) => {
                    packages.extend(recorded_packages(seen));
                    let mut left = leftovers(seen);
                    if seen
                        .record
                        .present()
                        .is_some_and(|record| intent.purge || !record.only_packages())
                    {
                        left.push("k8sup's record in /var/lib/k8sup".to_owned());
                    }
                    if left.is_empty() {
                        clean += 1;
                    } else {
                        dirty += 1;
                        let more = left.len().saturating_sub(SHOWN);
                        left.truncate(SHOWN);
                        let more = if more > 0 {
                            format!(" and {more} more")
                        } else {
                            String::new()
                        };
                        console.warn(&format!("{name}: still there: {}{more}", left.join(", ")));
                    }
                }
            }
        }
        if clean > 0 {
            console.say(&format!(
                "{before}{} clean: a look finds nothing of Kubernetes there.\n",
                if clean == 1 {
                    "1 host is".to_owned()
                } else {
                    format!("{clean} hosts are")
                }
            ));
        }
        // Where nothing was done they have just been named.
        if !unseen.is_empty() && before.is_empty() {
            console.warn(&format!(
                "not reset, since they could not be looked at: {}",
                unseen.join(", ")
            ));
        }
        if !packages.is_empty() && !intent.purge {
            console.say(&packages_stay(&packages, args));
        }
        match (complete && dirty == 0, unseen.len()) {
            (true, 0) => exit::DONE,
            (true, _) if clean == 0 => exit::UNREACHABLE,
            (true, _) => exit::PARTIAL,
            (false, _) => exit::FAILED,
        }
    }
}

/// What a reset without `--purge` leaves, and how that goes, too: on no more hosts than the person named.
fn packages_stay(packages: &BTreeSet<&str>, args: &Args) -> String {
    let hosts: Vec<String> = args.hosts.iter().map(|host| format!(" --host {host}")).collect();
    format!(
        "The packages that k8sup installed stay: {}.\nTo remove them, too: k8sup reset {}{hosts} --purge\n",
        packages.iter().copied().collect::<Vec<_>>().join(", "),
        args.target.typed(),
        hosts = hosts.concat(),
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::args::{Cli, Command};

    #[test]
    fn the_way_to_purge_names_no_other_hosts() {
        for line in ["k8sup reset my/lab.yaml", "k8sup reset my/lab.yaml --host w1 --host w2"] {
            let Command::Reset(args) = Cli::parse_from(line.split(' ')).command else {
                panic!("not reset")
            };
            let text = packages_stay(&BTreeSet::from(["kubelet", "containerd"]), &args);
            assert!(text.contains("stay: containerd, kubelet."), "{text}");
            assert!(text.ends_with(&format!("{line} --purge\n")), "{text}");
        }
    }
}
