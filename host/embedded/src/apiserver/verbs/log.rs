//! `GET .../pods/{name}/log`: the output of a container.

use crate::apiserver::call::Call;
use crate::apiserver::failure::Failure;
use crate::apiserver::logs::{LogError, LogRequest};
use crate::apiserver::metadata::{self, Document};
use crate::apiserver::present::{self, Body};
use futures::StreamExt;
use http::Response;
use serde_json::Value;

pub(crate) async fn log(call: &Call, name: &str) -> Result<Response<Body>, Failure> {
    let key = call.key(name);
    let pod = call.server.store.get(&call.resource.collection, &key);
    let pod = pod.ok_or_else(|| call.resource.not_found(name))?;
    let query = &call.query;
    let request = LogRequest {
        namespace: key.namespace,
        pod: key.name,
        container: container(pod.document(), query.text("container"))?,
        follow: query.flag("follow"),
        previous: query.flag("previous"),
        tail_lines: query.value("tailLines")?,
    };
    let logs = call.server.pod_logs();
    let logs = logs.ok_or_else(|| Failure::not_implemented("no kubelet serves the logs of pods"))?;
    let stream = logs.open(request).await.map_err(|error| match error {
        LogError::NotFound(why) | LogError::NotStarted(why) => Failure::bad_request(why),
        LogError::Io(error) => {
            tracing::warn!(pod = name, %error, "a log cannot be read");
            Failure::internal("the log cannot be read")
        }
    })?;
    let shutdown = call.shutdown.clone();
    Ok(present::stream("text/plain", stream.take_until(shutdown.cancelled_owned())))
}

/// Returns the requested container. The request need not name it if there is only one.
fn container(pod: &Document, asked: Option<&str>) -> Result<String, Failure> {
    let pod_name = metadata::name(pod);
    let names = |list: &str| {
        let containers = pod.get("spec").and_then(|spec| spec.get(list)).and_then(Value::as_array);
        containers.into_iter().flatten().filter_map(|c| c.get("name").and_then(Value::as_str))
    };
    let all = || names("containers").chain(names("initContainers"));
    match (asked, names("containers").collect::<Vec<_>>().as_slice()) {
        (Some(asked), _) if all().any(|name| name == asked) => Ok(asked.to_owned()),
        (Some(asked), _) => {
            Err(Failure::bad_request(format!("container {asked} is not valid for pod {pod_name}")))
        }
        (None, [only]) => Ok((*only).to_owned()),
        (None, several) => Err(Failure::bad_request(format!(
            "a container name must be specified for pod {pod_name}, choose one of: [{}]",
            several.join(" ")
        ))),
    }
}
