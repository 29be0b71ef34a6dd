//! The service and its tools.

fn main() -> std::process::ExitCode {
    wasmspawner::cli::main()
}
