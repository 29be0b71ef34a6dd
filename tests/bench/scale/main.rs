//! Benchmarks of the service, each compared with a reference in the same run:
//!
//! - `spawns`: many spawns and stops at once, compared with a bare client that creates the same objects;
//! - `again`: the start of labs that were stopped a moment ago, compared with their first start;
//! - `shared`: the same with all labs in one namespace, compared with one namespace per lab;
//! - `labs`: memory, start and reconciliation with many labs, on a simulated API server;
//! - `readers`: one lab's events with many readers, compared with few;
//! - `fairness`: the times of many users beside one who sends as many requests as possible, compared with those alone;
//! - `takeover`: the time until another process of the service leads, compared with a bare client's lists;
//! - `kubelet`: runs the node of the real control plane until it is killed, for other programs that measure.
//!
//! `cargo bench --workspace --bench scale [-- [PART] [NUMBER...]]`; `make scale` provides a real control plane.
//!
//! The service is a separate process. The benchmarks print times without judging them. They fail if a lab does not
//! become ready or a reader misses an event.

#![allow(clippy::print_stdout, reason = "a benchmark talks to its reader")]

mod again;
mod bare_client;
mod cluster;
mod fairness;
mod many_labs;
mod open_files;
mod readers;
mod rounds;
mod simulated;
mod site;
mod spawns;
mod takeover;
mod usage;

/// The service.
const BINARY: &str = env!("CARGO_BIN_EXE_wasmspawner-under-test");

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Cargo adds `--bench`.
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let part = arguments.next();
    let numbers: Vec<usize> = arguments.map(|number| number.parse()).collect::<Result<_, _>>()?;
    let or = |usual: &[usize]| if numbers.is_empty() { usual.to_vec() } else { numbers.clone() };
    if part.as_deref() != Some("kubelet") {
        println!("load average {}\n", usage::load_average()?);
    }
    match part.as_deref() {
        Some("spawns") => spawns_at_once(&or(&[100, 1000])).await?,
        Some("again") => starts_again(&or(&[1, 100])).await?,
        Some("shared") => shared(&or(&[1000])).await?,
        Some("labs") => many_labs::measure(&or(&[100, 1000, 10_000, 100_000])).await?,
        Some("readers") => readers_at_once(&or(&[2000])).await?,
        Some("fairness") => fairness::measure(or(&[20])[0].try_into()?).await?,
        Some("takeover") => takeover::measure(or(&[1000])[0]).await?,
        Some("kubelet") => cluster::run_kubelet().await?,
        None => {
            spawns_at_once(&[100, 1000]).await?;
            starts_again(&[1, 100]).await?;
            shared(&[1000]).await?;
            many_labs::measure(&[100, 1000, 10_000, 100_000]).await?;
            readers_at_once(&[2000]).await?;
            fairness::measure(20).await?;
            takeover::measure(1000).await?;
        }
        Some(other) => {
            anyhow::bail!(
                "there is no part {other}: spawns, again, shared, labs, readers, fairness, takeover, kubelet"
            )
        }
    }
    println!("load average {}", usage::load_average()?);
    Ok(())
}

async fn spawns_at_once(numbers: &[usize]) -> anyhow::Result<()> {
    for &labs in numbers {
        open_files::allow(labs)?;
        rounds::measure(labs).await?;
    }
    Ok(())
}

async fn starts_again(numbers: &[usize]) -> anyhow::Result<()> {
    for &labs in numbers {
        open_files::allow(labs)?;
        again::measure(labs).await?;
    }
    Ok(())
}

async fn shared(numbers: &[usize]) -> anyhow::Result<()> {
    for &labs in numbers {
        open_files::allow(labs)?;
        rounds::shared_namespace(labs).await?;
    }
    Ok(())
}

async fn readers_at_once(numbers: &[usize]) -> anyhow::Result<()> {
    for &wanted in numbers {
        let readers = open_files::allow(wanted)?.min(wanted);
        if readers < wanted {
            println!("no more than {readers} readers: the limit of open files (ulimit -Hn) allows no more");
        }
        readers::measure(readers).await?;
    }
    Ok(())
}
