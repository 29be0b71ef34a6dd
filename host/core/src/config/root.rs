//! The whole configuration.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::auth::{Auth, AuthConfig, AuthMode, IngressProof};
use super::lab::{LabConfig, LabSection};
use super::{
    BlueprintsConfig, DaskConfig, EmbeddedConfig, EnvironmentsConfig, FormConfig, HistoryConfig, HttpConfig,
    Hub, HubConfig, ImagesConfig, InvalidSetting, KubernetesConfig, LabNamespaces, LimitsConfig, Nats,
    PolicyConfig, ProvidersConfig, RegistriesConfig, TelemetryConfig, WorkloadsConfig,
};
use super::{environments, policies, service_accounts};
use crate::custom_resource::blueprint::Library;
use crate::names::{NameError, NameTemplates, NamesConfig, ServerName, Username};

/// The key of a Secret of the type `kubernetes.io/dockerconfigjson`.
const DOCKER_CONFIG_KEY: &str = ".dockerconfigjson";

/// The configuration file as it is written. Every key except `auth` has a default; an unknown key is an error.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    /// Where the service listens.
    #[serde(default)]
    pub http: HttpConfig,
    /// How callers are authenticated. Required, except with `--local`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthConfig>,
    /// How the service itself calls JupyterHub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub: Option<HubConfig>,
    /// The connection to the cluster.
    #[serde(default)]
    pub kubernetes: KubernetesConfig,
    /// The one-machine cluster, which takes the place of a Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedded: Option<EmbeddedConfig>,
    /// How objects are named.
    #[serde(default)]
    pub names: NamesConfig,
    /// What every lab of this site has.
    #[serde(default)]
    pub lab: LabSection,
    /// The policies that decide about labs, in order.
    #[serde(default)]
    pub policies: Vec<PolicyConfig>,
    /// How the service reads from container registries.
    #[serde(default)]
    pub registries: RegistriesConfig,
    /// What the service knows about the images of labs.
    #[serde(default)]
    pub images: ImagesConfig,
    /// Settings of the spawn form.
    #[serde(default)]
    pub form: FormConfig,
    /// What the site wants of Dask pools.
    #[serde(default)]
    pub dask: DaskConfig,
    /// Labs in namespaces of chosen classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environments: Option<EnvironmentsConfig>,
    /// The site's descriptions of labs, from which users choose.
    #[serde(default)]
    pub blueprints: BlueprintsConfig,
    /// Labs in the pods of other workloads.
    #[serde(default)]
    pub workloads: WorkloadsConfig,
    /// How long operations may take, and how many may run at once.
    #[serde(default)]
    pub limits: LimitsConfig,
    /// Logs and traces.
    #[serde(default)]
    pub telemetry: TelemetryConfig,
    /// Where the history of operations is.
    #[serde(default)]
    pub history: HistoryConfig,
    /// Directory for data that the service keeps on its own disk: the history of operations, compiled policies, what
    /// registries had and, with `embedded`, the cluster. Without it the history is lost when the service ends, unless it
    /// is elsewhere (`history`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_dir: Option<PathBuf>,
}

/// The validated configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the service listens.
    pub http: HttpConfig,
    /// How callers are authenticated.
    pub auth: Auth,
    /// How the service itself calls JupyterHub.
    pub hub: Option<Hub>,
    /// The connection to the cluster.
    pub kubernetes: KubernetesConfig,
    /// The one-machine cluster.
    pub embedded: Option<EmbeddedConfig>,
    /// How objects are named.
    pub names: NameTemplates,
    /// The namespaces in which labs may be.
    pub lab_namespaces: LabNamespaces,
    /// What every lab of this site has.
    pub lab: LabConfig,
    /// The policies that decide about labs, in order.
    pub policies: Vec<PolicyConfig>,
    /// How the service reads from container registries.
    pub registries: RegistriesConfig,
    /// What the service knows about the images of labs.
    pub images: ImagesConfig,
    /// Settings of the spawn form.
    pub form: FormConfig,
    /// What the site wants of Dask pools.
    pub dask: DaskConfig,
    /// Labs in namespaces of chosen classes.
    pub environments: Option<EnvironmentsConfig>,
    /// The site's descriptions of labs.
    pub blueprints: Library,
    /// Whether there are more of them in the cluster.
    pub blueprint_objects: bool,
    /// Where other blueprints are read.
    pub blueprint_providers: ProvidersConfig,
    /// Labs in the pods of other workloads.
    pub workloads: WorkloadsConfig,
    /// How long operations may take, and how many may run at once.
    pub limits: LimitsConfig,
    /// Logs and traces.
    pub telemetry: TelemetryConfig,
    /// The NATS with the history of operations.
    pub history: Option<Nats>,
    /// Directory for data that the service keeps on its own disk.
    pub state_dir: Option<PathBuf>,
}

