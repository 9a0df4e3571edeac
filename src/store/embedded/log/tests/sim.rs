//! A disk in memory that forgets what was not synced, and fails when it is told to.
//!
//! * Each sector that was written since the last sync of its file has, after a loss of power, any of
//!   the contents that it had since then. So has the length of a file.
//! * Each name that was made, changed or removed since the last sync of its folder is kept or lost.
//! * A write that fails may have been done in part.
//! * What a failed sync did not write is never written by a later one, unless it is written again.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::super::disk::{Disk, DiskFile};

const SECTOR: usize = 512;

/// A source of numbers that a seed determines.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `end` (splitmix64).
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).unwrap()
    }
}

/// What happens at a call that changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The machine or the process stops. All later calls fail too.
    Stop,
    /// The call fails. A write is done up to this number of sectors.
    Fail { kind: io::ErrorKind, sectors: usize },
}

#[derive(Debug, Clone, Default)]
struct Inode {
    current: Vec<u8>,
    /// The content that is on disk, filled up with zeros.
    durable: Vec<u8>,
    durable_length: usize,
    /// The contents that a sector had since it was synced.
    pending: BTreeMap<usize, Vec<Vec<u8>>>,
    pending_lengths: Vec<usize>,
    /// The sectors that the next sync will write.
    dirty: BTreeSet<usize>,
    is_length_dirty: bool,
}

#[derive(Debug, Clone)]
enum NameChange {
    Set(PathBuf, usize),
    Rename(PathBuf, PathBuf, usize),
    Remove(PathBuf),
}

impl NameChange {
    fn folder(&self) -> Option<&Path> {
        match self {
            Self::Set(path, _) | Self::Rename(_, path, _) | Self::Remove(path) => path.parent(),
        }
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            Self::Set(path, inode) => {
                names.insert(path.clone(), *inode);
            }
            Self::Rename(from, to, inode) => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
            Self::Remove(path) => {
                names.remove(path);
            }
        }
    }
}

#[derive(Debug, Clone, Default)]
struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    pending_names: Vec<NameChange>,
    calls: usize,
    faults: BTreeMap<usize, Fault>,
    /// The share of calls that fail, in thousandths.
    failing: Option<(Random, usize)>,
    is_stopped: bool,
    salts: u64,
    syncs: usize,
}

#[derive(Debug, Clone, Default)]
pub(super) struct SimDisk(Arc<Mutex<State>>);

#[derive(Debug)]
pub(super) struct SimFile {
    disk: SimDisk,
    inode: usize,
}

fn stopped() -> io::Error {
    io::Error::other("stopped")
}

impl SimDisk {
    /// Has the disk draw other numbers than an earlier one.
    pub(super) fn draw_from(&self, salts: u64) {
        self.0.lock().salts = salts;
    }

    pub(super) fn fault(&self, call: usize, fault: Fault) {
        self.0.lock().faults.insert(call, fault);
    }

    /// From now on, this share of the calls fails, in thousandths.
    pub(super) fn fail_often(&self, seed: u64, share: usize) {
        self.0.lock().failing = (share > 0).then(|| (Random::new(seed), share));
    }

    pub(super) fn calls(&self) -> usize {
        self.0.lock().calls
    }

    pub(super) fn syncs(&self) -> usize {
        self.0.lock().syncs
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.0.lock().is_stopped
    }

