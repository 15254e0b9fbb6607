//! Firewalls, software that is left of earlier clusters and other tools: what is found, and what is done about it.

use std::collections::BTreeSet;

use k8sup::cluster::NodeName;
use k8sup::facts::ruleset::Ruleset;
use k8sup::facts::surroundings::{Device, ResolvConf};
use k8sup::facts::{FileFact, Firewall, HostFacts, Package, Seen, Service};
use k8sup::plan::reset::{self, ResetIntent};
use k8sup::plan::{Plan, Step};

use crate::simulate::World;
use crate::world::{self, HOMELAB, everything, name, titles};

fn bare() -> World {
    World::bare(world::cluster(HOMELAB), |_| "trixie-bare")
}

/// What is found in a world: `CODE HOST message`.
fn told(world: &World) -> Vec<String> {
    let findings = match world::try_plan(&world.cluster, &world.facts(), &everything()) {
        Ok(plan) => plan.warnings,
        Err(blockers) => blockers,
    };
    findings
        .iter()
        // All recorded hosts have control groups of version 1.
        .filter(|finding| finding.check.code != "K8S-KRN-004")
        .map(|finding| {
            let host = finding.host.as_ref().map_or("-", |host| host.as_str());
            format!("{} {host} {}", finding.check.code, finding.message)
        })
        .collect()
}

fn file(facts: &mut HostFacts, path: &str, content: &str) {
    let content = content.to_owned();
    facts.files.insert(path.to_owned(), FileFact { mode: 0o644, content });
}

fn install(facts: &mut HostFacts, package: &str, version: &str) {
    let package = facts.packages.entry(package.to_owned()).or_default();
    *package = Package {
        installed: Some(version.to_owned()),
        held: false,
    };
}

fn runs(facts: &mut HostFacts, unit: &str) {
    let service = Service {
        enabled: true,
        active: true,
    };
    facts.services.insert(unit.to_owned(), service);
}

fn with_ufw(facts: &mut HostFacts) {
    install(facts, "ufw", "0.36.2-9");
    file(facts, "/etc/ufw/ufw.conf", "ENABLED=yes\nLOGLEVEL=low\n");
    file(
        facts,
        "/etc/ufw/user.rules",
        "### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in\n",
    );
}

fn with_firewalld(facts: &mut HostFacts) {
    install(facts, "firewalld", "2.3.1-1");
    runs(facts, "firewalld");
}

/// Codes of what a step of a host mends.
fn mended(plan: &Plan, host: &str) -> Vec<&'static str> {
    let of_host = plan.fixes().filter(|found| found.host.as_ref() == Some(&name(host)));
    of_host.map(|found| found.check.code).collect()
}

fn firewall_step(plan: &Plan, host: &str) -> Option<(Vec<String>, Vec<String>)> {
    let lane = plan.lanes.iter().find(|lane| lane.host.as_str() == host)?;
    lane.steps.iter().find_map(|planned| match &planned.step {
        Step::Firewall { open, close, .. } => Some((open.clone(), close.clone())),
        _ => None,
    })
}

#[test]
fn ufw_lets_in_what_the_cluster_needs_and_nothing_else() {
    let mut world = bare();
    for host in ["lb-0", "cp1", "w1"] {
        with_ufw(world.host(&name(host)));
        assert_eq!(world.hosts[&name(host)].firewall(), Firewall::Ufw);
    }
    let plan = world.plan();
    let opened = |host: &str| firewall_step(&plan, host).unwrap().0;
    let from = |hosts: &[u8], rest: &str| -> Vec<String> {
        let from = |host: &u8| format!("allow from 192.168.7.{host} to any port {rest}");
        hosts.iter().map(from).collect()
    };
    assert_eq!(opened("lb-0"), from(&[201, 202, 203, 204, 205, 206], "6443 proto tcp"));
    let mut controller = from(&[202, 203], "2379,2380,6443,10250 proto tcp");
    controller.extend(from(&[140, 204, 205, 206], "6443 proto tcp"));
    controller.push("allow from 10.244.0.0/16 to any port 6443 proto tcp".to_owned());
    controller.extend(from(&[202, 203, 204, 205, 206], "8472 proto udp"));
    controller.push("route allow from 10.244.0.0/16".to_owned());
    controller.push("route allow to 10.244.0.0/16".to_owned());
    assert_eq!(opened("cp1"), controller);
    let mut worker = from(&[201, 202, 203], "10250 proto tcp");
    worker.extend(from(&[201, 202, 203, 205, 206], "8472 proto udp"));
    worker.push("route allow from 10.244.0.0/16".to_owned());
    worker.push("route allow to 10.244.0.0/16".to_owned());
    assert_eq!(opened("w1"), worker);
    assert_eq!(firewall_step(&plan, "w2"), None);
    // Before anything that needs the ports, on the host itself and on others.
    assert_eq!(titles(&plan, "cp1")[0], "open ports in ufw");
    assert!(mended(&plan, "cp1").contains(&"K8S-FW-001"));
    let outline = world::outline(&plan);
    assert!(
        outline.contains("reach the controllers: haproxy forwards to them [after: the firewall of cp1 is open, the firewall of w1 is open]"),
        "{outline}"
    );
}

