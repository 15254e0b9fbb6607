//! Configurations as distributions and people have them, made fit for a node and read back.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::prelude::*;
use toml::{Table, Value};

use super::{
    CONFIG_FILE, CRI_FILE, ContainerdError, Dialect, assert_dump, config_files, config_toml, lookup, mirror_files,
};
use crate::cluster::Cluster;
use crate::render::tests::homelab;

/// /etc/containerd/config.toml of Debian's package, 12 to 14 alike.
const DEBIAN: &str = include_str!("../../../tests/fixtures/containerd/debian.toml");
const DOCKER: &str = "# comments\ndisabled_plugins = [\"cri\"]\n#root = \"/var/lib/containerd\"\n";
const DIALECTS: [Dialect; 3] = [Dialect::V1, Dialect::V20, Dialect::V21];

fn mirrored() -> Cluster {
    let mut cluster = homelab();
    cluster
        .images
        .mirrors
        .insert("*".to_owned(), vec!["http://192.168.7.1:5000".to_owned()]);
    cluster
}

fn parse(text: &str) -> Table {
    text.parse().unwrap()
}

#[test]
fn dialects() {
    for (version, dialect) in [
        ("1.6.20~ds1", Some(Dialect::V1)),
        ("1.7.24", Some(Dialect::V1)),
        ("v2.0.3", Some(Dialect::V20)),
        ("2.1.9+unknown", Some(Dialect::V21)),
        ("3.0.0", Some(Dialect::V21)),
        ("unknown", None),
    ] {
        assert_eq!(Dialect::of(version), dialect, "{version}");
    }
}

#[test]
fn golden_containerd_1() {
    insta::assert_snapshot!(config_toml(Some(DEBIAN), Dialect::V1, &homelab()).unwrap());
}

#[test]
fn golden_containerd_2_1() {
    insta::assert_snapshot!(config_toml(Some(DEBIAN), Dialect::V21, &homelab()).unwrap());
}

#[test]
fn golden_without_a_file() {
    insta::assert_snapshot!(config_toml(None, Dialect::V20, &homelab()).unwrap());
}

/// `containerd config dump` of Debian's containerd with our file, and with the package's own.
#[test]
fn what_containerd_itself_makes_of_it_is_right() {
    for (dump, dialect) in [
        (
            include_str!("../../../tests/fixtures/containerd/dump-1.6.toml"),
            Dialect::V1,
        ),
        (
            include_str!("../../../tests/fixtures/containerd/dump-1.7.toml"),
            Dialect::V1,
        ),
        (
            include_str!("../../../tests/fixtures/containerd/dump-2.1.toml"),
            Dialect::V21,
        ),
    ] {
        assert_eq!(
            assert_dump(&parse(dump), dialect, &mirrored()),
            Vec::<String>::new(),
            "{dialect:?}"
        );
    }
    let mut untouched = parse(include_str!(
        "../../../tests/fixtures/containerd/dump-2.1-untouched.toml"
    ));
    untouched.insert(
        "disabled_plugins".to_owned(),
        Value::Array(vec![Value::String("io.containerd.grpc.v1.cri".to_owned())]),
    );
    assert_eq!(
        assert_dump(&untouched, Dialect::V21, &mirrored()),
        [
            "SystemdCgroup of runc is false, not true",
            "the sandbox image is \"registry.k8s.io/pause:3.10\", not \"registry.k8s.io/pause:3.10.1\"",
            "the first folder of CNI plugins is \"/usr/lib/cni\", not \"/opt/cni/bin\"",
            "config_path of the registries is \"\", not \"/etc/containerd/certs.d\"",
            "the plugin io.containerd.grpc.v1.cri is disabled",
        ]
    );
}

#[test]
fn the_cri_is_switched_on_and_the_rest_stays() {
    for dialect in DIALECTS {
        let table = parse(&config_toml(Some(DOCKER), dialect, &homelab()).unwrap());
        assert_eq!(table["disabled_plugins"], Value::Array(Vec::new()));
    }
    let theirs = "version = 2\noom_score = -999\nimports = [\"/etc/other.toml\"]\n\
                  disabled_plugins = [\"io.containerd.snapshotter.v1.zfs\", \"io.containerd.grpc.v1.cri\"]\n\
                  [debug]\nlevel = \"debug\"\n";
    let table = parse(&config_toml(Some(theirs), Dialect::V1, &homelab()).unwrap());
    assert_eq!(table["oom_score"], Value::Integer(-999));
    assert_eq!(table["debug"]["level"].as_str(), Some("debug"));
    assert_eq!(
        table["disabled_plugins"].to_string(),
        "[\"io.containerd.snapshotter.v1.zfs\"]"
    );
    assert_eq!(
        table["imports"].to_string(),
        "[\"/etc/other.toml\", \"/etc/containerd/conf.d/*.toml\"]"
    );
}

#[test]
fn settings_move_to_their_place_in_version_three() {
    let theirs = r#"
        version = 2
        [plugins."io.containerd.grpc.v1.cri"]
        max_concurrent_downloads = 9
        max_container_log_line_size = 4242
        stream_server_port = "10010"
        [plugins."io.containerd.grpc.v1.cri".containerd]
        snapshotter = "zfs"
        default_runtime_name = "nvidia"
        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
        runtime_type = "io.containerd.runc.v2"
        sandbox_mode = "shim"
        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.gvisor]
        runtime_type = "io.containerd.runsc.v1"
        [plugins."io.containerd.internal.v1.restart"]
        interval = "5s"
    "#;
    insta::assert_snapshot!(config_toml(Some(theirs), Dialect::V21, &homelab()).unwrap());
}

