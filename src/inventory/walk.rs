//! Takes values out of a [`tree`](super::tree) by key and type, and collects what is wrong.
//!
//! Every helper reports once and goes on, so that one reading finds all problems.

use super::problem::{Problem, Span, quoted};
use super::raw::At;
use super::tree::{Entry, Kind, Node};
use super::vocabulary::{PARTS, part};

/// What a number must be.
const WHOLE: &str = "a whole number";

/// A map whose entries are taken one by one.
pub(super) struct Section {
    /// Where it is named, for what is missing in it.
    pub(super) span: Span,
    /// `cluster.` or nothing: put before keys in messages.
    prefix: String,
    entries: Vec<Entry>,
    /// Known keys that unknown ones were probably meant to be.
    meant: Vec<&'static str>,
}

impl Section {
    /// Takes an entry out.
    pub(super) fn take(&mut self, key: &str) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(at))
    }

    /// Takes an entry that has a value; `key:` alone counts as absent.
    pub(super) fn take_some(&mut self, key: &str) -> Option<Entry> {
        self.take(key).filter(|entry| !entry.value.is_null())
    }

    /// Something is there that was probably meant to be this key.
    pub(super) fn misspelt(&self, key: &str) -> bool {
        self.meant.contains(&key)
    }

    /// The whole name of one of its keys.
    fn name(&self, key: &str) -> String {
        format!("`{}{key}`", self.prefix)
    }
}

/// Collects problems while values are taken.
#[derive(Default)]
pub(super) struct Walk {
    pub(super) problems: Vec<Problem>,
}

impl Walk {
    /// Reports a value of another type than the one that belongs there.
    fn mismatch(&mut self, span: Span, name: &str, wanted: &str, node: &Node, hint: Option<&str>) {
        let found = match &node.kind {
            Kind::Scalar { text, plain: true } if wanted == WHOLE && !node.is_null() => quoted(text),
            _ => node.what().to_owned(),
        };
        let mut problem = Problem::error(span, format!("{name} must be {wanted}, found {found}"));
        let usual = match wanted {
            "a map" => "write lines `KEY: VALUE` below it",
            WHOLE => "write digits only, without quotes",
            _ => "write one value",
        };
        problem.hint = Some(hint.unwrap_or(usual).to_owned());
        self.problems.push(problem.label(format!("{wanted} belongs here")));
    }

    /// Opens a map as a section of the vocabulary and reports unknown keys. `shown` stands in
    /// messages for the section's name.
    pub(super) fn section(&mut self, section: &str, shown: &str, span: Span, node: Node) -> Option<Section> {
        let entries = match node.kind {
            Kind::Map(entries) => entries,
            Kind::Scalar { .. } if node.is_null() => Vec::new(),
            Kind::Scalar { .. } | Kind::List(_) => {
                let hint = keys(section)
                    .first()
                    .map(|key| format!("write its keys one a line, such as `{key}: …`"));
                let name = if shown.is_empty() {
                    "an inventory".to_owned()
                } else {
                    format!("`{shown}`")
                };
                self.mismatch(node.span.clone(), &name, "a map", &node, hint.as_deref());
                return None;
            }
        };
        let mut meant = Vec::new();
        for entry in entries
            .iter()
            .filter(|entry| !keys(section).contains(&entry.key.as_str()))
        {
            let near = nearest(&entry.key, &keys(section));
            self.problems.push(unknown(section, shown, entry, near));
            meant.extend(near);
        }
        let prefix = if shown.is_empty() {
            String::new()
        } else {
            format!("{shown}.")
        };
        Some(Section {
            span,
            prefix,
            entries,
            meant,
        })
    }

    /// A section inside another one.
    pub(super) fn inner(&mut self, outer: &mut Section, key: &str, section: &str) -> Option<Section> {
        let entry = outer.take(key)?;
        let shown = format!("{}{key}", outer.prefix);
        self.section(section, &shown, entry.key_span, entry.value)
    }

    /// Text; numbers and the like are taken as they are written.
    pub(super) fn text(&mut self, section: &mut Section, key: &str) -> Option<At<String>> {
        self.text_or(section, key, None)
    }

    /// Text, with a hint for what is not.
    pub(super) fn text_or(&mut self, section: &mut Section, key: &str, hint: Option<&str>) -> Option<At<String>> {
        let entry = section.take(key)?;
        let name = section.name(key);
        self.scalar(&name, &entry.key_span, entry.value, hint)
    }

    /// Text that must be there.
    pub(super) fn required(&mut self, section: &mut Section, key: &str, example: &str) -> Option<At<String>> {
        if section.entries.iter().any(|entry| entry.key == key) {
            return self.text_or(section, key, Some(&format!("write `{key}: {example}`")));
        }
        if section.misspelt(key) {
            return None;
        }
        let problem = Problem::error(section.span.clone(), format!("{} is missing", section.name(key)));
        self.problems.push(problem.hint(format!("write `{key}: {example}`")));
        None
    }

    /// One scalar as text.
    pub(super) fn scalar(&mut self, name: &str, key_span: &Span, node: Node, hint: Option<&str>) -> Option<At<String>> {
        let empty = node.is_null() || matches!(&node.kind, Kind::Scalar { text, .. } if text.trim().is_empty());
        if empty {
            let span = if node.span.is_empty() {
                key_span.clone()
            } else {
                node.span
            };
            let problem = Problem::error(span, format!("{name} has no value"));
            self.problems
                .push(problem.hint(hint.unwrap_or("give it a value, or remove the line")));
            return None;
        }
        match node.kind {
            Kind::Scalar { text, .. } => Some(At {
                value: text,
                span: node.span,
            }),
            Kind::List(_) | Kind::Map(_) => {
                self.mismatch(node.span.clone(), name, "text", &node, hint);
                None
            }
        }
    }

