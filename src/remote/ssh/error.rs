//! Why a host could not be connected to, told so that a person knows what to do next.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::known_hosts::{FileError, HostKey, KnownKey};
use crate::cluster::{HostKeys, SshTarget};
use crate::remote::secret_source::SecretError;

/// One end of a connection: the host itself or a bastion on the way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// Name of the host in the inventory, or `bastion of` it.
    pub name: String,
    /// Login user.
    pub user: String,
    /// Address or name as dialled.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl Hop {
    pub(super) fn new(name: &str, target: &SshTarget) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            user: target.user.clone(),
            host: target.host.clone(),
            port: target.port,
        })
    }
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, user, host, port } = self;
        write!(f, "{name} ({user}@{host}")?;
        if *port != 22 {
            write!(f, ":{port}")?;
        }
        f.write_str(")")
    }
}

/// Why there is no connection.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ConnectError {
    /// The name has no address.
    #[error("{at}: the name {} cannot be resolved: {why}", at.host)]
    Resolve {
        /// Where.
        at: Arc<Hop>,
        /// What the resolver said.
        why: String,
    },
    /// No TCP connection, or none that speaks SSH.
    #[error("{at}: {why}")]
    Unreachable {
        /// Where.
        at: Arc<Hop>,
        /// How it failed.
        why: Unreachable,
    },
    /// The host key is not known yet. Nothing was sent.
    #[error("{at}: its host key is not known: {} {}", key.algorithm, key.fingerprint)]
    HostKeyUnknown {
        /// Where.
        at: Arc<Hop>,
        /// The key that was offered.
        key: Box<HostKey>,
        /// The file that it would be remembered in.
        file: PathBuf,
        /// What the inventory says about unknown keys.
        policy: HostKeys,
    },
    /// The host is known by another key. Nothing was sent.
    #[error(
        "{at}: its host key has changed: {} knows {}, offered is {} {}",
        file.display(), list_known(known, file), offered.algorithm, offered.fingerprint
    )]
    HostKeyChanged {
        /// Where.
        at: Arc<Hop>,
        /// The keys that the file has.
        known: Vec<KnownKey>,
        /// The key that was offered.
        offered: Box<HostKey>,
        /// The file.
        file: PathBuf,
    },
    /// The host key is revoked. Nothing was sent.
    #[error("{at}: its host key {fingerprint} is revoked by {}:{line}", file.display())]
    HostKeyRevoked {
        /// Where.
        at: Arc<Hop>,
        /// The key that was offered.
        fingerprint: String,
        /// The file.
        file: PathBuf,
        /// The line of the file.
        line: usize,
    },
    /// The file of known host keys cannot be used.
    #[error("{at}: {error}")]
    KnownHosts {
        /// Where.
        at: Arc<Hop>,
        /// What was tried and why it failed.
        error: FileError,
    },
    /// The host did not accept the user with the keys there are.
    #[error("{at}: authentication failed for user {}: {}{}; {server}", at.user, list_tried(tried), agent_note(agent.as_ref()))]
    Authentication {
        /// Where.
        at: Arc<Hop>,
        /// The keys, in the order in which they were looked at.
        tried: Vec<TriedKey>,
        /// The state of the agent, when it is worth a word.
        agent: Option<String>,
        /// What the server said.
        server: String,
        /// Key files that could not be tried for want of their passphrase.
        locked: Vec<PathBuf>,
    },
    /// There is no key to offer, because of this file.
    #[error("{at}: the key file {} {why}", path.display())]
    KeyFile {
        /// Where.
        at: Arc<Hop>,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: KeyProblem,
    },
    /// sudo's password cannot be had.
    #[error("{at}: no password for sudo: {error}")]
    SudoPassword {
        /// Where.
        at: Arc<Hop>,
        /// Why.
        error: SecretError,
    },
    /// The bastion in front of the host cannot be used.
    #[error("{at} is behind a bastion: {error}")]
    Bastion {
        /// The host that was wanted.
        at: Arc<Hop>,
        /// What is wrong with the bastion.
        error: Box<Self>,
    },
    /// The server offers only what is too weak to be used.
    #[error("{at}: the server offers only old {what} algorithms: {}", offered.join(", "))]
    Algorithms {
        /// Where.
        at: Arc<Hop>,
        /// `cipher`, `host key`, …
        what: &'static str,
        /// The word of `sshd_config` that is about them.
        word: &'static str,
        /// What the server offers.
        offered: Vec<String>,
    },
    /// The user's OpenSSH client configuration says what cannot be followed. Nothing was sent.
    #[error("{at}: {why}")]
    ClientConfig {
        /// Where.
        at: Arc<Hop>,
        /// What it says.
        why: ConfigProblem,
    },
    /// The two ends did not understand each other.
    #[error("{at}: {why}")]
    Protocol {
        /// Where.
        at: Arc<Hop>,
        /// What went wrong.
        why: String,
    },
}

