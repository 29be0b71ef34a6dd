use std::fmt::Write as _;

use serde_json::{Value, json};
use wasmspawner_sdk::form::{ChoiceInput, FieldKind};
use wasmspawner_sdk::pod::{Customization, EnvValue, VolumeSource};
use wasmspawner_sdk::testing::TestKit;
use wasmspawner_sdk::{Error, User};

use crate::DefaultPolicy;

fn example() -> Value {
    serde_json::from_str(include_str!("../../example-profiles.json")).unwrap()
}

fn site() -> TestKit<DefaultPolicy> {
    TestKit::new(&example()).unwrap()
}

fn ada() -> User {
    User::named("ada").in_group("science")
}

fn pod(options: &Value) -> Customization {
    site().customize(&ada(), options).unwrap()
}

fn env(pod: &Customization) -> Vec<(&str, &str)> {
    let mut literals = Vec::new();
    for variable in &pod.env {
        let EnvValue::Literal(text) = &variable.value else { panic!("{variable:?}") };
        literals.push((variable.name.as_str(), text.as_str()));
    }
    literals
}

/// The problems of a site with one profile that has the keys `extra`; each as `pointer: message`.
fn problems(extra: &Value) -> Vec<String> {
    let mut profile = json!({"display_name": "P"});
    profile.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    let found = TestKit::<DefaultPolicy>::new(&json!({"profile_list": [profile]})).err().unwrap_or_default();
    found.into_iter().map(|problem| format!("{}: {}", problem.field, problem.message)).collect()
}

fn choices(input: &ChoiceInput) -> String {
    let line = |choice: &wasmspawner_sdk::form::Choice| {
        let mark = if input.default.as_ref() == Some(&choice.value) { '*' } else { ' ' };
        let description = choice.description.as_deref().map(|text| format!(" ({text})")).unwrap_or_default();
        format!("\n  {mark} {} = {}{description}", choice.value, choice.label)
    };
    input.choices.iter().map(line).collect()
}

#[test]
fn the_form_is_that_of_the_profiles() {
    let mut form = String::new();
    for field in site().fields(&ada()).unwrap() {
        let when = field.visible_when.map(|when| format!(" when {} in {:?}", when.field, when.values));
        let kind = match &field.kind {
            FieldKind::Radio(input) => format!("radio{}", choices(input)),
            FieldKind::Select(input) => format!("select{}", choices(input)),
            FieldKind::Checkbox(on) => format!("checkbox {on}"),
            FieldKind::Text(text) => {
                format!("text matching {}", text.pattern.as_deref().unwrap_or("anything"))
            }
            FieldKind::Number(_) => "number".into(),
        };
        let help = field.help.map(|help| format!("\n  {help}")).unwrap_or_default();
        writeln!(form, "{} ({}){}: {kind}{help}", field.name, field.label, when.unwrap_or_default()).unwrap();
    }
    insta::assert_snapshot!(form);
}

#[test]
fn a_profile_is_offered_to_its_groups_only() {
    let eve = User::named("eve");
    let FieldKind::Radio(input) = &site().fields(&eve).unwrap()[0].kind else { panic!("profiles are cards") };
    let slugs: Vec<_> = input.choices.iter().map(|choice| choice.value.as_str()).collect();
    assert_eq!(slugs, ["small", "custom"]);
    let refused = site().customize(&eve, &json!({"profile": "gpu-nvidia-a100"}));
    assert!(matches!(refused, Err(Error::Invalid(fields)) if fields[0].field == "profile"));
}

#[test]
fn submissions_of_the_form_and_of_programs_give_the_same_options() {
    let expected = json!({"profile": "custom", "image": "rstudio", "resources": "mem_4", "debug": false});
    let expected = wasmspawner_sdk::testing::options(&expected);
    for submission in [
        json!({"profile": "custom", "profile-option-custom--image": "rstudio"}),
        json!({"profile": "custom", "image": "rstudio"}),
        json!({"profile": "custom", "image": "rstudio", "resources": "mem_4", "debug": false}),
    ] {
        assert_eq!(site().parse(&ada(), &submission).unwrap(), expected, "{submission}");
    }
    let defaults = site().parse(&ada(), &json!({})).unwrap();
    assert_eq!((defaults.text("profile"), defaults.text("image")), (Some("small"), None));
}