impl ConfigFile {
    /// Checks what the types alone do not ensure. Reports every problem at once.
    pub fn validate(self) -> Result<Config, Vec<InvalidSetting>> {
        let mut problems = Vec::new();
        problems.extend(self.http.check().err());
        problems.extend(self.kubernetes.check().err());
        problems.extend(self.embedded.as_ref().and_then(|embedded| embedded.check().err()));
        problems.extend(self.dask.check().err());
        problems.extend(environments::check(self.environments.as_ref(), &self.kubernetes));
        problems.extend(self.workloads.check(&self.kubernetes, self.embedded.as_ref()));
        problems.extend(self.limits.check().err());
        problems.extend(self.telemetry.check().err());
        problems.extend(self.registries.check().err());
        problems.extend(self.images.check());
        problems.extend(self.embedded.iter().flat_map(|embedded| embedded.missing(&self.lab, &self.images)));
        problems.extend(secret_that_no_node_can_use(&self.lab, &self.images));
        problems.extend(labs_that_could_be_anybody(&self.http, self.auth.as_ref()));
        problems.extend(policies::check(&self.policies));
        // Environments may have accounts, whatever becomes of other namespaces.
        let is_deleted = self.kubernetes.namespaces.is_deleted() && self.environments.is_none();
        problems.extend(service_accounts::check(&self.lab, &self.policies, &self.names, is_deleted));
        let blueprint_objects = self.blueprints.custom_resources;
        let (blueprints, blueprint_providers) =
            self.blueprints.library().map_err(|wrong| problems.extend(wrong)).unwrap_or_default();
        let hub = self.hub.map(|hub| hub.validate(self.auth.as_ref())).transpose();
        let hub = hub.map_err(|problem| problems.push(problem)).ok().flatten();
        let auth = self
            .auth
            .ok_or_else(no_auth)
            .and_then(AuthConfig::validate)
            .map_err(|problem| problems.push(problem))
            .ok();
        let history = self.history.validate().map_err(|problem| problems.push(problem)).ok().flatten();
        let template = self.names.namespace.clone();
        let names = NameTemplates::parse(&self.names)
            .map_err(|errors| problems.extend(errors.iter().map(in_names)))
            .ok();
        let mut lab = self.lab;
        lab.network_policy.hub_namespace.get_or_insert_with(|| self.kubernetes.namespace.clone());
        let api_url = self.http.url_for_labs(self.embedded.is_some());
        let lab = LabConfig::parse(lab, self.kubernetes.instance())
            .map(|lab| lab.with_namespaces(self.kubernetes.namespaces).with_api_url(api_url))
            .map_err(|errors| {
                problems
                    .extend(errors.into_iter().map(|error| InvalidSetting::new(error.field, error.message)));
            })
            .ok();
        let grace = lab.as_ref().map(|lab| lab.section.termination_grace_period_seconds);
        problems.extend(grace.and_then(|grace| self.limits.check_grace(grace).err()));
        let lab_namespaces = names.as_ref().and_then(|names| {
            problems.extend(needs_userid(names));
            LabNamespaces::parse(&template, names, &self.kubernetes)
                .map_err(|problem| problems.push(problem))
                .ok()
        });
        let (Some(auth), Some(names), Some(lab_namespaces), Some(lab), true) =
            (auth, names, lab_namespaces, lab, problems.is_empty())
        else {
            return Err(problems);
        };
        Ok(Config {
            http: self.http,
            auth,
            hub,
            kubernetes: self.kubernetes,
            embedded: self.embedded,
            names,
            lab_namespaces,
            lab,
            policies: self.policies,
            registries: self.registries,
            images: self.images,
            form: self.form,
            dask: self.dask,
            environments: self.environments,
            blueprints,
            blueprint_objects,
            blueprint_providers,
            workloads: self.workloads,
            limits: self.limits,
            telemetry: self.telemetry,
            history,
            state_dir: self.state_dir,
        })
    }
}

