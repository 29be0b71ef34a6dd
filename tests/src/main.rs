//! The service and its tools, as a process that the tests of this package can start.

fn main() -> std::process::ExitCode {
    wasmspawner::cli::main()
}
