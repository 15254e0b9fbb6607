//! Login shells of every kind, and those that let nobody in.

use std::time::{Duration, Instant};

use k8sup::remote::RunError;

use super::sshd::{Sshd, can_run};
use super::{connected, run, said, script};

#[tokio::test]
async fn fish_and_csh_start_commands_as_sh_does() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    for (user, shell) in [("fish", "fish"), ("tess", "tcsh")] {
        let login = server.login(user);
        let text = said(
            &login,
            "printf '%s|' \"it's $((1 + 1)) !\" \"a\\\\b\"; basename \"$SHELL\"",
        )
        .await;
        assert_eq!(text, format!("it's 2 !|a\\b|{shell}\n"));
        let output = connected(&login)
            .await
            .run(&script("id -un; exit 3", true), None)
            .await
            .unwrap();
        assert_eq!((output.stdout.as_str(), output.ok()), ("root\n", false));
    }
}

#[tokio::test]
async fn a_banner_a_motd_and_a_noisy_bashrc_are_not_heard() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("Banner /etc/passwd");
    let noise = "echo welcome; echo to stderr >&2; printf 'no newline'; alias ls='rm -rf'; set -o noclobber\n";
    for name in [".bashrc", ".profile"] {
        std::fs::write(server.home("noisy").join(name), noise).unwrap();
    }
    let login = server.login("noisy");
    let output = run(&connected(&login).await, "echo out; echo err >&2").await.unwrap();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("out\n", "err\n"));
    let output = connected(&login)
        .await
        .run(&script("echo out", true), None)
        .await
        .unwrap();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("out\n", ""));
}

#[tokio::test]
async fn a_bashrc_that_takes_its_time_is_waited_for() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    std::fs::write(server.home("slow").join(".bashrc"), "sleep 2\n").unwrap();
    let started = Instant::now();
    assert_eq!(said(&server.login("slow"), "echo awake").await, "awake\n");
    assert!(started.elapsed() >= Duration::from_secs(2));
}

#[tokio::test]
async fn a_shell_or_a_command_that_lets_nobody_in_is_told_with_its_words() {
    if !can_run() {
        return;
    }
    let server = Sshd::start(
        "Match User outsider\n  ForceCommand echo only backups here\nMatch User tty\n  ForceCommand internal-sftp\nMatch all",
    );
    for (user, words) in [
        ("gone", "This account is currently not available"),
        ("outsider", "only backups here"),
        ("tty", "did not start the command"),
    ] {
        let started = Instant::now();
        let error = run(&connected(&server.login(user)).await, "true").await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, RunError::Refused(_)), "{user}: {text}");
        assert!(text.contains(words) && text.contains("ForceCommand"), "{user}: {text}");
        assert!(
            started.elapsed() < Duration::from_secs(15),
            "{user}: {:?}",
            started.elapsed()
        );
    }
}

#[tokio::test]
async fn an_exit_in_a_bashrc_is_told() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    std::fs::write(
        server.home("noisy").join(".bashrc"),
        "echo use the other machine; exit 9\n",
    )
    .unwrap();
    let error = run(&connected(&server.login("noisy")).await, "true").await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("status 9") && text.contains("use the other machine"),
        "{text}"
    );
}
