//! Refused spawns: the place of the error, and the person who can correct it.

use wasmspawner_core::policy::SpawnRejected;
use wasmspawner_core::policy::compose::RejectionBlame;

use super::case::Case;

fn refused(case: &str) -> SpawnRejected {
    Case::read(case).compose().err().unwrap_or_else(|| panic!("accepted: {case}"))
}

/// The rejection when a policy `p` gives this answer for Ada.
fn answer(grants: &str, customization: &str, more: &str) -> SpawnRejected {
    refused(&format!(
        "{{identity: {{username: ada, uid: 1000, gid: 1000}}, lab: {{image: 'lab:1'}}, {more}
          answers: [{{policy: p, grants: {grants}, customization: {customization}}}]}}"
    ))
}

pub(crate) fn first(rejected: &SpawnRejected) -> (&str, &str) {
    (rejected.details[0].field.as_str(), rejected.details[0].message.as_str())
}

/// A privileged container of `site` executes the content of its volumes, so a policy without its grant must not decide
/// that content.
#[test]
fn what_a_privileged_container_mounts_is_not_decided_without_its_grant() {
    const SITE: &str = "{policy: site, grants: {privileged-init: true}, customization: {
        volumes: [
          {name: scripts, source: {config_map: {name: site-scripts}}},
          {name: work, source: {empty_dir: {}}},
          {name: tools, source: {claim: {claim_name: tools}}},
          {name: home, source: {claim: {claim_name: home}}}],
        mounts: [{volume: home, path: /home/ada}, {volume: work, path: /work, read_only: true}],
        init_containers: [{name: prepare, image: i, command: [/scripts/run.sh], profile: privileged, mounts: [
          {volume: scripts, path: /scripts}, {volume: work, path: /work}, {volume: tools, path: /tools},
          {volume: home, path: /home/ada}]}]}}";
    let composed = |first: bool, grants: &str, asked: &str| {
        let guest = format!("{{policy: guest, grants: {{{grants}}}, customization: {asked}}}");
        let chain = if first { [guest.as_str(), SITE] } else { [SITE, guest.as_str()] };
        Case::read(&format!(
            "{{identity: {{username: ada, uid: 1000, gid: 1000}}, lab: {{image: 'lab:1'}}, answers: [{}]}}",
            chain.join(", ")
        ))
        .compose()
    };
    for (field, asked) in [
        ("volumes[0].source", "{volumes: [{name: scripts, source: {nfs: {server: evil, path: /x}}}]}"),
        ("volumes[0].source", "{volumes: [{name: scripts, source: {config_map: {name: of-guest}}}]}"),
        (
            "volumes[0].source.claim.create",
            "{volumes: [{name: mine, source: {claim: {claim_name: tools, create: {storage_bytes: 1, selector: [{name: of, value: guest}]}}}}]}",
        ),
        ("mounts[0].volume", "{mounts: [{volume: work, path: /mine}]}"),
        (
            "init_containers[0].mounts[0].volume",
            "{init_containers: [{name: mine, image: i, mounts: [{volume: tools, path: /x}]}]}",
        ),
    ] {
        let refused = composed(false, "", asked).err().unwrap_or_else(|| panic!("accepted: {asked}"));
        assert!(matches!(&refused.blame, RejectionBlame::Policy(policy) if policy == "guest"), "{refused:?}");
        assert_eq!(refused.details[0].field, field, "{refused:?}");
        assert!(refused.details[0].message.contains("needs the grant `privileged-init`"), "{refused:?}");
        composed(false, "privileged-init: true", asked).unwrap();
    }
    for (first, harmless) in [
        // The site's own source takes precedence.
        (true, "{volumes: [{name: scripts, source: {nfs: {server: evil, path: /x}}}]}"),
        (false, "{mounts: [{volume: work, path: /mine, read_only: true}]}"),
        // The lab, and therefore its user, writes to the home anyway.
        (false, "{mounts: [{volume: home, path: /mine}]}"),
        (
            false,
            "{volumes: [{name: data, source: {nfs: {server: n, path: /x}}}], mounts: [{volume: data, path: /d}]}",
        ),
    ] {
        composed(first, "", harmless).unwrap_or_else(|error| panic!("{harmless}: {error:?}"));
    }
}

