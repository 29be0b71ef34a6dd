use wasmspawner_core::policy::{Denial, FieldError, Group, HookError, Options, User, Value};
use wasmspawner_core::users::quota::UserQuota;

use crate::contract::bindings::types as wit;

pub(in crate::contract) fn user(user: &User) -> wit::User {
    let quota = |quota: UserQuota| wit::UserQuota {
        cpu_millis: quota.cpu_millis,
        memory_bytes: quota.memory_bytes,
        spawn: quota.spawn,
    };
    let group = |group: &Group| wit::Group { name: group.name.clone(), gid: group.gid };
    wit::User {
        name: user.name.clone(),
        uid: user.uid,
        gid: user.gid,
        groups: user.groups.iter().map(group).collect(),
        email: user.email.clone(),
        display_name: user.display_name.clone(),
        quota: user.quota.map(quota),
    }
}

pub(in crate::contract) fn option_entries(options: &Options) -> Vec<wit::OptionEntry> {
    let value = |value: &Value| match value {
        Value::Boolean(value) => wit::Value::Boolean(*value),
        Value::Integer(value) => wit::Value::Integer(*value),
        Value::Number(value) => wit::Value::Number(*value),
        Value::Text(value) => wit::Value::Text(value.clone()),
    };
    options.iter().map(|(name, of)| wit::OptionEntry { name: name.clone(), value: value(of) }).collect()
}

/// Converts entries to options. If several entries have the same name, the last one wins.
pub(in crate::contract) fn options(entries: Vec<wit::OptionEntry>) -> Options {
    let value = |value| match value {
        wit::Value::Boolean(value) => Value::Boolean(value),
        wit::Value::Integer(value) => Value::Integer(value),
        wit::Value::Number(value) => Value::Number(value),
        wit::Value::Text(value) => Value::Text(value),
    };
    entries.into_iter().map(|entry| (entry.name, value(entry.value))).collect()
}

pub(in crate::contract) fn field_errors(errors: Vec<wit::FieldError>) -> Vec<FieldError> {
    errors.into_iter().map(|error| FieldError { field: error.field, message: error.message }).collect()
}

pub(in crate::contract) fn denial(denial: wit::Denial) -> Denial {
    let wit::Denial { message, rule } = denial;
    Denial { message, rule }
}

pub(in crate::contract) fn hook_error(error: wit::Error) -> HookError {
    match error {
        wit::Error::Denied(why) => HookError::Denied(denial(why)),
        wit::Error::Invalid(errors) => HookError::Invalid(field_errors(errors)),
        wit::Error::RetryLater(seconds) => HookError::RetryLater(seconds),
        wit::Error::Internal(message) => HookError::Internal(message),
    }
}
