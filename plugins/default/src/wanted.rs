//! The images that nodes pull before anyone asks for them.

use std::collections::BTreeSet;

use wasmspawner_sdk::images::WantedImage;

use crate::{DefaultPolicy, pod};

impl DefaultPolicy {
    /// The images of the list, of the repositories and of the profiles that nodes pull, each in its order.
    pub(crate) fn wanted_images(&self) -> Vec<WantedImage> {
        let node_selector = pod::pairs(&self.placement.node_selector);
        let of_site = |reference| WantedImage { reference, node_selector: node_selector.clone() };
        let mut wanted: Vec<_> = self.images.wanted().into_iter().map(of_site).collect();
        if self.prepull_profiles {
            wanted.extend(self.profiles.wanted(&node_selector));
        }
        without_repetitions(wanted)
    }
}

/// Keeps the first of several images with the same reference and the same selector. The labels of a selector have no
/// order, so they are sorted.
fn without_repetitions(mut wanted: Vec<WantedImage>) -> Vec<WantedImage> {
    let mut known = BTreeSet::new();
    wanted.retain_mut(|image| {
        image.node_selector.sort_by(|a, b| a.name.cmp(&b.name));
        let labels = image.node_selector.iter().map(|label| (label.name.clone(), label.value.clone()));
        known.insert((image.reference.clone(), labels.collect::<Vec<_>>()))
    });
    wanted
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wasmspawner_sdk::testing::{KnownImages, TestKit};

    use crate::DefaultPolicy;

    const LAB: &str = "quay.io/site/lab";

    /// The wanted images of a site; each as `reference label=value...`.
    fn wanted(config: &Value) -> Vec<String> {
        let tags = ["latest", "v3.0.0", "2.1", "2.0.1", "1.9"];
        let known = KnownImages::default().repository(LAB, tags.map(|tag| (tag, "sha256:0")));
        let wanted = TestKit::<DefaultPolicy>::new(config).unwrap().prepull(&known).unwrap();
        let shown = wanted.into_iter().map(|image| {
            let labels = image.node_selector.iter().map(|label| format!(" {}={}", label.name, label.value));
            image.reference + &labels.collect::<String>()
        });
        shown.collect()
    }

    fn problems(config: &Value) -> Vec<String> {
        let found = TestKit::<DefaultPolicy>::new(config).err().unwrap();
        found.into_iter().map(|problem| problem.field).collect()
    }

    #[test]
    fn nothing_is_wanted_unless_the_configuration_says_so() {
        for config in [
            json!({}),
            json!({
                "images": [{"name": "a", "reference": "a:1"}, {"name": "b", "reference": "b:1", "prepull": false}],
                "image_repositories": [{"name": "lab", "repository": LAB}, {"name": "same", "repository": LAB, "prepull": 0}]
            }),
            json!({"profile_list": [{"display_name": "P", "kubespawner_override": {"image": "a:1"}}]}),
            json!({"profile_list": [{"display_name": "P"}], "prepull_profiles": true}),
        ] {
            assert!(wanted(&config).is_empty(), "{config}");
        }
    }

    #[test]
    fn the_newest_images_that_a_repository_offers_are_wanted() {
        for (keys, expected) in [
            (json!({"prepull": 2}), vec!["latest", "v3.0.0"]),
            (json!({"prepull": 2, "tags": ["2.*"]}), vec!["2.1", "2.0.1"]),
            (json!({"prepull": 1, "versions": "<3"}), vec!["2.1"]),
            (json!({"prepull": 9, "versions": "*", "newest": 3}), vec!["v3.0.0", "2.1", "2.0.1"]),
            (json!({"prepull": 1, "groups": ["staff"]}), vec!["latest"]),
            (json!({"prepull": 1, "repository": "quay.io/site/unread"}), vec![]),
        ] {
            let mut entry = json!({"name": "lab", "repository": LAB});
            entry.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
            let expected: Vec<_> = expected.into_iter().map(|tag| format!("{LAB}:{tag}")).collect();
            assert_eq!(wanted(&json!({"image_repositories": [entry]})), expected, "{keys}");
        }
    }

    #[test]
    fn an_image_is_wanted_with_its_digest() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let pinned = format!("a:1@{digest}");
        for (reference, digest, expected) in [
            ("a:1", json!(null), "a:1"),
            ("a:1", json!(digest), &*pinned),
            (&*pinned, json!(null), &*pinned),
            (&*pinned, json!(digest), &*pinned),
        ] {
            let image = json!({"name": "a", "reference": reference, "digest": digest, "prepull": true});
            assert_eq!(wanted(&json!({"images": [image]})), [expected], "{image}");
        }
    }

    #[test]
    fn images_of_the_list_come_first_and_each_is_wanted_once_on_the_nodes_of_labs() {
        let config = json!({
            "node_selector": {"pool": "labs"},
            "images": [
                {"name": "old", "reference": "quay.io/old:1", "prepull": true, "groups": ["staff"]},
                {"name": "other", "reference": "quay.io/other:1"},
                {"name": "again", "reference": "quay.io/old:1", "prepull": true},
                {"name": "fixed", "reference": "quay.io/site/lab:2.1", "prepull": true}
            ],
            "image_repositories": [{"name": "lab", "repository": LAB, "versions": "*", "prepull": 2}]
        });
        assert_eq!(
            wanted(&config),
            [
                "quay.io/old:1 pool=labs",
                "quay.io/site/lab:2.1 pool=labs",
                "quay.io/site/lab:v3.0.0 pool=labs"
            ]
        );
    }

    #[test]
    fn wrong_keys_are_refused_by_name() {
        for (config, expected) in [
            (json!({"images": [{"name": "a", "reference": "a", "prepull": 1}]}), "/images/0/prepull"),
            (
                json!({"image_repositories": [{"name": "a", "repository": "a", "prepull": -1}]}),
                "/image_repositories/0/prepull",
            ),
            (
                json!({"image_repositories": [{"name": "a", "repository": "a", "prepull": true}]}),
                "/image_repositories/0/prepull",
            ),
            (json!({"profile_list": [{"display_name": "P"}], "prepull_profiles": 1}), "/prepull_profiles"),
            (json!({"prepull_profiles": true}), "/prepull_profiles"),
            (json!({"prepull_profiles": false}), "/prepull_profiles"),
        ] {
            assert_eq!(problems(&config), [expected], "{config}");
        }
    }

    /// The wanted images of a site with these profiles.
    fn of_profiles(profiles: &Value) -> Vec<String> {
        wanted(&json!({
            "node_selector": {"pool": "labs", "zone": "a"}, "profile_list": profiles, "prepull_profiles": true
        }))
    }

    #[test]
    fn the_images_of_all_profiles_and_choices_are_wanted_where_their_labs_run() {
        let profiles = json!([
            {"display_name": "Small", "kubespawner_override": {"image": "small:1"}},
            {"display_name": "Default", "kubespawner_override": {"cpu_limit": 1}},
            {"display_name": "Same", "groups": ["staff"], "kubespawner_override": {"image": "small:1"}},
            {
                "display_name": "Options",
                "kubespawner_override": {"image": "own:1", "node_selector": {"pool": "big", "disk": "fast"}},
                "profile_options": {
                    "image": {"choices": {
                        "b": {"kubespawner_override": {"image": "b:1", "node_selector": {"disk": null, "zone": "b"}}},
                        "a": {"kubespawner_override": {"image": "a:1"}},
                        "unset": {"kubespawner_override": {"image": null}}
                    }},
                    "gpu": {"choices": {
                        "no": {},
                        "yes": {"kubespawner_override": {"node_selector": {"pool": "gpu"}}}
                    }}
                }
            },
            {"display_name": "Anywhere", "kubespawner_override": {"image": "small:1", "node_selector": {"pool": null, "zone": null}}}
        ]);
        assert_eq!(
            of_profiles(&profiles),
            [
                "small:1 pool=labs zone=a",
                "own:1 disk=fast pool=big zone=a",
                "own:1 disk=fast pool=gpu zone=a",
                "a:1 disk=fast pool=big zone=a",
                "b:1 pool=big zone=b",
                "small:1",
            ]
        );
    }

    #[test]
    fn what_a_user_types_is_not_wanted_and_does_not_select_nodes() {
        for (overrides, expected) in [
            (json!({"image": "{value}"}), vec![]),
            (json!({"image": "quay.io/site/{value}:1"}), vec![]),
            (json!({"image": "typed:1", "node_selector": {"pool": "x-{value}"}}), vec!["typed:1 zone=a"]),
            (json!({"node_selector": {"zone": "{value}", "pool": "big"}}), vec!["own:1 pool=big"]),
            (
                json!({"image": "typed:1", "environment": {"BRANCH": "{value}"}}),
                vec!["typed:1 pool=labs zone=a"],
            ),
        ] {
            let unlisted = json!({"enabled": true, "kubespawner_override": overrides});
            let profile = json!({
                "display_name": "P",
                "kubespawner_override": {"image": "own:1"},
                "profile_options": {"typed": {"unlisted_choice": unlisted}}
            });
            let mut all = vec!["own:1 pool=labs zone=a"];
            all.extend(expected);
            assert_eq!(of_profiles(&json!([profile])), all, "{overrides}");
        }
    }
}