/// The first policy, `site`, has grants. The second, `guest`, has those of the case.
#[test]
fn a_policy_uses_the_parts_of_another_only_within_its_own_grants() {
    const SITE: &str = r#"{policy: site, grants: {host-path: [/data], secrets: [db], privileged-init: true, pod-patch: [spec.volumes]},
        customization: {
          volumes: [{name: data, source: {host_path: /data/all}}, {name: creds, source: {secret: {name: db}}}],
          mounts: [{volume: data, path: /data}],
          init_containers: [{name: setup, image: i, profile: privileged}],
          pod_patch: '{"spec":{"volumes":[{"name":"late","hostPath":{"path":"/data/late"}}]}}'}}"#;
    let guest = |grants: &str, customization: &str| {
        Case::read(&format!(
            "{{identity: {{username: ada, uid: 1000, gid: 1000}}, lab: {{image: 'lab:1'}},
              answers: [{SITE}, {{policy: guest, grants: {grants}, customization: {customization}}}]}}"
        ))
        .compose()
    };
    let patched = |mount: &str| {
        format!(
            r#"{{pod_patch: '{{"spec":{{"containers":[{{"name":"notebook","volumeMounts":[{mount}]}}]}}}}'}}"#
        )
    };
    let of_late = patched(r#"{"name":"data","mountPath":"/x"}"#);
    let setup = r#"{pod_patch: '{"spec":{"initContainers":[{"name":"setup","command":["sh"]}]}}'}"#;
    for (grants, asked, sufficient, says) in [
        (
            "",
            "{mounts: [{volume: data, path: /x}]}",
            "host-path: [/data]",
            "the grant `host-path` for `/data/all`",
        ),
        ("", "{mounts: [{volume: creds, path: /x}]}", "secrets: [db]", "the grant `secrets` for `db`"),
        (
            "",
            "{init_containers: [{name: own, image: i, mounts: [{volume: data, path: /x}]}]}",
            "host-path: [/data/all]",
            "`init_containers[0].mounts[0].volume` needs the grant `host-path`",
        ),
        (
            "pod-patch: [spec.containers], ",
            of_late.as_str(),
            "host-path: [/data]",
            "`pod_patch` needs the grant `host-path` for `/data/all`",
        ),
        (
            "pod-patch: [spec.initContainers], ",
            setup,
            "privileged-init: true",
            "`pod_patch` needs the grant `privileged-init`",
        ),
        // A patch is merged into the volume of the other policy, whose source stays.
        (
            "pod-patch: [spec.volumes], ",
            r#"{mounts: [{volume: creds, path: /x}], pod_patch: '{"spec":{"volumes":[{"name":"creds","emptyDir":{}}]}}'}"#,
            "secrets: [db]",
            "the grant `secrets` for `db`",
        ),
    ] {
        let refused =
            guest(&format!("{{{grants}}}"), asked).err().unwrap_or_else(|| panic!("accepted: {asked}"));
        assert!(matches!(&refused.blame, RejectionBlame::Policy(policy) if policy == "guest"), "{refused:?}");
        assert!(refused.details[0].message.contains(says), "{refused:?}");
        guest(&format!("{{{grants}{sufficient}}}"), asked)
            .unwrap_or_else(|error| panic!("{asked}: {error:?}"));
    }
    // Volumes without a grant may be shared.
    guest("{}", "{volumes: [{name: data, source: {empty_dir: {}}}], mounts: [{volume: data, path: /x}]}")
        .unwrap();
}

