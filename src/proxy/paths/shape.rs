//! The changes that HTTP servers make to the segments of a path, one function each.

/// Backslashes read as slashes, as the WHATWG URL Standard does for `http` URLs.
pub(super) fn with_slashes(path: &str) -> String {
    path.replace('\\', "/")
}

/// Segments without their parameters (`;` and all after it), as Java servlet containers read them.
pub(super) fn without_parameters(path: &str) -> String {
    let segments = path.split('/').map(|segment| segment.split(';').next().unwrap_or_default());
    segments.collect::<Vec<_>>().join("/")
}

/// Doubled slashes merged, as nginx does by default (`merge_slashes`).
pub(super) fn with_single_slashes(path: &str) -> String {
    let mut single = String::with_capacity(path.len());
    for character in path.chars() {
        if character != '/' || !single.ends_with('/') {
            single.push(character);
        }
    }
    single
}

/// Dot segments resolved (RFC 3986, 5.2.4).
pub(super) fn without_dot_segments(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            segment => {
                kept.push(segment);
                continue;
            }
        }
        if is_last {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}
