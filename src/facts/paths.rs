//! Which ways through the network were proven with real packets: what is to be tried, and what came of it.
//!
//! `plan::paths` says what is to be tried, [`super::prove`] tries it, `plan::fitness` judges.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;

use crate::cluster::NodeName;

/// What was proven; empty where nobody had to prove anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Paths {
    /// Every way that was to be tried.
    pub tried: Vec<Path>,
    /// Hosts that could try nothing, or on which nobody could listen, and why.
    pub mute: BTreeMap<NodeName, String>,
}

/// A way that was to be tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// Who tried.
    pub from: NodeName,
    /// Where to.
    pub target: Target,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of trying a way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is open; for UDP also for the largest packet.
    Open,
    /// It is open, but packets larger than so many bytes, IP header included, do not come back.
    Narrow(u32),
    /// Refused: by the host where nobody listens, by a firewall where somebody does.
    Refused,
    /// No answer.
    Silent,
    /// Somebody answered who is not the listener.
    Stranger,
    /// The kernel's own words: `No route to host`.
    Failed(String),
    /// Nobody could tell, and why.
    Untold(String),
}

/// What is to be tried, by host; empty when nothing is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proof {
    /// Hosts that listen, try, or both.
    pub parts: BTreeMap<NodeName, Part>,
}

/// A host's part in the proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its address in the cluster: where it listens, and from where it asks.
    pub address: Ipv4Addr,
    /// Where it listens for the time of the proof, so that others can try to get there.
    pub listens: BTreeSet<Port>,
    /// What it tries to reach.
    pub targets: Vec<Target>,
}

/// One port of one host, as another one wants to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// What the way is for.
    pub purpose: Purpose,
    /// The host; `None`: an endpoint that is none of the inventory's hosts.
    pub to: Option<NodeName>,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its port.
    pub port: Port,
    /// Who is to answer there.
    pub answers: Answers,
    /// Size of the largest packet that has to get there and back, IP header included; for UDP only.
    pub size: u32,
}

/// What a way is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Nodes call the API.
    Endpoint,
    /// A load balancer hands calls on to an API server.
    Backend,
    /// Controllers call each other's API server and etcd.
    ControlPlane,
    /// Controllers call kubelets.
    Kubelet,
    /// Flannel carries the pods' packets.
    PodNetwork,
}

/// Who is to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answers {
    /// A listener that is there for the time of the proof; a program, where one has the port already.
    Listener,
    /// A program that has the port already.
    Program,
    /// Nobody knows: to be refused proves the way, too.
    Anybody,
}

/// A port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port {
    /// Its protocol.
    pub protocol: Protocol,
    /// Its number.
    pub number: u16,
}

/// A protocol with ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Port {
    /// A TCP port.
    #[must_use]
    pub const fn tcp(number: u16) -> Self {
        let protocol = Protocol::Tcp;
        Self { protocol, number }
    }

    /// A UDP port.
    #[must_use]
    pub const fn udp(number: u16) -> Self {
        let protocol = Protocol::Udp;
        Self { protocol, number }
    }

    /// `tcp 6443`.
    fn parse(protocol: &str, number: &str) -> Option<Self> {
        let number = number.parse().ok()?;
        match protocol {
            "tcp" => Some(Self::tcp(number)),
            "udp" => Some(Self::udp(number)),
            _ => None,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        })
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.protocol)
    }
}

/// What `templates/listen.sh` said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listening {
    /// Ports on which it listens.
    pub bound: BTreeSet<Port>,
    /// Ports that a program has.
    pub taken: BTreeSet<Port>,
    /// Ports on which nobody can listen, and why.
    pub failed: BTreeMap<Port, String>,
    /// Process id of the listener, and when it was started.
    pub process: Option<(String, String)>,
}

impl Listening {
    /// Reads it.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut listening = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            let (word, one, two, rest) = match *words {
                [word, one, two] => (word, one, two, ""),
                [word, one, two, rest] => (word, one, two, rest),
                _ => continue,
            };
            match (word, Port::parse(one, two)) {
                ("listener", None) => listening.process = Some((one.to_owned(), two.to_owned())),
                ("bound", Some(port)) => {
                    listening.bound.insert(port);
                }
                ("taken", Some(port)) => {
                    listening.taken.insert(port);
                }
                ("failed", Some(port)) => {
                    listening.failed.insert(port, rest.to_owned());
                }
                _ => {}
            }
        }
        listening
    }
}

