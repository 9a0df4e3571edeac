//! Resolves many operations at once: those of one route that are in one state and were created
//! before a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::api::{Outcome, ResolveMany, ResolveResult, Resolved, ResolvedMany, Seen};
use super::body::{self, json, mistake};
use super::control::Admin;
use super::decide::{DecisionRequest, decide};
use super::from_record::rfc3339;
use super::listing::{LIMIT_MAX, check_limit, cursor, page, parse_cursor, parse_time, start};
use super::problem::Problem;
use crate::clock::{Clock, Moment};
use crate::operation::state::{Decided, Resolution, Verdict};
use crate::operation::{Key, Operation, OperationId, StateName, Timestamp};
use crate::store::{ListQuery, Store};

/// How many calls to the store are in flight at a time.
const CALLS_AT_ONCE: usize = 16;
/// How long new calls to the store are begun. The command waits longer than this for the answer.
const BEGIN_WITHIN: Duration = Duration::from_mins(1);

/// An operation that may be resolved, as it was seen.
#[derive(Debug)]
struct Candidate {
    id: OperationId,
    key: Key,
    attempt: u32,
    created_at: Timestamp,
}

impl From<&Operation> for Candidate {
    fn from(operation: &Operation) -> Self {
        Self {
            id: operation.subject.id,
            key: operation.subject.key.clone(),
            attempt: operation.attempts.latest_number(),
            created_at: operation.created_at,
        }
    }
}

impl Candidate {
    fn resolved(&self, result: ResolveResult) -> Resolved {
        Resolved {
            operation: self.id.to_string(),
            key: Some(self.key.clone()),
            attempt: self.attempt,
            created_at: rfc3339(self.created_at),
            result,
        }
    }
}

