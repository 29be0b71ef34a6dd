//! Unpredictable texts that the service makes itself.

use uuid::Uuid;

/// 244 unpredictable bits, for a credential.
pub fn random_token() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

/// Four letters and digits that tell one pod of a pool from the others.
pub fn random_suffix() -> String {
    const SYMBOLS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let symbol = |byte: &u8| char::from(SYMBOLS[usize::from(*byte) % SYMBOLS.len()]);
    Uuid::new_v4().as_bytes().iter().take(4).map(symbol).collect()
}
