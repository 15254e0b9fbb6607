//! The file of known host keys: who is known, what changed, and how keys are added and replaced.
//!
//! The format is OpenSSH's. Understood are plain, wildcard, negated and hashed names,
//! `[host]:port`, and `@revoked`. A `@cert-authority` line never vouches for a plain key.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use russh::keys::{Algorithm, HashAlg, PublicKey, parse_public_key_base64};
use sha1::Sha1;

/// A host's key as it was offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostKey {
    /// Address or name as dialled, or the name that stands for it in files of known host keys.
    pub host: String,
    /// TCP port; 22 beside such a name.
    pub port: u16,
    /// As `ssh-ed25519`.
    pub algorithm: String,
    /// As `SHA256:…`, what `ssh-keygen -lf` prints.
    pub fingerprint: String,
    /// Algorithm and key in OpenSSH's text form.
    pub openssh: String,
}

impl HostKey {
    pub(super) fn new(host: &str, port: u16, key: &PublicKey) -> Self {
        let plain = PublicKey::new(key.key_data().clone(), "");
        Self {
            host: host.to_owned(),
            port,
            algorithm: key.algorithm().to_string(),
            fingerprint: fingerprint(key),
            openssh: plain.to_openssh().unwrap_or_default(),
        }
    }
}

/// A key that the file has for a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownKey {
    /// As `ssh-ed25519`.
    pub algorithm: String,
    /// As `SHA256:…`.
    pub fingerprint: String,
    /// The file.
    pub file: PathBuf,
    /// Its line, from 1.
    pub line: usize,
}

/// Why the file could not be read or written.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot {action} {}: {why}", path.display())]
pub struct FileError {
    /// What was tried.
    pub action: &'static str,
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub why: String,
}

impl FileError {
    fn new(action: &'static str, path: &Path, why: &impl ToString) -> Self {
        Self {
            action,
            path: path.to_owned(),
            why: why.to_string(),
        }
    }
}

/// What the file says about an offered key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The key is this host's.
    Known,
    /// Nothing is known of the host.
    Unknown,
    /// The host is known by other keys only.
    Changed(Vec<KnownKey>),
    /// The key must never be accepted; with the file and the line that say so.
    Revoked(PathBuf, usize),
}

/// The lines of the files that are about one host.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownHost {
    keys: Vec<(PathBuf, usize, PublicKey)>,
    revoked: Vec<(PathBuf, usize, PublicKey)>,
    /// Keys under the bare name, which vouch for any port but contradict nothing.
    bare: Vec<PublicKey>,
}

