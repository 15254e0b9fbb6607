//! How each host is logged in to: its own `ssh` over that of all hosts.

use std::path::PathBuf;

use super::text::{Wrong, check, dialled, one_of, path, port};
use crate::cluster::{ClientConfig, HostKeys, SecretSource, SshTarget, Written, usual_keys};
use crate::inventory::Environment;
use crate::inventory::problem::{Problem, quoted};
use crate::inventory::raw::{At, BastionSection, PasswordSection, SshSection};

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
    client: Option<ClientConfig>,
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
        client: check(problems, section.config.as_ref(), |text| match text.as_str() {
            "none" => Ok(ClientConfig::Off),
            _ => path(text, environment).map(ClientConfig::File),
        }),
    }
}

/// The way to a host at `address`: `own` over `all` over the defaults.
pub(super) fn target(own: &Login, all: &Login, address: &str, environment: &Environment) -> SshTarget {
    let user = own.user.as_ref().or(all.user.as_ref()).unwrap_or(&environment.user);
    let known_hosts = own.known_hosts.clone().or_else(|| all.known_hosts.clone());
    let known_hosts = known_hosts.unwrap_or_else(|| environment.home.join(".ssh/known_hosts"));
    let keys = own.keys.clone().or_else(|| all.keys.clone());
    let client = own.client.clone().or_else(|| all.client.clone());
    let mut target = SshTarget {
        port: own.port.or(all.port).unwrap_or(22),
        keys: keys.unwrap_or_else(|| usual_keys(&environment.home)),
        sudo_password: own.sudo_password.or(&all.sudo_password).cloned(),
        host_keys: own.host_keys.or(all.host_keys).unwrap_or(HostKeys::Ask),
        client: client.unwrap_or(ClientConfig::User),
        written: Written {
            port: own.port.or(all.port).is_some(),
            user: own.user.is_some() || all.user.is_some(),
            keys: own.keys.is_some() || all.keys.is_some(),
            bastion: !matches!((&own.bastion, &all.bastion), (Said::Nothing, Said::Nothing)),
            host_keys: own.host_keys.or(all.host_keys).is_some(),
            known_hosts: own.known_hosts.is_some() || all.known_hosts.is_some(),
        },
        ..SshTarget::new(own.host.as_deref().unwrap_or(address), user, known_hosts)
    };
    if let Some(bastion) = own.bastion.or(&all.bastion) {
        let through = if matches!(own.bastion, Said::This(_)) {
            hop(bastion, &target)
        } else {
            hop(bastion, &direct(all, environment))
        };
        target.bastion = Some(Box::new(through));
        target.leave_out_itself();
    }
    target
}

/// A bastion. What it does not say of user, keys and host keys is as in the section it stands in.
fn hop(bastion: &Login, outer: &SshTarget) -> SshTarget {
    let mut through = SshTarget {
        host: bastion.host.clone().unwrap_or_default(),
        port: bastion.port.unwrap_or(22),
        user: bastion.user.clone().unwrap_or_else(|| outer.user.clone()),
        keys: bastion.keys.clone().unwrap_or_else(|| outer.keys.clone()),
        sudo_password: None,
        bastion: None,
        host_keys: bastion.host_keys.unwrap_or(outer.host_keys),
        known_hosts: bastion.known_hosts.clone().unwrap_or_else(|| outer.known_hosts.clone()),
        written: Written {
            port: bastion.port.is_some(),
            user: bastion.user.is_some() || outer.written.user,
            keys: bastion.keys.is_some() || outer.written.keys,
            bastion: !matches!(bastion.bastion, Said::Nothing),
            host_keys: bastion.host_keys.is_some() || outer.written.host_keys,
            known_hosts: bastion.known_hosts.is_some() || outer.written.known_hosts,
        },
        ..outer.clone()
    };
    if let Said::This(before) = &bastion.bastion {
        through.bastion = Some(Box::new(hop(before, &through)));
    }
    through
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
