//! `k8sup apply`: from what is to what the inventory wants.
//!
//! Load, connect, observe, plan, show, confirm, carry out, wait, observe again.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::Ended;
use super::args::Apply as Args;
use super::fleet::{self, Fleet, confirm, followed, timed};
use super::interrupt::Interrupt;
use super::kubeconfig;
use super::plan::{blocked, show};
use super::support;
use crate::check::{self, Finding};
use crate::cluster::{NodeName, Role};
use crate::execute::event::{Event, Phase};
use crate::execute::lock::Lock;
use crate::execute::verify::{self, Problem};
use crate::execute::{Carried, evidence};
use crate::exit;
use crate::facts::{Facts, Observation};
use crate::plan::apply::{Intent, plan};
use crate::plan::{Lane, Plan, Step, check_gates};
use crate::remote::{Line, Session};
use crate::report::{Console, Summary, failure, page, plan_view};

/// How often more may show up to be done: once for a control plane that had to come up first,
/// once for what is set only when the cluster is there, and once to spare.
const ROUNDS: usize = 3;
/// How long a cluster that was changed or has grown just now may need until nothing is wrong with it.
const SETTLING: Duration = Duration::from_secs(60);
/// How long something may be wrong with a cluster that was not changed before it is said.
const BLINK: Duration = Duration::from_secs(10);

/// Runs the command.
pub async fn run(args: &Args, console: &Console) -> Ended {
    let mut cluster = fleet::load(&args.target, console)?;
    fleet::allow(&mut cluster, &args.allow, console)?;
    let only = fleet::named_hosts(&cluster, &args.hosts, console)?;
    if !args.yes && !std::io::stdin().is_terminal() {
        let error = std::io::Error::other("apply asks before it changes anything, and there is no terminal to ask on");
        console.fail(
            &error,
            Some(&format!(
                "look at `k8sup plan {}` first, then add --yes",
                args.target.typed()
            )),
        );
        return Err(exit::USAGE);
    }
    let fleet = fleet::connect(cluster, &args.target, console).await?;
    let intent = fleet.intent(only, console).await?;
    let run = Run {
        fleet: &fleet,
        intent: &intent,
        console,
        args,
    };
    let ended = run.story().await;
    fleet.close().await;
    ended
}

struct Run<'a> {
    fleet: &'a Fleet,
    intent: &'a Intent,
    console: &'a Console,
    args: &'a Args,
}

