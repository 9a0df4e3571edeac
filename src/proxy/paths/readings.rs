//! The ways in which HTTP servers may read a path.
//!
//! A path is forwarded byte for byte. Servers behind us decode it once or twice, merge slashes,
//! resolve dot segments, cut off parameters, or read a backslash as a slash, in any order.

use percent_encoding::percent_decode_str;

use super::shape::{with_single_slashes, with_slashes, without_dot_segments, without_parameters};

/// The greatest number of readings that are looked for. The paths of honest senders have a few
/// readings. A path with more was made to confuse.
const READINGS_MAX: usize = 64;

/// How often a path may be decoded: once by a proxy, and once by the server behind it.
const DECODINGS_MAX: usize = 2;

/// A path has more readings than [`READINGS_MAX`].
#[derive(Debug, PartialEq, Eq)]
pub(in crate::proxy) struct TooMany;

/// Whether a path has no reading but itself, apart from its case and a trailing slash.
fn is_plain(path: &str) -> bool {
    !path.contains(['%', ';', '\\']) && !path.contains("//") && !path.contains("/.")
}

/// The path as it is written, and every other reading of it. The caller compares without regard to
/// case and a trailing slash. Each reading is found once, so [`READINGS_MAX`] bounds the work.
pub(in crate::proxy) fn readings(path: &str) -> Result<Vec<String>, TooMany> {
    const SHAPES: [fn(&str) -> String; 4] =
        [with_slashes, without_parameters, with_single_slashes, without_dot_segments];
    let mut all = Readings(vec![path.to_owned()]);
    if is_plain(path) {
        return Ok(all.0);
    }
    let mut decoded_first = 0;
    for decodings in 0..=DECODINGS_MAX {
        let mut next = decoded_first;
        while let Some(reading) = all.0.get(next).cloned() {
            SHAPES.iter().try_for_each(|shape| all.add(shape(&reading)))?;
            next += 1;
        }
        if decodings < DECODINGS_MAX {
            let before = all.0.get(decoded_first..).unwrap_or_default().to_vec();
            decoded_first = all.0.len();
            for reading in before {
                all.add(decoded_but_slashes(&reading))?;
                all.add(decoded(&reading))?;
            }
        }
    }
    Ok(all.0)
}

struct Readings(Vec<String>);

impl Readings {
    fn add(&mut self, reading: String) -> Result<(), TooMany> {
        if self.0.contains(&reading) {
            return Ok(());
        }
        if self.0.len() == READINGS_MAX {
            return Err(TooMany);
        }
        self.0.push(reading);
        Ok(())
    }
}

/// The path decoded once. Bytes that are not UTF-8 are replaced, because no route has such a path.
fn decoded(path: &str) -> String {
    percent_decode_str(path).decode_utf8_lossy().into_owned()
}

/// The path decoded once, except for encoded slashes, which many servers leave as they are.
fn decoded_but_slashes(path: &str) -> String {
    let kept = ["%2f", "%2F", "%5c", "%5C"].into_iter();
    decoded(&kept.fold(path.to_owned(), |path, escape| {
        if path.contains(escape) { path.replace(escape, &escape.replace('%', "%25")) } else { path }
    }))
}

/// Whether some server would resolve dot segments to something above the start of `path`. A path
/// with too many readings counts as one that climbs, because that cannot be ruled out.
pub(in crate::proxy) fn climbs(path: &str) -> bool {
    // No server decodes more than twice, so dot segments are visible after two decodings.
    let may_climb = !is_plain(path) && decoded(&decoded(path)).contains("..");
    may_climb && readings(path).map_or(true, |all| all.iter().any(|it| goes_below_zero(it)))
}

