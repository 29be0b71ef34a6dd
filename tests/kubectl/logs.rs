//! `kubectl logs`.

use crate::shell::Shell;
use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream;
use serde_json::json;
use std::sync::Arc;
use wasmspawner_embedded::apiserver::{LogError, LogRequest, LogStream, PodLogs};

/// Logs that consist of the request's parameters, in two pieces.
struct Echo;

impl PodLogs for Echo {
    fn open(&self, request: LogRequest) -> BoxFuture<'_, Result<LogStream, LogError>> {
        Box::pin(async move {
            if request.previous {
                return Err(LogError::NotFound("there was no previous run".to_owned()));
            }
            let output = format!(
                "{}/{}/{} follow={} tail={:?}\n",
                request.namespace, request.pod, request.container, request.follow, request.tail_lines
            );
            let pieces = [Ok(Bytes::from(output)), Ok(Bytes::from_static(b"the end\n"))];
            Ok(stream::iter(pieces).boxed())
        })
    }
}

#[tokio::test]
async fn logs_are_streamed() {
    let Some(shell) = Shell::embedded(Some(Arc::new(Echo))).await else { return };
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lab"}, "spec": {
        "containers": [{"name": "notebook", "image": "i:1"}]}});
    shell.with_file("create", &pod).await;
    let output = shell.ok("logs lab --tail=5").await;
    let lab = format!("{}/lab/notebook", shell.namespace);
    assert_eq!(output.out, format!("{lab} follow=false tail=Some(5)\nthe end\n"));
    let output = shell.ok("logs -f lab -c notebook").await;
    assert_eq!(output.out, format!("{lab} follow=true tail=None\nthe end\n"));
    let output = shell.run("logs lab -c nosuch").await;
    assert!(!output.success && output.err.contains("nosuch"), "{output:?}");
    let output = shell.run("logs lab --previous").await;
    assert!(!output.success && output.err.contains("no previous run"), "{output:?}");
}
