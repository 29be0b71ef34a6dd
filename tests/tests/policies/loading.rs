//! From a file to a policy: compilation, checks, the cache, and refusals.

use std::time::Duration;

use serde_json::json;
use wasmspawner_core::config::HookName;
use wasmspawner_core::policy::form::FormContext;
use wasmspawner_policies::{
    CallErrorKind, Compiler, EngineOptions, FailedPolicies, LoadErrorKind, Policies, PolicySpec,
};
use wasmspawner_tests::guests;

use crate::{BINARY, SHORT, hostile, load, options, refused, site, spec, uncached, within};

#[tokio::test]
async fn a_file_that_is_not_a_policy_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.wasm");
    assert!(matches!(refused(PolicySpec::new("p", &file)).await, LoadErrorKind::Read { .. }));
    assert!(matches!(
        refused(PolicySpec::new("p", folder.path())).await,
        LoadErrorKind::AmbiguousDirectory { found: 0, .. }
    ));
    std::fs::write(&file, "(module)").unwrap();
    assert!(matches!(refused(PolicySpec::new("p", &file)).await, LoadErrorKind::NotWebAssembly));
    std::fs::write(&file, wat::parse_str("(module)").unwrap()).unwrap();
    assert!(matches!(refused(PolicySpec::new("p", &file)).await, LoadErrorKind::CoreModule));
    std::fs::write(&file, b"\0asm\x0d\0\x01\0\xff").unwrap();
    assert!(matches!(refused(PolicySpec::new("p", &file)).await, LoadErrorKind::Compile(_)));
    let small = EngineOptions { component_bytes: 4, ..uncached() };
    let error = Policies::load(vec![PolicySpec::new("p", &file)], small).await.err().unwrap();
    assert!(error.to_string().contains("the largest that is read has 4"), "{error}");
}

async fn compiled_by(compiler: Compiler, file: &std::path::Path) -> Result<(), LoadErrorKind> {
    let options = EngineOptions { compiler, ..EngineOptions::default() };
    match Policies::load(vec![PolicySpec::new("p", file)], options).await {
        Ok(_) => Ok(()),
        Err(FailedPolicies::Load(error)) => Err(error.kind),
        Err(other) => panic!("another error: {other}"),
    }
}

/// A component of one function. The larger the function is, the longer the compiler takes.
fn large_component(blocks: usize) -> Vec<u8> {
    let mut function = String::new();
    for at in 0..blocks {
        function += "local.get 0 i64.const 3 i64.mul local.get 1 i64.add local.tee 2 local.get 3 i64.xor local.set 0 ";
        function +=
            "local.get 2 i64.eqz if local.get 2 call 0 local.set 1 else local.get 0 call 0 local.set 3 end ";
        if at % 8 == 0 {
            function += "block loop local.get 0 i64.eqz br_if 1 local.get 3 local.set 2 br 0 end end ";
        }
    }
    let text = format!(
        "(component (core module (func $f (param i64) (result i64) (local i64 i64 i64 i64) {function} local.get 0)))"
    );
    wat::parse_str(text).unwrap()
}

#[tokio::test]
async fn a_component_that_exhausts_the_compiler_ends_nothing_but_its_own_compilation() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.wasm");
    std::fs::write(&file, large_component(50_000)).unwrap();
    let program = std::path::PathBuf::from(BINARY);
    let little_memory = Compiler { program: program.clone(), memory_bytes: 128 << 20, ..Compiler::default() };
    let kind = compiled_by(little_memory, &file).await.unwrap_err();
    assert!(matches!(kind, LoadErrorKind::CompileMemory(128)), "{kind}");
    let little_time =
        Compiler { program: program.clone(), timeout: Duration::from_millis(60), ..Compiler::default() };
    let kind = compiled_by(little_time, &file).await.unwrap_err();
    assert!(matches!(kind, LoadErrorKind::CompileTimeout(_)), "{kind}");
    let missing = Compiler { program: folder.path().join("none"), ..Compiler::default() };
    let kind = compiled_by(missing, &file).await.unwrap_err();
    assert!(matches!(&kind, LoadErrorKind::Engine(why) if why.contains("cannot be started")), "{kind}");
    let no_compiler = Compiler { program: "/bin/true".into(), ..Compiler::default() };
    let kind = compiled_by(no_compiler, &file).await.unwrap_err();
    assert!(matches!(kind, LoadErrorKind::Engine(_)), "what is no machine code is not run: {kind}");
}

#[tokio::test]
async fn a_hook_of_another_type_is_refused_at_load() {
    let kind = refused(PolicySpec::new("p", guests::component("guest-wrong-type"))).await;
    assert!(matches!(kind, LoadErrorKind::Trial(CallErrorKind::Incompatible(_))), "{kind}");
}

