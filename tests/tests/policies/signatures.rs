//! Only artifacts that `cosign` has signed are loaded. `tests/signatures` has written the table with cosign itself, and
//! tests the same against a real registry.

use std::path::Path;

use serde_json::{Value, json};
use wasmspawner_core::config::{OnFailure, PublicKeySource};
use wasmspawner_core::values::digest::Digest;
use wasmspawner_policies::{ComponentSource, FailedPolicies, LoadErrorKind, Policies, PolicySpec};
use wasmspawner_registry::RegistryError;

use crate::signed_registry::{COMPONENT, Site, Stored, state, tables};
use crate::{options, published};

const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

#[tokio::test]
async fn what_a_key_of_the_configuration_has_signed_is_loaded() {
    for (name, keys, key) in [
        ("bundle", &["site"][..], "signed_by[0]"),
        ("before-3", &["other", "site"], "signed_by[1]"),
        ("rsa", &["rsa"], "signed_by[0]"),
    ] {
        let site = Site::with(state(name)).await;
        let policies = site.load(":1", keys).await.unwrap();
        assert_eq!(policies.loaded()[0].signed_by.as_deref(), Some(key), "{name}");
    }
    // A registry that knows which artifacts refer to another one needs no tag.
    let mut newer = state("bundle");
    newer.referrers = newer.manifests.remove(&tables().artifact.to_string().replace(':', "-"));
    assert!(newer.referrers.is_some());
    Site::with(newer).await.load(":1", &["site"]).await.unwrap();
}

#[tokio::test]
async fn what_no_key_of_the_configuration_has_signed_is_refused() {
    for (name, told) in [
        ("unsigned", "it is not signed, and `signed_by` wants a signature"),
        ("other", "its signature is by no key of `signed_by`, or for something else"),
        ("attested", "it is not signed, and `signed_by` wants a signature"),
    ] {
        let site = Site::with(state(name)).await;
        let refusal = site.refusal(&["site", "rsa"]).await;
        let remedy = format!(
            "sign it with `cosign sign --key KEY {}/site/policy@{}`",
            site.address,
            tables().artifact
        );
        assert!(refusal.starts_with(told) && refusal.contains(&remedy), "{refusal}");
        let asked = site.registry.asked.lock().unwrap().clone();
        let component = Digest::sha256(COMPONENT).to_string();
        assert!(!asked.iter().any(|path| path.ends_with(&component)), "it is not even downloaded: {asked:?}");
    }
}

/// An attacker who may write to the registry has a new artifact, and signatures of the old one.
#[tokio::test]
async fn a_signature_of_one_artifact_is_none_of_another() {
    for name in ["bundle", "before-3"] {
        let mut stored = state(name);
        let old = tables().artifact;
        let mut manifest: Value = serde_json::from_str(&stored.manifests["1"]).unwrap();
        manifest["annotations"]["org.opencontainers.image.title"] = json!("another");
        let new = stored.add("1", &manifest.to_string());
        for ending in ["", ".sig"] {
            let tag = |digest: Digest| format!("sha256-{}{ending}", digest.hex());
            if let Some(signatures) = stored.manifests.get(&tag(old)).cloned() {
                stored.manifests.insert(tag(new), signatures);
            }
        }
        let site = Site::with(stored).await;
        assert!(site.refusal(&["site"]).await.contains("or for something else"), "{name}");
        // The attacker also writes the new digest into the signed part.
        site.change(|stored| {
            if name == "before-3" {
                let payload = stored.file("docker-manifest-digest");
                *payload = payload.replace(&old.hex(), &new.hex());
            } else {
                use base64::Engine as _;
                let base64 = base64::engine::general_purpose::STANDARD;
                let bundle = stored.file("dsseEnvelope");
                let mut changed: Value = serde_json::from_str(bundle).unwrap();
                let payload = &mut changed["dsseEnvelope"]["payload"];
                let statement = String::from_utf8(base64.decode(payload.as_str().unwrap()).unwrap()).unwrap();
                *payload = json!(base64.encode(statement.replace(&old.hex(), &new.hex())));
                *bundle = changed.to_string();
            }
            reseal(stored, new);
        });
        assert!(site.refusal(&["site"]).await.contains("or for something else"), "{name}");
    }
}

