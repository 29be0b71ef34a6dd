use serde_json::{Value, json};
use wasmspawner_sdk::form::FieldKind;
use wasmspawner_sdk::host::{ChildKind, ChildOfLab, UseOfUser};
use wasmspawner_sdk::inject::{self, Workload, WorkloadKind};
use wasmspawner_sdk::testing::{Subject, TestKit};
use wasmspawner_sdk::{Action, Error, User, Verdict};

use super::*;

fn example() -> Value {
    serde_json::from_str(include_str!("../example.json")).unwrap()
}

fn site() -> TestKit<DefaultPolicy> {
    TestKit::new(&example()).unwrap()
}

fn problems(config: &Value) -> Vec<String> {
    let found = TestKit::<DefaultPolicy>::new(config).err().unwrap_or_default();
    found.into_iter().map(|problem| problem.field).collect()
}

fn ada() -> User {
    User::named("ada").in_group("science")
}

#[test]
fn a_lab_in_a_workload_needs_a_rule_that_fits_user_and_workload() {
    let workload = |kind, name: &str| Workload {
        kind,
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        containers: Vec::new(),
        volumes: Vec::new(),
    };
    let (web, node) = (workload(WorkloadKind::Deployment, "web"), workload(WorkloadKind::DaemonSet, "node"));
    let rules = json!({ "workloads": [
        { "workloads": ["deployment/shop/*"], "groups": ["science"], "environment_of": "web" },
        { "workloads": ["*/shop/node"], "users": ["eve"] },
    ] });
    let site = TestKit::<DefaultPolicy>::new(&rules).unwrap();
    let may = |user: &User, workload: &Workload| match site.inject(user, workload).unwrap() {
        inject::Verdict::Allow(access) => access.environment_of.unwrap_or_default(),
        inject::Verdict::Deny(denial) => denial.message,
    };
    assert_eq!(may(&ada(), &web), "web");
    assert_eq!(may(&User::named("eve"), &web), "You may not have a lab in shop/web here.");
    assert_eq!(may(&User::named("eve"), &node), "");
    assert_eq!(may(&ada(), &node), "You may not have a lab in shop/node here.");
    let nothing = TestKit::<DefaultPolicy>::new(&json!({})).unwrap();
    assert!(matches!(nothing.inject(&ada(), &web).unwrap(), inject::Verdict::Deny(_)));
    for wrong in ["web", "pod/shop/web", "deployment//web", "deployment/shop/web/x"] {
        assert_eq!(problems(&json!({ "workloads": [{ "workloads": [wrong] }] })), ["/workloads/0/workloads"]);
    }
}

#[test]
fn the_form_offers_only_sizes_for_the_groups_of_the_user() {
    let sizes = |user: &User| {
        let fields = site().fields(user).unwrap();
        let size = fields.into_iter().find(|field| field.name == "size").unwrap();
        let FieldKind::Radio(input) = size.kind else { panic!("sizes are cards") };
        let names: Vec<_> = input.choices.into_iter().map(|choice| choice.value).collect();
        (names, input.default.unwrap())
    };
    assert_eq!(sizes(&User::named("eve")), (vec!["small".into(), "medium".into()], "small".into()));
    assert_eq!(sizes(&ada()).0, ["small", "medium", "gpu"]);
}

#[test]
fn a_size_describes_itself() {
    let fields = site().fields(&ada()).unwrap();
    let FieldKind::Radio(input) = &fields[1].kind else { panic!("sizes are cards") };
    assert_eq!(input.choices[2].description.as_deref(), Some("8 CPU · 32 GiB memory · 1 × gpu"));
}

#[test]
fn a_submission_becomes_complete_options() {
    let options = site().parse(&ada(), &json!({"size": "medium", "debug": "on"})).unwrap();
    assert_eq!(options.text("size"), Some("medium"));
    assert_eq!(options.text("image"), Some("minimal"));
    assert!(options.flag("debug"));
    assert!(!options.flag("reset_user_env"));
    let errors = site().parse(&User::named("eve"), &json!({"size": "gpu", "x": 1})).unwrap_err();
    let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["size", "x"]);
}

