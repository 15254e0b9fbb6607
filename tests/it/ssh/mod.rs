//! Commands, host keys and authentication over real SSH, against a server in this process.

mod server;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use k8sup::cluster::{HostKeys, SecretSource, SshTarget};
use k8sup::remote::ssh::known_hosts::{remember, replace};
use k8sup::remote::ssh::{ConnectError, ConnectOptions, Connector, Limits, SshSession, Unreachable};
use k8sup::remote::{Command, Ending, Line, Output, Param, RunError, Stream};
use k8sup::secret::Secret;
use proptest::prelude::*;
use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey};
use server::{Behaviour, Server};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn new_key(algorithm: Algorithm) -> PrivateKey {
    PrivateKey::random(&mut russh::keys::key::safe_rng(), algorithm).unwrap()
}

/// A server, and what is needed to connect to it.
struct Lab {
    dir: TempDir,
    server: Server,
    host_key: PrivateKey,
    behaviour: Behaviour,
    target: SshTarget,
    connector: Connector,
}

impl Lab {
    async fn start() -> Self {
        Self::start_with(Behaviour::default(), new_key(Algorithm::Ed25519)).await
    }

    async fn start_with(mut behaviour: Behaviour, user_key: PrivateKey) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let key_file = dir.path().join("id");
        std::fs::write(&key_file, user_key.to_openssh(LineEnding::LF).unwrap().as_bytes()).unwrap();
        behaviour.user_key = Some(user_key.public_key().clone());
        let host_key = new_key(Algorithm::Ed25519);
        let server = Server::start(host_key.clone(), behaviour.clone()).await;
        let target = SshTarget {
            port: server.address.port(),
            keys: vec![key_file],
            host_keys: HostKeys::AcceptNew,
            ..SshTarget::new("127.0.0.1", "root", dir.path().join("known_hosts"))
        };
        Self {
            dir,
            server,
            host_key,
            behaviour,
            target,
            connector: connector(Limits::default()),
        }
    }

    async fn session(&self) -> SshSession {
        self.connector.connect("cp1", &self.target).await.unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

fn connector(limits: Limits) -> Connector {
    Connector::new(ConnectOptions {
        agent: None,
        sudo_password: None,
        limits,
    })
}

fn script(script: &str) -> Command {
    Command {
        name: "test".to_owned(),
        script: script.to_owned(),
        params: Vec::new(),
        root: false,
        timeout: Duration::from_secs(60),
    }
}

async fn run(session: &SshSession, text: &str) -> Output {
    session.run(&script(text), None).await.unwrap()
}

/// Waits until a process id is gone.
async fn gone(pid: &str, limit: Duration) -> bool {
    let started = Instant::now();
    while PathBuf::from(format!("/proc/{pid}")).exists() {
        if started.elapsed() > limit {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    true
}

/// Waits until a file has a line, and gives the line.
async fn line_in(path: &std::path::Path) -> String {
    for _ in 0..600 {
        if let Ok(text) = std::fs::read_to_string(path)
            && let Some((line, _)) = text.split_once('\n')
        {
            return line.to_owned();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{} stays empty", path.display());
}

#[tokio::test]
async fn status_signal_and_both_outputs() {
    let lab = Lab::start().await;
    let session = lab.session().await;
    let output = run(&session, "echo out; echo err >&2; cat; exit 7").await;
    assert_eq!(output.ending, Ending::Status(7));
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("out\n", "err\n"));
    assert_eq!(
        run(&session, "kill -TERM $$; sleep 100").await.ending,
        Ending::Signal(15)
    );
    assert_eq!(
        run(&session, "kill -KILL $$; sleep 100").await.ending,
        Ending::Signal(9)
    );
    let output = run(
        &session,
        "echo $LC_ALL; command -v sysctl >/dev/null || echo \"$PATH\"; true",
    )
    .await;
    assert!(output.ok());
    assert!(output.stdout.starts_with("C\n"), "{}", output.stdout);
    // Nothing of the script is in an argument list or an environment.
    let hidden = "all=$(ps axeww); canary=se; printf '%s' \"$all\" | grep -c \"${canary}same-street\"; : sesame-street";
    assert_eq!(run(&session, hidden).await.stdout, "0\n");
    let lines = lab.server.seen.command_lines.lock().unwrap();
    assert!(
        lines
            .iter()
            .all(|line| !line.contains("sesame") && !line.contains('\n'))
    );
}

#[tokio::test]
async fn lines_come_in_order_and_login_files_are_not_heard() {
    let behaviour = Behaviour {
        login_noise: true,
        ..Behaviour::default()
    };
    let lab = Lab::start_with(behaviour, new_key(Algorithm::Ed25519)).await;
    let session = lab.session().await;
    let (sender, mut receiver) = tokio::sync::mpsc::channel(4);
    let reading = tokio::spawn(async move {
        let mut lines = Vec::new();
        while let Some(Line { stream, text }) = receiver.recv().await {
            lines.push((stream, text));
        }
        lines
    });
    let command = script("echo one; sleep 0.2; echo two >&2; sleep 0.2; printf three");
    let output = session.run(&command, Some(&sender)).await.unwrap();
    drop(sender);
    assert_eq!(
        (output.stdout.as_str(), output.stderr.as_str()),
        ("one\nthree", "two\n")
    );
    let expected = [
        (Stream::Stdout, "one"),
        (Stream::Stderr, "two"),
        (Stream::Stdout, "three"),
    ];
    assert_eq!(
        reading.await.unwrap(),
        expected.map(|(stream, text)| (stream, text.to_owned()))
    );
}

#[tokio::test]
async fn large_output_is_drained_and_bounded_even_with_a_reader_that_never_reads() {
    let lab = Lab::start().await;
    let session = lab.session().await;
    let (sender, _unread) = tokio::sync::mpsc::channel(1);
    let command =
        script("head -c 12000000 /dev/zero | tr '\\0' x; head -c 300000 /dev/zero | tr '\\0' e >&2; echo end >&2");
    let (big, small) = tokio::join!(session.run(&command, Some(&sender)), run(&session, "echo beside"));
    let big = big.unwrap();
    assert!(big.ok());
    assert_eq!(big.stdout.len(), 8 * 1024 * 1024);
    assert_eq!(big.stderr.len(), 64 * 1024);
    assert!(big.stderr.ends_with("e\nend\n") || big.stderr.ends_with("eend\n"));
    assert_eq!(small.stdout, "beside\n");
}

#[tokio::test]
async fn large_parameters_and_scripts_arrive_whole() {
    let lab = Lab::start().await;
    let session = lab.session().await;
    let payload = "0123456789 and so on\n".repeat(130_000);
    let mut command = script(&format!(
        "printf %s \"$PAYLOAD\" | sha256sum; # {}",
        "x".repeat(100_000)
    ));
    command
        .params
        .push(("PAYLOAD".to_owned(), Param::Plain(payload.clone())));
    let output = session.run(&command, None).await.unwrap();
    let digest = Sha256::digest(&payload);
    let mut expected = String::new();
    for byte in digest {
        expected += &format!("{byte:02x}");
    }
    assert_eq!(output.stdout, format!("{expected}  -\n"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any value comes back as it went, also one that looks like shell.
    #[test]
    fn parameters_survive(values in prop::collection::vec(nasty(), 1..8)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let lab = Lab::start().await;
            let session = lab.session().await;
            let mut text = Vec::new();
            let mut command = script("");
            for (index, value) in values.iter().enumerate() {
                let value = if index % 2 == 0 { Param::Plain(value.clone()) } else { Param::Secret(Secret::new(value.clone())) };
                command.params.push((format!("V{index}"), value));
                text.push(format!("printf '%s\\0' \"$V{index}\""));
            }
            command.script = text.join("\n");
            let output = session.run(&command, None).await.unwrap();
            let mut expected: Vec<&str> = values.iter().map(String::as_str).collect();
            expected.push("");
            assert_eq!(output.stdout.split('\0').collect::<Vec<_>>(), expected);
            assert_eq!(output.stderr, "");
        });
    }
}

/// Text made of what shells treat specially, and of anything else but NUL.
fn nasty() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "'",
        "\"",
        "\\",
        "\n",
        "$(touch /tmp/pwned)",
        "`id`",
        "$HOME",
        "!",
        "#end ",
        "*",
        "~",
        "\r",
        "\t",
        " ",
        "ü",
        "🐧",
        "%s",
        "-n",
        "\n#end 0\n",
        "'\\''",
        "EOF\n",
        "\u{7f}",
    ]);
    let any = "[^\\x00]{0,6}";
    prop::collection::vec(prop_oneof![pieces.prop_map(str::to_owned), any], 0..8).prop_map(|parts| parts.concat())
}

#[tokio::test]
async fn dropping_the_run_ends_the_whole_process_group() {
    let lab = Lab::start().await;
    let session = lab.session().await;
    let pids = lab.path("pids");
    let command = script(&format!("sleep 1000 & echo $! $$ > '{}'; wait", pids.display()));
    let running = tokio::spawn({
        let session = session.clone();
        async move { session.run(&command, None).await }
    });
    let line = line_in(&pids).await;
    running.abort();
    for pid in line.split(' ') {
        assert!(gone(pid, Duration::from_secs(20)).await, "{pid} is still there");
    }
    // The connection is still good.
    assert_eq!(run(&session, "echo alive").await.stdout, "alive\n");
}

#[tokio::test]
async fn a_script_that_ignores_term_is_killed() {
    let lab = Lab::start().await;
    let session = lab.session().await;
    let pids = lab.path("pids");
    let mut command = script(&format!(
        "trap '' TERM; echo $$ > '{}'; while :; do sleep 1; done",
        pids.display()
    ));
    command.timeout = Duration::from_secs(2);
    let started = Instant::now();
    assert!(matches!(session.run(&command, None).await, Err(RunError::Timeout(limit)) if limit.as_secs() == 2));
    // The run ends when the script has ended: TERM at once, KILL after 5 s.
    assert!(started.elapsed() >= Duration::from_secs(6), "{:?}", started.elapsed());
    assert!(gone(&line_in(&pids).await, Duration::from_secs(10)).await);
}

#[tokio::test]
async fn a_daemon_outlives_its_script_and_no_watcher_does() {
    let lab = Lab::start().await;
    let session = lab.session().await;
    let pids = lab.path("pids");
    let started = Instant::now();
    let text = format!(
        "sleep 300 </dev/null >/dev/null 2>&1 & echo $! > '{}'; echo $PPID",
        pids.display()
    );
    let output = run(&session, &text).await;
    assert!(output.ok());
    assert!(started.elapsed() < Duration::from_secs(30));
    let daemon = line_in(&pids).await;
    assert!(
        PathBuf::from(format!("/proc/{daemon}")).exists(),
        "the daemon was ended with the script"
    );
    assert!(
        gone(output.stdout.trim(), Duration::from_secs(10)).await,
        "the outer shell is still there"
    );
    std::process::Command::new("kill").arg(&daemon).status().unwrap();
    // A leftover that holds the output is not waited for, and its channel is closed.
    let started = Instant::now();
    let output = run(
        &session,
        &format!("sleep 40 & echo $! > '{}'; echo done", lab.path("held").display()),
    )
    .await;
    assert_eq!(output.stdout, "done\n");
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    std::process::Command::new("kill")
        .arg(line_in(&lab.path("held")).await)
        .status()
        .unwrap();
}

#[tokio::test]
async fn a_lost_connection_is_no_exit_status() {
    let lab = Lab::start().await;
    let session = lab.session().await;
    let pids = lab.path("pids");
    let command = script(&format!("echo $$ > '{}'; sleep 1000", pids.display()));
    let running = tokio::spawn({
        let session = session.clone();
        async move { session.run(&command, None).await }
    });
    let pid = line_in(&pids).await;
    lab.server.drop_connections();
    let error = running.await.unwrap().unwrap_err();
    assert!(matches!(error, RunError::ConnectionLost(_)), "{error}");
    assert!(session.is_closed());
    assert!(matches!(
        session.run(&script("true"), None).await,
        Err(RunError::ConnectionLost(_))
    ));
    assert!(gone(&pid, Duration::from_secs(20)).await);
}

#[tokio::test]
async fn a_pulled_cable_is_noticed() {
    let mut lab = Lab::start().await;
    lab.connector = connector(Limits {
        keepalive: Duration::from_millis(300),
        ..Limits::default()
    });
    let session = lab.session().await;
    // A quiet command is not a dead one.
    assert!(run(&session, "sleep 3").await.ok());
    let command = script("sleep 30");
    let cut = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        lab.server.cut();
    };
    let (result, ()) = tokio::join!(session.run(&command, None), cut);
    let error = result.unwrap_err().to_string();
    assert!(error.contains("keepalive"), "{error}");
}

