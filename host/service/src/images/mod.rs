//! Asks registries for their images, and follows the images that nodes have.

mod nodes;
mod refresh;
mod stored;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wasmspawner_kubernetes::k8s::{Connection, PullPods};
use wasmspawner_spawner::Context;
use wasmspawner_spawner::prepull::{LivePrepulls, Prepuller};

use crate::own_pod::OwnPod;

pub use nodes::follow_nodes;
pub use refresh::keep_fresh;

/// Keeps the knowledge about images up to date, until `stop`.
pub(crate) fn follow_images(
    background: &TaskTracker,
    context: &Context,
    connection: &Connection,
    stop: &CancellationToken,
) {
    let inventory = context.policies.inventory().clone();
    let watches = connection.watches.clone();
    background.spawn(keep_fresh(context.config.follow(), inventory.clone(), stop.clone()));
    background.spawn(follow_nodes(watches, context.config.follow(), inventory, stop.clone()));
}

/// Lets nodes pull images in advance, until `stop`.
pub(crate) fn pull_images(
    background: &TaskTracker,
    context: &Arc<Context>,
    connection: &Connection,
    prepulls: LivePrepulls,
    stop: &CancellationToken,
) {
    let kubernetes = context.config.current().kubernetes.clone();
    let pods = PullPods::new(
        connection,
        kubernetes.namespace.as_str(),
        kubernetes.instance(),
        kubernetes.request_timeout.unsigned_abs(),
    );
    let owner = OwnPod::from_environment().map(OwnPod::owner_reference);
    background.spawn(Prepuller::new(Arc::clone(context), pods, owner, prepulls).run(stop.clone()));
}
