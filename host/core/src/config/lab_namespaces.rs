//! The namespaces of labs: what `names.namespace` and the section `kubernetes` say together.

use super::{Config, InvalidSetting, KubernetesConfig, NamespaceReclaim};
use crate::names::{NameError, NameTemplates, NamespaceName, ServerName, Username};

impl Config {
    /// The one namespace of all labs, with `kubernetes.namespaces: single`.
    pub fn single_namespace(&self) -> Option<NamespaceName> {
        let single = self.kubernetes.namespaces == NamespaceReclaim::Single;
        single.then(|| self.names.constant_namespace()).flatten()
    }

    /// Refuses a namespace in which no lab may be. A template can give the service's own namespace for one particular
    /// user, which [`check`] does not see.
    pub fn check_lab_namespace(&self, namespace: &NamespaceName) -> Result<(), NameError> {
        if *namespace == self.kubernetes.namespace {
            return Err(NameError::ServiceNamespace { namespace: namespace.clone() });
        }
        match self.single_namespace() {
            Some(single) if single != *namespace => {
                Err(NameError::KeptElsewhere { kept: namespace.clone(), single })
            }
            _ => Ok(()),
        }
    }
}

/// Finds what does not fit together. `written` is the template `names.namespace` as it was written.
pub(super) fn check(
    written: &str,
    names: &NameTemplates,
    kubernetes: &KubernetesConfig,
) -> Option<InvalidSetting> {
    let problem = |message: String| Some(InvalidSetting::new("names.namespace", message));
    let constant = names.constant_namespace();
    if constant.as_ref() == Some(&kubernetes.namespace) {
        return problem(format!(
            "{written:?} is the service's own namespace (kubernetes.namespace), which holds its records and the site's \
             secrets; name another one for labs"
        ));
    }
    match kubernetes.namespaces {
        NamespaceReclaim::Delete if is_shared(names) => problem(
            "several labs share this namespace, so stopping one would delete the others; use {user_server}, or set \
             kubernetes.namespaces to `retain`"
                .to_owned(),
        ),
        NamespaceReclaim::Single if constant.is_none() => problem(format!(
            "{written:?} is not the same for all users, and kubernetes.namespaces is `single`; name the one namespace \
             of all labs, or set kubernetes.namespaces to `delete` or `retain`"
        )),
        NamespaceReclaim::Delete | NamespaceReclaim::Retain | NamespaceReclaim::Single => None,
    }
}

/// True if several labs have the same namespace.
fn is_shared(names: &NameTemplates) -> bool {
    let namespace = |user: &str, server: &str| {
        let user = Username::parse(user).ok()?;
        let server = ServerName::parse(server).ok()?;
        names
            .resolve(&user, &server, Some(user.as_str().len().try_into().ok()?))
            .ok()
            .map(|names| names.namespace)
    };
    let [first, second, other] = [namespace("ada", ""), namespace("ada", "second"), namespace("grace", "")];
    first.is_some() && (first == second || first == other)
}

#[cfg(test)]
mod tests {
    use super::super::ConfigFile;
    use super::*;

    const LEAST: &str = "auth: {modes: [static], static: {tokens_file: tokens.yaml}}\n";

    fn validate(more: &str) -> Result<Config, Vec<String>> {
        let file: ConfigFile = serde_saphyr::from_str(&format!("{LEAST}{more}")).unwrap();
        file.validate().map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }

    fn problem(more: &str) -> String {
        let mut problems = validate(more).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        problems.remove(0)
    }

    #[test]
    fn a_namespace_that_labs_share_must_not_be_deleted() {
        let shared = "names: {namespace: 'labs-{username}'}\n";
        assert!(problem(shared).contains("kubernetes.namespaces to `retain`"));
        assert!(validate(&format!("{shared}kubernetes: {{namespaces: retain}}\n")).is_ok());
    }

    #[test]
    fn the_single_namespace_is_one_for_all_users() {
        let single = "kubernetes: {namespaces: single}\n";
        let message = problem(&format!("{single}names: {{namespace: 'labs-{{username}}'}}\n"));
        insta::assert_snapshot!(message, @r#"names.namespace: "labs-{username}" is not the same for all users, and kubernetes.namespaces is `single`; name the one namespace of all labs, or set kubernetes.namespaces to `delete` or `retain`"#);
        let named = |template: &str| validate(&format!("{single}names: {{namespace: '{template}'}}\n"));
        assert_eq!(named("labs").unwrap().single_namespace().unwrap(), "labs");
        assert_eq!(named("{hubnamespace}-labs").unwrap().single_namespace().unwrap(), "jupyterhub-labs");
        let elsewhere = validate("names: {namespace: labs}\nkubernetes: {namespaces: retain}\n").unwrap();
        assert_eq!(elsewhere.single_namespace(), None);
    }

    #[test]
    fn no_lab_is_in_the_service_s_own_namespace() {
        for namespaces in ["retain", "single"] {
            let own = format!(
                "kubernetes: {{namespace: site, namespaces: {namespaces}}}\nnames: {{namespace: site}}\n"
            );
            assert!(problem(&own).contains("\"site\" is the service's own namespace"));
        }
        // Only the name of one user gives that namespace.
        let config =
            validate("kubernetes: {namespace: site, namespaces: retain}\nnames: {namespace: '{username}'}\n")
                .unwrap();
        let check = |namespace: &str| config.check_lab_namespace(&NamespaceName::parse(namespace).unwrap());
        assert!(matches!(check("site"), Err(NameError::ServiceNamespace { .. })));
        assert_eq!(check("ada"), Ok(()));
    }

    #[test]
    fn a_server_with_claims_elsewhere_gets_no_lab_in_the_single_namespace() {
        let config = validate("kubernetes: {namespaces: single}\nnames: {namespace: labs}\n").unwrap();
        let check = |namespace: &str| config.check_lab_namespace(&NamespaceName::parse(namespace).unwrap());
        assert_eq!(check("labs"), Ok(()));
        assert!(matches!(check("jhub"), Err(NameError::KeptElsewhere { .. })));
    }
}
