//! Authentication with key files and the agent's keys, few of them, each offered once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use russh::MethodKind;
use russh::client::{AuthResult, Handle};
use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::keys::{
    Algorithm, HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKey, decode_secret_key, load_public_key,
};
use tokio::net::UnixStream;

use super::error::{ConnectError, Hop, KeyProblem, TriedKey};
use super::handler::{EndReason, Handler, explain};
use super::known_hosts::fingerprint;
use crate::cluster::{self, SshTarget};
use crate::secret::Secret;

/// sshd hangs up after 6 failures by default, and punishes the address of who guesses.
const MOST_OFFERS: usize = 5;
/// An agent that does not even list its keys in this time is left out.
const AGENT_PATIENCE: Duration = Duration::from_secs(5);

/// A key file of the inventory.
#[derive(Debug)]
struct KeyFile {
    path: PathBuf,
    content: Result<Arc<PrivateKey>, KeyProblem>,
    /// The public half, for asking the agent where the private half cannot be used.
    public: Option<PublicKey>,
}

/// Keys of encrypted files that somebody has opened with a passphrase.
#[derive(Default)]
pub(super) struct Unlocked(Mutex<HashMap<PathBuf, Arc<PrivateKey>>>);

impl Unlocked {
    pub(super) fn open(&self, path: &Path, passphrase: &Secret) -> Result<(), KeyProblem> {
        let text = std::fs::read_to_string(path).map_err(|error| KeyProblem::Unreadable(error.to_string()))?;
        let text = zeroize::Zeroizing::new(text);
        let key = decode_secret_key(&text, Some(passphrase.reveal())).map_err(|_| KeyProblem::Passphrase)?;
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.insert(path.to_owned(), Arc::new(key));
        Ok(())
    }

    fn get(&self, path: &Path) -> Option<Arc<PrivateKey>> {
        let keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.get(path).cloned()
    }
}

impl KeyFile {
    fn load(path: &Path, unlocked: &Unlocked) -> Self {
        if let Some(key) = unlocked.get(path) {
            return Self {
                path: path.to_owned(),
                public: Some(key.public_key().clone()),
                content: Ok(key),
            };
        }
        let file = |content, public| Self {
            path: path.to_owned(),
            content,
            public,
        };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => zeroize::Zeroizing::new(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return file(Err(KeyProblem::NotFound), beside(path));
            }
            Err(error) => return file(Err(KeyProblem::Unreadable(error.to_string())), beside(path)),
        };
        if let Ok(public) = text.trim().parse::<PublicKey>() {
            return file(Err(KeyProblem::Public), Some(public));
        }
        if let Ok(key) = PrivateKey::from_openssh(text.as_bytes())
            && key.is_encrypted()
        {
            return file(Err(KeyProblem::Encrypted), Some(key.public_key().clone()));
        }
        match decode_secret_key(&text, None) {
            Ok(key) => {
                let public = key.public_key().clone();
                match key.algorithm() {
                    Algorithm::SkEd25519 | Algorithm::SkEcdsaSha2NistP256 => {
                        file(Err(KeyProblem::SecurityKey), Some(public))
                    }
                    _ => file(Ok(Arc::new(key)), Some(public)),
                }
            }
            Err(_) if text.contains("ENCRYPTED") => {
                // russh opens PKCS#8, and of OpenSSL's older way only RSA with this cipher.
                let opens = text.contains("BEGIN ENCRYPTED PRIVATE KEY")
                    || text.contains("BEGIN RSA PRIVATE KEY") && text.contains("DEK-Info: AES-128-CBC,");
                let problem = if opens {
                    KeyProblem::Encrypted
                } else {
                    KeyProblem::OldEncryption
                };
                file(Err(problem), beside(path))
            }
            Err(error) => file(Err(KeyProblem::Format(error.to_string())), None),
        }
    }
}

/// The public key in the file of the same name with `.pub`.
fn beside(path: &Path) -> Option<PublicKey> {
    let mut name = path.as_os_str().to_owned();
    name.push(".pub");
    load_public_key(PathBuf::from(name)).ok()
}