#[test]
fn an_error_names_the_field_as_it_was_submitted() {
    let wrong = |submission: Value| -> Vec<String> {
        let errors = site().parse(&ada(), &submission).unwrap_err();
        errors.into_iter().map(|error| format!("{}: {}", error.field, error.message)).collect()
    };
    assert_eq!(
        wrong(json!({"profile": "custom", "image": "matlab"})),
        ["image: Image cannot be \"matlab\": choose one of datascience, rstudio, scipy, unlisted-choice"]
    );
    assert_eq!(
        wrong(json!({"profile": "custom", "profile-option-custom--resources": "mem_99"})),
        ["profile-option-custom--resources: Memory cannot be \"mem_99\": choose one of mem_16, mem_4"]
    );
    assert_eq!(
        wrong(json!({"profile": "small", "image": "scipy"})),
        ["image: is not a field of this form; leave it out"]
    );
    assert_eq!(
        wrong(json!({"profile": "huge"})),
        ["profile: Server cannot be \"huge\": choose one of small, custom, gpu-nvidia-a100"]
    );
    let message = "Must be an image of quay.io with a tag, such as quay.io/jupyter/r-notebook:2026-10-06";
    assert_eq!(
        wrong(json!({"profile": "custom", "image--unlisted-choice": "docker.io/a/b:1"})),
        [format!(
            "image--unlisted-choice: Custom image cannot be \"docker.io/a/b:1\": it must match the pattern ^quay\\.io/.+:.+$ ({message})"
        )]
    );
    assert_eq!(
        wrong(json!({"profile": "custom", "image--unlisted-choice": "quay.io/a b:1"})),
        ["image--unlisted-choice: gives no image, such as registry/repository:tag"]
    );
    assert_eq!(
        wrong(json!({"profile": "custom", "profile-option-custom--image": "unlisted-choice"})),
        ["profile-option-custom--image--unlisted-choice: Custom image must not be empty: enter a text"]
    );
}

#[test]
fn overrides_of_options_win_over_those_of_their_profile() {
    let pod = pod(&json!({"profile": "custom", "image": "rstudio", "resources": "mem_16"}));
    assert_eq!(pod.image.as_ref().unwrap().reference, "quay.io/example/rstudio:2026.09");
    assert_eq!(
        env(&pod),
        [("PROFILE", "rstudio"), ("JUPYTERHUB_DEFAULT_URL", "/rstudio")],
        "the profile takes DOCS_URL away, the option wins over the profile"
    );
    let resources = pod.resources.unwrap();
    assert_eq!((resources.cpu_limit_millis, resources.cpu_request_millis), (Some(8000), Some(500)));
    assert_eq!(
        (resources.memory_limit_bytes, resources.memory_request_bytes),
        (Some(16 << 30), Some(8 << 30))
    );
    assert_eq!(pod.labels.len(), 1);
    assert_eq!(pod.time_limits.unwrap().spawn_seconds, Some(900));
    assert_eq!(pod.tolerations.len(), 1, "the site's");
}

#[test]
fn maps_are_merged_and_lists_replaced() {
    let pod = pod(&json!({"profile": "gpu-nvidia-a100", "debug": true}));
    let selector: Vec<_> =
        pod.node_selector.iter().map(|pair| (pair.name.as_str(), pair.value.as_str())).collect();
    assert_eq!(selector, [("cloud.google.com/gke-accelerator", "nvidia-tesla-a100"), ("pool", "gpu")]);
    assert_eq!(pod.tolerations.len(), 1);
    assert_eq!(pod.tolerations[0].key.as_deref(), Some("nvidia.com/gpu"));
    let resources = pod.resources.as_ref().unwrap();
    assert_eq!((resources.cpu_limit_millis, resources.memory_limit_bytes), (None, Some(48 << 30)));
    assert_eq!(resources.extended, [("nvidia.com/gpu".to_owned(), 1)]);
    assert_eq!(env(&pod), [("DOCS_URL", "https://docs.example.org"), ("DEBUG", "T")]);
    let names: Vec<_> = pod.volumes.iter().map(|volume| volume.name.as_str()).collect();
    assert_eq!(names, ["home", "shm"]);
    let VolumeSource::Claim(claim) = &pod.volumes[0].source else { panic!("a claim") };
    assert_eq!(claim.create.as_ref().map(|create| create.storage_bytes), Some(10 << 30), "still made");
}

