//! What a person decides about many operations at once: those of one route that have stood in one
//! state since before some time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::{Deserialize, Serialize};

use super::Admin;
use super::body::{self, json, mistake};
use super::decide::{Act, OutcomeWord, StateWord, make};
use super::json::rfc3339;
use super::listing::{LIMIT_MAX, behind, cursor, limit_of, page, place, time};
use super::problem::Problem;
use crate::clock::{Clock, Moment};
use crate::operation::state::{Decided, Resolution, Verdict};
use crate::operation::{Operation, OperationId, StateName, Timestamp};
use crate::store::{ListQuery, Store};

/// Calls to the store that are under way at a time.
const AT_ONCE: usize = 16;
/// When the last one is begun. Whoever waits for the answer waits longer.
const TIME_MAX: Duration = Duration::from_mins(1);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManyJson {
    route: String,
    state: StateWord,
    before: String,
    outcome: OutcomeWord,
    reason: String,
    reference: Option<String>,
    by: Option<String>,
    dry_run: bool,
    limit: Option<usize>,
    cursor: Option<String>,
    /// Those of an earlier dry run: no other one is resolved.
    operations: Option<Vec<SeenJson>>,
}

/// An operation, and the attempt at which it was seen.
#[derive(Debug, Deserialize)]
struct SeenJson {
    operation: String,
    attempt: u32,
}

/// What was done, or would be.
#[derive(Debug, Default, Serialize)]
pub(super) struct ManyDoneJson {
    dry_run: bool,
    operations: Vec<EachJson>,
    done: usize,
    refused: usize,
    /// Whether more may be left: because of the limit or the time, or because the store failed.
    left: bool,
    next: Option<String>,
}

#[derive(Debug, Serialize)]
struct EachJson {
    operation: String,
    attempt: u32,
    created_at: String,
    result: ResultWord,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum ResultWord {
    /// It was a dry run.
    Would,
    Done,
    /// It has changed since it was looked at.
    Refused,
    /// The store did not say; nothing is begun after it.
    Unknown,
}

/// One that is asked for, as it stands.
#[derive(Debug)]
struct Found {
    id: OperationId,
    attempt: u32,
    created_at: Timestamp,
}

impl From<&Operation> for Found {
    fn from(operation: &Operation) -> Self {
        Self {
            id: operation.asked.id,
            attempt: operation.attempts.latest_number(),
            created_at: operation.created_at,
        }
    }
}

impl ManyJson {
    fn listing(&self, before: Timestamp) -> Result<ListQuery, Problem> {
        let after = self.cursor.as_deref();
        let after = after.map(|text| place(text).ok_or_else(|| mistake("`cursor` is none")));
        Ok(ListQuery {
            key: None,
            route: Some(Arc::from(&*self.route)),
            state: Some(self.state.into()),
            after: behind(Some(before), after.transpose()?),
            limit: limit_of(self.limit.or(Some(LIMIT_MAX))).map_err(mistake)?,
        })
    }

    /// What is decided about each.
    fn resolution(&self, retention: Duration) -> Result<ManyResolution, Problem> {
        Ok(ManyResolution {
            verdict: match self.outcome {
                OutcomeWord::Succeeded => Verdict::Succeeded(None),
                OutcomeWord::Failed => Verdict::Failed,
            },
            by: body::by(self.by.clone())?,
            reason: body::reason(self.reason.clone())?,
            reference: body::reference(self.reference.clone())?,
            state: self.state.into(),
            retention,
        })
    }
}

impl ManyResolution {
    /// The decision about one of them, for the attempt and the state in which it was seen.
    fn of(&self, found: &Found) -> Resolution {
        let Self { verdict, by, reason, reference, state, retention } = self.clone();
        Resolution {
            operation: found.id,
            verdict,
            by,
            reason,
            reference,
            attempt: Some(found.attempt),
            state: Some(state),
            retention,
        }
    }
}

/// A decision about many operations.
#[derive(Debug, Clone)]
struct ManyResolution {
    verdict: Verdict,
    by: String,
    reason: String,
    reference: Option<String>,
    state: StateName,
    retention: Duration,
}

/// When nothing more is begun. What is under way ends by the store's own deadlines.
#[derive(Debug, Clone)]
struct Deadline {
    clock: Clock,
    at: Moment,
}

impl Deadline {
    fn of(clock: &Clock) -> Self {
        Self { clock: clock.clone(), at: clock.moment().plus(TIME_MAX) }
    }

