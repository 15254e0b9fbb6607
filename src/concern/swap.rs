//! Swap off, and off after a reboot: the kubelet refuses to start with it.

use crate::check::{self, Check};
use crate::facts::HostFacts;
use crate::plan::{Planned, Step};
use crate::render::host::{RPI_SWAP_FILE as RPI, fstab_without_swap, rpi_swap, zram_generator};

const FSTAB: &str = "/etc/fstab";
const ZRAM: &str = "/etc/systemd/zram-generator.conf";
/// What rpi-swap makes: a generator of its own writes this unit, and a drop-in for systemd's zram generator.
const RPI_UNIT: &str = "dev-zram0.swap";

/// Raspberry Pi OS' rpi-swap makes swap at boot. Nobody knows better than its own setting; the drop-in is read last.
fn rpi_makes_swap(facts: &HostFacts) -> bool {
    let installed = facts
        .packages
        .get("rpi-swap")
        .is_some_and(|package| package.installed.is_some());
    let wanted = rpi_swap();
    installed && facts.files.get(RPI).is_none_or(|file| file.content != wanted)
}

/// Something that would turn swap on at boot is known.
#[must_use]
pub fn has_source(facts: &HostFacts) -> bool {
    let swap = &facts.swap;
    let fstab = facts
        .files
        .get(FSTAB)
        .and_then(|file| fstab_without_swap(&file.content));
    fstab.is_some() || !swap.units.is_empty() || !swap.makers.is_empty() || swap.zram_generator || rpi_makes_swap(facts)
}

const fn swap_of(rpi: bool) -> &'static Check {
    if rpi { &check::RPI_SWAP } else { &check::SWAP }
}

/// The step that turns every form of swap off, when there is any.
#[must_use]
pub fn steps(facts: &HostFacts) -> Vec<Planned> {
    let before = facts.files.get(FSTAB).map(|file| file.content.as_str());
    let fstab = before.and_then(fstab_without_swap);
    let swap = &facts.swap;
    let mut reasons = Vec::new();
    if !swap.active.is_empty() {
        reasons.push(format!("swap is on: {}", swap.active.join(", ")));
    }
    if fstab.is_some() {
        reasons.push("/etc/fstab turns swap on at boot".to_owned());
    }
    if !swap.units.is_empty() || !swap.makers.is_empty() {
        let units: Vec<_> = swap.units.iter().chain(&swap.makers).map(String::as_str).collect();
        reasons.push(format!("{} would turn it on at boot", units.join(", ")));
    }
    let rpi = rpi_makes_swap(facts);
    if rpi {
        reasons.push("rpi-swap would turn it on at boot".to_owned());
    } else if swap.zram_generator {
        reasons.push("systemd's zram generator would turn it on at boot".to_owned());
    }
    if reasons.is_empty() {
        return Vec::new();
    }
    let mut units = swap.units.clone();
    if rpi && !units.iter().any(|unit| unit == RPI_UNIT) {
        // What its generator wrote at this boot stays until the next one.
        units.push(RPI_UNIT.to_owned());
    }
    let why = reasons.join("; ");
    let step = Step::SwapOff {
        fstab: fstab.clone(),
        units,
        makers: swap.makers.clone(),
        zram: swap.zram_generator.then(zram_generator),
        rpi: rpi.then(rpi_swap),
        active: !swap.active.is_empty(),
    };
    let mut planned = Planned::new(step, why.clone()).fixes([swap_of(rpi).at_large(why)]);
    if fstab.is_some() {
        planned = planned.changes(FSTAB, before, fstab.as_deref());
    }
    if swap.zram_generator {
        planned = planned.changes(
            ZRAM,
            facts.files.get(ZRAM).map(|file| file.content.as_str()),
            Some(&zram_generator()),
        );
    }
    if rpi {
        let before = facts.files.get(RPI).map(|file| file.content.as_str());
        planned = planned.changes(RPI, before, Some(&rpi_swap()));
    }
    vec![planned]
}
