//! The small files of a host: modules, sysctls, crictl, apt, swap, names, proxy.

use std::fmt::Write as _;
use std::net::IpAddr;

use super::kubeadm::CRI_SOCKET;
use crate::cluster::{Cluster, ContainerdRepository, Proxy, Role, Version};

/// Modules to load at boot.
pub const MODULES_FILE: &str = "/etc/modules-load.d/k8sup.conf";
/// Sysctls to set at boot.
pub const SYSCTL_FILE: &str = "/etc/sysctl.d/90-k8sup.conf";
/// The same, where a file of somebody else's would overrule [`SYSCTL_FILE`].
pub const SYSCTL_FILE_AT_LAST: &str = "/etc/sysctl.d/99-zz-k8sup.conf";
/// crictl's endpoint.
pub const CRICTL_FILE: &str = "/etc/crictl.yaml";
/// Apt source of kubeadm, kubelet and kubectl.
pub const KUBERNETES_SOURCE_FILE: &str = "/etc/apt/sources.list.d/k8sup-kubernetes.sources";
/// Its signing key.
pub const KUBERNETES_KEY_FILE: &str = "/etc/apt/keyrings/k8sup-kubernetes.asc";
/// Apt source of containerd, where the inventory names one.
pub const CONTAINERD_SOURCE_FILE: &str = "/etc/apt/sources.list.d/k8sup-containerd.list";
/// Its signing key.
pub const CONTAINERD_KEY_FILE: &str = "/etc/apt/keyrings/k8sup-containerd.asc";
/// An empty file here switches systemd's zram generator off; it is read before /usr/lib's.
pub const ZRAM_GENERATOR_FILE: &str = "/etc/systemd/zram-generator.conf";
/// Switches Raspberry Pi OS' rpi-swap off; of its drop-ins the last name wins.
pub const RPI_SWAP_FILE: &str = "/etc/rpi/swap.conf.d/99-k8sup.conf";
/// containerd's proxy.
pub const CONTAINERD_PROXY_FILE: &str = "/etc/systemd/system/containerd.service.d/k8sup-proxy.conf";
/// Apt's proxy.
pub const APT_PROXY_FILE: &str = "/etc/apt/apt.conf.d/90-k8sup-proxy";

const MANAGED: &str = "# managed by k8sup\n";
const SWAP_MARK: &str = "# k8sup: ";
/// First line of our block in /etc/hosts.
pub const HOSTS_BEGIN: &str = "# k8sup begin";
const HOSTS_END: &str = "# k8sup end";

/// Kernel modules that a node needs.
#[must_use]
pub fn modules(cluster: &Cluster) -> Vec<&'static str> {
    let mut modules = vec!["overlay", "br_netfilter"];
    match cluster.flannel.backend.as_str() {
        "vxlan" => modules.push("vxlan"),
        "wireguard" => modules.push("wireguard"),
        _ => {}
    }
    modules
}

/// [`MODULES_FILE`].
#[must_use]
pub fn modules_file(cluster: &Cluster) -> String {
    format!("{MANAGED}{}\n", modules(cluster).join("\n"))
}

/// Sysctls that a host of this role needs.
#[must_use]
pub fn sysctls(role: Role) -> &'static [(&'static str, &'static str)] {
    match role {
        // A virtual address can be bound before this host has it.
        Role::LoadBalancer => &[("net.ipv4.ip_nonlocal_bind", "1")],
        Role::Controller | Role::Worker => &[
            ("net.ipv4.ip_forward", "1"),
            ("net.bridge.bridge-nf-call-iptables", "1"),
            ("net.bridge.bridge-nf-call-ip6tables", "1"),
            // The defaults end in `too many open files` of kubelet, kube-proxy and people's own pods.
            ("fs.inotify.max_user_instances", "8192"),
            ("fs.inotify.max_user_watches", "524288"),
        ],
    }
}

/// [`SYSCTL_FILE`].
#[must_use]
pub fn sysctl_file(role: Role) -> String {
    sysctls(role).iter().fold(MANAGED.to_owned(), |mut text, (key, value)| {
        let _ = writeln!(text, "{key} = {value}");
        text
    })
}

/// [`CRICTL_FILE`].
#[must_use]
pub fn crictl_yaml() -> String {
    format!("{MANAGED}runtime-endpoint: {CRI_SOCKET}\nimage-endpoint: {CRI_SOCKET}\n")
}

