//! Labs of administrators, with less than the security baseline, and everybody who must not have one.

use wasmspawner_core::policy::compose::RejectionBlame;

use super::case::Case;
use super::refusals::first;

/// The lab of a user of these groups that a policy asks to be `wanted`: `root`, `privileged`, or a path of the node.
fn administrator(groups: &str, site: &str, grant: &str, wanted: &str) -> Case {
    let with_context = |field: &str, value: &str| {
        format!(
            r#"pod_patch: '{{"spec":{{"containers":[{{"name":"notebook","securityContext":{{"{field}":{value}}}}}]}}}}'"#
        )
    };
    let customization = match wanted {
        "root" => with_context("runAsUser", "0"),
        "privileged" => with_context("privileged", "true"),
        path => format!("volumes: [{{name: v, source: {{host_path: {path}}}}}]"),
    };
    Case::read(&format!(
        "{{identity: {{username: ada, uid: 1000, gid: 1000, groups: {groups}}}, lab: {{image: 'lab:1', {site}}}, answers: [
          {{policy: site, grants: {{{grant}}}, customization: {{{customization}}}}}]}}"
    ))
}

/// Exactly what the site and a policy's grant both allow, for a member of groups of both, in a lab.
#[test]
fn the_baseline_is_lifted_for_administrators_and_never_for_others() {
    let all = "{groups: [ops], root: true, privileged: true, paths: [/scratch]}";
    let (site, grant) = (format!("administrators: {all}"), format!("administrators: {all}"));
    let ops = "[{name: staff}, {name: ops}]";
    for wanted in ["root", "privileged", "/scratch/ada"] {
        let spawn = administrator(ops, &site, &grant, wanted).compose().unwrap();
        assert_eq!(spawn.lifted.names(), [wanted]);
        let used = spawn.provenance.by_source();
        assert!(used.contains_key("policy `site`, by its grant administrators"), "{used:?}");

        let without = |key: &str| {
            let other = match key {
                "groups" => "groups: [others]",
                "root" => "root: false",
                "privileged" => "privileged: false",
                _ => "paths: [/scratchy]",
            };
            let known = match key {
                "groups" => "groups: [ops]",
                "root" => "root: true",
                "privileged" => "privileged: true",
                _ => "paths: [/scratch]",
            };
            format!("administrators: {}", all.replace(known, other))
        };
        let needed = if wanted.starts_with('/') { "paths" } else { wanted };
        for (groups, site, grant) in [
            ("[{name: staff}]", site.as_str(), grant.as_str()),
            ("[]", &site, &grant),
            ("[{name: Ops}]", &site, &grant),
            (ops, "", &grant),
            (ops, &site, ""),
            (ops, &without("groups"), &grant),
            (ops, &site, &without("groups")),
            (ops, &without(needed), &grant),
            (ops, &site, &without(needed)),
        ] {
            let refused = administrator(groups, site, grant, wanted).compose().err();
            let refused = refused.unwrap_or_else(|| panic!("{wanted}: {groups}, {site}, {grant}"));
            assert_eq!(refused.blame, RejectionBlame::Policy("site".to_owned()));
        }
        let in_workload = Case { in_workload: true, ..administrator(ops, &site, &grant, wanted) };
        assert!(in_workload.compose().is_err(), "the pods are somebody else's");
        // A kernel has the options of its lab, so the policy asks for the same.
        let child = Case { is_child: true, ..administrator(ops, &site, &grant, wanted) }.compose().unwrap();
        assert!(child.lifted.is_empty() && child.volumes.is_empty(), "{wanted}");
    }
    let refused = administrator("[]", &site, &grant, "privileged").compose().unwrap_err();
    let (_, said) = first(&refused);
    assert!(
        said.contains("needs the grant `administrators` for `privileged`, and the site has to allow"),
        "{said}"
    );
}

/// Whatever decides about the lab's container has its rights.
#[test]
fn every_policy_that_decides_about_an_administrators_lab_has_the_grant() {
    let all = "administrators: {groups: [ops], root: true}";
    let root = || administrator("[{name: ops}]", all, all, "root");
    let with = |customization: &str, grant: &str| {
        let mut case = root();
        let other = format!("{{policy: other, grants: {{{grant}}}, customization: {{{customization}}}}}");
        case.answers.push(serde_saphyr::from_str(&other).unwrap());
        case.compose()
    };
    assert!(with("", "").is_ok(), "it decides nothing");
    for customization in
        ["env: [{name: LD_PRELOAD, value: {literal: /x}}]", "image: {reference: 'evil:1'}", "command: [x]"]
    {
        let refused = with(customization, "").unwrap_err();
        assert_eq!(refused.blame, RejectionBlame::Policy("other".to_owned()), "{customization}");
        assert!(with(customization, all).is_ok(), "{customization}");
        assert!(with(customization, "administrators: {groups: [ops], privileged: true}").is_err());
    }
    // A blueprint chooses the options that policies read, and a menu the image, also where they decide nothing else.
    let mut of_blueprint = root();
    of_blueprint.answers.push(serde_saphyr::from_str("{policy: course, is_blueprint: true}").unwrap());
    let refused = of_blueprint.compose().unwrap_err();
    assert!(first(&refused).1.contains("blueprint `course`"), "{refused:?}");
    for (menu, answers, allowed) in
        [("site", "", true), ("other", "", false), ("other", "{policy: other}", false)]
    {
        let mut case = root();
        case.chosen = Some((menu.to_owned(), serde_saphyr::from_str("{reference: 'menu:1'}").unwrap()));
        if !answers.is_empty() {
            case.answers.push(serde_saphyr::from_str(answers).unwrap());
        }
        assert_eq!(case.compose().is_ok(), allowed, "{menu} {answers}");
    }
}
