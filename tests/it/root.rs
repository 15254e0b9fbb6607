//! A folder that stands for a host's root, in which a real shell runs the scripts.
//!
//! Paths of the host are moved into the folder, and every command that would change a machine is a stub that writes
//! down how it was called.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use k8sup::plan::{Step, StepParam};
use k8sup::remote::quote;
use tempfile::TempDir;

use crate::world;

/// Everything that touches more than files.
const STUBS: [&str; 35] = [
    "systemctl",
    "journalctl",
    "modprobe",
    "sysctl",
    "swapoff",
    "swapon",
    "hostnamectl",
    "apt-get",
    "apt-mark",
    "dpkg",
    "dpkg-query",
    "crictl",
    "kubeadm",
    "kubectl",
    "haproxy",
    "ss",
    "pgrep",
    "containerd",
    "ip",
    "nft",
    "iptables-save",
    "iptables-restore",
    "ip6tables-save",
    "ip6tables-restore",
    "ipvsadm",
    "umount",
    "sleep",
    "sync",
    "timeout",
    "ufw",
    "nmcli",
    "udevadm",
    "systemd-machine-id-setup",
    "firewall-cmd",
    "firewall-offline-cmd",
];

/// Where a host's own files are.
const PLACES: [&str; 11] = [
    "/etc/",
    "/var/lib/",
    "/var/log/",
    "/var/run/",
    "/run/",
    "/proc/",
    "/sys/",
    "/opt/",
    "/home/",
    "/usr/lib/apt/",
    "/root/",
];

/// A folder that is a host.
pub(crate) struct Root {
    folder: TempDir,
}

impl Root {
    pub(crate) fn new() -> Self {
        let root = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for folder in ["bin", "stubs", "run", "var/lib", "etc/systemd", "proc", "opt"] {
            std::fs::create_dir_all(root.path(folder)).unwrap();
        }
        for stub in STUBS {
            // `timeout` and `apt-helper` aside, stubs do nothing but remember; a file of `stubs` makes them do more.
            let more = root.path(&format!("stubs/{stub}"));
            let text = format!(
                "#!/bin/sh\nprintf '%s\\n' \"{stub} $*\" >>{log}\nif [ -e {more} ]; then . {more}; fi\nexit 0\n",
                log = root.path("log").display(),
                more = more.display()
            );
            root.program(&format!("bin/{stub}"), &text);
        }
        root.stub("timeout", "shift; exec \"$@\"");
        // A clock that goes four seconds at every look, so that a wait in vain is over soon.
        let clock = format!(
            "#!/bin/sh\n[ \"$*\" = +%s ] || exec /bin/date \"$@\"\n\
             now=$(($(cat {clock} 2>/dev/null || echo 1000) + 4))\necho $now >{clock}\necho $now\n",
            clock = root.path("clock").display()
        );
        root.program("bin/date", &clock);
        root
    }

    pub(crate) fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join(inside.trim_start_matches('/'))
    }

    pub(crate) fn program(&self, inside: &str, text: &str) {
        let path = self.path(inside);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// What a stub does beside remembering its arguments.
    pub(crate) fn stub(&self, program: &str, text: &str) {
        std::fs::write(self.path(&format!("stubs/{program}")), self.rooted(text)).unwrap();
    }

    pub(crate) fn write(&self, inside: &str, text: &str) {
        let path = self.path(inside);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, inside: &str) -> String {
        std::fs::read_to_string(self.path(inside)).unwrap_or_else(|error| panic!("{inside}: {error}"))
    }

    pub(crate) fn exists(&self, inside: &str) -> bool {
        self.path(inside).exists()
    }

    /// The commands so far, and none from here on.
    pub(crate) fn commands(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        let _ = std::fs::remove_file(self.path("log"));
        let inside = self.folder.path().to_str().unwrap();
        log.lines()
            .map(|line| line.replace(inside, ""))
            .filter(|line| !line.starts_with("sync "))
            .collect()
    }

    /// The text with the host's paths inside the folder.
    pub(crate) fn rooted(&self, text: &str) -> String {
        let inside = self.folder.path().to_str().unwrap();
        let mut out = String::new();
        let mut rest = text;
        while let Some(place) = PLACES.iter().filter_map(|path| rest.find(path)).min() {
            let before = &rest[..place];
            out.push_str(before);
            // Not in the middle of another path, nor in a URL.
            let middle =
                out.ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '}' | '.' | '-' | '_' | ':'));
            if !middle {
                out.push_str(inside);
            }
            out.push('/');
            rest = &rest[place + 1..];
        }
        out + rest
    }

    /// Runs a step.
    pub(crate) fn step(&self, step: &Step) -> Output {
        let script = step.script();
        let params = script.params.iter().map(|(name, value)| {
            let (StepParam::Plain(value) | StepParam::Sealed(value)) = value;
            (name.as_str(), value.clone())
        });
        self.run(&params.collect::<Vec<_>>(), &script.text)
    }

    /// Runs some lines behind the prelude.
    pub(crate) fn prelude(&self, lines: &str) -> Output {
        self.run(&[], &format!("{}\n{lines}\n", world::read("templates/prelude.sh")))
    }

    pub(crate) fn run(&self, params: &[(&str, String)], script: &str) -> Output {
        let mut text = String::new();
        for (name, value) in params {
            text += &format!("{name}={}\n", quote(value));
        }
        text += script;
        self.command(&text).output().unwrap()
    }

    fn command(&self, text: &str) -> Command {
        let file = self.path("script");
        std::fs::write(&file, self.rooted(text)).unwrap();
        let mut command = Command::new(shell());
        let path = format!("{}:/usr/bin:/bin:/usr/sbin:/sbin", self.path("bin").display());
        command
            .arg(file)
            .env_clear()
            .env("PATH", path)
            .env("LC_ALL", "C")
            .current_dir(self.folder.path());
        command
    }
}

/// Debian's `sh`, where there is one.
fn shell() -> &'static str {
    if Path::new("/usr/bin/dash").exists() || Path::new("/bin/dash").exists() {
        "dash"
    } else {
        "sh"
    }
}

pub(crate) fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

pub(crate) fn good(output: &Output) -> String {
    assert!(output.status.success(), "{:?}: {}", output.status, said(output));
    said(output)
}

pub(crate) fn bad(output: &Output) -> String {
    assert!(!output.status.success(), "{}", said(output));
    said(output)
}
