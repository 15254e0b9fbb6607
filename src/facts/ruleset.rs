//! The packet filter's rules, as far as they say which packets of a cluster come through.
//!
//! Rules that are not understood count as not matching: what accepts too little is told, what drops too much is not.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

/// All chains of nftables and of the legacy iptables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ruleset {
    chains: BTreeMap<String, Chain>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Chain {
    /// `input` or `forward`, of a chain that packets go through.
    hook: Option<String>,
    drops: bool,
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    text: String,
    matches: Vec<Match>,
    verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Match {
    From(Vec<Ipv4Net>),
    To(Vec<Ipv4Net>),
    Protocol(Vec<String>),
    Ports(Vec<(u16, u16)>),
    Interface(String),
    /// Something that a new packet of a cluster is not, or that is not understood.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Accept,
    Drop,
    Return,
    /// To the chain of that key; with `goto` it does not come back.
    Jump(String, bool),
    /// Nothing is decided.
    Nothing,
}

/// The first packet of a connection.
#[derive(Debug, Clone)]
pub struct Packet<'a> {
    /// `input` or `forward`.
    pub hook: &'a str,
    /// Where it came in.
    pub interface: &'a str,
    /// Source.
    pub from: Ipv4Addr,
    /// Destination.
    pub to: Ipv4Addr,
    /// `tcp` or `udp`.
    pub protocol: &'a str,
    /// Destination port.
    pub port: u16,
}

/// A chain that stops a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// `inet filter input`, or `iptables INPUT` of the legacy tables.
    pub chain: String,
    /// The rule, or the policy.
    pub rule: String,
}

