//! What makes a host ready for Kubernetes: swap, kernel, packages, the load balancer, images.
//!
//! containerd has a module of its own.

use std::collections::BTreeSet;

use k8sup::cluster::{NodeName, Role};
use k8sup::facts::{Containerd, FileFact, Listener, Seen};
use k8sup::plan::step::PackageStep;
use k8sup::render::containerd::{CONFIG_FILE, Dialect};

use super::World;
use crate::world;

const HAPROXY: &str = "/etc/haproxy/haproxy.cfg";

impl World {
    pub(super) fn swap_off(
        &mut self,
        host: &NodeName,
        fstab: Option<&str>,
        units: &[String],
        makers: &[String],
        zram: Option<&str>,
        active: bool,
    ) {
        if let Some(fstab) = fstab {
            self.put(host, "/etc/fstab", fstab);
        }
        for unit in units {
            self.note(host, "swap-masked", unit);
        }
        for maker in makers {
            self.note(host, "swap-disabled", maker);
        }
        if let Some(zram) = zram {
            self.put(host, "/etc/systemd/zram-generator.conf", zram);
        }
        let drop_ins = self.host(host).packages.contains_key("rpi-swap");
        let swap = &mut self.host(host).swap;
        swap.units.retain(|unit| !units.contains(unit));
        swap.makers.retain(|maker| !makers.contains(maker));
        // An empty file hides the distribution's, not its drop-ins; a masked unit is never started.
        let masked = units.iter().any(|unit| unit == "dev-zram0.swap");
        let hidden = zram.is_some() && !drop_ins;
        swap.zram_generator &= !hidden && !masked;
        if active {
            swap.active.clear();
        }
    }

    /// The kernel comes up with the line that the firmware read.
    pub(super) fn reboot(&mut self, host: &NodeName, boot_id: &str) {
        let facts = self.host(host);
        assert_eq!(facts.boot_id, boot_id, "{host}");
        facts.boot_id.push_str(", the next");
        let told = facts
            .files
            .values()
            .any(|file| file.content.contains("cgroup_enable=memory"));
        if facts.platform.board.is_raspberry_pi() && told {
            facts.cgroup.controllers.insert("memory".to_owned());
            facts.platform.cmdline.push_str(" cgroup_enable=memory cgroup_memory=1");
        }
        facts.modules.clear();
        if let Seen::Present(modules) = &mut facts.platform.modules
            && let Some(kernel) = modules.kernels.last()
        {
            facts.kernel.clone_from(kernel);
            modules
                .available
                .extend(["overlay", "br_netfilter", "vxlan", "wireguard"].map(str::to_owned));
        }
    }

