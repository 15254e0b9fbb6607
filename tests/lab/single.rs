//! The smallest cluster: one controller without a load balancer and one worker, of which the
//! controller is reached through a bastion.

use std::path::PathBuf;

use crate::inventory::{self, replaced};
use crate::lab::{folder, lab, rebuild, timed};
use crate::program::k8sup;
use crate::serving::{is_healthy, serves};

const INVENTORY: &str = "
cluster: { name: single, kubernetes: v1.34.4 }
ssh:
  user: pi
  key: LAB/id_ed25519
  knownHosts: LAB/known_hosts
  hostKeys: strict
controllers:
  cp1:
    address: 192.168.7.201
    ssh: { bastion: { host: 192.168.7.150, user: pi } }
workers:
  w3: { address: 192.168.7.206 }
packages: { repository: 'http://192.168.7.1' }
images: { mirrors: { '*': ['http://192.168.7.1:5000'] } }
flannel:
  manifest: http://192.168.7.1/flannel/releases/download/v0.28.10/kube-flannel.yml
  sha256: 944a3c1f925f117727a1b7272a323c80965da642498397ec7e6ea9bef0f9e6c5
dns: { resolvers: [192.168.7.1] }
";

/// The same two hosts without the bastion.
pub(crate) fn direct() -> PathBuf {
    let bastion = "    ssh: { bastion: { host: 192.168.7.150, user: pi } }\n";
    inventory::of("direct.yaml", &replaced(INVENTORY, bastion, ""))
}

/// Check, apply, use, reset.
pub(crate) fn behind_bastion() {
    rebuild(&["cp1", "w3"]);
    timed("lab up bastion", || lab(&["up", "bastion"]));
    let known = std::fs::read_to_string(folder().join("known_hosts")).unwrap();
    assert!(
        known.contains("192.168.7.150 "),
        "the lab does not know its bastion's key"
    );
    let inventory = inventory::of("single.yaml", INVENTORY);
    k8sup(&["check"], &inventory).expect(0);
    k8sup(&["apply", "--yes"], &inventory).expect(0);
    serves(&["cp1", "w3"]);
    k8sup(&["apply", "--yes"], &inventory).expect(0).says("Nothing to do");
    is_healthy(&inventory);
    k8sup(&["reset", "--yes"], &inventory)
        .expect(0)
        .says("2 hosts are clean");
}
