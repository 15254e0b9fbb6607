//! The user's OpenSSH client configuration.

use std::path::{Path, PathBuf};

use k8sup::cluster::{ClientConfig, HostKeys, SshTarget, Written};
use k8sup::remote::ssh::known_hosts::remember;
use k8sup::remote::ssh::{ConfigProblem, ConnectError, client_config};

use super::keys::Agent;
use super::sshd::{Sshd, can_run, keygen};
use super::{connected, connector, program, run, said};

/// A login to `host` of which the inventory says nothing, and a configuration with this text.
fn unsaid(server: &Sshd, host: &str, config: &str) -> SshTarget {
    let path = server.path("ssh_config");
    std::fs::write(&path, config).unwrap();
    SshTarget {
        client: ClientConfig::File(path),
        ..SshTarget::new(host, "nobody", server.path("known_hosts"))
    }
}

/// The login completed, and what was told of it.
async fn completed(target: &SshTarget) -> (Result<SshTarget, ConnectError>, Vec<String>) {
    let mut done = client_config::complete([("cp1".to_owned(), target.clone())]).await;
    (done.logins.remove("cp1").unwrap(), done.notes.into_keys().collect())
}

async fn taken(target: &SshTarget) -> SshTarget {
    let (login, notes) = completed(target).await;
    assert_eq!(notes, [""; 0]);
    login.unwrap()
}

#[tokio::test]
async fn include_match_wildcards_and_tokens_complete_a_login() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    std::fs::copy(server.path("id"), server.path("node-1.pi")).unwrap();
    let at = server.dir.path().display();
    let more = format!(
        "Match host 127.0.0.1 user pi\n  IdentitiesOnly yes\n  HostKeyAlias the-%n\n  Port {}\n",
        server.port
    );
    std::fs::write(server.path("more"), more.replace("the-%n", "the-node")).unwrap();
    let config = format!(
        "Host node-*\n  HostName 127.0.0.1\n  User pi\n  IdentityFile {at}/%n.%r\n  UserKnownHostsFile {at}/known-%n {at}/second\n  \
         StrictHostKeyChecking accept-new\nInclude {at}/more\n"
    );
    let login = taken(&unsaid(&server, "node-1", &config)).await;
    assert_eq!(
        (login.host.as_str(), login.port, login.user.as_str()),
        ("127.0.0.1", server.port, "pi")
    );
    assert_eq!(login.keys, [server.path("node-1.pi")]);
    assert!(login.only_keys);
    assert_eq!(login.known_hosts, server.path("known-node-1"));
    assert!(login.more_known_hosts.contains(&server.path("second")));
    assert_eq!(said(&login, "id -un").await, "pi\n");
    let known = std::fs::read_to_string(server.path("known-node-1")).unwrap();
    assert!(known.starts_with("the-node ssh-ed25519 "), "{known}");
}

#[tokio::test]
async fn the_inventorys_own_words_go_before_the_configuration() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    let config = "Host nowhere.invalid\n  ProxyJump none\nHost *\n  User somebody\n  Port 1\n  IdentityFile /nowhere/key\n  UserKnownHostsFile /nowhere/known\n  \
                  StrictHostKeyChecking yes\n  ProxyJump nowhere.invalid\n";
    let mut own = SshTarget {
        written: Written {
            port: true,
            user: true,
            keys: true,
            bastion: true,
            host_keys: true,
            known_hosts: true,
        },
        ..server.login("pi")
    };
    own.client = unsaid(&server, "127.0.0.1", config).client;
    assert_eq!(said(&taken(&own).await, "id -un").await, "pi\n");
    // A person's word on the command line is one of them.
    let mut ruled = unsaid(&server, "127.0.0.1", config);
    ruled.rule_host_keys(HostKeys::Ask);
    let ruled = taken(&ruled).await;
    assert_eq!(ruled.host_keys, HostKeys::Ask);
    assert_eq!(ruled.bastion.unwrap().host_keys, HostKeys::Ask);
}

#[tokio::test]
async fn a_system_wide_file_of_host_keys_is_enough_for_strict_checking() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    let at = server.dir.path().display();
    let config = format!(
        "Host *\n  StrictHostKeyChecking yes\n  User pi\n  Port {}\n  IdentityFile {at}/id\n  UserKnownHostsFile {at}/mine\n  \
         GlobalKnownHostsFile {at}/everybodys\n",
        server.port
    );
    let login = taken(&unsaid(&server, "127.0.0.1", &config)).await;
    let error = connector().connect("cp1", &login).await.unwrap_err();
    assert!(
        matches!(
            &error,
            ConnectError::HostKeyUnknown {
                policy: HostKeys::Strict,
                ..
            }
        ),
        "{error}"
    );
    let line = server.known_as(&format!("[127.0.0.1]:{}", server.port));
    std::fs::write(server.path("everybodys"), line).unwrap();
    assert_eq!(said(&login, "id -un").await, "pi\n");
    assert!(!server.path("mine").exists());
}

