//! SSH as people have it, against OpenSSH's own server: configurations, keys, sudo, login shells, servers in a bad mood.

mod config;
mod keys;
mod servers;
mod shells;
mod sshd;
mod sudo;

use std::time::Duration;

use k8sup::cluster::SshTarget;
use k8sup::remote::ssh::{ConnectOptions, Connector, Limits, SshSession};
use k8sup::remote::{Command, Output, RunError};

/// A connector without agent and password.
fn connector() -> Connector {
    Connector::new(ConnectOptions {
        agent: None,
        sudo_password: None,
        limits: Limits::default(),
    })
}

async fn connected(target: &SshTarget) -> SshSession {
    connector().connect("cp1", target).await.unwrap()
}

fn script(script: &str, root: bool) -> Command {
    Command {
        name: "test".to_owned(),
        script: script.to_owned(),
        params: Vec::new(),
        root,
        timeout: Duration::from_secs(30),
    }
}

async fn run(session: &SshSession, text: &str) -> Result<Output, RunError> {
    session.run(&script(text, false), None).await
}

/// Standard output of a script on a host that is logged in to for it.
async fn said(target: &SshTarget, text: &str) -> String {
    let output = run(&connected(target).await, text).await.unwrap();
    assert!(output.ok(), "{output:?}");
    output.stdout
}

/// The program itself, on an inventory of hosts at 127.0.0.1 to 127.0.0.3.
mod program {
    use std::io::Write;
    use std::path::Path;
    use std::process::{Command, Output, Stdio};

    use super::sshd::Sshd;

    /// An inventory with as many hosts (at most three), all on this server; `ssh` is what stands in its `ssh` section.
    pub(super) fn inventory(server: &Sshd, hosts: usize, ssh: &str) -> std::path::PathBuf {
        let mut text = "cluster: { name: lab, kubernetes: v1.34.4 }\n".to_owned();
        text += &format!(
            "ssh: {{ port: {}, hostKeys: accept-new, knownHosts: ./known_hosts, {ssh} }}\ncontrollers:\n",
            server.port
        );
        for number in 1..=hosts {
            if number == 2 {
                text += "workers:\n";
            }
            text += &format!("  h{number}: {{ address: 10.9.8.{number}, ssh: {{ host: 127.0.0.{number} }} }}\n");
        }
        let path = server.path("inventory.yaml");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// `k8sup exec` on all hosts; no agent, nothing of this machine's home.
    pub(super) fn exec(inventory: &Path, options: &[&str], script: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_k8sup"));
        command.arg("exec").arg(inventory).args(options).args(["--", script]);
        command
            .env("HOME", inventory.parent().unwrap())
            .env("USER", "root")
            .env_remove("SSH_AUTH_SOCK")
            .stdin(Stdio::null());
        command
    }

    /// The same on a terminal, where these lines are typed.
    pub(super) fn on_a_terminal(inventory: &Path, options: &str, script: &str, typed: &str) -> Output {
        let program = env!("CARGO_BIN_EXE_k8sup");
        let line = format!("{program} exec {} {options} -- '{script}'", inventory.display());
        let mut terminal = Command::new("timeout")
            .args(["60", "script", "-qec", &line, "/dev/null"])
            .env("HOME", inventory.parent().unwrap())
            .env_remove("SSH_AUTH_SOCK")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It is kept open: its end would be typed as well.
        let mut keyboard = terminal.stdin.take().unwrap();
        keyboard.write_all(typed.as_bytes()).unwrap();
        let output = terminal.wait_with_output().unwrap();
        drop(keyboard);
        output
    }

    pub(super) fn text(output: &Output) -> String {
        format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    }
}
