//! An SSH server in this process that runs commands with the machine's own shell.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use russh::keys::{Algorithm, PrivateKey, PublicKey};
use russh::server::{self, Auth, ChannelOpenHandle, Handle, Msg, Session, VerifiedPublicKey};
use russh::{Channel, ChannelId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::process::{ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How the server behaves.
#[derive(Clone, Default)]
pub(super) struct Behaviour {
    /// The key that may log in.
    pub(super) user_key: Option<PublicKey>,
    /// Connections that are closed before the banner, as sshd does when it has too many.
    pub(super) hang_up_first: usize,
    /// A directory put before the others in PATH, for a sudo of the test's own.
    pub(super) path_prefix: Option<std::path::PathBuf>,
    /// Printed by the login files.
    pub(super) login_noise: bool,
}

/// What happened on the server.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) connections: AtomicUsize,
    pub(super) logins: AtomicUsize,
    pub(super) offers: AtomicUsize,
    pub(super) forwards: AtomicUsize,
    pub(super) open_channels: AtomicUsize,
    pub(super) most_channels: AtomicUsize,
    pub(super) command_lines: Mutex<Vec<String>>,
}

/// A running server; it ends when dropped, and its connections with it.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    pub(super) seen: Arc<Seen>,
    accepting: JoinHandle<()>,
    connections: Arc<Mutex<Vec<Connection>>>,
}

struct Connection {
    task: JoinHandle<()>,
    /// While set, nothing passes to the client any more, as with a pulled cable.
    cut: tokio::sync::watch::Sender<bool>,
}

impl Server {
    pub(super) async fn start(host_key: PrivateKey, behaviour: Behaviour) -> Self {
        Self::start_on("127.0.0.1:0".parse().unwrap(), host_key, behaviour).await
    }

    pub(super) async fn start_on(address: SocketAddr, host_key: PrivateKey, behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let connections: Arc<Mutex<Vec<Connection>>> = Arc::default();
        let config = Arc::new(server::Config {
            keys: vec![host_key],
            auth_rejection_time: Duration::ZERO,
            inactivity_timeout: None,
            nodelay: true,
            ..server::Config::default()
        });
        let accepting = {
            let (seen, connections) = (Arc::clone(&seen), Arc::clone(&connections));
            tokio::spawn(async move {
                loop {
                    let (socket, _) = listener.accept().await.unwrap();
                    let number = seen.connections.fetch_add(1, Ordering::SeqCst);
                    if number < behaviour.hang_up_first {
                        continue;
                    }
                    let client = Client {
                        behaviour: behaviour.clone(),
                        seen: Arc::clone(&seen),
                        inputs: HashMap::new(),
                        slots: HashMap::new(),
                    };
                    let config = Arc::clone(&config);
                    let (cut, is_cut) = tokio::sync::watch::channel(false);
                    let task = tokio::spawn(async move {
                        let (ours, theirs) = tokio::io::duplex(256 * 1024);
                        let relay = relay(socket, theirs, is_cut);
                        let serve = async {
                            if let Ok(session) = server::run_stream(config, ours, client).await {
                                let _ = session.await;
                            }
                        };
                        tokio::join!(relay, serve);
                    });
                    connections.lock().unwrap().push(Connection { task, cut });
                }
            })
        };
        Self {
            address,
            seen,
            accepting,
            connections,
        }
    }

    /// Stops listening, and ends all connections.
    pub(super) async fn stop(&mut self) {
        self.accepting.abort();
        let _ = (&mut self.accepting).await;
        self.drop_connections();
    }

    /// Ends all connections at once, without a word.
    pub(super) fn drop_connections(&self) {
        for connection in self.connections.lock().unwrap().drain(..) {
            connection.task.abort();
        }
    }

    /// Pulls the cable: connections stay open and nothing passes.
    pub(super) fn cut(&self) {
        for connection in self.connections.lock().unwrap().iter() {
            connection.cut.send(true).unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
        self.drop_connections();
    }
}

async fn relay(
    socket: tokio::net::TcpStream,
    inside: tokio::io::DuplexStream,
    cut: tokio::sync::watch::Receiver<bool>,
) {
    let (from_client, to_client) = socket.into_split();
    let (from_server, to_server) = tokio::io::split(inside);
    tokio::join!(
        pump(from_client, to_server, cut.clone()),
        pump(from_server, to_client, cut)
    );
}

async fn pump(
    mut from: impl tokio::io::AsyncRead + Unpin,
    mut to: impl tokio::io::AsyncWrite + Unpin,
    mut cut: tokio::sync::watch::Receiver<bool>,
) {
    let copy = tokio::io::copy(&mut from, &mut to);
    tokio::select! {
        _ = copy => {}
        true = async { cut.wait_for(|cut| *cut).await.is_ok() } => std::future::pending().await,
        else => {}
    }
    let _ = to.shutdown().await;
}

struct Client {
    behaviour: Behaviour,
    seen: Arc<Seen>,
    /// Standard input of each channel's command; gone when the client closes the channel.
    inputs: HashMap<ChannelId, mpsc::UnboundedSender<Vec<u8>>>,
    /// Channels without a command so far.
    slots: HashMap<ChannelId, Slot>,
}

impl server::Handler for Client {
    type Error = russh::Error;