#[test]
fn firewalls_are_opened_once_and_closed_again() {
    for with in [with_ufw, with_firewalld] {
        let mut world = bare();
        let hosts: Vec<NodeName> = world.hosts.keys().cloned().collect();
        for host in &hosts {
            with(world.host(host));
        }
        let files = |world: &World| -> Vec<_> {
            let lines = |facts: &HostFacts| -> Vec<String> {
                let of_firewalls = facts
                    .files
                    .iter()
                    .filter(|(path, _)| path.contains("ufw") || path.contains("firewalld"));
                of_firewalls
                    .flat_map(|(_, file)| file.content.lines().map(str::to_owned).collect::<Vec<_>>())
                    .collect()
            };
            world.hosts.values().map(lines).collect()
        };
        let before = files(&world);
        world.converge();
        assert_ne!(files(&world), before);
        assert!(world.plan().is_empty());
        let intent = ResetIntent {
            only: None,
            purge: false,
        };
        let plan = reset::plan(&world.cluster, &world.facts(), &intent).unwrap();
        world.carry_out(&plan);
        assert_eq!(files(&world), before);
    }
}

#[test]
fn a_host_that_joins_is_let_in_by_the_others_and_one_that_is_gone_is_not() {
    let mut world = bare();
    with_ufw(world.host(&name("cp1")));
    with_firewalld(world.host(&name("w1")));
    world.converge();
    let more = HOMELAB.replace("w3: 192.168.7.206", "w3: 192.168.7.206, w4: 192.168.7.207");
    world.under(&more);
    let plan = world.plan();
    let (open, close) = firewall_step(&plan, "cp1").unwrap();
    assert_eq!(mended(&plan, "w1"), ["K8S-FW-002"]);
    assert_eq!(
        open,
        [
            "allow from 192.168.7.207 to any port 6443 proto tcp",
            "allow from 192.168.7.207 to any port 8472 proto udp"
        ]
    );
    assert_eq!(close, [""; 0]);
    assert_eq!(
        firewall_step(&plan, "w1").unwrap().0,
        ["rule family=\"ipv4\" source address=\"192.168.7.207\" port port=\"8472\" protocol=\"udp\" accept"]
    );
    let outline = world::outline(&plan);
    assert!(
        outline.contains("[after: the firewall of cp1 is open, the firewall of w1 is open]"),
        "{outline}"
    );
    world.converge();
    // It is taken out of the inventory again.
    world.under(HOMELAB);
    let (open, close) = firewall_step(&world.plan(), "cp1").unwrap();
    assert_eq!((open.len(), close.len()), (0, 2), "{close:?}");
    world.converge();
}

#[test]
fn rules_that_are_lost_come_back_and_wider_ones_are_enough() {
    let mut world = bare();
    with_ufw(world.host(&name("w1")));
    world.converge();
    let rules = "/etc/ufw/user.rules";
    file(world.host(&name("w1")), rules, "");
    assert_eq!(firewall_step(&world.plan(), "w1").unwrap().0.len(), 10);
    file(
        world.host(&name("w1")),
        rules,
        "### tuple ### allow any any 0.0.0.0/0 any 192.168.7.0/24 in\n",
    );
    let routes = ["route allow from 10.244.0.0/16", "route allow to 10.244.0.0/16"];
    assert_eq!(firewall_step(&world.plan(), "w1").unwrap().0, routes);
    // Switched off, it stops nothing.
    file(world.host(&name("w1")), "/etc/ufw/ufw.conf", "ENABLED=no\n");
    assert!(world.plan().is_empty());
}

/// What a hint says to type.
fn commands(hint: &str) -> Vec<&str> {
    hint.split_once("at boot: ").unwrap().1.split("; ").collect()
}

