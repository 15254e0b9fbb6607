//! A probe's text without secrets and personal names, fit to be shown to strangers, and still fit to be parsed.
//!
//! Host names, addresses and identifiers of machines stay: what is judged is judged by them. Rather a harmless word too
//! many is masked than a secret kept.

use std::fmt::Write as _;

use serde_json::Value;

use crate::plan::mask;

/// Marks the sections of what was saved, as in the recordings of `tests/facts`.
pub const NONCE: &str = "abc123";

const DOTS: &str = "•••";
/// Login names that distributions give: no person's.
const NOBODY: [&str; 10] = [
    "root",
    "pi",
    "debian",
    "ubuntu",
    "admin",
    "user",
    "vagrant",
    "ansible",
    "k8s",
    "kubernetes",
];
/// Sections without free text: names of hosts, links, packages and units, which a person's may look like.
const PLAIN: [&str; 26] = [
    "clock",
    "os-release",
    "architecture",
    "machine",
    "kernel",
    "hostname",
    "machine-id",
    "boot-id",
    "product-uuid",
    "cpus",
    "meminfo",
    "free",
    "cgroup",
    "swaps",
    "sysctls",
    "modules",
    "addresses",
    "routes",
    "packages",
    "listening",
    "etcd",
    "endpoint",
    "readyz",
    "services",
    "images",
    "containerd-version",
];

/// The text of `templates/probe.sh` or `templates/cluster.sh`, marked with [`NONCE`].
#[must_use]
pub fn scrub(raw: &str, nonce: &str) -> String {
    let sections = split(raw, nonce);
    let login = sections.iter().find(|section| section.name == "login");
    let names = login.map(|login| Names::of(login.body.trim())).unwrap_or_default();
    let mut out = String::with_capacity(raw.len());
    // Writing to a String cannot fail.
    for section in &sections {
        let Section { name, body, end } = section;
        let _ = writeln!(out, "@@{NONCE} begin {name}");
        out.push_str(&unmarked(&scrub_section(name, body, &names)));
        if let Some(end) = end {
            let reason = names.replace(&tokens(&mask::mask(end, DOTS)));
            let _ = writeln!(out, "@@{NONCE} end {name}{reason}");
        }
    }
    if raw.lines().any(|line| line == format!("@@{nonce} done")) {
        let _ = writeln!(out, "@@{NONCE} done");
    }
    out
}

/// A sentence about a host, such as why it cannot be reached, without the names of these people.
#[must_use]
pub fn sentence(text: &str, people: &[&str]) -> String {
    let names = Names {
        replaced: people
            .iter()
            .filter(|name| is_personal(name))
            .map(|name| ((*name).to_owned(), "user"))
            .collect(),
    };
    names.replace(&tokens(&mask::mask(text, DOTS)))
}

struct Section<'a> {
    name: &'a str,
    body: String,
    /// What stands behind the name in the end mark; `None`: the probe was cut short.
    end: Option<&'a str>,
}

/// The sections in their order. What stands between them is not the probe's, and goes.
fn split<'a>(raw: &'a str, nonce: &str) -> Vec<Section<'a>> {
    let mark = format!("@@{nonce} ");
    let mut sections: Vec<Section<'_>> = Vec::new();
    for line in raw.split_inclusive('\n') {
        let open = sections.last_mut().filter(|section| section.end.is_none());
        match (line.strip_prefix(&mark).map(str::trim_end), open) {
            (Some(words), open) => {
                if let Some(name) = words.strip_prefix("begin ") {
                    sections.push(Section {
                        name,
                        body: String::new(),
                        end: None,
                    });
                } else if let (Some(rest), Some(section)) = (words.strip_prefix("end "), open)
                    && let Some(end) = rest.strip_prefix(section.name)
                {
                    section.end = Some(end);
                }
            }
            (None, Some(section)) => section.body.push_str(line),
            (None, None) => {}
        }
    }
    sections
}

/// No line of a file may pass for a mark.
fn unmarked(body: &str) -> String {
    body.split_inclusive('\n')
        .map(|line| {
            if line.starts_with("@@") {
                format!(" {line}")
            } else {
                line.to_owned()
            }
        })
        .collect()
}

fn scrub_section(name: &str, body: &str, names: &Names) -> String {
    if PLAIN.contains(&name) || name.starts_with("certificate") {
        return body.to_owned();
    }
    match name {
        "login" => return login(body, names),
        "nodes" | "objects" | "members" => return json(body),
        "holder" => return holder(body),
        _ => {}
    }
    let mut text = tokens(&user_info(&without_keys(&mask::mask(body, DOTS))));
    if name == "login-kubeconfig" {
        text = drop_lines(&text, &["client-certificate-data:", "current-context:"]);
    } else if name.starts_with("file:") && !is_ours(body) {
        text = text.split_inclusive('\n').map(without_comment).collect();
        if name.ends_with(":/etc/hosts") {
            text = text.split_inclusive('\n').map(without_remark).collect();
        }
    }
    names.replace(&text)
}

