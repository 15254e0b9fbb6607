//! Keys with a passphrase, and agents with many.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use k8sup::cluster::SshTarget;
use k8sup::remote::ssh::{ConnectError, ConnectOptions, Connector};

use super::sshd::{Sshd, can_run, keygen};
use super::{connector, program, said};

/// A running `ssh-agent`; it ends when dropped.
pub(super) struct Agent {
    socket: PathBuf,
    process: Child,
}

impl Agent {
    pub(super) fn start(socket: &Path) -> Self {
        let process = Command::new("ssh-agent")
            .stdout(Stdio::null())
            .arg("-D")
            .arg("-a")
            .arg(socket)
            .spawn()
            .unwrap();
        let agent = Self {
            socket: socket.to_owned(),
            process,
        };
        for _ in 0..200 {
            if socket.exists() {
                return agent;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("ssh-agent does not start");
    }

    pub(super) fn add(&self, key: &Path) {
        let added = Command::new("ssh-add")
            .arg("-q")
            .arg(key)
            .env("SSH_AUTH_SOCK", &self.socket)
            .output()
            .unwrap();
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn asking(agent: &Agent) -> Connector {
    Connector::new(ConnectOptions {
        agent: Some(agent.socket.clone()),
        ..ConnectOptions::default()
    })
}

fn lock(server: &Sshd) {
    let locked = Command::new("ssh-keygen")
        .args(["-q", "-a", "1", "-p", "-P", "", "-N", "sesame", "-f"])
        .arg(server.path("id"))
        .output()
        .unwrap();
    assert!(locked.status.success());
}

#[test]
fn a_passphrase_is_asked_for_once_for_all_hosts_and_again_when_it_is_wrong() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    lock(&server);
    let inventory = program::inventory(&server, 3, "user: pi, key: ./id, config: none");
    let output = program::on_a_terminal(&inventory, "", "echo in", "guess\nsesame\n");
    let text = program::text(&output);
    assert!(output.status.success(), "{text}");
    assert_eq!(text.matches("Passphrase for ").count(), 2, "{text}");
    assert!(text.contains("is not opened by that passphrase"), "{text}");
    assert_eq!(server.log().matches("Accepted publickey for pi").count(), 3);
}

#[test]
fn a_passphrase_that_is_not_given_leaves_a_clear_error() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    lock(&server);
    let inventory = program::inventory(&server, 1, "user: pi, key: ./id, config: none");
    for output in [
        program::exec(&inventory, &[], "true").output().unwrap(),
        program::on_a_terminal(&inventory, "", "true", "\n"),
    ] {
        let text = program::text(&output);
        assert_eq!(output.status.code(), Some(4), "{text}");
        assert!(text.contains("is encrypted, and no agent holds its key"), "{text}");
    }
    let login = server.login("pi");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let error = runtime.block_on(connector().connect("cp1", &login)).unwrap_err();
    assert_eq!(error.locked_keys(), [server.path("id")]);
    assert!(error.hint().unwrap().contains("ssh-add"));
}

#[tokio::test]
async fn the_named_key_goes_before_an_agents_many_keys() {
    if !can_run() {
        return;
    }
    // The second failure is the last.
    let server = Sshd::start("MaxAuthTries 2");
    let agent = Agent::start(&server.path("agent"));
    for number in 0..10 {
        let other = server.path(&format!("other-{number}"));
        keygen(&other, "ed25519", "");
        agent.add(&other);
    }
    agent.add(&server.path("id"));
    let login = server.login("pi");
    asking(&agent).connect("cp1", &login).await.unwrap();
    // Only the agent has it, and its public half says which one it is.
    lock(&server);
    asking(&agent).connect("cp1", &login).await.unwrap();
    std::fs::remove_file(server.path("id")).unwrap();
    asking(&agent).connect("cp1", &login).await.unwrap();
    assert!(!server.log().contains("Too many"), "{}", server.log());

    // Without a name for it there are too many.
    let nameless = SshTarget {
        keys: Vec::new(),
        ..login
    };
    let error = asking(&agent).connect("cp1", &nameless).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ConnectError::Authentication { .. }), "{text}");
    assert!(text.contains("Too many authentication failures"), "{text}");
    assert!(error.hint().unwrap().contains("ssh.key"));
}

#[tokio::test]
async fn with_identities_only_an_agents_other_keys_are_not_offered() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    let agent = Agent::start(&server.path("agent"));
    agent.add(&server.path("id"));
    keygen(&server.path("other"), "ed25519", "");
    let mut login = server.login("pi");
    login.keys = vec![server.path("other")];
    assert!(asking(&agent).connect("cp1", &login).await.is_ok());
    login.only_keys = true;
    let error = asking(&agent).connect("cp1", &login).await.unwrap_err();
    assert!(matches!(error, ConnectError::Authentication { .. }), "{error}");
}

#[tokio::test]
async fn old_and_new_kinds_of_keys_log_in() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    for kind in ["rsa", "ecdsa", "ed25519"] {
        let path = server.path(kind);
        keygen(&path, kind, "");
        std::fs::copy(server.path(&format!("{kind}.pub")), server.path("authorized_keys")).unwrap();
        let mut login = server.login("pi");
        login.keys = vec![path];
        assert_eq!(said(&login, "id -un").await, "pi\n", "{kind}");
    }
}
