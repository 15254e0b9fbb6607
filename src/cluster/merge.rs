//! How documents of the inventory are laid over the rendered ones.

use serde_json::Value;

/// Lays `over` on `base`: maps are merged by key, lists of named items (maps with a text
/// `name`) by name, everything else is replaced. A null in `over` replaces too: it does not
/// remove the key.
pub fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                match base.get_mut(key) {
                    Some(known) => merge(known, value),
                    None => {
                        base.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (Value::Array(base), Value::Array(over)) if named(base) && named(over) => {
            for item in over {
                match base.iter_mut().find(|known| name(known) == name(item)) {
                    Some(known) => merge(known, item),
                    None => base.push(item.clone()),
                }
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// A list whose items all have a name; an empty one has no item without.
fn named(items: &[Value]) -> bool {
    !items.is_empty() && items.iter().all(|item| name(item).is_some())
}

/// The name of an item.
fn name(item: &Value) -> Option<&str> {
    item.as_object()?.get("name")?.as_str()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(mut base: Value, over: &Value, expected: &Value) {
        merge(&mut base, over);
        assert_eq!(&base, expected);
    }

    #[test]
    fn maps_are_merged_by_key() {
        check(
            json!({"a": 1, "b": {"c": 2, "d": 3}}),
            &json!({"b": {"d": 4, "e": 5}}),
            &json!({"a": 1, "b": {"c": 2, "d": 4, "e": 5}}),
        );
    }

    #[test]
    fn named_items_are_merged_by_name_and_keep_their_order() {
        check(
            json!({"args": [{"name": "v", "value": "1"}, {"name": "w", "value": "1"}]}),
            &json!({"args": [{"name": "x", "value": "3"}, {"name": "v", "value": "2"}]}),
            &json!({"args": [{"name": "v", "value": "2"}, {"name": "w", "value": "1"}, {"name": "x", "value": "3"}]}),
        );
    }

    #[test]
    fn other_lists_are_replaced() {
        check(json!({"a": [1, 2]}), &json!({"a": [3]}), &json!({"a": [3]}));
        check(
            json!({"a": [{"name": "x"}]}),
            &json!({"a": [{"host": "y"}]}),
            &json!({"a": [{"host": "y"}]}),
        );
        check(json!({"a": [{"name": "x"}]}), &json!({"a": []}), &json!({"a": []}));
        check(
            json!({"a": []}),
            &json!({"a": [{"name": "x"}]}),
            &json!({"a": [{"name": "x"}]}),
        );
    }

    #[test]
    fn another_type_or_null_replaces() {
        check(json!({"a": {"b": 1}}), &json!({"a": 2}), &json!({"a": 2}));
        check(json!({"a": 2}), &json!({"a": {"b": 1}}), &json!({"a": {"b": 1}}));
        check(json!({"a": {"b": 1}}), &json!({"a": null}), &json!({"a": null}));
    }

    fn document() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[a-c]|name", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn merging_twice_is_merging_once(base in document(), over in document()) {
            let mut once = base;
            merge(&mut once, &over);
            let mut twice = once.clone();
            merge(&mut twice, &over);
            prop_assert_eq!(once, twice);
        }
    }
}
