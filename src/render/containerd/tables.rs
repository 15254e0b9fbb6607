//! TOML tables by path: finding, making, moving and merging them.

use toml::{Table, Value};

use super::ContainerdError;

pub(super) fn lookup<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(table.get(*first)?, |value, key| value.get(*key))
}

/// The table at that path, made where it is missing.
pub(super) fn table_in<'a>(table: &'a mut Table, file: &str, path: &[&str]) -> Result<&'a mut Table, ContainerdError> {
    let mut table = table;
    for (depth, key) in path.iter().enumerate() {
        let entry = table
            .entry((*key).to_owned())
            .or_insert_with(|| Value::Table(Table::new()));
        table = entry.as_table_mut().ok_or_else(|| ContainerdError::NotATable {
            path: file.to_owned(),
            key: dotted(path.get(..=depth).unwrap_or(path)),
        })?;
    }
    Ok(table)
}

pub(super) fn dotted(path: &[&str]) -> String {
    let parts: Vec<String> = path
        .iter()
        .map(|key| {
            if key.contains('.') {
                format!("\"{key}\"")
            } else {
                (*key).to_owned()
            }
        })
        .collect();
    parts.join(".")
}

pub(super) fn take(table: &mut Table, keys: &[&str]) -> Table {
    keys.iter()
        .filter_map(|key| Some(((*key).to_owned(), table.remove(*key)?)))
        .collect()
}

pub(super) fn merge(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(base)), Value::Table(over)) => merge(base, over),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}
