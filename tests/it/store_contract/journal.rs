//! The log of the store on disk after a loss of power, and with damage: what was answered is there,
//! or the store does not open and says why. (Every byte and bit is tried beside the log.)

use std::fs;
use std::path::Path;
use std::sync::Arc;

use onceward::clock::Clock;
use onceward::operation::state::{ClaimReply, ClaimRequest, Ending, ReportedState, Settlement};
use onceward::operation::{AnswerBody, Outcome, State, StoredAnswer};
use onceward::store::embedded::{Embedded, IfDamaged, OpenError, Settings};
use onceward::store::{Store, StoreExt as _};
use tempfile::TempDir;

use super::embedded::{START, after_a_crash_of, open_with, settings};
use super::listing::{ALL, ids, keyed};
use super::support::{
    HOLD_FOR, LEASE, RETENTION, answer, attempted, copy_of, end_of, granted, order, sweep_all,
};
use crate::support::segments::{SECTOR, all, content, newest, newest_content, replace};

pub(super) const SYNCED: &str = "log/synced";

pub(super) fn open(path: &Path, if_damaged: IfDamaged) -> Result<Arc<Embedded>, OpenError> {
    open_with(&Settings { if_damaged, ..settings(path) }, &Clock::manual(START))
}

/// The end of an attempt whose answer has this body.
pub(super) fn end_with(request: &ClaimRequest, body: &[u8]) -> Settlement {
    let mut end = end_of(request, 1, Outcome::Succeeded);
    let body = AnswerBody::Kept(body.to_vec().into());
    let answer = Arc::new(StoredAnswer { body, ..StoredAnswer::clone(&answer()) });
    end.ending = Ending::Succeeded { answer, reference: None };
    end
}

/// A store in which `kept` was done and `last` was claimed; its last group is the end of `last`,
/// with a body that holds the groups before it. Nobody was told of that group: it is not noted as
/// synced. And the newest segment of the log before and behind that group.
struct Written {
    store: TempDir,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Written {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let store = open(path, IfDamaged::Refuse).unwrap();
        attempted(&*store, &order("kept"), Outcome::Succeeded).await;
        let (request, _) = granted(&*store, &order("last")).await;
        let before = newest_content(path);
        let synced = fs::read(path.join(SYNCED)).unwrap();
        let body = [&before[..], &vec![0; 2 * SECTOR], b"GRP\n", &before, b"GRP"].concat();
        store.apply(end_with(&request, &body)).await.unwrap();
        let after = newest_content(path);
        let store = after_a_crash_of(path, |copy| fs::write(copy.join(SYNCED), synced).unwrap());
        Self { store, before, after }
    }

    /// The store with another content of its newest segment.
    fn with(&self, content: &[u8]) -> TempDir {
        after_a_crash_of(self.store.path(), |copy| replace(&newest(copy), content))
    }

    /// Sectors in which the last group has a part.
    fn sectors(&self) -> Vec<usize> {
        (self.before.len()..self.after.len()).step_by(SECTOR).collect()
    }

    /// The content with these sectors as they were before the last group.
    fn torn(&self, sectors: &[usize]) -> Vec<u8> {
        let mut bytes = self.after.clone();
        for start in sectors {
            bytes[*start..*start + SECTOR].fill(0);
        }
        bytes
    }
}

/// What was done is remembered; and what `last` has become.
async fn keeps_what_was_done(store: &dyn Store) -> ClaimReply {
    let kept = copy_of(store, &order("kept")).await;
    assert_eq!(
        kept,
        ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer() })
    );
    copy_of(store, &order("last")).await
}

#[tokio::test]
async fn bodies_that_look_like_a_log_are_kept_byte_for_byte() {
    let written = Written::new().await;
    let store = open(written.store.path(), IfDamaged::Refuse).unwrap();
    let told = keeps_what_was_done(&*store).await;
    let ClaimReply::NotGranted(ReportedState::Succeeded { answer, .. }) = told else {
        panic!("{told:?}")
    };
    let AnswerBody::Kept(body) = &answer.body else { panic!("it was kept") };
    assert!(body.starts_with(&written.before) && body.ends_with(b"GRP"));
    store.close().await;
    let again = open(written.store.path(), IfDamaged::Refuse).unwrap();
    assert!(matches!(
        keeps_what_was_done(&*again).await,
        ClaimReply::NotGranted(ReportedState::Succeeded { .. })
    ));
}

