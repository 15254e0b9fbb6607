//! The raw text of `templates/probe.sh` and `templates/cluster.sh` made into facts. Pure, and without panic on any text.

mod certificate;
mod cluster;
mod host;
mod kube;
mod network;
mod platform;
mod sections;
mod surroundings;
mod swap;

pub use certificate::certificate;
pub use cluster::cluster;
pub use host::host;
pub use sections::{Sections, sections};

/// Why a probe's text is no description of a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Not one section of ours.
    #[error("the probe printed nothing that can be understood: {0:?}")]
    Foreign(String),
    /// The text ends early.
    #[error("the probe's answer was cut short after section {0:?}")]
    Cut(String),
    /// Facts that a plan cannot do without are unknown.
    #[error("the host could not be described: {}", .0.join("; "))]
    Unreadable(Vec<String>),
}
