//! etcd's members, and its own rules for who comes and goes.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use k8sup::cluster::{Host, NodeName, Role};
use k8sup::facts::Seen;
use k8sup::facts::cluster::Member;

use super::World;

impl World {
    pub(super) fn members(&mut self) -> &mut Vec<Member> {
        match &mut self.api().members {
            Seen::Present(members) => members,
            other => panic!("{other:?}"),
        }
    }

    /// etcd's own rules: one learner, all members started.
    pub(super) fn assert_etcd_takes_another(&mut self, host: &Host) {
        let members = self.members();
        assert!(
            !members.iter().any(|member| member.learner),
            "too many learner members in cluster: {members:?}"
        );
        let peer = format!("https://{}:2380", host.address);
        assert!(
            !members.iter().any(|member| member.peer_urls.contains(&peer)),
            "{} is a member already",
            host.name
        );
    }

    /// The next controller's: nobody is half a member.
    pub(super) fn etcd_turn(&mut self, host: &NodeName) {
        self.assert_leads(host);
        let unsteady = |member: &&Member| member.learner || member.name.is_empty();
        let members = self.api().members.present().unwrap().clone();
        assert!(
            !members.iter().any(|member| unsteady(&member)),
            "etcd is not steady: {members:?}"
        );
        self.api().uploaded_certs = Seen::Present(());
    }

    /// As the script does: a voter goes only when most of the others are well.
    pub(super) fn leave_etcd(&mut self, address: Ipv4Addr) {
        let peer = format!("https://{address}:2380");
        let healthy: BTreeSet<String> = self
            .cluster
            .role(Role::Controller)
            .filter(|host| !self.down.contains(&host.name) && self.hosts[&host.name].kube.etcd_data)
            .map(|host| format!("https://{}:2380", host.address))
            .collect();
        let members = self.members();
        let Some(place) = members.iter().position(|member| member.peer_urls.contains(&peer)) else {
            return;
        };
        if !members[place].learner {
            let others: Vec<&Member> = members
                .iter()
                .filter(|member| !member.learner && !member.peer_urls.contains(&peer))
                .collect();
            let well = others
                .iter()
                .filter(|member| healthy.contains(&member.peer_urls[0]))
                .count();
            assert!(
                well * 2 > others.len(),
                "removing {peer} would lose the quorum: {members:?}"
            );
        }
        members.remove(place);
    }
}

pub(super) fn voter(host: &Host) -> Member {
    Member {
        id: format!("{:x}", u32::from(host.address)),
        name: host.name.to_string(),
        peer_urls: vec![format!("https://{}:2380", host.address)],
        learner: false,
    }
}
