//! Flannel's upstream manifest: read from a file, from the cache, or fetched by a host, and
//! checked against its pinned digest. What is done to it is `render::flannel`'s business.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cluster::{Flannel, ManifestSource, NodeName};
use crate::facts::Unreachable;
use crate::remote::{Command, Param, Session};
use crate::render::flannel::{FlannelError, verify_digest};

/// Why there is no manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The inventory's file cannot be read.
    #[error("failed to read Flannel's manifest {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not the pinned one.
    #[error("Flannel's manifest from {from} is not the pinned one")]
    Digest {
        /// Where it came from.
        from: String,
        /// Both digests.
        source: FlannelError,
    },
    /// No host could fetch it.
    #[error("failed to fetch Flannel's manifest from {url}: {reason}")]
    Fetch {
        /// Where from.
        url: String,
        /// What the last host said.
        reason: String,
    },
}

impl ManifestError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read { .. } => "paths are relative to the inventory's folder",
            Self::Digest { .. } => {
                "check `flannel.version`, `flannel.manifest` and `flannel.sha256`: somebody changed the file, or the pin is of another version"
            }
            Self::Fetch { .. } => "download it yourself and name the file as `flannel.manifest`",
        }
    }
}

/// Gets the manifest; `cache` is a folder for fetched ones.
///
/// # Errors
/// When it cannot be had, or is not what was pinned.
pub async fn upstream(
    flannel: &Flannel,
    sessions: &BTreeMap<NodeName, Result<Session, Unreachable>>,
    cache: Option<&Path>,
) -> Result<String, ManifestError> {
    match &flannel.manifest {
        ManifestSource::File(path) => {
            let text = std::fs::read_to_string(path).map_err(|source| ManifestError::Read {
                path: path.clone(),
                source,
            })?;
            check(text, flannel, &path.display().to_string())
        }
        ManifestSource::Url(url) => {
            // A digest names the content, so a cached copy is as good as a fetched one.
            let cached = flannel
                .sha256
                .as_ref()
                .zip(cache)
                .map(|(digest, folder)| folder.join(format!("flannel-{digest}.yaml")));
            if let Some(text) = cached.as_ref().and_then(|path| std::fs::read_to_string(path).ok())
                && let Ok(text) = check(text, flannel, url)
            {
                return Ok(text);
            }
            let text = check(fetch(url, sessions).await?, flannel, url)?;
            if let Some(path) = cached {
                // Without a cache the next run only takes a little longer.
                let _ = keep(&path, &text);
            }
            Ok(text)
        }
    }
}

fn check(text: String, flannel: &Flannel, from: &str) -> Result<String, ManifestError> {
    if let Some(digest) = &flannel.sha256 {
        verify_digest(text.as_bytes(), digest).map_err(|source| ManifestError::Digest {
            from: from.to_owned(),
            source,
        })?;
    }
    Ok(text)
}

async fn fetch(
    url: &str,
    sessions: &BTreeMap<NodeName, Result<Session, Unreachable>>,
) -> Result<String, ManifestError> {
    let mut reason = "no host can be reached".to_owned();
    for (name, session) in sessions
        .iter()
        .filter_map(|(name, session)| Some((name, session.as_ref().ok()?)))
        .take(3)
    {
        let command = Command {
            name: "fetch".to_owned(),
            script: include_str!("../templates/fetch.sh").to_owned(),
            params: vec![("URL".to_owned(), Param::Plain(url.to_owned()))],
            root: true,
            timeout: Duration::from_secs(90),
        };
        match session.run(&command, None).await {
            Ok(output) if output.ok() => return Ok(output.stdout),
            Ok(output) => {
                let last = output.stderr.lines().rev().find(|line| !line.trim().is_empty());
                reason = format!("{name}: {}", last.unwrap_or("the download failed without a word"));
            }
            Err(error) => reason = format!("{name}: {error}"),
        }
    }
    Err(ManifestError::Fetch {
        url: url.to_owned(),
        reason,
    })
}

fn keep(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path)?;
    Ok(())
}
