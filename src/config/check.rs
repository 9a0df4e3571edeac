//! Raw -> `Config`, collecting every problem.
//!
//! A value that is none has been reported already. Each function looks at all its parts before it
//! gives up, so that no problem hides another.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::leaf::{Count, List, Text};
use super::problem::{Key, Place, Problem, Problems};
use super::raw::{Raw, RawAdmin, RawEmbedded, RawLimits, RawServer, RawStore};
use super::source::Sources;
use super::value::Size;
use super::{Config, Server, read, routes, secrets};
use crate::admin;
use crate::listener;
use crate::proxy;
use crate::store::{self, embedded};

/// The sources, and what was found wrong with them so far.
pub(super) struct Check<'a> {
    pub(super) sources: &'a Sources,
    pub(super) problems: Problems,
}

/// Checks everything.
pub(super) fn check(sources: &Sources) -> Result<Config, Problems> {
    let mut check = Check { sources, problems: sources.problems.clone() };
    let (raw, _) = read::read(sources, &mut check.problems);
    let config = check.config(raw);
    match (config, check.problems.is_empty()) {
        (Some(config), true) => Ok(config),
        (Some(_) | None, false) => Err(check.problems),
        // A test proves that the built-in values are complete.
        (None, true) => Err(Problem {
            place: Place::BuiltIn,
            key: Key::default(),
            expected: "a value for every setting".to_owned(),
            found: "one without".to_owned(),
            hint: None,
        }
        .into()),
    }
}

