//! firewalld's rules: rich ones in the zone of the host's interface, and the pods' network among those that it trusts.

use super::{forwarded, needed, plain};
use crate::cluster::{Cluster, Host};
use crate::facts::HostFacts;

/// Where firewalld keeps what it was told about its zones.
pub const ZONES: &str = "/etc/firewalld/zones/";

/// The rules that a host needs: rich ones, and `source CIDR` of what is trusted.
#[must_use]
pub fn rules(cluster: &Cluster, this: &Host) -> Vec<String> {
    let mut rules = Vec::new();
    let pods = forwarded(cluster, this);
    for opening in needed(cluster, this) {
        // The pods' network is trusted as a whole.
        for from in opening.from.iter().filter(|from| Some(**from) != pods) {
            rules.extend(opening.ports.iter().map(|port| {
                format!(
                    "rule family=\"ipv4\" source address=\"{}\" port port=\"{port}\" protocol=\"{}\" accept",
                    plain(*from),
                    opening.protocol
                )
            }));
        }
    }
    if pods.is_some() {
        rules.push(format!("source {}", cluster.pod_cidr));
        rules.push(format!("source {}", cluster.service_cidr));
    }
    rules
}

/// The rule is in one of firewalld's zones.
#[must_use]
pub fn is_there(facts: &HostFacts, rule: &str) -> bool {
    let mut zones = facts.files.iter().filter_map(|(path, file)| {
        let name = path.strip_prefix(ZONES)?.strip_suffix(".xml")?;
        Some((name, file.content.as_str()))
    });
    zones.any(|(name, text)| match rule.strip_prefix("source ") {
        Some(network) => name == "trusted" && outside_rules(text).contains(&format!("<source address=\"{network}\"")),
        None => text.split("<rule").skip(1).any(|found| is_rule(found, rule)),
    })
}

/// The zone's own elements.
fn outside_rules(text: &str) -> String {
    text.split("<rule")
        .enumerate()
        .map(|(index, part)| match index {
            0 => part,
            _ => part.split_once("</rule>").map_or("", |(_, rest)| rest),
        })
        .collect()
}

/// What stands behind `<rule` is the rule in XML, and nothing that makes it narrower.
fn is_rule(found: &str, rule: &str) -> bool {
    let found = found.split("</rule>").next().unwrap_or_default();
    let value = |text: &str, name: &str| {
        text.split_once(&format!("{name}=\""))
            .and_then(|(_, rest)| rest.split_once('"'))
            .map(|(value, _)| value.to_owned())
    };
    let elements = found.matches("<source").count() + found.matches("<port").count() + found.matches("<accept").count();
    let all = found.matches('<').count() - found.matches("</").count();
    let port = rule.split_once(" port ").map_or("", |(_, rest)| rest);
    let found_port = found.split_once("<port").map_or("", |(_, rest)| rest);
    elements == 3
        && all == 3
        && !found.contains("invert=")
        && found.contains("<accept")
        && value(found, "source address") == value(rule, "source address")
        && value(found_port, "port") == value(port, "port")
        && value(found_port, "protocol") == value(port, "protocol")
}

/// The rule as firewalld writes it, and the name of its zone.
#[must_use]
pub fn in_zone(rule: &str, zone: &str) -> (String, String) {
    if let Some(network) = rule.strip_prefix("source ") {
        return ("trusted".to_owned(), format!("  <source address=\"{network}\"/>\n"));
    }
    let words: Vec<&str> = rule.split_whitespace().collect();
    let text = match words[..] {
        [_, family, _, address, _, port, protocol, _] => format!(
            "  <rule {family}>\n    <source {address}/>\n    <port {port} {protocol}/>\n    <accept/>\n  </rule>\n"
        ),
        _ => String::new(),
    };
    (zone.to_owned(), text)
}

#[cfg(test)]
mod tests {
    use super::{in_zone, is_there};
    use crate::facts::{FileFact, HostFacts};

    fn facts(zone: &str, text: &str) -> HostFacts {
        let mut facts = HostFacts::default();
        let file = FileFact {
            mode: 0o644,
            content: format!("<zone>\n  <short>Z</short>\n{text}</zone>\n"),
        };
        facts.files.insert(format!("/etc/firewalld/zones/{zone}.xml"), file);
        facts
    }

    #[test]
    fn rules_are_found_in_the_zones() {
        let rule = "rule family=\"ipv4\" source address=\"192.168.7.201\" port port=\"6443\" protocol=\"tcp\" accept";
        let (zone, text) = in_zone(rule, "public");
        assert!(is_there(&facts(&zone, &text), rule));
        for other in [
            text.replace("6443", "6444"),
            text.replace("7.201", "7.202"),
            text.replace("tcp", "udp"),
            text.replace("<accept/>", "<drop/>"),
            text.replace("<accept/>", "<limit value=\"1/m\"/><accept/>"),
            "  <source address=\"192.168.7.201\"/>\n  <port port=\"6443\" protocol=\"tcp\"/>\n".to_owned(),
        ] {
            assert!(!is_there(&facts(&zone, &other), rule), "{other}");
        }
        let (zone, text) = in_zone("source 10.244.0.0/16", "public");
        assert!(is_there(&facts(&zone, &text), "source 10.244.0.0/16"));
        assert!(!is_there(&facts("public", &text), "source 10.244.0.0/16"));
        assert!(!is_there(&facts(&zone, &text), "source 10.96.0.0/12"));
    }
}
