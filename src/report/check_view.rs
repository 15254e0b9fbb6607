//! What a check has found, for a person (host by host) and for a program.
//!
//! # JSON, format `k8sup.check/1`
//! ```text
//! { "format": "k8sup.check/1", "cluster": NAME, "passed": BOOL, "hosts": [NAME],
//!   "unreachable": [{ "host": NAME, "reason": TEXT, "hint": TEXT }],
//!   "refuse": N, "fix": N, "warn": N,
//!   "findings": [{ "code": TEXT, "level": "refuse"|"fix"|"warn", "allowable": BOOL, "sentence": TEXT,
//!                  "host": NAME|null, "message": TEXT, "evidence": TEXT|null, "hint": TEXT }] }
//! ```
//! `hosts` are those of the inventory, `unreachable` those of them that could not be looked at. Findings about all hosts
//! come first (`host` is null), then host by host in the inventory's order, each host's refusals before what apply mends
//! and before what a person should know. `sentence` is the check's, `message` says it of this host. `passed` is false
//! while something refuses or a host could not be looked at. Keys may be added; the format's number rises when one
//! changes its meaning or goes.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::failure::{entry, line, push_evidence, push_hint};
use super::style::Style;
use super::text::{clean, clean_lines, count};
use crate::check::{Finding, Level};
use crate::cluster::{Cluster, NodeName};
use crate::facts::{Facts, Observation};

/// Name and number of the JSON.
const FORMAT: &str = "k8sup.check/1";

/// What was found, and on which hosts.
#[derive(Debug)]
pub struct Examined<'a> {
    /// What the inventory means.
    pub cluster: &'a Cluster,
    /// The hosts as they were seen.
    pub facts: &'a Facts,
    /// In the inventory's order, those of no host first.
    pub findings: &'a [Finding],
}

#[derive(Debug, Serialize)]
struct View<'a> {
    format: &'static str,
    cluster: &'a str,
    passed: bool,
    hosts: Vec<&'a NodeName>,
    unreachable: Vec<UnreachableView<'a>>,
    refuse: usize,
    fix: usize,
    warn: usize,
    findings: Vec<FindingView<'a>>,
}

#[derive(Debug, Serialize)]
struct UnreachableView<'a> {
    host: &'a NodeName,
    reason: &'a str,
    hint: &'a str,
}

#[derive(Debug, Serialize)]
struct FindingView<'a> {
    level: Level,
    allowable: bool,
    sentence: &'static str,
    #[serde(flatten)]
    finding: &'a Finding,
}

/// Findings that read the same, and the hosts that they are about; none is all of them.
struct Group<'a> {
    hosts: Vec<&'a NodeName>,
    findings: Vec<&'a Finding>,
}

