//! The support file: what somebody needs who is to find out why a run failed, in one archive without secrets.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, Header};

use super::args::Target;
use super::fleet::Fleet;
use crate::facts::observe::observe_raw;
use crate::facts::saved::{self, SavedError};
use crate::facts::scrub::sentence;
use crate::plan::Plan;
use crate::report::{Console, Style, plan_view};

/// A host that does not answer must not keep a person waiting who has had enough trouble.
const LOOK: Duration = Duration::from_secs(20);

#[derive(Debug, thiserror::Error)]
enum SupportError {
    #[error("the hosts could not be looked at within {} s", LOOK.as_secs())]
    Silent,
    #[error(transparent)]
    Facts(#[from] SavedError),
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
}

/// Writes the archive beside the debug log, and says where it is. That it cannot be made is worth a warning.
pub async fn keep(fleet: &Fleet, plan: &Plan, target: &Target, console: &Console) {
    let Some(log) = console.settings().log.as_ref().map(|log| log.path().to_owned()) else {
        return;
    };
    match make(fleet, plan, target, &log).await {
        Ok(archive) => console.say(&format!(
            "To report it: {} (probes, plan, events and inventory; secrets and people's names are masked, host names \
             are not: look through it before you send it)\n",
            archive.display()
        )),
        Err(error) => console.warn(&format!("there is no support file: {error}")),
    }
}

async fn make(fleet: &Fleet, plan: &Plan, target: &Target, log: &Path) -> Result<PathBuf, SupportError> {
    let look = observe_raw(&fleet.cluster, &fleet.sessions);
    let (facts, raw) = tokio::time::timeout(LOOK, look)
        .await
        .map_err(|_| SupportError::Silent)?;
    let me = std::env::var("USER").unwrap_or_default();
    let mut people = vec![me.as_str()];
    people.extend(fleet.cluster.hosts.iter().map(|host| host.ssh.user.as_str()));
    let folder = tempfile::tempdir().map_err(|source| SupportError::File {
        path: std::env::temp_dir(),
        source,
    })?;
    saved::save(folder.path(), &fleet.cluster, &facts, &raw, &people)?;
    let read = |path: &Path| {
        let text = fs::read_to_string(path).map_err(|source| SupportError::File {
            path: path.to_owned(),
            source,
        })?;
        Ok::<_, SupportError>(masked(&text, &people))
    };
    let texts = [
        ("inventory.yaml", read(&target.inventory)?),
        ("events.jsonl", read(log)?),
        (
            "plan.txt",
            masked(&plan_view::render(plan, true, Style::PLAIN), &people),
        ),
    ];
    let archive = log.with_extension("tar.gz");
    pack(&archive, folder.path(), &texts).map_err(|source| SupportError::File {
        path: archive.clone(),
        source,
    })?;
    Ok(archive)
}

fn masked(text: &str, people: &[&str]) -> String {
    text.lines().map(|line| sentence(line, people) + "\n").collect()
}

/// Everything lies in one folder, so that unpacking it makes no mess.
fn pack(archive: &Path, facts: &Path, texts: &[(&str, String)]) -> io::Result<()> {
    let file: File = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(archive)?;
    let mut tar = Builder::new(GzEncoder::new(file, Compression::default()));
    for (name, text) in texts {
        let mut header = Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        tar.append_data(&mut header, format!("k8sup-support/{name}"), text.as_bytes())?;
    }
    tar.append_dir_all("k8sup-support/facts", facts)?;
    tar.into_inner()?.finish()?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn names_and_passwords_in_urls_are_masked_line_by_line() {
        let text = "ssh: { user: annabelle }\nproxy: { http: http://me:hunter2@proxy.example:3128 }\n";
        let masked = masked(text, &["annabelle"]);
        assert!(!masked.contains("annabelle") && !masked.contains("hunter2"), "{masked}");
        assert!(masked.contains("proxy.example:3128"), "{masked}");
        assert_eq!(masked.lines().count(), 2);
    }

    #[test]
    fn an_archive_is_private_and_holds_one_folder() {
        let place = tempfile::tempdir().unwrap();
        let facts = place.path().join("facts");
        fs::create_dir(&facts).unwrap();
        fs::write(facts.join("cp1.txt"), "probe").unwrap();
        let archive = place.path().join("a.tar.gz");
        pack(&archive, &facts, &[("plan.txt", "nothing\n".to_owned())]).unwrap();
        assert_eq!(fs::metadata(&archive).unwrap().permissions().mode() & 0o777, 0o600);
        let mut tar = tar::Archive::new(GzDecoder::new(File::open(&archive).unwrap()));
        let mut found = Vec::new();
        for entry in tar.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            found.push((entry.path().unwrap().display().to_string(), text));
        }
        found.retain(|(path, _)| !path.ends_with('/'));
        let wanted = [
            ("k8sup-support/plan.txt", "nothing\n"),
            ("k8sup-support/facts/cp1.txt", "probe"),
        ];
        assert_eq!(found, wanted.map(|(path, text)| (path.to_owned(), text.to_owned())));
    }
}
