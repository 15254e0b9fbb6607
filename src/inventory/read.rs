//! Reads a [`tree`](super::tree) as an [`Inventory`]: the shape, nothing of its meaning.

use super::problem::{Problem, Span, quoted};
use super::raw::{
    At, BastionSection, ClusterSection, ContainerdSection, FlannelSection, HostSection, HostsSection, ImagesSection,
    Inventory, PackagesSection, PasswordSection, ProxySection, SshSection, TaintSection,
};
use super::tree::{Entry, Kind, Node};
use super::walk::{Section, Walk};
use crate::cluster::version::NEWEST;

/// What a CIDR that is not text means.
const ONE_NETWORK: Option<&str> =
    Some("write one IPv4 network, such as `10.244.0.0/16`: dual stack is not supported yet");

/// Reads the shape. The inventory holds as much as could be read.
pub(super) fn read(root: Node) -> (Inventory, Vec<Problem>) {
    let mut walk = Walk::default();
    let first = root.span.clone();
    let mut inventory = Inventory::default();
    let Some(mut top) = walk.section("", "", first.clone(), root) else {
        return (inventory, walk.problems);
    };
    let entry = top.take("cluster");
    match entry {
        Some(entry) => {
            if let Some(section) = walk.section("cluster", "cluster", entry.key_span, entry.value) {
                inventory.cluster = cluster(&mut walk, section);
            }
        }
        None if top.misspelt("cluster") => {}
        None => walk.problems.push(
            Problem::error(first.clone(), "`cluster` is missing")
                .hint(format!("write `cluster: {{ name: homelab, kubernetes: {NEWEST} }}`")),
        ),
    }
    if let Some(section) = walk.inner(&mut top, "ssh", "ssh") {
        inventory.ssh = ssh(&mut walk, section);
    }
    inventory.load_balancers = hosts(&mut walk, &mut top, "loadBalancers", &first);
    inventory.controllers = hosts(&mut walk, &mut top, "controllers", &first);
    inventory.workers = hosts(&mut walk, &mut top, "workers", &first);
    if let Some(section) = walk.inner(&mut top, "flannel", "flannel") {
        inventory.flannel = flannel(&mut walk, section);
    }
    if let Some(section) = walk.inner(&mut top, "packages", "packages") {
        inventory.packages = packages(&mut walk, section);
    }
    if let Some(section) = walk.inner(&mut top, "images", "images") {
        inventory.images = images(&mut walk, section);
    }
    inventory.kubeadm = walk.document(&mut top, "kubeadm");
    inventory.kubelet = walk.document(&mut top, "kubelet");
    inventory.kube_proxy = walk.document(&mut top, "kubeProxy");
    if let Some(mut section) = walk.inner(&mut top, "dns", "dns") {
        inventory.dns_resolvers = walk.texts(&mut section, "resolvers").unwrap_or_default();
    }
    if let Some(mut section) = walk.inner(&mut top, "proxy", "proxy") {
        inventory.proxy = Some(ProxySection {
            span: section.span.clone(),
            http: walk.text(&mut section, "http"),
            https: walk.text(&mut section, "https"),
            no_proxy: walk.texts(&mut section, "noProxy").unwrap_or_default(),
        });
    }
    inventory.allow = walk.texts(&mut top, "allow").unwrap_or_default();
    (inventory, walk.problems)
}

fn cluster(walk: &mut Walk, mut section: Section) -> ClusterSection {
    ClusterSection {
        span: section.span.clone(),
        name: walk.required(&mut section, "name", "homelab"),
        kubernetes: walk.required(&mut section, "kubernetes", &NEWEST.to_string()),
        pod_cidr: walk.text_or(&mut section, "podCidr", ONE_NETWORK),
        service_cidr: walk.text_or(&mut section, "serviceCidr", ONE_NETWORK),
        dns_domain: walk.text(&mut section, "dnsDomain"),
        endpoint: walk.text(&mut section, "endpoint"),
        cert_sans: walk.texts(&mut section, "certSans").unwrap_or_default(),
        key_algorithm: walk.text(&mut section, "keyAlgorithm"),
        set_hostnames: walk.switch(&mut section, "setHostnames"),
    }
}

fn ssh(walk: &mut Walk, mut section: Section) -> SshSection {
    SshSection {
        host: walk.text(&mut section, "host"),
        user: walk.text(&mut section, "user"),
        port: walk.number(&mut section, "port"),
        keys: keys(walk, &mut section),
        bastion: section.take("bastion").and_then(|entry| bastion(walk, entry)),
        sudo_password: section.take("sudoPassword").and_then(|entry| password(walk, entry)),
        host_keys: walk.text(&mut section, "hostKeys"),
        known_hosts: walk.text(&mut section, "knownHosts"),
        config: walk.text(&mut section, "config"),
    }
}

