use wasmspawner_sdk::Section;

use crate::owned;

/// Reads the repository of the lab images, such as `docker.io/lsstsqre/sciplat-lab`.
pub(super) fn repository(source: &mut Section<'_>) -> String {
    owned::ignore(source, &[("credentialsPath", owned::REGISTRY_LOGINS)]);
    let kind: String = source.required("type");
    match kind.as_str() {
        "docker" => {
            let registry: Option<String> = source.optional("registry");
            let repository: String = source.required("repository");
            format!("{}/{repository}", registry.as_deref().unwrap_or("docker.io"))
        }
        // Google's repository is a group of images. Elsewhere it would be the beginning of a repository's name.
        "google" => {
            let [location, project, repository, image]: [String; 4] =
                ["location", "projectId", "repository", "image"].map(|key| source.required(key));
            format!("{location}-docker.pkg.dev/{project}/{repository}/{image}")
        }
        _ => {
            if source.has("type") {
                source.problem("type", "must be docker or google");
            }
            String::new()
        }
    }
}
