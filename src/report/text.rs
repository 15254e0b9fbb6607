//! Text as a terminal may be given it: cleaned of control characters, cut, measured.
//!
//! Everything that came from a host passes [`clean`] before a person sees it.

use std::time::Duration;

/// One line without escape sequences and control characters. Of a line that was drawn over
/// itself with carriage returns (progress of curl and apt) the last drawing is kept.
#[must_use]
pub fn clean(line: &str) -> String {
    let line = line.trim_end_matches(['\r', '\n']);
    let stripped = strip_escapes(line);
    let last = stripped
        .rsplit('\r')
        .find(|part| !part.trim().is_empty())
        .unwrap_or_default();
    last.chars()
        .map(|c| if matches!(c, '\t' | '\n') { ' ' } else { c })
        .filter(|c| !c.is_control() && !is_direction_mark(*c))
        .collect::<String>()
        .trim_end()
        .to_owned()
}

/// Several lines, each cleaned.
#[must_use]
pub fn clean_lines(text: &str) -> Vec<String> {
    text.lines().map(clean).collect()
}

/// Characters that reorder the text around them, so that it reads as what it is not.
fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Removes the escape sequences of ECMA-48: CSI up to its final byte, OSC and its like up to
/// their terminator, anything else with its one following character.
fn strip_escapes(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let kind = match c {
            '\u{1b}' => chars.next(),
            '\u{9b}' => Some('['),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => Some(']'),
            _ => {
                out.push(c);
                continue;
            }
        };
        match kind {
            Some('[') => {
                for c in chars.by_ref() {
                    if matches!(c, '\u{40}'..='\u{7e}') {
                        break;
                    }
                }
            }
            Some(']' | 'P' | 'X' | '^' | '_') => {
                while let Some(c) = chars.next() {
                    if matches!(c, '\u{7}' | '\u{9c}') {
                        break;
                    }
                    if c == '\u{1b}' {
                        chars.next_if_eq(&'\\');
                        break;
                    }
                }
            }
            // Designations such as `ESC ( B` carry one more character.
            Some('(' | ')' | '*' | '+' | '#' | ' ' | '%') => {
                chars.next();
            }
            _ => {}
        }
    }
    out
}

/// Number of columns, one a character: all that k8sup prints itself is that narrow.
#[must_use]
pub fn columns(text: &str) -> usize {
    text.chars().count()
}

/// At most `width` columns, the last of them an ellipsis where something was cut.
#[must_use]
pub fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    if width > 0 {
        short.push('…');
    }
    short
}

/// Cut or filled up to exactly `width` columns.
#[must_use]
pub fn fit(text: &str, width: usize) -> String {
    let short = cut(text, width);
    format!("{short:<width$}")
}

/// Lines of at most `width` columns, broken at spaces; a word that is longer than that stays whole. Without a width
/// the text is one line.
#[must_use]
pub fn wrap(text: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width.filter(|width| columns(text) > *width) else {
        return vec![text.to_owned()];
    };
    let mut lines = Vec::new();
    let mut current = String::new();
    for word in text.split(' ') {
        if !current.is_empty() && columns(&current) + 1 + columns(word) > width {
            lines.push(std::mem::take(&mut current));
        }
        if !current.is_empty() {
            current.push(' ');
        }
        current.push_str(word);
    }
    lines.push(current);
    lines
}

/// A text that names commands of k8sup, with the inventory that this run was given: `` `k8sup reset --host w1` `` becomes
/// `` `k8sup reset lab.yaml --host w1` ``.
#[must_use]
pub fn with_inventory(text: &str, inventory: &str) -> String {
    const COMMANDS: [&str; 7] = ["apply", "check", "facts", "kubeconfig", "plan", "reset", "status"];
    let mut parts = text.split("`k8sup ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("`k8sup ");
        match COMMANDS
            .iter()
            .find_map(|command| Some((command, part.strip_prefix(command)?)))
        {
            Some((command, rest)) if rest.starts_with(['`', ' ']) => {
                out.extend([command, " ", inventory, rest]);
            }
            _ => out.push_str(part),
        }
    }
    out
}

/// `4.2s`, `1m 05s`, `2h 03m`.
#[must_use]
pub fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    if time < Duration::from_millis(59_950) {
        format!("{:.1}s", time.as_secs_f64())
    } else if seconds < 3600 {
        // Rounded up to a minute by the first branch's limit.
        let seconds = seconds.max(60);
        format!("{}m {:02}s", seconds / 60, seconds % 60)
    } else {
        format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60)
    }
}

/// `1 step`, `2 steps`.
#[must_use]
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_output_cannot_steer_the_terminal() {
        for (raw, wanted) in [
            ("\u{1b}[31mred\u{1b}[0m text", "red text"),
            ("\u{1b}]0;new title\u{7}done", "done"),
            ("\u{1b}]8;;http://evil\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{9b}2Jstill here", "still here"),
            ("\u{9d}0;title\u{9c}after", "after"),
            ("10%\r55%\r100%\r", "100%"),
            ("tab\there\u{8}\u{0}\u{7f}", "tab here"),
            ("a\u{202e}b\u{2066}c", "abc"),
            ("\u{1b}(Bascii", "ascii"),
            ("unfinished \u{1b}[", "unfinished"),
            ("überprüft ✓", "überprüft ✓"),
        ] {
            assert_eq!(clean(raw), wanted, "{raw:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_controls_is_left(raw in "(\\PC|[\u{0}-\u{1f}]|\u{1b}\\[|\u{1b}\\]|[\u{80}-\u{9f}]){0,40}") {
            let text = clean(&raw);
            assert!(text.chars().all(|c| !c.is_control()), "{text:?}");
            assert_eq!(clean(&text), text);
        }
    }

    #[test]
    fn text_is_cut_to_its_width() {
        assert_eq!(cut("kubeadm init", 20), "kubeadm init");
        assert_eq!(cut("kubeadm init", 8), "kubeadm…");
        assert_eq!(cut("kubeadm init", 0), "");
        assert_eq!(fit("cp1", 5), "cp1  ");
        assert_eq!(fit("controller-1", 6), "contr…");
    }

    #[test]
    fn long_text_is_broken_between_words() {
        assert_eq!(wrap("see that it is up", Some(8)), ["see that", "it is up"]);
        assert_eq!(
            wrap("see /a/very/long/path now", Some(8)),
            ["see", "/a/very/long/path", "now"]
        );
        assert_eq!(wrap("see that it is up", None), ["see that it is up"]);
    }

    #[test]
    fn commands_name_the_inventory_of_this_run() {
        for (text, wanted) in [
            ("run `k8sup apply`", "run `k8sup apply my/lab.yaml`"),
            (
                "`k8sup reset --host w1`, then `k8sup plan`",
                "`k8sup reset my/lab.yaml --host w1`, then `k8sup plan my/lab.yaml`",
            ),
            ("`k8sup applying` and k8sup apply", "`k8sup applying` and k8sup apply"),
        ] {
            assert_eq!(with_inventory(text, "my/lab.yaml"), wanted);
        }
    }

    #[test]
    fn times_read_well() {
        for (millis, wanted) in [
            (0, "0.0s"),
            (4_240, "4.2s"),
            (59_949, "59.9s"),
            (59_960, "1m 00s"),
            (65_000, "1m 05s"),
            (7_380_000, "2h 03m"),
        ] {
            assert_eq!(span(Duration::from_millis(millis)), wanted);
        }
    }
}
