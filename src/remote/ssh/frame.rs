//! What goes over the wire to start a command: the remote command line and the frame.

use std::sync::LazyLock;

use crate::remote::{Command, Param, quote};
use crate::secret::Secret;

const BOOTSTRAP: &str = include_str!("../../../templates/bootstrap.sh");

/// The bootstrap on one line, without its comments.
static LINE: LazyLock<String> = LazyLock::new(|| {
    let lines: Vec<&str> = BOOTSTRAP
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    lines.join(" ")
});

/// Ties the parts of one command's run together.
#[derive(Debug, Clone)]
pub(super) struct Nonce(String);

impl Nonce {
    pub(super) fn random() -> Self {
        Self(format!("{:032x}", rand::random::<u128>()))
    }

    /// What the bootstrap prints when it reads, newline included.
    pub(super) fn ready(&self) -> String {
        format!("k8sup-ready-{}\n", self.0)
    }

    /// What sudo prints when it wants the password.
    pub(super) fn sudo_prompt(&self) -> String {
        format!("k8sup-sudo-{}:", self.0)
    }

    /// The remote command line, the same for every script, fit for any login shell.
    pub(super) fn command_line(&self, sudo: bool) -> String {
        let bootstrap = format!("sh -c '{}' k8sup {}", *LINE, self.0);
        if sudo {
            // In English, so that what sudo says can be understood here.
            format!("env LC_ALL=C sudo -H -S -p {} -- {bootstrap}", self.sudo_prompt())
        } else {
            bootstrap
        }
    }

    /// The frame: a line with the number of bytes that follow, then parameters and script.
    pub(super) fn frame(&self, command: &Command) -> Result<Vec<u8>, String> {
        let mut text = String::from("exec </dev/null\n");
        for (name, value) in &command.params {
            if !is_name(name) {
                return Err(format!("`{name}` is not the name of a shell variable"));
            }
            let value = match value {
                Param::Plain(value) => value,
                Param::Secret(secret) => secret.reveal(),
            };
            if value.contains('\0') {
                return Err(format!("the parameter {name} contains a NUL byte"));
            }
            text.push_str(name);
            text.push('=');
            text.push_str(&quote(value));
            text.push('\n');
        }
        text.push_str(&command.script);
        text.push_str("\n#end ");
        text.push_str(&self.0);
        Ok(format!("{}\n{text}", text.len()).into_bytes())
    }
}

/// The answer to sudo's prompt.
pub(super) fn password_line(password: &Secret) -> Vec<u8> {
    format!("{}\n", password.reveal()).into_bytes()
}

fn is_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|character| character.is_ascii_alphanumeric() || character == '_')
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{LINE, Nonce};
    use crate::remote::{Command, Param};
    use crate::secret::Secret;

    #[test]
    fn the_command_line_passes_any_login_shell() {
        for forbidden in ["'", "!", "\n", "\\\\"] {
            assert!(!LINE.contains(forbidden), "{forbidden:?} in the bootstrap");
        }
        assert!(
            !LINE.contains('#') || LINE.contains("#end"),
            "only the frame's end has a number sign"
        );
        let line = Nonce("abc".to_owned()).command_line(true);
        assert!(
            line.starts_with("env LC_ALL=C sudo -H -S -p k8sup-sudo-abc: -- sh -c '"),
            "{line}"
        );
        assert!(line.ends_with("' k8sup abc"), "{line}");
    }

    #[test]
    fn the_frame_counts_its_bytes() {
        let mut command = Command {
            name: "test".to_owned(),
            script: "echo \"$GRUß\"".to_owned(),
            params: vec![("A_1".to_owned(), Param::Secret(Secret::new("it's")))],
            root: false,
            timeout: Duration::from_secs(1),
        };
        let frame = String::from_utf8(Nonce("abc".to_owned()).frame(&command).unwrap()).unwrap();
        let (count, body) = frame.split_once('\n').unwrap();
        assert_eq!(count.parse::<usize>().unwrap(), body.len());
        assert_eq!(body, "exec </dev/null\nA_1='it'\\''s'\necho \"$GRUß\"\n#end abc");

        command.params = vec![("1A".to_owned(), Param::Plain(String::new()))];
        assert!(Nonce::random().frame(&command).is_err());
        command.params = vec![("A".to_owned(), Param::Plain("a\0b".to_owned()))];
        assert!(Nonce::random().frame(&command).is_err());
    }
}
