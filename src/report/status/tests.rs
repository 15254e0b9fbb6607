//! A cluster that is well and one in which much is wrong: what is said of them.

use std::collections::BTreeMap;

use super::{DAY, Status};
use crate::cluster::{Cluster, NodeName, Role, sample};
use crate::facts::cluster::{Member, NodeFact, Rollout};
use crate::facts::kube::{Certificate, Kubeconfig};
use crate::facts::{
    ClusterFacts, Facts, HostFacts, Listener, Observation, OsRelease, Package, Seen, Service, Unreachable,
};
use crate::report::Style;

const NOW: i64 = 1_800_000_000;

fn cluster() -> Cluster {
    sample::cluster(
        "
cluster: { name: homelab, kubernetes: v1.34.4 }
loadBalancers: { lb-0: 192.168.7.140 }
controllers: { cp1: 192.168.7.201, cp2: 192.168.7.202, cp3: 192.168.7.203 }
workers: { w1: 192.168.7.204 }
",
    )
}

fn name(name: &str) -> NodeName {
    NodeName::parse(name).unwrap()
}

/// All hosts answer, everything runs.
fn healthy() -> Facts {
    let cluster = cluster();
    let rollout = |desired| {
        Seen::Present(Rollout {
            desired,
            available: desired,
            current: true,
        })
    };
    let mut facts = Facts::default();
    let mut nodes = BTreeMap::new();
    let mut members = Vec::new();
    for host in &cluster.hosts {
        let mut seen = HostFacts {
            os: OsRelease {
                pretty: "Debian GNU/Linux 13 (trixie)".to_owned(),
                ..OsRelease::default()
            },
            ..HostFacts::default()
        };
        if host.role == Role::LoadBalancer {
            let names = ["cp1", "cp2", "cp3"];
            seen.backends = Seen::Present(names.map(|name| (name.to_owned(), "UP".to_owned())).into());
        } else {
            let certificate = |days| Certificate {
                not_after: NOW + days * DAY + 10,
                ..Certificate::default()
            };
            seen.kube.kubelet = Seen::Present(certificate(364));
            seen.kube.files.insert("/etc/kubernetes/kubelet.conf".to_owned());
            let runs = Service {
                enabled: true,
                active: true,
            };
            seen.services.insert("kubelet".to_owned(), runs);
            seen.packages.insert(
                "kubelet".to_owned(),
                Package {
                    installed: Some("1.34.4-1.1".to_owned()),
                    held: true,
                },
            );
            nodes.insert(
                host.name.to_string(),
                NodeFact {
                    ready: true,
                    internal_ip: Some(host.address.to_string()),
                    kubelet_version: "v1.34.4".to_owned(),
                    created: "2027-01-12T08:00:00Z".to_owned(),
                    ..NodeFact::default()
                },
            );
            if host.role == Role::Controller {
                seen.kube.readyz = Seen::Present("ok".to_owned());
                seen.listening.push(Listener {
                    address: "127.0.0.1".to_owned(),
                    port: 2379,
                    process: Some("etcd".to_owned()),
                });
                seen.kube.certificates = [
                    ("/etc/kubernetes/pki/ca.crt", 3_650),
                    ("/etc/kubernetes/pki/apiserver.crt", 360),
                ]
                .map(|(path, days)| (path.to_owned(), certificate(days)))
                .into();
                members.push(Member {
                    id: format!("8e9e05c5216{}", members.len()),
                    name: host.name.to_string(),
                    peer_urls: vec![format!("https://{}:2380", host.address)],
                    learner: false,
                });
            }
        }
        facts.hosts.insert(host.name.clone(), Observation::Seen(Box::new(seen)));
    }
    facts.cluster = Seen::Present(ClusterFacts {
        asked: Some(name("cp1")),
        nodes: Seen::Present(nodes),
        members: Seen::Present(members),
        coredns: rollout(2),
        kube_proxy: rollout(4),
        flannel: rollout(4),
        ..ClusterFacts::default()
    });
    facts
}

