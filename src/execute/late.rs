//! Values that a plan only names: put into a step's parameters right before it runs.

use std::sync::Mutex;

use rand::Rng;

use crate::plan::{Reference, StepParam};
use crate::remote::Param;
use crate::secret::Secret;

/// Secrets made for this run, and what its steps found out.
#[derive(Debug)]
pub struct Late {
    token: Secret,
    certificate_key: Secret,
    ca_cert_data: Mutex<Option<String>>,
}

/// Bootstrap tokens of k8sup have ids that begin like this, so that it can revoke its own.
pub const TOKEN_PREFIX: &str = "k8s";

impl Late {
    /// Fresh secrets: a bootstrap token and the AES-256 key for uploaded certificates.
    #[must_use]
    pub fn fresh() -> Self {
        let token = format!("{TOKEN_PREFIX}{}.{}", random(3, ALPHABET), random(16, ALPHABET));
        Self {
            token: Secret::new(token),
            certificate_key: Secret::new(random(64, b"0123456789abcdef")),
            ca_cert_data: Mutex::new(None),
        }
    }

    /// Given secrets, for tests that look for them.
    #[must_use]
    pub fn with(token: Secret, certificate_key: Secret) -> Self {
        Self {
            token,
            certificate_key,
            ca_cert_data: Mutex::new(None),
        }
    }

    /// Keeps what a step's output defined.
    pub(crate) fn learn(&self, reference: Reference, stdout: &str) {
        if reference == Reference::CaCertData
            && let Some(value) = stdout.lines().rev().find_map(|line| line.strip_prefix("ca-cert-data "))
            && let Ok(mut slot) = self.ca_cert_data.lock()
        {
            *slot = Some(value.trim().to_owned());
        }
    }

    /// The parameter as the host gets it.
    ///
    /// # Errors
    /// Names the value that is not known yet.
    pub(crate) fn resolve(&self, param: &StepParam) -> Result<Param, Reference> {
        let text = match param {
            StepParam::Plain(text) => return Ok(Param::Plain(text.clone())),
            StepParam::Sealed(text) => text,
        };
        let mut resolved = text.clone();
        for reference in Reference::ALL {
            if resolved.contains(reference.placeholder()) {
                resolved = resolved.replace(reference.placeholder(), &self.value(reference).ok_or(reference)?);
            }
        }
        Ok(Param::Secret(Secret::new(resolved)))
    }

    fn value(&self, reference: Reference) -> Option<String> {
        match reference {
            Reference::BootstrapToken => Some(self.token.reveal().to_owned()),
            Reference::CertificateKey => Some(self.certificate_key.reveal().to_owned()),
            Reference::CaCertData => self.ca_cert_data.lock().ok()?.clone(),
        }
    }
}

const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// Characters from the system's random generator.
fn random(length: usize, alphabet: &[u8]) -> String {
    let mut rng = rand::rng();
    (0..length)
        .map(|_| char::from(alphabet[rng.random_range(0..alphabet.len())]))
        .collect()
}
