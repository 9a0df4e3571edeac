//! Select: finds the route of a request, by host first, then by path (exact before longest prefix),
//! then by method.

use std::collections::{BTreeSet, HashMap};

use http::Method;
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};

use super::guard;
use super::host::canonical_host;
use super::identify::SAFE_METHODS;
use super::path_pattern::PathPattern;
use super::paths;
use super::refusal::{ExplainedRefusal, Malformed, Refusal};
use super::settings::RouteSettings;
use crate::upstream;

/// The longest target that `http` accepts (`MAX_LEN` in its `src/uri/mod.rs`).
const TARGET_BYTES_MAX: usize = 65_534;

/// The routes of a proxy, ready to be looked up.
#[derive(Debug)]
pub(super) struct Routes<R> {
    as_written: Tables<R>,
    /// The same routes in lower case, for servers that do not distinguish upper and lower case.
    lower_case: Tables<R>,
    /// Whether all routes treat a request alike, so that it does not matter which one takes it.
    all_alike: bool,
    /// Whether some route's path has an upper-case letter or ends in a slash. A plain path may be
    /// read as the path of such a route.
    plain_differs: bool,
}

#[derive(Debug)]
struct Tables<R> {
    of_host: HashMap<String, Table<R>>,
    of_any_host: Table<R>,
}

#[derive(Debug)]
struct Table<R> {
    exact: HashMap<String, R>,
    prefixes: HashMap<String, R>,
    /// The lengths of the prefixes. A look-up tries each length once, however many prefixes there
    /// are.
    prefix_lengths: BTreeSet<usize>,
}

/// A route that is at work, or only the settings of a route.
pub(super) trait HasSettings: Clone {
    fn settings(&self) -> &RouteSettings;
}

impl HasSettings for &RouteSettings {
    fn settings(&self) -> &RouteSettings {
        self
    }
}

/// The route whose host and path a request names, and that host.
#[derive(Debug)]
pub(super) struct Named<R> {
    pub(super) route: R,
    host: Authority,
}

/// The route of a request, and where the request goes from there.
#[derive(Debug, Clone)]
pub(super) struct Selected<R> {
    pub(super) route: R,
    /// The host that the request names.
    pub(super) host: Authority,
    /// The target of the request to the upstream.
    pub(super) target: PathAndQuery,
    /// The part of the path that the path of the upstream replaced. None if nothing was replaced.
    pub(super) prefix: Option<String>,
}

impl<R: HasSettings> Routes<R> {
    pub(super) fn new(routes: impl IntoIterator<Item = R>) -> Self {
        let mut as_written = Tables::default();
        let mut lower_case = Tables::default();
        let mut all_alike = true;
        let mut plain_differs = false;
        let mut first: Option<R> = None;
        for route in routes {
            let settings = route.settings();
            let host = settings.host.as_deref();
            as_written.add(host, settings.path.clone(), route.clone());
            lower_case.add(host, settings.path.to_lower_case(), route.clone());
            let path = settings.path.as_str();
            plain_differs |= path.bytes().any(|it| it.is_ascii_uppercase()) || ends_in_slash(path);
            let first = first.get_or_insert_with(|| route.clone());
            all_alike &= treat_alike(first.settings(), route.settings());
        }
        Self { as_written, lower_case, all_alike, plain_differs }
    }

    /// The route whose host and path a request names. Metrics and log count later refusals for it.
    pub(super) fn named(&self, head: &Parts, host: Authority) -> Result<Named<R>, Refusal> {
        let target = target(head)?;
        let name = canonical_host(host.host()).unwrap_or_default();
        let route = self.as_written.find(&name, target.path()).cloned().ok_or(Refusal::NoRoute)?;
        Ok(Named { route, host })
    }

    /// Checks that the route takes the request, and makes the target for the upstream.
    pub(super) fn select(&self, named: Named<R>, head: &Parts) -> Result<Selected<R>, Refusal> {
        let Named { route, host } = named;
        let target = target(head)?;
        let settings = route.settings();
        // A GET that is not deduplicated is forwarded, because senders check a URL with a GET
        // before they use the URL.
        if !settings.methods.contains(&head.method) && !SAFE_METHODS.contains(&head.method) {
            return Err(Refusal::MethodNotAllowed(allow(&settings.methods)));
        }
        self.check_readings(settings, host.host(), target.path()).map_err(Refusal::Malformed)?;
        guard::connection(&head.headers, |name| settings.reads_header(name))?;
        let (target, prefix) =
            rewrite(&settings.path, settings.upstream.target.path.as_deref(), target)?;
        Ok(Selected { route, host, target, prefix })
    }

