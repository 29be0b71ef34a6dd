//! Unpredictable strings that the service generates itself.

use uuid::Uuid;

/// Returns 244 unpredictable bits as text, for a credential.
pub fn random_token() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

/// Returns four letters and digits that distinguish one pod of a pool from the others.
pub fn random_suffix() -> String {
    const SYMBOLS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let symbol = |byte: &u8| char::from(SYMBOLS[usize::from(*byte) % SYMBOLS.len()]);
    Uuid::new_v4().as_bytes().iter().take(4).map(symbol).collect()
}
