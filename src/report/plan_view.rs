//! A plan for a person (host by host, with reasons, gates and file diffs) and for a program.
//!
//! # JSON, format `k8sup.plan/1`
//! ```text
//! { "format": "k8sup.plan/1", "cluster": NAME, "converged": BOOL, "hosts": N, "steps": N,
//!   "continues": TEXT|null, "left_out": [NAME],
//!   "decisions": [{ "what": TEXT, "value": TEXT, "source": TEXT }],
//!   "warnings": [FINDING], "blockers": [FINDING],
//!   "lanes": [{ "host": NAME, "role": "load-balancer"|"controller"|"worker",
//!     "steps": [{ "kind": TEXT|null, "title": TEXT, "why": TEXT,
//!       "needs": [GATE], "after": [GATE], "only_if": [GATE], "opens": GATE|null,
//!       "files": [{ "path": TEXT, "change": "create"|"change"|"remove",
//!                   "before": TEXT|null, "after": TEXT|null }], "fixes": [FINDING] }] }] }
//! ```
//! A FINDING is `{ "code": TEXT, "host": NAME|null, "message": TEXT, "evidence": TEXT|null, "hint": TEXT }`.
//! A GATE is `"initialised"` or one of `{"load-balancer-serves": NAME}`, `{"etcd-turn": NAME}`,
//! `{"joined": NAME}`, `{"forgotten": NAME}`, `{"cleared": NAME}`. `continues` says why there
//! will be more to plan when this is done, `left_out` are hosts that could not be looked at, `decisions` is what cannot
//! be taken back and is empty unless a cluster is founded, `fixes` is what a step mends that was found wrong.
//! `converged` is false while there is either, or a blocker, and with blockers there are no lanes. Keys may be added; the format's number rises when one
//! changes its meaning or goes.

use serde::Serialize;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::failure::{entry, line, painted_entry, push_hint};
use super::style::Style;
use super::text::{clean, columns, count};
use crate::check::Finding;
use crate::cluster::{Decision, NodeName, Role};
use crate::plan::{FileChange, Gate, Plan, Planned};

/// Lines around a change.
const CONTEXT: usize = 3;
/// Name and number of the JSON.
const FORMAT: &str = "k8sup.plan/1";

/// A plan as the views need it.
#[derive(Debug, Serialize)]
struct PlanView<'a> {
    format: &'static str,
    cluster: &'a str,
    converged: bool,
    hosts: usize,
    steps: usize,
    continues: Option<&'a str>,
    left_out: &'a [NodeName],
    decisions: &'a [Decision],
    warnings: &'a [Finding],
    blockers: &'a [Finding],
    lanes: Vec<LaneView<'a>>,
}

#[derive(Debug, Serialize)]
struct LaneView<'a> {
    host: &'a NodeName,
    role: Role,
    steps: Vec<StepView<'a>>,
}

#[derive(Debug, Serialize)]
struct StepView<'a> {
    kind: Option<String>,
    title: String,
    why: &'a str,
    needs: &'a [Gate],
    after: &'a [Gate],
    only_if: &'a [Gate],
    opens: Option<&'a Gate>,
    files: Vec<FileView<'a>>,
    fixes: &'a [Finding],
}

#[derive(Debug, Serialize)]
struct FileView<'a> {
    path: &'a str,
    change: Change,
    before: Option<&'a str>,
    after: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Change {
    Create,
    #[serde(rename = "change")]
    Edit,
    Remove,
}

impl<'a> PlanView<'a> {
    fn new(cluster: &'a str, plan: &'a Plan) -> Self {
        let Plan {
            lanes,
            warnings,
            continues,
            left_out,
            decisions,
        } = plan;
        let lanes: Vec<_> = lanes
            .iter()
            .filter(|lane| !lane.steps.is_empty())
            .map(|lane| LaneView {
                host: &lane.host,
                role: lane.role,
                steps: lane.steps.iter().map(StepView::new).collect(),
            })
            .collect();
        Self {
            format: FORMAT,
            cluster,
            converged: plan.is_empty() && continues.is_none() && left_out.is_empty(),
            hosts: lanes.len(),
            steps: plan.len(),
            continues: continues.as_deref(),
            left_out,
            decisions,
            warnings,
            blockers: &[],
            lanes,
        }
    }

    fn blocked(cluster: &'a str, blockers: &'a [Finding]) -> Self {
        Self {
            format: FORMAT,
            cluster,
            converged: false,
            hosts: 0,
            steps: 0,
            continues: None,
            left_out: &[],
            decisions: &[],
            warnings: &[],
            blockers,
            lanes: Vec::new(),
        }
    }

