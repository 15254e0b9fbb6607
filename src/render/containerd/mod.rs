//! containerd's configuration: the administrator's own, with what a Kubernetes node needs set
//! in the table that the file's version calls for.
//!
//! Which containerd reads the file decides how it is written:
//! - 1.x reads version 2 at most, and an imported file replaces a plugin's whole table instead
//!   of merging it. So where a drop-in has a CRI table, the union of all of them goes into a
//!   file of ours that is imported last.
//! - 2.x writes version 3. It converts version 2, but then drops the CRI table silently as
//!   soon as one drop-in is of version 3. So we convert for good.

mod dialect;
mod mirrors;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::images;
use crate::cluster::Cluster;
pub use dialect::Dialect;
use dialect::{CRI, CRI_IMAGES, CRI_NAMES, CRI_RUNTIME, Paths};
pub use mirrors::mirror_files;
use tables::{dotted, lookup, merge, table_in, take};

/// How [`assert_dump`] ends what it says of a disabled plugin.
pub const DISABLED: &str = " is disabled";
/// containerd's configuration; we write it whole and record what stood before.
pub const CONFIG_FILE: &str = "/etc/containerd/config.toml";
/// Where the administrator's own drop-ins are.
pub const DROP_INS: &str = "/etc/containerd/conf.d/*.toml";
/// Imported last under containerd 1.x, when a drop-in would else replace our table.
pub const CRI_FILE: &str = "/etc/containerd/k8sup-cri.toml";
/// Where containerd looks for the registries' `hosts.toml`.
pub const CERTS_D: &str = "/etc/containerd/certs.d";
/// Where Kubernetes' packages and Flannel install the CNI plugins.
pub const CNI_BIN_DIR: &str = "/opt/cni/bin";
/// Where the CNI configuration is.
pub const CNI_CONF_DIR: &str = "/etc/cni/net.d";

const HEADER: &str = "# managed by k8sup: your settings are kept when it is written anew, comments are not.\n\
                      # Settings of your own are best put into /etc/containerd/conf.d/.\n\n";
const RUNC: &str = "io.containerd.runc.v2";

/// Why an existing configuration cannot be extended.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ContainerdError {
    /// Not TOML.
    #[error("{path} is not valid TOML: {reason}; correct it, or remove it to start from the defaults")]
    Syntax {
        /// The file.
        path: String,
        /// What the parser says, on one line.
        reason: String,
    },
    /// Written for another containerd.
    #[error(
        "{path} has version {found}, but this containerd reads {wanted} at most; remove the file, or bring it to version {wanted}"
    )]
    Newer {
        /// The file.
        path: String,
        /// Its version.
        found: i64,
        /// What this containerd reads.
        wanted: i64,
    },
    /// Version 1, whose plugins have other names.
    #[error(
        "{path} has plugin settings but no `version = 2`, so their names are those of version 1; \
         rename the tables and set the version, or remove the file"
    )]
    VersionOne {
        /// The file.
        path: String,
    },
    /// A table is something else.
    #[error("{path} has {key} that is not a table; correct it")]
    NotATable {
        /// The file.
        path: String,
        /// Dotted name.
        key: String,
    },
    /// Old and new kind of mirrors.
    #[error(
        "{path} sets registry mirrors in the old way ({key}), which cannot be combined with the inventory's \
         images.mirrors; remove one of the two"
    )]
    OldMirrors {
        /// The file.
        path: String,
        /// Dotted name.
        key: String,
    },
}

/// All files for a host, by path: config.toml, [`CRI_FILE`] where it is needed. `drop_ins` are
/// the files that match [`DROP_INS`], by path.
pub fn config_files(
    existing: Option<&str>,
    drop_ins: &BTreeMap<String, String>,
    dialect: Dialect,
    cluster: &Cluster,
) -> Result<BTreeMap<String, String>, ContainerdError> {
    let mut main = read(CONFIG_FILE, existing, dialect)?;
    let mut union = Table::new();
    if dialect == Dialect::V1 {
        for (path, text) in drop_ins {
            let mut drop_in = read(path, Some(text), dialect)?;
            if let Some(cri) = drop_in
                .get_mut("plugins")
                .and_then(|plugins| plugins.as_table_mut()?.remove(CRI))
            {
                merge(&mut union, Table::from_iter([(CRI.to_owned(), cri)]));
            }
        }
    }
    let needs_last = !union.is_empty();
    complete(&mut main, CONFIG_FILE, dialect, cluster)?;
    set_imports(&mut main, needs_last);
    let mut files = BTreeMap::new();
    if needs_last {
        let mut plugins = Table::new();
        if let Some(cri) = main.get("plugins").and_then(|plugins| plugins.get(CRI)) {
            plugins.insert(CRI.to_owned(), cri.clone());
        }
        merge(&mut plugins, union);
        let mut last = Table::from_iter([
            ("version".to_owned(), Value::Integer(dialect.version())),
            ("plugins".to_owned(), Value::Table(plugins)),
        ]);
        complete(&mut last, DROP_INS, dialect, cluster)?;
        files.insert(CRI_FILE.to_owned(), write(&last));
    }
    files.insert(CONFIG_FILE.to_owned(), write(&main));
    Ok(files)
}

