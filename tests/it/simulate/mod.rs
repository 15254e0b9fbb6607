//! Hosts and a cluster made of facts, on which plans are carried out in thought.
//!
//! Here is the [`World`] and what an observation of it gives. `run` carries out plans, `step` gives each step to the
//! module that knows its effect: it changes the facts as its script would change the host, and refuses what kubeadm, apt
//! or etcd would refuse; a plan that asks for it fails the test.

mod api;
mod containerd;
mod etcd;
mod files;
mod firewall;
mod found;
mod join;
mod kubeadm;
mod prepare;
mod reset;
mod run;
mod step;

use std::collections::{BTreeMap, BTreeSet};

use k8sup::cluster::{Cluster, Host, NodeName, Role};
use k8sup::facts::kube::Certificate;
use k8sup::facts::{ClusterFacts, Facts, FileFact, HostFacts, Observation, Seen};
use k8sup::plan::Plan;

use crate::world;

pub(crate) use run::Cut;

/// Hosts, and the cluster on them if there is one.
#[derive(Debug, Clone)]
pub(crate) struct World {
    /// What the inventory wants.
    pub cluster: Cluster,
    /// The hosts as they are.
    pub hosts: BTreeMap<NodeName, HostFacts>,
    /// What the API and etcd would say, also when nobody answers.
    pub live: Option<ClusterFacts>,
    /// Hosts that do not answer.
    pub down: BTreeSet<NodeName>,
    /// Every step that was carried out: host and title.
    pub done: Vec<(NodeName, String)>,
    ca: Option<Certificate>,
    authorities: u32,
    /// Files before k8sup wrote them, for reset.
    before: BTreeMap<(NodeName, String), Option<FileFact>>,
    /// CNI configuration that k8sup has in its record.
    set_aside: Vec<(NodeName, String)>,
    /// In this run a token was made, and the CA learned.
    minted: bool,
}

impl World {
    /// Bare machines.
    pub(crate) fn bare(cluster: Cluster, recording: impl Fn(&Host) -> &'static str) -> Self {
        let hosts = cluster
            .hosts
            .iter()
            .map(|host| (host.name.clone(), world::machine(recording(host), host)));
        Self {
            hosts: hosts.collect(),
            cluster,
            live: None,
            down: BTreeSet::new(),
            done: Vec::new(),
            ca: None,
            authorities: 0,
            before: BTreeMap::new(),
            set_aside: Vec::new(),
            minted: false,
        }
    }

    /// The cluster of an inventory, applied to machines with trixie.
    pub(crate) fn built(inventory: &str) -> Self {
        let mut world = Self::bare(world::cluster(inventory), |_| "trixie-bare");
        world.converge();
        world
    }

    /// The same hosts and more, or fewer, under another inventory.
    pub(crate) fn under(&mut self, inventory: &str) {
        self.cluster = world::cluster(inventory);
        for host in &self.cluster.hosts {
            self.hosts
                .entry(host.name.clone())
                .or_insert_with(|| world::machine("trixie-bare", host));
        }
        self.hosts.retain(|name, _| self.cluster.host(name).is_some());
    }

    /// The machine was installed anew.
    pub(crate) fn reinstall(&mut self, host: &str) {
        let host = self.inventory(&world::name(host));
        self.hosts
            .insert(host.name.clone(), world::machine("trixie-bare", &host));
    }

    /// No API server answers.
    pub(crate) fn silence(&mut self) {
        for facts in self
            .hosts
            .values_mut()
            .filter(|facts| facts.kube.has("manifests/kube-apiserver.yaml"))
        {
            facts.kube.readyz = Seen::Unknown("connection refused".to_owned());
        }
    }

    /// What an observation of all this gives.
    pub(crate) fn facts(&self) -> Facts {
        let hosts = self.hosts.iter().map(|(name, facts)| {
            let observation = if self.down.contains(name) {
                world::silent()
            } else {
                Observation::Seen(Box::new(looked_at(facts)))
            };
            (name.clone(), observation)
        });
        Facts {
            hosts: hosts.collect(),
            cluster: self.seen_cluster(),
            ..Facts::default()
        }
    }

    fn seen_cluster(&self) -> Seen<ClusterFacts> {
        let controllers: Vec<&Host> = self.cluster.role(Role::Controller).collect();
        let up = |host: &&&Host| !self.down.contains(&host.name);
        let knows = |host: &&&Host| self.hosts[&host.name].kube.has("admin.conf");
        let answers = |host: &&&Host| {
            self.hosts[&host.name]
                .kube
                .readyz
                .present()
                .is_some_and(|answer| answer == "ok")
        };
        if let (Some(host), Some(live)) = (controllers.iter().filter(up).filter(knows).find(answers), &self.live) {
            return Seen::Present(ClusterFacts {
                asked: Some(host.name.clone()),
                ..live.clone()
            });
        }
        if controllers.iter().filter(up).any(|host| knows(&host)) {
            Seen::Unknown("no API server answers".to_owned())
        } else if controllers.iter().all(|host| up(&host)) {
            Seen::Absent
        } else {
            Seen::Unknown("a controller could not be looked at".to_owned())
        }
    }

    /// The plan for what is.
    pub(crate) fn plan(&self) -> Plan {
        world::plan(&self.cluster, &self.facts())
    }

    /// One host's facts.
    pub(crate) fn host(&mut self, name: &NodeName) -> &mut HostFacts {
        self.hosts.get_mut(name).unwrap()
    }

    fn inventory(&self, name: &NodeName) -> Host {
        self.cluster.host(name).unwrap().clone()
    }
}

/// What the probe leaves out on a host that is in a cluster.
fn looked_at(facts: &HostFacts) -> HostFacts {
    let mut facts = facts.clone();
    if facts.kube.has("kubelet.conf") {
        let reason = "not looked at on a host that is in a cluster".to_owned();
        let platform = &mut facts.platform;
        platform.modules = Seen::Unknown(reason.clone());
        platform.disks = Seen::Unknown(reason.clone());
        platform.clock_unsynchronised = Seen::Unknown(reason.clone());
        platform.fdatasync = Seen::Unknown(reason);
    }
    facts
}
