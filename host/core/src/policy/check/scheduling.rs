use super::Findings;
use crate::names::{LabelKey, LabelValue};
use crate::policy::{TaintEffect, Toleration, TolerationOperator};

pub(super) fn tolerations(tolerations: &[Toleration], found: &mut Findings) {
    for (position, toleration) in tolerations.iter().enumerate() {
        found.at(&format!("tolerations[{position}]"), |found| check(toleration, found));
    }
}

/// Validates a toleration as the API server does.
fn check(toleration: &Toleration, found: &mut Findings) {
    match (&toleration.key, toleration.operator) {
        (Some(key), _) => found.parsed("key", LabelKey::parse(key.as_str())),
        (None, TolerationOperator::Equal) => found.add("key", "is needed with the operator `equal`"),
        (None, TolerationOperator::Exists) => {}
    }
    if let Some(value) = &toleration.value {
        let exists = toleration.operator == TolerationOperator::Exists;
        found.refuse_if(exists, "value", "has no meaning with the operator `exists`");
        found.parsed("value", LabelValue::parse(value.as_str()));
    }
    let timed = toleration.seconds.is_some() && toleration.effect != Some(TaintEffect::NoExecute);
    found.refuse_if(timed, "seconds", "only an effect of `no_execute` can be tolerated for a time");
}