fn listing(body: &ResolveMany, before: Timestamp) -> Result<ListQuery, Problem> {
    let after = body.cursor.as_deref();
    let after = after.map(|text| parse_cursor(text).ok_or_else(|| mistake("`cursor` is none")));
    Ok(ListQuery {
        key: None,
        route: Some(Arc::from(&*body.route)),
        state: Some(body.state.into()),
        after: start(Some(before), after.transpose()?),
        limit: check_limit(body.limit.or(Some(LIMIT_MAX))).map_err(mistake)?,
    })
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

impl ManyResolution {
    fn of(body: &ResolveMany, retention: Duration) -> Result<Self, Problem> {
        Ok(Self {
            verdict: match body.outcome {
                Outcome::Succeeded => Verdict::Succeeded(None),
                Outcome::Failed => Verdict::Failed,
            },
            by: body::by(body.by.clone())?,
            reason: body::reason(body.reason.clone())?,
            reference: body::reference(body.reference.clone())?,
            state: body.state.into(),
            retention,
        })
    }

    /// The decision about one of the operations. The store refuses it unless the operation is still
    /// in the state and at the attempt in which it was seen.
    fn resolution(&self, candidate: &Candidate) -> Resolution {
        let Self { verdict, by, reason, reference, state, retention } = self.clone();
        Resolution {
            operation: candidate.id,
            verdict,
            by,
            reason,
            reference,
            attempt: Some(candidate.attempt),
            state: Some(state),
            retention,
        }
    }
}

/// The time after which no further call to the store is begun. Calls in flight end by the deadlines
/// that the store has itself.
#[derive(Debug, Clone)]
struct Deadline {
    clock: Clock,
    at: Moment,
}

impl Deadline {
    fn of(clock: &Clock) -> Self {
        Self { clock: clock.clone(), at: clock.moment().plus(BEGIN_WITHIN) }
    }

    fn has_passed(&self) -> bool {
        self.clock.moment() >= self.at
    }
}

/// `POST /api/operations/resolve`.
pub(super) async fn resolve(
    State(admin): State<Admin>,
    request: Request,
) -> Result<Json<ResolvedMany>, Problem> {
    let mut body: ResolveMany = json(request).await?;
    let before = parse_time(&body.before).map_err(mistake)?;
    let listing = listing(&body, before)?;
    let seen = body.operations.take();
    let resolution = ManyResolution::of(&body, admin.0.retentions.of(&body.route))?;
    let deadline = Deadline::of(&admin.0.clock);
    let selection = match seen {
        None => Selection::page(&admin, &listing).await?,
        Some(seen) => Selection::of_seen(&admin, &listing, before, &seen, &deadline).await?,
    };
    let Selection { candidates, changed, left, next } = selection;
    let is_empty = candidates.is_empty() && changed == 0;
    let routes = is_empty.then(|| admin.0.retentions.routes_if_unknown(&body.route)).flatten();
    let mut done = if body.dry_run {
        would_resolve(&candidates)
    } else {
        let store = Arc::clone(&admin.0.store);
        // In a task of its own, so that a caller that hangs up leaves nothing half done or
        // unlogged.
        let resolved =
            tokio::spawn(
                async move { resolve_all(&*store, candidates, &resolution, &deadline).await },
            );
        resolved.await.map_err(|_panicked| Problem::NoReply)?
    };
    done.routes = routes;
    done.refused += changed;
    // If something is left of this page, the next call has to begin where this page began: the
    // operations that were resolved are not in the state any more and are not found again.
    done.next = if done.left { body.cursor } else { next };
    done.left |= left || done.next.is_some();
    Ok(Json(done))
}

/// The operations that a call is about.
#[derive(Debug, Default)]
struct Selection {
    /// The operations that match what is asked for.
    candidates: Vec<Candidate>,
    /// How many of those that the operator has seen do not match any more.
    changed: usize,
    /// Whether some of those that the operator has seen were not read in time.
    left: bool,
    /// The cursor of the next page.
    next: Option<String>,
}

impl Selection {
    /// Selects one page of the operations that match.
    async fn page(admin: &Admin, listing: &ListQuery) -> Result<Self, Problem> {
        let (candidates, next) = page(admin, listing).await?;
        Ok(Self { candidates, next: next.map(cursor), ..Self::default() })
    }

    /// Selects those of the operations which the operator has seen that still match.
    async fn of_seen(
        admin: &Admin,
        listing: &ListQuery,
        before: Timestamp,
        seen: &[Seen],
        deadline: &Deadline,
    ) -> Result<Self, Problem> {
        if seen.len() > listing.limit {
            return Err(mistake(format_args!("more than {} `operations`", listing.limit)));
        }
        let mut parsed = Vec::with_capacity(seen.len());
        for Seen { operation, attempt } in seen {
            let id = operation.parse();
            let id: OperationId = id.map_err(|_| mistake("one of `operations` is no id"))?;
            parsed.push((id, *attempt));
        }
        let checked = stream::iter(parsed).map(async |(id, attempt)| {
            if deadline.has_passed() {
                return Ok(Checked::NotInTime);
            }
            match admin.find(id).await {
                Ok(found) => {
                    let candidate = Candidate::from(&found);
                    let matches = listing.matches(&found)
                        && found.created_at < before
                        && candidate.attempt == attempt;
                    Ok(if matches { Checked::Matches(candidate) } else { Checked::Changed })
                }
                // The operation was forgotten by the store meanwhile: its retention has passed.
                Err(Problem::NoSuchOperation) => Ok(Checked::Changed),
                Err(problem) => Err(problem),
            }
        });
        let checked: Vec<Checked> = checked.buffered(CALLS_AT_ONCE).try_collect().await?;
        let mut selection = Self::default();
        for checked in checked {
            match checked {
                Checked::Matches(candidate) => selection.candidates.push(candidate),
                Checked::Changed => selection.changed += 1,
                Checked::NotInTime => selection.left = true,
            }
        }
        Ok(selection)
    }
}

/// Whether an operation which the operator has seen still matches.
#[derive(Debug)]
enum Checked {
    Matches(Candidate),
    Changed,
    /// The deadline had passed before it was read.
    NotInTime,
}

/// Resolves the candidates, several at a time. After the deadline, or once the store has failed, no
/// further one is begun.
async fn resolve_all(
    store: &dyn Store,
    candidates: Vec<Candidate>,
    resolution: &ManyResolution,
    deadline: &Deadline,
) -> ResolvedMany {
    let failed = AtomicBool::new(false);
    let resolved = stream::iter(candidates).map(async |candidate| {
        if deadline.has_passed() || failed.load(Ordering::Acquire) {
            return None;
        }
        let request = DecisionRequest::Resolve(resolution.resolution(&candidate));
        let result = match decide(store, request).await {
            Ok(Decided::Done) => ResolveResult::Done,
            Ok(Decided::Refused | Decided::Unknown) => ResolveResult::Refused,
            // A store that has failed once most likely fails for the others too, and each failure
            // leaves the operator one more operation to look at.
            Err(_) => {
                failed.store(true, Ordering::Release);
                ResolveResult::Unknown
            }
        };
        Some(candidate.resolved(result))
    });
    let resolved: Vec<_> = resolved.buffered(CALLS_AT_ONCE).collect().await;
    let left = resolved.iter().any(Option::is_none) || failed.into_inner();
    let operations: Vec<Resolved> = resolved.into_iter().flatten().collect();
    let count = |result| operations.iter().filter(|each| each.result == result).count();
    let done = count(ResolveResult::Done);
    let refused = count(ResolveResult::Refused);
    ResolvedMany { operations, done, refused, left, ..ResolvedMany::default() }
}

/// The answer to a dry run.
fn would_resolve(candidates: &[Candidate]) -> ResolvedMany {
    let would = |candidate: &Candidate| candidate.resolved(ResolveResult::Would);
    let operations = candidates.iter().map(would).collect();
    ResolvedMany { dry_run: true, operations, ..ResolvedMany::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::KeyKind;
    use crate::store::memory::Memory;

    /// Resolves operations that the store does not remember.
    async fn resolved(deadline: impl FnOnce(&Clock) -> Deadline) -> ResolvedMany {
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
        resolve_all(&store, candidates().collect(), &resolution, &deadline(&clock)).await
    }

    fn candidates() -> impl Iterator<Item = Candidate> {
        (0..100).map(|n| Candidate {
            id: OperationId::from_bytes([n; 16]),
            key: Key { from: KeyKind::Header, parts: vec![n.to_string()] },
            attempt: 1,
            created_at: Timestamp(0),
        })
    }

    #[tokio::test]
    async fn the_result_of_each_is_given_in_their_order() {
        let done = resolved(Deadline::of).await;
        let given: Vec<_> = done.operations.into_iter().map(|each| each.operation).collect();
        assert_eq!(
            given,
            candidates().map(|candidate| candidate.id.to_string()).collect::<Vec<_>>()
        );
        assert_eq!((done.done, done.refused, done.left), (0, 100, false));
    }

    #[tokio::test]
    async fn after_the_deadline_nothing_more_is_begun_and_the_rest_is_left() {
        let done = resolved(|clock| {
            let deadline = Deadline::of(clock);
            clock.advance(BEGIN_WITHIN);
            deadline
        });
        let done = done.await;
        assert!(done.operations.is_empty());
        assert_eq!((done.done, done.refused, done.left), (0, 0, true));
    }
}
