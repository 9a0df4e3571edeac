//! What servers make of the segments of a path, one change each.

pub(super) fn with_slashes(path: &str) -> String {
    path.replace('\\', "/")
}

pub(super) fn without_parameters(path: &str) -> String {
    let segments = path.split('/').map(|segment| segment.split(';').next().unwrap_or_default());
    segments.collect::<Vec<_>>().join("/")
}

pub(super) fn with_single_slashes(path: &str) -> String {
    let mut single = String::with_capacity(path.len());
    for character in path.chars() {
        if character != '/' || !single.ends_with('/') {
            single.push(character);
        }
    }
    single
}

/// RFC 3986, 5.2.4.
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