/// One of each thing that goes wrong.
fn broken() -> Facts {
    let mut facts = healthy();
    let lost = Unreachable {
        refused: false,
        reason: "192.168.7.203:22: no route to host".to_owned(),
        hint: Some("switch it on".to_owned()),
    };
    facts.hosts.insert(name("cp3"), Observation::Unreachable(lost));
    let Some(Observation::Seen(balancer)) = facts.hosts.get_mut(&name("lb-0")) else {
        panic!("no lb-0")
    };
    let states = [("cp1", "UP"), ("cp2", "UP 1/2"), ("cp3", "DOWN")];
    balancer.backends = Seen::Present(states.map(|(name, state)| (name.to_owned(), state.to_owned())).into());
    let Some(Observation::Seen(worker)) = facts.hosts.get_mut(&name("w1")) else {
        panic!("no w1")
    };
    worker.kube.kubelet = Seen::Present(Certificate {
        not_after: NOW - 10,
        ..Certificate::default()
    });
    let Some(Observation::Seen(cp2)) = facts.hosts.get_mut(&name("cp2")) else {
        panic!("no cp2")
    };
    cp2.kube.readyz = Seen::Present("[+]ping ok\n[-]etcd failed: reason withheld".to_owned());
    let apiserver = cp2
        .kube
        .certificates
        .get_mut("/etc/kubernetes/pki/apiserver.crt")
        .unwrap();
    apiserver.not_after = NOW + 12 * DAY + 10;
    let Seen::Present(seen) = &mut facts.cluster else {
        panic!("no cluster")
    };
    let Seen::Present(nodes) = &mut seen.nodes else {
        panic!("no nodes")
    };
    let node = nodes.get_mut("cp3").unwrap();
    node.ready = false;
    node.ready_message = "Kubelet stopped posting node status.".to_owned();
    let w1 = nodes.get_mut("w1").unwrap();
    w1.unschedulable = true;
    w1.pressure = vec!["DiskPressure".to_owned()];
    nodes.insert("old-worker".to_owned(), NodeFact::default());
    let Seen::Present(members) = &mut seen.members else {
        panic!("no members")
    };
    members[1].name = String::new();
    members[1].learner = true;
    members[2].name = "dead-controller".to_owned();
    seen.coredns = Seen::Present(Rollout {
        desired: 2,
        available: 1,
        current: true,
    });
    seen.kube_proxy = Seen::Unknown("the API did not answer within 2 s".to_owned());
    facts
}

