//! The plan of `apply`: from what is to what the inventory wants.
//!
//! It reads top-down: what stands in the way, where each host stands, who leads, and then one
//! lane for every host. Nothing here looks at anything but its arguments.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use super::fitness;
use super::standing::{self, Standing};
use super::{Gate, Lane, Plan, Planned, Step, differences, identity, paths};
use crate::check::{self, Check, Finding, Level};
use crate::cluster::decision::Source;
use crate::cluster::{Cluster, Decision, Host, NodeName, Role};
use crate::concern::{
    boot, clock, containerd, firewall, kernel, kubelet, leftovers, links, load_balancer, names, packages, swap,
};
use crate::execute::late::TOKEN_PREFIX;
use crate::facts::paths::Proof;
use crate::facts::{ClusterFacts, Facts, HostFacts, Observation, Seen, Unreachable};
use crate::render::{flannel, haproxy, kubeadm};

mod settings;
mod single;

/// What the person wants beside the inventory.
#[derive(Debug, Clone, Default)]
pub struct Intent {
    /// Only these hosts are changed; `None` is all.
    pub only: Option<BTreeSet<NodeName>>,
    /// Flannel's upstream manifest, its digest already checked.
    pub manifest: String,
}

impl Intent {
    /// The host is to be changed.
    #[must_use]
    pub fn includes(&self, host: &NodeName) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(host))
    }
}

/// Plans an apply.
///
/// # Errors
/// With everything that stands in the way; then nothing must be changed anywhere.
pub fn plan(cluster: &Cluster, facts: &Facts, intent: &Intent) -> Result<Plan, Vec<Finding>> {
    let mut planner = Planner::new(cluster, facts, intent);
    planner.look();
    if planner.blockers.is_empty() {
        planner.decide();
    }
    if planner.blockers.is_empty() {
        Ok(planner.finish())
    } else {
        Err(planner.blockers)
    }
}

/// Which ways through the network have to be proven before this apply; none when no host is to come.
#[must_use]
pub fn proof(cluster: &Cluster, facts: &Facts, intent: &Intent) -> Proof {
    let mut planner = Planner::new(cluster, facts, intent);
    planner.look();
    let coming = planner.parts.iter().filter(|part| part.comes());
    let coming = coming.map(|part| part.host.name.clone());
    let coming = coming.filter(|host| intent.includes(host)).collect();
    paths::proof(cluster, &planner.parts, &coming)
}

/// Everything that is found, whatever its level: nothing is planned of it.
///
/// Where something stands in the way, what the steps before Kubernetes would mend is told all the same.
#[must_use]
pub fn examine(cluster: &Cluster, facts: &Facts, intent: &Intent) -> Vec<Finding> {
    let mut planner = Planner::new(cluster, facts, intent);
    planner.look();
    if planner.blockers.is_empty() {
        planner.decide();
    } else {
        planner.prepare_strangers_apart();
    }
    let blockers = std::mem::take(&mut planner.blockers);
    let plan = planner.finish();
    let mut found = blockers;
    found.extend(plan.fixes().cloned());
    found.extend(plan.warnings);
    let place = |finding: &Finding| {
        let host = finding.host.as_ref()?;
        cluster.hosts.iter().position(|known| known.name == *host)
    };
    found.sort_by_key(place);
    found
}

/// A host that takes part: reachable, and not left out by the person.
pub(super) struct Member<'a> {
    pub(super) host: &'a Host,
    pub(super) facts: &'a HostFacts,
    pub(super) standing: Standing,
}

impl Member<'_> {
    /// A node that is not in the cluster yet: it would join.
    pub(super) fn comes(&self) -> bool {
        self.host.role != Role::LoadBalancer && matches!(self.standing, Standing::Bare | Standing::HalfMade(_))
    }
}

struct Planner<'a> {
    cluster: &'a Cluster,
    facts: &'a Facts,
    intent: &'a Intent,
    /// What the API says, where there is one that answers.
    live: Option<&'a ClusterFacts>,
    sans: Vec<String>,
    /// Flannel's manifest, once somebody asked for it.
    flannel: OnceCell<Result<flannel::Rendered, flannel::FlannelError>>,
    parts: Vec<Member<'a>>,
    lanes: BTreeMap<NodeName, Vec<Planned>>,
    blockers: Vec<Finding>,
    warnings: Vec<Finding>,
    continues: Option<String>,
    left_out: Vec<NodeName>,
}