/// An agent and what it holds.
struct Agent {
    client: AgentClient<UnixStream>,
    keys: Vec<(PublicKey, String)>,
}

impl Agent {
    async fn connect(socket: &Path) -> Result<Self, String> {
        let connecting = async {
            let mut client = AgentClient::connect_uds(socket).await?;
            let identities = client.request_identities().await?;
            Ok::<_, russh::keys::Error>((client, identities))
        };
        match tokio::time::timeout(AGENT_PATIENCE, connecting).await {
            Ok(Ok((client, identities))) => {
                let keys = identities
                    .into_iter()
                    .filter_map(|identity| match identity {
                        AgentIdentity::PublicKey { key, comment } => Some((key, comment)),
                        AgentIdentity::Certificate { .. } => None,
                    })
                    .collect();
                Ok(Self { client, keys })
            }
            Ok(Err(error)) => Err(format!("the agent at {} does not answer: {error}", socket.display())),
            Err(_) => Err(format!("the agent at {} does not answer", socket.display())),
        }
    }

    fn holds(&self, wanted: &PublicKey) -> Option<&(PublicKey, String)> {
        self.keys.iter().find(|(key, _)| key.key_data() == wanted.key_data())
    }
}

/// A key to offer.
enum Offer {
    File(PathBuf, Arc<PrivateKey>),
    Agent(PublicKey, String),
}

impl Offer {
    fn public(&self) -> &PublicKey {
        match self {
            Self::File(_, key) => key.public_key(),
            Self::Agent(key, _) => key,
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::File(path, _) => path.display().to_string(),
            Self::Agent(_, comment) if comment.is_empty() => "agent".to_owned(),
            Self::Agent(_, comment) => format!("agent {comment}"),
        }
    }
}

/// The keys to offer, those that are named first, and what became of files that give none. With `only` the agent's
/// other keys are left out.
fn offers(files: Vec<KeyFile>, agent: Option<&Agent>, only: bool) -> (Vec<Offer>, Vec<(PathBuf, KeyProblem)>) {
    let mut offers: Vec<Offer> = Vec::new();
    let mut problems = Vec::new();
    for KeyFile { path, content, public } in files {
        match content {
            Ok(key) => offers.push(Offer::File(path, key)),
            Err(problem) => match public.and_then(|public| agent.and_then(|agent| agent.holds(&public))) {
                Some((key, _)) => offers.push(Offer::Agent(key.clone(), path.display().to_string())),
                None => problems.push((path, problem)),
            },
        }
    }
    for (key, comment) in agent.iter().filter(|_| !only).flat_map(|agent| &agent.keys) {
        if !offers.iter().any(|offer| offer.public().key_data() == key.key_data()) {
            offers.push(Offer::Agent(key.clone(), comment.clone()));
        }
    }
    (offers, problems)
}

