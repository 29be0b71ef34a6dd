use wasmspawner_sdk::{Section, User};

/// The users who see a profile or a choice.
#[derive(Default)]
pub(super) enum Audience {
    #[default]
    Everybody,
    /// Members of one of these groups.
    Members(Vec<String>),
}

impl Audience {
    /// Reads `allowed_groups` and `groups`, which mean the same. An empty list in `allowed_groups` admits nobody, as in the
    /// code with which sites filter KubeSpawner's profiles; an empty list in `groups` admits everybody.
    pub(super) fn read(entry: &mut Section<'_>) -> Self {
        let allowed: Option<Vec<String>> = entry.optional("allowed_groups");
        let groups: Vec<String> = entry.or_default("groups");
        if allowed.is_some() && !groups.is_empty() {
            entry.problem("groups", "means the same as `allowed_groups`; write one of them");
        }
        match allowed {
            Some(allowed) => Self::Members(allowed.iter().map(|group| comparable(group)).collect()),
            None if groups.is_empty() => Self::Everybody,
            None => Self::Members(groups.iter().map(|group| comparable(group)).collect()),
        }
    }

    pub(super) fn admits(&self, user: &User) -> bool {
        match self {
            Self::Everybody => true,
            Self::Members(allowed) => {
                user.groups.iter().any(|group| allowed.contains(&comparable(&group.name)))
            }
        }
    }
}

/// The name of a group as it is compared. In GitHub's names of teams, which sites write as `org:team`, the case of letters
/// does not count.
fn comparable(group: &str) -> String {
    if group.contains(':') { group.to_lowercase() } else { group.to_owned() }
}