/// Gives changed files their new digests, and updates all references to them, so that only the signature is wrong.
fn reseal(stored: &mut Stored, artifact: Digest) {
    let mut renamed: Vec<(String, String)> = Vec::new();
    let files = std::mem::take(&mut stored.files);
    for (old, file) in files {
        let new = Digest::sha256(file.as_bytes()).to_string();
        renamed.push((old, new.clone()));
        stored.files.insert(new, file);
    }
    // Manifests refer to files, and lists of manifests refer to manifests.
    for _ in 0..2 {
        let manifests = std::mem::take(&mut stored.manifests);
        for (name, mut manifest) in manifests {
            for (old, new) in &renamed {
                manifest = manifest.replace(old, new);
            }
            let new = Digest::sha256(manifest.as_bytes()).to_string();
            let name = if name.starts_with("sha256:") && name != artifact.to_string() {
                renamed.push((name, new.clone()));
                new
            } else {
                name
            };
            stored.manifests.insert(name, manifest);
        }
    }
}

#[tokio::test]
async fn a_restart_verifies_again_what_was_kept() {
    let site = Site::with(state("bundle")).await;
    let pinned = format!("@{}", tables().artifact);
    site.load(":1", &["site"]).await.unwrap();
    site.load(&pinned, &["site"]).await.unwrap();
    site.asked();
    site.load(&pinned, &["site"]).await.unwrap();
    assert_eq!(site.asked(), 0, "what is pinned is asked once");

    // With another key, the kept signature is not enough, and the registry has no better one.
    assert!(matches!(site.load(&pinned, &["other"]).await, Err(LoadErrorKind::NotSigned(_))));
    site.server.abort();
    site.load(":1", &["site"]).await.unwrap();
    for name in [":1", &pinned] {
        // The registry may have a signature, but the registry itself is away.
        let refused = site.load(name, &["other"]).await;
        assert!(matches!(refused, Err(LoadErrorKind::Registry { error: RegistryError::Away { .. }, .. })));
    }
}

/// An operator who removes a key from the configuration no longer trusts anything that it has signed.
#[tokio::test]
async fn a_version_whose_key_is_trusted_no_more_answers_nowhere() {
    let site = Site::with(state("bundle")).await;
    let policy = |keys, config: &str| PolicySpec {
        on_failure: OnFailure::LastGood,
        config: json!({ "site": config }),
        ..site.policy(":1", keys)
    };
    let load = async |policy| Policies::load(vec![policy], site.options()).await.unwrap();
    for (keys, kept) in [(&["rsa", "site"][..], true), (&["rsa"], false)] {
        site.change(|stored| *stored = state("bundle"));
        let policies = load(policy(&["site"], "before")).await;
        site.change(|stored| *stored = state("rsa"));
        policies.replace(vec![policy(keys, "after")]).await.unwrap();
        assert_eq!(policies.loaded()[0].last_good.is_some(), kept, "while it runs");

        site.change(|stored| *stored = state("bundle"));
        load(policy(&["site"], "before")).await;
        site.change(|stored| *stored = state("rsa"));
        assert_eq!(
            load(policy(keys, "after")).await.loaded()[0].last_good.is_some(),
            kept,
            "after a restart"
        );
    }

    // The key is removed only later, when the version has been recorded once more with the next one.
    for by_restart in [true, false] {
        site.change(|stored| *stored = state("bundle"));
        load(policy(&["site"], "before")).await;
        site.change(|stored| *stored = state("rsa"));
        let policies = load(policy(&["rsa", "site"], "after")).await;
        let signer = policies.loaded().remove(0).last_good.unwrap().signed_by;
        assert_eq!(signer.as_deref(), Some("signed_by[1]"), "it is not the one of the present version");
        let without = policy(&["rsa"], "after");
        let policies = if by_restart {
            load(without).await
        } else {
            policies.replace(vec![without]).await.unwrap();
            policies
        };
        assert!(policies.loaded()[0].last_good.is_none());
    }
}

/// A signature shows that the owner of the key has made an artifact, but not its purpose. The documentation says so.
#[tokio::test]
async fn a_key_signs_whatever_its_owner_signs() {
    let site = Site::with(state("bundle")).await;
    let elsewhere = site.policy("-of-another-name:1", &["site"]);
    Policies::load(vec![elsewhere], site.options()).await.unwrap();
}

