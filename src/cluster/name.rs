//! Names of hosts and Nodes.

use std::fmt;

use serde::Serialize;

/// A host's key in the inventory and its Node's name: an RFC 1123 subdomain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct NodeName(String);

impl NodeName {
    /// Checks the rules of RFC 1123: at most 253 characters, labels of at most 63 made of
    /// lower-case letters, digits and inner hyphens.
    ///
    /// # Errors
    /// Says which rule the name breaks.
    pub fn parse(name: &str) -> Result<Self, String> {
        if name.is_empty() || name.len() > 253 {
            return Err("a name has 1 to 253 characters".to_owned());
        }
        for label in name.split('.') {
            if label.is_empty() || label.len() > 63 {
                return Err("each part between dots has 1 to 63 characters".to_owned());
            }
            if let Some(bad) = label.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-')) {
                return Err(format!(
                    "`{bad}` is not allowed: lower-case letters, digits and hyphens are"
                ));
            }
            if label.starts_with('-') || label.ends_with('-') {
                return Err("a part must not start or end with a hyphen".to_owned());
            }
        }
        Ok(Self(name.to_owned()))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