/// What cannot be followed of an OpenSSH client configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigProblem {
    /// A keyword that would change where k8sup connects to, or whom it trusts.
    #[error("the OpenSSH configuration sets {0}, which k8sup cannot follow")]
    Unsupported(&'static str),
    /// A value that is not understood.
    #[error("the OpenSSH configuration's {keyword} {value} is not understood")]
    Value {
        /// The keyword.
        keyword: &'static str,
        /// What it is set to.
        value: String,
    },
    /// The jumps lead back to where they began, or never end.
    #[error("ProxyJump of the OpenSSH configuration goes round: {0}")]
    Round(String),
    /// `ssh -G` refuses the configuration.
    #[error("the OpenSSH configuration cannot be read: {0}")]
    Unreadable(String),
}

/// How a host is out of reach.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// Nothing listens there.
    #[error("connection refused")]
    Refused,
    /// No answer.
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// It answered TCP, but the SSH handshake did not finish.
    #[error("the SSH handshake did not finish within {} s", .0.as_secs())]
    Handshake(Duration),
    /// The network has no way there.
    #[error("no route to the host")]
    NoRoute,
    /// The server hung up before authentication.
    #[error("the server closed the connection before authentication ({0})")]
    Closed(String),
    /// The bastion could not reach it.
    #[error("its bastion cannot reach it: {0}")]
    FromBastion(String),
    /// Anything else that the system says.
    #[error("{0}")]
    Other(String),
}

/// What is wrong with a key file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyProblem {
    /// No such file.
    #[error("does not exist")]
    NotFound,
    /// It has a passphrase, and no agent holds the key.
    #[error("is encrypted, and no agent holds its key")]
    Encrypted,
    /// It has a passphrase, in a format that cannot be opened, and no agent holds the key.
    #[error("is encrypted in an old format, and no agent holds its key")]
    OldEncryption,
    /// Its private half is on a security key, and no agent holds it.
    #[error("is the handle of a security key, and no agent holds it")]
    SecurityKey,
    /// That is not its passphrase.
    #[error("is not opened by that passphrase")]
    Passphrase,
    /// It is the public half, and no agent holds the private one.
    #[error("holds a public key, and no agent holds the private one")]
    Public,
    /// The system does not let us read it.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// Not a private key that we understand.
    #[error("is not a private key that can be used: {0}")]
    Format(String),
}

/// A key and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriedKey {
    /// The file, or `agent` with the key's comment.
    pub key: String,
    /// What happened, as `not accepted (ssh-ed25519 SHA256:…)`.
    pub outcome: String,
}

