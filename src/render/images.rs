//! Which images a Kubernetes version needs, as far as that is certain without asking kubeadm.
//!
//! etcd's and CoreDNS's tags change between patch releases: what a controller needs in full is
//! asked of `kubeadm config images list` on the host.

use crate::cluster::{Cluster, Version};

/// Where kubeadm takes its images from when nothing else is said.
pub const DEFAULT_REPOSITORY: &str = "registry.k8s.io";

/// The repository of Kubernetes' own images.
#[must_use]
pub fn repository(cluster: &Cluster) -> &str {
    cluster
        .images
        .repository
        .as_deref()
        .map_or(DEFAULT_REPOSITORY, |repository| repository.trim_end_matches('/'))
}

/// Tag of the pause image that kubeadm of this minor version uses.
#[must_use]
pub const fn pause_tag(version: Version) -> &'static str {
    match version.minor {
        ..=30 => "3.9",
        31..=33 => "3.10",
        34 | 35 => "3.10.1",
        _ => "3.10.2",
    }
}

/// The pause image, which is containerd's sandbox image as well.
#[must_use]
pub fn pause(cluster: &Cluster) -> String {
    format!("{}/pause:{}", repository(cluster), pause_tag(cluster.version))
}

/// What every node runs whatever its role, beside the pod network.
#[must_use]
pub fn of_every_node(cluster: &Cluster) -> Vec<String> {
    vec![
        format!("{}/kube-proxy:{}", repository(cluster), cluster.version),
        pause(cluster),
    ]
}

/// What controllers run as static pods, without etcd.
#[must_use]
pub fn of_controllers(cluster: &Cluster) -> Vec<String> {
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler"]
        .iter()
        .map(|name| format!("{}/{name}:{}", repository(cluster), cluster.version))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{of_controllers, of_every_node, pause_tag};
    use crate::cluster::Version;
    use crate::render::tests::homelab;

    #[test]
    fn the_pause_image_follows_the_minor_version() {
        for (minor, tag) in [
            (30, "3.9"),
            (31, "3.10"),
            (33, "3.10"),
            (34, "3.10.1"),
            (35, "3.10.1"),
            (37, "3.10.2"),
        ] {
            assert_eq!(
                pause_tag(Version {
                    major: 1,
                    minor,
                    patch: 4
                }),
                tag
            );
        }
    }

    #[test]
    fn images_come_from_the_inventorys_repository() {
        let mut cluster = homelab();
        assert_eq!(
            of_every_node(&cluster),
            ["registry.k8s.io/kube-proxy:v1.34.4", "registry.k8s.io/pause:3.10.1"]
        );
        cluster.images.repository = Some("mirror.lan/k8s/".to_owned());
        assert_eq!(
            of_every_node(&cluster),
            ["mirror.lan/k8s/kube-proxy:v1.34.4", "mirror.lan/k8s/pause:3.10.1"]
        );
        assert_eq!(of_controllers(&cluster)[0], "mirror.lan/k8s/kube-apiserver:v1.34.4");
    }
}
