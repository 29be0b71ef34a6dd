//! Computes the names of one server under each of the wanted slug schemes.

use serde_json::{Map, Value, json};
use wasmspawner_core::names::kubespawner::{Ambiguous, KubeSpawner, NameQuery, Report};
use wasmspawner_core::names::{ServerName, SlugScheme, Username};

use super::NamesArgs;

/// Computes names according to the command line arguments.
pub(super) struct Asker<'a> {
    pub(super) args: &'a NamesArgs,
    pub(super) names: &'a KubeSpawner,
}

impl Asker<'_> {
    /// Computes one report per slug scheme.
    pub(super) fn ask(
        &self,
        username: &str,
        servername: &str,
        userid: i64,
    ) -> Result<Vec<(SlugScheme, Report)>, Ambiguous> {
        let answer = |scheme| {
            let question = NameQuery {
                username,
                servername,
                userid,
                scheme,
                compat: self.args.compat(),
                namespace: &self.args.namespace,
                hub_namespace: &self.args.hub_namespace,
            };
            Ok((scheme, self.names.answer(&question)?))
        };
        self.args.schemes().into_iter().map(answer).collect()
    }

    /// Returns the report itself if one scheme was requested, else an object with one report per scheme.
    pub(super) fn json(&self, reports: &[(SlugScheme, Report)]) -> serde_json::Result<Value> {
        if let (Some(_), [(_, report)]) = (self.args.scheme, reports) {
            return serde_json::to_value(report);
        }
        let named = reports
            .iter()
            .map(|(scheme, report)| Ok((scheme.as_str().to_owned(), serde_json::to_value(report)?)));
        Ok(Value::Object(named.collect::<serde_json::Result<Map<_, _>>>()?))
    }
}

/// Returns an error as JSON.
pub(super) fn error(message: &str) -> Value {
    json!({ "error": message })
}

/// Returns the reason why this service refuses a username or server name that KubeSpawner accepts, or `None` if it
/// accepts both.
pub(super) fn refused_here(username: &str, servername: &str) -> Option<String> {
    let user = Username::parse(username).err();
    user.or_else(|| ServerName::parse(servername).err()).map(|error| error.to_string())
}