impl ConnectError {
    /// The host that this is about: of a bastion's error, the bastion.
    #[must_use]
    pub fn at(&self) -> &Hop {
        match self {
            Self::Resolve { at, .. }
            | Self::Unreachable { at, .. }
            | Self::HostKeyUnknown { at, .. }
            | Self::HostKeyChanged { at, .. }
            | Self::HostKeyRevoked { at, .. }
            | Self::KnownHosts { at, .. }
            | Self::Authentication { at, .. }
            | Self::KeyFile { at, .. }
            | Self::SudoPassword { at, .. }
            | Self::Algorithms { at, .. }
            | Self::ClientConfig { at, .. }
            | Self::Protocol { at, .. } => at,
            Self::Bastion { error, .. } => error.at(),
        }
    }

    /// Somebody said no, or something on this side is missing: trying again changes nothing.
    #[must_use]
    pub fn refused(&self) -> bool {
        match self {
            Self::HostKeyUnknown { .. }
            | Self::HostKeyChanged { .. }
            | Self::HostKeyRevoked { .. }
            | Self::KnownHosts { .. }
            | Self::Authentication { .. }
            | Self::KeyFile { .. }
            | Self::SudoPassword { .. }
            | Self::Algorithms { .. }
            | Self::ClientConfig { .. } => true,
            Self::Resolve { .. } | Self::Unreachable { .. } | Self::Protocol { .. } => false,
            Self::Bastion { error, .. } => error.refused(),
        }
    }

    /// The unknown host key and the file to remember it in, when that is all that is missing.
    /// The key is a bastion's when the bastion is the one that is not known.
    #[must_use]
    pub fn unknown_host_key(&self) -> Option<(&HostKey, &Path)> {
        match self {
            Self::HostKeyUnknown { key, file, .. } => Some((key, file)),
            Self::Bastion { error, .. } => error.unknown_host_key(),
            _ => None,
        }
    }

    /// The host key that was offered in place of the known one, and the file that knows another.
    #[must_use]
    pub fn changed_host_key(&self) -> Option<(&HostKey, &Path)> {
        match self {
            Self::HostKeyChanged { offered, file, .. } => Some((offered, file)),
            Self::Bastion { error, .. } => error.changed_host_key(),
            _ => None,
        }
    }

    /// The key files that were left out since nobody has opened them; of a bastion's error, the bastion's.
    #[must_use]
    pub fn locked_keys(&self) -> Vec<&Path> {
        match self {
            Self::KeyFile {
                path,
                why: KeyProblem::Encrypted,
                ..
            } => vec![path],
            Self::Authentication { locked, .. } => locked.iter().map(PathBuf::as_path).collect(),
            Self::Bastion { error, .. } => error.locked_keys(),
            _ => Vec::new(),
        }
    }

    /// Worth another try in a moment: the server was busy or is just starting.
    pub(super) fn transient(&self) -> bool {
        matches!(
            self,
            Self::Unreachable {
                why: Unreachable::Refused | Unreachable::Closed(_),
                ..
            }
        )
    }

