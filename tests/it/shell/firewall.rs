//! ufw and firewalld are told what to open, and by reset to close it again.

use k8sup::plan::Step;

use crate::root::{Root, bad, good};

fn step(tool: &str, open: &[&str], close: &[&str]) -> Step {
    let list = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
    Step::Firewall {
        tool: tool.to_owned(),
        interface: "eth0".to_owned(),
        open: list(open),
        close: list(close),
    }
}

const API: &str = "allow from 192.168.7.201 to any port 6443 proto tcp";
const PODS: &str = "route allow to 10.244.0.0/16";

#[test]
fn ufw_is_opened_and_closed_by_the_record() {
    let root = Root::new();
    good(&root.step(&step("ufw", &[API, PODS], &[])));
    assert_eq!(
        root.commands(),
        [
            format!("ufw prepend {API} comment k8sup"),
            "ufw route prepend allow to 10.244.0.0/16 comment k8sup".to_owned()
        ]
    );
    assert_eq!(root.read("/var/lib/k8sup/entries/ufw"), format!("{API}\n{PODS}\n"));
    // A host is gone.
    good(&root.step(&step("ufw", &[], &[API])));
    assert_eq!(root.commands(), [format!("ufw delete {API}")]);
    assert_eq!(root.read("/var/lib/k8sup/entries/ufw"), format!("{PODS}\n"));
    good(&root.step(&Step::RestoreHost { purge: false }));
    let told: Vec<_> = root
        .commands()
        .into_iter()
        .filter(|line| line.starts_with("ufw"))
        .collect();
    assert_eq!(told, ["ufw route delete allow to 10.244.0.0/16"]);
    assert!(!root.exists("/var/lib/k8sup"));
}

#[test]
fn a_rule_that_ufw_does_not_take_is_told() {
    let root = Root::new();
    root.stub("ufw", "echo 'ERROR: problem running iptables' >&2; exit 1");
    let text = bad(&root.step(&step("ufw", &[API], &[])));
    assert!(
        text.contains("problem running iptables") && text.contains(API),
        "{text}"
    );
    // What may be there is closed all the same.
    assert_eq!(root.read("/var/lib/k8sup/entries/ufw"), format!("{API}\n"));
}

#[test]
fn firewalld_is_told_now_and_for_the_next_start() {
    let root = Root::new();
    root.stub("firewall-cmd", "case $* in *get-zone-of-interface*) echo home ;; esac");
    let rule = "rule family=\"ipv4\" source address=\"192.168.7.201\" port port=\"6443\" protocol=\"tcp\" accept";
    good(&root.step(&step("firewalld", &[rule, "source 10.244.0.0/16"], &[])));
    let told = |root: &Root| -> Vec<String> {
        let commands = root.commands().into_iter();
        commands
            .filter(|line| line.starts_with("firewall") && !line.contains("--state"))
            .collect()
    };
    assert_eq!(
        told(&root),
        [
            "firewall-cmd --get-zone-of-interface=eth0".to_owned(),
            format!("firewall-cmd -q --permanent --zone=home --add-rich-rule={rule}"),
            format!("firewall-cmd -q --zone=home --add-rich-rule={rule}"),
            "firewall-cmd -q --permanent --zone=trusted --add-source=10.244.0.0/16".to_owned(),
            "firewall-cmd -q --zone=trusted --add-source=10.244.0.0/16".to_owned(),
        ]
    );
    assert_eq!(
        root.read("/var/lib/k8sup/entries/firewalld"),
        format!("home {rule}\ntrusted source 10.244.0.0/16\n")
    );
    // Its daemon does not run by now.
    root.stub("firewall-cmd", "exit 252");
    good(&root.step(&Step::RestoreHost { purge: false }));
    assert_eq!(
        told(&root),
        [
            format!("firewall-offline-cmd -q --zone=home --remove-rich-rule={rule}"),
            "firewall-offline-cmd -q --zone=trusted --remove-source=10.244.0.0/16".to_owned(),
        ]
    );
    assert!(!root.exists("/var/lib/k8sup"));
}
