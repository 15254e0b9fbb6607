//! `k8sup facts`: what is saved has no secrets and no person's name, and gives the same findings and the same plan.

use std::collections::BTreeMap;
use std::path::Path;

use k8sup::cluster::{Cluster, NodeName};
use k8sup::facts::observe::{Raw, observe_raw};
use k8sup::facts::scrub::scrub;
use k8sup::facts::{Facts, HostFacts, Observation, Seen, Unreachable, parse, saved};
use k8sup::plan::apply;
use k8sup::remote::fake::{FakeReply, FakeSession};
use k8sup::remote::{Command, Param, Session};

use crate::world::{self, HOMELAB, everything, name};

/// Recordings of hosts, by name.
fn recordings() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/facts");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts = files.map(|path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(path).unwrap())
    });
    texts.collect()
}

/// A host that answers with these texts, under the mark that it is asked for.
fn answering(probe: String, cluster: String) -> Session {
    Session::Fake(FakeSession::new(move |command: &Command| {
        let nonce = command.params.iter().find(|(name, _)| name == "NONCE");
        let Some((_, Param::Plain(nonce))) = nonce else {
            return FakeReply::failed(1, "no nonce");
        };
        let text = if command.name == "probe" { &probe } else { &cluster };
        FakeReply::ok(text.replace("@@abc123 ", &format!("@@{nonce} ")))
    }))
}

fn looked_at(cluster: &Cluster, sessions: &BTreeMap<NodeName, Result<Session, Unreachable>>) -> (Facts, Raw) {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
        .block_on(observe_raw(cluster, sessions))
}

/// A section of a probe with these lines.
fn section(name: &str, body: &str) -> String {
    format!("@@abc123 begin {name}\n{body}\n@@abc123 end {name} 0\n")
}

/// The recording with more sections.
fn with(recording: &str, sections: &[(&str, String)]) -> String {
    let more: String = sections.iter().map(|(name, body)| section(name, body)).collect();
    world::read(&format!("tests/facts/{recording}.txt")).replace("@@abc123 done", &format!("{more}@@abc123 done"))
}

/// What must be in no file; each is planted where such a thing stands.
const CANARIES: [&str; 22] = [
    "canary-bearer-1",
    "canary-client-key-2",
    "canary-proxy-3",
    "canary-stats-4",
    "canary-registry-5",
    "Y2FuYXJ5LWF1dGgtNg",
    "canary7canary7ca",
    "canary-insecure-8",
    "canary-comment-9",
    "canary-cifs-10",
    "canary-pem-11",
    "canary-kubelet-12",
    "eyJhbGciOiJjYW5hcnkxMyJ9",
    "canary-reason-14",
    "canary-laptop-15",
    "annalena",
    "Annalena Musterfrau",
    "canary-user-16",
    "canary-apt-17",
    "canary-noise-18",
    "canary-jws-19",
    "canary-token-20",
];