impl Ruleset {
    /// Reads `nft list ruleset`, and behind it the outputs of `iptables-legacy-save`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut rules = Self::default();
        let (mut table, mut chain) = (String::new(), String::new());
        let mut depth = 0_usize;
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix('*') {
                name.clone_into(&mut table);
            } else if table == "filter" && depth == 0 && line.starts_with(':') {
                rules.legacy_chain(line);
            } else if table == "filter" && depth == 0 && line.starts_with("-A ") {
                rules.legacy_rule(line);
            } else if depth == 0 && line.starts_with("table ") && line.ends_with('{') {
                line[6..].trim_end_matches('{').trim().clone_into(&mut table);
                depth = 1;
            } else if depth == 1 && line.starts_with("chain ") && line.ends_with('{') {
                chain = format!("{table} {}", line[6..].trim_end_matches('{').trim());
                rules.chains.insert(chain.clone(), Chain::default());
                depth = 2;
            } else if line == "}" {
                chain.clear();
                depth = depth.saturating_sub(1);
            } else if depth >= 1 && line.ends_with('{') {
                depth += 1;
            } else if depth == 2
                && let Some(chain) = rules.chains.get_mut(&chain)
            {
                chain.line(&table, line);
            }
        }
        rules
    }

    /// There are chains of nftables.
    #[must_use]
    pub fn has_nftables(&self) -> bool {
        self.chains.keys().any(|name| !name.starts_with("iptables "))
    }

    /// Some chain does not let everything in or through.
    #[must_use]
    pub fn stops_packets(&self) -> bool {
        let hooked = |chain: &Chain| matches!(chain.hook.as_deref(), Some("input" | "forward"));
        self.chains
            .iter()
            .filter(|(_, chain)| hooked(chain))
            .any(|(name, chain)| {
                chain.drops && !is_shared(name) || chain.rules.iter().any(|rule| rule.verdict == Verdict::Drop)
            })
    }

    /// The first chain that stops a packet; each chain that it goes through must accept it.
    #[must_use]
    pub fn stops(&self, packet: &Packet<'_>) -> Option<Stop> {
        let hooked = self
            .chains
            .iter()
            .filter(|(_, chain)| chain.hook.as_deref() == Some(packet.hook));
        for (name, chain) in hooked {
            let stop = |rule: String| {
                Some(Stop {
                    chain: name.clone(),
                    rule,
                })
            };
            match self.walk(chain, packet, 0) {
                Some((false, rule)) => return stop(rule),
                // Flannel and kube-proxy add what lets pods through to the end of this chain.
                None if chain.drops && !is_shared(name) => return stop("policy drop".to_owned()),
                Some((true, _)) | None => {}
            }
        }
        None
    }

    /// Whether the packet is accepted, and by which rule; `None`: the chain does not decide.
    fn walk(&self, chain: &Chain, packet: &Packet<'_>, depth: u8) -> Option<(bool, String)> {
        for rule in chain
            .rules
            .iter()
            .filter(|rule| rule.matches.iter().all(|found| found.holds(packet)))
        {
            match &rule.verdict {
                Verdict::Accept => return Some((true, rule.text.clone())),
                Verdict::Drop => return Some((false, rule.text.clone())),
                Verdict::Return => return None,
                Verdict::Jump(to, leaves) => {
                    let target = self.chains.get(to).filter(|_| depth < 16);
                    let decided = target.and_then(|target| self.walk(target, packet, depth + 1));
                    if decided.is_some() || *leaves {
                        return decided;
                    }
                }
                Verdict::Nothing => {}
            }
        }
        None
    }

    /// `:INPUT DROP [0:0]`.
    fn legacy_chain(&mut self, line: &str) {
        let mut words = line[1..].split_whitespace();
        let (Some(name), Some(policy)) = (words.next(), words.next()) else {
            return;
        };
        let hook = match name {
            "INPUT" => Some("input".to_owned()),
            "FORWARD" => Some("forward".to_owned()),
            _ => None,
        };
        let chain = Chain {
            hook,
            drops: policy == "DROP",
            rules: Vec::new(),
        };
        self.chains.insert(format!("iptables {name}"), chain);
    }

    /// `-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT`.
    fn legacy_rule(&mut self, line: &str) {
        let words = words(line);
        let mut words = words.iter().map(String::as_str).skip(1);
        let Some(name) = words.next() else { return };
        let (mut matches, mut verdict) = (Vec::new(), Verdict::Nothing);
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_default();
            match word {
                "-s" => matches.push(networks(value()).map_or(Match::Other, Match::From)),
                "-d" => matches.push(networks(value()).map_or(Match::Other, Match::To)),
                "-i" => matches.push(Match::Interface(value().to_owned())),
                "-p" => matches.push(Match::Protocol(vec![value().to_owned()])),
                "--dport" | "--dports" => matches.push(ports(value()).map_or(Match::Other, Match::Ports)),
                "-m" | "--comment" | "--reject-with" | "--log-prefix" | "--log-level" => {
                    if value() == "limit" {
                        matches.push(Match::Other);
                    }
                }
                "--ctstate" | "--state" if value().split(',').any(|state| state == "NEW") => {}
                "-j" | "-g" => verdict = legacy_verdict(value(), word == "-g"),
                _ => matches.push(Match::Other),
            }
        }
        let rule = Rule {
            text: line.to_owned(),
            matches,
            verdict,
        };
        self.chains
            .entry(format!("iptables {name}"))
            .or_default()
            .rules
            .push(rule);
    }
}

/// iptables' own chain for packets that go through, to which others add at will.
fn is_shared(chain: &str) -> bool {
    matches!(chain, "ip filter FORWARD" | "iptables FORWARD")
}

fn legacy_verdict(target: &str, leaves: bool) -> Verdict {
    match target {
        "ACCEPT" => Verdict::Accept,
        "DROP" | "REJECT" => Verdict::Drop,
        "RETURN" => Verdict::Return,
        "LOG" | "NFLOG" | "MARK" | "CT" => Verdict::Nothing,
        chain => Verdict::Jump(format!("iptables {chain}"), leaves),
    }
}