fn goes_below_zero(path: &str) -> bool {
    let mut depth = 0_i32;
    path.split('/').any(|segment| {
        match segment {
            "" | "." => {}
            ".." => depth -= 1,
            _ => depth += 1,
        }
        depth < 0
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plain_path_has_one_reading() {
        for path in ["/", "/webhooks/stripe", "/Webhooks/a-b_c~d.e/"] {
            assert_eq!(readings(path), Ok(vec![path.to_owned()]), "{path}");
        }
    }

    #[test]
    fn every_reading_and_every_order_of_them_is_found() {
        for path in [
            "/webhooks/%73tripe",
            "/webhooks/%2573tripe",
            "/webhooks//stripe",
            "/webhooks/./stripe",
            "/x/../webhooks/stripe",
            "/x/%2e%2e/webhooks/stripe",
            "/x/%252e%252e/webhooks/stripe",
            "/webhooks/stripe;x",
            "/webhooks;a=b/stripe;c",
            "/webhooks/stripe%3Bx",
            "/webhooks%2Fstripe",
            "/webhooks%252fstripe",
            "/webhooks%5Cstripe",
            "/x/..;/webhooks//%73tripe;y",
            "/x;%2f../webhooks/stripe",
            "/a%2fb/../webhooks/stripe",
            "/x/..%5c%77ebhooks/stripe",
        ] {
            let found = readings(path).unwrap();
            assert!(found.iter().any(|it| it == "/webhooks/stripe"), "{path}: {found:?}");
        }
    }

    #[test]
    fn the_number_of_readings_is_bounded() {
        let nasty = "/%5c%253b/%2e/.%252e%3b%3b%2e/.%2f/.%255c/.%252e%3b;x%5cx";
        assert_eq!(readings(nasty), Err(TooMany));
        assert!(readings("/users/a%20b;v=1//c/./d/").is_ok());
        assert!(readings("/proxy/https%3A%2F%2Fa.example%2Fb%3Fc%3Dd/").is_ok());
    }

    #[test]
    fn dot_segments_within_the_route_stay_as_they_are() {
        assert!(!climbs("/a%2Fb/%2e%2e/c//d/%252F"));
        assert!(!climbs("/a/../b/./c"));
    }

    #[test]
    fn no_spelling_of_dot_segments_leaves_the_route() {
        for path in ["/..", "/../admin", "/%2e%2e/admin", "/.%2E/x", "/a/../../x", "/..%2fadmin"] {
            assert!(climbs(path), "{path}");
        }
        for path in ["/a%2fb/%2e%2e/%2e%2e/admin", "/a%5Cb/../../admin", "/a%252fb/../../admin"] {
            assert!(climbs(path), "{path}");
        }
        for path in ["/..%5cadmin", "/a/..\\..\\admin", "/..;/admin", "/%252e%252e%252fadmin"] {
            assert!(climbs(path), "{path}");
        }
    }

    /// All readings of a path, without a bound on their number. They are made by every order of the
    /// changes, with up to two decodings. A decoding decodes encoded slashes or leaves them.
    fn all_readings(path: &str) -> HashSet<String> {
        let decoders: [fn(&str) -> String; 2] = [decoded, decoded_but_slashes];
        let mut found = HashSet::new();
        let mut open = vec![(path.to_owned(), 0)];
        let mut seen: HashSet<(String, usize)> = open.iter().cloned().collect();
        while let Some((path, decodings)) = open.pop() {
            let shaped = [with_slashes, without_parameters, with_single_slashes]
                .map(|shape| (shape(&path), decodings));
            let decoded = decoders.map(|decode| (decode(&path), decodings + 1));
            let next = shaped.into_iter().chain(decoded).filter(|(_, decodings)| *decodings <= 2);
            open.extend(next.filter(|one| seen.insert(one.clone())));
            // A resolved path may be decoded and resolved again.
            let resolved = (without_dot_segments(&path), decodings);
            if seen.insert(resolved.clone()) {
                open.push(resolved);
            }
            found.insert(path);
        }
        found
    }

    proptest! {
        /// Every reading of a forwarded path stays below the path that replaced the route's path.
        #[test]
        fn no_reading_of_what_is_forwarded_leaves_the_base(rest in "/([ab.;/]|\\.\\.|%2[eEfF]|%25|%5[cC]|\\\\|/|5c|2f){0,9}") {
            let forwarded = format!("/internal/hooks{rest}");
            let stays = |path: &String| {
                let resolved = without_dot_segments(&with_single_slashes(path));
                resolved == "/internal/hooks" || resolved.starts_with("/internal/hooks/")
            };
            if !climbs(&rest) {
                let left: Vec<_> = all_readings(&forwarded).into_iter().filter(|it| !stays(it)).collect();
                prop_assert!(left.is_empty(), "{:?}", left);
            }
        }

        #[test]
        fn a_path_that_no_receiver_reads_with_dots_does_not_climb(path in "/[a/;%\\\\25fF]{0,24}") {
            prop_assert!(!climbs(&path));
        }

        #[test]
        fn no_path_panics_and_its_readings_are_bounded(path in "/[a/.;%\\\\25eEfF]{0,24}") {
            if let Ok(found) = readings(&path) {
                prop_assert_eq!(&found[0], &path);
                prop_assert!(found.len() <= READINGS_MAX);
            }
        }
    }
}
