//! `k8sup render`: what would be brought, as files, without a connection and without a secret.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const CANARY: &str = "canary-proxy-password";

fn render(inventory: &Path, to: &Path, home: &Path) -> Output {
    let facts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/facts");
    Command::new(env!("CARGO_BIN_EXE_k8sup"))
        .arg("render")
        .arg(inventory)
        .arg("--output")
        .arg(to)
        .arg("--facts")
        .arg(facts)
        .env_clear()
        .env("HOME", home)
        .output()
        .unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn steps_and_files_are_written_without_secrets_and_only_where_they_may() {
    let place = tempfile::tempdir().unwrap();
    let inventory = place.path().join("homelab.yaml");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kube-flannel.yml");
    let text = format!(
        "cluster: {{ name: homelab, kubernetes: v1.34.4 }}\ncontrollers: {{ docker-containerd: {{ address: 192.168.7.140, taints: [] }} }}\n\
         flannel: {{ manifest: {} }}\nproxy: {{ http: \"http://me:{CANARY}@proxy.lan:3128\" }}\n",
        manifest.display()
    );
    fs::write(&inventory, text).unwrap();
    let to = place.path().join("rendered");
    let ran = render(&inventory, &to, place.path());
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));

    let host = to.join("docker-containerd");
    let names: Vec<String> = files(&to)
        .iter()
        .map(|path| path.strip_prefix(&to).unwrap().display().to_string())
        .collect();
    assert!(
        names
            .iter()
            .any(|name| name == "docker-containerd/files/etc/containerd/config.toml"),
        "{names:#?}"
    );
    let found = files(&host)
        .into_iter()
        .find(|path| path.to_string_lossy().ends_with("-found.sh"))
        .unwrap();
    let script = fs::read_to_string(found).unwrap();
    assert!(
        script.starts_with("# docker-containerd: kubeadm init: control plane\n"),
        "{script}"
    );
    assert!(script.contains("ClusterConfiguration"), "{script}");
    for path in files(&to) {
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(CANARY), "{} has a secret", path.display());
        if path.extension().is_some_and(|ending| ending == "sh") {
            let checked = Command::new("sh").arg("-n").arg(&path).output().unwrap();
            assert!(
                checked.status.success(),
                "{}: {}",
                path.display(),
                String::from_utf8_lossy(&checked.stderr)
            );
        }
    }

    // Again: the same files, and nothing of somebody else's is touched.
    fs::write(to.join("notes.txt"), "mine").unwrap();
    assert_eq!(render(&inventory, &to, place.path()).status.code(), Some(0));
    let again = files(&to).len();
    assert_eq!(again, names.len() + 1);
    let ran = render(&inventory, place.path(), place.path());
    assert_eq!(ran.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&ran.stderr).contains("is not empty"),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}
