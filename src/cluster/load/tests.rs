//! Inventories and what is said about them.

use insta::assert_snapshot;
use proptest::prelude::*;

use std::path::Path;

use super::load;
use crate::cluster::{Cluster, HostKeys, ManifestSource, Role, SecretSource};
use crate::inventory::problem::{self, Severity, render_problems};
use crate::inventory::{Environment, open, vocabulary};

fn environment() -> Environment {
    Environment {
        user: "me".into(),
        home: "/home/me".into(),
        inventory_dir: "/srv/lab".into(),
    }
}

/// The least that is an inventory.
const LEAST: &str = "\
cluster: { name: lab, kubernetes: v1.34.4 }
controllers: { c0: 192.168.7.201 }
workers: { w0: 192.168.7.211 }
";

/// What is said about a text, warnings included.
fn said(text: &str) -> String {
    let problems = match load(text, &environment()) {
        Ok((_, warnings)) => warnings,
        Err(problems) => problems,
    };
    render_problems(&problems, text, "lab.yaml", false)
}

/// What is said about the least inventory with lines added.
fn added(lines: &str) -> String {
    said(&format!("{LEAST}{lines}"))
}

/// What is said about the least inventory with keys added to its cluster.
fn cluster(keys: &str) -> String {
    said(&LEAST.replace("kubernetes: v1.34.4", &format!("kubernetes: v1.34.4, {keys}")))
}

/// What is said about the least inventory with keys added to its worker.
fn worker(keys: &str) -> String {
    said(&LEAST.replace(
        "w0: 192.168.7.211",
        &format!("w0: {{ address: 192.168.7.211, {keys} }}"),
    ))
}

#[track_caller]
fn good(text: &str) -> Cluster {
    match load(text, &environment()) {
        Ok((cluster, _)) => cluster,
        Err(problems) => panic!("{}", render_problems(&problems, text, "lab.yaml", false)),
    }
}

#[track_caller]
fn refuses(said: &str, message: &str) {
    assert!(said.contains(message), "wanted: {message}\nsaid: {said}");
    assert!(said.starts_with("error: "), "{said}");
}

// What a good inventory means.

#[test]
fn the_least_inventory_gets_its_defaults() {
    let cluster = good(LEAST);
    assert_eq!(cluster.endpoint.to_string(), "192.168.7.201:6443");
    assert_eq!(cluster.pod_cidr.to_string(), "10.244.0.0/16");
    assert_eq!(cluster.service_cidr.to_string(), "10.96.0.0/12");
    assert_eq!(cluster.dns_domain, "cluster.local");
    assert_eq!(cluster.packages.repository, "https://pkgs.k8s.io");
    assert_eq!((cluster.flannel.version.as_str(), cluster.flannel.vni), ("v0.28.10", 1));
    assert!(cluster.flannel.sha256.is_some());
    assert!(!cluster.set_hostnames);
    let ssh = &cluster.hosts[0].ssh;
    assert_eq!((ssh.user.as_str(), ssh.port, ssh.host_keys), ("me", 22, HostKeys::Ask));
    assert_eq!(ssh.keys[0], Path::new("/home/me/.ssh/id_ed25519"));
    assert_eq!(ssh.keys.len(), 3);
    assert_eq!(ssh.known_hosts, Path::new("/home/me/.ssh/known_hosts"));
    assert_eq!(said(LEAST), "");
}

#[test]
fn every_sample_loads_without_a_word() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("inventories");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
        if file.extension().is_some_and(|extension| extension == "yaml") {
            seen += 1;
            let text = open(&file).unwrap();
            good(&text);
            assert_eq!(said(&text), "", "{}", file.display());
        }
    }
    assert!(seen >= 3, "only {seen} samples");
}

#[test]
fn the_lab_is_what_its_sample_says() {
    let cluster = good(include_str!("../../../inventories/lab.yaml"));
    assert_eq!(cluster.endpoint.to_string(), "192.168.7.140:6443");
    let hosts: Vec<_> = cluster
        .hosts
        .iter()
        .map(|host| format!("{} {} {}", host.name, host.role, host.ssh.user))
        .collect();
    assert_eq!(
        hosts,
        [
            "lb-0 load balancer pi",
            "cp1 controller pi",
            "cp2 controller pi",
            "cp3 controller pi",
            "w1 worker root",
            "w2 worker pi",
            "w3 worker pi"
        ]
    );
    assert_eq!(
        cluster.hosts[5].ssh.sudo_password,
        Some(SecretSource::File("/var/tmp/k8sup-lab/w2.password".into()))
    );
    assert_eq!(cluster.hosts[6].ssh.sudo_password, None);
    assert!(cluster.hosts.iter().all(|host| host.ssh.host_keys == HostKeys::Strict));
    assert_eq!(cluster.images.mirrors["*"], ["http://192.168.7.1:5000"]);
}

