//! Clusters from inventory text, and facts from the recorded probes of `tests/facts`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use k8sup::check::Finding;
use k8sup::cluster;
use k8sup::cluster::{Cluster, Host, NodeName, Role};
use k8sup::facts::{Facts, HostFacts, InterfaceAddress, Observation, Route, Seen, Unreachable, parse};
use k8sup::inventory::{self, Environment};
use k8sup::plan::Plan;
use k8sup::plan::apply::{self, Intent};
use k8sup::plan::check_gates;
use k8sup::plan::reset::{self, ResetIntent};

/// The mark in all recordings.
const NONCE: &str = "abc123";

/// A load balancer, three controllers, three workers.
pub(crate) const HOMELAB: &str = "
cluster: { name: homelab, kubernetes: v1.34.4 }
ssh: { user: pi }
loadBalancers: { lb-0: 192.168.7.140 }
controllers: { cp1: 192.168.7.201, cp2: 192.168.7.202, cp3: 192.168.7.203 }
workers: { w1: 192.168.7.204, w2: 192.168.7.205, w3: 192.168.7.206 }
";

/// One controller and nothing else.
pub(crate) const SINGLE: &str = "
cluster: { name: single, kubernetes: v1.34.4 }
ssh: { user: pi }
controllers: { cp1: { address: 192.168.7.201, taints: [] } }
";

/// A file of the repository.
pub(crate) fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The cluster that an inventory describes.
pub(crate) fn cluster(inventory: &str) -> Cluster {
    let environment = Environment {
        user: "me".to_owned(),
        home: "/home/me".into(),
        inventory_dir: "/inventories".into(),
    };
    match cluster::load(inventory, &environment) {
        Ok((cluster, _)) => cluster,
        Err(problems) => panic!(
            "{}",
            inventory::render_problems(&problems, inventory, "inventory.yaml", false)
        ),
    }
}

/// The name of a host.
pub(crate) fn name(host: &str) -> NodeName {
    NodeName::parse(host).unwrap()
}

/// A recorded host.
pub(crate) fn recorded(recording: &str) -> HostFacts {
    static PARSED: LazyLock<BTreeMap<String, HostFacts>> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/facts");
        let mut parsed = BTreeMap::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|kind| kind != "txt") {
                continue;
            }
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            if !name.starts_with("cluster-") {
                let facts = parse::host(&std::fs::read_to_string(&path).unwrap(), NONCE).unwrap();
                parsed.insert(name, facts);
            }
        }
        parsed
    });
    PARSED
        .get(recording)
        .unwrap_or_else(|| panic!("no recording {recording}"))
        .clone()
}

/// A recorded cluster, as this controller sees it.
pub(crate) fn recorded_cluster(recording: &str, asked: &str) -> k8sup::facts::ClusterFacts {
    k8sup::facts::ClusterFacts {
        asked: Some(name(asked)),
        ..parse::cluster(&read(&format!("tests/facts/{recording}.txt")), NONCE)
    }
}

/// A recorded machine in the place of a host of the inventory: its name and its address are the host's.
pub(crate) fn machine(recording: &str, host: &Host) -> HostFacts {
    let mut facts = recorded(recording);
    let interface = facts
        .routes
        .iter()
        .find(|route| route.destination.prefix_len() == 0)
        .map_or_else(|| "eth0".to_owned(), |route| route.interface.clone());
    facts.hostname = host.name.to_string();
    // One recording stands for many machines.
    facts.machine_id = Seen::Present(format!("machine-id of {}", host.name));
    facts.boot_id = format!("boot id of {}", host.name);
    facts.product_uuid = Seen::Absent;
    facts.surroundings.host_keys = [format!("ssh-ed25519 key of {}", host.name)].into();
    let [.., number] = host.address.octets();
    facts.macs = BTreeMap::from([(interface.clone(), format!("52:54:00:00:00:{number:02x}"))]);
    facts.addresses = vec![InterfaceAddress {
        interface: interface.clone(),
        address: format!("{}/24", host.address).parse().unwrap(),
    }];
    facts.routes = vec![Route {
        destination: "0.0.0.0/0".parse().unwrap(),
        interface,
    }];
    facts.endpoint_resolves = Seen::Absent;
    // A controller's kubelet asks the API server beside it.
    if host.role == Role::Controller
        && let Some(config) = facts.kube.kubeconfigs.get_mut("kubelet")
    {
        config.server = format!("https://{}:6443", host.address);
    }
    if let Seen::Present(certificate) = &mut facts.kube.kubelet {
        certificate.subject = format!("O=system:nodes, CN=system:node:{}", host.name);
    }
    facts
}