/// Base URL of the Kubernetes packages of the cluster's minor version, with a slash at its end.
#[must_use]
pub fn kubernetes_repository(cluster: &Cluster) -> String {
    let Version { major, minor, .. } = cluster.version;
    format!(
        "{}/core:/stable:/v{major}.{minor}/deb/",
        cluster.packages.repository.trim_end_matches('/')
    )
}

/// URL of the key that signs them.
#[must_use]
pub fn release_key_url(cluster: &Cluster) -> String {
    format!("{}Release.key", kubernetes_repository(cluster))
}

/// [`KUBERNETES_SOURCE_FILE`], in deb822 form.
#[must_use]
pub fn kubernetes_sources(cluster: &Cluster) -> String {
    let uri = kubernetes_repository(cluster);
    format!("{MANAGED}Types: deb\nURIs: {uri}\nSuites: /\nSigned-By: {KUBERNETES_KEY_FILE}\n")
}

/// [`CONTAINERD_SOURCE_FILE`]; in the one-line form, because that is how the inventory gives it.
#[must_use]
pub fn containerd_sources(repository: &ContainerdRepository) -> String {
    format!("{MANAGED}deb [signed-by={CONTAINERD_KEY_FILE}] {}\n", repository.source)
}

/// /etc/fstab with its swap lines commented out, `None` where there are none. All other lines
/// stay byte for byte; [`fstab_with_swap`] undoes it.
#[must_use]
pub fn fstab_without_swap(fstab: &str) -> Option<String> {
    let is_swap = |line: &str| {
        let mut fields = line.split_whitespace();
        fields.clone().next().is_some_and(|first| !first.starts_with('#')) && fields.nth(2) == Some("swap")
    };
    if !fstab.lines().any(is_swap) {
        return None;
    }
    let lines = fstab.split_inclusive('\n');
    Some(
        lines
            .map(|line| {
                if is_swap(line) {
                    format!("{SWAP_MARK}{line}")
                } else {
                    line.to_owned()
                }
            })
            .collect(),
    )
}

/// /etc/fstab with the lines in use again that [`fstab_without_swap`] commented out, `None`
/// where there are none.
#[must_use]
pub fn fstab_with_swap(fstab: &str) -> Option<String> {
    let lines = fstab.split_inclusive('\n');
    let restored: String = lines.map(|line| line.strip_prefix(SWAP_MARK).unwrap_or(line)).collect();
    (restored != fstab).then_some(restored)
}

/// /etc/hosts with our block, which is replaced where there is one and removed where `entries`
/// (address, name) is empty.
#[must_use]
pub fn hosts_with(hosts: &str, entries: &[(IpAddr, String)]) -> String {
    let mut block = String::new();
    if !entries.is_empty() {
        let _ = writeln!(block, "{HOSTS_BEGIN}");
        for (address, name) in entries {
            let _ = writeln!(block, "{address}\t{name}");
        }
        let _ = writeln!(block, "{HOSTS_END}");
    }
    let mut before = String::new();
    let mut after = String::new();
    let mut state = Place::Before;
    for line in hosts.split_inclusive('\n') {
        match (&state, line.trim_end()) {
            (Place::Before, HOSTS_BEGIN) => state = Place::Inside,
            (Place::Inside, HOSTS_END) => state = Place::After,
            (Place::Before, _) => before.push_str(line),
            (Place::Inside, _) => {}
            (Place::After, _) => after.push_str(line),
        }
    }
    if !block.is_empty() && !before.is_empty() && !before.ends_with('\n') {
        before.push('\n');
    }
    format!("{before}{block}{after}")
}

enum Place {
    Before,
    Inside,
    After,
}

/// [`ZRAM_GENERATOR_FILE`].
#[must_use]
pub fn zram_generator() -> String {
    format!("{MANAGED}# No device is named, so there is no swap in memory.\n")
}

/// [`RPI_SWAP_FILE`].
#[must_use]
pub fn rpi_swap() -> String {
    format!("{MANAGED}[Main]\nMechanism=none\n")
}

/// What must never go through a proxy: the cluster's networks, hosts and names, and what the
/// inventory adds.
#[must_use]
pub fn no_proxy(cluster: &Cluster) -> String {
    let own = ["localhost", "127.0.0.1"].map(str::to_owned);
    let networks = [
        cluster.pod_cidr.to_string(),
        cluster.service_cidr.to_string(),
        cluster.endpoint.host.clone(),
    ];
    let names = [".svc".to_owned(), format!(".{}", cluster.dns_domain)];
    let hosts = cluster
        .hosts
        .iter()
        .flat_map(|host| [host.name.to_string(), host.address.to_string()]);
    let theirs = cluster.proxy.iter().flat_map(|proxy| proxy.no_proxy.iter().cloned());
    let mut all: Vec<String> = Vec::new();
    for entry in own.into_iter().chain(networks).chain(names).chain(hosts).chain(theirs) {
        if !all.contains(&entry) {
            all.push(entry);
        }
    }
    all.join(",")
}

