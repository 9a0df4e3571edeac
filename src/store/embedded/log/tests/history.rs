//! Plays a history of calls on a disk that fails and forgets, and checks what the next start finds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::*;
use super::sim::{Random, SimDisk};
use crate::store::embedded::open_error::OpenError;
use crate::store::embedded::settings::{Durability, IfDamaged};

/// Small segments of eight sectors, so that a few groups fill one.
pub(super) const SEGMENT: u64 = 4096;

/// A step of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Append a group with records of so many bytes in all.
    Append(usize),
    Seal,
    /// Sync what is appended, as before the rows go elsewhere.
    Sync,
    /// Note that all rows up to here are elsewhere. The next start reads from here on.
    Mark,
    /// Remove the segments before the mark.
    RemoveOld,
    /// Write a kept segment.
    Keep,
    /// Kill the process, and start another.
    Kill,
    /// The machine loses power, and starts again.
    LosePower,
    /// Memory of which a sync failed is used for something else.
    Forget,
    /// Close the log, and open it again.
    Close,
}

/// A group, by its number and the records in it.
pub(super) type Groups = BTreeMap<u64, Vec<Record>>;

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
    pub(super) place: Place,
}

/// What must be found, and what may be found.
#[derive(Debug, Clone, Default)]
pub(super) struct Expected {
    pub(super) appended: Groups,
    /// The number of the first group that may be lost.
    pub(super) durable_until: u64,
    /// A group whose calls were told that it failed, or were told nothing yet. Its place is unknown.
    maybe: Option<Vec<Record>>,
    mark: Option<Position>,
    kept: Vec<Record>,
    removed_below: u64,
}

/// A log that is played with, and what is expected of it.
#[derive(Debug)]
pub(super) struct Play {
    pub(super) disk: SimDisk,
    pub(super) durability: Durability,
    pub(super) log: Option<Log<SimDisk>>,
    pub(super) expected: Expected,
    group: GroupBytes,
    /// Decides what a loss of power leaves.
    random: Random,
    /// Whether power was lost since the log was open.
    is_power_lost: bool,
}

pub(super) fn folder() -> PathBuf {
    PathBuf::from("/log")
}

pub(super) fn key(number: u64, record: usize) -> Vec<u8> {
    format!("{number:08}-{record:07}").into_bytes()
}

fn value(number: u64, record: usize, bytes: usize) -> Vec<u8> {
    let mut random = Random::new(number * 1000 + record as u64);
    (0..bytes).map(|_| u8::try_from(random.below(255) + 1).unwrap()).collect()
}

/// Builds the group with this number.
pub(super) fn build(group: &mut GroupBytes, number: u64, bytes: usize) {
    group.begin();
    for (record, start) in (0..bytes.max(1)).step_by(300).enumerate() {
        let value = value(number, record, (bytes - start).min(300));
        group.put(RECORDS, &key(number, record), &value);
        group.put(3, &key(number, record), b"");
        group.remove(2, &key(number, record));
    }
}

fn records<'a>(rows: impl Iterator<Item = RowRef<'a>>) -> Vec<Record> {
    rows.filter_map(|row| match row.change {
        ChangeRef::Put { value, place } if row.table == RECORDS => {
            Some(Record { key: row.key.to_vec(), value: value.to_vec(), place })
        }
        ChangeRef::Put { .. } | ChangeRef::Remove | ChangeRef::Moved(_) => None,
    })
    .collect()
}

/// Opens a log. Returns it, and the groups that were found.
pub(super) fn open(
    disk: &SimDisk,
    from: Option<Position>,
    durability: Durability,
    if_damaged: IfDamaged,
) -> Result<(Log<SimDisk>, Groups), OpenError> {
    let mut lose = |_: &LostPart<'_>| Ok(());
    let settings = OpenSettings {
        store: PathBuf::from("/store"),
        durability,
        if_damaged,
        segment_bytes: SEGMENT,
        numbers_from: 0,
        lose: &mut lose,
    };
    let mut groups = Groups::new();
    let log = Log::open(disk.clone(), &folder(), from, settings, &mut |head, row| {
        groups.entry(head.number).or_default().extend(records(std::iter::once(row)));
    })?;
    Ok((log, groups))
}

impl Play {
    /// Makes an empty log and opens it.
    pub(super) fn new(durability: Durability, seed: u64) -> Self {
        let disk = SimDisk::default();
        Log::create(&disk, &folder()).unwrap();
        let mut play = Self {
            disk: disk.after_power_loss(|_| 0),
            durability,
            log: None,
            expected: Expected { durable_until: 1, ..Expected::default() },
            group: GroupBytes::default(),
            random: Random::new(seed),
            is_power_lost: false,
        };
        play.open();
        play
    }

    /// Does the steps, and mends what fails. Returns whether the disk still runs.
    pub(super) fn run(&mut self, steps: &[Step]) -> bool {
        for step in steps {
            self.step(*step);
            if self.disk.is_stopped() {
                return false;
            }
        }
        true
    }

