//! Registry mirrors as containerd reads them: one `hosts.toml` a registry.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use toml::Value;

use super::CERTS_D;
use crate::cluster::Images;

/// One `hosts.toml` for every registry that has mirrors, by path.
#[must_use]
pub fn mirror_files(images: &Images) -> BTreeMap<String, String> {
    images
        .mirrors
        .iter()
        .map(|(registry, mirrors)| (hosts_path(registry), hosts_toml(registry, mirrors)))
        .collect()
}

fn hosts_path(registry: &str) -> String {
    let folder = if registry == "*" { "_default" } else { registry };
    format!("{CERTS_D}/{folder}/hosts.toml")
}

/// Written by hand, because containerd tries the hosts in the order of the file's lines.
fn hosts_toml(registry: &str, mirrors: &[String]) -> String {
    let quoted = |text: &str| Value::String(text.to_owned()).to_string();
    let mut text = "# managed by k8sup\n".to_owned();
    // Where a mirror lacks an image, the registry itself is asked; the default has no one registry.
    let server = match registry {
        "*" => None,
        "docker.io" => Some("https://registry-1.docker.io".to_owned()),
        other => Some(format!("https://{other}")),
    };
    if let Some(server) = server {
        let _ = writeln!(text, "server = {}", quoted(&server));
    }
    for mirror in mirrors {
        let mirror = mirror.trim_end_matches('/');
        let _ = write!(
            text,
            "\n[host.{}]\n  capabilities = [\"pull\", \"resolve\"]\n",
            quoted(mirror)
        );
        // A path with the API's version in it is the whole path: containerd must not append its own.
        if mirror.contains("/v2/") || mirror.ends_with("/v2") {
            text.push_str("  override_path = true\n");
        }
    }
    text
}