/// [`CONTAINERD_PROXY_FILE`], where the inventory names a proxy.
#[must_use]
pub fn containerd_proxy(cluster: &Cluster) -> Option<String> {
    let Proxy { http, https, .. } = cluster.proxy.as_ref()?;
    let mut text = format!("{MANAGED}[Service]\n");
    let variables = [
        ("HTTP_PROXY", http.clone()),
        ("HTTPS_PROXY", https.clone()),
        ("NO_PROXY", Some(no_proxy(cluster))),
    ];
    for (name, value) in variables {
        if let Some(value) = value {
            // A percent sign begins a specifier of systemd's.
            let _ = writeln!(text, "Environment=\"{name}={}\"", value.replace('%', "%%"));
        }
    }
    Some(text)
}

/// [`APT_PROXY_FILE`], where the inventory names a proxy.
#[must_use]
pub fn apt_proxy(cluster: &Cluster) -> Option<String> {
    let Proxy { http, https, no_proxy } = cluster.proxy.as_ref()?;
    let mut text = "// managed by k8sup\n".to_owned();
    for (scheme, value) in [("http", http), ("https", https)] {
        if let Some(value) = value {
            let _ = writeln!(text, "Acquire::{scheme}::Proxy \"{value}\";");
        }
    }
    // apt takes exceptions by host, not by domain or network.
    for host in no_proxy.iter().filter(|entry| is_host(entry)) {
        let _ = writeln!(
            text,
            "Acquire::http::Proxy::{host} \"DIRECT\";\nAcquire::https::Proxy::{host} \"DIRECT\";"
        );
    }
    Some(text)
}