    fn has_passed(&self) -> bool {
        self.clock.moment() >= self.at
    }
}

/// `POST /api/operations/resolve`.
pub(super) async fn resolve(
    State(admin): State<Admin>,
    request: Request,
) -> Result<Json<ManyDoneJson>, Problem> {
    let mut asked: ManyJson = json(request).await?;
    let before = time(&asked.before).map_err(mistake)?;
    let listing = asked.listing(before)?;
    let (dry_run, seen) = (asked.dry_run, asked.operations.take());
    let resolution = asked.resolution(admin.0.retentions.of(&asked.route))?;
    let deadline = Deadline::of(&admin.0.clock);
    let (looked, next) = match seen {
        None => {
            let (found, next) = page(&admin, &listing).await?;
            (Looked { found, changed: 0, left: false }, next.map(cursor))
        }
        Some(seen) => (look(&admin, &listing, before, &seen, &deadline).await?, None),
    };
    let Looked { found, changed, left } = looked;
    let mut done = if dry_run {
        ManyDoneJson::would(&found)
    } else {
        let store = Arc::clone(&admin.0.store);
        // In a task of its own: a caller that hangs up leaves nothing half done or unlogged.
        let resolved =
            tokio::spawn(async move { resolve_all(&*store, found, &resolution, &deadline).await });
        resolved.await.map_err(|_panicked| Problem::NoReply)?
    };
    done.refused += changed;
    // What is left of this page is found where the page began.
    done.next = if done.left { asked.cursor } else { next };
    done.left |= left || done.next.is_some();
    Ok(Json(done))
}

/// What became of those of an earlier dry run.
#[derive(Debug)]
struct Looked {
    /// They still are what is asked for.
    found: Vec<Found>,
    /// So many are not.
    changed: usize,
    /// Whether some were not looked at.
    left: bool,
}

async fn look(
    admin: &Admin,
    listing: &ListQuery,
    before: Timestamp,
    seen: &[SeenJson],
    deadline: &Deadline,
) -> Result<Looked, Problem> {
    if seen.len() > listing.limit {
        return Err(mistake(format_args!("more than {} `operations`", listing.limit)));
    }
    let parsed = seen.iter().map(|SeenJson { operation, attempt }| {
        let id = operation.parse().map_err(|_| mistake("one of `operations` is no id"))?;
        Ok((id, *attempt))
    });
    let parsed = parsed.collect::<Result<Vec<(OperationId, u32)>, Problem>>()?;
    // None: the time was over; none inside: it is no more what is asked for.
    let looked = stream::iter(parsed).map(async |(id, attempt)| {
        if deadline.has_passed() {
            return Ok(None);
        }
        match admin.find(id).await {
            Ok(stands) => {
                let asked_for = listing.matches(&stands) && stands.created_at < before;
                let found = Found::from(&stands);
                Ok(Some(Some(found).filter(|found| asked_for && found.attempt == attempt)))
            }
            Err(Problem::NoSuchOperation) => Ok(Some(None)),
            Err(problem) => Err(problem),
        }
    });
    let looked: Vec<_> = looked.buffered(AT_ONCE).try_collect().await?;
    let left = looked.iter().any(Option::is_none);
    let changed = looked.iter().filter(|looked| matches!(looked, Some(None))).count();
    Ok(Looked { found: looked.into_iter().flatten().flatten().collect(), changed, left })
}

/// A few at a time, each only if it still stands as it was seen; none any more when the time is
/// over or the store has failed.
async fn resolve_all(
    store: &dyn Store,
    found: Vec<Found>,
    resolution: &ManyResolution,
    deadline: &Deadline,
) -> ManyDoneJson {
    let failed = AtomicBool::new(false);
    let decided = stream::iter(found).map(async |found| {
        if deadline.has_passed() || failed.load(Ordering::Acquire) {
            return None;
        }
        let result = match make(store, Act::Resolve(resolution.of(&found))).await {
            Ok(Decided::Done) => ResultWord::Done,
            Ok(Decided::Refused | Decided::Unknown) => ResultWord::Refused,
            Err(_) => {
                failed.store(true, Ordering::Release);
                ResultWord::Unknown
            }
        };
        Some(found.with(result))
    });
    let decided: Vec<_> = decided.buffered(AT_ONCE).collect().await;
    let left = decided.iter().any(Option::is_none) || failed.into_inner();
    let operations: Vec<EachJson> = decided.into_iter().flatten().collect();
    let count = |word| operations.iter().filter(|each| each.result == word).count();
    let done = count(ResultWord::Done);
    let refused = count(ResultWord::Refused);
    ManyDoneJson { operations, done, refused, left, ..ManyDoneJson::default() }
}

impl ManyDoneJson {
    fn would(found: &[Found]) -> Self {
        let operations = found.iter().map(|found| found.with(ResultWord::Would)).collect();
        Self { dry_run: true, operations, ..Self::default() }
    }
}

impl Found {
    fn with(&self, result: ResultWord) -> EachJson {
        EachJson {
            operation: self.id.to_string(),
            attempt: self.attempt,
            created_at: rfc3339(self.created_at),
            result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::memory::Memory;

    /// Asks for operations that nobody remembers.
    async fn resolved(deadline: impl FnOnce(&Clock) -> Deadline) -> ManyDoneJson {
        let clock = Clock::manual(Timestamp(0));
        let store = Memory::new(clock.clone());
        let resolution = ManyResolution {
            verdict: Verdict::Failed,
            by: "operator".to_owned(),
            reason: "why".to_owned(),
            reference: None,
            state: StateName::Uncertain,
            retention: Duration::from_secs(1),
        };
        resolve_all(&store, found().collect(), &resolution, &deadline(&clock)).await
    }

    fn found() -> impl Iterator<Item = Found> {
        (0..100).map(|n| Found {
            id: OperationId::from_bytes([n; 16]),
            attempt: 1,
            created_at: Timestamp(0),
        })
    }

    #[tokio::test]
    async fn what_became_of_each_is_told_in_their_order() {
        let done = resolved(Deadline::of).await;
        let told: Vec<_> = done.operations.into_iter().map(|each| each.operation).collect();
        assert_eq!(told, found().map(|found| found.id.to_string()).collect::<Vec<_>>());
        assert_eq!((done.done, done.refused, done.left), (0, 100, false));
    }

    #[tokio::test]
    async fn when_the_time_is_over_nothing_more_is_begun_and_the_rest_is_left() {
        let done = resolved(|clock| {
            let deadline = Deadline::of(clock);
            clock.advance(TIME_MAX);
            deadline
        });
        let done = done.await;
        assert!(done.operations.is_empty());
        assert_eq!((done.done, done.refused, done.left), (0, 0, true));
    }
}
