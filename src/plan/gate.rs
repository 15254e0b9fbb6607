//! Where one host must wait for another.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::Plan;
use crate::cluster::NodeName;

/// A gate is opened by exactly one step of a plan, or closed with a reason when that step's
/// lane ends in any other way. A gate that nothing in the plan opens is not awaited either:
/// the facts say that it stands open.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// This host's firewall lets in what the cluster needs.
    LetsIn(NodeName),
    /// This load balancer listens on the endpoint's port.
    LoadBalancerServes(NodeName),
    /// The cluster exists: its CA is known, its configuration and tokens are published.
    Initialised,
    /// It is this controller's turn to join etcd; the certificates are uploaded for it.
    EtcdTurn(NodeName),
    /// This host's Node is part of the cluster; of a controller also its etcd member votes.
    Joined(NodeName),
    /// What the cluster still knew of this host is forgotten: it may join again.
    Forgotten(NodeName),
    /// This host is cleared of what was on it.
    Cleared(NodeName),
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LetsIn(host) => write!(f, "the firewall of {host} is open"),
            Self::LoadBalancerServes(host) => write!(f, "load balancer {host} serves"),
            Self::Initialised => f.write_str("the cluster is initialised"),
            Self::EtcdTurn(host) => write!(f, "it is the turn of {host} to join etcd"),
            Self::Joined(host) => write!(f, "{host} has joined"),
            Self::Forgotten(host) => write!(f, "the old {host} is forgotten"),
            Self::Cleared(host) => write!(f, "{host} is cleared"),
        }
    }
}

/// Every awaited gate has exactly one opener or none, and waiting never goes in a circle.
///
/// # Errors
/// Names the gate; a plan like that is a defect of the planner.
pub fn check_gates(plan: &Plan) -> Result<(), String> {
    let mut opener: BTreeMap<&Gate, (usize, usize)> = BTreeMap::new();
    for (lane, steps) in plan.lanes.iter().map(|lane| &lane.steps).enumerate() {
        for (step, planned) in steps.iter().enumerate() {
            if let Some(gate) = &planned.opens
                && opener.insert(gate, (lane, step)).is_some()
            {
                return Err(format!("two steps open the gate: {gate}"));
            }
        }
    }
    // Carry the plan out in thought: every round must get some lane further.
    let mut at = vec![0; plan.lanes.len()];
    loop {
        let mut moved = false;
        for lane in 0..plan.lanes.len() {
            while let Some(planned) = plan.lanes[lane].steps.get(at[lane]) {
                let waits = planned.needs.iter().chain(&planned.after).chain(&planned.only_if);
                let ready = |gate: &Gate| opener.get(gate).is_none_or(|(other, step)| at[*other] > *step);
                if !waits.into_iter().all(ready) {
                    break;
                }
                at[lane] += 1;
                moved = true;
            }
        }
        let stuck = (0..plan.lanes.len()).find(|lane| at[*lane] < plan.lanes[*lane].steps.len());
        match stuck {
            None => return Ok(()),
            Some(lane) if !moved => {
                let planned = &plan.lanes[lane].steps[at[lane]];
                return Err(format!(
                    "{} would wait for ever to {}",
                    plan.lanes[lane].host,
                    planned.step.title()
                ));
            }
            Some(_) => {}
        }
    }
}