fn no_auth() -> InvalidSetting {
    InvalidSetting::new("auth", "is missing; set auth.modes to a list of static, jupyterhub, headers or oidc")
}

fn in_names(error: &crate::names::TemplateError) -> InvalidSetting {
    InvalidSetting::new(&error.key, format!("template {:?}: {}", error.template, error.problem))
}

/// Where a header alone says who sends a request, a lab that reaches the service could claim to be anybody.
fn labs_that_could_be_anybody(http: &HttpConfig, auth: Option<&AuthConfig>) -> Option<InvalidSetting> {
    let auth = auth.filter(|auth| auth.modes.contains(&AuthMode::Headers))?;
    let believes = auth.headers.as_ref().is_some_and(|headers| headers.proof == IngressProof::BareUserHeader);
    (believes && http.labs_url.is_some()).then(|| {
        InvalidSetting::new(
            "http.labs_url",
            "labs that reach the service could claim to be any user, because auth.headers.proof is bare-user-header; \
             choose another proof, or remove it",
        )
    })
}

/// Nodes use the site's Secret as it is to pull in advance, and know only one key.
fn secret_that_no_node_can_use(lab: &LabSection, images: &ImagesConfig) -> Option<InvalidSetting> {
    let (at, secret) = lab.secrets.iter().enumerate().find(|(_, secret)| secret.pull_secret)?;
    (images.prepull.is_some() && secret.key != DOCKER_CONFIG_KEY).then(|| {
        let message = format!(
            "is {:?}; with `images.prepull` it must be `{DOCKER_CONFIG_KEY}`, and the Secret's type kubernetes.io/dockerconfigjson",
            secret.key
        );
        InvalidSetting::new(format!("lab.secrets[{at}].key"), message)
    })
}

