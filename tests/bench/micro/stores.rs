//! New events on each store: claimed, then settled.

use std::cell::{LazyCell, OnceCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput};
use onceward::clock::Clock;
use onceward::secret::Secret;
use onceward::store::embedded::{self, Durability, IfDamaged};
use onceward::store::memory::Memory;
use onceward::store::{Certificates, Store, WhenEmptied, postgres, redis};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use super::event::remember;
use super::servers::{Server, installed};

/// How many events each store has at a time.
const AT_A_TIME: [u64; 4] = [1, 16, 64, 256];
/// The longest that a server takes to start.
const START_MAX: Duration = Duration::from_secs(30);
/// As long as a call may take if the configuration does not say it.
const TIMEOUT: Duration = Duration::from_secs(2);

struct Stores<'c> {
    group: BenchmarkGroup<'c, WallTime>,
    runtime: Runtime,
}

pub(crate) fn measure(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("claim-and-settle");
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut stores = Stores { group, runtime };
    stores.measure("memory", |_| Arc::new(Memory::new(Clock::system())));
    let directory = tempfile::tempdir().unwrap();
    for (name, durability) in [("embedded-sync", Durability::Sync), ("embedded-os", Durability::Os)]
    {
        stores.measure(name, |at_a_time| {
            let path = directory.path().join(format!("{name}-{at_a_time}"));
            let settings = embedded::Settings { path, durability, if_damaged: IfDamaged::Refuse };
            Arc::new(embedded::open(&settings, Clock::system()).unwrap())
        });
    }
    if let Some(program) = installed("redis-server") {
        let server = LazyCell::new(|| Server::redis(&program));
        stores.measure("redis", |_| on_redis(server.port));
    } else {
        println!("claim-and-settle/redis is left out: there is no `redis-server`");
    }
    if let Some(program) = installed("postgres") {
        let server = LazyCell::new(|| Server::postgres(&program));
        stores.measure("postgres", |_| on_postgres(server.port));
    } else {
        println!("claim-and-settle/postgres is left out: PostgreSQL is not installed");
    }
}

impl Stores<'_> {
    /// A store is opened for each number of events at a time, unless the command line leaves it
    /// out. One iteration is so many events.
    fn measure(&mut self, name: &str, open: impl Fn(u64) -> Arc<dyn Store>) {
        for at_a_time in AT_A_TIME {
            let opened = OnceCell::new();
            self.group.throughput(Throughput::Elements(at_a_time));
            self.group.bench_function(BenchmarkId::new(name, at_a_time), |bencher| {
                let store = opened.get_or_init(|| {
                    let _context = self.runtime.enter();
                    let store = open(at_a_time);
                    self.runtime.block_on(is_ready(&*store));
                    store
                });
                bencher.iter_custom(|times| self.runtime.block_on(events(store, at_a_time, times)));
            });
            if let Some(store) = opened.get() {
                self.runtime.block_on(store.close());
            }
        }
    }
}

/// How long it takes so many tasks to remember so many events each.
async fn events(store: &Arc<dyn Store>, tasks: u64, times: u64) -> Duration {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let clock = Clock::system();
    let began = clock.moment();
    let mut running = JoinSet::new();
    for _ in 0..tasks {
        let store = Arc::clone(store);
        running.spawn(async move {
            for _ in 0..times {
                let key = NEXT.fetch_add(1, Ordering::Relaxed);
                remember(&*store, &key.to_string()).await;
            }
        });
    }
    running.join_all().await;
    began.until(clock.moment())
}

/// Waits until the server of a store works.
async fn is_ready(store: &dyn Store) {
    let clock = Clock::system();
    let began = clock.moment();
    while let Err(error) = store.probe().await {
        assert!(began.until(clock.moment()) < START_MAX, "{error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn on_redis(port: u16) -> Arc<dyn Store> {
    let settings = redis::Settings {
        urls: vec![Secret::new(format!("redis://127.0.0.1:{port}"))],
        mode: redis::Mode::Single,
        prefix: "onceward".to_owned(),
        replica_acks: 0,
        timeout: TIMEOUT,
        username: None,
        password: None,
        certificates: Certificates::default(),
        when_emptied: WhenEmptied::Continue,
    };
    redis::open(&settings, Clock::system()).unwrap()
}

fn on_postgres(port: u16) -> Arc<dyn Store> {
    let settings = postgres::Settings {
        url: Secret::new(format!("postgres://onceward@127.0.0.1:{port}/postgres")),
        listen_url: None,
        schema: "onceward".to_owned(),
        connections_max: 16,
        timeout: TIMEOUT,
        certificates: Certificates::default(),
        when_emptied: WhenEmptied::Continue,
    };
    postgres::open(&settings, Clock::system()).unwrap()
}
