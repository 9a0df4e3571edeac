//! The key, the operation id and the fingerprint of a request.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput};
use http::Request;
use http::request::Parts;
use onceward::config::Config;
use onceward::provider::signature::Carried;
use onceward::proxy::{Identity, RequestView, RouteSettings, identify};

const KIB: [usize; 3] = [1, 10, 100];

/// Routes that find the same event in different ways. The path of each is its name.
const CONFIG: &str = r#"
    [store.memory]

    # The key is in a header, and bound to a digest of the body.
    [routes.header]
    path = "/header"
    upstream = "http://127.0.0.1:9"

    # The id is the first member of the body.
    [routes.first-member]
    path = "/first-member"
    upstream = "http://127.0.0.1:9"
    key = { header = [], event = { id = "json:/id", type = "json:/type" } }

    # The id is the last member of the body, two objects deep.
    [routes.last-member]
    path = "/last-member"
    upstream = "http://127.0.0.1:9"
    key = { header = [], event = { id = "json:/data/object/id", type = "json:/type" } }

    # The digest of the body is the key.
    [routes.digest-of-the-body]
    path = "/digest-of-the-body"
    upstream = "http://127.0.0.1:9"
    key = { header = [], event = { id = "body", type = "header:x-type?" } }

    # The fingerprint is over the body without one of its members.
    [routes.body-without-a-member]
    path = "/body-without-a-member"
    upstream = "http://127.0.0.1:9"
    fingerprint = { over = ["body"], ignore = ["json:/sent_at"] }
"#;

pub(crate) fn measure(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("keys");
    for kib in KIB {
        let body = body(kib * 1024);
        group.throughput(Throughput::Bytes(body.len() as u64));
        for route in routes() {
            let head = head(&route.name);
            let case = BenchmarkId::new(&*route.name, format!("{kib} KiB"));
            group.bench_function(case, |bencher| {
                bencher.iter(|| black_box(identity(&route, black_box(&head), black_box(&body))));
            });
        }
    }
}

fn routes() -> Vec<RouteSettings> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), CONFIG).unwrap();
    Config::from_file(file.path(), []).unwrap().routes
}

fn head(route: &str) -> Parts {
    let request = Request::post(format!("/{route}"))
        .header("host", "hooks.example.com")
        .header("user-agent", "Shop/1.0")
        .header("content-type", "application/json")
        .header("idempotency-key", "evt_1NG8Du2eZvKYlo2CUI79vXWy");
    request.body(()).unwrap().into_parts().0
}

/// An order with as many lines as fit.
fn body(length: usize) -> Vec<u8> {
    let begin = r#"{"id":"evt_1NG8Du2eZvKYlo2CUI79vXWy","type":"order.paid","sent_at":1700000000,
        "data":{"lines":["#;
    let line = r#"{"sku":"A-1024","quantity":2,"price":19.99,"note":"a \"small\" one"},"#;
    let end = r#"{}],"object":{"id":"ord_1NG8Du2eZvKYlo2CUI79vXWy"}}}"#;
    let lines = length.saturating_sub(begin.len() + end.len()) / line.len();
    [begin, &line.repeat(lines), end].concat().into_bytes()
}

fn identity(route: &RouteSettings, head: &Parts, body: &[u8]) -> Identity {
    let carried = Carried::default();
    let identity = identify(&route.rules(), &RequestView::of(head, body, &carried)).unwrap();
    assert!(identity.key_source().is_some());
    identity
}