    /// A whole number.
    pub(super) fn number(&mut self, section: &mut Section, key: &str) -> Option<At<u64>> {
        let entry = section.take(key)?;
        match &entry.value.kind {
            Kind::Scalar { text, plain: true } if text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() => {
                if let Ok(value) = text.parse() {
                    return Some(At {
                        value,
                        span: entry.value.span,
                    });
                }
            }
            _ => {}
        }
        let quoted_number =
            matches!(&entry.value.kind, Kind::Scalar { text, plain: false } if text.parse::<u64>().is_ok());
        let hint = quoted_number.then_some("remove the quotes");
        let span = if entry.value.span.is_empty() {
            entry.key_span
        } else {
            entry.value.span.clone()
        };
        self.mismatch(span, &section.name(key), WHOLE, &entry.value, hint);
        None
    }

    /// True or false.
    pub(super) fn switch(&mut self, section: &mut Section, key: &str) -> Option<At<bool>> {
        let entry = section.take(key)?;
        if let Kind::Scalar { text, plain: true } = &entry.value.kind {
            match text.as_str() {
                "true" | "True" | "TRUE" => {
                    return Some(At {
                        value: true,
                        span: entry.value.span,
                    });
                }
                "false" | "False" | "FALSE" => {
                    return Some(At {
                        value: false,
                        span: entry.value.span,
                    });
                }
                _ => {}
            }
        }
        let span = if entry.value.span.is_empty() {
            entry.key_span
        } else {
            entry.value.span.clone()
        };
        let hint = Some("write `true` or `false`, without quotes");
        self.mismatch(span, &section.name(key), "true or false", &entry.value, hint);
        None
    }

    /// A list of texts; one text counts as a list of one.
    pub(super) fn texts(&mut self, section: &mut Section, key: &str) -> Option<Vec<At<String>>> {
        let entry = section.take_some(key)?;
        let name = section.name(key);
        self.list(&name, &entry.key_span, entry.value)
    }

    /// A node as a list of texts.
    pub(super) fn list(&mut self, name: &str, key_span: &Span, node: Node) -> Option<Vec<At<String>>> {
        match node.kind {
            Kind::List(items) => Some(
                items
                    .into_iter()
                    .filter_map(|item| self.scalar(&format!("an entry of {name}"), key_span, item, None))
                    .collect(),
            ),
            Kind::Scalar { .. } => self.scalar(name, key_span, node, None).map(|text| vec![text]),
            Kind::Map(_) => {
                self.mismatch(node.span.clone(), name, "a list", &node, Some("write `[one, two]`"));
                None
            }
        }
    }

    /// A map with keys of the user's choice.
    pub(super) fn free_map(&mut self, section: &mut Section, key: &str) -> Option<Vec<Entry>> {
        let entry = section.take_some(key)?;
        let name = section.name(key);
        match entry.value.kind {
            Kind::Map(entries) => Some(entries),
            Kind::Scalar { .. } | Kind::List(_) => {
                self.mismatch(entry.value.span.clone(), &name, "a map", &entry.value, None);
                None
            }
        }
    }

    /// A map that is merged into a document as it is.
    pub(super) fn document(&mut self, section: &mut Section, key: &str) -> Option<Node> {
        let entry = section.take_some(key)?;
        if let Kind::Map(_) = entry.value.kind {
            return Some(entry.value);
        }
        self.mismatch(
            entry.value.span.clone(),
            &section.name(key),
            "a map",
            &entry.value,
            None,
        );
        None
    }
}

/// Keys of a section.
fn keys(section: &str) -> Vec<&'static str> {
    let known = part(section).into_iter().flat_map(|part| part.keys);
    known.map(|key| key.name).collect()
}

/// The problem of a key that nobody knows, with the one that was probably meant.
fn unknown(section: &str, shown: &str, entry: &Entry, near: Option<&str>) -> Problem {
    let place = if shown.is_empty() {
        "an inventory".to_owned()
    } else {
        format!("`{shown}`")
    };
    let problem = Problem::error(
        entry.key_span.clone(),
        format!("{place} has no key {}", quoted(&entry.key)),
    );
    let known = keys(section);
    if let Some(near) = near {
        return problem
            .label(format!("did you mean `{near}`?"))
            .hint(format!("write `{near}`"));
    }
    let elsewhere = PARTS
        .iter()
        .filter(|part| part.name != section && !part.name.is_empty())
        .find(|part| part.keys.iter().any(|key| key.name == entry.key));
    let problem = problem.label("unknown key");
    match elsewhere {
        Some(part) => {
            let name = part.name.replace("HOST.", "a host's ").replace("HOST", "a host");
            problem.hint(format!("{} belongs to `{name}`", quoted(&entry.key)))
        }
        None => problem.hint(format!("known keys: {}", known.join(", "))),
    }
}

/// The word nearest to the one that was written, when it is near enough to be meant.
pub(crate) fn nearest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let simple = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
    let wanted = simple(written);
    known
        .iter()
        .map(|word| (strsim::damerau_levenshtein(&wanted, &simple(word)), *word))
        .filter(|(distance, word)| *distance <= 1.max(word.len().min(wanted.len()) / 3) && *distance < word.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}
