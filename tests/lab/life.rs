//! The whole life of a cluster: from bare hosts to one that serves, and back to bare hosts.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::guide;
use crate::inventory::{self, replaced};
use crate::lab::{self, HOSTS, NODES, feed, on, rebuild, snapshots};
use crate::left::{After, unexplained};
use crate::program::{home, k8sup};
use crate::serving::{is_healthy, kubectl, serves};

/// What there is on each host.
pub(crate) type Snapshots = Vec<(String, BTreeSet<String>)>;

/// The hosts are as before, but for what is documented.
pub(crate) fn compare(before: &Snapshots, after: After) {
    let hosts: Vec<&str> = before.iter().map(|(host, _)| host.as_str()).collect();
    let mut wrong = String::new();
    for ((host, before), (_, now)) in before.iter().zip(&snapshots(&hosts)) {
        let owned = packaged(host, before, now);
        for line in unexplained(before, now, after, &owned) {
            let _ = writeln!(wrong, "{host}: {line}");
        }
    }
    assert!(
        wrong.is_empty(),
        "hosts differ from before in what is not documented:\n{wrong}"
    );
}

/// Not one host was touched.
pub(crate) fn unchanged(before: &Snapshots) {
    let hosts: Vec<&str> = before.iter().map(|(host, _)| host.as_str()).collect();
    for ((host, before), (_, now)) in before.iter().zip(&snapshots(&hosts)) {
        let differences: Vec<_> = before.symmetric_difference(now).collect();
        assert!(differences.is_empty(), "{host} was changed: {differences:#?}");
    }
}

/// The files of packages that were not there before.
fn packaged(host: &str, before: &BTreeSet<String>, now: &BTreeSet<String>) -> BTreeSet<String> {
    let new = now
        .difference(before)
        .filter_map(|line| line.strip_prefix("package ")?.split(':').next());
    let mut list = vec!["dpkg", "--listfiles"];
    list.extend(new);
    if list.len() == 2 {
        return BTreeSet::new();
    }
    on(host, &list).lines().map(str::to_owned).collect()
}

/// What cannot be right is refused before anything is changed.
pub(crate) fn refused() {
    let hosts = ["cp1", "w2"];
    rebuild(&hosts);
    let before = snapshots(&hosts);
    let misspelt = inventory::edited("misspelt.yaml", |text| replaced(&text, "\nworkers:", "\nworkerz:"));
    k8sup(&["apply", "--yes"], &misspelt).expect(2).says("workers");
    // An address that the host w2 does not have.
    let wrong = inventory::edited("wrong-address.yaml", |text| {
        replaced(
            &text,
            "w2: { address: 192.168.7.205, ssh: {",
            "w2: { address: 192.168.7.215, ssh: { host: 192.168.7.205,",
        )
    });
    k8sup(&["apply", "--yes"], &wrong).expect(6).says("192.168.7.215");
    k8sup(&["check"], &wrong).expect(6);
    k8sup(&["apply"], &inventory::standard()).expect(2).says("--yes");
    begun();
    unchanged(&before);
}

