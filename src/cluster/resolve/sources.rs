//! Where software comes from (Flannel, packages, images, a proxy), and the documents that are
//! merged over ours.

use std::collections::BTreeMap;

use serde_json::Value;

use super::text::{Wrong, check, interface, one_of, path, port, repository, url, within};
use crate::cluster::{ContainerdRepository, Flannel, Images, ManifestSource, Overrides, Packages, Proxy, Version};
use crate::inventory::Environment;
use crate::inventory::problem::{Problem, Span, quoted};
use crate::inventory::raw::{FlannelSection, ImagesSection, Inventory, PackagesSection, ProxySection};
use crate::inventory::tree::{Kind, Node};

/// Flannel where the inventory names no version.
pub(super) const FLANNEL_VERSION: &str = "v0.28.10";
/// SHA-256 of that version's manifest.
const FLANNEL_SHA256: &str = "944a3c1f925f117727a1b7272a323c80965da642498397ec7e6ea9bef0f9e6c5";
/// Kubernetes' own package repository.
const PACKAGES: &str = "https://pkgs.k8s.io";

/// URL of the manifest in Flannel's source at a version's tag: bytes that cannot change.
fn flannel_url(version: &str) -> String {
    format!("https://raw.githubusercontent.com/flannel-io/flannel/{version}/Documentation/kube-flannel.yml")
}

/// Flannel's settings.
pub(super) fn flannel(
    section: &FlannelSection,
    environment: &Environment,
    problems: &mut Vec<Problem>,
) -> Option<Flannel> {
    let version = match &section.version {
        None => Some(FLANNEL_VERSION.to_owned()),
        Some(at) => check(problems, Some(at), |text| flannel_version(text)),
    };
    let manifest = match &section.manifest {
        Some(at) => check(problems, Some(at), |text| manifest(text, environment)),
        None => version
            .as_ref()
            .map(|version| ManifestSource::Url(flannel_url(version))),
    };
    let mut sha256 = check(problems, section.sha256.as_ref(), |text| sha256_of(text));
    if let (Some(ManifestSource::Url(manifest)), None) = (&manifest, &section.sha256) {
        if *manifest == flannel_url(FLANNEL_VERSION) {
            sha256 = Some(FLANNEL_SHA256.to_owned());
        } else {
            let span = section
                .manifest
                .as_ref()
                .or(section.version.as_ref())
                .map_or(0..0, |at| at.span.clone());
            problems.push(
                Problem::error(
                    span,
                    "the manifest's SHA-256 is not pinned: what is fetched could not be checked",
                )
                .hint(format!(
                    "add `sha256:` with what this prints: curl -fsSL {manifest} | sha256sum"
                )),
            );
        }
    }
    let backends = [("vxlan", "vxlan"), ("host-gw", "host-gw"), ("wireguard", "wireguard")];
    let backend = match &section.backend {
        None => Some("vxlan"),
        Some(at) => check(problems, Some(at), |text| one_of("backend", text, &backends)),
    };
    if backend.is_some_and(|backend| backend != "vxlan") {
        for (key, at) in [("vni", &section.vni), ("port", &section.port)] {
            if let Some(at) = at {
                let message = format!("`flannel.{key}` belongs to the backend vxlan, which is not the one chosen");
                problems.push(Problem::error(at.span.clone(), message).hint("remove the line"));
            }
        }
    }
    let mut patches = BTreeMap::new();
    for (target, patch) in &section.patches {
        let good = check(problems, Some(target), |text| patch_target(text));
        let value = patch.to_json(problems);
        if let Some(target) = good {
            patches.insert(target, value);
        }
    }
    let vni = match &section.vni {
        None => Some(1),
        Some(at) => check(problems, Some(at), |number| {
            within("a VXLAN identifier", *number, 1, 16_777_215)
        }),
    };
    Some(Flannel {
        port: check(problems, section.port.as_ref(), |number| port(*number)),
        mtu: check(problems, section.mtu.as_ref(), |number| {
            within("an MTU", *number, 576, 65_535)
        }),
        interface: check(problems, section.interface.as_ref(), |text| interface(text)),
        image_repository: check(problems, section.image_repository.as_ref(), |text| repository(text)),
        vni: vni?,
        version: version?,
        manifest: manifest?,
        sha256,
        backend: backend?.to_owned(),
        patches,
    })
}

/// `v0.28.10`.
fn flannel_version(text: &str) -> Result<String, Wrong> {
    let plain = Version::parse(text).map(|version| version.to_string());
    if plain.as_deref() == Some(text) {
        return Ok(text.to_owned());
    }
    let hint = format!("write `{}`", plain.as_deref().unwrap_or(FLANNEL_VERSION));
    Err(Wrong::new(
        format!("{} is not a version of Flannel", quoted(text)),
        hint,
    ))
}