impl Run<'_> {
    async fn story(&self) -> Ended {
        let ((facts, planned), summary) = followed(self.console, |events| self.observe_and_plan(events)).await;
        fleet::alone(&facts, self.console)?;
        let plan = planned.map_err(|blockers| blocked(&blockers, self.console))?;
        if plan.is_empty() {
            return Ok(self.converged(&facts, &plan, summary).await);
        }
        self.may_reboot(&plan)?;
        if !self.agreed(&plan, "Do this?") {
            self.console.say("Nothing was changed.\n");
            return Err(exit::INTERRUPTED);
        }
        let lock = self.fleet.lock("apply", self.console).await?;
        let ended = self.change(&lock, plan, summary).await;
        lock.release().await;
        ended
    }

    /// Nobody's host is rebooted by a yes that was given before anybody knew of it.
    fn may_reboot(&self, plan: &Plan) -> Result<(), u8> {
        let hosts = unasked_reboots(plan, self.args);
        if hosts.is_empty() {
            return Ok(());
        }
        show(plan, self.args.diff, self.console);
        let error = std::io::Error::other(format!(
            "{} must be rebooted first, and --yes alone does not say that this may be",
            listed(&hosts)
        ));
        let hint = "nothing was changed; the plan above says why: add --reboot, or leave them out with --host";
        self.console.fail(&error, Some(hint));
        Err(exit::BLOCKED)
    }

    /// Shows what will be done, and asks for a yes unless it was given.
    fn agreed(&self, plan: &Plan, question: &str) -> bool {
        show(plan, self.args.diff, self.console);
        let reboots: Vec<NodeName> = plan.reboots().cloned().collect();
        let question = if reboots.is_empty() {
            question.to_owned()
        } else {
            format!("{question} It reboots {}.", listed(&reboots))
        };
        self.args.yes || confirm(&format!("{question} Only `yes` is a yes: "), |answer| answer == "yes")
    }

    /// Only this run changes the hosts now.
    async fn change(&self, lock: &Lock, shown: Plan, mut summary: Summary) -> Ended {
        // Somebody may have changed them since: what is done is what the person has seen.
        let facts = self.fleet.look().await;
        let mut plan = self.plan(&facts).map_err(|blockers| blocked(&blockers, self.console))?;
        if plan.is_empty() {
            return Ok(self.converged(&facts, &plan, summary).await);
        }
        if plan.lanes != shown.lanes {
            self.console.warn(fleet::CHANGED_MEANWHILE);
            self.may_reboot(&plan)?;
            if !self.agreed(&plan, "Do this instead?") {
                self.console.say("Nothing was changed.\n");
                return Err(exit::INTERRUPTED);
            }
        }
        let interrupt = Interrupt::listen();
        for round in 1.. {
            let (carried, seen) = followed(self.console, |events| {
                interrupt.carry_out(&plan, self.fleet, lock, events)
            })
            .await;
            summary.absorb(seen);
            if !carried.complete() {
                return Ok(self.incomplete(&plan, &carried, &summary).await);
            }
            let looking = followed(self.console, |events| self.look_again(&plan, events));
            let (looked, seen) = tokio::select! {
                looked = looking => looked,
                () = interrupt.stop.cancelled() => {
                    self.sum_up(&summary);
                    self.console.warn("every step was done, but whether the cluster serves was not waited for: run the same command again to see");
                    return Err(exit::INTERRUPTED);
                }
            };
            summary.absorb(seen);
            plan = looked.plan.map_err(|blockers| blocked(&blockers, self.console))?;
            if plan.is_empty() {
                return Ok(self.done(&looked.problems, &plan, &summary).await);
            }
            if round == ROUNDS {
                return Ok(self.not_converged(&plan, &summary).await);
            }
            self.may_reboot(&plan)?;
            // What could not be seen before is planned now, and shown before it is done.
            if !self.agreed(&plan, "Do this, too?") {
                return Err(exit::INTERRUPTED);
            }
        }
        Err(exit::UNEXPECTED)
    }

    async fn observe_and_plan(&self, events: mpsc::Sender<Event>) -> (Facts, Result<Plan, Vec<Finding>>) {
        let facts = self.fleet.observe_before(self.intent, &events).await;
        let planned = timed(Phase::Plan, &events, async { self.plan(&facts) }).await;
        (facts, planned)
    }

    fn plan(&self, facts: &Facts) -> Result<Plan, Vec<Finding>> {
        let plan = self
            .args
            .target
            .name_in(plan(&self.fleet.cluster, facts, self.intent))?;
        check_gates(&plan).map_err(|defect| vec![check::DEFECT.at_large(format!("the plan is wrong: {defect}"))])?;
        Ok(plan)
    }

    /// Waits until the cluster serves, then looks and plans again.
    async fn look_again(&self, done: &Plan, events: mpsc::Sender<Event>) -> Looked {
        if done.continues.is_none() {
            timed(Phase::Verify, &events, self.settle(&events)).await;
        }
        // A backend or a member may need a moment more than the pods did; what a part of the plan
        // is still to bring is not waited for.
        let limit = if done.continues.is_none() {
            SETTLING
        } else {
            Duration::ZERO
        };
        let (facts, problems) = self.look_until_well(limit, &events).await;
        let plan = self.plan(&facts);
        Looked { plan, problems }
    }

    /// Looks until nothing is wrong with the cluster, or for so long.
    async fn look_until_well(&self, limit: Duration, events: &mpsc::Sender<Event>) -> (Facts, Vec<Problem>) {
        timed(Phase::Recheck, events, self.keep_looking(limit, events)).await
    }

    async fn keep_looking(&self, limit: Duration, events: &mpsc::Sender<Event>) -> (Facts, Vec<Problem>) {
        let deadline = Instant::now() + limit;
        loop {
            let facts = self.fleet.look().await;
            let problems = verify::problems(&self.fleet.cluster, &facts, &self.left_out(&facts));
            let Some(first) = problems.first().filter(|_| Instant::now() < deadline) else {
                return (facts, problems);
            };
            let message = format!("waiting: {}", first.message);
            let host = first.host.clone();
            let _ = events.send(Event::Note { host, message }).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn settle(&self, events: &mpsc::Sender<Event>) {
        let left_out: Vec<&NodeName> = self
            .fleet
            .sessions
            .iter()
            .filter(|(_, session)| session.is_err())
            .map(|(name, _)| name)
            .collect();
        let nodes: Vec<NodeName> = self
            .fleet
            .cluster
            .nodes()
            .map(|host| host.name.clone())
            .filter(|name| !left_out.contains(&name))
            .filter(|name| self.intent.includes(name))
            .collect();
        let Some((controller, session)) = self.controller() else {
            return;
        };
        let (lines, mut received) = mpsc::channel::<Line>(64);
        let forward = async {
            while let Some(line) = received.recv().await {
                let _ = events
                    .send(Event::Note {
                        host: Some(controller.clone()),
                        message: line.text,
                    })
                    .await;
            }
        };
        let wait = async {
            // What is not ready shows in the facts; a wait that cannot run is no news by itself.
            let _ = verify::settle(session, &nodes, &lines).await;
            drop(lines);
        };
        tokio::join!(wait, forward);
    }

    fn controller(&self) -> Option<(&NodeName, &Session)> {
        self.fleet
            .cluster
            .role(Role::Controller)
            .find_map(|host| Some((&host.name, self.fleet.sessions.get(&host.name)?.as_ref().ok()?)))
    }

    /// Hosts that are not asked about: unreachable, or not named by the person.
    fn left_out(&self, facts: &Facts) -> Vec<NodeName> {
        let unreachable = |name: &NodeName| !matches!(facts.hosts.get(name), Some(Observation::Seen(_)));
        let unnamed = |name: &NodeName| !self.intent.includes(name);
        let hosts = self.fleet.cluster.hosts.iter().map(|host| &host.name);
        hosts
            .filter(|name| unreachable(name) || unnamed(name))
            .cloned()
            .collect()
    }

    // --- the ends -----------------------------------------------------------------

    fn sum_up(&self, summary: &Summary) {
        let summary = summary.about(self.intent.only.as_ref());
        self.console.summary(&summary);
        self.write_report(&summary);
    }

    /// The timeline, where one is wanted. That it cannot be written changes nothing of what was done.
    fn write_report(&self, summary: &Summary) {
        let Some(file) = &self.args.report else { return };
        let title = format!("k8sup apply: {}", self.fleet.cluster.name);
        match page::write(file, &title, summary) {
            Ok(()) => self.console.say(&format!("Timeline: {}\n", file.display())),
            Err(error) => self.console.warn(&error.to_string()),
        }
    }

    async fn converged(&self, facts: &Facts, plan: &Plan, mut summary: Summary) -> u8 {
        let mut problems = verify::problems(&self.fleet.cluster, facts, &self.left_out(facts));
        if !problems.is_empty() {
            // A check of haproxy's that fails once is no news; what a run that was ended did not wait for is waited for now.
            let limit = if verify::has_just_grown(facts) { SETTLING } else { BLINK };
            let look = followed(self.console, |events| async move {
                self.look_until_well(limit, &events).await
            });
            let ((_, still), seen) = look.await;
            problems = still;
            summary.absorb(seen);
        }
        self.console
            .say(&plan_view::render_warnings(&plan.warnings, self.console.style()));
        self.tell(&problems);
        let (who, missing) = if plan.left_out.is_empty() {
            ("the hosts are", String::new())
        } else {
            (
                "the hosts that were looked at are",
                format!("Left out, see above: {}.\n", listed(&plan.left_out)),
            )
        };
        self.console.say(&format!(
            "Nothing to do: {who} as the inventory wants them ({:.1} s).\n{missing}",
            summary.total.as_secs_f64()
        ));
        self.write_report(&summary);
        if !problems.is_empty() {
            exit::FAILED
        } else if !plan.left_out.is_empty() {
            exit::PARTIAL
        } else {
            exit::DONE
        }
    }

    fn tell(&self, problems: &[Problem]) {
        for problem in problems {
            let host = problem
                .host
                .as_ref()
                .map(|host| format!("{host}: "))
                .unwrap_or_default();
            self.console.warn(&format!("{host}{}", problem.message));
        }
    }

    async fn incomplete(&self, plan: &Plan, carried: &Carried, summary: &Summary) -> u8 {
        self.sum_up(summary);
        if let Some(host) = &carried.unrevoked {
            self.console.warn(&format!(
                "{host}: bootstrap tokens and uploaded certificates could not be revoked; the next apply does it, and after two hours they are void"
            ));
        }
        if carried.interrupted {
            return exit::INTERRUPTED;
        }
        support::keep(self.fleet, plan, &self.args.target, self.console).await;
        let failed = carried.failures.iter().map(|error| &error.host);
        let unfinished: Vec<&NodeName> = failed.chain(carried.not_started.iter().map(|(host, _)| host)).collect();
        let finished = |lane: &Lane| !unfinished.contains(&&lane.host);
        // The last word on the cluster is the leader's: with it said, the rest is done.
        let leads = |lane: &&Lane| lane.steps.iter().any(|planned| planned.step == Step::Revoke);
        let rest_is_done = match plan.lanes.iter().find(leads) {
            Some(leader) => finished(leader),
            None => plan.lanes.iter().any(finished),
        };
        let lost = !carried.failures.is_empty() && carried.failures.iter().all(|error| error.host_lost);
        match (rest_is_done, lost) {
            (true, _) => exit::PARTIAL,
            (false, true) => exit::UNREACHABLE,
            (false, false) => exit::FAILED,
        }
    }

    async fn done(&self, problems: &[Problem], plan: &Plan, summary: &Summary) -> u8 {
        self.sum_up(summary);
        // That a host was left out stands in the summary.
        let others = plan.warnings.iter().filter(|warning| {
            let host = warning.host.as_ref();
            !host.is_some_and(|host| plan.left_out.contains(host))
        });
        let others: Vec<Finding> = others.cloned().collect();
        self.console
            .say(&plan_view::render_warnings(&others, self.console.style()));
        if !problems.is_empty() {
            self.tell(problems);
            self.why(problems).await;
            support::keep(self.fleet, plan, &self.args.target, self.console).await;
            return exit::FAILED;
        }
        let Some((_, session)) = self.controller() else {
            return exit::UNEXPECTED;
        };
        match kubeconfig::keep(&self.fleet.cluster, session).await {
            Ok(path) => {
                let path = path.display();
                self.console.say(&format!(
                    "\nThe cluster serves at https://{}.\n\n  export KUBECONFIG={path}\n  kubectl get nodes\n\nTo have it in your own kubeconfig: k8sup kubeconfig {} --merge\n",
                    self.fleet.cluster.endpoint,
                    self.args.target.typed(),
                ));
            }
            Err(error) => self.console.warn(&format!(
                "the cluster serves, but its kubeconfig could not be kept: {error}"
            )),
        }
        if plan.left_out.is_empty() {
            exit::DONE
        } else {
            exit::PARTIAL
        }
    }

    /// The logs of the hosts that do not serve.
    async fn why(&self, problems: &[Problem]) {
        let mut asked = Vec::new();
        for host in problems.iter().filter_map(|problem| problem.host.as_ref()) {
            let Some(Ok(session)) = self.fleet.sessions.get(host) else {
                continue;
            };
            if asked.contains(&host) || asked.len() == 3 {
                continue;
            }
            asked.push(host);
            let found = evidence::from_host(session, "kubelet\ncontainerd\nhaproxy").await;
            self.console
                .say(&failure::evidence_block(host, &found, self.console.style()));
        }
    }

    async fn not_converged(&self, plan: &Plan, summary: &Summary) -> u8 {
        self.sum_up(summary);
        self.console
            .warn("every step was done, but the hosts are still not as the inventory wants them; this is left to do:");
        show(plan, true, self.console);
        support::keep(self.fleet, plan, &self.args.target, self.console).await;
        exit::FAILED
    }
}

/// Hosts that the plan reboots though nobody was asked, or will be.
fn unasked_reboots(plan: &Plan, args: &Args) -> Vec<NodeName> {
    let asked = args.reboot || !args.yes;
    plan.reboots().filter(|_| !asked).cloned().collect()
}

fn listed(hosts: &[NodeName]) -> String {
    hosts.iter().map(NodeName::as_str).collect::<Vec<_>>().join(", ")
}

struct Looked {
    plan: Result<Plan, Vec<Finding>>,
    problems: Vec<Problem>,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::unasked_reboots;
    use crate::cli::args::{Cli, Command};
    use crate::cluster::{NodeName, Role};
    use crate::plan::{Lane, Plan, Planned, Step};

    #[test]
    fn a_yes_that_was_given_before_is_none_to_a_reboot() {
        let reboot = Step::Reboot {
            boot_id: "first".to_owned(),
        };
        let lane = |host: &str, step: Step| Lane {
            host: NodeName::parse(host).unwrap(),
            role: Role::Worker,
            steps: vec![Planned::new(step, "it differs")],
        };
        let plan = Plan {
            lanes: vec![lane("w1", reboot), lane("w2", Step::FinishJoin)],
            ..Plan::default()
        };
        for (options, expected) in [
            ("", &[][..]),
            ("--yes", &["w1"][..]),
            ("--reboot", &[]),
            ("--yes --reboot", &[]),
        ] {
            let words = "k8sup apply lab.yaml".split(' ').chain(options.split_whitespace());
            let Command::Apply(args) = Cli::try_parse_from(words).unwrap().command else {
                panic!("not apply")
            };
            let hosts: Vec<String> = unasked_reboots(&plan, &args).iter().map(ToString::to_string).collect();
            assert_eq!(hosts, expected, "{options}");
        }
    }
}