impl KnownHost {
    /// Reads what the files have for a host. A missing file has nothing.
    pub(super) fn load<'a>(
        files: impl IntoIterator<Item = &'a PathBuf>,
        host: &str,
        port: u16,
    ) -> Result<Self, FileError> {
        let mut known = Self::default();
        for path in files {
            match std::fs::read(path) {
                Ok(bytes) => known.read(path, &String::from_utf8_lossy(&bytes), host, port),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(FileError::new("read", path, &error)),
            }
        }
        Ok(known)
    }

    fn read(&mut self, path: &Path, text: &str, host: &str, port: u16) {
        let known = self;
        let name = lookup_name(host, port);
        let bare = host.to_ascii_lowercase();
        for (number, line) in entries(text) {
            let Some(entry) = Entry::parse(line) else { continue };
            let full = matches(entry.hosts, &name);
            let by_bare_name = !full && matches(entry.hosts, &bare);
            if !full && !by_bare_name {
                continue;
            }
            let Ok(key) = parse_public_key_base64(entry.key) else {
                tracing::debug!("known hosts, line {number}: the key is not readable");
                continue;
            };
            match entry.marker {
                Marker::None if full => known.keys.push((path.to_owned(), number, key)),
                Marker::None => known.bare.push(key),
                Marker::Revoked => known.revoked.push((path.to_owned(), number, key)),
                Marker::CertAuthority | Marker::Other => {}
            }
        }
    }

    pub(super) fn judge(&self, offered: &PublicKey) -> Verdict {
        let same = |key: &PublicKey| key.key_data() == offered.key_data();
        if let Some((file, line, _)) = self.revoked.iter().find(|(.., key)| same(key)) {
            return Verdict::Revoked(file.clone(), *line);
        }
        if self.keys.iter().any(|(.., key)| same(key)) || self.bare.iter().any(same) {
            return Verdict::Known;
        }
        if self.keys.is_empty() {
            return Verdict::Unknown;
        }
        // The client asked for the known kinds first, so a host that offers another kind
        // does not have the known key any more.
        Verdict::Changed(
            self.keys
                .iter()
                .map(|(file, line, key)| KnownKey {
                    algorithm: key.algorithm().to_string(),
                    fingerprint: fingerprint(key),
                    file: file.clone(),
                    line: *line,
                })
                .collect(),
        )
    }

    /// The given algorithms, those of known keys first.
    pub(super) fn prefer(&self, algorithms: &[Algorithm]) -> Vec<Algorithm> {
        let kind = |algorithm: &Algorithm| match algorithm {
            Algorithm::Rsa { .. } => Algorithm::Rsa { hash: None },
            other => other.clone(),
        };
        let known: Vec<Algorithm> = (self.keys.iter().map(|(.., key)| key).chain(&self.bare))
            .map(|key| kind(&key.algorithm()))
            .collect();
        let (mut first, rest): (Vec<_>, Vec<_>) = algorithms
            .iter()
            .cloned()
            .partition(|algorithm| known.contains(&kind(algorithm)));
        first.extend(rest);
        first
    }
}

pub(super) fn fingerprint(key: &PublicKey) -> String {
    key.fingerprint(HashAlg::Sha256).to_string()
}

/// Adds a host's key to the file, which is made with its folder when missing. Does nothing
/// when the file has the key already, and never changes what is there.
pub fn remember(path: &Path, key: &HostKey) -> Result<(), FileError> {
    make_folder(path)?;
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| FileError::new("open", path, &error))?;
    file.lock().map_err(|error| FileError::new("lock", path, &error))?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)
        .map_err(|error| FileError::new("read", path, &error))?;
    let offered = key
        .openssh
        .parse::<PublicKey>()
        .map_err(|error| FileError::new("add a key to", path, &error))?;
    let mut known = KnownHost::default();
    known.read(path, &String::from_utf8_lossy(&text), &key.host, key.port);
    if known.judge(&offered) == Verdict::Known {
        return Ok(());
    }
    // One write in append mode: other programs that append at the same time lose nothing.
    let newline = if text.last().is_some_and(|byte| *byte != b'\n') {
        "\n"
    } else {
        ""
    };
    let line = format!("{newline}{} {}\n", lookup_name(&key.host, key.port), key.openssh);
    file.write_all(line.as_bytes())
        .and_then(|()| file.sync_data())
        .map_err(|error| FileError::new("write", path, &error))
}

/// Puts a host's key in the place of those that the file has for the host: its own lines go, and
/// its name goes from lines shared with others. Lines with wildcards and marked lines stay.
/// Returns how many keys were forgotten.
pub fn replace(path: &Path, key: &HostKey) -> Result<usize, FileError> {
    // The file itself is replaced, not a link that leads to it.
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return remember(path, key).map(|()| 0),
        Err(error) => return Err(FileError::new("read", path, &error)),
    };
    file.lock().map_err(|error| FileError::new("lock", path, &error))?;
    let bytes = std::fs::read(path).map_err(|error| FileError::new("read", path, &error))?;
    let text = String::from_utf8(bytes).map_err(|error| FileError::new("edit", path, &error))?;
    let name = lookup_name(&key.host, key.port);
    let mut kept = String::with_capacity(text.len());
    let mut forgotten = 0;
    for line in text.split_inclusive('\n') {
        match without(line, &name) {
            None => kept.push_str(line),
            Some(shorter) => {
                forgotten += 1;
                kept.push_str(&shorter);
            }
        }
    }
    if !kept.is_empty() && !kept.ends_with('\n') {
        kept.push('\n');
    }
    kept.extend([&name, " ", &key.openssh, "\n"]);
    write_in_place_of(path, &kept)?;
    Ok(forgotten)
}

