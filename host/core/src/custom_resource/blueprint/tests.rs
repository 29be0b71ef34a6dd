use std::collections::BTreeMap;

use super::{BlueprintSpec, ForeignBlueprint, InvalidBlueprint, Library, Resolved};
use crate::names::ObjectName;
use crate::values::options::{Options, Value};

fn name(text: &str) -> ObjectName {
    ObjectName::parse(text).unwrap()
}

fn specs(yaml: &str) -> BTreeMap<ObjectName, BlueprintSpec> {
    serde_saphyr::from_str(yaml).unwrap()
}

fn library(yaml: &str) -> Library {
    Library::new(specs(yaml)).unwrap()
}

fn wrong(yaml: &str) -> Vec<InvalidBlueprint> {
    Library::new(specs(yaml)).unwrap_err()
}

fn resolve(library: &Library, chosen: &str, groups: &[&str]) -> Resolved {
    let groups: Vec<_> = groups.iter().map(|group| (*group).to_owned()).collect();
    library.resolve(Some(&name(chosen)), &groups).unwrap().unwrap()
}

fn names(resolved: &Resolved) -> Vec<String> {
    resolved.consists_of.iter().map(ToString::to_string).collect()
}

#[test]
fn each_blueprint_comes_once_before_what_extends_it_and_later_ones_count() {
    let library = library(
        "
root: {image: a, env: {A: root, B: root}, packages: {pip: [one]}}
left: {extends: [root], env: {A: left, C: left}, packages: {pip: [two, one]}}
right: {extends: [root], size: small, env: {C: right}}
top: {extends: [left, right], image: b}
",
    );
    let resolved = resolve(&library, "top", &[]);
    assert_eq!(names(&resolved), ["root", "left", "right", "top"]);
    let env: Vec<_> = resolved.spec.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(env, ["A=left", "B=root", "C=right"]);
    assert_eq!((resolved.spec.image.as_deref(), resolved.spec.size.as_deref()), (Some("b"), Some("small")));
    assert_eq!(
        resolved.spec.packages.pip.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["one", "two"]
    );
    assert_eq!(resolved.sources["env.A"].to_string(), "top -> left");
    assert_eq!(resolved.sources["env.B"].to_string(), "top -> left -> root");
    // `left` may differ from `root`, which it extends. `left` and `right` are independent of each other.
    let overlaps: Vec<_> = resolved.overlaps.iter().map(ToString::to_string).collect();
    assert_eq!(overlaps, ["env.C: top -> right counts, and not top -> left"]);
}

#[test]
fn what_cannot_be_resolved_is_told_with_the_chain() {
    let told = |yaml: &str| -> Vec<String> {
        wrong(yaml).iter().map(|wrong| format!("{} {}: {wrong}", wrong.name, wrong.field)).collect()
    };
    assert_eq!(
        told("{a: {extends: [b]}, b: {extends: [c]}, c: {extends: [b]}}"),
        [
            "a extends: the blueprints extend each other in a circle: a -> b -> c -> b",
            "b extends: the blueprints extend each other in a circle: b -> c -> b",
            "c extends: the blueprints extend each other in a circle: c -> b -> c",
        ]
    );
    assert_eq!(
        told("{a: {extends: [a]}}"),
        ["a extends: the blueprints extend each other in a circle: a -> a"]
    );
    assert_eq!(
        told("{a: {extends: [b]}, b: {extends: [gone]}}"),
        [
            "a extends: there is no blueprint `gone` (a -> b -> gone)",
            "b extends: there is no blueprint `gone` (b -> gone)"
        ]
    );
    let deep: String = (0..9)
        .map(|at| format!("b{at}: {{extends: [b{}]}}\n", at + 1))
        .chain(["b9: {}\n".to_owned()])
        .collect();
    let all = told(&deep);
    assert_eq!(all.len(), 2, "{all:#?}");
    assert!(
        all[0].starts_with("b0 extends: more than 8 blueprints extend each other: b0 -> b1 -> "),
        "{all:#?}"
    );
    let many: Vec<_> = (0..40).map(|at| format!("b{at}: {{}}\n")).collect();
    let extends: Vec<_> = (0..40).map(|at| format!("b{at}")).collect();
    let all = told(&format!("{}all: {{extends: [{}]}}", many.concat(), extends.join(", ")));
    assert_eq!(all, ["all extends: a lab may consist of 32 blueprints, and there are more: all -> b32"]);
}

