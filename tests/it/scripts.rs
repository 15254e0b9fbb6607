//! The steps' scripts: which step uses which, with which parameters, and what the shell makes of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use k8sup::plan::step::{ClearStep, ContainerdFiles, PackageStep, ResetStep};
use k8sup::plan::{Reference, Step, StepParam};

use crate::world::{self, name};

fn text(value: &str) -> String {
    value.to_owned()
}

fn list(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| text(value)).collect()
}

/// One of each.
fn samples() -> Vec<Step> {
    let address = "192.168.7.202".parse().unwrap();
    let sealed = "certificateKey: <secret:certificate-key>\ntoken: <secret:bootstrap-token>\n";
    let files = |content: &str| {
        BTreeMap::from([
            (text("/etc/containerd/config.toml"), text(content)),
            (text("/etc/crictl.yaml"), text("x: y\n")),
        ])
    };
    vec![
        Step::SwapOff {
            fstab: Some(text("# k8sup: /swap none swap sw 0 0\n")),
            units: list(&["mnt-extra.swap"]),
            makers: list(&["dphys-swapfile.service", "zramswap.service"]),
            zram: Some(text("# no device\n")),
            rpi: Some(text("[Main]\nMechanism=none\n")),
            active: true,
        },
        Step::BootLine {
            path: text("/boot/firmware/cmdline.txt"),
            content: text("rootwait cgroup_enable=memory cgroup_memory=1\n"),
        },
        Step::Reboot {
            boot_id: text("eff5715e-cf96-4418-99c3-f1c4b0722eff"),
        },
        Step::AwaitClock,
        Step::Kernel {
            modules: Some(text("overlay\n")),
            sysctl: text("net.ipv4.ip_forward = 1\n"),
            path: text("/etc/sysctl.d/90-k8sup.conf"),
        },
        Step::Hostname { name: name("cp2") },
        Step::Packages(PackageStep {
            sources: Some(text("Types: deb\n")),
            key_url: text("https://pkgs.k8s.io/Release.key"),
            containerd_source: Some(text("deb https://download.docker.com/linux/debian trixie stable\n")),
            containerd_key_url: text("https://download.docker.com/linux/debian/gpg"),
            legacy: list(&["/etc/apt/sources.list.d/kubernetes.list"]),
            apt_proxy: Some(text("Acquire::http::Proxy \"http://proxy.lan:3128\";\n")),
            install: list(&["containerd", "kubelet=1.34.4-*"]),
            reinstall: list(&["kubernetes-cni"]),
            hold: list(&["kubelet"]),
        }),
        Step::Containerd {
            variants: vec![
                ContainerdFiles {
                    dialect: text("1"),
                    files: files("version = 2\n"),
                },
                ContainerdFiles {
                    dialect: text("2.1"),
                    files: files("version = 3\n"),
                },
            ],
            restart: false,
        },
        Step::HostsFile {
            content: text("127.0.0.1 localhost\n"),
        },
        Step::ResolvConf {
            content: text("nameserver 9.9.9.9\n"),
        },
        Step::HaProxy {
            config: text("frontend api\n"),
            port: 6443,
        },
        Step::Reach {
            what: text("the endpoint"),
            targets: vec![(text("192.168.7.140"), 6443), (text("api.lan"), 443)],
            listening: true,
        },
        Step::PullImages {
            images: list(&["registry.k8s.io/pause:3.10.1"]),
            control_plane: Some(text("v1.34.4")),
            repository: None,
        },
        Step::ClearHalfMade { controller: true },
        Step::Found { config: text(sealed) },
        Step::AwaitApi { address },
        Step::Publish { config: text(sealed) },
        Step::IssueToken,
        Step::Flannel {
            manifest: text("kind: DaemonSet\n"),
        },
        Step::EtcdTurn {
            controller: name("cp2"),
            config: text(sealed),
        },
        Step::Join {
            config: text(sealed),
            discovery: text("certificate-authority-data: <late:ca-cert>\n"),
            address,
            controller: true,
        },
        Step::FinishJoin,
        Step::ForgetNode {
            node: name("cp2"),
            address,
        },
        Step::NodeSettings {
            node: name("cp2"),
            labels: list(&["disk=ssd"]),
            taints: list(&["a=b:NoSchedule", "c:NoExecute"]),
            announced: list(&["a:NoSchedule", "disk", "old"]),
            managed: list(&["a:NoSchedule", "disk"]),
        },
        Step::Resolvers {
            corefile: text(".:53 {\n    forward . \"9.9.9.9\"\n}\n"),
        },
        Step::UserKubeconfig {
            user: text("pi"),
            home: text("/home/pi"),
        },
        Step::Revoke,
        Step::LeaveCluster {
            node: name("cp2"),
            address,
            controller: true,
        },
        Step::ResetNode(ResetStep {
            etcd_data_dir: Some(text("/var/lib/etcd")),
            keep_member: true,
            cni_files: list(&["/etc/cni/net.d/10-flannel.conflist"]),
            homes: list(&["/home/pi", "/root"]),
            links: list(&["cni0", "flannel.1"]),
            keep: list(&["/etc/kubernetes/pki/etcd/ca.crt"]),
        }),
        Step::ResetLoadBalancer,
        Step::RestoreHost { purge: true },
        Step::Firewall {
            tool: text("ufw"),
            interface: text("eth0"),
            open: list(&[
                "allow from 192.168.7.201 to any port 2379,2380 proto tcp",
                "route allow to 10.244.0.0/16",
            ]),
            close: list(&["allow from 192.168.7.209 to any port 10250 proto tcp"]),
        },
        Step::ClearLeft(ClearStep {
            aside: list(&["/etc/cni/net.d/87-podman-bridge.conflist"]),
            stale: list(&["/etc/cni/net.d/10-flannel.conflist"]),
            links: list(&["cni0", "flannel.1"]),
            network: true,
            keep_cni: false,
        }),
        Step::MachineId,
        Step::KubeletFlags {
            files: BTreeMap::from([(text("/etc/default/kubelet"), text("KUBELET_EXTRA_ARGS=\n"))]),
        },
        Step::KubeletServer {
            server: text("https://192.168.7.202:6443"),
        },
        Step::LinkSettings {
            files: BTreeMap::from([(text("/etc/systemd/network/50-k8sup-flannel.link"), text("[Match]\n"))]),
        },
    ]
}

