//! The executor inside a process of our own: what no sender or upstream can bring about.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt as _, Full};
use onceward::budget::Budget;
use onceward::clock::Clock;
use onceward::idempotency::{
    Disposition, Executor, Forwarded, IfInFlight, KeyedRequest, Policy, ReceiverPolicy, Remember,
    RouteHandler, WhenStoreFails,
};
use onceward::operation::state::{
    Decided, IfUncertain, ReportedState, Resolution, RuleName, Verdict,
};
use onceward::operation::{
    AnswerBody, Durations, FingerprintDigest, Key, KeyKind, Operation, OperationId, Outcome,
    Reason, RequestMode, StoredAnswer, Subject, Timestamp,
};
use onceward::store::{
    Error, ListPage, ListQuery, RuleCall, Store, StoreExt as _, SweepReport, Watch, memory::Memory,
};
use onceward::telemetry::Metrics;
use onceward::upstream::{
    AnswerHeadLimits, DialSettings, Handler, HandlerCall, OutcomeRule, Request, Scheme, Settings,
    StatusRange, SystemResolver, Target, TrustStore, Upstream,
};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::PollSemaphore;
use tower::Service;

use crate::support::{Answer, Gate, Receiver, Seen, until};

/// A real store, beneath faults: a panic in the first settle, no more than so many claims, a claim
/// that comes late, or settles that wait.
#[derive(Debug)]
struct Faulty {
    store: Memory,
    panicked: AtomicBool,
    claims: AtomicUsize,
    /// The claim with this number, from 1, waits for the gate.
    late: usize,
    comes: Gate,
    settles: Option<Gate>,
}

impl Faulty {
    /// A store without faults, on this clock.
    fn on(clock: Clock) -> Self {
        Self {
            store: Memory::new(clock),
            panicked: AtomicBool::new(true),
            claims: AtomicUsize::new(usize::MAX),
            late: 0,
            comes: Gate::default(),
            settles: None,
        }
    }

    /// Waits until so many claims were sent to it.
    async fn has_counted(&self, claims: usize) {
        let has = async || usize::MAX - self.claims.load(Ordering::SeqCst) >= claims;
        until("the claims were sent", has).await;
    }

    /// Forgets all that has a lease.
    async fn loses_its_records(&self, clock: &Clock) {
        clock.advance(Duration::from_hours(1));
        self.store.sweep(10).await.unwrap();
    }
}

#[async_trait]
impl Store for Faulty {
    async fn call(&self, call: Arc<dyn RuleCall>) -> Result<(), Error> {
        if call.name() == RuleName::Claim {
            let left = |left: usize| left.checked_sub(1);
            let left = self.claims.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left);
            let left = left.map_err(|_| Error::Unavailable("this is a test"))?;
            if usize::MAX - left + 1 == self.late {
                self.comes.passes().await;
            }
        }
        if call.name() == RuleName::Settle {
            assert!(self.panicked.swap(true, Ordering::SeqCst), "the panic of this test");
            if let Some(gate) = &self.settles {
                gate.passes().await;
            }
        }
        self.store.call(call).await
    }

    async fn get(&self, id: OperationId) -> Result<Option<Operation>, Error> {
        self.store.get(id).await
    }

    async fn watch(&self, id: OperationId) -> Result<Watch, Error> {
        self.store.watch(id).await
    }

    async fn uncertain(&self) -> Result<u64, Error> {
        self.store.uncertain().await
    }

    async fn list(&self, listing: &ListQuery) -> Result<ListPage, Error> {
        self.store.list(listing).await
    }

    async fn sweep(&self, limit: usize) -> Result<SweepReport, Error> {
        self.store.sweep(limit).await
    }

    async fn probe(&self) -> Result<(), Error> {
        self.store.probe().await
    }

    async fn close(&self) {
        self.store.close().await;
    }
}

