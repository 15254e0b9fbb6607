//! Proves ways through the network with real packets: throwaway listeners on the hosts, and one command on each host
//! that tries all its ways at once.
//!
//! Three rounds, each one command a host and all hosts side by side: listen, prove, end the listeners. So it takes no
//! longer with more hosts, and a server that allows one session at a time is fine. A listener that is not ended ends
//! itself: with its connection, or after [`LIFE`].

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::Unreachable;
use super::paths::{Answers, Listening, Outcome, Part, Path, Paths, Port, Proof, Protocol, Target, outcomes};
use crate::cluster::NodeName;
use crate::remote::{Command, Param, Session};

const LISTEN: &str = include_str!("../../templates/listen.sh");
const PROVE: &str = include_str!("../../templates/prove.sh");
const END: &str = include_str!("../../templates/listen_end.sh");

/// A listener lives no longer.
const LIFE: Duration = Duration::from_secs(30);
/// How long a target may stay silent: lost packets are sent again in that time.
const PATIENCE: Duration = Duration::from_secs(3);
/// No command here takes longer on a host that works.
const LIMIT: Duration = Duration::from_secs(20);

type Sessions = BTreeMap<NodeName, Result<Session, Unreachable>>;
type Said = BTreeMap<NodeName, Result<String, String>>;

/// Tries everything that the proof asks for. Nothing here fails: what could not be tried is told.
pub async fn prove(proof: &Proof, sessions: &Sessions) -> Paths {
    if proof.parts.is_empty() {
        return Paths::default();
    }
    let begin = Instant::now();
    let nonce = format!("{:032x}", rand::random::<u128>());
    let peers: Vec<String> = proof.parts.values().map(|part| part.address.to_string()).collect();
    let listeners = listening(proof).filter_map(|(host, part)| Some((host, listen(&nonce, &peers, part)?)));
    let heard = ask(listeners.collect(), sessions).await;

    let mut paths = Paths::default();
    let mut listening = BTreeMap::new();
    for (host, said) in heard {
        match said {
            Ok(text) => {
                listening.insert(host, Listening::parse(&text));
            }
            Err(reason) => {
                paths.mute.insert(host, format!("nothing could listen there: {reason}"));
            }
        }
    }
    try_all(proof, &listening, &nonce, sessions, &mut paths).await;
    if begin.elapsed() >= LIFE {
        // Listeners may have been gone when somebody asked.
        for path in &mut paths.tried {
            if path.outcome != Outcome::Open && path.target.answers == Answers::Listener {
                path.outcome = Outcome::Untold("the hosts took too long to try it".to_owned());
            }
        }
    }

    let ends = listening.iter().filter_map(|(host, listening)| {
        let (pid, start) = listening.process.as_ref()?;
        let params = [("PID", pid.clone()), ("START", start.clone())];
        Some((host.clone(), command("paths/end", END, params)))
    });
    for (host, said) in ask(ends.collect(), sessions).await {
        if let Err(reason) = said {
            tracing::warn!("{host}: the listener was not ended, and ends itself: {reason}");
        }
    }
    paths
}

fn listening(proof: &Proof) -> impl Iterator<Item = (NodeName, &Part)> {
    let parts = proof.parts.iter().filter(|(_, part)| !part.listens.is_empty());
    parts.map(|(host, part)| (host.clone(), part))
}

fn listen(nonce: &str, peers: &[String], part: &Part) -> Option<Command> {
    let ports: Vec<String> = part
        .listens
        .iter()
        .map(|port| format!("{} {}", port.protocol, port.number))
        .collect();
    let params = [
        ("NONCE", nonce.to_owned()),
        ("ADDRESS", part.address.to_string()),
        ("LIFE", LIFE.as_secs().to_string()),
        ("PEERS", peers.join("\n")),
        ("PORTS", ports.join("\n")),
    ];
    (!ports.is_empty()).then(|| command("paths/listen", LISTEN, params))
}

