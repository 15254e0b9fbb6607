//! The lab tier: k8sup against real hosts, from bare to a serving cluster and back.
//!
//! Runs only with `K8SUP_LAB_TEST=1` and a lab of its own (`make lab-test` sees to both): it
//! re-images the lab's hosts. One scenario a test, on one lab, so one after the other; each
//! prints what it does and how long that took.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, also in its helpers"
)]

mod by_hand;
mod guide;
mod interrupted;
mod inventory;
mod lab;
mod left;
mod life;
mod life_signs;
mod network;
mod program;
mod real_hosts;
mod serving;
mod single;

/// Declares the scenarios; the names sort in the order in which they run.
macro_rules! scenarios {
    ($($(#[$doc:meta])* $name:ident => $run:path;)*) => {
        $($(#[$doc])* #[test] fn $name() { lab::scenario(stringify!($name), $run); })*
    };
}
scenarios! {
    a1_a_refused_inventory_leaves_hosts_untouched => life::refused;
    a2_from_bare_hosts_to_a_cluster_and_back => life::full;
    a3_killed_at_any_moment_running_again_converges => interrupted::killed;
    a4_one_controller_behind_a_bastion => single::behind_bastion;
    a5_a_cluster_made_by_hand_is_adopted_or_refused => by_hand::adopted_or_refused;
    a6_what_keeps_packets_out_is_found_before_anything_is_changed => network::proven;
    a7_what_is_wrong_with_hosts_is_refused_and_nothing_changed => real_hosts::refused;
    a8_what_can_be_mended_is_mended_and_given_back => real_hosts::mended;
}