impl Check<'_> {
    fn config(&mut self, raw: Raw) -> Option<Config> {
        let server = self.server(raw.server);
        let admin = self.admin(raw.admin);
        if let (Some(server), Some(admin)) = (&server, &admin) {
            self.two_listeners(server.listen, admin.listen);
        }
        let store = store_settings(raw.store);
        let bodies_max = server.as_ref().map(|server| Size(server.limits.buffered_bytes_max));
        routes::defaults(self, raw.defaults);
        let routes = routes::routes(self, raw.routes, bodies_max);
        let (server, mut routes) = (server?, routes?);
        for route in &mut routes {
            route.public_url = route.public_url.take().or_else(|| server.public_url.clone());
        }
        Some(Config { server, admin: admin?, store: store?, routes })
    }

    fn server(&mut self, raw: Option<RawServer>) -> Option<Server> {
        let raw = raw?;
        let limits = self.limits(raw.limits);
        let listen = text(raw.listen);
        let trusted_proxies = raw.trusted_proxies.and_then(List::complete);
        let (listener, limits) = limits?;
        Some(Server {
            listen: listen?,
            public_url: text(raw.public_url)?.map(|url| url.0),
            trusted_proxies: trusted_proxies?,
            drain_delay: text(raw.drain_delay)?,
            shutdown_timeout: text(raw.shutdown_timeout)?,
            listener,
            limits,
        })
    }

    fn limits(&mut self, raw: Option<RawLimits>) -> Option<(listener::Limits, proxy::Limits)> {
        let raw = raw?;
        let at = Key::of(&["server", "limits"]);
        // hyper takes no smaller buffer for a head than 8 KiB.
        let heads = Size(8 << 10)..=Size(16 << 20);
        let head = self.within(
            &at.join("header_bytes_max"),
            text(raw.header_bytes_max),
            &heads,
            "a size from `8KiB` to `16MiB`",
        );
        let bodies = Size(1 << 10)..=Size(usize::MAX);
        let bodies = self.within(
            &at.join("buffered_bytes_max"),
            text(raw.buffered_bytes_max),
            &bodies,
            "a size of `1KiB` or more",
        );
        let header = self.above_zero(&at.join("header_timeout"), text(raw.header_timeout));
        let body = self.above_zero(&at.join("body_timeout"), text(raw.body_timeout));
        let idle = self.above_zero(&at.join("idle_timeout"), text(raw.idle_timeout));
        let write = self.above_zero(&at.join("write_timeout"), text(raw.write_timeout));
        let listener = listener::Limits {
            connections_max: count(raw.connections_max)?,
            header_bytes_max: head?.0,
            header_timeout: header?,
            idle_timeout: idle?,
            write_timeout: write?,
        };
        let proxy = proxy::Limits {
            requests_in_flight_max: count(raw.requests_in_flight_max)?,
            buffered_bytes_max: bodies?.0,
            body_timeout: body?,
        };
        Some((listener, proxy))
    }

    fn admin(&mut self, raw: Option<RawAdmin>) -> Option<admin::Settings> {
        let raw = raw?;
        let listen = text(raw.listen);
        let at = Key::of(&["admin"]);
        let key = at.join("token");
        let token = raw.token.map(|token| secrets::read(self, &key, token));
        // A token that was reported was at least meant.
        let meant = self.sources.value(&key).is_some();
        let listen = listen?;
        if !listen.ip().to_canonical().is_loopback() && !meant {
            let hint =
                "`token = { env = \"ONCEWARD_ADMIN_TOKEN\" }` in `[admin]` opens it to others";
            let expected = "a loopback address where there is no `admin.token`";
            self.report(&at.join("listen"), expected, format!("`{listen}`"), Some(hint));
            return None;
        }
        match token {
            None if meant => None,
            None => Some(admin::Settings { listen, token: None }),
            Some(token) => Some(admin::Settings { listen, token: Some(token?) }),
        }
    }

    fn two_listeners(&mut self, server: SocketAddr, admin: SocketAddr) {
        if server == admin && server.port() != 0 {
            let expected = "another address than `server.listen`";
            self.wrong(&Key::of(&["admin", "listen"]), expected, format!("`{admin}`"));
        }
    }

    /// Reports what stands at `key`.
    pub(super) fn wrong(&mut self, key: &Key, expected: &str, found: String) {
        self.report(key, expected, found, None);
    }

    /// The same, with something that may help.
    pub(super) fn report(&mut self, key: &Key, expected: &str, found: String, hint: Option<&str>) {
        let (place, key) = self.sources.origin(key);
        let (expected, hint) = (expected.to_owned(), hint.map(str::to_owned));
        self.problems.push(Problem { place, key, expected, found, hint });
    }

    pub(super) fn within<T: PartialOrd>(
        &mut self,
        key: &Key,
        value: Option<T>,
        range: &RangeInclusive<T>,
        expected: &str,
    ) -> Option<T> {
        let value = value?;
        if range.contains(&value) {
            return Some(value);
        }
        let found = self.written(key);
        self.wrong(key, expected, found);
        None
    }

    pub(super) fn above_zero(&mut self, key: &Key, value: Option<Duration>) -> Option<Duration> {
        self.within(
            key,
            value,
            &(Duration::from_millis(1)..=Duration::MAX),
            "a duration above zero",
        )
    }

    /// A number or text as it was written, of a setting that holds no secret.
    fn written(&self, key: &Key) -> String {
        let text = self.sources.value(key).and_then(|value| value.as_str());
        text.map_or_else(|| "something else".to_owned(), super::problem::quoted)
    }
}

fn store_settings(raw: Option<RawStore>) -> Option<store::Settings> {
    match raw? {
        RawStore { memory: Some(_), .. } => Some(store::Settings::Memory),
        RawStore { embedded, memory: None } => {
            let RawEmbedded { path, durability } = embedded?;
            let (path, durability) = (text(path)?, text(durability)?);
            Some(store::Settings::Embedded(embedded::Settings { path, durability }))
        }
    }
}

pub(super) fn text<T>(value: Option<Text<T>>) -> Option<T> {
    value.map(|Text(value)| value)
}

pub(super) fn count(value: Option<Count>) -> Option<usize> {
    value.and_then(|Count(number)| usize::try_from(number).ok())
}
