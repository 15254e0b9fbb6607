//! Single values of an inventory: text in, a checked value or what is wrong with it out.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use ipnet::Ipv4Net;

use crate::cluster::version::NEWEST;
use crate::cluster::{Endpoint, NodeName, Version};
use crate::inventory::problem::{Problem, Span, quoted};
use crate::inventory::raw::At;
use crate::inventory::{Environment, nearest};

/// The API server's port.
pub(super) const API_PORT: u16 = 6443;

/// What is wrong with a value, and what to write instead.
pub(super) struct Wrong {
    message: String,
    hint: String,
}

impl Wrong {
    pub(super) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// The problem at its place.
    pub(super) fn at(self, span: Span) -> Problem {
        Problem::error(span, self.message).hint(self.hint)
    }
}

/// Checks a value where there is one, and reports it at its place.
pub(super) fn check<V, T>(
    problems: &mut Vec<Problem>,
    at: Option<&At<V>>,
    parse: impl FnOnce(&V) -> Result<T, Wrong>,
) -> Option<T> {
    let at = at?;
    match parse(&at.value) {
        Ok(value) => Some(value),
        Err(wrong) => {
            problems.push(wrong.at(at.span.clone()));
            None
        }
    }
}

/// An exact Kubernetes version that k8sup can build.
pub(super) fn kubernetes(text: &str) -> Result<Version, Wrong> {
    let example = format!("write an exact version, such as `{NEWEST}`");
    let numbers = text.strip_prefix('v').unwrap_or(text);
    if numbers.contains(['-', '+']) && Version::parse(numbers.split(['-', '+']).next().unwrap_or_default()).is_some() {
        return Err(Wrong::new(
            format!(
                "{} is not a release: pre-releases and builds of others are not supported",
                quoted(text)
            ),
            example,
        ));
    }
    let digits = numbers
        .split('.')
        .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    let Some(version) = Version::parse(numbers).filter(|_| digits) else {
        return Err(Wrong::new(
            format!("{} is not an exact Kubernetes version", quoted(text)),
            example,
        ));
    };
    let range = format!("v1.31 to v{}.{}", NEWEST.major, NEWEST.minor);
    if version.major != 1 || version.minor > NEWEST.minor {
        return Err(Wrong::new(
            format!("Kubernetes {version} is newer than this k8sup: it builds {range}"),
            format!("write `{NEWEST}`, or take a newer k8sup"),
        ));
    }
    if version.minor < 31 {
        return Err(Wrong::new(
            format!("Kubernetes {version} is too old: its kubeadm does not read v1beta4 documents, which {range} do"),
            format!("write `{NEWEST}`"),
        ));
    }
    Ok(version)
}

/// A name after RFC 1123.
pub(super) fn name(what: &str, text: &str) -> Result<NodeName, Wrong> {
    NodeName::parse(text).map_err(|why| {
        let better: String = text
            .to_lowercase()
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') {
                    c
                } else {
                    '-'
                }
            })
            .collect();
        let better = better.trim_matches(['-', '.']).to_owned();
        let hint = match NodeName::parse(&better) {
            Ok(better) => format!("for example `{better}`"),
            Err(_) => "for example `worker-0`".to_owned(),
        };
        Wrong::new(format!("{} is not a good {what}: {why} (RFC 1123)", quoted(text)), hint)
    })
}

/// An IPv4 network with its prefix length.
pub(super) fn cidr(text: &str) -> Result<Ipv4Net, Wrong> {
    if text.contains(',') {
        return Err(Wrong::new(
            "dual stack is not supported yet: one network belongs here",
            "keep the IPv4 network only",
        ));
    }
    if text.contains(':') {
        return Err(Wrong::new(
            "IPv6 is not supported yet",
            "write an IPv4 network, such as `10.244.0.0/16`",
        ));
    }
    let (host, prefix) = text.split_once('/').unwrap_or((text, ""));
    let Ok(host) = host.parse::<Ipv4Addr>() else {
        return Err(Wrong::new(
            format!("{} is not an IPv4 network", quoted(text)),
            "write an address and a prefix length, such as `10.244.0.0/16`",
        ));
    };
    let digits = !prefix.is_empty() && prefix.len() <= 2 && prefix.bytes().all(|b| b.is_ascii_digit());
    let net = prefix
        .parse()
        .ok()
        .filter(|_| digits)
        .and_then(|prefix| Ipv4Net::new(host, prefix).ok());
    let Some(net) = net else {
        return Err(Wrong::new(
            format!("{} has no prefix length between 0 and 32", quoted(text)),
            format!("write `{host}/16`, for example"),
        ));
    };
    if net.trunc() != net {
        return Err(Wrong::new(
            format!(
                "{} names a host, not a network: bits beyond the prefix are set",
                quoted(text)
            ),
            format!("the network is `{}`", net.trunc()),
        ));
    }
    Ok(net)
}

