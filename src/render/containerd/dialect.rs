//! The kinds of containerd: which version of its configuration each reads, and where settings are in it.

pub(super) const CRI: &str = "io.containerd.grpc.v1.cri";
pub(super) const CRI_RUNTIME: &str = "io.containerd.cri.v1.runtime";
pub(super) const CRI_IMAGES: &str = "io.containerd.cri.v1.images";
/// All names by which the CRI, or a half of it, can be switched off.
pub(super) const CRI_NAMES: [&str; 4] = ["cri", CRI, CRI_RUNTIME, CRI_IMAGES];

/// Which containerd reads the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// 1.x: version 2.
    V1,
    /// 2.0: version 3, `cni.bin_dir`.
    V20,
    /// 2.1 and later: version 3, `cni.bin_dirs`.
    V21,
}

impl Dialect {
    /// By containerd's version, `1.7.24`, with or without a distribution's suffix.
    #[must_use]
    pub fn of(version: &str) -> Option<Self> {
        let mut parts = version.trim_start_matches('v').split(|c: char| !c.is_ascii_digit());
        let (major, minor): (u32, u32) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        match (major, minor) {
            (1, _) => Some(Self::V1),
            (2, 0) => Some(Self::V20),
            (2.., _) => Some(Self::V21),
            (0, _) => None,
        }
    }

    /// As the step's script names it: `1`, `2.0`, `2.1`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::V1 => "1",
            Self::V20 => "2.0",
            Self::V21 => "2.1",
        }
    }

    pub(super) const fn version(self) -> i64 {
        match self {
            Self::V1 => 2,
            Self::V20 | Self::V21 => 3,
        }
    }
}

/// Where the settings are in each version.
#[derive(Clone, Copy)]
pub(super) struct Paths {
    pub(super) runtime: &'static str,
    pub(super) images: &'static str,
    pub(super) sandbox: &'static [&'static str],
}

impl Paths {
    pub(super) const fn of(dialect: Dialect) -> Self {
        match dialect {
            Dialect::V1 => Self {
                runtime: CRI,
                images: CRI,
                sandbox: &["sandbox_image"],
            },
            Dialect::V20 | Dialect::V21 => Self {
                runtime: CRI_RUNTIME,
                images: CRI_IMAGES,
                sandbox: &["pinned_images", "sandbox"],
            },
        }
    }

    pub(super) fn runtime(self, rest: &[&'static str]) -> Vec<&'static str> {
        [&["plugins", self.runtime], rest].concat()
    }

    pub(super) fn sandbox(self) -> Vec<&'static str> {
        [&["plugins", self.images], self.sandbox].concat()
    }

    pub(super) fn registry(self, rest: &[&'static str]) -> Vec<&'static str> {
        [&["plugins", self.images, "registry"], rest].concat()
    }
}
