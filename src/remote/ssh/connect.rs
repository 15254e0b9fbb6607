//! Opens connections: through bastions, few at a time, within time limits.

use std::fmt;
use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::Rng;
use russh::client;
use russh::keys::Algorithm;
use russh::{AlgorithmKind, ChannelOpenFailure, Preferred};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::timeout;

use super::auth::{Unlocked, authenticate};
use super::error::{ConnectError, Hop, KeyProblem, Unreachable};
use super::handler::{EndReason, Handler, HandlerError, HostKeyCheck, explain};
use super::known_hosts::KnownHost;
use super::stream::{Severable, Stream};
use super::{Connection, SshSession};
use crate::cluster::{Agent, SecretSource, SshTarget};
use crate::remote::secret_source::{self, SecretError};
use crate::secret::Secret;

/// What all connections of a run have in common.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// Socket of the SSH agent.
    pub agent: Option<PathBuf>,
    /// The answer to `sudoPassword: prompt`, asked for before connecting.
    pub sudo_password: Option<Secret>,
    /// Time limits and numbers.
    pub limits: Limits,
}

impl Default for ConnectOptions {
    /// The agent of the environment, no password, the usual limits.
    fn default() -> Self {
        Self {
            agent: std::env::var_os("SSH_AUTH_SOCK")
                .filter(|path| !path.is_empty())
                .map(PathBuf::from),
            sudo_password: None,
            limits: Limits::default(),
        }
    }
}

/// Time limits and numbers of connections.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Until TCP is connected.
    pub tcp: Duration,
    /// From there until the user is authenticated.
    pub handshake: Duration,
    /// Silence after which the host is asked whether it is still there.
    pub keepalive: Duration,
    /// Unanswered questions after which it is not.
    pub keepalives: usize,
    /// Connections being opened at the same time.
    pub handshakes: usize,
    /// Tries when the server is busy or just starting; refused authentication is never retried.
    pub tries: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tcp: Duration::from_secs(10),
            handshake: Duration::from_secs(30),
            keepalive: Duration::from_secs(15),
            keepalives: 3,
            handshakes: 8,
            tries: 3,
        }
    }
}

/// Opens connections and shares those to bastions. Clones are the same connector.
#[derive(Clone)]
pub struct Connector {
    inner: Arc<Inner>,
}

struct Inner {
    options: ConnectOptions,
    handshakes: Semaphore,
    bastions: Mutex<Vec<(SshTarget, Arc<Bastion>)>>,
    unlocked: Unlocked,
}

/// The shared connection to a bastion. Who waits while another one connects takes its result.
#[derive(Default)]
struct Bastion {
    attempts: AtomicU64,
    latest: Mutex<Option<Result<Connection, ConnectError>>>,
}

pub(super) type Connecting<'a> = Pin<Box<dyn Future<Output = Result<Connection, ConnectError>> + Send + 'a>>;

impl Connector {
    /// A connector without connections.
    #[must_use]
    pub fn new(options: ConnectOptions) -> Self {
        Self {
            inner: Arc::new(Inner {
                handshakes: Semaphore::new(options.limits.handshakes),
                options,
                bastions: Mutex::new(Vec::new()),
                unlocked: Unlocked::default(),
            }),
        }
    }

    /// Opens an encrypted key file for all further connections.
    ///
    /// # Errors
    /// [`KeyProblem::Passphrase`] when the passphrase is not the file's.
    pub fn unlock(&self, path: &Path, passphrase: &Secret) -> Result<(), KeyProblem> {
        self.inner.unlocked.open(path, passphrase)
    }

    /// Connects to a host and logs in. `name` is the host's name in messages.
    ///
    /// Nothing is sent to a host whose key is not accepted. With
    /// [`HostKeys::Ask`](crate::cluster::HostKeys::Ask) an unknown key is an error that carries
    /// the key, so that all of them can be shown at once; after
    /// [`remember`](super::known_hosts::remember) the host can be connected to.
    pub async fn connect(&self, name: &str, target: &SshTarget) -> Result<SshSession, ConnectError> {
        let connection = self.dial(name, target).await?;
        Ok(SshSession::new(connection, self.clone(), name, target))
    }

