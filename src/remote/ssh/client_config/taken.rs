//! How settings complete a login: what the inventory says itself stays.

use std::path::PathBuf;

use super::settings::Settings;
use crate::cluster::{Agent, HostKeys, SshTarget};
use crate::remote::ssh::error::ConfigProblem;

/// Keywords that change where a connection leads or whom it trusts: they are not left out.
const REFUSED: [&str; 2] = ["ProxyCommand", "RevokedHostKeys"];
/// Keywords that are left out, which a person should know.
const LEFT_OUT: [&str; 9] = [
    "AddressFamily",
    "BindAddress",
    "BindInterface",
    "CertificateFile",
    "KnownHostsCommand",
    "PKCS11Provider",
    "PubkeyAuthentication",
    "SecurityKeyProvider",
    "VerifyHostKeyDNS",
];
/// The same, where distributions set them for everybody: only the debug log tells.
const OWN: [&str; 5] = [
    "Ciphers",
    "HostKeyAlgorithms",
    "KexAlgorithms",
    "MACs",
    "PubkeyAcceptedAlgorithms",
];

/// Completes a login by what a configuration says otherwise than OpenSSH's defaults.
pub(super) fn take(
    target: &mut SshTarget,
    said: &Settings,
    defaults: &Settings,
    notes: &mut Vec<String>,
) -> Result<(), ConfigProblem> {
    let set = |keyword: &&&str| said.one(&keyword.to_ascii_lowercase()).is_some();
    let no_jump = target.written.bastion;
    if let Some(keyword) = (REFUSED.iter().filter(set)).find(|keyword| !(no_jump && **keyword == "ProxyCommand")) {
        return Err(ConfigProblem::Unsupported(keyword));
    }
    let left_out = LEFT_OUT.iter().filter(set);
    notes.extend(left_out.map(|keyword| format!("{keyword} of the OpenSSH configuration is left out")));
    for keyword in OWN.iter().filter(set) {
        tracing::debug!("{}: {keyword} of the OpenSSH configuration is left out", target.host);
    }

    let asked = target.host.clone();
    if let Some(host) = said.one("hostname") {
        // Without HostName this is the name that was asked for.
        host.clone_into(&mut target.host);
    }
    if let Some(user) = said.one("user").filter(|_| !target.written.user) {
        user.clone_into(&mut target.user);
    }
    if let Some(port) = said.one("port").filter(|_| !target.written.port) {
        target.port = port.parse().map_err(|_| wrong("Port", port))?;
    }
    target.key_alias = said.one("hostkeyalias").map(str::to_owned);
    let names = Names { asked, target };
    let keys = match said.all("identityfile").filter(|_| !target.written.keys) {
        Some(files) => {
            let files = files.iter().filter(|file| *file != "none");
            Some(
                files
                    .map(|file| names.path("IdentityFile", file))
                    .collect::<Result<Vec<_>, _>>()?,
            )
        }
        None => None,
    };
    let agent = match said.all("identityagent").and_then(|values| values.first()) {
        Some(value) if value == "none" => Agent::Off,
        Some(value) if value == "SSH_AUTH_SOCK" => Agent::Environment,
        Some(value) => match value.strip_prefix('$').filter(|name| !name.starts_with('{')) {
            Some(name) => variable(name).map_or(Agent::Off, |value| Agent::Socket(value.into())),
            None => Agent::Socket(names.path("IdentityAgent", value)?),
        },
        None => target.agent.clone(),
    };
    let mut known_hosts = Vec::new();
    for file in said
        .one("userknownhostsfile")
        .iter()
        .flat_map(|files| files.split_whitespace())
    {
        if file != "/dev/null" {
            known_hosts.push(names.path("UserKnownHostsFile", file)?);
        }
    }
    target.keys = keys.unwrap_or(std::mem::take(&mut target.keys));
    target.agent = agent;
    target.only_keys = said.one("identitiesonly") == Some("yes");
    if !target.written.known_hosts {
        take_known_hosts(target, said, known_hosts, notes);
        let system = said
            .all("globalknownhostsfile")
            .or(defaults.all("globalknownhostsfile"));
        let files = system.into_iter().flatten().flat_map(|files| files.split_whitespace());
        let files = files.filter(|file| !matches!(*file, "none" | "/dev/null"));
        target.more_known_hosts.extend(files.map(PathBuf::from));
    }
    if let Some(rule) = said.one("stricthostkeychecking").filter(|_| !target.written.host_keys) {
        target.host_keys = match rule {
            "yes" | "true" => HostKeys::Strict,
            "ask" => HostKeys::Ask,
            "accept-new" => HostKeys::AcceptNew,
            "no" | "off" | "false" => {
                notes.push(
                    "StrictHostKeyChecking no of the OpenSSH configuration is taken as accept-new: a changed host key \
                     is still refused"
                        .to_owned(),
                );
                HostKeys::AcceptNew
            }
            other => return Err(wrong("StrictHostKeyChecking", other)),
        };
    }
    Ok(())
}

