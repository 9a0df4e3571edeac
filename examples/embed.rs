//! Onceward inside an axum application: one port serves the application's own routes, and the proxy
//! gets every other request.
//!
//! ```sh
//! cargo run --example receiver -- 127.0.0.1:3000 &
//! cargo run --example embed -- http://127.0.0.1:3000
//! curl -i http://127.0.0.1:8080/                               # the application's own
//! curl -i http://127.0.0.1:8080/webhooks/orders -d '{"id":1}'  # forwarded once; try it twice
//! ```

#![expect(clippy::print_stdout, reason = "the example says where it listens")]

use std::error::Error;

use axum::Router;
use axum::routing::get;
use onceward::app::App;
use onceward::config::Config;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let upstream = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:3000".to_owned());
    let config = Config::from_upstream(&upstream, "/webhooks/*", std::env::vars_os())?;
    let app = App::start(config).await?;
    println!("serving on http://{}", app.address()?);

    let router = Router::new()
        .route("/", get(async || "the shop\n"))
        // As the fallback the proxy sees the whole path. Nested, it would see only the rest of it,
        // and no route of the configuration would match.
        .fallback_service(app.proxy());

    // Ctrl-C ends both: attempts in flight are finished, and their outcomes recorded, first.
    app.run_inside(router, async {
        let _interrupted = tokio::signal::ctrl_c().await;
    })
    .await;
    Ok(())
}
