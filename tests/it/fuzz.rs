//! Damaged texts: whatever a host prints or a person writes, nothing panics and nothing hangs.
//!
//! Each target takes texts of the repository and damages them, for 2 s, or as long as `K8SUP_FUZZ_SECONDS` says
//! (`make fuzz`). `K8SUP_FUZZ_SEED` begins elsewhere; what fails is told with its seed and kept as a file.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use k8sup::cluster;
use k8sup::facts::scrub::scrub;
use k8sup::facts::{Facts, HostFacts, Observation, Seen, parse};
use k8sup::inventory::{Environment, render_problems};
use k8sup::plan::apply;

use crate::world::{self, HOMELAB, SINGLE, everything, name};

const NONCE: &str = "abc123";
/// Nothing may take longer; a slow machine that is busy with other tests takes part of it.
const PATIENCE: Duration = Duration::from_secs(20);

/// xorshift: the same texts for the same seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Less than `limit`, or 0.
    fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit.max(1)).unwrap();
        usize::try_from(self.next() % limit).unwrap()
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let place = self.below(all.len());
        &all[place]
    }

    /// A few bytes somewhere.
    fn range(&mut self, text: &[u8]) -> std::ops::Range<usize> {
        let start = self.below(text.len() + 1);
        let most = *self.pick(&[1, 4, 40, 400, 4000]);
        start..(start + self.below(most)).min(text.len())
    }

    /// A line.
    fn line(&mut self, text: &[u8]) -> std::ops::Range<usize> {
        let start = self.below(text.len() + 1);
        let begin = text[..start]
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |place| place + 1);
        let end = text[start..]
            .iter()
            .position(|b| *b == b'\n')
            .map_or(text.len(), |place| start + place + 1);
        begin..end
    }
}

/// What parsers of such texts may stumble over.
const WORDS: [&str; 40] = [
    "",
    "\0",
    "\n",
    "\r\n",
    "\t",
    " ",
    ":",
    "::",
    "/",
    "//",
    "=",
    "-",
    "@@abc123 begin ",
    "@@abc123 end ",
    "@@abc123 done\n",
    "@@abc123",
    "0",
    "-1",
    "18446744073709551616",
    "9223372036854775807",
    "1e999",
    "NaN",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    "\\",
    "&a ",
    "*a",
    "<<: *a",
    "!!binary ",
    "---\n",
    "{\"items\":[{\"kind\":\"Node\"}]}",
    "null",
    "ü",
    "\u{202e}",
    "-----BEGIN CERTIFICATE-----\n",
    "10.244.0.0/33",
];

