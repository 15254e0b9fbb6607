//! What the host's own logs say about a failed step, and what to do next.

use std::time::Duration;

use super::event::Evidence;
use crate::plan::Step;
use crate::remote::{Command, Param, Session};

/// Asks the host for the lines that tell more than a step's standard error.
pub async fn gather(session: &Session, step: &Step) -> Vec<Evidence> {
    let units = match step {
        Step::Found { .. }
        | Step::AwaitApi { .. }
        | Step::Publish { .. }
        | Step::Join { .. }
        | Step::EtcdTurn { .. } => "kubelet\ncontainerd",
        Step::Containerd { .. } | Step::PullImages { .. } => "containerd",
        Step::HaProxy { .. } => "haproxy",
        _ => return Vec::new(),
    };
    from_host(session, units).await
}

/// The evidence of some systemd units and of the control plane's containers.
pub async fn from_host(session: &Session, units: &str) -> Vec<Evidence> {
    let command = Command {
        name: "evidence".to_owned(),
        script: include_str!("../../templates/evidence.sh").to_owned(),
        params: vec![("UNITS".to_owned(), Param::Plain(units.to_owned()))],
        root: true,
        timeout: Duration::from_secs(30),
    };
    // Evidence is a courtesy: a host that cannot give it does not make the failure worse.
    match session.run(&command, None).await {
        Ok(output) => sections(&output.stdout),
        Err(_) => Vec::new(),
    }
}

fn sections(text: &str) -> Vec<Evidence> {
    let mut all: Vec<Evidence> = Vec::new();
    for line in text.lines() {
        if let Some(source) = line.strip_prefix("@@ ") {
            all.push(Evidence {
                source: source.to_owned(),
                lines: Vec::new(),
            });
        } else if let Some(last) = all.last_mut() {
            last.lines.push(line.to_owned());
        }
    }
    all.retain(|evidence| !evidence.lines.is_empty());
    all
}

/// What to do next, from what the step's standard error says.
#[must_use]
pub fn hint(step: &Step, stderr: &str) -> String {
    let known: [(&str, &str); 10] = [
        (
            "Could not get lock",
            "another package manager runs on the host: let it finish, then run again",
        ),
        (
            "Unable to locate package linux-modules-extra-",
            "the running kernel is older than what the archive has: `apt full-upgrade` on the host, reboot it, and run again",
        ),
        (
            "Unable to locate package",
            "the package is in none of the host's apt sources: see `packages` in the inventory",
        ),
        (
            "was not found",
            "this version is not in the repository: see `cluster.kubernetes` and `packages` in the inventory",
        ),
        (
            "Temporary failure resolving",
            "the host cannot resolve names: see its /etc/resolv.conf",
        ),
        ("[ERROR NumCPU]", "a controller needs two processors"),
        ("[ERROR Mem]", "a controller needs 1700 MB of memory"),
        ("no space left on device", "free some disk space on the host"),
        (
            "could not find a JWS signature",
            "the controller manager has not signed the token: look at kube-controller-manager's log",
        ),
        (
            "x509: certificate has expired or is not yet valid",
            "compare the clocks of the hosts (timedatectl)",
        ),
    ];
    if let Some((_, hint)) = known.iter().find(|(sign, _)| stderr.contains(sign)) {
        return (*hint).to_owned();
    }
    match step {
        Step::Reach { .. } => "look for a firewall, a wrong address or an unplugged cable between the two".to_owned(),
        Step::PullImages { .. } => {
            "see that the host reaches the registry, or name a mirror under `images` in the inventory".to_owned()
        }
        _ => "mend the cause, then run the same command again: it goes on where it stopped".to_owned(),
    }
}
