//! The client's end of a connection: judges the host key and remembers why the connection ended.

use std::path::PathBuf;
use std::sync::Arc;

use russh::client::{self, DisconnectReason};
use russh::keys::{PublicKey, PublicKeyOrCertificate};
use tokio::sync::watch;

use super::error::{ConnectError, Hop};
use super::known_hosts::{self, HostKey, KnownHost, Verdict, fingerprint};
use crate::cluster::HostKeys;

/// What decides about a host key.
#[derive(Debug)]
pub(super) struct HostKeyCheck {
    pub(super) at: Arc<Hop>,
    /// Host and port by which the key is known.
    pub(super) name: (String, u16),
    pub(super) file: PathBuf,
    pub(super) policy: HostKeys,
    pub(super) known: KnownHost,
}

impl HostKeyCheck {
    fn judge(&self, key: &PublicKey) -> Result<(), ConnectError> {
        let (at, file) = (Arc::clone(&self.at), self.file.clone());
        let offered = Box::new(HostKey::new(&self.name.0, self.name.1, key));
        match self.known.judge(key) {
            Verdict::Known => Ok(()),
            Verdict::Unknown if self.policy == HostKeys::AcceptNew => {
                known_hosts::remember(&file, &offered).map_err(|error| ConnectError::KnownHosts { at, error })
            }
            Verdict::Unknown => Err(ConnectError::HostKeyUnknown {
                at,
                key: offered,
                file,
                policy: self.policy,
            }),
            Verdict::Changed(known) => Err(ConnectError::HostKeyChanged {
                at,
                known,
                offered,
                file,
            }),
            Verdict::Revoked(file, line) => Err(ConnectError::HostKeyRevoked {
                at,
                fingerprint: fingerprint(key),
                file,
                line,
            }),
        }
    }
}

/// Why a connection ended, for those who wait on it.
#[derive(Debug, Clone, Default)]
pub(super) struct EndReason(Arc<watch::Sender<Option<String>>>);

impl EndReason {
    pub(super) fn get(&self) -> Option<String> {
        self.0.borrow().clone()
    }

    /// Waits for the end.
    pub(super) async fn ended(&self) -> String {
        let mut reason = self.0.subscribe();
        // The sender is here as long as anybody waits.
        match reason.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => "the connection ended".to_owned(),
        }
    }

    fn set(&self, reason: String) {
        self.0.send_if_modified(|known| {
            let first = known.is_none();
            known.get_or_insert(reason);
            first
        });
    }
}

/// russh's view of us.
#[derive(Debug)]
pub(super) struct Handler {
    pub(super) check: HostKeyCheck,
    pub(super) accepted: Option<PublicKey>,
    pub(super) end: EndReason,
}

/// What ends a handshake.
#[derive(Debug)]
pub(super) enum HandlerError {
    /// russh says so.
    Ssh(russh::Error),
    /// The host key says so.
    HostKey(Box<ConnectError>),
}

impl From<russh::Error> for HandlerError {
    fn from(error: russh::Error) -> Self {
        Self::Ssh(error)
    }
}

impl client::Handler for Handler {
    type Error = HandlerError;

    async fn check_server_key(&mut self, offered: &PublicKeyOrCertificate) -> Result<bool, HandlerError> {
        // Certificates are not asked for, so this is a plain key.
        let key = offered.public_key();
        // When keys are exchanged again the host must still be the same one.
        if let Some(accepted) = &self.accepted {
            return Ok(accepted.key_data() == key.key_data());
        }
        self.check
            .judge(&key)
            .map_err(|error| HandlerError::HostKey(Box::new(error)))?;
        self.accepted = Some(key);
        Ok(true)
    }

    async fn disconnected(&mut self, reason: DisconnectReason<HandlerError>) -> Result<(), HandlerError> {
        match reason {
            DisconnectReason::ReceivedDisconnect(info) => {
                self.end
                    .set(format!("the server disconnected: {}", info.message.trim()));
                Ok(())
            }
            DisconnectReason::Error(error) => {
                self.end.set(match &error {
                    HandlerError::Ssh(error) => explain(error),
                    HandlerError::HostKey(error) => error.to_string(),
                });
                Err(error)
            }
        }
    }

    // A host has no business opening channels to us: unanswered requests are refused.
    async fn server_channel_open_forwarded_tcpip(
        &mut self,
        _channel: russh::Channel<client::Msg>,
        _connected_address: &str,
        _connected_port: u32,
        _originator_address: &str,
        _originator_port: u32,
        _reply: client::ChannelOpenHandle,
        _session: &mut client::Session,
    ) -> Result<(), HandlerError> {
        Ok(())
    }

    async fn server_channel_open_forwarded_streamlocal(
        &mut self,
        _channel: russh::Channel<client::Msg>,
        _socket_path: &str,
        _reply: client::ChannelOpenHandle,
        _session: &mut client::Session,
    ) -> Result<(), HandlerError> {
        Ok(())
    }

    async fn server_channel_open_agent_forward(
        &mut self,
        _channel: russh::Channel<client::Msg>,
        _reply: client::ChannelOpenHandle,
        _session: &mut client::Session,
    ) -> Result<(), HandlerError> {
        Ok(())
    }
}

/// A lost connection in words.
pub(super) fn explain(error: &russh::Error) -> String {
    match error {
        russh::Error::KeepaliveTimeout => "the host does not answer any more (keepalive)".to_owned(),
        russh::Error::Disconnect | russh::Error::HUP => "the server closed the connection".to_owned(),
        russh::Error::IO(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            "the server closed the connection".to_owned()
        }
        other => other.to_string(),
    }
}
