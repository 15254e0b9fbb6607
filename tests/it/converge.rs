//! Plans lead where they say: carried out in thought, from wherever a run was ended, nothing is left to do.

use k8sup::cluster::Role;
use k8sup::facts::{Facts, Seen};
use k8sup::plan::check_gates;
use k8sup::plan::{Plan, Step};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::simulate::{Cut, World};
use crate::world::{self, HOMELAB, SINGLE};

#[test]
fn a_fresh_lab_converges() {
    World::built(HOMELAB);
    World::built(SINGLE);
}

#[test]
fn every_recorded_machine_can_become_a_node() {
    for recording in [
        "trixie-bare",
        "bookworm-bare",
        "forky-packages",
        "docker-containerd",
        "ubuntu-22.04",
        "ubuntu-24.04",
        "ubuntu-26.04",
        "raspberry-pi-os-bookworm",
        "raspberry-pi-os-trixie",
    ] {
        let mut world = World::bare(world::cluster(SINGLE), |_| recording);
        world.converge();
    }
}

/// An inventory; the hosts' distributions; what is odd about them.
#[derive(Debug, Clone)]
struct Case {
    inventory: String,
    machines: Vec<&'static str>,
    stub: Vec<bool>,
    cuts: Vec<(Index, Index)>,
    picks: Vec<Index>,
}

const MACHINES: [&str; 9] = [
    "trixie-bare",
    "bookworm-bare",
    "forky-packages",
    "docker-containerd",
    "ubuntu-22.04",
    "ubuntu-24.04",
    "ubuntu-26.04",
    "raspberry-pi-os-bookworm",
    "raspberry-pi-os-trixie",
];

prop_compose! {
    fn inventories()(
        balancers in 0..=1usize,
        controllers in 1..=5usize,
        workers in 0..=6usize,
        labels in prop::collection::vec(prop::option::of("[a-z]{1,5}"), 11),
        taints in prop::collection::vec(0..4u8, 11),
        resolvers in any::<bool>(),
        hostnames in any::<bool>(),
        mirrors in any::<bool>(),
        repository in any::<bool>(),
        named in any::<bool>(),
        docker in prop::bool::weighted(0.2),
        proxy in prop::bool::weighted(0.2),
        backend in prop::sample::select(vec!["vxlan", "host-gw", "wireguard"]),
        revision in prop::option::of(Just("1.1")),
    ) -> String {
        // Several controllers are reached through a load balancer or a name.
        let named = named || balancers == 0 && controllers > 1;
        let endpoint = if named { ", endpoint: api.lan:6443" } else { "" };
        let mut text = format!("cluster: {{ name: random, kubernetes: v1.34.4{endpoint}, setHostnames: {hostnames} }}\nssh: {{ user: pi }}\n");
        if balancers == 1 {
            text += "loadBalancers: { lb-0: 192.168.7.140 }\n";
        }
        let mut number = 0;
        for (section, count) in [("controllers", controllers), ("workers", workers)] {
            text += &format!("{section}:{}\n", if count == 0 { " {}" } else { "" });
            for at in 0..count {
                text += &format!("  {}{at}:\n    address: 192.168.7.{}\n", &section[..1], 201 + number);
                if let Some(label) = &labels[number] {
                    text += &format!("    labels: {{ kind: {label} }}\n");
                }
                match taints[number] {
                    0 => {}
                    1 => text += "    taints: []\n",
                    2 => text += "    taints: ['dedicated=storage:NoSchedule']\n",
                    _ => text += "    taints: ['spare:PreferNoSchedule', 'dedicated=x:NoExecute']\n",
                }
                number += 1;
            }
        }
        if resolvers {
            text += "dns: { resolvers: [192.168.7.1, 9.9.9.9] }\n";
        }
        if mirrors || repository {
            text += "images:\n";
            if mirrors {
                text += "  mirrors: { docker.io: [https://mirror.lan], '*': [http://mirror.lan:5000] }\n";
            }
            if repository {
                text += "  repository: mirror.lan/k8s\n";
            }
        }
        if docker || revision.is_some() {
            text += "packages:\n";
            if docker {
                text += "  containerd: { source: 'https://download.docker.com/linux/debian trixie stable', key: https://download.docker.com/linux/debian/gpg }\n";
            }
            if let Some(revision) = revision {
                text += &format!("  revision: '{revision}'\n");
            }
        }
        if proxy {
            text += "proxy: { http: 'http://proxy.lan:3128', noProxy: [.lan] }\n";
        }
        text + &format!("flannel: {{ backend: {backend} }}\n")
    }
}