/// Behind the byte at which the process was killed there are zeros, as the segment was made.
#[tokio::test]
async fn a_log_that_ends_inside_its_last_group_opens_with_all_before() {
    let written = Written::new().await;
    let (before, after) = (written.before.len(), written.after.len());
    let last_sector = after - SECTOR;
    // The head of a group is in one sector, and a sector is written as a whole.
    let ends = (before..last_sector).step_by(41).chain([last_sector]);
    for length in ends {
        let cut = written.with(&written.after[..length]);
        let store = open(cut.path(), IfDamaged::Refuse).unwrap();
        let told = keeps_what_was_done(&*store).await;
        assert!(
            matches!(told, ClaimReply::NotGranted(ReportedState::Uncertain { .. })),
            "cut at {length}: {told:?}"
        );
    }
}

/// A segment gets all its bytes when it is made, so no crash leaves fewer.
#[tokio::test]
async fn a_segment_that_was_cut_off_is_damaged() {
    let written = Written::new().await;
    let (before, after) = (written.before.len(), written.after.len());
    for length in (before..after).step_by(203).chain([before + 1, after - SECTOR]) {
        let cut = after_a_crash_of(written.store.path(), |copy| {
            fs::write(newest(copy), &written.after[..length]).unwrap();
        });
        for _ in 0..2 {
            let refused = open(cut.path(), IfDamaged::Refuse).unwrap_err();
            let begins = before as u64;
            assert!(
                matches!(refused, OpenError::DamagedJournal { offset, .. } if offset == begins),
                "cut at {length}: {refused:?}"
            );
        }
        let store = open(cut.path(), IfDamaged::Accept).unwrap();
        let told = keeps_what_was_done(&*store).await;
        assert!(
            matches!(told, ClaimReply::NotGranted(ReportedState::Uncertain { .. })),
            "{told:?}"
        );
    }
}

#[tokio::test]
async fn a_last_group_of_which_sectors_are_missing_is_dropped() {
    let written = Written::new().await;
    let sectors = written.sectors();
    assert!(sectors.len() > 4, "{sectors:?}");
    let each = sectors.iter().map(|sector| vec![*sector]);
    let pairs = sectors.windows(2).map(<[usize]>::to_vec);
    for missing in each.chain(pairs).chain([sectors[1..].to_vec(), sectors.clone()]) {
        let torn = written.with(&written.torn(&missing));
        for _ in 0..2 {
            let store = open(torn.path(), IfDamaged::Refuse).unwrap();
            let told = keeps_what_was_done(&*store).await;
            assert!(
                matches!(told, ClaimReply::NotGranted(ReportedState::Uncertain { .. })),
                "{missing:?}: {told:?}"
            );
            // it goes on behind what it has dropped
            let more = order(&format!("{missing:?}"));
            assert_ne!(copy_of(&*store, &more).await, ClaimReply::NotGranted(ReportedState::Free));
            store.close().await;
        }
    }
}

#[tokio::test]
async fn a_flipped_bit_refuses_names_its_place_and_is_left_out_when_that_is_accepted() {
    let written = Written::new().await;
    let last = written.after.iter().rposition(|byte| *byte == 0xa5).unwrap();
    let [first, middle, big] = [SECTOR + 40, written.before.len() / 2, written.before.len() + 300];
    for at in [9, first, middle, big, last] {
        let mut bytes = written.after.clone();
        bytes[at] ^= 1;
        let damaged = written.with(&bytes);
        let segment = newest(written.store.path());
        let segment = segment.strip_prefix(written.store.path()).unwrap();
        for _ in 0..2 {
            let refused = open(damaged.path(), IfDamaged::Refuse).unwrap_err();
            let OpenError::DamagedJournal { journal, offset, .. } = &refused else {
                panic!("{at}: {refused:?}")
            };
            assert_eq!(*journal, damaged.path().join(segment));
            assert!(*offset <= at as u64, "{offset} is behind {at}");
            let says = refused.to_string();
            assert!(says.contains(&format!("at byte {offset}:")), "{says}");
            assert!(says.contains("`--accept-damaged-store`"), "{says}");
            assert_eq!(content(&damaged.path().join(segment)), bytes, "it is untouched");
        }
        let store = open(damaged.path(), IfDamaged::Accept).unwrap();
        let told = copy_of(&*store, &order("last")).await;
        let is_whole = (SECTOR..written.before.len()).contains(&at);
        assert_eq!(
            matches!(told, ClaimReply::NotGranted(ReportedState::Succeeded { .. })),
            is_whole,
            "{at}: {told:?}"
        );
        if at > written.before.len() {
            keeps_what_was_done(&*store).await;
        }
        store.close().await;
        let aside = segment.file_name().unwrap().to_str().unwrap();
        let aside = damaged.path().join(format!("{aside}.damaged"));
        assert_eq!(content(&aside), bytes, "it is kept for whoever can read it");
        open(damaged.path(), IfDamaged::Refuse).unwrap();
    }
}