impl Chain {
    /// One line of a chain, as nft prints it.
    fn line(&mut self, table: &str, line: &str) {
        if let Some(kind) = line.strip_prefix("type ") {
            if kind.starts_with("filter ") {
                self.hook = kind
                    .split_once("hook ")
                    .and_then(|(_, rest)| rest.split_whitespace().next())
                    .map(str::to_owned);
            }
            self.drops = line.contains("policy drop");
            return;
        }
        let words = words(line);
        let (mut matches, mut verdict) = (Vec::new(), Verdict::Nothing);
        let mut at = 0;
        while at < words.len() {
            let word = |offset: usize| words.get(at + offset).map_or("", String::as_str);
            let (found, used) = match (word(0), word(1), word(2)) {
                ("ip", "saddr", value) => (Some(networks(value).map_or(Match::Other, Match::From)), 3),
                ("ip", "daddr", value) => (Some(networks(value).map_or(Match::Other, Match::To)), 3),
                ("ip", "protocol", value) | ("meta", "l4proto", value) => (Some(Match::Protocol(set(value))), 3),
                ("ct", "state", value) if set(value).iter().any(|state| state == "new") => (None, 3),
                (protocol @ ("tcp" | "udp"), "dport", value) => {
                    matches.push(Match::Protocol(vec![protocol.to_owned()]));
                    (Some(ports(value).map_or(Match::Other, Match::Ports)), 3)
                }
                ("iif" | "iifname", name, _) => (Some(Match::Interface(name.to_owned())), 2),
                ("counter", "packets", _) => (None, 5),
                ("comment", ..) => (None, 2),
                ("log", "prefix", _) => (None, 3),
                ("counter" | "log", ..) => (None, 1),
                ("accept", ..) => {
                    verdict = Verdict::Accept;
                    (None, words.len())
                }
                ("drop" | "reject", ..) => {
                    verdict = Verdict::Drop;
                    (None, words.len())
                }
                ("return", ..) => {
                    verdict = Verdict::Return;
                    (None, words.len())
                }
                (jump @ ("jump" | "goto"), chain, _) => {
                    verdict = Verdict::Jump(format!("{table} {chain}"), jump == "goto");
                    (None, words.len())
                }
                _ => (Some(Match::Other), 1),
            };
            matches.extend(found);
            at += used;
        }
        self.rules.push(Rule {
            text: line.to_owned(),
            matches,
            verdict,
        });
    }
}

impl Match {
    fn holds(&self, packet: &Packet<'_>) -> bool {
        match self {
            Self::From(networks) => networks.iter().any(|network| network.contains(&packet.from)),
            Self::To(networks) => networks.iter().any(|network| network.contains(&packet.to)),
            Self::Protocol(protocols) => protocols.iter().any(|protocol| protocol == packet.protocol),
            Self::Ports(ports) => ports.iter().any(|(from, to)| (*from..=*to).contains(&packet.port)),
            Self::Interface(name) => match name.strip_suffix(['*', '+']) {
                Some(begin) => packet.interface.starts_with(begin),
                None => packet.interface == name,
            },
            Self::Other => false,
        }
    }
}