    /// Returns the disk as the next process finds it when this one is killed.
    pub(super) fn after_kill(&self) -> Self {
        let state = self.0.lock().clone();
        let faults = BTreeMap::new();
        let state = State { calls: 0, faults, failing: None, is_stopped: false, ..state };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Does the same, and keeps the faults that are planned.
    pub(super) fn after_kill_with_faults(&self) -> Self {
        Self(Arc::new(Mutex::new(self.0.lock().clone())))
    }

    /// Returns the number of ways in which each thing that is not synced may be found.
    pub(super) fn choices(&self) -> Vec<usize> {
        let state = self.0.lock();
        let mut choices = Vec::new();
        for inode in &state.inodes {
            choices.extend(inode.pending.values().map(|versions| versions.len() + 1));
            choices.push(inode.pending_lengths.len() + 1);
        }
        choices.extend(state.pending_names.iter().map(|_| 2));
        choices
    }

    /// Returns the disk as it may be found after a loss of power. `choose` gets the number of ways
    /// in which something may be found and returns one of them; 0 is as it was when it was synced.
    pub(super) fn after_power_loss(&self, mut choose: impl FnMut(usize) -> usize) -> Self {
        let state = self.0.lock();
        let mut inodes = Vec::new();
        for inode in &state.inodes {
            let mut content = inode.durable.clone();
            for (sector, versions) in &inode.pending {
                if let Some(version) = choose(versions.len() + 1).checked_sub(1) {
                    let start = sector * SECTOR;
                    let end = start + SECTOR;
                    content.resize(content.len().max(end), 0);
                    content[start..end].copy_from_slice(&versions[version]);
                }
            }
            let chosen = choose(inode.pending_lengths.len() + 1).checked_sub(1);
            let length = chosen.map_or(inode.durable_length, |at| inode.pending_lengths[at]);
            content.resize(length, 0);
            inodes.push(Inode::synced(content));
        }
        let mut names = state.durable_names.clone();
        for change in &state.pending_names {
            if choose(2) == 1 {
                change.apply(&mut names);
            }
        }
        Self(Arc::new(Mutex::new(State {
            inodes,
            durable_names: names.clone(),
            names,
            salts: state.salts,
            ..State::default()
        })))
    }

    /// Has the machine forget what a failed sync left in memory. It reads what is on disk then,
    /// which `choose` decides as in [`Self::after_power_loss`].
    pub(super) fn forget(&self, mut choose: impl FnMut(usize) -> usize) {
        for inode in &mut self.0.lock().inodes {
            let lost: Vec<_> =
                inode.pending.keys().filter(|s| !inode.dirty.contains(s)).copied().collect();
            for sector in lost {
                let versions = &inode.pending[&sector];
                let zeros = [0; SECTOR];
                let start = sector * SECTOR;
                let found = match choose(versions.len() + 1).checked_sub(1) {
                    Some(version) => &versions[version],
                    None => inode.durable.get(start..start + SECTOR).unwrap_or(&zeros),
                };
                let end = inode.current.len().min(start + SECTOR);
                if start < end {
                    inode.current[start..end].copy_from_slice(&found[..end - start]);
                    let found = inode.sector(sector);
                    inode.durable.resize(inode.durable.len().max(start + SECTOR), 0);
                    inode.durable[start..start + SECTOR].copy_from_slice(&found);
                    inode.pending.remove(&sector);
                }
            }
        }
    }

    /// Returns what a file holds.
    pub(super) fn content(&self, path: &Path) -> Vec<u8> {
        let state = self.0.lock();
        state.inodes[state.names[path]].current.clone()
    }

    /// Replaces a file by one with other bytes.
    pub(super) fn put(&self, path: &Path, content: Vec<u8>) {
        let mut state = self.0.lock();
        let inode = state.inodes.len();
        state.inodes.push(Inode::synced(content));
        state.names.insert(path.to_owned(), inode);
        state.durable_names.insert(path.to_owned(), inode);
    }

    /// Makes a change of names, or has it fail.
    fn change(&self, change: impl FnOnce(&mut State) -> NameChange) -> io::Result<()> {
        let mut state = self.0.lock();
        let fault = state.next_fault()?;
        match fault {
            Some(Fault::Fail { kind, .. }) => Err(kind.into()),
            None | Some(Fault::Stop) => {
                let change = change(&mut state);
                change.apply(&mut state.names);
                state.pending_names.push(change);
                if fault.is_some() { Err(stopped()) } else { Ok(()) }
            }
        }
    }
}

impl State {
    fn next_fault(&mut self) -> io::Result<Option<Fault>> {
        if self.is_stopped {
            return Err(stopped());
        }
        let mut fault = self.faults.get(&self.calls).copied();
        if let Some((random, share)) = &mut self.failing
            && random.below(1000) < *share
        {
            let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::Other];
            let kind = kinds[random.below(2)];
            fault = fault.or(Some(Fault::Fail { kind, sectors: random.below(6) }));
        }
        self.calls += 1;
        self.is_stopped |= fault == Some(Fault::Stop);
        Ok(fault)
    }
}

impl Inode {
    fn synced(content: Vec<u8>) -> Self {
        let mut durable = content.clone();
        durable.resize(content.len().next_multiple_of(SECTOR), 0);
        Self { durable_length: content.len(), current: content, durable, ..Self::default() }
    }

    fn write(&mut self, bytes: &[u8], offset: usize) {
        if bytes.is_empty() {
            return;
        }
        let end = offset + bytes.len();
        if end > self.current.len() {
            self.current.resize(end, 0);
            self.pending_lengths.push(end);
            self.is_length_dirty = true;
        }
        self.current[offset..end].copy_from_slice(bytes);
        for sector in offset / SECTOR..end.div_ceil(SECTOR) {
            let content = self.sector(sector);
            let on_disk = self.durable.get(sector * SECTOR..(sector + 1) * SECTOR);
            let versions = self.pending.entry(sector).or_default();
            let on_disk = on_disk.unwrap_or(&[0; SECTOR]);
            let latest = versions.last().map_or(on_disk, Vec::as_slice);
            if latest != content {
                versions.push(content);
            } else if versions.is_empty() {
                self.pending.remove(&sector);
            }
            self.dirty.insert(sector);
        }
    }