/// An IPv4 address that a machine can have.
pub(super) fn address(text: &str) -> Result<Ipv4Addr, Wrong> {
    let example = "write an IPv4 address, such as `192.168.7.201`";
    let Ok(address) = text.parse::<Ipv4Addr>() else {
        if ipv6(text) {
            return Err(Wrong::new("IPv6 is not supported yet", example));
        }
        if let Some((host, port)) = text.split_once(':')
            && host.parse::<Ipv4Addr>().is_ok()
        {
            let hint =
                format!("write `{{ address: {host}, ssh: {{ port: {port} }} }}` where SSH listens on another port");
            return Err(Wrong::new("an address has no port", hint));
        }
        if let Some((host, _)) = text.split_once('/')
            && host.parse::<Ipv4Addr>().is_ok()
        {
            return Err(Wrong::new("an address has no prefix length", format!("write `{host}`")));
        }
        let hint = if NodeName::parse(&text.to_lowercase()).is_ok() && !numeric(text) {
            format!("write its IPv4 address; the name can stand in `ssh: {{ host: {text} }}`")
        } else {
            example.to_owned()
        };
        return Err(Wrong::new(format!("{} is not an IPv4 address", quoted(text)), hint));
    };
    let why = if address.is_unspecified() || address.octets()[0] == 0 {
        "names no machine"
    } else if address.is_loopback() {
        "is the loopback address of every machine"
    } else if address.is_multicast() || address.is_broadcast() || address.octets()[0] >= 240 {
        "is no machine's own address"
    } else if address.is_link_local() {
        "is a link-local address, which changes"
    } else {
        return Ok(address);
    };
    Err(Wrong::new(format!("{address} {why}"), example))
}

