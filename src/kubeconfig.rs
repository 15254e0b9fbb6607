//! The kubeconfig on this machine: a file of its own, or an entry in the user's file.
//!
//! The user's other contexts, clusters and users and all keys that k8sup does not know stay as
//! they are (comments do not, as with kubectl). A file is replaced in one step or not at all.
//! Everything here blocks: it is for the end of a command, not for the middle of a lane.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use crate::secret::Secret;

#[cfg(test)]
mod tests;

/// How long another writer's lock is waited for.
const LOCK_LIMIT: Duration = Duration::from_secs(5);

/// Why a kubeconfig was not written. The file that was there stands as it was.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// A file or folder could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file that is there is not YAML.
    #[error("{}:{line}:{column} is not a kubeconfig: {message}\n  {line} | {shown}\nrepair the file or move it away; it was not changed", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Column, from 1.
        column: u64,
        /// What the parser said.
        message: String,
        /// The line, without what may be secret.
        shown: String,
    },
    /// The file that is there is YAML, but no kubeconfig.
    #[error("{} is not a kubeconfig: {what}; repair the file or move it away; it was not changed", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The cluster's own kubeconfig is not one.
    #[error("the cluster's admin.conf cannot be used: {0}; look at /etc/kubernetes/admin.conf on a controller")]
    Admin(String),
    /// Another program holds the lock.
    #[error("{} exists: another program is writing the kubeconfig; if none is running, remove that file", .0.display())]
    Locked(PathBuf),
    /// What was to be written does not read back as the same; nothing was written.
    #[error("the new content of {} does not read back as it was meant; it was not changed: please report this", .0.display())]
    RoundTrip(PathBuf),
}

/// What became of the user's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The file that was written, links followed.
    pub path: PathBuf,
    /// Name of the context, which is now the current one.
    pub context: String,
    /// Copy of the file as it was, made when entries of another cluster had to go.
    pub backup: Option<PathBuf>,
    /// False where the file held exactly this already and was left alone.
    pub changed: bool,
}

/// Puts the cluster into the user's file as context, cluster and user `name`, and makes it the
/// current context.
///
/// # Errors
/// When the file cannot be read, understood or replaced: see [`KubeconfigError`].
pub fn merge_into(path: &Path, name: &str, server: &str, admin: &Secret) -> Result<Merged, KubeconfigError> {
    let credentials = Credentials::of(admin)?;
    let target = follow(path)?;
    make_folder(&target)?;
    let _lock = Lock::take(path)?;
    let before = read(&target)?;
    let mut config = match &before {
        Some(text) => parse(&target, text)?,
        None => Value::Null,
    };
    let shape = |what: String| KubeconfigError::Shape {
        path: target.clone(),
        what,
    };
    let old = config.clone();
    let foreign = lay_in(&mut config, name, server, &credentials).map_err(shape)?;
    let context = name.to_owned();
    if config == old {
        return Ok(Merged {
            path: target,
            context,
            backup: None,
            changed: false,
        });
    }
    let text = render(&target, &config)?;
    let backup = match before {
        Some(before) if foreign => Some(back_up(&target, &before)?),
        _ => None,
    };
    replace(&target, &text)?;
    Ok(Merged {
        path: target,
        context,
        backup,
        changed: true,
    })
}

/// Writes a kubeconfig for this cluster alone. A file that is there is replaced.
///
/// # Errors
/// When the file cannot be written: see [`KubeconfigError`].
pub fn write_to(path: &Path, name: &str, server: &str, admin: &Secret) -> Result<(), KubeconfigError> {
    let target = follow(path)?;
    let text = standalone(name, server, admin)?;
    make_folder(&target)?;
    replace(&target, text.reveal())
}

/// The text of a kubeconfig for this cluster alone.
///
/// # Errors
/// When the cluster's admin.conf is not a kubeconfig with a CA and credentials.
pub fn standalone(name: &str, server: &str, admin: &Secret) -> Result<Secret, KubeconfigError> {
    let mut config = Value::Null;
    lay_in(&mut config, name, server, &Credentials::of(admin)?).map_err(KubeconfigError::Admin)?;
    Ok(Secret::new(render(Path::new("admin.conf"), &config)?.as_str()))
}

/// What is taken from the cluster's admin.conf.
struct Credentials {
    ca: String,
    user: Map<String, Value>,
}

