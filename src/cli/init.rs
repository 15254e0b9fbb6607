//! `k8sup init`: an inventory to begin with, of what the person says and what the hosts are.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use super::Ended;
use super::args::{Init as Args, NewHost};
use super::fleet::{self, Fleet};
use crate::cluster::{NodeName, Role};
use crate::concern::names;
use crate::exit;
use crate::facts::{HostFacts, Observation};
use crate::render::starter::{self, Starter, StarterHost};
use crate::report::Console;
use crate::report::text::clean;

/// Why there is no inventory.
#[derive(Debug, thiserror::Error)]
enum InitError {
    #[error("no controller is named, and there is no terminal to ask on")]
    NoController,
    #[error("{0} is there already")]
    There(PathBuf),
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
}

/// Runs the command.
pub async fn run(args: &Args, console: &Console) -> Ended {
    let file = &args.target.inventory;
    let refuse = |error: &InitError, hint: &str| {
        console.fail(error, Some(hint));
        exit::USAGE
    };
    if file.exists() && !args.force {
        let hint = "name another file, or add --force: the old one is kept beside it";
        return Err(refuse(&InitError::There(file.clone()), hint));
    }
    let mut args = args.clone();
    if args.controllers.is_empty() {
        if !io::stdin().is_terminal() {
            let hint = "for example: k8sup init homelab.yaml --user pi --load-balancer 192.168.7.140 --controller \
                        192.168.7.201,192.168.7.202,192.168.7.203 --worker 192.168.7.204";
            return Err(refuse(&InitError::NoController, hint));
        }
        ask(&mut args).map_err(|error| {
            console.fail(&error, None);
            exit::USAGE
        })?;
    }
    let mut starter = described(&args);
    let text = rendered(&starter, console)?;
    // What the person said is judged before anybody is connected to.
    let cluster = fleet::understood(&text, &args.target, console)?;
    let mut unseen = 0;
    if !args.no_probe {
        let fleet = fleet::connect(cluster, &args.target, console).await?;
        unseen = look(&fleet, &mut starter, console).await;
        fleet.close().await;
    }
    let mut text = rendered(&starter, console)?;
    if !args.no_probe && !fleet::is_understood(&text, &args.target) {
        // A host calls itself what no Node can be called: then the names are ours.
        for (host, plain) in starter.hosts.iter_mut().zip(described(&args).hosts) {
            host.name = plain.name;
        }
        text = rendered(&starter, console)?;
    }
    write(file, &text, args.force).map_err(|source| {
        let path = file.clone();
        console.fail(&InitError::Write { path, source }, None);
        exit::USAGE
    })?;
    console.say(&format!(
        "Written: {}. Look through it, then: k8sup check {}\n",
        file.display(),
        args.target.typed()
    ));
    Ok(if unseen > 0 { exit::PARTIAL } else { exit::DONE })
}

fn rendered(starter: &Starter, console: &Console) -> Result<String, u8> {
    starter::inventory(starter).map_err(|error| super::plan::unexpected(console, &error))
}

/// Asks for what is needed, on the terminal.
fn ask(args: &mut Args) -> io::Result<()> {
    let hosts = |question: &str| {
        loop {
            let answer = line(question)?;
            let words = answer.split([',', ' ']).filter(|word| !word.is_empty());
            match words.map(NewHost::parse).collect::<Result<Vec<_>, _>>() {
                Ok(hosts) => return Ok::<_, io::Error>(hosts),
                Err(wrong) => say(&format!("{wrong}\n"))?,
            }
        }
    };
    let name = line(&format!("Name of the cluster [{}]: ", args.name))?;
    if !name.is_empty() {
        args.name = name;
    }
    if args.user.is_none() {
        args.user = Some(line("Login name on the hosts [your own]: ")?).filter(|user| !user.is_empty());
    }
    say("Hosts are addresses, or NAME=ADDRESS, with spaces or commas between them.\n")?;
    while args.controllers.is_empty() {
        args.controllers = hosts("Controllers (1, 3 or 5): ")?;
    }
    if args.controllers.len() > 1 && args.load_balancers.is_empty() {
        args.load_balancers = hosts("Load balancer: ")?;
    }
    if args.workers.is_empty() {
        args.workers = hosts("Workers [none]: ")?;
    }
    Ok(())
}

fn say(text: &str) -> io::Result<()> {
    let mut out = io::stderr().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// One line from the terminal; its end is an error, so that no question is asked for ever.
fn line(question: &str) -> io::Result<String> {
    say(question)?;
    let mut answer = String::new();
    if io::stdin().lock().read_line(&mut answer)? == 0 {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "there was no answer, so nothing is written",
        ));
    }
    Ok(answer.trim().to_owned())
}