/// `key` or `keys`, not both.
fn keys(walk: &mut Walk, section: &mut Section) -> Option<Vec<At<String>>> {
    let one = walk.text(section, "key");
    let many = walk.texts(section, "keys");
    match (one, many) {
        (Some(one), Some(many)) => {
            let span = many.first().map_or(one.span.clone(), |first| first.span.clone());
            walk.problems.push(
                Problem::error(span, "`key` and `keys` stand side by side")
                    .also(one.span.clone(), "and here is `key`")
                    .hint("write all of them under `keys`"),
            );
            Some(many)
        }
        (Some(one), None) => Some(vec![one]),
        (None, many) => many,
    }
}

fn bastion(walk: &mut Walk, entry: Entry) -> Option<BastionSection> {
    if let Kind::Scalar { text, .. } = &entry.value.kind
        && !entry.value.is_null()
    {
        if text == "none" {
            return Some(BastionSection::Direct);
        }
        let message = format!("`bastion` must be a map or `none`, found {}", quoted(text));
        walk.problems.push(
            Problem::error(entry.value.span, message).hint("write `bastion: { host: gateway.example, user: pi }`"),
        );
        return None;
    }
    let mut section = walk.section("ssh.bastion", "bastion", entry.key_span, entry.value)?;
    let host = walk.required(&mut section, "host", "gateway.example");
    let mut through = ssh(walk, section);
    through.host = host;
    Some(BastionSection::Through(Box::new(through)))
}

fn password(walk: &mut Walk, entry: Entry) -> Option<At<PasswordSection>> {
    let forms = "write `prompt`, `{ env: NAME }` or `{ file: PATH }`";
    let span = entry.value.span.clone();
    match &entry.value.kind {
        Kind::Scalar { text, .. } if text == "prompt" => {
            return Some(At {
                value: PasswordSection::Prompt,
                span,
            });
        }
        Kind::Scalar { text, .. } if text == "none" => {
            return Some(At {
                value: PasswordSection::None,
                span,
            });
        }
        Kind::Scalar { .. } if !entry.value.is_null() => {
            let problem = Problem::error(span, "a password must not stand in an inventory").secret();
            walk.problems.push(problem.label("not shown").hint(forms));
            return None;
        }
        Kind::Scalar { .. } => {
            walk.problems
                .push(Problem::error(entry.key_span, "`sudoPassword` has no value").hint(forms));
            return None;
        }
        Kind::List(_) | Kind::Map(_) => {}
    }
    let mut section = walk.section("ssh.sudoPassword", "sudoPassword", entry.key_span.clone(), entry.value)?;
    let env = walk.text(&mut section, "env");
    let file = walk.text(&mut section, "file");
    match (env, file) {
        (Some(env), None) => Some(At {
            value: PasswordSection::Env(env),
            span,
        }),
        (None, Some(file)) => Some(At {
            value: PasswordSection::File(file),
            span,
        }),
        (env, file) => {
            let message = if env.is_some() && file.is_some() {
                "`sudoPassword` has two sources"
            } else {
                "`sudoPassword` has no source"
            };
            walk.problems.push(Problem::error(entry.key_span, message).hint(forms));
            None
        }
    }
}

fn hosts(walk: &mut Walk, top: &mut Section, key: &str, first: &Span) -> HostsSection {
    let Some(entry) = top.take(key) else {
        return HostsSection {
            span: first.clone(),
            readable: !top.misspelt(key),
            hosts: Vec::new(),
        };
    };
    let span = entry.key_span.clone();
    match entry.value.kind {
        Kind::Map(entries) => {
            let hosts = entries.into_iter().map(|entry| host(walk, entry)).collect();
            HostsSection {
                span,
                readable: true,
                hosts,
            }
        }
        Kind::Scalar { .. } if entry.value.is_null() => HostsSection {
            span,
            readable: true,
            hosts: Vec::new(),
        },
        Kind::Scalar { .. } | Kind::List(_) => {
            let message = format!(
                "`{key}` must be a map of names and addresses, found {}",
                entry.value.what()
            );
            let problem = Problem::error(entry.value.span, message).label("a map belongs here");
            walk.problems
                .push(problem.hint("write a line `NAME: ADDRESS` for each host"));
            HostsSection {
                span,
                readable: false,
                hosts: Vec::new(),
            }
        }
    }
}

