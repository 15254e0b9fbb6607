//! ufw's rules: the words of its command, and how its file of rules has them.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use super::{forwarded, needed, plain};
use crate::cluster::{Cluster, Host};
use crate::facts::HostFacts;

/// Where ufw keeps the rules that it was told.
pub const RULES: &str = "/etc/ufw/user.rules";

/// The rules that a host needs, as `ufw` is told them: `allow from 192.168.7.201 to any port 6443 proto tcp`.
#[must_use]
pub fn rules(cluster: &Cluster, this: &Host) -> Vec<String> {
    let mut rules = Vec::new();
    for opening in needed(cluster, this) {
        let ports: Vec<String> = opening.ports.iter().map(u16::to_string).collect();
        for from in &opening.from {
            rules.push(format!(
                "allow from {} to any port {} proto {}",
                plain(*from),
                ports.join(","),
                opening.protocol
            ));
        }
    }
    if let Some(pods) = forwarded(cluster, this) {
        rules.push(format!("route allow from {pods}"));
        rules.push(format!("route allow to {pods}"));
    }
    rules
}

/// What a line `### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in` says.
struct Tuple {
    route: bool,
    protocol: String,
    ports: String,
    to: Ipv4Net,
    from: Ipv4Net,
}

/// The same of a rule's words.
fn tuple_of(rule: &str) -> Option<Tuple> {
    let everywhere = Ipv4Net::default();
    let mut tuple = Tuple {
        route: rule.starts_with("route "),
        protocol: "any".to_owned(),
        ports: "any".to_owned(),
        to: everywhere,
        from: everywhere,
    };
    let mut words = rule.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "from" => tuple.from = network(words.next()?)?,
            "to" => tuple.to = network(words.next()?)?,
            "port" => words.next()?.clone_into(&mut tuple.ports),
            "proto" => words.next()?.clone_into(&mut tuple.protocol),
            _ => {}
        }
    }
    Some(tuple)
}

/// The line that ufw writes for a rule of ours.
#[must_use]
pub fn tuple(rule: &str) -> Option<String> {
    let Tuple {
        route,
        protocol,
        ports,
        to,
        from,
    } = tuple_of(rule)?;
    let action = if route { "route:allow" } else { "allow" };
    // The comment is "k8sup".
    Some(format!(
        "### tuple ### {action} {protocol} {ports} {} any {} in comment=6b38737570",
        plain(to),
        plain(from)
    ))
}

fn network(text: &str) -> Option<Ipv4Net> {
    match text {
        "any" => Some(Ipv4Net::default()),
        text => text
            .parse()
            .ok()
            .or_else(|| Some(Ipv4Net::from(text.parse::<Ipv4Addr>().ok()?))),
    }
}

/// The rule is in force, or a wider one that somebody else has made. Without ufw's file k8sup's record counts.
#[must_use]
pub fn is_there(facts: &HostFacts, rule: &str) -> bool {
    let Some(file) = facts.files.get(RULES) else {
        let recorded = facts.record.present().and_then(|record| record.entries.get("ufw"));
        return recorded.is_some_and(|rules| rules.iter().any(|recorded| recorded == rule));
    };
    let Some(wanted) = tuple_of(rule) else { return false };
    file.content
        .lines()
        .filter_map(parse)
        .any(|known| known.covers(&wanted))
}

fn parse(line: &str) -> Option<Tuple> {
    let words: Vec<&str> = line.strip_prefix("### tuple ### ")?.split_whitespace().collect();
    let [action, protocol, ports, to, "any", from, "in", ..] = words[..] else {
        return None;
    };
    let route = match action {
        "allow" => false,
        "route:allow" => true,
        _ => return None,
    };
    Some(Tuple {
        route,
        protocol: protocol.to_owned(),
        ports: ports.to_owned(),
        to: network(to)?,
        from: network(from)?,
    })
}

impl Tuple {
    fn covers(&self, other: &Self) -> bool {
        let has = |port: &str| {
            self.ports.split(',').any(|known| match known.split_once(':') {
                Some((from, to)) => {
                    let number = |text: &str| text.parse::<u16>().ok();
                    matches!((number(from), number(to), number(port)), (Some(from), Some(to), Some(port)) if (from..=to).contains(&port))
                }
                None => known == port,
            })
        };
        self.route == other.route
            && (self.protocol == "any" || self.protocol == other.protocol)
            && (self.ports == "any" || other.ports.split(',').all(has))
            && self.to.contains(&other.to)
            && self.from.contains(&other.from)
    }
}

#[cfg(test)]
mod tests {
    use super::{Tuple, parse, tuple, tuple_of};

    #[test]
    fn a_rule_is_written_as_ufw_writes_it() {
        for (rule, expected) in [
            (
                "allow from 192.168.7.201 to any port 2379,2380,6443,10250 proto tcp",
                "### tuple ### allow tcp 2379,2380,6443,10250 0.0.0.0/0 any 192.168.7.201 in comment=6b38737570",
            ),
            (
                "route allow from 10.244.0.0/16",
                "### tuple ### route:allow any any 0.0.0.0/0 any 10.244.0.0/16 in comment=6b38737570",
            ),
            (
                "route allow to 10.244.0.0/16",
                "### tuple ### route:allow any any 10.244.0.0/16 any 0.0.0.0/0 in comment=6b38737570",
            ),
        ] {
            let line = tuple(rule).unwrap();
            assert_eq!(line, expected);
            assert!(parse(&line).unwrap().covers(&tuple_of(rule).unwrap()));
        }
    }

    #[test]
    fn wider_rules_are_enough_and_narrower_ones_are_not() {
        let wanted: Tuple = tuple_of("allow from 192.168.7.201 to any port 2379,6443 proto tcp").unwrap();
        for (line, enough) in [
            ("### tuple ### allow any any 0.0.0.0/0 any 192.168.7.0/24 in", true),
            ("### tuple ### allow tcp 2379:6443 0.0.0.0/0 any 0.0.0.0/0 in", true),
            (
                "### tuple ### allow tcp 2379,6443 0.0.0.0/0 any 192.168.7.201 in comment=00",
                true,
            ),
            ("### tuple ### allow tcp 6443 0.0.0.0/0 any 0.0.0.0/0 in", false),
            ("### tuple ### allow udp 2379,6443 0.0.0.0/0 any 0.0.0.0/0 in", false),
            ("### tuple ### allow any any 0.0.0.0/0 any 192.168.7.201 in_eth0", false),
            ("### tuple ### deny any any 0.0.0.0/0 any 192.168.7.0/24 in", false),
            (
                "### tuple ### route:allow any any 0.0.0.0/0 any 192.168.7.0/24 in",
                false,
            ),
        ] {
            assert_eq!(parse(line).is_some_and(|known| known.covers(&wanted)), enough, "{line}");
        }
    }
}