#[test]
fn a_healthy_cluster_has_no_problems() {
    let status = Status::new(&cluster(), &healthy(), NOW);
    assert!(status.healthy());
    insta::assert_snapshot!(status.render(Style::PLAIN), @r"
    homelab  v1.34.4  192.168.7.140:6443  healthy

    Hosts
      NAME  ROLE           ADDRESS        SSH  NODE   AGE  KUBELET  OS
      lb-0  load balancer  192.168.7.140  ok   -      -    -        Debian 13
      cp1   controller     192.168.7.201  ok   Ready  3d   v1.34.4  Debian 13
      cp2   controller     192.168.7.202  ok   Ready  3d   v1.34.4  Debian 13
      cp3   controller     192.168.7.203  ok   Ready  3d   v1.34.4  Debian 13
      w1    worker         192.168.7.204  ok   Ready  3d   v1.34.4  Debian 13

    etcd (asked on cp1)
      MEMBER  STATE  ID            PEER
      cp1     voter  8e9e05c52160  https://192.168.7.201:2380
      cp2     voter  8e9e05c52161  https://192.168.7.202:2380
      cp3     voter  8e9e05c52162  https://192.168.7.203:2380

    Certificates
      HOST  FIRST TO EXPIRE                   DATE        LEFT
      cp1   pki/apiserver.crt                 2028-01-10  360 days
      cp2   pki/apiserver.crt                 2028-01-10  360 days
      cp3   pki/apiserver.crt                 2028-01-10  360 days
      w1    the kubelet's client certificate  2028-01-14  364 days

    Load balancers
      NAME  BACKEND  STATE
      lb-0  cp1      UP
      lb-0  cp2      UP
      lb-0  cp3      UP

    Add-ons
      coredns     2 of 2 available
      kube-proxy  4 of 4 available
      flannel     4 of 4 available
    ");
}

#[test]
fn a_broken_cluster_says_what_is_wrong_first() {
    let status = Status::new(&cluster(), &broken(), NOW);
    assert!(!status.healthy());
    insta::assert_snapshot!(status.render(Style::PLAIN), @r"
    homelab  v1.34.4  192.168.7.140:6443  unhealthy

    9 problems, 1 unknown, 4 warnings
      ✗ cp2: its API server is not ready: [-]etcd failed: reason withheld
        hint: read `crictl ps -a` and `journalctl -u kubelet` there
      ✗ cp3: cannot be reached: 192.168.7.203:22: no route to host
        hint: switch it on
      ✗ w1: the kubelet's client certificate expired on 2027-01-15
        hint: the kubelet renews it itself while it reaches the API: read `journalctl -u kubelet` there
      ✗ cp3: its node is not Ready: Kubelet stopped posting node status.
        hint: read `journalctl -u kubelet` there
      ✗ w1: its node reports DiskPressure: pods are evicted and none are placed there
        hint: make room there: for disks at least 15 % must be free (`df -h /var/lib`, `crictl rmi --prune`)
      ✗ controller cp3 has no etcd member
        hint: run `k8sup apply`
      ✗ etcd member dead-controller (8e9e05c52162) belongs to no controller of the inventory
        hint: it counts for the quorum; remove it with `etcdctl member remove` when its host is gone
      ✗ coredns: 1 of 2 pods are available
      ✗ lb-0: its backend cp3 is DOWN
      ? kube-proxy cannot be judged: the API did not answer within 2 s
      ! cp2: /etc/kubernetes/pki/apiserver.crt expires in 12 days
        hint: `kubeadm certs renew all` there renews what kubeadm made
      ! w1: its node is cordoned
        hint: `kubectl uncordon w1` lets pods onto it again
      ! node old-worker is not in the inventory
      ! etcd member cp2 is a learner and does not vote yet

    Hosts
      NAME  ROLE           ADDRESS        SSH    NODE             AGE  KUBELET  OS
      lb-0  load balancer  192.168.7.140  ok     -                -    -        Debian 13
      cp1   controller     192.168.7.201  ok     Ready            3d   v1.34.4  Debian 13
      cp2   controller     192.168.7.202  ok     Ready            3d   v1.34.4  Debian 13
      cp3   controller     192.168.7.203  fails  NotReady         3d   v1.34.4  unknown
      w1    worker         192.168.7.204  ok     Ready, cordoned  3d   v1.34.4  Debian 13

    etcd (asked on cp1)
      MEMBER           STATE    ID            PEER
      cp1              voter    8e9e05c52160  https://192.168.7.201:2380
      cp2              learner  8e9e05c52161  https://192.168.7.202:2380
      cp3              missing  -             -
      dead-controller  ghost    8e9e05c52162  https://192.168.7.203:2380

    Certificates
      HOST  FIRST TO EXPIRE                   DATE        LEFT
      cp1   pki/apiserver.crt                 2028-01-10  360 days
      cp2   pki/apiserver.crt                 2027-01-27  12 days
      w1    the kubelet's client certificate  2027-01-15  expired

    Load balancers
      NAME  BACKEND  STATE
      lb-0  cp1      UP
      lb-0  cp2      UP 1/2
      lb-0  cp3      DOWN

    Add-ons
      coredns     1 of 2 available
      kube-proxy  unknown: the API did not answer within 2 s
      flannel     4 of 4 available
    ");
}

#[test]
fn bare_hosts_are_no_cluster() {
    let mut facts = healthy();
    facts.cluster = Seen::Absent;
    for observation in facts.hosts.values_mut() {
        *observation = Observation::Seen(Box::default());
    }
    let status = Status::new(&cluster(), &facts, NOW);
    assert!(!status.healthy());
    insta::assert_snapshot!(status.render(Style::PLAIN), @r"
    homelab  v1.34.4  192.168.7.140:6443  unhealthy

    1 problem
      ✗ there is no cluster yet
        hint: run `k8sup apply`

    Hosts
      NAME  ROLE           ADDRESS        SSH  NODE  AGE  KUBELET  OS
      lb-0  load balancer  192.168.7.140  ok   -     -    -        unknown
      cp1   controller     192.168.7.201  ok   none  -    -        unknown
      cp2   controller     192.168.7.202  ok   none  -    -        unknown
      cp3   controller     192.168.7.203  ok   none  -    -        unknown
      w1    worker         192.168.7.204  ok   none  -    -        unknown

    Load balancers
      NAME  BACKEND  STATE
      lb-0  -        not running
    ");
}

#[test]
fn a_lost_quorum_is_named_first() {
    let mut facts = healthy();
    let lost = Unreachable::unknown("no route to host");
    facts.hosts.insert(name("cp2"), Observation::Unreachable(lost));
    let said = |facts: &Facts| Status::new(&cluster(), facts, NOW).render(Style::PLAIN);
    assert!(said(&facts).contains("cp2     voter, out of reach"), "{}", said(&facts));
    assert!(!said(&facts).contains("quorum"), "two of three are enough");
    let Some(Observation::Seen(cp3)) = facts.hosts.get_mut(&name("cp3")) else {
        panic!("no cp3")
    };
    cp3.listening.clear();
    facts.cluster = Seen::Unknown("cp1: etcdserver: no leader".to_owned());
    let said = said(&facts);
    let first = said.lines().find(|line| line.contains('✗')).unwrap_or_default();
    assert_eq!(
        first,
        "  ✗ etcd has no quorum: 2 of 3 controllers are needed, and it is seen on 1; not on cp2 (out of reach), cp3 (does not run there)"
    );
}

#[test]
fn a_silent_api_leaves_its_parts_unknown() {
    let mut facts = healthy();
    facts.cluster = Seen::Unknown("cp1: the API server did not answer within 2 s".to_owned());
    let status = Status::new(&cluster(), &facts, NOW);
    assert!(!status.healthy());
    insta::assert_snapshot!(status.render(Style::PLAIN), @r"
    homelab  v1.34.4  192.168.7.140:6443  unhealthy

    1 problem
      ✗ the cluster cannot be asked: cp1: the API server did not answer within 2 s
        hint: look at the controllers below; `k8sup plan` tells what is missing

    Hosts
      NAME  ROLE           ADDRESS        SSH  NODE     AGE  KUBELET  OS
      lb-0  load balancer  192.168.7.140  ok   -        -    -        Debian 13
      cp1   controller     192.168.7.201  ok   unknown  ?    v1.34.4  Debian 13
      cp2   controller     192.168.7.202  ok   unknown  ?    v1.34.4  Debian 13
      cp3   controller     192.168.7.203  ok   unknown  ?    v1.34.4  Debian 13
      w1    worker         192.168.7.204  ok   unknown  ?    v1.34.4  Debian 13

    etcd
      unknown: cp1: the API server did not answer within 2 s

    Certificates
      HOST  FIRST TO EXPIRE                   DATE        LEFT
      cp1   pki/apiserver.crt                 2028-01-10  360 days
      cp2   pki/apiserver.crt                 2028-01-10  360 days
      cp3   pki/apiserver.crt                 2028-01-10  360 days
      w1    the kubelet's client certificate  2028-01-14  364 days

    Load balancers
      NAME  BACKEND  STATE
      lb-0  cp1      UP
      lb-0  cp2      UP
      lb-0  cp3      UP

    Add-ons
      coredns     unknown: cp1: the API server did not answer within 2 s
      kube-proxy  unknown: cp1: the API server did not answer within 2 s
      flannel     unknown: cp1: the API server did not answer within 2 s
    ");
    let json = status.json().unwrap();
    assert_eq!(json["etcd"]["unknown"], "cp1: the API server did not answer within 2 s");
    assert_eq!(
        json["hosts"][1]["node"]["unknown"],
        "cp1: the API server did not answer within 2 s"
    );
    assert_eq!(json["hosts"][1]["kubelet"], "v1.34.4");
}

#[test]
fn the_json_is_stable() {
    let json = Status::new(&cluster(), &broken(), NOW).json().unwrap();
    assert_eq!(json["format"], "k8sup.status/1");
    assert_eq!(json["healthy"], false);
    insta::assert_snapshot!(json["hosts"][3], @r#"{"name":"cp3","role":"controller","address":"192.168.7.203","reachable":false,"os":null,"kubelet":"v1.34.4","node":{"ready":false,"message":"Kubelet stopped posting node status.","cordoned":false,"created":"2027-01-12T08:00:00Z","age_seconds":259200},"certificate":{"unknown":"192.168.7.203:22: no route to host"}}"#);
    insta::assert_snapshot!(json["hosts"][1], @r#"{"name":"cp1","role":"controller","address":"192.168.7.201","reachable":true,"os":"Debian GNU/Linux 13 (trixie)","kubelet":"v1.34.4","node":{"ready":true,"message":"","cordoned":false,"created":"2027-01-12T08:00:00Z","age_seconds":259200},"certificate":{"path":"/etc/kubernetes/pki/apiserver.crt","not_after":1831104010,"days_left":360}}"#);
    insta::assert_snapshot!(json["etcd"], @r#"[{"name":"cp1","id":"8e9e05c52160","state":"voter","peer_urls":["https://192.168.7.201:2380"]},{"name":"cp2","id":"8e9e05c52161","state":"learner","peer_urls":["https://192.168.7.202:2380"]},{"name":"cp3","id":null,"state":"missing","peer_urls":[]},{"name":"dead-controller","id":"8e9e05c52162","state":"ghost","peer_urls":["https://192.168.7.203:2380"]}]"#);
    insta::assert_snapshot!(json["addons"], @r#"[{"name":"coredns","rollout":{"desired":2,"available":1,"current":true}},{"name":"kube-proxy","rollout":{"unknown":"the API did not answer within 2 s"}},{"name":"flannel","rollout":{"desired":4,"available":4,"current":true}}]"#);
    insta::assert_snapshot!(json["problems"][0], @r#"{"severity":"error","host":"cp2","message":"its API server is not ready: [-]etcd failed: reason withheld","hint":"read `crictl ps -a` and `journalctl -u kubelet` there"}"#);
}

#[test]
fn warnings_alone_leave_a_cluster_healthy() {
    let mut facts = healthy();
    let Seen::Present(seen) = &mut facts.cluster else {
        panic!("no cluster")
    };
    let Seen::Present(nodes) = &mut seen.nodes else {
        panic!("no nodes")
    };
    nodes.get_mut("w1").unwrap().unschedulable = true;
    let status = Status::new(&cluster(), &facts, NOW);
    assert!(status.healthy());
    assert!(
        status
            .render(Style::PLAIN)
            .contains("1 warning\n  ! w1: its node is cordoned")
    );
}

fn seen<'a>(facts: &'a mut Facts, host: &str) -> &'a mut HostFacts {
    match facts.hosts.get_mut(&name(host)) {
        Some(Observation::Seen(seen)) => seen,
        _ => panic!("no {host}"),
    }
}

#[test]
fn a_host_that_is_not_what_its_node_says_makes_the_cluster_unhealthy() {
    let message = |change: &dyn Fn(&mut HostFacts)| {
        let mut facts = healthy();
        change(seen(&mut facts, "w1"));
        seen(&mut facts, "cp1").kube.ca = Seen::Present(Certificate {
            spki_sha256: "ours".to_owned(),
            ..Certificate::default()
        });
        let status = Status::new(&cluster(), &facts, NOW);
        let told: Vec<_> = status.problems.iter().map(|problem| problem.message.clone()).collect();
        assert_eq!(status.healthy(), told.is_empty());
        told.join("; ")
    };
    assert_eq!(message(&|_| {}), "");
    assert_eq!(
        message(&|worker| {
            worker.kube.files.clear();
            worker.services.clear();
        }),
        "the cluster lists it, but nothing of Kubernetes is on it: was it installed anew?"
    );
    assert_eq!(
        message(&|worker| worker.services.get_mut("kubelet").unwrap().active = false),
        "its kubelet does not run"
    );
    assert_eq!(
        message(&|worker| {
            let other = Kubeconfig {
                ca_spki_sha256: Some("theirs".to_owned()),
                ..Kubeconfig::default()
            };
            worker.kube.kubeconfigs.insert("kubelet".to_owned(), other);
        }),
        "the cluster lists it, but its kubelet belongs to another cluster"
    );
}

#[test]
fn what_nobody_could_tell_is_unknown_and_not_unhealthy() {
    let mut facts = healthy();
    seen(&mut facts, "cp2").kube.readyz = Seen::Unknown("did not answer within 12 s".to_owned());
    let status = Status::new(&cluster(), &facts, NOW);
    assert!(!status.healthy());
    let text = status.render(Style::PLAIN);
    let top: Vec<&str> = text.lines().take(5).collect();
    insta::assert_snapshot!(top.join("\n"), @r"
    homelab  v1.34.4  192.168.7.140:6443  unknown

    1 unknown
      ? cp2: whether its API server is ready is unknown: did not answer within 12 s
        hint: read `crictl ps -a` and `journalctl -u kubelet` there
    ");
}

#[test]
fn advice_for_several_is_given_once_and_names_the_inventory() {
    let mut facts = healthy();
    let Seen::Present(live) = &mut facts.cluster else {
        panic!("no cluster")
    };
    let Seen::Present(nodes) = &mut live.nodes else {
        panic!("no nodes")
    };
    nodes.clear();
    let text = Status::new(&cluster(), &facts, NOW)
        .naming("my/lab.yaml")
        .render(Style::PLAIN);
    assert_eq!(text.matches("is not part of the cluster").count(), 4, "{text}");
    assert_eq!(text.matches("hint: run `k8sup apply my/lab.yaml`").count(), 1, "{text}");
}

#[test]
fn a_status_fits_on_eighty_columns() {
    for facts in [healthy(), broken()] {
        let text = Status::new(&cluster(), &facts, NOW).render(Style::PLAIN.wide(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("192.168.7.203  "), "{text}");
    }
}