/// Case firewalld-forward-reject, and its like for packets that come in.
#[test]
fn rules_of_others_that_stop_the_cluster_are_refused_with_what_to_add() {
    let legacy = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n\
                  -A FORWARD -j REJECT --reject-with icmp-host-prohibited\n-A FORWARD -s 10.244.0.0/16 -j ACCEPT\nCOMMIT\n";
    let nft = "table inet filter {\n chain input {\n  type filter hook input priority filter; policy drop;\n  \
               ct state established,related accept\n  iif \"lo\" accept\n  tcp dport 22 accept\n  \
               ip saddr 192.168.7.140 tcp dport 6443 accept\n }\n}\n";
    let mut world = bare();
    world.host(&name("w1")).surroundings.ruleset = Seen::Present(Ruleset::parse(legacy));
    world.host(&name("cp1")).surroundings.ruleset = Seen::Present(Ruleset::parse(nft));
    assert_eq!(
        told(&world),
        [
            "K8S-FW-003 cp1 its packet filter stops what other hosts of the cluster send",
            "K8S-FW-004 w1 its packet filter stops what pods send through it"
        ]
    );
    let found = world::try_plan(&world.cluster, &world.facts(), &everything()).unwrap_err();
    assert_eq!(
        found[0].evidence.as_deref(),
        Some("chain inet filter input: policy drop")
    );
    assert_eq!(
        commands(&found[0].hint),
        [
            "nft insert rule inet filter input ip saddr '{ 192.168.7.202, 192.168.7.203 }' tcp dport '{ 2379, 2380, 6443, 10250 }' accept",
            "nft insert rule inet filter input ip saddr '{ 10.244.0.0/16, 192.168.7.204, 192.168.7.205, 192.168.7.206 }' tcp dport '{ 6443 }' accept",
            "nft insert rule inet filter input ip saddr '{ 192.168.7.202, 192.168.7.203, 192.168.7.204, 192.168.7.205, 192.168.7.206 }' udp dport '{ 8472 }' accept",
        ]
    );
    assert_eq!(
        found[1].evidence.as_deref(),
        Some("chain iptables FORWARD: -A FORWARD -j REJECT --reject-with icmp-host-prohibited")
    );
    assert_eq!(
        commands(&found[1].hint),
        [
            "iptables -I FORWARD -s 10.244.0.0/16 -j ACCEPT",
            "iptables -I FORWARD -d 10.244.0.0/16 -j ACCEPT"
        ]
    );
    // With the rules nothing is in the way, and a person may know better.
    let mended = nft.replace(
        "tcp dport 22 accept",
        "ip saddr { 192.168.7.0/24, 10.244.0.0/16 } meta l4proto { tcp, udp } accept",
    );
    world.host(&name("cp1")).surroundings.ruleset = Seen::Present(Ruleset::parse(&mended));
    world.host(&name("w1")).surroundings.ruleset = Seen::Absent;
    assert_eq!(told(&world), [""; 0]);
    world.host(&name("cp1")).surroundings.ruleset = Seen::Present(Ruleset::parse(nft));
    world.cluster.allow = BTreeSet::from(["K8S-FW-003".to_owned()]);
    assert!(told(&world)[0].contains("allowed, at your own risk (K8S-FW-003)"));
}

/// Cases cni-leftover-containerd-net, cni-leftover-crio, reset-cni-left-ip.
#[test]
fn what_earlier_clusters_left_is_cleared_before_the_join_and_others_get_theirs_back() {
    let mut world = bare();
    let others = [
        "/etc/cni/net.d/100-crio-bridge.conf",
        "/etc/cni/net.d/87-podman-bridge.conflist",
        "/etc/cni/net.d/10-containerd-net.conflist",
    ];
    let facts = world.host(&name("w1"));
    facts.kube.files.extend(others.map(str::to_owned));
    facts.kube.files.insert("/etc/cni/net.d/10-flannel.conflist".to_owned());
    facts.kube.files.insert("/etc/cni/net.d/README".to_owned());
    let facts = world.host(&name("w2"));
    facts.links.insert("cni0".to_owned(), 1450);
    facts.links.insert("flannel.7".to_owned(), 1450);
    facts.links.insert("docker0".to_owned(), 1500);
    facts
        .network_leftovers
        .push("iptables: 40 rules and chains of kube-proxy, CNI or Flannel".to_owned());
    facts.surroundings.paths.insert("/var/lib/cni".to_owned());
    let plan = world.plan();
    assert_eq!(
        titles(&plan, "w1")[3..6],
        ["clear what others left", "pull images", "reach the endpoint"]
    );
    assert!(mended(&plan, "w1").contains(&"K8S-CNI-001") && mended(&plan, "w1").contains(&"K8S-CNI-002"));
    assert!(mended(&plan, "w2").contains(&"K8S-CNI-002"));
    let outline = world::outline(&plan);
    for why in [
        "/etc/cni/net.d/10-containerd-net.conflist, /etc/cni/net.d/100-crio-bridge.conf, /etc/cni/net.d/87-podman-bridge.conflist would be taken instead of Flannel's",
        "left of an earlier cluster: iptables: 40 rules",
    ] {
        assert!(outline.contains(why), "{outline}");
    }
    world.converge();
    let has = |world: &World, file: &str| world.hosts[&name("w1")].kube.files.contains(file);
    assert!(others.iter().all(|file| !has(&world, file)) && has(&world, "/etc/cni/net.d/README"));
    assert!(world.hosts[&name("w2")].links.contains_key("docker0"));
    // On a member they are somebody's own again: told by nobody.
    let intent = ResetIntent {
        only: None,
        purge: false,
    };
    let plan = reset::plan(&world.cluster, &world.facts(), &intent).unwrap();
    world.carry_out(&plan);
    assert!(others.iter().all(|file| has(&world, file)));
    assert!(reset::leftovers(&world.hosts[&name("w1")]).is_empty());
}