/// Proves to the host who we are, or says which keys were tried and what the host said.
pub(super) async fn authenticate(
    handle: &mut Handle<Handler>,
    at: &Arc<Hop>,
    target: &SshTarget,
    agent_socket: Option<&Path>,
    unlocked: &Unlocked,
    end: &EndReason,
) -> Result<(), ConnectError> {
    let files: Vec<KeyFile> = target.keys.iter().map(|path| KeyFile::load(path, unlocked)).collect();
    let (mut agent, agent_note) = match agent_socket {
        None if target.agent == cluster::Agent::Off => (
            None,
            Some("the OpenSSH configuration says IdentityAgent none".to_owned()),
        ),
        None => (None, Some("no agent is running (SSH_AUTH_SOCK is not set)".to_owned())),
        Some(socket) => match Agent::connect(socket).await {
            Ok(agent) if agent.keys.is_empty() => (None, Some("the agent holds no keys".to_owned())),
            Ok(agent) => (Some(agent), None),
            Err(note) => (None, Some(note)),
        },
    };
    let (offers, problems) = offers(files, agent.as_ref(), target.only_keys);
    let locked = problems.iter().filter(|(_, why)| *why == KeyProblem::Encrypted);
    let locked: Vec<PathBuf> = locked.map(|(path, _)| path.clone()).collect();
    // Of several files the one that a passphrase would open says most.
    let telling = problems.iter().find(|(path, _)| locked.first() == Some(path));
    if offers.is_empty()
        && let Some((path, why)) = telling.or(problems.first())
    {
        return Err(ConnectError::KeyFile {
            at: Arc::clone(at),
            path: path.clone(),
            why: why.clone(),
        });
    }

    let hash = if offers.iter().any(|offer| offer.public().algorithm().is_rsa()) {
        Some(rsa_hash(handle, at).await?)
    } else {
        None
    };
    let mut tried: Vec<TriedKey> = problems
        .into_iter()
        .map(|(path, problem)| TriedKey {
            key: path.display().to_string(),
            outcome: problem.to_string(),
        })
        .collect();
    let mut server = "nothing was offered to the server".to_owned();
    for (index, offer) in offers.iter().enumerate() {
        let what = format!("({} {})", offer.public().algorithm(), fingerprint(offer.public()));
        if index >= MOST_OFFERS {
            tried.push(TriedKey {
                key: format!("{} further keys", offers.len() - index),
                outcome: format!(
                    "not offered, since servers hang up after a few; name the right one in the inventory {what}"
                ),
            });
            break;
        }
        let outcome = match offer_one(handle, at, offer, hash, agent.as_mut()).await? {
            Offered::Answer(AuthResult::Success) => return Ok(()),
            Offered::Answer(AuthResult::Failure {
                remaining_methods,
                partial_success,
            }) => {
                let methods: Vec<&str> = remaining_methods.iter().map(Into::into).collect();
                server = match (methods.is_empty(), end.get()) {
                    (true, Some(reason)) => reason,
                    (true, None) => "the server offers no further method".to_owned(),
                    (false, _) if partial_success => {
                        format!("the server accepts the key and wants {} as well", methods.join(" and "))
                    }
                    (false, _) => format!("the server offers {}", methods.join(", ")),
                };
                let over = partial_success || !remaining_methods.contains(&MethodKind::PublicKey);
                tried.push(TriedKey {
                    key: offer.shown(),
                    outcome: format!("{} {what}", if partial_success { "accepted" } else { "not accepted" }),
                });
                if over {
                    break;
                }
                continue;
            }
            Offered::NotSigned(why) => format!("the agent did not sign: {why} {what}"),
        };
        tried.push(TriedKey {
            key: offer.shown(),
            outcome,
        });
    }
    Err(ConnectError::Authentication {
        at: Arc::clone(at),
        tried,
        agent: agent_note,
        server,
        locked,
    })
}

enum Offered {
    Answer(AuthResult),
    NotSigned(String),
}

async fn offer_one(
    handle: &mut Handle<Handler>,
    at: &Arc<Hop>,
    offer: &Offer,
    hash: Option<HashAlg>,
    agent: Option<&mut Agent>,
) -> Result<Offered, ConnectError> {
    let protocol = |why: String| ConnectError::Protocol {
        at: Arc::clone(at),
        why: format!("authentication broke off: {why}"),
    };
    match (offer, agent) {
        (Offer::File(_, key), _) => {
            let key = PrivateKeyWithHashAlg::new(Arc::clone(key), hash);
            let answer = handle.authenticate_publickey(at.user.clone(), key).await;
            answer.map(Offered::Answer).map_err(|error| protocol(explain(&error)))
        }
        (Offer::Agent(key, _), Some(agent)) => {
            let hash = hash.filter(|_| key.algorithm().is_rsa());
            let answer = handle
                .authenticate_publickey_with(at.user.clone(), key.clone(), hash, &mut agent.client)
                .await;
            match answer {
                Ok(answer) => Ok(Offered::Answer(answer)),
                Err(russh::AgentAuthError::Key(error)) => Ok(Offered::NotSigned(error.to_string())),
                Err(russh::AgentAuthError::Send(error)) => Err(protocol(error.to_string())),
            }
        }
        (Offer::Agent(..), None) => Ok(Offered::NotSigned("it is gone".to_owned())),
    }
}

