use super::*;
use crate::check;
use crate::cluster::sample::cluster;
use crate::facts::Unreachable;

const LAB: &str = "
cluster: { name: lab, kubernetes: v1.34.4 }
loadBalancers: { lb-0: 10.0.0.1 }
controllers: { cp1: 10.0.0.2 }
workers: { w1: 10.0.0.3 }
";

fn name(host: &str) -> NodeName {
    NodeName::parse(host).unwrap()
}

/// All hosts answer but `silent`.
fn facts(cluster: &Cluster, silent: &[&str]) -> Facts {
    let observe = |name: &NodeName| {
        if silent.contains(&name.as_str()) {
            Observation::Unreachable(Unreachable::unknown("no route to host"))
        } else {
            Observation::Seen(Box::default())
        }
    };
    Facts {
        hosts: cluster
            .hosts
            .iter()
            .map(|host| (host.name.clone(), observe(&host.name)))
            .collect(),
        ..Facts::default()
    }
}

fn findings() -> Vec<Finding> {
    let swap = |host: &str| check::SWAP.on(&name(host), "swap is on: /dev/zram0");
    vec![
        check::OUR_CLOCK.at_large("the hosts agree on the time, and it is 10 min later than this machine's"),
        check::KERNEL_SETTINGS.on(&name("lb-0"), "net.ipv4.ip_forward is 0"),
        check::CPUS.on(&name("cp1"), "it has one processor, a controller needs two"),
        check::KERNEL_SETTINGS.on(&name("cp1"), "net.ipv4.ip_forward is 0"),
        swap("cp1"),
        swap("w1"),
        check::KERNEL_SETTINGS.on(&name("w1"), "net.ipv4.ip_forward is 0"),
        check::HOSTNAME_DIFFERS.on(
            &name("w1"),
            "the host calls itself raspberrypi\u{1b}[31m; its Node will be w1",
        ),
        check::PORT_TAKEN
            .on(&name("w1"), "port 10250 is taken by k3s")
            .evidence("0.0.0.0:10250 k3s"),
    ]
}

#[test]
fn findings_are_told_host_by_host() {
    let cluster = cluster(LAB);
    let (facts, findings) = (facts(&cluster, &[]), findings());
    let examined = Examined {
        cluster: &cluster,
        facts: &facts,
        findings: &findings,
    };
    insta::assert_snapshot!(examined.text(Style::PLAIN));
}

#[test]
fn what_is_well_is_said_in_a_line() {
    let cluster = cluster(LAB);
    let facts = facts(&cluster, &[]);
    let examined = Examined {
        cluster: &cluster,
        facts: &facts,
        findings: &[],
    };
    assert_eq!(
        examined.text(Style::PLAIN),
        "3 hosts checked: nothing stands in the way\n"
    );
}

#[test]
fn the_json_is_stable() {
    let cluster = cluster(LAB);
    let (facts, findings) = (facts(&cluster, &["lb-0"]), findings());
    let examined = Examined {
        cluster: &cluster,
        facts: &facts,
        findings: &findings,
    };
    let json = examined.json().unwrap();
    let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    insta::assert_snapshot!(format!(
        "{keys:?}\n{}\n{}\n{}",
        json["unreachable"], json["findings"][0], json["findings"][2]
    ));
    assert_eq!(
        (&json["passed"], &json["refuse"], &json["fix"], &json["warn"]),
        (&false.into(), &2.into(), &5.into(), &2.into())
    );
    let order: Vec<_> = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| (f["host"].as_str(), f["level"].as_str().unwrap()))
        .collect();
    let mut sorted = order.clone();
    sorted.sort_by_key(|(host, _)| ["lb-0", "cp1", "w1"].iter().position(|known| Some(*known) == *host));
    assert_eq!(order, sorted);
}
