//! One storage under the names of several volumes. A policy without the grants of a privileged container must not write
//! to any storage that this container mounts.

use wasmspawner_core::policy::compose::RejectionBlame;
use wasmspawner_core::policy::{SpawnRejected, ValidatedSpawn};

use super::case::Case;

const CLAIM: &str = "claim: {claim_name: site-tools}";
const NFS: &str = "nfs: {server: nfs.example.org, path: /export/tools}";
const NFS_READ_ONLY: &str = "nfs: {server: nfs.example.org, path: /export/tools, read_only: true}";

/// The policy `site`, whose privileged container runs a program of the volume `tools`.
fn site(source: &str, more: &str) -> String {
    container_of_site("privileged", source, more)
}

fn container_of_site(profile: &str, source: &str, more: &str) -> String {
    format!(
        "{{policy: site, grants: {{privileged-init: true, host-path: [/data]}}, customization: {{
            volumes: [{{name: tools, source: {{{source}}}}}],
            init_containers: [{{name: setup, image: i, command: [/tools/setup.sh], profile: {profile}, mounts: [
              {{volume: tools, path: /tools, read_only: true}}]}}]{more}}}}}"
    )
}

/// The policy `evil`, with a volume `mine` and the mounts of that volume.
fn evil(grants: &str, source: &str, mounted: &str) -> String {
    format!(
        "{{policy: evil, grants: {{{grants}}}, customization: {{
            volumes: [{{name: mine, source: {{{source}}}}}]{mounted}}}}}"
    )
}

const IN_INIT: &str = ", init_containers: [{name: a, image: i, mounts: [{volume: mine, path: /m}]}]";
const IN_LAB: &str = ", mounts: [{volume: mine, path: /m}]";

fn compose(chain: &[&str]) -> Result<ValidatedSpawn, Box<SpawnRejected>> {
    let case = format!(
        "{{identity: {{username: ada, uid: 1000, gid: 1000}}, lab: {{image: 'lab:1'}}, answers: [{}]}}",
        chain.join(", ")
    );
    Case::read(&case).compose().map_err(Box::new)
}

/// The first error of `evil` in this chain.
#[track_caller]
fn refused(chain: &[&str]) -> (String, String) {
    let rejected = compose(chain).err().unwrap_or_else(|| panic!("accepted: {chain:#?}"));
    assert_eq!(rejected.blame, RejectionBlame::Policy("evil".to_owned()), "{rejected:?}");
    let first = rejected.details.into_iter().next().unwrap();
    (first.field, first.message)
}

/// Pairs of the volume of the site's privileged container, and the volume with which another policy would write to it.
const ALIASES: [(&str, &str); 15] = [
    (CLAIM, CLAIM),
    (CLAIM, "claim: {claim_name: '{hubnamespace:.0}site-tools'}"),
    ("claim: {claim_name: site-tools, read_only: true}", CLAIM),
    (NFS, NFS),
    (NFS_READ_ONLY, NFS),
    (NFS, "nfs: {server: NFS.Example.org, path: /export/tools}"),
    (NFS, "nfs: {server: nfs.example.org., path: /export/tools}"),
    (NFS, "nfs: {server: nfs.example.org, path: //export/./tools/}"),
    (NFS, "nfs: {server: nfs.example.org, path: /export}"),
    (NFS, "nfs: {server: nfs.example.org, path: /}"),
    (NFS, "nfs: {server: nfs.example.org, path: /export/tools/bin}"),
    ("nfs: {server: 'fd00::1', path: /x}", "nfs: {server: '[FD00:0::1]', path: /x}"),
    ("host_path: /data/tools", "host_path: /data/tools"),
    ("host_path: /data/tools", "host_path: /data/./"),
    ("host_path: /data/tools", "host_path: /data/tools/bin"),
];

#[test]
fn a_privileged_container_s_storage_is_not_written_under_another_name() {
    for (of_site, alias) in ALIASES {
        let site = site(of_site, "");
        for (mounted, field) in
            [(IN_INIT, "init_containers[0].mounts[0].volume"), (IN_LAB, "mounts[0].volume")]
        {
            let evil = |grants: &str| evil(&format!("host-path: [/data], {grants}"), alias, mounted);
            for chain in [[&site, &evil("")], [&evil(""), &site]] {
                let (got, message) = refused(&chain.map(String::as_str));
                assert_eq!(got, field, "{alias}: {message}");
                assert!(message.contains("needs the grant `privileged-init`"), "{alias}: {message}");
            }
            let granted = evil("privileged-init: true");
            compose(&[&site, &granted]).unwrap_or_else(|error| panic!("{alias}: {error:?}"));
        }
    }
}

