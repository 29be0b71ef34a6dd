//! Extractors of names in paths. The names are parsed before a handler runs.

use axum::extract::{FromRequestParts, RawPathParams};
use http::request::Parts;
use wasmspawner_core::names::lab::{JobId, LabKey};
use wasmspawner_core::names::spawn_key::SpawnKey;
use wasmspawner_core::names::{ChildName, InvalidName, ObjectName, ServerName, Username};

use crate::problem::kind::ProblemKind;
use crate::problem::{Detail, Problem};

/// The lab that `/labs/{username}` or `/labs/{username}/servers/{server}` names.
#[derive(Debug)]
pub(crate) struct LabPath(pub(crate) LabKey);

impl<S: Send + Sync> FromRequestParts<S> for LabPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let params = RawPathParams::from_request_parts(parts, state).await.map_err(|_| not_utf8())?;
        let param = |name| params.iter().find(|(key, _)| *key == name).map(|(_, value)| value);
        let user = Username::parse(param("username").unwrap_or_default());
        let server = match param("server") {
            Some("") => Err(InvalidName {
                kind: "server name",
                value: String::new(),
                problem: wasmspawner_core::names::Problem::Empty,
            }),
            Some(server) => ServerName::parse(server),
            None => Ok(ServerName::default()),
        };
        match (user, server) {
            (Ok(user), Ok(server)) => Ok(Self(LabKey::new(user, server))),
            (user, server) => {
                let invalid = |name: &str, error: InvalidName| {
                    Detail::new(["path", name], ProblemKind::InvalidName, error.to_string())
                };
                let wrong = user.err().map(|error| invalid("username", error)).into_iter();
                let wrong = wrong.chain(server.err().map(|error| invalid("server", error))).collect();
                Err(Problem::from_details(wrong))
            }
        }
    }
}

/// The operation that `/jobs/{job_id}` names.
#[derive(Debug)]
pub(crate) struct JobPath(pub(crate) JobId);

impl<S: Send + Sync> FromRequestParts<S> for JobPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let params = RawPathParams::from_request_parts(parts, state).await.map_err(|_| not_utf8())?;
        let id = params.iter().find(|(key, _)| *key == "job_id").map_or("", |(_, value)| value);
        id.parse().map(Self).map_err(|_| {
            let msg = "is not the id of an operation, such as 01a1fd9e-deb5-7652-a3d6-2d71fc436701";
            Problem::at(&["path", "job_id"], ProblemKind::InvalidName, msg)
        })
    }
}

/// The target that `/environments/targets/{target}` names.
#[derive(Debug)]
pub(crate) struct TargetPath(pub(crate) ObjectName);

impl<S: Send + Sync> FromRequestParts<S> for TargetPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        object_name(parts, state, "target").await.map(Self)
    }
}

/// The lab and the blueprint that `/blueprints/{username}/resolved/{blueprint}` names.
#[derive(Debug)]
pub(crate) struct BlueprintPath(pub(crate) LabKey, pub(crate) ObjectName);

impl<S: Send + Sync> FromRequestParts<S> for BlueprintPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let LabPath(lab) = LabPath::from_request_parts(parts, state).await?;
        object_name(parts, state, "blueprint").await.map(|name| Self(lab, name))
    }
}

async fn object_name<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    param: &'static str,
) -> Result<ObjectName, Problem> {
    let params = RawPathParams::from_request_parts(parts, state).await.map_err(|_| not_utf8())?;
    let name = params.iter().find(|(key, _)| *key == param).map_or("", |(_, value)| value);
    ObjectName::parse(name).map_err(|error| {
        let loc = ["path", param];
        Problem::at(&loc, ProblemKind::InvalidName, error.to_string())
    })
}

/// The kernel that `.../kernels/{kernel}` names, below the path of its lab.
#[derive(Debug)]
pub(crate) struct KernelPath(pub(crate) SpawnKey);

impl<S: Send + Sync> FromRequestParts<S> for KernelPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let (lab, name) = child(parts, state, "kernel").await?;
        Ok(Self(SpawnKey::kernel(lab, name)))
    }
}

/// The Dask pool that `.../dask-pools/{pool}` names, below the path of its lab.
#[derive(Debug)]
pub(crate) struct PoolPath(pub(crate) SpawnKey);

impl<S: Send + Sync> FromRequestParts<S> for PoolPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let (lab, name) = child(parts, state, "pool").await?;
        Ok(Self(SpawnKey::dask_pool(lab, name)))
    }
}

async fn child<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    param: &'static str,
) -> Result<(LabKey, ChildName), Problem> {
    let LabPath(lab) = LabPath::from_request_parts(parts, state).await?;
    let params = RawPathParams::from_request_parts(parts, state).await.map_err(|_| not_utf8())?;
    let name = params.iter().find(|(key, _)| *key == param).map(|(_, value)| value);
    let name = ChildName::parse(name.unwrap_or_default())
        .map_err(|error| Problem::at(&["path", param], ProblemKind::InvalidName, error.to_string()))?;
    Ok((lab, name))
}

fn not_utf8() -> Problem {
    let msg = "names in a path are percent-encoded UTF-8";
    Problem::at(&["path"], ProblemKind::NotUtf8, msg)
}