    pub(super) fn dial<'a>(&'a self, name: &'a str, target: &'a SshTarget) -> Connecting<'a> {
        Box::pin(async move {
            let at = Hop::new(name, target);
            let sudo = self.sudo_password(target).map_err(|error| ConnectError::SudoPassword {
                at: Arc::clone(&at),
                error,
            })?;
            let via = match &target.bastion {
                None => None,
                Some(bastion) => {
                    let session = self
                        .bastion(name, bastion)
                        .await
                        .map_err(|error| ConnectError::Bastion {
                            at: Arc::clone(&at),
                            error: Box::new(error),
                        })?;
                    Some(session)
                }
            };
            let mut tries = 1;
            loop {
                match self.attempt(&at, target, via.clone(), sudo.clone()).await {
                    Err(error) if error.transient() && tries < self.inner.options.limits.tries => {
                        let pause = Duration::from_millis(rand::rng().random_range(300..900)) * tries;
                        tracing::debug!("{error}; trying again in {pause:?}");
                        tokio::time::sleep(pause).await;
                        tries += 1;
                    }
                    other => return other,
                }
            }
        })
    }

    fn sudo_password(&self, target: &SshTarget) -> Result<Option<Secret>, SecretError> {
        match &target.sudo_password {
            None => Ok(None),
            Some(SecretSource::Prompt) => self
                .inner
                .options
                .sudo_password
                .clone()
                .map(Some)
                .ok_or(SecretError::NotAsked),
            Some(source) => secret_source::resolve(source, "password for sudo").map(Some),
        }
    }

    /// The one connection to a bastion that all hosts behind it share.
    async fn bastion(&self, name: &str, target: &SshTarget) -> Result<Connection, ConnectError> {
        let bastion = {
            let mut bastions = self.inner.bastions.lock().await;
            if let Some((_, bastion)) = bastions.iter().find(|(known, _)| known == target) {
                Arc::clone(bastion)
            } else {
                let bastion = Arc::new(Bastion::default());
                bastions.push((target.clone(), Arc::clone(&bastion)));
                bastion
            }
        };
        let seen = bastion.attempts.load(Ordering::Acquire);
        let mut latest = bastion.latest.lock().await;
        let tried_meanwhile = bastion.attempts.load(Ordering::Acquire) != seen;
        match &*latest {
            Some(Ok(session)) if !session.is_closed() => return Ok(session.clone()),
            Some(Err(error)) if tried_meanwhile => return Err(error.clone()),
            _ => {}
        }
        let result = self.dial(&format!("bastion of {name}"), target).await;
        *latest = Some(result.clone());
        bastion.attempts.fetch_add(1, Ordering::Release);
        result
    }

    async fn attempt(
        &self,
        at: &Arc<Hop>,
        target: &SshTarget,
        via: Option<Connection>,
        sudo: Option<Secret>,
    ) -> Result<Connection, ConnectError> {
        let limits = &self.inner.options.limits;
        // The semaphore is never closed.
        let _permit = self.inner.handshakes.acquire().await;
        let stream: Box<dyn Stream> = match &via {
            None => Box::new(tcp(at, limits.tcp).await?),
            Some(bastion) => Box::new(through(bastion, at, limits.tcp).await?),
        };
        match timeout(limits.handshake, self.handshake(at, target, stream, via, sudo)).await {
            Ok(result) => result,
            Err(_) => Err(ConnectError::Unreachable {
                at: Arc::clone(at),
                why: Unreachable::Handshake(limits.handshake),
            }),
        }
    }

    async fn handshake(
        &self,
        at: &Arc<Hop>,
        target: &SshTarget,
        stream: Box<dyn Stream>,
        via: Option<Connection>,
        sudo: Option<Secret>,
    ) -> Result<Connection, ConnectError> {
        let files = std::iter::once(&target.known_hosts).chain(&target.more_known_hosts);
        let name = (target.key_alias.clone()).map_or_else(|| (target.host.clone(), target.port), |alias| (alias, 22));
        let known = KnownHost::load(files, &name.0, name.1).map_err(|error| ConnectError::KnownHosts {
            at: Arc::clone(at),
            error,
        })?;
        let config = self.config(&known);
        let end = EndReason::default();
        let handler = Handler {
            check: HostKeyCheck {
                at: Arc::clone(at),
                name,
                file: target.known_hosts.clone(),
                policy: target.host_keys,
                known,
            },
            accepted: None,
            end: end.clone(),
        };
        let (stream, guard) = Severable::new(stream);
        let mut handle = client::connect_stream(Arc::new(config), stream, handler)
            .await
            .map_err(|error| before_login(at, error))?;
        let agent = match &target.agent {
            Agent::Environment => self.inner.options.agent.as_deref(),
            Agent::Socket(socket) => Some(socket.as_path()),
            Agent::Off => None,
        };
        authenticate(&mut handle, at, target, agent, &self.inner.unlocked, &end).await?;
        guard.disarm();
        Ok(Connection::new(Arc::clone(at), handle, end, via, sudo))
    }

    fn config(&self, known: &KnownHost) -> client::Config {
        let limits = &self.inner.options.limits;
        let preferred = Preferred::default();
        let algorithms: Vec<Algorithm> = preferred
            .key
            .iter()
            .filter(|algorithm| !matches!(algorithm, Algorithm::Rsa { hash: None }))
            .cloned()
            .collect();
        client::Config {
            preferred: Preferred {
                key: known.prefer(&algorithms).into(),
                ..preferred
            },
            keepalive_interval: Some(limits.keepalive),
            keepalive_max: limits.keepalives,
            inactivity_timeout: None,
            nodelay: true,
            ..client::Config::default()
        }
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("options", &self.inner.options)
            .finish_non_exhaustive()
    }
}

