//! The service as a binary of this package, so that its tests can start it.

fn main() -> std::process::ExitCode {
    wasmspawner::cli::main()
}
