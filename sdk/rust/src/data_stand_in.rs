//! Stands in for the host in native tests: the data of the site.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::bindings::host::SiteData;

thread_local! {
    static DATA: RefCell<BTreeMap<String, String>> = RefCell::default();
}

/// Runs `hook` while the site has this data.
pub(crate) fn with<T>(name: &str, value: &serde_json::Value, hook: impl FnOnce() -> T) -> T {
    DATA.with_borrow_mut(|data| data.insert(name.to_owned(), value.to_string()));
    let result = hook();
    DATA.with_borrow_mut(|data| data.remove(name));
    result
}

pub(crate) fn data(name: &str) -> Option<SiteData> {
    let json = DATA.with_borrow(|data| data.get(name).cloned())?;
    Some(SiteData { version: "test".to_owned(), json })
}