#[test]
fn podmans_own_networks_stay() {
    let mut world = bare();
    let facts = world.host(&name("w1"));
    install(facts, "podman", "5.4.2");
    facts.surroundings.paths.insert("/var/lib/cni".to_owned());
    facts
        .network_leftovers
        .push("iptables: 4 rules and chains of kube-proxy, CNI or Flannel".to_owned());
    assert!(!titles(&world.plan(), "w1").contains(&"clear what others left".to_owned()));
}

/// Case flannel-binary-missing; and plugins of the package.
#[test]
fn plugins_that_are_gone_are_told_or_come_back() {
    let mut world = World::built(HOMELAB);
    let facts = world.host(&name("w1"));
    install(facts, "kubernetes-cni", "1.7.1-1.1");
    facts.kube.files.insert("/etc/cni/net.d/10-flannel.conflist".to_owned());
    let plugins = ["bridge", "loopback", "portmap"].map(str::to_owned);
    facts.surroundings.cni_plugins = Seen::Present(plugins.into());
    assert_eq!(
        told(&world),
        ["K8S-CNI-009 w1 /opt/cni/bin lacks flannel, so no pod starts there"]
    );
    let plan = world.plan();
    assert!(world::outline(&plan).contains("set apt sources and holds: /opt/cni/bin lacks host-local"));
    assert_eq!(mended(&plan, "w1"), ["K8S-CNI-005"]);
    world.carry_out(&plan);
    assert!(world.plan().is_empty());
}

/// Case reset-cni-left-ip on a member.
#[test]
fn a_bridge_with_the_address_of_another_time_is_told() {
    let mut world = World::built(HOMELAB);
    let cni0 = |address: &str| k8sup::facts::InterfaceAddress {
        interface: "cni0".to_owned(),
        address: address.parse().unwrap(),
    };
    world.node(&name("w1")).unwrap().pod_cidr = Some("10.244.1.0/24".to_owned());
    world.host(&name("w1")).addresses.push(cni0("10.244.1.1/24"));
    assert_eq!(told(&world), [""; 0]);
    world.host(&name("w1")).addresses.push(cni0("10.244.3.1/24"));
    world.host(&name("w1")).addresses.remove(1);
    assert_eq!(
        told(&world),
        ["K8S-CNI-003 w1 cni0 has the address 10.244.3.1/24, but the pods of the Node are in 10.244.1.0/24"]
    );
}

#[test]
fn other_distributions_of_kubernetes_are_refused() {
    type Change = fn(&mut HostFacts);
    let cases: [(Change, &str); 5] = [
        (|facts| runs(facts, "k3s"), "k3s runs on the host, or starts at boot"),
        (
            |facts| {
                facts.surroundings.paths.insert("/var/lib/rancher".to_owned());
            },
            "k3s is or was on the host",
        ),
        (
            |facts| runs(facts, "k0sworker"),
            "k0s runs on the host, or starts at boot",
        ),
        (
            |facts| {
                facts.surroundings.paths.insert("/var/snap/microk8s".to_owned());
            },
            "microk8s is or was on the host",
        ),
        (
            |facts| runs(facts, "snap.k8s.kubelet"),
            "Canonical Kubernetes runs on the host, or starts at boot",
        ),
    ];
    for (change, message) in cases {
        let mut world = bare();
        change(world.host(&name("w1")));
        assert_eq!(told(&world), [format!("K8S-OLD-006 w1 {message}")]);
        // A member is not nagged.
        let mut world = World::built(HOMELAB);
        change(world.host(&name("w1")));
        assert_eq!(told(&world), [""; 0]);
    }
}

