//! What the user wrote: the inventory file, read with the place of every value.
//!
//! [`shape`] reads a text, [`render_problems`] shows what is wrong with it, with its lines. What
//! it means is [`cluster`](crate::cluster)'s business. Nothing here touches a network, and only
//! [`open`] touches a file.

pub mod problem;
pub mod raw;
pub mod schema;
pub mod tree;

mod read;
pub(crate) mod vocabulary;
mod walk;

use std::path::{Path, PathBuf};

pub use problem::{Problem, Severity, Span, render_problems};
pub use raw::Inventory;
pub(crate) use walk::nearest;

/// What an inventory leaves to the surroundings.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Name of the local user: the default login.
    pub user: String,
    /// Home of the local user, for `~`.
    pub home: PathBuf,
    /// Folder of the inventory, for relative paths.
    pub inventory_dir: PathBuf,
}

/// Why an inventory file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be had.
    #[error("cannot read the inventory {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not text.
    #[error("the inventory {}:{line}:{column} is not UTF-8 text: save it as UTF-8", path.display())]
    Encoding {
        /// The file.
        path: PathBuf,
        /// Line of the first wrong byte, from 1.
        line: usize,
        /// Its column, from 1.
        column: usize,
    },
}

/// Reads an inventory's text from its file.
///
/// # Errors
/// When there is no such file, or it is not UTF-8.
pub fn open(path: &Path) -> Result<String, OpenError> {
    use std::io::Read;
    let failed = |source| OpenError::Read {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    // One byte more than is allowed tells `load` that the file is too long.
    let most = tree::MOST_BYTES as u64 + 1;
    std::fs::File::open(path)
        .map_err(failed)?
        .take(most)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => {
            let good = error.utf8_error().valid_up_to();
            let bytes = error.into_bytes();
            let before = String::from_utf8_lossy(&bytes[..good]);
            if bytes.len() > tree::MOST_BYTES && good + 4 > bytes.len() {
                return Ok(format!("{before} "));
            }
            let (line, column) = problem::line_column(&before, before.len());
            Err(OpenError::Encoding {
                path: path.to_owned(),
                line,
                column,
            })
        }
    }
}

/// Reads an inventory's shape, as far as it has one, and what is wrong with it.
#[must_use]
pub fn shape(text: &str) -> (Option<Inventory>, Vec<Problem>) {
    let (root, mut problems) = tree::parse(text);
    match root {
        Some(root) if !root.is_null() => {
            let (inventory, more) = read::read(root);
            problems.extend(more);
            (Some(inventory), problems)
        }
        _ => {
            if problems.is_empty() {
                let problem = Problem::error(0..0, "the inventory is empty");
                problems.push(problem.hint("start from a copy of inventories/homelab.yaml"));
            }
            (None, problems)
        }
    }
}
