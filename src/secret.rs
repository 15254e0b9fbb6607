//! A value that must not be seen: no `Display`, no `Serialize`, wiped when dropped.

use std::fmt;
use zeroize::Zeroizing;

/// A token, key, password or kubeconfig. Only [`Secret::reveal`] shows it, and only the
/// transport and the writer of a local kubeconfig call that.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a value into keeping.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(Zeroizing::new(value.into()))
    }

    /// The value itself, for the wire.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("•••")
    }
}