/// A new step does not compile here until it has a number, and the test below fails until it has a sample.
fn number(step: &Step) -> usize {
    match step {
        Step::SwapOff { .. } => 0,
        Step::BootLine { .. } => 1,
        Step::Reboot { .. } => 2,
        Step::AwaitClock => 3,
        Step::Kernel { .. } => 4,
        Step::Hostname { .. } => 5,
        Step::Packages(_) => 6,
        Step::Containerd { .. } => 7,
        Step::HostsFile { .. } => 8,
        Step::ResolvConf { .. } => 9,
        Step::HaProxy { .. } => 10,
        Step::Reach { .. } => 11,
        Step::PullImages { .. } => 12,
        Step::ClearHalfMade { .. } => 13,
        Step::Found { .. } => 14,
        Step::AwaitApi { .. } => 15,
        Step::Publish { .. } => 16,
        Step::IssueToken => 17,
        Step::Flannel { .. } => 18,
        Step::EtcdTurn { .. } => 19,
        Step::Join { .. } => 20,
        Step::FinishJoin => 21,
        Step::ForgetNode { .. } => 22,
        Step::NodeSettings { .. } => 23,
        Step::Resolvers { .. } => 24,
        Step::UserKubeconfig { .. } => 25,
        Step::Revoke => 26,
        Step::LeaveCluster { .. } => 27,
        Step::ResetNode(_) => 28,
        Step::ResetLoadBalancer => 29,
        Step::RestoreHost { .. } => 30,
        Step::Firewall { .. } => 31,
        Step::ClearLeft(_) => 32,
        Step::MachineId => 33,
        Step::KubeletFlags { .. } => 34,
        Step::KubeletServer { .. } => 35,
        Step::LinkSettings { .. } => 36,
    }
}

#[test]
fn every_step_has_a_sample_and_a_script_of_its_own() {
    let samples = samples();
    let numbers: Vec<usize> = samples.iter().map(number).collect();
    let last = numbers.iter().max().unwrap();
    assert_eq!(numbers, (0..=*last).collect::<Vec<_>>());
    let used: Vec<String> = samples.iter().map(|step| text(step.script().name)).collect();
    let unique: BTreeSet<String> = used.iter().cloned().collect();
    assert_eq!(unique.len(), used.len(), "two steps share a script");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/steps");
    let there: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(unique, there, "scripts that no step uses, or the other way round");
}

