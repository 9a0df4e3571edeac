//! Once in front of handlers of the same process. What the handler counts is the judge.

use std::convert::Infallible;
use std::future::Ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Extension, Path};
use axum::response::Response;
use axum::routing::post;
use axum::{Router, handler::Handler};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::Request;
use onceward::{App, Config, OnceLayer};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower::{Layer as _, Service, ServiceExt as _};

use crate::support::{Event, Gate, RawSender, Reply, client, event, send, until};

/// An application with one handler behind a layer.
struct Shop {
    address: SocketAddr,
    /// How often the handler was called.
    calls: Arc<AtomicUsize>,
    client: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
}

/// An application's proxy with one route; `toml` are settings of `[defaults]`.
async fn app(toml: &str) -> App {
    let config = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[store.memory]\n\
         [defaults]\n{toml}\n[routes.hooks]\npath = \"/hooks/*\"\nupstream = \"http://localhost\"\n"
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), config).unwrap();
    App::start(Config::from_file(file.path(), []).unwrap()).await.unwrap()
}

impl Shop {
    /// Serves `handler` at `/hooks/{order}`; `toml` are settings of `[defaults]`.
    async fn with<T: 'static>(toml: &str, handler: impl Handler<T, ()>) -> Self {
        let app = app(toml).await;
        let address = app.address().unwrap();
        let calls = Arc::new(AtomicUsize::new(0));
        let counting = axum::middleware::from_fn({
            let calls = Arc::clone(&calls);
            move |request, next: axum::middleware::Next| {
                calls.fetch_add(1, Ordering::SeqCst);
                next.run(request)
            }
        });
        let hooks =
            post(handler).layer::<_, Infallible>(counting).layer(OnceLayer::new(app.proxy()));
        let router = Router::new().route("/hooks/{order}", hooks).layer(Extension("the shop"));
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(app.run_inside(router, async {
            let _stopped = stopped.await;
        }));
        Self { address, calls, client: client(), stop: Some(stop), running }
    }

    async fn sends(&self, event: Event) -> Reply {
        send(&self.client, self.address, event.to("/hooks/order_1")).await.unwrap()
    }

    /// Waits until the handler has been called.
    async fn is_called(&self) {
        until("the handler is called", async || self.calls.load(Ordering::SeqCst) > 0).await;
    }

    fn was_called(&self, times: usize) {
        assert_eq!(self.calls.load(Ordering::SeqCst), times);
    }

    /// Ends in good order: what the handlers have begun is recorded.
    async fn ends(mut self) {
        drop(self.stop.take());
        timeout(Duration::from_mins(1), &mut self.running).await.expect("it ends").unwrap();
    }
}

#[tokio::test]
async fn a_handler_is_called_once_for_many_copies() {
    let gate = Gate::default();
    let held = gate.clone();
    let shop = Shop::with("when_in_flight = \"wait\"\nwaiters_max = 64", async move || {
        held.passes().await;
        "done"
    })
    .await;
    let copies = futures_util::future::join_all((0..50).map(|_| shop.sends(event("evt_1"))));
    let opened = async {
        shop.is_called().await;
        gate.opens();
    };
    let (replies, ()) = tokio::join!(copies, opened);
    for reply in &replies {
        assert_eq!((reply.status, reply.text().as_str()), (200, "done"), "{reply:?}");
    }
    let executed = replies.iter().filter(|reply| reply.disposition() == "executed").count();
    assert_eq!(executed, 1);
    shop.sends(event("evt_1")).await.is_replayed(200);
    shop.was_called(1);
    shop.ends().await;
}

