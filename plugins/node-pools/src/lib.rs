//! Pools of nodes. The labs of each group run on its own nodes, which keep other pods away.

use wasmspawner_sdk::pod::{AffinityPreset, Customization, TaintEffect, Toleration, TolerationOperator};
use wasmspawner_sdk::{Error, Info, Options, Pair, Policy, Section, User, export, hooks};

/// The pools. The first one for the user applies.
pub struct NodePools {
    label: String,
    pools: Vec<Pool>,
}

struct Pool {
    /// The value of the label, and of the taint.
    name: String,
    /// The groups whose labs run in the pool; if empty, everybody's do.
    groups: Vec<String>,
    tainted: bool,
}

impl Pool {
    fn read(entry: &mut Section<'_>) -> Self {
        let tainted: Option<bool> = entry.optional("tainted");
        Self {
            name: entry.required("name"),
            groups: entry.or_default("groups"),
            tainted: tainted.unwrap_or(true),
        }
    }
}

impl Policy for NodePools {
    fn info() -> Info {
        Info {
            name: "node-pools".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            description: "The labs of each group on its own nodes".into(),
        }
    }

    fn from_config(config: &mut Section<'_>) -> Self {
        Self { label: config.required("label"), pools: config.list("pools", Pool::read) }
    }
}

impl hooks::BuildPod for NodePools {
    fn customize(&self, user: &User, _server: &str, _options: &Options) -> Result<Customization, Error> {
        let for_user = |pool: &&Pool| pool.groups.is_empty() || user.is_in_any(&pool.groups);
        let Some(pool) = self.pools.iter().find(for_user) else { return Ok(Customization::default()) };
        let toleration = Toleration {
            key: Some(self.label.clone()),
            operator: TolerationOperator::Equal,
            value: Some(pool.name.clone()),
            effect: Some(TaintEffect::NoSchedule),
            seconds: None,
        };
        Ok(Customization {
            node_selector: vec![Pair::new(&self.label, &pool.name)],
            tolerations: pool.tainted.then_some(toleration).into_iter().collect(),
            // Nodes without labs can be removed.
            affinity: Some(AffinityPreset::Pack),
            ..Customization::default()
        })
    }
}

export!(NodePools: build_pod);

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wasmspawner_sdk::testing::TestKit;

    use super::*;

    #[test]
    fn a_lab_is_on_the_nodes_of_its_user_s_first_pool() {
        let pools = json!([{"name": "large", "groups": ["staff"]}, {"name": "usual", "tainted": false}]);
        let policy =
            TestKit::<NodePools>::new(&json!({"label": "example.org/pool", "pools": pools})).unwrap();
        let place = |user: &User| {
            let lab = policy.customize(user, &json!({})).unwrap();
            (lab.node_selector[0].value.clone(), lab.tolerations.len())
        };
        assert_eq!(place(&User::named("ada").in_group("staff")), ("large".to_owned(), 1));
        assert_eq!(place(&User::named("eve")), ("usual".to_owned(), 0));
    }

    #[test]
    fn who_has_no_pool_is_placed_anywhere() {
        let pools = json!([{"name": "large", "groups": ["staff"]}]);
        let policy = TestKit::<NodePools>::new(&json!({"label": "pool", "pools": pools})).unwrap();
        assert_eq!(policy.customize(&User::named("eve"), &json!({})).unwrap(), Customization::default());
    }
}
