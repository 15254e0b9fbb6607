//! Commands over SSH: connections, host keys, authentication and the run of one command.
//!
//! Nothing outside this module names russh. Commands and their output are those of
//! [`remote`](crate::remote); what to do about an error is decided elsewhere.

mod auth;
pub mod client_config;
mod connect;
mod error;
mod exec;
mod frame;
mod handler;
pub mod known_hosts;
mod output;
mod stream;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use russh::client::{Handle, Msg};
use russh::{Channel, Disconnect};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use connect::{ConnectOptions, Connector, Limits};
pub use error::{ConfigProblem, ConnectError, Hop, KeyProblem, TriedKey, Unreachable};

use super::{Command, Lines, Output, RunError};
use crate::cluster::SshTarget;
use crate::secret::Secret;
use exec::StartError;
use handler::{EndReason, Handler};

/// sshd allows 10 sessions a connection; closed ones count until their processes are gone.
const COMMANDS_AT_ONCE: usize = 4;

/// A session on a host: a connection, and another one after a reboot. Clones share it; it ends with the last clone, or
/// by [`SshSession::close`].
#[derive(Clone)]
pub struct SshSession {
    current: Arc<RwLock<Connection>>,
    redial: Arc<Redial>,
}

/// How the host is connected to.
struct Redial {
    connector: Connector,
    name: String,
    target: SshTarget,
}

impl SshSession {
    fn new(connection: Connection, connector: Connector, name: &str, target: &SshTarget) -> Self {
        Self {
            current: Arc::new(RwLock::new(connection)),
            redial: Arc::new(Redial {
                connector,
                name: name.to_owned(),
                target: target.clone(),
            }),
        }
    }

    /// The connection of now.
    fn connection(&self) -> Connection {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs a command to its end. Lines go to `lines` as they come; a reader that is too slow
    /// misses the oldest ones, so that it cannot hold up the connection.
    ///
    /// When the future is dropped, or the command's time is over, the remote process group is
    /// ended: with TERM, and 5 s later with KILL.
    pub async fn run(&self, command: &Command, lines: Option<&Lines>) -> Result<Output, RunError> {
        let connection = self.connection();
        match Box::pin(exec::run(&connection, command, lines)).await {
            Ok(output) => Ok(output),
            Err(StartError::Run(error)) => Err(error),
            // MaxSessions: what runs beside others gets a connection of its own, which ends with it.
            Err(StartError::Beside) => Box::pin(self.run_beside(command, lines)).await,
        }
    }

    async fn run_beside(&self, command: &Command, lines: Option<&Lines>) -> Result<Output, RunError> {
        let Redial {
            connector,
            name,
            target,
        } = &*self.redial;
        let dialled = connector.dial(name, target).await;
        let connection = dialled.map_err(|error| RunError::Refused(error.to_string()))?;
        let result = exec::run(&connection, command, lines).await;
        connection.close().await;
        result.map_err(|error| match error {
            StartError::Run(error) => error,
            StartError::Beside => RunError::Refused("it opens no session".to_owned()),
        })
    }

    /// Connects to the host anew, once, for all clones; commands that still run on the old connection are lost.
    ///
    /// # Errors
    /// As [`Connector::connect`]; then the session stays as it is.
    pub async fn reconnect(&self) -> Result<(), ConnectError> {
        let Redial {
            connector,
            name,
            target,
        } = &*self.redial;
        let connection = connector.dial(name, target).await?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = connection;
        Ok(())
    }

    /// The host at the other end.
    #[must_use]
    pub fn at(&self) -> Arc<Hop> {
        Arc::clone(&self.connection().inner.at)
    }

    /// The connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.connection().is_closed()
    }

    /// Says goodbye. Commands that still run are ended by the host.
    pub async fn close(&self) {
        self.connection().close().await;
    }

    /// Waits until the connection of now ends, and says why.
    pub async fn ended(&self) -> String {
        self.connection().inner.end.ended().await
    }
}

impl fmt::Debug for SshSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SshSession")
            .field("at", &self.at())
            .finish_non_exhaustive()
    }
}

/// One connection. Clones share it; it ends with the last one.
#[derive(Clone)]
struct Connection {
    inner: Arc<Inner>,
}

struct Inner {
    at: Arc<Hop>,
    handle: Handle<Handler>,
    end: EndReason,
    commands: Arc<Semaphore>,
    sudo_password: Option<Secret>,
    /// Keeps the bastion's connection while this one lives.
    _via: Option<Connection>,
}

impl Connection {
    fn new(
        at: Arc<Hop>,
        handle: Handle<Handler>,
        end: EndReason,
        via: Option<Self>,
        sudo_password: Option<Secret>,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                at,
                handle,
                end,
                commands: Arc::new(Semaphore::new(COMMANDS_AT_ONCE)),
                sudo_password,
                _via: via,
            }),
        }
    }

    /// The host at the other end.
    fn at(&self) -> &Hop {
        &self.inner.at
    }

    /// The connection has ended.
    fn is_closed(&self) -> bool {
        self.inner.handle.is_closed()
    }

    /// Says goodbye. Commands that still run are ended by the host.
    async fn close(&self) {
        // A connection that is gone already needs no goodbye.
        let _ = self
            .inner
            .handle
            .disconnect(Disconnect::ByApplication, "done", "en")
            .await;
    }

    fn end_reason(&self) -> Option<String> {
        self.inner.end.get()
    }

    async fn open_tcp(&self, host: &str, port: u16) -> Result<Channel<Msg>, russh::Error> {
        let (inner, host) = (Arc::clone(&self.inner), host.to_owned());
        opened(async move {
            inner
                .handle
                .channel_open_direct_tcpip(host, u32::from(port), "127.0.0.1", 0)
                .await
        })
        .await
    }

    async fn open_session(&self) -> Result<Channel<Msg>, russh::Error> {
        let inner = Arc::clone(&self.inner);
        opened(async move { inner.handle.channel_open_session().await }).await
    }

    /// At most one command is on this connection: whoever asks.
    fn is_alone(&self) -> bool {
        self.inner.commands.available_permits() + 1 >= COMMANDS_AT_ONCE
    }

    async fn command_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.inner.commands).acquire_owned().await.ok()
    }
}

/// Opens a channel in a task of its own: when the caller goes away meanwhile, the channel is
/// closed again in place of being forgotten open.
async fn opened(
    opening: impl Future<Output = Result<Channel<Msg>, russh::Error>> + Send + 'static,
) -> Result<Channel<Msg>, russh::Error> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        if let Err(Ok(unwanted)) = sender.send(opening.await) {
            let _ = unwanted.close().await;
        }
    });
    receiver.await.unwrap_or(Err(russh::Error::Disconnect))
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("at", &self.inner.at)
            .finish_non_exhaustive()
    }
}