fn planted() -> String {
    let raw = with(
        "trixie-bare",
        &[
            (
                "file:600:/root/curlrc",
                "header = \"Authorization: Bearer canary-bearer-1\"\nx Bearer canary-bearer-1 y\n".to_owned(),
            ),
            (
                "kubeconfig:/etc/kubernetes/admin.conf",
                "    server: https://10.0.0.1:6443\n    client-key-data: canary-client-key-2\n    token: canary-token-20\n"
                    .to_owned(),
            ),
            (
                "file:644:/etc/apt/apt.conf.d/proxy-k8sup.conf",
                "Acquire::http::Proxy \"http://canary-user-16:canary-proxy-3@proxy.lan:3128\";\n".to_owned(),
            ),
            (
                "file:644:/etc/haproxy/haproxy.cfg",
                "# k8sup\nlisten stats\n  stats auth admin:canary-stats-4\nuserlist ops\n  user admin insecure-password canary-insecure-8\n"
                    .to_owned(),
            ),
            (
                "file:600:/etc/containerd/config.toml",
                "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".registry.configs.\"r.lan\".auth]\n  \
                 username = \"canary-user-16\"\n  password = \"canary-registry-5\"\n  auth = \"Y2FuYXJ5LWF1dGgtNg==\"\n"
                    .to_owned(),
            ),
            (
                "file:644:/etc/fstab",
                "# mine, canary-comment-9\n//nas/x /mnt cifs username=canary-user-16,password=canary-cifs-10 0 0\n".to_owned(),
            ),
            (
                "file:644:/etc/apt/sources.list.d/kubernetes.list",
                "deb https://canary-apt-17@apt.lan/ x y\n".to_owned(),
            ),
            (
                "file:600:/etc/default/kubelet",
                "KUBELET_EXTRA_ARGS=--token=canary-kubelet-12 --x=/home/annalena/y\n".to_owned(),
            ),
            (
                "file:600:/etc/systemd/system/kubelet.service.d/9-k8sup.conf",
                "kubeadm join --token abcdef.canary7canary7ca\nEnvironment=T=eyJhbGciOiJjYW5hcnkxMyJ9.eyJhIjoxfQ.c2ln\n\
                 -----BEGIN RSA PRIVATE KEY-----\ncanary-pem-11\n-----END RSA PRIVATE KEY-----\n"
                    .to_owned(),
            ),
            ("holder", "run 7\nholder k8sup apply by annalena@canary-laptop-15 (process 7)\n".to_owned()),
        ],
    );
    let passwd = "annalena:x:1000:1000:Annalena Musterfrau,,,:/home/annalena:/bin/bash";
    raw.replace("pi:x:1000:1000::/home/pi:/bin/bash", passwd).replace(
        "@@abc123 end images 44",
        "@@abc123 end images 1 asked with Authorization: Bearer canary-reason-14 for annalena",
    ) + "canary-noise-18\n"
}

#[test]
fn no_secret_and_no_persons_name_is_saved() {
    let probe = planted();
    let nodes = "node {\"metadata\":{\"name\":\"cp1\",\"annotations\":{\"x/token\":\"canary-token-20\"}}}\nsecret bootstrap-token-abcdef\n";
    let objects = "{\"items\":[{\"kind\":\"ConfigMap\",\"data\":{\"jws-kubeconfig-abcdef\":\"canary-jws-19\",\
                   \"a\":\"proxy: http://canary-user-16:canary-proxy-3@proxy.lan\\n\"}}]}\n";
    let said = format!(
        "{}{}@@abc123 done\n",
        section("nodes", nodes),
        section("objects", objects)
    );
    let planted = format!("{probe}{said}");
    let missing: Vec<_> = CANARIES.iter().filter(|canary| !planted.contains(*canary)).collect();
    assert!(missing.is_empty(), "not planted: {missing:?}");

    let folder = tempfile::tempdir().unwrap();
    let cluster = world::cluster(&HOMELAB.replace("user: pi", "user: annalena"));
    let sessions = cluster.hosts.iter().map(|host| {
        let session = match host.name.as_str() {
            "w3" => Err(Unreachable::unknown(
                "annalena@192.168.7.206: /home/annalena/.ssh/id was refused",
            )),
            _ => Ok(answering(probe.clone(), said.clone())),
        };
        (host.name.clone(), session)
    });
    let (facts, mut raw) = looked_at(&cluster, &sessions.collect());
    // Bare hosts are not asked about a cluster: what one would have said is scrubbed all the same.
    raw.cluster.insert(
        name("cp1"),
        k8sup::facts::observe::RawText {
            nonce: "abc123".to_owned(),
            text: said,
        },
    );
    let written = saved::save(folder.path(), &cluster, &facts, &raw, &["annalena"]).unwrap();
    assert_eq!(written.len(), 8, "{written:?}");
    for path in written {
        let text = std::fs::read_to_string(&path).unwrap();
        let found: Vec<_> = CANARIES.iter().filter(|canary| text.contains(*canary)).collect();
        assert!(found.is_empty(), "{}: {found:?}\n{text}", path.display());
    }
    let loaded = saved::load(folder.path(), &cluster).unwrap();
    let Observation::Seen(host) = &loaded.hosts[&name("cp1")] else {
        panic!("cp1 cannot be parsed");
    };
    assert_eq!(
        (host.login.user.as_str(), host.login.home.as_str()),
        ("user", "/home/user")
    );
    assert!(host.files["/etc/haproxy/haproxy.cfg"].content.contains("stats auth"));
}

