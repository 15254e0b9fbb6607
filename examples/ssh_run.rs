//! Runs one script on one host, with the parts that k8sup itself uses.
//!
//! ```text
//! ssh_run HOST USER KEY [--root] [--bastion USER@HOST] [--sudo-password-file FILE] [--timeout SECONDS] SCRIPT
//! ```
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example talks to its terminal"
)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use k8sup::cluster::{HostKeys, SecretSource, SshTarget};
use k8sup::remote::ssh::{ConnectOptions, Connector};
use k8sup::remote::{Command, Ending};

#[tokio::main]
async fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let mut plain = Vec::new();
    let (mut root, mut bastion, mut sudo_password, mut timeout) = (false, None, None, 60);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--root" => root = true,
            "--bastion" => bastion = words.next(),
            "--sudo-password-file" => sudo_password = words.next().map(|path| SecretSource::File(path.into())),
            "--timeout" => timeout = words.next().and_then(|text| text.parse().ok()).unwrap_or(timeout),
            _ => plain.push(word),
        }
    }
    let [host, user, key, script] = plain.as_slice() else {
        eprintln!(
            "usage: ssh_run HOST USER KEY [--root] [--bastion USER@HOST] [--sudo-password-file FILE] [--timeout SECONDS] SCRIPT"
        );
        return ExitCode::from(2);
    };
    let known_hosts = std::env::temp_dir().join("ssh_run.known_hosts");
    let mut target = SshTarget {
        keys: vec![key.into()],
        sudo_password,
        host_keys: HostKeys::AcceptNew,
        ..SshTarget::new(host, user, known_hosts)
    };
    if let Some((user, host)) = bastion.as_deref().and_then(|text| text.split_once('@')) {
        target.bastion = Some(Box::new(SshTarget {
            host: host.to_owned(),
            user: user.to_owned(),
            sudo_password: None,
            ..target.clone()
        }));
    }
    let started = Instant::now();
    let session = match Connector::new(ConnectOptions::default()).connect(host, &target).await {
        Ok(session) => session,
        Err(error) => {
            eprintln!("error: {error}");
            if let Some(hint) = error.hint() {
                eprintln!("hint: {hint}");
            }
            return ExitCode::from(4);
        }
    };
    let connected = started.elapsed();
    let command = Command {
        name: "script".to_owned(),
        script: script.clone(),
        params: Vec::new(),
        root,
        timeout: Duration::from_secs(timeout),
    };
    let result = session.run(&command, None).await;
    eprintln!("connected after {connected:?}, finished after {:?}", started.elapsed());
    session.close().await;
    match result {
        Ok(output) => {
            print!("{}", output.stdout);
            eprint!("{}", output.stderr);
            match output.ending {
                Ending::Status(status) => ExitCode::from(u8::try_from(status).unwrap_or(255)),
                Ending::Signal(signal) => {
                    eprintln!("ended by signal {signal}");
                    ExitCode::from(5)
                }
            }
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(5)
        }
    }
}
