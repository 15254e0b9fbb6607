//! ufw and firewalld as far as their files tell.

use k8sup::cluster::NodeName;
use k8sup::concern::firewall::{firewalld, ufw};

use super::World;

impl World {
    pub(super) fn firewall(&mut self, host: &NodeName, tool: &str, open: &[String], close: &[String]) {
        for rule in open {
            let (path, text, entry) = place(tool, rule, "public");
            self.note(host, tool, &entry);
            self.host(host).files.entry(path).or_default().content += &text;
        }
        for entry in close {
            self.close(host, tool, entry);
        }
    }

    /// Takes one recorded rule back.
    pub(super) fn close(&mut self, host: &NodeName, tool: &str, entry: &str) {
        let rule = if tool == "ufw" {
            entry
        } else {
            entry.split_once(' ').unwrap().1
        };
        let (path, text, _) = place(tool, rule, "public");
        let file = self.host(host).files.get_mut(&path).unwrap();
        assert!(file.content.contains(&text), "{host}: no {text}");
        file.content = file.content.replacen(&text, "", 1);
        let entries = self.record(host).entries.get_mut(tool).unwrap();
        entries.retain(|known| known != entry);
        if entries.is_empty() {
            self.record(host).entries.remove(tool);
        }
    }
}

/// File, text and record entry of a rule.
fn place(tool: &str, rule: &str, zone: &str) -> (String, String, String) {
    if tool == "ufw" {
        let text = format!("{}\n", ufw::tuple(rule).unwrap());
        return (ufw::RULES.to_owned(), text, rule.to_owned());
    }
    let (zone, text) = firewalld::in_zone(rule, zone);
    (
        format!("{}{zone}.xml", firewalld::ZONES),
        text,
        format!("{zone} {rule}"),
    )
}