#[test]
fn what_is_saved_says_what_was_seen() {
    // Comments of files are masked; nothing else of the recordings is a secret.
    let plain = |facts: HostFacts| HostFacts {
        files: BTreeMap::new(),
        ..facts
    };
    for (name, raw) in recordings() {
        let saved = scrub(&raw, "abc123");
        assert_eq!(scrub(&saved, "abc123"), saved, "{name}");
        if let Ok(facts) = parse::host(&raw, "abc123") {
            let again = parse::host(&saved, "abc123").unwrap();
            assert_eq!(
                facts.files.keys().collect::<Vec<_>>(),
                again.files.keys().collect::<Vec<_>>()
            );
            assert_eq!(plain(facts), plain(again), "{name}");
        } else {
            assert_eq!(
                parse::cluster(&raw, "abc123"),
                parse::cluster(&saved, "abc123"),
                "{name}"
            );
        }
    }
}

/// Findings and plan, as text.
fn judged(cluster: &Cluster, facts: &Facts) -> String {
    let found = apply::examine(cluster, facts, &everything());
    let found: Vec<String> = found
        .iter()
        .map(|f| format!("{} {:?} {}\n", f.check.code, f.host, f.message))
        .collect();
    let plan = match world::try_plan(cluster, facts, &everything()) {
        Ok(plan) => world::outline(&plan),
        Err(blockers) => format!("{} blockers\n", blockers.len()),
    };
    found.concat() + &plan
}

#[test]
fn saved_facts_give_the_plan_that_the_hosts_gave() {
    let lab = world::read("inventories/lab.yaml");
    let recording = |host: &str| match host {
        "lb-0" => "trixie-load-balancer",
        "cp1" | "cp2" => "trixie-controller",
        "cp3" => "bookworm-controller",
        _ => "bookworm-worker",
    };
    for (inventory, bare) in [(lab.as_str(), false), (lab.as_str(), true), (HOMELAB, true)] {
        let cluster = world::cluster(inventory);
        let sessions = cluster.hosts.iter().map(|host| {
            let probe = if bare {
                "trixie-bare"
            } else {
                recording(host.name.as_str())
            };
            let probe = world::read(&format!("tests/facts/{probe}.txt"));
            let session = if host.name.as_str() == "w1" && bare {
                Err(Unreachable::unknown("no route to host"))
            } else {
                Ok(answering(probe, world::read("tests/facts/cluster-lab.txt")))
            };
            (host.name.clone(), session)
        });
        let (mut facts, raw) = looked_at(&cluster, &sessions.collect());
        for seen in facts.hosts.values_mut() {
            if let Observation::Seen(facts) = seen {
                facts.clock_skew = None;
            }
        }
        let folder = tempfile::tempdir().unwrap();
        saved::save(folder.path(), &cluster, &facts, &raw, &[]).unwrap();
        let loaded = saved::load(folder.path(), &cluster).unwrap();
        assert_eq!(facts.cluster, loaded.cluster);
        assert_eq!(judged(&cluster, &facts), judged(&cluster, &loaded));
        // Without the summary, as when somebody sends single files.
        std::fs::remove_file(folder.path().join("facts.json")).unwrap();
        let loaded = saved::load(folder.path(), &cluster).unwrap();
        assert!(!bare || matches!(loaded.cluster, Seen::Absent | Seen::Unknown(_)));
        assert_eq!(bare, loaded.cluster.present().is_none());
    }
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = world::cluster(HOMELAB);
    let facts = world::facts(&cluster, |_| "trixie-bare");
    std::fs::write(folder.path().join("thesis.txt"), "mine").unwrap();
    let error = saved::save(folder.path(), &cluster, &facts, &Raw::default(), &[]).unwrap_err();
    assert!(error.to_string().contains("is not empty"), "{error}");
    let error = saved::load(folder.path(), &cluster).unwrap_err();
    assert!(error.to_string().contains("none of the inventory's hosts"), "{error}");
    // A second save takes the place of the first.
    let own = folder.path().join("facts");
    saved::save(&own, &cluster, &facts, &Raw::default(), &[]).unwrap();
    std::fs::write(own.join("w9.txt"), "old").unwrap();
    saved::save(&own, &cluster, &facts, &Raw::default(), &[]).unwrap();
    assert!(!own.join("w9.txt").exists());
}
