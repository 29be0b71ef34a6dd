//! The events and actions of the simulation.

use proptest::prelude::*;
use wasmspawner_core::lifecycle::stage::Stage;
use wasmspawner_core::lifecycle::{ClaimSizes, CreationNote};

#[derive(Debug, Clone)]
pub(crate) enum Act {
    Spawn,
    Stop,
    Decide(bool),
    /// The policies choose an environment.
    NeedEnvironment,
    /// The policies choose a lab that cannot have the namespace that was kept.
    NeedNamespace,
    /// Somebody else deletes the namespace that is kept.
    NamespaceGoes,
    FinishBind(bool),
    FinishCreate(bool),
    /// Something about a volume claim, at any time: the note may come late.
    Note(CreationNote),
    Show(Stage),
    PodGoes,
    RestGoes,
    Evict,
    Restart,
    StartChild,
    ChildrenGo,
    Wait(u16),
    BreakCluster(bool),
    BreakWatch(bool),
    ChainAnswer,
}

pub(crate) fn act() -> impl Strategy<Value = Act> {
    let stage = prop::sample::select(vec![
        Stage::Scheduling,
        Stage::Pulling,
        Stage::Initializing,
        Stage::Starting,
        Stage::Running,
        Stage::Stopped,
        Stage::Failed,
        Stage::Unknown,
    ]);
    prop_oneof![
        4 => Just(Act::Spawn),
        2 => Just(Act::Stop),
        4 => prop::bool::weighted(0.8).prop_map(Act::Decide),
        1 => Just(Act::NeedEnvironment),
        2 => Just(Act::NeedNamespace),
        1 => Just(Act::NamespaceGoes),
        2 => prop::bool::weighted(0.8).prop_map(Act::FinishBind),
        4 => prop::bool::weighted(0.8).prop_map(Act::FinishCreate),
        1 => note().prop_map(Act::Note),
        6 => Just(Act::ChainAnswer),
        6 => stage.prop_map(Act::Show),
        3 => Just(Act::PodGoes),
        3 => Just(Act::RestGoes),
        1 => Just(Act::Evict),
        1 => (0_u16..700).prop_map(Act::Wait),
        1 => Just(Act::Restart),
        2 => Just(Act::StartChild),
        2 => Just(Act::ChildrenGo),
        1 => any::<bool>().prop_map(Act::BreakCluster),
        1 => any::<bool>().prop_map(Act::BreakWatch),
    ]
}

fn note() -> impl Strategy<Value = CreationNote> {
    let name = || "claim-ada".to_owned();
    let sizes = ClaimSizes { name: name(), from: "1Gi".into(), to: "2Gi".into() };
    prop::sample::select(vec![
        CreationNote::WaitsForClaim { name: name(), kept_by: None },
        CreationNote::ClaimGone(name()),
        CreationNote::ClaimGrows(sizes.clone()),
        CreationNote::ClaimNotGrown(sizes, "a reason".into()),
    ])
}