/// config.toml where no drop-in matters.
pub fn config_toml(existing: Option<&str>, dialect: Dialect, cluster: &Cluster) -> Result<String, ContainerdError> {
    let mut files = config_files(existing, &BTreeMap::new(), dialect, cluster)?;
    Ok(files.remove(CONFIG_FILE).unwrap_or_default())
}

/// What in `containerd config dump` is not as a node needs it, one sentence each. This looks at
/// what containerd made of all its files, so it also finds a drop-in that undoes our settings.
#[must_use]
pub fn assert_dump(dump: &Table, dialect: Dialect, cluster: &Cluster) -> Vec<String> {
    let mut deviations = Vec::new();
    let mut differs = |name: &str, found: Option<&Value>, wanted: &Value| {
        if found != Some(wanted) {
            let found = found.map_or_else(|| "not set".to_owned(), ToString::to_string);
            deviations.push(format!("{name} is {found}, not {wanted}"));
        }
    };
    let table = Paths::of(dialect);
    let at = |path: &[&str]| lookup(dump, path);
    differs(
        "SystemdCgroup of runc",
        at(&table.runtime(&["containerd", "runtimes", "runc", "options", "SystemdCgroup"])),
        &Value::Boolean(true),
    );
    differs(
        "the sandbox image",
        at(&table.sandbox()),
        &Value::String(images::pause(cluster)),
    );
    match dialect {
        Dialect::V1 | Dialect::V20 => {
            differs(
                "the folder of CNI plugins",
                at(&table.runtime(&["cni", "bin_dir"])),
                &Value::String(CNI_BIN_DIR.to_owned()),
            );
        }
        Dialect::V21 => {
            let path = table.runtime(&["cni", "bin_dirs"]);
            let first = at(&path).and_then(|dirs| dirs.as_array()?.first());
            differs(
                "the first folder of CNI plugins",
                first,
                &Value::String(CNI_BIN_DIR.to_owned()),
            );
        }
    }
    differs(
        "the folder of CNI configuration",
        at(&table.runtime(&["cni", "conf_dir"])),
        &Value::String(CNI_CONF_DIR.to_owned()),
    );
    if !cluster.images.mirrors.is_empty() {
        let path = table.registry(&["config_path"]);
        let found = at(&path);
        if !found.and_then(Value::as_str).is_some_and(has_certs_d) {
            differs(
                "config_path of the registries",
                found,
                &Value::String(CERTS_D.to_owned()),
            );
        }
    }
    let disabled = dump
        .get("disabled_plugins")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    for name in disabled.filter(|name| CRI_NAMES.contains(name)) {
        deviations.push(format!("the plugin {name}{DISABLED}"));
    }
    deviations
}

/// Reads a file and brings it to the version that this containerd reads.
fn read(path: &str, text: Option<&str>, dialect: Dialect) -> Result<Table, ContainerdError> {
    let parsed: Result<Table, toml::de::Error> = text.unwrap_or_default().parse();
    let mut table = parsed.map_err(|error| ContainerdError::Syntax {
        path: path.to_owned(),
        reason: error.message().lines().collect::<Vec<_>>().join(" "),
    })?;
    let wanted = dialect.version();
    let version = table.get("version").and_then(Value::as_integer).unwrap_or(1);
    let has_plugins = table
        .get("plugins")
        .and_then(Value::as_table)
        .is_some_and(|plugins| !plugins.is_empty());
    if version > wanted {
        return Err(ContainerdError::Newer {
            path: path.to_owned(),
            found: version,
            wanted,
        });
    }
    if version < 2 && has_plugins {
        return Err(ContainerdError::VersionOne { path: path.to_owned() });
    }
    if version < wanted && wanted == 3 {
        to_version_three(path, &mut table, dialect)?;
    }
    table.insert("version".to_owned(), Value::Integer(wanted));
    Ok(table)
}

