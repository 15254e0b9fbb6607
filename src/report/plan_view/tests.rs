use super::*;
use crate::check;
use crate::cluster::decision::{Decision, Source};
use crate::plan::{Lane, Step};

fn host(name: &str) -> NodeName {
    NodeName::parse(name).unwrap()
}

fn files() -> Vec<FileChange> {
    let before = (1..=12).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat();
    vec![
        FileChange {
            path: "/etc/haproxy/haproxy.cfg".to_owned(),
            after: Some(before.replace("line 6\n", "line six\nline 6.5\n")),
            before: Some(before),
        },
        FileChange {
            path: "/etc/sysctl.d/99-k8sup.conf".to_owned(),
            before: None,
            after: Some("net.ipv4.ip_forward = 1\nname = \u{1b}[31mred\n".to_owned()),
        },
        FileChange {
            path: "/etc/apt/sources.list.d/kubernetes-old.list".to_owned(),
            before: Some("deb x\n".to_owned()),
            after: None,
        },
    ]
}

fn sample() -> Plan {
    let (lb, worker) = (host("lb-0"), host("worker-0"));
    let serves = Gate::LoadBalancerServes(lb.clone());
    let swap = Step::SwapOff {
        fstab: None,
        units: Vec::new(),
        makers: Vec::new(),
        zram: Some(String::new()),
        rpi: None,
        active: true,
    };
    let proxy = Step::HaProxy {
        config: String::new(),
        port: 6443,
    };
    let mut proxy = Planned::new(proxy, "haproxy.cfg differs").opens(serves.clone());
    proxy.files = files();
    Plan {
        lanes: vec![
            Lane {
                host: lb.clone(),
                role: Role::LoadBalancer,
                steps: vec![proxy],
            },
            Lane {
                host: host("cp1"),
                role: Role::Controller,
                steps: Vec::new(),
            },
            Lane {
                host: worker.clone(),
                role: Role::Worker,
                steps: vec![
                    Planned::new(swap, "/dev/zram0 is active"),
                    Planned::new(Step::FinishJoin, "")
                        .needs([serves, Gate::Initialised])
                        .after([Gate::Forgotten(worker)])
                        .only_if(Gate::Cleared(host("cp1"))),
                ],
            },
        ],
        warnings: vec![
            check::HOSTNAME_DIFFERS.on(&lb, "its hostname is debian").hint(""),
            check::OUR_CLOCK.at_large("two controllers survive no failure").hint(""),
        ],
        continues: Some("CoreDNS is not there yet".to_owned()),
        left_out: Vec::new(),
        decisions: Vec::new(),
    }
}