#[test]
fn the_message_names_the_volume_the_storage_the_container_and_the_grant() {
    for (source, storage) in [
        (CLAIM, "the claim `site-tools`"),
        (NFS, "the path `/export/tools` of the NFS server `nfs.example.org`"),
        ("host_path: /data/tools", "the path `/data/tools` of the node"),
    ] {
        let alias = source.replace("/export/tools", "/export").replace("/data/tools", "/data");
        let (_, message) = refused(&[
            &site(source, ""),
            &evil("host-path: [/data]", &alias, ", mounts: [{volume: mine, path: /m}]"),
        ]);
        assert_eq!(
            message,
            format!(
                "policy `evil`: `mounts[0].volume` needs the grant `privileged-init`: through the volume `mine` it writes \
                 to {storage}, which the container `setup` of policy `site` mounts as the volume `tools`; mount it read \
                 only, or give the policy the grant"
            )
        );
    }
    let (_, message) = refused(&[
        &site(CLAIM, ""),
        "{policy: evil, customization: {volumes: [{name: tools, source: {empty_dir: {}}}]}}",
    ]);
    assert_eq!(
        message,
        "policy `evil`: `volumes[0].source` needs the grant `privileged-init`: it decides what the volume `tools` is, which \
         the container `setup` of policy `site` mounts; choose another name, or give the policy the grant"
    );
    let create = evil("", "claim: {claim_name: site-tools, create: {storage_bytes: 1}}", "");
    let (field, message) = refused(&[&site(CLAIM, ""), &create]);
    assert_eq!(field, "volumes[0].source.claim.create");
    assert!(
        message.contains(
            "it creates the claim `site-tools`, which the container `setup` of policy `site` mounts"
        ),
        "{message}"
    );
}

#[test]
fn a_container_that_may_be_root_is_protected_like_a_privileged_one() {
    let site = container_of_site("baseline", CLAIM, "");
    let (_, message) = refused(&[&site, &evil("", CLAIM, IN_LAB)]);
    assert!(message.contains("needs the grant `run-as-root-init`"), "{message}");
    for granted in ["run-as-root-init: true", "privileged-init: true"] {
        compose(&[&site, &evil(granted, CLAIM, IN_LAB)]).unwrap();
    }
    compose(&[&container_of_site("restricted", CLAIM, ""), &evil("", CLAIM, IN_LAB)]).unwrap();
}

