//! Kubernetes versions and the images that belong to them.

use std::fmt;

use serde::Serialize;

/// An exact Kubernetes version, written `v1.34.4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Always 1 so far.
    pub major: u32,
    /// The minor version, which names the package repository.
    pub minor: u32,
    /// The patch.
    pub patch: u32,
}

/// The newest Kubernetes that this k8sup is known to build.
pub const NEWEST: Version = Version {
    major: 1,
    minor: 34,
    patch: 4,
};

impl Version {
    /// Reads `v1.34.4` or `1.34.4`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().trim_start_matches('v').split('.').map(str::parse);
        let version = Self {
            major: parts.next()?.ok()?,
            minor: parts.next()?.ok()?,
            patch: parts.next()?.ok()?,
        };
        parts.next().is_none().then_some(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Serialize for Version {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
