//! A clock that a test moves, for a process of its own: what the process asks the system for its
//! time of day is read from a file.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tempfile::{NamedTempFile, TempDir};

/// 2027-01-15T08:00:00Z, in microseconds since the Unix epoch.
const START: i64 = 1_800_000_000_000_000;

/// The time of a server that was started with [`ServerClock::envs`]. It stands still until it is
/// moved.
#[derive(Debug)]
pub struct ServerClock {
    page: NamedTempFile,
    micros: AtomicI64,
}

impl ServerClock {
    /// A clock that stands at [`ServerClock::millis`].
    pub fn start() -> Self {
        let clock = Self { page: NamedTempFile::new().unwrap(), micros: AtomicI64::new(START) };
        clock.set(START);
        clock
    }

    /// Sets it, in microseconds since the Unix epoch.
    pub fn set(&self, micros: i64) {
        self.micros.store(micros, Ordering::SeqCst);
        write(self.page.as_file(), micros);
    }

    /// Moves it on.
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_micros()).unwrap();
        let now = self.micros.fetch_add(by, Ordering::SeqCst) + by;
        write(self.page.as_file(), now);
    }

    /// Where it stands, in whole milliseconds.
    pub fn millis(&self) -> u64 {
        u64::try_from(self.micros.load(Ordering::SeqCst) / 1000).unwrap()
    }

    /// What the environment of a process must hold whose time of day it is to be, and whose other
    /// clocks go on.
    pub fn wall_envs(&self) -> [(&'static str, PathBuf); 2] {
        [("LD_PRELOAD", shim().to_owned()), ("TEST_WALL_CLOCK", self.page.path().to_owned())]
    }

    /// What the environment of the server must hold.
    pub fn envs(&self) -> [(&'static str, PathBuf); 2] {
        [("LD_PRELOAD", shim().to_owned()), ("TEST_CLOCK", self.page.path().to_owned())]
    }
}

/// The server has the file mapped: eight bytes change at once.
fn write(page: &File, micros: i64) {
    page.write_all_at(&micros.to_ne_bytes(), 0).unwrap();
}

/// The library that takes the place of the system's clock, built once.
fn shim() -> &'static Path {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
        // other test processes build it at the same moment
        let built = TempDir::new_in(target).unwrap();
        let (new, shim) = (built.path().join("clock.so"), target.join("clock.so"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/support/clock.c");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&new).arg(source);
        assert!(cc.status().expect("a C compiler is installed").success());
        std::fs::rename(new, &shim).unwrap();
        shim
    })
}