impl<'a> Planner<'a> {
    fn new(cluster: &'a Cluster, facts: &'a Facts, intent: &'a Intent) -> Self {
        Self {
            cluster,
            facts,
            intent,
            live: facts.cluster.present().filter(|live| live.nodes.present().is_some()),
            sans: kubeadm::cert_sans(cluster),
            flannel: OnceCell::new(),
            parts: Vec::new(),
            lanes: BTreeMap::new(),
            blockers: Vec::new(),
            warnings: Vec::new(),
            continues: None,
            left_out: Vec::new(),
        }
    }

    /// Takes a finding in: a refusal stops the run, unless the person takes it on themselves.
    fn report(&mut self, finding: Finding) {
        let Check {
            code, level, allowable, ..
        } = *finding.check;
        let allowed = allowable && self.cluster.allow.contains(code);
        match level {
            // Without a step there is nobody to mend it.
            Level::Warn | Level::Fix => self.warnings.push(finding),
            Level::Refuse if allowed => self.warnings.push(Finding {
                message: format!("allowed, at your own risk ({code}): {}", finding.message),
                hint: String::new(),
                check: &check::ALLOWED,
                ..finding
            }),
            Level::Refuse => self.blockers.push(finding),
        }
    }

    fn report_all(&mut self, findings: impl IntoIterator<Item = Finding>) {
        for finding in findings {
            self.report(finding);
        }
    }

    // --- what is -------------------------------------------------------------------

    fn look(&mut self) {
        let ca = self.cluster_ca();
        let mut absent = Vec::new();
        for host in &self.cluster.hosts {
            match self.facts.hosts.get(&host.name) {
                Some(Observation::Seen(facts)) => {
                    let standing = self.standing(host, facts, ca.as_deref());
                    self.parts.push(Member { host, facts, standing });
                }
                Some(Observation::Unreachable(why)) => absent.push((host, why.clone())),
                None => absent.push((host, Unreachable::unknown("it was not looked at"))),
            }
        }
        self.compare_authorities();
        let founding = self.live.is_none() && !self.parts.iter().any(|part| part.standing == Standing::Started);
        for (host, why) in absent {
            self.leave_out(host, &why, founding);
        }
        let mut found = identity::contradictions(self.cluster, &self.parts, self.live, ca.as_deref());
        let contradicted: BTreeSet<_> = found.iter().filter_map(|blocker| blocker.host.clone()).collect();
        // Of a machine that is not the one which is meant nothing else is of interest.
        let told = |host: &Option<NodeName>| host.as_ref().is_some_and(|host| contradicted.contains(host));
        let differs = differences::unchangeable(self.cluster, self.facts, self.live);
        self.report_all(differs.into_iter().filter(|finding| !told(&finding.host)));
        for part in &self.parts {
            let name = &part.host.name;
            match &part.standing {
                Standing::Foreign(_) | Standing::Unknown(_) if contradicted.contains(name) => {}
                Standing::Foreign(why) => {
                    let files: Vec<_> = part.facts.kube.files.iter().take(8).cloned().collect();
                    let hint = if standing::orphaned(&part.facts.kube) {
                        format!(
                            "nothing is deleted. A reset that ended early: `k8sup reset --host {name}` again; \
                             else put the manifest back, or move the data away if nobody needs it"
                        )
                    } else {
                        format!("if nothing on it is needed any more: `k8sup reset --host {name}`, then apply again")
                    };
                    found.push(
                        check::FOREIGN
                            .on(name, why.clone())
                            .evidence(files.join("\n"))
                            .hint(hint),
                    );
                }
                Standing::Unknown(why) => {
                    let check = if self.out_of_sight(why) {
                        &check::OUT_OF_SIGHT
                    } else {
                        &check::UNTOLD
                    };
                    let message = format!("it cannot be told whether it belongs to the cluster: {why}");
                    found.push(check.on(name, message));
                }
                _ => {}
            }
        }
        self.report_all(found);
        self.report_all(identity::oddities(self.cluster, &self.parts, self.live));
        let named: Vec<_> = self
            .parts
            .iter()
            .filter(|part| self.intent.includes(&part.host.name))
            .collect();
        let unfit = fitness::findings(self.cluster, &self.parts, &named, self.live);
        self.report_all(unfit);
        self.report_all(fitness::paths::findings(self.cluster, &self.parts, &self.facts.paths));
    }

