//! The clock: certificates are made by it, so a time service that has just been started is waited for.

use crate::check;
use crate::facts::{HostFacts, Seen};
use crate::plan::{Planned, Step};

/// Units that keep a clock right.
pub const SERVICES: [&str; 5] = ["systemd-timesyncd", "chrony", "ntpsec", "ntp", "openntpd"];

/// A time service runs.
#[must_use]
pub fn service(facts: &HostFacts) -> Option<&'static str> {
    let runs = |name: &&&str| facts.services.get(**name).is_some_and(|service| service.active);
    SERVICES.iter().find(runs).copied()
}

/// The step of a node that is to come which waits for its clock. A container's is that of its machine.
#[must_use]
pub fn steps(facts: &HostFacts) -> Option<Planned> {
    let service = service(facts)?;
    let unset = facts.platform.clock_unsynchronised == Seen::Present(true);
    (unset && facts.platform.container.is_none()).then(|| {
        let why = format!("{service} runs, but has not set the clock yet");
        Planned::new(Step::AwaitClock, why.clone()).fixes([check::CLOCK_UNSYNCHRONISED.at_large(why)])
    })
}