/// One attempt at a time, and copies wait.
fn policy() -> Policy {
    let all = |first| StatusRange { first, last: first + 99 };
    Policy {
        durations: Durations {
            lease: Duration::from_secs(15),
            attempt_timeout: Duration::from_secs(20),
            retention: Duration::from_mins(5),
            hold_for: Duration::from_mins(5),
        },
        answer_within: None,
        if_in_flight: IfInFlight::Wait,
        waiters_max: 10,
        receiver: ReceiverPolicy {
            if_uncertain: IfUncertain::Hold,
            lookup: None,
            outcome: OutcomeRule { succeeded: vec![all(200)], uncertain: vec![] },
            reference: None,
            forward_key: None,
        },
        remember: Remember::Retention,
        when_store_fails: WhenStoreFails::Refuse,
        in_flight_max: 1,
        body_bytes_max: 1024,
        drop_headers: vec![],
    }
}

fn to(receiver: &Receiver) -> Settings {
    let authority = receiver.address.to_string().parse().unwrap();
    Settings {
        target: Target { scheme: Scheme::Http, authority, path: None },
        connect_timeout: Duration::from_secs(5),
        keepalive: Duration::ZERO,
        keepalive_max: Duration::from_secs(30),
        preserve_host: true,
    }
}

fn keyed(number: u8, budget: &Budget) -> KeyedRequest {
    let headers = HeaderMap::from_iter([(http::header::HOST, "hooks.example".parse().unwrap())]);
    let (method, target) = (Method::POST, "/hooks".parse().unwrap());
    let subject = Subject {
        id: OperationId::from_bytes([number; 16]),
        route: "hooks".into(),
        method: "POST".into(),
        path: "/hooks".into(),
        key: Key { from: KeyKind::Header, parts: vec![number.to_string()] },
        fingerprint: FingerprintDigest::under("body").finish(),
        mode: RequestMode::Enforce,
    };
    let request = Request { method, target, headers, body: vec![number].into(), handler: None };
    let (arrived, memory) = (Instant::now(), budget.reserve_none());
    KeyedRequest {
        subject: Arc::new(subject),
        key: String::new(),
        request,
        steps: None,
        arrived,
        memory,
    }
}

/// An executor, and a route to one receiver.
struct Parts {
    executor: Arc<Executor>,
    handler: Arc<RouteHandler>,
    budget: Budget,
    metrics: Arc<Metrics>,
}

fn parts(store: Arc<dyn Store>, receiver: &Receiver, policy: Policy) -> Parts {
    parts_on(Clock::system(), store, receiver, policy)
}

/// The same, on a clock that the test moves.
fn parts_on(clock: Clock, store: Arc<dyn Store>, receiver: &Receiver, policy: Policy) -> Parts {
    let _there_is_one = rustls::crypto::ring::default_provider().install_default();
    let metrics = Arc::new(Metrics::new());
    let budget = Budget::new(1 << 20, Arc::clone(&metrics));
    let (shared, memory) = (Arc::clone(&metrics), budget.clone());
    let executor = Executor::new(store, "a test".into(), clock.clone(), shared, memory);
    let dialing = DialSettings {
        trust: TrustStore::of_this_machine(),
        clock,
        resolver: Arc::new(SystemResolver),
        answer_head: AnswerHeadLimits { bytes_max: 1 << 16, lines_max: 100 },
    };
    let upstream = Upstream::new(&to(receiver), &dialing);
    let counters = metrics.route("hooks");
    let handler = Arc::new(RouteHandler::new(policy, upstream, None, counters, &dialing));
    Parts { executor, handler, budget, metrics }
}

/// The stored answer that a copy got.
fn replayed(copy: Disposition) -> Arc<StoredAnswer> {
    let Disposition::NotGranted { state: ReportedState::Succeeded { answer, .. }, .. } = copy
    else {
        panic!("{copy:?}")
    };
    answer
}