fn take_known_hosts(target: &mut SshTarget, said: &Settings, files: Vec<PathBuf>, notes: &mut Vec<String>) {
    let mut files = files.into_iter();
    if let Some(first) = files.next() {
        target.known_hosts = first;
    } else if said.all("userknownhostsfile").is_some() {
        notes.push(format!(
            "UserKnownHostsFile of the OpenSSH configuration keeps no host keys; they are kept in {}",
            target.known_hosts.display()
        ));
    }
    target.more_known_hosts.extend(files);
}

fn wrong(keyword: &'static str, value: &str) -> ConfigProblem {
    ConfigProblem::Value {
        keyword,
        value: value.to_owned(),
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// What tokens stand for.
struct Names<'a> {
    /// The name that `ssh` was asked for.
    asked: String,
    target: &'a SshTarget,
}

impl Names<'_> {
    /// A path with `~`, tokens (`%h`) and variables (`${NAME}`) put in, as `ssh_config(5)` has them.
    fn path(&self, keyword: &'static str, text: &str) -> Result<PathBuf, ConfigProblem> {
        let home = || variable("HOME").ok_or_else(|| wrong(keyword, text));
        let (mut path, mut rest) = match text.strip_prefix("~/") {
            Some(rest) => (format!("{}/", home()?), rest),
            None if text.starts_with('~') => return Err(wrong(keyword, text)),
            None => (String::new(), text),
        };
        while let Some(at) = rest.find(['%', '$']) {
            path.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some((name, after)) = rest.strip_prefix("${").and_then(|rest| rest.split_once('}')) {
                path.push_str(&variable(name).ok_or_else(|| wrong(keyword, text))?);
                rest = after;
                continue;
            }
            let mut characters = rest.chars();
            let token = (characters.next(), characters.next());
            match token {
                (Some('%'), Some('%')) => path.push('%'),
                (Some('%'), Some('d')) => path.push_str(&home()?),
                (Some('%'), Some('h')) => path.push_str(&self.target.host),
                (Some('%'), Some('k')) => path.push_str(self.target.key_alias.as_ref().unwrap_or(&self.asked)),
                (Some('%'), Some('n')) => path.push_str(&self.asked),
                (Some('%'), Some('p')) => path.push_str(&self.target.port.to_string()),
                (Some('%'), Some('r')) => path.push_str(&self.target.user),
                (Some('%'), Some('u')) => path.push_str(&variable("USER").ok_or_else(|| wrong(keyword, text))?),
                (Some('$'), _) => {
                    path.push('$');
                    rest = &rest[1..];
                    continue;
                }
                _ => return Err(wrong(keyword, text)),
            }
            rest = &rest[2..];
        }
        path.push_str(rest);
        Ok(PathBuf::from(path))
    }
}
