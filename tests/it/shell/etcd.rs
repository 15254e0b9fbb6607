//! etcd: who may leave, whose turn it is to join, and when a join counts.

use k8sup::plan::Step;

use crate::root::{Root, bad, good};
use crate::world::name;

const MEMBERS: &str = "\
8e9e05c52164694d, started, cp1, https://192.168.7.201:2380, https://192.168.7.201:2379, false
91bc3c398fb3c146, started, cp2, https://192.168.7.202:2380, https://192.168.7.202:2379, false
fd422379fda50e48, started, cp3, https://192.168.7.203:2380, https://192.168.7.203:2379, false";

/// crictl, and etcdctl inside it; health by endpoint.
fn etcd(root: &Root, members: &str, sick: &[&str]) {
    root.write("/etc/members", &format!("{members}\n"));
    root.write("/etc/sick", &sick.join("\n"));
    root.stub(
        "crictl",
        "case $* in\n\
         'ps '*) echo container ;;\n\
         *'member list'*) cat /etc/members ;;\n\
         *'member remove '*) for last; do :; done; grep -v \"^$last\" /etc/members >/etc/members.new; mv /etc/members.new /etc/members ;;\n\
         *'endpoint health --cluster'*) [ ! -s /etc/sick ] ;;\n\
         *'endpoint health'*) for one in $(cat /etc/sick); do case $* in *\"--endpoints=$one\"*) exit 1 ;; esac; done ;;\n\
         esac\nexit $?",
    );
}

#[test]
fn a_member_is_only_removed_when_the_others_go_on_without_it() {
    let forget = Step::ForgetNode {
        node: name("cp3"),
        address: "192.168.7.203".parse().unwrap(),
    };
    let removed = |root: &Root| {
        root.commands()
            .iter()
            .any(|command| command.contains("member remove fd422379fda50e48"))
    };
    let url = |last: u8| format!("https://192.168.7.20{last}:2379");

    let root = Root::new();
    etcd(&root, MEMBERS, &[&url(3)]);
    good(&root.step(&forget));
    assert!(removed(&root), "the dead one goes");

    let root = Root::new();
    etcd(&root, MEMBERS, &[&url(2), &url(3)]);
    let text = bad(&root.step(&forget));
    assert!(
        text.contains("2 voters, of which 1 are healthy: removing its member would lose the quorum"),
        "{text}"
    );
    assert!(!removed(&root));

    let root = Root::new();
    etcd(
        &root,
        &MEMBERS.replace("192.168.7.203:2379, false", "192.168.7.203:2379, true"),
        &[&url(2)],
    );
    good(&root.step(&forget));
    assert!(removed(&root), "a learner has no vote to lose");

    let root = Root::new();
    etcd(&root, &MEMBERS.lines().take(2).collect::<Vec<_>>().join("\n"), &[]);
    good(&root.step(&forget));
    assert!(
        !root.commands().iter().any(|command| command.contains("member remove")),
        "not a member: only the Node goes"
    );

    let root = Root::new();
    root.stub("crictl", "case $* in 'ps '*) ;; esac");
    assert!(bad(&root.step(&forget)).contains("etcd on this host does not answer"));
}

#[test]
fn etcds_turn_waits_until_all_vote() {
    let turn = Step::EtcdTurn {
        controller: name("cp3"),
        config: "certificateKey: x\n".to_owned(),
    };
    for (members, sick, steady) in [
        (MEMBERS.to_owned(), &[][..], true),
        (MEMBERS.to_owned(), &["https://192.168.7.202:2379"], false),
        (
            MEMBERS.replace("192.168.7.203:2379, false", "192.168.7.203:2379, true"),
            &[],
            false,
        ),
        (
            MEMBERS.replace("fd422379fda50e48, started, cp3", "fd422379fda50e48, unstarted, "),
            &[],
            false,
        ),
    ] {
        let root = Root::new();
        etcd(&root, &members, sick);
        let output = root.step(&turn);
        if steady {
            good(&output);
            let commands = root.commands();
            assert_eq!(
                commands.last().unwrap(),
                "kubeadm init phase upload-certs --upload-certs --config /run/k8sup/kubeadm.yaml"
            );
        } else {
            assert!(bad(&output).contains("etcd is not steady"), "{members}");
            assert!(!root.commands().iter().any(|command| command.starts_with("kubeadm")));
        }
    }
}

fn join(controller: bool) -> Step {
    Step::Join {
        config: "kind: JoinConfiguration\n".to_owned(),
        discovery: "kind: Config\n".to_owned(),
        address: "192.168.7.203".parse().unwrap(),
        controller,
    }
}

#[test]
fn a_join_counts_when_etcd_says_so() {
    // A worker: kubeadm's word is the last.
    let root = Root::new();
    root.stub("kubeadm", "case $1 in join) exit 7 ;; esac");
    assert_eq!(root.step(&join(false)).status.code(), Some(7));
    let root = Root::new();
    good(&root.step(&join(false)));
    let commands = root.commands();
    assert!(
        commands[0].starts_with("kubeadm config validate --config /run/k8sup/"),
        "{commands:#?}"
    );

    // A controller whose kubeadm gave up although etcd promoted it.
    let root = Root::new();
    etcd(&root, MEMBERS, &[]);
    root.write("/etc/kubernetes/manifests/etcd.yaml", "");
    root.stub("kubeadm", "case $1 in join) exit 1 ;; esac");
    assert!(bad(&root.step(&join(true))).contains("does not get its certificate"));
    root.write("/etc/kubernetes/kubelet.conf", "identity\n");
    root.write("/var/lib/kubelet/pki/kubelet-client-current.pem", "PEM\n");
    good(&root.step(&join(true)));

    // One that gave up before etcd.
    let root = Root::new();
    etcd(&root, MEMBERS, &[]);
    root.stub("kubeadm", "case $1 in join) exit 1 ;; esac");
    assert_eq!(root.step(&join(true)).status.code(), Some(1));

    // One that says it is done, and never votes.
    let root = Root::new();
    etcd(
        &root,
        &MEMBERS.replace("192.168.7.203:2379, false", "192.168.7.203:2379, true"),
        &[],
    );
    assert!(bad(&root.step(&join(true))).contains("etcd does not list this host as a voter"));
}