/// `evil` decides the content of the volume `work`, to which the site's lab writes.
#[test]
fn a_volume_that_others_write_to_is_not_made_the_storage_of_a_privileged_container() {
    let work = ", mounts: [{volume: work, path: /work}]";
    let site_with_work =
        site(NFS, work).replace("volumes: [", "volumes: [{name: work, source: {empty_dir: {}}}, ");
    let swapped = |source: &str| evil("", source, "").replace("name: mine", "name: work");
    let (field, message) = refused(&[&site_with_work, &swapped(NFS)]);
    assert_eq!(field, "volumes[0].source", "{message}");
    assert!(message.contains("as the volume `tools`"), "{message}");
    compose(&[&site_with_work, &swapped(NFS_READ_ONLY)]).unwrap();
    compose(&[&site_with_work, &swapped("empty_dir: {}")]).unwrap();

    let patch = |volumes: &str, mounted: &str| {
        format!(
            r#"{{policy: evil, grants: {{pod-patch: [spec]}}, customization: {{
                volumes: [{{name: mine, source: {{nfs: {{server: other.example.org, path: /x}}}}}}],
                pod_patch: '{{"spec":{{"volumes":[{volumes}]{mounted}}}}}'}}}}"#
        )
    };
    let of_lab = r#","containers":[{"name":"notebook","volumeMounts":[{"name":"mine","mountPath":"/m"}]}]"#;
    let added = r#"{"name":"late","nfs":{"server":"nfs.example.org","path":"/export"}}"#;
    for (volumes, mounted) in [
        (added, of_lab.replace("mine", "late")),
        // The patch is merged into the volume of the answer.
        (r#"{"name":"mine","nfs":{"server":"nfs.example.org","path":"/export/tools"}}"#, of_lab.to_owned()),
        (r#"{"name":"work","nfs":{"server":"nfs.example.org","path":"/"}}"#, String::new()),
    ] {
        let (field, message) = refused(&[&site_with_work, &patch(volumes, &mounted)]);
        assert_eq!(field, "pod_patch", "{message}");
    }
    let parent = r#"{"name":"late","nfs":{"server":"nfs.example.org","path":"/export/bin/../tools"}}"#;
    let (_, message) = refused(&[&site_with_work, &patch(parent, &of_lab.replace("mine", "late"))]);
    assert!(message.contains("`..`"), "{message}");
}

/// A policy without grants does not permit another one to write.
#[test]
fn policies_without_the_grant_do_not_let_each_other_write() {
    let other =
        evil("", CLAIM, IN_LAB.replace("/m}", "/other}").as_str()).replace("policy: evil", "policy: other");
    refused(&[&site(CLAIM, ""), &evil("", CLAIM, IN_LAB), &other]);
    let by_name = |policy: &str, path: &str| {
        format!("{{policy: {policy}, customization: {{mounts: [{{volume: tools, path: {path}}}]}}}}")
    };
    refused(&[&site(CLAIM, ""), &by_name("evil", "/a"), &by_name("other", "/b")]);
}

#[test]
fn storage_that_no_privileged_container_depends_on_is_shared_as_before() {
    let lab_writes = ", mounts: [{volume: tools, path: /home/ada}]";
    let read_only = ", mounts: [{volume: mine, path: /m, read_only: true}]";
    let of_nfs = |path: &str| format!("nfs: {{server: nfs.example.org, path: {path}}}");
    let config_map = "config_map: {name: scripts}";
    for (site, evil) in [
        // No container can write.
        (site(CLAIM, ""), evil("", CLAIM, read_only)),
        (site(CLAIM, ""), evil("", "claim: {claim_name: site-tools, read_only: true}", IN_LAB)),
        (site(NFS, ""), evil("", NFS_READ_ONLY, IN_INIT)),
        (site(CLAIM, ""), evil("", CLAIM, "")),
        (site(config_map, ""), evil("", config_map, IN_LAB)),
        // Other storage.
        (site(CLAIM, ""), evil("", "claim: {claim_name: site-tools-2}", IN_LAB)),
        (site(NFS, ""), evil("", &of_nfs("/export/tools-2"), IN_LAB)),
        (site(NFS, ""), evil("", "nfs: {server: nfs2.example.org, path: /export/tools}", IN_LAB)),
        (site("empty_dir: {}", ""), evil("", "empty_dir: {}", IN_LAB)),
        // The site lets the lab write to its volume anyway.
        (site(CLAIM, lab_writes), evil("", CLAIM, IN_LAB)),
        (site(NFS, lab_writes), evil("", &of_nfs("/export"), IN_LAB)),
        (site(NFS, lab_writes), evil("", &of_nfs("/export/tools/bin"), IN_INIT)),
        // No container is privileged.
        (container_of_site("restricted", NFS, ""), evil("", &of_nfs("/"), IN_INIT)),
    ] {
        for chain in [[&site, &evil], [&evil, &site]] {
            compose(&chain.map(String::as_str)).unwrap_or_else(|error| panic!("{chain:#?}: {error:?}"));
        }
    }
    // The lab may write to only a part of the storage that the privileged container mounts.
    let home = site(&of_nfs("/home"), ", mounts: [{volume: home, path: /home/ada}]").replace(
        "volumes: [",
        "volumes: [{name: home, source: {nfs: {server: nfs.example.org, path: /home/ada}}}, ",
    );
    compose(&[&home, &evil("", &of_nfs("/home/ada"), IN_LAB)]).unwrap();
    refused(&[&home, &evil("", &of_nfs("/home"), IN_LAB)]);
    refused(&[&home, &evil("", &of_nfs("/home/bob"), IN_LAB)]);
}
