//! The load balancer.

use k8sup::facts::{Observation, Service, Unreachable};

use super::{Before, Brings, Case, Fixed, Given, Nothing, Refused, Runs, Silent, Warned, bare, changed, homelab};
use crate::simulate::World;
use crate::world::{HOMELAB, name};

const CONFIG: &str = "/etc/haproxy/haproxy.cfg";
const RUNS: Service = Service {
    enabled: true,
    active: true,
};

const BEHIND_OTHERS: &str = "
cluster: { name: homelab, kubernetes: v1.34.4, endpoint: 192.168.7.9:6443 }
ssh: { user: pi }
controllers: { cp1: 192.168.7.201, cp2: 192.168.7.202, cp3: 192.168.7.203 }
";

pub(super) const CASES: &[Case] = &[
    Case {
        name: "init-upload-config-slow-lb-129",
        given: Given::Hosts(homelab),
        wants: &[
            Silent("K8S-LB-002"),
            Brings("lb-0", "inter 1s fastinter 500ms downinter 200ms rise 1"),
        ],
    },
    Case {
        name: "init-upload-config-slow-lb-129: somebody else's load balancer",
        given: Given::Hosts(|| bare(BEHIND_OTHERS)),
        wants: &[Warned("K8S-LB-002", "-")],
    },
    Case {
        name: "haproxy-short-timeouts",
        given: Given::Hosts(homelab),
        wants: &[
            Brings("lb-0", "timeout client 4h"),
            Brings("lb-0", "timeout server 4h"),
            Brings("lb-0", "option clitcpka"),
            Brings("lb-0", "option srvtcpka"),
        ],
    },
    Case {
        name: "cp-join-halfjoined-lb",
        given: Given::Hosts(homelab),
        wants: &[Brings("lb-0", "option httpchk GET /readyz"), Brings("lb-0", "fall 2")],
    },
    Case {
        name: "cp-join-halfjoined-kind",
        given: Given::Hosts(homelab),
        wants: &[Brings("lb-0", "/readyz")],
    },
    Case {
        name: "haproxy-anonymous-401",
        given: Given::Hosts(|| {
            bare(&format!(
                "{HOMELAB}kubeadm: {{ apiServer: {{ extraArgs: [{{ name: anonymous-auth, value: \"false\" }}] }} }}\n"
            ))
        }),
        wants: &[Brings("lb-0", "401"), Brings("w1", "certificate-authority-data")],
    },
    Case {
        name: "haproxy-nonlocal-bind",
        given: Given::Hosts(homelab),
        wants: &[
            Brings("lb-0", "net.ipv4.ip_nonlocal_bind = 1"),
            Brings("lb-0", "bind *:6443"),
            Runs("lb-0", "haproxy -c"),
        ],
    },
    Case {
        name: "a-load-balancer-that-serves-others",
        given: Given::Hosts(|| {
            changed("lb-0", |facts| {
                let file = facts.files.entry(CONFIG.to_owned()).or_default();
                "frontend mysite\n  bind *:80\n".clone_into(&mut file.content);
                facts.services.insert("haproxy".to_owned(), RUNS);
            })
        }),
        wants: &[Refused("K8S-LB-001", "lb-0")],
    },
    Case {
        name: "haproxy-short-timeouts: somebody has changed our file",
        given: Given::Hosts(|| {
            let mut world = World::built(HOMELAB);
            let file = world.host(&name("lb-0")).files.get_mut(CONFIG).unwrap();
            file.content = file.content.replace("4h", "50s");
            world
        }),
        wants: &[
            Fixed("K8S-LB-003", "lb-0"),
            Before("lb-0", "configure haproxy", "reach the controllers"),
        ],
    },
    Case {
        name: "a-controller-more-is-no-drift",
        given: Given::Hosts(|| {
            let mut world = World::built(HOMELAB);
            world.under(&HOMELAB.replace(
                "cp3: 192.168.7.203",
                "cp3: 192.168.7.203, cp4: 192.168.7.213, cp5: 192.168.7.214",
            ));
            world
        }),
        wants: &[Silent("K8S-LB-003"), Brings("lb-0", "192.168.7.213:6443")],
    },
    Case {
        name: "a-load-balancer-out-of-reach",
        given: Given::Hosts(|| {
            let mut world = homelab();
            world.down.insert(name("lb-0"));
            world
        }),
        wants: &[Refused("K8S-SSH-001", "lb-0")],
    },
    Case {
        name: "a-worker-out-of-reach",
        given: Given::Hosts(|| {
            let mut world = World::built(HOMELAB);
            world.down.insert(name("w2"));
            world
        }),
        wants: &[Warned("K8S-SSH-003", "w2"), Nothing],
    },
    Case {
        name: "workers-of-a-cluster-out-of-sight",
        given: Given::Hosts(|| {
            let mut world = World::built(HOMELAB);
            for host in ["cp1", "cp2", "cp3"] {
                world.down.insert(name(host));
            }
            let facts = world.facts();
            assert!(matches!(
                facts.hosts[&name("cp1")],
                Observation::Unreachable(Unreachable { refused: false, .. })
            ));
            world
        }),
        wants: &[Refused("K8S-SSH-002", "w1")],
    },
];