fn host(walk: &mut Walk, entry: Entry) -> HostSection {
    let name = At {
        value: entry.key,
        span: entry.key_span,
    };
    let mut host = HostSection {
        name: name.clone(),
        address: None,
        ssh: SshSection::default(),
        labels: Vec::new(),
        taints: None,
        interface: None,
    };
    let shown = quoted(&name.value);
    let example = "192.168.7.201";
    let inside = match &entry.value.kind {
        Kind::Map(_) => walk.section("HOST", name.value.as_str(), name.span.clone(), entry.value),
        Kind::Scalar { .. } | Kind::List(_) => {
            let hint = format!("write `{}: {example}`", name.value.escape_debug());
            host.address = walk.scalar(&shown, &name.span, entry.value, Some(&hint));
            None
        }
    };
    let Some(mut section) = inside else { return host };
    host.address = walk.required(&mut section, "address", example);
    if let Some(inner) = walk.inner(&mut section, "ssh", "HOST.ssh") {
        host.ssh = ssh(walk, inner);
    }
    for entry in walk.free_map(&mut section, "labels").unwrap_or_default() {
        let key = At {
            value: entry.key,
            span: entry.key_span,
        };
        // An empty value is a good label.
        if let Kind::Scalar { text, plain } = &entry.value.kind
            && (entry.value.is_null() || !plain && text.is_empty())
        {
            let value = At {
                value: String::new(),
                span: key.span.clone(),
            };
            host.labels.push((key, value));
        } else if let Some(value) = walk.scalar(&format!("label {}", quoted(&key.value)), &key.span, entry.value, None)
        {
            host.labels.push((key, value));
        }
    }
    host.taints = section.take_some("taints").and_then(|entry| taints(walk, entry));
    host.interface = walk.text(&mut section, "interface");
    host
}

fn taints(walk: &mut Walk, entry: Entry) -> Option<Vec<TaintSection>> {
    let Kind::List(items) = entry.value.kind else {
        let message = format!("`taints` must be a list, found {}", entry.value.what());
        walk.problems
            .push(Problem::error(entry.value.span, message).hint("write `taints: [\"key=value:NoSchedule\"]`"));
        return None;
    };
    let mut taints = Vec::new();
    for item in items {
        let span = item.span.clone();
        if !matches!(item.kind, Kind::Map(_)) {
            taints.extend(
                walk.scalar("an entry of `taints`", &entry.key_span, item, None)
                    .map(TaintSection::Text),
            );
        } else if let Some(mut section) = walk.section("HOST.taints", "taints", span.clone(), item) {
            let value = section.take_some("value");
            taints.push(TaintSection::Map {
                key: walk.required(&mut section, "key", "dedicated"),
                value: value.and_then(|entry| walk.scalar("`taints.value`", &entry.key_span, entry.value, None)),
                effect: walk.required(&mut section, "effect", "NoSchedule"),
                span,
            });
        }
    }
    Some(taints)
}

fn flannel(walk: &mut Walk, mut section: Section) -> FlannelSection {
    let mut patches = Vec::new();
    for entry in walk.free_map(&mut section, "patches").unwrap_or_default() {
        if matches!(entry.value.kind, Kind::Map(_)) {
            patches.push((
                At {
                    value: entry.key,
                    span: entry.key_span,
                },
                entry.value,
            ));
        } else {
            let message = format!(
                "the patch of {} must be a map, found {}",
                quoted(&entry.key),
                entry.value.what()
            );
            walk.problems.push(
                Problem::error(entry.key_span, message).hint("write what to change, as it stands in the manifest"),
            );
        }
    }
    FlannelSection {
        version: walk.text(&mut section, "version"),
        manifest: walk.text(&mut section, "manifest"),
        sha256: walk.text(&mut section, "sha256"),
        backend: walk.text(&mut section, "backend"),
        vni: walk.number(&mut section, "vni"),
        port: walk.number(&mut section, "port"),
        mtu: walk.number(&mut section, "mtu"),
        interface: walk.text(&mut section, "interface"),
        image_repository: walk.text(&mut section, "imageRepository"),
        patches,
    }
}

fn packages(walk: &mut Walk, mut section: Section) -> PackagesSection {
    PackagesSection {
        repository: walk.text(&mut section, "repository"),
        revision: walk.text(&mut section, "revision"),
        containerd: walk
            .inner(&mut section, "containerd", "packages.containerd")
            .map(|mut section| ContainerdSection {
                source: walk.required(
                    &mut section,
                    "source",
                    "https://download.docker.com/linux/debian trixie stable",
                ),
                key: walk.required(&mut section, "key", "https://download.docker.com/linux/debian/gpg"),
                package: walk.text(&mut section, "package"),
            }),
    }
}

fn images(walk: &mut Walk, mut section: Section) -> ImagesSection {
    let repository = walk.text(&mut section, "repository");
    let mut mirrors = Vec::new();
    for entry in walk.free_map(&mut section, "mirrors").unwrap_or_default() {
        let name = format!("`images.mirrors` of {}", quoted(&entry.key));
        if let Some(urls) = walk.list(&name, &entry.key_span, entry.value) {
            mirrors.push((
                At {
                    value: entry.key,
                    span: entry.key_span,
                },
                urls,
            ));
        }
    }
    ImagesSection { repository, mirrors }
}
