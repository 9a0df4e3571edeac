//! Reads a captured request: the head and body of HTTP/1.1, as a file.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{Request, Version};

/// More header lines than any server takes.
const LINES_MAX: usize = 512;

/// Why a file is not a captured request. Nothing of the request is in the sentences.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum CapturedError {
    /// The head does not parse.
    #[error("expected the head of an HTTP/1.1 request")]
    Head(#[from] httparse::Error),
    /// The file ends within the head.
    #[error("expected an empty line between head and body")]
    NoEnd,
    /// The method, the target, or a header is not allowed in HTTP.
    #[error("expected the head of an HTTP/1.1 request")]
    NotAllowed(#[from] http::Error),
    /// A chunked body, which may have been captured before or after it was put together.
    #[error(
        "expected a body that is not chunked: leave out `Transfer-Encoding` and the chunk sizes"
    )]
    Chunked,
    /// The length of the body is not a number, or is given twice.
    #[error("expected one number in `Content-Length`")]
    Length,
    /// The body has fewer bytes than the head says.
    #[error("expected a body of {expected} bytes, found {found}: the capture is cut off")]
    CutOff {
        /// What the head says.
        expected: usize,
        /// What there is.
        found: usize,
    },
}

impl CapturedError {
    /// Whether the file does not look like a request at all.
    pub(super) const fn is_of_the_head(&self) -> bool {
        match self {
            Self::Head(_) | Self::NoEnd | Self::NotAllowed(_) => true,
            Self::Chunked | Self::Length | Self::CutOff { .. } => false,
        }
    }
}

/// The request in these bytes.
///
/// Lines of the head may end in LF alone, as an editor leaves them. The body is the rest, or as
/// much of it as `Content-Length` says: an editor also adds a newline at the end.
///
/// # Errors
///
/// A request of which not all is there would have another fingerprint, so it is an error.
pub(super) fn read(captured: &[u8]) -> Result<Request<Bytes>, CapturedError> {
    let mut lines = [httparse::EMPTY_HEADER; LINES_MAX];
    let mut head = httparse::Request::new(&mut lines);
    let httparse::Status::Complete(head_bytes) = head.parse(captured)? else {
        return Err(CapturedError::NoEnd);
    };
    let mut request = Request::builder()
        .version(Version::HTTP_11)
        .method(head.method.unwrap_or_default())
        .uri(head.path.unwrap_or_default());
    for line in head.headers.iter() {
        request = request.header(line.name, line.value);
    }
    let rest = captured.get(head_bytes..).unwrap_or_default();
    let mut request = request.body(Bytes::new())?;
    *request.body_mut() = body(&request, rest)?;
    Ok(request)
}

fn body(request: &Request<Bytes>, rest: &[u8]) -> Result<Bytes, CapturedError> {
    if request.headers().contains_key(TRANSFER_ENCODING) {
        return Err(CapturedError::Chunked);
    }
    let mut lengths = request.headers().get_all(CONTENT_LENGTH).iter();
    let Some(length) = lengths.next() else {
        return Ok(Bytes::copy_from_slice(rest));
    };
    if lengths.next().is_some() {
        return Err(CapturedError::Length);
    }
    let digits = length.to_str().ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    let expected = digits.and_then(|text| text.parse().ok()).ok_or(CapturedError::Length)?;
    let body = rest.get(..expected);
    let cut_off = CapturedError::CutOff { expected, found: rest.len() };
    body.map(Bytes::copy_from_slice).ok_or(cut_off)
}

#[cfg(test)]
mod tests {
    use http::Method;
    use http::header::HOST;

    use super::*;

    fn body_of(captured: &str) -> Result<String, String> {
        let request = read(captured.as_bytes()).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(request.body().to_vec()).unwrap())
    }

    #[test]
    fn head_and_body_are_read_with_either_line_end() {
        for end in ["\r\n", "\n"] {
            let lines =
                ["POST /orders?a=%41 HTTP/1.1", "Host: h:1", "X-A: 1", "x-a:  2 ", "", "{}\r\n"];
            let request = read(lines.join(end).as_bytes()).unwrap();
            assert_eq!(request.method(), Method::POST);
            assert_eq!(request.uri(), "/orders?a=%41");
            assert_eq!(request.headers()[HOST], "h:1");
            let values: Vec<_> = request.headers().get_all("x-a").iter().collect();
            assert_eq!(values, ["1", "2"]);
            assert_eq!(request.body(), "{}\r\n");
        }
    }

    #[test]
    fn the_body_is_as_long_as_the_head_says() {
        let captured = |length: &str| body_of(&format!("POST / HTTP/1.1\n{length}\nhello\n"));
        assert_eq!(captured(""), Ok("hello\n".to_owned()));
        assert_eq!(captured("Content-Length: 5\n"), Ok("hello".to_owned()));
        assert_eq!(captured("Content-Length: 0\n"), Ok(String::new()));
        let cut_off = captured("Content-Length: 7\n").unwrap_err();
        assert_eq!(cut_off, "expected a body of 7 bytes, found 6: the capture is cut off");
        for length in ["-1", "+5", "5, 5", "five", "", "99999999999999999999999"] {
            let refused = captured(&format!("Content-Length: {length}\n")).unwrap_err();
            assert_eq!(refused, "expected one number in `Content-Length`", "{length}");
        }
        let twice = captured("Content-Length: 5\nContent-Length: 5\n").unwrap_err();
        assert_eq!(twice, "expected one number in `Content-Length`");
        assert!(captured("Transfer-Encoding: chunked\n").unwrap_err().contains("chunk"));
    }

    #[test]
    fn what_is_no_request_says_so() {
        for captured in ["", "POST / HTTP/1.1\nHost: h\n", "POST / HTTP/1.1"] {
            assert!(body_of(captured).unwrap_err().contains("empty line"), "{captured}");
        }
        for captured in ["{\"id\":1}", "POST / HTTP/2\n\n", "POST /\n\n", "GET  / HTTP/1.1\n\n"] {
            assert!(body_of(captured).unwrap_err().contains("HTTP/1.1"), "{captured}");
        }
    }
}
