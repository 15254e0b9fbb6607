//! What the leader does for the cluster: tokens, revoking them, the settings of Nodes.

use k8sup::plan::Step;

use crate::root::{Root, bad, good};
use crate::world;

#[test]
fn a_token_is_never_an_argument() {
    let root = Root::new();
    root.write("/etc/kubernetes/pki/ca.crt", "PEM\n");
    root.stub("kubectl", "cat >/etc/applied");
    let script = Step::IssueToken.script();
    let text = good(&root.run(&[("TOKEN", "k8sabc.0123456789abcdef".to_owned())], &script.text));
    assert_eq!(text, "ca-cert-data UEVNCg==\n");
    assert!(!root.commands().join(" ").contains("0123456789abcdef"));
    let applied = root.read("/etc/applied");
    assert!(
        applied.contains("name: \"bootstrap-token-k8sabc\"") && applied.contains("token-secret: \"0123456789abcdef\""),
        "{applied}"
    );
    assert!(
        serde_saphyr::from_str::<serde_json::Value>(&applied).is_ok(),
        "{applied}"
    );
}

#[test]
fn revoking_takes_our_tokens_and_nobody_elses() {
    let root = Root::new();
    root.stub(
        "kubectl",
        "case $* in *'-o name'*) printf 'secret/bootstrap-token-k8sabc\\nsecret/bootstrap-token-abcdef\\nsecret/bootstrap-token-k8slong\\n' ;;\n\
         *jsonpath*) printf 'bootstrap-token-zzzzzz %s\\nbootstrap-token-abcdef %s\\n' \"$(printf %s 'Proxy for managing TTL for the kubeadm-certs secret' | base64 -w 0)\" bWluZQ== ;; esac",
    );
    good(&root.step(&Step::Revoke));
    let deleted: Vec<String> = root
        .commands()
        .into_iter()
        .filter(|command| command.contains(" delete "))
        .collect();
    assert_eq!(deleted.len(), 2, "{deleted:#?}");
    assert!(
        deleted[0].ends_with("secret/kubeadm-certs secret/bootstrap-token-k8sabc"),
        "{deleted:#?}"
    );
    assert!(deleted[1].ends_with("secret/bootstrap-token-zzzzzz"), "{deleted:#?}");
}

#[test]
fn a_nodes_record_is_written_before_its_settings_and_cut_down_after_them() {
    let list = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect();
    let settings = |announced: &[&str], managed: &[&str]| Step::NodeSettings {
        node: world::name("w1"),
        labels: list(&["disk=hdd", "rack-"]),
        taints: list(&["old:NoSchedule-"]),
        announced: list(announced),
        managed: list(managed),
    };
    let verbs = |root: &Root| -> Vec<String> {
        let commands = root.commands();
        let asked = commands
            .iter()
            .filter_map(|command| command.split_once(" node w1 --overwrite "));
        asked
            .map(|(head, argument)| format!("{} {argument}", head.rsplit(' ').next().unwrap()))
            .collect()
    };
    let root = Root::new();
    good(&root.step(&settings(&["disk", "old:NoSchedule", "rack"], &["disk"])));
    let set = ["label disk=hdd", "label rack-", "taint old:NoSchedule-"];
    let (before, after) = (
        "annotate k8sup.dev/managed=disk old:NoSchedule rack",
        "annotate k8sup.dev/managed=disk",
    );
    assert_eq!(verbs(&root), [&[before][..], &set, &[after]].concat());
    good(&root.step(&settings(&[], &[])));
    assert_eq!(verbs(&root), set);
    // Ended half-way, nothing is forgotten.
    root.stub("kubectl", "case $* in *' label '*) echo refused >&2; exit 1 ;; esac");
    bad(&root.step(&settings(&["disk", "rack"], &["disk"])));
    assert_eq!(verbs(&root), ["annotate k8sup.dev/managed=disk rack", "label disk=hdd"]);
}
