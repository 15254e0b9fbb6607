//! Servers that are slow, full, old or other than they were.

use std::io::{BufRead, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use k8sup::remote::ssh::ConnectError;
use k8sup::remote::ssh::known_hosts::replace;
use tokio::task::JoinSet;

use super::sshd::{Sshd, can_run, keygen};
use super::{connected, connector, program, run, said};

#[tokio::test]
async fn one_session_at_a_time_is_enough_for_commands_side_by_side() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("MaxSessions 1");
    let session = connected(&server.login("pi")).await;
    let started = Instant::now();
    let (long, short) = tokio::join!(run(&session, "sleep 3; echo long"), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let output = run(&session, "echo short").await;
        (output, started.elapsed())
    });
    assert_eq!(long.unwrap().stdout, "long\n");
    assert_eq!(short.0.unwrap().stdout, "short\n");
    assert!(
        short.1 < Duration::from_secs(3),
        "the short one does not wait for the long one"
    );
    // One behind another they share the connection.
    let before = server.log().matches("Accepted publickey").count();
    for _ in 0..20 {
        assert!(run(&session, "true").await.unwrap().ok());
    }
    assert_eq!(server.log().matches("Accepted publickey").count(), before);
}

#[tokio::test]
async fn a_server_without_sessions_is_told() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("MaxSessions 0");
    let error = run(&connected(&server.login("pi")).await, "true").await.unwrap_err();
    assert!(error.to_string().contains("MaxSessions"), "{error}");
}

#[tokio::test]
async fn connections_that_a_full_server_drops_are_tried_again() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("MaxStartups 2:50:4");
    // The four that it bears begin and do not log in, for a while.
    let before = server.log().matches("Connection from").count();
    let mut others: Vec<TcpStream> = Vec::new();
    while server.log().matches("Connection from").count() < before + 4 {
        others.push(TcpStream::connect(("127.0.0.1", server.port)).unwrap());
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(others.len() < 100, "{}", server.log());
    }
    let connector = connector();
    let mut hosts = JoinSet::new();
    for number in 0..3 {
        let (connector, login) = (connector.clone(), server.login("pi"));
        hosts.spawn(async move {
            let session = connector.connect(&format!("h{number}"), &login).await?;
            Ok::<_, ConnectError>(run(&session, "echo in").await)
        });
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let log = server.log();
    assert!(log.contains("past MaxStartups") && !log.contains("Accepted"), "{log}");
    drop(others);
    while let Some(host) = hosts.join_next().await {
        assert_eq!(host.unwrap().unwrap().unwrap().stdout, "in\n");
    }
}

#[tokio::test]
async fn old_algorithms_are_named() {
    if !can_run() {
        return;
    }
    for (config, names) in [
        (
            "KexAlgorithms diffie-hellman-group1-sha1",
            ["diffie-hellman-group1-sha1", "KexAlgorithms"],
        ),
        ("Ciphers 3des-cbc", ["3des-cbc", "Ciphers"]),
        (
            "HostKeyAlgorithms ssh-rsa\nHostKey PLACE/rsa",
            ["ssh-rsa", "HostKeyAlgorithms"],
        ),
    ] {
        let rsa = tempfile::tempdir().unwrap();
        keygen(&rsa.path().join("rsa"), "rsa", "");
        let server = Sshd::start(&config.replace("PLACE", &rsa.path().display().to_string()));
        let error = connector().connect("cp1", &server.login("pi")).await.unwrap_err();
        let text = format!("{error}; {}", error.hint().unwrap());
        assert!(matches!(error, ConnectError::Algorithms { .. }), "{text}");
        for name in names {
            assert!(text.contains(name), "{name} is not in: {text}");
        }
    }
}

#[tokio::test]
async fn a_host_that_was_installed_anew_is_refused_until_its_key_is_replaced() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    let login = server.login("pi");
    keygen(&server.path("former"), "ed25519", "");
    let former = std::fs::read_to_string(server.path("former.pub")).unwrap();
    std::fs::write(&login.known_hosts, format!("[127.0.0.1]:{} {former}", server.port)).unwrap();
    let error = connector().connect("cp1", &login).await.unwrap_err();
    assert!(error.hint().unwrap().contains("--replace-host-key cp1"));
    assert!(!server.log().contains("Accepted"), "{}", server.log());
    let (key, file) = error.changed_host_key().unwrap();
    replace(file, key).unwrap();
    assert_eq!(said(&login, "id -un").await, "pi\n");
}

#[tokio::test]
async fn a_server_that_looks_names_up_is_waited_for() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("UseDNS yes");
    assert_eq!(said(&server.login("pi"), "id -un").await, "pi\n");
}

#[test]
fn no_more_hosts_work_at_once_than_they_are_told_to() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    let inventory = program::inventory(&server, 3, "user: pi, key: ./id, config: none");
    let output = program::exec(&inventory, &["--parallel", "1"], "echo begin; sleep 0.3; echo end")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let said: Vec<_> = text.lines().filter_map(|line| line.split_once(" │ ")).collect();
    assert_eq!(said.len(), 6, "{text}");
    for pair in said.chunks(2) {
        assert_eq!((pair[0].0, pair[0].1, pair[1].1), (pair[1].0, "begin", "end"), "{text}");
    }
}

#[test]
fn nobody_waits_ten_seconds_without_a_word() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    // It stands in front of the server and lets nothing through for eleven seconds.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, behind) = (listener.local_addr().unwrap().port(), server.port);
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        std::thread::sleep(Duration::from_secs(11));
        let mut server = TcpStream::connect(("127.0.0.1", behind)).unwrap();
        let (mut to, mut from) = (server.try_clone().unwrap(), socket.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        let _ = std::io::copy(&mut server, &mut socket);
        let _ = socket.flush();
    });
    let inventory = program::inventory(&server, 1, "user: pi, key: ./id, config: none");
    let text = std::fs::read_to_string(&inventory).unwrap();
    std::fs::write(
        &inventory,
        text.replace(&format!("port: {behind}"), &format!("port: {port}")),
    )
    .unwrap();
    let started = Instant::now();
    let mut child = program::exec(&inventory, &[], "echo in")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("still connecting to h1")));
    assert!(started.elapsed() < Duration::from_secs(10));
    assert!(child.wait().unwrap().success());
}