    fn leave_out(&mut self, host: &Host, why: &Unreachable, founding: bool) {
        let included = self.intent.includes(&host.name);
        let what = why.what();
        // A controller that nobody can look at may hold the cluster already, whether it is asked for or not.
        if founding && (host.role == Role::Controller || included && host.role == Role::LoadBalancer) {
            let message = format!("the {} {what}, and a new cluster needs it: {}", host.role, why.reason);
            self.report(check::OUT_OF_REACH.on(&host.name, message).hint(why.what_to_do()));
        } else if included {
            self.left_out.push(host.name.clone());
            let message = format!("left out: {}", why.reason);
            self.report(check::LEFT_OUT.on(&host.name, message).hint(why.what_to_do()));
        }
    }

    /// Nobody can tell what a worker belongs to, for no other reason than that its controllers are out of sight.
    fn out_of_sight(&self, why: &str) -> bool {
        let mut controllers = self
            .cluster
            .role(Role::Controller)
            .map(|host| self.facts.hosts.get(&host.name));
        matches!(&self.facts.cluster, Seen::Unknown(reason) if reason == why)
            && controllers.all(|seen| match seen {
                Some(Observation::Seen(facts)) => !facts.kube.has("admin.conf"),
                Some(Observation::Unreachable(_)) | None => true,
            })
    }

    fn standing(&self, host: &Host, facts: &HostFacts, ca: Option<&str>) -> Standing {
        match (host.role, self.live) {
            (Role::LoadBalancer, _) => Standing::Bare,
            (_, Some(live)) => standing::in_cluster(host, facts, live, ca),
            (_, None) => match standing::before_cluster(host, facts, &self.sans) {
                Standing::Foreign(why) if host.role == Role::Worker => self.beside_silence(facts, why),
                standing => standing,
            },
        }
    }

    /// A worker of a cluster while none answers: it may be that of the control planes which were started, or of one
    /// that is out of sight.
    fn beside_silence(&self, facts: &HostFacts, foreign: String) -> Standing {
        let started = self.parts.iter().filter(|part| part.standing == Standing::Started);
        let mut authorities = started.filter_map(|part| part.facts.kube.ca.present()).peekable();
        let own = standing::own_ca(&facts.kube);
        match &self.facts.cluster {
            Seen::Unknown(why) if authorities.peek().is_none() => Standing::Unknown(why.clone()),
            _ if authorities.any(|ca| own == Some(ca.spki_sha256.as_str())) => Standing::Member,
            _ => Standing::Foreign(foreign),
        }
    }

    /// Before there is a cluster: a controller that has an authority of its own is not to be given the founder's. What
    /// k8sup left half made is cleared with the rest.
    fn compare_authorities(&mut self) {
        if self.live.is_some() {
            return;
        }
        let started = |part: &&Member<'_>| part.standing == Standing::Started;
        let controller = |part: &&Member<'_>| part.host.role == Role::Controller;
        let founder = self.parts.iter().find(started);
        let Some(founder) = founder.or_else(|| self.parts.iter().find(controller)) else {
            return;
        };
        let name = founder.host.name.clone();
        let authority = founder.facts.kube.ca.present().map(|ca| ca.spki_sha256.clone());
        for part in &mut self.parts {
            let own = part.facts.kube.ca.present().map(|ca| &ca.spki_sha256);
            let may_be_ours = match part.standing {
                Standing::Bare => false,
                Standing::HalfMade(_) => part.facts.record.present().is_some(),
                _ => true,
            };
            if part.host.role == Role::Controller
                && part.host.name != name
                && !may_be_ours
                && own.is_some()
                && own != authority.as_ref()
            {
                part.standing = Standing::Foreign(format!(
                    "its certificate authority in /etc/kubernetes/pki is not that of {name}, on which the cluster is founded"
                ));
            }
        }
    }