#[tokio::test]
async fn a_tag_that_moves_to_something_unsigned_changes_nothing() {
    let site = Site::with(state("bundle")).await;
    let policies = site.load(":1", &["site"]).await.unwrap();
    site.change(|stored| {
        let mut manifest: Value = serde_json::from_str(&stored.manifests["1"]).unwrap();
        manifest["annotations"] = json!({});
        stored.add("1", &manifest.to_string());
    });
    let error = policies.reload().await.unwrap_err();
    assert!(matches!(error.kind, LoadErrorKind::NotSigned(_)), "{error}");
    let loaded = &policies.loaded()[0];
    assert!(loaded.last_error.as_deref().unwrap().contains("it is not signed"), "{loaded:?}");
    assert_eq!(loaded.signed_by.as_deref(), Some("signed_by[0]"));

    // A candidate may replace its policy one day, so the same rule applies to it.
    let policy = PolicySpec {
        candidate: Some(Box::new(site.policy(":1", &["site"]))),
        ..site.policy(&format!("@{}", tables().artifact), &["site"])
    };
    let policies = Policies::load(vec![policy], site.options()).await.unwrap();
    let report = serde_json::to_value(&policies.loaded()[0].candidate).unwrap();
    assert!(report["error"].as_str().unwrap_or_default().contains("it is not signed"), "{report:#}");
}

/// Foreign content beside an artifact neither makes it valid nor prevents a good signature from being found.
#[tokio::test]
async fn what_is_no_signature_is_told_and_prevents_nothing() {
    let artifact = tables().artifact;
    let tag = artifact.to_string().replace(':', "-");
    for (spoil, told) in [
        (
            (|stored, tag| drop(stored.manifests.insert(tag.to_owned(), "<html>".to_owned()))) as Spoil,
            "what the registry has where signatures are stored is none",
        ),
        (
            |stored, _| *stored.file("dsseEnvelope") = "x".repeat(1 << 20),
            "it has 1048576 bytes; 262144 are allowed",
        ),
        (|stored, _| stored.file("dsseEnvelope").push(' '), "the registry has sent something else"),
        (|stored, _| stored.referrers = Some("<html>".to_owned()), ""),
    ] {
        let mut stored = state("bundle");
        spoil(&mut stored, &tag);
        if told.is_empty() {
            // The list under the tag is read instead.
            Site::with(stored).await.load(":1", &["site"]).await.unwrap();
            continue;
        }
        let refusal = Site::with(stored.clone()).await.refusal(&["site"]).await;
        assert!(
            refusal.starts_with("what may be a signature cannot be used: ") && refusal.contains(told),
            "{refusal}"
        );
        let older = state("before-3");
        stored.files.extend(older.files);
        let older_tag = format!("{tag}.sig");
        stored.manifests.insert(older_tag.clone(), older.manifests[&older_tag].clone());
        Site::with(stored).await.load(":1", &["site"]).await.unwrap();
    }
}

type Spoil = fn(&mut Stored, &str);

#[tokio::test]
async fn ten_thousand_signatures_keep_nobody_busy() {
    let mut stored = state("other");
    let mut manifests = stored.manifests.iter();
    let (bundle, _) = manifests.find(|(_, text)| text.contains("layers") && text.contains(BUNDLE)).unwrap();
    let bundle = bundle.clone();
    let refer = |more: Value| {
        let mut one = json!({ "digest": bundle, "artifactType": BUNDLE });
        one.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        one
    };
    stored.referrers = Some(json!({ "manifests": vec![refer(json!({})); 10_000] }).to_string());
    let site = Site::with(stored).await;
    site.refusal(&["site"]).await;
    assert!(site.asked() < 100);

    // Statements that declare themselves not to be signatures do not count, and are not read.
    let statement =
        refer(json!({ "annotations": { "dev.sigstore.bundle.predicateType": "https://spdx.dev/Document" } }));
    site.change(|stored| {
        let signed = state("bundle");
        let list: Value = serde_json::from_str(&signed.manifests[&tag()]).unwrap();
        let good = list["manifests"][0].clone();
        *stored = signed;
        let referrers = [vec![statement; 1_000], vec![good]].concat();
        stored.referrers = Some(json!({ "manifests": referrers }).to_string());
    });
    site.load(":1", &["site"]).await.unwrap();
    assert!(site.asked() < 100);
}

