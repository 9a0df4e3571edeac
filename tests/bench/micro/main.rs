//! What the parts of the path of a request cost, each by itself.
//!
//! ```sh
//! cargo bench --bench micro                                    # everything: about five minutes
//! cargo bench --bench micro -- keys                            # one part
//! cargo bench --bench micro -- claim-and-settle/embedded-sync  # one store
//! cargo bench --bench micro -- --save-baseline before          # then change something, and
//! cargo bench --bench micro -- --baseline before               # see what the change does
//! cargo test --bench micro                                     # does it still work? Each case once
//! ```
//!
//! | part | measures |
//! | --- | --- |
//! | `keys` | the key, the operation id and the fingerprint of a request, by the length of its body |
//! | `signatures` | the check of one published request for each scheme |
//! | `records` | encoding and decoding the record of an operation |
//! | `claim-and-settle` | new events on each store, so many at a time |
//!
//! `redis-server` and PostgreSQL are started on free ports, if they are installed, and end with the
//! benchmark. All stores lie below TMPDIR (default `/tmp`): choose a real disk. Nothing else should
//! run meanwhile. `cargo test` without `--bench` neither builds nor runs any of this.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "it says which stores it leaves out")]

#[path = "../event.rs"]
mod event;
mod keys;
mod records;
mod servers;
mod signatures;
mod stores;

use criterion::Criterion;

/// The allocator of the program itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    keys::measure(&mut criterion);
    signatures::measure(&mut criterion);
    records::measure(&mut criterion);
    stores::measure(&mut criterion);
    criterion.final_summary();
}
