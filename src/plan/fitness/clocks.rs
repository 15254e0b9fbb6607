//! Clocks: certificates are void before they begin, and etcd warns from one second on.

use crate::check::{self, Finding};
use crate::concern::clock;
use crate::plan::apply::Member;

/// Seconds that clocks may be apart: within it a certificate is not yet void, and NTP has something to do.
const LIMIT: i64 = 5;

/// Hosts whose clocks differ from those of most others, and this machine's.
pub(super) fn apart(parts: &[Member<'_>]) -> Vec<Finding> {
    let mut skews: Vec<i64> = parts.iter().filter_map(|part| part.facts.clock_skew).collect();
    skews.sort_unstable();
    let Some(usual) = skews.get(skews.len() / 2).copied() else {
        return Vec::new();
    };
    let mut found: Vec<Finding> = parts
        .iter()
        .filter_map(|part| Some((part, part.facts.clock_skew? - usual)))
        .filter(|(_, apart)| apart.abs() > LIMIT)
        .map(|(part, apart)| {
            let message = format!("its clock is {} than most others'", ahead(apart));
            check::CLOCKS_APART.on(&part.host.name, message)
        })
        .collect();
    if found.is_empty() && usual.abs() > LIMIT {
        let message = format!(
            "the hosts agree on the time, and it is {} than this machine's",
            ahead(usual)
        );
        found.push(check::OUR_CLOCK.at_large(message));
    }
    found
}

/// Hosts that are to come without a time service. A container's clock is that of its machine.
pub(super) fn unkept(coming: &[&Member<'_>]) -> Vec<Finding> {
    coming
        .iter()
        .filter(|part| part.facts.platform.container.is_none() && clock::service(part.facts).is_none())
        .map(|part| {
            let facts = part.facts;
            let there = clock::SERVICES.iter().find(|name| facts.services.contains_key(**name));
            let finding =
                check::NO_TIME_SERVICE.on(&part.host.name, "no time service runs, so its clock will go astray");
            match there {
                Some(name) => finding
                    .evidence(format!("{name} is installed and does not run"))
                    .hint(format!("on the host: `systemctl enable --now {name}`")),
                None => finding.evidence(format!("none of {} is there", clock::SERVICES.join(", "))),
            }
        })
        .collect()
}

fn ahead(seconds: i64) -> String {
    let by = match seconds.abs() {
        few @ ..120 => format!("{few} s"),
        many @ ..7200 => format!("{} min", many / 60),
        more @ ..172_800 => format!("{} h", more / 3600),
        days => format!("{} days", days / 86_400),
    };
    let way = if seconds > 0 { "later" } else { "earlier" };
    format!("{by} {way}")
}
