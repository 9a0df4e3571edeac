//! Reads `multipart/form-data` (RFC 7578) in memory: the fields that are no files.
//!
//! It is read strictly: a body that could be divided in a second way has no fields, because the
//! upstream might divide it in that way.

use memchr::memmem;

use super::field::Field;
use super::header::is_media_type;

/// The longest boundary (RFC 2046, section 5.1.1).
const BOUNDARY_BYTES_MAX: usize = 70;
const PARTS_MAX: usize = 1024;
const PART_LINES_MAX: usize = 16;

/// The fields of a form. None if the body is not such a form.
pub(super) fn fields(content_type: &[u8], body: &[u8]) -> Option<Vec<Field>> {
    let boundary = parameter(content_type, "boundary")?;
    if boundary.is_empty() || boundary.len() > BOUNDARY_BYTES_MAX {
        return None;
    }
    let delimiter = [b"\r\n--", boundary.as_slice()].concat();
    // The line end of a delimiter ends the line before it, and before the first one there is no
    // line.
    let mut rest = body.strip_prefix(delimiter.get(2..)?)?;
    let mut fields = Vec::new();
    for _ in 0..PARTS_MAX {
        if rest.starts_with(b"--") {
            return Some(fields);
        }
        rest = rest.strip_prefix(b"\r\n")?;
        let end = memmem::find(rest, &delimiter)?;
        let (part, behind) = rest.split_at_checked(end)?;
        match read(part)? {
            Part::Field(field) => fields.push(field),
            Part::File => {}
        }
        rest = behind.get(delimiter.len()..)?;
    }
    None
}

/// What one part of the body is.
enum Part {
    Field(Field),
    File,
}

/// Reads one part. None: it is malformed.
fn read(part: &[u8]) -> Option<Part> {
    let mut lines = [httparse::EMPTY_HEADER; PART_LINES_MAX];
    let httparse::Status::Complete((head, lines)) =
        httparse::parse_headers(part, &mut lines).ok()?
    else {
        return None;
    };
    let mut dispositions =
        lines.iter().filter(|line| line.name.eq_ignore_ascii_case("content-disposition"));
    let disposition = dispositions.next()?.value;
    // With two dispositions frameworks would disagree about the name of the field.
    if dispositions.next().is_some() || !is_media_type(disposition, "form-data") {
        return None;
    }
    // `filename*` is forbidden here (RFC 7578, 4.2), but frameworks that know it from other uses
    // take such a part for a file.
    if parameter(disposition, "filename").is_some() || parameter(disposition, "filename*").is_some()
    {
        return Some(Part::File);
    }
    let name = parameter(disposition, "name")?;
    Some(Part::Field(Field { name, value: part.get(head..)?.to_vec() }))
}

/// The value of a parameter behind `;`, bare or quoted; none if it is absent or there twice.
fn parameter(value: &[u8], wanted: &str) -> Option<Vec<u8>> {
    let mut found = None;
    let mut rest = value;
    while let Some(start) = end_of_value(rest) {
        rest = rest.get(start + 1..)?.trim_ascii_start();
        let equals = rest.iter().position(|byte| *byte == b'=')?;
        let (name, behind) = rest.split_at_checked(equals)?;
        rest = behind.get(1..)?.trim_ascii_start();
        if name.trim_ascii().eq_ignore_ascii_case(wanted.as_bytes()) {
            let end = end_of_value(rest).unwrap_or(rest.len());
            if found.replace(unquoted(rest.get(..end)?.trim_ascii())?).is_some() {
                return None;
            }
        }
    }
    found
}

/// The index of the next `;` that is not within quotes.
fn end_of_value(text: &[u8]) -> Option<usize> {
    let mut quoted = false;
    let mut escaped = false;
    for (index, byte) in text.iter().enumerate() {
        match byte {
            b';' if !quoted => return Some(index),
            b'"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = quoted && *byte == b'\\' && !escaped;
    }
    None
}

fn unquoted(text: &[u8]) -> Option<Vec<u8>> {
    let Some(inner) = text.strip_prefix(b"\"") else {
        return Some(text.to_vec());
    };
    let mut out = Vec::new();
    let mut bytes = inner.strip_suffix(b"\"")?.iter();
    while let Some(byte) = bytes.next() {
        out.push(if *byte == b'\\' { *bytes.next()? } else { *byte });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TYPE: &[u8] = b"multipart/form-data; boundary=\"b 1\"";

    fn fields_of(body: &str) -> Option<Vec<(String, String)>> {
        let fields = fields(TYPE, body.replace('\n', "\r\n").as_bytes())?;
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Some(fields.into_iter().map(|field| (text(field.name), text(field.value))).collect())
    }

    #[test]
    fn fields_are_read_and_files_are_left_out() {
        let body = "--b 1\nContent-Disposition: form-data; name=\"json\"\n\n{\"a\":\n1}\n\
                    --b 1\ncontent-disposition: form-data; filename=\"x;name=y\"; name=\"file\"\n\
                    Content-Type: text/plain\n\nfile\n\
                    --b 1\nContent-Disposition: form-data; name=\"a\\\"b;c\"\n\n\n--b 1--\nepilogue";
        let expected = [("json", "{\"a\":\r\n1}"), ("a\"b;c", "")];
        let expected: Vec<_> =
            expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(fields_of(body), Some(expected));
    }

    #[test]
    fn what_could_be_divided_otherwise_has_no_fields() {
        for body in [
            "",
            "x\n--b 1\nContent-Disposition: form-data; name=\"a\"\n\n1\n--b 1--",
            "--b 1\nContent-Disposition: form-data; name=\"a\"\n\n1\n",
            "--b 1\nContent-Disposition: form-data; name=\"a\"; name=\"b\"\n\n1\n--b 1--",
            "--b 1\nContent-Disposition: form-data\n\n1\n--b 1--",
            "--b 1\nContent-Disposition: attachment; name=\"a\"\n\n1\n--b 1--",
            "--b 1\nX: form-data; name=\"a\"\n\n1\n--b 1--",
        ] {
            assert_eq!(fields_of(body), None, "{body}");
        }
        assert_eq!(fields(b"multipart/form-data", b"----"), None);
    }

    proptest! {
        #[test]
        fn no_body_panics(kind: Vec<u8>, body: Vec<u8>, text in "[a;=\"\\\\ -]{0,20}") {
            let _ = fields(&kind, &body);
            let _ = fields(TYPE, &body);
            let _ = parameter(text.as_bytes(), "a");
        }
    }
}
