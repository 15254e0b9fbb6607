//! What is secret is nowhere to be seen: not in a plan, an event, an error, a log or a debug print.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use k8sup::execute::Late;
use k8sup::plan::{Plan, StepParam};
use k8sup::remote::Param;
use k8sup::remote::fake::FakeReply;
use k8sup::report::ledger::Ledger;
use k8sup::report::lines::Lines;
use k8sup::report::{LogFile, Style, failure, json, plan_view};
use k8sup::secret::Secret;

use crate::executor::{fakes, fresh, healthy, run};
use crate::simulate::World;
use crate::world::{self, HOMELAB, name};

const TOKEN: &str = "k8scan.canarytokencanary";
const KEY: &str = "canarykey0000000000000000000000000000000000000000000000000000000";
const CANARIES: [&str; 3] = ["k8scan", "canarytokencanary", "canarykey"];

fn late() -> Late {
    Late::with(Secret::new(TOKEN), Secret::new(KEY))
}

fn assert_silent(what: &str, text: &str) {
    for canary in CANARIES {
        assert!(!text.contains(canary), "{what} shows {canary}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_shows_no_secret_anywhere() {
    let plan = fresh();
    let hosts = fakes(&plan, |host, command| match (host, command.name.as_str()) {
        ("w2", "steps/join") => FakeReply::failed(
            1,
            "error execution phase kubelet-start: timed out waiting for the condition\n",
        ),
        _ => healthy(command),
    });
    let late = late();
    assert_silent("Debug of the late values", &format!("{late:?}"));
    let run = run(&plan, &hosts, late).await;
    assert_eq!(run.carried.failures.len(), 1);

    // They are really there: where they belong, and sealed.
    let mut carriers: BTreeMap<&str, usize> = BTreeMap::new();
    for fake in hosts.values() {
        for command in fake.commands() {
            assert_silent("a script", &command.script);
            assert_silent("Debug of a command", &format!("{command:?} {command:#?}"));
            for (param, value) in &command.params {
                match value {
                    Param::Plain(text) => assert_silent(&format!("{param} of {}", command.name), text),
                    Param::Secret(secret) => {
                        for canary in ["canarytokencanary", "canarykey"] {
                            *carriers.entry(canary).or_default() += usize::from(secret.reveal().contains(canary));
                        }
                    }
                }
            }
        }
    }
    // init twice, five joins with two documents each and two turns; the key beside it for two controllers.
    assert!(
        carriers["canarytokencanary"] >= 12 && carriers["canarykey"] >= 6,
        "{carriers:?}"
    );

    let mut shown = format!("{:?} {:#?} {:?} {plan:?}", run.events, run.carried, hosts);
    shown += &plan_view::render(&plan, true, Style::PLAIN);
    shown += &plan_view::json("homelab", &plan).unwrap().to_string();
    shown += &serde_json::to_string(&plan).unwrap();
    shown += &world::outline(&plan);
    for error in &run.carried.failures {
        let _ = write!(shown, "{error} {error:?} {}", failure::step_block(error, Style::PLAIN));
    }
    let folder = tempfile::tempdir().unwrap();
    let log = LogFile::create_in(folder.path(), "apply", "2026-03-01T10:20:30Z".parse().unwrap()).unwrap();
    let (mut ledger, mut lines) = (Ledger::default(), Lines::new(Style::PLAIN, 2));
    for event in &run.events {
        shown += &serde_json::to_string(event).unwrap();
        shown += &json::event_line(Duration::ZERO, event);
        log.event(Duration::ZERO, event).unwrap();
        ledger.take(Duration::ZERO, event);
        shown += &lines.event(Duration::ZERO, event, &ledger);
    }
    let summary = ledger.summary(Duration::from_secs(1));
    let _ = write!(
        shown,
        "{} {summary:?} {}",
        summary.render(Style::PLAIN),
        serde_json::to_string(&summary).unwrap()
    );
    let logged = std::fs::read_to_string(log.path()).unwrap();
    assert!(logged.contains("kubeadm join as worker"), "the log is there");
    assert_silent("the debug log", &logged);
    assert_silent("what is shown", &shown);
    assert!(shown.contains("timed out waiting for the condition") && shown.contains("w2"));
}

/// Text of all steps of a plan: whoever prints a plan can print no more than this.
fn parameters(plan: &Plan) -> String {
    let scripts = plan.steps().map(|planned| planned.step.script());
    scripts
        .flat_map(|script| script.params)
        .fold(String::new(), |mut text, (name, param)| {
            let (StepParam::Plain(value) | StepParam::Sealed(value)) = param;
            let _ = writeln!(text, "{name}={value}");
            text
        })
}

#[test]
fn a_plan_only_names_secrets() {
    let plan = fresh();
    let text = parameters(&plan);
    for placeholder in ["<secret:bootstrap-token>", "<secret:certificate-key>", "<late:ca-cert>"] {
        assert!(text.contains(placeholder), "{placeholder}");
    }
    // And only sealed parameters name them.
    for planned in plan.steps() {
        for (param, value) in planned.step.script().params {
            if let StepParam::Plain(value) = value {
                assert!(
                    !value.contains("<secret:") && !value.contains("<late:"),
                    "{param} of {}",
                    planned.step.title()
                );
            }
        }
        for file in &planned.files {
            let text = format!("{:?}{:?}", file.before, file.after);
            assert!(!text.contains("<secret:"), "{}", file.path);
        }
    }
}

#[test]
fn file_diffs_show_no_secret_of_the_host() {
    // What facts may hold of a host's secrets: a proxy's password, a kubeconfig's key.
    let mut world = World::built(HOMELAB);
    let host = world.host(&name("w1"));
    host.kube.kubelet_flags = k8sup::facts::Seen::Present("canarykey".to_owned());
    host.files.insert(
        "/etc/kubernetes/admin.conf".to_owned(),
        k8sup::facts::FileFact {
            mode: 0o600,
            content: "client-key-data: canarykey\n".to_owned(),
        },
    );
    host.files.get_mut("/etc/crictl.yaml").unwrap().content.clear();
    let plan = world.plan();
    assert!(!plan.is_empty());
    assert_silent("the plan", &plan_view::render(&plan, true, Style::PLAIN));
    assert_silent(
        "the plan's JSON",
        &plan_view::json("homelab", &plan).unwrap().to_string(),
    );
}

#[test]
fn file_diffs_show_no_password_of_a_file_that_is_changed() {
    let proxy =
        "proxy: { http: 'http://me:canarykey@proxy.lan:3128', https: 'http://canarytokencanary@proxy.lan:3128' }";
    let cluster = world::cluster(&format!("{HOMELAB}{proxy}\n"));
    let mut facts = world::facts(&cluster, |_| "trixie-bare");
    for (host, path, content) in [
        (
            "lb-0",
            "/etc/haproxy/haproxy.cfg",
            "frontend x\n    stats auth admin:canarykey\nuserlist y\n    user me insecure-password canarytokencanary\n",
        ),
        (
            "w1",
            "/etc/fstab",
            "//nas/x /mnt cifs username=me,password=canarykey,uid=0 0 0\n/swapfile none swap sw 0 0\n",
        ),
        (
            "w1",
            "/etc/containerd/config.toml",
            "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".registry.configs.\"r.lan\".auth]\n  password = \"canarykey\"\n",
        ),
        (
            "w2",
            "/etc/apt/sources.list.d/kubernetes.list",
            "deb https://me:canarykey@apt.lan/ x y\ndeb https://pkgs.k8s.io/core:/stable:/v1.34/deb/ /\n",
        ),
    ] {
        let file = k8sup::facts::FileFact {
            mode: 0o600,
            content: content.to_owned(),
        };
        world::seen(&mut facts, host).files.insert(path.to_owned(), file);
    }
    let plan = world::plan(&cluster, &facts);
    let files = plan.steps().flat_map(|planned| &planned.files);
    let files: Vec<_> = files.collect();
    for path in [
        "/etc/haproxy/haproxy.cfg",
        "/etc/fstab",
        "/etc/containerd/config.toml",
        "/etc/apt/sources.list.d/kubernetes.list",
        "/etc/apt/apt.conf.d/90-k8sup-proxy",
    ] {
        assert!(files.iter().any(|file| file.path == path), "{path} is changed");
    }
    assert_silent(
        "the files",
        &format!("{files:?} {}", serde_json::to_string(&files).unwrap()),
    );
    for full in [false, true] {
        let shown = plan_view::render(&plan, full, Style::PLAIN);
        assert_silent("the plan", &shown);
        assert!(shown.contains("•••"));
    }
    assert_silent(
        "the plan's JSON",
        &plan_view::json("homelab", &plan).unwrap().to_string(),
    );
    // What is carried out has them.
    assert!(parameters(&plan).contains("http://me:canarykey@proxy.lan:3128"));
}

#[test]
fn a_secret_has_no_debug() {
    let secret = Secret::new(TOKEN);
    assert_eq!(
        format!("{secret:?} {:?}", Param::Secret(secret.clone())),
        "••• Secret(•••)"
    );
}
