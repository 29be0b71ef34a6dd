//! Ranges of network addresses.

use std::fmt;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A range of addresses: `10.0.0.0/8`, `fd00::/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct PeerRange {
    address: IpAddr,
    prefix: u8,
}

impl PeerRange {
    /// A range that is a constant in this crate.
    pub(crate) const fn constant(address: IpAddr, prefix: u8) -> Self {
        Self { address, prefix }
    }

    /// True for a range of IPv4 addresses.
    pub fn is_ipv4(&self) -> bool {
        self.address.is_ipv4()
    }

    /// True when `peer` is in the range. An IPv4-mapped IPv6 address is treated as the IPv4 address.
    pub fn contains(&self, peer: IpAddr) -> bool {
        let shared = match (self.address, peer.to_canonical()) {
            (IpAddr::V4(range), IpAddr::V4(peer)) => (range.to_bits() ^ peer.to_bits()).leading_zeros(),
            (IpAddr::V6(range), IpAddr::V6(peer)) => (range.to_bits() ^ peer.to_bits()).leading_zeros(),
            _ => return false,
        };
        shared >= u32::from(self.prefix)
    }
}

impl TryFrom<String> for PeerRange {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let parsed = || {
            let (address, prefix) = match text.split_once('/') {
                Some((address, prefix)) => (address, Some(prefix.parse().ok()?)),
                None => (text.as_str(), None),
            };
            let address: IpAddr = address.parse().ok()?;
            let longest = if address.is_ipv4() { 32 } else { 128 };
            let prefix = prefix.unwrap_or(longest);
            (prefix <= longest).then_some(Self { address, prefix })
        };
        parsed().ok_or_else(|| {
            format!("{text:?} is not an address range: write 10.0.0.0/8, fd00::/8 or an address")
        })
    }
}

impl fmt::Display for PeerRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl From<PeerRange> for String {
    fn from(range: PeerRange) -> Self {
        range.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_contains_exactly_its_addresses() {
        for (range, peer, inside) in [
            ("10.1.0.0/16", "10.1.255.255", true),
            ("10.1.0.0/16", "10.2.0.0", false),
            ("10.1.0.0/16", "::ffff:10.1.2.3", true),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("0.0.0.0/0", "::1", false),
            ("fd00::/8", "fdff::1", true),
            ("fd00::/8", "fe80::1", false),
        ] {
            let range = PeerRange::try_from(range.to_owned()).unwrap();
            assert_eq!(range.contains(peer.parse().unwrap()), inside, "{peer} in {range:?}");
        }
    }

    #[test]
    fn text_that_is_not_a_range_is_refused() {
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "localhost", "10.0.0.0/", "10.0.0.0/-1"] {
            assert!(PeerRange::try_from(text.to_owned()).is_err(), "{text:?}");
        }
    }
}
