//! Rows are what a plain map says they are, whatever happens in between.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Bound;
use std::path::Path;

use proptest::prelude::*;
use tempfile::TempDir;

use super::accounts::Account;
use super::ingest::Ingested;
use super::*;
use crate::clock::Clock;
use crate::store::embedded::open_error::OpenError;
use crate::store::embedded::prepare::prepare;
use crate::store::embedded::settings::{Durability, IfDamaged};

/// A key of a row in a plain map.
type Key = (u8, Vec<u8>);

/// Tables, and the map that says what must be in them.
struct Fixture {
    folder: TempDir,
    tables: Option<Tables>,
    expected: BTreeMap<Key, Vec<u8>>,
}

/// A change of a row.
#[derive(Debug, Clone)]
struct Change {
    table: Table,
    /// Which key.
    key: u8,
    is_put: bool,
}

/// What happens to the tables.
#[derive(Debug, Clone)]
enum Event {
    Group(Vec<Change>),
    Freeze,
    EndRun,
    Crash,
}

const LIFE: Life = Life::Until { ends_at: Timestamp(1_000_000), is_in_flight: false };
const OPTIONS: Options = Options {
    durability: Durability::Os,
    if_damaged: IfDamaged::Refuse,
    segment_bytes: 16 * 1024,
    run_rows: usize::MAX / 8,
};

fn open(path: &Path) -> Tables {
    try_open(path).unwrap()
}

fn try_open(path: &Path) -> Result<Tables, OpenError> {
    let directory = Arc::new(Directory::take(path)?);
    prepare(&directory, OPTIONS, &Clock::manual(Timestamp(0)))?;
    opened(directory, OPTIONS)
}

fn opened(directory: Arc<Directory>, options: Options) -> Result<Tables, OpenError> {
    let folders = directory.folders();
    Tables::open(directory, folders, options)
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tables = Some(open(folder.path()));
        Self { folder, tables, expected: BTreeMap::new() }
    }

    fn tables(&mut self) -> &mut Tables {
        self.tables.as_mut().unwrap()
    }

    fn happens(&mut self, event: &Event) {
        match event {
            Event::Group(changes) => self.writes(changes),
            Event::Freeze => self.tables().freeze(Timestamp(0)),
            Event::EndRun => self.ends_run(),
            Event::Crash => self.crashes(),
        }
    }

    fn writes(&mut self, changes: &[Change]) {
        let Self { tables, expected, .. } = self;
        let tables = tables.as_mut().unwrap();
        let number = tables.next_group();
        let mut group = GroupBytes::default();
        group.begin();
        let mut known = Vec::new();
        for Change { table, key, is_put } in changes {
            let Some(key) = key_of(*table, *key, *is_put, number, expected) else { continue };
            let value = match table {
                Table::Records => [&key[..4], &number.to_le_bytes(), &[7; 300]].concat(),
                Table::Unsettled | Table::Due => vec![9; 16],
                Table::Created | Table::Keys => Vec::new(),
            };
            let row = (table.number(), key.clone());
            if *table == Table::Records {
                let life = if *is_put { LIFE } else { Life::Ended { created_at: Timestamp(0) } };
                known.push(Known { is_on_disk: expected.contains_key(&row), life });
            }
            if *is_put {
                group.put(table.number(), &key, &value);
                expected.insert(row, value);
            } else {
                group.remove(table.number(), &key);
                expected.remove(&row);
            }
        }
        tables.commit(&mut group, &known, Timestamp(number)).unwrap();
    }

    fn ends_run(&mut self) {
        let tables = self.tables();
        if tables.frozen.is_some() {
            let ingested = tables.ingester.wait().unwrap();
            tables.end_run(&ingested);
        }
    }

    /// The process is killed, and the next one begins.
    fn crashes(&mut self) {
        drop(self.tables.take());
        self.tables = Some(open(self.folder.path()));
    }

    /// Everything is there, and no segment has more records than its account says.
    fn is_as_expected(&mut self) {
        let expected = &self.expected;
        let tables = self.tables.as_ref().unwrap();
        let mut live: BTreeMap<u64, u64> = BTreeMap::new();
        for table in Table::ALL {
            let of_table = expected.iter().filter(|((number, _), _)| *number == table.number());
            let expected: Vec<_> = of_table.map(|((_, key), value)| (key, value)).collect();
            let found = rows(tables, Span::all(table), &mut live);
            assert!(expected.iter().copied().eq(found.iter().map(|(k, v)| (k, v))), "{table:?}");
            let back = Span { order: Order::Backward, ..Span::all(table) };
            let mut back = rows(tables, back, &mut BTreeMap::new());
            back.reverse();
            assert_eq!(back, found);
            for key in 0..KEYS {
                spans_are_cut_at(tables, table, key, &found);
            }
        }
        for (segment, live) in live {
            let account = tables.accounts.get(segment).copied();
            assert!(account.is_some_and(|account| account.live >= live), "{segment}: {account:?}");
        }
    }

    fn counts_exactly(&mut self) {
        let tables = self.tables.as_ref().unwrap();
        let mut live: BTreeMap<u64, u64> = BTreeMap::new();
        rows(tables, Span::all(Table::Records), &mut live);
        let counted = tables.accounts.iter().filter(|(_, account)| account.live > 0);
        let counted: BTreeMap<_, _> =
            counted.map(|(segment, Account { live, .. })| (segment, *live)).collect();
        assert_eq!(counted, live);
    }
}

