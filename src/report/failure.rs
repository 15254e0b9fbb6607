//! A failure as a block of text: what failed, what was seen, what to do next.

use std::fmt::Write;

use super::style::Style;
use super::text::{clean, clean_lines, columns, wrap};
use crate::cluster::NodeName;
use crate::execute::event::{Evidence, StepError};
use std::collections::BTreeSet;

use crate::check::Finding;

/// Lines shown of each piece of evidence; the debug log has all.
const EVIDENCE_LINES: usize = 20;

/// The whole block of a failed step, ending in a newline.
#[must_use]
pub fn step_block(error: &StepError, style: Style) -> String {
    let StepError {
        host,
        step,
        what,
        evidence,
        hint,
        host_lost,
    } = error;
    let mut out = format!(
        "{} {}\n",
        style.bad("✗"),
        style.bold(&clean(&format!("{host}: {step}")))
    );
    painted_entry(&mut out, "  ", "", &clean(what), style, |text| style.bad(text));
    if *host_lost {
        line(&mut out, "  nothing more is tried on this host");
    }
    push_sources(&mut out, evidence, style);
    push_hint(&mut out, hint, "  ", style);
    out
}

/// What the logs of a host say, by where they come from; empty where they say nothing.
#[must_use]
pub fn evidence_block(host: &NodeName, evidence: &[Evidence], style: Style) -> String {
    if evidence.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    line(&mut out, &style.bold(&format!("What {host} says:")));
    push_sources(&mut out, evidence, style);
    out
}

/// Blockers by host, those of no host first, ending in a newline.
#[must_use]
pub fn blockers(blockers: &[Finding], style: Style) -> String {
    let mut hosts = Vec::new();
    for blocker in blockers {
        if !hosts.contains(&&blocker.host) {
            hosts.push(&blocker.host);
        }
    }
    hosts.sort_by_key(|host| host.is_some());
    let mut out = String::new();
    for host in hosts {
        let name = host.as_ref().map_or("cluster", |host| host.as_str());
        line(&mut out, &style.bold(name));
        for Finding {
            check,
            host: _,
            message,
            evidence,
            hint,
        } in blockers.iter().filter(|blocker| &blocker.host == host)
        {
            let text = format!("{} [{}]", clean(message), check.code);
            entry(&mut out, "  ", &style.bad("✗"), &text, style);
            if let Some(evidence) = evidence {
                push_evidence(&mut out, &clean_lines(evidence), "      ");
            }
            push_hint(&mut out, hint, "    ", style);
        }
        out.push('\n');
    }
    let number = super::text::count(blockers.len(), "problem");
    line(&mut out, &format!("{}, nothing was changed", style.bad(&number)));
    let allowable: BTreeSet<_> = blockers
        .iter()
        .filter(|blocker| blocker.check.allowable)
        .map(|blocker| blocker.check.code)
        .collect();
    if !allowable.is_empty() {
        let codes: Vec<_> = allowable.into_iter().collect();
        let text = format!("At your own risk: --allow {}", codes.join(","));
        line(&mut out, &text);
    }
    out
}

fn push_sources(out: &mut String, evidence: &[Evidence], style: Style) {
    for Evidence { source, lines } in evidence {
        line(out, &format!("  {}", style.dim(&format!("{}:", clean(source)))));
        push_evidence(out, lines, "    ");
    }
}

/// Adds what was seen, its last lines.
pub(super) fn push_evidence(out: &mut String, lines: &[String], indent: &str) {
    let hidden = lines.len().saturating_sub(EVIDENCE_LINES);
    if hidden > 0 {
        line(
            out,
            &format!(
                "{indent}… {} before, in the debug log",
                super::text::count(hidden, "line")
            ),
        );
    }
    for text in &lines[hidden..] {
        line(out, format!("{indent}{}", clean(text)).trim_end());
    }
}

/// Adds what to do, where there is something.
pub(super) fn push_hint(out: &mut String, hint: &str, indent: &str, style: Style) {
    if !hint.is_empty() {
        entry(out, indent, &style.accent("hint:"), &clean(hint), style);
    }
}

/// Adds text behind a mark; where it is longer than the page is wide it goes on below its own beginning.
pub(super) fn entry(out: &mut String, indent: &str, mark: &str, text: &str, style: Style) {
    painted_entry(out, indent, mark, text, style, str::to_owned);
}

/// The same, each line painted.
pub(super) fn painted_entry(
    out: &mut String,
    indent: &str,
    mark: &str,
    text: &str,
    style: Style,
    paint: impl Fn(&str) -> String,
) {
    let mark_width = columns(&clean(mark));
    let hang = columns(indent) + mark_width + usize::from(mark_width > 0);
    let width = style.width().map(|width| width.saturating_sub(hang).max(20));
    for (number, text) in wrap(text, width).iter().enumerate() {
        let start = match (number, mark_width) {
            (0, 0) => indent.to_owned(),
            (0, _) => format!("{indent}{mark} "),
            _ => " ".repeat(hang),
        };
        line(out, format!("{start}{}", paint(text)).trim_end());
    }
}

/// Adds a line.
pub(super) fn line(out: &mut String, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{text}");
}
