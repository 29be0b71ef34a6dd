//! One watch for all pods. It starts a task for each pod of this node and passes changes on to it.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::runtime::{WatchStreamExt, watcher};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::node::{Node, NodeRuntime};
use super::pod::{Observed, live};
use super::process::kill_pod;
use super::{OnShutdown, volume};

/// The time limit for pods to end when the kubelet ends: their grace period, and the requests after it.
const SHUTDOWN: Duration = Duration::from_secs(15);

/// Runs the tasks of all pods until the shutdown.
pub(crate) async fn watch_pods(node: Arc<Node>, shutdown: CancellationToken) {
    let api: Api<Pod> = Api::all(node.client.clone());
    let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
    let (tasks, seen) = (JoinSet::new(), HashMap::new());
    let mut pods = Pods { node, shutdown: shutdown.clone(), tasks, seen, first: true };
    let mut listed = Vec::new();
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            Some(ended) = pods.tasks.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a pod's task has died");
                }
                continue;
            }
            () = shutdown.cancelled() => break,
        };
        match event {
            Some(Ok(watcher::Event::Apply(pod))) => pods.observe(pod),
            Some(Ok(watcher::Event::Delete(pod))) => pods.mark_gone(uid(&pod), Some(pod.clone())),
            Some(Ok(watcher::Event::Init)) => listed.clear(),
            Some(Ok(watcher::Event::InitApply(pod))) => listed.push(pod),
            Some(Ok(watcher::Event::InitDone)) => pods.relist(std::mem::take(&mut listed)),
            Some(Err(error)) => tracing::warn!(%error, "the watch of pods failed, it goes on"),
            None => break,
        }
    }
    pods.end().await;
}

/// The pods that have a task.
struct Pods {
    node: Arc<Node>,
    shutdown: CancellationToken,
    tasks: JoinSet<()>,
    seen: HashMap<String, watch::Sender<Observed>>,
    first: bool,
}

impl Pods {
    /// Processes a complete list. Pods that are not in it are gone.
    fn relist(&mut self, listed: Vec<Pod>) {
        // Addresses in use are restored before new ones are assigned.
        for pod in listed.iter().filter(|pod| self.is_ours(pod)) {
            let address =
                pod.status.as_ref().and_then(|status| status.pod_ip.as_deref()?.parse::<Ipv4Addr>().ok());
            if let Some(address) = address {
                self.node.addresses().restore(uid(pod), address);
            }
        }
        if std::mem::take(&mut self.first) {
            self.remove_unlisted(&listed);
        }
        let present: std::collections::HashSet<_> = listed.iter().map(|pod| uid(pod).to_owned()).collect();
        let vanished: Vec<_> = self.seen.keys().filter(|uid| !present.contains(*uid)).cloned().collect();
        for uid in vanished {
            self.mark_gone(&uid, None);
        }
        for pod in listed {
            self.observe(pod);
        }
    }

    fn is_ours(&self, pod: &Pod) -> bool {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        node.is_none_or(|node| node == self.node.name)
    }

    fn observe(&mut self, pod: Pod) {
        let uid = uid(&pod).to_owned();
        if let Some(observed) = self.seen.get(&uid) {
            observed.send_replace(Observed { pod: Arc::new(pod), gone: false });
            return;
        }
        if !self.is_ours(&pod) {
            return;
        }
        let (sender, observed) = watch::channel(Observed { pod: Arc::new(pod), gone: false });
        self.seen.insert(uid.clone(), sender);
        let (node, shutdown) = (self.node.clone(), self.shutdown.clone());
        self.tasks.spawn(async move {
            Box::pin(live(node.clone(), observed.clone(), shutdown.clone())).await;
            if !shutdown.is_cancelled() || observed.borrow().gone {
                clean_up(&node, &uid);
            }
        });
    }

    fn mark_gone(&mut self, uid: &str, last: Option<Pod>) {
        if let Some(observed) = self.seen.remove(uid) {
            observed.send_modify(|observed| {
                if let Some(pod) = last {
                    observed.pod = Arc::new(pod);
                }
                observed.gone = true;
            });
        }
    }

    /// Waits for all tasks. They end with the shutdown.
    async fn end(&mut self) {
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN, ended).await.is_ok() {
            return;
        }
        tracing::warn!("some pods did not end in time");
        self.tasks.shutdown().await;
        if let (NodeRuntime::Process { state, .. }, OnShutdown::Kill) =
            (&self.node.runtime, self.node.on_shutdown)
        {
            for (uid, directory) in state.all_pods().unwrap_or_default() {
                let _ = kill_pod(&uid, &directory);
            }
        }
    }

    /// Removes the directories of pods that were deleted while this program did not run, and kills their processes.
    fn remove_unlisted(&self, listed: &[Pod]) {
        let NodeRuntime::Process { state, .. } = &self.node.runtime else { return };
        for (uid_on_disk, directory) in state.all_pods().unwrap_or_default() {
            if listed.iter().any(|pod| uid(pod) == uid_on_disk) {
                continue;
            }
            let _ = kill_pod(&uid_on_disk, &directory);
            remove(directory.path());
        }
    }
}

/// Releases the resources of a pod.
fn clean_up(node: &Node, uid: &str) {
    node.addresses().free(uid);
    if let NodeRuntime::Process { state, .. } = &node.runtime {
        remove(state.pod(uid).path());
    }
}

fn remove(directory: &std::path::Path) {
    if let Err(error) = volume::remove(directory) {
        tracing::warn!(directory = %directory.display(), %error, "a pod's directory was not removed");
    }
}

fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}
