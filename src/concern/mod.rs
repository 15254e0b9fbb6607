//! What must be true of a host before Kubernetes: each concern compares facts with what is
//! wanted and gives the steps that close the difference.

pub mod boot;
pub mod clock;
pub mod containerd;
pub mod firewall;
pub mod kernel;
pub mod kubelet;
pub mod leftovers;
pub mod links;
pub mod load_balancer;
pub mod names;
pub mod packages;
pub mod preflight;
pub mod swap;
