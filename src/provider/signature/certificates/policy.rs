//! The certificates that a sender's request may name, as data.

/// Where a sender keeps its certificates, and whom they must name.
#[derive(Debug)]
pub(in super::super) struct CertificatePolicy {
    /// The sender, for messages.
    pub(super) owner: &'static str,
    hosts: &'static [HostPattern],
    path: FilePattern,
    /// The domain of the names in the certificate, whose chain must then lead to a trusted root.
    /// None: it is enough that the certificate comes from one of the hosts. It must be in force
    /// either way.
    pub(super) names: Option<&'static str>,
}

/// A host, of which one label may vary.
#[derive(Debug)]
struct HostPattern {
    before: &'static str,
    /// Whether a region stands between the two.
    region: bool,
    after: &'static str,
}

/// The path of a file. One name of letters, digits and `-` stands between the two texts.
#[derive(Debug)]
struct FilePattern {
    before: &'static str,
    after: &'static str,
}

/// PayPal's own libraries demand a certificate for a name of PayPal's. They used to bring the
/// intermediate certificate along, because PayPal served its own one without it. That intermediate
/// one is out of use, so a missing chain is accepted here.
pub(in super::super) const PAYPAL: CertificatePolicy = CertificatePolicy {
    owner: "PayPal",
    hosts: &[
        host("api.paypal.com"),
        host("api-m.paypal.com"),
        host("api.sandbox.paypal.com"),
        host("api-m.sandbox.paypal.com"),
    ],
    path: FilePattern { before: "/v1/notifications/certs/", after: "" },
    names: Some("paypal.com"),
};

/// Amazon serves the certificate without its chain, and asks only that it comes from these hosts.
pub(in super::super) const SNS: CertificatePolicy = CertificatePolicy {
    owner: "SNS",
    hosts: &[
        HostPattern { before: "sns.", region: true, after: ".amazonaws.com" },
        HostPattern { before: "sns.", region: true, after: ".amazonaws.com.cn" },
    ],
    path: FilePattern { before: "/SimpleNotificationService-", after: ".pem" },
    names: None,
};

const URL_BYTES_MAX: usize = 256;
/// The length of a region: `us-east-1` to `ap-southeast-2`, with room for longer ones.
const REGION_BYTES: std::ops::RangeInclusive<usize> = 3..=24;

const fn host(name: &'static str) -> HostPattern {
    HostPattern { before: name, region: false, after: "" }
}

impl CertificatePolicy {
    /// The URL, if the policy allows it. It is compared byte for byte, so there is no second
    /// reading in which it could mean another host: no user, no port, no trailing dot, no escape,
    /// no query, no other alphabet.
    pub(super) fn permit<'a>(&self, url: &'a [u8]) -> Option<&'a str> {
        let url = str::from_utf8(url).ok().filter(|url| url.len() <= URL_BYTES_MAX)?;
        let rest = url.strip_prefix("https://")?;
        let (host, path) = rest.split_at(rest.find('/')?);
        let is_ours = self.hosts.iter().any(|pattern| pattern.is(host)) && self.path.is(path);
        is_ours.then_some(url)
    }
}

impl HostPattern {
    fn is(&self, host: &str) -> bool {
        let middle = host.strip_prefix(self.before).and_then(|h| h.strip_suffix(self.after));
        middle.is_some_and(|middle| if self.region { is_region(middle) } else { middle.is_empty() })
    }
}

impl FilePattern {
    fn is(&self, path: &str) -> bool {
        let name = path.strip_prefix(self.before).and_then(|p| p.strip_suffix(self.after));
        name.is_some_and(|name| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        })
    }
}

