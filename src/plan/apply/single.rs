//! The single steps of an apply: when each is needed, and what it carries.

use super::{Member, Planner};
use crate::check::{self, Finding};
use crate::cluster::{Host, NodeName, Role};
use crate::concern::{names, preflight};
use crate::facts::{HostFacts, Observation, Seen};
use crate::plan::{Gate, Planned, Step};
use crate::render::kubeadm::NodeTraits;
use crate::render::{coredns, flannel, images};

impl Planner<'_> {
    pub(super) fn traits(&self, host: &Host, facts: &HostFacts) -> NodeTraits {
        NodeTraits {
            resolv_conf: names::pod_resolv_conf(self.cluster, facts),
            ignored_checks: preflight::ignored(self.cluster, host, facts),
        }
    }

    /// Gates of the load balancers that are set up in this run.
    pub(super) fn balanced(&self) -> Vec<Gate> {
        let serves = |host: &Host| {
            let gate = Gate::LoadBalancerServes(host.name.clone());
            let opened = self
                .lanes
                .get(&host.name)
                .is_some_and(|lane| lane.iter().any(|p| p.opens.as_ref() == Some(&gate)));
            opened.then_some(gate)
        };
        self.cluster.role(Role::LoadBalancer).filter_map(serves).collect()
    }

    pub(super) fn reach_endpoint(&self, host: &Host) -> Option<Planned> {
        // Without a load balancer nobody listens there before kubeadm init.
        self.cluster.role(Role::LoadBalancer).next()?;
        let endpoint = &self.cluster.endpoint;
        let step = Step::Reach {
            what: "the endpoint".to_owned(),
            targets: vec![(endpoint.host.clone(), endpoint.port)],
            listening: true,
        };
        Some(Planned::new(step, format!("{} reaches the API through {endpoint}", host.name)).needs(self.balanced()))
    }

    pub(super) fn pull(&self, host: &Host, why: &str) -> Planned {
        let controller = host.role == Role::Controller;
        let mut images = vec![images::pause(self.cluster)];
        // The founding controller waits for nothing but the control plane; the kubelet pulls the rest meanwhile.
        if !(controller && self.live.is_none() && Some(&host.name) == self.first_controller()) {
            images.extend(images::of_every_node(self.cluster));
            if let Ok(rendered) = self.rendered_flannel() {
                images.extend(rendered.images.iter().cloned());
            }
        }
        images.sort();
        images.dedup();
        let step = Step::PullImages {
            images,
            control_plane: controller.then(|| self.cluster.version.to_string()),
            repository: self.cluster.images.repository.clone(),
        };
        Planned::new(step, why)
    }

    pub(super) fn first_controller(&self) -> Option<&NodeName> {
        self.parts
            .iter()
            .find(|part| part.host.role == Role::Controller)
            .map(|part| &part.host.name)
    }

    fn rendered_flannel(&self) -> &Result<flannel::Rendered, flannel::FlannelError> {
        self.flannel.get_or_init(|| self.render_flannel(&[]))
    }

    /// Flannel's manifest as it would be without some hosts.
    fn render_flannel(&self, without: &[usize]) -> Result<flannel::Rendered, flannel::FlannelError> {
        // A host that is out of sight has no say: its absence must not change what runs on all others.
        let known = |host: &&Host| {
            let place = self.parts.iter().position(|part| part.host.name == host.name);
            place.map_or(host.interface.is_some(), |index| !without.contains(&index))
        };
        let nodes = self.cluster.nodes().filter(known);
        let interfaces = nodes.map(|host| (host.name.clone(), self.interface(host))).collect();
        flannel::render(&self.intent.manifest, self.cluster, &interfaces)
    }

    /// The interface that Flannel must be told: the inventory's, or the one with the host's address
    /// where the default route leads elsewhere.
    pub(super) fn interface(&self, host: &Host) -> Option<String> {
        if host.interface.is_some() {
            return host.interface.clone();
        }
        let Some(Observation::Seen(facts)) = self.facts.hosts.get(&host.name) else {
            return None;
        };
        let own = facts
            .addresses
            .iter()
            .find(|entry| entry.address.addr() == host.address)?;
        let default = facts.routes.iter().find(|route| route.destination.prefix_len() == 0);
        (default.is_none_or(|route| route.interface != own.interface)).then(|| own.interface.clone())
    }

    /// The default route of a host leads elsewhere than through the interface with its address.
    fn other_way_out(&self, host: &Host) -> Option<Finding> {
        let Some(Observation::Seen(facts)) = self.facts.hosts.get(&host.name) else {
            return None;
        };
        let own = self.interface(host)?;
        let default = facts.routes.iter().find(|route| route.destination.prefix_len() == 0)?;
        let message = format!(
            "{} is on {own}, but the default route leads through {}",
            host.address, default.interface
        );
        Some(check::OTHER_WAY_OUT.on(&host.name, message))
    }

    pub(super) fn flannel(&mut self, leader: usize, joining: &[usize]) -> Option<Planned> {
        let (manifest, sha256) = match self.rendered_flannel() {
            Ok(rendered) => (rendered.yaml.clone(), rendered.sha256.clone()),
            Err(error) => {
                let message = format!("Flannel's manifest cannot be used: {error}");
                self.report(check::FLANNEL_MANIFEST.at_large(message));
                return None;
            }
        };
        let included = self.intent.includes(&self.parts[leader].host.name);
        let why = match self.live.map(|live| (&live.flannel, &live.flannel_hash)) {
            None => "there is no pod network yet".to_owned(),
            Some((Seen::Absent, _)) if self.acts_for_all(leader, joining) => "there is no pod network yet".to_owned(),
            Some((_, Seen::Present(hash))) if *hash == sha256 => return None,
            Some((_, Seen::Present(_))) if included => "its manifest differs".to_owned(),
            Some((_, Seen::Absent)) if included => "it was not applied by k8sup".to_owned(),
            // Hosts that join change it by themselves only where they are wired otherwise.
            Some((_, Seen::Present(hash)))
                if self.render_flannel(joining).is_ok_and(|others| others.sha256 == *hash) =>
            {
                "hosts that join have another interface".to_owned()
            }
            Some((_, Seen::Present(_) | Seen::Absent)) => {
                self.left_to_all(leader, "flannel is not as the inventory wants it");
                return None;
            }
            // A question without an answer is no reason to change anything.
            Some((_, Seen::Unknown(why))) => {
                let message = format!("flannel is left as it is, since it cannot be told how it is set up: {why}");
                self.report(check::FLANNEL_UNREAD.at_large(message));
                return None;
            }
        };
        let ways = self.cluster.nodes().filter(|host| host.interface.is_none());
        let ways = ways.filter_map(|host| self.other_way_out(host));
        Some(Planned::new(Step::Flannel { manifest }, why).fixes(ways))
    }

    /// The cluster lists the host, though the host itself knows nothing of it.
    pub(super) fn remembers(&self, part: &Member<'_>) -> bool {
        let Some(live) = self.live else { return false };
        let peer = format!("https://{}:2380", part.host.address);
        let member = live
            .members
            .present()
            .is_some_and(|all| all.iter().any(|member| member.peer_urls.contains(&peer)));
        let node = live
            .nodes
            .present()
            .is_some_and(|nodes| nodes.contains_key(part.host.name.as_str()));
        member || node
    }

    pub(super) fn user_kubeconfig(&self, facts: &HostFacts, joins: bool) -> Option<Planned> {
        let login = &facts.login;
        let wanted = facts.kube.ca.present().map(|ca| ca.spki_sha256.as_str());
        let server = format!("https://{}", self.cluster.endpoint);
        let right = !joins
            && wanted.is_some()
            && login.kubeconfig_ca.present().map(String::as_str) == wanted
            && login.kubeconfig_server.as_deref() == Some(server.as_str());
        let step = Step::UserKubeconfig {
            user: login.user.clone(),
            home: login.home.clone(),
        };
        let other = login.kubeconfig_ca.present();
        let other = other.filter(|ca| wanted != Some(ca.as_str())).map(|_| {
            let server = login
                .kubeconfig_server
                .as_deref()
                .unwrap_or("a server that it does not name");
            check::OTHER_KUBECONFIG.at_large(format!("{}/.kube/config leads to {server}", login.home))
        });
        let why = format!("{} has no kubeconfig of this cluster", login.user);
        (!right).then(|| Planned::new(step, why).fixes(other))
    }

    pub(super) fn resolvers(&mut self, leader: usize, joining: &[usize]) -> Option<Planned> {
        if self.cluster.dns_resolvers.is_empty() {
            return None;
        }
        let corefile = match self.live.map(|live| (&live.coredns, &live.corefile)) {
            Some((_, Seen::Present(corefile))) => corefile,
            None | Some((Seen::Absent, Seen::Absent)) => {
                // It comes with this run, where that publishes what is missing.
                let comes = self.acts_for_all(leader, joining);
                self.continues = comes.then(|| "CoreDNS' resolvers are set when CoreDNS is there".to_owned());
                return None;
            }
            // Another round would not see more.
            Some((_, Seen::Absent)) => return self.without_corefile("configmap kube-system/coredns has no Corefile"),
            Some((_, Seen::Unknown(why))) => return self.without_corefile(why),
        };
        match coredns::with_resolvers(corefile, &self.cluster.dns_resolvers) {
            Ok(wanted) if wanted == *corefile => None,
            _ if !self.intent.includes(&self.parts[leader].host.name) => {
                self.left_to_all(leader, "CoreDNS forwards to other resolvers than the inventory's");
                None
            }
            Ok(wanted) => Some(
                Planned::new(
                    Step::Resolvers {
                        corefile: wanted.clone(),
                    },
                    "CoreDNS forwards to other resolvers",
                )
                .changes("configmap kube-system/coredns", Some(corefile), Some(&wanted)),
            ),
            Err(error) => {
                self.report(check::COREFILE.at_large(format!("CoreDNS' Corefile cannot be changed: {error}")));
                None
            }
        }
    }

    fn without_corefile(&mut self, why: &str) -> Option<Planned> {
        let message = format!("CoreDNS' resolvers are left as they are, since its Corefile cannot be read: {why}");
        self.report(check::COREFILE_UNREAD.at_large(message));
        None
    }
}