    fn step(&mut self, step: Step) {
        // A start may fail. Once the disk is well, it must succeed.
        for attempt in 0..10 {
            if self.log.is_some() || self.disk.is_stopped() {
                break;
            }
            if attempt == 8 {
                self.disk.fail_often(0, 0);
            }
            self.open();
        }
        let Some(log) = &mut self.log else {
            assert!(self.disk.is_stopped(), "no start succeeds");
            return;
        };
        if log.is_suspended() && log.restore().is_ok() {
            self.expected.maybe = None;
            self.expected.durable_until = log.position().group;
        }
        match step {
            Step::Append(bytes) => self.append(bytes),
            Step::Seal => log.seal(),
            Step::Sync => drop(self.sync()),
            Step::Mark => self.expected.mark = self.sync().or(self.expected.mark),
            Step::RemoveOld => self.remove_old(),
            Step::Keep => self.keep(),
            Step::Kill => {
                self.disk = self.disk.after_kill_with_faults();
                self.open();
            }
            Step::LosePower => self.lose_power(),
            Step::Forget => {
                let random = &mut self.random;
                self.disk.forget(|ways| random.below(ways));
                self.is_power_lost = true;
            }
            Step::Close => {
                let end = log.position().group;
                if self.log.take().is_some_and(|log| log.close().is_ok()) {
                    self.expected.durable_until = end;
                }
                self.open();
            }
        }
    }

    fn lose_power(&mut self) {
        let random = &mut self.random;
        let share = random.below(101);
        self.disk = self.disk.after_power_loss(|ways| {
            if random.below(100) < share { random.below(ways) } else { 0 }
        });
        self.is_power_lost = true;
        self.open();
    }

    fn remove_old(&mut self) {
        let (Some(mark), Some(log)) = (self.expected.mark, &self.log) else { return };
        let segments = log.segments();
        for number in segments.numbers().unwrap_or_default() {
            let is_kept = self.expected.kept.iter().any(|kept| kept.place.segment == number);
            if number < mark.segment && !is_kept {
                self.expected.removed_below = mark.segment;
                let _may_fail = segments.remove(number);
            }
        }
    }

    fn keep(&mut self) {
        let Some(log) = &self.log else { return };
        self.group.begin();
        self.group.put(RECORDS, b"kept", &value(0, 1, 700));
        let Ok(mut kept) = Kept::begin(log.segments(), 7) else { return };
        let Ok(at) = kept.append(&mut self.group, 7) else { return };
        if kept.sync().is_ok() {
            self.expected.kept.extend(records(self.group.rows(at)));
        }
    }

    fn append(&mut self, bytes: usize) {
        let Some(log) = &mut self.log else { return };
        let number = log.position().group;
        build(&mut self.group, number, bytes);
        // Until the call returns, the group may be there.
        let attempted = AppendedAt { segment: 0, offset: 0, number };
        let attempted = records(self.group.rows(attempted));
        match log.append(&mut self.group, 1000 + number) {
            Ok(at) => {
                assert_eq!(at.number, number);
                self.expected.appended.insert(number, records(self.group.rows(at)));
                if self.durability == Durability::Sync {
                    self.expected.durable_until = number + 1;
                }
            }
            Err(AppendError::Failed(_)) => self.expected.maybe = Some(attempted),
            Err(AppendError::NoRoom(_) | AppendError::Suspended) => {}
            Err(AppendError::Unfit(says)) => panic!("{says}"),
        }
    }

    /// Syncs what is appended. Returns the place up to which it is synced, unless that failed.
    fn sync(&mut self) -> Option<Position> {
        let log = self.log.as_ref()?;
        log.segments().sync_until(log.position()).ok()?;
        self.expected.durable_until = log.position().group;
        Some(log.position())
    }

