//! A status for a person: what is wrong first, then tables of what is.

use super::judge::{SOON_DAYS, is_up};
use super::{
    AddonStatus, BackendStatus, CertificateStatus, DAY, Maybe, MemberState, MemberStatus, Problem, RolloutStatus,
    Severity, Status,
};
use crate::cluster::Role;
use crate::report::failure::{entry, line, push_hint};
use crate::report::style::Style;
use crate::report::table::{Cell, Table};
use crate::report::text::count;

impl Status {
    /// For a person, ending in a newline.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        let mut out = String::new();
        let worst = self.problems.iter().map(|problem| problem.severity).min();
        let state = match worst {
            Some(Severity::Error) => style.bad("unhealthy"),
            Some(Severity::Unknown) => style.warn("unknown"),
            Some(Severity::Warning) | None => style.good("healthy"),
        };
        let head = format!("{}  {}  {}", style.bold(&self.cluster), self.version, self.endpoint);
        line(&mut out, &format!("{head}  {state}"));
        self.push_problems(&mut out, style);
        self.push_hosts(&mut out, style);
        self.push_etcd(&mut out, style);
        self.push_certificates(&mut out, style);
        self.push_load_balancers(&mut out, style);
        self.push_addons(&mut out, style);
        out
    }

    fn push_problems(&self, out: &mut String, style: Style) {
        if self.problems.is_empty() {
            return;
        }
        let number = |severity| {
            let of_it = self.problems.iter().filter(|problem| problem.severity == severity);
            of_it.count()
        };
        let counts: Vec<String> = [
            (Severity::Error, "problem"),
            (Severity::Unknown, "unknown"),
            (Severity::Warning, "warning"),
        ]
        .into_iter()
        .map(|(severity, noun)| (number(severity), noun))
        .filter(|(number, _)| *number > 0)
        .map(|(number, noun)| match noun {
            "unknown" => format!("{number} unknown"),
            noun => count(number, noun),
        })
        .collect();
        // Advice that holds for several problems is given once, behind them.
        let mut shared: Vec<&str> = Vec::new();
        line(out, &format!("\n{}", style.bold(&counts.join(", "))));
        for Problem {
            severity,
            host,
            message,
            hint,
        } in &self.problems
        {
            let mark = match severity {
                Severity::Error => style.bad("✗"),
                Severity::Unknown => style.warn("?"),
                Severity::Warning => style.warn("!"),
            };
            let about = host.as_ref().map(|host| format!("{host}: ")).unwrap_or_default();
            entry(out, "  ", &mark, &format!("{about}{message}"), style);
            let Some(hint) = hint.as_deref() else { continue };
            let is_it = |other: &&Problem| other.hint.as_deref() == Some(hint);
            if self.problems.iter().filter(is_it).count() == 1 {
                push_hint(out, hint, "    ", style);
            } else if !shared.contains(&hint) {
                shared.push(hint);
            }
        }
        for hint in shared {
            push_hint(out, hint, "  ", style);
        }
    }

    fn push_hosts(&self, out: &mut String, style: Style) {
        let mut table = Table::new(&["NAME", "ROLE", "ADDRESS", "SSH", "NODE", "AGE", "KUBELET", "OS"]);
        for host in &self.hosts {
            let reachable = if host.reachable {
                Cell::good("ok")
            } else {
                Cell::bad("fails")
            };
            let (node, age) = match &host.node {
                _ if host.role == Role::LoadBalancer => (Cell::dim("-"), Cell::dim("-")),
                Maybe::Known(node) => {
                    let cordoned = if node.cordoned { ", cordoned" } else { "" };
                    let state = if node.ready {
                        Cell::good(&format!("Ready{cordoned}"))
                    } else {
                        Cell::bad(&format!("NotReady{cordoned}"))
                    };
                    (
                        state,
                        Cell::plain(&node.age_seconds.map_or_else(|| "?".to_owned(), age)),
                    )
                }
                Maybe::None => (Cell::bad("none"), Cell::dim("-")),
                Maybe::Unknown(_) => (Cell::warn("unknown"), Cell::dim("?")),
            };
            let kubelet = match &host.kubelet {
                Maybe::Known(version) => Cell::plain(version),
                Maybe::None => Cell::dim("-"),
                Maybe::Unknown(_) => Cell::warn("unknown"),
            };
            let os = host
                .os
                .as_deref()
                .map_or_else(|| Cell::warn("unknown"), |os| Cell::plain(&short_os(os)));
            table.row([
                Cell::plain(host.name.as_str()),
                Cell::plain(&host.role.to_string()),
                Cell::plain(&host.address.to_string()),
                reachable,
                node,
                age,
                kubelet,
                os,
            ]);
        }
        line(out, &format!("\n{}", style.bold("Hosts")));
        out.push_str(&table.render("  ", style));
    }

    fn push_etcd(&self, out: &mut String, style: Style) {
        let members = match &self.etcd {
            Maybe::Known(members) => members,
            Maybe::None => return,
            Maybe::Unknown(reason) => return section_unknown(out, "etcd", reason, style),
        };
        let asked = self
            .asked
            .as_ref()
            .map(|host| style.dim(&format!(" (asked on {host})")))
            .unwrap_or_default();
        line(out, &format!("\n{}{asked}", style.bold("etcd")));
        let mut table = Table::new(&["MEMBER", "STATE", "ID", "PEER"]);
        for MemberStatus {
            name,
            id,
            state,
            peer_urls,
        } in members
        {
            let state = match state {
                MemberState::Voter => Cell::good("voter"),
                MemberState::Stopped => Cell::bad("voter, does not run"),
                MemberState::Unseen => Cell::bad("voter, out of reach"),
                MemberState::Learner => Cell::warn("learner"),
                MemberState::Missing => Cell::bad("missing"),
                MemberState::Ghost => Cell::bad("ghost"),
            };
            let name = if name.is_empty() {
                Cell::dim("(not started)")
            } else {
                Cell::plain(name)
            };
            let peers = if peer_urls.is_empty() {
                "-".to_owned()
            } else {
                peer_urls.join(", ")
            };
            table.row([name, state, Cell::dim(id.as_deref().unwrap_or("-")), Cell::dim(&peers)]);
        }
        out.push_str(&table.render("  ", style));
    }

    fn push_certificates(&self, out: &mut String, style: Style) {
        let mut table = Table::new(&["HOST", "FIRST TO EXPIRE", "DATE", "LEFT"]);
        let mut any = false;
        for host in &self.hosts {
            let name = Cell::plain(host.name.as_str());
            match &host.certificate {
                Maybe::Known(CertificateStatus {
                    path,
                    not_after,
                    days_left,
                }) => {
                    let left = match *days_left {
                        left if left < 0 => Cell::bad("expired"),
                        left if left < SOON_DAYS => Cell::warn(&format!("{left} days")),
                        left => Cell::good(&format!("{left} days")),
                    };
                    let path = path.strip_prefix("/etc/kubernetes/").unwrap_or(path);
                    table.row([name, Cell::plain(path), Cell::plain(&date(*not_after)), left]);
                    any = true;
                }
                Maybe::None | Maybe::Unknown(_) => {}
            }
        }
        if any {
            line(out, &format!("\n{}", style.bold("Certificates")));
            out.push_str(&table.render("  ", style));
        }
    }

    fn push_load_balancers(&self, out: &mut String, style: Style) {
        if self.load_balancers.is_empty() {
            return;
        }
        line(out, &format!("\n{}", style.bold("Load balancers")));
        let mut table = Table::new(&["NAME", "BACKEND", "STATE"]);
        for BackendStatus { name, backends } in &self.load_balancers {
            match backends {
                Maybe::Known(backends) if backends.is_empty() => {
                    table.row([Cell::plain(name.as_str()), Cell::dim("-"), Cell::bad("no backend")]);
                }
                Maybe::Known(backends) => {
                    for (backend, state) in backends {
                        let state = if is_up(state) {
                            Cell::good(state)
                        } else {
                            Cell::bad(state)
                        };
                        table.row([Cell::plain(name.as_str()), Cell::plain(backend), state]);
                    }
                }
                Maybe::None => table.row([Cell::plain(name.as_str()), Cell::dim("-"), Cell::bad("not running")]),
                Maybe::Unknown(reason) => {
                    let state = Cell::warn(&format!("unknown: {reason}"));
                    table.row([Cell::plain(name.as_str()), Cell::dim("-"), state]);
                }
            }
        }
        out.push_str(&table.render("  ", style));
    }

    fn push_addons(&self, out: &mut String, style: Style) {
        if self.addons.iter().all(|addon| matches!(addon.rollout, Maybe::None)) {
            return;
        }
        line(out, &format!("\n{}", style.bold("Add-ons")));
        let mut table = Table::without_header();
        for AddonStatus { name, rollout } in &self.addons {
            let state = match rollout {
                Maybe::Known(RolloutStatus {
                    desired,
                    available,
                    current,
                }) => {
                    let text = format!("{available} of {desired} available");
                    match (available < desired, *current) {
                        (true, _) => Cell::bad(&text),
                        (false, true) => Cell::good(&text),
                        (false, false) => Cell::warn(&format!("{text}, rolling out")),
                    }
                }
                Maybe::None => Cell::bad("missing"),
                Maybe::Unknown(reason) => Cell::warn(&format!("unknown: {reason}")),
            };
            table.row([Cell::plain(name), state]);
        }
        out.push_str(&table.render("  ", style));
    }
}

fn section_unknown(out: &mut String, heading: &str, reason: &str, style: Style) {
    line(out, &format!("\n{}", style.bold(heading)));
    line(out, &format!("  {}", style.warn(&format!("unknown: {reason}"))));
}

/// `Debian GNU/Linux 13 (trixie)` takes a third of a narrow page.
fn short_os(pretty: &str) -> String {
    let name = pretty.replace("GNU/Linux ", "");
    name.split(" (").next().unwrap_or(&name).to_owned()
}

pub(super) fn date(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map_or_else(|_| "?".to_owned(), |time| time.strftime("%Y-%m-%d").to_string())
}

/// `45s`, `12m`, `5h`, `3d`.
fn age(seconds: i64) -> String {
    match seconds {
        s if s < 60 => format!("{s}s"),
        s if s < 3600 => format!("{}m", s / 60),
        s if s < DAY => format!("{}h", s / 3600),
        s => format!("{}d", s / DAY),
    }
}