/// Words of a rule; what is in quotes or braces is one word, without them.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quoted, mut braced) = (String::new(), false, false);
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            '{' if !quoted => braced = true,
            '}' if !quoted => braced = false,
            letter if letter.is_whitespace() && !quoted => {
                if !braced && !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            letter => word.push(letter),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn set(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

fn networks(text: &str) -> Option<Vec<Ipv4Net>> {
    text.split(',')
        .map(|part| {
            part.parse()
                .ok()
                .or_else(|| part.parse::<Ipv4Addr>().ok().map(Ipv4Net::from))
        })
        .collect()
}

fn ports(text: &str) -> Option<Vec<(u16, u16)>> {
    text.split(',')
        .map(|part| {
            let (from, to) = part.split_once(['-', ':']).unwrap_or((part, part));
            Some((from.parse().ok()?, to.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Packet, Ruleset};

    const NFT: &str = "table inet filter {
	set friends {
		type ipv4_addr
		elements = { 10.0.0.1 }
	}
	chain input {
		type filter hook input priority filter; policy drop;
		ct state established,related accept
		ct state invalid drop
		iif \"lo\" accept
		ip saddr @friends accept
		tcp dport { 22, 80-90 } ct state new counter packets 3 bytes 180 accept
		ip saddr 192.168.7.0/24 tcp dport 6443 accept comment \"our own\"
		iifname \"eth0\" jump cluster
		limit rate 5/minute log prefix \"dropped: \"
		reject with icmpx admin-prohibited
	}
	chain cluster {
		ip saddr { 192.168.7.201, 192.168.7.202 } udp dport 8472 accept
		ip saddr 192.168.7.99 drop
	}
	chain forward {
		type filter hook forward priority filter; policy drop;
	}
	chain output {
		type filter hook output priority filter; policy accept;
	}
}
";

    fn stops(rules: &str, hook: &str, from: &str, protocol: &str, port: u16) -> Option<String> {
        let packet = Packet {
            hook,
            interface: "eth0",
            from: from.parse().unwrap(),
            to: "192.168.7.203".parse().unwrap(),
            protocol,
            port,
        };
        Ruleset::parse(rules)
            .stops(&packet)
            .map(|stop| format!("{}: {}", stop.chain, stop.rule))
    }

    #[test]
    fn nftables_rules_are_followed() {
        let reject = Some("inet filter input: reject with icmpx admin-prohibited".to_owned());
        for (from, protocol, port, expected) in [
            ("192.168.7.201", "tcp", 22, None),
            ("192.168.7.201", "tcp", 85, None),
            ("192.168.7.201", "udp", 22, reject.clone()),
            ("192.168.7.201", "tcp", 6443, None),
            ("192.168.8.201", "tcp", 6443, reject.clone()),
            ("192.168.7.202", "udp", 8472, None),
            ("192.168.7.203", "udp", 8472, reject.clone()),
            ("10.0.0.1", "tcp", 10250, reject),
            (
                "192.168.7.99",
                "tcp",
                10250,
                Some("inet filter input: ip saddr 192.168.7.99 drop".to_owned()),
            ),
        ] {
            assert_eq!(
                stops(NFT, "input", from, protocol, port),
                expected,
                "{from} {protocol} {port}"
            );
        }
        assert_eq!(
            stops(NFT, "forward", "10.244.0.1", "tcp", 80),
            Some("inet filter forward: policy drop".to_owned())
        );
    }

    #[test]
    fn legacy_rules_are_followed() {
        let rules = "# Generated by iptables-save
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:OWN - [0:0]
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -i lo -j ACCEPT
-A INPUT -p tcp -m tcp --dport 22 -m comment --comment \"way in\" -j ACCEPT
-A INPUT -s 192.168.7.0/24 -p tcp -m multiport --dports 2379:2380,6443 -j OWN
-A OWN -m conntrack --ctstate NEW -j ACCEPT
-A FORWARD -j REJECT --reject-with icmp-host-prohibited
-A FORWARD -s 10.244.0.0/16 -j ACCEPT
COMMIT
*nat
:PREROUTING DROP [0:0]
COMMIT
";
        assert_eq!(stops(rules, "input", "192.168.7.201", "tcp", 2380), None);
        assert_eq!(stops(rules, "input", "1.2.3.4", "tcp", 22), None);
        assert_eq!(
            stops(rules, "input", "192.168.7.201", "tcp", 10250),
            Some("iptables INPUT: policy drop".to_owned())
        );
        assert_eq!(
            stops(rules, "forward", "10.244.0.5", "tcp", 80),
            Some("iptables FORWARD: -A FORWARD -j REJECT --reject-with icmp-host-prohibited".to_owned())
        );
    }

    #[test]
    fn what_docker_does_to_its_own_links_is_no_firewall() {
        let docker = "table ip filter {
	chain DOCKER-USER {
	}
	chain DOCKER-FORWARD {
		iifname \"docker0\" counter packets 0 bytes 0 accept
	}
	chain FORWARD {
		type filter hook forward priority filter; policy drop;
		counter packets 0 bytes 0 jump DOCKER-USER
		counter packets 0 bytes 0 jump DOCKER-FORWARD
	}
}
";
        assert!(!Ruleset::parse(docker).stops_packets());
        assert_eq!(stops(docker, "forward", "10.244.0.5", "tcp", 80), None);
        assert!(Ruleset::parse(NFT).stops_packets());
        assert!(!Ruleset::parse("").stops_packets());
    }
}
