//! Once in front of a handler of the same process: no second server, and no network hop.
//!
//! ```sh
//! cargo run --example layer
//! curl -i http://127.0.0.1:8080/webhooks/orders -d '{"id":1}'  # handled once; try it twice
//! ```

#![expect(clippy::print_stdout, reason = "an example that says what it does")]

use std::error::Error;

use axum::Router;
use axum::routing::post;
use onceward::{App, Config, OnceLayer};

/// What must not happen twice.
async fn take_order(order: String) -> &'static str {
    println!("handling {order}");
    "taken\n"
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // The layer calls the handler in place of the upstream, which is never connected to.
    let config = Config::from_upstream("http://localhost", "/webhooks/*", std::env::vars_os())?;
    let app = App::start(config).await?;
    println!("serving on http://{}", app.address()?);

    let once = OnceLayer::new(app.proxy());
    let router = Router::new().route("/webhooks/orders", post(take_order).layer(once));

    // Ctrl-C ends both in good order: handlers that have begun are finished and recorded first.
    app.run_inside(router, async {
        let _heard = tokio::signal::ctrl_c().await;
    })
    .await;
    Ok(())
}
