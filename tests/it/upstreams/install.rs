//! Installs the servers that are no Debian packages, into the target directory and once.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const PYTHON: &str = include_str!("requirements.txt");
const EXPRESS: &str = "express@5.3.0";

/// Where Python's packages are.
pub fn python() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        install("python", PYTHON, |directory| {
            let requirements = directory.join("requirements.txt");
            std::fs::write(&requirements, PYTHON).unwrap();
            let mut pip = Command::new("python3");
            pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--no-deps"])
                .arg("--target")
                .arg(directory)
                .arg("--requirement")
                .arg(requirements)
                // It is a directory of our own, and not the system's.
                .env("PIP_BREAK_SYSTEM_PACKAGES", "1");
            pip
        })
    })
}

/// Where Node's packages are.
pub fn node() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        install("node", EXPRESS, |directory| {
            let mut npm = Command::new("npm");
            npm.args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"])
                .arg("--prefix")
                .arg(directory)
                .arg(EXPRESS);
            npm
        })
    })
}

/// Installs `what` unless it is there. Tests in other processes wait meanwhile.
fn install(name: &str, what: &str, command: impl Fn(&Path) -> Command) -> PathBuf {
    let servers = Path::new(env!("CARGO_TARGET_TMPDIR")).join("servers");
    std::fs::create_dir_all(&servers).unwrap();
    let lock = File::create(servers.join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    let directory = servers.join(name);
    let installed = directory.join("installed.txt");
    if std::fs::read_to_string(&installed).is_ok_and(|found| found == what) {
        return directory;
    }
    let _was_not_there = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    let output = command(&directory).output().expect("python3 with pip, and npm");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::write(installed, what).unwrap();
    directory
}
