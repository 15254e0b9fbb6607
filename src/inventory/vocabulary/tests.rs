//! The vocabulary says what the reader does.

use serde_json::{Value, json};

use super::*;
use crate::cluster::{Cluster, Written, load};
use crate::inventory::{Environment, Severity, schema};

/// A small inventory with this value at this key of a part.
fn with(part: &str, key: &str, value: Value) -> Value {
    let mut inventory = json!({
        "cluster": { "name": "homelab", "kubernetes": "v1.34.4" },
        "ssh": { "user": "pi" },
        "controllers": { "c0": { "address": "192.168.7.201", "ssh": {} } },
        "workers": { "w0": { "address": "192.168.7.204" } },
    });
    let place = match part {
        "HOST" => "/controllers/c0".to_owned(),
        "HOST.ssh" => "/controllers/c0/ssh".to_owned(),
        "HOST.taints" => {
            inventory["workers"]["w0"]["taints"] = json!([{ "key": "a", "effect": "NoExecute" }]);
            "/workers/w0/taints/0".to_owned()
        }
        "ssh.bastion" => {
            inventory["ssh"]["bastion"] = json!({ "host": "gateway.example.com" });
            "/ssh/bastion".to_owned()
        }
        "packages.containerd" => {
            inventory["packages"]["containerd"] =
                json!({ "source": "https://a.example trixie stable", "key": "https://a.example/gpg" });
            "/packages/containerd".to_owned()
        }
        "proxy" => {
            inventory["proxy"]["http"] = json!("http://proxy.example.com:3128");
            "/proxy".to_owned()
        }
        "" => String::new(),
        part => format!("/{}", part.replace('.', "/")),
    };
    // Where the part is not there yet it comes with the key.
    let mut there = &mut inventory;
    for step in place.split('/').skip(1) {
        there = match there {
            Value::Array(items) => &mut items[0],
            map => &mut map[step],
        };
    }
    there[key] = value;
    inventory
}

fn loaded(inventory: &Value) -> Result<Cluster, String> {
    let environment = Environment {
        user: "me".to_owned(),
        home: "/home/me".into(),
        inventory_dir: "/inventories".into(),
    };
    let (mut cluster, _) = load(&inventory.to_string(), &environment).map_err(|problems| {
        let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
        errors
            .map(|problem| problem.message.clone())
            .collect::<Vec<_>>()
            .join("; ")
    })?;
    // They tell defaults from what is written.
    cluster.decisions.clear();
    for host in &mut cluster.hosts {
        host.ssh.written = Written::default();
        if let Some(bastion) = &mut host.ssh.bastion {
            bastion.written = Written::default();
        }
    }
    Ok(cluster)
}

fn keys() -> impl Iterator<Item = (&'static str, &'static Key)> {
    PARTS
        .iter()
        .flat_map(|part| part.keys.iter().map(|key| (part.name, key)))
}

fn value(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).unwrap()
}

#[test]
fn what_is_said_to_be_the_default_changes_nothing() {
    let without = format!("{:?}", loaded(&with("ssh", "user", json!("pi"))).unwrap());
    for (part, key) in keys().filter(|(part, key)| !key.default.is_empty() && *part != "packages.containerd") {
        let written = loaded(&with(part, key.name, value(key.default)));
        let written = written.map(|cluster| format!("{cluster:?}"));
        // A bastion that is spelt out is there; what is compared is its default.
        let plain = if part == "ssh.bastion" {
            format!(
                "{:?}",
                loaded(&with(part, "host", json!("gateway.example.com"))).unwrap()
            )
        } else {
            without.clone()
        };
        // Kubernetes' own registry is what kubeadm takes when it is told nothing.
        let same = written.as_ref() == Ok(&plain) || key.default == "registry.k8s.io";
        assert!(same, "{part} {}: {written:?}\nnot {plain}", key.name);
    }
}

#[test]
fn examples_and_every_word_are_taken() {
    for (part, key) in keys() {
        let words = match key.form {
            Form::OneOf(words) | Form::PartOr(_, words) => words,
            _ => &[],
        };
        let mut values: Vec<Value> = words.iter().map(|word| json!(word)).collect();
        if !key.example.is_empty() {
            values.push(value(key.example));
        }
        for value in values {
            let inventory = with(part, key.name, value);
            assert_eq!(loaded(&inventory).err(), None, "{part} {}", key.name);
            assert_eq!(told(&inventory), [""; 0], "{part} {}", key.name);
        }
    }
}

fn told(inventory: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(&schema::json()).unwrap();
    validator
        .iter_errors(inventory)
        .map(|error| error.to_string())
        .collect()
}

#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    for part in PARTS {
        let inventory = with(part.name, "unheardOf", json!("x"));
        assert!(loaded(&inventory).is_err(), "{}", part.name);
        assert_ne!(told(&inventory), [""; 0], "{}", part.name);
    }
    for (part, key) in keys() {
        let wrong = match key.form {
            Form::Text | Form::OneOf(_) => json!({ "a": "b" }),
            Form::Switch => json!("maybe"),
            Form::Number(_, most) => json!(most + 1),
            Form::Texts | Form::PartOr(..) => json!({ "b": 1 }),
            Form::Part(_) | Form::Hosts | Form::Map | Form::Lists | Form::Documents | Form::Document => {
                json!(["a"])
            }
            Form::Taints => json!("a=b:NoExecute"),
        };
        let inventory = with(part, key.name, wrong);
        assert!(loaded(&inventory).is_err(), "{part} {}", key.name);
        assert_ne!(told(&inventory), [""; 0], "{part} {}", key.name);
    }
}

#[test]
fn the_inventories_of_the_repository_are_valid() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["homelab", "lab", "single"] {
        let text = std::fs::read_to_string(root.join(format!("inventories/{name}.yaml"))).unwrap();
        assert_eq!(told(&value(&text)), [""; 0], "{name}");
    }
}
