//! The inventory that `k8sup init` begins with.

use serde::Serialize;

use super::template::{self, TemplateError};
use crate::cluster::Role;
use crate::cluster::version::NEWEST;

/// What somebody has said of the cluster that is to be, and what was seen of its hosts.
#[derive(Debug, Clone, Default)]
pub struct Starter {
    /// The file, as it is typed.
    pub file: String,
    /// Name of the cluster.
    pub name: String,
    /// Version of Kubernetes; `None`: the newest that k8sup knows.
    pub kubernetes: Option<String>,
    /// Network of the pods, where it is not the default.
    pub pod_cidr: Option<String>,
    /// Control-plane endpoint, where it is not the load balancer's address.
    pub endpoint: Option<String>,
    /// Login user.
    pub user: Option<String>,
    /// Private key file.
    pub key: Option<String>,
    /// The hosts, in the order in which they are to stand.
    pub hosts: Vec<StarterHost>,
}

/// One host.
#[derive(Debug, Clone)]
pub struct StarterHost {
    /// What it is for.
    pub role: Role,
    /// Name of its Node.
    pub name: String,
    /// Its address.
    pub address: String,
    /// What it is, for a comment: one line.
    pub seen: Option<String>,
    /// sudo asks for a password there.
    pub asks_password: bool,
    /// It has a resolver of its own that pods cannot ask.
    pub has_stub: bool,
}

#[derive(Serialize)]
struct Group {
    key: &'static str,
    about: &'static str,
    hosts: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    address: String,
    seen: Option<String>,
}

/// The inventory's text.
///
/// # Errors
/// Only when the template is wrong.
pub fn inventory(starter: &Starter) -> Result<String, TemplateError> {
    let alone = starter.hosts.iter().all(|host| host.role != Role::Worker);
    let group = |role: Role, key, about| Group {
        key,
        about,
        hosts: starter
            .hosts
            .iter()
            .filter(|host| host.role == role)
            .map(|host| Row {
                name: scalar(&host.name),
                // Where there is no worker, ordinary pods run on controllers.
                address: if alone && role == Role::Controller {
                    format!("{{ address: {}, taints: [] }}", scalar(&host.address))
                } else {
                    scalar(&host.address)
                },
                seen: host.seen.clone(),
            })
            .collect(),
    };
    let names = |what: fn(&StarterHost) -> bool| {
        let meant = starter.hosts.iter().filter(|host| what(host));
        meant.map(|host| host.name.clone()).collect::<Vec<_>>()
    };
    let optional = |text: &Option<String>| text.as_deref().map(scalar);
    // The router of a small network is often its resolver, too.
    let first = starter.hosts.first().and_then(|host| host.address.rsplit_once('.'));
    template::render(
        "inventory.yaml.j2",
        include_str!("../../templates/inventory.yaml.j2"),
        serde_json::json!({
            "file": starter.file,
            "name": scalar(&starter.name),
            "kubernetes": optional(&starter.kubernetes).unwrap_or_else(|| NEWEST.to_string()),
            "pod_cidr": optional(&starter.pod_cidr),
            "endpoint": optional(&starter.endpoint),
            "user": optional(&starter.user),
            "key": optional(&starter.key),
            "sudo": names(|host| host.asks_password),
            "stubs": names(|host| host.has_stub),
            "resolver": first.map_or_else(|| "192.168.7.1".to_owned(), |(network, _)| format!("{network}.1")),
            "groups": [
                group(Role::LoadBalancer, "loadBalancers", "In front of the API servers; haproxy is set up on it."),
                group(Role::Controller, "controllers", "Control plane and etcd. Three survive the loss of one."),
                group(Role::Worker, "workers", "They run pods."),
            ],
        }),
    )
}

/// A YAML scalar: plain where nobody could take it for anything but a text.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "./~_-:".contains(c);
    let is_word = matches!(text, "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "~");
    let is_number = text.parse::<f64>().is_ok();
    let ends_as_key = text.ends_with(':') || text.starts_with(['-', ':']);
    if !text.is_empty() && text.chars().all(plain) && !is_word && !is_number && !ends_as_key {
        text.to_owned()
    } else {
        // JSON's strings are YAML's.
        serde_json::Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::load;
    use crate::inventory::Environment;

    fn host(role: Role, name: &str, address: &str) -> StarterHost {
        StarterHost {
            role,
            name: name.to_owned(),
            address: address.to_owned(),
            seen: None,
            asks_password: false,
            has_stub: false,
        }
    }

    fn problems(text: &str) -> Vec<String> {
        let environment = Environment {
            user: "me".to_owned(),
            home: "/home/me".into(),
            inventory_dir: "/inventories".into(),
        };
        let problems = load(text, &environment).map_or_else(|problems| problems, |(_, warnings)| warnings);
        problems.into_iter().map(|problem| problem.message).collect()
    }

    fn starter() -> Starter {
        Starter {
            file: "homelab.yaml".to_owned(),
            name: "homelab".to_owned(),
            hosts: vec![
                host(Role::LoadBalancer, "lb-0", "192.168.7.140"),
                host(Role::Controller, "controller-0", "192.168.7.201"),
                host(Role::Controller, "controller-1", "192.168.7.202"),
                host(Role::Controller, "controller-2", "192.168.7.203"),
                host(Role::Worker, "worker-0", "192.168.7.204"),
            ],
            ..Starter::default()
        }
    }

    #[test]
    fn the_starter_is_a_valid_inventory() {
        let text = inventory(&starter()).unwrap();
        assert_eq!(problems(&text), [""; 0], "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn all_that_was_said_and_seen_stands_in_it() {
        let mut full = Starter {
            kubernetes: Some("v1.33.13".to_owned()),
            pod_cidr: Some("10.200.0.0/16".to_owned()),
            endpoint: Some("k8s.example.com:6443".to_owned()),
            user: Some("pi".to_owned()),
            key: Some("~/.ssh/my key".to_owned()),
            ..starter()
        };
        full.hosts[1].seen = Some("Debian GNU/Linux 13 (trixie), arm64, 4 processors, 3.7 GB".to_owned());
        full.hosts[1].asks_password = true;
        full.hosts[4].has_stub = true;
        let text = inventory(&full).unwrap();
        assert_eq!(problems(&text), [""; 0], "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn without_workers_pods_run_on_controllers() {
        let alone = Starter {
            hosts: vec![host(Role::Controller, "pi", "192.168.7.201")],
            ..starter()
        };
        let text = inventory(&alone).unwrap();
        assert!(
            text.contains("  pi: { address: 192.168.7.201, taints: [] }\n"),
            "{text}"
        );
        assert_eq!(problems(&text), [""; 0], "{text}");
    }

    #[test]
    fn scalars_stay_texts() {
        for text in [
            "pi",
            "1e3",
            "true",
            "a: b",
            "a #b",
            "",
            "-x",
            "10.1",
            "v1.34.4",
            "\"",
            "~/.ssh/my key",
        ] {
            let back: String = serde_saphyr::from_str(&scalar(text)).unwrap();
            assert_eq!(back, text);
        }
    }
}