/// Each host tries its ways, as far as somebody is there to answer.
async fn try_all(
    proof: &Proof,
    listening: &BTreeMap<NodeName, Listening>,
    nonce: &str,
    sessions: &Sessions,
    paths: &mut Paths,
) {
    let mut asked = BTreeMap::new();
    let mut lines: BTreeMap<NodeName, BTreeSet<String>> = BTreeMap::new();
    for (host, part) in &proof.parts {
        for target in &part.targets {
            match answering(target, listening, &paths.mute) {
                Ok(answers) => {
                    let line = line(target, answers);
                    lines.entry(host.clone()).or_default().insert(line);
                    let target = Target {
                        answers,
                        ..target.clone()
                    };
                    asked.entry(host.clone()).or_insert_with(Vec::new).push(target);
                }
                Err(reason) => paths.tried.push(Path {
                    from: host.clone(),
                    target: target.clone(),
                    outcome: Outcome::Untold(reason),
                }),
            }
        }
    }
    let commands = lines.into_iter().filter_map(|(host, lines)| {
        let targets: Vec<String> = lines.into_iter().collect();
        let params = [
            ("NONCE", nonce.to_owned()),
            ("ADDRESS", proof.parts.get(&host)?.address.to_string()),
            ("SECONDS_EACH", PATIENCE.as_secs().to_string()),
            ("TARGETS", targets.join("\n")),
        ];
        Some((host, command("paths/prove", PROVE, params)))
    });
    let said = ask(commands.collect(), sessions).await;
    for (from, targets) in asked {
        let found = match said.get(&from) {
            Some(Ok(text)) => outcomes(text, |address, port| largest(&targets, address, port))
                .ok_or_else(|| "its answer was cut short".to_owned()),
            Some(Err(reason)) => Err(reason.clone()),
            None => Err("it was not asked".to_owned()),
        };
        let found = match found {
            Ok(found) => found,
            Err(reason) => {
                paths.mute.insert(from, format!("it could try nothing: {reason}"));
                continue;
            }
        };
        for target in targets {
            let outcome = found.get(&(target.address, target.port)).cloned();
            let outcome = outcome.unwrap_or_else(|| Outcome::Untold("it said nothing about it".to_owned()));
            let from = from.clone();
            paths.tried.push(Path { from, target, outcome });
        }
    }
}

/// Who answers at the target, as it turned out; or why nobody can be asked.
fn answering(
    target: &Target,
    listening: &BTreeMap<NodeName, Listening>,
    mute: &BTreeMap<NodeName, String>,
) -> Result<Answers, String> {
    let (Answers::Listener, Some(to)) = (target.answers, &target.to) else {
        return Ok(target.answers);
    };
    let Some(there) = listening.get(to) else {
        let why = mute.get(to).map_or("nothing listens there", String::as_str);
        return Err(why.to_owned());
    };
    match target.port.protocol {
        _ if there.bound.contains(&target.port) => Ok(Answers::Listener),
        Protocol::Tcp if there.taken.contains(&target.port) => Ok(Answers::Program),
        // What has it would not answer.
        Protocol::Udp if there.taken.contains(&target.port) => Err("the port is in use there".to_owned()),
        _ => Err(match there.failed.get(&target.port) {
            Some(reason) => format!("nothing can listen there: {reason}"),
            None => "nothing listens there".to_owned(),
        }),
    }
}

fn line(target: &Target, answers: Answers) -> String {
    let Port { protocol, number } = target.port;
    let how = match (protocol, answers) {
        (Protocol::Udp, _) => target.size.to_string(),
        (Protocol::Tcp, Answers::Listener) => "ours".to_owned(),
        (Protocol::Tcp, Answers::Program | Answers::Anybody) => "any".to_owned(),
    };
    format!("{protocol} {} {number} {how}", target.address)
}

fn largest(targets: &[Target], address: Ipv4Addr, port: Port) -> u32 {
    let at = targets
        .iter()
        .filter(|target| (target.address, target.port) == (address, port));
    at.map(|target| target.size).max().unwrap_or_default()
}

/// One command a host, side by side.
async fn ask(commands: BTreeMap<NodeName, Command>, sessions: &Sessions) -> Said {
    let mut said = Said::new();
    let mut asked = JoinSet::new();
    for (host, command) in commands {
        let Some(Ok(session)) = sessions.get(&host) else {
            said.insert(host, Err("there is no connection to it".to_owned()));
            continue;
        };
        let session = session.clone();
        asked.spawn(async move {
            let output = match session.run(&command, None).await {
                Ok(output) if output.ok() => Ok(output.stdout),
                Ok(output) => Err(super::observe::tail(&output.stderr)),
                Err(error) => Err(error.to_string()),
            };
            (host, output)
        });
    }
    while let Some(answer) = asked.join_next().await {
        if let Ok((host, output)) = answer {
            said.insert(host, output);
        }
    }
    said
}

fn command<const N: usize>(name: &str, script: &str, params: [(&str, String); N]) -> Command {
    let params = params.into_iter();
    Command {
        name: name.to_owned(),
        script: script.to_owned(),
        params: params
            .map(|(name, value)| (name.to_owned(), Param::Plain(value)))
            .collect(),
        root: true,
        timeout: LIMIT,
    }
}