    pub(super) fn kernel(&mut self, host: &NodeName, modules: Option<&str>, sysctl: &str, path: &str) {
        let settings = |text: &str| {
            text.lines()
                .filter(|line| !line.starts_with('#'))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        if let Some(modules) = modules {
            self.put(host, "/etc/modules-load.d/k8sup.conf", modules);
            let facts = self.host(host);
            let can = |name: &String| match &facts.platform.modules {
                // The drift of a member is a fiction of the test's.
                Seen::Present(known) if !facts.kube.has("kubelet.conf") => {
                    facts.modules.contains(name) || known.available.contains(name)
                }
                _ => true,
            };
            assert!(settings(modules).iter().all(can), "{host}: the kernel lacks a module");
            facts.modules.extend(settings(modules));
        }
        self.put(host, path, sysctl);
        for line in settings(sysctl) {
            let (key, value) = line.split_once(" = ").unwrap();
            let bridge = !key.starts_with("net.bridge.") || self.host(host).modules.contains("br_netfilter");
            assert!(bridge, "{host}: {key} does not exist without br_netfilter");
            self.host(host).sysctls.insert(key.to_owned(), value.to_owned());
        }
    }

    pub(super) fn packages(&mut self, host: &NodeName, step: &PackageStep) {
        let PackageStep {
            sources,
            key_url,
            containerd_source,
            containerd_key_url,
            legacy,
            apt_proxy,
            install,
            reinstall,
            hold,
        } = step;
        for package in reinstall {
            assert_eq!(package, "kubernetes-cni");
            let plugins = ["bridge", "host-local", "loopback", "portmap"].map(str::to_owned);
            self.host(host).surroundings.cni_plugins = Seen::Present(plugins.into());
        }
        if let Some(proxy) = apt_proxy {
            self.put(host, "/etc/apt/apt.conf.d/90-k8sup-proxy", proxy);
        }
        for path in legacy {
            self.drop_file(host, path);
        }
        self.host(host).legacy_sources.retain(|path| !legacy.contains(path));
        if let Some(sources) = sources {
            assert!(key_url.ends_with("/Release.key"));
            self.put(host, "/etc/apt/keyrings/k8sup-kubernetes.asc", "a key\n");
            self.put(host, "/etc/apt/sources.list.d/k8sup-kubernetes.sources", sources);
        }
        if let Some(source) = containerd_source {
            assert!(!containerd_key_url.is_empty());
            self.put(host, "/etc/apt/keyrings/k8sup-containerd.asc", "a key\n");
            self.put(host, "/etc/apt/sources.list.d/k8sup-containerd.list", source);
        }
        for wanted in install {
            self.install(host, wanted);
        }
        for package in hold {
            self.note(host, "hold", package);
            let package = self.host(host).packages.get_mut(package.as_str()).unwrap();
            assert!(package.installed.is_some());
            package.held = true;
        }
        if let Some(kubelet) = self.host(host).services.get_mut("kubelet") {
            kubelet.enabled = true;
        }
    }

    fn install(&mut self, host: &NodeName, wanted: &str) {
        let (package, version) = match wanted.split_once('=') {
            Some((package, version)) => {
                let source = self
                    .host(host)
                    .files
                    .contains_key("/etc/apt/sources.list.d/k8sup-kubernetes.sources");
                assert!(source, "{host}: no repository has {wanted}");
                (package, version.replace('*', "1.1"))
            }
            None => (wanted, "1.0-1".to_owned()),
        };
        let facts = self.host(host);
        let known = facts.packages.entry(package.to_owned()).or_default();
        if known.installed.is_none() {
            let entry = package.to_owned();
            self.note(host, "package", &entry);
        }
        let codename = self.host(host).os.codename.clone();
        let facts = self.host(host);
        facts.packages.get_mut(package).unwrap().installed = Some(version);
        let service = |enabled| k8sup::facts::Service {
            enabled,
            active: enabled,
        };
        if package.starts_with("linux-modules-extra-")
            && let Seen::Present(modules) = &mut facts.platform.modules
        {
            modules.available.insert("vxlan".to_owned());
        }
        match package {
            "containerd" | "containerd.io" => {
                let version = match codename.as_str() {
                    "bookworm" => "1.6.20",
                    "trixie" | "noble" => "1.7.24",
                    _ => "2.1.9",
                };
                // The package brings a file of its own.
                if package == "containerd" {
                    let content = world::read("tests/fixtures/containerd/debian.toml");
                    facts
                        .files
                        .entry(CONFIG_FILE.to_owned())
                        .or_insert(FileFact { mode: 0o644, content });
                }
                facts.containerd = Seen::Present(Containerd {
                    version: version.to_owned(),
                    config: Seen::Absent,
                });
                facts.services.insert("containerd".to_owned(), service(true));
                facts.images = Seen::Present(BTreeSet::new());
                self.dump(host);
            }
            "haproxy" => {
                let content = "global\n    log /dev/log local0\n".to_owned();
                facts
                    .files
                    .entry(HAPROXY.to_owned())
                    .or_insert(FileFact { mode: 0o644, content });
                facts.services.insert("haproxy".to_owned(), service(true));
            }
            "kubelet" => {
                facts.services.insert("kubelet".to_owned(), service(false));
            }
            _ => {}
        }
    }

    pub(super) fn haproxy(&mut self, host: &NodeName, config: &str, port: u16) {
        assert!(
            self.host(host).packages["haproxy"].installed.is_some(),
            "{host}: no haproxy"
        );
        assert!(config.contains(&format!(":{port}")), "{config}");
        self.put(host, HAPROXY, config);
        let facts = self.host(host);
        let service = facts.services.get_mut("haproxy").unwrap();
        (service.enabled, service.active) = (true, true);
        if !facts.listening.iter().any(|listener| listener.port == port) {
            facts.listening.push(Listener {
                address: "0.0.0.0".to_owned(),
                port,
                process: Some("haproxy".to_owned()),
            });
        }
    }

    /// Somebody listens where the endpoint leads.
    pub(super) fn reach(&self, targets: &[(String, u16)], listening: bool) {
        for (target, port) in targets {
            let balancers = || self.cluster.role(Role::LoadBalancer);
            let to_endpoint = *target == self.cluster.endpoint.host && *port == self.cluster.endpoint.port;
            let served = balancers().any(|host| {
                self.hosts[&host.name]
                    .listening
                    .iter()
                    .any(|listener| listener.port == *port)
            });
            assert!(!listening || to_endpoint && served, "nobody listens at {target}:{port}");
        }
    }

    pub(super) fn pull(&mut self, host: &NodeName, images: &[String]) {
        self.assert_prepared(host);
        match &mut self.host(host).images {
            Seen::Present(have) => have.extend(images.iter().cloned()),
            other => panic!("{host}: {other:?}"),
        }
    }

    /// The host is as the kubelet and kubeadm's own checks want it.
    pub(super) fn assert_prepared(&self, host: &NodeName) {
        let facts = &self.hosts[host];
        let version = self.cluster.version.to_string();
        for package in ["kubeadm", "kubelet", "kubectl"] {
            let installed = facts
                .packages
                .get(package)
                .and_then(|package| package.installed.clone())
                .unwrap_or_default();
            assert!(
                installed.starts_with(&format!("{}-", version.trim_start_matches('v'))),
                "{host}: {package} is {installed:?}"
            );
        }
        assert!(facts.swap.active.is_empty(), "{host}: swap is on");
        assert_eq!(
            facts.sysctls.get("net.ipv4.ip_forward").map(String::as_str),
            Some("1"),
            "{host}"
        );
        let Seen::Present(Containerd {
            version,
            config: Seen::Present(config),
        }) = &facts.containerd
        else {
            panic!("{host}: no containerd")
        };
        let deviations = k8sup::render::containerd::assert_dump(config, Dialect::of(version).unwrap(), &self.cluster);
        assert!(deviations.is_empty(), "{host}: {deviations:?}");
        assert!(
            facts.services["containerd"].active && facts.services["kubelet"].enabled,
            "{host}"
        );
    }
}
