//! Section `surroundings`: lines of `KIND WORDS`; and section `ruleset`.

use std::collections::BTreeSet;

use super::super::Seen;
use super::super::surroundings::{Device, ResolvConf, Surroundings};

pub(super) fn surroundings(text: &str) -> Surroundings {
    let mut found = Surroundings::default();
    let mut plugins: Option<BTreeSet<String>> = None;
    for line in text.lines().map(str::trim) {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut words = rest.split_whitespace().map(str::to_owned);
        match kind {
            "socket" => found.sockets.extend(words.next()),
            "path" => found.paths.extend(words.next()),
            "device" => {
                if let (Some(name), Some(kind)) = (words.next(), words.next()) {
                    let device = Device {
                        wireless: kind == "wireless",
                        driver: words.next(),
                    };
                    found.devices.insert(name, device);
                }
            }
            "host-key" => {
                found.host_keys.insert(rest.to_owned());
            }
            "proxy" => {
                if let Some((name, value)) = rest.split_once('=') {
                    let value = value.trim_matches(['"', '\'']);
                    found.proxies.insert(name.to_owned(), value.to_owned());
                }
            }
            "cni-plugins" => plugins = Some(plugins.unwrap_or_default()),
            "cni-plugin" => plugins.get_or_insert_default().extend(words.next()),
            "resolv-conf" => {
                found.resolv_conf = match words.next().as_deref() {
                    Some("there") => ResolvConf::There,
                    Some("missing") => ResolvConf::Missing,
                    Some("dangling") => ResolvConf::Dangling(words.next().unwrap_or_default()),
                    _ => ResolvConf::Unknown,
                }
            }
            "iptables" | "ip6tables" => found.iptables.extend(words.next().map(|path| (kind.to_owned(), path))),
            "legacy" => {
                let family = words.next().unwrap_or_default();
                found
                    .legacy_tables
                    .extend(words.map(|table| format!("{family} {table}")));
            }
            "cloud-init" => found.cloud_init.push(rest.to_owned()),
            _ => {}
        }
    }
    found.cni_plugins = plugins.map_or(Seen::Absent, Seen::Present);
    found
}
