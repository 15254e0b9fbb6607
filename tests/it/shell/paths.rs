//! The network proof's scripts really run, on addresses of this machine's loopback.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use k8sup::remote::quote;

use crate::world;

const NONCE: &str = "5f0c";

/// A script with its parameters, as text for a shell.
fn script(file: &str, params: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, value) in params {
        text.push_str(&format!("{name}={}\n", quote(value)));
    }
    text + &world::read(&format!("templates/{file}"))
}

fn run(file: &str, params: &[(&str, &str)]) -> Output {
    Command::new("sh")
        .args(["-c", &script(file, params)])
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn lines(output: &Output) -> Vec<String> {
    let said = String::from_utf8_lossy(&output.stdout);
    let mut lines: Vec<String> = said.lines().map(str::to_owned).collect();
    lines.sort();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    lines
}

/// A listener under test; ended when it is dropped.
struct Listener {
    said: Vec<String>,
    pid: String,
    start: String,
}

impl Listener {
    fn at(address: &str, peers: &str, ports: &str, life: &str) -> Self {
        Self::of(&run("listen.sh", &listening(address, peers, ports, life)))
    }

    fn of(output: &Output) -> Self {
        let mut said = lines(output);
        let at = said.iter().position(|line| line.starts_with("listener ")).unwrap();
        let words: Vec<String> = said.remove(at).split(' ').map(str::to_owned).collect();
        Self {
            said,
            pid: words[1].clone(),
            start: words[2].clone(),
        }
    }

    fn is_there(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        // What nobody has taken notice of yet has ended all the same.
        !stat.is_empty() && !stat.contains(") Z ")
    }

    fn end(&self) -> Output {
        run("listen_end.sh", &[("PID", &self.pid), ("START", &self.start)])
    }

    fn ends_within(&self, limit: Duration) {
        let begin = Instant::now();
        while self.is_there() {
            assert!(begin.elapsed() < limit, "the listener is still there");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

fn listening<'a>(address: &'a str, peers: &'a str, ports: &'a str, life: &'a str) -> [(&'a str, &'a str); 5] {
    [
        ("NONCE", NONCE),
        ("ADDRESS", address),
        ("LIFE", life),
        ("PEERS", peers),
        ("PORTS", ports),
    ]
}

/// What somebody at an address finds, in alphabetical order.
fn proven(nonce: &str, from: &str, seconds: &str, targets: &str) -> Vec<String> {
    let params = [
        ("NONCE", nonce),
        ("ADDRESS", from),
        ("SECONDS_EACH", seconds),
        ("TARGETS", targets),
    ];
    lines(&run("prove.sh", &params))
}

#[test]
fn ports_are_proven_and_free_again_when_the_listener_is_ended() {
    let listener = Listener::at(
        "127.77.1.2",
        "127.77.1.1\n127.77.1.3",
        "tcp 16443\ntcp 12379\nudp 18472",
        "30",
    );
    assert_eq!(listener.said, ["bound tcp 12379", "bound tcp 16443", "bound udp 18472"]);
    let targets = "tcp 127.77.1.2 16443 ours\ntcp 127.77.1.2 12379 any\nudp 127.77.1.2 18472 1500\n\
                   tcp 127.77.1.2 12380 ours\ntcp 127.77.1.2 12381 any\nudp 127.77.1.2 18473 1500";
    for from in ["127.77.1.1", "127.77.1.3"] {
        let begin = Instant::now();
        assert_eq!(
            proven(NONCE, from, "3", targets),
            [
                "done",
                "tcp 127.77.1.2 12379 open",
                "tcp 127.77.1.2 12380 refused",
                "tcp 127.77.1.2 12381 refused",
                "tcp 127.77.1.2 16443 open",
                "udp 127.77.1.2 18472 open 1500",
                "udp 127.77.1.2 18473 refused",
            ]
        );
        assert!(begin.elapsed() < Duration::from_secs(3), "nothing here is silent");
    }
    // Somebody has the ports.
    let second = run(
        "listen.sh",
        &listening("127.77.1.2", "127.77.1.1", "tcp 16443\nudp 18472", "30"),
    );
    assert_eq!(
        lines(&second),
        [
            "taken tcp 16443 Address already in use",
            "taken udp 18472 Address already in use"
        ]
    );
    assert!(listener.is_there());
    assert!(lines(&listener.end()).is_empty());
    assert!(!listener.is_there());
    let again = Listener::at("127.77.1.2", "127.77.1.1", "tcp 16443\nudp 18472", "30");
    assert_eq!(again.said, ["bound tcp 16443", "bound udp 18472"]);
    // Ending what has ended is no error, and another process of that number is left alone.
    assert!(lines(&listener.end()).is_empty());
    let other = [("PID", again.pid.as_str()), ("START", "1")];
    assert!(lines(&run("listen_end.sh", &other)).is_empty());
    assert!(again.is_there());
}

#[test]
fn strangers_get_no_answer() {
    let listener = Listener::at("127.77.2.2", "127.77.2.1", "tcp 16443\nudp 18472", "30");
    assert_eq!(listener.said.len(), 2);
    let targets = "tcp 127.77.2.2 16443 ours\nudp 127.77.2.2 18472 1500";
    let unanswered = ["done", "tcp 127.77.2.2 16443 stranger", "udp 127.77.2.2 18472 silent"];
    // Not a host of the inventory; another run.
    assert_eq!(proven(NONCE, "127.77.2.9", "1", targets), unanswered);
    assert_eq!(proven("beef", "127.77.2.1", "1", targets), unanswered);
    assert_eq!(proven(NONCE, "127.77.2.1", "1", targets).len(), 3);
}

#[test]
fn a_listener_ends_by_itself() {
    let listener = Listener::at("127.77.3.2", "127.77.3.1", "tcp 16443", "1");
    assert!(listener.is_there());
    listener.ends_within(Duration::from_secs(5));
    assert_eq!(
        proven(NONCE, "127.77.3.1", "1", "tcp 127.77.3.2 16443 ours"),
        ["done", "tcp 127.77.3.2 16443 refused"]
    );
}

#[test]
fn a_listener_ends_with_its_connection() {
    let folder = tempfile::tempdir().unwrap();
    // What holds the connection is known by its name.
    let server = folder.path().join("sshd-session");
    std::fs::copy("/bin/sh", &server).unwrap();
    let listen = script("listen.sh", &listening("127.77.4.2", "127.77.4.1", "tcp 16443", "30"));
    let mut connection = Command::new(&server)
        .args(["-c", &format!("sh -c {}; echo; read line; exit", quote(&listen))])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut stdout = std::io::BufReader::new(connection.stdout.take().unwrap());
    while !said.ends_with("\n\n") {
        assert_ne!(
            std::io::BufRead::read_line(&mut stdout, &mut said).unwrap(),
            0,
            "{said}"
        );
    }
    let words: Vec<&str> = said.lines().nth(1).unwrap().split(' ').collect();
    let listener = Listener {
        said: Vec::new(),
        pid: words[1].to_owned(),
        start: words[2].to_owned(),
    };
    std::thread::sleep(Duration::from_millis(1500));
    assert!(listener.is_there(), "it must outlive the command that started it");
    connection.stdin.take().unwrap().write_all(b"\n").unwrap();
    connection.wait().unwrap();
    listener.ends_within(Duration::from_secs(5));
}

/// A port where connections are never taken, so that the kernel drops further ones, and what has no way at all.
#[test]
fn silence_is_told_from_a_refusal() {
    let full = "use Socket; socket(S, PF_INET, SOCK_STREAM, 0); bind(S, pack_sockaddr_in(16443, inet_aton(q(127.77.5.2)))) or die;
        listen(S, 0); for (1 .. 3) { socket(my $c, PF_INET, SOCK_STREAM, 0); fcntl($c, 4, 2048);
        connect($c, pack_sockaddr_in(16443, inet_aton(q(127.77.5.2)))); push @c, $c }
        $| = 1; print qq(ready\\n); <STDIN>";
    let mut silent = Command::new("perl")
        .args(["-e", full])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(silent.stdout.take().unwrap()), &mut ready).unwrap();
    let found = proven(
        NONCE,
        "127.77.5.1",
        "1",
        "tcp 127.77.5.2 16443 any\ntcp 192.0.2.1 6443 any",
    );
    drop(silent.stdin.take());
    silent.wait().unwrap();
    assert_eq!(found[..2], ["done", "tcp 127.77.5.2 16443 silent"]);
    assert!(found[2].starts_with("tcp 192.0.2.1 6443 failed "), "{found:?}");
}

/// Answers that are shorter than their questions are no proof of the size.
#[test]
fn the_size_that_passes_is_told() {
    let small = "use Socket; socket(S, PF_INET, SOCK_DGRAM, 0); bind(S, pack_sockaddr_in(18472, inet_aton(q(127.77.6.2)))) or die;
        $| = 1; print qq(ready\\n);
        while (my $from = recv(S, my $asked, 65535, 0)) {
          next if length($asked) + 28 > 1420;
          $asked =~ s/^k8sup ask (\\S+) /k8sup here $1 / and send(S, substr($asked, 0, length($asked) - 1), 0, $from) }";
    let mut narrow = Command::new("perl")
        .args(["-e", small])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(narrow.stdout.take().unwrap()), &mut ready).unwrap();
    let found = proven(NONCE, "127.77.6.1", "2", "udp 127.77.6.2 18472 1500");
    narrow.kill().unwrap();
    narrow.wait().unwrap();
    assert_eq!(found, ["done", "udp 127.77.6.2 18472 open 1420"]);
}