/// A URL, or a file's path.
fn manifest(text: &str, environment: &Environment) -> Result<ManifestSource, Wrong> {
    if text.starts_with("http://") || text.starts_with("https://") {
        return url(text).map(ManifestSource::Url);
    }
    if text.contains("://") {
        return Err(Wrong::new(
            format!("{} is neither a URL nor a path", quoted(text)),
            "write an `https://` URL or a path",
        ));
    }
    path(text, environment).map(ManifestSource::File)
}

/// 64 hexadecimal digits, in lower case.
fn sha256_of(text: &str) -> Result<String, Wrong> {
    let digits = text.strip_prefix("sha256:").unwrap_or(text);
    if digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(digits.to_ascii_lowercase());
    }
    Err(Wrong::new(
        format!("{} is not a SHA-256: it has 64 hexadecimal digits", quoted(text)),
        "write what `sha256sum` prints for the file",
    ))
}

/// `Kind/name`.
fn patch_target(text: &str) -> Result<String, Wrong> {
    match text.split_once('/') {
        Some((kind, name)) if kind.starts_with(|c: char| c.is_ascii_uppercase()) && !name.is_empty() => {
            Ok(text.to_owned())
        }
        _ => Err(Wrong::new(
            format!("{} names no object of the manifest", quoted(text)),
            "write `Kind/name`, such as `DaemonSet/kube-flannel-ds`",
        )),
    }
}

/// Package sources.
pub(super) fn packages(section: &PackagesSection, problems: &mut Vec<Problem>) -> Option<Packages> {
    let repository = match &section.repository {
        None => Some(PACKAGES.to_owned()),
        Some(at) => check(problems, Some(at), |text| url(text)),
    };
    let revision = check(problems, section.revision.as_ref(), |text| {
        let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'~');
        if text.bytes().all(good) {
            return Ok(text.clone());
        }
        Err(Wrong::new(
            format!("{} is not the revision of a Debian package", quoted(text)),
            "write what stands behind the hyphen: `1.1` of `1.34.4-1.1`",
        ))
    });
    let containerd = section.containerd.as_ref().map(|containerd| {
        Some(ContainerdRepository {
            source: check(problems, containerd.source.as_ref(), |text| apt_source(text))?,
            key: check(problems, containerd.key.as_ref(), |text| url(text))?,
            package: match &containerd.package {
                None => "containerd.io".to_owned(),
                Some(at) => check(problems, Some(at), |text| package(text))?,
            },
        })
    });
    Some(Packages {
        repository: repository?,
        revision,
        containerd: match containerd {
            Some(containerd) => Some(containerd?),
            None => None,
        },
    })
}

/// `URL SUITE COMPONENT…`.
fn apt_source(text: &str) -> Result<String, Wrong> {
    let example = "write `URL SUITE COMPONENT`, such as `https://download.docker.com/linux/debian trixie stable`";
    let mut words = text.split_whitespace().peekable();
    if words.peek() == Some(&"deb") || text.contains('[') {
        return Err(Wrong::new("`deb` and options in brackets are added by k8sup", example));
    }
    let words: Vec<&str> = words.collect();
    let flat = words.len() == 2 && words[1].ends_with('/');
    if words.len() < 3 && !flat {
        return Err(Wrong::new(format!("{} is not an apt source", quoted(text)), example));
    }
    url(words[0])?;
    Ok(words.join(" "))
}

/// Name of a Debian package.
fn package(text: &str) -> Result<String, Wrong> {
    let good = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'+' | b'-');
    if text.len() > 1 && text.bytes().all(good) && text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Ok(text.to_owned());
    }
    Err(Wrong::new(
        format!("{} is not the name of a package", quoted(text)),
        "write `containerd.io`, for example",
    ))
}

/// Image sources.
pub(super) fn images(section: &ImagesSection, problems: &mut Vec<Problem>) -> Images {
    let mut mirrors = BTreeMap::new();
    for (registry, written) in &section.mirrors {
        let registry = check(problems, Some(registry), |text| registry_name(text));
        let urls: Vec<String> = written
            .iter()
            .filter_map(|at| check(problems, Some(at), |text| url(text)))
            .collect();
        if let Some(registry) = registry {
            mirrors.insert(registry, urls);
        }
    }
    Images {
        repository: check(problems, section.repository.as_ref(), |text| repository(text)),
        mirrors,
    }
}

/// A registry's host and port, or `*`.
fn registry_name(text: &str) -> Result<String, Wrong> {
    if text == "*" {
        return Ok(text.to_owned());
    }
    if text.contains('/') {
        return Err(Wrong::new(
            format!("{} is not a registry: it has neither scheme nor path", quoted(text)),
            "write its host, such as `docker.io`, or `*` for every registry",
        ));
    }
    repository(text)
}