/// Cases reset-unmount-fails (before a join) and reset-wipes-external-etcd.
#[test]
fn mounts_and_another_etcd_are_refused() {
    let mut world = bare();
    let nas = "/var/lib/kubelet/pods/1/volumes/kubernetes.io~nfs/x";
    world.host(&name("w1")).network_leftovers.push(format!("mount {nas}"));
    runs(world.host(&name("cp2")), "etcd");
    runs(world.host(&name("w2")), "etcd");
    assert_eq!(
        told(&world),
        [
            "K8S-OLD-005 cp2 another etcd is installed and runs".to_owned(),
            format!("K8S-OLD-007 w1 {nas} is a mount, though the host is in no cluster"),
        ]
    );
}

fn with_files(facts: &mut HostFacts, files: &[&str]) {
    facts.kube.files.extend(files.iter().map(|file| (*file).to_owned()));
}

/// Case reset-wipes-external-etcd.
#[test]
fn reset_spares_an_etcd_that_is_not_kubeadms() {
    let step = |change: &dyn Fn(&mut HostFacts)| {
        let mut world = World::built(HOMELAB);
        let facts = world.host(&name("cp1"));
        facts.kube.files.retain(|file| !file.contains("etcd"));
        change(facts);
        let intent = ResetIntent {
            only: None,
            purge: false,
        };
        let plan = reset::plan(&world.cluster, &world.facts(), &intent).unwrap();
        let lane = plan.lanes.iter().find(|lane| lane.host == name("cp1")).unwrap();
        let step = lane.steps.iter().find_map(|planned| match &planned.step {
            Step::ResetNode(step) => Some(step.clone()),
            _ => None,
        });
        step.unwrap()
    };
    // The guide's places for the certificates of an etcd elsewhere.
    let brought = step(&|facts| {
        let files = [
            "pki/etcd/ca.crt",
            "pki/apiserver-etcd-client.crt",
            "pki/apiserver-etcd-client.key",
        ];
        with_files(
            facts,
            &files
                .map(|file| format!("/etc/kubernetes/{file}"))
                .each_ref()
                .map(String::as_str),
        );
    });
    assert_eq!(brought.etcd_data_dir, None);
    assert_eq!(
        brought.keep,
        [
            "/etc/kubernetes/pki/apiserver-etcd-client.crt",
            "/etc/kubernetes/pki/apiserver-etcd-client.key",
            "/etc/kubernetes/pki/etcd/ca.crt"
        ]
    );
    // One of a package on the host itself, with certificates beside kubeadm's.
    let local = step(&|facts| {
        runs(facts, "etcd");
        with_files(
            facts,
            &["/etc/kubernetes/pki/etcd/ca.key", "/etc/kubernetes/pki/etcd/peer.crt"],
        );
    });
    assert_eq!((local.etcd_data_dir, local.keep.len()), (None, 2));
    // kubeadm's own, of an init that was ended before its manifest was there.
    let own = step(&|facts| {
        let files = ["ca.crt", "ca.key", "peer.crt"].map(|file| format!("/etc/kubernetes/pki/etcd/{file}"));
        with_files(facts, &files.each_ref().map(String::as_str));
    });
    assert_eq!(
        (own.etcd_data_dir.as_deref(), own.keep.len()),
        (Some("/var/lib/etcd"), 0)
    );
}

/// An etcd by kubeadm's guide to external etcd: a static pod, no control plane.
#[test]
fn an_etcd_without_a_control_plane_is_left_alone() {
    let mut world = bare();
    let facts = world.host(&name("cp2"));
    with_files(
        facts,
        &[
            "/etc/kubernetes/manifests/etcd.yaml",
            "/etc/kubernetes/pki/etcd/peer.crt",
            "/var/lib/kubelet/config.yaml",
        ],
    );
    facts.kube.etcd_data = true;
    assert_eq!(
        told(&world)[0],
        "K8S-OLD-001 cp2 an etcd without a control plane runs here as a static pod"
    );
    let intent = ResetIntent {
        only: None,
        purge: false,
    };
    let found = reset::plan(&world.cluster, &world.facts(), &intent).unwrap_err();
    assert_eq!(found[0].check.code, "K8S-OLD-005");
}

fn kubeconfig(facts: &mut HostFacts, name: &str, server: &str, authority: &str) {
    with_files(facts, &[&format!("/etc/kubernetes/{name}.conf")]);
    let config = k8sup::facts::kube::Kubeconfig {
        server: server.to_owned(),
        ca_spki_sha256: Some(authority.to_owned()),
    };
    facts.kube.kubeconfigs.insert(name.to_owned(), config);
}

