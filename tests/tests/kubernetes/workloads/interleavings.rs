//! What may happen in any order.
