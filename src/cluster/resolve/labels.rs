//! Labels and taints of Nodes, after the rules of the API server and of the kubelet.

use std::collections::BTreeMap;

use super::text::{Wrong, check, one_of};
use crate::cluster::{NodeName, Role, Taint};
use crate::inventory::problem::{Problem, quoted};
use crate::inventory::raw::{At, TaintSection};

/// Effects of a taint.
const EFFECTS: [(&str, &str); 3] = [
    ("NoSchedule", "NoSchedule"),
    ("PreferNoSchedule", "PreferNoSchedule"),
    ("NoExecute", "NoExecute"),
];

/// The taint that kubeadm gives controllers.
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// Labels of kubernetes.io that a kubelet may give its own Node.
const OWN_LABELS: [&str; 3] = [
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "node.kubernetes.io/instance-type",
];

/// Labels that the kubelet works out itself.
const WORKED_OUT: [&str; 3] = ["kubernetes.io/hostname", "kubernetes.io/arch", "kubernetes.io/os"];

/// Checks the labels of a host.
pub(super) fn labels(written: &[(At<String>, At<String>)], problems: &mut Vec<Problem>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    for (key, value) in written {
        let good_key = check(problems, Some(key), |text| label_key(text));
        let good_value = check(problems, Some(value), |text| label_value("value of a label", text));
        if let (Some(key), Some(value)) = (good_key, good_value) {
            labels.insert(key, value);
        }
    }
    labels
}

/// Checks the taints of a host.
pub(super) fn taints(written: &[TaintSection], role: Role, problems: &mut Vec<Problem>) -> Vec<Taint> {
    let mut taints: Vec<Taint> = Vec::new();
    for one in written {
        let (span, taint) = match one {
            TaintSection::Text(at) => (at.span.clone(), check(problems, Some(at), |text| taint(text, role))),
            TaintSection::Map {
                span,
                key,
                value,
                effect,
            } => {
                let key = check(problems, key.as_ref(), |text| taint_key(text, role));
                let value = match value {
                    Some(value) => check(problems, Some(value), |text| label_value("value of a taint", text)),
                    None => Some(String::new()),
                };
                let effect = check(problems, effect.as_ref(), |text| one_of("effect", text, &EFFECTS));
                let taint = key.zip(value).zip(effect);
                (
                    span.clone(),
                    taint.map(|((key, value), effect)| Taint {
                        key,
                        value,
                        effect: effect.to_owned(),
                    }),
                )
            }
        };
        let Some(taint) = taint else { continue };
        if taints
            .iter()
            .any(|known| known.key == taint.key && known.effect == taint.effect)
        {
            let message = format!(
                "the taint {} with effect {} is given twice",
                quoted(&taint.key),
                taint.effect
            );
            problems.push(Problem::error(span, message).hint("a Node has one value for each key and effect"));
        } else {
            taints.push(taint);
        }
    }
    taints
}

/// `key=value:Effect` or `key:Effect`.
fn taint(text: &str, role: Role) -> Result<Taint, Wrong> {
    let Some((rest, effect)) = text.rsplit_once(':') else {
        return Err(Wrong::new(
            format!("the taint {} has no effect", quoted(text)),
            format!("write `{text}:NoSchedule`, for example"),
        ));
    };
    let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
    let effect = one_of("effect", effect, &EFFECTS)?;
    let value = label_value("value of a taint", value)?;
    Ok(Taint {
        key: taint_key(key, role)?,
        value,
        effect: effect.to_owned(),
    })
}

/// A key that a taint may have.
fn taint_key(key: &str, role: Role) -> Result<String, Wrong> {
    qualified("key of a taint", key)?;
    let reserved = prefix(key).is_some_and(reserved);
    if !reserved || key == CONTROL_PLANE && role == Role::Controller {
        return Ok(key.to_owned());
    }
    Err(Wrong::new(
        format!(
            "the taint {} belongs to Kubernetes, which sets and removes it itself",
            quoted(key)
        ),
        "use a key of your own, such as `dedicated`",
    ))
}

/// A key that a label may have.
fn label_key(key: &str) -> Result<String, Wrong> {
    qualified("key of a label", key)?;
    if WORKED_OUT.contains(&key) {
        return Err(Wrong::new(
            format!("the kubelet sets the label {} itself", quoted(key)),
            "remove the line",
        ));
    }
    let Some(prefix) = prefix(key).filter(|prefix| reserved(prefix)) else {
        return Ok(key.to_owned());
    };
    let below = |domain: &str| prefix == domain || prefix.ends_with(&format!(".{domain}"));
    if OWN_LABELS.contains(&key) || below("kubelet.kubernetes.io") || below("node.kubernetes.io") {
        return Ok(key.to_owned());
    }
    Err(Wrong::new(
        format!(
            "a node may not give itself the label {}: the API server refuses it to kubelets",
            quoted(key)
        ),
        if prefix == "node-role.kubernetes.io" {
            format!("use a key of your own, or set it afterwards: `kubectl label node NAME {key}=`")
        } else {
            "use a key of your own, or one below `node.kubernetes.io/`".to_owned()
        },
    ))
}

/// The part before the slash.
fn prefix(key: &str) -> Option<&str> {
    key.split_once('/').map(|(prefix, _)| prefix)
}

/// Whether the prefix belongs to Kubernetes.
fn reserved(prefix: &str) -> bool {
    ["kubernetes.io", "k8s.io"].iter().any(|domain| {
        prefix
            .strip_suffix(domain)
            .is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

/// `[prefix/]name`, as keys of labels and taints are written.
fn qualified(what: &str, key: &str) -> Result<(), Wrong> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let wrong = |why: String| {
        Wrong::new(
            format!("{} is not a good {what}: {why}", quoted(key)),
            "for example `disk` or `example.com/disk`",
        )
    };
    if let Some(Err(why)) = prefix.map(NodeName::parse) {
        return Err(wrong(format!("before the slash stands a domain, and {why}")));
    }
    if name.is_empty() {
        return Err(wrong("the name is empty".to_owned()));
    }
    word(name).map_err(wrong)
}

/// The value of a label or taint.
fn label_value(what: &str, value: &str) -> Result<String, Wrong> {
    match word(value) {
        Ok(()) => Ok(value.to_owned()),
        Err(why) => Err(Wrong::new(
            format!("{} is not a good {what}: {why}", quoted(value)),
            "for example `ssd`; it may be empty",
        )),
    }
}

/// At most 63 letters, digits, hyphens, underscores and dots, not at the ends.
fn word(text: &str) -> Result<(), String> {
    if text.len() > 63 {
        return Err("it has more than 63 characters".to_owned());
    }
    if let Some(bad) = text
        .chars()
        .find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'))
    {
        return Err(format!(
            "{} is not allowed: letters, digits, `-`, `_` and `.` are",
            quoted(&bad.to_string())
        ));
    }
    let ends = |c: char| c.is_ascii_alphanumeric();
    if !text.is_empty() && (!text.starts_with(ends) || !text.ends_with(ends)) {
        return Err("it starts and ends with a letter or digit".to_owned());
    }
    Ok(())
}
