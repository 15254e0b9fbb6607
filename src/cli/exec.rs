//! `k8sup exec`: one command on many hosts, side by side.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::Ended;
use super::args::Exec as Args;
use super::fleet;
use super::plan::print;
use crate::cluster::{Cluster, Host, NodeName, Role};
use crate::exit;
use crate::remote::{Command, Ending, Line, Output, RunError, Session, Stream, quote};
use crate::report::Console;
use crate::report::text::clean;

/// Runs the command; ends with the highest exit status of all hosts, or 4 when some could not be asked.
pub async fn run(args: &Args, console: &Console) -> Ended {
    let mut cluster = fleet::load(&args.target, console)?;
    fleet::named_hosts(&cluster, &args.hosts, console)?;
    cluster.hosts.retain(|host| is_meant(args, host));
    if cluster.hosts.is_empty() {
        console.fail(
            &std::io::Error::other("no host of the inventory is meant"),
            Some("see --role and --host"),
        );
        return Err(exit::USAGE);
    }
    let width = cluster
        .hosts
        .iter()
        .map(|host| host.name.as_str().len())
        .max()
        .unwrap_or(0);
    let fleet = fleet::connect(cluster, &args.target, console).await?;
    let (lines, received) = mpsc::channel::<(NodeName, Line)>(256);
    let mut running = JoinSet::new();
    let limit = Arc::new(Semaphore::new(usize::from(args.target.parallel)));
    let mut answers: BTreeMap<NodeName, Result<Output, String>> = BTreeMap::new();
    for (name, session) in &fleet.sessions {
        match session {
            Ok(session) => {
                let (name, session, command, lines, limit) = (
                    name.clone(),
                    session.clone(),
                    command(args),
                    (!args.grouped).then(|| lines.clone()),
                    Arc::clone(&limit),
                );
                running.spawn(async move {
                    let _permit = limit.acquire().await;
                    let answer = ask(&name, &session, &command, lines).await;
                    (name, answer.map_err(|error| error.to_string()))
                });
            }
            Err(why) => {
                answers.insert(name.clone(), Err(why.reason.clone()));
            }
        }
    }
    drop(lines);
    let shown = show(received, width, console);
    let gathered = async {
        while let Some(done) = running.join_next().await {
            if let Ok((name, answer)) = done {
                answers.insert(name, answer);
            }
        }
    };
    let (shown, ()) = tokio::join!(shown, gathered);
    fleet.close().await;
    shown?;
    if args.grouped {
        grouped(&fleet.cluster, &answers, console)?;
    }
    Ok(verdict(&fleet.cluster, &answers, console))
}

fn is_meant(args: &Args, host: &Host) -> bool {
    let role = args.roles.is_empty() || args.roles.iter().any(|role| Role::from(*role) == host.role);
    role && (args.hosts.is_empty() || args.hosts.contains(&host.name))
}

/// One word is a line for the shell; several are a program and its arguments, as they are.
fn command(args: &Args) -> Command {
    let script = match args.command.as_slice() {
        [line] => line.clone(),
        words => words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" "),
    };
    Command {
        name: "exec".to_owned(),
        script,
        params: Vec::new(),
        root: args.root,
        timeout: Duration::from_secs(args.timeout),
    }
}

async fn ask(
    name: &NodeName,
    session: &Session,
    command: &Command,
    lines: Option<mpsc::Sender<(NodeName, Line)>>,
) -> Result<Output, RunError> {
    let Some(lines) = lines else {
        return session.run(command, None).await;
    };
    let (sender, mut receiver) = mpsc::channel(64);
    let name = name.clone();
    let forward = async move {
        while let Some(line) = receiver.recv().await {
            let _ = lines.send((name.clone(), line)).await;
        }
    };
    let run = async {
        let answer = session.run(command, Some(&sender)).await;
        drop(sender);
        answer
    };
    tokio::join!(run, forward).0
}

/// Lines as they come, each behind its host: what hosts print on standard output goes there.
async fn show(mut lines: mpsc::Receiver<(NodeName, Line)>, width: usize, console: &Console) -> Result<(), u8> {
    while let Some((host, line)) = lines.recv().await {
        let text = format!("{:width$} │ {}\n", host.as_str(), clean(&line.text));
        match line.stream {
            Stream::Stdout => print(console, &text)?,
            Stream::Stderr => console.say(&text),
        }
    }
    Ok(())
}

