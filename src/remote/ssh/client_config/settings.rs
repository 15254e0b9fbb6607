//! What `ssh -G` prints: a line for each value of a keyword, the keyword in small letters.

use std::collections::BTreeMap;

/// Values by keyword.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Settings(BTreeMap<String, Vec<String>>);

impl Settings {
    pub(super) fn parse(text: &str) -> Self {
        let mut settings = Self::default();
        for line in text.lines() {
            if let Some((keyword, value)) = line.split_once(' ') {
                let values = settings.0.entry(keyword.to_ascii_lowercase()).or_default();
                values.push(value.trim().to_owned());
            }
        }
        settings
    }

    /// What is set otherwise than by default.
    pub(super) fn but(mut self, defaults: &Self) -> Self {
        self.0.retain(|keyword, values| defaults.0.get(keyword) != Some(values));
        self
    }

    pub(super) fn all(&self, keyword: &str) -> Option<&[String]> {
        self.0.get(keyword).map(Vec::as_slice)
    }

    /// The value of a keyword that has one; `none` is none.
    pub(super) fn one(&self, keyword: &str) -> Option<&str> {
        let value = self.0.get(keyword)?.first()?.as_str();
        (value != "none").then_some(value)
    }
}

/// One host of `ProxyJump`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Jump {
    pub(super) user: Option<String>,
    pub(super) host: String,
    pub(super) port: Option<u16>,
}

/// The hosts of `ProxyJump`, in the order in which they are gone through: `[user@]host[:port]` or
/// `ssh://[user@]host[:port]`, an IPv6 address in brackets.
pub(super) fn jumps(value: &str) -> Option<Vec<Jump>> {
    value.split(',').map(|word| jump(word.trim())).collect()
}

fn jump(word: &str) -> Option<Jump> {
    let word = word.strip_prefix("ssh://").unwrap_or(word).trim_end_matches('/');
    let (user, place) = match word.rsplit_once('@') {
        Some((user, place)) => (Some(user.to_owned()).filter(|user| !user.is_empty())?.into(), place),
        None => (None, word),
    };
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':')?)),
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let port = match port {
        Some(port) => Some(port.parse().ok().filter(|port| *port != 0)?),
        None => None,
    };
    (!host.is_empty() && !host.starts_with('-')).then(|| Jump {
        user,
        host: host.to_owned(),
        port,
    })
}

#[cfg(test)]
mod tests {
    use super::{Settings, jumps};

    #[test]
    fn only_what_differs_from_the_defaults_counts() {
        let defaults = Settings::parse("user me\nport 22\nidentityfile ~/.ssh/id_rsa\nidentityfile ~/.ssh/id_ecdsa\n");
        let said = Settings::parse("user me\nport 2222\nidentityfile ~/k\nproxyjump none\n").but(&defaults);
        assert_eq!((said.one("user"), said.one("port")), (None, Some("2222")));
        assert_eq!(said.all("identityfile").unwrap(), ["~/k"]);
        assert_eq!(said.one("proxyjump"), None);
    }

    #[test]
    fn jumps_are_written_in_many_ways() {
        let told = |value: &str| {
            let shown = |jump: super::Jump| (jump.user.unwrap_or_default(), jump.host, jump.port.unwrap_or(22));
            jumps(value).map(|jumps| jumps.into_iter().map(shown).collect::<Vec<_>>())
        };
        let jump = |user: &str, host: &str, port| (user.to_owned(), host.to_owned(), port);
        assert_eq!(
            told("gw,me@b.example:2222,ssh://x@[fe80::1]:23").unwrap(),
            [
                jump("", "gw", 22),
                jump("me", "b.example", 2222),
                jump("x", "fe80::1", 23)
            ]
        );
        for wrong in [
            "",
            "a,,b",
            "@gw",
            "gw:",
            "gw:0",
            "gw:ssh",
            "-oProxyCommand=x",
            "[::1]22",
        ] {
            assert_eq!(told(wrong), None, "{wrong}");
        }
    }
}
