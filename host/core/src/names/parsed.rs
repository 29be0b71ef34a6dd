//! A macro for name types: strings that can only be constructed by passing a check.

/// Declares a name type over `String`, checked by `$check: fn(&str) -> Result<(), Problem>`.
macro_rules! parsed_name {
    ($(#[$meta:meta])* $name:ident, $kind:literal, $check:path) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String")]
        pub struct $name(String);

        impl $name {
            /// Parses a value.
            pub fn parse(value: impl Into<String>) -> Result<Self, $crate::names::InvalidName> {
                let value = value.into();
                match $check(&value) {
                    Ok(()) => Ok(Self(value)),
                    Err(problem) => Err($crate::names::InvalidName { kind: $kind, value, problem }),
                }
            }

            /// A name that is a constant in this crate.
            #[allow(dead_code, reason = "not every kind of name has constants")]
            pub(crate) fn constant(value: &'static str) -> Self {
                debug_assert!($check(value).is_ok(), "{value:?} is no {}", $kind);
                Self(value.to_owned())
            }

            /// The name as it was passed to [`Self::parse`].
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::names::InvalidName;

            fn try_from(value: String) -> Result<Self, Self::Error> {
                Self::parse(value)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::names::InvalidName;

            fn from_str(value: &str) -> Result<Self, Self::Err> {
                Self::parse(value)
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }
    };
}

pub(super) use parsed_name;
