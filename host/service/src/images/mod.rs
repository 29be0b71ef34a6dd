//! Asks registries for their images, and follows the images that nodes have.

mod nodes;
mod refresh;
mod stored;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wasmspawner_kubernetes::k8s::{Connection, PullPods};
use wasmspawner_spawner::Labs;
use wasmspawner_spawner::prepull::{LivePrepulls, Prepuller};

use crate::own_pod::own_pod;

pub use nodes::follow_nodes;
pub use refresh::keep_fresh;

/// Keeps the knowledge about images up to date and lets nodes pull images, until `stop`.
pub(crate) fn follow_images(
    background: &TaskTracker,
    labs: &Labs,
    connection: &Connection,
    prepulls: LivePrepulls,
    stop: &CancellationToken,
) {
    let context = Arc::clone(labs.context());
    let inventory = context.policies.inventory().clone();
    let kubernetes = context.config.current().kubernetes.clone();
    let pods = PullPods::new(
        connection,
        kubernetes.namespace.as_str(),
        kubernetes.instance(),
        kubernetes.request_timeout.unsigned_abs(),
    );
    let watches = connection.watches.clone();
    background.spawn(keep_fresh(context.config.follow(), inventory.clone(), stop.clone()));
    background.spawn(follow_nodes(watches, context.config.follow(), inventory, stop.clone()));
    background.spawn(Prepuller::new(context, pods, own_pod(), prepulls).run(stop.clone()));
}
