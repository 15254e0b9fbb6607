//! Carrying out a plan: whole, until a cut, or only one kind of its steps.
//!
//! Which lane goes on is the caller's choice; what a step does is not known here.

use std::collections::BTreeSet;

use k8sup::facts::Seen;
use k8sup::plan::{Gate, Plan, Step};

use super::World;
use crate::world;

/// Where a run ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    /// After this many steps.
    pub steps: usize,
    /// And after this many parts of the next one.
    pub parts: usize,
}

impl World {
    /// Plans and carries out until nothing is left to do; at most as often as `apply` does.
    pub(crate) fn converge(&mut self) {
        for _ in 0..3 {
            let plan = self.plan();
            if plan.is_empty() {
                return;
            }
            self.carry_out(&plan);
        }
        let left = self.plan();
        assert!(
            left.is_empty(),
            "still to do after three rounds:\n{}",
            world::outline(&left)
        );
    }

    /// Carries out a whole plan.
    pub(crate) fn carry_out(&mut self, plan: &Plan) {
        self.carry_out_until(plan, None, &mut |_| 0);
    }

    /// Carries out a plan until the cut; `pick` chooses one of so many lanes that could go on.
    pub(crate) fn carry_out_until(&mut self, plan: &Plan, cut: Option<Cut>, pick: &mut dyn FnMut(usize) -> usize) {
        self.minted = false;
        let opened: BTreeSet<&Gate> = plan.steps().filter_map(|p| p.opens.as_ref()).collect();
        let mut open: BTreeSet<&Gate> = BTreeSet::new();
        let mut at = vec![0; plan.lanes.len()];
        let mut steps = 0;
        loop {
            let ready: Vec<usize> = (0..plan.lanes.len())
                .filter(|lane| {
                    plan.lanes[*lane].steps.get(at[*lane]).is_some_and(|planned| {
                        let mut waits = planned.needs.iter().chain(&planned.after).chain(&planned.only_if);
                        waits.all(|gate| !opened.contains(gate) || open.contains(gate))
                    })
                })
                .collect();
            if ready.is_empty() {
                let all = (0..plan.lanes.len()).all(|lane| at[lane] == plan.lanes[lane].steps.len());
                assert!(all, "stuck:\n{}", world::outline(plan));
                return;
            }
            let lane = ready[pick(ready.len()) % ready.len()];
            let (host, planned) = (&plan.lanes[lane].host, &plan.lanes[lane].steps[at[lane]]);
            if cut.is_some_and(|cut| steps == cut.steps) {
                self.part(host, &planned.step, cut.map_or(0, |cut| cut.parts));
                return;
            }
            self.step(host, &planned.step);
            self.done.push((host.clone(), planned.step.title()));
            open.extend(&planned.opens);
            at[lane] += 1;
            steps += 1;
        }
    }

    /// Carries out what makes the hosts ready for kubeadm, and nothing more.
    pub(crate) fn prepare(&mut self) {
        let plan = self.plan();
        for lane in &plan.lanes {
            for planned in &lane.steps {
                let prepares = matches!(
                    planned.step,
                    Step::BootLine { .. }
                        | Step::Reboot { .. }
                        | Step::AwaitClock
                        | Step::SwapOff { .. }
                        | Step::Kernel { .. }
                        | Step::Hostname { .. }
                        | Step::Packages(_)
                        | Step::Containerd { .. }
                        | Step::HostsFile { .. }
                        | Step::ResolvConf { .. }
                        | Step::HaProxy { .. }
                );
                if prepares {
                    self.step(&lane.host, &planned.step);
                }
            }
        }
    }

    /// Begins the one step of that kind in the plan for a host, and ends after some of its parts.
    pub(crate) fn begin(&mut self, host: &str, title: &str, parts: usize) {
        let plan = self.plan();
        let host = world::name(host);
        let lane = plan.lanes.iter().find(|lane| lane.host == host);
        let planned = lane.and_then(|lane| lane.steps.iter().find(|planned| planned.step.title() == title));
        let planned = planned.unwrap_or_else(|| panic!("{host} is not to {title}:\n{}", world::outline(&plan)));
        // What others do first.
        if matches!(planned.step, Step::Join { .. }) {
            self.api().uploaded_certs = Seen::Present(());
        }
        self.part(&host, &planned.step, parts);
    }
}
