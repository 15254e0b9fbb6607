//! The exit codes: a documented promise to scripts. Only `main` exits.

use crate::check::Finding;

/// All is done, or nothing was to be done.
pub const DONE: u8 = 0;
/// Something that should not happen happened.
pub const UNEXPECTED: u8 = 1;
/// The command line or the inventory is wrong; nothing was contacted.
pub const USAGE: u8 = 2;
/// `plan --exit-code` found something to do.
pub const CHANGES: u8 = 3;
/// A host cannot be reached, or refuses us (authentication, sudo, host key).
pub const UNREACHABLE: u8 = 4;
/// A step failed, or `status --exit-code` found the cluster unhealthy.
pub const FAILED: u8 = 5;
/// Preflight found something in the way; nothing was changed.
pub const BLOCKED: u8 = 6;
/// Some hosts were left out or failed, the rest is as the inventory wants it.
pub const PARTIAL: u8 = 7;
/// The person interrupted the run or declined to go on.
pub const INTERRUPTED: u8 = 130;

/// What stands in the way as an exit code, for every command that plans: where it is only that hosts cannot be
/// reached or refuse the login, that; else something has to be put right on a host or in the inventory.
#[must_use]
pub fn blocked(blockers: &[Finding]) -> u8 {
    if !blockers.is_empty() && blockers.iter().all(Finding::is_out_of_reach) {
        UNREACHABLE
    } else {
        BLOCKED
    }
}
