//! The one function that puts a value into shell text.

/// Quotes a value for POSIX sh: any text comes back as one word with the same bytes.
///
/// A NUL byte cannot be in a shell word; commands refuse parameters that contain one.
#[must_use]
pub fn quote(value: &str) -> String {
    let mut quoted = String::with_capacity(value.len() + 2);
    quoted.push('\'');
    for character in value.chars() {
        match character {
            '\'' => quoted.push_str("'\\''"),
            other => quoted.push(other),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn every_value_is_one_word() {
        assert_eq!(quote(""), "''");
        assert_eq!(quote("plain"), "'plain'");
        assert_eq!(quote("it's $(here)"), "'it'\\''s $(here)'");
        assert_eq!(quote("'"), "''\\'''");
    }
}
