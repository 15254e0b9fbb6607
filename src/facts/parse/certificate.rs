//! Certificates and the public half of kubeconfigs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use x509_parser::extensions::GeneralName;
use x509_parser::pem::Pem;

use super::super::kube::{Certificate, Kubeconfig};

/// Reads the first certificate of a PEM text.
///
/// # Errors
/// Says what is wrong with the text.
pub fn certificate(pem: &str) -> Result<Certificate, String> {
    let block = Pem::iter_from_buffer(pem.as_bytes())
        .filter_map(Result::ok)
        .find(|block| block.label == "CERTIFICATE")
        .ok_or("holds no certificate in PEM")?;
    let parsed = block
        .parse_x509()
        .map_err(|error| format!("holds a broken certificate: {error}"))?;
    let mut found = Certificate {
        subject: parsed.subject().to_string(),
        issuer: parsed.issuer().to_string(),
        spki_sha256: hex(&Sha256::digest(parsed.public_key().raw)),
        not_after: parsed.validity().not_after.timestamp(),
        pem: encode(&block.contents),
        ..Certificate::default()
    };
    if let Ok(Some(names)) = parsed.subject_alternative_name() {
        for name in &names.value.general_names {
            match name {
                GeneralName::DNSName(name) => {
                    found.dns_names.insert((*name).to_owned());
                }
                GeneralName::IPAddress(bytes) => {
                    if let Ok(bytes) = <[u8; 4]>::try_from(*bytes) {
                        found.addresses.insert(bytes.into());
                    }
                }
                _ => {}
            }
        }
    }
    Ok(found)
}

/// A kubeconfig's public lines, as the probe picks them.
#[derive(Debug, Default)]
pub(super) struct PublicKubeconfig {
    pub(super) kubeconfig: Kubeconfig,
    pub(super) client: Option<Certificate>,
}

/// Reads the first server, the first CA and the first client certificate.
pub(super) fn kubeconfig(lines: &str) -> PublicKubeconfig {
    let value = |key: &str| {
        lines.lines().find_map(|line| {
            let line = line.trim_start().trim_start_matches("- ");
            let value = line.strip_prefix(key)?.strip_prefix(':')?;
            Some(value.trim().trim_matches(['"', '\'']))
        })
    };
    let embedded = |key| certificate(&String::from_utf8(STANDARD.decode(value(key)?).ok()?).ok()?).ok();
    PublicKubeconfig {
        kubeconfig: Kubeconfig {
            server: value("server").unwrap_or_default().to_owned(),
            ca_spki_sha256: embedded("certificate-authority-data").map(|ca| ca.spki_sha256),
        },
        client: embedded("client-certificate-data"),
    }
}

fn encode(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