/// What remains of a line when a name goes from it; `None` when the name is not on it.
fn without(line: &str, name: &str) -> Option<String> {
    let entry = Entry::parse(line.trim())?;
    let ours = |pattern: &str| pattern.eq_ignore_ascii_case(name) || hash_matches(pattern, name);
    if entry.marker != Marker::None || !entry.hosts.split(',').any(ours) {
        return None;
    }
    let others: Vec<&str> = entry.hosts.split(',').filter(|pattern| !ours(pattern)).collect();
    if others.is_empty() {
        return Some(String::new());
    }
    Some(line.replacen(entry.hosts, &others.join(","), 1))
}

fn write_in_place_of(path: &Path, text: &str) -> Result<(), FileError> {
    let failed = |error: std::io::Error| FileError::new("write", path, &error);
    let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode();
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::Builder::new()
        .prefix(".known_hosts")
        .tempfile_in(folder)
        .map_err(failed)?;
    new.write_all(text.as_bytes()).map_err(failed)?;
    new.as_file()
        .set_permissions(std::fs::Permissions::from_mode(mode))
        .map_err(failed)?;
    new.as_file().sync_all().map_err(failed)?;
    new.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

fn make_folder(path: &Path) -> Result<(), FileError> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| FileError::new("make the folder of", path, &error)),
        _ => Ok(()),
    }
}

/// The name under which a host's keys are kept.
fn lookup_name(host: &str, port: u16) -> String {
    let host = host.to_ascii_lowercase();
    if port == 22 { host } else { format!("[{host}]:{port}") }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    None,
    Revoked,
    CertAuthority,
    Other,
}

struct Entry<'a> {
    marker: Marker,
    hosts: &'a str,
    key: &'a str,
}

impl<'a> Entry<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let mut hosts = words.next().filter(|word| !word.starts_with('#'))?;
        let mut marker = Marker::None;
        if hosts.starts_with('@') {
            marker = match hosts {
                "@revoked" => Marker::Revoked,
                "@cert-authority" => Marker::CertAuthority,
                _ => Marker::Other,
            };
            hosts = words.next()?;
        }
        let _algorithm = words.next()?;
        Some(Self {
            marker,
            hosts,
            key: words.next()?,
        })
    }
}

fn entries(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()))
}

/// Whether a comma-separated list of patterns names the host; a negated pattern that matches
/// decides against it.
fn matches(hosts: &str, name: &str) -> bool {
    let mut found = false;
    for pattern in hosts.split(',') {
        if let Some(negated) = pattern.strip_prefix('!') {
            if glob(negated.to_ascii_lowercase().as_bytes(), name.as_bytes()) {
                return false;
            }
        } else if hash_matches(pattern, name) || glob(pattern.to_ascii_lowercase().as_bytes(), name.as_bytes()) {
            found = true;
        }
    }
    found
}

/// `|1|salt|hash`: HMAC-SHA1 of the name.
fn hash_matches(pattern: &str, name: &str) -> bool {
    let Some((salt, hash)) = pattern.strip_prefix("|1|").and_then(|rest| rest.split_once('|')) else {
        return false;
    };
    let (Ok(salt), Ok(hash)) = (BASE64_STANDARD.decode(salt), BASE64_STANDARD.decode(hash)) else {
        return false;
    };
    Hmac::<Sha1>::new_from_slice(&salt).is_ok_and(|mac| mac.chain_update(name.as_bytes()).verify_slice(&hash).is_ok())
}

/// `*` stands for any text, `?` for one character.
fn glob(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut in_name) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while in_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, in_name));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => match star {
                // Let the last star take one character more.
                Some((star_at, taken)) => {
                    star = Some((star_at, taken + 1));
                    at = star_at + 1;
                    in_name = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests;