/// Waiters do not hang, nothing is forwarded again, and the place is free for the next.
#[tokio::test]
async fn a_panic_in_an_attempt_leaves_it_uncertain_and_ends_its_waiters() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let store = Faulty { panicked: AtomicBool::new(false), ..Faulty::on(Clock::system()) };
    // Nobody renews it after the panic: what waits, waits for its end.
    let mut policy = policy();
    policy.durations.lease = Duration::from_millis(500);
    let Parts { executor, handler, budget, .. } = parts(Arc::new(store), &receiver, policy);
    let copy = || executor.execute(keyed(1, &budget), &handler);

    let (first, second, third, ()) = tokio::join!(copy(), copy(), copy(), async {
        receiver.has_counted(1).await;
        gate.opens();
    });
    for uncertain in [first, second, third, copy().await] {
        let is_uncertain = matches!(
            &uncertain,
            Disposition::Lost(_)
                | Disposition::NotGranted { state: ReportedState::Uncertain { .. }, .. }
        );
        assert!(is_uncertain, "{uncertain:?}");
    }
    receiver.was_called(1);
    let other = executor.execute(keyed(2, &budget), &handler).await;
    assert!(matches!(other, Disposition::Executed { attempt: 1, .. }), "{other:?}");
    receiver.was_called(2);
}

/// Its sender meets a plain proxy, which says nothing of operations.
#[tokio::test]
async fn a_panic_in_an_attempt_of_a_route_that_observes_is_an_answer_that_broke_off() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let store = Faulty { panicked: AtomicBool::new(false), ..Faulty::on(Clock::system()) };
    let Parts { executor, handler, budget, .. } = parts(Arc::new(store), &receiver, policy());
    let mut observed = keyed(1, &budget);
    Arc::make_mut(&mut observed.subject).mode = RequestMode::Observe { genuine: true };
    let lost = executor.execute(observed, &handler).await;
    assert!(matches!(lost, Disposition::Passed(Forwarded::Broken { .. })), "{lost:?}");
    receiver.was_called(1);
}

/// A service that waits for its turn, and counts.
#[derive(Clone)]
struct Queued {
    turn: PollSemaphore,
    waits: Arc<AtomicBool>,
    calls: Arc<AtomicUsize>,
}

impl Service<http::Request<Full<Bytes>>> for Queued {
    type Response = http::Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.waits.store(true, Ordering::SeqCst);
        self.turn.poll_acquire(context).map(|_turn| Ok(()))
    }

    fn call(&mut self, _: http::Request<Full<Bytes>>) -> Self::Future {
        self.calls.fetch_add(1, Ordering::SeqCst);
        ready(Ok(http::Response::new(Full::default())))
    }
}

/// It waits for its turn until after the lease; by then another process may have the operation.
#[tokio::test]
async fn a_handler_whose_turn_comes_after_the_lease_is_not_called() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let clock = Clock::manual(Timestamp(1_000_000));
    let mut policy = policy();
    policy.durations.lease = Duration::from_millis(300);
    let store = Arc::new(Memory::new(clock.clone()));
    let Parts { executor, handler, budget, .. } = parts_on(clock.clone(), store, &receiver, policy);
    let turn = Arc::new(Semaphore::new(0));
    let queued = Queued {
        turn: PollSemaphore::new(Arc::clone(&turn)),
        waits: Arc::default(),
        calls: Arc::default(),
    };
    let mut extensions = http::Extensions::new();
    extensions.insert(Handler::new(queued.clone()));
    let mut first = keyed(1, &budget);
    first.request.handler = HandlerCall::take(&mut extensions);

    let (first, ()) = tokio::join!(executor.execute(first, &handler), async {
        until("the handler is asked", async || queued.waits.load(Ordering::SeqCst)).await;
        clock.advance(Duration::from_millis(301));
        turn.add_permits(1);
    });
    let Disposition::Executed { forwarded: Forwarded::Unreachable { reason }, .. } = first else {
        panic!("{first:?}")
    };
    assert_eq!((reason, queued.calls.load(Ordering::SeqCst)), (Reason::LeaseLost, 0));
}

