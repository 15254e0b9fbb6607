//! What to do, as data: lanes of steps, one lane a host, and the gates between them.
//!
//! Nothing here is async, looks at a clock, an environment or a file. A [`Plan`] names
//! secrets and late values by [`Reference`], so it can be shown, saved and compared.

pub mod apply;
pub mod differences;
pub mod fitness;
pub mod gate;
mod identity;
pub(crate) mod mask;
mod paths;
pub mod reset;
mod scripts;
pub mod standing;
pub mod step;

use serde::Serialize;

use crate::check::Finding;
use crate::cluster::{Decision, NodeName, Role};
pub use gate::{Gate, check_gates};
pub use step::{Step, StepParam, StepScript};

/// Everything to be done; empty when the hosts are as the inventory wants them.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Plan {
    /// One lane for every host that has something to do, in the inventory's order.
    pub lanes: Vec<Lane>,
    /// What a person should know, though nothing is done about it.
    pub warnings: Vec<Finding>,
    /// Why there will be more to plan when this is done: a fact that only then can be seen.
    pub continues: Option<String>,
    /// Hosts that could not be looked at: the plan says nothing about them.
    pub left_out: Vec<NodeName>,
    /// What cannot be taken back afterwards; only where a cluster is founded.
    pub decisions: Vec<Decision>,
}

impl Plan {
    /// Nothing is to be done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.steps.is_empty())
    }

    /// The steps of all hosts, lane by lane.
    pub fn steps(&self) -> impl Iterator<Item = &Planned> {
        self.lanes.iter().flat_map(|lane| &lane.steps)
    }

    /// What its steps mend, lane by lane.
    pub fn fixes(&self) -> impl Iterator<Item = &Finding> {
        self.steps().flat_map(|planned| &planned.fixes)
    }

    /// Hosts that are rebooted.
    pub fn reboots(&self) -> impl Iterator<Item = &NodeName> {
        let reboots = |lane: &&Lane| {
            lane.steps
                .iter()
                .any(|planned| matches!(planned.step, Step::Reboot { .. }))
        };
        self.lanes.iter().filter(reboots).map(|lane| &lane.host)
    }

    /// Number of steps over all lanes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.steps.len()).sum()
    }
}

/// The ordered steps of one host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lane {
    /// The host.
    pub host: NodeName,
    /// What it is for.
    pub role: Role,
    /// Carried out in this order.
    pub steps: Vec<Planned>,
}

/// A step in its place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Planned {
    /// What is done.
    pub step: Step,
    /// Why: the fact that differs, in one sentence fragment.
    pub why: String,
    /// Gates that must be open before it starts; a closed one means that it never starts.
    pub needs: Vec<Gate>,
    /// Gates that must be open or closed before it starts.
    pub after: Vec<Gate>,
    /// Gates of other hosts that this step is about: when one of them closes it is left out, and its lane goes on.
    pub only_if: Vec<Gate>,
    /// The gate that its success opens.
    pub opens: Option<Gate>,
    /// Files that it changes.
    pub files: Vec<FileChange>,
    /// What was found wrong on the host and is right afterwards: checks of level `fix`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<Finding>,
}

impl Planned {
    /// A step without gates.
    #[must_use]
    pub fn new(step: Step, why: impl Into<String>) -> Self {
        Self {
            step,
            why: why.into(),
            needs: Vec::new(),
            after: Vec::new(),
            only_if: Vec::new(),
            opens: None,
            files: Vec::new(),
            fixes: Vec::new(),
        }
    }

    /// With what it mends. The finding needs no host (`check::SWAP.at_large(…)`): it gets that of the lane.
    #[must_use]
    pub fn fixes(mut self, findings: impl IntoIterator<Item = Finding>) -> Self {
        self.fixes.extend(findings);
        self
    }

    /// With gates that must be open.
    #[must_use]
    pub fn needs(mut self, gates: impl IntoIterator<Item = Gate>) -> Self {
        self.needs.extend(gates);
        self
    }

    /// With gates that must be open or closed.
    #[must_use]
    pub fn after(mut self, gates: impl IntoIterator<Item = Gate>) -> Self {
        self.after.extend(gates);
        self
    }

    /// With a gate that must not be closed.
    #[must_use]
    pub fn only_if(mut self, gate: Gate) -> Self {
        self.only_if.push(gate);
        self
    }

    /// With the gate that it opens.
    #[must_use]
    pub fn opens(mut self, gate: Gate) -> Self {
        self.opens = Some(gate);
        self
    }

    /// With a file that it changes, when it changes it.
    #[must_use]
    pub fn changes(mut self, path: &str, before: Option<&str>, after: Option<&str>) -> Self {
        if before != after {
            let (before, after) = mask::pair(before, after);
            self.files.push(FileChange {
                path: path.to_owned(),
                before,
                after,
            });
        }
        self
    }
}

/// A file before and after, for showing: its secrets are masked, and nothing is ever written from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// Absolute path on the host.
    pub path: String,
    /// Content now; `None`: there is no such file.
    pub before: Option<String>,
    /// Content afterwards, secrets and late values as references; `None`: the file is removed.
    pub after: Option<String>,
}

/// A value that a plan only names; `execute` puts it in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// Bootstrap token of this run.
    BootstrapToken,
    /// Key that encrypts the uploaded certificates.
    CertificateKey,
    /// The cluster's CA certificate as base64 of its PEM; known when the cluster is initialised.
    CaCertData,
}

impl Reference {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::BootstrapToken, Self::CertificateKey, Self::CaCertData];

    /// How a rendered text names it.
    #[must_use]
    pub const fn placeholder(self) -> &'static str {
        match self {
            Self::BootstrapToken => "<secret:bootstrap-token>",
            Self::CertificateKey => "<secret:certificate-key>",
            Self::CaCertData => "<late:ca-cert>",
        }
    }
}