#[test]
fn policies_are_blamed_for_their_answers() {
    for (grants, customization, field, says) in [
        ("{}", "{env: [{name: 1A, value: {literal: x}}]}", "env[0].name", "environment variable"),
        ("{}", "{mounts: [{volume: nope, path: /x}]}", "mounts./x", "no policy gives a volume `nope`"),
        (
            "{}",
            "{init_containers: [{name: notebook, image: i}]}",
            "init_containers.notebook",
            "lab's own container",
        ),
        (
            "{}",
            "{init_containers: [{name: a, image: i, profile: privileged}]}",
            "init_containers[0].profile",
            "privileged-init",
        ),
        (
            "{run-as-root-init: true}",
            "{init_containers: [{name: a, image: i, profile: privileged}]}",
            "init_containers[0].profile",
            "privileged-init",
        ),
        (
            "{}",
            "{env: [{name: JUPYTERHUB_API_URL, value: {literal: x}}]}",
            "env[0].name",
            "env-prefixes-reserved-override",
        ),
        ("{}", "{volumes: [{name: v, source: {host_path: /}}]}", "volumes[0].source.host_path", "host-path"),
        (
            "{host-path: [/data]}",
            "{volumes: [{name: v, source: {host_path: /database}}]}",
            "volumes[0].source.host_path",
            "/database",
        ),
        ("{}", "{pod_patch: '{\"spec\":{\"priority\":1}}'}", "pod_patch", "spec.priority"),
        (
            "{pod-patch: [spec]}",
            "{pod_patch: '{\"spec\":{\"volumes\":[{\"name\":\"v\",\"hostPath\":{\"path\":\"/\"}}]}}'}",
            "pod_patch",
            "host-path",
        ),
        (
            "{pod-patch: [spec]}",
            "{pod_patch: '{\"spec\":{\"volumes\":[{\"name\":\"v\",\"secret\":{\"secretName\":\"s\"}}]}}'}",
            "pod_patch",
            "secrets",
        ),
        (
            "{}",
            "{volumes: [{name: v, source: {claim: {claim_name: 'x-{nope}'}}}]}",
            "volumes[0].source.claim.claim_name",
            "nope",
        ),
        (
            "{}",
            "{volumes: [{name: v, source: {claim: {claim_name: '{unescaped_servername}'}}}]}",
            "volumes[0].source.claim.claim_name",
            "empty",
        ),
    ] {
        let rejected = answer(grants, customization, "");
        assert_eq!(rejected.blame, RejectionBlame::Policy("p".to_owned()), "{customization}");
        let (got, message) = first(&rejected);
        assert_eq!(got, field, "{customization}: {message}");
        assert!(message.contains(says), "{customization}: {message}");
        assert!(rejected.message.contains("`p`"), "{}", rejected.message);
    }
}

#[test]
fn braces_in_a_request_are_refused_beside_templates() {
    let home = "{volumes: [{name: v, source: {claim: {claim_name: 'claim-{username}'}}}]}";
    for more in ["options: {note: '{username}'},", "options: {'{x': 1},", "server: '{username}',"] {
        let rejected = answer("{}", home, more);
        assert_eq!(rejected.blame, RejectionBlame::Request, "{more}");
        assert!(rejected.message.contains("brace"), "{}", rejected.message);
    }
    let plain = "{identity: {username: ada, uid: 1, gid: 1}, lab: {image: 'lab:1'}, options: {note: '{x}'},
        answers: [{policy: p, customization: {volumes: [{name: v, source: {claim: {claim_name: plain}}}]}}]}";
    assert!(Case::read(plain).compose().is_ok(), "without a template braces harm nobody");
}

#[test]
fn variables_in_a_request_are_refused_beside_a_command() {
    let command = "{args: ['--ip=$(POD_IP)']}";
    let rejected = answer("{}", command, "options: {dir: '/home/$(JUPYTERHUB_API_TOKEN)'},");
    assert_eq!(rejected.blame, RejectionBlame::Request);
    assert!(rejected.message.contains("the option `dir` contains `$(`"), "{}", rejected.message);
    // The policy may add the other half.
    for half in ["price in $", "(PW) x"] {
        let rejected = answer("{}", command, &format!("options: {{dir: '{half}'}},"));
        assert_eq!(rejected.blame, RejectionBlame::Request, "{half}");
    }
    let harmless = format!(
        "{{identity: {{username: ada, uid: 1, gid: 1}}, lab: {{image: 'lab:1'}}, options: {{dir: 'Ada (L.), $5'}},
        answers: [{{policy: p, customization: {command}}}]}}"
    );
    assert!(Case::read(&harmless).compose().is_ok());
}