/// A sender that has the whole answer may send a copy, and the copy must find the outcome.
#[tokio::test]
async fn a_long_failure_is_recorded_before_its_end_is_handed_on_even_after_the_lease() {
    let answered = Gate::default();
    let recorded = Gate::default();
    let gate = answered.clone();
    let long = move |_: &Seen, _| Answer::new(500, vec![b'x'; 4096]).when(&gate);
    let receiver = Receiver::that(long).await;
    let clock = Clock::manual(Timestamp(1_000_000));
    let mut policy = policy();
    policy.durations.lease = Duration::from_millis(300);
    let store = Faulty { settles: Some(recorded.clone()), ..Faulty::on(clock.clone()) };
    let Parts { executor, handler, budget, .. } =
        parts_on(clock.clone(), Arc::new(store), &receiver, policy);

    let (first, ()) = tokio::join!(executor.execute(keyed(1, &budget), &handler), async {
        receiver.has_counted(1).await;
        clock.advance(Duration::from_millis(301));
        answered.opens();
    });
    let Disposition::Executed { forwarded: Forwarded::Answered { body, .. }, .. } = first else {
        panic!("{first:?}")
    };
    let mut whole = pin!(body.collect());
    let early = tokio::time::timeout(Duration::from_millis(300), &mut whole).await;
    assert!(early.is_err(), "it has the answer, and the outcome is not recorded");
    recorded.opens();
    assert_eq!(whole.await.unwrap().to_bytes().len(), 4096);
}

/// The lease runs out on the store's clock while the receiver works, and a person decides. Whatever
/// the attempt brings then changes nothing, and its sender gets what was decided.
#[tokio::test]
async fn a_superseded_settle_changes_nothing_and_its_sender_gets_what_a_copy_gets() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "of the attempt").await;
    let clock = Clock::manual(Timestamp(1_000_000));
    let store: Arc<dyn Store> = Arc::new(Memory::new(clock.clone()));
    let Parts { executor, handler, budget, metrics } =
        parts(Arc::clone(&store), &receiver, policy());
    let operation = keyed(1, &budget).subject.id;
    let decided = Arc::new(StoredAnswer::empty(StatusCode::ACCEPTED));
    let decision = Resolution {
        operation,
        verdict: Verdict::Succeeded(Some(Arc::clone(&decided))),
        by: "a person".into(),
        reason: "seen at the receiver".into(),
        reference: None,
        attempt: Some(1),
        state: None,
        retention: Duration::from_mins(5),
    };

    let (late, ()) = tokio::join!(executor.execute(keyed(1, &budget), &handler), async {
        receiver.has_counted(1).await;
        clock.advance(Duration::from_mins(1));
        assert_eq!(store.apply(decision).await.unwrap(), Decided::Done);
        gate.opens();
    });
    for copy in [late, executor.execute(keyed(1, &budget), &handler).await] {
        let answer = replayed(copy);
        assert_eq!(answer, decided);
    }
    receiver.was_called(1);
    assert_eq!(metrics.superseded.get(), 1);
    let attempts: Vec<_> =
        store.get(operation).await.unwrap().unwrap().attempts.kept().cloned().collect();
    let [attempt] = attempts.as_slice() else { panic!("{attempts:?}") };
    assert_eq!(attempt.outcome, Some(Outcome::Succeeded), "the log has what it brought");
}