impl Credentials {
    fn of(admin: &Secret) -> Result<Self, KubeconfigError> {
        let wrong = |what: &str| KubeconfigError::Admin(what.to_owned());
        let config: Value = serde_saphyr::from_str(admin.reveal()).map_err(|error| {
            let place = error
                .location()
                .map_or(String::new(), |at| format!(" (line {})", at.line()));
            KubeconfigError::Admin(format!("it is not YAML{place}"))
        })?;
        let wanted = config.get("current-context").and_then(Value::as_str);
        let context = entry(&config, "contexts", wanted).and_then(|entry| entry.get("context"));
        let reference = |key: &str| context.and_then(|context| context.get(key)).and_then(Value::as_str);
        let cluster = entry(&config, "clusters", reference("cluster")).and_then(|entry| entry.get("cluster"));
        let user = entry(&config, "users", reference("user")).and_then(|entry| entry.get("user"));
        let ca = cluster
            .and_then(|cluster| cluster.get("certificate-authority-data"))
            .and_then(Value::as_str);
        let ca = ca
            .ok_or_else(|| wrong("it has no certificate-authority-data"))?
            .to_owned();
        let user = user.and_then(Value::as_object).filter(|user| !user.is_empty());
        Ok(Self {
            ca,
            user: user.ok_or_else(|| wrong("it has no user with credentials"))?.clone(),
        })
    }
}

/// An entry of a list by name; without a name the first.
fn entry<'a>(config: &'a Value, list: &str, name: Option<&str>) -> Option<&'a Value> {
    let items = config.get(list)?.as_array()?;
    match name {
        Some(name) => items
            .iter()
            .find(|item| item.get("name").and_then(Value::as_str) == Some(name)),
        None => items.first(),
    }
}

/// Puts the entries in. True when entries of that name belonged to something else.
fn lay_in(config: &mut Value, name: &str, server: &str, credentials: &Credentials) -> Result<bool, String> {
    if config.is_null() {
        *config = json!({"apiVersion": "v1", "kind": "Config", "preferences": {}});
    }
    if !config.is_object() {
        return Err("it is not a map".to_owned());
    }
    for list in ["clusters", "contexts", "users"] {
        match config.get(list) {
            None | Some(Value::Null) => config[list] = json!([]),
            Some(Value::Array(items)) if items.iter().all(Value::is_object) => {}
            Some(_) => return Err(format!("`{list}` is not a list of maps")),
        }
    }
    let known = |list: &str| entry(config, list, Some(name)).cloned();
    let (cluster, context, user) = (known("clusters"), known("contexts"), known("users"));
    let inner = |entry: &Option<Value>, key: &str| {
        entry
            .as_ref()
            .and_then(|entry| entry.get(key))
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    let mut new_cluster = inner(&cluster, "cluster");
    let mut new_context = inner(&context, "context");
    let text = |map: &Map<String, Value>, key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
    let same_ca = text(&new_cluster, "certificate-authority-data").as_deref() == Some(credentials.ca.as_str());
    let leads_here = |key: &str| text(&new_context, key).is_none_or(|to| to == name);
    let elsewhere = !leads_here("cluster") || !leads_here("user");
    let foreign = elsewhere || !same_ca && (cluster.is_some() || context.is_some() || user.is_some());

    // What the user added to the entries of this same cluster stays: a proxy, a namespace.
    if !same_ca {
        new_cluster.clear();
    }
    if foreign {
        new_context.clear();
    }
    new_cluster.shift_remove("certificate-authority");
    new_cluster.shift_remove("insecure-skip-tls-verify");
    new_cluster.insert("certificate-authority-data".to_owned(), json!(credentials.ca));
    new_cluster.insert("server".to_owned(), json!(server));
    new_context.insert("cluster".to_owned(), json!(name));
    new_context.insert("user".to_owned(), json!(name));
    put(config, "clusters", name, "cluster", new_cluster);
    put(config, "contexts", name, "context", new_context);
    put(config, "users", name, "user", credentials.user.clone());
    config["current-context"] = json!(name);
    Ok(foreign)
}

/// Replaces the content of a named entry, or adds one at the end.
fn put(config: &mut Value, list: &str, name: &str, key: &str, content: Map<String, Value>) {
    let Some(items) = config.get_mut(list).and_then(Value::as_array_mut) else {
        return;
    };
    match items
        .iter_mut()
        .find(|item| item.get("name").and_then(Value::as_str) == Some(name))
    {
        Some(known) => known[key] = Value::Object(content),
        None => items.push(json!({"name": name, key: content})),
    }
}

/// The file behind a path, through symbolic links, whether it exists or not.
fn follow(path: &Path) -> Result<PathBuf, KubeconfigError> {
    let mut path = path.to_owned();
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(to) => path = path.parent().unwrap_or(Path::new("")).join(to),
            // No link, or nothing there: this is the file.
            Err(_) => return Ok(path),
        }
    }
    let source = io::Error::other("too many symbolic links");
    Err(KubeconfigError::Io {
        action: "follow",
        path,
        source,
    })
}

