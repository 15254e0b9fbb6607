//! Whole plans, as a person sees them: `tests/plans/`.

use k8sup::cluster::Cluster;
use k8sup::exit;
use k8sup::facts::{Facts, FileFact, Observation, Seen, Unreachable};
use k8sup::plan::Plan;
use k8sup::plan::reset::{self, ResetIntent};
use k8sup::report::{Style, plan_view};

use crate::simulate::World;
use crate::world::{self, HOMELAB, SINGLE, everything, name, only, seen, silent, try_plan};

/// Compares with a file of `tests/plans`.
fn golden(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../plans");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// With the content of every file.
fn in_full(plan: &Plan) -> String {
    plan_view::render(plan, true, Style::PLAIN)
}

#[test]
fn a_fresh_lab() {
    let cluster = world::cluster(HOMELAB);
    let facts = world::facts(&cluster, |host| match host.name.as_str() {
        "cp3" | "w1" => "bookworm-bare",
        "w3" => "forky-packages",
        _ => "trixie-bare",
    });
    let plan = world::plan(&cluster, &facts);
    golden("fresh-lab", &world::outline(&plan));
    golden("fresh-lab-in-full", &in_full(&plan));
}

#[test]
fn a_single_controller() {
    let cluster = world::cluster(SINGLE);
    golden(
        "single",
        &world::outline(&world::plan(&cluster, &world::facts(&cluster, |_| "trixie-bare"))),
    );
}

#[test]
fn a_raspberry_pi_with_swap_in_all_its_forms() {
    let cluster = world::cluster(SINGLE);
    for (recording, plan) in [
        ("raspberry-pi-os-bookworm", "raspberry-pi"),
        ("raspberry-pi-os-trixie", "raspberry-pi-trixie"),
        ("ubuntu-22.04", "raspberry-pi-ubuntu"),
    ] {
        let facts = world::facts(&cluster, |_| recording);
        golden(plan, &in_full(&world::plan(&cluster, &facts)));
    }
}

#[test]
fn ubuntu_with_a_stub_resolver_and_a_swap_file() {
    let cluster = world::cluster(&SINGLE.replace("v1.34.4 }", "v1.34.4, endpoint: k8s.lan }"));
    let plan = world::plan(&cluster, &world::facts(&cluster, |_| "ubuntu-24.04"));
    golden("ubuntu", &in_full(&plan));
    let json = serde_json::to_string(&plan).unwrap();
    assert!(
        json.contains("/run/systemd/resolve/resolv.conf"),
        "the kubelet is told of the stub's upstreams"
    );
}

#[test]
fn a_stub_resolver_without_upstreams_needs_the_inventorys() {
    let mut cluster = world::cluster(SINGLE);
    let mut facts = world::facts(&cluster, |_| "trixie-bare");
    seen(&mut facts, "cp1").nameservers = vec!["127.0.0.1".to_owned()];
    let plan = world::plan(&cluster, &facts);
    assert!(world::outline(&plan).contains("warning: cp1: its /etc/resolv.conf names only its own loopback"));
    cluster = world::cluster(&format!("{SINGLE}dns: {{ resolvers: [192.168.7.1, 9.9.9.9] }}\n"));
    let plan = world::plan(&cluster, &facts);
    golden("resolvers", &world::outline(&plan));
    assert!(in_full(&plan).contains("+nameserver 9.9.9.9"));
}

#[test]
fn dockers_containerd_gets_its_cri_back() {
    let cluster = world::cluster(SINGLE);
    golden(
        "docker-containerd",
        &in_full(&world::plan(&cluster, &world::facts(&cluster, |_| "docker-containerd"))),
    );
}

#[test]
fn everything_that_an_inventory_can_ask_of_a_host() {
    let cluster = world::cluster(
        "
cluster: { name: full, kubernetes: v1.33.2, endpoint: api.lan:8443, setHostnames: true }
ssh: { user: pi }
loadBalancers: { lb-0: 192.168.7.140 }
controllers: { cp1: { address: 192.168.7.201, labels: { rack: a } } }
workers: { w1: { address: 192.168.7.204, labels: { disk: ssd }, taints: ['dedicated=storage:NoSchedule'] } }
packages:
  repository: http://mirror.lan/k8s
  revision: '1.1'
  containerd: { source: 'https://download.docker.com/linux/debian trixie stable', key: https://download.docker.com/linux/debian/gpg }
images: { repository: mirror.lan/k8s, mirrors: { docker.io: [https://mirror.lan], '*': [http://mirror.lan:5000] } }
proxy: { http: 'http://proxy.lan:3128' }
",
    );
    let mut facts = world::facts(&cluster, |_| "trixie-bare");
    seen(&mut facts, "w1").hostname = "raspberrypi".to_owned();
    golden("full-inventory", &in_full(&world::plan(&cluster, &facts)));
}

#[test]
fn hosts_that_cannot_be_reached() {
    let cluster = world::cluster(HOMELAB);
    let mut facts = world::facts(&cluster, |_| "trixie-bare");
    facts.hosts.insert(name("w2"), silent());
    let plan = world::plan(&cluster, &facts);
    assert!(world::outline(&plan).contains("warning: w2: left out: no route to host"));
    assert_eq!(world::titles(&plan, "w2"), [""; 0]);
    for (host, role) in [("cp2", "controller"), ("lb-0", "load balancer")] {
        let mut facts = world::facts(&cluster, |_| "trixie-bare");
        facts.hosts.insert(name(host), silent());
        assert_eq!(
            world::blockers(&cluster, &facts, &everything()),
            [format!(
                "{host}: the {role} cannot be reached, and a new cluster needs it: no route to host"
            )]
        );
    }
    // A cluster that is there goes on without any one of them.
    for host in ["lb-0", "cp1", "cp2", "w1"] {
        let mut world = World::built(HOMELAB);
        world.down.insert(name(host));
        let plan = world.plan();
        assert!(plan.is_empty(), "{host}:\n{}", world::outline(&plan));
        assert_eq!(
            world::outline(&plan),
            format!("warning: {host}: left out: no route to host\n")
        );
    }
}

/// A host that has another key than the one that is known.
fn impostor() -> Observation {
    Observation::Unreachable(Unreachable {
        refused: true,
        reason: "pi@192.168.7.205: its host key has changed".to_owned(),
        hint: Some("run again with `--replace-host-key`".to_owned()),
    })
}

#[test]
fn what_only_the_login_stands_in_the_way_of_ends_with_its_own_code() {
    let cluster = world::cluster(HOMELAB);
    let code = |change: &dyn Fn(&mut Facts)| {
        let mut facts = world::facts(&cluster, |_| "trixie-bare");
        change(&mut facts);
        let blockers = try_plan(&cluster, &facts, &everything()).unwrap_err();
        (exit::blocked(&blockers), blockers)
    };
    let everybody_refuses = |facts: &mut Facts| {
        for host in ["lb-0", "cp1", "cp2", "cp3"] {
            facts.hosts.insert(name(host), impostor());
        }
    };
    let (ends, blockers) = code(&everybody_refuses);
    assert_eq!(ends, exit::UNREACHABLE, "{blockers:#?}");
    for blocker in &blockers {
        assert!(blocker.message.contains("cannot be logged in to"), "{blocker:#?}");
        assert_eq!(blocker.hint, "run again with `--replace-host-key`");
    }
    // Something to be put right on a host comes first.
    let (ends, _) = code(&|facts| {
        everybody_refuses(facts);
        seen(facts, "w1").memory_kib = 1;
        seen(facts, "w1").architecture = Seen::Present("s390x".to_owned());
    });
    assert_eq!(ends, exit::BLOCKED);
    // A worker of a cluster whose controllers are out of sight is no obstacle of its own.
    let mut world = World::built(HOMELAB);
    world.down.extend(["cp1", "cp2", "cp3"].map(name));
    let facts = world.facts();
    let blockers = try_plan(&world.cluster, &facts, &everything()).unwrap_err();
    assert!(
        blockers
            .iter()
            .any(|blocker| blocker.message.contains("whether it belongs"))
    );
    assert_eq!(exit::blocked(&blockers), exit::UNREACHABLE, "{blockers:#?}");
}

#[test]
fn a_changed_host_key_is_warned_about_where_there_is_nothing_to_do() {
    let world = World::built(HOMELAB);
    let mut facts = world.facts();
    facts.hosts.insert(name("w2"), impostor());
    let plan = try_plan(&world.cluster, &facts, &everything()).unwrap();
    assert!(plan.is_empty());
    assert_eq!(plan.left_out, [name("w2")]);
    let text = plan_view::render(&plan, false, Style::PLAIN);
    for told in [
        "warning: w2: left out: pi@192.168.7.205: its host key has changed",
        "hint: run again with `--replace-host-key`",
        "left out: w2",
    ] {
        assert!(text.contains(told), "{text}");
    }
    assert!(!text.contains("everything is as the inventory wants it"), "{text}");
}

#[test]
fn a_host_that_is_down_does_not_change_what_runs_on_the_others() {
    // cp2 has its address on another interface than its default route.
    let inventory = HOMELAB.replace("cp2: 192.168.7.202", "cp2: { address: 192.168.7.202, interface: eth1 }");
    for inventory in [HOMELAB, &inventory] {
        let mut world = World::bare(world::cluster(inventory), |_| "trixie-bare");
        for host in ["cp1", "cp2", "cp3", "w1", "w2", "w3"] {
            world.host(&name(host)).routes[0].interface = "wlan0".to_owned();
        }
        let second = world.host(&name("cp2"));
        second.links.insert("eth1".to_owned(), 1500);
        for entry in &mut second.addresses {
            entry.interface = "eth1".to_owned();
        }
        world.converge();
        for host in ["cp3", "w1"] {
            world.down.insert(name(host));
            let plan = world.plan();
            assert!(plan.is_empty(), "{host}:\n{}", world::outline(&plan));
            world.down.clear();
        }
    }
}

#[test]
fn only_some_hosts() {
    let cluster = world::cluster(HOMELAB);
    let facts = world::facts(&cluster, |_| "trixie-bare");
    assert_eq!(
        world::blockers(&cluster, &facts, &only(&["w1", "w2"])),
        ["cp1: there is no cluster yet, and its first controller is left out by --host"]
    );
    golden(
        "only-the-first",
        &world::outline(&world::try_plan(&cluster, &facts, &only(&["lb-0", "cp1"])).unwrap()),
    );

    let mut world = World::built(HOMELAB);
    world.reinstall("w1");
    world.reinstall("w2");
    let plan = world::try_plan(&world.cluster, &world.facts(), &only(&["w1"])).unwrap();
    golden("only-one-worker", &world::outline(&plan));
    assert_eq!(world::titles(&plan, "w2"), [""; 0]);
}

/// Steps for what all hosts share.
fn shared(plan: &Plan) -> Vec<String> {
    let ours = [
        "apply flannel",
        "set the resolvers of CoreDNS",
        "kubeadm init: cluster configuration and add-ons",
        "revoke tokens and uploaded certificates",
    ];
    let titles = plan.steps().map(|planned| planned.step.title());
    titles.filter(|title| ours.contains(&title.as_str())).collect()
}

#[test]
fn what_all_hosts_share_is_not_changed_for_some_of_them() {
    type Change = fn(&mut World);
    let rows: [(&str, Change, &str); 4] = [
        (
            "apply flannel",
            |world| world.api().flannel_hash = Seen::Present("another".to_owned()),
            "flannel is not as the inventory wants it",
        ),
        (
            "set the resolvers of CoreDNS",
            |world| world.under(&format!("{HOMELAB}dns: {{ resolvers: [9.9.9.9] }}\n")),
            "CoreDNS forwards to other resolvers than the inventory's",
        ),
        (
            "kubeadm init: cluster configuration and add-ons",
            |world| world.api().cluster_admins = Seen::Absent,
            "kubeadm init was ended early: clusterrolebinding kubeadm:cluster-admins missing",
        ),
        (
            "revoke tokens and uploaded certificates",
            |world| world.api().uploaded_certs = Seen::Present(()),
            "",
        ),
    ];
    for (step, change, warning) in rows {
        let mut world = World::built(HOMELAB);
        change(&mut world);
        world.host(&name("w1")).swap.active.push("/dev/sda3".to_owned());
        let facts = world.facts();
        let plan = |hosts: &[&str]| world::try_plan(&world.cluster, &facts, &only(hosts)).unwrap();
        for hosts in [&["w1"][..], &["w1", "cp2"], &["lb-0", "w1"]] {
            let plan = plan(hosts);
            assert_eq!(shared(&plan), [""; 0], "{step} for {hosts:?}");
            assert_eq!(world::titles(&plan, "w1"), ["turn swap off"], "{step}");
            assert_eq!(plan.continues, None, "{step}");
            let told = world::outline(&plan).contains(&format!(
                "warning: cluster: {warning}; left as it is, since --host leaves out cp1, which would do it"
            ));
            assert_eq!(told, !warning.is_empty(), "{step}:\n{}", world::outline(&plan));
        }
        assert!(shared(&plan(&["w1", "cp1"])).contains(&step.to_owned()), "{step}");
        assert!(shared(&plan(&["cp1"])).contains(&step.to_owned()), "{step}");
    }
}

#[test]
fn what_a_host_cannot_join_without_is_done_for_it() {
    // A cluster that is not published yet, and has no network.
    let mut world = World::built(HOMELAB);
    world.reinstall("w1");
    let live = world.api();
    (live.cluster_info, live.flannel, live.flannel_hash) = (Seen::Absent, Seen::Absent, Seen::Absent);
    let plan = world::try_plan(&world.cluster, &world.facts(), &only(&["w1"])).unwrap();
    assert_eq!(
        shared(&plan),
        [
            "kubeadm init: cluster configuration and add-ons",
            "apply flannel",
            "revoke tokens and uploaded certificates"
        ]
    );
    // It is wired otherwise than the others: Flannel must know.
    let more = HOMELAB.replace("w3: 192.168.7.206", "w3: 192.168.7.206, w4: 192.168.7.207");
    let mut world = World::built(HOMELAB);
    world.under(&more);
    world.host(&name("w4")).routes[0].interface = "wlan0".to_owned();
    let plan = world::try_plan(&world.cluster, &world.facts(), &only(&["w4"])).unwrap();
    assert!(
        shared(&plan).contains(&"apply flannel".to_owned()),
        "{}",
        world::outline(&plan)
    );
    // But not when others' settings would come with it.
    world.api().flannel_hash = Seen::Present("another".to_owned());
    let plan = world::try_plan(&world.cluster, &world.facts(), &only(&["w4"])).unwrap();
    assert_eq!(shared(&plan), ["revoke tokens and uploaded certificates"]);
    assert!(world::outline(&plan).contains("flannel is not as the inventory wants it; left as it is"));
}

#[test]
fn a_corefile_that_cannot_be_read_is_no_reason_to_go_on_for_ever() {
    let inventory = format!("{HOMELAB}dns: {{ resolvers: [9.9.9.9] }}\n");
    for (corefile, why) in [
        (Seen::Unknown("the server timed out".to_owned()), "the server timed out"),
        (Seen::Absent, "configmap kube-system/coredns has no Corefile"),
    ] {
        let mut world = World::built(&inventory);
        world.api().corefile = corefile;
        let plan = world.plan();
        assert_eq!(
            world::outline(&plan),
            format!(
                "warning: cluster: CoreDNS' resolvers are left as they are, since its Corefile cannot be read: {why}\n"
            )
        );
    }
    // Not there yet is something else.
    let mut world = World::built(&inventory);
    let live = world.api();
    (live.coredns, live.corefile) = (Seen::Absent, Seen::Absent);
    assert!(world.plan().continues.is_some());
    world.converge();
}

#[test]
fn settings_that_the_inventory_lists_no_more_are_taken_off_where_k8sup_put_them_there() {
    let with = |settings: &str| {
        HOMELAB.replace(
            "w1: 192.168.7.204",
            &format!("w1: {{ address: 192.168.7.204{settings} }}"),
        )
    };
    let mut world = World::built(&with(
        ", labels: { disk: ssd, rack: a }, taints: ['dedicated=storage:NoSchedule']",
    ));
    // Somebody else's.
    let node = world.node(&name("w1")).unwrap();
    assert_eq!(node.managed.len(), 3);
    node.labels.insert("theirs".to_owned(), "1".to_owned());
    node.taints.push(k8sup::cluster::Taint {
        key: "maintenance".to_owned(),
        value: String::new(),
        effect: "NoExecute".to_owned(),
    });
    // A label that was there before the inventory listed it is not k8sup's either.
    world.under(&with(", labels: { disk: hdd, theirs: '1' }"));
    let plan = world.plan();
    assert_eq!(
        world::outline(&plan),
        "cp1 (controller)\n  label and taint w1: it lacks disk=hdd; the inventory lists no more: dedicated:NoSchedule, rack\n"
    );
    world.converge();
    world.under(&with(""));
    world.converge();
    let node = world.node(&name("w1")).unwrap();
    assert_eq!(node.labels.get("disk"), None);
    assert_eq!(node.labels.get("theirs").map(String::as_str), Some("1"));
    assert_eq!(node.taints.len(), 1, "{:?}", node.taints);
    assert!(node.managed.is_empty());
    // Taken off by hand already: only the record is left to be put right.
    let mut world = World::built(&with(", labels: { rack: a }"));
    world.node(&name("w1")).unwrap().labels.remove("rack");
    world.under(HOMELAB);
    world.converge();
    assert!(world.node(&name("w1")).unwrap().managed.is_empty());
}

#[test]
fn one_more_worker() {
    let mut world = World::built(HOMELAB);
    world.under(&HOMELAB.replace(
        "w3: 192.168.7.206",
        "w3: 192.168.7.206, w4: { address: 192.168.7.207, labels: { disk: ssd } }",
    ));
    golden("one-more-worker", &world::outline(&world.plan()));
}

#[test]
fn drift_is_mended_where_it_is() {
    let mut world = World::built(HOMELAB);
    let host = world.host(&name("w1"));
    host.packages.get_mut("kubelet").unwrap().held = false;
    host.files
        .get_mut("/etc/sysctl.d/90-k8sup.conf")
        .unwrap()
        .content
        .push_str("net.ipv4.ip_forward = 0\n");
    host.sysctls.insert("net.ipv4.ip_forward".to_owned(), "0".to_owned());
    host.swap.active.push("/dev/sda3".to_owned());
    world.host(&name("w2")).services.get_mut("containerd").unwrap().active = false;
    world.host(&name("lb-0")).listening.clear();
    world.host(&name("cp2")).login.kubeconfig_server = Some("https://127.0.0.1:6443".to_owned());
    world.node(&name("cp3")).unwrap().taints.clear();
    golden("drift", &in_full(&world.plan()));
    world.converge();
}

/// The lab, recorded after an apply.
fn applied_lab() -> (Cluster, Facts) {
    let cluster = world::cluster(&world::read("inventories/lab.yaml"));
    let mut facts = world::facts(&cluster, |host| match host.name.as_str() {
        "lb-0" => "trixie-load-balancer",
        "cp3" => "bookworm-controller",
        "w1" | "w2" | "w3" => "bookworm-worker",
        _ => "trixie-controller",
    });
    facts.cluster = Seen::Present(world::recorded_cluster("cluster-lab", "cp1"));
    (cluster, facts)
}

#[test]
fn a_real_cluster_that_was_applied_needs_nothing() {
    let (cluster, mut facts) = applied_lab();
    let plan = world::plan(&cluster, &facts);
    assert!(plan.is_empty(), "{}", world::outline(&plan));
    assert_eq!(world::outline(&plan), "");
    // It is not empty because nothing is compared.
    facts.cluster = Seen::Present(k8sup::facts::ClusterFacts {
        flannel_hash: Seen::Present("another".to_owned()),
        ..world::recorded_cluster("cluster-lab", "cp1")
    });
    assert_eq!(world::titles(&world::plan(&cluster, &facts), "cp1"), ["apply flannel"]);
}

#[test]
fn a_containerd_that_is_slow_to_answer_is_not_taken_for_none() {
    let (cluster, mut facts) = applied_lab();
    for host in ["cp1", "w1"] {
        let host = seen(&mut facts, host);
        host.containerd = Seen::Unknown("no answer within 5 s".to_owned());
        host.images = Seen::Unknown("no answer within 5 s".to_owned());
    }
    assert_eq!(world::outline(&world::plan(&cluster, &facts)), "");
}

#[test]
fn a_source_of_somebody_elses_for_the_same_repository_is_set_aside() {
    let cluster = world::cluster(SINGLE);
    let mut facts = world::facts(&cluster, |_| "trixie-bare");
    let source = |uri: &str| FileFact {
        mode: 0o644,
        content: format!("deb [signed-by=/etc/apt/keyrings/kubernetes-apt-keyring.gpg] {uri} /\n"),
    };
    let files = &mut seen(&mut facts, "cp1").files;
    for (name, uri) in [
        ("kubernetes.list", "https://pkgs.k8s.io/core:/stable:/v1.34/deb/"),
        ("kubernetes-old.list", "https://pkgs.k8s.io/core:/stable:/v1.33/deb/"),
        ("kubernetes.list.save", "https://pkgs.k8s.io/core:/stable:/v1.34/deb/"),
    ] {
        files.insert(format!("/etc/apt/sources.list.d/{name}"), source(uri));
    }
    let plan = world::plan(&cluster, &facts);
    let files = plan.lanes[0].steps.iter().flat_map(|planned| &planned.files);
    let dropped: Vec<_> = files
        .filter(|file| file.after.is_none())
        .map(|file| file.path.as_str())
        .collect();
    assert_eq!(dropped, ["/etc/apt/sources.list.d/kubernetes.list"]);
}

// --- reset --------------------------------------------------------------------------

fn reset_plan(world: &World, hosts: Option<&[&str]>, purge: bool) -> Plan {
    let only = hosts.map(|hosts| hosts.iter().map(|host| name(host)).collect());
    let plan = reset::plan(&world.cluster, &world.facts(), &ResetIntent { only, purge }).unwrap();
    k8sup::plan::check_gates(&plan).unwrap();
    plan
}

#[test]
fn reset_of_everything() {
    for inventory in [HOMELAB, SINGLE] {
        let mut world = World::built(inventory);
        let plan = reset_plan(&world, None, true);
        if inventory == HOMELAB {
            golden("reset", &world::outline(&plan));
        }
        world.carry_out(&plan);
        for (host, facts) in &world.hosts {
            assert_eq!(reset::leftovers(facts), [""; 0], "{host}");
        }
        assert!(world.live.is_none());
        assert!(reset_plan(&world, None, true).is_empty());
        // And again from the beginning.
        world.converge();
    }
}

#[test]
fn reset_of_some_hosts_takes_them_out_of_the_cluster_first() {
    for (name_of_golden, hosts) in [
        ("reset-worker", &["w1"][..]),
        ("reset-controller", &["cp2"]),
        ("reset-first-controller", &["cp1", "w3"]),
    ] {
        let mut world = World::built(HOMELAB);
        let plan = reset_plan(&world, Some(hosts), false);
        golden(name_of_golden, &world::outline(&plan));
        world.carry_out(&plan);
        for host in hosts {
            assert_eq!(reset::leftovers(&world.hosts[&name(host)]), [""; 0]);
            assert!(world.node(&name(host)).is_none());
        }
        assert!(reset_plan(&world, Some(hosts), false).is_empty());
        world.converge();
    }
}

#[test]
fn reset_leaves_an_etcd_alone_that_is_not_kubeadms() {
    let mut world = World::built(HOMELAB);
    let files = &mut world.host(&name("cp2")).kube.files;
    // Its CA is there for the API server; kubeadm made nothing else.
    files.retain(|file| !file.ends_with("manifests/etcd.yaml") && !file.ends_with("pki/etcd/peer.crt"));
    assert!(files.contains("/etc/kubernetes/pki/etcd/ca.crt"));
    let plan = reset_plan(&world, Some(&["cp2"]), false);
    let cleared: Vec<_> = plan
        .steps()
        .filter_map(|planned| match &planned.step {
            k8sup::plan::Step::ResetNode(step) => Some(step.etcd_data_dir.as_deref()),
            _ => None,
        })
        .collect();
    assert_eq!(cleared, [None]);
}

#[test]
fn reset_spares_hosts_that_were_not_named() {
    let refused = |world: &World, host: &str| {
        let intent = ResetIntent {
            only: Some([name(host)].into()),
            purge: false,
        };
        let findings = reset::plan(&world.cluster, &world.facts(), &intent).unwrap_err();
        let told: Vec<String> = findings
            .iter()
            .map(|found| format!("{} {}", found.check.code, found.message))
            .collect();
        told
    };
    // w4 is w2 under another address.
    let mut world = World::built(HOMELAB);
    world.under(&HOMELAB.replace("w3: 192.168.7.206", "w3: 192.168.7.206, w4: 192.168.7.207"));
    *world.host(&name("w4")) = world.hosts[&name("w2")].clone();
    assert_eq!(
        refused(&world, "w4"),
        [
            "K8S-ID-008 192.168.7.207 is w2 in the cluster, which was not named",
            "K8S-ID-006 w4 and w2 are one and the same machine"
        ]
    );
    // Two that are swapped.
    let mut world = World::built(HOMELAB);
    let (second, third) = (world.hosts[&name("cp2")].clone(), world.hosts[&name("cp3")].clone());
    *world.host(&name("cp2")) = third;
    *world.host(&name("cp3")) = second;
    assert_eq!(
        refused(&world, "cp3"),
        ["K8S-ID-008 192.168.7.203 is cp2 in the cluster, which was not named"]
    );
    // Another cluster than the inventory's.
    let mut world = World::built(HOMELAB);
    world.cluster.name = "other".to_owned();
    assert_eq!(
        refused(&world, "w1"),
        ["K8S-KUBE-001 the cluster that runs on these hosts is homelab, the inventory's is other"]
    );
    // Named together, or all of them, both go.
    let mut world = World::built(HOMELAB);
    let (second, third) = (world.hosts[&name("cp2")].clone(), world.hosts[&name("cp3")].clone());
    *world.host(&name("cp2")) = third;
    *world.host(&name("cp3")) = second;
    assert!(!reset_plan(&world, Some(&["cp2", "cp3"]), false).is_empty());
    assert!(!reset_plan(&world, None, false).is_empty());
}

#[test]
fn reset_where_there_is_nothing_or_nobody() {
    let world = World::bare(world::cluster(HOMELAB), |_| "trixie-bare");
    assert!(reset_plan(&world, None, true).is_empty());
    let mut world = World::built(HOMELAB);
    world.down.insert(name("w1"));
    world.down.insert(name("cp2"));
    let plan = reset_plan(&world, None, false);
    assert!(world::outline(&plan).contains("warning: cp2: not reset, since it cannot be reached: no route to host"));
    world.carry_out(&plan);
    // A worker that is gone for good is still taken out of the cluster.
    let mut world = World::built(HOMELAB);
    world.down.insert(name("w1"));
    let plan = reset_plan(&world, Some(&["w1"]), false);
    golden("reset-unreachable-worker", &world::outline(&plan));
    world.carry_out(&plan);
    assert!(world.node(&name("w1")).is_none());
}

#[test]
fn reset_of_what_is_half_made() {
    let mut world = World::bare(world::cluster(HOMELAB), |_| "trixie-bare");
    world.prepare();
    world.begin("cp1", "kubeadm init: control plane", 4);
    let plan = reset_plan(&world, None, false);
    world.carry_out(&plan);
    for (host, facts) in &world.hosts {
        assert_eq!(reset::leftovers(facts), [""; 0], "{host}");
    }
}

#[test]
fn the_probe_looks_at_every_file_that_a_plan_writes() {
    let probe = world::read("templates/probe.sh");
    let patterns: Vec<&str> = probe
        .split_whitespace()
        .filter_map(|word| word.trim_matches('\'').strip_prefix("file:="))
        .collect();
    let matches = |path: &str, pattern: &str| {
        let parts: Vec<&str> = pattern.split('*').collect();
        let mut rest = path;
        parts.iter().enumerate().all(|(at, part)| {
            let found = if at == 0 {
                rest.starts_with(part).then_some(0)
            } else {
                rest.find(part)
            };
            found.is_some_and(|place| {
                rest = &rest[place + part.len()..];
                true
            })
        }) && (rest.is_empty() || pattern.ends_with('*'))
    };
    let inventory = "
cluster: { name: full, kubernetes: v1.34.4, endpoint: api.lan:8443 }
ssh: { user: pi }
loadBalancers: { lb-0: 192.168.7.140 }
controllers: { cp1: 192.168.7.201 }
packages: { containerd: { source: 'https://download.docker.com/linux/debian trixie stable', key: https://download.docker.com/linux/debian/gpg } }
images: { mirrors: { docker.io: [https://mirror.lan], '*': [http://mirror.lan:5000] } }
dns: { resolvers: [192.168.7.1] }
proxy: { http: 'http://proxy.lan:3128' }
";
    let cluster = world::cluster(inventory);
    let mut paths = std::collections::BTreeSet::new();
    for recording in [
        "trixie-bare",
        "raspberry-pi-os-bookworm",
        "docker-containerd",
        "ubuntu-24.04",
    ] {
        let mut facts = world::facts(&cluster, |_| recording);
        for host in ["lb-0", "cp1"] {
            let facts = seen(&mut facts, host);
            facts.cgroup.controllers.insert("memory".to_owned());
            facts.nameservers = vec!["127.0.0.1".to_owned()];
            facts.resolved = Seen::Absent;
            // A drop-in of the administrator's makes a file of ours necessary, that is imported after it.
            let content = "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\n  enable_cdi = true\n".to_owned();
            facts.files.insert(
                "/etc/containerd/conf.d/own.toml".to_owned(),
                k8sup::facts::FileFact { mode: 0o644, content },
            );
        }
        let plan = world::plan(&cluster, &facts);
        let files = plan.steps().flat_map(|planned| &planned.files);
        paths.extend(files.map(|file| file.path.clone()));
    }
    assert!(
        paths.contains("/etc/k8sup-resolv.conf") && paths.contains("/etc/containerd/k8sup-cri.toml"),
        "{paths:#?}"
    );
    for path in paths {
        assert!(
            patterns.iter().any(|pattern| matches(&path, pattern)),
            "the probe does not look at {path}"
        );
    }
}