#[test]
fn groups_choose_their_own_and_get_those_of_the_platform() {
    let library = library(
        "
everybody: {platform: true, env: {SITE: here, COLOUR: grey}}
staff-only: {platform: true, groups: [staff], size: large}
base: {groups: [nobody], env: {COLOUR: red}}
gpu: {groups: [staff, course], extends: [base], image: cuda}
plain: {}
",
    );
    let choices = |groups: &[&str]| -> Vec<String> {
        let groups: Vec<_> = groups.iter().map(|group| (*group).to_owned()).collect();
        library.choices(&groups).map(|(name, _)| name.to_string()).collect()
    };
    assert_eq!(choices(&["staff"]), ["gpu", "plain"]);
    assert_eq!(choices(&[]), ["plain"]);
    assert_eq!(names(&resolve(&library, "gpu", &["staff"])), ["everybody", "staff-only", "base", "gpu"]);
    for (chosen, groups) in [("gpu", vec![]), ("base", vec!["staff".to_owned()]), ("everybody", vec![])] {
        let refused = library.resolve(Some(&name(chosen)), &groups).unwrap_err().to_string();
        assert!(
            refused.starts_with(&format!("there is no blueprint `{chosen}` that you may choose; there are "))
        );
    }
    let nothing_chosen = library.resolve(None, &["staff".to_owned()]).unwrap().unwrap();
    assert_eq!((names(&nothing_chosen).len(), nothing_chosen.chosen), (2, None));
    assert_eq!(Library::default().resolve(None, &[]).unwrap(), None);
}

#[test]
fn a_chosen_blueprint_counts_over_the_form_and_the_platform_under_it() {
    let library = library(
        "
site: {platform: true, size: small, options: {debug: true, quiet: 1}}
gpu: {image: cuda, options: {debug: false}}
",
    );
    let mut options: Options = [("image", "plain"), ("size", "large")]
        .map(|(name, value)| (name.to_owned(), Value::Text(value.to_owned())))
        .into();
    resolve(&library, "gpu", &[]).change(&mut options);
    let expected = [
        ("debug", Value::Boolean(false)),
        ("image", Value::Text("cuda".into())),
        ("quiet", Value::Integer(1)),
        ("size", Value::Text("large".into())),
    ];
    assert_eq!(options, expected.map(|(name, value)| (name.to_owned(), value)).into());
}

/// A foreign blueprint could otherwise replace a blueprint that applies to everybody.
#[test]
fn somebody_elses_blueprint_replaces_none_of_the_site() {
    let library = library(
        "
everybody: {platform: true, extends: [hidden], env: {RULE: site}}
hidden: {groups: [staff], env: {WATCHED: \"yes\"}}
open: {env: {OPEN: \"1\"}}
",
    );
    let foreign = |named: &str, yaml: &str| {
        let spec = serde_saphyr::from_str(yaml).unwrap();
        let foreign = ForeignBlueprint::new(name(named), spec).unwrap();
        library.resolve_foreign(&foreign, &[])
    };
    for taken in ["everybody", "hidden", "open"] {
        let refused = foreign(taken, "{env: {WATCHED: \"no\"}}").unwrap_err().to_string();
        assert_eq!(refused, format!("there is no blueprint `{taken}` that you may choose; there are `open`"));
    }
    for parent in ["everybody", "hidden", "mine"] {
        assert!(foreign("mine", &format!("{{extends: [{parent}]}}")).is_err(), "{parent}");
    }
    let mine = foreign("mine", "{extends: [open], env: {RULE: mine}}").unwrap().unwrap();
    assert_eq!(names(&mine), ["hidden", "everybody", "open", "mine"]);
}

#[test]
fn a_volume_has_one_source() {
    for (volume, problem) in [
        ("{name: v, mountPath: /v}", "`v` needs exactly one of nfs, claim, configMap and emptyDir"),
        ("{name: v, mountPath: /v, emptyDir: {}, claim: {name: c}}", "`v` needs exactly one of"),
        ("{name: v, mountPath: /v, emptyDir: {sizeLimit: much}}", "`v` has a wrong sizeLimit: "),
    ] {
        let wrong = wrong(&format!("a: {{volumes: [{volume}]}}"));
        assert_eq!(wrong[0].field, "volumes");
        assert!(wrong[0].problem.starts_with(problem), "{}", wrong[0].problem);
    }
    assert!(
        serde_saphyr::from_str::<BlueprintSpec>("{volumes: [{name: v, mountPath: /v, hostPath: /}]}")
            .is_err()
    );
    assert!(serde_saphyr::from_str::<BlueprintSpec>("{privileged: true}").is_err());
}