/// Host and optional port where the API is reached.
pub(super) fn endpoint(text: &str) -> Result<Endpoint, Wrong> {
    let example = "write `HOST` or `HOST:PORT`, such as `k8s.example.com:6443`";
    if let Some((_, rest)) = text.split_once("://") {
        let rest = rest.split('/').next().unwrap_or_default();
        return Err(Wrong::new(
            "an endpoint has no scheme",
            format!("write {}", quoted(rest)),
        ));
    }
    if ipv6(text) || text.starts_with('[') {
        return Err(Wrong::new("IPv6 is not supported yet", example));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let port = match port {
        None => API_PORT,
        Some(port) => match port.parse::<u16>() {
            Ok(number) if number > 0 && port.bytes().all(|b| b.is_ascii_digit()) => number,
            _ => {
                return Err(Wrong::new(
                    format!("{} is not a port", quoted(port)),
                    "a port is a number from 1 to 65535",
                ));
            }
        },
    };
    if numeric(host) {
        let host = address(host)?;
        return Ok(Endpoint {
            host: host.to_string(),
            port,
        });
    }
    let host = name("DNS name", host)?;
    Ok(Endpoint {
        host: host.to_string(),
        port,
    })
}

/// A name or address of the API server's certificate.
pub(super) fn subject(text: &str) -> Result<String, Wrong> {
    if numeric(text) {
        return address(text).map(|address| address.to_string());
    }
    if ipv6(text) {
        return Err(Wrong::new(
            "IPv6 is not supported yet",
            "write an IPv4 address or a DNS name",
        ));
    }
    name("DNS name", text.strip_prefix("*.").unwrap_or(text)).map(|_| text.to_owned())
}

/// A host to dial with SSH: a name or an address of either kind.
pub(super) fn dialled(text: &str) -> Result<String, Wrong> {
    if text.parse::<Ipv6Addr>().is_ok() {
        return Ok(text.to_owned());
    }
    if let Some((user, host)) = text.split_once('@') {
        return Err(Wrong::new(
            "a host has no user in it",
            format!("write `host: {host}` and `user: {user}`"),
        ));
    }
    if let Some((host, port)) = text.rsplit_once(':')
        && port.parse::<u16>().is_ok()
    {
        return Err(Wrong::new(
            "a host has no port in it",
            format!("write `host: {host}` and `port: {port}`"),
        ));
    }
    if numeric(text) {
        return text
            .parse::<Ipv4Addr>()
            .map(|address| address.to_string())
            .map_err(|_| {
                Wrong::new(
                    format!("{} is not an IPv4 address", quoted(text)),
                    "write an address or a DNS name",
                )
            });
    }
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.len() > 253 || text.starts_with(['-', '.']) || !text.chars().all(good) {
        return Err(Wrong::new(
            format!("{} is not a host name", quoted(text)),
            "write an address or a DNS name",
        ));
    }
    Ok(text.to_owned())
}

/// A TCP or UDP port.
pub(super) fn port(number: u64) -> Result<u16, Wrong> {
    u16::try_from(number)
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(|| Wrong::new(format!("{number} is not a port"), "a port is a number from 1 to 65535"))
}

/// A number within bounds.
pub(super) fn within(what: &str, number: u64, low: u32, high: u32) -> Result<u32, Wrong> {
    u32::try_from(number)
        .ok()
        .filter(|number| (low..=high).contains(number))
        .ok_or_else(|| {
            Wrong::new(
                format!("{number} is not {what}"),
                format!("write a number from {low} to {high}"),
            )
        })
}

/// One of a few words.
pub(super) fn one_of<T: Copy>(what: &str, text: &str, words: &[(&str, T)]) -> Result<T, Wrong> {
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let hint = match nearest(text, &known) {
        Some(near) => format!("did you mean `{near}`? known: {}", known.join(", ")),
        None => format!("write one of {}", known.join(", ")),
    };
    Err(Wrong::new(format!("{} is not a known {what}", quoted(text)), hint))
}

/// The code of a check whose refusal may be allowed.
pub(super) fn check_code(text: &str) -> Result<String, Wrong> {
    crate::check::allowable(text).map(str::to_owned).map_err(|error| {
        Wrong::new(
            error.to_string(),
            "docs/checks.md lists the checks, and which of them can be allowed",
        )
    })
}

/// A path: `~` is the user's home, relative ones are relative to the inventory's folder.
pub(super) fn path(text: &str, environment: &Environment) -> Result<PathBuf, Wrong> {
    if text == "~" {
        return Ok(environment.home.clone());
    }
    if let Some(rest) = text.strip_prefix("~/") {
        return Ok(environment.home.join(rest.trim_start_matches('/')));
    }
    if text.starts_with('~') {
        return Err(Wrong::new(
            format!("{} names another user's home, which is not looked up", quoted(text)),
            "write the whole path",
        ));
    }
    Ok(environment
        .inventory_dir
        .join(Path::new(text.strip_prefix("./").unwrap_or(text))))
}

/// An `http://` or `https://` URL, without a slash at its end.
pub(super) fn url(text: &str) -> Result<String, Wrong> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let good = text
        .chars()
        .all(|c| !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '\'' | '<' | '>' | '\\' | '`'));
    match host {
        Some(host) if good && !host.is_empty() && !host.starts_with(':') => Ok(text.trim_end_matches('/').to_owned()),
        _ => Err(Wrong::new(
            format!("{} is not a URL", quoted(text)),
            format!(
                "write it with `https://` or `http://`, such as `https://{}`",
                if rest.is_none() && good { text } else { "mirror.example" }
            ),
        )),
    }
}

/// Registry and path of images, as in `ghcr.io/flannel-io`.
pub(super) fn repository(text: &str) -> Result<String, Wrong> {
    let example = "write registry and path, such as `registry.example:5000/k8s`";
    if text.contains("://") {
        return Err(Wrong::new("an image repository has no scheme", example));
    }
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':');
    let text = text.trim_end_matches('/');
    if text.is_empty() || !text.chars().all(good) || text.starts_with('/') || text.contains("//") {
        return Err(Wrong::new(
            format!("{} is not an image repository", quoted(text)),
            example,
        ));
    }
    Ok(text.to_owned())
}

/// Name of a network interface.
pub(super) fn interface(text: &str) -> Result<String, Wrong> {
    let good = text.len() <= 15
        && !text
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || matches!(c, '/' | ':' | '"'));
    if good && text != "." && text != ".." {
        return Ok(text.to_owned());
    }
    Err(Wrong::new(
        format!("{} is not an interface", quoted(text)),
        "write a name as `ip link` shows it, such as `eth0`",
    ))
}

/// Made of digits and dots only: meant as an IPv4 address.
pub(super) fn numeric(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// Meant as an IPv6 address.
fn ipv6(text: &str) -> bool {
    let inner = text
        .trim_start_matches('[')
        .split([']', '%', '/'])
        .next()
        .unwrap_or_default();
    inner.parse::<Ipv6Addr>().is_ok()
}
