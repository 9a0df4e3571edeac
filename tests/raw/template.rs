//! Turns the notation of a case into the bytes that are sent.

use std::time::Duration;

/// What is sent at once, or a pause before the next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    Bytes(Vec<u8>),
    Pause(Duration),
}

/// What the placeholders stand for.
pub(crate) struct Values<'a> {
    pub(crate) path: &'a str,
    pub(crate) id: &'a str,
    pub(crate) key: &'a str,
    pub(crate) host: &'a str,
    pub(crate) evil: &'a str,
}

impl Values<'_> {
    /// A whole second request: if it reaches the upstream, it was smuggled.
    fn smuggled(&self) -> String {
        let Self { path, id, key, host, .. } = self;
        format!(
            "POST {path}?c=SMUGGLED-{id} HTTP/1.1\r\nHost: {host}\r\n\
             X-Idempotency-Key: smuggled-{key}\r\nContent-Length: 0\r\n\r\n"
        )
    }
}

/// The pieces that a template stands for.
pub(crate) fn expand(template: &str, values: &Values<'_>) -> Vec<Piece> {
    let mut pieces = vec![Piece::Bytes(Vec::new())];
    let mut rest = template;
    while let Some(at) = rest.find(['\\', '{']) {
        let (text, special) = rest.split_at(at);
        push(&mut pieces, text.as_bytes());
        rest = if let Some(escape) = special.strip_prefix('\\') {
            unescape(&mut pieces, escape)
        } else if let Some(inside) = special.strip_prefix("{{") {
            let (placeholder, after) = inside.split_once("}}").expect("`}}` ends a placeholder");
            replace(&mut pieces, placeholder, template, values);
            after
        } else {
            push(&mut pieces, b"{");
            &special[1..]
        };
    }
    push(&mut pieces, rest.as_bytes());
    pieces
}

/// The bytes of a template without pauses.
pub(crate) fn bytes(template: &str, values: &Values<'_>) -> Vec<u8> {
    let flat = expand(template, values).into_iter().map(|piece| match piece {
        Piece::Bytes(bytes) => bytes,
        Piece::Pause(_) => panic!("`{template}` has a pause where none can be"),
    });
    flat.collect::<Vec<_>>().concat()
}

fn push(pieces: &mut Vec<Piece>, more: &[u8]) {
    match pieces.last_mut() {
        Some(Piece::Bytes(bytes)) => bytes.extend_from_slice(more),
        Some(Piece::Pause(_)) | None => pieces.push(Piece::Bytes(more.to_vec())),
    }
}

fn unescape<'a>(pieces: &mut Vec<Piece>, escape: &'a str) -> &'a str {
    let (byte, length) = match escape.as_bytes() {
        [b'r', ..] => (b'\r', 1),
        [b'n', ..] => (b'\n', 1),
        [b't', ..] => (b'\t', 1),
        [b'\\', ..] => (b'\\', 1),
        [b'x', ..] => (u8::from_str_radix(&escape[1..3], 16).expect("two hex digits"), 3),
        other => panic!("unknown escape {other:?}"),
    };
    push(pieces, &[byte]);
    &escape[length..]
}

fn replace(pieces: &mut Vec<Piece>, placeholder: &str, template: &str, values: &Values<'_>) {
    let (name, argument) = placeholder.split_once(' ').unwrap_or((placeholder, ""));
    match name {
        "P" => push(pieces, values.path.as_bytes()),
        "ID" => push(pieces, values.id.as_bytes()),
        "K" => push(pieces, values.key.as_bytes()),
        "H" => push(pieces, values.host.as_bytes()),
        "HDRS" => push(pieces, format!("X-Idempotency-Key: {}\r\n", values.key).as_bytes()),
        "EVIL" => push(pieces, values.evil.as_bytes()),
        "SMUG" => push(pieces, values.smuggled().as_bytes()),
        "LEN" => push(pieces, region_length(argument, template, values).to_string().as_bytes()),
        "HEX" => {
            let length = region_length(argument, template, values);
            push(pieces, format!("{length:x}").as_bytes());
        }
        "REPEAT" => {
            let (times, text) = argument.split_once(' ').expect("a number and a text");
            let once = bytes(text, values);
            push(pieces, &once.repeat(times.parse().expect("a number")));
        }
        "SLEEP" => {
            pieces.push(Piece::Pause(Duration::from_secs_f64(argument.parse().unwrap())));
        }
        // A region's bounds are no bytes.
        _ if name.starts_with(['#', '/']) => {}
        other => panic!("unknown placeholder `{other}`"),
    }
}

/// The length of the region that `A`, `A+5` or `A-1` speaks of.
fn region_length(argument: &str, template: &str, values: &Values<'_>) -> usize {
    let bound = argument.find(['+', '-']).unwrap_or(argument.len());
    let (name, offset) = argument.split_at(bound);
    let begin = format!("{{{{#{name}}}}}");
    let (_, inside) = template.split_once(&begin).expect("the region begins");
    let (region, _) = inside.split_once(&format!("{{{{/{name}}}}}")).expect("the region ends");
    let offset = if offset.is_empty() { 0 } else { offset.parse().expect("an offset") };
    bytes(region, values).len().checked_add_signed(offset).expect("a length")
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: Values<'_> = Values { path: "/p", id: "i", key: "k", host: "h:1", evil: "e:2" };

    #[test]
    fn every_notation_is_read() {
        assert_eq!(bytes(r"a\r\n\t\x0b\xff\\{b}", &VALUES), b"a\r\n\t\x0b\xff\\{b}");
        assert_eq!(bytes("{{P}} {{ID}} {{K}} {{H}} {{EVIL}}", &VALUES), b"/p i k h:1 e:2");
        assert_eq!(bytes("{{HDRS}}", &VALUES), b"X-Idempotency-Key: k\r\n");
        assert_eq!(bytes(r"{{REPEAT 3 x\n}}", &VALUES), b"x\nx\nx\n");
        let region = r"{{LEN A}} {{LEN A+5}} {{LEN A-1}} {{HEX A}} {{#A}}0123456789\r\n{{/A}}!";
        assert_eq!(bytes(region, &VALUES), b"12 17 11 c 0123456789\r\n!");
        let smuggled = bytes("{{SMUG}}", &VALUES);
        assert!(smuggled.starts_with(b"POST /p?c=SMUGGLED-i HTTP/1.1\r\nHost: h:1\r\n"));
        assert!(smuggled.ends_with(b"\r\n\r\n"));
    }

    #[test]
    fn a_pause_parts_what_is_sent() {
        let pieces = expand("a{{SLEEP 0.05}}b", &VALUES);
        let pause = Piece::Pause(Duration::from_millis(50));
        assert_eq!(pieces, [Piece::Bytes(b"a".to_vec()), pause, Piece::Bytes(b"b".to_vec())]);
    }
}