/// The store loses its memory while the receiver works: the outcome is written anew, and said so.
#[tokio::test]
async fn an_outcome_whose_record_is_lost_is_written_anew() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done").await;
    let clock = Clock::manual(Timestamp(1_000_000));
    let store: Arc<dyn Store> = Arc::new(Memory::new(clock.clone()));
    let Parts { executor, handler, budget, metrics } =
        parts(Arc::clone(&store), &receiver, policy());

    let (first, ()) = tokio::join!(executor.execute(keyed(1, &budget), &handler), async {
        receiver.has_counted(1).await;
        // Past the lease and the hold.
        clock.advance(Duration::from_hours(1));
        store.sweep(10).await.unwrap();
        gate.opens();
    });
    assert!(matches!(first, Disposition::Executed { attempt: 1, .. }), "{first:?}");
    let copy = executor.execute(keyed(1, &budget), &handler).await;
    let Disposition::NotGranted { state: ReportedState::Succeeded { attempt: 1, .. }, .. } = copy
    else {
        panic!("{copy:?}")
    };
    receiver.was_called(1);
    assert_eq!(metrics.record_lost.get(), 1);
}

/// Its claim was on its way when the process began its attempt, and found a store that knew nothing.
#[tokio::test]
async fn a_claim_that_is_granted_beside_an_own_attempt_forwards_nothing_and_leaves_no_record() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done").await;
    let clock = Clock::manual(Timestamp(1_000_000));
    let store = Arc::new(Faulty { late: 1, ..Faulty::on(clock.clone()) });
    let policy = Policy { if_in_flight: IfInFlight::Refuse, in_flight_max: 2, ..policy() };
    let Parts { executor, handler, budget, metrics } =
        parts(Arc::<Faulty>::clone(&store), &receiver, policy);
    let operation = keyed(1, &budget).subject.id;
    let send = || executor.execute(keyed(1, &budget), &handler);

    let first = async {
        store.has_counted(1).await;
        send().await
    };
    let meanwhile = async {
        receiver.has_counted(1).await;
        store.loses_its_records(&clock).await;
        store.comes.opens();
        until("the grant is withdrawn", async || {
            let found = store.get(operation).await.unwrap();
            receiver.was_called(1);
            executor.under_way() == 1 && found.is_none()
        })
        .await;
        gate.opens();
    };
    let (copy, first, ()) = tokio::join!(send(), first, meanwhile);
    assert!(matches!(first, Disposition::Executed { attempt: 1, .. }), "{first:?}");
    let Disposition::NotGranted { state: ReportedState::InFlight { attempt: 1, .. }, .. } = copy
    else {
        panic!("{copy:?}")
    };
    replayed(send().await);
    receiver.was_called(1);
    assert_eq!(metrics.record_lost.get(), 1, "the outcome is in a new record");
}

/// The operation was freed while its first attempt went on. The second attempt is in flight when
/// the first one ends, and the store knows of neither.
#[tokio::test]
async fn the_sender_of_a_superseded_attempt_hears_of_another_own_attempt_without_its_record() {
    let gates = [Gate::default(), Gate::default()];
    let waits = gates.clone();
    let script = move |_: &Seen, copies: usize| Answer::new(200, "done").when(&waits[copies]);
    let receiver = Receiver::that(script).await;
    let clock = Clock::manual(Timestamp(1_000_000));
    let store = Arc::new(Faulty { late: 3, ..Faulty::on(clock.clone()) });
    let policy = Policy { in_flight_max: 2, ..policy() };
    let Parts { executor, handler, budget, .. } =
        parts(Arc::<Faulty>::clone(&store), &receiver, policy);
    let operation = keyed(1, &budget).subject.id;
    let free = Resolution {
        operation,
        verdict: Verdict::Failed,
        by: "a person".into(),
        reason: "not seen at the receiver".into(),
        reference: None,
        attempt: Some(1),
        state: None,
        retention: Duration::from_mins(5),
    };
    let send = || executor.execute(keyed(1, &budget), &handler);

    let second = async {
        receiver.has_counted(1).await;
        clock.advance(Duration::from_mins(1));
        assert_eq!(store.apply(free).await.unwrap(), Decided::Done);
        send().await
    };
    let meanwhile = async {
        receiver.has_counted(2).await;
        gates[0].opens();
        store.has_counted(3).await;
        store.loses_its_records(&clock).await;
        store.comes.opens();
    };
    let first = async {
        let first = send().await;
        gates[1].opens();
        first
    };
    let (first, second, ()) = tokio::join!(first, second, meanwhile);
    let Disposition::NotGranted { state: ReportedState::InFlight { attempt: 2, .. }, .. } = first
    else {
        panic!("{first:?}")
    };
    assert!(matches!(second, Disposition::Executed { attempt: 2, .. }), "{second:?}");
    receiver.was_called(2);
}