#[test]
fn the_request_is_blamed_for_a_lab_above_the_quota() {
    let rejected = answer(
        "{}",
        "{resources: {cpu_limit_millis: 8000, memory_limit_bytes: 2048, extended: [[nvidia.com/gpu, 2]]}}",
        "quotas: [{cpu_millis: 4000, memory_bytes: 1024, extended: {nvidia.com/gpu: 1}}],",
    );
    assert_eq!(rejected.blame, RejectionBlame::Request);
    let fields: Vec<_> = rejected.details.iter().map(|detail| detail.field.as_str()).collect();
    assert_eq!(fields, ["quota.cpu", "quota.memory", "quota.nvidia.com/gpu"]);
    assert!(rejected.message.contains("would need 8, but your quota is 4"), "{}", rejected.message);
}

#[test]
fn the_request_is_blamed_for_a_lab_above_the_identity_provider_s_quota() {
    let rejected = refused(
        "{identity: {username: a, uid: 1, gid: 1, quota: {memory_bytes: 1024, spawn: true}}, lab: {image: i},
         answers: [{policy: p, customization: {resources: {memory_limit_bytes: 2048}}}]}",
    );
    assert_eq!(
        (rejected.blame, rejected.details[0].field.as_str()),
        (RejectionBlame::Request, "quota.memory")
    );
}

#[test]
fn the_request_is_blamed_for_its_environment() {
    let nul = refused("{identity: {username: a, uid: 1, gid: 1}, lab: {image: i}, env: {A: \"x\\0y\"}}");
    assert_eq!((nul.blame, nul.details[0].field.as_str()), (RejectionBlame::Request, "env.A"));
    let value = "x".repeat(1_000_000);
    let large = refused(&format!(
        "{{identity: {{username: a, uid: 1, gid: 1}}, lab: {{image: i}}, env: {{A: {value}}}}}"
    ));
    assert_eq!(large.blame, RejectionBlame::Request);
    assert!(large.message.len() < 200, "{}", large.message);
}

#[test]
fn the_operator_is_blamed_for_the_configuration() {
    for (case, field, says) in [
        ("{identity: {username: a, uid: 1, gid: 1}}", "lab.image", "no policy chooses an image"),
        ("{identity: {username: a, uid: 0, gid: 1}, lab: {image: i}}", "identity.uid", "root"),
        ("{identity: {username: a, uid: 3000000000, gid: 1}, lab: {image: i}}", "identity", "3000000000"),
        (
            "{identity: {username: a, uid: 1, gid: 1}, lab: {image: i, secrets: [{name: s, key: k}]}}",
            "lab.secrets[0]",
            "`s` has no key `k`",
        ),
        (
            "{identity: {username: 'A b', uid: 1, gid: 1}, lab: {image: i, labels: {who: '{unescaped_username}'}}}",
            "lab.labels.who",
            "label value",
        ),
    ] {
        let rejected = refused(case);
        assert_eq!(rejected.blame, RejectionBlame::Operator, "{case}");
        let (got, message) = first(&rejected);
        assert_eq!(got, field, "{case}: {message}");
        assert!(message.contains(says), "{case}: {message}");
    }
}

#[test]
fn parts_that_a_grant_names_are_allowed() {
    let case = "{identity: {username: ada, uid: 1, gid: 1}, lab: {image: i}, env: {JUPYTERHUB_API_URL: hub},
        answers: [{policy: p, grants: {env-prefixes-reserved-override: true, host-path: ['/data/{username}']},
        customization: {env: [{name: JUPYTERHUB_API_URL, value: {literal: mine}}],
        volumes: [{name: v, source: {host_path: '/data/{username}/x'}}]}}]}";
    let spawn = Case::read(case).compose().unwrap();
    assert_eq!(spawn.redacted_env()["JUPYTERHUB_API_URL"], "mine");
    let grants: Vec<_> = spawn.provenance.grants.iter().map(|used| used.grant.to_string()).collect();
    assert_eq!(grants, ["host-path", "env-prefixes-reserved-override"]);
}