/// `NAME:x:1000:1000:Full Name,,,:/home/NAME:/bin/sh`: the name and the home, and not who it is.
fn login(body: &str, names: &Names) -> String {
    body.split_inclusive('\n')
        .map(|line| {
            let mut fields: Vec<&str> = line.split(':').collect();
            if let Some(person) = fields.get_mut(4) {
                *person = "";
            }
            names.replace(&fields.join(":"))
        })
        .collect()
}

/// `k8sup apply by me@laptop (process 7)`.
fn holder(body: &str) -> String {
    body.split_inclusive('\n')
        .map(|line| match line.split_once(" by ") {
            Some((head, tail)) => {
                let rest = tail.find([' ', '\n']).map_or("", |end| &tail[end..]);
                format!("{head} by somebody@somewhere{rest}")
            }
            None => line.to_owned(),
        })
        .collect()
}

/// One document, or one a line.
fn json(body: &str) -> String {
    match serde_json::from_str::<Value>(body) {
        Ok(mut value) => {
            scrub_json(&mut value);
            format!("{value:#}\n")
        }
        Err(_) => body.split_inclusive('\n').map(json_line).collect(),
    }
}

/// `node {…}`, `secret NAME`, or JSON: secrets have a key that names them, or stand in a text.
fn json_line(line: &str) -> String {
    let (head, json) = match line.find('{') {
        Some(start) => line.split_at(start),
        None => (line, ""),
    };
    let Ok(mut value) = serde_json::from_str::<Value>(json) else {
        return if json.is_empty() {
            line.to_owned()
        } else {
            tokens(&mask::mask(line, DOTS))
        };
    };
    scrub_json(&mut value);
    format!("{head}{value}\n")
}

fn scrub_json(value: &mut Value) {
    match value {
        Value::String(text) => *text = tokens(&user_info(&without_keys(&mask::mask(text, DOTS)))),
        Value::Array(items) => items.iter_mut().for_each(scrub_json),
        Value::Object(fields) => {
            for (key, field) in fields {
                match field {
                    Value::String(text) if names_a_secret(key) => DOTS.clone_into(text),
                    _ => scrub_json(field),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The key, or what stands behind its domain.
fn names_a_secret(key: &str) -> bool {
    let last = key.rsplit(['/', '.']).next().unwrap_or(key);
    mask::names_a_secret(last) || key.starts_with("jws-")
}

/// Private keys as PEM.
fn without_keys(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for line in text.split_inclusive('\n') {
        if line.contains("-----BEGIN ") && line.contains("PRIVATE KEY") {
            inside = true;
            out.push_str(DOTS);
            out.push('\n');
        }
        if !inside {
            out.push_str(line);
        }
        if line.contains("-----END ") && line.contains("PRIVATE KEY") {
            inside = false;
        }
    }
    out
}

/// The user of a URL, and of a registry.
fn user_info(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|line| user_of_registry(&user_of_url(line)))
        .collect()
}

fn user_of_url(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    let hidden = format!(":{DOTS}@");
    while let Some(place) = rest.find(&hidden) {
        let (head, tail) = rest.split_at(place);
        match head.rfind("://") {
            Some(start) => out.push_str(&head[..start + 3]),
            None => out.push_str(head),
        }
        out.push_str(&tail[1..hidden.len()]);
        rest = &tail[hidden.len()..];
    }
    out + rest
}

/// `username = "me"`, `username=me,password=…`.
fn user_of_registry(line: &str) -> String {
    let Some(place) = line.to_ascii_lowercase().find("username") else {
        return line.to_owned();
    };
    let (head, tail) = line.split_at(place + "username".len());
    let Some(start) = tail.find(|c: char| !c.is_whitespace() && !matches!(c, '=' | ':' | '"' | '\'')) else {
        return line.to_owned();
    };
    let (blank, value) = tail.split_at(start);
    let end = value.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ','));
    format!("{head}{blank}{DOTS}{}", end.map_or("", |end| &value[end..]))
}

/// What is a secret by its look: `Bearer …`, `Basic …`, a JSON web token, a bootstrap token.
fn tokens(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '/' | '=' | '~');
    let mut out = String::with_capacity(text.len());
    let mut scheme = false;
    let mut rest = text;
    while let Some(start) = rest.find(is_part) {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let word = &rest[..end];
        if scheme && word.len() >= 6 || is_web_token(word) {
            out.push_str(DOTS);
        } else {
            out.push_str(&without_bootstrap_token(word));
        }
        scheme = word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic");
        rest = &rest[end..];
    }
    out + rest
}

fn is_web_token(word: &str) -> bool {
    word.find("eyJ")
        .is_some_and(|start| word[start..].matches('.').count() >= 2 && word.len() > 20)
}

/// `abcdef.0123456789abcdef`.
fn without_bootstrap_token(word: &str) -> String {
    let small = |part: &str| part.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase());
    let found = word.split(['=', '/', '+', '~']).find_map(|piece| {
        let (id, secret) = piece.split_once('.')?;
        (id.len() == 6 && secret.len() == 16 && small(id) && small(secret)).then_some(secret)
    });
    found.map_or_else(|| word.to_owned(), |secret| word.replace(secret, DOTS))
}

