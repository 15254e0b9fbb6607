//! A host's files as the scripts' prelude writes them, and k8sup's record of what stood before.

use k8sup::cluster::NodeName;
use k8sup::facts::{FileFact, Record, RecordedFile, Seen};
use sha2::{Digest as _, Sha256};

use super::World;

impl World {
    pub(super) fn put(&mut self, host: &NodeName, path: &str, content: &str) {
        let before = self.host(host).files.get(path).cloned();
        if before.as_ref().is_some_and(|file| file.content == content) {
            return;
        }
        self.before
            .entry((host.clone(), path.to_owned()))
            .or_insert_with(|| before.clone());
        let record = self.record(host);
        let recorded = record.files.entry(path.to_owned()).or_insert(RecordedFile {
            existed: before.is_some(),
            ours: None,
        });
        recorded.ours = Some(sha256(content));
        let file = FileFact {
            mode: 0o644,
            content: content.to_owned(),
        };
        self.host(host).files.insert(path.to_owned(), file);
    }

    pub(super) fn drop_file(&mut self, host: &NodeName, path: &str) {
        let before = self.host(host).files.remove(path);
        self.before.entry((host.clone(), path.to_owned())).or_insert(before);
        self.record(host).files.entry(path.to_owned()).or_default();
    }

    pub(super) fn record(&mut self, host: &NodeName) -> &mut Record {
        let facts = self.host(host);
        if facts.record.present().is_none() {
            facts.record = Seen::Present(Record::default());
        }
        match &mut facts.record {
            Seen::Present(record) => record,
            Seen::Absent | Seen::Unknown(_) => unreachable!(),
        }
    }

    pub(super) fn note(&mut self, host: &NodeName, kind: &str, entry: &str) {
        self.record(host)
            .entries
            .entry(kind.to_owned())
            .or_default()
            .push(entry.to_owned());
    }
}

fn sha256(text: &str) -> String {
    use std::fmt::Write as _;
    Sha256::digest(text).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
