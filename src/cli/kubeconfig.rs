//! `k8sup kubeconfig`: the cluster's kubeconfig on standard output, in a file, or merged.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Ended;
use super::args::Kubeconfig as Args;
use super::fleet::{self, home};
use super::plan::print;
use crate::cluster::{Cluster, Role};
use crate::exit;
use crate::kubeconfig::{KubeconfigError, merge_into, standalone, write_to};
use crate::remote::{Command, Session};
use crate::report::Console;
use crate::secret::Secret;

/// Why there is no kubeconfig.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No controller gave it.
    #[error("no controller has the cluster's admin.conf: {0}")]
    Nowhere(String),
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] KubeconfigError),
    /// There is no home to write it to.
    #[error("HOME is not set, so there is no place for a kubeconfig")]
    NoHome,
}

/// Runs the command.
pub async fn run(args: &Args, console: &Console) -> Ended {
    let cluster = fleet::load(&args.target, console)?;
    let fleet = fleet::connect(cluster, &args.target, console).await?;
    let mut hint = None;
    let mut reason = "none can be reached".to_owned();
    let mut admin = None;
    for host in fleet.cluster.role(Role::Controller) {
        match fleet.sessions.get(&host.name) {
            Some(Ok(session)) => match fetch(session).await {
                Ok(text) => {
                    admin = Some(text);
                    break;
                }
                Err(why) => reason = format!("{}: {why}", host.name),
            },
            Some(Err(why)) => {
                reason = format!("{}: {}", host.name, why.reason);
                hint = Some(why.what_to_do());
            }
            None => {}
        }
    }
    fleet.close().await;
    let unreachable = fleet.reachable().next().is_none();
    let Some(admin) = admin else {
        console.fail(&FetchError::Nowhere(reason), hint);
        return Err(if unreachable { exit::UNREACHABLE } else { exit::FAILED });
    };
    deliver(args, &fleet.cluster, &admin, console).map_err(|error| {
        console.fail(&error, None);
        exit::FAILED
    })?
}

fn deliver(args: &Args, cluster: &Cluster, admin: &Secret, console: &Console) -> Result<Ended, FetchError> {
    let name = args.context.as_deref().unwrap_or(&cluster.name);
    let server = server(cluster);
    if args.merge {
        let path = match &args.output {
            Some(path) => path.clone(),
            None => own_kubeconfig().ok_or(FetchError::NoHome)?,
        };
        let merged = merge_into(&path, name, &server, admin)?;
        console.say(&format!("Context {name} is in {} and current.\n", path.display()));
        if let Some(backup) = merged.backup {
            console.say(&format!(
                "It replaces another cluster of that name; the file from before is {}.\n",
                backup.display()
            ));
        }
    } else if let Some(path) = &args.output {
        write_to(path, name, &server, admin)?;
        console.say(&format!("Written to {}.\n", path.display()));
    } else {
        return Ok(print(console, standalone(name, &server, admin)?.reveal()).map(|()| exit::DONE));
    }
    Ok(Ok(exit::DONE))
}

/// Keeps the kubeconfig of a cluster that was just applied, in a file of its own.
///
/// # Errors
/// When the controller does not give it or it cannot be written.
pub async fn keep(cluster: &Cluster, session: &Session) -> Result<PathBuf, FetchError> {
    let admin = fetch(session).await.map_err(FetchError::Nowhere)?;
    let path = home()
        .ok_or(FetchError::NoHome)?
        .join(".kube")
        .join(format!("k8sup-{}.yaml", cluster.name));
    write_to(&path, &cluster.name, &server(cluster), &admin)?;
    Ok(path)
}

fn server(cluster: &Cluster) -> String {
    format!("https://{}", cluster.endpoint)
}

/// kubectl's own rule: the first file of KUBECONFIG, else ~/.kube/config.
fn own_kubeconfig() -> Option<PathBuf> {
    let listed =
        std::env::var_os("KUBECONFIG").and_then(|list| std::env::split_paths(&list).find(|path| path != Path::new("")));
    listed.or_else(|| Some(home()?.join(".kube/config")))
}

async fn fetch(session: &Session) -> Result<Secret, String> {
    let command = Command {
        name: "kubeconfig".to_owned(),
        script: "cat /etc/kubernetes/admin.conf".to_owned(),
        params: Vec::new(),
        root: true,
        timeout: Duration::from_secs(20),
    };
    match session.run(&command, None).await {
        Ok(output) if output.ok() => Ok(Secret::new(output.stdout)),
        Ok(output) => Err(output.stderr.trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
