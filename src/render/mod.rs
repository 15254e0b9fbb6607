//! From typed values to the bytes that go onto a host or into the cluster.
//!
//! Every function here is pure. Secrets and late values are only named, by the placeholders
//! of [`Reference`](crate::plan::Reference); what contains one is sealed by the caller.

pub mod containerd;
pub mod coredns;
pub mod flannel;
pub mod haproxy;
pub mod host;
pub mod images;
pub mod kubeadm;
pub mod starter;
mod template;
mod yaml;

#[cfg(test)]
pub(crate) mod tests;

pub use template::TemplateError;
