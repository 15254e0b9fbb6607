//! Recorded probes under `tests/facts/` and what is read out of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::observe::observe;
use super::parse::{self, ParseError};
use super::{Facts, HostFacts, Observation, Seen, Unreachable};
use crate::cluster::{Cluster, NodeName, sample};
use crate::remote::fake::{FakeReply, FakeSession};
use crate::remote::{Command, Param, RunError, Session};

/// The mark in all recordings.
const NONCE: &str = "abc123";

fn recorded(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/facts")
        .join(format!("{name}.txt"));
    std::fs::read_to_string(path).unwrap()
}

fn facts(name: &str) -> HostFacts {
    parse::host(&recorded(name), NONCE).unwrap()
}

#[test]
fn every_recorded_host_is_understood() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/facts");
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "txt"))
        .collect();
    files.sort();
    assert!(files.len() > 5);
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        if name.starts_with("cluster-") {
            insta::assert_debug_snapshot!(name.clone(), parse::cluster(&recorded(&name), NONCE));
        } else {
            insta::assert_debug_snapshot!(name.clone(), facts(&name));
        }
    }
}

#[test]
fn a_bare_host_is_bare() {
    for name in ["trixie-bare", "bookworm-bare"] {
        let facts = facts(name);
        assert!(facts.kube.is_bare(), "{name}");
        assert!(
            facts.containerd.is_absent() && facts.images.is_absent() && facts.record.is_absent(),
            "{name}"
        );
        assert!(facts.unknown.is_empty(), "{name}: {:?}", facts.unknown);
        assert_eq!(facts.login.home, "/home/pi");
        assert!(facts.packages.get("systemd").unwrap().installed.is_some());
        assert!(!facts.services.contains_key("containerd"));
        assert!(facts.modules.contains("overlay") && facts.modules.contains("br_netfilter"));
    }
}

#[test]
fn swap_of_a_raspberry_pi_is_seen_in_all_its_forms() {
    let swap = facts("raspberry-pi-os-bookworm").swap;
    assert_eq!(swap.active, ["/var/swap", "/dev/zram0"]);
    assert_eq!(swap.makers, ["dphys-swapfile.service"]);
    // Not the masked one, not the one that nothing wants, not the zram generator's.
    assert_eq!(swap.units, ["mnt-extra.swap"]);
    assert!(swap.zram_generator);
}

#[test]
fn an_empty_or_hiding_zram_configuration_makes_no_swap() {
    let with = |zram: &str| {
        let text = recorded("trixie-bare").replace(
            "@@abc123 begin zram-generator\n",
            &format!("@@abc123 begin zram-generator\n{zram}"),
        );
        parse::host(&text, NONCE).unwrap().swap.zram_generator
    };
    let generator = "generator /usr/lib/systemd/system-generators/zram-generator\n";
    let main = "file /usr/lib/systemd/zram-generator.conf\n> [zram0]\n\n";
    assert!(with(&format!("{generator}{main}")));
    assert!(!with(main), "without the generator the file means nothing");
    assert!(
        !with(&format!("{generator}file /etc/systemd/zram-generator.conf\n\n{main}")),
        "an empty file hides the other"
    );
    let off =
        "file /usr/lib/systemd/zram-generator.conf.d/20-rpi.conf\n> [zram0]\n> host-memory-limit=0\n> fs-type=none\n\n";
    let on =
        "file /run/systemd/zram-generator.conf.d/20-rpi.conf\n> [zram0]\n> host-memory-limit=none\n> fs-type=swap\n\n";
    assert!(!with(&format!("{generator}{off}")));
    assert!(with(&format!("{generator}{on}{off}")), "/run comes before /usr");
}

#[test]
fn a_swap_file_of_fstab_is_no_native_unit() {
    let facts = facts("ubuntu-24.04");
    assert_eq!(facts.swap.active, ["/swap.img"]);
    assert!(facts.swap.units.is_empty());
    assert_eq!(facts.nameservers, ["127.0.0.53"]);
    assert_eq!(
        facts.resolved,
        Seen::Present(vec!["192.168.1.1".to_owned(), "1.1.1.1".to_owned()])
    );
    assert!(facts.endpoint_resolves.is_absent());
    assert_eq!(facts.listening[1].process.as_deref(), Some("sshd"));
}