/// How many keys a table may have in a test.
const KEYS: u8 = 24;

/// Returns the key of a row. A row that is named after a group is put by this group alone.
fn key_of(
    table: Table,
    key: u8,
    is_put: bool,
    number: u64,
    expected: &BTreeMap<Key, Vec<u8>>,
) -> Option<Vec<u8>> {
    let key = key % KEYS;
    let named = match table {
        Table::Records => return Some(vec![key + 1; 16]),
        Table::Created => return Some(vec![key + 1; 24]),
        Table::Keys => return Some(vec![key + 1; 32]),
        Table::Unsettled if key.is_multiple_of(2) => return Some(vec![key + 1; 16]),
        Table::Unsettled => number.to_be_bytes().to_vec(),
        Table::Due => DueRow::key(Timestamp(key.into()), number).to_vec(),
    };
    if is_put {
        return Some(named);
    }
    let of_table = expected.keys().filter(|(found, _)| *found == table.number());
    of_table
        .map(|(_, found)| found)
        .filter(|found| found.len() == named.len())
        .nth(key.into())
        .cloned()
}

/// Returns the rows of a span, with the values of records, and counts the records of each segment.
fn rows(tables: &Tables, span: Span<'_>, live: &mut BTreeMap<u64, u64>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let rows = tables.range(span).map(|row| {
        let MergedRow { key, value } = row.unwrap();
        let value = if span.table == Table::Records {
            let place = Place::from_bytes(&value).unwrap();
            *live.entry(place.segment).or_default() += 1;
            tables.segments.read(&key, place).unwrap()
        } else {
            value.to_vec()
        };
        (key.to_vec(), value)
    });
    rows.collect()
}

fn spans_are_cut_at(tables: &Tables, table: Table, key: u8, all: &[(Vec<u8>, Vec<u8>)]) {
    let cut = [key + 1; 20];
    for order in [Order::Forward, Order::Backward] {
        let none = &mut BTreeMap::new();
        let from = Span { start: Bound::Excluded(&cut), order, ..Span::all(table) };
        let until = Span { end: Bound::Included(&cut), order, ..Span::all(table) };
        let above = all.iter().filter(|(key, _)| key.as_slice() > cut.as_slice()).count();
        assert_eq!(rows(tables, from, none).len(), above);
        assert_eq!(rows(tables, until, none).len(), all.len() - above);
    }
}

