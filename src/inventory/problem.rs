//! Something wrong in a file, with the place it stands at, and how it is shown.
//!
//! Knows text and byte ranges, nothing of what an inventory means.

use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

/// A range of bytes of the file.
pub type Span = Range<usize>;

/// More problems than these are counted, not shown.
const MOST_SHOWN: usize = 50;

/// A word of the file is quoted up to this many characters.
const LONGEST_QUOTE: usize = 60;

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is done with the file.
    Error,
    /// Worth knowing.
    Warning,
}

/// One thing wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Error or warning.
    pub severity: Severity,
    /// What is wrong, one sentence fragment.
    pub message: String,
    /// Where.
    pub span: Span,
    /// A few words beside the caret; may be empty.
    pub label: String,
    /// What to write instead.
    pub hint: Option<String>,
    /// Other places that belong to it, each with a few words.
    pub related: Vec<(Span, String)>,
    /// The marked text may be a secret: it is never shown.
    pub secret: bool,
}

impl Problem {
    /// An error at a place.
    #[must_use]
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            span,
            label: String::new(),
            hint: None,
            related: Vec::new(),
            secret: false,
        }
    }

    /// A warning at a place.
    #[must_use]
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(span, message)
        }
    }

    /// Adds words beside the caret.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds what to write instead.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds another place.
    #[must_use]
    pub fn also(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related.push((span, label.into()));
        self
    }

    /// Never shows the marked text.
    #[must_use]
    pub fn secret(mut self) -> Self {
        self.secret = true;
        self
    }
}

/// Puts problems into the order of the file; errors first where two stand at the same place.
pub fn sort(problems: &mut Vec<Problem>) {
    problems.sort_by(|a, b| {
        (a.span.start, a.severity, a.span.end, &a.message).cmp(&(b.span.start, b.severity, b.span.end, &b.message))
    });
    problems.dedup();
}

/// Text of the file inside a message: short, and without control characters.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::from("`");
    for (count, c) in text.chars().enumerate() {
        if count == LONGEST_QUOTE {
            out.push('…');
            break;
        }
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out.push('`');
    out
}

/// Line and column (both from 1, the column in characters) of a byte of the text.
#[must_use]
pub fn line_column(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..floor(text, at)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let bom = usize::from(line_start == 0 && before.starts_with('\u{feff}'));
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1 - bom,
    )
}

/// Shows problems with their lines, the place marked, one after the other.
#[must_use]
pub fn render_problems(problems: &[Problem], text: &str, file_name: &str, colour: bool) -> String {
    let text = masked(text, problems);
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    for problem in problems.iter().take(MOST_SHOWN) {
        out.push_str(&render(problem, &text, file_name, &renderer));
        out.push_str("\n\n");
    }
    if let Some(more) = problems.len().checked_sub(MOST_SHOWN).filter(|more| *more > 0) {
        let title = Level::ERROR.primary_title(format!("and {more} more like these"));
        out.push_str(&renderer.render(&[Group::with_title(title)]));
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}

/// One problem with its lines.
fn render(problem: &Problem, text: &str, file_name: &str, renderer: &Renderer) -> String {
    let spans = std::iter::once(&problem.span).chain(problem.related.iter().map(|(span, _)| span));
    let (mut first, mut last) = (text.len(), 0);
    for span in spans {
        first = first.min(floor(text, span.start));
        last = last.max(floor(text, span.end));
    }
    // Only the lines in question are handed over, so that a long file costs nothing.
    let mut from = text[..first].rfind('\n').map_or(0, |newline| newline + 1);
    if from == 0 && text.starts_with('\u{feff}') {
        from = '\u{feff}'.len_utf8();
    }
    let to = text[last..].find('\n').map_or(text.len(), |newline| last + newline);
    let window = text[from..to.max(from)].trim_end_matches('\r');
    let mark = |kind: AnnotationKind, span: &Span| -> Annotation<'_> {
        let end = floor(text, span.end).saturating_sub(from).min(window.len());
        let start = floor(text, span.start).saturating_sub(from).min(end);
        kind.span(start..end)
    };
    let mut primary = mark(AnnotationKind::Primary, &problem.span);
    if !problem.label.is_empty() {
        primary = primary.label(problem.label.as_str());
    }
    let mut snippet = Snippet::source(window)
        .path(file_name)
        .line_start(text[..from].matches('\n').count() + 1)
        .annotation(primary);
    for (span, label) in &problem.related {
        snippet = snippet.annotation(mark(AnnotationKind::Context, span).label(label.as_str()));
    }
    let level = match problem.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = level.primary_title(problem.message.as_str()).element(snippet);
    if let Some(hint) = &problem.hint {
        group = group.element(Level::HELP.message(hint.as_str()));
    }
    renderer.render(&[group])
}

/// The text with what may be secret made unreadable, byte for byte, so that all spans stay true.
fn masked(text: &str, problems: &[Problem]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for problem in problems.iter().filter(|problem| problem.secret) {
        let range = floor(text, problem.span.start)..floor(text, problem.span.end);
        for byte in bytes.get_mut(range).into_iter().flatten() {
            if !byte.is_ascii_whitespace() {
                *byte = b'*';
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The start of the character that a byte belongs to, inside the text.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