    /// Checks that every reading of the path belongs to this route, or to a route that treats the
    /// request alike.
    fn check_readings(
        &self,
        route: &RouteSettings,
        host: &str,
        path: &str,
    ) -> Result<(), Malformed> {
        if let PathPattern::Prefix(prefix) = &route.path
            && paths::climbs(path.get(prefix.len()..).unwrap_or_default())
        {
            return Err(Malformed::LeavesRoute);
        }
        // Most configurations and most paths need no search for readings.
        if self.all_alike || (!self.plain_differs && has_one_reading(path)) {
            return Ok(());
        }
        // A server behind one of the routes may decode or resolve the path. If it then reads
        // another route's path, a request could reach the application without that route's checks.
        let host = canonical_host(host).unwrap_or_default();
        let readings = paths::readings(path).map_err(|paths::TooMany| Malformed::Readings)?;
        let other = |taken: &R| !treat_alike(taken.settings(), route);
        if readings.iter().any(|reading| self.takers(&host, reading).any(other)) {
            return Err(Malformed::OtherRoute);
        }
        Ok(())
    }

    /// The routes that take a reading of a path. The reading is looked up as it is, and without the
    /// slash at its end. With a slash at its end it is looked up among exact paths only. Each of
    /// these forms is also looked up in lower case.
    fn takers<'r>(&'r self, host: &'r str, reading: &str) -> impl Iterator<Item = &'r R> {
        let path = paths::spelled(reading);
        let bare = path.trim_end_matches('/');
        let lower = path.to_ascii_lowercase();
        let lower_bare = lower.trim_end_matches('/');
        [
            self.as_written.find(host, &path),
            self.as_written.find(host, bare),
            self.as_written.find_exact(host, &format!("{bare}/")),
            self.lower_case.find(host, &lower),
            self.lower_case.find(host, lower_bare),
            self.lower_case.find_exact(host, &format!("{lower_bare}/")),
        ]
        .into_iter()
        .flatten()
    }
}

/// Whether a path has only one reading, because no server decodes, cuts off or resolves any part of
/// it. Most paths have one reading and need no search.
fn has_one_reading(path: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"/-_.~".contains(&byte);
    path.bytes().all(plain) && !path.contains("//") && !path.contains("/.") && !ends_in_slash(path)
}

/// Whether a slash ends the path, other than the slash with which it begins.
fn ends_in_slash(path: &str) -> bool {
    path.len() > 1 && path.ends_with('/')
}

/// Whether two routes treat a request alike.
fn treat_alike(one: &RouteSettings, other: &RouteSettings) -> bool {
    std::ptr::eq(one, other)
        || (one.mode == other.mode
            && one.upstream.target == other.upstream.target
            && one.steps == other.steps
            && one.provider == other.provider
            && one.secrets == other.secrets)
}

/// The routes that would refuse their own path, because it can be read as the path of another
/// route.
pub fn misread(routes: &[RouteSettings]) -> Vec<&RouteSettings> {
    let all = Routes::new(routes);
    let is_misread = |route: &&RouteSettings| {
        let host = route.host.as_deref().unwrap_or_default();
        let path = route.path.as_str();
        let taken = all.as_written.find(host, path);
        let own = taken.is_some_and(|taken| std::ptr::eq(*taken, *route));
        own && all.check_readings(route, host, path).is_err()
    };
    routes.iter().filter(is_misread).collect()
}

/// The route that would take a request, or the code and the detail of the refusal.
pub fn choose<'r>(
    routes: &'r [RouteSettings],
    parts: &Parts,
) -> Result<&'r RouteSettings, ExplainedRefusal> {
    let chosen = || {
        let host = guard::head(parts)?;
        let routes = Routes::new(routes);
        let named = routes.named(parts, host)?;
        Ok(routes.select(named, parts)?.route)
    };
    chosen().map_err(|refusal: Refusal| refusal.explained())
}

