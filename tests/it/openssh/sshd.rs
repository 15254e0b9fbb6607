//! OpenSSH servers of the tests' own: each in a mount and process namespace with its own users, sudoers and files, so
//! that nothing of this machine changes. Needs root; everything ends with the server.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use k8sup::cluster::{HostKeys, SshTarget};
use tempfile::TempDir;

const SSHD: &str = "/usr/sbin/sshd";
/// Name and login shell. All of them take the server's key; the password is the same for all.
const USERS: [(&str, &str); 9] = [
    ("pi", "/bin/bash"),
    ("free", "/bin/bash"),
    ("tty", "/bin/bash"),
    ("outsider", "/bin/sh"),
    ("noisy", "/bin/bash"),
    ("slow", "/bin/bash"),
    ("fish", "/usr/bin/fish"),
    ("tess", "/bin/tcsh"),
    ("gone", "/usr/sbin/nologin"),
];
pub(super) const PASSWORD: &str = "it's raspberry";
/// `pi` is asked for a password, `tty` needs a terminal, `outsider` may nothing.
const SUDOERS: &str = "Defaults env_reset, !lecture, passwd_tries=3\n\
    Defaults:tty requiretty\n\
    root ALL=(ALL) ALL\n\
    pi ALL=(ALL) ALL\n\
    free,noisy,slow,fish,tess,tty ALL=(ALL) NOPASSWD: ALL\n";
const FIRST_UID: u32 = 61_001;

/// What keeps these tests from running. `make fast` installs it in CI, where they must run.
fn missing() -> Option<&'static str> {
    let status = Command::new("id").arg("-u").output().unwrap();
    let needed = [SSHD, "/usr/bin/sudo", "/usr/bin/fish", "/bin/tcsh"];
    if status.stdout != b"0\n" {
        Some("they start sshd as root")
    } else if !needed.iter().all(|path| Path::new(path).exists()) {
        Some("scripts/openssh.sh installs openssh-server, sudo, fish and tcsh")
    } else if !in_namespaces("true").status().is_ok_and(|status| status.success()) {
        Some("this machine gives no namespace to mount in")
    } else {
        None
    }
}

/// Whether the test can run; says why not.
#[expect(clippy::print_stderr, reason = "what is skipped is said")]
pub(super) fn can_run() -> bool {
    let Some(why) = missing() else { return true };
    assert_ne!(
        std::env::var("CI").as_deref(),
        Ok("true"),
        "tests against OpenSSH must run in CI: {why}"
    );
    eprintln!("skipped, a test against OpenSSH: {why}");
    false
}

fn in_namespaces(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command
        .args([
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-euc",
            script,
        ])
        .stdin(Stdio::null());
    command
}

/// A running server.
pub(super) struct Sshd {
    pub(super) dir: TempDir,
    pub(super) port: u16,
    process: Child,
}

impl Sshd {
    /// Starts a server with these lines in its configuration.
    pub(super) fn start(config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        keygen(&dir.path().join("host"), "ed25519", "");
        keygen(&dir.path().join("id"), "ed25519", "");
        std::fs::copy(dir.path().join("id.pub"), dir.path().join("authorized_keys")).unwrap();
        write_users(dir.path());
        // Between the choice of a port and its use another one may take it.
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            if let Some(process) = spawn(dir.path(), port, config) {
                return Self { dir, port, process };
            }
        }
        let log = std::fs::read_to_string(dir.path().join("log")).unwrap_or_default();
        panic!("sshd does not start: {log}");
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn home(&self, user: &str) -> PathBuf {
        self.path("home").join(user)
    }

    /// A login with the server's key; its host key is accepted.
    pub(super) fn login(&self, user: &str) -> SshTarget {
        SshTarget {
            port: self.port,
            keys: vec![self.path("id")],
            host_keys: HostKeys::AcceptNew,
            ..SshTarget::new("127.0.0.1", user, self.path("known_hosts"))
        }
    }

    /// What the server has logged so far.
    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap()
    }

    /// The line that knows the server, under this name.
    pub(super) fn known_as(&self, name: &str) -> String {
        let key = std::fs::read_to_string(self.path("host.pub")).unwrap();
        format!("{name} {key}")
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        // With the first process of the namespace all others end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(super) fn keygen(path: &Path, kind: &str, passphrase: &str) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", kind, "-N", passphrase, "-C", "a test", "-f"])
        .arg(path)
        .status()
        .unwrap();
    assert!(made.success());
}

fn write_users(dir: &Path) {
    let crypt = "print crypt($ARGV[0], q($6$k8sup$))";
    let hash = Command::new("perl").args(["-e", crypt, PASSWORD]).output().unwrap();
    let hash = String::from_utf8(hash.stdout).unwrap();
    let system = |name: &str| std::fs::read_to_string(format!("/etc/{name}")).unwrap();
    let (mut passwd, mut shadow, mut group) = (system("passwd"), system("shadow"), system("group"));
    for ((name, shell), uid) in USERS.iter().zip(FIRST_UID..) {
        let home = dir.join("home").join(name);
        std::fs::create_dir_all(&home).unwrap();
        std::os::unix::fs::chown(&home, Some(uid), Some(uid)).unwrap();
        passwd += &format!("{name}:x:{uid}:{uid}::{}:{shell}\n", home.display());
        shadow += &format!("{name}:{hash}:19000:0:99999:7:::\n");
        group += &format!("{name}:x:{uid}:\n");
    }
    let files = [
        ("passwd", passwd, 0o644),
        ("shadow", shadow, 0o600),
        ("group", group, 0o644),
    ];
    for (name, text, mode) in files.into_iter().chain([("sudoers", SUDOERS.to_owned(), 0o440)]) {
        std::fs::write(dir.join(name), text).unwrap();
        std::fs::set_permissions(dir.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    std::fs::write(dir.join("motd"), "the message of the day\n").unwrap();
}

/// The server, once it greets; `None` when it ends before that.
fn spawn(dir: &Path, port: u16, config: &str) -> Option<Child> {
    let at = dir.display();
    // The first value of a keyword holds, of MaxStartups the last.
    let config = format!(
        "MaxStartups 100\n{config}\nListenAddress 127.0.0.1:{port}\nListenAddress 127.0.0.2:{port}\nListenAddress 127.0.0.3:{port}\n\
         HostKey {at}/host\nAuthorizedKeysFile {at}/authorized_keys\nStrictModes no\nPidFile none\nUsePAM no\n\
         PasswordAuthentication no\nKbdInteractiveAuthentication no\nPrintMotd yes\nLogLevel VERBOSE\n"
    );
    std::fs::write(dir.join("sshd_config"), config).unwrap();
    let script = format!(
        "for file in passwd shadow group sudoers; do mount --bind {at}/$file /etc/$file; done\n\
         if [ -e /etc/motd ]; then mount --bind {at}/motd /etc/motd; fi\n\
         mount -t tmpfs -o mode=755 tmpfs /run\nmkdir /run/sshd\n\
         exec {SSHD} -D -e -f {at}/sshd_config"
    );
    let log = std::fs::File::create(dir.join("log")).unwrap();
    let mut process = in_namespaces(&script)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(10) {
        if process.try_wait().unwrap().is_some() {
            return None;
        }
        let answered = TcpStream::connect(("127.0.0.1", port)).is_ok_and(|mut socket| {
            let mut greeting = [0; 4];
            socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            socket.read_exact(&mut greeting).is_ok() && greeting == *b"SSH-"
        });
        if answered {
            return Some(process);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = process.kill();
    let _ = process.wait();
    None
}