/// The folder of a file.
fn folder(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn make_folder(path: &Path) -> Result<(), KubeconfigError> {
    let folder = folder(path);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| KubeconfigError::Io {
        action: "create the folder",
        path: folder.to_owned(),
        source,
    })
}

/// The file's text; `None` where there is no file.
fn read(path: &Path) -> Result<Option<Zeroizing<String>>, KubeconfigError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(Zeroizing::new(text))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(KubeconfigError::Io {
            action: "read",
            path: path.to_owned(),
            source,
        }),
    }
}

fn parse(path: &Path, text: &str) -> Result<Value, KubeconfigError> {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_saphyr::from_str(text).map_err(|error| {
        let (line, column) = error.location().map_or((1, 1), |at| (at.line(), at.column()));
        let index = usize::try_from(line).unwrap_or(1).saturating_sub(1);
        let shown = without_secrets(text.lines().nth(index).unwrap_or_default());
        // The parser's own message repeats the place, and in its long form the neighbouring lines.
        let message = error.without_snippet().to_string();
        let message = message.lines().next().unwrap_or_default().to_owned();
        KubeconfigError::Broken {
            path: path.to_owned(),
            line,
            column,
            message,
            shown,
        }
    })
}

/// A line for showing: values of keys that hold secrets and long words are left out.
fn without_secrets(line: &str) -> String {
    let lower = line.to_lowercase();
    let secret = ["data", "token", "password", "secret", "key"]
        .iter()
        .any(|word| lower.contains(word));
    if let Some((key, _)) = line.split_once(':').filter(|_| secret) {
        return format!("{key}: •••");
    }
    line.split(' ')
        .map(|word| if word.len() > 40 { "•••" } else { word })
        .collect::<Vec<_>>()
        .join(" ")
}

/// The text of a configuration, proven to read back as the same.
fn render(path: &Path, config: &Value) -> Result<Zeroizing<String>, KubeconfigError> {
    let wrong = || KubeconfigError::RoundTrip(path.to_owned());
    // Certificates on one line each, as kubectl writes them.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let text = Zeroizing::new(serde_saphyr::to_string_with_options(config, options).map_err(|_| wrong())?);
    let back: Value = serde_saphyr::from_str(&text).map_err(|_| wrong())?;
    if back == *config { Ok(text) } else { Err(wrong()) }
}

/// Copies what the file held to `FILE.k8sup-backup-N`.
fn back_up(path: &Path, text: &str) -> Result<PathBuf, KubeconfigError> {
    let base = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for number in 1_u32.. {
        let copy = path.with_file_name(format!("{base}.k8sup-backup-{number}"));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&copy)
            .and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.sync_all()
            });
        match written {
            Ok(()) => return Ok(copy),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => {
                return Err(KubeconfigError::Io {
                    action: "write the backup",
                    path: copy,
                    source,
                });
            }
        }
    }
    Err(KubeconfigError::RoundTrip(path.to_owned()))
}

/// Replaces a file in one step: a temporary one beside it (mode 0600), synced, renamed.
fn replace(path: &Path, text: &str) -> Result<(), KubeconfigError> {
    let write = || -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".k8sup-").tempfile_in(folder(path))?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        File::open(folder(path))?.sync_all()
    };
    write().map_err(|source| KubeconfigError::Io {
        action: "write",
        path: path.to_owned(),
        source,
    })
}

/// kubectl's own lock: a file beside the kubeconfig. Removed when dropped.
struct Lock(PathBuf);

impl Lock {
    fn take(path: &Path) -> Result<Self, KubeconfigError> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let lock = PathBuf::from(name);
        let start = Instant::now();
        loop {
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&lock) {
                Ok(_) => return Ok(Self(lock)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if start.elapsed() > LOCK_LIMIT {
                        return Err(KubeconfigError::Locked(lock));
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(source) => {
                    return Err(KubeconfigError::Io {
                        action: "create",
                        path: lock,
                        source,
                    });
                }
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A lock that cannot be removed is reported by the next writer.
        let _ = fs::remove_file(&self.0);
    }
}