impl<R> Tables<R> {
    fn add(&mut self, host: Option<&str>, path: PathPattern, route: R) {
        let table = match host {
            Some(host) => self.of_host.entry(host.to_owned()).or_default(),
            None => &mut self.of_any_host,
        };
        match path {
            PathPattern::Exact(path) => {
                table.exact.insert(path, route);
            }
            PathPattern::Prefix(prefix) => {
                table.prefix_lengths.insert(prefix.len());
                table.prefixes.insert(prefix, route);
            }
        }
    }

    fn find(&self, host: &str, path: &str) -> Option<&R> {
        let found = self.of_host.get(host).and_then(|table| table.find(path));
        found.or_else(|| self.of_any_host.find(path))
    }

    fn find_exact(&self, host: &str, path: &str) -> Option<&R> {
        let found = self.of_host.get(host).and_then(|table| table.exact.get(path));
        found.or_else(|| self.of_any_host.exact.get(path))
    }
}

impl<R> Default for Tables<R> {
    fn default() -> Self {
        Self { of_host: HashMap::new(), of_any_host: Table::default() }
    }
}

impl<R: HasSettings> Selected<R> {
    /// The same request, to the upstream of one step.
    pub(super) fn towards(
        &self,
        head: &Parts,
        upstream: &upstream::Settings,
    ) -> Result<Self, Refusal> {
        let target = target(head)?;
        let pattern = &self.route.settings().path;
        let (target, prefix) = rewrite(pattern, upstream.target.path.as_deref(), target)?;
        Ok(Self { route: self.route.clone(), host: self.host.clone(), target, prefix })
    }
}

fn target(head: &Parts) -> Result<&PathAndQuery, Refusal> {
    head.uri.path_and_query().ok_or(Refusal::Malformed(Malformed::Target))
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Self { exact: HashMap::new(), prefixes: HashMap::new(), prefix_lengths: BTreeSet::new() }
    }
}

impl<R> Table<R> {
    /// The route of a path. An exact path comes before every prefix, and a longer prefix before a
    /// shorter one.
    fn find(&self, path: &str) -> Option<&R> {
        self.exact.get(path).or_else(|| {
            let ends = |end: &&usize| matches!(path.as_bytes().get(**end), None | Some(b'/'));
            let lengths = self.prefix_lengths.iter().rev().filter(ends);
            lengths.filter_map(|length| path.get(..*length)).find_map(|it| self.prefixes.get(it))
        })
    }
}

fn allow(methods: &[Method]) -> String {
    let all: Vec<&str> = methods
        .iter()
        .chain(SAFE_METHODS.iter().filter(|method| !methods.contains(method)))
        .map(Method::as_str)
        .collect();
    all.join(", ")
}

/// The target for the upstream. If the upstream has a path, that path replaces the part of the
/// request's path that the route matched. Otherwise the target is the request's own.
fn rewrite(
    pattern: &PathPattern,
    upstream_path: Option<&str>,
    target: &PathAndQuery,
) -> Result<(PathAndQuery, Option<String>), Refusal> {
    let Some(base) = upstream_path else { return Ok((target.clone(), None)) };
    let (matched, rest) = match pattern {
        PathPattern::Exact(path) => (path.as_str(), ""),
        PathPattern::Prefix(prefix) => {
            (prefix.as_str(), target.path().get(prefix.len()..).unwrap_or_default())
        }
    };
    // `/base/` and `/rest` must not become `/base//rest`.
    let base = if rest.is_empty() { base } else { base.trim_end_matches('/') };
    let path = format!("{base}{rest}");
    let whole = match target.query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    // `http` would refuse this target, too, but its error does not say why.
    if whole.len() > TARGET_BYTES_MAX {
        return Err(Refusal::Malformed(Malformed::TargetTooLong));
    }
    let target = whole.parse().map_err(|_| Refusal::Malformed(Malformed::Target))?;
    Ok((target, Some(matched.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_upstream_replaces_the_matched_part_and_nothing_else() {
        let prefix = PathPattern::Prefix("/in".into());
        let target = "/in/square/?a=%20+b&&c".parse().unwrap();
        let (asked, replaced) = rewrite(&prefix, Some("/hooks/"), &target).unwrap();
        assert_eq!(asked.as_str(), "/hooks/square/?a=%20+b&&c");
        assert_eq!(replaced.as_deref(), Some("/in"));
        let (asked, replaced) = rewrite(&prefix, None, &target).unwrap();
        assert_eq!(asked.as_str(), "/in/square/?a=%20+b&&c");
        assert_eq!(replaced, None);
    }
}
