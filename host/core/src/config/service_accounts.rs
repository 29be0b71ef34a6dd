//! Existing service accounts under which labs run.

use serde_json::Value;

use super::lab::LabSection;
use super::{InvalidSetting, PolicyConfig};
use crate::names::NamesConfig;

/// Finds accounts that cannot be there when a lab needs them, and those that the service would make itself. `is_deleted` is
/// true if every lab has a namespace that is deleted with it.
pub(super) fn check(
    lab: &LabSection,
    policies: &[PolicyConfig],
    names: &NamesConfig,
    is_deleted: bool,
) -> Vec<InvalidSetting> {
    let of_site = lab.service_account.iter().map(|name| ("lab.service_account".to_owned(), name));
    let of_policies = policies.iter().enumerate().flat_map(|(index, policy)| {
        let key = format!("policies[{index}].grants.service-accounts");
        policy.grants.service_accounts.iter().map(move |name| (key.clone(), name))
    });
    let own = names.service_account.split('{').next().unwrap_or_default();
    let problem = |name: &str| {
        if is_deleted {
            Some(format!(
                "no account `{name}` can be in the namespace of a lab, which is made and deleted with the lab \
                 (kubernetes.namespaces: delete); choose `single` or `retain`, and create the account there"
            ))
        } else if !own.is_empty() && name.starts_with(own) {
            Some(format!(
                "`{name}` may be the name of a lab's own account, which the service makes and deletes \
                 (names.service_account: {}); name another account",
                names.service_account
            ))
        } else {
            None
        }
    };
    of_site
        .chain(of_policies)
        .filter_map(|(key, name)| Some(InvalidSetting::new(key, problem(name.as_str())?)))
        .collect()
}

/// The accounts that the configuration of a policy names and its grants do not, if it says so in the form of the default
/// policy. Labs with them do not start.
pub(super) fn not_granted(policies: &[PolicyConfig]) -> Vec<String> {
    let of_policy = |(index, policy): (usize, &PolicyConfig)| {
        let mut names = Vec::new();
        find(&Value::Object(policy.config.clone()), &mut names);
        names.retain(|name| policy.grants.service_accounts.iter().all(|granted| granted.as_str() != name));
        let warning = move |name: String| {
            format!(
                "policies[{index}].grants.service-accounts: `{name}` is in `config` and not here, so labs with it do not start; add it"
            )
        };
        names.into_iter().map(warning).collect::<Vec<_>>()
    };
    policies.iter().enumerate().flat_map(of_policy).collect()
}

fn find(value: &Value, names: &mut Vec<String>) {
    let mut add = |name: &Value| {
        let name = name.as_str().filter(|name| !name.is_empty() && !names.iter().any(|known| known == name));
        names.extend(name.map(str::to_owned));
    };
    match value {
        Value::Array(items) => items.iter().for_each(|item| find(item, names)),
        Value::Object(entries) => {
            for (key, value) in entries {
                match (key.as_str(), value) {
                    ("service_account", name) => add(name),
                    ("service_accounts", Value::Array(items)) => {
                        items.iter().filter_map(|item| item.get("name")).for_each(&mut add);
                    }
                    _ => {}
                }
            }
            entries.values().for_each(|value| find(value, names));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigFile;

    fn problems(yaml: &str) -> Vec<String> {
        let file: ConfigFile = serde_saphyr::from_str(yaml).unwrap();
        let is_deleted = file.kubernetes.namespaces.is_deleted();
        let found = check(&file.lab, &file.policies, &file.names, is_deleted);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_account_has_to_be_able_to_exist() {
        let site = "lab: {service_account: reader}";
        for (yaml, says) in [
            (site.to_owned(), "lab.service_account: no account `reader` can be in the namespace"),
            (
                format!(
                    "{{{site}, kubernetes: {{namespaces: single}}, names: {{service_account: 'read{{username}}'}}}}"
                ),
                "may be the name of a lab's own account",
            ),
            (
                "policies: [{name: a, path: a.wasm, grants: {service-accounts: [x]}}]".to_owned(),
                "policies[0].grants.service-accounts: no account `x`",
            ),
        ] {
            let found = problems(&yaml);
            assert!(found.len() == 1 && found[0].contains(says), "{yaml}: {found:?}");
        }
        for namespaces in ["single", "retain"] {
            assert_eq!(problems(&format!("{{{site}, kubernetes: {{namespaces: {namespaces}}}}}")), [""; 0]);
        }
    }

    #[test]
    fn an_account_of_a_policy_without_a_grant_is_named_once() {
        let policies: Vec<PolicyConfig> = serde_saphyr::from_str(
            "
- name: default
  path: a.wasm
  grants: {service-accounts: [granted]}
  config:
    kubespawner: {service_account: granted}
    service_accounts: [{groups: [a], name: of-group}]
    profile_list: [{kubespawner_override: {service_account: of-profile}}, {kubespawner_override: {service_account: of-profile}}]
",
        )
        .unwrap();
        let found = not_granted(&policies);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().any(|warning| warning.contains("`of-group`")));
        assert!(
            found
                .iter()
                .any(|warning| warning.starts_with("policies[0].grants.service-accounts: `of-profile`"))
        );
    }
}