/// Cases stale-kubeconfig-other-ca and stale-admin-conf-join.
#[test]
fn kubeconfigs_of_another_time_are_refused_and_cleared_when_allowed() {
    let ours = "https://192.168.7.140:6443";
    let mut world = bare();
    for file in ["admin", "kubelet"] {
        kubeconfig(world.host(&name("cp1")), file, ours, "another");
    }
    kubeconfig(
        world.host(&name("cp2")),
        "admin",
        "https://192.168.1.99:6443",
        "another",
    );
    let refused = told(&world);
    assert_eq!(
        refused,
        [
            "K8S-OLD-010 cp1 /etc/kubernetes/admin.conf is there, but /etc/kubernetes/pki/ca.crt is not",
            "K8S-OLD-010 cp2 /etc/kubernetes/admin.conf is for https://192.168.1.99:6443, which is not this cluster",
        ]
    );
    world.cluster.allow = BTreeSet::from(["K8S-OLD-010".to_owned()]);
    let plan = world.plan();
    for host in ["cp1", "cp2"] {
        assert!(titles(&plan, host).contains(&"clear what is half made".to_owned()));
    }
    // What k8sup left half made, by its record, is its own to clear.
    let mut world = bare();
    kubeconfig(world.host(&name("cp1")), "admin", ours, "another");
    let mut record = k8sup::facts::Record::default();
    record.files.entry("/etc/hosts".to_owned()).or_default();
    world.host(&name("cp1")).record = Seen::Present(record);
    assert_eq!(told(&world), [""; 0]);
}

fn path(facts: &mut HostFacts, path: &str) {
    facts.surroundings.paths.insert(path.to_owned());
}

type Row = (&'static str, fn(&mut HostFacts), &'static str);

/// Cases multi-cri, multi-cri-kubekey, resolv-missing, apt-legacy-repo, and their like.
#[test]
fn what_is_around_a_host_that_is_to_join_is_told() {
    let rows: [Row; 14] = [
        (
            "w1",
            |facts| facts.surroundings.resolv_conf = ResolvConf::Missing,
            "K8S-DNS-001 w1 there is no /etc/resolv.conf",
        ),
        (
            "w1",
            |facts| {
                facts.surroundings.resolv_conf =
                    ResolvConf::Dangling("/run/systemd/resolve/stub-resolv.conf".to_owned());
            },
            "K8S-DNS-001 w1 /etc/resolv.conf leads nowhere",
        ),
        (
            "w1",
            |facts| facts.nameservers.clear(),
            "K8S-DNS-001 w1 /etc/resolv.conf names no server",
        ),
        (
            "w1",
            |facts| path(facts, "/usr/local/bin/kubelet"),
            "K8S-PKG-006 w1 /usr/local/bin/kubelet would be run instead of the package's",
        ),
        (
            "cp1",
            |facts| {
                facts.surroundings.sockets.insert("/run/cri-dockerd.sock".to_owned());
                runs(facts, "docker");
            },
            "K8S-CRI-005 cp1 beside containerd there is docker and cri-dockerd",
        ),
        (
            "w1",
            |facts| {
                facts.os = world::recorded("ubuntu-24.04").os;
                install(facts, "runc", "1.1.12-0ubuntu3.1");
                install(facts, "containerd", "1.7.12-0ubuntu4");
            },
            "K8S-CRI-006 w1 its runc and containerd leave pods in Terminating",
        ),
        (
            "w1",
            |facts| install(facts, "kubelet", "1.34.4-00"),
            "K8S-PKG-007 w1 kubelet 1.34.4-00 is not of the Kubernetes project's repository",
        ),
        (
            "cp2",
            |facts| {
                let device = Device {
                    wireless: true,
                    driver: Some("brcmfmac".to_owned()),
                };
                facts.surroundings.devices.insert("host0".to_owned(), device);
            },
            "K8S-NET-017 cp2 the cluster's address is on Wi-Fi (host0)",
        ),
        (
            "w1",
            |facts| {
                facts.surroundings.legacy_tables.insert("ip filter".to_owned());
                let tool = "/usr/sbin/xtables-nft-multi".to_owned();
                facts.surroundings.iptables.insert("iptables".to_owned(), tool);
            },
            "K8S-NET-022 w1 iptables speaks to nftables, but there are rules of the legacy one",
        ),
        (
            "w1",
            |facts| {
                facts.surroundings.ruleset = Seen::Present(Ruleset::parse("table ip mine {\n chain a {\n }\n}\n"));
                let tool = "/usr/sbin/xtables-legacy-multi".to_owned();
                facts.surroundings.iptables.insert("iptables".to_owned(), tool);
            },
            "K8S-NET-022 w1 iptables is the legacy one, but nftables has rules, too",
        ),
        (
            "w1",
            |facts| {
                let proxies = [
                    ("https_proxy", "http://proxy.lan:3128"),
                    ("no_proxy", "192.168.7.0/24,10.244.0.0/16"),
                ];
                facts.surroundings.proxies = proxies.map(|(a, b)| (a.to_owned(), b.to_owned())).into();
            },
            "K8S-NET-016 w1 https_proxy is set for root, and no_proxy lacks 10.96.0.0/12",
        ),
        (
            "w1",
            |facts| {
                let proxies = [
                    ("https_proxy", "http://proxy.lan:3128"),
                    ("NO_PROXY", "192.168.0.0/16,10.0.0.0/8"),
                ];
                facts.surroundings.proxies = proxies.map(|(a, b)| (a.to_owned(), b.to_owned())).into();
            },
            "",
        ),
        (
            "w1",
            |facts| {
                file(facts, "/etc/hosts", "192.168.7.204 w1\n");
                let line = "/etc/cloud/cloud.cfg.d/90.cfg:manage_etc_hosts: true".to_owned();
                facts.surroundings.cloud_init.push(line);
            },
            "K8S-DNS-008 w1 cloud-init writes /etc/hosts anew at every boot",
        ),
        (
            "w1",
            |facts| {
                facts
                    .surroundings
                    .cloud_init
                    .push("/etc/cloud/cloud.cfg:manage_etc_hosts: true".to_owned());
            },
            "",
        ),
    ];
    for (host, change, expected) in rows {
        let mut world = bare();
        change(world.host(&name(host)));
        let expected: Vec<&str> = Some(expected).filter(|text| !text.is_empty()).into_iter().collect();
        assert_eq!(told(&world), expected);
    }
    // What is true of several is said once, and a member is not nagged.
    let mut world = bare();
    for host in ["w1", "w2"] {
        runs(world.host(&name(host)), "docker");
    }
    assert_eq!(
        told(&world),
        ["K8S-CRI-005 - on w1, w2: beside containerd there is docker"]
    );
    world.converge();
    assert_eq!(told(&world), [""; 0]);
}