/// The hash for RSA signatures: what the server prefers of SHA-2, never SHA-1.
async fn rsa_hash(handle: &Handle<Handler>, at: &Arc<Hop>) -> Result<HashAlg, ConnectError> {
    let hash = handle
        .best_supported_rsa_hash()
        .await
        .map_err(|error| ConnectError::Protocol {
            at: Arc::clone(at),
            why: explain(&error),
        })?;
    Ok(hash.flatten().unwrap_or(HashAlg::Sha256))
}

#[cfg(test)]
mod tests {
    use russh::keys::ssh_key::LineEnding;
    use russh::keys::{Algorithm, PrivateKey};

    use std::path::Path;

    use super::{KeyFile, KeyProblem, Unlocked};
    use crate::secret::Secret;

    fn load(path: &Path) -> KeyFile {
        KeyFile::load(path, &Unlocked::default())
    }

    #[test]
    fn key_files_say_what_is_wrong_with_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("id");
        assert_eq!(load(&path).content.unwrap_err(), KeyProblem::NotFound);

        let key = PrivateKey::random(&mut russh::keys::key::safe_rng(), Algorithm::Ed25519).unwrap();
        std::fs::write(&path, key.to_openssh(LineEnding::LF).unwrap().as_bytes()).unwrap();
        assert_eq!(load(&path).content.unwrap().public_key(), key.public_key());

        std::fs::write(&path, key.public_key().to_openssh().unwrap()).unwrap();
        let public = load(&path);
        assert_eq!(public.content.unwrap_err(), KeyProblem::Public);
        assert_eq!(public.public.unwrap().key_data(), key.public_key().key_data());

        std::fs::write(
            &path,
            "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
        )
        .unwrap();
        assert!(matches!(load(&path).content, Err(KeyProblem::Format(_))));
    }

    #[test]
    fn an_encrypted_key_tells_its_public_half_and_opens_with_its_passphrase_only() {
        let dir = tempfile::tempdir().unwrap();
        for (kind, format, opens) in [
            ("ed25519", "RFC4716", true),
            ("ecdsa", "RFC4716", true),
            ("ecdsa", "PKCS8", true),
            ("ecdsa", "PEM", false),
            ("rsa", "RFC4716", true),
            ("rsa", "PKCS8", true),
            ("rsa", "PEM", true),
        ] {
            let path = dir.path().join(format!("{kind}-{format}"));
            let made = std::process::Command::new("ssh-keygen")
                .args(["-q", "-a", "1", "-t", kind, "-N", "secret", "-m", format, "-f"])
                .arg(&path)
                .status()
                .unwrap();
            assert!(made.success());
            let file = load(&path);
            let problem = if opens {
                KeyProblem::Encrypted
            } else {
                KeyProblem::OldEncryption
            };
            assert_eq!(file.content.unwrap_err(), problem, "{kind} {format}");
            assert!(file.public.is_some(), "{kind} {format}");
            let unlocked = Unlocked::default();
            assert!(unlocked.open(&path, &Secret::new("guess")).is_err(), "{kind} {format}");
            let opened = unlocked.open(&path, &Secret::new("secret"));
            assert_eq!(opened.is_ok(), opens, "{kind} {format}: {opened:?}");
            assert_eq!(
                KeyFile::load(&path, &unlocked).content.is_ok(),
                opens,
                "{kind} {format}"
            );
        }
    }

    #[test]
    fn all_formats_of_ssh_keygen_are_read() {
        let dir = tempfile::tempdir().unwrap();
        for (kind, format) in [
            ("rsa", "PEM"),
            ("rsa", "PKCS8"),
            ("rsa", "RFC4716"),
            ("ecdsa", "PKCS8"),
            ("ed25519", "RFC4716"),
        ] {
            let path = dir.path().join(format!("{kind}-{format}"));
            let made = std::process::Command::new("ssh-keygen")
                .args(["-q", "-t", kind, "-N", "", "-m", format, "-f"])
                .arg(&path)
                .status()
                .unwrap();
            assert!(made.success());
            let file = load(&path);
            assert!(file.content.is_ok(), "{kind} {format}: {:?}", file.content);
        }
    }
}