prop_compose! {
    fn cases()(
        inventory in inventories(),
        machines in prop::collection::vec(prop::sample::select(&MACHINES[..]), 12),
        stub in prop::collection::vec(prop::bool::weighted(0.2), 12),
        cuts in prop::collection::vec(any::<(Index, Index)>(), 0..4),
        picks in prop::collection::vec(any::<Index>(), 16),
    ) -> Case {
        Case { inventory, machines, stub, cuts, picks }
    }
}

impl Case {
    fn world(&self) -> World {
        let cluster = world::cluster(&self.inventory);
        let hosts = cluster.hosts.clone();
        let mut world = World::bare(cluster, |host| {
            self.machines[hosts.iter().position(|other| other.name == host.name).unwrap()]
        });
        for (at, host) in hosts.iter().enumerate() {
            let facts = world.host(&host.name);
            if facts.platform.container.is_some()
                && let Seen::Present(modules) = &mut facts.platform.modules
            {
                // A machine under the containers that has it.
                modules.available.insert("wireguard".to_owned());
            }
            if at % 3 == 1 {
                "raspberrypi".clone_into(&mut facts.hostname);
            }
            if self.stub[at] {
                facts.nameservers = vec!["127.0.0.1".to_owned()];
            }
        }
        world
    }

    /// After runs that were all ended early.
    fn cut_short(&self, pick: &mut dyn FnMut(usize) -> usize) -> World {
        let mut world = self.world();
        for (steps, parts) in &self.cuts {
            let plan = plan(&world);
            let cut = Cut {
                steps: steps.index(plan.len() + 1),
                parts: parts.index(11),
            };
            world.carry_out_until(&plan, Some(cut), pick);
        }
        world
    }

    /// Chooses among lanes that could go on.
    fn pick(&self) -> impl FnMut(usize) -> usize + '_ {
        let mut turn = 0;
        move |ready| {
            turn += 1;
            self.picks[turn % self.picks.len()].index(ready)
        }
    }
}

/// The plan; the same whenever it is asked for, with sound gates, and gentle to what is healthy.
fn plan(world: &World) -> Plan {
    let facts = world.facts();
    let plan = world::plan(&world.cluster, &facts);
    assert_eq!(check_gates(&plan), Ok(()));
    let again = world::plan(&world.cluster, &world.facts());
    assert_eq!(
        serde_json::to_string(&plan).unwrap(),
        serde_json::to_string(&again).unwrap()
    );
    assert_gentle(world, &facts, &plan);
    plan
}

/// Hosts that belong to the cluster, told from the simulation's own truth.
fn assert_gentle(world: &World, facts: &Facts, plan: &Plan) {
    let Some(live) = &world.live else { return };
    for lane in &plan.lanes {
        let Some(host) = world.cluster.host(&lane.host) else {
            continue;
        };
        let kube = &world.hosts[&host.name].kube;
        let peer = format!("https://{}:2380", host.address);
        let votes = live
            .members
            .present()
            .unwrap()
            .iter()
            .any(|member| member.peer_urls.contains(&peer) && !member.learner);
        let node = live.nodes.present().unwrap().contains_key(host.name.as_str());
        let kubelet = kube.has("kubelet.conf") && kube.kubelet.present().is_some();
        let healthy = match host.role {
            Role::LoadBalancer => continue,
            Role::Controller => votes && kube.etcd_data,
            Role::Worker => node && kubelet,
        };
        let disruptive = |step: &Step| {
            matches!(
                step,
                Step::ClearHalfMade { .. } | Step::Found { .. } | Step::Join { .. } | Step::ResetNode(_)
            )
        };
        assert!(
            !healthy || !lane.steps.iter().any(|planned| disruptive(&planned.step)),
            "{} is healthy:\n{}",
            host.name,
            world::outline(plan)
        );
        let forgotten = |step: &Step| matches!(step, Step::ForgetNode { node, .. } | Step::LeaveCluster { node, .. } if *node == host.name);
        let forgets = plan.steps().any(|planned| forgotten(&planned.step));
        assert!(!healthy || !forgets, "{} is healthy, but to be forgotten", host.name);
        // Nothing is founded where somebody has a control plane.
        let founds = plan.steps().any(|planned| matches!(planned.step, Step::Found { .. }));
        assert!(!founds, "a second cluster:\n{}", world::outline(plan));
    }
    assert!(facts.hosts.len() == world.cluster.hosts.len());
}

