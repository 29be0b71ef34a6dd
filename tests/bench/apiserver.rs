//! Benchmark of the embedded API server: many clients create, read, change and watch pods in the same process.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and ends where it fails")]

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams, WatchParams};
use serde_json::json;
use std::pin::pin;
use std::time::Instant;
use wasmspawner_embedded::apiserver::{ApiServer, Options};

const PODS: u32 = 2000;
const AT_ONCE: usize = 200;
const WATCHERS: usize = 20;

fn pod(i: u32) -> Pod {
    serde_json::from_value(
        json!({"metadata": {"name": format!("lab-{i}"), "labels": {"app": "lab"}}, "spec": {
        "containers": [{"name": "notebook", "image": "i:1", "env": [{"name": "A", "value": "b"}],
            "ports": [{"containerPort": 8888}], "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}],
        "volumes": [{"name": "home", "emptyDir": {}}]}}),
    )
    .unwrap()
}

fn print_rate(what: &str, count: usize, since: Instant) {
    let seconds = since.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    let rate = count as f64 / seconds;
    println!("{what:<40} {count:>8} in {seconds:>6.2} s = {rate:>9.0}/s");
}

async fn measure(title: &str, options: Options) {
    println!("{title}");
    let server = ApiServer::open(options).unwrap();
    let pods: Api<Pod> = Api::namespaced(server.client(), "default");
    let watchers: Vec<_> = (0..WATCHERS)
        .map(|_| {
            // A separate connection, as another client has.
            let pods: Api<Pod> = Api::namespaced(server.client(), "default");
            tokio::spawn(async move {
                let mut events = pin!(pods.watch(&WatchParams::default(), "0").await.unwrap());
                for _ in 0..2 * PODS {
                    events.next().await.unwrap().unwrap();
                }
            })
        })
        .collect();
    let begun = Instant::now();
    let create = async |i| pods.create(&PostParams::default(), &pod(i)).await.map(|_| ());
    stream::iter(0..PODS).map(create).buffer_unordered(AT_ONCE).try_collect::<()>().await.unwrap();
    print_rate("pods made", PODS as usize, begun);
    let status = Patch::Merge(json!({"status": {"phase": "Running", "podIP": "127.1.2.3"}}));
    let phase = Instant::now();
    let run =
        async |i| pods.patch_status(&format!("lab-{i}"), &PatchParams::default(), &status).await.map(|_| ());
    stream::iter(0..PODS).map(run).buffer_unordered(AT_ONCE).try_collect::<()>().await.unwrap();
    print_rate("statuses changed", PODS as usize, phase);
    for watcher in watchers {
        watcher.await.unwrap();
    }
    print_rate("events sent to 20 watchers meanwhile", 2 * PODS as usize * WATCHERS, begun);
    let lists = Instant::now();
    for _ in 0..5 {
        pods.list(&ListParams::default()).await.unwrap();
    }
    print_rate("objects listed, and read by the client", 5 * PODS as usize, lists);
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let window = Options { watch_window: 10_000, ..Options::default() };
        measure("in memory", window.clone()).await;
        let directory = tempfile::tempdir().unwrap();
        measure("on disk", Options { state: Some(directory.path().to_owned()), ..window }).await;
    });
}
