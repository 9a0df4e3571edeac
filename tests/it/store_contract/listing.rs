//! Lists of operations: every one of them once, newest first, as it stands now.

use std::num::NonZeroUsize;
use std::sync::Arc;

use onceward::operation::{
    Key, KeyKind, KeyPart, OperationId, OperationIdParts, Outcome, State, StateName, Subject,
};
use onceward::store::{ListPage, ListQuery, Store};

use super::Harness;
use super::support::{
    LEASE, MILLISECOND, RETENTION, attempted, forgets, granted, id_of, order, sweep_all,
};

pub(super) const ALL: ListQuery =
    ListQuery { route: None, state: None, key: None, after: None, limit: 100 };

/// All pages of a list, of which no page holds more than `limit`.
async fn pages(store: &dyn Store, listing: &ListQuery, limit: NonZeroUsize) -> Vec<OperationId> {
    let mut listing = ListQuery { limit: limit.get(), ..listing.clone() };
    let mut ids = Vec::new();
    loop {
        let ListPage { operations, next } = store.list(&listing).await.unwrap();
        assert!(operations.len() <= limit.get(), "{} on a page", operations.len());
        ids.extend(operations.iter().map(|operation| operation.subject.id));
        listing.after = next;
        if next.is_none() {
            return ids;
        }
    }
}

pub(super) async fn ids(store: &dyn Store, listing: &ListQuery) -> Vec<OperationId> {
    pages(store, listing, NonZeroUsize::new(100).unwrap()).await
}

/// What is asked for under this key on another route.
fn on_route(route: &str, key: &str) -> Arc<Subject> {
    let subject = order(key);
    let id = OperationId::derive(OperationIdParts {
        route,
        method: &subject.method,
        path: None,
        scope: &[],
        from: subject.key.from,
        key: &[&[key.into()]],
    });
    Arc::new(Subject { id, route: route.into(), ..Subject::clone(&subject) })
}

pub(super) async fn a_list_is_newest_first(harness: &impl Harness) {
    let store = harness.store();
    assert_eq!(store.list(&ALL).await.unwrap(), ListPage { operations: Vec::new(), next: None });
    let mut created = Vec::new();
    for n in 0..20 {
        let order = order(&n.to_string());
        granted(&*store, &order).await;
        created.insert(0, order.id);
        harness.pass(MILLISECOND).await;
    }
    assert_eq!(ids(&*store, &ALL).await, created);
    let newest = store.list(&ListQuery { limit: 3, ..ALL }).await.unwrap();
    assert_eq!(newest.operations, {
        let mut operations = Vec::new();
        for id in &created[..3] {
            operations.push(store.get(*id).await.unwrap().unwrap());
        }
        operations
    });
}

/// Many are created in one millisecond.
pub(super) async fn pages_join_without_a_gap_or_a_double(harness: &impl Harness) {
    let store = harness.store();
    let mut created = Vec::new();
    for at in 0..5 {
        let mut together = Vec::new();
        for n in 0..30 {
            let order = order(&format!("{at}/{n}"));
            granted(&*store, &order).await;
            together.push(order.id);
        }
        together.sort_unstable_by(|one, other| other.cmp(one));
        created.splice(0..0, together);
        harness.pass(MILLISECOND).await;
    }
    for limit in [1, 2, 7, 29, 30, 149, 150, 151] {
        let limit = NonZeroUsize::new(limit).unwrap();
        assert_eq!(pages(&*store, &ALL, limit).await, created, "{limit} to a page");
    }
}

pub(super) async fn a_list_of_one_route_holds_no_other(harness: &impl Harness) {
    let store = harness.store();
    let mut wanted = Vec::new();
    for n in 0..20 {
        let (order, invoice) = (order(&n.to_string()), on_route("invoices", &n.to_string()));
        granted(&*store, &order).await;
        harness.pass(MILLISECOND).await;
        granted(&*store, &invoice).await;
        wanted.insert(0, invoice.id);
        harness.pass(MILLISECOND).await;
    }
    let listing = ListQuery { route: Some("invoices".into()), ..ALL };
    assert_eq!(ids(&*store, &listing).await, wanted);
    assert_eq!(pages(&*store, &listing, NonZeroUsize::new(3).unwrap()).await, wanted);
    let nobody = ListQuery { route: Some("invoice".into()), ..ALL };
    assert_eq!(ids(&*store, &nobody).await, []);
}

pub(super) async fn a_list_of_one_state_counts_what_time_has_done(harness: &impl Harness) {
    let store = harness.store();
    let [abandoned, held, done, failed, forgotten, in_flight] =
        ["abandoned", "held", "done", "failed", "forgotten", "in flight"].map(order);
    granted(&*store, &abandoned).await;
    harness.pass(LEASE / 2).await;
    attempted(&*store, &held, Outcome::Uncertain).await;
    attempted(&*store, &done, Outcome::Succeeded).await;
    attempted(&*store, &failed, Outcome::Failed).await;
    attempted(&*store, &forgotten, Outcome::Succeeded).await;
    forgets(&*store, forgotten.id).await;
    harness.pass(LEASE / 2).await;
    granted(&*store, &in_flight).await;
    for (state, wanted) in [
        (StateName::InFlight, vec![in_flight.id]),
        (StateName::Uncertain, vec![held.id, abandoned.id]),
        (StateName::Succeeded, vec![done.id]),
        (StateName::Failed, vec![failed.id]),
        (StateName::Forgotten, vec![forgotten.id]),
    ] {
        let listing = ListQuery { state: Some(state), ..ALL };
        assert_eq!(ids(&*store, &listing).await, wanted, "{state:?}");
    }
    // each is given as it stands, not as it was written
    let uncertain = ListQuery { state: Some(StateName::Uncertain), ..ALL };
    for operation in store.list(&uncertain).await.unwrap().operations {
        assert!(matches!(operation.state, State::Uncertain(_)), "{:?}", operation.state);
    }
}

