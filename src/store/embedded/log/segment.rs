//! One file of the log.

/// The bytes that a disk writes wholly or not at all.
pub(super) const SECTOR: usize = 512;
