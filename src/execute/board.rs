//! The gates of a run: shut, then open, or closed with a reason.

use std::collections::BTreeMap;

use tokio::sync::watch;

use crate::plan::{Gate, Plan};

/// How a gate stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Shut,
    Open,
    Closed(String),
}

/// All gates that the plan's steps open. A gate that is not here stands open.
#[derive(Debug)]
pub(crate) struct Board {
    gates: BTreeMap<Gate, watch::Sender<State>>,
}

impl Board {
    /// A board with every gate of the plan shut.
    pub(crate) fn new(plan: &Plan) -> Self {
        let opened = plan.steps().filter_map(|planned| planned.opens.clone());
        Self {
            gates: opened.map(|gate| (gate, watch::Sender::new(State::Shut))).collect(),
        }
    }

    /// Opens a gate.
    pub(crate) fn open(&self, gate: &Gate) {
        if let Some(sender) = self.gates.get(gate) {
            sender.send_replace(State::Open);
        }
    }

    /// Closes a gate that is still shut; true when it was.
    pub(crate) fn close(&self, gate: &Gate, reason: &str) -> bool {
        self.gates.get(gate).is_some_and(|sender| {
            sender.send_if_modified(|state| {
                let shut = *state == State::Shut;
                if shut {
                    *state = State::Closed(reason.to_owned());
                }
                shut
            })
        })
    }

    /// Whether the gate is still undecided.
    pub(crate) fn is_shut(&self, gate: &Gate) -> bool {
        self.gates
            .get(gate)
            .is_some_and(|sender| *sender.borrow() == State::Shut)
    }

    /// Waits until the gate is open.
    ///
    /// # Errors
    /// With the reason, when it is closed.
    pub(crate) async fn opened(&self, gate: &Gate) -> Result<(), String> {
        let Some(sender) = self.gates.get(gate) else {
            return Ok(());
        };
        match decided(sender).await {
            State::Closed(reason) => Err(reason),
            State::Open | State::Shut => Ok(()),
        }
    }

    /// Waits until the gate is open or closed.
    pub(crate) async fn decided(&self, gate: &Gate) {
        if let Some(sender) = self.gates.get(gate) {
            decided(sender).await;
        }
    }
}

async fn decided(sender: &watch::Sender<State>) -> State {
    let mut receiver = sender.subscribe();
    // The board outlives its lanes, so the sender is there as long as anybody waits.
    match receiver.wait_for(|state| *state != State::Shut).await {
        Ok(state) => state.clone(),
        Err(_) => State::Closed("the run ended".to_owned()),
    }
}