    /// The authority of the cluster that answers: that of the controller which was asked.
    fn cluster_ca(&self) -> Option<String> {
        let asked = self.live?.asked.as_ref()?;
        match self.facts.hosts.get(asked)? {
            Observation::Seen(facts) => facts.kube.ca.present().map(|ca| ca.spki_sha256.clone()),
            Observation::Unreachable(_) => None,
        }
    }

    // --- what is to be done -----------------------------------------------------------

    fn decide(&mut self) {
        for index in 0..self.parts.len() {
            if self.intent.includes(&self.parts[index].host.name) {
                self.prepare(index);
            }
        }
        let Some(leader) = self.leader() else { return };
        if let (Some(_), Standing::HalfMade(why)) = (self.live, &self.parts[leader].standing) {
            // What answers for the cluster is not cleared, whatever its disk looks like.
            let (name, message) = (
                self.parts[leader].host.name.clone(),
                format!("its API server answers, but {why}"),
            );
            self.report(check::LEADER_HALF_MADE.on(&name, message));
        }
        if !self.blockers.is_empty() {
            return;
        }
        let joining: Vec<usize> = (0..self.parts.len())
            .filter(|index| *index != leader || self.live.is_some())
            .filter(|index| self.intent.includes(&self.parts[*index].host.name))
            .filter(|index| self.parts[*index].comes())
            .collect();
        self.lead(leader, &joining);
        for index in &joining {
            self.join(*index);
        }
        self.conclude(leader, &joining);
    }

    /// What is to be mended on hosts that are not somebody else's.
    fn prepare_strangers_apart(&mut self) {
        for index in 0..self.parts.len() {
            let part = &self.parts[index];
            let strange = matches!(part.standing, Standing::Foreign(_) | Standing::Unknown(_));
            if self.intent.includes(&part.host.name) && !strange {
                self.prepare(index);
            }
        }
    }

    fn prepare(&mut self, index: usize) {
        let (host, facts) = (self.parts[index].host, self.parts[index].facts);
        let comes = self.parts[index].comes();
        let mut steps = firewall::steps(self.cluster, host, facts);
        if comes {
            steps.extend(boot::steps(self.cluster, facts));
        }
        if host.role != Role::LoadBalancer {
            steps.extend(swap::steps(facts));
        }
        steps.extend(names::machine_id(facts));
        steps.extend(kernel::steps(self.cluster, host, facts));
        steps.extend(names::steps(self.cluster, host, facts));
        if host.role != Role::LoadBalancer {
            steps.extend(links::steps(self.cluster, facts));
            steps.extend(kubelet::flags(self.cluster, facts));
        }
        steps.extend(packages::steps(self.cluster, host, facts));
        if host.role == Role::LoadBalancer {
            match haproxy::config(self.cluster) {
                Ok(config) => steps.extend(load_balancer::steps(self.cluster, host, facts, &config)),
                Err(error) => self.report(check::DEFECT.on(&host.name, error.to_string())),
            }
        } else {
            match containerd::steps(self.cluster, facts) {
                Ok(found) => {
                    steps.extend(found);
                    steps.extend(clock::steps(facts).filter(|_| comes));
                }
                Err(finding) => self.report(Finding {
                    host: Some(host.name.clone()),
                    ..finding
                }),
            }
        }
        self.lanes.entry(host.name.clone()).or_default().extend(steps);
    }