#[test]
fn parameters_of_every_step() {
    let mut golden = String::new();
    for step in samples() {
        let script = step.script();
        golden += &format!(
            "# {}\n{}.sh, at most {} s",
            step.title(),
            script.name,
            script.timeout.as_secs()
        );
        if let Some(reference) = script.output {
            golden += &format!(", gives {}", reference.placeholder());
        }
        golden += "\n";
        for (param, value) in &script.params {
            let (kind, value) = match value {
                StepParam::Plain(value) => ("", value),
                StepParam::Sealed(value) => (" (sealed)", value),
            };
            golden += &format!("{param}{kind}={}\n", value.replace('\n', "\n  |"));
        }
        golden += "\n";
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../plans");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("every-step", golden));
}

/// Names in capitals that the shell text expands.
fn expansions(script: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in script.lines().filter(|line| !line.trim_start().starts_with('#')) {
        for (place, _) in line.match_indices('$') {
            let rest = line[place + 1..].trim_start_matches('{');
            let name: String = rest
                .chars()
                .take_while(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == '_')
                .collect();
            if name.len() > 1 && name.starts_with(|c: char| c.is_ascii_uppercase()) {
                names.insert(name);
            }
        }
    }
    names
}

#[test]
fn scripts_use_the_parameters_that_they_get_and_no_others() {
    for step in samples() {
        let script = step.script();
        let own = world::read(&format!("templates/steps/{}.sh", script.name));
        assert!(script.text.ends_with(&own) && script.text.starts_with("#!/bin/sh\n"));
        let given: BTreeSet<String> = script.params.iter().map(|(name, _)| name.clone()).collect();
        let used = expansions(&own);
        // FILE_1, FILE_2, … are numbered, and only named by FILES.
        let numbered = |name: &&String| name.starts_with("FILE_");
        let unused: Vec<_> = given.difference(&used).filter(|name| !numbered(name)).collect();
        assert!(unused.is_empty(), "{} does not use {unused:?}", script.name);
        let missing: Vec<_> = used.difference(&given).filter(|name| !numbered(name)).collect();
        assert!(missing.is_empty(), "{} gets no {missing:?}", script.name);
        for reference in Reference::ALL {
            let plain = script
                .params
                .iter()
                .any(|(_, value)| matches!(value, StepParam::Plain(value) if value.contains(reference.placeholder())));
            assert!(!plain, "{} has {} in the open", script.name, reference.placeholder());
        }
    }
}

/// Files with all shell text: the steps behind the prelude, and what runs by itself.
fn shell_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for step in samples() {
        let script = step.script();
        let path = folder.join(format!("{}.sh", script.name));
        std::fs::write(&path, script.text).unwrap();
        files.push(path);
    }
    for parts in [
        &["holder", "sections", "probe"][..],
        &["sections", "cluster"],
        &["holder", "lock"],
    ] {
        let path = folder.join(format!("{}.sh", parts.join("-")));
        let text: String = parts
            .iter()
            .map(|part| world::read(&format!("templates/{part}.sh")))
            .collect();
        std::fs::write(&path, text).unwrap();
        files.push(path);
    }
    for name in ["verify", "evidence", "fetch", "bootstrap"] {
        files.push(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("templates/{name}.sh")));
    }
    files
}

fn installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

#[test]
fn shellcheck_has_nothing_to_say() {
    if !installed("shellcheck") {
        let required = std::env::var("K8SUP_REQUIRE_SHELLCHECK").is_ok_and(|value| value == "1");
        assert!(!required, "shellcheck is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("shellcheck")
        // SC2317: functions that are called by name, through another.
        .args(["--shell=sh", "--format=gcc", "--exclude=SC2317"])
        .args(shell_files(folder.path()))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn every_shell_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let files = shell_files(folder.path());
    for shell in [&["sh"][..], &["dash"], &["busybox", "ash"], &["bash", "--posix"]] {
        if Command::new(shell[0]).arg("-c").arg("true").output().is_err() {
            continue;
        }
        for file in &files {
            let output = Command::new(shell[0])
                .args(&shell[1..])
                .arg("-n")
                .arg(file)
                .output()
                .unwrap();
            assert!(
                output.status.success(),
                "{shell:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}