#[test]
fn an_unlisted_choice_is_inserted_at_its_placeholder() {
    let submission = json!({"profile": "custom", "image--unlisted-choice": "quay.io/me/lab:1"});
    let options = site().parse(&ada(), &submission).unwrap();
    assert_eq!(options.text("image"), Some("unlisted-choice"));
    let pod = site().customize_with(&ada(), &options).unwrap();
    assert_eq!(pod.image.as_ref().unwrap().reference, "quay.io/me/lab:1");
    assert!(env(&pod).contains(&("CUSTOM_IMAGE", "quay.io/me/lab:1")));
    let around =
        json!({"profile": "custom", "image": "unlisted-choice", "image--unlisted-choice": "evil/lab:1"});
    let refused = site().customize(&ada(), &around);
    assert!(matches!(refused, Err(Error::Invalid(fields)) if fields[0].field == "image--unlisted-choice"));
}

#[test]
fn an_unlisted_choice_is_never_expanded_as_a_template() {
    let config = json!({"profile_list": [{"display_name": "P", "profile_options": {"note": {"unlisted_choice": {
        "enabled": true,
        "kubespawner_override": {"environment": {"A": "<{value}>", "B": "{value}{value}"}}
    }}}}]});
    let site = TestKit::<DefaultPolicy>::new(&config).unwrap();
    for typed in ["{value}", "{username}", "{{x}}", "{"] {
        let options = site.parse(&ada(), &json!({"note--unlisted-choice": typed})).unwrap();
        let pod = site.customize_with(&ada(), &options).unwrap();
        assert_eq!(env(&pod), [("A", format!("<{typed}>").as_str()), ("B", typed.repeat(2).as_str())]);
    }
}

#[test]
fn templates_around_an_unlisted_choice_are_expanded() {
    let config = json!({"profile_list": [{
        "display_name": "P",
        "kubespawner_override": {"environment": {"WHO": "{username}"}, "cmd": ["sh", "-c", "echo ${HOME}"]},
        "profile_options": {"note": {"unlisted_choice": {"enabled": true, "kubespawner_override": {
            "environment": {"A": "{username}/{value}/{{value}}"}, "args": ["{value}", "${{X}}"]
        }}}}
    }]});
    let site = TestKit::<DefaultPolicy>::new(&config).unwrap();
    let pod = site.customize(&ada(), &json!({"note--unlisted-choice": "{namespace}"})).unwrap();
    assert_eq!(env(&pod), [("WHO", "ada"), ("A", "ada/{namespace}/{value}")]);
    assert_eq!(pod.command, None);
    assert_eq!(pod.args.unwrap(), ["sh", "-c", "echo ${HOME}", "{namespace}", "${X}"]);
}

#[test]
fn settings_beside_the_key_to_which_they_belong_are_named() {
    let profile = |more: Value| {
        let mut profile = json!({"display_name": "P"});
        profile.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"profile_list": [profile]})
    };
    let option = |more: Value| profile(json!({"profile_options": {"o": more}}));
    for (config, expected) in [
        (
            profile(json!({"cpu_guarantee": 1})),
            "/profile_list/0/cpu_guarantee: belongs in `kubespawner_override`",
        ),
        (option(json!({"image": "a", "choices": {"c": {}}})), "/o/image: belongs in `kubespawner_override`"),
        (
            option(json!({"choices": {"c": {"mem_limit": "1G"}}})),
            "/c/mem_limit: belongs in `kubespawner_override`",
        ),
        (json!({"cpu_guarantee": 1}), "/cpu_guarantee: belongs in `kubespawner`"),
        (json!({"allowed_groups": ["a"]}), "/allowed_groups: belongs in a profile"),
    ] {
        let problems = TestKit::<DefaultPolicy>::new(&config).err().unwrap();
        let texts: Vec<_> = problems.iter().map(|one| format!("{}: {}", one.field, one.message)).collect();
        assert!(texts.iter().any(|text| text.contains(expected)), "{config}: {texts:?}");
    }
}

