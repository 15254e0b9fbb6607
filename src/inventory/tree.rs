//! YAML text as a tree in which every key and value knows where it stands.
//!
//! Settles what belongs to YAML itself (anchors, merge keys, duplicate keys, one document,
//! limits), and knows nothing of inventories.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Number, Value};
use serde_saphyr::granit_parser::{Event, Marker, Options, Parser, ScalarStyle, ScanError, Span as Place, Tag};

use super::problem::{Problem, Span, quoted};

/// Longest text that is read: far more than any inventory, and small enough to hold.
pub const MOST_BYTES: usize = 1 << 20;
/// Deepest nesting, aliases included.
const DEEPEST: usize = 64;
/// Most values, aliases included, so that aliases of aliases cannot fill the memory.
const MOST_NODES: usize = 100_000;

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The value.
    pub kind: Kind,
    /// Where it stands; of a block of lines, its first entry.
    pub span: Span,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Text, number, boolean or nothing, as it is written.
    Scalar {
        /// Content, escapes resolved.
        text: String,
        /// Without quotes: may be a number, a boolean or nothing.
        plain: bool,
    },
    /// A list.
    List(Vec<Node>),
    /// A map, in the order of the file.
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

impl Node {
    /// Nothing: an empty value, `~` or `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar { text, plain: true } if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// What it is, with an article, for messages.
    #[must_use]
    pub fn what(&self) -> &'static str {
        match &self.kind {
            Kind::List(_) => "a list",
            Kind::Map(_) => "a map",
            Kind::Scalar { plain: false, .. } => "text",
            Kind::Scalar { .. } if self.is_null() => "nothing",
            Kind::Scalar { text, .. } => match scalar(text) {
                Ok(Value::Bool(_)) => "true or false",
                Ok(Value::Number(_)) => "a number",
                _ => "text",
            },
        }
    }

    /// The value as JSON, as YAML 1.2 types it.
    pub fn to_json(&self, problems: &mut Vec<Problem>) -> Value {
        match &self.kind {
            Kind::Scalar { text, plain: false } => Value::String(text.clone()),
            Kind::Scalar { text, plain: true } => scalar(text).unwrap_or_else(|(why, hint)| {
                problems.push(Problem::error(self.span.clone(), format!("{} {why}", quoted(text))).hint(hint));
                Value::Null
            }),
            Kind::List(items) => Value::Array(items.iter().map(|item| item.to_json(problems)).collect()),
            Kind::Map(entries) => {
                let mut map = Map::new();
                for entry in entries {
                    map.insert(entry.key.clone(), entry.value.to_json(problems));
                }
                Value::Object(map)
            }
        }
    }
}

/// Types a plain scalar as YAML 1.2 does, and refuses what YAML 1.1 reads otherwise.
fn scalar(text: &str) -> Result<Value, (&'static str, &'static str)> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        _ => {}
    }
    let digits = text.trim_start_matches(['-', '+']);
    if text.len() - digits.len() > 1 || !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Ok(Value::String(text.to_owned()));
    }
    if matches!(digits, ".inf" | ".Inf" | ".INF") {
        return Err((
            "is no number that a document can carry",
            "write a finite number, or quote it to make it text",
        ));
    }
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        if digits.len() > 1 && digits.starts_with('0') {
            return Err((
                "is octal to some readers and decimal to others",
                "leave the leading zeros out, or quote it to make it text",
            ));
        }
        let plain = text.trim_start_matches('+');
        let number = plain
            .parse::<u64>()
            .map(Number::from)
            .or_else(|_| plain.parse::<i64>().map(Number::from));
        return number.map(Value::Number).map_err(|_| {
            (
                "is too large a number",
                "write a smaller number, or quote it to make it text",
            )
        });
    }
    let radix = |prefix: &str, radix| digits.strip_prefix(prefix).map(|rest| u64::from_str_radix(rest, radix));
    if let Some(Ok(number)) = radix("0x", 16).or_else(|| radix("0o", 8)) {
        return if digits.len() == text.len() {
            Ok(Value::from(number))
        } else {
            Ok(Value::String(text.to_owned()))
        };
    }
    let float = digits
        .bytes()
        .all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'-' | b'+'))
        && digits.bytes().any(|b| b.is_ascii_digit());
    if float
        && let Ok(number) = text.parse::<f64>()
        && let Some(number) = Number::from_f64(number)
    {
        return Ok(Value::Number(number));
    }
    Ok(Value::String(text.to_owned()))
}

/// Reads one YAML document. Problems come back beside as much of the tree as there is.
#[must_use]
pub fn parse(text: &str) -> (Option<Node>, Vec<Problem>) {
    if text.len() > MOST_BYTES {
        let message = format!(
            "the file is {} KiB long, more than {} KiB",
            text.len() / 1024,
            MOST_BYTES / 1024
        );
        return (
            None,
            vec![Problem::error(0..0, message).hint("is this the right file?")],
        );
    }
    if let Some(at) = text.find('\0') {
        let problem = Problem::error(at..at + 1, "the file holds a NUL byte, so it is not text");
        return (None, vec![problem.hint("is this the right file? save it as UTF-8")]);
    }
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.emit_unresolved_aliases = true;
    options.block_nesting_limit = DEEPEST;
    options.flow_nesting_limit = DEEPEST;
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let proceed = match event {
            Ok((event, place)) => builder.event(event, &place),
            Err(error) => {
                builder.problems.push(syntax(text, &error));
                builder.root = None;
                break;
            }
        };
        if !proceed {
            break;
        }
    }
    (builder.root, builder.problems)
}

