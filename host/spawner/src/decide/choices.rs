//! The choices that users have before they start a lab: the form, the images and the blueprints.

use std::sync::Arc;

use wasmspawner_core::custom_resource::blueprint::{ExtendedLibrary, Resolved};
use wasmspawner_core::images::{Inventory, NodeImages};
use wasmspawner_core::names::{ObjectName, ServerName};
use wasmspawner_core::policy::form::{Form, FormContext, preselect, render};
use wasmspawner_core::policy::{Options, User};
use wasmspawner_core::users::identity::Identity;
use wasmspawner_core::values::secret::SecretString;

use super::blueprints;
use super::image_menu::{self, UserMenu};
use crate::context::Context;
use crate::errors::SpawnError;

/// What users choose from before they start a lab. Clones share it.
#[derive(Clone)]
pub struct Choices(Arc<Context>);

impl Choices {
    /// Creates the choices that the configuration, the policies and the cluster give now.
    pub fn new(context: Arc<Context>) -> Self {
        Self(context)
    }

    /// The spawn form, as a fragment of HTML. It begins with the choices of `last_options`, the submission with which
    /// the server was last started, unless the site does not want it.
    pub async fn spawn_form(
        &self,
        identity: &Identity,
        server: &ServerName,
        last_options: Options,
    ) -> Result<String, SpawnError> {
        let context = FormContext { user: User::from(identity), server: server.to_string() };
        let rules = self.0.rules();
        let mut last = if rules.config.form.remember { last_options } else { Options::new() };
        let form = image_menu::form(&rules, &context, &mut last).await?;
        let mut form = blueprints::offer(&rules, &context, form);
        if let Form::Fields(fields) = &mut form {
            preselect(fields, &last);
        }
        Ok(render(&form))
    }

    /// The images from which the user chooses; `None` if the site has no menu.
    pub async fn image_menu(
        &self,
        identity: &Identity,
        server: &ServerName,
    ) -> Result<Option<UserMenu>, SpawnError> {
        let context = FormContext { user: User::from(identity), server: server.to_string() };
        image_menu::menu(&self.0.rules(), &context).await
    }

    /// The site's blueprints. They change when the configuration is read again, and with the objects in the cluster.
    pub fn blueprints(&self) -> Arc<ExtendedLibrary> {
        self.0.blueprints.now(&self.0.config.current())
    }

    /// Resolves the blueprint of this name for a lab of the user: a blueprint of the site, or else one of the user's
    /// own. The user's `token` is for the provider of the latter.
    pub async fn resolve_blueprint(
        &self,
        identity: &Identity,
        name: ObjectName,
        token: &SecretString,
    ) -> Result<Option<Arc<Resolved>>, SpawnError> {
        blueprints::resolve(&self.0.rules(), identity, name, token).await
    }

    /// The images that registries and nodes have.
    pub fn known_images(&self) -> (Arc<Inventory>, Arc<NodeImages>) {
        let known = self.0.policies.inventory();
        (known.registries(), known.nodes())
    }
}