fn change() -> impl Strategy<Value = Change> {
    let table = prop::sample::select(Table::ALL.to_vec());
    (table, 0..KEYS, prop::bool::weighted(0.65)).prop_map(|(table, key, is_put)| Change {
        table,
        key,
        is_put,
    })
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => prop::collection::vec(change(), 1..12).prop_map(Event::Group),
        2 => Just(Event::Freeze),
        2 => Just(Event::EndRun),
        1 => Just(Event::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn rows_are_what_was_written(events in prop::collection::vec(event(), 1..60)) {
        let mut fixture = Fixture::new();
        for event in &events {
            fixture.happens(event);
            fixture.is_as_expected();
        }
        fixture.crashes();
        fixture.is_as_expected();
    }
}

fn puts(table: Table, keys: std::ops::Range<u8>) -> Vec<Change> {
    keys.map(|key| Change { table, key, is_put: true }).collect()
}

fn removes(table: Table, keys: std::ops::Range<u8>) -> Vec<Change> {
    keys.map(|key| Change { table, key, is_put: false }).collect()
}

/// Writes rows of all tables, so that some segments have dead records only.
fn with_rows() -> Fixture {
    let mut fixture = Fixture::new();
    for _ in 0..6 {
        Table::ALL.into_iter().for_each(|table| fixture.writes(&puts(table, 0..KEYS)));
    }
    fixture.writes(&removes(Table::Records, 0..8));
    fixture.writes(&removes(Table::Due, 0..8));
    fixture
}

/// Wherever a run is interrupted, the next start finds every row.
#[test]
fn a_crash_at_any_step_of_a_run_loses_nothing() {
    for is_second_run in [false, true] {
        for steps in 0..=9 {
            let mut fixture = with_rows();
            if is_second_run {
                fixture.happens(&Event::Freeze);
                fixture.ends_run();
                (0..6).for_each(|_| fixture.writes(&puts(Table::Records, 0..KEYS)));
                fixture.writes(&removes(Table::Created, 4..16));
                fixture.writes(&removes(Table::Records, 12..20));
            }
            does_steps_of_a_run(fixture.tables(), steps);
            fixture.crashes();
            fixture.is_as_expected();
            if !(1..=5).contains(&steps) {
                fixture.counts_exactly();
            }
            // What the database has already is ingested once more.
            fixture.writes(&removes(Table::Records, 0..4));
            fixture.happens(&Event::Freeze);
            fixture.ends_run();
            fixture.is_as_expected();
            fixture.crashes();
            fixture.is_as_expected();
        }
    }
}

/// Does the first steps of what the thread does for a run.
fn does_steps_of_a_run(tables: &mut Tables, steps: usize) {
    let position = tables.log.position();
    let accounts = tables.accounts.clone();
    let mark = Mark { position: Some(position), time: tables.time, accounts };
    let dead: Vec<_> = mark.accounts.dead_before(position.segment).collect();
    assert!(dead.len() >= 3, "{dead:?}");
    for step in 0..steps {
        match step {
            0..5 => tables.database.ingest(Table::ALL[step], &tables.active).unwrap(),
            5 => mark.write(&tables.directory.path().join("log")).unwrap(),
            _ => tables.segments.remove(dead[step - 6]).unwrap(),
        }
    }
}

#[test]
fn segments_without_records_are_deleted_with_a_mark() {
    let mut fixture = with_rows();
    let before = fixture.tables().segments.numbers().unwrap();
    fixture.happens(&Event::Freeze);
    let tables = fixture.tables();
    let Ingested { deleted } = tables.ingester.wait().unwrap();
    tables.end_run(&Ingested { deleted: deleted.clone() });
    let after = tables.segments.numbers().unwrap();
    assert!(deleted.len() >= 3, "{deleted:?}");
    assert!(deleted.iter().all(|number| before.contains(number) && !after.contains(number)));
    fixture.is_as_expected();
    fixture.counts_exactly();
}

/// The mark cannot be written, then the database is gone, then both are well again.
#[test]
fn a_run_that_fails_is_tried_again_and_claims_are_refused_in_time() {
    let mut fixture = with_rows();
    fixture.happens(&Event::Freeze);
    fixture.ends_run();
    let path = fixture.folder.path().to_owned();
    let in_the_way = path.join("log/mark.new");
    fs::create_dir(&in_the_way).unwrap();
    fs::rename(path.join("rows"), path.join("away")).unwrap();
    fixture.tables().run_rows = 40;
    fixture.writes(&puts(Table::Records, 0..KEYS));
    fixture.writes(&puts(Table::Due, 0..KEYS));
    assert!(fixture.tables().frozen.is_some());
    let mut groups = 0;
    while fixture.tables().refuses_claims().is_none() {
        fixture.writes(&puts(Table::Due, 0..KEYS));
        groups += 1;
    }
    assert!(groups <= 7, "{groups}");
    // What ends something is written even now.
    fixture.writes(&removes(Table::Records, 0..8));
    drop(fs::remove_dir_all(path.join("rows")));
    fs::rename(path.join("away"), path.join("rows")).unwrap();
    fs::remove_dir(&in_the_way).unwrap();
    while fixture.tables().refuses_claims().is_some() || fixture.tables().frozen.is_some() {
        fixture.ends_run();
        fixture.writes(&puts(Table::Created, 0..1));
    }
    // Records of which the database had the place, while it could not be read, are still counted.
    fixture.is_as_expected();
    fixture.crashes();
    fixture.is_as_expected();
}

#[test]
fn a_mark_reads_back_and_is_known_to_be_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let mut fixture = with_rows();
    let tables = fixture.tables();
    let position = Some(tables.log.position());
    let accounts = tables.accounts.clone();
    let mark = Mark { position, time: Timestamp(5), accounts };
    mark.write(folder.path()).unwrap();
    let read = Mark::read(folder.path()).unwrap();
    assert_eq!(read.position, mark.position);
    assert!(read.accounts.iter().eq(mark.accounts.iter()));
    let bytes = fs::read(mark::path(folder.path())).unwrap();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        fs::write(mark::path(folder.path()), changed).unwrap();
        assert!(Mark::read(folder.path()).is_err(), "byte {at}");
        fs::write(mark::path(folder.path()), &bytes[..at]).unwrap();
        assert!(Mark::read(folder.path()).is_err(), "cut at {at}");
    }
}