/// What the person has said.
fn described(args: &Args) -> Starter {
    let groups = [
        (Role::LoadBalancer, "lb", &args.load_balancers),
        (Role::Controller, "controller", &args.controllers),
        (Role::Worker, "worker", &args.workers),
    ];
    let hosts = groups.into_iter().flat_map(|(role, prefix, hosts)| {
        (0..).zip(hosts).map(move |(number, host): (usize, _)| StarterHost {
            role,
            name: host.name.clone().unwrap_or_else(|| format!("{prefix}-{number}")),
            address: host.address.clone(),
            seen: None,
            asks_password: false,
            has_stub: false,
        })
    });
    Starter {
        file: args.target.typed(),
        name: args.name.clone(),
        kubernetes: args.kubernetes.clone(),
        pod_cidr: args.pod_cidr.clone(),
        endpoint: args.endpoint.clone(),
        user: args.user.clone(),
        key: args.key.clone(),
        hosts: hosts.collect(),
    }
}

/// Fills in what the hosts are; gives how many could not be looked at.
async fn look(fleet: &Fleet, starter: &mut Starter, console: &Console) -> usize {
    let facts = fleet.look().await;
    let mut unseen = 0;
    let mut own_names = Vec::new();
    for host in &mut starter.hosts {
        let name = NodeName::parse(&host.name);
        match name.ok().and_then(|name| facts.hosts.get(&name).cloned()) {
            Some(Observation::Seen(seen)) => {
                host.seen = Some(in_words(&seen));
                host.has_stub = names::resolves_in_a_loop(&fleet.cluster, &seen);
                own_names.push(seen.hostname.to_lowercase());
            }
            Some(Observation::Unreachable(why)) => {
                host.asks_password = why.reason.contains("sudo") && why.reason.contains("password");
                host.seen = Some("not looked at".to_owned());
                console.warn(&format!("{}: {}", host.name, why.reason));
                unseen += 1;
            }
            None => {}
        }
    }
    // Machines that were named with care keep their names; three that are all called raspberrypi do not.
    let told: BTreeSet<&String> = own_names.iter().collect();
    let given = starter.hosts.iter().any(|host| !is_numbered(&host.name));
    if unseen == 0
        && !given
        && told.len() == starter.hosts.len()
        && own_names.iter().all(|name| NodeName::parse(name).is_ok())
    {
        for (host, name) in starter.hosts.iter_mut().zip(own_names) {
            host.name = name;
        }
    }
    unseen
}

/// It is one of the names that [`described`] gives.
fn is_numbered(name: &str) -> bool {
    let parts = name.rsplit_once('-');
    parts.is_some_and(|(prefix, number)| {
        ["lb", "controller", "worker"].contains(&prefix) && number.bytes().all(|b| b.is_ascii_digit())
    })
}

fn in_words(facts: &HostFacts) -> String {
    let architecture = facts.architecture.present().map_or("unknown processor", String::as_str);
    let tenths = facts.memory_kib * 10 / 1024 / 1024;
    let cluster = if facts.kube.is_bare() {
        ""
    } else {
        "; has parts of a cluster"
    };
    clean(&format!(
        "{}, {architecture}, {} processors, {}.{} GB{cluster}",
        facts.os.pretty,
        facts.cpus,
        tenths / 10,
        tenths % 10
    ))
}

/// Writes the file; one that was there is kept as FILE.old, FILE.old2 and so on.
fn write(file: &Path, text: &str, force: bool) -> io::Result<()> {
    if force && file.exists() {
        let kept = |number: u32| {
            let mut old = file.as_os_str().to_owned();
            old.push(if number == 1 {
                ".old".to_owned()
            } else {
                format!(".old{number}")
            });
            PathBuf::from(old)
        };
        let free = (1..1000).map(kept).find(|old| !old.exists());
        std::fs::rename(
            file,
            free.ok_or_else(|| io::Error::other("too many old ones are beside it"))?,
        )?;
    }
    let mut new = OpenOptions::new().write(true).create_new(true).open(file)?;
    new.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::args::{Cli, Command};

    fn args(line: &str) -> Args {
        let words = "k8sup init homelab.yaml".split(' ').chain(line.split_whitespace());
        let Command::Init(args) = Cli::parse_from(words).command else {
            panic!("not init")
        };
        args
    }

    #[test]
    fn hosts_are_named_or_numbered() {
        let starter = described(&args(
            "--controller cp=10.0.0.1,10.0.0.2 --worker 10.0.0.3 --load-balancer 10.0.0.9",
        ));
        let hosts: Vec<String> = starter
            .hosts
            .iter()
            .map(|host| format!("{} {} {}", host.role, host.name, host.address))
            .collect();
        let wanted = [
            "load balancer lb-0 10.0.0.9",
            "controller cp 10.0.0.1",
            "controller controller-1 10.0.0.2",
            "worker worker-0 10.0.0.3",
        ];
        assert_eq!(hosts, wanted);
        assert!(is_numbered("controller-1") && !is_numbered("cp") && !is_numbered("pi-1"));
    }

    #[test]
    fn a_file_that_is_there_is_never_lost() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("homelab.yaml");
        write(&file, "one", false).unwrap();
        assert!(write(&file, "two", false).is_err());
        write(&file, "two", true).unwrap();
        write(&file, "three", true).unwrap();
        for (name, text) in [
            ("homelab.yaml.old", "one"),
            ("homelab.yaml.old2", "two"),
            ("homelab.yaml", "three"),
        ] {
            assert_eq!(std::fs::read_to_string(folder.path().join(name)).unwrap(), text);
        }
    }
}