#[test]
fn everything_can_be_said() {
    let cluster = good(
        r#"
cluster:
  name: full
  kubernetes: 1.33.2
  podCidr: 10.32.0.0/14
  serviceCidr: 10.112.0.0/16
  dnsDomain: k8s.example.com
  endpoint: api.example.com:8443
  certSans: [api2.example.com, 203.0.113.7, "*.example.com"]
  keyAlgorithm: ECDSA-P256
  setHostnames: true
ssh:
  user: pi
  port: 2200
  keys: [keys/one, ~/two, /three]
  bastion: { host: gw.example.com, user: jump, port: 2201, key: ./jump }
  sudoPassword: { env: SUDO }
  hostKeys: accept-new
  knownHosts: ./known
loadBalancers:
  lb: { address: 192.168.7.140, interface: eth1 }
controllers:
  c0:
    address: 192.168.7.201
    ssh: { host: c0.local, user: admin, port: 22, key: own, sudoPassword: none, bastion: none, hostKeys: strict, knownHosts: own_known }
    taints: []
  c1: 192.168.7.202
  c2: { address: 192.168.7.203, ssh: { host: gw.example.com, port: 2201 } }
workers:
  w0:
    address: 192.168.7.204
    labels: { disk: ssd, zone: 3, spare: true, topology.kubernetes.io/zone: attic, empty: }
    taints: ["a=b:NoSchedule", "c:NoExecute", { key: d, value: e, effect: PreferNoSchedule }, { key: f, effect: NoExecute }]
    ssh: { bastion: { host: other } }
flannel:
  version: v0.27.4
  manifest: manifests/flannel.yml
  vni: 7
  port: 4789
  mtu: 1400
  interface: eth0
  imageRepository: registry.example:5000/flannel
  patches: { DaemonSet/kube-flannel-ds: { spec: { minReadySeconds: 3 } } }
packages:
  repository: http://mirror.example/k8s/
  revision: "1.1"
  containerd: { source: "https://download.docker.com/linux/debian trixie stable", key: https://download.docker.com/linux/debian/gpg }
images: { repository: registry.example/k8s, mirrors: { docker.io: [https://a.example, http://b.example:5000], "*": http://c.example } }
kubeadm: { apiServer: { extraArgs: [{ name: v, value: "4" }] } }
kubelet: { maxPods: 200, evictionHard: { memory.available: 100Mi }, x: [1.5, null, true, 0x10, text] }
kubeProxy: { mode: nftables }
dns: { resolvers: [192.168.7.1, 9.9.9.9] }
proxy: { http: http://proxy.example:3128, https: http://proxy.example:3128/, noProxy: [.example.com] }
"#,
    );
    assert_snapshot!(format!("{cluster:#?}"));
}

#[test]
fn paths_and_logins_are_merged() {
    let cluster = good(
        "cluster: { name: lab, kubernetes: v1.34.4 }\n\
         ssh: { user: pi, key: k, bastion: { host: 192.168.7.140 }, sudoPassword: prompt }\n\
         loadBalancers: { lb: 192.168.7.140 }\n\
         controllers: { c0: { address: 192.168.7.201, ssh: { user: root, sudoPassword: none } } }\n\
         workers: { w0: { address: 192.168.7.204, ssh: { bastion: none } } }\n",
    );
    let ssh: Vec<_> = cluster.hosts.iter().map(|host| &host.ssh).collect();
    assert_eq!(ssh[0].bastion, None, "the bastion itself is reached directly");
    let bastion = ssh[1].bastion.as_ref().unwrap();
    assert_eq!(
        (bastion.host.as_str(), bastion.user.as_str(), bastion.port),
        ("192.168.7.140", "pi", 22)
    );
    assert_eq!(bastion.keys, [Path::new("/srv/lab/k")]);
    assert_eq!((ssh[1].user.as_str(), &ssh[1].sudo_password), ("root", &None));
    assert_eq!(
        (&ssh[2].bastion, &ssh[2].sudo_password),
        (&None, &Some(SecretSource::Prompt))
    );
}

#[test]
fn anchors_merge_keys_and_json_are_yaml() {
    let cluster = good(
        "cluster: &c { name: lab, kubernetes: v1.34.4 }\n\
         controllers: { c0: 192.168.7.201 }\n\
         workers:\n  w0: &w { address: 192.168.7.204, labels: { disk: ssd } }\n  w1: { <<: *w, address: 192.168.7.205 }\n",
    );
    let labels: Vec<_> = cluster
        .role(Role::Worker)
        .map(|host| (host.address.octets()[3], host.labels["disk"].as_str()))
        .collect();
    assert_eq!(labels, [(204, "ssd"), (205, "ssd")]);
    good(r#"{"cluster": {"name": "lab", "kubernetes": "v1.34.4"}, "controllers": {"c0": "192.168.7.201"}}"#);
    good(&LEAST.replace('\n', "\r\n"));
    good(&format!("\u{feff}---\n{LEAST}...\n"));
    good(&format!("%YAML 1.2\n---\n{LEAST}"));
}

#[test]
fn a_manifest_is_a_url_or_a_file() {
    let manifest = |lines: &str| good(&format!("{LEAST}{lines}")).flannel;
    let digest = "a".repeat(64);
    let flannel = manifest(&format!(
        "flannel: {{ version: v0.27.4, sha256: {} }}\n",
        digest.to_uppercase()
    ));
    assert!(matches!(&flannel.manifest, ManifestSource::Url(url) if url.contains("/v0.27.4/")));
    assert_eq!(flannel.sha256, Some(digest));
    let flannel = manifest("flannel: { manifest: ./flannel.yml }\n");
    assert_eq!(
        (flannel.manifest, flannel.sha256),
        (ManifestSource::File("/srv/lab/flannel.yml".into()), None)
    );
}

// What is said about a bad one: each kind of problem with its line.

#[test]
fn all_problems_are_reported_at_once() {
    assert_snapshot!(said(
        "\
cluster:
  name: Home_Lab
  kubernetes: 1.29.3
  podCIDR: 10.244.0.0/16
  serviceCidr: 192.168.0.1/16
  dnsDomain:
ssh: { user: pi, sudoPassword: raspberry, port: \"22\" }
loadBalancer:
  lb-0: 192.168.7.140
controllers:
  controller-0: 192.168.7.201
  controller_1: 192.168.7.202
  controller-0: 192.168.7.203
workers:
  - worker-0: 192.168.7.204
"
    ));
}

#[test]
fn what_is_no_inventory_at_all() {
    assert_snapshot!(
        [
            "",
            "# only a comment\n",
            "- a\n- b\n",
            "just text\n",
            "null",
            "a: b\n---\nc: d\n",
            "cluster: [\n",
            "cluster:\n\tname: a\n",
            "a: \"b\n",
            "a: *nothing\n",
            "a: &a [*a]\n",
            "a: !include b\n",
            "{a: b}: c\n",
            "<<: 3\n",
            "a\0b",
        ]
        .map(said)
        .join("\n\n")
    );
}

#[test]
fn shapes() {
    assert_snapshot!(
        [
            said("cluster: { name: lab }\n"),
            said("controllers: [192.168.7.201]\n"),
            said("cluster: lab\ncontrollers: { c0: [1] , c1: , c2: { labels: a, taints: a } }\n"),
            cluster("podCidr: [10.244.0.0/16, \"fd00::/48\"], setHostnames: yes, certSans: { a: b }"),
            added("ssh: { port: [22], key: a, keys: [b], bastion: gw, sudoPassword: { env: A, file: b }, key : c }\n"),
            added("ssh: { bastion: { user: a }, sudoPassword: }\nflannel: { vni: -1, patches: { a: b } }\n"),
            added("podCidr: 10.0.0.0/8\nfoo: bar\nkubelet: [a]\nproxy:\n"),
            worker("taints: [[a], { key: a, effct: b }], label: a"),
        ]
        .join("\n\n")
    );
}

#[test]
fn versions() {
    let version = |text: &str| said(&LEAST.replace("v1.34.4", text));
    assert_snapshot!(
        [
            "v1.34",
            "latest",
            "v1.30.9",
            "v1.35.0",
            "v2.0.0",
            "v1.34.0-rc.1",
            "v1.34.4+k3s1",
            "v1.+34.4",
            "vv1.34.4"
        ]
        .map(version)
        .join("\n\n")
    );
}

#[test]
fn networks() {
    assert_snapshot!(
        [
            cluster("podCidr: 10.244.0.1/16"),
            cluster("podCidr: 10.244.0.0"),
            cluster("podCidr: 10.244.0.0/33"),
            cluster("podCidr: ten"),
            cluster("podCidr: \"fd00::/48\""),
            cluster("podCidr: \"10.244.0.0/16,fd00::/48\""),
            cluster("podCidr: 10.244.0.0/25"),
            cluster("podCidr: 10.244.0.0/24"),
            cluster("podCidr: 10.0.0.0/7"),
            cluster("podCidr: 10.96.0.0/16"),
            cluster("podCidr: 10.0.0.0/9, serviceCidr: 10.1.0.0/16"),
            cluster("serviceCidr: 10.244.7.0/24"),
            cluster("serviceCidr: 10.1.0.0/29"),
            cluster("serviceCidr: 10.0.0.0/11"),
            cluster("podCidr: 192.168.0.0/16"),
            cluster("serviceCidr: 192.168.7.0/24, endpoint: 192.168.7.200"),
            said(
                "cluster: { name: a, kubernetes: v1.34.4 }\ncontrollers: { c: 10.97.0.1 }\nworkers: { w: 10.244.0.3 }\n"
            ),
            added("dns: { resolvers: [10.96.0.10, 127.0.0.53, \"fd00::1\"] }\n"),
        ]
        .join("\n\n")
    );
}

#[test]
fn endpoints_and_counts() {
    let hosts = |balancers: usize, controllers: usize, endpoint: &str| {
        let list = |name: &str, from: usize, count: usize| {
            (0..count)
                .map(|n| format!("{name}{n}: 192.168.7.{}", from + n))
                .collect::<Vec<_>>()
                .join(", ")
        };
        said(&format!(
            "cluster: {{ name: lab, kubernetes: v1.34.4{endpoint} }}\nloadBalancers: {{ {} }}\ncontrollers: {{ {} }}\nworkers: {{ w: 192.168.7.9 }}\n",
            list("lb", 140, balancers),
            list("c", 201, controllers)
        ))
    };
    assert_eq!(hosts(1, 3, ""), "");
    assert_eq!(hosts(0, 1, ""), "");
    assert_eq!(hosts(0, 3, ", endpoint: k8s.example.com"), "");
    assert_eq!(hosts(2, 3, ", endpoint: 192.168.7.150"), "");
    assert_snapshot!(
        [
            hosts(1, 0, ""),
            hosts(0, 3, ""),
            hosts(2, 3, ""),
            hosts(1, 2, ""),
            hosts(1, 4, ""),
            hosts(0, 3, ", endpoint: 192.168.7.202"),
            hosts(1, 3, ", endpoint: c1"),
            hosts(0, 1, ", endpoint: \"192.168.7.201:8443\""),
            hosts(1, 1, ", endpoint: \"https://a.example:6443/\""),
            hosts(1, 1, ", endpoint: \"a.example:0\""),
            hosts(1, 1, ", endpoint: \"[fd00::1]:6443\""),
            hosts(1, 1, ", endpoint: \"fd00::1\""),
            hosts(1, 1, ", endpoint: 192.168.7.300"),
            hosts(1, 1, ", endpoint: my_api"),
            said("cluster: { name: lab, kubernetes: v1.34.4 }\ncontrollers: { c0: 192.168.7.201 }\n"),
        ]
        .join("\n\n")
    );
}

#[test]
fn names_and_addresses() {
    assert_snapshot!(
        [
            said(
                "cluster: { name: a.b, kubernetes: v1.34.4 }\nloadBalancers: { lb: 192.168.7.201 }\ncontrollers: { a: 192.168.7.201 }\n\
                 workers: { a: 192.168.7.3, b: 192.168.7.3, Über: 192.168.7.4, -: 192.168.7.5 }\n"
            ),
            said(
                "cluster: { name: a, kubernetes: v1.34.4 }\ncontrollers: { c: 192.168.7.1 }\nworkers:\n  a: worker.local\n  b: 192.168.7.2:2222\n  \
                 c1: 192.168.7.3/24\n  d: \"fd00::3\"\n  e: 127.0.0.1\n  f: 0.0.0.0\n  g: 224.0.0.1\n  h: 169.254.1.1\n  i: 192.168.07.1\n"
            ),
            said(
                "cluster: { name: a, kubernetes: v1.34.4 }\ncontrollers: { c: { address: 192.168.7.1, ssh: { host: gw, port: 22 } } }\n\
                 workers: { w: { address: 192.168.7.2, ssh: { host: gw } } }\n"
            ),
        ]
        .join("\n\n")
    );
}

#[test]
fn logins() {
    assert_snapshot!(
        [
            added("ssh: { user: \"a b\", port: 70000, key: ~other/key, hostKeys: acceptnew }\n"),
            added("ssh: { key: ~/.ssh/id_ed25519.pub, sudoPassword: { env: $SUDO } }\n"),
            added("ssh: { hostKeys: no, bastion: { host: pi@gw } }\n"),
            worker("ssh: { host: \"gw:2222\" }"),
            worker("ssh: { host: 1.2.3.400 }"),
            worker("interface: \"eth0 eth1\""),
        ]
        .join("\n\n")
    );
    let nobody = Environment {
        user: String::new(),
        ..environment()
    };
    let problems = load(LEAST, &nobody).unwrap_err();
    refuses(
        &render_problems(&problems, LEAST, "lab.yaml", false),
        "no user is known to log in as",
    );
}

#[test]
fn labels_and_taints() {
    assert_snapshot!(
        [
            worker("labels: { node-role.kubernetes.io/worker: \"\", kubernetes.io/hostname: a, foo.k8s.io/a: b }"),
            worker("labels: { \"a/b/c\": d, \"-a\": b, a: \"b c\", Bad_/a: b, /a: b, a/: b }"),
            worker("taints: [a, \"a:NoShedule\", \"a=b c:NoExecute\", \"a:NoExecute\", \"a=b:NoExecute\"]"),
            worker("taints: [\"node.kubernetes.io/not-ready:NoExecute\", \"node-role.kubernetes.io/control-plane:NoSchedule\"]"),
            added("loadBalancers: { lb: { address: 192.168.7.140, labels: { a: b } } }\n"),
        ]
        .join("\n\n")
    );
    let text = LEAST.replace(
        "192.168.7.201",
        "{ address: 192.168.7.201, taints: [\"node-role.kubernetes.io/control-plane:NoSchedule\"] }",
    );
    assert_eq!(said(&text), "");
    assert_eq!(
        worker(
            "labels: { node.kubernetes.io/pool: a, topology.kubernetes.io/region: b, x.kubelet.kubernetes.io/c: d }"
        ),
        ""
    );
}

#[test]
fn sources() {
    assert_snapshot!(
        [
            added("flannel: { version: 0.28.9 }\n"),
            added("flannel: { version: v0.28.9 }\n"),
            added("flannel: { manifest: https://mirror.example/flannel.yml }\n"),
            added("flannel: { manifest: ftp://mirror.example/flannel.yml, sha256: abc }\n"),
            added("flannel: { backend: wiregard, vni: 0, mtu: 100, interface: /dev/eth0, imageRepository: https://a }\n"),
            added("flannel: { backend: host-gw, vni: 2, port: 8472, patches: { kube-flannel-ds: {} } }\n"),
            added("packages: { repository: mirror.example, revision: a-b, containerd: { source: \"deb https://a b c\" } }\n"),
            added("images: { repository: \"a b\", mirrors: { \"https://docker.io\": [], docker.io: [mirror] } }\n"),
            added("proxy: { noProxy: [\"a,b\"] }\n"),
            cluster("keyAlgorithm: RSA-1024, certSans: [\"a_b\", \"fd00::1\"], dnsDomain: a_b"),
        ]
        .join("\n\n")
    );
}

#[test]
fn documents() {
    assert_snapshot!(
        [
            added("kubeadm: { kubernetesVersion: v1.33.0, networking: { podSubnet: 10.0.0.0/8 }, apiVersion: kubeadm.k8s.io/v1beta3 }\n"),
            added("kubelet: { cgroupDriver: cgroupfs, kind: Kubelet, a: 0644, b: .inf, c: 99999999999999999999 }\n"),
            added("kubeProxy: { clusterCIDR: 10.0.0.0/8 }\n"),
        ]
        .join("\n\n")
    );
}

#[test]
fn a_secret_on_the_line_of_another_problem_is_not_shown() {
    for text in [
        "ssh: { sudoPassword: canary, foo: 1 }\n",
        "ssh: { sudoPassword: \"canäry ß\", foo: 1 }\n",
    ] {
        let said = added(text);
        assert!(
            said.contains("no key `foo`") && !said.contains("can") && !said.contains('ß'),
            "{said}"
        );
    }
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let said = said("cluster: { name: \"a\\e[31m\", kubernetes: v1.34.4, \"b\\u0007\": c }\n");
    assert!(said.chars().all(|c| c == '\n' || !c.is_control()), "{said:?}");
}

#[test]
fn colour_is_only_there_when_it_is_asked_for() {
    let problems = load("a: b\n", &environment()).unwrap_err();
    assert!(render_problems(&problems, "a: b\n", "lab.yaml", true).contains("\u{1b}["));
    assert!(!render_problems(&problems, "a: b\n", "lab.yaml", false).contains('\u{1b}'));
}

#[test]
fn large_files_end_soon() {
    refuses(&said(&"# long\n".repeat(200_000)), "KiB long");
    let many = (0..30_000)
        .map(|number| format!("key{number}: a"))
        .collect::<Vec<_>>()
        .join("\n");
    refuses(&said(&many), "more like these");
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e]\n";
    refuses(&said(bomb), "repeats itself too often");
    refuses(&said(&"[".repeat(100_000)), "");
    refuses(&said(&"- ".repeat(100_000)), "");
    let deep = (1..2000)
        .map(|level| format!("a{level}: &a{level} [*a{}]", level - 1))
        .collect::<Vec<_>>()
        .join("\n");
    let deep = format!("a0: &a0 []\n{deep}");
    refuses(&said(&deep), "nested too deeply");
}

#[test]
fn what_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lab.yaml");
    assert!(
        open(&path)
            .unwrap_err()
            .to_string()
            .contains("cannot read the inventory")
    );
    assert!(open(folder.path()).is_err());
    std::fs::write(&path, b"cluster:\n  name: caf\xe9\n").unwrap();
    assert!(
        open(&path)
            .unwrap_err()
            .to_string()
            .contains("lab.yaml:2:12 is not UTF-8 text")
    );
    std::fs::write(&path, vec![b'#'; 3 << 20]).unwrap();
    refuses(&said(&open(&path).unwrap()), "KiB long");
    std::fs::write(&path, "ä".repeat(2 << 20)).unwrap();
    refuses(&said(&open(&path).unwrap()), "KiB long");
}

/// Lines of an inventory in any order, good and bad ones.
fn lines() -> impl Strategy<Value = String> {
    let words = prop_oneof![
        "[ -~äß\t]{0,12}",
        Just("192.168.7.201".to_owned()),
        Just("v1.34.4".to_owned()),
        Just("{ address: 192.168.7.9, labels: { a: b } }".to_owned()),
        Just("{ env: A }".to_owned()),
        Just("[a, b]".to_owned()),
        Just("&a b".to_owned()),
        Just("*a".to_owned()),
        Just(String::new()),
    ];
    let keys = vocabulary::PARTS.iter().flat_map(|part| part.keys);
    let all: Vec<&str> = keys.map(|key| key.name).collect();
    let line = (0_usize..3, proptest::sample::select(all), words)
        .prop_map(|(indent, key, word)| format!("{}{key}: {word}", "  ".repeat(indent)));
    proptest::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

/// Shows everything about a text and checks what must hold for every text.
fn holds(text: &str) -> Result<(), TestCaseError> {
    match load(text, &environment()) {
        Ok((_, warnings)) => prop_assert!(warnings.iter().all(|problem| problem.severity == Severity::Warning)),
        Err(problems) => {
            prop_assert!(problems.iter().any(|problem| problem.severity == Severity::Error));
            prop_assert!(problems.is_sorted_by_key(|problem| problem.span.start));
            prop_assert!(problems.is_sorted_by_key(|problem| problem::line_column(text, problem.span.start).0));
            prop_assert!(problems.iter().all(|problem| problem.span.end <= text.len()));
            prop_assert!(problems.iter().all(|problem| text.get(problem.span.clone()).is_some()));
            prop_assert!(
                problems
                    .iter()
                    .all(|problem| problem.severity == Severity::Warning || problem.hint.is_some())
            );
            prop_assert!(!render_problems(&problems, text, "lab.yaml", true).is_empty());
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_text_is_survived(text in any::<String>()) {
        holds(&text)?;
    }

    #[test]
    fn any_yaml_like_text_is_survived(text in "[a-c:{}\\[\\],&*!|>'\"# \n\t\r<~?%@`-]{0,60}") {
        holds(&text)?;
    }

    #[test]
    fn any_lines_are_survived(text in lines()) {
        holds(&text)?;
    }

    #[test]
    fn a_cut_sample_is_survived(cut in 0_usize..2000) {
        let text = include_str!("../../../inventories/homelab.yaml");
        holds(&text.chars().take(cut).collect::<String>())?;
    }
}