    /// The controller that acts for the cluster: the one that was asked, or the one to found it on.
    fn leader(&mut self) -> Option<usize> {
        if let Some(live) = self.live {
            return self
                .parts
                .iter()
                .position(|part| Some(&part.host.name) == live.asked.as_ref());
        }
        let started: Vec<usize> = (0..self.parts.len())
            .filter(|index| self.parts[*index].standing == Standing::Started)
            .collect();
        if !started.is_empty() {
            // Nothing is changed before the cluster can be compared with the inventory.
            self.lanes.clear();
            // A control plane was started and does not answer (yet): never founded anew beside its data.
            for index in started {
                let host = self.parts[index].host;
                let step = Step::AwaitApi { address: host.address };
                self.lane(&host.name).push(Planned::new(
                    step,
                    "a control plane was started here, but does not answer yet",
                ));
            }
            self.continues = Some("what else there is to do shows when the API server answers".to_owned());
            return None;
        }
        let first = self.parts.iter().position(|part| part.host.role == Role::Controller);
        match first {
            None => {
                self.report(
                    check::OUT_OF_REACH
                        .at_large("no controller can be reached")
                        .hint("see that they are up and in reach, then run again"),
                );
                None
            }
            Some(index) if !self.intent.includes(&self.parts[index].host.name) => {
                let name = self.parts[index].host.name.clone();
                let message = "there is no cluster yet, and its first controller is left out by --host";
                self.report(check::LEADER_NOT_NAMED.on(&name, message));
                None
            }
            first => first,
        }
    }

    /// Whether what the whole cluster shares may be changed: the person includes the host that does it, or hosts that
    /// are to join cannot do without.
    fn acts_for_all(&self, leader: usize, joining: &[usize]) -> bool {
        !joining.is_empty() || self.intent.includes(&self.parts[leader].host.name)
    }

    /// What the whole cluster shares differs, but only other hosts are asked for.
    fn left_to_all(&mut self, leader: usize, what: &str) {
        let message = format!(
            "{what}; left as it is, since --host leaves out {}, which would do it",
            self.parts[leader].host.name
        );
        self.report(check::LEFT_TO_ALL.at_large(message).hint(""));
    }

    fn lane(&mut self, host: &NodeName) -> &mut Vec<Planned> {
        self.lanes.entry(host.clone()).or_default()
    }

    /// What the leader does for the cluster before others join.
    fn lead(&mut self, leader: usize, joining: &[usize]) {
        let (host, facts) = (self.parts[leader].host, self.parts[leader].facts);
        let config = kubeadm::init_config(self.cluster, host, &self.traits(host, facts));
        let balanced = self.balanced();
        let mut steps = Vec::new();
        match self.live {
            None => {
                if let Standing::HalfMade(why) = &self.parts[leader].standing {
                    let clear = Planned::new(Step::ClearHalfMade { controller: true }, why.clone());
                    steps.push(clear.fixes([check::HALF_MADE.at_large(why.clone())]));
                }
                steps.extend(leftovers::steps(facts));
                steps.push(self.pull(host, "kubeadm init needs them"));
                steps.extend(self.reach_endpoint(host));
                steps.push(
                    Planned::new(Step::Found { config: config.clone() }, "there is no cluster yet")
                        .needs(balanced.clone()),
                );
                steps.push(
                    Planned::new(Step::Publish { config: config.clone() }, "there is no cluster yet")
                        .opens(Gate::Initialised),
                );
            }
            Some(live) => {
                let missing = unpublished(live);
                if !missing.is_empty() && !self.acts_for_all(leader, joining) {
                    self.left_to_all(
                        leader,
                        &format!("kubeadm init was ended early: {} missing", missing.join(", ")),
                    );
                } else if !missing.is_empty() {
                    let why = format!("kubeadm init was ended early: {} missing", missing.join(", "));
                    steps.push(
                        Planned::new(Step::Publish { config: config.clone() }, why.clone())
                            .fixes([check::NOT_PUBLISHED.at_large(why)])
                            .needs(balanced)
                            .opens(Gate::Initialised),
                    );
                } else if !joining.is_empty() {
                    steps.push(Planned::new(Step::IssueToken, "hosts are to join").opens(Gate::Initialised));
                }
            }
        }
        steps.extend(self.flannel(leader, joining));
        for index in joining {
            let part = &self.parts[*index];
            if self.remembers(part) {
                let step = Step::ForgetNode {
                    node: part.host.name.clone(),
                    address: part.host.address,
                };
                let why = "the cluster still lists it, but the host is not in it any more";
                let mut planned = Planned::new(step, why).fixes([check::STILL_LISTED.on(&part.host.name, why)]);
                if matches!(part.standing, Standing::HalfMade(_)) {
                    planned = planned.only_if(Gate::Cleared(part.host.name.clone()));
                }
                steps.push(planned.opens(Gate::Forgotten(part.host.name.clone())));
            }
        }
        let mut before: Option<NodeName> = None;
        for index in joining
            .iter()
            .filter(|index| self.parts[**index].host.role == Role::Controller)
        {
            let controller = self.parts[*index].host.name.clone();
            let step = Step::EtcdTurn {
                controller: controller.clone(),
                config: config.clone(),
            };
            let turn =
                Planned::new(step, "etcd takes one new member at a time").opens(Gate::EtcdTurn(controller.clone()));
            steps.push(turn.after(before.take().map(Gate::Joined)));
            before = Some(controller);
        }
        self.lane(&host.name).extend(steps);
    }