/// Proxy settings.
pub(super) fn proxy(section: &ProxySection, problems: &mut Vec<Problem>) -> Proxy {
    if section.http.is_none() && section.https.is_none() {
        let problem = Problem::error(section.span.clone(), "`proxy` names no proxy");
        problems.push(problem.hint("write `http:` and `https:`, each with the proxy's URL, or remove the section"));
    }
    let no_proxy = section.no_proxy.iter().filter_map(|at| {
        check(problems, Some(at), |text| {
            if text.contains(|c: char| c.is_whitespace() || c == ',' || c == '"' || c == '\'') {
                let message = format!("{} is more than one entry", quoted(text));
                return Err(Wrong::new(message, "write a list: `[one.example, two.example]`"));
            }
            Ok(text.clone())
        })
    });
    let no_proxy = no_proxy.collect();
    Proxy {
        http: check(problems, section.http.as_ref(), |text| url(text)),
        https: check(problems, section.https.as_ref(), |text| url(text)),
        no_proxy,
    }
}

/// Keys of documents that have a place of their own in the inventory, with that place.
const OWNED: [(&str, &[&str], &str); 11] = [
    ("kubeadm", &["kubernetesVersion"], "`cluster.kubernetes`"),
    ("kubeadm", &["controlPlaneEndpoint"], "`cluster.endpoint`"),
    ("kubeadm", &["clusterName"], "`cluster.name`"),
    ("kubeadm", &["networking", "podSubnet"], "`cluster.podCidr`"),
    ("kubeadm", &["networking", "serviceSubnet"], "`cluster.serviceCidr`"),
    ("kubeadm", &["networking", "dnsDomain"], "`cluster.dnsDomain`"),
    ("kubeadm", &["encryptionAlgorithm"], "`cluster.keyAlgorithm`"),
    ("kubeadm", &["imageRepository"], "`images.repository`"),
    ("kubeadm", &["apiServer", "certSANs"], "`cluster.certSans`"),
    ("kubelet", &["clusterDomain"], "`cluster.dnsDomain`"),
    ("kubeProxy", &["clusterCIDR"], "`cluster.podCidr`"),
];

/// The documents that are merged over ours.
pub(super) fn overrides(inventory: &Inventory, problems: &mut Vec<Problem>) -> Overrides {
    let mut document = |section: &str, node: Option<&Node>, kind: &str, version: &str| -> Option<Value> {
        let node = node?;
        for (_, path, place) in OWNED.iter().filter(|(owner, _, _)| *owner == section) {
            if let Some((span, _)) = find(node, path) {
                let message = format!("`{section}.{}` is set by {place}", path.join("."));
                problems.push(Problem::error(span, message).hint(format!("write it as {place}")));
            }
        }
        for (key, wanted) in [("kind", kind), ("apiVersion", version)] {
            if let Some((span, value)) = find(node, &[key])
                && !matches!(&value.kind, Kind::Scalar { text, .. } if text == wanted)
            {
                let message = format!("`{section}` is merged over {kind} of {version}, not over another document");
                problems
                    .push(Problem::error(span, message).hint(format!("remove the line, or write `{key}: {wanted}`")));
            }
        }
        if section == "kubelet"
            && let Some((span, value)) = find(node, &["cgroupDriver"])
            && !matches!(&value.kind, Kind::Scalar { text, .. } if text == "systemd")
        {
            let message = "`kubelet.cgroupDriver` must be `systemd`: containerd is set up for it";
            problems.push(Problem::error(span, message).hint("remove the line"));
        }
        Some(node.to_json(problems))
    };
    Overrides {
        kubeadm: document(
            "kubeadm",
            inventory.kubeadm.as_ref(),
            "ClusterConfiguration",
            "kubeadm.k8s.io/v1beta4",
        ),
        kubelet: document(
            "kubelet",
            inventory.kubelet.as_ref(),
            "KubeletConfiguration",
            "kubelet.config.k8s.io/v1beta1",
        ),
        kube_proxy: document(
            "kubeProxy",
            inventory.kube_proxy.as_ref(),
            "KubeProxyConfiguration",
            "kubeproxy.config.k8s.io/v1alpha1",
        ),
    }
}

/// The place of a key and its value, following keys through maps.
fn find<'a>(node: &'a Node, path: &[&str]) -> Option<(Span, &'a Node)> {
    let (key, rest) = path.split_first()?;
    let Kind::Map(entries) = &node.kind else { return None };
    let entry = entries.iter().find(|entry| entry.key == *key)?;
    if rest.is_empty() {
        Some((entry.key_span.clone(), &entry.value))
    } else {
        find(&entry.value, rest)
    }
}