fn tag() -> String {
    tables().artifact.to_string().replace(':', "-")
}

fn refused_file(result: Result<Policies, FailedPolicies>) -> String {
    match result {
        Err(FailedPolicies::Load(error)) => error.to_string(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was loaded"),
    }
}

#[tokio::test]
async fn the_signature_of_a_file_is_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = |ending: &str| folder.path().join(format!("policy.wasm{ending}"));
    std::fs::write(file(""), COMPONENT).unwrap();
    let tables = tables();
    let spec = |source: &Path, key: &str| {
        let keys = vec![PublicKeySource::Pem(tables.keys[key].clone())];
        PolicySpec {
            source: ComponentSource::File(source.to_owned()),
            signed_by: Some(keys),
            ..published::spec()
        }
    };
    let load = async |source: &Path, key: &str| Policies::load(vec![spec(source, key)], options()).await;

    let unsigned = refused_file(load(&file(""), "site").await);
    let path = file("");
    let command = format!("`cosign sign-blob --key KEY --bundle {0}.sigstore.json {0}`", path.display());
    assert!(unsigned.contains("it is not signed") && unsigned.contains(&command), "{unsigned}");
    for (ending, signature) in &tables.file {
        std::fs::write(file(ending), signature).unwrap();
        for source in [&file(""), folder.path()] {
            load(source, "site").await.unwrap();
            assert!(refused_file(load(source, "other").await).contains("by no key of `signed_by`"));
        }
        std::fs::write(file(""), [COMPONENT, b"\0"].concat()).unwrap();
        assert!(refused_file(load(&file(""), "site").await).contains("or for something else"));
        std::fs::write(file(""), COMPONENT).unwrap();
        std::fs::remove_file(file(ending)).unwrap();
    }

    // A bundle in the format of cosign before version 3.
    let before = json!({ "base64Signature": tables.file[".sig"], "cert": "", "rekorBundle": null });
    std::fs::write(file(".sigstore.json"), before.to_string()).unwrap();
    load(&file(""), "site").await.unwrap();
    // A signature that cannot be read, or understood, is reported, and does not prevent another.
    std::fs::remove_file(file(".sigstore.json")).unwrap();
    for (text, problem) in [
        (Some("{}"), "policy.wasm.sigstore.json: it is no signature of a file that cosign has written"),
        (None, "policy.wasm.sigstore.json: it is a link that leads out of its folder"),
    ] {
        match text {
            Some(text) => std::fs::write(file(".sigstore.json"), text).unwrap(),
            None => std::os::unix::fs::symlink("/etc/hostname", file(".sigstore.json")).unwrap(),
        }
        let refused = refused_file(load(&file(""), "site").await);
        assert!(refused.contains(problem) && !refused.contains("it is not signed"), "{refused}");
        std::fs::write(file(".sig"), &tables.file[".sig"]).unwrap();
        load(&file(""), "site").await.unwrap();
        std::fs::remove_file(file(".sig")).unwrap();
        std::fs::remove_file(file(".sigstore.json")).unwrap();
    }

    // A key is read again with the component, so nothing is loaded with a key that was removed.
    std::fs::write(file(".sig"), &tables.file[".sig"]).unwrap();
    let key = folder.path().join("site.pub");
    std::fs::write(&key, &tables.keys["site"]).unwrap();
    let keys = Some(vec![PublicKeySource::File(key.clone())]);
    let policies =
        Policies::load(vec![PolicySpec { signed_by: keys, ..spec(&file(""), "site") }], options()).await;
    let policies = policies.unwrap();
    std::fs::write(&key, &tables.keys["other"]).unwrap();
    assert!(matches!(policies.reload().await.unwrap_err().kind, LoadErrorKind::NotSigned(_)));
    for (text, problem) in [
        ("", "has no public key in PEM"),
        ("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----", "has a private key"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "is no key of ECDSA"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n", "is not PEM"),
    ] {
        std::fs::write(&key, text).unwrap();
        let error = policies.reload().await.unwrap_err();
        assert!(matches!(error.kind, LoadErrorKind::WrongKey(_)), "{error}");
        assert!(error.to_string().contains(problem), "{text}: {error}");
    }
}
