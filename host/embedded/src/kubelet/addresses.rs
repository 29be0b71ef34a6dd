//! Addresses of pods out of 127.0.0.0/8. Linux answers all of these on the loopback interface.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};

/// The address of the node, `status.hostIP` of its pods.
pub(crate) const HOST_IP: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A range such as `127.101.0.0/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    network: u32,
    bits: u32,
}

impl Default for AddressRange {
    fn default() -> Self {
        Self::new(Ipv4Addr::new(127, 101, 0, 0), 16)
    }
}

impl AddressRange {
    /// Creates the network of the first `bits` bits of an address. `bits` is clamped to 8 to 30.
    pub fn new(address: Ipv4Addr, bits: u32) -> Self {
        let bits = bits.clamp(8, 30);
        Self { network: u32::from(address) & (u32::MAX << (32 - bits)), bits }
    }

    fn contains(self, address: Ipv4Addr) -> bool {
        u32::from(address) >> (32 - self.bits) == self.network >> (32 - self.bits)
    }

    /// Counts the addresses without the first two (network, a gateway elsewhere) and the last (broadcast elsewhere).
    fn usable(self) -> u32 {
        (1_u32 << (32 - self.bits)) - 3
    }
}

/// The addresses of all pods. Freed addresses are reused as late as possible, so that a proxy with the address of an
/// old lab does not reach the lab of another user.
#[derive(Debug)]
pub(crate) struct Addresses {
    range: AddressRange,
    next: u32,
    by_pod: HashMap<String, Ipv4Addr>,
    taken: HashSet<Ipv4Addr>,
}

impl Addresses {
    pub(crate) fn new(range: AddressRange) -> Self {
        Self { range, next: 0, by_pod: HashMap::new(), taken: HashSet::new() }
    }

    /// Keeps the address that is already in a pod's status. Returns false if it is outside the range or belongs to
    /// another pod.
    pub(crate) fn restore(&mut self, uid: &str, address: Ipv4Addr) -> bool {
        if let Some(own) = self.by_pod.get(uid) {
            return *own == address;
        }
        if !self.range.contains(address) || !self.taken.insert(address) {
            return false;
        }
        let offset = u32::from(address) - self.range.network;
        self.next = self.next.max(offset.saturating_sub(1) % self.range.usable());
        self.by_pod.insert(uid.to_owned(), address);
        true
    }

    /// Returns the pod's address, or assigns a new one if it has none. `None` if the range is used up.
    pub(crate) fn assign(&mut self, uid: &str) -> Option<Ipv4Addr> {
        if let Some(address) = self.by_pod.get(uid) {
            return Some(*address);
        }
        let usable = self.range.usable();
        let address = (0..usable)
            .map(|step| Ipv4Addr::from(self.range.network + 2 + (self.next + step) % usable))
            .find(|address| !self.taken.contains(address))?;
        self.next = (u32::from(address) - self.range.network - 1) % usable;
        self.taken.insert(address);
        self.by_pod.insert(uid.to_owned(), address);
        Some(address)
    }

    /// Releases the pod's address.
    pub(crate) fn free(&mut self, uid: &str) {
        if let Some(address) = self.by_pod.remove(uid) {
            self.taken.remove(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_address_is_reused_last_and_a_restored_one_is_kept() {
        let ip = |last| Ipv4Addr::new(127, 101, 0, last);
        // Eight addresses, five of which are given out.
        let mut addresses = Addresses::new(AddressRange::new(ip(0), 29));
        assert!(addresses.restore("a", ip(3)));
        assert!(!addresses.restore("b", ip(3)), "it is another pod's");
        assert!(!addresses.restore("b", Ipv4Addr::new(127, 9, 0, 3)), "it is outside the range");
        assert_eq!(addresses.assign("a"), Some(ip(3)));
        assert_eq!(["b", "c"].map(|uid| addresses.assign(uid)), [Some(ip(4)), Some(ip(5))]);
        addresses.free("b");
        let rest = ["d", "e", "f", "g"].map(|uid| addresses.assign(uid));
        assert_eq!(rest, [Some(ip(6)), Some(ip(2)), Some(ip(4)), None]);
    }
}