/// Without protection there is a limit all the same.
#[tokio::test]
async fn no_more_is_forwarded_unprotected_than_a_route_may_forward_at_a_time() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done").await;
    let store = Faulty { claims: AtomicUsize::new(0), ..Faulty::on(Clock::system()) };
    let policy = Policy { when_store_fails: WhenStoreFails::Forward, ..policy() };
    let Parts { executor, handler, budget, metrics } = parts(Arc::new(store), &receiver, policy);

    let (first, second) = tokio::join!(executor.execute(keyed(1, &budget), &handler), async {
        receiver.has_counted(1).await;
        let second = executor.execute(keyed(2, &budget), &handler).await;
        gate.opens();
        second
    });
    assert!(matches!(first, Disposition::Passed(_)), "{first:?}");
    assert!(matches!(second, Disposition::Overloaded), "{second:?}");
    receiver.was_called(1);
    assert_eq!(metrics.unprotected.get(), 1);
}

/// It was told that an attempt is in flight; after that a store that fails is no reason to forward
/// it.
#[tokio::test]
async fn a_copy_for_which_there_is_no_place_to_wait_is_not_forwarded_when_the_store_fails() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done").await;
    let store = Faulty { claims: AtomicUsize::new(2), ..Faulty::on(Clock::system()) };
    let policy = Policy {
        when_store_fails: WhenStoreFails::Forward,
        waiters_max: 0,
        in_flight_max: 2,
        ..policy()
    };
    let Parts { executor, handler, budget, metrics } = parts(Arc::new(store), &receiver, policy);

    let (first, copy) = tokio::join!(executor.execute(keyed(1, &budget), &handler), async {
        receiver.has_counted(1).await;
        let copy = executor.execute(keyed(1, &budget), &handler).await;
        gate.opens();
        copy
    });
    let Disposition::NotGranted { state: ReportedState::InFlight { lease_left, .. }, .. } = copy
    else {
        panic!("{copy:?}")
    };
    assert!(lease_left > Duration::from_secs(5), "the rest of the lease: {lease_left:?}");
    assert!(matches!(first, Disposition::Executed { .. }), "{first:?}");
    receiver.was_called(1);
    assert_eq!(metrics.unprotected.get(), 0);
}

/// Else an acknowledgement would be an empty one for the whole retention.
#[tokio::test]
async fn a_small_answer_is_kept_even_if_there_is_no_memory_left_for_bodies() {
    let receiver = Receiver::that(|seen, _| {
        let length = if seen.body == [1] { 16 * 1024 } else { 16 * 1024 + 1 };
        Answer::new(200, vec![b'x'; length]).into()
    })
    .await;
    let store = Arc::new(Memory::new(Clock::system()));
    let policy = Policy { body_bytes_max: 64 * 1024, ..policy() };
    let Parts { executor, handler, budget, metrics } = parts(store, &receiver, policy);
    let mut all = budget.reserve_none();
    all.grow(1 << 20).unwrap();
    for (number, kept) in [(1, Some(16 * 1024)), (2, None)] {
        executor.execute(keyed(number, &budget), &handler).await;
        let copy = executor.execute(keyed(number, &budget), &handler).await;
        let answer = replayed(copy);
        let length = match &answer.body {
            AnswerBody::Kept(body) => Some(body.len()),
            AnswerBody::Omitted => None,
        };
        assert_eq!(length, kept);
    }
    drop(all);
    assert_eq!(metrics.buffered_bytes.get(), 0);
}