#[test]
fn dockers_containerd_has_no_cri() {
    let facts = facts("docker-containerd");
    let containerd = facts.containerd.present().unwrap();
    assert_eq!(containerd.version, "1.7.28");
    let disabled = containerd
        .config
        .present()
        .unwrap()
        .get("disabled_plugins")
        .unwrap()
        .as_array()
        .unwrap();
    assert_eq!(disabled[0].as_str(), Some("cri"));
}

#[test]
fn a_controller_with_a_sick_etcd_is_described() {
    let facts = facts("controller-etcd-failing");
    let ca = facts.kube.ca.present().unwrap();
    // As `openssl x509 -pubkey | openssl pkey -pubin -outform der | sha256sum` says.
    assert_eq!(
        ca.spki_sha256,
        "3631cc668116420406323ede1b9b4e1458e1abb1aed015437272ca889dc62aaa"
    );
    assert_eq!(ca.subject, "CN=kubernetes");
    assert!(recorded("controller-etcd-failing").contains(&ca.pem));
    let api = facts.kube.apiserver.present().unwrap();
    assert!(api.addresses.contains(&"192.168.7.140".parse().unwrap()) && api.dns_names.contains("controller-0"));
    assert!(facts.kube.readyz.present().unwrap().contains("[-]etcd failed"));
    let admin = facts.kube.kubeconfigs.get("admin").unwrap();
    assert_eq!(admin.server, "https://192.168.7.140:6443");
    assert_eq!(admin.ca_spki_sha256.as_ref(), Some(&ca.spki_sha256));
    assert_eq!(facts.login.kubeconfig_ca, Seen::Present(ca.spki_sha256.clone()));
    assert!(facts.kube.etcd_data && facts.kube.etcd_dir_used && facts.kube.etcd_data_dir == "/data/etcd");
    assert!(matches!(facts.containerd.present().unwrap().config, Seen::Unknown(ref reason) if reason.contains("TOML")));
    assert!(facts.network_leftovers.contains(&"link veth12ab".to_owned()));
    let record = facts.record.present().unwrap();
    assert!(record.files["/etc/fstab"].existed && !record.files["/etc/modules-load.d/k8sup.conf"].existed);
    assert!(record.files["/etc/fstab"].ours.as_ref().unwrap().starts_with("0f343b"));
    assert_eq!(record.entries["package"], ["kubeadm 1.34.4-1.1", "conntrack"]);
    assert!(record.entries["nothing"].is_empty());
    assert!(facts.packages["kubelet"].held);
}

#[test]
fn haproxy_tells_its_backends() {
    let facts = facts("load-balancer");
    let expected = BTreeMap::from(
        [("controller-0", "UP"), ("controller-1", "DOWN 1/2")].map(|(name, state)| (name.to_owned(), state.to_owned())),
    );
    assert_eq!(facts.backends, Seen::Present(expected));
    assert_eq!(
        facts.endpoint_resolves,
        Seen::Unknown("no answer from the resolver within 2 s".to_owned())
    );
}

#[test]
fn the_content_of_a_file_is_kept_to_the_byte_and_cannot_fake_a_section() {
    let content = "no newline at the end\r\n\n@@other begin clock\n7";
    let raw = recorded("trixie-bare").replace(
        "@@abc123 begin login\n",
        &format!("@@abc123 begin file:600:/etc/crictl.yaml\n{content}\n@@abc123 end file:600:/etc/crictl.yaml 0\n@@abc123 begin login\n"),
    );
    let file = &parse::host(&raw, NONCE).unwrap().files["/etc/crictl.yaml"];
    assert_eq!((file.mode, file.content.as_str()), (0o600, content));
}