#[tokio::test]
async fn foreign_imports_are_refused_by_name() {
    let kind = refused(PolicySpec::new("p", guests::component("guest-foreign-import"))).await;
    assert!(matches!(&kind, LoadErrorKind::Import(name) if name == "acme:greedy/disk@1.0.0"), "{kind}");
}

#[tokio::test]
async fn all_errors_of_a_policy_configuration_are_reported() {
    let kind = refused(spec("p", "policy-default", json!({"sizes": 1, "imags": []}))).await;
    let LoadErrorKind::Config(problems) = kind else { panic!("{kind}") };
    let fields: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(fields, ["/sizes", "/imags"]);
    assert!(matches!(
        refused(within(SHORT, hostile("loop-at-load"))).await,
        LoadErrorKind::Trial(CallErrorKind::Deadline(SHORT))
    ));
}

#[tokio::test]
async fn a_policy_with_another_digest_than_the_pinned_one_is_refused() {
    let pinned = |digest: &str| PolicySpec { digest: Some(digest.parse().unwrap()), ..site() };
    let wrong = format!("sha256:{}", "0".repeat(64));
    assert!(matches!(refused(pinned(&wrong)).await, LoadErrorKind::DigestMismatch { .. }));
    let right = load(vec![site()]).await.loaded()[0].digest.to_string();
    assert_eq!(load(vec![pinned(&right)]).await.loaded()[0].digest.to_string(), right);
}

#[tokio::test]
async fn two_policies_of_the_same_name_are_refused() {
    let error = Policies::load(vec![site(), site()], options()).await.err().unwrap();
    assert_eq!(
        error.to_string(),
        "policy `site`: the name is taken by another policy; give each its own `name`"
    );
}

#[tokio::test]
async fn a_failed_reload_keeps_the_old_policy_and_its_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(guests::component("policy-default"), folder.path().join("site.wasm")).unwrap();
    let policies = load(vec![PolicySpec::new("site", folder.path())]).await;
    std::fs::write(folder.path().join("site.wasm"), "broken").unwrap();
    policies.reload().await.unwrap_err();
    assert!(policies.render_form(&FormContext::default()).await.unwrap().is_some());
    assert!(policies.loaded()[0].last_error.as_ref().unwrap().starts_with("not reloaded: "));

    std::fs::copy(guests::component("guest-hostile"), folder.path().join("site.wasm")).unwrap();
    policies.reload().await.unwrap();
    assert_eq!(policies.loaded()[0].title, "hostile");
    assert_eq!(policies.loaded()[0].last_error, None);
}

#[tokio::test]
async fn compiled_policies_are_cached_in_a_private_directory() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let options = || EngineOptions { cache: Some(cache.clone()), ..uncached() };
    Policies::load(vec![site()], options()).await.unwrap();
    let files: Vec<_> = cache.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 2, "the component, and its copy that has read the configuration");
    assert_eq!(cache.metadata().unwrap().permissions().mode() & 0o777, 0o700);

    // A second start uses the cache; a damaged file in it is replaced.
    let policies = Policies::load(vec![site()], options()).await.unwrap();
    assert!(policies.render_form(&FormContext::default()).await.unwrap().is_some());
    for file in &files {
        std::fs::write(file, "damaged").unwrap();
        let policies = Policies::load(vec![site()], options()).await.unwrap();
        assert!(policies.loaded()[0].preparation.prepared);
        assert!(file.metadata().unwrap().len() > 100_000);
    }

    // Files that nobody has compiled for a long time are removed, and no others.
    let old = std::time::SystemTime::now() - Duration::from_hours(100 * 24);
    for name in ["old.cwasm", "old.txt"] {
        std::fs::File::create(cache.join(name)).unwrap().set_modified(old).unwrap();
    }
    Policies::load(vec![site()], options()).await.unwrap();
    assert!(!cache.join("old.cwasm").exists() && cache.join("old.txt").exists());
    assert!(files.iter().all(|file| file.exists()));

    std::fs::set_permissions(&cache, std::fs::Permissions::from_mode(0o777)).unwrap();
    let error = Policies::load(vec![site()], options()).await.err().unwrap();
    assert!(error.to_string().contains("0700"), "{error}");
}

/// A build that forgot to export the hook would allow everything.
#[tokio::test]
async fn a_component_without_a_required_hook_is_refused() {
    let door = |requires: &[HookName]| PolicySpec {
        requires: requires.iter().copied().collect(),
        ..spec("door", "policy-deny-group", json!({ "deny": ["guests"] }))
    };
    load(vec![door(&[HookName::Authorize])]).await;
    let kind = refused(door(&[HookName::Authorize, HookName::Quota])).await;
    assert_eq!(
        kind.to_string(),
        "does not export `quota`, which `requires` names; it exports config, prepare, authorize. Export it in the \
         policy, or change `requires`"
    );
}
