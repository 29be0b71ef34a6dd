//! The program `wasmspawner`: the service and its commands.

fn main() -> std::process::ExitCode {
    wasmspawner::cli::main()
}