#[test]
fn drop_ins_with_a_cri_table_are_united_under_containerd_1() {
    let drop_in = "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\nmax_container_log_line_size = 4242\n\
                   [plugins.\"io.containerd.grpc.v1.cri\".cni]\nmax_conf_num = 2\nbin_dir = \"/usr/lib/cni\"\n";
    let drop_ins = BTreeMap::from([("/etc/containerd/conf.d/own.toml".to_owned(), drop_in.to_owned())]);
    let files = config_files(Some(DEBIAN), &drop_ins, Dialect::V1, &homelab()).unwrap();
    assert_eq!(
        parse(&files[CONFIG_FILE])["imports"].to_string(),
        "[\"/etc/containerd/conf.d/*.toml\", \"/etc/containerd/k8sup-cri.toml\"]"
    );
    let last = parse(&files[CRI_FILE]);
    let cri = |path: &[&str]| {
        lookup(&last, &[&["plugins", "io.containerd.grpc.v1.cri"], path].concat())
            .unwrap()
            .to_string()
    };
    assert_eq!(cri(&["max_container_log_line_size"]), "4242");
    assert_eq!(cri(&["cni", "max_conf_num"]), "2");
    assert_eq!(cri(&["cni", "bin_dir"]), "\"/opt/cni/bin\"");
    assert_eq!(
        cri(&["containerd", "runtimes", "runc", "options", "SystemdCgroup"]),
        "true"
    );
    let again = config_files(Some(&files[CONFIG_FILE]), &drop_ins, Dialect::V1, &homelab()).unwrap();
    assert_eq!(again, files);
    // containerd 2 merges by itself, and without such a drop-in there is nothing to unite.
    let other = BTreeMap::from([(
        "/etc/containerd/conf.d/own.toml".to_owned(),
        "version = 2\n[debug]\n".to_owned(),
    )]);
    for (drop_ins, dialect) in [(&drop_ins, Dialect::V21), (&other, Dialect::V1)] {
        let files = config_files(Some(DEBIAN), drop_ins, dialect, &homelab()).unwrap();
        assert_eq!(files.len(), 1);
        assert!(!files[CONFIG_FILE].contains(CRI_FILE));
    }
}

#[test]
fn what_cannot_be_extended_is_refused() {
    let refusal = |text: &str, dialect| config_toml(Some(text), dialect, &mirrored()).unwrap_err();
    assert!(matches!(
        refusal("version = 3\n", Dialect::V1),
        ContainerdError::Newer {
            found: 3,
            wanted: 2,
            ..
        }
    ));
    assert!(matches!(
        refusal("version = 4\n", Dialect::V21),
        ContainerdError::Newer {
            found: 4,
            wanted: 3,
            ..
        }
    ));
    assert!(matches!(
        refusal("[plugins.cri]\nx = 1\n", Dialect::V1),
        ContainerdError::VersionOne { .. }
    ));
    assert!(matches!(
        refusal("version = \n", Dialect::V1),
        ContainerdError::Syntax { .. }
    ));
    let not_a_table = refusal(
        "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\ncni = 1\n",
        Dialect::V1,
    );
    assert_eq!(
        not_a_table.to_string(),
        "/etc/containerd/config.toml has plugins.\"io.containerd.grpc.v1.cri\".cni that is not a table; correct it"
    );
    let old = "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".registry.mirrors.\"docker.io\"]\nendpoint = [\"https://m\"]\n";
    assert!(matches!(refusal(old, Dialect::V1), ContainerdError::OldMirrors { .. }));
    let kept = parse(&config_toml(Some(old), Dialect::V1, &homelab()).unwrap());
    assert_eq!(
        lookup(
            &kept,
            &["plugins", "io.containerd.grpc.v1.cri", "registry", "config_path"]
        ),
        None
    );
}

#[test]
fn mirrors() {
    let mut cluster = mirrored();
    cluster.images.mirrors.insert(
        "docker.io".to_owned(),
        vec!["https://z.lan/".to_owned(), "https://harbor.lan/v2/hub".to_owned()],
    );
    cluster
        .images
        .mirrors
        .insert("registry.k8s.io".to_owned(), vec!["https://a.lan".to_owned()]);
    let files = mirror_files(&cluster.images);
    let text: Vec<String> = files.iter().map(|(path, text)| format!("== {path}\n{text}")).collect();
    insta::assert_snapshot!(text.join("\n"));
    for text in files.values() {
        parse(text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn writing_what_was_written_changes_nothing(
        level in "[a-z]{1,5}", cri in prop::option::of("[a-z_]{3,9}"), disabled in prop::collection::vec("(cri|zfs|aufs)", 0..3),
        version_two in any::<bool>(),
    ) {
        let mut theirs = format!("disabled_plugins = {disabled:?}\n");
        if version_two || cri.is_some() {
            theirs.push_str("version = 2\n");
        }
        let _ = write!(theirs, "[debug]\nlevel = \"{level}\"\n");
        if let Some(key) = cri {
            let _ = write!(theirs, "[plugins.\"io.containerd.grpc.v1.cri\"]\n{key} = 1\n");
        }
        for dialect in DIALECTS {
            let once = config_toml(Some(&theirs), dialect, &homelab()).unwrap();
            let twice = config_toml(Some(&once), dialect, &homelab()).unwrap();
            prop_assert_eq!(&once, &twice);
            prop_assert!(once.contains(&level));
        }
    }
}