fn drop_lines(text: &str, keys: &[&str]) -> String {
    let has = |line: &str| {
        keys.iter()
            .any(|key| line.trim_start().trim_start_matches("- ").starts_with(key))
    };
    text.split_inclusive('\n').filter(|line| !has(line)).collect()
}

/// k8sup writes the whole file, and says so at its top.
fn is_ours(body: &str) -> bool {
    body.lines().next().is_some_and(|line| line.contains("k8sup"))
}

/// Comments of people, but for k8sup's own marks in files that are theirs.
fn without_comment(line: &str) -> String {
    let head = line.trim_start();
    if head.starts_with('#') && head.trim().len() > 1 && !head.contains("k8sup") {
        let indent = &line[..line.len() - head.len()];
        let end = if line.ends_with('\n') { "\n" } else { "" };
        return format!("{indent}# {DOTS}{end}");
    }
    line.to_owned()
}

/// The same behind an entry.
fn without_remark(line: &str) -> String {
    match line.find(" #").or_else(|| line.find("\t#")) {
        Some(place) if !line.trim_start().starts_with('#') => {
            format!(
                "{} # {DOTS}{}",
                &line[..place],
                if line.ends_with('\n') { "\n" } else { "" }
            )
        }
        _ => line.to_owned(),
    }
}

/// Words that name a person, and what stands for them.
#[derive(Debug, Default)]
struct Names {
    replaced: Vec<(String, &'static str)>,
}

impl Names {
    /// Those of a line of passwd.
    fn of(passwd: &str) -> Self {
        let fields: Vec<&str> = passwd.split(':').collect();
        let field = |index: usize| fields.get(index).copied().unwrap_or_default();
        let (user, home) = (field(0), field(5));
        let mut replaced = Vec::new();
        if is_personal(user) {
            // A home of another name first: it may hold the user's.
            if !home.is_empty() && home != "/" && !home.split('/').any(|part| part == user) {
                replaced.push((home.to_owned(), "/home/user"));
            }
            replaced.push((user.to_owned(), "user"));
            let person = field(4).split(',').next().unwrap_or_default();
            if person.contains(' ') {
                replaced.push((person.to_owned(), "somebody"));
            }
        }
        Self { replaced }
    }

    fn replace(&self, text: &str) -> String {
        self.replaced.iter().fold(text.to_owned(), |text, (name, instead)| {
            replace_word(&text, name, instead)
        })
    }
}

fn is_personal(user: &str) -> bool {
    !user.is_empty() && !NOBODY.contains(&user)
}

fn replace_word(text: &str, word: &str, instead: &str) -> String {
    let within = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find(word) {
        let (head, tail) = rest.split_at(place);
        let after = &tail[word.len()..];
        out.push_str(head);
        let whole = !out.chars().next_back().is_some_and(within) && !after.chars().next().is_some_and(within);
        out.push_str(if whole { instead } else { word });
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_by_their_look() {
        for (text, expected) in [
            ("Bearer abcdef123\n", "Bearer •••\n"),
            ("Basic bWU6Z2VoZWlt\n", "Basic •••\n"),
            ("--token=abcdef.0123456789abcdef x", "--token=abcdef.••• x"),
            (
                "a.0123456789abcdef https://pkgs.k8s.io/core:/stable:/v1.34/deb/",
                "a.0123456789abcdef https://pkgs.k8s.io/core:/stable:/v1.34/deb/",
            ),
            ("eyJhbGciOiJub25lIn0.eyJhIjoxfQ.c2lnbg", "•••"),
            ("basic rules", "basic rules"),
        ] {
            assert_eq!(tokens(text), expected);
        }
    }

    #[test]
    fn only_whole_words_are_a_name() {
        let names = Names::of("anna:x:1000:1000:Anna Muster,,,:/srv/homes/am:/bin/sh");
        assert_eq!(
            names.replace("/home/anna/x annas joanna anna-pc Anna Muster /srv/homes/am/.kube"),
            "/home/user/x annas joanna user-pc somebody /home/user/.kube"
        );
        assert!(
            Names::of("pi:x:1000:1000:Raspberry Pi,,,:/home/pi:/bin/sh")
                .replaced
                .is_empty()
        );
    }

    #[test]
    fn comments_stay_only_where_k8sup_wrote() {
        let kept = "# made by k8sup\n# for all\nx 1\n";
        assert_eq!(scrub_section("file:644:/etc/x", kept, &Names::default()), kept);
        let mixed = "127.0.0.1 localhost\n10.0.0.9 nas\t# of anna\n# of anna\n# k8sup begin\n";
        let shown = scrub_section("file:644:/etc/hosts", mixed, &Names::default());
        assert_eq!(shown, "127.0.0.1 localhost\n10.0.0.9 nas # •••\n# •••\n# k8sup begin\n");
        let masked = scrub_section("file:644:/etc/x", "# of anna\n  #x\n#\nx 1\n", &Names::default());
        assert_eq!(masked, "# •••\n  # •••\n#\nx 1\n");
    }
}
