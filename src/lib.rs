//! `k8sup` turns bare Linux machines into a highly available kubeadm cluster, over SSH.
//!
//! Read the inventory, learn the facts, make a plan, carry it out, report: each verb is a
//! module, and each arrow between them a function. ARCHITECTURE.md is the map.

pub mod check;
pub mod cli;
pub mod cluster;
pub mod concern;
pub mod execute;
pub mod exit;
pub mod facts;
pub mod inventory;
pub mod kubeconfig;
pub mod manifest;
pub mod plan;
pub mod remote;
pub mod render;
pub mod report;
pub mod secret;