/// As containerd 2 itself converts, so that nothing of the administrator's is lost.
fn to_version_three(path: &str, file: &mut Table, dialect: Dialect) -> Result<(), ContainerdError> {
    const SERVER: [&str; 6] = [
        "disable_tcp_service",
        "stream_server_address",
        "stream_server_port",
        "stream_idle_timeout",
        "enable_tls_streaming",
        "x509_key_pair_streaming",
    ];
    const IMAGES: [&str; 6] = [
        "registry",
        "image_decryption",
        "max_concurrent_downloads",
        "image_pull_progress_timeout",
        "image_pull_with_sync_fs",
        "stats_collect_period",
    ];
    const SNAPSHOTS: [&str; 3] = ["snapshotter", "disable_snapshot_annotations", "discard_unpacked_layers"];

    if !file.contains_key("plugins") {
        return Ok(());
    }
    let plugins = table_in(file, path, &["plugins"])?;
    if let Some(restart) = plugins.remove("io.containerd.internal.v1.restart") {
        plugins.insert("io.containerd.monitor.container.v1.restart".to_owned(), restart);
    }
    let Some(cri) = plugins.remove(CRI) else { return Ok(()) };
    let Value::Table(mut cri) = cri else {
        return Err(ContainerdError::NotATable {
            path: path.to_owned(),
            key: format!("plugins.\"{CRI}\""),
        });
    };

    let server = take(&mut cri, &SERVER);
    let mut images = take(&mut cri, &IMAGES);
    if let Some(sandbox) = cri.remove("sandbox_image") {
        images.insert(
            "pinned_images".to_owned(),
            Value::Table(Table::from_iter([("sandbox".to_owned(), sandbox)])),
        );
    }
    if let Some(Value::Table(containerd)) = cri.get_mut("containerd") {
        images.extend(take(containerd, &SNAPSHOTS));
        if let Some(Value::Table(runtimes)) = containerd.get_mut("runtimes") {
            for runtime in runtimes.iter_mut().filter_map(|(_, runtime)| runtime.as_table_mut()) {
                if let Some(mode) = runtime.remove("sandbox_mode") {
                    runtime.entry("sandboxer").or_insert(mode);
                }
            }
        }
    }
    if let (Dialect::V21, Some(Value::Table(cni))) = (dialect, cri.get_mut("cni"))
        && let Some(dir) = cni.remove("bin_dir")
    {
        cni.entry("bin_dirs").or_insert(Value::Array(vec![dir]));
    }
    for (name, table) in [(CRI, server), (CRI_IMAGES, images), (CRI_RUNTIME, cri)] {
        if !table.is_empty() {
            merge(plugins, Table::from_iter([(name.to_owned(), Value::Table(table))]));
        }
    }
    Ok(())
}

/// Sets what a node needs.
fn complete(file: &mut Table, path: &str, dialect: Dialect, cluster: &Cluster) -> Result<(), ContainerdError> {
    if let Some(Value::Array(disabled)) = file.get_mut("disabled_plugins") {
        disabled.retain(|name| !name.as_str().is_some_and(|name| CRI_NAMES.contains(&name)));
    }
    let paths = Paths::of(dialect);

    let runtimes = table_in(file, path, &paths.runtime(&["containerd", "runtimes"]))?;
    // A table of its own without a type is a runtime without a type: 1.x does not merge it with the default.
    let runc = table_in(runtimes, path, &["runc"])?;
    runc.entry("runtime_type")
        .or_insert_with(|| Value::String(RUNC.to_owned()));
    let names: Vec<String> = runtimes.keys().cloned().collect();
    for name in names {
        let runtime = table_in(runtimes, path, &[&name])?;
        if runtime.get("runtime_type").and_then(Value::as_str) == Some(RUNC) {
            table_in(runtime, path, &["options"])?.insert("SystemdCgroup".to_owned(), Value::Boolean(true));
        }
    }

    let sandbox = paths.sandbox();
    if let Some((key, parents)) = sandbox.split_last() {
        table_in(file, path, parents)?.insert((*key).to_owned(), Value::String(images::pause(cluster)));
    }

    let cni = table_in(file, path, &paths.runtime(&["cni"]))?;
    cni.insert("conf_dir".to_owned(), Value::String(CNI_CONF_DIR.to_owned()));
    let bin_dir = Value::String(CNI_BIN_DIR.to_owned());
    if dialect == Dialect::V21 {
        cni.remove("bin_dir");
        cni.insert("bin_dirs".to_owned(), Value::Array(vec![bin_dir]));
    } else {
        cni.insert("bin_dir".to_owned(), bin_dir);
    }

    let registry = table_in(file, path, &paths.registry(&[]))?;
    // Mirrors in the old way exclude config_path: containerd would not start with both.
    let old_mirrors = registry
        .get("mirrors")
        .and_then(Value::as_table)
        .is_some_and(|mirrors| !mirrors.is_empty());
    if old_mirrors && !cluster.images.mirrors.is_empty() {
        return Err(ContainerdError::OldMirrors {
            path: path.to_owned(),
            key: dotted(&paths.registry(&["mirrors"])),
        });
    }
    if !old_mirrors
        && !registry
            .get("config_path")
            .and_then(Value::as_str)
            .is_some_and(has_certs_d)
    {
        registry.insert("config_path".to_owned(), Value::String(CERTS_D.to_owned()));
    }
    Ok(())
}

fn has_certs_d(config_path: &str) -> bool {
    config_path.split(':').any(|path| path.trim_end_matches('/') == CERTS_D)
}

/// The administrator's imports are kept; ours come last, because later ones win.
fn set_imports(file: &mut Table, needs_last: bool) {
    let mut imports = match file.remove("imports") {
        Some(Value::Array(imports)) => imports,
        _ => Vec::new(),
    };
    imports.retain(|import| import.as_str() != Some(CRI_FILE));
    if !imports.iter().any(|import| import.as_str() == Some(DROP_INS)) {
        imports.push(Value::String(DROP_INS.to_owned()));
    }
    if needs_last {
        imports.push(Value::String(CRI_FILE.to_owned()));
    }
    file.insert("imports".to_owned(), Value::Array(imports));
}

fn write(table: &Table) -> String {
    format!("{HEADER}{table}")
}
