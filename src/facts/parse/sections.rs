//! Splits marked text into its sections.

use std::collections::BTreeMap;

use super::super::Seen;

/// The sections of a probe by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sections {
    by_name: BTreeMap<String, Seen<String>>,
    complete: bool,
    last: String,
}

impl Sections {
    /// The section's text; unknown where the probe did not print it.
    #[must_use]
    pub fn get(&self, name: &str) -> Seen<&str> {
        match self.by_name.get(name) {
            Some(Seen::Present(text)) => Seen::Present(text),
            Some(Seen::Absent) => Seen::Absent,
            Some(Seen::Unknown(reason)) => Seen::Unknown(reason.clone()),
            None => Seen::Unknown("the probe did not look".to_owned()),
        }
    }

    /// Sections whose name begins with `prefix`, named by what follows it.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Seen<String>)> {
        self.by_name
            .iter()
            .filter_map(move |(name, text)| Some((name.strip_prefix(prefix)?, text)))
    }

    /// No section at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The probe came to its end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Name of the section that was printed last.
    #[must_use]
    pub fn last(&self) -> &str {
        &self.last
    }
}

/// Finds the sections that are marked with `nonce`. What stands between them is not ours and is ignored; a section
/// without its end is unknown.
#[must_use]
pub fn sections(raw: &str, nonce: &str) -> Sections {
    let mark = format!("@@{nonce} ");
    let mut found = Sections::default();
    let mut open: Option<(String, String)> = None;
    for line in raw.split_inclusive('\n') {
        let Some(words) = line.strip_prefix(&mark) else {
            if let Some((_, text)) = &mut open {
                text.push_str(line);
            }
            continue;
        };
        // A mark cut in the middle is no mark: its last word may be half of a status.
        let Some(words) = words.strip_suffix('\n') else { break };
        match words.split_once(' ').unwrap_or((words, "")) {
            ("begin", name) => {
                found.leave_open(open.take());
                found.last = name.into();
                open = Some((name.to_owned(), String::new()));
            }
            ("end", rest) => {
                let Some((name, mut text)) = open.take() else { continue };
                let Some(rest) = rest.strip_prefix(&name) else {
                    found.leave_open(Some((name, text)));
                    continue;
                };
                // The newline before the end mark is the mark's own.
                if text.ends_with('\n') {
                    text.pop();
                }
                let rest = rest.trim();
                let (status, reason) = rest.split_once(' ').unwrap_or((rest, ""));
                found.by_name.insert(name, outcome(status, reason, text));
            }
            ("done", _) => found.complete = true,
            _ => {}
        }
    }
    found.leave_open(open);
    found
}

impl Sections {
    fn leave_open(&mut self, open: Option<(String, String)>) {
        if let Some((name, _)) = open {
            self.by_name
                .insert(name, Seen::Unknown("the probe was cut short".to_owned()));
        }
    }
}

fn outcome(status: &str, reason: &str, text: String) -> Seen<String> {
    match status {
        "0" => Seen::Present(text),
        "44" => Seen::Absent,
        _ if !reason.trim().is_empty() => Seen::Unknown(reason.trim().to_owned()),
        // What it had said by then is not why it was ended.
        "124" | "137" => Seen::Unknown("did not answer in time".to_owned()),
        // Some commands say on standard output what went wrong.
        _ if !text.trim().is_empty() => Seen::Unknown(text.trim().to_owned()),
        _ => Seen::Unknown(format!("the command ended with status {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_ended_by_its_limit_did_not_answer() {
        for (end, wanted) in [
            ("124", "did not answer in time"),
            ("137", "did not answer in time"),
            ("124 did not answer within 12 s", "did not answer within 12 s"),
            ("1", "ok"),
        ] {
            let raw = format!("@@n begin readyz\nok\n@@n end readyz {end}\n@@n done\n");
            assert_eq!(
                sections(&raw, "n").get("readyz"),
                Seen::Unknown(wanted.to_owned()),
                "{end}"
            );
        }
    }
}
