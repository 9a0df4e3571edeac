//! Onceward inside an axum application: one port, on it the application's own routes, and the
//! proxy behind them.
//!
//! ```sh
//! cargo run --example receiver -- 127.0.0.1:3000 &
//! cargo run --example embed -- http://127.0.0.1:3000
//! curl -i http://127.0.0.1:8080/                               # the application's own
//! curl -i http://127.0.0.1:8080/webhooks/orders -d '{"id":1}'  # forwarded once; try it twice
//! ```

#![expect(clippy::print_stdout, reason = "an example that says where it listens")]

use std::error::Error;

use axum::Router;
use axum::routing::get;
use onceward::app::App;
use onceward::config::Config;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let upstream = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:3000".to_owned());
    let config = Config::from_upstream(&upstream, "/webhooks/*", std::env::vars())?;
    let app = App::start(config).await?;
    println!("serving on http://{}", app.address()?);

    let router = Router::new()
        .route("/", get(async || "the shop\n"))
        // As the fallback it sees the whole path; nested it would see what is left of it.
        .fallback_service(app.proxy());

    // Ctrl-C ends both in good order: attempts in flight are finished and recorded first.
    app.run_inside(router, async {
        let _heard = tokio::signal::ctrl_c().await;
    })
    .await;
    Ok(())
}