#[test]
fn the_class_of_a_size_comes_before_that_of_a_group_and_of_everybody() {
    let size = |name: &str, class: Value| json!({"name": name, "cpu": 1, "memory": "1Gi", "environment_class": class});
    let config = json!({
        "environment_class": "site",
        "environment_classes": [{"groups": ["science"], "class": "europe"}, {"groups": ["science"], "class": "late"}],
        "sizes": [{"name": "small", "cpu": 1, "memory": "1Gi"}, size("gpu", json!("gpus"))],
    });
    let policy = TestKit::<DefaultPolicy>::new(&config).unwrap();
    let class =
        |user: &User, size: &str| policy.customize(user, &json!({"size": size})).unwrap().environment_class;
    assert_eq!(class(&User::named("eve"), "small").as_deref(), Some("site"));
    assert_eq!(class(&ada(), "small").as_deref(), Some("europe"));
    assert_eq!(class(&ada(), "gpu").as_deref(), Some("gpus"));
    assert_eq!(
        problems(&json!({"environment_classes": [{"groups": ["science"]}]})),
        ["/environment_classes/0/class"]
    );
}

#[test]
fn the_pod_has_the_chosen_options() {
    let pod = site().customize(&ada(), &json!({"size": "gpu", "image": "minimal", "debug": true})).unwrap();
    let resources = pod.resources.unwrap();
    assert_eq!(resources.cpu_limit_millis, Some(8000));
    assert_eq!(resources.cpu_request_millis, Some(2000));
    assert_eq!(resources.memory_limit_bytes, Some(32 << 30));
    assert_eq!(resources.extended, [("nvidia.com/gpu".to_owned(), 1)]);
    assert_eq!(pod.tolerations.len(), 1);
    let env: Vec<_> = pod.env.iter().map(|variable| variable.name.as_str()).collect();
    assert_eq!(env, ["DOCS_URL", "DEBUG"]);
    assert_eq!(pod.mounts[0].sub_path.as_deref(), Some("{username}"), "the host expands it");
}

#[test]
fn an_option_that_is_not_offered_is_refused_without_the_form_too() {
    let refused = site().customize(&User::named("eve"), &json!({"size": "gpu"}));
    assert!(matches!(refused, Err(Error::Invalid(fields)) if fields[0].field == "size"));
}

#[test]
fn a_user_without_any_choice_is_denied_the_form() {
    let mut config = example();
    config["images"][0]["groups"] = json!(["nobody"]);
    config["images"].as_array_mut().unwrap().truncate(1);
    let site = TestKit::<DefaultPolicy>::new(&config).unwrap();
    assert!(matches!(site.fields(&ada()), Err(Error::Denied(_))));
}

#[test]
fn a_group_raises_only_the_limits_that_it_sets() {
    let eve = site().limits(&User::named("eve")).unwrap();
    let ada = site().limits(&ada()).unwrap();
    assert_eq!((eve.labs, ada.labs), (Some(2), Some(2)));
    assert_eq!((eve.memory_bytes, ada.memory_bytes), (Some(16 << 30), Some(64 << 30)));
    assert_eq!(ada.extended, [("nvidia.com/gpu".to_owned(), 1)]);
}

#[test]
fn denied_users_may_not_spawn() {
    assert_eq!(site().may_spawn(&ada()).unwrap(), Verdict::Allow);
    assert!(matches!(site().may_spawn(&User::named("mallory")).unwrap(), Verdict::Deny(_)));
}

#[test]
fn all_errors_of_a_configuration_are_reported() {
    let config = json!({
        "sizes": [{"name": "s", "cpu": "lots", "memory": "2Gi"}, {"name": "s", "cpu": 1, "memory": 1, "ram": 2}],
        "default_size": "xl",
        "images": [{"name": "a", "reference": "a:1", "digest": "md5:1"}],
        "volumes": [{"name": "home"}, {"name": "x", "host_path": "/x", "nfs": {"server": "s"}}],
        "mounts": [{"volume": "hme", "path": "/home"}],
        "init_containers": [{"name": "i", "image": "b", "profile": "root"}],
        "quota": {"groups": {"a/b": {"labs": -1}}},
        "options": [
            {"name": "size"},
            {"name": "pick", "kind": "select"},
            {"name": "code", "kind": "text", "pattern": r"[\w-]+"},
            {"name": "disk", "kind": "number", "step": 0},
        ],
        "evn": {}
    });
    let mut found = problems(&config);
    found.sort();
    assert_eq!(
        found,
        [
            "/default_size",
            "/evn",
            "/images/0/digest",
            "/init_containers/0/profile",
            "/mounts/0/volume",
            "/options/0/name",
            "/options/1/choices",
            "/options/2/pattern",
            "/options/3/step",
            "/quota/groups/a~1b/labs",
            "/sizes/0/cpu",
            "/sizes/1/name",
            "/sizes/1/ram",
            "/volumes/0",
            "/volumes/1",
            "/volumes/1/nfs/path",
        ]
    );
}

