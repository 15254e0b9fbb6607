//! Inventories for the lab under test, made from the one that the demo uses.

use std::fs;
use std::path::{Path, PathBuf};

use crate::lab;

/// The demo's inventory with the paths of this lab, changed by `edit`, as a file.
pub(crate) fn edited(name: &str, edit: impl FnOnce(String) -> String) -> PathBuf {
    let demo = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("inventories/lab.yaml")).unwrap();
    let here = demo.replace("/var/tmp/k8sup-lab/", &format!("{}/", lab::folder().display()));
    assert_ne!(demo, here, "the demo's inventory does not name its lab's folder");
    write(name, &edit(here))
}

/// The demo's inventory with the paths of this lab, as a file.
pub(crate) fn standard() -> PathBuf {
    edited("lab.yaml", |text| text)
}

/// An inventory of one's own; `LAB` stands for the lab's folder.
pub(crate) fn of(name: &str, text: &str) -> PathBuf {
    write(name, &text.replace("LAB", &lab::folder().display().to_string()))
}

/// Replaces what must be there.
pub(crate) fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "the demo's inventory has no {from:?}");
    text.replace(from, to)
}

fn write(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).unwrap();
    path
}