#[test]
fn the_account_of_a_profile_counts_before_that_of_a_group_and_that_of_the_site() {
    let config = json!({
        "kubespawner": {"service_account": "of-site"},
        "service_accounts": [{"groups": ["astro"], "name": "of-astro"}, {"allowed_groups": ["astro", "staff"], "name": "of-staff"}],
        "profile_list": [
            {"display_name": "Plain"},
            {"display_name": "GPU", "kubespawner_override": {"service_account": "of-gpu"}}
        ]
    });
    let site = TestKit::<DefaultPolicy>::new(&config).unwrap();
    for (groups, profile, expected) in [
        (&[][..], "plain", "of-site"),
        (&["astro", "staff"], "plain", "of-astro"),
        (&["staff"], "plain", "of-staff"),
        (&["staff"], "gpu", "of-gpu"),
        (&[], "gpu", "of-gpu"),
    ] {
        let user = groups.iter().fold(User::named("ada"), |user, group| user.in_group(group));
        let pod = site.customize(&user, &json!({"profile": profile})).unwrap();
        let patch: Value = serde_json::from_str(&pod.pod_patch.unwrap()).unwrap();
        assert_eq!(patch, json!({"spec": {"serviceAccountName": expected}}), "{groups:?} {profile}");
    }
}

#[test]
fn unsupported_overrides_are_refused_with_the_remedy() {
    for (override_, expected) in [
        (
            json!({"extra_pod_config": {"hostNetwork": true}}),
            "/extra_pod_config: `hostNetwork` is decided by the service",
        ),
        (json!({"uid": 1000}), "/uid: comes from the identity provider"),
        (json!({"service_account": 7}), "/service_account: must be a text"),
        (json!({"image_spec": "lab:1"}), "/image_spec: is called `image`"),
        (json!({"allowed_groups": ["a"]}), "/allowed_groups: belongs to the profile"),
        (
            json!({"extra_pod_config": {"serviceAccountName": "aws"}}),
            "/extra_pod_config: `serviceAccountName` is decided by the service; write `service_account`",
        ),
        (
            json!({"storage_capacity": "1Gi"}),
            "/storage_capacity: cannot differ by profile; write it in `kubespawner`",
        ),
        (json!({"image_pull_policy": "always"}), "/image_pull_policy: must be Always"),
        (json!({"init_containers": [{"name": "a"}]}), "/init_containers/0/image: is missing"),
        (
            json!({"init_containers": [{"name": "a", "image": "a", "tty": true}]}),
            "/init_containers/0/tty: is not a key here",
        ),
        (json!({"imgae": "x"}), "/imgae: is not a key here; there are image, cpu_limit,"),
        (json!({"mem_limit": "lots"}), "/mem_limit: `lots` is not an amount of bytes"),
        (json!({"cpu_guarantee": 2, "cpu_limit": 1}), "/cpu_guarantee: is more than the limit"),
        (
            json!({"extra_resource_limits": {"ephemeral-storage": "1Gi"}}),
            "/extra_resource_limits: `ephemeral-storage` is no",
        ),
        (
            json!({"extra_resource_limits": {"a.b/c": 1}, "extra_resource_guarantees": {"a.b/c": 2}}),
            "/extra_resource_guarantees: `a.b/c` must be the same",
        ),
        (
            json!({"environment": {"A": {"valueFrom": {"configMapKeyRef": {}}}}}),
            "/environment: `A` must be a text",
        ),
        (json!({"volumes": [{"name": "a", "csi": {}}]}), "/volumes/0: needs one source"),
        (json!({"volumes": {"a": {}}}), "/volumes/a/name: is missing"),
        (json!({"volumes": "a"}), "/volumes: must be a list"),
        (
            json!({"volume_mounts": [{"name": "data", "mountPath": "/d"}]}),
            "/volume_mounts: there is no volume `data`",
        ),
        (
            json!({"environment": {"A": "{usrname}"}}),
            "/environment: `{usrname}` is not a valid template: unknown field",
        ),
        (json!({"extra_labels": {"a": "{value}"}}), "/extra_labels: `{value}` is not a valid template"),
        (json!({"tolerations": [{"operator": "In"}]}), "/tolerations/0/operator: must be Exists or Equal"),
    ] {
        let found = problems(&json!({"kubespawner_override": override_}));
        let expected = format!("/profile_list/0/kubespawner_override{expected}");
        assert!(found.iter().any(|problem| problem.starts_with(&expected)), "{expected}\n{found:#?}");
    }
}

