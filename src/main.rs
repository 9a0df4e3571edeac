//! The `onceward` program.

use std::process::ExitCode;

/// Requests are many small allocations; this allocator is made for them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    onceward::cli::run(std::env::args_os())
}