#[test]
fn hosts_with_the_same_ssh_key_are_refused() {
    let mut world = bare();
    // The key of RFC 8032's first test, as ssh-keygen writes it.
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea";
    for host in ["w1", "w3"] {
        world.host(&name(host)).surroundings.host_keys = [key.to_owned()].into();
    }
    let found = world::try_plan(&world.cluster, &world.facts(), &everything()).unwrap_err();
    assert_eq!(told(&world), ["K8S-ID-007 - w1 and w3 have the same SSH host key"]);
    let evidence = found[0].evidence.as_deref().unwrap();
    assert!(
        evidence.starts_with("SSH host key ssh-ed25519 SHA256:") && !evidence.contains("AAAA"),
        "{evidence}"
    );
}

/// Case localhost-search-domain.
#[test]
fn localhost_is_named_in_etc_hosts() {
    let named = HOMELAB.replace("v1.34.4 }", "v1.34.4, endpoint: k8s.lan }");
    let mut world = World::bare(world::cluster(&named), |_| "trixie-bare");
    file(world.host(&name("cp1")), "/etc/hosts", "192.168.1.11 cp1\n");
    file(world.host(&name("w1")), "/etc/hosts", "127.0.0.1 w1 localhost\n");
    let text = |world: &World, host: &str| world.hosts[&name(host)].files["/etc/hosts"].content.clone();
    assert!(
        world::outline(&world.plan())
            .contains("/etc/hosts does not name localhost; nothing on the host resolves k8s.lan")
    );
    assert!(mended(&world.plan(), "cp1").contains(&"K8S-DNS-003"));
    world.converge();
    assert_eq!(
        text(&world, "cp1"),
        "192.168.1.11 cp1\n# k8sup begin\n127.0.0.1\tlocalhost\n::1\tlocalhost\n192.168.7.140\tk8s.lan\n# k8sup end\n"
    );
    assert_eq!(
        text(&world, "w1"),
        "127.0.0.1 w1 localhost\n# k8sup begin\n192.168.7.140\tk8s.lan\n# k8sup end\n"
    );
}

#[test]
fn a_host_without_machine_id_gets_one() {
    for id in [Seen::Absent, Seen::Present("uninitialized".to_owned())] {
        let mut world = bare();
        world.host(&name("w1")).machine_id = id;
        assert!(titles(&world.plan(), "w1").contains(&"make a machine-id".to_owned()));
        assert!(mended(&world.plan(), "w1").contains(&"K8S-ID-011"));
        world.converge();
    }
}

