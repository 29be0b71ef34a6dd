//! The time until labs run again that were stopped a moment ago.

use kube::api::{DeleteParams, ListParams};
use wasmspawner_tests::kubernetes::records;

use crate::cluster::RealCluster;
use crate::rounds::median;
use crate::{site, spawns};

const ROUNDS: usize = 3;

/// Starts this number of labs, stops them, and starts them again at once: with namespaces that are kept, and with such that
/// are deleted with the lab. Prints the times compared with those of the first start.
pub(crate) async fn measure(labs: usize) -> anyhow::Result<()> {
    let real = RealCluster::enter().await?;
    println!("{labs} labs that are started again on the real control plane, medians of {ROUNDS} rounds");
    for (name, kept) in [("namespaces are kept", "10m"), ("namespaces are deleted", "0s")] {
        let (client, namespace) = (real.cluster.client.clone(), &real.cluster.namespace);
        let instance = format!("{namespace}-{kept}");
        let mut service = site::on_cluster(&real.kubeconfig()?, namespace, &instance, |config| {
            config["kubernetes"]["delete_namespaces_after"] = kept.into();
        })?;
        service.run().await?;
        let admin = service.admin()?;
        let (mut first, mut again) = (Vec::new(), Vec::new());
        // The first round opens connections and warms up; it is not counted.
        for round in 0..=ROUNDS {
            let started = spawns::run(&admin, labs).await?;
            spawns::stop_all(&admin, labs).await?;
            let restarted = spawns::run(&admin, labs).await?;
            spawns::stop_all(&admin, labs).await?;
            if round > 0 {
                first.push(started);
                again.push(restarted);
            }
            records(client.clone(), namespace)
                .delete_collection(&DeleteParams::default(), &ListParams::default())
                .await?;
            real.cleaned_up().await?;
        }
        let (first, again) = (median(&first), median(&again));
        println!("{name:24} first {first:6.2} s   again {again:6.2} s   ({:.2}x)", again / first);
    }
    println!();
    real.leave().await
}
