/// The problems that keep images from being pulled in advance. Each one stays until the same thing works again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Problems {
    /// Nodes or registries are not known yet.
    pub(super) unknown: Option<&'static str>,
    /// The policies cannot say what they want.
    pub(super) policies: Option<String>,
    /// The pods that pull cannot be watched.
    pub(super) watch: Option<String>,
    /// The API server did not fulfil the requests of the last round.
    pub(super) requests: Option<String>,
}

impl Problems {
    /// Joins all problems in one sentence; `None` if there are none.
    pub(super) fn message(&self) -> Option<String> {
        let Self { unknown, policies, watch, requests } = self;
        let named = [
            unknown.map(str::to_owned),
            policies
                .as_ref()
                .map(|error| format!("the policies cannot say which images nodes are to have: {error}")),
            watch.as_ref().map(|error| {
                format!(
                    "the pods that pull images cannot be watched (`images.prepull` needs the permissions of \
                     deploy/permissions/prepull.yaml): {error}"
                )
            }),
            requests.clone(),
        ];
        let all: Vec<String> = named.into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}
