//! The vocabulary for editors (JSON Schema) and for readers (docs/inventory.md).

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::vocabulary::{Form, Key, PARTS, Part};

/// JSON Schema of an inventory, draft 2020-12.
#[must_use]
pub fn json() -> Value {
    let mut root = Map::new();
    root.insert(
        "$schema".to_owned(),
        "https://json-schema.org/draft/2020-12/schema".into(),
    );
    root.insert("title".to_owned(), "k8sup inventory".into());
    let mut parts = Map::new();
    for part in PARTS {
        let schema = object(part);
        if part.name.is_empty() {
            root.extend(schema);
        } else {
            parts.insert(part.name.to_owned(), schema.into());
        }
    }
    root.insert("$defs".to_owned(), parts.into());
    root.into()
}

fn object(part: &Part) -> Map<String, Value> {
    let properties: Map<String, Value> = part
        .keys
        .iter()
        .map(|key| (key.name.to_owned(), property(key)))
        .collect();
    let required: Vec<Value> = part
        .keys
        .iter()
        .filter(|key| key.required)
        .map(|key| key.name.into())
        .collect();
    let mut object = Map::new();
    object.insert("description".to_owned(), part.about.into());
    // A part whose keys are all commented out is `null` in YAML.
    object.insert(
        "type".to_owned(),
        if required.is_empty() {
            json!(["object", "null"])
        } else {
            "object".into()
        },
    );
    object.insert("properties".to_owned(), properties.into());
    object.insert("additionalProperties".to_owned(), false.into());
    if !required.is_empty() {
        object.insert("required".to_owned(), required.into());
    }
    object
}

fn property(key: &Key) -> Value {
    let mut schema = match form(key.form) {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    schema.insert("description".to_owned(), key.about.into());
    let value = |yaml: &str| serde_saphyr::from_str::<Value>(yaml).unwrap_or_else(|_| yaml.into());
    if !key.default.is_empty() {
        schema.insert("default".to_owned(), value(key.default));
    }
    if !key.example.is_empty() {
        schema.insert("examples".to_owned(), json!([value(key.example)]));
    }
    schema.into()
}

fn reference(part: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{part}") })
}

fn form(form: Form) -> Value {
    // As the reader does: what YAML takes for a number or a truth value is a text, too.
    let text = json!(["string", "number", "boolean"]);
    match form {
        Form::Text => json!({ "type": text }),
        Form::OneOf(words) => json!({ "enum": words }),
        Form::Number(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Form::Switch => json!({ "type": "boolean" }),
        Form::Texts => json!({ "type": ["array", "string", "null"], "items": { "type": text } }),
        Form::Part(part) => reference(part),
        Form::PartOr(part, words) => json!({ "anyOf": [{ "enum": words }, reference(part)] }),
        Form::Hosts => json!({
            "type": ["object", "null"],
            "additionalProperties": { "anyOf": [{ "type": "string" }, reference("HOST")] },
        }),
        Form::Map => json!({
            "type": ["object", "null"],
            "additionalProperties": { "type": ["string", "number", "boolean", "null"] },
        }),
        Form::Lists => json!({
            "type": ["object", "null"],
            "additionalProperties": { "type": ["array", "string"], "items": { "type": "string" } },
        }),
        Form::Taints => json!({
            "type": ["array", "null"],
            "items": { "anyOf": [{ "type": "string" }, reference("HOST.taints")] },
        }),
        Form::Document => json!({ "type": ["object", "null"] }),
        Form::Documents => json!({ "type": ["object", "null"], "additionalProperties": { "type": "object" } }),
    }
}

/// docs/inventory.md.
#[must_use]
pub fn document() -> String {
    let mut out = String::from(
        "# The inventory, key by key\n\nMade from the code; `k8sup schema` prints the same for editors \
         ([inventories/schema.json](../inventories/schema.json)).\nAn inventory to start from is \
         [inventories/homelab.yaml](../inventories/homelab.yaml). In bold what has to be there.\n",
    );
    for part in PARTS {
        let title = match part.name {
            "" => "Top level".to_owned(),
            name => format!("`{name}`"),
        };
        let _ = write!(
            out,
            "\n## {title}\n\n{}\n\n| key | value | without it | |\n|---|---|---|---|\n",
            part.about
        );
        for key in part.keys {
            let name = if key.required {
                format!("**`{}`**", key.name)
            } else {
                format!("`{}`", key.name)
            };
            let default = if key.default.is_empty() {
                String::new()
            } else {
                format!("`{}`", key.default)
            };
            let example = match key.example {
                "" => String::new(),
                example => format!(" For example `{example}`."),
            };
            let _ = writeln!(
                out,
                "| {name} | {} | {default} | {}{example} |",
                in_words(key.form),
                key.about
            );
        }
    }
    out
}

fn in_words(form: Form) -> String {
    let quoted = |words: &[&str]| {
        words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let link = |part: &str| format!("[{part}](#{})", part.to_lowercase().replace('.', ""));
    match form {
        Form::Text => "text".to_owned(),
        Form::OneOf(words) => quoted(words),
        Form::Number(least, most) => format!("{least} to {most}"),
        Form::Switch => "`true`, `false`".to_owned(),
        Form::Texts => "a list".to_owned(),
        Form::Part(part) => link(part),
        Form::PartOr(part, words) => format!("{}, or {}", quoted(words), link(part)),
        Form::Hosts => format!("names, each with an address or a {}", link("HOST")),
        Form::Map => "names and values".to_owned(),
        Form::Lists => "names, each with a list".to_owned(),
        Form::Taints => format!("a list of `key=value:Effect` or {}", link("HOST.taints")),
        Form::Document => "a map".to_owned(),
        Form::Documents => "names, each with a map".to_owned(),
    }
}
