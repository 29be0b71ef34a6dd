//! Settings that are allowed, and that few sites can want.

use super::{Config, NatsLogin, NatsServer, PolicyConfig, lab_namespaces, service_accounts};

impl Config {
    /// What is allowed and probably not meant, for the log and for `wasmspawner check`.
    pub fn warnings(&self) -> Vec<String> {
        let of_labs = self.lost_claims().into_iter().chain(service_accounts::not_granted(&self.policies));
        self.namespace_of_all().into_iter().chain(of_labs).chain(self.open_login()).collect()
    }

    /// Credentials only sign what the server sends, so nobody learns them on the way.
    fn open_login(&self) -> Option<String> {
        let nats = self.history.as_ref()?;
        let is_sent = matches!(nats.login, NatsLogin::User { .. } | NatsLogin::Token(_));
        (is_sent && !nats.servers.iter().all(NatsServer::is_tls)).then(|| {
            "history.nats.servers: the password or token is sent to servers with nats:// without TLS unless they ask for it; \
             write tls://, or use credentials_file"
                .to_owned()
        })
    }

    /// A target that is made for a lab has the namespace of the template.
    fn namespace_of_all(&self) -> Option<String> {
        (self.environments.is_some() && lab_namespaces::is_shared(&self.names)).then(|| {
            "names.namespace: several labs have the same namespace, and each environment that the service makes for a lab \
             needs one of its own; the later ones fail as NamespaceTaken. Use {user_server}, or classes with a pool or with \
             targets of yours"
                .to_owned()
        })
    }

    fn lost_claims(&self) -> Vec<String> {
        // Labs of the default class have namespaces of that class.
        let class = self.environments.as_ref().and_then(|site| site.default_class.as_ref());
        let by_class = class.is_some_and(|class| !class.is_built_in_delete());
        if !self.kubernetes.namespaces.is_deleted() || by_class || self.embedded.is_some() {
            return Vec::new();
        }
        let making = self.policies.iter().filter_map(|policy| Some((policy, claim_of(policy)?)));
        making
            .map(|(policy, volume)| {
                format!(
                    "policies: `{}` creates a volume claim for each lab (volume `{volume}`), and kubernetes.namespaces is \
                     `delete`: the claim and what users keep in it are deleted when the lab is stopped. Set \
                     kubernetes.namespaces to `retain`, or environments.default_class to `retain` or another class that retains",
                    policy.name
                )
            })
            .collect()
    }
}

/// The first volume of the policy whose claim is created with the lab, if the policy's configuration says so in the form
/// that the policies of this repository share.
fn claim_of(policy: &PolicyConfig) -> Option<String> {
    let volumes = policy.config.get("volumes")?.as_array()?;
    let creates =
        |volume: &&serde_json::Value| volume.pointer("/claim/create").is_some_and(|create| !create.is_null());
    Some(volumes.iter().find(creates)?.get("name")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use crate::config::ConfigFile;

    fn warnings(more: &str) -> usize {
        let file = format!(
            "auth: {{modes: [static], static: {{tokens_file: tokens.yaml}}}}\n\
             policies: [{{name: site, path: /a.wasm, config: {{volumes: [{{name: home, claim: {{name: h, create: {{storage: 1Gi}}}}}}]}}}}]\n{more}"
        );
        let file: ConfigFile = serde_saphyr::from_str(&file).unwrap();
        file.validate().unwrap().warnings().len()
    }

    #[test]
    fn a_login_that_may_be_sent_without_tls_is_reported() {
        let of = |servers: &str, login: &str| {
            let history = format!("history: {{nats: {{servers: [{servers}]{login}}}}}\n");
            warnings(&format!("kubernetes: {{namespaces: retain}}\n{history}"))
        };
        for login in [", token_file: /t", ", user: a, password_file: /p"] {
            assert_eq!(of("'nats://a'", login), 1);
            assert_eq!(of("'tls://a', 'nats://b'", login), 1);
            assert_eq!(of("'tls://a', 'tls://b'", login), 0);
        }
        assert_eq!(of("'nats://a'", ", credentials_file: /c"), 0);
        assert_eq!(of("'nats://a'", ""), 0);
    }

    #[test]
    fn claims_that_go_with_their_namespaces_are_reported() {
        assert_eq!(warnings(""), 1);
        assert_eq!(warnings("kubernetes: {namespaces: retain}\n"), 0);
        assert_eq!(warnings("environments: {default_class: kept}\n"), 0);
        assert_eq!(warnings("environments: {default_class: retain}\n"), 0);
        assert_eq!(warnings("environments: {default_class: delete}\n"), 1);
        assert_eq!(warnings("environments: {}\n"), 1);
        let shared = "kubernetes: {namespaces: retain}\nnames: {namespace: labs}\n";
        assert_eq!(warnings(shared), 0);
        assert_eq!(warnings(&format!("{shared}environments: {{}}\n")), 1);
    }
}