    /// What to do next.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Resolve { at, .. } => format!("check the name {}, or write the address in its place", at.host),
            Self::Unreachable { at, why } => match why {
                Unreachable::Refused => format!("is sshd running and listening on port {}?", at.port),
                Unreachable::Timeout(_) | Unreachable::NoRoute => {
                    "is the host powered on, and is its address right?".to_owned()
                }
                Unreachable::Handshake(_) => "the host is overloaded, or the port is not sshd's".to_owned(),
                Unreachable::Closed(_) => {
                    "sshd may limit connections (MaxStartups, PerSourcePenalties); wait a minute and try again"
                        .to_owned()
                }
                Unreachable::FromBastion(_) => {
                    "check the address as the bastion sees it, and AllowTcpForwarding on the bastion".to_owned()
                }
                Unreachable::Other(_) => return None,
            },
            Self::HostKeyUnknown { policy, file, .. } => match policy {
                HostKeys::Strict => format!(
                    "compare the fingerprint with the host's own (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` there) \
                     and add the key to {}",
                    file.display()
                ),
                HostKeys::Ask | HostKeys::AcceptNew => format!(
                    "run k8sup on a terminal to be asked about the fingerprint, or add the key to {}, or accept new keys \
                     unseen with `--host-keys accept-new` (`ssh.hostKeys` in the inventory)",
                    file.display()
                ),
            },
            Self::HostKeyChanged { at, .. } => format!(
                "if the host was installed anew, run again with `--replace-host-key {}`; if not, somebody may be in between",
                at.name
            ),
            Self::HostKeyRevoked { .. } => "give the host new keys; a revoked key is never accepted".to_owned(),
            Self::KnownHosts { error, .. } => format!("make {} readable and writable", error.path.display()),
            Self::Authentication { at, .. } => format!(
                "check `ssh.user` and `ssh.key` in the inventory: the login that works with `ssh -p {} {}@{}` is the one to \
                 name there, or its key to add to the agent",
                at.port, at.user, at.host
            ),
            Self::KeyFile { path, why, .. } => match why {
                KeyProblem::NotFound => {
                    "name an existing private key in the inventory: `ssh.key`, for all hosts or for this one".to_owned()
                }
                KeyProblem::Encrypted => format!(
                    "run `ssh-add {}` first, or run k8sup on a terminal to be asked for its passphrase",
                    path.display()
                ),
                KeyProblem::OldEncryption => format!(
                    "run `ssh-add {0}` first, or write it in the new format with `ssh-keygen -p -f {0}`",
                    path.display()
                ),
                KeyProblem::Passphrase => "`ssh-keygen -yf` with the file tells whether a passphrase is right".to_owned(),
                KeyProblem::SecurityKey => format!("run `ssh-add {}` first: the agent asks the security key", path.display()),
                KeyProblem::Public => "name the private key, or add it to the agent".to_owned(),
                KeyProblem::Unreadable(_) => format!("make {} readable for you", path.display()),
                KeyProblem::Format(_) => {
                    "OpenSSH, PEM and PKCS#8 private keys of type ed25519, ecdsa and rsa can be used".to_owned()
                }
            },
            Self::SudoPassword { error, .. } => error.hint(),
            Self::Bastion { error, .. } => return error.hint(),
            Self::Algorithms { word, .. } => format!(
                "update OpenSSH on the host, or let its sshd_config offer newer ones (`{word}`); `ssh -Q` there lists them"
            ),
            Self::ClientConfig { why, .. } => match why {
                ConfigProblem::Unsupported("ProxyCommand") => {
                    "write ProxyJump in its place, or name the way in the inventory: `ssh: { bastion: { host: … } }`, or \
                     `bastion: none`; `ssh: { config: none }` leaves the configuration out"
                        .to_owned()
                }
                ConfigProblem::Unreadable(_) => {
                    "mend it (`ssh -G HOST` says the same), or leave it out: `ssh: { config: none }` in the inventory".to_owned()
                }
                ConfigProblem::Unsupported(_) | ConfigProblem::Value { .. } | ConfigProblem::Round(_) => {
                    "change it for this host, or leave it out: `ssh: { config: none }` in the inventory".to_owned()
                }
            },
            Self::Protocol { .. } => return None,
        };
        Some(text)
    }
}

fn list_known(known: &[KnownKey], file: &Path) -> String {
    let place = |key: &KnownKey| match &key.file {
        other if other != file => format!("{}:{}", other.display(), key.line),
        _ => format!("line {}", key.line),
    };
    let keys: Vec<String> = known
        .iter()
        .map(|key| format!("{} {} ({})", key.algorithm, key.fingerprint, place(key)))
        .collect();
    keys.join(", ")
}

fn list_tried(tried: &[TriedKey]) -> String {
    if tried.is_empty() {
        return "there is no key to offer".to_owned();
    }
    let keys: Vec<String> = tried
        .iter()
        .map(|key| format!("{}: {}", key.key, key.outcome))
        .collect();
    keys.join("; ")
}

fn agent_note(agent: Option<&String>) -> String {
    agent.map(|note| format!("; {note}")).unwrap_or_default()
}
