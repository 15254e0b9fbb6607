//! Clusters for tests, from inventory text.

use super::{Cluster, load};
use crate::inventory::{Environment, render_problems};

/// The cluster that an inventory describes.
pub(crate) fn cluster(inventory: &str) -> Cluster {
    let environment = Environment {
        user: "pi".to_owned(),
        home: "/home/pi".into(),
        inventory_dir: "/inventories".into(),
    };
    match load(inventory, &environment) {
        Ok((cluster, _)) => cluster,
        Err(problems) => panic!("{}", render_problems(&problems, inventory, "inventory.yaml", false)),
    }
}
