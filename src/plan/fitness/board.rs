//! A Raspberry Pi: its command line, and its power.

use crate::check::{self, Finding};
use crate::concern::boot::{self, Remedy};
use crate::plan::apply::Member;

/// The memory control group is off, and no step puts that right.
pub(super) fn memory_cgroup(part: &Member<'_>) -> Option<Finding> {
    let name = &part.host.name;
    match boot::memory_cgroup(part.facts) {
        // Whoever is a member runs; nobody reboots it.
        Remedy::Line { .. } | Remedy::Reboot if part.comes() => None,
        Remedy::Unusable { path, why } => Some(
            check::PI_CMDLINE
                .on(name, format!("the memory control group is off, and {path} {why}"))
                .evidence(boot::evidence(part.facts)),
        ),
        _ => Some(
            check::MEMORY_CGROUP
                .on(name, "the memory control group is off")
                .evidence(boot::evidence(part.facts)),
        ),
    }
}

/// What the firmware says about voltage and heat; of a member only what is so now, as it does not forget until a boot.
pub(super) fn power(part: &Member<'_>) -> Option<Finding> {
    let board = &part.facts.platform.board;
    let bit = |number: u32| board.throttled >> number & 1 == 1;
    let since_boot = |number: u32| part.comes() && bit(number);
    let mut told = Vec::new();
    if board.undervoltage || bit(0) {
        told.push("the voltage is too low");
    } else if since_boot(16) {
        told.push("the voltage was too low since it booted");
    }
    if bit(2) {
        told.push("it is throttled");
    } else if since_boot(18) {
        told.push("it was throttled since it booted");
    }
    if bit(3) || bit(1) {
        told.push("it is too hot");
    } else if since_boot(19) {
        told.push("it was too hot since it booted");
    }
    (!told.is_empty()).then(|| {
        check::PI_POWER
            .on(&part.host.name, told.join(", "))
            .evidence(format!("{}: get_throttled {:#x}", board.model, board.throttled))
    })
}
