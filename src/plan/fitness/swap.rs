//! Swap that cannot be turned off, or may come back.

use crate::check::{self, Finding};
use crate::concern::swap;
use crate::plan::apply::Member;

/// What a person must or should know before swap is turned off on a node.
pub(super) fn stubborn(part: &Member<'_>) -> Vec<Finding> {
    let (name, facts) = (&part.host.name, part.facts);
    let mut found = Vec::new();
    let areas = facts.swap.active.join(", ");
    if areas.is_empty() {
        return found;
    }
    let (used, free) = (facts.platform.swap_used_kib, facts.platform.available_kib);
    if free > 0 && used > free {
        let message = format!(
            "{} MB are in swap and {} MB of memory are free, so swap cannot be turned off",
            used / 1024,
            free / 1024
        );
        found.push(
            check::SWAP_IN_USE
                .on(name, message)
                .evidence(format!("{areas}; MemAvailable: {free} kB")),
        );
    }
    if !swap::has_source(facts) {
        let message = format!("swap is on ({areas}), and what starts it at boot was not found");
        found.push(check::SWAP_RETURNS.on(name, message).evidence(areas));
    }
    found
}
