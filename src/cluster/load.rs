//! From an inventory's text to a cluster, with all problems of the file at once.

use super::resolve::resolve;
use super::{Cluster, decision};
use crate::inventory::problem::{Problem, Severity, sort};
use crate::inventory::{Environment, shape};

/// Reads an inventory. Beside the cluster come the warnings.
///
/// # Errors
/// All problems of the file, warnings among them, in the order of the file.
pub fn load(text: &str, environment: &Environment) -> Result<(Cluster, Vec<Problem>), Vec<Problem>> {
    let (inventory, mut problems) = shape(text);
    let cluster = inventory.and_then(|inventory| {
        let mut cluster = resolve(&inventory, environment, &mut problems)?;
        cluster.decisions = decision::of(&cluster, &inventory, text);
        Some(cluster)
    });
    sort(&mut problems);
    match cluster {
        Some(cluster) if problems.iter().all(|problem| problem.severity == Severity::Warning) => {
            Ok((cluster, problems))
        }
        _ => Err(problems),
    }
}

#[cfg(test)]
mod tests;
