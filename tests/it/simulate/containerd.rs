//! containerd: its files, and what `containerd config dump` makes of them.

use k8sup::cluster::NodeName;
use k8sup::facts::Seen;
use k8sup::plan::step::ContainerdFiles;
use k8sup::render::containerd::{CONFIG_FILE, Dialect};
use toml::Table;

use super::World;

impl World {
    pub(super) fn containerd(&mut self, host: &NodeName, variants: &[ContainerdFiles]) {
        let Seen::Present(containerd) = &self.host(host).containerd else {
            panic!("{host}: no containerd")
        };
        let label = Dialect::of(&containerd.version).unwrap().label();
        let variant = variants.iter().find(|variant| variant.dialect == label);
        let variant = variant.unwrap_or_else(|| panic!("{host}: nothing for containerd {label}"));
        for (path, content) in &variant.files {
            self.put(host, path, content);
        }
        let service = self.host(host).services.entry("containerd".to_owned()).or_default();
        (service.enabled, service.active) = (true, true);
        self.dump(host);
    }

    /// `containerd config dump`: its own defaults, under its files.
    pub(super) fn dump(&mut self, host: &NodeName) {
        let facts = self.host(host);
        let Seen::Present(containerd) = &facts.containerd else {
            panic!("{host}: no containerd")
        };
        let dialect = Dialect::of(&containerd.version).unwrap();
        let parse = |text: &str| text.parse::<Table>().unwrap();
        let mut dump = parse(match dialect {
            Dialect::V1 => V1_DEFAULTS,
            Dialect::V20 | Dialect::V21 => V2_DEFAULTS,
        });
        let main = facts
            .files
            .get(CONFIG_FILE)
            .map(|file| parse(&file.content))
            .unwrap_or_default();
        let imports: Vec<String> = main
            .get("imports")
            .and_then(|imports| imports.as_array())
            .into_iter()
            .flatten()
            .filter_map(|import| Some(import.as_str()?.to_owned()))
            .collect();
        overlay(&mut dump, main);
        for import in imports {
            let pattern = import.strip_suffix("*.toml");
            for (path, file) in &facts.files {
                if path == &import || pattern.is_some_and(|folder| path.starts_with(folder)) {
                    import_file(&mut dump, parse(&file.content), dialect);
                }
            }
        }
        let Seen::Present(containerd) = &mut facts.containerd else {
            unreachable!()
        };
        containerd.config = Seen::Present(dump);
    }
}

/// Lays one table over another, key by key.
fn overlay(under: &mut Table, over: Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(toml::Value::Table(under)), toml::Value::Table(over)) => overlay(under, over),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

/// An imported file: containerd 1 takes a plugin's table as a whole, containerd 2 merges it.
fn import_file(dump: &mut Table, file: Table, dialect: Dialect) {
    if dialect != Dialect::V1 {
        overlay(dump, file);
        return;
    }
    for (key, value) in file {
        match (key.as_str(), value) {
            ("plugins", toml::Value::Table(plugins)) => {
                let dumped = dump.get_mut("plugins").and_then(toml::Value::as_table_mut).unwrap();
                for (plugin, table) in plugins {
                    dumped.insert(plugin, table);
                }
            }
            ("imports", _) => {}
            (_, value) => {
                dump.insert(key, value);
            }
        }
    }
}

const V1_DEFAULTS: &str = r#"
version = 2
disabled_plugins = []
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "registry.k8s.io/pause:3.8"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/opt/cni/bin"
conf_dir = "/etc/cni/net.d"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri".registry]
config_path = ""
"#;

const V2_DEFAULTS: &str = r#"
version = 3
disabled_plugins = []
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/usr/lib/cni"]
conf_dir = "/etc/cni/net.d"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "registry.k8s.io/pause:3.10"
[plugins."io.containerd.cri.v1.images".registry]
config_path = ""
"#;