#[test]
fn options_are_held_to_their_pattern_and_step() {
    let code =
        json!({"name": "code", "label": "Course", "kind": "text", "pattern": "[A-Z]{3}", "env": "COURSE"});
    let disk = json!({"name": "disk", "label": "Disk", "kind": "number", "step": 0.5});
    let site = TestKit::<DefaultPolicy>::new(&json!({"options": [code, disk]})).unwrap();
    assert!(site.parse(&ada(), &json!({"code": "ABC", "disk": "1.5"})).is_ok());
    let errors = site.parse(&ada(), &json!({"code": "'; DROP TABLE", "disk": 0.3})).unwrap_err();
    let messages: Vec<_> = errors.iter().map(|error| error.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "Course cannot be \"'; DROP TABLE\": it must match the pattern [A-Z]{3}",
            "Disk cannot be 0.3: it must be a multiple of 0.5",
        ]
    );
}

#[test]
fn an_empty_configuration_is_valid() {
    let site = TestKit::<DefaultPolicy>::new(&json!({})).unwrap();
    assert!(site.fields(&ada()).unwrap().is_empty());
    assert_eq!(site.customize(&ada(), &json!({})).unwrap().image, None);
}

/// The schema has exactly the keys that are read. The error about an unknown key lists the known ones.
#[test]
fn the_schema_has_every_key() {
    let schema: Value = serde_json::from_str(DefaultPolicy::config_schema()).unwrap();
    let problem = TestKit::<DefaultPolicy>::new(&json!({"?": 1})).err().unwrap().remove(0);
    let (_, known) = problem.message.split_once("there are ").unwrap();
    let mut known: Vec<_> = known.split(", ").collect();
    known.sort_unstable();
    let in_schema: Vec<_> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(known, in_schema);
}

#[test]
fn labs_start_as_much_as_the_groups_of_their_user_may_have() {
    let quota = json!({ "quota": {
        "default": { "kernels": 1, "dask_pools": 2, "dask_workers": 8 },
        "groups": { "science": { "dask_workers": 64 } },
    } });
    let site = TestKit::<DefaultPolicy>::new(&quota).unwrap();
    let present =
        UseOfUser { labs: 1, kernels: 1, dask_pools: 1, dask_workers: 4, cpu_millis: 0, memory_bytes: 0 };
    let may = |user: &User, action, kind, workers| {
        let child = ChildOfLab { kind, name: "x".into(), workers };
        let subject = Subject { child: Some(child), present_use: Some(present), ..Subject::default() };
        match site.may_with(action, user, &subject).unwrap() {
            Verdict::Allow => String::new(),
            Verdict::Deny(denial) => denial.message,
        }
    };
    let (eve, pool) = (User::named("eve"), ChildKind::DaskPool);
    assert_eq!(
        may(&eve, Action::StartKernel, ChildKind::Kernel, 0),
        "You may have 1 kernels at a time and have 1."
    );
    assert_eq!(may(&eve, Action::DaskPool, pool, 4), "");
    assert!(may(&eve, Action::DaskPool, pool, 5).contains("This pool may have 4 at the most, not 5."));
    assert!(may(&eve, Action::Scale, pool, 5).contains("at the most, not 5."));
    assert_eq!(may(&ada(), Action::Scale, pool, 60), "", "the largest limit of the groups holds");
    assert!(
        !may(&ada(), Action::StartKernel, ChildKind::Kernel, 0).is_empty(),
        "the default where no group has one"
    );
    assert_eq!(may(&eve, Action::Stop, pool, 99), "");
    assert_eq!(site.may_spawn(&eve).unwrap(), Verdict::Allow);
}