fn is_host(entry: &str) -> bool {
    !entry.starts_with('.')
        && entry
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use proptest::prelude::*;

    use super::{
        apt_proxy, containerd_proxy, containerd_sources, crictl_yaml, fstab_with_swap, fstab_without_swap, hosts_with,
        kubernetes_sources, modules_file, release_key_url, sysctl_file,
    };
    use crate::cluster::{ContainerdRepository, Proxy, Role};
    use crate::render::tests::homelab;

    #[test]
    fn golden() {
        let mut cluster = homelab();
        assert_eq!(
            modules_file(&cluster),
            "# managed by k8sup\noverlay\nbr_netfilter\nvxlan\n"
        );
        cluster.flannel.backend = "host-gw".to_owned();
        assert_eq!(modules_file(&cluster), "# managed by k8sup\noverlay\nbr_netfilter\n");
        assert_eq!(
            sysctl_file(Role::Worker),
            "# managed by k8sup\nnet.ipv4.ip_forward = 1\nnet.bridge.bridge-nf-call-iptables = 1\n\
             net.bridge.bridge-nf-call-ip6tables = 1\nfs.inotify.max_user_instances = 8192\n\
             fs.inotify.max_user_watches = 524288\n"
        );
        assert_eq!(
            sysctl_file(Role::LoadBalancer),
            "# managed by k8sup\nnet.ipv4.ip_nonlocal_bind = 1\n"
        );
        assert_eq!(
            crictl_yaml(),
            "# managed by k8sup\nruntime-endpoint: unix:///run/containerd/containerd.sock\n\
             image-endpoint: unix:///run/containerd/containerd.sock\n"
        );
        assert_eq!(
            kubernetes_sources(&cluster),
            "# managed by k8sup\nTypes: deb\nURIs: https://pkgs.k8s.io/core:/stable:/v1.34/deb/\nSuites: /\n\
             Signed-By: /etc/apt/keyrings/k8sup-kubernetes.asc\n"
        );
        assert_eq!(
            release_key_url(&cluster),
            "https://pkgs.k8s.io/core:/stable:/v1.34/deb/Release.key"
        );
    }

    #[test]
    fn containerd_from_another_repository() {
        let docker = ContainerdRepository {
            source: "https://download.docker.com/linux/debian trixie stable".to_owned(),
            key: "https://download.docker.com/linux/debian/gpg".to_owned(),
            package: "containerd.io".to_owned(),
        };
        assert_eq!(
            containerd_sources(&docker),
            "# managed by k8sup\ndeb [signed-by=/etc/apt/keyrings/k8sup-containerd.asc] \
             https://download.docker.com/linux/debian trixie stable\n"
        );
    }

    #[test]
    fn only_swap_lines_are_commented_out() {
        let fstab = "# /dev/sda2 none swap sw 0 0\nLABEL=root / ext4 defaults 0 1\n/swap.img\tnone\tswap\tsw 0 0\n\
                     /dev/swap /mnt/swap ext4 defaults 0 2\n  UUID=1 swap swap defaults";
        let without = fstab_without_swap(fstab).unwrap();
        assert_eq!(
            without,
            "# /dev/sda2 none swap sw 0 0\nLABEL=root / ext4 defaults 0 1\n# k8sup: /swap.img\tnone\tswap\tsw 0 0\n\
             /dev/swap /mnt/swap ext4 defaults 0 2\n# k8sup:   UUID=1 swap swap defaults"
        );
        assert_eq!(fstab_without_swap(&without), None);
        assert_eq!(fstab_with_swap(&without).unwrap(), fstab);
        assert_eq!(fstab_with_swap(fstab), None);
    }

    #[test]
    fn the_block_in_hosts_comes_changes_and_goes() {
        let entries = |name: &str| vec![(IpAddr::from([192, 168, 7, 140]), name.to_owned())];
        let hosts = "127.0.0.1\tlocalhost\n127.0.1.1 cp1";
        let with = hosts_with(hosts, &entries("k8s-api.lan"));
        assert_eq!(
            with,
            "127.0.0.1\tlocalhost\n127.0.1.1 cp1\n# k8sup begin\n192.168.7.140\tk8s-api.lan\n# k8sup end\n"
        );
        let later = format!("{with}::1 ip6-localhost\n");
        assert_eq!(
            hosts_with(&later, &entries("other.lan")),
            "127.0.0.1\tlocalhost\n127.0.1.1 cp1\n# k8sup begin\n192.168.7.140\tother.lan\n# k8sup end\n::1 ip6-localhost\n"
        );
        assert_eq!(
            hosts_with(&later, &[]),
            "127.0.0.1\tlocalhost\n127.0.1.1 cp1\n::1 ip6-localhost\n"
        );
    }

    #[test]
    fn proxies() {
        let mut cluster = homelab();
        assert_eq!((containerd_proxy(&cluster), apt_proxy(&cluster)), (None, None));
        cluster.proxy = Some(Proxy {
            http: Some("http://u:p%40ss@proxy.lan:3128".to_owned()),
            https: None,
            no_proxy: vec!["mirror.lan".to_owned(), "10.0.0.0/8".to_owned(), "localhost".to_owned()],
        });
        assert_eq!(
            containerd_proxy(&cluster).unwrap(),
            "# managed by k8sup\n[Service]\nEnvironment=\"HTTP_PROXY=http://u:p%%40ss@proxy.lan:3128\"\n\
             Environment=\"NO_PROXY=localhost,127.0.0.1,10.244.0.0/16,10.96.0.0/12,192.168.7.140,.svc,.cluster.local,\
             lb-0,cp1,192.168.7.201,cp2,192.168.7.202,cp3,192.168.7.203,w1,192.168.7.204,w2,192.168.7.205,\
             mirror.lan,10.0.0.0/8\"\n"
        );
        assert_eq!(
            apt_proxy(&cluster).unwrap(),
            "// managed by k8sup\nAcquire::http::Proxy \"http://u:p%40ss@proxy.lan:3128\";\n\
             Acquire::http::Proxy::mirror.lan \"DIRECT\";\nAcquire::https::Proxy::mirror.lan \"DIRECT\";\n\
             Acquire::http::Proxy::localhost \"DIRECT\";\nAcquire::https::Proxy::localhost \"DIRECT\";\n"
        );
    }

    proptest! {
        #[test]
        fn fstab_comes_back(fstab in "([#a-z/ \t]{0,12}( |\t)(swap|ext4)( |\t)(swap|sw)\n){0,4}") {
            if let Some(without) = fstab_without_swap(&fstab) {
                prop_assert_eq!(fstab_without_swap(&without), None);
                prop_assert_eq!(fstab_with_swap(&without), Some(fstab));
            }
        }

        #[test]
        fn hosts_are_a_fixed_point(hosts in "([0-9a-z.# ]{0,10}\n){0,4}", name in "[a-z]{1,8}") {
            let entries = [(IpAddr::from([192, 168, 7, 140]), name)];
            let once = hosts_with(&hosts, &entries);
            prop_assert_eq!(hosts_with(&once, &entries), once.clone());
            prop_assert_eq!(hosts_with(&once, &[]), hosts);
        }
    }
}
