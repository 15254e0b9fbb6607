//! CoreDNS's Corefile: names outside the cluster are asked of the inventory's resolvers.
//!
//! The file is read block by block, so that only the `forward` of the root zone is touched and
//! everything else, comments included, stays byte for byte.

use std::net::Ipv4Addr;

/// Why a Corefile cannot be changed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CorefileError {
    /// Blocks do not match.
    #[error("the Corefile has {0}; correct the ConfigMap kube-system/coredns")]
    Unbalanced(&'static str),
    /// Nothing to change.
    #[error(
        "the Corefile has no `forward .` in the server block of the root zone, so dns.resolvers cannot be set; add one to the ConfigMap kube-system/coredns"
    )]
    NoForward,
}

/// The Corefile with these upstream resolvers; the same text when it has them already.
pub fn with_resolvers(corefile: &str, resolvers: &[Ipv4Addr]) -> Result<String, CorefileError> {
    if resolvers.is_empty() {
        return Ok(corefile.to_owned());
    }
    let wanted: Vec<String> = resolvers.iter().map(ToString::to_string).collect();
    let mut changed = String::with_capacity(corefile.len());
    // Whether each open block is a root zone's server block; plugins' blocks are not.
    let mut blocks: Vec<bool> = Vec::new();
    let mut found = false;
    for line in corefile.split_inclusive('\n') {
        let words = words(line);
        let is_forward = blocks == [true] && words.first() == Some(&"forward") && words.get(1) == Some(&".");
        if is_forward {
            found = true;
            changed.push_str(&forward(line, &words, &wanted));
        } else {
            changed.push_str(line);
        }
        for (place, word) in words.iter().enumerate() {
            match *word {
                "{" => blocks.push(blocks.is_empty() && words.iter().take(place).any(|zone| is_root(zone))),
                "}" if blocks.pop().is_none() => return Err(CorefileError::Unbalanced("a `}` too many")),
                _ => {}
            }
        }
    }
    if !blocks.is_empty() {
        return Err(CorefileError::Unbalanced("a block without its `}`"));
    }
    if found {
        Ok(changed)
    } else {
        Err(CorefileError::NoForward)
    }
}

/// The line with other upstreams, its indentation, block and end kept.
fn forward(line: &str, words: &[&str], wanted: &[String]) -> String {
    let indent: String = line.chars().take_while(|c| c.is_whitespace() && *c != '\n').collect();
    let block = if words.last() == Some(&"{") { " {" } else { "" };
    let end = if line.ends_with('\n') { "\n" } else { "" };
    format!("{indent}forward . {}{block}{end}", wanted.join(" "))
}

/// The words of a line without its comment.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace()
        .take_while(|word| !word.starts_with('#'))
        .collect()
}

/// `.`, `.:53`, `dns://.:53`.
fn is_root(zone: &str) -> bool {
    let zone = zone.trim_end_matches(',');
    let zone = zone.split_once("://").map_or(zone, |(_, zone)| zone);
    zone == "." || zone.starts_with(".:")
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::{CorefileError, with_resolvers};

    const KUBEADMS: &str = "\
.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success cluster.local
       disable denial cluster.local
    }
    loop
    reload
    loadbalance
}
";
    const RESOLVERS: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 168, 7, 1), Ipv4Addr::new(9, 9, 9, 9)];

    #[test]
    fn only_the_upstreams_change() {
        let changed = with_resolvers(KUBEADMS, &RESOLVERS).unwrap();
        let expected = KUBEADMS.replace("forward . /etc/resolv.conf {", "forward . 192.168.7.1 9.9.9.9 {");
        assert_eq!(changed, expected);
        assert_eq!(with_resolvers(&changed, &RESOLVERS).unwrap(), changed);
        assert_eq!(with_resolvers(KUBEADMS, &[]).unwrap(), KUBEADMS);
    }

    #[test]
    fn other_zones_and_comments_stay() {
        let corefile = "\
# forward . 1.1.1.1
example.org:53 {
    forward . 10.0.0.1
}
.:53 {
    forward example.net 10.0.0.2
    forward . /etc/resolv.conf # the node's
    template ANY A {
        forward . nonsense
    }
}
";
        let expected = corefile.replace(
            "forward . /etc/resolv.conf # the node's",
            "forward . 192.168.7.1 9.9.9.9",
        );
        assert_eq!(with_resolvers(corefile, &RESOLVERS).unwrap(), expected);
    }

    #[test]
    fn what_cannot_be_changed_is_an_error() {
        assert_eq!(
            with_resolvers(".:53 {\n    errors\n}\n", &RESOLVERS),
            Err(CorefileError::NoForward)
        );
        assert!(matches!(
            with_resolvers(".:53 {\n    forward . 1.1.1.1\n", &RESOLVERS),
            Err(CorefileError::Unbalanced(_))
        ));
        assert!(matches!(
            with_resolvers("}\n", &RESOLVERS),
            Err(CorefileError::Unbalanced(_))
        ));
    }
}
