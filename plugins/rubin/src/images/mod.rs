//! The images of the site: their source, the offered ones, and those that are pulled in advance.

mod dropdown;
mod menu;
mod offer;
mod source;

pub(crate) use dropdown::Dropdown;
pub(crate) use offer::Offer;

#[cfg(test)]
pub(crate) use menu::menu;
