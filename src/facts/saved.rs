//! Facts in a folder: the scrubbed text of the probes, to be sent with a report and looked at without any connection.
//!
//! ```text
//! facts.json        {"format": "k8sup.facts/1", "k8sup": VERSION, "unreachable": {NAME: {"refused", "reason"}},
//!                    "cluster": {"asked": NAME} | {"unknown": REASON} | null}
//! NAME.txt          what the probe printed on the host, in the form of the recordings in tests/facts
//! cluster/NAME.txt  what a controller said of its cluster
//! ```
//! A folder with nothing but such texts is read, too. How far clocks are apart is not in them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::observe::Raw;
use super::scrub::{NONCE, scrub, sentence};
use super::{ClusterFacts, Facts, HostFacts, Observation, Seen, Unreachable, parse};
use crate::cluster::{Cluster, NodeName, Role};

const FORMAT: &str = "k8sup.facts/1";
const SUMMARY: &str = "facts.json";

/// Why a folder has no facts, or cannot get any.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// A file or folder cannot be written.
    #[error("failed to write {}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It holds something else.
    #[error("{} is not empty, and what is in it are no facts of k8sup's", .0.display())]
    Strange(PathBuf),
    /// A file cannot be read.
    #[error("failed to read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not what it should be.
    #[error("{} cannot be understood: {reason}", path.display())]
    Summary {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// There is nothing about any host of the inventory.
    #[error("{} has facts of none of the inventory's hosts", .0.display())]
    Empty(PathBuf),
}

#[derive(Debug, Serialize, Deserialize)]
struct Summary {
    format: String,
    k8sup: String,
    #[serde(default)]
    unreachable: BTreeMap<String, Absence>,
    cluster: Option<Known>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Absence {
    refused: bool,
    reason: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Known {
    Asked(String),
    Unknown(String),
}

/// Writes all that was seen, scrubbed; gives the files in their order.
///
/// # Errors
/// When the folder holds something else, or cannot be written.
pub fn save(
    folder: &Path,
    cluster: &Cluster,
    facts: &Facts,
    raw: &Raw,
    people: &[&str],
) -> Result<Vec<PathBuf>, SavedError> {
    clear(folder)?;
    let mut written = Vec::new();
    let mut put = |path: PathBuf, text: &str| {
        let write = |path: &Path| {
            std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
            std::fs::write(path, text)
        };
        write(&path).map_err(|source| SavedError::Write {
            path: path.clone(),
            source,
        })?;
        written.push(path);
        Ok(())
    };
    let mut unreachable = BTreeMap::new();
    for host in &cluster.hosts {
        let mut people = people.to_vec();
        people.push(&host.ssh.user);
        if let Some(Observation::Unreachable(why)) = facts.hosts.get(&host.name) {
            let absence = Absence {
                refused: why.refused,
                reason: sentence(&why.reason, &people),
            };
            unreachable.insert(host.name.to_string(), absence);
        }
        if let Some(text) = raw.hosts.get(&host.name) {
            put(
                folder.join(format!("{}.txt", host.name)),
                &scrub(&text.text, &text.nonce),
            )?;
        }
        if let Some(text) = raw.cluster.get(&host.name) {
            let path = folder.join("cluster").join(format!("{}.txt", host.name));
            put(path, &scrub(&text.text, &text.nonce))?;
        }
    }
    let summary = Summary {
        format: FORMAT.to_owned(),
        k8sup: env!("CARGO_PKG_VERSION").to_owned(),
        unreachable,
        cluster: match &facts.cluster {
            Seen::Present(live) => live.asked.as_ref().map(|name| Known::Asked(name.to_string())),
            Seen::Absent => None,
            Seen::Unknown(reason) => Some(Known::Unknown(sentence(reason, people))),
        },
    };
    let text = serde_json::to_string_pretty(&summary).map_err(|error| SavedError::Summary {
        path: folder.join(SUMMARY),
        reason: error.to_string(),
    })?;
    put(folder.join(SUMMARY), &format!("{text}\n"))?;
    Ok(written)
}

/// A folder of an earlier save loses its files; any other must be empty.
fn clear(folder: &Path) -> Result<(), SavedError> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(());
    };
    if folder.join(SUMMARY).exists() {
        for folder in [folder.to_owned(), folder.join("cluster")] {
            for path in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = path.path();
                if path.extension().is_some_and(|ending| ending == "txt") {
                    std::fs::remove_file(&path).map_err(|source| SavedError::Write { path, source })?;
                }
            }
        }
    } else if entries.count() > 0 {
        return Err(SavedError::Strange(folder.to_owned()));
    }
    Ok(())
}

