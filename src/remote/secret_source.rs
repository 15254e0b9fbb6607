//! Reads the secrets that the inventory names: environment, file, terminal.

use std::path::PathBuf;

use crate::cluster::SecretSource;
use crate::secret::Secret;

/// Why a secret could not be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The environment variable is missing.
    #[error("the environment variable {0} is not set")]
    NotSet(String),
    /// The environment variable or the file's first line is empty.
    #[error("{0} is empty")]
    Empty(String),
    /// The environment variable is not UTF-8.
    #[error("{0} is not valid UTF-8")]
    Encoding(String),
    /// The file could not be read.
    #[error("cannot read {}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// There is nobody to ask.
    #[error("there is no terminal to ask for the password on: {0}")]
    NoTerminal(String),
    /// The inventory says `prompt`, and the password was not asked for before connecting.
    #[error("the password was not asked for")]
    NotAsked,
}

impl SecretError {
    /// What to do next.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NotSet(name) => format!("export {name}, or name another source in the inventory"),
            Self::Empty(_) | Self::Encoding(_) => "put the password there, alone on the first line".to_owned(),
            Self::File { .. } => "check the path, which is relative to the inventory's folder".to_owned(),
            Self::NoTerminal(_) | Self::NotAsked => {
                "run on a terminal, or use `{ env: NAME }` or `{ file: PATH }` in place of `prompt`".to_owned()
            }
        }
    }
}

/// Gets a secret. `prompt` is what a terminal shows, without a colon.
pub fn resolve(source: &SecretSource, prompt: &str) -> Result<Secret, SecretError> {
    match source {
        SecretSource::Env(name) => match std::env::var(name) {
            Ok(value) => not_empty(value, &format!("the environment variable {name}")),
            Err(std::env::VarError::NotPresent) => Err(SecretError::NotSet(name.clone())),
            Err(std::env::VarError::NotUnicode(_)) => {
                Err(SecretError::Encoding(format!("the environment variable {name}")))
            }
        },
        SecretSource::File(path) => {
            let bytes = std::fs::read(path).map_err(|error| SecretError::File {
                path: path.clone(),
                why: error.to_string(),
            })?;
            let shown = format!("the first line of {}", path.display());
            let text = String::from_utf8(bytes).map_err(|_| SecretError::Encoding(shown.clone()))?;
            let text = zeroize::Zeroizing::new(text);
            not_empty(text.lines().next().unwrap_or_default().to_owned(), &shown)
        }
        SecretSource::Prompt => {
            let value = rpassword::prompt_password(format!("{prompt}: "))
                .map_err(|error| SecretError::NoTerminal(error.to_string()))?;
            not_empty(value, "the password")
        }
    }
}

fn not_empty(value: String, what: &str) -> Result<Secret, SecretError> {
    if value.is_empty() {
        Err(SecretError::Empty(what.to_owned()))
    } else {
        Ok(Secret::new(value))
    }
}

#[cfg(test)]
mod tests {
    use super::{SecretError, resolve};
    use crate::cluster::SecretSource;

    #[test]
    fn a_file_gives_its_first_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        std::fs::write(&path, "raspberry\r\nnote\n").unwrap();
        let secret = resolve(&SecretSource::File(path.clone()), "password").unwrap();
        assert_eq!(secret.reveal(), "raspberry");
        std::fs::write(&path, "\nraspberry\n").unwrap();
        assert!(matches!(
            resolve(&SecretSource::File(path), "password"),
            Err(SecretError::Empty(_))
        ));
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing = resolve(&SecretSource::File("/nonexistent/password".into()), "password").unwrap_err();
        assert!(missing.to_string().contains("/nonexistent/password"), "{missing}");
        let unset = resolve(&SecretSource::Env("K8SUP_TEST_NEVER_SET".to_owned()), "password").unwrap_err();
        assert_eq!(unset, SecretError::NotSet("K8SUP_TEST_NEVER_SET".to_owned()));
    }
}