#[test]
fn what_cannot_be_read_makes_the_host_unreadable_and_not_empty() {
    let raw = recorded("trixie-bare");
    assert!(
        matches!(parse::host("sh: 1: Syntax error", NONCE), Err(ParseError::Foreign(text)) if text.contains("Syntax"))
    );
    assert!(matches!(parse::host(&raw, "another"), Err(ParseError::Foreign(_))));
    let cut = raw.split_once("@@abc123 end kube-files").unwrap().0;
    assert_eq!(parse::host(cut, NONCE), Err(ParseError::Cut("kube-files".to_owned())));
    let broken = raw.replace(
        "@@abc123 end packages 0 ",
        "@@abc123 end packages 2 dpkg-query: error: parsing file",
    );
    let error = parse::host(&broken, NONCE).unwrap_err().to_string();
    assert_eq!(
        error,
        "the host could not be described: packages: dpkg-query: error: parsing file"
    );
    let lesser = raw.replace("@@abc123 end listening 0 ", "@@abc123 end listening 127 ss: not found");
    assert_eq!(
        parse::host(&lesser, NONCE).unwrap().unknown["listening"],
        "ss: not found"
    );
}

#[test]
fn an_etcd_id_beyond_what_a_double_holds_is_exact() {
    let facts = parse::cluster(&recorded("cluster-half-joined"), NONCE);
    let members = facts.members.present().unwrap();
    assert_eq!(members[0].id, format!("{:x}", 9_372_538_179_322_589_801_u64));
    assert!(members[1].learner && members[1].name.is_empty());
    assert_eq!(facts.nodes.present().unwrap().len(), 2);
    assert!(facts.nodes.present().unwrap()["controller-0"].ready);
    assert_eq!(
        facts.bootstrap_tokens.present().unwrap().iter().next().unwrap(),
        "abcdef"
    );
    assert_eq!(facts.uploaded_certs, Seen::Present(()));
    assert_eq!(facts.flannel_network.present().unwrap()["Backend"]["Type"], "vxlan");
}

#[test]
fn a_silent_api_server_makes_everything_unknown_and_nothing_absent() {
    let facts = parse::cluster(&recorded("cluster-api-silent"), NONCE);
    assert!(matches!(facts.nodes, Seen::Unknown(_)) && matches!(facts.kubeadm_config, Seen::Unknown(_)));
    assert!(matches!(facts.coredns, Seen::Unknown(_)) && matches!(facts.uploaded_certs, Seen::Unknown(_)));
    assert!(facts.members.present().is_some(), "etcd answered all the same");
}

#[test]
fn a_cluster_without_addons_lacks_them_for_certain() {
    let raw = recorded("cluster-half-joined");
    let end = raw.find("@@abc123 begin objects").unwrap();
    let raw = format!(
        "{}@@abc123 begin objects\n\n@@abc123 end objects 0 \n@@abc123 done\n",
        &raw[..end]
    );
    let facts = parse::cluster(&raw, NONCE);
    assert!(facts.coredns.is_absent() && facts.flannel.is_absent() && facts.cluster_admins.is_absent());
    assert!(matches!(facts.members, Seen::Unknown(_)));
}

proptest! {
    #[test]
    fn no_text_makes_the_parsers_panic(raw in ".*") {
        let _ = parse::host(&raw, NONCE);
        let _ = parse::cluster(&raw, NONCE);
        let _ = parse::certificate(&raw);
    }

    #[test]
    fn no_damage_makes_the_parsers_panic(
        name in prop::sample::select(vec!["controller-etcd-failing", "load-balancer", "raspberry-pi-os-bookworm", "cluster-half-joined"]),
        from in 0_usize..20_000,
        length in 0_usize..400,
        instead in "[ -~\\n]{0,40}",
    ) {
        let raw: Vec<char> = recorded(name).chars().collect();
        let from = from.min(raw.len());
        let damaged: String = raw[..from].iter().copied().chain(instead.chars()).chain(raw[from..].iter().skip(length).copied()).collect();
        let _ = parse::host(&damaged, NONCE);
        let _ = parse::cluster(&damaged, NONCE);
    }
}

fn cluster() -> Cluster {
    sample::cluster(
        "
cluster: { name: homelab, kubernetes: v1.34.4, endpoint: k8s-api.lan }
controllers: { controller-0: 192.168.7.201, controller-1: 192.168.7.202 }
workers: { worker-0: 192.168.7.204 }
",
    )
}