    /// What a host does to become part of the cluster.
    fn join(&mut self, index: usize) {
        let part = &self.parts[index];
        let (host, facts) = (part.host, part.facts);
        let controller = host.role == Role::Controller;
        let mut steps = Vec::new();
        let mut gates = vec![Gate::Initialised];
        if let Standing::HalfMade(why) = &part.standing {
            let clear = Planned::new(Step::ClearHalfMade { controller }, why.clone());
            let clear = clear.fixes([check::HALF_MADE.at_large(why.clone())]);
            steps.push(clear.opens(Gate::Cleared(host.name.clone())));
        }
        steps.extend(leftovers::steps(facts));
        if self.remembers(part) {
            gates.push(Gate::Forgotten(host.name.clone()));
        }
        steps.push(self.pull(host, "the host is to join"));
        steps.extend(self.reach_endpoint(host));
        if controller {
            gates.push(Gate::EtcdTurn(host.name.clone()));
        }
        let step = Step::Join {
            config: kubeadm::join_config(self.cluster, host, &self.traits(host, facts)),
            discovery: kubeadm::discovery_kubeconfig(self.cluster),
            address: host.address,
            controller,
        };
        steps.push(
            Planned::new(step, "it is not in the cluster")
                .needs(gates)
                .opens(Gate::Joined(host.name.clone())),
        );
        self.lane(&host.name).extend(steps);
    }

    /// What comes after the joins: finishing touches on each host, then the leader's last words.
    fn conclude(&mut self, leader: usize, joining: &[usize]) {
        let mut last = Vec::new();
        for index in 0..self.parts.len() {
            let part = &self.parts[index];
            let (host, facts) = (part.host, part.facts);
            if host.role == Role::LoadBalancer || !self.intent.includes(&host.name) {
                continue;
            }
            let joins = joining.contains(&index);
            let mut own = Vec::new();
            if part.standing == Standing::Member {
                own.extend(kubelet::server(self.cluster, host, facts));
            }
            if part.standing == Standing::Unfinished && facts.kube.has("bootstrap-kubelet.conf") {
                let why = "kubeadm join was ended before its last clean-up";
                own.push(Planned::new(Step::FinishJoin, why).fixes([check::HALF_MADE.at_large(why)]));
            }
            if host.role == Role::Controller && (joins || index == leader || part.standing != Standing::Bare) {
                own.extend(self.user_kubeconfig(facts, joins));
            }
            if let Some(settings) = self.node_settings(host, index == leader && self.live.is_none() || joins) {
                last.push(if joins {
                    settings.only_if(Gate::Joined(host.name.clone()))
                } else {
                    settings
                });
            }
            let name = host.name.clone();
            self.lane(&name).extend(own);
        }
        last.extend(self.resolvers(leader, joining));
        let publishes = self.live.is_none_or(|live| !unpublished(live).is_empty());
        let stale = self.live.is_some_and(has_credentials);
        if (publishes || stale) && self.acts_for_all(leader, joining) || !joining.is_empty() {
            let joined = joining
                .iter()
                .map(|index| Gate::Joined(self.parts[*index].host.name.clone()));
            let why = if stale {
                "an earlier run left them"
            } else {
                "nobody else is to join with them"
            };
            let old = stale.then(|| {
                check::OLD_CREDENTIALS.at_large("bootstrap tokens or certificates of an earlier run are left")
            });
            last.push(
                Planned::new(Step::Revoke, why)
                    .fixes(old)
                    .after(joined.collect::<Vec<_>>()),
            );
        }
        let name = self.parts[leader].host.name.clone();
        self.lane(&name).extend(last);
    }

