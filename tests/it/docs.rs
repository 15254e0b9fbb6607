//! What the documents promise to be whole about is whole.

use k8sup::exit;

use crate::world;

/// The titles in the code that gives them, with `…` for what is put in.
fn titles() -> Vec<String> {
    let code = world::read("src/plan/step.rs");
    let function = code
        .split("pub fn title(&self)")
        .nth(1)
        .unwrap()
        .split("\n    }\n")
        .next()
        .unwrap();
    let literals = function.split('"').skip(1).step_by(2);
    let title = |literal: &str| {
        let mut parts = literal.split(['{', '}']);
        let mut title = parts.next().unwrap_or_default().to_owned();
        // Behind every placeholder's name comes text again.
        while let (Some(_), Some(text)) = (parts.next(), parts.next()) {
            title.push('…');
            title.push_str(text);
        }
        title
    };
    literals.map(title).collect()
}

/// `install … packages` fits `install 9 packages`.
fn fits(pattern: &str, title: &str) -> bool {
    match pattern.split_once('…') {
        Some((begin, end)) => title.starts_with(begin) && title.ends_with(end),
        None => pattern == title,
    }
}

#[test]
fn every_step_and_every_exit_code_is_in_troubleshooting() {
    let document = world::read("docs/troubleshooting.md");
    let patterns: Vec<&str> = document.split('`').skip(1).step_by(2).collect();
    let titles = titles();
    assert!(titles.len() > 40, "{titles:?}");
    for title in titles {
        let told = patterns.iter().any(|pattern| fits(pattern, &title));
        assert!(told, "docs/troubleshooting.md does not tell of the step `{title}`");
    }
    for code in [
        exit::DONE,
        exit::UNEXPECTED,
        exit::USAGE,
        exit::CHANGES,
        exit::UNREACHABLE,
        exit::FAILED,
        exit::BLOCKED,
        exit::PARTIAL,
        exit::INTERRUPTED,
    ] {
        for name in ["docs/troubleshooting.md", "README.md"] {
            assert!(
                world::read(name).contains(&format!("\n| {code} | ")),
                "{name} does not tell of {code}"
            );
        }
    }
}
