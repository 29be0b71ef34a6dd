//! Benchmark of a policy call: creating a fresh instance, the call, and conversion in both directions.
//!
//! `cargo bench -p wasmspawner-tests --bench policy_call [calls]`

use std::time::{Duration, Instant};

use wasmspawner_core::policy::form::FormContext;
use wasmspawner_core::policy::{Action, AuthorizeRequest, Group, LabRequest, Options, Subject, User};
use wasmspawner_core::users::quota::Usage;
use wasmspawner_policies::{Compiler, EngineOptions, Policies, PolicySpec};
use wasmspawner_tests::guests;

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (site, spawn) = runtime.block_on(measured())?;
    in_parallel(&site, &spawn)
}

async fn measured() -> anyhow::Result<(Policies, AuthorizeRequest)> {
    let calls = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(5000);
    let example = serde_json::from_str(include_str!("../../plugins/default/example.json"))?;
    let site = PolicySpec { config: example, ..PolicySpec::new("site", guests::component("policy-default")) };
    let door = PolicySpec {
        config: serde_json::json!({"deny": ["guests"]}),
        ..PolicySpec::new("door", guests::component("policy-deny-group"))
    };
    let program = env!("CARGO_BIN_EXE_wasmspawner-under-test").into();
    let compiler = Compiler { program, ..Compiler::default() };
    let options = EngineOptions { compiler, ..EngineOptions::default() };
    let door = Policies::load(vec![door], options.clone()).await?;
    let unprepared = EngineOptions { prepare: false, ..options.clone() };
    let (site, reference) =
        (Policies::load(vec![site.clone()], options).await?, Policies::load(vec![site], unprepared).await?);

    let user = ada();
    let context = FormContext { user: user.clone(), server: String::new() };
    let lab = LabRequest { user: user.clone(), ..LabRequest::default() };
    let spawn = AuthorizeRequest {
        action: Action::Spawn,
        user: user.clone(),
        server: String::new(),
        options: Options::new(),
        subject: Subject::default(),
    };
    measure!(calls, "deny-group authorize.decide", door.authorize(&spawn));
    for (name, site) in [("default", &site), ("unprepared", &reference)] {
        measure!(calls, &format!("{name} authorize.decide"), site.authorize(&spawn));
        measure!(
            calls,
            &format!("{name} quota.limits"),
            site.limits(&user, Usage::default(), &spawn.subject)
        );
        measure!(calls, &format!("{name} form.render"), site.render_form(&context));
        measure!(calls, &format!("{name} form.parse"), site.parse_submission(&Options::new(), &context));
        measure!(calls, &format!("{name} build-pod.customize"), site.build_pod(&lab));
        measure!(calls, &format!("{name} lab-server.decide"), site.lab_server(&lab));
    }
    Ok((site, spawn))
}

/// How many calls a second there are on one thread, and on two: the middle of several rounds, because another machine's work
/// on the same cores slows some of them.
#[expect(clippy::print_stdout, reason = "a benchmark talks to its reader")]
fn in_parallel(site: &Policies, request: &AuthorizeRequest) -> anyhow::Result<()> {
    let rounds =
        (0..9).map(|_| anyhow::Ok((calls_a_second(site, request, 1)?, calls_a_second(site, request, 2)?)));
    let mut rounds = rounds.collect::<anyhow::Result<Vec<_>>>()?;
    rounds.sort_by(|(one, two), (another_one, another_two)| {
        (two / one).total_cmp(&(another_two / another_one))
    });
    let (one, two) = rounds[rounds.len() / 2];
    let ratios: Vec<_> = rounds.iter().map(|(one, two)| format!("{:.2}", two / one)).collect();
    println!(
        "default authorize.decide: {one:.0} calls/s on one thread, {two:.0} on two: {:.2} times as many ({})",
        two / one,
        ratios.join(", ")
    );
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "these are few calls")]
fn calls_a_second(site: &Policies, request: &AuthorizeRequest, threads: usize) -> anyhow::Result<f64> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    let (begun, calls) = (Instant::now(), 10_000);
    let caller = || {
        let (site, request) = (site.clone(), request.clone());
        runtime.spawn(async move {
            for _ in 0..calls {
                site.authorize(&request).await?;
            }
            anyhow::Ok(())
        })
    };
    let callers: Vec<_> = (0..threads).map(|_| caller()).collect();
    for caller in callers {
        runtime.block_on(caller)??;
    }
    Ok((threads * calls) as f64 / begun.elapsed().as_secs_f64())
}

/// A user with as many groups as users of a large site have.
fn ada() -> User {
    let group = |number: u32| Group { name: format!("group-{number}"), gid: Some(3000 + number) };
    User {
        name: "ada.lovelace@example.org".into(),
        uid: Some(1000),
        gid: Some(1000),
        groups: (0..30).map(group).collect(),
        ..User::default()
    }
}

macro_rules! measure {
    ($calls:ident, $name:expr, $call:expr) => {
        let mut times = Vec::with_capacity($calls);
        for _ in 0..$calls {
            let start = Instant::now();
            $call.await?;
            times.push(start.elapsed());
        }
        report($name, times);
    };
}
use measure;

#[expect(clippy::print_stdout, reason = "a benchmark talks to its reader")]
fn report(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e6;
    println!("{name:32} median {:7.1} us   p99 {:7.1} us   best {:7.1} us", at(50), at(99), at(0));
}