#[test]
fn profiles_that_cannot_be_offered_are_refused() {
    let unlisted = |with: Value| json!({"profile_options": {"image": {"unlisted_choice": with}}});
    for (extra, expected) in [
        (
            unlisted(json!({"enabled": true, "kubespawner_override": {"image": "{value}:{tag}"}})),
            "/profile_options/image/unlisted_choice/kubespawner_override/image: `:{tag}` has a brace",
        ),
        (json!({"display_name": "日本"}), "/slug: cannot be made of \"日本\"; write one"),
        (json!({"profile_options": {"image": {}}}), "/profile_options/image: has nothing to choose from"),
        (
            json!({"profile_options": {"profile": {"choices": {"a": {}}}}}),
            "/profile_options: `profile` is the name",
        ),
        (
            unlisted(json!({"enabled": true, "kubespawner_override": {"image": "lab"}})),
            "/profile_options/image/unlisted_choice/kubespawner_override: does not say where",
        ),
        (
            unlisted(
                json!({"enabled": true, "kubespawner_override": {"image": "{value}", "tolerations": [{"key": "{value}"}]}}),
            ),
            "/profile_options/image/unlisted_choice/kubespawner_override: has {value} where it cannot stand",
        ),
        (
            unlisted(
                json!({"enabled": true, "validation_regex": "(?=a)", "kubespawner_override": {"image": "{value}"}}),
            ),
            "/profile_options/image/unlisted_choice/validation_regex: `(?=a)` is not a supported regular expression",
        ),
    ] {
        let found = problems(&extra);
        let expected = format!("/profile_list/0{expected}");
        assert!(found.iter().any(|problem| problem.starts_with(&expected)), "{expected}\n{found:#?}");
    }
    let mut config = example();
    config["images"] = json!([{"name": "a", "reference": "a:1"}]);
    config["profile_list"][1]["slug"] = json!("small");
    config["options"][0]["name"] = json!("resources");
    let found = TestKit::<DefaultPolicy>::new(&config).err().unwrap();
    let fields: Vec<_> = found.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(fields, ["/profile_list/1/slug", "/profile_list/1/profile_options", "/profile_list"]);
}

/// The schema of an override has exactly the keys that are read.
#[test]
fn the_schema_has_every_override() {
    let schema: Value = serde_json::from_str(include_str!("../../schema.json")).unwrap();
    let problem = problems(&json!({"kubespawner_override": {"?": 1}})).remove(0);
    let (_, known) = problem.split_once("there are ").unwrap();
    let mut known: Vec<_> = known.split(", ").collect();
    known.sort_unstable();
    let overrides = schema["$defs"]["overrideKeys"]["properties"].as_object().unwrap();
    assert_eq!(known, overrides.keys().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn a_profile_says_where_its_program_listens_and_when_it_is_ready() {
    use wasmspawner_sdk::lab_server::{Probe, Settings};
    let given = |extra: Value| {
        let profile = json!({"display_name": "P", "kubespawner_override": extra});
        let site = TestKit::<DefaultPolicy>::new(&json!({"profile_list": [profile]})).unwrap();
        site.lab_server(&ada(), &json!({})).unwrap()
    };
    assert_eq!(given(json!({})), Settings::default());
    for (written, probe) in [
        (json!("tcp"), Some(Probe::Tcp)),
        (json!("none"), Some(Probe::None)),
        (json!({"http": "/health"}), Some(Probe::Http("/health".into()))),
        (json!(null), None),
    ] {
        assert_eq!(given(json!({"port": 8787, "probe": written})), Settings { port: Some(8787), probe });
    }
    for wrong in [json!("http"), json!({"https": "/"}), json!(8)] {
        let found = problems(&json!({"kubespawner_override": {"probe": wrong}}));
        assert_eq!(
            found,
            ["/profile_list/0/kubespawner_override/probe: must be `tcp`, `none`, or `{http: PATH}`"]
        );
    }
}