/// A problem out of the parser's own.
fn syntax(text: &str, error: &ScanError) -> Problem {
    let at = byte(error.marker()).min(text.len());
    let line_start = text
        .get(..at)
        .and_then(|before| before.rfind('\n'))
        .map_or(0, |newline| newline + 1);
    let line = text
        .get(line_start..)
        .and_then(|rest| rest.lines().next())
        .unwrap_or_default();
    let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
    if let Some(tab) = line[..indent].find('\t') {
        let at = line_start + tab;
        return Problem::error(at..at + 1, "a tab is used for indentation").hint("YAML is indented with spaces only");
    }
    let end = text
        .get(at..)
        .and_then(|rest| rest.chars().next())
        .filter(|c| *c != '\n' && *c != '\r');
    let span = at..at + end.map_or(0, char::len_utf8);
    Problem::error(span, format!("this is not YAML: {}", error.info()))
        .hint("look at this line and the one before: indentation, a colon or a closing quote or bracket may be missing")
}

/// Offset of a place.
fn byte(marker: &Marker) -> usize {
    marker.byte_offset().unwrap_or_default()
}

/// Byte range of a place.
fn span(place: &Place) -> Span {
    let start = byte(&place.start);
    start..byte(&place.end).max(start)
}

/// A list or map that is not closed yet.
struct Open {
    anchor: usize,
    start: Span,
    block: bool,
    items: Items,
    nodes: usize,
    depth: usize,
}

/// What is in it so far.
enum Items {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        seen: HashMap<String, Span>,
        key: Option<Key>,
        merges: Vec<(Node, Span)>,
    },
}

/// A key that waits for its value; without text it is none, and its value is dropped.
type Key = (Option<String>, Span);

/// A finished value with its size.
#[derive(Clone)]
struct Built {
    node: Node,
    nodes: usize,
    depth: usize,
}

/// Makes the tree out of the parser's events.
#[derive(Default)]
struct Builder {
    root: Option<Node>,
    problems: Vec<Problem>,
    open: Vec<Open>,
    anchors: HashMap<usize, Built>,
    documents: usize,
    total: usize,
}

