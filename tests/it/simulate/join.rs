//! `kubeadm join`, part by part, as a controller or a worker, and its end that was missed.

use k8sup::cluster::{Host, NodeName, Role};
use k8sup::facts::Seen;
use k8sup::facts::cluster::Member;

use super::World;
use super::etcd::voter;
use super::kubeadm::documents;

impl World {
    /// `kubeadm join`, part by part, as a controller or a worker.
    pub(super) fn join(&mut self, host: &Host, config: &str, parts: usize) {
        let name = &host.name;
        self.assert_prepared(name);
        let join = documents(config).remove(0);
        self.assert_kubelet_arguments(host, &join);
        let kube = &self.host(name).kube;
        for file in ["kubelet.conf", "bootstrap-kubelet.conf"] {
            assert!(
                !kube.has(file),
                "[ERROR FileAvailable--etc-kubernetes-{file}] on {name}"
            );
        }
        assert!(
            !kube
                .files
                .iter()
                .any(|file| file.starts_with("/etc/kubernetes/manifests/")),
            "[ERROR FileAvailable] on {name}"
        );
        let nodes = self.api().nodes.present().unwrap();
        assert!(
            !nodes.get(name.as_str()).is_some_and(|node| node.ready),
            "a Node with name {name} and status Ready already exists"
        );
        assert!(self.api().cluster_info.present().is_some() && self.api().kubeadm_config.present().is_some());
        let ca = self.ca.clone().unwrap();
        if host.role == Role::Worker {
            assert!(
                self.host(name).kube.ca.present().is_none(),
                "[ERROR FileAvailable--etc-kubernetes-pki-ca.crt] on {name}"
            );
            if parts > 0 {
                self.bootstrap(name, &ca);
            }
            if parts > 1 {
                self.kubelet_files(name);
            }
            if parts > 2 {
                self.kubelet_identity(host, &ca);
            }
            if parts > 3 {
                self.register(host, &join);
            }
            if parts > 4 {
                self.host(name)
                    .kube
                    .files
                    .remove("/etc/kubernetes/bootstrap-kubelet.conf");
            }
            return;
        }
        assert!(
            self.api().uploaded_certs.present().is_some(),
            "no certificates are uploaded for {name}"
        );
        let kube = &self.host(name).kube;
        assert!(
            !kube.etcd_data && !kube.etcd_dir_used,
            "[ERROR DirAvailable--var-lib-etcd] on {name}"
        );
        let foreign = kube.ca.present().is_some_and(|own| own.spki_sha256 != ca.spki_sha256);
        assert!(!foreign, "{name}: certificate not signed by CA certificate kubernetes");
        let sans = self.api().kubeadm_config.present().unwrap()["apiServer"]["certSANs"].clone();
        if parts > 0 {
            self.pki(host, &ca, &sans);
        }
        if parts > 1 {
            self.kubeconfigs(host, &ca, false);
            self.host(name).kube.readyz = Seen::Unknown("connection refused".to_owned());
        }
        if parts > 2 {
            self.manifests(name, &["kube-apiserver", "kube-controller-manager", "kube-scheduler"]);
        }
        if parts > 3 {
            self.bootstrap(name, &ca);
            self.kubelet_files(name);
        }
        if parts > 4 {
            self.kubelet_identity(host, &ca);
            self.register(host, &join);
        }
        if parts > 5 {
            self.assert_etcd_takes_another(host);
            self.manifests(name, &["etcd"]);
            let member = Member {
                name: String::new(),
                learner: true,
                ..voter(host)
            };
            self.members().push(member);
        }
        if parts > 6 {
            self.host(name).kube.etcd_data = true;
            self.members().last_mut().unwrap().name = name.to_string();
        }
        if parts > 7 {
            self.members().last_mut().unwrap().learner = false;
        }
        if parts > 8 {
            self.host(name)
                .kube
                .files
                .remove("/etc/kubernetes/bootstrap-kubelet.conf");
        }
        if parts > 9 {
            let taints = join["nodeRegistration"]["taints"].clone();
            self.mark_control_plane(host, &taints);
            self.host(name).kube.readyz = Seen::Present("ok".to_owned());
        }
    }

    pub(super) fn finish_join(&mut self, name: &NodeName) {
        let host = self.inventory(name);
        if self.host(name).kube.kubelet.present().is_none() {
            let ca = self.ca.clone().unwrap();
            self.kubelet_identity(&host, &ca);
        }
        let kube = &mut self.host(name).kube;
        assert!(
            kube.files.remove("/etc/kubernetes/bootstrap-kubelet.conf"),
            "{name}: nothing to finish"
        );
        kube.kubeconfigs.remove("bootstrap-kubelet");
        if kube.has("manifests/kube-apiserver.yaml") {
            kube.readyz = Seen::Present("ok".to_owned());
        }
    }
}
