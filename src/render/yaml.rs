//! YAML out of JSON values, the same bytes for the same value.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;
use serde_saphyr::DoubleQuoted;

use crate::plan::Reference;

/// One stream of documents, separated by `---`.
pub(super) fn documents(documents: &[Value]) -> String {
    let texts: Vec<String> = documents.iter().map(document).collect();
    texts.join("---\n")
}

/// One document, which ends with a newline.
pub(super) fn document(value: &Value) -> String {
    // Long lines are not folded: a folded command line is hard to read and to search for.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: 1 << 20 };
    // JSON is YAML too, so there is an answer even for a value that the serialiser refuses.
    let mut text = serde_saphyr::to_string_with_options(&Sealed(value), options).unwrap_or_else(|_| value.to_string());
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// A value whose references are quoted: a token or key of digits alone would be read as a number
/// once it has taken its reference's place.
struct Sealed<'a>(&'a Value);

impl Serialize for Sealed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::String(text)
                if Reference::ALL
                    .iter()
                    .any(|reference| text.contains(reference.placeholder())) =>
            {
                DoubleQuoted(text.as_str()).serialize(serializer)
            }
            Value::Array(items) => {
                let mut seq = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    seq.serialize_element(&Sealed(item))?;
                }
                seq.end()
            }
            Value::Object(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, &Sealed(value))?;
                }
                map.end()
            }
            plain => plain.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{document, documents};

    #[test]
    fn strings_that_look_like_something_else_are_quoted() {
        for text in [
            "on",
            "yes",
            "y",
            "no",
            "true",
            "null",
            "~",
            "1.0",
            "0x1f",
            "1e3",
            "12:30:45",
            "",
            "- a",
            "a: b",
            "2024-01-01",
        ] {
            let yaml = document(&json!({ "v": text }));
            let back: Value = serde_saphyr::from_str(&yaml).unwrap();
            assert_eq!(back["v"], json!(text), "{yaml}");
            assert!(yaml.contains('"') || yaml.contains('\''), "{text} is plain in {yaml}");
        }
    }

    #[test]
    fn references_are_quoted() {
        assert_eq!(
            document(&json!({ "token": "<secret:bootstrap-token>", "other": "a" })),
            "token: \"<secret:bootstrap-token>\"\nother: a\n"
        );
    }

    #[test]
    fn documents_are_separated() {
        assert_eq!(
            documents(&[json!({ "a": 1 }), json!({ "b": [] })]),
            "a: 1\n---\nb: []\n"
        );
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[ -~\n\t]{0,40}".prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[a-zA-Z./ -]{1,12}", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(value in any_json()) {
            let yaml = document(&json!({ "value": value }));
            let back: Value = serde_saphyr::from_str(&yaml).unwrap();
            prop_assert_eq!(&back["value"], &value, "{}", yaml);
        }
    }
}