/// Whether a label is a region such as `us-east-1` or `us-gov-west-1`: two letters, words, a digit.
/// It must not be `s3-us-west-2`: under that name anybody can have a bucket, and serve a
/// certificate.
fn is_region(label: &str) -> bool {
    let mut parts = label.split('-');
    let first = parts.next();
    let last = parts.next_back();
    let letters = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase());
    let mut words = parts.peekable();
    REGION_BYTES.contains(&label.len())
        && first.is_some_and(|first| first.len() == 2 && letters(first))
        && words.peek().is_some()
        && words.all(letters)
        && last.is_some_and(|last| last.len() == 1 && last.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_senders_own_urls_are_permitted() {
        for url in [
            "https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-a5cafa77",
            "https://api-m.sandbox.paypal.com/v1/notifications/certs/CERT-1",
        ] {
            assert_eq!(PAYPAL.permit(url.as_bytes()), Some(url));
        }
        for url in [
            "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0123abcdef.pem",
            "https://sns.us-gov-west-1.amazonaws.com/SimpleNotificationService-0.pem",
            "https://sns.cn-north-1.amazonaws.com.cn/SimpleNotificationService-0.pem",
        ] {
            assert_eq!(SNS.permit(url.as_bytes()), Some(url));
        }
    }

    #[test]
    fn no_spelling_steers_to_another_host() {
        for url in [
            "http://sns.us-east-1.amazonaws.com/SimpleNotificationService-0.pem",
            "https://sns.us-east-1.amazonaws.com.evil.com/SimpleNotificationService-0.pem",
            "https://sns.us-east-1.amazonaws.com:443/SimpleNotificationService-0.pem",
            "https://sns.us-east-1.amazonaws.com./SimpleNotificationService-0.pem",
            "https://sns.us-east-1.amazonaws.com@evil.com/SimpleNotificationService-0.pem",
            "https://evil.com@sns.us-east-1.amazonaws.com/SimpleNotificationService-0.pem",
            "https://evil.com#sns.us-east-1.amazonaws.com/SimpleNotificationService-0.pem",
            "https://evil.com\\sns.us-east-1.amazonaws.com/SimpleNotificationService-0.pem",
            "https://evil.com/sns.us-east-1.amazonaws.com/SimpleNotificationService-0.pem",
            "https://sns.evil.com/.amazonaws.com/SimpleNotificationService-0.pem",
            "https://sns.a.b.amazonaws.com/SimpleNotificationService-0.pem",
            "https://sns.s3-us-west-2.amazonaws.com/SimpleNotificationService-0.pem",
            "https://sns.us-east-10.amazonaws.com/SimpleNotificationService-0.pem",
            "https://sns.us-1.amazonaws.com/SimpleNotificationService-0.pem",
            "https://sns.-us-east-1.amazonaws.com/SimpleNotificationService-0.pem",
            "https://sns..amazonaws.com/SimpleNotificationService-0.pem",
            "https://sns.amazonaws.com/SimpleNotificationService-0.pem",
            "https://SNS.us-east-1.amazonaws.com/SimpleNotificationService-0.pem",
            "HTTPS://sns.us-east-1.amazonaws.com/SimpleNotificationService-0.pem",
            "https://sns.us%2east-1.amazonaws.com/SimpleNotificationService-0.pem",
            "https://sns%2eus-east-1.amazonaws.com/SimpleNotificationService-0.pem",
            "https://sns.us-\u{0435}ast-1.amazonaws.com/SimpleNotificationService-0.pem",
            "https://sns.us-east-1.\u{ff41}mazonaws.com/SimpleNotificationService-0.pem",
            "https://sns.us-east-1.amazonaws\u{3002}com/SimpleNotificationService-0.pem",
            "https://sns.xn--us-east-1-x2b.amazonaws.com.xn--cn/SimpleNotificationService-0.pem",
            "https://169.254.169.254/SimpleNotificationService-0.pem",
            "https://[::1]/SimpleNotificationService-0.pem",
            "https://sns.us-east-1.amazonaws.com/../SimpleNotificationService-0.pem",
            "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-../x.pem",
            "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0.pem?x=.pem",
            "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0.pem#.pem",
            "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-%2e%2e.pem",
            "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-.pem",
            "https://sns.us-east-1.amazonaws.com/mybucket/SimpleNotificationService-0.pem",
            "https://sns.us-east-1.amazonaws.com",
            "https://s3.amazonaws.com/SimpleNotificationService-0.pem",
            " https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0.pem",
            "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0.pem\n",
            "https:///sns.us-east-1.amazonaws.com/SimpleNotificationService-0.pem",
            "https:sns.us-east-1.amazonaws.com/SimpleNotificationService-0.pem",
            "https://sns.us-east-1\t.amazonaws.com/SimpleNotificationService-0.pem",
            "",
        ] {
            assert_eq!(SNS.permit(url.as_bytes()), None, "{url}");
        }
        assert_eq!(PAYPAL.permit(b"https://www.paypal.com/v1/notifications/certs/C"), None);
        assert_eq!(
            PAYPAL.permit(b"https://api.paypal.com.evil.com/v1/notifications/certs/C"),
            None
        );
        assert_eq!(PAYPAL.permit(b"https://api.paypal.com/v1/notifications/certs/C\xff"), None);
    }
}