/// If the mark is lost and that is accepted, the records are counted anew.
#[test]
fn without_a_mark_the_records_are_counted_again() {
    let mut fixture = with_rows();
    fixture.happens(&Event::Freeze);
    fixture.ends_run();
    fixture.writes(&puts(Table::Records, 4..16));
    drop(fixture.tables.take());
    let path = fixture.folder.path();
    let rows_before = fixture.expected.clone();
    fs::remove_file(path.join("log/mark")).unwrap();
    let taken = || Arc::new(Directory::take(path).unwrap());
    assert!(opened(taken(), OPTIONS).is_err());
    let accepting = Options { if_damaged: IfDamaged::Accept, ..OPTIONS };
    let tables = opened(taken(), accepting).unwrap();
    fixture.tables = Some(tables);
    fixture.counts_exactly();
    assert_eq!(fixture.expected, rows_before);
}

/// Whatever of the database is missing, the store does not open with an empty part in its place.
#[test]
fn without_any_file_of_the_database_it_does_not_open() {
    let mut fixture = with_rows();
    fixture.happens(&Event::Freeze);
    fixture.ends_run();
    drop(fixture.tables.take());
    let path = &fixture.folder.path().to_owned();
    let mut left = vec![path.join("rows")];
    let mut files = Vec::new();
    while let Some(found) = left.pop() {
        if found.is_dir() {
            left.extend(fs::read_dir(&found).unwrap().map(|entry| entry.unwrap().path()));
        }
        files.push(found);
    }
    let away = path.join("away");
    for part in files.into_iter().filter(|part| !part.ends_with("lock")) {
        // The database removes what it does not need.
        if !part.exists() {
            continue;
        }
        fs::rename(&part, &away).unwrap();
        // A file that is not needed may be missing.
        if let Ok(tables) = try_open(path) {
            fixture.tables = Some(tables);
            fixture.is_as_expected();
            fixture.tables = None;
        }
        let made = if part.is_dir() { fs::remove_dir_all(&part) } else { Ok(()) };
        made.unwrap();
        fs::rename(&away, &part).unwrap();
    }
    fixture.tables = Some(open(path));
    fixture.is_as_expected();
}
