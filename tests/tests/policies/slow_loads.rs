//! Events while a policy is being loaded, which may take long.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use wasmspawner_policies::Compiler;

use super::*;

/// A compiler that waits for a signal before it begins.
struct SlowCompiler {
    folder: tempfile::TempDir,
}

impl SlowCompiler {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (begun, go) = (folder.path().join("begun"), folder.path().join("go"));
        let script = format!(
            "#!/bin/sh\n: > {begun}\nwhile [ ! -e {go} ]; do /bin/sleep 0.02; done\nexec {BINARY} \"$@\"\n",
            begun = begun.display(),
            go = go.display(),
        );
        let program = folder.path().join("compiler");
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let compiler = Self { folder };
        compiler.go();
        compiler
    }

    fn options(&self) -> EngineOptions {
        let program = self.folder.path().join("compiler");
        EngineOptions { compiler: Compiler { program, ..Compiler::default() }, ..uncached() }
    }

    fn go(&self) {
        std::fs::write(self.folder.path().join("go"), "").unwrap();
    }

    fn wait(&self) {
        for name in ["go", "begun"] {
            let _ = std::fs::remove_file(self.folder.path().join(name));
        }
    }

    async fn begun(&self) {
        let begun = self.folder.path().join("begun");
        let mut again = tokio::time::interval(Duration::from_millis(10));
        let waiting = async {
            while !begun.exists() {
                again.tick().await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), waiting).await.unwrap();
    }
}

fn with_raw_html(raw_html: bool) -> PolicySpec {
    let mut spec = hostile("data");
    spec.grants.raw_html = raw_html;
    spec
}

/// One administrator removes a grant, and another one reloads all policies meanwhile.
#[tokio::test]
async fn a_reload_does_not_bring_back_a_grant() {
    let compiler = SlowCompiler::new();
    let policies = Policies::load(vec![with_raw_html(true)], compiler.options()).await.unwrap();
    compiler.wait();
    let task = |policies: &Policies| {
        let policies = policies.clone();
        async move { policies.replace(vec![with_raw_html(false)]).await }
    };
    let revoke = tokio::spawn(task(&policies));
    compiler.begun().await;
    let reload = tokio::spawn({
        let policies = policies.clone();
        async move { policies.reload().await }
    });
    tokio::task::yield_now().await;
    compiler.go();
    revoke.await.unwrap().unwrap();
    reload.await.unwrap().unwrap();
    assert!(!policies.spec(&"evil".into()).unwrap().grants.raw_html);
}

/// A client that closes its connection ends its request.
#[tokio::test]
async fn a_load_that_is_given_up_leaves_the_change_to_be_found() {
    let compiler = SlowCompiler::new();
    let folder = tempfile::tempdir().unwrap();
    let file: PathBuf = folder.path().join("site.wasm");
    std::fs::copy(guests::component("guest-hostile"), &file).unwrap();
    let spec = PolicySpec::new("site", &file);
    let policies = Policies::load(vec![spec.clone()], compiler.options()).await.unwrap();
    assert!(!policies.files_have_changed().await);
    std::fs::copy(guests::component("policy-deny-group"), &file).unwrap();
    compiler.wait();
    let given_up = tokio::spawn({
        let policies = policies.clone();
        async move { policies.replace(vec![spec]).await }
    });
    compiler.begun().await;
    given_up.abort();
    let _ = given_up.await;
    assert!([policies.files_have_changed().await, policies.files_have_changed().await].contains(&true));
}

#[tokio::test]
async fn a_load_asks_again_while_others_have_all_slots() {
    let (heard, options) = (Arc::new(Mutex::new(BTreeSet::new())), options());
    let listener = Arc::clone(&heard);
    let on_call = move |record: &wasmspawner_policies::CallRecord<'_>| {
        listener.lock().unwrap().insert((record.policy.to_string(), record.outcome));
    };
    let wait = Duration::from_millis(20);
    let options = EngineOptions { slots: 1, slot_wait: wait, on_call: Arc::new(on_call), ..options };
    let mut slow = hostile("sleep");
    slow.limits.deadline_ms = 1_000;
    let policies = Policies::load(vec![slow.clone()], options).await.unwrap();
    let request = LabRequest::default();
    let (answer, loaded) = tokio::join!(policies.customize(&request), policies.replace(vec![slow, site()]));
    assert!(answer.is_err());
    loaded.unwrap();
    assert!(heard.lock().unwrap().iter().any(|(_, outcome)| *outcome == "overloaded"), "{heard:?}");
    assert_eq!(policies.loaded().len(), 2);
}