impl Builder {
    /// Takes one event; false ends the reading.
    fn event(&mut self, event: Event<'_>, place: &Place) -> bool {
        let span = span(place);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    let problem = Problem::error(span, "a second document starts here");
                    self.problems
                        .push(problem.hint("an inventory is one document: make it one file, or remove the `---`"));
                    return false;
                }
                true
            }
            Event::Scalar(text, style, anchor, tag) => {
                let plain = match tag.as_deref() {
                    None => style == ScalarStyle::Plain,
                    Some(tag) => self.tag(tag, place, &["str"], style),
                };
                let node = Node {
                    kind: Kind::Scalar {
                        text: text.into_owned(),
                        plain,
                    },
                    span,
                };
                self.total += 1;
                self.add(
                    anchor,
                    Built {
                        node,
                        nodes: 1,
                        depth: 1,
                    },
                )
            }
            Event::SequenceStart(style, anchor, tag) => {
                if let Some(tag) = tag.as_deref() {
                    self.tag(tag, place, &["seq"], ScalarStyle::Plain);
                }
                let block = span.is_empty() || matches!(style, serde_saphyr::granit_parser::StructureStyle::Block);
                self.open(anchor, span, block, Items::List(Vec::new()))
            }
            Event::MappingStart(style, anchor, tag) => {
                if let Some(tag) = tag.as_deref() {
                    self.tag(tag, place, &["map"], ScalarStyle::Plain);
                }
                let block = span.is_empty() || matches!(style, serde_saphyr::granit_parser::StructureStyle::Block);
                let (entries, merges) = (Vec::new(), Vec::new());
                self.open(
                    anchor,
                    span,
                    block,
                    Items::Map {
                        entries,
                        seen: HashMap::new(),
                        key: None,
                        merges,
                    },
                )
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(&span),
            Event::Alias(id) => {
                if let Some(built) = self.anchors.get(&id).cloned() {
                    self.total += built.nodes;
                    self.add(0, built)
                } else {
                    let problem = Problem::error(span.clone(), "this alias stands inside what it refers to");
                    self.problems.push(problem.hint("write the value itself"));
                    self.add(0, nothing(span))
                }
            }
            Event::UnresolvedAlias(name) => {
                let problem = Problem::error(
                    span.clone(),
                    format!("nothing above is named {}", quoted(&format!("&{name}"))),
                );
                self.problems
                    .push(problem.hint("text that starts with `*` needs quotes"));
                self.add(0, nothing(span))
            }
            _ => true,
        }
    }

    /// Checks a tag; answers whether the scalar is to be typed by its looks.
    fn tag(&mut self, tag: &Tag, place: &Place, known: &[&str], style: ScalarStyle) -> bool {
        let core = tag.core_suffix();
        if core.is_some_and(|name| known.contains(&name)) {
            return false;
        }
        if core.is_none_or(|name| !matches!(name, "int" | "bool" | "null" | "float")) || known != ["str"] {
            let place = place.tag_span().unwrap_or(*place);
            let problem = Problem::error(
                span(&place),
                format!("the tag {} is not known", quoted(&tag.original())),
            );
            self.problems
                .push(problem.hint("remove it; text that starts with `!` needs quotes"));
        }
        style == ScalarStyle::Plain
    }

    fn open(&mut self, anchor: usize, start: Span, block: bool, items: Items) -> bool {
        if self.open.len() >= DEEPEST {
            return self.too_much(&start);
        }
        self.total += 1;
        self.open.push(Open {
            anchor,
            start,
            block,
            items,
            nodes: 1,
            depth: 1,
        });
        true
    }

    fn close(&mut self, end: &Span) -> bool {
        let Some(open) = self.open.pop() else { return true };
        let (kind, first) = match open.items {
            Items::List(items) => {
                let first = items.first().map(|item| item.span.clone());
                (Kind::List(items), first)
            }
            Items::Map {
                mut entries,
                seen,
                merges,
                ..
            } => {
                let first = entries.first().map(|entry| entry.key_span.clone());
                let mut known = seen.into_keys().collect();
                for (node, span) in merges {
                    self.merge(&mut entries, &mut known, node, &span);
                }
                (Kind::Map(entries), first)
            }
        };
        let span = match first {
            Some(first) if open.block => first,
            _ => open.start.start..end.end.max(open.start.end),
        };
        self.add(
            open.anchor,
            Built {
                node: Node { kind, span },
                nodes: open.nodes,
                depth: open.depth,
            },
        )
    }

    /// Adds what a merge key (`<<`) brings: keys that are not there yet.
    fn merge(&mut self, entries: &mut Vec<Entry>, known: &mut HashSet<String>, node: Node, span: &Span) {
        match node.kind {
            Kind::Map(more) => {
                for entry in more {
                    if known.insert(entry.key.clone()) {
                        entries.push(entry);
                    }
                }
            }
            Kind::List(nodes) if nodes.iter().all(|node| matches!(node.kind, Kind::Map(_))) => {
                for node in nodes {
                    self.merge(entries, known, node, span);
                }
            }
            _ => {
                let problem = Problem::error(span.clone(), "`<<` merges a map or a list of maps, and this is neither");
                self.problems
                    .push(problem.hint("write `<<: *name`, where `&name` stands at a map"));
            }
        }
    }

    /// Puts a finished value where it belongs.
    fn add(&mut self, anchor: usize, built: Built) -> bool {
        if self.total > MOST_NODES || self.open.len() + built.depth > DEEPEST {
            return self.too_much(&built.node.span);
        }
        if anchor > 0 {
            self.anchors.insert(anchor, built.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(built.node);
            return true;
        };
        open.nodes += built.nodes;
        open.depth = open.depth.max(built.depth + 1);
        let node = built.node;
        match &mut open.items {
            Items::List(items) => items.push(node),
            Items::Map {
                entries,
                seen,
                key,
                merges,
            } => match key.take() {
                None => match node.kind {
                    Kind::Scalar { text, .. } => *key = Some((Some(text), node.span)),
                    Kind::List(_) | Kind::Map(_) => {
                        let problem = Problem::error(node.span.clone(), "a key must be plain text");
                        self.problems
                            .push(problem.hint("text that starts with `{` or `[` needs quotes"));
                        *key = Some((None, node.span));
                    }
                },
                Some((None, _)) => {}
                Some((Some(text), span)) if text == "<<" => merges.push((node, span)),
                Some((Some(text), span)) => {
                    if let Some(first) = seen.get(&text) {
                        self.problems.push(
                            Problem::error(span, format!("the key {} is given twice", quoted(&text)))
                                .also(first.clone(), "first given here")
                                .hint("remove one of the two, or give one another name"),
                        );
                    } else {
                        seen.insert(text.clone(), span.clone());
                        entries.push(Entry {
                            key: text,
                            key_span: span,
                            value: node,
                        });
                    }
                }
            },
        }
        true
    }

    fn too_much(&mut self, span: &Span) -> bool {
        let problem = Problem::error(
            span.clone(),
            "the file is nested too deeply or repeats itself too often",
        );
        self.problems.push(problem.hint("use fewer aliases or flatter values"));
        self.root = None;
        false
    }
}

/// A value in place of one that cannot be had.
fn nothing(span: Span) -> Built {
    Built {
        node: Node {
            kind: Kind::Scalar {
                text: String::new(),
                plain: true,
            },
            span,
        },
        nodes: 1,
        depth: 1,
    }
}