/// The facts of bare machines; `recording` says what each of them is.
pub(crate) fn facts(cluster: &Cluster, recording: impl Fn(&Host) -> &'static str) -> Facts {
    let machines = cluster.hosts.iter().map(|host| {
        let facts = machine(recording(host), host);
        (host.name.clone(), Observation::Seen(Box::new(facts)))
    });
    Facts {
        hosts: machines.collect(),
        cluster: Seen::Absent,
        ..Facts::default()
    }
}

/// A host that gives no answer.
pub(crate) fn silent() -> Observation {
    Observation::Unreachable(Unreachable {
        refused: false,
        reason: "no route to host".to_owned(),
        hint: None,
    })
}

/// Of one host's facts, to change them.
pub(crate) fn seen<'a>(facts: &'a mut Facts, host: &str) -> &'a mut HostFacts {
    match facts.hosts.get_mut(&name(host)) {
        Some(Observation::Seen(facts)) => facts,
        other => panic!("{host}: {other:?}"),
    }
}

/// Everything, with Flannel's recorded manifest.
pub(crate) fn everything() -> Intent {
    static MANIFEST: LazyLock<String> = LazyLock::new(|| read("tests/fixtures/kube-flannel.yml"));
    Intent {
        only: None,
        manifest: MANIFEST.clone(),
    }
}

/// Only these hosts.
pub(crate) fn only(hosts: &[&str]) -> Intent {
    Intent {
        only: Some(hosts.iter().map(|host| name(host)).collect()),
        ..everything()
    }
}

/// The plan, its gates checked.
pub(crate) fn try_plan(cluster: &Cluster, facts: &Facts, intent: &Intent) -> Result<Plan, Vec<Finding>> {
    let plan = apply::plan(cluster, facts, intent)?;
    if let Err(defect) = check_gates(&plan) {
        panic!("{defect}\n{}", outline(&plan));
    }
    Ok(plan)
}

/// The plan for all hosts, where nothing stands in the way.
pub(crate) fn plan(cluster: &Cluster, facts: &Facts) -> Plan {
    try_plan(cluster, facts, &everything()).unwrap_or_else(|blockers| panic!("{blockers:#?}"))
}

/// The plan that resets these hosts.
pub(crate) fn reset(world: &crate::simulate::World, hosts: &[&str]) -> Plan {
    let intent = ResetIntent {
        only: Some(hosts.iter().map(|host| name(host)).collect()),
        purge: false,
    };
    let plan = reset::plan(&world.cluster, &world.facts(), &intent).unwrap();
    check_gates(&plan).unwrap();
    plan
}

/// What stands in the way, one line each.
pub(crate) fn blockers(cluster: &Cluster, facts: &Facts, intent: &Intent) -> Vec<String> {
    match try_plan(cluster, facts, intent) {
        Ok(plan) => panic!("nothing stands in the way:\n{}", outline(&plan)),
        Err(blockers) => blockers
            .iter()
            .map(|blocker| {
                let host = blocker.host.as_ref().map_or("cluster", |host| host.as_str());
                format!("{host}: {}", blocker.message)
            })
            .collect(),
    }
}

/// A plan in one line a step.
pub(crate) fn outline(plan: &Plan) -> String {
    let mut lines = Vec::new();
    for lane in &plan.lanes {
        lines.push(format!("{} ({})", lane.host, lane.role));
        for planned in &lane.steps {
            let mut line = format!("  {}: {}", planned.step.title(), planned.why);
            for (word, gates) in [
                ("needs", &planned.needs),
                ("after", &planned.after),
                ("only if", &planned.only_if),
            ] {
                if !gates.is_empty() {
                    let gates: Vec<String> = gates.iter().map(ToString::to_string).collect();
                    line.push_str(&format!(" [{word}: {}]", gates.join(", ")));
                }
            }
            if let Some(gate) = &planned.opens {
                line.push_str(&format!(" => {gate}"));
            }
            lines.push(line);
        }
    }
    for warning in &plan.warnings {
        let host = warning.host.as_ref().map_or("cluster", |host| host.as_str());
        lines.push(format!("warning: {host}: {}", warning.message));
    }
    if let Some(why) = &plan.continues {
        lines.push(format!("continues: {why}"));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Titles of the steps of one host.
pub(crate) fn titles(plan: &Plan, host: &str) -> Vec<String> {
    plan.lanes
        .iter()
        .filter(|lane| lane.host.as_str() == host)
        .flat_map(|lane| lane.steps.iter().map(|planned| planned.step.title()))
        .collect()
}