#[test]
fn time_limits_of_a_policy_are_cut_to_the_operators_maximum() {
    let case =
        "{identity: {username: a, uid: 1, gid: 1}, lab: {image: i, max_time_limits: {spawn_seconds: 60}},
        answers: [{policy: p, customization: {time_limits: {spawn_seconds: 90, delete_seconds: 5}}}]}";
    let spawn = Case::read(case).compose().unwrap();
    assert_eq!((spawn.time_limits.spawn_seconds, spawn.time_limits.delete_seconds), (Some(60), Some(5)));
    assert_eq!(spawn.provenance.notes.len(), 1);
}

/// Two authors must not decide the same file, and a file must not take the place of what the lab has anyway.
#[test]
fn a_file_has_a_path_of_its_own() {
    let with = |lab: &str, files: &str, customization: &str| {
        Case::read(&format!(
            "{{identity: {{username: ada, uid: 1000, gid: 1000}}, lab: {{image: 'lab:1', {lab}}}, answers: [
              {{policy: a, files: [{{path: /etc/a/one, content: x}}]}},
              {{policy: b, files: {files}, customization: {customization}}}]}}"
        ))
        .compose()
    };
    let volume = "volumes: [{name: v, source: {empty_dir: {}}}]";
    for (lab, path, customization, message) in [
        ("", "/etc/a/one", "{}", "there is a file `/etc/a/one` already"),
        ("", "/etc/a", "{}", "there is a file `/etc/a/one` already"),
        ("", "/etc/a/one/below", "{}", "there is a file `/etc/a/one` already"),
        ("files: {/opt/b: x}", "/opt/b", "{}", "there is a file `/opt/b` already"),
        ("secrets_path: /srv/keys", "/srv/keys/token", "{}", "where the lab finds its secrets"),
        ("", "/etc/wasmspawner/tls/tls.crt", "{}", "where the lab finds its certificate"),
        (
            "",
            "/mnt/b",
            &format!("{{{volume}, mounts: [{{volume: v, path: /mnt/b}}]}}"),
            "the volume `v` is mounted at",
        ),
        (
            "",
            "/mnt",
            &format!("{{{volume}, mounts: [{{volume: v, path: /mnt/b}}]}}"),
            "the volume `v` is mounted at",
        ),
        (
            "",
            "/home/ada/.jupyter/site.json",
            "{volumes: [{name: v, source: {nfs: {server: nfs, path: /home}}}], mounts: [{volume: v, path: /home}]}",
            "the volume `v` is mounted at `/home`",
        ),
        (
            "",
            "/mnt/b",
            &format!("{{{volume}, mounts: [{{volume: v, path: /mnt//./b}}]}}"),
            "the volume `v` is mounted at",
        ),
    ] {
        let files = format!("[{{path: {path}, content: x}}]");
        let refused = with(lab, &files, customization).err().unwrap_or_else(|| panic!("accepted: {path}"));
        let (field, said) = first(&refused);
        assert_eq!(field, format!("files.{path}"));
        assert!(said.contains(message), "{said}");
        assert_eq!(refused.blame, RejectionBlame::Policy("b".to_owned()));
    }
    let large = |bytes: usize| format!("[{{path: /b, content: '{}'}}]", "x".repeat(bytes));
    assert!(with("", &large(512 * 1024 - 1), "{}").is_ok());
    let refused = with("", &large(512 * 1024), "{}").unwrap_err();
    assert!(first(&refused).1.contains("524288 are possible"), "{refused:?}");
    let refused = with("", "[{path: b, content: x}]", "{}").unwrap_err();
    assert_eq!(first(&refused).0, "files[0].path");
}