/// What `templates/prove.sh` said, by address and port; `None` where its text was cut short.
#[must_use]
pub fn outcomes(text: &str, size: impl Fn(Ipv4Addr, Port) -> u32) -> Option<BTreeMap<(Ipv4Addr, Port), Outcome>> {
    let mut outcomes = BTreeMap::new();
    for line in text.lines() {
        if line == "done" {
            return Some(outcomes);
        }
        let mut words = line.splitn(5, ' ');
        let (Some(protocol), Some(address), Some(number), Some(word)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let (Some(port), Ok(address)) = (Port::parse(protocol, number), address.parse()) else {
            continue;
        };
        let rest = words.next().unwrap_or_default();
        let outcome = match word {
            "open" => match (port.protocol, rest.parse()) {
                (Protocol::Udp, Ok(passes)) if passes < size(address, port) => Outcome::Narrow(passes),
                _ => Outcome::Open,
            },
            "refused" => Outcome::Refused,
            "silent" => Outcome::Silent,
            "stranger" => Outcome::Stranger,
            "failed" => Outcome::Failed(rest.to_owned()),
            _ => continue,
        };
        outcomes.insert((address, port), outcome);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_listener_says() {
        let said = "bound tcp 6443\ntaken tcp 10250 Address already in use\nfailed udp 8472 Cannot assign requested address\n\
                    bound udp nonsense\nlistener 4711 3645483\n";
        let heard = Listening::parse(said);
        assert_eq!(heard.bound, BTreeSet::from([Port::tcp(6443)]));
        assert_eq!(heard.taken, BTreeSet::from([Port::tcp(10250)]));
        assert_eq!(heard.failed[&Port::udp(8472)], "Cannot assign requested address");
        assert_eq!(heard.process, Some(("4711".to_owned(), "3645483".to_owned())));
        assert_eq!(Listening::parse(""), Listening::default());
    }

    #[test]
    fn what_the_prover_says() {
        let said = "tcp 10.0.0.1 6443 open\ntcp 10.0.0.2 6443 refused\ntcp 10.0.0.3 6443 silent\n\
                    tcp 10.0.0.4 6443 stranger\ntcp 10.0.0.5 6443 failed No route to host\n\
                    udp 10.0.0.1 8472 open 1500\nudp 10.0.0.2 8472 open 1420\nudp 10.0.0.3 8472 silent\nsctp 10.0.0.1 1 open\n";
        assert_eq!(outcomes(said, |_, _| 1500), None, "it was cut short");
        let outcomes = outcomes(&format!("{said}done\n"), |_, _| 1500).unwrap();
        let at = |last: u8, port: Port| &outcomes[&(Ipv4Addr::new(10, 0, 0, last), port)];
        for (last, port, expected) in [
            (1, Port::tcp(6443), Outcome::Open),
            (2, Port::tcp(6443), Outcome::Refused),
            (3, Port::tcp(6443), Outcome::Silent),
            (4, Port::tcp(6443), Outcome::Stranger),
            (5, Port::tcp(6443), Outcome::Failed("No route to host".to_owned())),
            (1, Port::udp(8472), Outcome::Open),
            (2, Port::udp(8472), Outcome::Narrow(1420)),
            (3, Port::udp(8472), Outcome::Silent),
        ] {
            assert_eq!(at(last, port), &expected, "{last} {port}");
        }
        assert_eq!(outcomes.len(), 8);
    }
    proptest::proptest! {
        /// Whatever a host says.
        #[test]
        fn nothing_that_is_said_breaks_it(text in "((bound|udp|tcp|listener|done|open| |\n|[0-9.]{1,9}|\\PC{0,3}){0,40})") {
            let _ = Listening::parse(&text);
            let told = outcomes(&text, |_, _| 1500);
            proptest::prop_assert_eq!(told.is_some(), text.lines().any(|line| line == "done"));
        }
    }
}