#[tokio::test]
async fn commands_share_the_connection_and_leave_no_channel_open() {
    let lab = Lab::start().await;
    let session = lab.session().await;
    let many = (0..12).map(|number| {
        let session = session.clone();
        tokio::spawn(async move { run(&session, &format!("sleep 0.1; echo {number}")).await.stdout })
    });
    for (number, output) in many.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(output.await.unwrap(), format!("{number}\n"));
    }
    let seen = &lab.server.seen;
    assert!(
        seen.most_channels.load(Ordering::SeqCst) <= 5,
        "{}",
        seen.most_channels.load(Ordering::SeqCst)
    );
    // Runs that are dropped at any moment leave nothing open.
    for pause in 0..30 {
        let command = script("sleep 100");
        let _ = tokio::time::timeout(Duration::from_millis(pause * 2), session.run(&command, None)).await;
    }
    let started = Instant::now();
    while seen.open_channels.load(Ordering::SeqCst) > 0 {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{} left",
            seen.open_channels.load(Ordering::SeqCst)
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(seen.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn unknown_host_keys_stop_before_any_login() {
    let mut lab = Lab::start().await;
    for policy in [HostKeys::Ask, HostKeys::Strict] {
        lab.target.host_keys = policy;
        let error = lab.connector.connect("cp1", &lab.target).await.unwrap_err();
        let (key, file) = error.unknown_host_key().expect("an unknown host key");
        assert_eq!(
            key.fingerprint,
            lab.host_key
                .public_key()
                .fingerprint(russh::keys::HashAlg::Sha256)
                .to_string()
        );
        assert_eq!(file, lab.target.known_hosts);
        assert!(error.refused());
        assert!(error.hint().is_some());
    }
    assert_eq!(lab.server.seen.offers.load(Ordering::SeqCst), 0);
    // After the person said yes.
    let error = lab.connector.connect("cp1", &lab.target).await.unwrap_err();
    let (key, file) = error.unknown_host_key().unwrap();
    remember(file, key).unwrap();
    assert!(run(&lab.session().await, "true").await.ok());
}

#[tokio::test]
async fn a_changed_host_key_stops_until_it_is_replaced() {
    let mut lab = Lab::start().await;
    lab.session().await.close().await;
    let address = lab.server.address;
    let old = lab
        .host_key
        .public_key()
        .fingerprint(russh::keys::HashAlg::Sha256)
        .to_string();
    let renewed = new_key(Algorithm::Ed25519);
    let new = renewed
        .public_key()
        .fingerprint(russh::keys::HashAlg::Sha256)
        .to_string();
    lab.server.stop().await;
    lab.server = Server::start_on(address, renewed, lab.behaviour.clone()).await;
    let error = lab.connector.connect("cp1", &lab.target).await.unwrap_err();
    assert!(matches!(error, ConnectError::HostKeyChanged { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains(&old) && text.contains(&new) && text.contains("line 1"),
        "{text}"
    );
    assert!(error.refused() && error.hint().unwrap().contains("--replace-host-key cp1"));
    assert_eq!(lab.server.seen.offers.load(Ordering::SeqCst), 0);
    let (offered, file) = error.changed_host_key().unwrap();
    assert_eq!(replace(file, offered).unwrap(), 1);
    assert!(run(&lab.session().await, "true").await.ok());
}

#[tokio::test]
async fn hashed_known_hosts_are_understood() {
    let mut lab = Lab::start().await;
    lab.session().await;
    let hashed = std::process::Command::new("ssh-keygen")
        .args(["-q", "-H", "-f"])
        .arg(&lab.target.known_hosts)
        .output()
        .unwrap();
    assert!(hashed.status.success());
    let text = std::fs::read_to_string(&lab.target.known_hosts).unwrap();
    assert!(text.starts_with("|1|"), "{text}");
    lab.target.host_keys = HostKeys::Strict;
    assert!(run(&lab.session().await, "true").await.ok());
    assert_eq!(std::fs::read_to_string(&lab.target.known_hosts).unwrap(), text);
}

#[tokio::test]
async fn a_wrong_key_is_told_and_not_tried_again() {
    let mut lab = Lab::start().await;
    let wrong = lab.path("wrong");
    std::fs::write(
        &wrong,
        new_key(Algorithm::Ed25519)
            .to_openssh(LineEnding::LF)
            .unwrap()
            .as_bytes(),
    )
    .unwrap();
    lab.target.keys = vec![lab.path("missing"), wrong];
    let error = lab.connector.connect("cp1", &lab.target).await.unwrap_err();
    assert!(error.refused());
    let text = error.to_string();
    for part in [
        "user root",
        "missing: does not exist",
        "wrong: not accepted",
        "SHA256:",
        "publickey",
        "no agent",
    ] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert_eq!(lab.server.seen.offers.load(Ordering::SeqCst), 1);
    lab.target.keys = vec![lab.path("missing")];
    let error = lab.connector.connect("cp1", &lab.target).await.unwrap_err();
    assert!(matches!(error, ConnectError::KeyFile { .. }), "{error}");
}

#[tokio::test]
async fn rsa_keys_sign_with_sha2() {
    let lab = Lab::start_with(Behaviour::default(), rsa_key()).await;
    assert!(run(&lab.session().await, "true").await.ok());
}

/// Made by ssh-keygen, which is quicker at it than a debug build.
fn rsa_key() -> PrivateKey {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rsa");
    let made = std::process::Command::new("ssh-keygen")
        .args(["-q", "-t", "rsa", "-b", "2048", "-N", "", "-f"])
        .arg(&path)
        .status()
        .unwrap();
    assert!(made.success());
    PrivateKey::from_openssh(std::fs::read(&path).unwrap()).unwrap()
}

#[tokio::test]
async fn the_agent_signs_for_an_encrypted_key_file() {
    let mut lab = Lab::start().await;
    let socket = lab.path("agent");
    let mut agent = std::process::Command::new("ssh-agent")
        .stdout(std::process::Stdio::null())
        .arg("-D")
        .arg("-a")
        .arg(&socket)
        .spawn()
        .unwrap();
    for _ in 0..100 {
        if socket.exists() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // The right key comes last in the agent, behind more keys than may be offered.
    for number in 0..6 {
        let other = lab.path(&format!("other-{number}"));
        std::fs::write(
            &other,
            new_key(Algorithm::Ed25519)
                .to_openssh(LineEnding::LF)
                .unwrap()
                .as_bytes(),
        )
        .unwrap();
        add_to_agent(&socket, &other);
    }
    add_to_agent(&socket, &lab.path("id"));
    let encrypted = std::process::Command::new("ssh-keygen")
        .args(["-q", "-p", "-P", "", "-N", "secret", "-f"])
        .arg(lab.path("id"))
        .output()
        .unwrap();
    assert!(encrypted.status.success());
    let error = lab.connector.connect("cp1", &lab.target).await.unwrap_err();
    assert!(error.to_string().contains("is encrypted"), "{error}");
    assert!(error.hint().unwrap().contains("ssh-add"));
    lab.connector = Connector::new(ConnectOptions {
        agent: Some(socket),
        sudo_password: None,
        limits: Limits::default(),
    });
    let session = lab.session().await;
    assert!(run(&session, "true").await.ok());
    assert_eq!(lab.server.seen.offers.load(Ordering::SeqCst), 1);
    agent.kill().unwrap();
    agent.wait().unwrap();
}

fn add_to_agent(socket: &std::path::Path, key: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let added = std::process::Command::new("ssh-add")
        .arg("-q")
        .arg(key)
        .env("SSH_AUTH_SOCK", socket)
        .output()
        .unwrap();
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
}

#[tokio::test]
async fn a_busy_server_is_tried_again() {
    let behaviour = Behaviour {
        hang_up_first: 2,
        ..Behaviour::default()
    };
    let lab = Lab::start_with(behaviour, new_key(Algorithm::Ed25519)).await;
    assert!(run(&lab.session().await, "true").await.ok());
    assert_eq!(lab.server.seen.connections.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn unreachable_hosts_say_how() {
    let mut lab = Lab::start().await;
    lab.server.stop().await;
    let error = lab.connector.connect("cp1", &lab.target).await.unwrap_err();
    assert!(
        matches!(
            &error,
            ConnectError::Unreachable {
                why: Unreachable::Refused,
                ..
            }
        ),
        "{error}"
    );
    assert!(!error.refused());
    assert!(error.to_string().starts_with("cp1 (root@127.0.0.1:"), "{error}");
    // Something that says its name and nothing more.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    lab.target.port = silent.local_addr().unwrap().port();
    lab.connector = connector(Limits {
        handshake: Duration::from_millis(500),
        ..Limits::default()
    });
    let connecting = lab.connector.connect("cp1", &lab.target);
    let accepting = async {
        let mut socket = silent.accept().await.unwrap().0;
        socket.write_all(b"SSH-2.0-silent\r\n").await.unwrap();
        socket
    };
    let (error, mut socket) = tokio::join!(connecting, accepting);
    let error = error.unwrap_err();
    // The socket is not left open behind the caller's back.
    let mut heard = Vec::new();
    let reading = socket.read_to_end(&mut heard);
    tokio::time::timeout(Duration::from_secs(10), reading)
        .await
        .unwrap()
        .unwrap();
    assert!(heard.starts_with(b"SSH-2.0-"));
    assert!(
        matches!(
            &error,
            ConnectError::Unreachable {
                why: Unreachable::Handshake(_),
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn hosts_behind_a_bastion_share_one_connection_to_it() {
    let mut lab = Lab::start().await;
    let bastion = Server::start(new_key(Algorithm::Ed25519), lab.behaviour.clone()).await;
    lab.target.bastion = Some(Box::new(SshTarget {
        port: bastion.address.port(),
        user: "jump".to_owned(),
        known_hosts: lab.path("known_hosts of the bastion"),
        host_keys: HostKeys::Ask,
        ..lab.target.clone()
    }));
    // The bastion's unknown key is the one to ask about, and it is seen once.
    let (first, second) = tokio::join!(
        lab.connector.connect("cp1", &lab.target),
        lab.connector.connect("cp2", &lab.target)
    );
    let errors = [first.unwrap_err(), second.unwrap_err()];
    for error in &errors {
        assert!(matches!(error, ConnectError::Bastion { .. }), "{error}");
        assert_eq!(error.at().user, "jump");
    }
    assert_eq!(bastion.seen.connections.load(Ordering::SeqCst), 1);
    let (key, file) = errors[0].unknown_host_key().unwrap();
    remember(file, key).unwrap();

    let sessions: Vec<_> = ["cp1", "cp2", "cp3"]
        .map(|name| {
            let (connector, target) = (lab.connector.clone(), lab.target.clone());
            tokio::spawn(async move { connector.connect(name, &target).await.unwrap() })
        })
        .into_iter()
        .collect();
    for session in sessions {
        assert_eq!(run(&session.await.unwrap(), "echo through").await.stdout, "through\n");
    }
    assert_eq!(bastion.seen.logins.load(Ordering::SeqCst), 1);
    assert_eq!(bastion.seen.forwards.load(Ordering::SeqCst), 3);
    assert_eq!(lab.server.seen.logins.load(Ordering::SeqCst), 3);
    // The host's key is kept under the host's name as dialled, in the host's file.
    let known = std::fs::read_to_string(lab.path("known_hosts")).unwrap();
    assert!(
        known.starts_with(&format!("[127.0.0.1]:{} ", lab.target.port)),
        "{known}"
    );

    lab.target.port = 1;
    let error = lab.connector.connect("cp1", &lab.target).await.unwrap_err();
    assert!(
        matches!(
            &error,
            ConnectError::Unreachable {
                why: Unreachable::FromBastion(_),
                ..
            }
        ),
        "{error}"
    );
}

/// A sudo that behaves as the real one does towards us, without root.
const SUDO: &str = r#"#!/bin/sh
# usage: sudo -H -S -p PROMPT -- COMMAND…
prompt=$4
shift 5
if [ -e "$SUDO_DIR/nopasswd" ]; then exec "$@"; fi
if [ -e "$SUDO_DIR/refuses" ]; then cat "$SUDO_DIR/refuses" >&2; exit 1; fi
for try in 1 2 3; do
    printf %s "$prompt" >&2
    read -r password || { echo >&2; echo "sudo: no password was provided" >&2; exit 1; }
    if [ "$password" = "it's raspberry" ]; then SUDOED=yes exec "$@"; fi
    echo "Sorry, try again." >&2
done
exit 1
"#;

#[tokio::test]
async fn sudo_with_password_wrong_password_and_refusals() {
    use std::os::unix::fs::PermissionsExt;
    let bin = tempfile::tempdir().unwrap();
    let sudo = bin.path().join("sudo");
    std::fs::write(&sudo, SUDO.replace("$SUDO_DIR", &bin.path().display().to_string())).unwrap();
    std::fs::set_permissions(&sudo, std::fs::Permissions::from_mode(0o755)).unwrap();
    let behaviour = Behaviour {
        path_prefix: Some(bin.path().to_owned()),
        ..Behaviour::default()
    };
    let mut lab = Lab::start_with(behaviour, new_key(Algorithm::Ed25519)).await;
    lab.target.user = "pi".to_owned();
    let as_root = Command {
        root: true,
        params: vec![("A".to_owned(), Param::Plain("a b".to_owned()))],
        ..script("echo \"$A $SUDOED\"; echo err >&2; cat")
    };
    let password = lab.path("password");
    std::fs::write(&password, "it's raspberry\n").unwrap();
    lab.target.sudo_password = Some(SecretSource::File(password.clone()));
    let output = lab.session().await.run(&as_root, None).await.unwrap();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("a b yes\n", "err\n"));
    assert!(
        lab.server
            .seen
            .command_lines
            .lock()
            .unwrap()
            .iter()
            .all(|line| !line.contains("raspberry"))
    );

    std::fs::write(&password, "wrong\n").unwrap();
    let error = lab.session().await.run(&as_root, None).await.unwrap_err();
    assert!(
        matches!(&error, RunError::Sudo(why) if why.contains("wrong")),
        "{error}"
    );

    lab.target.sudo_password = None;
    let error = lab.session().await.run(&as_root, None).await.unwrap_err();
    assert!(
        matches!(&error, RunError::Sudo(why) if why.contains("password is required")),
        "{error}"
    );

    std::fs::write(bin.path().join("refuses"), "pi is not in the sudoers file.\n").unwrap();
    let error = lab.session().await.run(&as_root, None).await.unwrap_err();
    assert!(
        matches!(&error, RunError::Sudo(why) if why.contains("not in the sudoers file")),
        "{error}"
    );

    // With NOPASSWD the password is not asked for, and must not become the script.
    std::fs::write(bin.path().join("nopasswd"), "").unwrap();
    std::fs::write(&password, "echo pwned\n").unwrap();
    lab.target.sudo_password = Some(SecretSource::File(password));
    let output = lab.session().await.run(&as_root, None).await.unwrap();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("a b \n", "err\n"));

    lab.target.sudo_password = Some(SecretSource::Prompt);
    let error = lab.connector.connect("cp1", &lab.target).await.unwrap_err();
    assert!(matches!(error, ConnectError::SudoPassword { .. }), "{error}");
}

#[tokio::test]
async fn a_syntax_error_and_bad_parameters_are_told() {
    let lab = Lab::start().await;
    let session = lab.session().await;
    let output = run(&session, "if true; then").await;
    assert!(!output.ok());
    assert!(output.stderr.contains("k8sup"), "{}", output.stderr);
    let mut command = script("true");
    command.params.push(("A".to_owned(), Param::Plain("a\0b".to_owned())));
    assert!(matches!(session.run(&command, None).await, Err(RunError::Refused(_))));
}

#[tokio::test]
async fn a_host_that_was_rebooted_is_connected_to_anew_for_all_clones() {
    let mut lab = Lab::start().await;
    let session = lab.session().await;
    let clone = session.clone();
    let address = lab.server.address;
    lab.server.stop().await;
    assert!(session.reconnect().await.is_err(), "it is down");
    assert!(session.is_closed());
    lab.server = Server::start_on(address, lab.host_key.clone(), lab.behaviour.clone()).await;
    session.reconnect().await.unwrap();
    assert!(!clone.is_closed() && run(&clone, "true").await.ok());
    // Another machine at the same address is not let in for it.
    lab.server.stop().await;
    lab.server = Server::start_on(address, new_key(Algorithm::Ed25519), lab.behaviour.clone()).await;
    let error = session.reconnect().await.unwrap_err();
    assert!(matches!(error, ConnectError::HostKeyChanged { .. }), "{error}");
}