    async fn auth_publickey(&mut self, user: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, Self::Error> {
        self.seen.offers.fetch_add(1, Ordering::SeqCst);
        let known = self
            .behaviour
            .user_key
            .as_ref()
            .is_some_and(|known| known.key_data() == key.public_key.key_data());
        let sha1 = matches!(key.algorithm, Algorithm::Rsa { hash: None });
        if known && !sha1 && user != "nobody" {
            self.seen.logins.fetch_add(1, Ordering::SeqCst);
            Ok(Auth::Accept)
        } else {
            Ok(Auth::reject())
        }
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        self.slots.insert(channel.id(), Slot::new(&self.seen));
        reply.accept().await;
        Ok(())
    }

    async fn channel_open_direct_tcpip(
        &mut self,
        channel: Channel<Msg>,
        host: &str,
        port: u32,
        _originator_address: &str,
        _originator_port: u32,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        self.seen.forwards.fetch_add(1, Ordering::SeqCst);
        match tokio::net::TcpStream::connect((host, u16::try_from(port).unwrap())).await {
            Ok(mut socket) => {
                reply.accept().await;
                tokio::spawn(async move {
                    let mut stream = channel.into_stream();
                    let _ = tokio::io::copy_bidirectional(&mut stream, &mut socket).await;
                });
            }
            Err(_) => reply.reject(russh::ChannelOpenFailure::ConnectFailed).await,
        }
        Ok(())
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        line: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        let line = String::from_utf8(line.to_vec()).unwrap();
        self.seen.command_lines.lock().unwrap().push(line.clone());
        let line = if self.behaviour.login_noise {
            format!("echo welcome; echo to stderr >&2; {line}")
        } else {
            line
        };
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &line]).env_clear().env("HOME", "/tmp");
        let path = "/usr/local/bin:/usr/bin:/bin";
        match &self.behaviour.path_prefix {
            Some(prefix) => command.env("PATH", format!("{}:{path}", prefix.display())),
            None => command.env("PATH", path),
        };
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, receiver) = mpsc::unbounded_channel();
        self.inputs.insert(channel, sender);
        let stdin = child.stdin.take().unwrap();
        tokio::spawn(feed(receiver, stdin));
        let out = tokio::spawn(drain(child.stdout.take().unwrap(), session.handle(), channel, None));
        let err = tokio::spawn(drain(child.stderr.take().unwrap(), session.handle(), channel, Some(1)));
        let handle = session.handle();
        let slot = self.slots.remove(&channel);
        tokio::spawn(async move {
            let status = child.wait().await.unwrap();
            // As sshd does: the status at once, the end of the channel when nobody holds the output.
            let code = status.code().unwrap_or(255);
            let _ = handle.exit_status_request(channel, u32::try_from(code).unwrap()).await;
            let _ = tokio::join!(out, err);
            let _ = handle.eof(channel).await;
            let _ = handle.close(channel).await;
            drop(slot);
        });
        session.channel_success(channel)?;
        Ok(())
    }

    async fn data(&mut self, channel: ChannelId, data: &[u8], _session: &mut Session) -> Result<(), Self::Error> {
        if let Some(input) = self.inputs.get(&channel) {
            let _ = input.send(data.to_vec());
        }
        Ok(())
    }

    async fn channel_eof(&mut self, channel: ChannelId, _session: &mut Session) -> Result<(), Self::Error> {
        self.inputs.remove(&channel);
        Ok(())
    }

    async fn channel_close(&mut self, channel: ChannelId, _session: &mut Session) -> Result<(), Self::Error> {
        self.inputs.remove(&channel);
        self.slots.remove(&channel);
        Ok(())
    }
}

/// A session as sshd counts it: from the opening of its channel to the end of its command, or to
/// the closing of the channel when it has none.
struct Slot(Arc<Seen>);

impl Slot {
    fn new(seen: &Arc<Seen>) -> Self {
        let open = seen.open_channels.fetch_add(1, Ordering::SeqCst) + 1;
        seen.most_channels.fetch_max(open, Ordering::SeqCst);
        Self(Arc::clone(seen))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.open_channels.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn feed(mut receiver: mpsc::UnboundedReceiver<Vec<u8>>, mut stdin: ChildStdin) {
    while let Some(data) = receiver.recv().await {
        if stdin.write_all(&data).await.is_err() {
            return;
        }
    }
}

async fn drain(mut from: impl AsyncReadExt + Unpin, to: Handle, channel: ChannelId, ext: Option<u32>) {
    let mut buffer = vec![0; 32 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let data = buffer[..count].to_vec();
        let sent = match ext {
            None => to.data(channel, data).await.is_ok(),
            Some(ext) => to.extended_data(channel, ext, data).await.is_ok(),
        };
        if !sent {
            return;
        }
    }
}
