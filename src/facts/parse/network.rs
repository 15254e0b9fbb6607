//! Addresses, routes, resolvers and listening ports.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use serde::Deserialize;

use super::super::{InterfaceAddress, Listener, Route};

/// What `ip -j addr show` tells.
#[derive(Debug, Default)]
pub(super) struct Links {
    pub(super) addresses: Vec<InterfaceAddress>,
    pub(super) mtus: BTreeMap<String, u32>,
    /// Of Ethernet links.
    pub(super) macs: BTreeMap<String, String>,
    /// Links that kube-proxy, CNI or Flannel made.
    pub(super) leftovers: Vec<String>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct RawLink {
    ifname: String,
    mtu: u32,
    link_type: String,
    address: String,
    master: Option<String>,
    addr_info: Vec<RawAddress>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawAddress {
    family: String,
    local: String,
    prefixlen: u8,
}

pub(super) fn links(json: &str) -> Result<Links, String> {
    let raw: Vec<RawLink> = list(json)?;
    let mut links = Links::default();
    for link in raw.into_iter().filter(|link| !link.ifname.is_empty()) {
        for address in &link.addr_info {
            let Ok(local) = address.local.parse() else { continue };
            if let (true, Ok(address)) = (address.family == "inet", Ipv4Net::new(local, address.prefixlen)) {
                links.addresses.push(InterfaceAddress {
                    interface: link.ifname.clone(),
                    address,
                });
            }
        }
        if is_pod_link(&link) {
            links.leftovers.push(format!("link {}", link.ifname));
        }
        if link.link_type == "ether" && !link.address.is_empty() {
            links.macs.insert(link.ifname.clone(), link.address);
        }
        links.mtus.insert(link.ifname, link.mtu);
    }
    Ok(links)
}

fn is_pod_link(link: &RawLink) -> bool {
    let name = link.ifname.as_str();
    name == "cni0"
        || name == "kube-ipvs0"
        || name.starts_with("flannel.")
        || name.starts_with("flannel-")
        || link.master.as_deref() == Some("cni0")
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawRoute {
    dst: String,
    dev: String,
}

pub(super) fn routes(json: &str) -> Result<Vec<Route>, String> {
    let raw: Vec<RawRoute> = list(json)?;
    Ok(raw
        .into_iter()
        .filter_map(|route| {
            Some(Route {
                destination: destination(&route.dst)?,
                interface: route.dev,
            })
        })
        .collect())
}

fn destination(text: &str) -> Option<Ipv4Net> {
    if text == "default" {
        return Some(Ipv4Net::default());
    }
    text.parse()
        .ok()
        .or_else(|| Some(Ipv4Net::from(text.parse::<Ipv4Addr>().ok()?)))
}

/// `ip -j` prints nothing instead of an empty list.
fn list<T: for<'a> Deserialize<'a>>(json: &str) -> Result<Vec<T>, String> {
    if json.trim().is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_str(json).map_err(|error| format!("`ip -j` printed no JSON that is understood: {error}"))
}

/// `nameserver` lines of a resolv.conf.
pub(super) fn nameservers(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            (words.next()? == "nameserver")
                .then(|| words.next())
                .flatten()
                .map(str::to_owned)
        })
        .collect()
}

/// The addresses of `getent ahostsv4`, each once.
pub(super) fn resolved(text: &str) -> Vec<Ipv4Addr> {
    let mut addresses: Vec<Ipv4Addr> = Vec::new();
    for address in text
        .lines()
        .filter_map(|line| line.split_whitespace().next()?.parse().ok())
    {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// The lines of `ss -Hltnp`.
pub(super) fn listeners(text: &str) -> Vec<Listener> {
    text.lines()
        .filter_map(|line| {
            let (address, port) = line.split_whitespace().nth(3)?.rsplit_once(':')?;
            let process = line
                .split_once("((\"")
                .and_then(|(_, rest)| rest.split_once('"'))
                .map(|(name, _)| name.to_owned());
            Some(Listener {
                address: address.to_owned(),
                port: port.parse().ok()?,
                process,
            })
        })
        .collect()
}