#[tokio::test]
async fn a_chain_of_jumps_checks_the_host_key_of_each() {
    if !can_run() {
        return;
    }
    let servers = [Sshd::start(""), Sshd::start(""), Sshd::start("")];
    let [outer, inner, end] = &servers;
    let host = |name: &str, server: &Sshd| {
        let at = server.dir.path().display();
        format!(
            "Host {name}\n  HostName 127.0.0.1\n  Port {}\n  User pi\n  IdentityFile {at}/id\n  UserKnownHostsFile {at}/known_hosts\n",
            server.port
        )
    };
    let config = host("outer", outer) + &host("inner", inner) + &host("end", end) + "  ProxyJump outer,free@inner\n";
    let login = taken(&unsaid(end, "end", &config)).await;
    let way: Vec<_> = login.way().map(|hop| (hop.user.as_str(), hop.port)).collect();
    assert_eq!(way, [("free", inner.port), ("pi", outer.port)]);
    let connector = connector();
    for server in [outer, inner, end] {
        let error = connector.connect("end", &login).await.unwrap_err();
        let (key, file) = error.unknown_host_key().unwrap();
        assert_eq!(
            (key.port, file),
            (server.port, server.path("known_hosts").as_path()),
            "{error}"
        );
        assert!(
            !server.log().contains("Accepted"),
            "nobody logs in before the key is known"
        );
        remember(file, key).unwrap();
    }
    let session = connector.connect("end", &login).await.unwrap();
    assert_eq!(run(&session, "echo through").await.unwrap().stdout, "through\n");
    assert!(inner.log().contains("Accepted publickey for free"), "{}", inner.log());
    // In the middle somebody else answers.
    std::fs::write(
        inner.path("known_hosts"),
        outer.known_as(&format!("[127.0.0.1]:{}", inner.port)),
    )
    .unwrap();
    let error = super::connector().connect("end", &login).await.unwrap_err();
    assert!(
        error.changed_host_key().is_some() && error.at().port == inner.port,
        "{error}"
    );
}

#[tokio::test]
async fn jumps_that_go_round_are_refused() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    let config = "Host gateway\n  ProxyJump none\nHost *\n  ProxyJump gateway\n";
    let login = taken(&unsaid(&server, "node", config)).await;
    assert_eq!(
        login.way().map(|hop| hop.host.as_str()).collect::<Vec<_>>(),
        ["gateway"]
    );
    // As `ssh node` would refuse it.
    let itself = "Host *\n  ProxyJump gateway\n";
    let error = completed(&unsaid(&server, "node", itself)).await.0.unwrap_err();
    assert!(error.to_string().contains("gateway") && error.refused(), "{error}");
    let round = "Host a\n  ProxyJump b\nHost b\n  ProxyJump a\n";
    let error = completed(&unsaid(&server, "a", round)).await.0.unwrap_err();
    assert!(error.to_string().contains("a → b → a"), "{error}");
}

#[tokio::test]
async fn what_cannot_be_followed_is_refused_or_told_by_name() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    for keyword in ["ProxyCommand", "RevokedHostKeys"] {
        let config = format!("Host *\n  {keyword} /nowhere/it\n");
        let error = completed(&unsaid(&server, "node", &config)).await.0.unwrap_err();
        assert!(error.to_string().contains(keyword) && error.refused(), "{error}");
        assert!(error.hint().unwrap().contains("config: none"));
    }
    let mut reached_otherwise = unsaid(&server, "node", "Host *\n  ProxyCommand nc %h %p\n");
    reached_otherwise.written.bastion = true;
    taken(&reached_otherwise).await;
    let config = "Host *\n  CertificateFile ~/cert.pub\n  PKCS11Provider /nowhere/x.so\n  StrictHostKeyChecking no\n  \
                  UserKnownHostsFile /dev/null\n  BindAddress 127.0.0.1\n";
    let (login, notes) = completed(&unsaid(&server, "node", config)).await;
    for keyword in [
        "CertificateFile",
        "PKCS11Provider",
        "StrictHostKeyChecking no",
        "UserKnownHostsFile",
        "BindAddress",
    ] {
        assert!(
            notes.iter().any(|note| note.starts_with(keyword)),
            "{keyword}: {notes:?}"
        );
    }
    let login = login.unwrap();
    assert_eq!(
        (login.host_keys, login.known_hosts),
        (HostKeys::AcceptNew, server.path("known_hosts"))
    );
    let error = completed(&unsaid(&server, "node", "NoSuchWord yes\n"))
        .await
        .0
        .unwrap_err();
    assert!(
        matches!(&error, ConnectError::ClientConfig { why: ConfigProblem::Unreadable(why), .. } if why.contains("line 1")),
        "{error}"
    );
}