/// Rounds as `apply` makes them: another one only where the plan says that there is more.
fn converge(world: &mut World, pick: &mut dyn FnMut(usize) -> usize) {
    for _ in 0..3 {
        let plan = plan(world);
        if plan.is_empty() {
            return;
        }
        world.carry_out_until(&plan, None, pick);
        if plan.continues.is_none() {
            break;
        }
    }
    let left = plan(world);
    assert!(left.is_empty(), "still to do:\n{}", world::outline(&left));
}

/// More with `PROPTEST_CASES`.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: cases.unwrap_or(24),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn from_wherever_a_run_was_ended_the_next_one_gets_there(case in cases()) {
        let mut pick = case.pick();
        let mut world = case.cut_short(&mut pick);
        converge(&mut world, &mut pick);
        // The cluster is the one that the inventory wants.
        let live = world.live.clone().unwrap();
        let mut nodes: Vec<&str> = live.nodes.present().unwrap().keys().map(String::as_str).collect();
        let mut wanted: Vec<&str> = world.cluster.nodes().map(|host| host.name.as_str()).collect();
        nodes.sort_unstable();
        wanted.sort_unstable();
        prop_assert_eq!(nodes, wanted);
        let controllers = world.cluster.role(Role::Controller).count();
        let members = live.members.present().unwrap();
        prop_assert_eq!(members.len(), controllers);
        prop_assert!(members.iter().all(|member| !member.learner && !member.name.is_empty()));
        prop_assert!(live.uploaded_certs.is_absent());
        prop_assert!(live.bootstrap_tokens.present().unwrap().is_empty());
    }

    #[test]
    fn what_drifts_comes_back_in_one_round(
        case in cases(),
        drifts in prop::collection::vec((any::<Index>(), 0..8u8), 1..6),
    ) {
        let mut world = case.world();
        let mut pick = case.pick();
        converge(&mut world, &mut pick);
        let names: Vec<_> = world.cluster.nodes().map(|host| host.name.clone()).collect();
        for (host, kind) in drifts {
            let name = &names[host.index(names.len())];
            let facts = world.host(name);
            match kind {
                0 => facts.swap.active.push("/dev/sda2".to_owned()),
                1 => drop(facts.sysctls.insert("net.ipv4.ip_forward".to_owned(), "0".to_owned())),
                2 => drop(facts.modules.remove("br_netfilter")),
                3 => facts.packages.get_mut("kubelet").unwrap().held = false,
                4 => facts.files.get_mut("/etc/crictl.yaml").unwrap().content.clear(),
                5 => facts.services.get_mut("containerd").unwrap().enabled = false,
                6 => world.node(name).unwrap().labels.clear(),
                _ => world.node(name).unwrap().taints.clear(),
            }
        }
        let repair = plan(&world);
        world.carry_out_until(&repair, None, &mut pick);
        let left = plan(&world);
        prop_assert!(left.is_empty(), "{}", world::outline(&left));
    }

    #[test]
    fn while_the_control_plane_is_silent_nothing_is_cleared(case in cases()) {
        let mut pick = case.pick();
        let mut world = case.cut_short(&mut pick);
        world.silence();
        // What is silent is no reason to refuse anything either: its hosts are known by their authority.
        plan(&world);
    }

    #[test]
    fn hosts_that_are_down_hold_nobody_up(case in cases(), down in prop::collection::vec(any::<bool>(), 12)) {
        let mut pick = case.pick();
        let mut world = case.cut_short(&mut pick);
        // Workers as they come; of controllers only as many as etcd can do without, and only when none is to join.
        let controllers: Vec<_> = world.cluster.role(Role::Controller).map(|host| host.name.clone()).collect();
        let voters = world.live.as_ref().and_then(|live| live.members.present()).map_or(0, |members| {
            members.iter().filter(|member| !member.learner && !member.name.is_empty()).count()
        });
        let spare = if voters == controllers.len() { (voters - 1) / 2 } else { 0 };
        let gone = controllers.into_iter().rev().take(spare);
        let workers: Vec<_> = world.cluster.role(Role::Worker).map(|host| host.name.clone()).collect();
        for (name, down) in gone.chain(workers).zip(down) {
            if down {
                world.down.insert(name);
            }
        }
        let without = plan(&world);
        prop_assert_eq!(without.warnings.iter().filter(|warning| warning.message.starts_with("left out")).count(), world.down.len());
        world.carry_out_until(&without, None, &mut pick);
        world.down.clear();
        converge(&mut world, &mut pick);
    }
}
