//! What keeps packets from getting from host to host is found with real packets, before anything is changed.

use std::path::Path;

use crate::inventory;
use crate::lab::{HOSTS, lab, on, rebuild, snapshots, step, timed};
use crate::program::{Ran, k8sup};

/// Hosts with a firewall of their own in the scenario.
const WALLED: [&str; 4] = ["lb-0", "cp2", "cp3", "w2"];
/// What no check may leave: ports of the proof, and its listener.
const NO_LISTENER: &str =
    "! ss -Hltunp | grep -E ':(6443|2379|2380|10250|8472) ' && ! grep -l '^k8sup-listen' /proc/[0-9]*/comm 2>/dev/null";

/// A fault for a moment: what makes it, what is found then, and what mends it.
struct Fault {
    make: &'static [(&'static str, &'static str)],
    found: &'static [&'static str],
    mend: &'static [(&'static str, &'static str)],
}

const FAULTS: &[Fault] = &[
    // Dropped and rejected on different hosts, and between two workers: each is told, with the rule that does it.
    Fault {
        make: &[
            ("cp2", "iptables -A INPUT -p tcp --dport 2379 -j DROP"),
            ("cp3", "iptables -A INPUT -p tcp --dport 10250 -j REJECT"),
            ("w2", "iptables -A INPUT -s 192.168.7.204 -p udp --dport 8472 -j DROP"),
        ],
        found: &[
            "nobody reaches its port 2379/tcp (cp1, cp3 tried): no answer [K8S-NET-010]",
            "nobody reaches its port 10250/tcp (cp1, cp2 tried): refused by a firewall [K8S-NET-011]",
            "w1 does not reach its port 8472/udp: no answer [K8S-NET-013]",
            "its packet filter stops what other hosts of the cluster send [K8S-FW-003]",
            "6 problems",
        ],
        mend: &[
            ("cp2", "iptables -F INPUT"),
            ("cp3", "iptables -F INPUT"),
            ("w2", "iptables -F INPUT"),
        ],
    },
    // A firewall that lets nothing in but SSH and answers: told once a kind, not once a packet. It refuses only so often
    // in a second, so what is refused last may stay silent.
    Fault {
        make: &[
            (
                "cp2",
                "iptables -A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
            ),
            ("cp2", "iptables -A INPUT -i lo -j ACCEPT"),
            ("cp2", "iptables -A INPUT -p tcp --dport 22 -j ACCEPT"),
            ("cp2", "iptables -A INPUT -j REJECT --reject-with icmp-host-prohibited"),
            ("lb-0", "iptables -A INPUT -p tcp --dport 6443 -j DROP"),
        ],
        found: &[
            "no node reaches the endpoint 192.168.7.140:6443 there: no answer [K8S-NET-008]",
            "lb-0 does not reach its port 6443/tcp: No route to host [K8S-NET-009]",
            "nobody reaches its ports 2379/tcp, 2380/tcp, 6443/tcp (cp1, cp3 tried): No route to host [K8S-NET-010]",
            "nobody reaches its port 10250/tcp (cp1, cp3 tried): No route to host [K8S-NET-011]",
            "nobody reaches its port 8472/udp (5 hosts tried): ",
            "its packet filter stops what other hosts of the cluster send [K8S-FW-003]",
            "7 problems",
        ],
        mend: &[("cp2", "iptables -F INPUT"), ("lb-0", "iptables -F INPUT")],
    },
];

/// Faults are found by name, nothing is changed, and without them nothing stands in the way.
pub(crate) fn proven() {
    rebuild(&HOSTS);
    timed("iptables on some hosts", || {
        for host in WALLED {
            let install =
                "apt-get -qq update && apt-get -qq -y install --no-install-recommends iptables >/dev/null 2>&1";
            on(host, &["sh", "-c", install]);
        }
    });
    let inventory = inventory::standard();
    let quickest = (0..3).map(|_| k8sup(&["check"], &inventory).expect(0).took).min();
    let quickest = quickest.unwrap_or_default();
    let busy = std::env::var_os("K8SUP_LAB_BUSY").is_some_and(|value| value == "1");
    assert!(busy || quickest.as_secs() < 5, "to check fresh hosts took {quickest:?}");
    leaves_nothing();
    for fault in FAULTS {
        commands(fault.make);
        refused(&inventory, fault.found);
        commands(fault.mend);
        k8sup(&["check"], &inventory).expect(0);
    }
    narrow(&inventory);
}

/// A cable that takes less than its ends believe: Flannel can be told to use less.
fn narrow(inventory: &Path) {
    let cable = |mtu: &str| lab(&["run", "ip", "link", "set", "vb-w2", "mtu", mtu]);
    cable("1420");
    refused(
        inventory,
        &[
            "packets of 1500 bytes do not get to it from any other host in one piece, those of 1420 bytes do [K8S-NET-014]",
            "set flannel.mtu to 1370",
            "1 problem",
        ],
    );
    let fits = inventory::edited("mtu.yaml", |text| {
        inventory::replaced(&text, "\nflannel:\n", "\nflannel:\n  mtu: 1370\n")
    });
    k8sup(&["check"], &fits).expect(0);
    cable("1500");
    k8sup(&["check"], inventory).expect(0);
}

fn commands(all: &[(&str, &str)]) {
    for (host, command) in all {
        step(&format!("         {host}: {command}"));
        on(host, &command.split(' ').collect::<Vec<_>>());
    }
}

/// `check`, `plan` and `apply` refuse with these words, and no host is changed.
fn refused(inventory: &Path, found: &[&str]) {
    let before = snapshots(&HOSTS);
    for arguments in [&["check"][..], &["plan"], &["apply", "--yes"]] {
        let ran: Ran = k8sup(arguments, inventory).expect(6);
        found.iter().fold(ran, |ran, words| ran.says(words));
    }
    for ((host, before), (_, now)) in before.iter().zip(&snapshots(&HOSTS)) {
        let differences: Vec<_> = before.symmetric_difference(now).collect();
        assert!(differences.is_empty(), "{host} was changed: {differences:#?}");
    }
    leaves_nothing();
}

fn leaves_nothing() {
    for host in HOSTS {
        on(host, &["sh", "-c", NO_LISTENER]);
    }
}
