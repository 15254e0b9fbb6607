//! What people have reported of their hosts, as facts, and what becomes of it: one entry a case, split by subject.
//!
//! A case is a recorded host that is changed by a few lines, and what is wanted: a finding with its code and level, a
//! step, or the text that a step brings. What has a test file of its own is found by its code, too.

use std::collections::BTreeSet;
use std::path::Path;

use k8sup::check::{self, Finding, Level};
use k8sup::cluster;
use k8sup::inventory::Environment;
use k8sup::plan::{Plan, Planned, apply};
use serde_json::Value;

use crate::simulate::World;
use crate::world::{self, HOMELAB, everything};

mod balancer;
mod cluster_itself;
mod init;
mod join;
mod leftovers;
mod machine;
mod names;
mod network;
mod runtime;

/// One case.
pub(crate) struct Case {
    /// As it is called in the lists of such reports, or in a few words.
    pub name: &'static str,
    /// How the hosts are found.
    pub given: Given,
    /// What becomes of it.
    pub wants: &'static [Want],
}

/// How the hosts are found.
pub(crate) enum Given {
    /// The inventory alone says enough.
    Inventory(&'static str),
    /// Hosts, and a cluster on them or none.
    Hosts(fn() -> World),
}

/// What becomes of it.
#[derive(Debug)]
pub(crate) enum Want {
    /// Nothing is changed, for this reason; the host, or `-`.
    Refused(&'static str, &'static str),
    /// A step of the host mends it.
    Fixed(&'static str, &'static str),
    /// A person is told.
    Warned(&'static str, &'static str),
    /// Nothing of this code is found anywhere.
    Silent(&'static str),
    /// The inventory is refused with these words.
    Told(&'static str),
    /// The host has a step with this title.
    Does(&'static str, &'static str),
    /// It has none.
    DoesNot(&'static str, &'static str),
    /// A step of the host brings this text.
    Brings(&'static str, &'static str),
    /// No step of the host brings this text.
    BringsNo(&'static str, &'static str),
    /// A script of the host's steps says so.
    Runs(&'static str, &'static str),
    /// None does.
    RunsNo(&'static str, &'static str),
    /// The host does the first before the second.
    Before(&'static str, &'static str, &'static str),
    /// There is nothing to do.
    Nothing,
}
use Want::{Before, Brings, BringsNo, Does, DoesNot, Fixed, Nothing, Refused, Runs, RunsNo, Silent, Told, Warned};

/// Bare machines, all alike.
fn bare(inventory: &str) -> World {
    World::bare(world::cluster(inventory), |_| "trixie-bare")
}

fn homelab() -> World {
    bare(HOMELAB)
}

/// Bare machines, one of which is another.
fn with(host: &'static str, recording: &'static str) -> World {
    World::bare(world::cluster(HOMELAB), move |one| {
        if one.name.as_str() == host {
            recording
        } else {
            "trixie-bare"
        }
    })
}

/// Bare machines, one of which is changed.
fn changed(host: &str, change: impl FnOnce(&mut k8sup::facts::HostFacts)) -> World {
    let mut world = homelab();
    change(world.host(&world::name(host)));
    world
}

/// Machines that have everything but Kubernetes.
fn prepared(inventory: &str) -> World {
    let mut world = bare(inventory);
    world.prepare();
    world
}

fn all() -> impl Iterator<Item = &'static Case> {
    [
        balancer::CASES,
        cluster_itself::CASES,
        init::CASES,
        join::CASES,
        leftovers::CASES,
        machine::CASES,
        names::CASES,
        network::CASES,
        runtime::CASES,
    ]
    .into_iter()
    .flatten()
}

/// All texts in what a step carries.
fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

struct Judged {
    found: Vec<Finding>,
    plan: Option<Plan>,
}

impl Judged {
    fn of(world: &World) -> Self {
        let facts = world.facts();
        Self {
            found: apply::examine(&world.cluster, &facts, &everything()),
            plan: world::try_plan(&world.cluster, &facts, &everything()).ok(),
        }
    }

    fn has(&self, code: &str, host: &str, level: Level) -> bool {
        self.found.iter().any(|finding| {
            let about = finding.host.as_ref().map_or("-", |host| host.as_str());
            finding.check.code == code && about == host && finding.check.level == level
        })
    }

    fn steps(&self, host: &str) -> Vec<&Planned> {
        let lanes = self.plan.iter().flat_map(|plan| &plan.lanes);
        lanes
            .filter(|lane| lane.host.as_str() == host)
            .flat_map(|lane| &lane.steps)
            .collect()
    }

    fn place(&self, host: &str, title: &str) -> Option<usize> {
        self.steps(host)
            .iter()
            .position(|planned| planned.step.title() == title)
    }

    fn brings(&self, host: &str, text: &str) -> bool {
        let mut found = Vec::new();
        for planned in self.steps(host) {
            texts(&serde_json::to_value(&planned.step).unwrap(), &mut found);
        }
        found.iter().any(|found| found.contains(text))
    }

    fn runs(&self, host: &str, text: &str) -> bool {
        self.steps(host)
            .iter()
            .any(|planned| planned.step.script().text.contains(text))
    }

    fn meets(&self, want: &Want) -> bool {
        match *want {
            Refused(code, host) => self.has(code, host, Level::Refuse) && self.plan.is_none(),
            Fixed(code, host) => self.has(code, host, Level::Fix) && self.plan.is_some(),
            Warned(code, host) => self.has(code, host, Level::Warn),
            Silent(code) => self.found.iter().all(|finding| finding.check.code != code),
            Does(host, title) => self.place(host, title).is_some(),
            DoesNot(host, title) => self.plan.is_some() && self.place(host, title).is_none(),
            Brings(host, text) => self.brings(host, text),
            BringsNo(host, text) => !self.steps(host).is_empty() && !self.brings(host, text),
            Runs(host, text) => self.runs(host, text),
            RunsNo(host, text) => !self.steps(host).is_empty() && !self.runs(host, text),
            Before(host, first, second) => {
                let (first, second) = (self.place(host, first), self.place(host, second));
                first.is_some() && second.is_some() && first < second
            }
            Nothing => self.plan.as_ref().is_some_and(Plan::is_empty),
            Told(_) => false,
        }
    }

    fn outline(&self) -> String {
        let found: Vec<String> = self
            .found
            .iter()
            .map(|f| format!("{} {:?} {:?} {}\n", f.check.code, f.check.level, f.host, f.message))
            .collect();
        found.concat() + &self.plan.as_ref().map_or_else(|| "no plan".to_owned(), world::outline)
    }
}

/// What is wrong with an inventory, one line each.
fn problems(inventory: &str) -> Vec<String> {
    let environment = Environment {
        user: "me".to_owned(),
        home: "/home/me".into(),
        inventory_dir: "/inventories".into(),
    };
    cluster::load(inventory, &environment)
        .err()
        .unwrap_or_default()
        .into_iter()
        .map(|problem| problem.message)
        .collect()
}

#[test]
fn every_case_ends_as_it_should() {
    let mut wrong = Vec::new();
    for case in all() {
        match case.given {
            Given::Inventory(text) => {
                let said = problems(text);
                for want in case.wants {
                    let Told(words) = want else {
                        panic!("{}: an inventory alone is only told about", case.name)
                    };
                    if !said.iter().any(|message| message.contains(words)) {
                        wrong.push(format!("{}: {words}\n{said:#?}", case.name));
                    }
                }
            }
            Given::Hosts(hosts) => {
                let judged = Judged::of(&hosts());
                for want in case.wants.iter().filter(|want| !judged.meets(want)) {
                    wrong.push(format!("{}: {want:?}\n{}", case.name, judged.outline()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_case_has_its_name_and_wants_something() {
    let names: BTreeSet<_> = all().map(|case| case.name).collect();
    assert_eq!(names.len(), all().count());
    assert!(all().all(|case| !case.wants.is_empty()));
}

/// Codes that no entry here can show, and why.
const ELSEWHERE: &[(&str, &str)] = &[
    ("K8S-PLAN-001", "--host is no fact of a host: plans.rs, only_some_hosts"),
    (
        "K8S-PLAN-002",
        "--host is no fact of a host: plans.rs, what_all_hosts_share_is_not_changed_for_some_of_them",
    ),
    ("K8S-PLAN-009", "a defect of the planner, which no facts can cause"),
];

/// Every code stands in a test of this folder tree, or in the list with the reason why it cannot.
#[test]
fn every_code_is_exercised() {
    let mut tests = String::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("reported/mod.rs") {
                tests.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let missing: Vec<_> = check::ALL
        .iter()
        .map(|check| check.code)
        .filter(|code| !tests.contains(*code) && !ELSEWHERE.iter().any(|(known, _)| known == code))
        .collect();
    assert!(missing.is_empty(), "no test shows {missing:?}");
    for (code, why) in ELSEWHERE {
        assert!(
            check::ALL.iter().any(|check| check.code == *code) && !why.is_empty(),
            "{code}"
        );
    }
}