#[tokio::test]
async fn a_handler_that_panics_leaves_its_operation_uncertain() {
    let shop = Shop::with("", async || -> &'static str { panic!("after the charge") }).await;
    shop.sends(event("evt_1")).await.is_executed_as("upstream-broken", 502);
    shop.sends(event("evt_1")).await.is_uncertain();
    shop.was_called(1);
    shop.ends().await;
}

#[tokio::test]
async fn a_handler_that_is_dropped_after_its_time_leaves_its_operation_uncertain() {
    let shop = Shop::with("attempt_timeout = \"500ms\"\nlease = \"400ms\"", async || {
        std::future::pending::<&'static str>().await
    })
    .await;
    shop.sends(event("evt_1")).await.is_executed_as("upstream-timeout", 504);
    shop.sends(event("evt_1")).await.is_uncertain();
    shop.was_called(1);
    shop.ends().await;
}

#[tokio::test]
async fn a_handler_that_answers_with_a_failure_is_called_again() {
    let shop = Shop::with("", async || http::StatusCode::INTERNAL_SERVER_ERROR).await;
    for _ in 0..2 {
        shop.sends(event("evt_1")).await.is_executed(500);
    }
    shop.was_called(2);
    shop.ends().await;
}

/// A body that breaks off is no answer, whether it fails or panics.
#[tokio::test]
async fn a_body_that_has_no_end_leaves_its_operation_uncertain() {
    let shop = Shop::with("", async |Path(_): Path<String>, body: Bytes| -> Response {
        let panics = body.windows(6).any(|bytes| bytes == b"panics");
        let pieces = stream::iter(0..2).map(move |piece: usize| match piece {
            0 => Ok(Bytes::from_static(b"half")),
            _ if panics => panic!("within the body"),
            _ => Err("within the body"),
        });
        Response::new(Body::from_stream(pieces))
    })
    .await;
    for id in ["evt_fails", "evt_panics"] {
        shop.sends(event(id)).await.is_executed_as("upstream-broken", 502);
        shop.sends(event(id)).await.is_uncertain();
    }
    shop.was_called(2);
    shop.ends().await;
}

#[tokio::test]
async fn a_sender_that_hangs_up_interrupts_no_handler() {
    let gate = Gate::default();
    let held = gate.clone();
    let shop = Shop::with("when_in_flight = \"wait\"", async move || {
        held.passes().await;
        "done"
    })
    .await;
    let mut sender = RawSender::connect(shop.address).await;
    sender.writes(&event("evt_1").to("/hooks/order_1").raw()).await;
    shop.is_called().await;
    drop(sender);
    gate.opens();
    shop.sends(event("evt_1")).await.is_replayed(200);
    shop.was_called(1);
    shop.ends().await;
}

/// Extractors read what the router and other layers have found out.
#[tokio::test]
async fn a_handler_sees_the_extensions_of_the_request() {
    let shop = Shop::with(
        "",
        async |Path(order): Path<String>,
               Extension(name): Extension<&'static str>,
               body: String| {
            Ok::<_, Infallible>(format!("{order} of {name}: {}", body.len()))
        },
    )
    .await;
    let sent = event("evt_1");
    let expected = format!("order_1 of the shop: {}", sent.body.len());
    assert_eq!(shop.sends(sent).await.is_executed(200).text(), expected);
    shop.ends().await;
}

/// A handler that has no room for another request.
#[derive(Clone)]
struct Full;

impl Service<Request<http_body_util::Full<Bytes>>> for Full {
    type Response = Response;
    type Error = std::io::Error;
    type Future = Ready<Result<Response, std::io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        Poll::Ready(Err(std::io::Error::other("it is full")))
    }

    fn call(&mut self, _: Request<http_body_util::Full<Bytes>>) -> Self::Future {
        panic!("it is called though it is not ready")
    }
}

#[tokio::test]
async fn a_handler_that_is_not_ready_was_given_nothing_and_the_next_copy_is_tried() {
    let app = app("").await;
    let once = OnceLayer::new(app.proxy()).layer(Full);
    for attempt in 1..=2 {
        let request = Request::post("/hooks/order_1").header("host", "localhost");
        let request = request.body(Body::from(event("evt_1").body)).unwrap();
        let response = once.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 502);
        let body = axum::body::to_bytes(Body::new(response.into_body()), 1 << 16).await.unwrap();
        let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem["type"], "urn:onceward:problem:upstream-unreachable");
        assert_eq!(problem["attempt"], attempt);
    }
}