/// An inventory to begin with, of what hosts are.
fn begun() {
    let known = home().join(".ssh/known_hosts");
    let _ = std::fs::remove_file(&known);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("begun.yaml");
    let _ = std::fs::remove_file(&file);
    let key = lab::folder().join("id_ed25519").display().to_string();
    let controllers = [
        "--user",
        "pi",
        "--key",
        &key,
        "--controller",
        "192.168.7.201",
        "--host-keys",
        "accept-new",
    ];
    let init = |more: &[&str]| k8sup(&[&["init"], &controllers[..], more].concat(), &file);
    // sudo asks for a password on w2, so what it is cannot be told yet.
    init(&["--worker", "192.168.7.205,192.168.7.206"]).expect(7);
    let text = std::fs::read_to_string(&file).unwrap();
    for line in [
        "sudoPassword: prompt",
        "controller-0: 192.168.7.201    # Debian GNU/Linux 13",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    init(&["--worker", "192.168.7.206"]).expect(2).says("--force");
    init(&["--worker", "192.168.7.206", "--force"]).expect(0);
    let text = std::fs::read_to_string(&file).unwrap();
    for line in ["  cp1: 192.168.7.201 ", "  w3: 192.168.7.206 "] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    k8sup(&["check"], &file).expect(0);
}

/// Apply, use, apply again, reset; on the reset hosts all of the guide; then the packages go, too.
pub(crate) fn full() {
    rebuild(&HOSTS);
    let before = snapshots(&HOSTS);
    let inventory = inventory::standard();
    k8sup(&["check"], &inventory).expect(0);
    k8sup(&["plan", "--exit-code"], &inventory).expect(3);
    k8sup(&["apply", "--yes"], &inventory).expect(0);
    serves(&NODES);
    tried_out(&inventory);
    mixture();
    nothing_to_do(&inventory);
    healthy(&inventory);
    own_kubeconfig(&inventory);

    k8sup(&["reset", "--yes"], &inventory)
        .expect(0)
        .says("7 hosts are clean");
    compare(&before, After::Reset);
    k8sup(&["reset", "--yes"], &inventory)
        .expect(0)
        .says("Nothing to reset: 7 hosts are clean");

    guide::followed();
    k8sup(&["reset", "--yes", "--purge"], &inventory)
        .expect(0)
        .says("7 hosts are clean");
    compare(&before, After::Purge);
    k8sup(&["plan", "--exit-code"], &inventory).expect(3);
}

/// The smoke test sees what works and what does not, and leaves nothing behind.
fn tried_out(inventory: &Path) {
    let test = ["test", "--outside", "www.outside.lab.test", "-o", "json"];
    let verdicts = |code| {
        let said: Value = serde_json::from_str(&k8sup(&test, inventory).expect(code).stdout).unwrap();
        let checks = said["checks"].as_array().unwrap().iter();
        checks
            .map(|check| (check["name"].as_str().unwrap().to_owned(), check["verdict"].clone()))
            .collect::<Vec<_>>()
    };
    let all = verdicts(0);
    assert_eq!(all.len(), 10);
    assert!(all.iter().all(|(_, verdict)| verdict == "passed"), "{all:?}");
    kubectl(&["-n", "kube-system", "scale", "deploy/coredns", "--replicas=0"]);
    kubectl(&[
        "-n",
        "kube-system",
        "wait",
        "pod",
        "-l",
        "k8s-app=kube-dns",
        "--for=delete",
        "--timeout=60s",
    ]);
    let without_names = verdicts(5);
    kubectl(&["-n", "kube-system", "scale", "deploy/coredns", "--replicas=2"]);
    kubectl(&[
        "-n",
        "kube-system",
        "rollout",
        "status",
        "deploy/coredns",
        "--timeout=60s",
    ]);
    let wrong = without_names.iter().filter(|(_, verdict)| verdict != "passed");
    let wrong: Vec<_> = wrong
        .map(|(name, verdict)| (name.as_str(), verdict.as_str().unwrap()))
        .collect();
    let wanted = [
        ("names inside the cluster", "failed"),
        ("a service by its name", "skipped"),
        ("names outside the cluster", "skipped"),
    ];
    assert_eq!(wrong, wanted);
    assert!(!kubectl(&["get", "namespaces"]).contains("k8sup-smoke"));
}

/// The second apply finds nothing to do, and at once. A machine may be slow now and then, so the
/// quickest of a few counts; `K8SUP_LAB_BUSY=1` says that others keep it busy all the time.
fn nothing_to_do(inventory: &Path) {
    let again = || {
        k8sup(&["apply", "--yes"], inventory)
            .expect(0)
            .says("Nothing to do")
            .took
    };
    let quickest = (0..3).map(|_| again()).min().unwrap();
    let busy = std::env::var_os("K8SUP_LAB_BUSY").is_some_and(|value| value == "1");
    assert!(
        busy || quickest <= Duration::from_secs(3),
        "to find nothing to do took {quickest:?}"
    );
    k8sup(&["plan", "--exit-code"], inventory).expect(0);
}

fn healthy(inventory: &Path) {
    is_healthy(inventory);
    let status = k8sup(&["status", "-o", "json"], inventory).expect(0);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["hosts"].as_array().unwrap().len(), HOSTS.len());
    assert_eq!(status["etcd"].as_array().unwrap().len(), 3);
    k8sup(&["check"], inventory).expect(0);
}

/// The hosts differ as real ones do: each containerd runs as its own kind of configuration says.
fn mixture() {
    for (host, version) in [
        ("cp1", "1.7."),
        ("cp3", "1.6."),
        ("w1", "1.7."),
        ("w2", "1.6."),
        ("w3", "2."),
    ] {
        let said = on(host, &["containerd", "--version"]);
        let found = said.split(' ').nth(2).unwrap().trim_start_matches('v');
        assert!(found.starts_with(version), "{host} has containerd {found}");
        let dump = on(host, &["containerd", "config", "dump"]);
        assert!(dump.contains("SystemdCgroup = true"), "{host}: {dump}");
    }
}

/// The user's own kubeconfig keeps what it has, and gets the cluster.
fn own_kubeconfig(inventory: &Path) {
    let path = home().join("own-kubeconfig");
    let other = r#"{"apiVersion":"v1","kind":"Config","current-context":"other",
      "clusters":[{"name":"other","cluster":{"server":"https://192.0.2.1:6443"}}],
      "users":[{"name":"other","user":{"token":"not-a-secret"}}],
      "contexts":[{"name":"other","context":{"cluster":"other","user":"other"}}]}"#;
    std::fs::write(&path, other).unwrap();
    k8sup(
        &["kubeconfig", "--merge", "--output", path.to_str().unwrap()],
        inventory,
    )
    .expect(0);
    let merged = std::fs::read_to_string(&path).unwrap();
    // This machine need not have kubectl; a host of the lab has it, and reaches the endpoint as anybody does.
    let try_it = "umask 077; export KUBECACHEDIR=/dev/shm/kubectl; cat >/run/own; trap 'rm -f /run/own' EXIT
      kubectl --kubeconfig /run/own config get-contexts -o name
      kubectl --kubeconfig /run/own get nodes -o name";
    let said = feed("w1", &["sh", "-c", try_it], &merged);
    for line in ["other", "lab", "node/w3"] {
        assert!(said.lines().any(|found| found == line), "no {line} in {said}");
    }
    assert_eq!(kubectl(&["config", "get-contexts", "-o", "name"]).lines().count(), 1);
}