/// A host that answers the scripts with recordings, under the mark that it is asked for.
fn answering(probe: &'static str, section: &'static str, asked: Arc<AtomicUsize>) -> Session {
    Session::Fake(FakeSession::new(move |command: &Command| {
        let Some((_, Param::Plain(nonce))) = command.params.iter().find(|(name, _)| name == "NONCE") else {
            return FakeReply::failed(1, "no nonce");
        };
        let name = if command.name == "probe" { probe } else { section };
        if command.name == "cluster" {
            asked.fetch_add(1, Ordering::SeqCst);
        }
        FakeReply::ok(recorded(name).replace("@@abc123 ", &format!("@@{nonce} ")))
    }))
}

fn run(sessions: Vec<(&str, Result<Session, Unreachable>)>) -> Facts {
    let sessions = sessions
        .into_iter()
        .map(|(name, session)| (NodeName::parse(name).unwrap(), session))
        .collect();
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
        .block_on(observe(&cluster(), &sessions))
}

fn unplugged() -> Unreachable {
    Unreachable {
        refused: false,
        reason: "no route to host".to_owned(),
        hint: None,
    }
}

fn reason(facts: &Facts, name: &str) -> Unreachable {
    match &facts.hosts[&NodeName::parse(name).unwrap()] {
        Observation::Unreachable(unreachable) => unreachable.clone(),
        Observation::Seen(_) => panic!("{name} was seen"),
    }
}

#[test]
fn the_cluster_is_absent_only_when_every_controller_was_seen_without_one() {
    let bare = || Ok(answering("trixie-bare", "cluster-half-joined", Arc::default()));
    let facts = run(vec![
        ("controller-0", bare()),
        ("controller-1", bare()),
        ("worker-0", Err(unplugged())),
    ]);
    assert_eq!(facts.cluster, Seen::Absent);
    assert_eq!(reason(&facts, "worker-0"), unplugged());

    let facts = run(vec![
        ("controller-0", Err(unplugged())),
        ("controller-1", bare()),
        ("worker-0", bare()),
    ]);
    assert_eq!(
        facts.cluster,
        Seen::Unknown("controller-0 could not be looked at".to_owned())
    );
}

#[test]
fn the_next_controller_is_asked_when_the_first_knows_too_little() {
    let (first, second) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let facts = run(vec![
        (
            "controller-0",
            Ok(answering(
                "controller-etcd-failing",
                "cluster-api-silent",
                first.clone(),
            )),
        ),
        (
            "controller-1",
            Ok(answering(
                "controller-etcd-failing",
                "cluster-half-joined",
                second.clone(),
            )),
        ),
        ("worker-0", Err(unplugged())),
    ]);
    let cluster = facts.cluster.present().unwrap();
    assert_eq!(cluster.asked, NodeName::parse("controller-1").ok());
    assert_eq!(cluster.nodes.present().unwrap().len(), 2);
    assert_eq!((first.load(Ordering::SeqCst), second.load(Ordering::SeqCst)), (1, 1));
}

#[test]
fn a_probe_that_fails_is_an_unreachable_host_with_its_evidence() {
    let fake = |reply: FakeReply| Ok(Session::Fake(FakeSession::new(move |_| reply.clone())));
    let facts = run(vec![
        (
            "controller-0",
            fake(FakeReply::error(RunError::Sudo("a password is required".to_owned()))),
        ),
        (
            "controller-1",
            fake(FakeReply::failed(127, "sh: 1: mktemp: not found\n")),
        ),
        ("worker-0", fake(FakeReply::ok("Welcome!\n"))),
    ]);
    let sudo = reason(&facts, "controller-0");
    assert!(sudo.refused && sudo.reason.contains("a password is required") && sudo.hint.is_some());
    let failed = reason(&facts, "controller-1");
    assert!(!failed.refused && failed.reason == "the probe ended with status 127: sh: 1: mktemp: not found");
    assert!(reason(&facts, "worker-0").reason.contains("Welcome!"));
}
