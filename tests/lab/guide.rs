//! What the guide says is typed as it stands there, so that it cannot go out of date.

use std::fs;
use std::path::Path;

use crate::inventory;
use crate::program::typed;

/// The commands of a document that are for the lab: the lines of its blocks that begin with this.
const BLOCK: &str = "```sh lab\n";

fn commands(document: &str) -> Vec<&str> {
    let blocks = document.split(BLOCK).skip(1);
    blocks
        .flat_map(|block| block.split("```").next().unwrap_or_default().lines())
        .collect()
}

/// From bare hosts to a cluster and back, by the guide.
pub(crate) fn followed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = fs::read_to_string(root.join("docs/guide.md")).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guide");
    fs::create_dir_all(&folder).unwrap();
    fs::copy(inventory::standard(), folder.join("homelab.yaml")).unwrap();
    let commands = commands(&guide);
    for part in ["check", "plan", "apply", "status", "kubeconfig", "exec", "reset"] {
        let there = commands.iter().any(|line| line.starts_with(&format!("k8sup {part} ")));
        assert!(there, "the guide does not show {part}");
    }
    for line in commands {
        typed(line, &folder).expect(0);
    }
}
