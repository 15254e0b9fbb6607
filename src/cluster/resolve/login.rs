//! How each host is logged in to: its own `ssh` over that of all hosts.

use std::path::PathBuf;

use super::text::{Wrong, check, dialled, one_of, path, port};
use crate::cluster::{HostKeys, SecretSource, SshTarget};
use crate::inventory::Environment;
use crate::inventory::problem::{Problem, quoted};
use crate::inventory::raw::{At, BastionSection, PasswordSection, SshSection};

/// Keys that are tried where the inventory names none.
const DEFAULT_KEYS: [&str; 3] = ["~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"];

/// What a section says of something that can also be switched off.
#[derive(Clone, Default)]
enum Said<T> {
    /// Nothing: what holds for all hosts holds here.
    #[default]
    Nothing,
    /// `none`.
    No,
    /// This.
    This(T),
}

impl<T> Said<T> {
    /// What is said here, or else there.
    fn or<'a>(&'a self, other: &'a Self) -> Option<&'a T> {
        match (self, other) {
            (Self::This(value), _) | (Self::Nothing, Self::This(value)) => Some(value),
            (Self::No, _) | (Self::Nothing, Self::Nothing | Self::No) => None,
        }
    }
}

/// An `ssh` section, checked. What it does not say is `None`.
#[derive(Clone, Default)]
pub(super) struct Login {
    host: Option<String>,
    user: Option<String>,
    port: Option<u16>,
    keys: Option<Vec<PathBuf>>,
    bastion: Said<Box<Self>>,
    sudo_password: Said<SecretSource>,
    host_keys: Option<HostKeys>,
    known_hosts: Option<PathBuf>,
}

/// Checks a section.
pub(super) fn login(section: &SshSection, environment: &Environment, problems: &mut Vec<Problem>) -> Login {
    let file = |text: &String| path(text, environment);
    let keys = section.keys.as_ref().map(|keys| {
        keys.iter()
            .filter_map(|key| check(problems, Some(key), |text: &String| private_key(text, environment)))
            .collect()
    });
    Login {
        host: check(problems, section.host.as_ref(), |text| dialled(text)),
        user: check(problems, section.user.as_ref(), |text| user(text)),
        port: check(problems, section.port.as_ref(), |number| port(*number)),
        keys,
        bastion: match &section.bastion {
            None => Said::Nothing,
            Some(BastionSection::Direct) => Said::No,
            Some(BastionSection::Through(through)) => Said::This(Box::new(login(through, environment, problems))),
        },
        sudo_password: section
            .sudo_password
            .as_ref()
            .map_or(Said::Nothing, |at| password(at, environment, problems)),
        host_keys: check(problems, section.host_keys.as_ref(), |text| {
            let words = [
                ("ask", HostKeys::Ask),
                ("strict", HostKeys::Strict),
                ("accept-new", HostKeys::AcceptNew),
            ];
            one_of("rule for host keys", text, &words)
        }),
        known_hosts: check(problems, section.known_hosts.as_ref(), file),
    }
}

/// The way to a host at `address`: `own` over `all` over the defaults.
pub(super) fn target(own: &Login, all: &Login, address: &str, environment: &Environment) -> SshTarget {
    let home = |text: &str| environment.home.join(text.trim_start_matches("~/"));
    let mut target = SshTarget {
        host: own.host.clone().unwrap_or_else(|| address.to_owned()),
        port: own.port.or(all.port).unwrap_or(22),
        user: own
            .user
            .clone()
            .or_else(|| all.user.clone())
            .unwrap_or_else(|| environment.user.clone()),
        keys: own
            .keys
            .clone()
            .or_else(|| all.keys.clone())
            .unwrap_or_else(|| DEFAULT_KEYS.map(home).to_vec()),
        sudo_password: own.sudo_password.or(&all.sudo_password).cloned(),
        bastion: None,
        host_keys: own.host_keys.or(all.host_keys).unwrap_or(HostKeys::Ask),
        known_hosts: own
            .known_hosts
            .clone()
            .or_else(|| all.known_hosts.clone())
            .unwrap_or_else(|| home("~/.ssh/known_hosts")),
    };
    if let Some(bastion) = own.bastion.or(&all.bastion) {
        // A bastion's user and keys are, unless it says otherwise, those of the section it stands in.
        let outer = if matches!(own.bastion, Said::This(_)) {
            &target
        } else {
            &direct(all, environment)
        };
        let through = SshTarget {
            host: bastion.host.clone().unwrap_or_default(),
            port: bastion.port.unwrap_or(22),
            user: bastion.user.clone().unwrap_or_else(|| outer.user.clone()),
            keys: bastion.keys.clone().unwrap_or_else(|| outer.keys.clone()),
            sudo_password: None,
            bastion: None,
            host_keys: bastion.host_keys.unwrap_or(outer.host_keys),
            known_hosts: bastion.known_hosts.clone().unwrap_or_else(|| outer.known_hosts.clone()),
        };
        // A host that is the bastion itself is reached without it.
        if (&through.host, through.port) != (&target.host, target.port) {
            target.bastion = Some(Box::new(through));
        }
    }
    target
}

/// The defaults of all hosts as a target, for its user, keys and host keys.
fn direct(all: &Login, environment: &Environment) -> SshTarget {
    let alone = Login {
        bastion: Said::No,
        ..all.clone()
    };
    target(&Login::default(), &alone, "", environment)
}

/// A login name.
fn user(text: &str) -> Result<String, Wrong> {
    let bad = |c: char| c.is_whitespace() || c.is_control() || matches!(c, ':' | '@' | '/' | '"' | '\'');
    if text.starts_with('-') || text.contains(bad) {
        return Err(Wrong::new(
            format!("{} is not a login name", quoted(text)),
            "write a name such as `pi`",
        ));
    }
    Ok(text.to_owned())
}

/// The file of a private key.
fn private_key(text: &str, environment: &Environment) -> Result<PathBuf, Wrong> {
    if text.contains("PRIVATE KEY") {
        return Err(Wrong::new(
            "a key must not stand in an inventory",
            "write the path of its file",
        ));
    }
    if let Some(private) = text.strip_suffix(".pub") {
        return Err(Wrong::new(
            format!("{} is the public half of a key", quoted(text)),
            format!("write `{private}`"),
        ));
    }
    path(text, environment)
}

/// Where sudo's password comes from.
fn password(at: &At<PasswordSection>, environment: &Environment, problems: &mut Vec<Problem>) -> Said<SecretSource> {
    let source = match &at.value {
        PasswordSection::None => return Said::No,
        PasswordSection::Prompt => Some(SecretSource::Prompt),
        PasswordSection::File(file) => {
            check(problems, Some(file), |text| path(text, environment)).map(SecretSource::File)
        }
        PasswordSection::Env(name) => check(problems, Some(name), |text| variable(text)).map(SecretSource::Env),
    };
    source.map_or(Said::Nothing, Said::This)
}

/// Name of an environment variable.
fn variable(text: &str) -> Result<String, Wrong> {
    let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if good && !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(text.to_owned());
    }
    Err(Wrong::new(
        "this is not the name of an environment variable",
        "write its name without `$`, such as `SUDO_PASSWORD`",
    ))
}
