//! Ctrl-C once: no new steps, running ones finish. Twice: stop now.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::fleet::{Fleet, timed};
use crate::execute::event::{Event, Phase};
use crate::execute::lock::Lock;
use crate::execute::{Carried, Equipment, Late, carry_out};
use crate::plan::Plan;

/// Listens from the first change on; before it, Ctrl-C simply ends the program.
#[derive(Debug)]
pub struct Interrupt {
    /// Cancelled by the first.
    pub stop: CancellationToken,
    /// Cancelled by the second.
    pub abort: CancellationToken,
}

impl Interrupt {
    /// Listens for as long as the program runs.
    #[must_use]
    pub fn listen() -> Self {
        let this = Self {
            stop: CancellationToken::new(),
            abort: CancellationToken::new(),
        };
        let (stop, abort) = (this.stop.clone(), this.abort.clone());
        tokio::spawn(async move {
            for token in [stop, abort] {
                if tokio::signal::ctrl_c().await.is_err() {
                    return;
                }
                token.cancel();
            }
        });
        this
    }

    /// Carries a plan out on a fleet, with fresh secrets, as far as the person lets it.
    pub async fn carry_out(&self, plan: &Plan, fleet: &Fleet, lock: &Lock, events: mpsc::Sender<Event>) -> Carried {
        let equipment = Equipment {
            sessions: fleet.open_sessions(),
            run: lock.run().to_owned(),
            holder: lock.holder().to_owned(),
            late: Arc::new(Late::fresh()),
            events: events.clone(),
            stop: self.stop.clone(),
            abort: self.abort.clone(),
        };
        let work = timed(Phase::Execute, &events, carry_out(plan, &equipment));
        tokio::pin!(work);
        tokio::select! {
            carried = &mut work => carried,
            () = self.stop.cancelled() => {
                let _ = events.send(Event::Interrupted).await;
                work.await
            }
        }
    }
}