/// Requests do not carry JupyterHub's number of a user, so no name of a lab can contain it.
fn needs_userid(names: &NameTemplates) -> Option<InvalidSetting> {
    let (user, server) = (Username::parse("ada").ok()?, ServerName::default());
    match names.resolve(&user, &server, None) {
        Err(NameError::NoUserid { key }) => Some(InvalidSetting::new(
            key,
            "{userid} is not known when a lab is started; use {username} or {user_server}",
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "auth: {modes: [static], static: {tokens_file: tokens.yaml}}\n";

    fn problems(more: &str) -> Vec<String> {
        let file: ConfigFile = serde_saphyr::from_str(&format!("{LEAST}{more}")).unwrap();
        file.validate().err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_auth_is_required() {
        assert_eq!(problems(""), [""; 0]);
    }

    #[test]
    fn an_unknown_key_is_an_error() {
        let error =
            serde_saphyr::from_str::<ConfigFile>(&format!("{LEAST}limits: {{spwan: 5m}}\n")).unwrap_err();
        assert!(error.to_string().contains("spwan"), "{error}");
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let found = problems(
            "limits: {spawn: 0s, concurrent_spawns: 0}\nhttp: {prefix: spawner/}\nnames: {pod: '{usr}'}\n",
        );
        assert_eq!(found.len(), 3, "{found:#?}");
        assert!(found[0].starts_with("http.prefix: "), "{found:#?}");
    }

    #[test]
    fn userid_in_a_template_is_refused_at_load() {
        let found = problems("names: {pod: 'nb-{userid}'}\n");
        assert!(found[0].starts_with("names.pod: {userid} is not known"), "{found:#?}");
    }

    #[test]
    fn the_embedded_cluster_listens_on_loopback_only() {
        assert!(problems("embedded: {listen: '0.0.0.0:8092'}\n")[0].contains("127.0.0.1 only"));
    }

    #[test]
    fn a_policy_comes_from_one_place() {
        let policy = |source: &str| problems(&format!("policies: [{{name: site{source}}}]\n"));
        assert_eq!(policy(", path: /a.wasm"), [""; 0]);
        assert_eq!(policy(", oci: 'ghcr.io/site/policy:1'"), [""; 0]);
        assert!(policy("")[0].starts_with("policies[0]: has neither `path`"), "{:?}", policy(""));
        assert!(policy(", path: a, oci: b")[0].starts_with("policies[0]: has both"));
    }

    #[test]
    fn a_registry_is_not_a_url() {
        let found = problems("registries: {plain_http: ['http://localhost:5000'], timeout: 1m}\n");
        assert!(found[0].starts_with("registries.plain_http: \"http://localhost:5000\""), "{found:?}");
        assert_eq!(problems("registries: {timeout: 0s}\n").len(), 1);
    }

    #[test]
    fn repositories_of_images_are_named_once_and_refreshed_in_time() {
        assert_eq!(problems("images: {repositories: [{name: quay.io/site/lab, tags: ['w_*']}]}\n"), [""; 0]);
        let found = problems(
            "images: {repositories: [{name: python}, {name: docker.io/library/python}], refresh_every: 1s}\n",
        );
        assert!(
            found[0].starts_with("images.repositories[1].name: docker.io/library/python is listed twice"),
            "{found:?}"
        );
        assert!(found[1].starts_with("images.refresh_every: 1s is too often"), "{found:?}");
    }

    #[test]
    fn nodes_pull_images_in_advance_only_where_they_can() {
        assert_eq!(
            problems("images: {nodes: {}, prepull: {hours: ['22:00-04:00'], time_limit: 1h}}\n"),
            [""; 0]
        );
        let private = |key: &str| {
            problems(&format!(
                "images: {{nodes: {{}}, prepull: {{}}}}\nlab: {{secrets: [{{name: a, key: {key}, pull_secret: true}}]}}\n"
            ))
        };
        assert_eq!(private(".dockerconfigjson"), [""; 0]);
        assert!(private("config.json")[0].starts_with("lab.secrets[0].key: is \"config.json\"; with"));
        assert!(
            problems("images: {prepull: {}}\n")[0].starts_with("images.prepull: the nodes are not known")
        );
        let local = problems("embedded: {}\nimages: {nodes: {}, prepull: {}}\n");
        assert!(local[0].starts_with("images.prepull: the one-machine cluster runs local"), "{local:?}");
        let found = problems(
            "images: {nodes: {}, prepull: {images: [{reference: 'La b'}], per_node: 0, at_once: 501, time_limit: 1s}}\n",
        );
        assert_eq!(found.len(), 4, "{found:#?}");
        assert!(
            found[0].starts_with("images.prepull.images[0].reference: \"La b\" is not an image"),
            "{found:#?}"
        );
        assert!(found[2].starts_with("images.prepull.at_once: is 501; it must be 1 to 500"), "{found:#?}");
    }

    #[test]
    fn labs_do_not_reach_a_service_that_believes_a_header() {
        let file = |proof: &str, url: &str| {
            let auth = format!(
                "auth: {{modes: [headers], headers: {{url: 'https://x', trusted_peers: [192.0.2.7]{proof}}}}}"
            );
            let file: ConfigFile = serde_saphyr::from_str(&format!("{auth}\n{url}")).unwrap();
            file.validate().err().unwrap_or_default().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let (bare, url) = (", proof: bare-user-header", "http: {labs_url: 'http://wasmspawner:8090'}");
        assert!(
            file(bare, url)[0].starts_with("http.labs_url: labs that reach the service"),
            "{:?}",
            file(bare, url)
        );
        assert_eq!((file(bare, ""), file("", url)), (vec![], vec![]));
    }

    #[test]
    fn two_policies_cannot_have_the_same_name() {
        let policies = |second: &str| {
            problems(&format!(
                "policies: [{{name: site, path: /a.wasm}}, {{name: {second}, path: /b.wasm}}]\n"
            ))
        };
        assert_eq!(policies("other"), [""; 0]);
        assert_eq!(policies("site"), ["policies[1].name: `site` is the name of an earlier policy too"]);
    }
}
