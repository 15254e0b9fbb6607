//! From what the user wrote to what it means: an [`Inventory`] becomes a [`Cluster`].
//!
//! Pure: what depends on the surroundings comes in as an [`Environment`]. Every rule is
//! checked and every problem reported at its place, whatever else is wrong.

mod hosts;
mod labels;
mod login;
mod network;
mod sources;
mod text;

use super::Cluster;
use crate::inventory::problem::{Problem, Severity};
use crate::inventory::{Environment, Inventory};
use text::{Wrong, address, check, name, one_of, subject};

/// Values of kubeadm's `encryptionAlgorithm`.
const KEY_ALGORITHMS: [(&str, &str); 5] = [
    ("RSA-2048", "RSA-2048"),
    ("RSA-3072", "RSA-3072"),
    ("RSA-4096", "RSA-4096"),
    ("ECDSA-P256", "ECDSA-P256"),
    ("ECDSA-P384", "ECDSA-P384"),
];

/// Works out what an inventory means. `None` only where `problems` holds an error.
pub fn resolve(inventory: &Inventory, environment: &Environment, problems: &mut Vec<Problem>) -> Option<Cluster> {
    let section = &inventory.cluster;
    let placed = hosts::hosts(inventory, environment, problems);
    network::counts(inventory, problems);
    let (pod_cidr, service_cidr) = network::networks(inventory, &placed, problems);
    let endpoint = network::endpoint_of(inventory, &placed, problems);
    let dns_resolvers: Vec<_> = inventory
        .dns_resolvers
        .iter()
        .filter_map(|at| check(problems, Some(at), |text| resolver(text)).map(|address| (address, at.span.clone())))
        .collect();

    let mut addresses = Vec::new();
    for one in &placed {
        if let Some((address, span)) = &one.address {
            addresses.push(("the host's address", *address, span.clone()));
        }
    }
    if let (Some(endpoint), Some(at)) = (&endpoint, &section.endpoint)
        && let Ok(address) = endpoint.host.parse()
    {
        addresses.push(("the endpoint", address, at.span.clone()));
    }
    addresses.extend(
        dns_resolvers
            .iter()
            .map(|(address, span)| (network::RESOLVER, *address, span.clone())),
    );
    let place = |at: &Option<crate::inventory::raw::At<String>>| at.as_ref().map(|at| at.span.clone());
    let networks = [
        ("pod", pod_cidr, place(&section.pod_cidr)),
        ("service", service_cidr, place(&section.service_cidr)),
    ];
    network::outside(networks, &addresses, problems);

    let flannel = sources::flannel(&inventory.flannel, environment, problems);
    let packages = sources::packages(&inventory.packages, problems);
    let images = sources::images(&inventory.images, problems);
    let overrides = sources::overrides(inventory, problems);
    let proxy = inventory
        .proxy
        .as_ref()
        .map(|section| sources::proxy(section, problems));
    let cluster_name = check(problems, section.name.as_ref(), |text| cluster_name(text));
    let version = check(problems, section.kubernetes.as_ref(), |text| text::kubernetes(text));
    let dns_domain = match &section.dns_domain {
        None => Some("cluster.local".to_owned()),
        Some(at) => check(problems, Some(at), |text| {
            name("DNS domain", text).map(|name| name.to_string())
        }),
    };
    let key_algorithm = check(problems, section.key_algorithm.as_ref(), |text| {
        one_of("key algorithm", text, &KEY_ALGORITHMS)
    });
    let extra_sans = section
        .cert_sans
        .iter()
        .filter_map(|at| check(problems, Some(at), |text| subject(text)))
        .collect();
    let allow = inventory
        .allow
        .iter()
        .filter_map(|at| check(problems, Some(at), |text| text::check_code(text)))
        .collect();

    if problems.iter().any(|problem| problem.severity == Severity::Error) {
        return None;
    }
    Some(Cluster {
        name: cluster_name?,
        version: version?,
        endpoint: endpoint?,
        pod_cidr: pod_cidr?,
        service_cidr: service_cidr?,
        dns_domain: dns_domain?,
        key_algorithm: key_algorithm.map(str::to_owned),
        extra_sans,
        hosts: placed.into_iter().map(|one| one.host).collect::<Option<_>>()?,
        flannel: flannel?,
        packages: packages?,
        images,
        overrides,
        dns_resolvers: dns_resolvers.into_iter().map(|(address, _)| address).collect(),
        set_hostnames: section.set_hostnames.as_ref().is_some_and(|at| at.value),
        proxy,
        allow,
        // They need the lines of the text.
        decisions: Vec::new(),
    })
}

/// A cluster's name: one part of a domain.
fn cluster_name(text: &str) -> Result<String, Wrong> {
    let name = name("name of a cluster", text)?;
    if name.as_str().len() > 63 || name.as_str().contains('.') {
        return Err(Wrong::new(
            "the name of a cluster has at most 63 characters and no dot",
            "for example `homelab`",
        ));
    }
    Ok(name.to_string())
}

/// A resolver that pods can reach.
fn resolver(text: &str) -> Result<std::net::Ipv4Addr, Wrong> {
    if text
        .parse::<std::net::Ipv4Addr>()
        .is_ok_and(|address| address.is_loopback())
    {
        return Err(Wrong::new(
            "a resolver on the loopback address is the pod itself when CoreDNS asks it",
            "write the address of a resolver in your network, such as `192.168.7.1`",
        ));
    }
    address(text)
}