/// Reads what was saved. A host that is not in the folder is one that cannot be reached.
///
/// # Errors
/// When there is no such folder, or nothing in it about these hosts.
pub fn load(folder: &Path, cluster: &Cluster) -> Result<Facts, SavedError> {
    let path = folder.join(SUMMARY);
    let summary = read(&path)?.map(|text| understood(&path, &text)).transpose()?;
    let absences = summary.as_ref().map(|summary| &summary.unreachable);
    let mut hosts = BTreeMap::new();
    let mut known = false;
    for host in &cluster.hosts {
        let path = folder.join(format!("{}.txt", host.name));
        let observation = match read(&path)? {
            Some(text) => {
                known = true;
                observation(&text)
            }
            None => Observation::Unreachable(match absences.and_then(|all| all.get(host.name.as_str())) {
                Some(absence) => {
                    known = true;
                    Unreachable {
                        refused: absence.refused,
                        reason: absence.reason.clone(),
                        hint: None,
                    }
                }
                None => Unreachable::unknown(&format!("{} is not there", path.display())),
            }),
        };
        hosts.insert(host.name.clone(), observation);
    }
    if !known {
        return Err(SavedError::Empty(folder.to_owned()));
    }
    let cluster = match summary.map(|summary| summary.cluster) {
        Some(None) => Seen::Absent,
        Some(Some(Known::Unknown(reason))) => Seen::Unknown(reason),
        Some(Some(Known::Asked(name))) => {
            let asked = cluster.hosts.iter().find(|host| host.name.as_str() == name);
            match asked {
                Some(host) => said(folder, &host.name)?.map_or_else(
                    || Seen::Unknown(format!("what {name} said is not there")),
                    Seen::Present,
                ),
                None => Seen::Unknown(format!("{name}, which was asked, is not in the inventory")),
            }
        }
        None => without_summary(folder, cluster, &hosts)?,
    };
    Ok(Facts {
        hosts,
        cluster,
        ..Facts::default()
    })
}

/// Seconds since 1970 at which facts were saved: the hosts' own clocks.
#[must_use]
pub fn time(facts: &Facts) -> Option<i64> {
    let clocks = facts.hosts.values().filter_map(|seen| match seen {
        Observation::Seen(facts) => i64::try_from(facts.clock).ok(),
        Observation::Unreachable(_) => None,
    });
    clocks.max()
}

fn observation(text: &str) -> Observation {
    match parse::host(text, NONCE) {
        Ok(facts) => Observation::Seen(Box::new(HostFacts {
            clock_skew: None,
            ..facts
        })),
        Err(error) => Observation::Unreachable(Unreachable::unknown(&error.to_string())),
    }
}

/// Texts alone: the first controller that said something was asked.
fn without_summary(
    folder: &Path,
    cluster: &Cluster,
    hosts: &BTreeMap<NodeName, Observation>,
) -> Result<Seen<ClusterFacts>, SavedError> {
    let mut may_know = false;
    for host in cluster.role(Role::Controller) {
        if let Some(facts) = said(folder, &host.name)? {
            return Ok(Seen::Present(facts));
        }
        may_know |= match hosts.get(&host.name) {
            Some(Observation::Seen(facts)) => facts.kube.has("admin.conf"),
            Some(Observation::Unreachable(_)) | None => true,
        };
    }
    Ok(if may_know {
        Seen::Unknown("what the controllers said of their cluster was not saved".to_owned())
    } else {
        Seen::Absent
    })
}

fn said(folder: &Path, controller: &NodeName) -> Result<Option<ClusterFacts>, SavedError> {
    let text = read(&folder.join("cluster").join(format!("{controller}.txt")))?;
    Ok(text.map(|text| ClusterFacts {
        asked: Some(controller.clone()),
        ..parse::cluster(&text, NONCE)
    }))
}

fn understood(path: &Path, text: &str) -> Result<Summary, SavedError> {
    let wrong = |reason: String| SavedError::Summary {
        path: path.to_owned(),
        reason,
    };
    let summary: Summary = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    if summary.format != FORMAT {
        return Err(wrong(format!("its format is {}, not {FORMAT}", summary.format)));
    }
    Ok(summary)
}

/// The text; `None` where there is no such file.
fn read(path: &Path) -> Result<Option<String>, SavedError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(SavedError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}