pub(super) async fn what_is_past_its_retention_is_not_listed(harness: &impl Harness) {
    let store = harness.store();
    attempted(&*store, &order("old"), Outcome::Succeeded).await;
    harness.pass(RETENTION / 2).await;
    let new = order("new");
    attempted(&*store, &new, Outcome::Succeeded).await;
    assert_eq!(ids(&*store, &ALL).await.len(), 2);
    harness.pass(RETENTION / 2).await;
    // whether or not a sweep has come
    assert_eq!(ids(&*store, &ALL).await, [new.id]);
    store.sweep(10).await.unwrap();
    assert_eq!(ids(&*store, &ALL).await, [new.id]);
    harness.pass(RETENTION / 2).await;
    assert_eq!(ids(&*store, &ALL).await, []);
}

/// What is asked for by an event of this id and type.
fn event(id: KeyPart<'_>, kind: &str) -> Arc<Subject> {
    let parts: [&[KeyPart<'_>]; 3] = [&["shop".into()], &[id], &[kind.into()]];
    let id = id_of(KeyKind::Event, &parts);
    let key = Key::of(KeyKind::Event, &parts);
    Arc::new(Subject { id, key, ..Subject::clone(&order("any")) })
}

/// The operations with this key.
pub(super) async fn keyed(store: &dyn Store, key: &str) -> Vec<OperationId> {
    let listing = ListQuery { key: Some(key.into()), ..ALL };
    let found = ids(store, &listing).await;
    assert_eq!(pages(store, &listing, NonZeroUsize::MIN).await, found, "one to a page");
    found
}

pub(super) async fn an_operation_is_found_by_its_whole_key_or_event_id(harness: &impl Harness) {
    let store = harness.store();
    let long = "long".repeat(200);
    let by_header = order("evt_6");
    let elsewhere = on_route("invoices", "evt_6");
    let by_event = event("evt_6".into(), "paid");
    let others = [order("evt_60"), order("evt_"), order(&long), event("evt_7".into(), "evt_6")];
    let numbers = [event("5".into(), "paid"), event(KeyPart::Literal("5"), "paid")];
    let odd = order("100%_* \u{0}\"[a-z]\u{1f600}");
    let topic = "/topics".repeat(400);
    let by_topic = event(topic.as_str().into(), "paid");
    for one in [&by_header, &elsewhere, &by_event, &by_topic, &odd]
        .into_iter()
        .chain(&others)
        .chain(&numbers)
    {
        granted(&*store, one).await;
        harness.pass(MILLISECOND).await;
    }
    let wanted = [by_event.id, elsewhere.id, by_header.id];
    assert_eq!(keyed(&*store, "evt_6").await, wanted);
    assert_eq!(keyed(&*store, "5").await, [numbers[1].id, numbers[0].id], "whatever its type");
    assert_eq!(keyed(&*store, &long).await, [others[2].id]);
    assert_eq!(keyed(&*store, &Key::searchable(&topic)).await, [by_topic.id]);
    assert_eq!(keyed(&*store, &odd.key.parts[0]).await, [odd.id]);
    for nobody in ["", "e", "evt", "EVT_6", "evt_6 ", "evt%", "evt_*", "shop", "paid", &long[1..]] {
        assert_eq!(keyed(&*store, nobody).await, [], "{nobody}");
    }
    let listing = ListQuery { key: Some("evt_6".into()), route: Some("invoices".into()), ..ALL };
    assert_eq!(ids(&*store, &listing).await, [elsewhere.id]);
    let state = Some(StateName::Succeeded);
    let listing = ListQuery { key: Some("evt_6".into()), state, ..ALL };
    assert_eq!(ids(&*store, &listing).await, []);
}

pub(super) async fn a_key_finds_an_operation_for_as_long_as_it_is_remembered(
    harness: &impl Harness,
) {
    let store = harness.store();
    let one = order("evt_6");
    assert_eq!(keyed(&*store, "evt_6").await, []);
    attempted(&*store, &one, Outcome::Failed).await;
    attempted(&*store, &one, Outcome::Succeeded).await;
    assert_eq!(keyed(&*store, "evt_6").await, [one.id]);
    forgets(&*store, one.id).await;
    assert_eq!(keyed(&*store, "evt_6").await, [one.id]);
    attempted(&*store, &one, Outcome::Succeeded).await;
    assert_eq!(keyed(&*store, "evt_6").await, [one.id]);
    harness.pass(RETENTION).await;
    assert_eq!(keyed(&*store, "evt_6").await, []);
    // seen anew before a sweep has come, and after one
    attempted(&*store, &one, Outcome::Succeeded).await;
    assert_eq!(keyed(&*store, "evt_6").await, [one.id]);
    harness.pass(RETENTION).await;
    assert_eq!(sweep_all(&*store, 10).await, (1, 0));
    assert_eq!(keyed(&*store, "evt_6").await, []);
    attempted(&*store, &one, Outcome::Uncertain).await;
    assert_eq!(keyed(&*store, "evt_6").await, [one.id]);
}