    /// Opens the log after the process was killed. The disk may fail.
    fn open(&mut self) {
        self.log = None;
        match open(&self.disk, self.expected.mark, self.durability, IfDamaged::Refuse) {
            Ok((log, found)) => {
                self.expected.check(&found, self.is_power_lost);
                self.expected.settle(&log, found);
                self.is_power_lost = false;
                // The machine may have stopped after the log was open.
                if !self.disk.is_stopped() {
                    self.expected.reads(&log);
                }
                self.log = Some(log);
            }
            Err(OpenError::Io { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

impl Expected {
    /// Asserts that these groups may be found, after a loss of power or without one.
    #[track_caller]
    pub(super) fn check(&self, found: &Groups, is_power_lost: bool) {
        let first = self.mark.map_or(1, |mark| mark.group);
        let end = self.appended.keys().last().map_or(first, |last| last + 1).max(first);
        let until = if is_power_lost { self.durable_until } else { end };
        for number in first..until {
            assert!(found.contains_key(&number), "group {number} is lost of {until}");
        }
        for (number, (found, records)) in (first..).zip(found) {
            assert_eq!(*found, number, "the groups follow one another");
            match (self.appended.get(found), &self.maybe) {
                (Some(appended), _) => assert_eq!(appended, records),
                (None, Some(maybe)) if *found == end => {
                    let of = |records: &[Record]| -> Vec<_> {
                        records.iter().map(|r| (r.key.clone(), r.value.clone())).collect()
                    };
                    assert_eq!(of(maybe), of(records));
                }
                (None, _) => panic!("group {found} was given up"),
            }
        }
    }

    /// Notes what an opened log has. That is durable now.
    pub(super) fn settle(&mut self, log: &Log<SimDisk>, found: Groups) {
        let first = self.mark.map_or(1, |mark| mark.group);
        self.appended.retain(|number, _| *number < first || found.contains_key(number));
        self.appended.extend(found);
        self.maybe = None;
        self.durable_until = log.position().group;
    }

    /// Asserts that all records can be read by their places.
    #[track_caller]
    pub(super) fn reads(&self, log: &Log<SimDisk>) {
        let records = self.appended.values().flatten().chain(&self.kept);
        for Record { key, value, place } in records {
            let is_kept = self.kept.iter().any(|kept| kept.key == *key);
            if is_kept || place.segment >= self.removed_below {
                assert_eq!(log.segments().read(key, *place).unwrap(), *value);
            }
        }
    }
}

/// Asserts that a disk after a loss of power has what is expected, and that the log goes on.
pub(super) fn survives(disk: &SimDisk, durability: Durability, expected: &Expected, seed: u64) {
    let mut expected = expected.clone();
    let mut random = Random::new(seed);
    let opened = open(disk, expected.mark, durability, IfDamaged::Refuse);
    let (mut log, found) = opened.unwrap_or_else(|error| panic!("{error}"));
    expected.check(&found, true);
    expected.settle(&log, found.clone());
    expected.reads(&log);
    // Another start, or a loss of power right after the start, finds the same.
    let again = disk_after(disk, &mut random);
    let (_, found_again) = open(&again, expected.mark, durability, IfDamaged::Refuse).unwrap();
    assert_eq!(found, found_again);
    // What is appended survives too.
    let mut group = GroupBytes::default();
    for bytes in [100, 2000, 900] {
        build(&mut group, log.position().group, bytes);
        let at = log.append(&mut group, 5000).unwrap();
        expected.appended.insert(at.number, records(group.rows(at)));
    }
    log.segments().sync_until(log.position()).unwrap();
    expected.durable_until = log.position().group;
    expected.reads(&log);
    let again = disk_after(disk, &mut random);
    let (log, found) = open(&again, expected.mark, durability, IfDamaged::Refuse).unwrap();
    expected.check(&found, true);
    expected.reads(&log);
}

fn disk_after(disk: &SimDisk, random: &mut Random) -> SimDisk {
    match random.below(3) {
        0 => disk.after_kill(),
        _ => disk.after_power_loss(|ways| random.below(ways)),
    }
}

/// How many of the states after a crash are tried.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// If there are not more states than this, all are tried.
    pub(super) all: usize,
    /// Whether each unsynced thing is tried alone, and left out alone.
    pub(super) each: bool,
    /// The states that are drawn, if there are more.
    pub(super) drawn: usize,
}

/// Asserts that every state that a loss of power may leave is one that the log survives. Of very
/// many states, some are tried.
pub(super) fn survives_power_loss(play: &Play, effort: Effort, seed: u64) -> usize {
    let choices = play.disk.choices();
    let states = choices
        .iter()
        .try_fold(1_usize, |all, ways| all.checked_mul(*ways).filter(|all| *all <= effort.all));
    let mut random = Random::new(seed);
    let check = |chosen: &mut dyn FnMut(usize) -> usize, seed| {
        let disk = play.disk.after_power_loss(chosen);
        survives(&disk, play.durability, &play.expected, seed);
    };
    if let Some(states) = states {
        for state in 0..states {
            let mut left = state;
            let mut choose = |ways| {
                let chosen = left % ways;
                left /= ways;
                chosen
            };
            check(&mut choose, seed + state as u64);
        }
        return states;
    }
    // Nothing is written, everything is, and each thing alone is or is not.
    let things = choices.iter().filter(|ways| **ways > 1).count();
    for one in (0..=things).filter(|_| effort.each) {
        for others in [false, true] {
            let mut thing = 0;
            let mut choose = |ways: usize| {
                let is_written = others ^ (thing == one);
                thing += usize::from(ways > 1);
                if is_written { ways - 1 } else { 0 }
            };
            check(&mut choose, seed + one as u64);
        }
    }
    for sample in 0..effort.drawn {
        let share = random.below(101);
        let mut choose = |ways| if random.below(100) < share { random.below(ways) } else { 0 };
        check(&mut choose, seed + sample as u64);
    }
    2 * things + effort.drawn
}

/// Returns the names in the log's folder.
pub(super) fn names(disk: &SimDisk) -> Vec<String> {
    disk.names(Path::new("/log")).unwrap()
}
