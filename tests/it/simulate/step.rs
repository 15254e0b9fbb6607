//! Each step, whole or the first parts of it, is given to what knows its effect.
//!
//! The `match` over [`Step`] is exhaustive, so a new step does not compile until it is known here.

use std::net::Ipv4Addr;

use k8sup::cluster::{NodeName, Role};
use k8sup::facts::Seen;
use k8sup::plan::Step;
use k8sup::plan::step::PackageStep;

use super::World;

impl World {
    pub(super) fn step(&mut self, host: &NodeName, step: &Step) {
        assert!(!self.down.contains(host), "{host} is down, but is to {}", step.title());
        match step {
            Step::Firewall {
                tool,
                interface: _,
                open,
                close,
            } => self.firewall(host, tool, open, close),
            Step::SwapOff {
                fstab,
                units,
                makers,
                zram,
                rpi,
                active,
            } => {
                if let Some(rpi) = rpi {
                    self.put(host, "/etc/rpi/swap.conf.d/99-k8sup.conf", rpi);
                }
                self.swap_off(host, fstab.as_deref(), units, makers, zram.as_deref(), *active);
            }
            Step::BootLine { path, content } => self.put(host, path, content),
            Step::Reboot { boot_id } => self.reboot(host, boot_id),
            Step::AwaitClock => self.host(host).platform.clock_unsynchronised = Seen::Present(false),
            Step::Kernel { modules, sysctl, path } => self.kernel(host, modules.as_deref(), sysctl, path),
            Step::Hostname { name } => {
                let before = std::mem::replace(&mut self.host(host).hostname, name.to_string());
                self.note(host, "hostname", &before);
            }
            Step::Packages(packages) => self.packages(host, packages),
            Step::Containerd { variants, restart: _ } => self.containerd(host, variants),
            Step::HostsFile { content } => {
                self.put(host, "/etc/hosts", content);
                self.host(host).endpoint_resolves = Seen::Present(vec![Ipv4Addr::new(192, 168, 7, 140)]);
            }
            Step::ResolvConf { content } => self.put(host, "/etc/k8sup-resolv.conf", content),
            Step::HaProxy { config, port } => self.haproxy(host, config, *port),
            Step::Reach {
                what: _,
                targets,
                listening,
            } => self.reach(targets, *listening),
            Step::PullImages {
                images,
                control_plane: _,
                repository: _,
            } => self.pull(host, images),
            Step::ClearHalfMade { controller } => self.clear(host, *controller),
            Step::MachineId => self.host(host).machine_id = Seen::Present(format!("a new one of {host}")),
            Step::KubeletFlags { files } | Step::LinkSettings { files } => {
                for (path, content) in files {
                    self.put(host, path, content);
                }
            }
            Step::KubeletServer { server } => {
                let config = self.host(host).kube.kubeconfigs.get_mut("kubelet").unwrap();
                config.server.clone_from(server);
            }
            Step::ClearLeft(left) => self.clear_left(host, left),
            Step::Found { config } => self.found(host, config, usize::MAX),
            Step::AwaitApi { address: _ } => self.await_api(host),
            Step::Publish { config } => self.publish(host, config, usize::MAX),
            Step::IssueToken => {
                self.assert_leads(host);
                self.mint();
            }
            Step::Flannel { manifest } => self.flannel(host, manifest),
            Step::EtcdTurn {
                controller: _,
                config: _,
            } => self.etcd_turn(host),
            Step::Join {
                config,
                discovery,
                address,
                controller,
            } => {
                assert!(discovery.contains("<late:ca-cert>") && self.minted, "no token, no CA");
                let host = self.inventory(host);
                assert_eq!((host.address, host.role == Role::Controller), (*address, *controller));
                self.join(&host, config, usize::MAX);
            }
            Step::FinishJoin => self.finish_join(host),
            Step::ForgetNode { node, address } => {
                self.assert_leads(host);
                self.leave_etcd(*address);
                self.forget(node);
            }
            Step::NodeSettings {
                node,
                labels,
                taints,
                announced: _,
                managed,
            } => {
                self.node_settings(host, node, labels, taints);
                self.node(node).unwrap().managed = managed.iter().cloned().collect();
            }
            Step::Resolvers { corefile } => {
                self.assert_leads(host);
                self.api().corefile = Seen::Present(corefile.clone());
            }
            Step::UserKubeconfig { user, home } => self.user_kubeconfig(host, user, home),
            Step::Revoke => self.revoke(host),
            Step::LeaveCluster {
                node,
                address,
                controller,
            } => {
                self.assert_leads(host);
                if *controller {
                    self.leave_etcd(*address);
                }
                self.forget(node);
            }
            Step::ResetNode(reset) => self.reset_node(host, reset),
            Step::ResetLoadBalancer => self.reset_load_balancer(host),
            Step::RestoreHost { purge } => self.restore(host, *purge),
        }
    }

    /// The first `parts` parts of a step that ends half-way; steps without parts do nothing.
    pub(crate) fn part(&mut self, host: &NodeName, step: &Step, parts: usize) {
        match step {
            Step::Found { config } => self.found(host, config, parts),
            Step::Publish { config } => self.publish(host, config, parts),
            Step::Join { config, .. } => {
                let host = self.inventory(host);
                self.join(&host, config, parts);
            }
            Step::ClearHalfMade { .. } if parts > 0 => {
                // First etcd's data goes, then kubeadm's files.
                self.host(host).kube.etcd_data = false;
                self.host(host).kube.readyz = Seen::Unknown("connection refused".to_owned());
            }
            Step::ForgetNode { node: _, address } if parts > 0 => self.leave_etcd(*address),
            Step::Packages(step) if parts > 0 => self.packages(
                host,
                &PackageStep {
                    hold: Vec::new(),
                    ..step.clone()
                },
            ),
            _ => {}
        }
    }
}
