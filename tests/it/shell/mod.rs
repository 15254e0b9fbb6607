//! The steps' scripts really run, by a real shell, on a host that is a folder.
//!
//! What they do together on real hosts is for the lab tier.

mod cluster;
mod etcd;
mod firewall;
mod leftovers;
mod load_balancer;
mod machine;
mod packages;
mod paths;
mod prelude;
mod prepare;
mod reset;
mod restore;
mod smoke;