#[test]
fn a_plan_reads_host_by_host() {
    insta::assert_snapshot!(render(&sample(), false, Style::PLAIN), @r"
    warning: lb-0: its hostname is debian [K8S-ID-002]
    warning: two controllers survive no failure [K8S-TIME-004]

    lb-0 (load balancer)
      1. configure haproxy
         why: haproxy.cfg differs
         then: load balancer lb-0 serves
         /etc/haproxy/haproxy.cfg (+2 -1)
           @@ -3,7 +3,8 @@
            line 3
            line 4
            line 5
           -line 6
           +line six
           +line 6.5
            line 7
            line 8
            line 9
         /etc/sysctl.d/99-k8sup.conf (new, +2 lines)
         /etc/apt/sources.list.d/kubernetes-old.list (removed, -1 line)

    worker-0 (worker)
      1. turn swap off
         why: /dev/zram0 is active
      2. finish the join
         waits until: load balancer lb-0 serves
         waits until: the cluster is initialised
         waits until: the old worker-0 is forgotten, or cannot be
         only if: cp1 is cleared

    2 hosts, 3 steps
    more is planned afterwards: CoreDNS is not there yet
    ");
}

#[test]
fn the_whole_of_new_files_is_shown_when_asked_for() {
    let full = render(&sample(), true, Style::PLAIN);
    let short = render(&sample(), false, Style::PLAIN);
    let more: Vec<&str> = full
        .lines()
        .filter(|line| !short.lines().any(|known| known == *line))
        .collect();
    insta::assert_snapshot!(more.join("\n"), @r"
    @@ -0,0 +1,2 @@
    +net.ipv4.ip_forward = 1
    +name = red
    @@ -1 +0,0 @@
    -deb x
    ");
}

#[test]
fn a_plan_is_stable_json() {
    let json = json("homelab", &sample()).unwrap();
    assert_eq!(json["format"], "k8sup.plan/1");
    assert_eq!(
        (&json["converged"], &json["hosts"], &json["steps"]),
        (&false.into(), &2.into(), &3.into())
    );
    insta::assert_snapshot!(json["lanes"][1], @r#"{"host":"worker-0","role":"worker","steps":[{"kind":"swap-off","title":"turn swap off","why":"/dev/zram0 is active","needs":[],"after":[],"only_if":[],"opens":null,"files":[],"fixes":[]},{"kind":"finish-join","title":"finish the join","why":"","needs":[{"load-balancer-serves":"lb-0"},"initialised"],"after":[{"forgotten":"worker-0"}],"only_if":[{"cleared":"cp1"}],"opens":null,"files":[],"fixes":[]}]}"#);
    let changes: Vec<&str> = json["lanes"][0]["steps"][0]["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["change"].as_str().unwrap())
        .collect();
    assert_eq!(changes, ["change", "create", "remove"]);
}

#[test]
fn an_empty_plan_has_nothing_to_do() {
    let plan = Plan {
        lanes: Vec::new(),
        warnings: vec![check::OUR_CLOCK.at_large("odd").hint("")],
        continues: None,
        left_out: Vec::new(),
        decisions: Vec::new(),
    };
    insta::assert_snapshot!(render(&plan, false, Style::PLAIN), @r"
    warning: odd [K8S-TIME-004]

    nothing to do: everything is as the inventory wants it
    ");
    assert_eq!(json("homelab", &plan).unwrap()["converged"], true);
}

#[test]
fn blockers_are_grouped_by_host() {
    let blocker = |host: Option<&str>, message: &str, evidence: Option<&str>| Finding {
        host: host.map(|name| NodeName::parse(name).unwrap()),
        evidence: evidence.map(str::to_owned),
        ..check::PORT_TAKEN.at_large(message).hint("run `k8sup reset` first")
    };
    let blockers = [
        blocker(
            Some("cp1"),
            "port 6443 is taken",
            Some("LISTEN 0.0.0.0:6443 nginx\n\u{1b}[2Jmore"),
        ),
        blocker(
            None,
            "the running cluster is v1.33.1, the inventory wants v1.34.4",
            None,
        ),
        blocker(Some("cp1"), "/var/lib/etcd is not empty", None),
    ];
    insta::assert_snapshot!(super::super::failure::blockers(&blockers, Style::PLAIN), @r"
    cluster
      ✗ the running cluster is v1.33.1, the inventory wants v1.34.4 [K8S-NET-012]
        hint: run `k8sup reset` first

    cp1
      ✗ port 6443 is taken [K8S-NET-012]
          LISTEN 0.0.0.0:6443 nginx
          more
        hint: run `k8sup reset` first
      ✗ /var/lib/etcd is not empty [K8S-NET-012]
        hint: run `k8sup reset` first

    3 problems, nothing was changed
    At your own risk: --allow K8S-NET-012
    ");
    let json = blockers_json("homelab", &blockers).unwrap();
    assert_eq!(json["converged"], false);
    assert_eq!(json["blockers"].as_array().unwrap().len(), 3);
}

/// Three workers with the same to do and one with less.
fn workers() -> Plan {
    let lane = |name: &str, reset: bool| {
        let address = Step::Hostname { name: host(name) };
        let mut steps = vec![Planned::new(
            Step::FinishJoin,
            format!("the token of {name} is still there"),
        )];
        if reset {
            let join = Planned::new(address, "").needs([Gate::Forgotten(host(name))]);
            steps.push(join.opens(Gate::Joined(host(name))));
        }
        Lane {
            host: host(name),
            role: Role::Worker,
            steps,
        }
    };
    Plan {
        lanes: vec![lane("w1", true), lane("w2", false), lane("w3", true), lane("w10", true)],
        ..Plan::default()
    }
}

#[test]
fn hosts_with_the_same_to_do_are_told_about_at_once() {
    insta::assert_snapshot!(render(&workers(), false, Style::PLAIN), @r"
    w1, w3, w10 (workers)
      1. finish the join
         why: the token of HOST is still there
      2. set the hostname to HOST
         waits until: the old HOST is forgotten
         then: HOST has joined

    w2 (worker)
      1. finish the join
         why: the token of w2 is still there

    4 hosts, 7 steps
    ");
    // A program finds each host by itself.
    let json = json("homelab", &workers()).unwrap();
    assert_eq!(json["lanes"].as_array().unwrap().len(), 4);
    assert_eq!(json["lanes"][0]["steps"][0]["why"], "the token of w1 is still there");
}

#[test]
fn on_a_narrow_page_text_goes_on_below_its_beginning() {
    let mut plan = sample();
    plan.lanes[0].steps[0].why =
        "its configuration in /etc/haproxy/haproxy.cfg was made by somebody else and serves another cluster of somebody else's".to_owned();
    plan.warnings[0].hint =
        "call it lb-0 on the host itself, or let apply do it with `cluster.setHostnames: true`".to_owned();
    let text = render(&plan, false, Style::PLAIN.wide(72));
    let top: Vec<&str> = text.lines().take(12).collect();
    insta::assert_snapshot!(top.join("\n"), @r"
    warning: lb-0: its hostname is debian [K8S-ID-002]
      hint: call it lb-0 on the host itself, or let apply do it with
            `cluster.setHostnames: true`
    warning: two controllers survive no failure [K8S-TIME-004]

    lb-0 (load balancer)
      1. configure haproxy
         why: its configuration in /etc/haproxy/haproxy.cfg was made by
              somebody else and serves another cluster of somebody else's
         then: load balancer lb-0 serves
         /etc/haproxy/haproxy.cfg (+2 -1)
           @@ -3,7 +3,8 @@
    ");
    assert!(text.lines().all(|line| line.chars().count() <= 72), "{text}");
}

#[test]
fn what_could_not_be_looked_at_is_not_called_as_wanted() {
    let plan = Plan {
        left_out: vec![host("w2"), host("w3")],
        decisions: Vec::new(),
        ..Plan::default()
    };
    insta::assert_snapshot!(render(&plan, false, Style::PLAIN), @r"
    nothing to do: the hosts that were looked at are as the inventory wants them
    left out: w2, w3
    ");
    let json = json("homelab", &plan).unwrap();
    assert_eq!(
        (&json["converged"], &json["left_out"][1]),
        (&false.into(), &"w3".into())
    );
}

#[test]
fn what_cannot_be_taken_back_is_told_first() {
    let mut plan = sample();
    plan.decisions = vec![
        Decision::new("pod network", "10.244.0.0/16", Source::Default),
        Decision::new("version", "v1.34.4", Source::Line(3)),
        Decision::new(
            "endpoint",
            "10.0.0.1:6443",
            Source::Follows("from loadBalancers".to_owned()),
        ),
    ];
    let text = render(&plan, false, Style::PLAIN);
    let block: Vec<&str> = text.lines().take(4).collect();
    insta::assert_snapshot!(block.join("\n"));
    let json = json("homelab", &plan).unwrap();
    assert_eq!(
        json["decisions"][1].to_string(),
        r#"{"what":"version","value":"v1.34.4","source":"line 3 of the inventory"}"#
    );
}
