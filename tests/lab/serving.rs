//! Is a cluster of use? Traffic between all nodes, services, names, logs and exec.

use std::path::Path;
use std::time::Duration;

use crate::lab::{feed, lab, on, timed, try_on, within};
use crate::program::k8sup;

/// One pod a node, with a web server and a shell, and a service before them.
const PROBE: &str = r"
apiVersion: v1
kind: Namespace
metadata: {name: lab-probe}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: probe, namespace: lab-probe}
spec:
  selector: {matchLabels: {app: probe}}
  template:
    metadata: {labels: {app: probe}}
    spec:
      terminationGracePeriodSeconds: 0
      tolerations: [{operator: Exists}]
      containers:
      - {name: web, image: 'web:1'}
      - {name: shell, image: 'busybox:1.37', command: [sh, -c, 'echo here is $NODE; sleep 100000'],
         env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]}
---
apiVersion: v1
kind: Service
metadata: {name: probe, namespace: lab-probe}
spec:
  type: NodePort
  selector: {app: probe}
  ports: [{port: 80, nodePort: 30080}]
";

/// kubectl with the login user's kubeconfig of a controller, and with its cache where no snapshot looks.
const KUBECTL: [&str; 5] = [
    "env",
    "HOME=/nonexistent",
    "KUBECONFIG=/home/pi/.kube/config",
    "KUBECACHEDIR=/dev/shm/kubectl",
    "kubectl",
];

/// kubectl as the login user of a controller has it.
pub(crate) fn kubectl(arguments: &[&str]) -> String {
    on("cp1", &[&KUBECTL[..], arguments].concat())
}

/// These are the Nodes, and all are Ready.
pub(crate) fn nodes_are_ready(nodes: &[&str]) {
    let rows = kubectl(&[
        "get",
        "nodes",
        "-o",
        r#"jsonpath={range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}"#,
    ]);
    let mut found: Vec<_> = rows.lines().collect();
    found.sort_unstable();
    let mut wanted: Vec<_> = nodes.iter().map(|node| format!("{node} True")).collect();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
}

/// `status` has nothing to complain about. On a busy machine an answer may come too late once.
pub(crate) fn is_healthy(inventory: &Path) {
    within(Duration::from_secs(30), "a healthy status", || {
        let ran = k8sup(&["status", "--exit-code"], inventory);
        if ran.code == 0 { Ok(()) } else { Err(ran.stdout) }
    });
}

/// Everything that people expect of a cluster works, between all its Nodes.
pub(crate) fn serves(nodes: &[&str]) {
    nodes_are_ready(nodes);
    timed("a pod on every node", || {
        feed("cp1", &[&KUBECTL[..], &["apply", "-f", "-"]].concat(), PROBE);
        kubectl(&["-n", "lab-probe", "rollout", "status", "ds/probe", "--timeout=120s"]);
    });
    let rows = kubectl(&[
        "-n",
        "lab-probe",
        "get",
        "pods",
        "-o",
        r#"jsonpath={range .items[*]}{.spec.nodeName} {.metadata.name} {.status.podIP}{"\n"}{end}"#,
    ]);
    let pods: Vec<Vec<&str>> = rows.lines().map(|row| row.split(' ').collect()).collect();
    assert_eq!(pods.len(), nodes.len(), "{rows}");
    let addresses: Vec<&str> = pods.iter().map(|pod| pod[2]).collect();
    let service = kubectl(&[
        "-n",
        "lab-probe",
        "get",
        "service",
        "probe",
        "-o",
        "jsonpath={.spec.clusterIP}",
    ]);
    timed("traffic between all pods, the service, names, logs, exec", || {
        for pod in &pods {
            asks_everything(pod[0], pod[1], &addresses, &service);
        }
    });
    timed("the service from outside, through every node", || {
        for address in kubectl(&[
            "get",
            "nodes",
            "-o",
            r#"jsonpath={.items[*].status.addresses[?(@.type=="InternalIP")].address}"#,
        ])
        .split(' ')
        {
            let answer = lab(&[
                "run",
                "curl",
                "-fsS",
                "--max-time",
                "10",
                &format!("http://{address}:30080/"),
            ]);
            assert!(answer.contains("k8sup lab"), "node port on {address}: {answer}");
        }
    });
    kubectl(&["delete", "namespace", "lab-probe", "--wait=true", "--timeout=60s"]);
}

/// From one pod: every pod by its address, the service by address and name, names inside and outside.
fn asks_everything(node: &str, pod: &str, addresses: &[&str], service: &str) {
    let mut targets: Vec<&str> = addresses.to_vec();
    targets.extend([service, "probe", "probe.lab-probe.svc.cluster.local"]);
    let script = format!(
        "for t in {}; do wget -q -T 5 -O - http://$t/ | grep -q 'k8sup lab' || {{ echo no answer from $t; exit 1; }}; done
         nslookup -type=a kubernetes.default.svc.cluster.local | grep -q 10.96.0.1 || {{ echo no name inside; exit 1; }}
         nslookup -type=a www.outside.lab.test | grep -q 192.168.7.1 || {{ echo no name outside; exit 1; }}",
        targets.join(" ")
    );
    let exec = [&KUBECTL[..], &["-n", "lab-probe", "exec", pod, "-c", "shell", "--"]].concat();
    // A rule of kube-proxy may follow the pod's readiness by a moment.
    within(Duration::from_secs(15), &format!("from the pod on {node}"), || {
        let (ok, said) = try_on("cp1", &[&exec[..], &["sh", "-c", script.as_str()]].concat());
        if ok { Ok(()) } else { Err(said) }
    });
    let log = kubectl(&["-n", "lab-probe", "logs", pod, "-c", "shell"]);
    assert_eq!(log.trim(), format!("here is {node}"));
}