async fn tcp(at: &Arc<Hop>, limit: Duration) -> Result<TcpStream, ConnectError> {
    let unreachable = |why| ConnectError::Unreachable {
        at: Arc::clone(at),
        why,
    };
    let connecting = async {
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host((at.host.as_str(), at.port))
            .await
            .map_err(|error| ConnectError::Resolve {
                at: Arc::clone(at),
                why: error.to_string(),
            })?
            .collect();
        let mut last = Unreachable::Other("the name has no address".to_owned());
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    // Only a matter of speed.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Err(error) => {
                    last = match error.kind() {
                        ErrorKind::ConnectionRefused => Unreachable::Refused,
                        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Unreachable::NoRoute,
                        ErrorKind::TimedOut => Unreachable::Timeout(limit),
                        _ => Unreachable::Other(error.to_string()),
                    }
                }
            }
        }
        Err(unreachable(last))
    };
    timeout(limit, connecting)
        .await
        .unwrap_or_else(|_| Err(unreachable(Unreachable::Timeout(limit))))
}

/// A stream to the host through a channel of the bastion's connection; dropping it closes the channel.
async fn through(bastion: &Connection, at: &Arc<Hop>, limit: Duration) -> Result<impl Stream + use<>, ConnectError> {
    let opened = timeout(limit, bastion.open_tcp(&at.host, at.port)).await;
    let why = match opened {
        Ok(Ok(channel)) => return Ok(channel.into_stream()),
        Ok(Err(russh::Error::ChannelOpenFailure(ChannelOpenFailure::ConnectFailed))) => "it gets no answer".to_owned(),
        Ok(Err(russh::Error::ChannelOpenFailure(ChannelOpenFailure::AdministrativelyProhibited))) => {
            "it does not allow forwarding".to_owned()
        }
        Ok(Err(error)) => bastion.end_reason().unwrap_or_else(|| explain(&error)),
        Err(_) => format!("no answer within {} s", limit.as_secs()),
    };
    Err(ConnectError::Unreachable {
        at: Arc::clone(at),
        why: Unreachable::FromBastion(why),
    })
}

/// A handshake that failed before any authentication.
fn before_login(at: &Arc<Hop>, error: HandlerError) -> ConnectError {
    let error = match error {
        HandlerError::HostKey(error) => return *error,
        HandlerError::Ssh(error) => error,
    };
    let closed = match &error {
        russh::Error::Disconnect | russh::Error::HUP => true,
        russh::Error::IO(error) => matches!(
            error.kind(),
            ErrorKind::ConnectionReset
                | ErrorKind::UnexpectedEof
                | ErrorKind::BrokenPipe
                | ErrorKind::ConnectionAborted
        ),
        _ => false,
    };
    let at = Arc::clone(at);
    match error {
        error if closed => ConnectError::Unreachable {
            at,
            why: Unreachable::Closed(explain(&error)),
        },
        russh::Error::NoCommonAlgo { kind, theirs, .. } => {
            let (what, word) = match kind {
                AlgorithmKind::Kex => ("key exchange", "KexAlgorithms"),
                AlgorithmKind::Key => ("host key", "HostKeyAlgorithms"),
                AlgorithmKind::Cipher => ("cipher", "Ciphers"),
                AlgorithmKind::Mac => ("MAC", "MACs"),
                AlgorithmKind::Compression => ("compression", "Compression"),
            };
            ConnectError::Algorithms {
                at,
                what,
                word,
                offered: theirs,
            }
        }
        russh::Error::Version => ConnectError::Protocol {
            at,
            why: "what listens there does not speak SSH".to_owned(),
        },
        error => ConnectError::Protocol {
            at,
            why: format!("the SSH handshake failed: {}", explain(&error)),
        },
    }
}