/// A text with some damage.
fn damaged(dice: &mut Dice, seeds: &[String]) -> String {
    let mut text = dice.pick(seeds).clone().into_bytes();
    for _ in 0..=dice.below(6) {
        match dice.below(9) {
            0 => drop(text.drain(dice.range(&text))),
            1 => drop(text.drain(dice.line(&text))),
            2 => {
                let copy = text[dice.range(&text)].to_vec();
                let place = dice.below(text.len() + 1);
                text.splice(place..place, copy);
            }
            3 => {
                let copy = text[dice.line(&text)].repeat(1 + dice.below(50));
                let place = dice.line(&text).start;
                text.splice(place..place, copy);
            }
            4 => {
                let place = dice.below(text.len());
                if let Some(byte) = text.get_mut(place) {
                    *byte = u8::try_from(dice.below(256)).unwrap();
                }
            }
            5 => text.truncate(dice.below(text.len() + 1)),
            6 => {
                let other = dice.pick(seeds).as_bytes();
                let part = other[dice.range(other)].to_vec();
                let place = dice.range(&text);
                text.splice(place, part);
            }
            _ => {
                let word = dice.pick(&WORDS).repeat(*dice.pick(&[1, 1, 1, 2, 500]));
                let range = dice.range(&text);
                let place = if dice.below(2) == 0 {
                    range.start..range.start
                } else {
                    range
                };
                text.splice(place, word.into_bytes());
            }
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// Feeds damaged texts to a target until its time is over.
fn feed(target: &'static str, seeds: Vec<String>, take: impl Fn(&str) + Send + 'static) {
    let end = Instant::now() + Duration::from_secs(number("K8SUP_FUZZ_SECONDS", 2));
    let seed = number("K8SUP_FUZZ_SEED", 20_261_201);
    let kept = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{target}.txt"));
    let (sender, beats) = mpsc::channel();
    let path = kept.clone();
    let worker = std::thread::spawn(move || {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut taken = 0_u64;
        for text in &seeds {
            take(text);
        }
        while Instant::now() < end {
            let text = damaged(&mut dice, &seeds);
            let shown = text.clone();
            let guard = Kept {
                path: &path,
                text: &shown,
            };
            let started = Instant::now();
            take(&text);
            let took = started.elapsed();
            assert!(took < PATIENCE, "{took:?}");
            std::mem::forget(guard);
            taken += 1;
            let _ = sender.send((taken, text));
        }
        taken
    });
    let mut last = (0, String::new());
    loop {
        match beats.recv_timeout(PATIENCE) {
            Ok(beat) => last = beat,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => panic!(
                "{target} hangs on the text after number {} (K8SUP_FUZZ_SEED={seed}), which was\n{}",
                last.0, last.1
            ),
        }
    }
    let taken = worker.join().unwrap_or_else(|_| {
        panic!(
            "{target}: K8SUP_FUZZ_SEED={seed}, text number {}, kept in {}",
            last.0 + 1,
            kept.display()
        )
    });
    assert!(taken > 0, "{target}: no text was taken");
}

/// Writes the text when what takes it panics.
struct Kept<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        let _ = std::fs::write(self.path, self.text);
    }
}

/// Texts of a folder whose names pass.
fn texts(folder: &str, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let wanted = paths
        .into_iter()
        .filter(|path| wanted(path.file_name().unwrap().to_str().unwrap()));
    wanted.map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// The probe's parser, and all that judges what it makes of a text.
#[test]
fn a_probe() {
    let cluster = world::cluster(SINGLE);
    feed(
        "probe",
        texts("tests/facts", |file| !file.starts_with("cluster-")),
        move |text| {
            let scrubbed = scrub(text, NONCE);
            let _ = parse::host(&scrubbed, NONCE);
            if let Ok(facts) = parse::host(text, NONCE) {
                judge(&cluster, facts);
            }
        },
    );
}

fn judge(cluster: &cluster::Cluster, facts: HostFacts) {
    let facts = Facts {
        hosts: [(name("cp1"), Observation::Seen(Box::new(facts)))].into(),
        cluster: Seen::Absent,
        ..Facts::default()
    };
    let _ = apply::examine(cluster, &facts, &everything());
}

#[test]
fn a_cluster() {
    let homelab = world::cluster(HOMELAB);
    let hosts = world::facts(&homelab, |host| match host.name.as_str() {
        "lb-0" => "trixie-load-balancer",
        "w1" | "w2" | "w3" => "bookworm-worker",
        _ => "trixie-controller",
    });
    feed(
        "cluster",
        texts("tests/facts", |file| file.starts_with("cluster-")),
        move |text| {
            let _ = scrub(text, NONCE);
            let live = k8sup::facts::ClusterFacts {
                asked: Some(name("cp1")),
                ..parse::cluster(text, NONCE)
            };
            let facts = Facts {
                cluster: Seen::Present(live),
                ..hosts.clone()
            };
            let _ = apply::examine(&homelab, &facts, &everything());
        },
    );
}

#[test]
fn an_inventory() {
    let mut seeds = texts("inventories", |_| true);
    seeds.push(HOMELAB.to_owned());
    let environment = Environment {
        user: "me".to_owned(),
        home: "/home/me".into(),
        inventory_dir: "/inventories".into(),
    };
    feed("inventory", seeds, move |text| {
        let problems = match cluster::load(text, &environment) {
            Ok((_, warnings)) => warnings,
            Err(problems) => problems,
        };
        let _ = render_problems(&problems, text, "inventory.yaml", true);
    });
}

#[test]
#[should_panic(expected = "tripping: K8SUP_FUZZ_SEED=")]
fn what_panics_is_told_with_its_seed() {
    let seeds = vec!["one\ntwo\nthree\n".to_owned()];
    feed("tripping", seeds, |text| {
        assert!(!text.contains("onetwo") && text.len() < 100);
    });
}
