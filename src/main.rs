//! The `onceward` program.

use std::process::ExitCode;

/// A request makes many small allocations, on whichever thread is free. This allocator is made for
/// that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    onceward::cli::run(std::env::args_os())
}