    /// Nobody is asked for before its firewall lets packets in.
    fn wait_for_firewalls(lanes: &mut [Lane]) {
        let opens = |lane: &Lane| {
            let gate = Gate::LetsIn(lane.host.clone());
            lane.steps
                .iter()
                .any(|planned| planned.opens.as_ref() == Some(&gate))
                .then_some(gate)
        };
        let gates: Vec<Gate> = lanes.iter().filter_map(opens).collect();
        for lane in lanes {
            let others = gates
                .iter()
                .filter(|gate| **gate != Gate::LetsIn(lane.host.clone()))
                .cloned();
            let asks = |planned: &&mut Planned| matches!(planned.step, Step::Reach { .. } | Step::Join { .. });
            if let Some(first) = lane.steps.iter_mut().find(asks) {
                first.after.extend(others);
            }
        }
    }

    fn finish(mut self) -> Plan {
        let mut lanes: Vec<Lane> = self
            .cluster
            .hosts
            .iter()
            .filter_map(|host| {
                let mut steps = self.lanes.remove(&host.name).filter(|steps| !steps.is_empty())?;
                for finding in steps.iter_mut().flat_map(|planned| &mut planned.fixes) {
                    finding.host.get_or_insert_with(|| host.name.clone());
                }
                Some(Lane {
                    host: host.name.clone(),
                    role: host.role,
                    steps,
                })
            })
            .collect();
        Self::wait_for_firewalls(&mut lanes);
        let mut steps = lanes.iter().flat_map(|lane| &lane.steps);
        let founds = steps.any(|planned| matches!(planned.step, Step::Found { .. }));
        Plan {
            decisions: if founds { self.decisions() } else { Vec::new() },
            lanes,
            warnings: self.warnings,
            continues: self.continues,
            left_out: self.left_out,
        }
    }

    /// What the founding decides for good: the inventory's part, and what processors the nodes have.
    fn decisions(&self) -> Vec<Decision> {
        let mut decisions = self.cluster.decisions.clone();
        let mut machines: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for part in self.parts.iter().filter(|part| part.host.role != Role::LoadBalancer) {
            let architecture = part.facts.architecture.present().map_or("unknown", String::as_str);
            machines.entry(architecture).or_default().push(part.host.name.as_str());
        }
        let images = match &self.cluster.images.repository {
            None => "there are images for it".to_owned(),
            Some(repository) => format!("nobody here can see whether {repository} has images for it"),
        };
        for (architecture, hosts) in machines {
            decisions.push(Decision::new(
                &format!("{architecture} nodes"),
                format!("{}; {images}", hosts.join(", ")),
                Source::Follows("from the hosts".to_owned()),
            ));
        }
        decisions
    }
}

/// What of `kubeadm init` the cluster still lacks.
fn unpublished(live: &ClusterFacts) -> Vec<&'static str> {
    let absent = [
        (live.kubeadm_config.is_absent(), "configmap kubeadm-config"),
        (live.kubelet_config.is_absent(), "configmap kubelet-config"),
        (
            live.cluster_admins.is_absent(),
            "clusterrolebinding kubeadm:cluster-admins",
        ),
        (live.cluster_info.is_absent(), "configmap cluster-info"),
        (live.coredns.is_absent(), "deployment coredns"),
        (live.kube_proxy.is_absent(), "daemonset kube-proxy"),
    ];
    absent
        .into_iter()
        .filter_map(|(absent, name)| absent.then_some(name))
        .collect()
}

/// Bootstrap tokens of k8sup, or uploaded certificates, are still there.
fn has_credentials(live: &ClusterFacts) -> bool {
    live.uploaded_certs.present().is_some()
        || live
            .bootstrap_tokens
            .present()
            .is_some_and(|ids| ids.iter().any(|id| id.starts_with(TOKEN_PREFIX)))
}
