//! What logins need before and between connections: the user's OpenSSH configuration, and passphrases of keys.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use super::fleet::{Dialled, PATIENCE};
use crate::cluster::{Cluster, Host, NodeName, SecretSource};
use crate::remote::secret_source;
use crate::remote::ssh::{ConnectError, Connector, client_config};
use crate::report::Console;

/// Completes the logins by the user's OpenSSH configuration, and tells what of it is left out. Gives the hosts that it
/// keeps from being connected to.
pub(super) async fn complete(cluster: &mut Cluster, console: &Console) -> BTreeMap<NodeName, ConnectError> {
    let logins: Vec<_> = (cluster.hosts.iter())
        .map(|host| (host.name.to_string(), host.ssh.clone()))
        .collect();
    let completing = client_config::complete(logins);
    tokio::pin!(completing);
    let mut said = tokio::time::interval(PATIENCE);
    said.tick().await;
    let mut completed = loop {
        tokio::select! {
            completed = &mut completing => break completed,
            _ = said.tick() => console.say("still asking ssh for its configuration of the hosts\n"),
        }
    };
    for (note, names) in &completed.notes {
        let whose = match names.len() {
            all if all == cluster.hosts.len() => "all hosts".to_owned(),
            _ => names.join(", "),
        };
        console.warn(&format!("{note} ({whose})"));
    }
    let mut forbidden = BTreeMap::new();
    for host in &mut cluster.hosts {
        match completed.logins.remove(host.name.as_str()) {
            Some(Ok(login)) => host.ssh = login,
            Some(Err(error)) => {
                forbidden.insert(host.name.clone(), error);
            }
            None => {}
        }
    }
    forbidden
}

/// Asks for the passphrases of encrypted keys that nobody else has, each once, and gives the hosts to connect to again.
pub(super) fn unlock_keys<'a>(
    cluster: &'a Cluster,
    sessions: &Dialled,
    connector: &Connector,
    asked: &mut BTreeSet<PathBuf>,
    console: &Console,
) -> Vec<&'a Host> {
    let locked = |host: &Host| match sessions.get(&host.name) {
        Some(Err(error)) => error.locked_keys().into_iter().map(Path::to_owned).collect(),
        _ => BTreeSet::new(),
    };
    let wanted: BTreeSet<PathBuf> = cluster.hosts.iter().flat_map(locked).collect();
    if !std::io::stdin().is_terminal() {
        // Without a terminal the errors say what to do.
        return Vec::new();
    }
    let mut opened = BTreeSet::new();
    for path in wanted {
        if asked.insert(path.clone()) && ask_passphrase(connector, &path, console) {
            opened.insert(path);
        }
    }
    let hosts = cluster.hosts.iter();
    hosts.filter(|host| !locked(host).is_disjoint(&opened)).collect()
}

/// As often as `ssh` asks. An empty answer leaves the key out.
fn ask_passphrase(connector: &Connector, path: &Path, console: &Console) -> bool {
    for _ in 0..3 {
        let prompt = format!("Passphrase for {}", path.display());
        let Ok(passphrase) = secret_source::resolve(&SecretSource::Prompt, &prompt) else {
            return false;
        };
        match connector.unlock(path, &passphrase) {
            Ok(()) => return true,
            Err(why) => console.say(&format!("{} {why}\n", path.display())),
        }
    }
    false
}