/// Host after host, in the inventory's order.
fn grouped(
    cluster: &Cluster,
    answers: &BTreeMap<NodeName, Result<Output, String>>,
    console: &Console,
) -> Result<(), u8> {
    for host in &cluster.hosts {
        let Some(Ok(output)) = answers.get(&host.name) else {
            continue;
        };
        print(console, &format!("── {}\n", host.name))?;
        for line in output.stdout.lines() {
            print(console, &format!("{}\n", clean(line)))?;
        }
        for line in output.stderr.lines() {
            console.say(&format!("{}\n", clean(line)));
        }
    }
    Ok(())
}

fn verdict(cluster: &Cluster, answers: &BTreeMap<NodeName, Result<Output, String>>, console: &Console) -> u8 {
    let mut worst = exit::DONE;
    for host in &cluster.hosts {
        let code = match answers.get(&host.name) {
            Some(Ok(output)) => match output.ending {
                Ending::Status(status) => u8::try_from(status).unwrap_or(u8::MAX),
                // As shells say it.
                Ending::Signal(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
            },
            Some(Err(why)) => {
                console.warn(&format!("{}: {why}", host.name));
                worst = worst.max(exit::UNREACHABLE);
                continue;
            }
            None => exit::UNEXPECTED,
        };
        if code != 0 {
            console.warn(&format!("{}: ended with {code}", host.name));
        }
        worst = worst.max(code);
    }
    worst
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::args::{self, Cli};
    use crate::cluster::sample;

    fn exec(line: &[&str]) -> Args {
        let args::Command::Exec(args) = Cli::parse_from([&["k8sup", "exec", "lab.yaml"], line].concat()).command else {
            panic!("not exec")
        };
        args
    }

    #[test]
    fn one_word_is_a_line_and_several_are_a_program() {
        assert_eq!(command(&exec(&["--", "df -h | tail -n 1"])).script, "df -h | tail -n 1");
        assert_eq!(
            command(&exec(&["--", "echo", "a b", "$HOME"])).script,
            "'echo' 'a b' '$HOME'"
        );
        assert!(command(&exec(&["--root", "--", "id"])).root);
    }

    #[test]
    fn hosts_are_meant_by_role_and_by_name() {
        let cluster = sample::cluster(
            "
cluster: { name: homelab, kubernetes: v1.34.4 }
loadBalancers: { lb-0: 192.168.7.140 }
controllers: { cp1: 192.168.7.201 }
workers: { w1: 192.168.7.204, w2: 192.168.7.205 }
",
        );
        let meant = |line: &[&str]| {
            let args = exec(line);
            let hosts = cluster.hosts.iter().filter(|host| is_meant(&args, host));
            hosts.map(|host| host.name.as_str()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(meant(&["--", "id"]), "lb-0 cp1 w1 w2");
        assert_eq!(meant(&["--role", "worker", "--", "id"]), "w1 w2");
        assert_eq!(meant(&["--role", "controller,load-balancer", "--", "id"]), "lb-0 cp1");
        assert_eq!(meant(&["--role", "worker", "--host", "w2", "--", "id"]), "w2");
    }

    #[test]
    fn the_worst_ending_is_the_commands() {
        let cluster = sample::cluster(
            "
cluster: { name: homelab, kubernetes: v1.34.4 }
controllers: { cp1: 192.168.7.201 }
workers: { w1: 192.168.7.204 }
",
        );
        let console = Console::new(crate::report::Settings::decide(
            crate::report::LogFormat::Text,
            crate::report::ColorWhen::Never,
            0,
        ));
        let output = |ending| {
            Ok(Output {
                ending,
                stdout: String::new(),
                stderr: String::new(),
            })
        };
        let verdict = |cp1, w1| {
            let names = ["cp1", "w1"].map(|name| NodeName::parse(name).unwrap());
            super::verdict(&cluster, &names.into_iter().zip([cp1, w1]).collect(), &console)
        };
        let well = || output(Ending::Status(0));
        assert_eq!(verdict(well(), well()), 0);
        assert_eq!(verdict(output(Ending::Status(3)), well()), 3);
        assert_eq!(verdict(well(), output(Ending::Signal(9))), 137);
        assert_eq!(verdict(well(), Err("no answer".to_owned())), exit::UNREACHABLE);
        assert_eq!(verdict(output(Ending::Status(9)), Err("no answer".to_owned())), 9);
    }
}
