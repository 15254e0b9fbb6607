//! The load balancer: a configuration is checked, taken up without a break, and rolled back.

use k8sup::plan::Step;

use crate::root::{Root, bad, good};

fn haproxy() -> Step {
    Step::HaProxy {
        config: "new\n".to_owned(),
        port: 6443,
    }
}

#[test]
fn haproxy_is_checked_reloaded_and_rolled_back() {
    let root = Root::new();
    root.write("/etc/haproxy/haproxy.cfg", "old\n");
    root.stub("haproxy", "exit 1");
    assert!(bad(&root.step(&haproxy())).contains("the old one is untouched"));
    assert_eq!(root.read("/etc/haproxy/haproxy.cfg"), "old\n");

    root.stub("haproxy", "exit 0");
    root.stub("ss", "exit 0");
    let text = bad(&root.step(&haproxy()));
    assert!(text.contains("the one before is back"), "{text}");
    assert_eq!(root.read("/etc/haproxy/haproxy.cfg"), "old\n");

    // Somebody else on the port is no proof, nor are haproxy's workers of before.
    root.write("/etc/worker", "11\n");
    root.stub("pgrep", "cat /etc/worker");
    for pid in ["999", "$(cat /etc/worker)"] {
        root.stub(
            "ss",
            &format!("echo \"LISTEN users:((\\\"haproxy\\\",pid={pid},fd=9))\""),
        );
        assert!(bad(&root.step(&haproxy())).contains("does not serve port 6443"));
        assert_eq!(root.read("/etc/haproxy/haproxy.cfg"), "old\n");
    }

    root.stub("systemctl", "case $1 in reload) echo 12 >/etc/worker ;; esac");
    root.commands();
    good(&root.step(&haproxy()));
    assert_eq!(root.read("/etc/haproxy/haproxy.cfg"), "new\n");
    let commands = root.commands();
    assert!(
        commands.contains(&"systemctl reload haproxy".to_owned()),
        "{commands:#?}"
    );
    assert!(
        !commands.contains(&"systemctl restart haproxy".to_owned()),
        "connections survive"
    );
    // With the right file and the wrong one in its memory, it is told to look again.
    root.stub("ss", "[ -e /etc/reloaded ] && echo \"pid=$(cat /etc/worker),\"");
    root.stub(
        "systemctl",
        "case $1 in reload) echo 13 >/etc/worker; : >/etc/reloaded ;; esac",
    );
    good(&root.step(&haproxy()));
    assert!(root.commands().contains(&"systemctl reload haproxy".to_owned()));
    good(&root.step(&haproxy()));
    assert!(
        !root
            .commands()
            .iter()
            .any(|command| command.contains("reload") || command.contains("restart"))
    );
}

#[test]
fn a_rolled_back_configuration_is_nobodys_change() {
    let root = Root::new();
    root.write("/etc/haproxy/haproxy.cfg", "old\n");
    root.stub("ss", "exit 0");
    assert!(bad(&root.step(&haproxy())).contains("the one before is back"));
    let text = good(&root.step(&Step::RestoreHost { purge: false }));
    assert!(!text.contains("kept"), "{text}");
    assert_eq!(root.read("/etc/haproxy/haproxy.cfg"), "old\n");
    assert!(!root.exists("/etc/haproxy/haproxy.cfg.before-k8sup"));
}