    fn json(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn render(&self, full: bool, style: Style) -> String {
        let mut out = String::new();
        push_decisions(&mut out, self.decisions, style);
        let warnings = render_warnings(self.warnings, style);
        if !warnings.is_empty() {
            out.push_str(&warnings);
            out.push('\n');
        }
        if self.converged {
            line(
                &mut out,
                &format!(
                    "{}: everything is as the inventory wants it",
                    style.good("nothing to do")
                ),
            );
            return out;
        }
        if self.lanes.is_empty() && self.continues.is_none() {
            let hosts: Vec<&str> = self.left_out.iter().map(NodeName::as_str).collect();
            line(
                &mut out,
                &format!(
                    "{}: the hosts that were looked at are as the inventory wants them",
                    style.good("nothing to do")
                ),
            );
            entry(&mut out, "", &style.warn("left out:"), &hosts.join(", "), style);
            return out;
        }
        for group in self.groups(full) {
            let Some(first) = group.first() else { continue };
            let hosts: Vec<&str> = group.iter().map(|lane| lane.host.as_str()).collect();
            let (role, several) = (first.role, if group.len() > 1 { "s" } else { "" });
            line(
                &mut out,
                &format!(
                    "{} {}",
                    style.bold(&hosts.join(", ")),
                    style.dim(&format!("({role}{several})"))
                ),
            );
            first.push(&mut out, group.len() > 1, full, style);
            out.push('\n');
        }
        line(
            &mut out,
            &style.bold(&format!("{}, {}", count(self.hosts, "host"), count(self.steps, "step"))),
        );
        if let Some(reason) = self.continues {
            entry(&mut out, "", "more is planned afterwards:", &clean(reason), style);
        }
        out
    }

    /// Lanes that read the same but for the name of their host are shown once.
    fn groups(&self, full: bool) -> Vec<Vec<&LaneView<'a>>> {
        let mut groups: Vec<(String, Vec<&LaneView<'_>>)> = Vec::new();
        for lane in &self.lanes {
            let mut body = format!("{}\n", lane.role);
            lane.push(&mut body, true, full, Style::PLAIN);
            match groups.iter_mut().find(|(known, _)| *known == body) {
                Some((_, group)) => group.push(lane),
                None => groups.push((body, vec![lane])),
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }
}

/// What a person should read twice before saying yes.
fn push_decisions(out: &mut String, decisions: &[Decision], style: Style) {
    if decisions.is_empty() {
        return;
    }
    line(out, &style.bold("Decisions that cannot be taken back"));
    let width = decisions.iter().map(|one| columns(&one.what)).max().unwrap_or_default();
    for Decision { what, value, source } in decisions {
        let text = format!("{} ({source})", clean(value));
        entry(
            out,
            "  ",
            &format!("{}:{}", clean(what), " ".repeat(width.saturating_sub(columns(what)))),
            &text,
            style,
        );
    }
    out.push('\n');
}

/// Stands for the host's own name where several hosts are told about at once.
const ANY_HOST: &str = "HOST";

/// The text with every word that is the host's name replaced.
fn without_name(text: &str, host: &NodeName) -> String {
    let within = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    text.split_inclusive(|c: char| !within(c))
        .map(|piece| {
            let word = piece.trim_end_matches(|c: char| !within(c));
            if word == host.as_str() {
                format!("{ANY_HOST}{}", &piece[word.len()..])
            } else {
                piece.to_owned()
            }
        })
        .collect()
}

impl LaneView<'_> {
    /// Its steps, of one host or of `several` that are told about at once.
    fn push(&self, out: &mut String, several: bool, full: bool, style: Style) {
        let width = self.steps.len().to_string().len();
        let tell = |text: &str| {
            let text = clean(text);
            if several { without_name(&text, self.host) } else { text }
        };
        for (number, step) in self.steps.iter().enumerate() {
            step.push(out, (number + 1, width), &tell, full, style);
        }
    }
}

impl<'a> StepView<'a> {
    fn new(planned: &'a Planned) -> Self {
        let Planned {
            step,
            why,
            needs,
            after,
            only_if,
            opens,
            files,
            fixes,
        } = planned;
        let kind = serde_json::to_value(step)
            .ok()
            .and_then(|step| step.get("kind")?.as_str().map(str::to_owned));
        Self {
            kind,
            title: step.title(),
            why,
            needs,
            after,
            only_if,
            opens: opens.as_ref(),
            files: files.iter().map(FileView::new).collect(),
            fixes,
        }
    }

    fn push(
        &self,
        out: &mut String,
        (number, width): (usize, usize),
        tell: &impl Fn(&str) -> String,
        full: bool,
        style: Style,
    ) {
        let Self {
            kind: _,
            title,
            why,
            needs,
            after,
            only_if,
            opens,
            files,
            // The reason says the same.
            fixes: _,
        } = self;
        let indent = " ".repeat(width + 4);
        entry(out, "  ", &format!("{number:>width$}."), &tell(title), style);
        let dim = |text: &str| style.dim(text);
        let accent = |text: &str| style.accent(text);
        if !why.is_empty() {
            painted_entry(out, &indent, &style.dim("why:"), &tell(why), style, dim);
        }
        let wait = |out: &mut String, mark: &str, text: String| {
            painted_entry(out, &indent, &style.accent(mark), &tell(&text), style, accent);
        };
        for gate in *needs {
            wait(out, "waits until:", gate.to_string());
        }
        for gate in *after {
            wait(out, "waits until:", format!("{gate}, or cannot be"));
        }
        for gate in *only_if {
            wait(out, "only if:", gate.to_string());
        }
        if let Some(gate) = opens {
            painted_entry(out, &indent, &style.dim("then:"), &tell(&gate.to_string()), style, dim);
        }
        for file in files {
            file.push(out, &indent, tell, full, style);
        }
    }
}

impl<'a> FileView<'a> {
    fn new(file: &'a FileChange) -> Self {
        let FileChange { path, before, after } = file;
        let change = match (before, after) {
            (None, _) => Change::Create,
            (Some(_), Some(_)) => Change::Edit,
            (Some(_), None) => Change::Remove,
        };
        Self {
            path,
            change,
            before: before.as_deref(),
            after: after.as_deref(),
        }
    }

    fn push(&self, out: &mut String, indent: &str, tell: &impl Fn(&str) -> String, full: bool, style: Style) {
        let (before, after) = (self.before.unwrap_or_default(), self.after.unwrap_or_default());
        let diff = TextDiff::from_lines(before, after);
        let (mut added, mut removed) = (0, 0);
        for change in diff.iter_all_changes() {
            match change.tag() {
                ChangeTag::Insert => added += 1,
                ChangeTag::Delete => removed += 1,
                ChangeTag::Equal => {}
            }
        }
        let counts = match self.change {
            Change::Create => format!("new, +{}", count(added, "line")),
            Change::Edit => format!("+{added} -{removed}"),
            Change::Remove => format!("removed, -{}", count(removed, "line")),
        };
        line(
            out,
            &format!("{indent}{} {}", clean(self.path), style.dim(&format!("({counts})"))),
        );
        if self.change != Change::Edit && !full {
            return;
        }
        for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
            line(out, &format!("{indent}  {}", style.accent(&hunk.header().to_string())));
            for change in hunk.iter_changes() {
                let text = tell(change.value());
                let painted = match change.tag() {
                    ChangeTag::Insert => style.good(&format!("+{text}")),
                    ChangeTag::Delete => style.bad(&format!("-{text}")),
                    ChangeTag::Equal => format!(" {text}"),
                };
                line(out, format!("{indent}  {painted}").trim_end());
            }
        }
    }
}

/// The plan for a person, ending in a newline. `full` shows the content of new and removed
/// files too, not only of changed ones.
#[must_use]
pub fn render(plan: &Plan, full: bool, style: Style) -> String {
    PlanView::new("", plan).render(full, style)
}

/// Warnings, one a line.
#[must_use]
pub fn render_warnings(warnings: &[Finding], style: Style) -> String {
    let mut out = String::new();
    for Finding {
        check,
        host,
        message,
        evidence: _,
        hint,
    } in warnings
    {
        let about = host.as_ref().map(|host| format!("{host}: ")).unwrap_or_default();
        let text = format!("{about}{} [{}]", clean(message), check.code);
        entry(&mut out, "", &style.warn("warning:"), &text, style);
        push_hint(&mut out, hint, "  ", style);
    }
    out
}

/// The plan for a program: see the module.
///
/// # Errors
/// When a value cannot be represented in JSON.
pub fn json(cluster: &str, plan: &Plan) -> Result<Value, serde_json::Error> {
    PlanView::new(cluster, plan).json()
}

/// What stands in the way of a plan, in the same shape.
///
/// # Errors
/// When a value cannot be represented in JSON.
pub fn blockers_json(cluster: &str, blockers: &[Finding]) -> Result<Value, serde_json::Error> {
    PlanView::blocked(cluster, blockers).json()
}

#[cfg(test)]
mod tests;