impl Examined<'_> {
    /// Hosts that could not be looked at.
    #[must_use]
    pub fn unreachable(&self) -> usize {
        self.facts.hosts.len() - self.seen()
    }

    /// What stands in the way.
    #[must_use]
    pub fn refusals(&self) -> Vec<Finding> {
        let refuses = |finding: &&Finding| finding.check.level == Level::Refuse;
        self.findings.iter().filter(refuses).cloned().collect()
    }

    /// For a program: see the module.
    ///
    /// # Errors
    /// When a value cannot be represented in JSON.
    pub fn json(&self) -> Result<Value, serde_json::Error> {
        let unreachable: Vec<_> = self
            .cluster
            .hosts
            .iter()
            .filter_map(|host| match self.facts.hosts.get(&host.name)? {
                Observation::Seen(_) => None,
                Observation::Unreachable(why) => Some(UnreachableView {
                    host: &host.name,
                    reason: &why.reason,
                    hint: why.what_to_do(),
                }),
            })
            .collect();
        let place = |finding: &Finding| {
            let host = finding.host.as_ref()?;
            self.cluster.hosts.iter().position(|known| known.name == *host)
        };
        let mut findings: Vec<_> = self.findings.iter().collect();
        findings.sort_by_key(|finding| (place(finding), rank(finding)));
        serde_json::to_value(View {
            format: FORMAT,
            cluster: &self.cluster.name,
            passed: unreachable.is_empty() && self.number(Level::Refuse) == 0,
            hosts: self.cluster.hosts.iter().map(|host| &host.name).collect(),
            unreachable,
            refuse: self.number(Level::Refuse),
            fix: self.number(Level::Fix),
            warn: self.number(Level::Warn),
            findings: findings
                .into_iter()
                .map(|finding| FindingView {
                    level: finding.check.level,
                    allowable: finding.check.allowable,
                    sentence: finding.check.sentence,
                    finding,
                })
                .collect(),
        })
    }

    /// For a person, ending in a newline.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        let mut out = String::new();
        for group in self.groups() {
            line(&mut out, &style.bold(&self.heading(&group.hosts)));
            for finding in group.findings {
                push(&mut out, finding, style);
            }
            out.push('\n');
        }
        self.push_verdict(&mut out, style);
        out
    }

    fn seen(&self) -> usize {
        let seen = |host: &&Observation| matches!(host, Observation::Seen(_));
        self.facts.hosts.values().filter(seen).count()
    }

    fn number(&self, level: Level) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.check.level == level)
            .count()
    }

    /// What is about all first, then what several hosts share, then host by host.
    fn groups(&self) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        let mut told: Vec<&Finding> = Vec::new();
        for finding in self.findings {
            let alike = |other: &Finding| Finding {
                host: None,
                ..other.clone()
            };
            if told.iter().any(|known| alike(known) == alike(finding)) {
                continue;
            }
            told.push(finding);
            let same = self.findings.iter().filter(|other| alike(other) == alike(finding));
            let hosts: Vec<&NodeName> = same.filter_map(|other| other.host.as_ref()).collect();
            match groups.iter_mut().find(|group| group.hosts == hosts) {
                Some(group) => group.findings.push(finding),
                None => groups.push(Group {
                    hosts,
                    findings: vec![finding],
                }),
            }
        }
        let place = |name: Option<&&NodeName>| {
            let name = name?;
            self.cluster.hosts.iter().position(|host| host.name == **name)
        };
        groups.sort_by_key(|group| {
            let number = group.hosts.len();
            let several = if number > 1 { usize::MAX - number } else { usize::MAX };
            (number > 0, several, place(group.hosts.first()))
        });
        for group in &mut groups {
            group.findings.sort_by_key(|finding| rank(finding));
        }
        groups
    }

    fn heading(&self, hosts: &[&NodeName]) -> String {
        let names: Vec<&str> = hosts.iter().map(|host| host.as_str()).collect();
        match names.as_slice() {
            [] => "cluster".to_owned(),
            [only] => {
                let role = self.cluster.hosts.iter().find(|host| host.name.as_str() == *only);
                role.map_or_else(|| (*only).to_owned(), |host| format!("{only} ({})", host.role))
            }
            several if several.len() == self.cluster.hosts.len() => format!("all {} hosts", several.len()),
            several => several.join(", "),
        }
    }

    fn push_verdict(&self, out: &mut String, style: Style) {
        let refuse = self.number(Level::Refuse);
        let mut parts = vec![if refuse > 0 {
            style.bad(&format!("{} in the way, nothing was changed", count(refuse, "problem")))
        } else {
            style.good("nothing stands in the way")
        }];
        if self.number(Level::Fix) > 0 {
            parts.push(format!("{} will be fixed by apply", self.number(Level::Fix)));
        }
        if self.number(Level::Warn) > 0 {
            parts.push(count(self.number(Level::Warn), "warning"));
        }
        let unseen = match self.unreachable() {
            0 => String::new(),
            unseen => format!(", {} could not be looked at", count(unseen, "host")),
        };
        let seen = count(self.seen(), "host");
        line(out, &format!("{seen} checked{unseen}: {}", parts.join(", ")));
        let allowable: BTreeSet<_> = self
            .findings
            .iter()
            .filter(|finding| finding.check.level == Level::Refuse && finding.check.allowable)
            .map(|finding| finding.check.code)
            .collect();
        if !allowable.is_empty() {
            let codes: Vec<_> = allowable.into_iter().collect();
            line(out, &format!("At your own risk: --allow {}", codes.join(",")));
        }
    }
}

fn rank(finding: &Finding) -> u8 {
    match finding.check.level {
        Level::Refuse => 0,
        Level::Fix => 1,
        Level::Warn => 2,
    }
}

fn push(out: &mut String, finding: &Finding, style: Style) {
    let Finding {
        check,
        host: _,
        message,
        evidence,
        hint,
    } = finding;
    let mark = match check.level {
        Level::Refuse => style.bad("✗"),
        Level::Fix => style.good("will be fixed by apply:"),
        Level::Warn => style.warn("warning:"),
    };
    entry(out, "  ", &mark, &format!("{} [{}]", clean(message), check.code), style);
    if let Some(evidence) = evidence {
        push_evidence(out, &clean_lines(evidence), "      ");
    }
    push_hint(out, hint, "    ", style);
}

#[cfg(test)]
mod tests;
