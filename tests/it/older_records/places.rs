//! Where the records of an older version are kept, and how they come into a store.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use onceward::clock::Clock;
use onceward::operation::Timestamp;
use redis::Value;

use crate::support::{PostgresServer, RedisServer, ServerClock, postgres_program};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/records")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

fn write(name: &str, text: &str) {
    std::fs::write(folder().join(name), text).unwrap();
}

/// A moment at which all of the records are remembered.
const TIME: &str = "time";

/// Keeps the time as it is then.
pub fn keep_time(from_now: Duration) {
    write(TIME, &format!("{}\n", Clock::system().wall().plus(from_now).0));
}

/// That moment.
pub fn time() -> Timestamp {
    Timestamp(read(TIME).trim().parse().unwrap())
}

/// A clock that stands at that moment.
pub fn clock() -> ServerClock {
    let clock = ServerClock::start();
    clock.set(i64::try_from(time().0).unwrap() * 1000);
    clock
}

const DIRECTORY: &str = "embedded.tar.gz";

/// Keeps the store in this directory, but for the lock of whoever has it open.
pub fn keep_embedded(directory: &Path) {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--gzip", "--sparse", "--exclude", "store/lock", "--file"]);
    tar.arg(folder().join(DIRECTORY)).arg("--directory").arg(directory).arg("store");
    assert!(tar.status().unwrap().success());
}

pub fn restore_embedded(directory: &Path) {
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--gzip", "--file"]).arg(folder().join(DIRECTORY));
    assert!(tar.arg("--directory").arg(directory).status().unwrap().success());
}

/// Commands as arrays of strings. What is no text is in hexadecimal digits behind this.
const COMMANDS: &str = "redis.json";
const HEX: &str = "hex:";

fn written(value: &Value) -> String {
    let Value::BulkString(bytes) = value else { panic!("{value:?}") };
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains(char::is_control));
    text.map_or_else(|| format!("{HEX}{}", hex::encode(bytes)), str::to_owned)
}

/// The value at a key as the command that sets it, by its type.
async fn command_for(server: &RedisServer, key: &str) -> Vec<String> {
    let kind = server.tells(&format!("TYPE {key}")).await;
    let (set, get) = match &*kind {
        "string" => ("SET", format!("GET {key}")),
        "hash" => ("HSET", format!("HGETALL {key}")),
        "set" => ("SADD", format!("SMEMBERS {key}")),
        "zset" => ("ZADD", format!("ZRANGE {key} 0 -1 WITHSCORES")),
        other => panic!("a {other} at {key}"),
    };
    let value = server.does(&get).await;
    let mut words: Vec<String> = if let Value::Array(values) = &value {
        values.iter().map(written).collect()
    } else {
        vec![written(&value)]
    };
    if kind == "zset" {
        // The score comes behind its member, and is set before it.
        words.chunks_mut(2).for_each(|pair| pair.swap(0, 1));
    }
    [vec![set.to_owned(), key.to_owned()], words].concat()
}

pub async fn keep_redis(server: &RedisServer) {
    let keys: Vec<String> = redis::from_redis_value(server.does("KEYS *").await).unwrap();
    let mut commands = Vec::new();
    for key in keys {
        commands.push(command_for(server, &key).await);
    }
    commands.sort();
    let lines: Vec<_> = commands.iter().map(|line| serde_json::to_string(line).unwrap()).collect();
    write(COMMANDS, &format!("[\n{}\n]\n", lines.join(",\n")));
}

pub async fn restored_redis() -> RedisServer {
    let server = RedisServer::start_on(clock()).await;
    let commands: Vec<Vec<String>> = serde_json::from_str(&read(COMMANDS)).unwrap();
    let mut connection = server.connection().await;
    for words in commands {
        let mut command = redis::Cmd::new();
        for word in words {
            match word.strip_prefix(HEX) {
                Some(digits) => command.arg(hex::decode(digits).unwrap()),
                None => command.arg(word),
            };
        }
        let () = command.query_async::<Value>(&mut connection).await.map(drop).unwrap();
    }
    server
}

const STATEMENTS: &str = "postgres.sql";

/// Keeps the tables as they were made and filled. What is set for a session, and in what its server
/// differs from others, is left out.
pub fn keep_postgres(server: &PostgresServer) {
    let mut dump = Command::new(postgres_program("pg_dump"));
    dump.args(["--schema=onceward", "--inserts", "--no-owner", "--no-privileges", "--no-comments"]);
    let output = dump.arg(server.url()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let is_kept = |line: &&str| {
        let left_out = ["SET ", "SELECT pg_catalog.set_config", "\\", "--"];
        !line.is_empty() && !left_out.iter().any(|start| line.starts_with(start))
    };
    let lines: Vec<_> = text.lines().filter(is_kept).collect();
    write(STATEMENTS, &format!("{}\n", lines.join("\n")));
}

pub async fn restored_postgres() -> PostgresServer {
    let server = PostgresServer::with_clock();
    let clock = clock();
    server.clock().set(i64::try_from(clock.millis()).unwrap() * 1000);
    server.execute(&read(STATEMENTS)).await;
    server
}