    fn sector(&self, sector: usize) -> Vec<u8> {
        let start = (sector * SECTOR).min(self.current.len());
        let end = (start + SECTOR).min(self.current.len());
        let mut content = self.current[start..end].to_vec();
        content.resize(SECTOR, 0);
        content
    }

    fn sync(&mut self) {
        for sector in std::mem::take(&mut self.dirty) {
            let end = (sector + 1) * SECTOR;
            self.durable.resize(self.durable.len().max(end), 0);
            let content = self.sector(sector);
            self.durable[sector * SECTOR..end].copy_from_slice(&content);
            self.pending.remove(&sector);
        }
        if std::mem::take(&mut self.is_length_dirty) {
            self.durable_length = self.current.len();
            self.pending_lengths.clear();
        }
    }
}

impl Disk for SimDisk {
    type File = SimFile;

    const HAS_THREADS: bool = false;

    fn create(&self, path: &Path) -> io::Result<SimFile> {
        let mut made = 0;
        self.change(|state| {
            made = state.inodes.len();
            state.inodes.push(Inode::default());
            NameChange::Set(path.to_owned(), made)
        })?;
        Ok(SimFile { disk: self.clone(), inode: made })
    }

    fn open(&self, path: &Path) -> io::Result<SimFile> {
        let state = self.0.lock();
        if state.is_stopped {
            return Err(stopped());
        }
        let inode = *state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(SimFile { disk: self.clone(), inode })
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let state = self.0.lock();
        if state.is_stopped {
            return Err(stopped());
        }
        let inside = state.names.keys().filter(|path| path.parent() == Some(folder));
        Ok(inside.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let inode = *self.0.lock().names.get(from).ok_or(io::ErrorKind::NotFound)?;
        self.change(|_| NameChange::Rename(from.to_owned(), to.to_owned(), inode))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if !self.0.lock().names.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.change(|_| NameChange::Remove(path.to_owned()))
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        match state.next_fault()? {
            Some(Fault::Stop) => Err(stopped()),
            Some(Fault::Fail { kind, .. }) => Err(kind.into()),
            None => {
                let changes = std::mem::take(&mut state.pending_names);
                for change in changes {
                    if change.folder() == Some(folder) {
                        change.apply(&mut state.durable_names);
                    } else {
                        state.pending_names.push(change);
                    }
                }
                Ok(())
            }
        }
    }

    fn random(&self) -> io::Result<u64> {
        let mut state = self.0.lock();
        state.salts += 1;
        Ok(state.salts.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

impl DiskFile for SimFile {
    fn bytes(&self) -> io::Result<u64> {
        let state = self.disk.0.lock();
        if state.is_stopped {
            return Err(stopped());
        }
        Ok(state.inodes[self.inode].current.len() as u64)
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        let fault = state.next_fault()?;
        if let Some(Fault::Fail { kind, .. }) = fault {
            return Err(kind.into());
        }
        let inode = &mut state.inodes[self.inode];
        let bytes = usize::try_from(bytes).unwrap();
        if bytes != inode.current.len() {
            inode.current.resize(bytes, 0);
            inode.pending_lengths.push(bytes);
            inode.is_length_dirty = true;
        }
        if fault.is_some() { Err(stopped()) } else { Ok(()) }
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let state = self.disk.0.lock();
        if state.is_stopped {
            return Err(stopped());
        }
        let offset = usize::try_from(offset).unwrap();
        let found = state.inodes[self.inode].current.get(offset..offset + buffer.len());
        buffer.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        let fault = state.next_fault()?;
        let inode = &mut state.inodes[self.inode];
        let offset = usize::try_from(offset).unwrap();
        match fault {
            None => {
                inode.write(bytes, offset);
                Ok(())
            }
            // Nothing is synced, so each of its sectors may be written or not.
            Some(Fault::Stop) => {
                inode.write(bytes, offset);
                Err(stopped())
            }
            Some(Fault::Fail { kind, sectors }) => {
                inode.write(&bytes[..bytes.len().min(sectors * SECTOR)], offset);
                Err(kind.into())
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        match state.next_fault()? {
            None => {
                state.syncs += 1;
                state.inodes[self.inode].sync();
                Ok(())
            }
            Some(Fault::Stop) => Err(stopped()),
            Some(Fault::Fail { kind, .. }) => {
                let inode = &mut state.inodes[self.inode];
                inode.dirty.clear();
                inode.is_length_dirty = false;
                Err(kind.into())
            }
        }
    }
}