/// Cases flannel-networkmanager and flannel-mac-policy.
#[test]
fn others_keep_their_hands_off_the_links_of_pods() {
    let mut world = bare();
    runs(world.host(&name("w1")), "NetworkManager");
    runs(world.host(&name("w2")), "systemd-udevd");
    runs(world.host(&name("lb-0")), "NetworkManager");
    assert!(mended(&world.plan(), "w1").contains(&"K8S-NET-019"));
    assert!(mended(&world.plan(), "w2").contains(&"K8S-NET-020"));
    world.converge();
    let text = |world: &World, host: &str, path: &str| {
        let file = world.hosts[&name(host)].files.get(path);
        file.map(|file| file.content.clone()).unwrap_or_default()
    };
    let manager = "/etc/NetworkManager/conf.d/k8sup.conf";
    let link = "/etc/systemd/network/50-k8sup-flannel.link";
    assert!(text(&world, "w1", manager).contains("interface-name:cni*;interface-name:flannel*;interface-name:veth*"));
    assert!(text(&world, "w2", link).contains("OriginalName=flannel*\n\n[Link]\nMACAddressPolicy=none\n"));
    assert_eq!([text(&world, "lb-0", manager), text(&world, "w1", link)], ["", ""]);
    world.carry_out(&world::reset(&world, &["w1", "w2"]));
    assert_eq!([text(&world, "w1", manager), text(&world, "w2", link)], ["", ""]);
    // Only VXLAN has a MAC address of its own.
    let host_gw = format!("{HOMELAB}flannel: {{ backend: host-gw }}\n");
    let mut world = World::bare(world::cluster(&host_gw), |_| "trixie-bare");
    runs(world.host(&name("w2")), "systemd-udevd");
    assert!(!titles(&world.plan(), "w2").contains(&"keep others from the links of pods".to_owned()));
}

/// Case pod-infra-flag-extra-args, with a flag that today's versions do not know either.
#[test]
fn flags_that_the_kubelet_does_not_know_are_taken_out() {
    let mut world = bare();
    let own = "KUBELET_EXTRA_ARGS=--container-runtime=remote --v=2\n";
    file(world.host(&name("w1")), "/etc/default/kubelet", own);
    let outline = world::outline(&world.plan());
    assert!(
        outline.contains("/etc/default/kubelet gives the kubelet --container-runtime, unknown to v1.34.4"),
        "{outline}"
    );
    assert!(mended(&world.plan(), "w1").contains(&"K8S-KUBELET-001"));
    world.converge();
    let text = |world: &World| world.hosts[&name("w1")].files["/etc/default/kubelet"].content.clone();
    assert_eq!(text(&world), "KUBELET_EXTRA_ARGS=--v=2\n");
    world.carry_out(&world::reset(&world, &["w1"]));
    assert_eq!(text(&world), own);
}

/// Case kubelet-conf-wrong-server.
#[test]
fn a_kubelet_is_led_back_to_its_cluster() {
    let mut world = World::built(HOMELAB);
    for (host, server, expected) in [
        ("w1", "https://192.168.1.11:6443", Some("https://192.168.7.140:6443")),
        ("cp2", "https://192.168.1.11:6443", Some("https://192.168.7.202:6443")),
        ("w1", "https://192.168.7.201:6443", Some("https://192.168.7.140:6443")),
        ("cp2", "https://192.168.7.202:6443", None),
        ("cp2", "https://192.168.7.140:6443", None),
    ] {
        let authority = world.hosts[&name(host)].kube.ca.present().unwrap().spki_sha256.clone();
        kubeconfig(world.host(&name(host)), "kubelet", server, &authority);
        let plan = world.plan();
        let lead = |server: &str| format!("lead the kubelet to {server}");
        assert_eq!(titles(&plan, host), expected.map(lead).into_iter().collect::<Vec<_>>());
        assert_eq!(
            mended(&plan, host),
            expected.map(|_| "K8S-KUBELET-002").into_iter().collect::<Vec<_>>()
        );
        world.carry_out(&plan);
        assert!(world.plan().is_empty());
    }
}

/// Case token-jws-not-updated: nobody would sign.
#[test]
fn a_controller_manager_that_is_gone_is_told_before_a_join() {
    let mut world = World::built(HOMELAB);
    let clock = i64::try_from(world.hosts[&name("cp1")].clock).unwrap();
    for (age, expected) in [(10, None), (200, Some("K8S-KUBE-010"))] {
        world.live.as_mut().unwrap().controller_manager = Seen::Present(clock - age);
        assert_eq!(told(&world), [""; 0]);
        let mut more = world.clone();
        more.under(&HOMELAB.replace("w3: 192.168.7.206", "w3: 192.168.7.206, w4: 192.168.7.207"));
        let told = told(&more);
        assert_eq!(told.first().map(|line| &line[..12]), expected, "{told:#?}");
    }
}
