//! The site policy of the Rubin Science Platform.

mod date;
mod inventory;
mod tag;

#[cfg(test)]
mod tests;
