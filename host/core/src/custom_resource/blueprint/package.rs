//! A package to install.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest length of a package's text, in bytes.
const MAX_TEXT_BYTES: usize = 200;

/// A Python package as pip takes it: a name, with extras and versions if they matter. It is neither an option of pip nor a
/// URL or a path, which would be installed from anywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Package(String);

/// Text that is not a package.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no package: it begins with a letter or a digit, and extras and versions may follow, as in `dask[array]>=2026.1,<2027`"
)]
pub struct InvalidPackage(String);

impl Package {
    /// Returns the package as pip takes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Package {
    type Error = InvalidPackage;

    fn try_from(text: String) -> Result<Self, InvalidPackage> {
        let begins = text.starts_with(|first: char| first.is_ascii_alphanumeric());
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-[]<>=!~, *+".contains(&byte);
        if begins && text.len() <= MAX_TEXT_BYTES && text.bytes().all(allowed) {
            Ok(Self(text))
        } else {
            Err(InvalidPackage(text))
        }
    }
}

impl From<Package> for String {
    fn from(package: Package) -> Self {
        package.0
    }
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_a_name_with_versions_and_nothing_else() {
        for good in ["pandas", "xarray>=2026.1", "dask[array, distributed] ~= 2026.1, != 2026.2", "a==1.*+x"]
        {
            assert!(Package::try_from(good.to_owned()).is_ok(), "{good}");
        }
        let long = "x".repeat(201);
        for bad in [
            "",
            "--index-url=https://evil.example",
            "-r",
            "./here",
            "/etc",
            "pkg @ https://evil.example/x.whl",
            "git+https://evil.example/x",
            "a;b",
            "a\nb",
            "$(a)",
            &long,
        ] {
            assert!(Package::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