#[tokio::test]
async fn a_whole_group_behind_one_without_a_sector_refuses() {
    let written = Written::new().await;
    let store = open(written.store.path(), IfDamaged::Refuse).unwrap();
    granted(&*store, &order("behind")).await;
    // The start has begun another segment, which says how far this one reaches.
    let segment = all(written.store.path()).into_iter().rev().nth(1).unwrap();
    let mut bytes = content(&segment);
    assert_eq!(bytes, written.after);
    let missing = written.sectors()[2];
    bytes[missing..missing + SECTOR].fill(0);
    let damaged = after_a_crash_of(written.store.path(), |copy| {
        replace(&copy.join(segment.strip_prefix(written.store.path()).unwrap()), &bytes);
    });
    let refused = open(damaged.path(), IfDamaged::Refuse).unwrap_err();
    let begins = written.before.len() as u64;
    assert!(
        matches!(refused, OpenError::DamagedJournal { offset, .. } if offset == begins),
        "{refused:?}"
    );
    let store = open(damaged.path(), IfDamaged::Accept).unwrap();
    let told = keeps_what_was_done(&*store).await;
    assert!(
        matches!(told, ClaimReply::NotGranted(ReportedState::Uncertain { .. })),
        "it was claimed: {told:?}"
    );
    let told = copy_of(&*store, &order("behind")).await;
    assert!(matches!(told, ClaimReply::NotGranted(ReportedState::Uncertain { .. })), "{told:?}");
}

/// What may be lost costs no sync: a flood of copies of a held operation does not slow others.
#[tokio::test]
async fn that_a_copy_was_refused_is_written_with_the_next_group() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let clock = Clock::manual(START);
    let held = order("held");
    let store = open_with(&settings(path), &clock).unwrap();
    attempted(&*store, &held, Outcome::Uncertain).await;
    for round in 0..3 {
        clock.advance(LEASE);
        let before = newest_content(path);
        for _ in 0..50 {
            assert!(matches!(
                copy_of(&*store, &held).await,
                ClaimReply::NotGranted(ReportedState::Uncertain { .. })
            ));
        }
        assert!(matches!(store.get(held.id).await, Ok(Some(_))));
        assert_eq!(newest_content(path), before, "nothing was written");
        match round {
            0 => drop(granted(&*store, &order("other")).await),
            1 => drop(store.sweep(1).await.unwrap()),
            _ => store.close().await,
        }
        let killed = after_a_crash_of(path, |_| ());
        let clock = Clock::manual(clock.wall());
        let again = open_with(&settings(killed.path()), &clock).unwrap();
        let found = again.get(held.id).await.unwrap().unwrap();
        let State::Uncertain(found) = found.state else { panic!("{found:?}") };
        assert_eq!(found.hold_until, clock.wall().plus(HOLD_FOR), "round {round}");
    }
}

/// The rows by which an operation is listed come with its first claim, and not with its end.
#[tokio::test]
async fn an_operation_whose_claim_was_damaged_is_listed_and_expires() {
    let written = tempfile::tempdir().unwrap();
    let store = open(written.path(), IfDamaged::Refuse).unwrap();
    attempted(&*store, &order("before"), Outcome::Succeeded).await;
    let claimed_at = newest_content(written.path()).len();
    attempted(&*store, &order("done"), Outcome::Succeeded).await;
    let mut bytes = newest_content(written.path());
    bytes[claimed_at + 100] ^= 1;
    let damaged = after_a_crash_of(written.path(), |copy| replace(&newest(copy), &bytes));
    let noted = fs::read(damaged.path().join(SYNCED)).unwrap();
    let accepted = open(damaged.path(), IfDamaged::Accept).unwrap();
    are_listed(&*accepted, &["before", "done"]).await;
    accepted.close().await;
    assert!(!damaged.path().join(REINDEX).exists());
    // A start that was interrupted may not have written the rows.
    let segment = newest(damaged.path());
    let rewritten = content(&segment);
    assert!(rewritten.len() > SECTOR);
    replace(&segment, &rewritten[..SECTOR]);
    fs::write(damaged.path().join(SYNCED), noted).unwrap();
    fs::write(damaged.path().join(REINDEX), "").unwrap();
    let clock = Clock::manual(START);
    let again = open_with(&settings(damaged.path()), &clock).unwrap();
    are_listed(&*again, &["before", "done"]).await;
    clock.advance(RETENTION);
    assert_eq!(sweep_all(&*again, 10).await, (2, 0));
    assert!(!damaged.path().join(REINDEX).exists());
}

const REINDEX: &str = "reindex";

/// A list has exactly these operations, and each is found by its key.
async fn are_listed(store: &dyn Store, keys: &[&str]) {
    let mut wanted: Vec<_> = keys.iter().map(|key| order(key).id).collect();
    wanted.sort();
    let mut listed = ids(store, &ALL).await;
    listed.sort();
    assert_eq!(listed, wanted);
    for key in keys {
        assert_eq!(keyed(store, key).await, [order(key).id], "{key}");
    }
}
