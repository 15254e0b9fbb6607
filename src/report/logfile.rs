//! The debug log: every event of a run as a JSON line, in the user's state folder.
//!
//! It is for the person who asks "what happened last night". Secrets cannot be in it, since
//! no event has one. That it cannot be written is worth a warning, never a failure. A run that
//! failed has a support file beside its log, which goes with it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use super::json::event_line;

/// Logs that are kept of each command: looking often must not push out the log of a failed apply.
const KEPT: usize = 20;
/// How the name of a log ends.
const SUFFIX: &str = ".jsonl";

/// Why there is no debug log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// No home.
    #[error("no folder for the debug log: neither XDG_STATE_HOME nor HOME is set to an absolute path")]
    NoHome,
    /// The folder cannot be made.
    #[error("failed to create the folder {path} of the debug log")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file cannot be made.
    #[error("failed to create the debug log {path}")]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A line cannot be added.
    #[error("failed to write the debug log {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// An open debug log; clones write to the same file.
#[derive(Debug, Clone)]
pub struct LogFile {
    path: PathBuf,
    file: Arc<File>,
}

impl LogFile {
    /// Opens the log of this run of `command`.
    ///
    /// # Errors
    /// When there is no place for it.
    pub fn create(command: &str) -> Result<Self, LogError> {
        Self::create_in(&folder()?, command, Timestamp::now())
    }

    /// The same in a folder that is given.
    ///
    /// # Errors
    /// As [`LogFile::create`].
    pub fn create_in(folder: &Path, command: &str, now: Timestamp) -> Result<Self, LogError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|source| LogError::Folder {
                path: folder.to_owned(),
                source,
            })?;
        let time = now.strftime("%Y-%m-%dT%H-%M-%S%.3fZ");
        // The process id tells runs apart that began at the same moment.
        let path = folder.join(format!("{time}-{command}-{}{SUFFIX}", std::process::id()));
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|source| LogError::Create {
                path: path.clone(),
                source,
            })?;
        let log = Self {
            path,
            file: Arc::new(file),
        };
        log.event(
            Duration::ZERO,
            &json!({
                "event": "header",
                "k8sup": env!("CARGO_PKG_VERSION"),
                "command": command,
                "started": now.to_string(),
                "pid": std::process::id(),
            }),
        )?;
        Ok(log)
    }

    /// At the end of a run of `command`. One that was `refused` before it contacted anybody leaves no log: a typing
    /// mistake that is made again and again must not push out the log of a run that failed. Any other takes its place
    /// among the newest, and the oldest is removed.
    pub fn settle(&self, command: &str, refused: bool) {
        if refused {
            let _ = fs::remove_file(&self.path);
        } else if let Some(folder) = self.path.parent() {
            keep_newest(folder, command);
        }
    }

    /// Adds an event that happened `at` after the start.
    ///
    /// # Errors
    /// When the line cannot be written.
    pub fn event<T: Serialize>(&self, at: Duration, event: &T) -> Result<(), LogError> {
        // One write a line: the file is in append mode, so lines of clones do not mix.
        (&*self.file)
            .write_all(event_line(at, event).as_bytes())
            .map_err(|source| LogError::Write {
                path: self.path.clone(),
                source,
            })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file itself, for the subscriber of `tracing`.
    #[must_use]
    pub fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }
}

fn folder() -> Result<PathBuf, LogError> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    state.map(|state| state.join("k8sup/logs")).ok_or(LogError::NoHome)
}

/// Names begin with the time, so their order is their age. A log that cannot be removed stays.
fn keep_newest(folder: &Path, command: &str) {
    let of_command = format!("-{command}-");
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut logs: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.to_str()
                .is_some_and(|path| path.ends_with(SUFFIX) && path.contains(&of_command))
        })
        .collect();
    logs.sort();
    for old in logs.iter().rev().skip(KEPT) {
        let _ = fs::remove_file(old);
        let _ = fs::remove_file(old.with_extension("tar.gz"));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::cluster::NodeName;
    use crate::execute::event::Event;

    #[test]
    fn a_log_has_a_header_and_the_events_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("state/k8sup/logs");
        let log = LogFile::create_in(&inner, "apply", "2026-03-01T10:20:30.5Z".parse().unwrap()).unwrap();
        let event = Event::Connected {
            host: NodeName::parse("cp1").unwrap(),
        };
        log.clone().event(Duration::from_millis(1_500), &event).unwrap();

        let name = log.path().file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("2026-03-01T10-20-30.500Z-apply-"), "{name}");
        assert_eq!(fs::metadata(log.path()).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&inner).unwrap().permissions().mode() & 0o777, 0o700);
        let text = fs::read_to_string(log.path()).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["command"], "apply");
        assert_eq!(lines[0]["started"], "2026-03-01T10:20:30.5Z");
        assert_eq!(lines[1], json!({"at": 1.5, "event": "connected", "host": "cp1"}));
    }

    #[test]
    fn the_newest_twenty_stay_and_nothing_else_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("0000-notes.txt"), "mine").unwrap();
        for second in 0..25 {
            let now = Timestamp::from_second(1_800_000_000 + second).unwrap();
            let log = LogFile::create_in(folder.path(), "plan", now).unwrap();
            log.settle("plan", false);
            fs::write(log.path().with_extension("tar.gz"), "").unwrap();
        }
        let mut names: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let logs = names.iter().filter(|name| name.ends_with(SUFFIX)).count();
        names.retain(|name| !name.ends_with(".tar.gz"));
        assert_eq!((logs, names.len()), (20, 21));
        assert_eq!(names[0], "0000-notes.txt");
        let oldest = Timestamp::from_second(1_800_000_005)
            .unwrap()
            .strftime("%Y-%m-%dT%H-%M-%S")
            .to_string();
        assert!(names[1].starts_with(&oldest), "{}", names[1]);
    }

    #[test]
    fn mistakes_in_the_inventory_push_out_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let run = |second: i64, command: &str, refused: bool| {
            let log = LogFile::create_in(folder.path(), command, Timestamp::from_second(second).unwrap()).unwrap();
            log.settle(command, refused);
            log.path().to_owned()
        };
        let failed = run(1_800_000_000, "apply", false);
        for second in 1..=60 {
            run(1_800_000_000 + second, "apply", true);
            run(1_800_000_000 + second, "plan", false);
        }
        assert!(failed.exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1 + KEPT);
    }

    #[test]
    fn no_place_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = LogFile::create_in(&file.join("logs"), "plan", Timestamp::UNIX_EPOCH).unwrap_err();
        assert!(error.to_string().contains("/file/logs"), "{error}");
    }
}
