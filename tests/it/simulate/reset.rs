//! What goes again: half-made nodes, whole ones, and what k8sup did to the host.

use std::collections::BTreeSet;

use k8sup::cluster::NodeName;
use k8sup::facts::Seen;
use k8sup::facts::kube::KubeFacts;
use k8sup::plan::step::{ClearStep, ResetStep};

use super::World;

impl World {
    pub(super) fn clear(&mut self, host: &NodeName, controller: bool) {
        let kube = &mut self.host(host).kube;
        let cni = kube
            .files
            .iter()
            .filter(|file| file.starts_with("/etc/cni/"))
            .cloned()
            .collect();
        let data = kube.etcd_data && !controller;
        *kube = KubeFacts {
            files: cni,
            etcd_data: data,
            etcd_data_dir: kube.etcd_data_dir.clone(),
            etcd_dir_used: data,
            ..KubeFacts::default()
        };
    }

    pub(super) fn clear_left(&mut self, host: &NodeName, left: &ClearStep) {
        let ClearStep {
            aside,
            stale,
            links,
            network,
            keep_cni,
        } = left;
        for file in aside {
            self.set_aside.push((host.clone(), file.clone()));
            self.record(host).files.entry(file.clone()).or_default().existed = true;
        }
        let facts = self.host(host);
        facts
            .kube
            .files
            .retain(|file| !aside.contains(file) && !stale.contains(file));
        if *network {
            facts.links.retain(|link, _| !links.contains(link));
            facts.addresses.retain(|entry| !links.contains(&entry.interface));
            facts
                .network_leftovers
                .retain(|left| left.starts_with("mount ") || *keep_cni && !left.contains("flannel"));
            facts.surroundings.paths.remove("/run/flannel");
            if !keep_cni {
                facts.surroundings.paths.remove("/var/lib/cni");
            }
        }
    }

    pub(super) fn reset_node(&mut self, name: &NodeName, reset: &ResetStep) {
        let ResetStep {
            etcd_data_dir,
            keep_member,
            cni_files,
            homes,
            links,
            keep,
        } = reset;
        let host = self.inventory(name);
        assert!(homes.contains(&self.host(name).login.home));
        let last = self
            .live
            .as_ref()
            .and_then(|live| live.members.present())
            .is_none_or(|members| members.len() == 1);
        if etcd_data_dir.is_some() && !keep_member && !last && self.host(name).kube.etcd_data {
            // etcd may refuse; the data goes all the same.
            let peer = format!("https://{}:2380", host.address);
            self.members().retain(|member| !member.peer_urls.contains(&peer));
        }
        let gone = last && etcd_data_dir.is_some();
        let facts = self.host(name);
        let left: BTreeSet<String> = facts
            .kube
            .files
            .iter()
            .filter(|file| file.starts_with("/etc/cni/") && !cni_files.contains(file) || keep.contains(file))
            .cloned()
            .collect();
        let data = facts.kube.etcd_data && etcd_data_dir.is_none();
        facts.kube = KubeFacts {
            files: left,
            etcd_data: data,
            etcd_data_dir: facts.kube.etcd_data_dir.clone(),
            ..KubeFacts::default()
        };
        facts.links.retain(|link, _| !links.contains(link));
        facts.network_leftovers.clear();
        facts.surroundings.paths.remove("/var/lib/cni");
        facts.surroundings.paths.remove("/run/flannel");
        if gone {
            self.live = None;
            self.ca = None;
        }
    }

    pub(super) fn reset_load_balancer(&mut self, host: &NodeName) {
        let facts = self.host(host);
        facts.services.get_mut("haproxy").unwrap().active = false;
        facts
            .listening
            .retain(|listener| listener.process.as_deref() != Some("haproxy"));
    }

    pub(super) fn restore(&mut self, host: &NodeName, purge: bool) {
        let record = self.record(host).clone();
        for tool in ["ufw", "firewalld"] {
            for entry in record.entries.get(tool).into_iter().flatten() {
                self.close(host, tool, entry);
            }
        }
        for path in record.files.keys() {
            match self.before.remove(&(host.clone(), path.clone())) {
                Some(Some(file)) => self.host(host).files.insert(path.clone(), file),
                _ => self.host(host).files.remove(path),
            };
        }
        let back: Vec<String> = self
            .set_aside
            .extract_if(.., |(whose, _)| whose == host)
            .map(|(_, file)| file)
            .collect();
        self.host(host).kube.files.extend(back);
        if purge {
            for package in record.entries.get("package").into_iter().flatten() {
                self.host(host).packages.remove(package.as_str());
            }
        }
        let facts = self.host(host);
        for package in record.entries.get("hold").into_iter().flatten() {
            if let Some(package) = facts.packages.get_mut(package.as_str()) {
                package.held = false;
            }
        }
        facts.login.kubeconfig_ca = Seen::Absent;
        facts.login.kubeconfig_server = None;
        facts.record = Seen::Absent;
    }
}