#[tokio::test]
async fn the_agent_that_the_configuration_names_is_asked_and_none_is_none() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    let agent = Agent::start(&server.path("agent"));
    agent.add(&server.path("id"));
    std::fs::remove_file(server.path("id")).unwrap();
    let at = server.dir.path().display();
    let config = |agent: &str| {
        format!(
            "Host *\n  User pi\n  Port {}\n  IdentityFile {at}/id.pub\n  IdentitiesOnly yes\n  IdentityAgent {agent}\n  \
             StrictHostKeyChecking accept-new\n",
            server.port
        )
    };
    let login = taken(&unsaid(&server, "127.0.0.1", &config(&format!("{at}/agent")))).await;
    assert_eq!(said(&login, "id -un").await, "pi\n");
    let login = taken(&unsaid(&server, "127.0.0.1", &config("none"))).await;
    let error = connector().connect("cp1", &login).await.unwrap_err();
    assert!(matches!(error, ConnectError::KeyFile { .. }), "{error}");
}

#[test]
fn the_program_takes_a_configuration_and_leaves_it_out() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    let at = server.dir.path().display();
    std::fs::write(
        server.path("ssh_config"),
        format!("Host 127.0.0.*\n  User pi\n  IdentityFile {at}/id\n  PKCS11Provider /nowhere/x.so\n"),
    )
    .unwrap();
    let inventory = program::inventory(&server, 2, "config: ./ssh_config");
    let output = program::exec(&inventory, &[], "id -un").output().unwrap();
    let text = program::text(&output);
    assert!(output.status.success(), "{text}");
    assert_eq!(text.matches("pi").count(), 2, "{text}");
    assert_eq!(
        text.matches("PKCS11Provider").count(),
        1,
        "told once for all hosts: {text}"
    );

    let inventory = program::inventory(&server, 2, "config: none");
    let output = program::exec(&inventory, &[], "id -un").output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", program::text(&output));
}

#[test]
fn without_ssh_on_the_machine_the_inventory_alone_counts() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    let inventory = program::inventory(&server, 1, "user: pi, key: ./id, config: ./nowhere");
    let output = program::exec(&inventory, &[], "id -un")
        .env("PATH", "/nowhere")
        .output()
        .unwrap();
    let text = program::text(&output);
    assert!(output.status.success() && text.contains("pi"), "{text}");
}

#[test]
fn a_bastion_in_front_of_a_bastion_is_written_in_the_inventory_as_well() {
    if !can_run() {
        return;
    }
    let servers = [Sshd::start(""), Sshd::start(""), Sshd::start("")];
    let [outer, inner, end] = &servers;
    let key = |server: &Sshd| server.path("id").display().to_string();
    let chain = format!(
        "user: pi, key: {}, config: none, bastion: {{ host: 127.0.0.1, port: {}, key: {}, bastion: {{ host: 127.0.0.1, port: {}, \
         user: free, key: {} }} }}",
        key(end),
        inner.port,
        key(inner),
        outer.port,
        key(outer)
    );
    let inventory = program::inventory(end, 1, &chain);
    let output = program::exec(&inventory, &[], "echo through").output().unwrap();
    let text = program::text(&output);
    assert!(output.status.success() && text.contains("through"), "{text}");
    assert!(outer.log().contains("Accepted publickey for free"));
    assert!(inner.log().contains("Accepted publickey for pi"));
}

#[tokio::test]
async fn a_host_key_alias_stands_for_host_and_port() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    let mut login = server.login("pi");
    login.key_alias = Some("the-first".to_owned());
    login.host_keys = HostKeys::Strict;
    std::fs::write(server.path("known_hosts"), server.known_as("the-first")).unwrap();
    connected(&login).await;
    keygen(&server.path("other"), "ed25519", "");
    let other: PathBuf = server.path("other.pub");
    let other = std::fs::read_to_string(Path::new(&other)).unwrap();
    std::fs::write(server.path("known_hosts"), format!("the-first {other}")).unwrap();
    let error = connector().connect("cp1", &login).await.unwrap_err();
    assert!(error.changed_host_key().is_some(), "{error}");
}
