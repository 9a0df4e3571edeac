//! Which certificates are believed, and which hosts.

use super::*;

#[tokio::test]
async fn only_a_certificate_of_paypals_in_force_is_trusted() {
    let authority = Authority::new();
    let stranger = Authority::named("A stranger");
    let untrusted = |why| Err(CertificateError::Untrusted(why));
    let theirs = "it is not for the sender's name";
    let both = ["a.paypal.com", "evil.test"];
    for (pem, expected) in [
        (authority.issue(&["paypal.com"], 2020..2040).0, Ok(())),
        (authority.issue(&["evil.test"], 2020..2040).0, untrusted(theirs)),
        (authority.issue(&["evilpaypal.com"], 2020..2040).0, untrusted(theirs)),
        (authority.issue(&["a.paypal.com.evil.test"], 2020..2040).0, untrusted(theirs)),
        (authority.issue(&both, 2020..2040).0, untrusted(theirs)),
        (authority.issue(&[], 2020..2040).0, untrusted(theirs)),
        (authority.issue(&["a.paypal.com"], 2015..2017).0, untrusted("it has expired")),
        (authority.issue(&["a.paypal.com"], 2035..2040).0, untrusted("it is not valid yet")),
        // Who signed it is not to be known.
        (stranger.issue(&["a.paypal.com"], 2020..2040).0, Ok(())),
        (stranger.issue(&["a.paypal.com"], 2015..2017).0, untrusted("it has expired")),
        (stranger.chain(&["a.paypal.com"]), untrusted("nobody we trust has signed it")),
        (authority.chain(&["a.paypal.com"]), Ok(())),
    ] {
        assert_eq!(outcome(&authority, ok(&pem)).await, expected);
    }
}

#[tokio::test]
async fn what_is_no_certificate_is_refused() {
    let authority = Authority::new();
    let not = |what| Err(CertificateError::NotACertificate(what));
    let (_, key) = authority.issue(&[], 2020..2040);
    for (answer, expected) in [
        (ok(""), not("no certificate")),
        (ok("<html>"), not("no certificate")),
        (ok(&key), not("no certificate")),
        (ok("-----BEGIN CERTIFICATE-----\n%%\n-----END CERTIFICATE-----\n"), not("not PEM")),
        (
            ok("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            not("a certificate that cannot be read"),
        ),
        (ok(&"x".repeat(64 * 1024)), not("larger than a certificate")),
    ] {
        assert_eq!(outcome(&authority, answer).await, expected);
    }
}

#[tokio::test]
async fn a_host_without_the_certificate_and_one_that_is_ill_are_told_apart() {
    let authority = Authority::new();
    let answer = |status: &str, more: &str| {
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n{more}\r\n")
    };
    let result = outcome(&authority, answer("404 Not Found", "")).await.unwrap_err();
    assert_eq!(result, CertificateError::Status(404));
    assert!(!result.may_pass());
    for status in ["500 Oops", "503 Service Unavailable", "429 Too Many Requests"] {
        let result = outcome(&authority, answer(status, "")).await.unwrap_err();
        assert!(result.may_pass(), "{status}");
    }
    let elsewhere = "location: https://evil.test/\r\n";
    let result = outcome(&authority, answer("302 Found", elsewhere)).await;
    assert_eq!(result, Err(CertificateError::Status(302)));
}

#[tokio::test]
async fn a_server_that_cannot_prove_its_name_is_not_believed() {
    let authority = Authority::new();
    let (pem, _) = authority.issue(&["a.paypal.com"], 2020..2040);
    let server = Server::start(&Authority::new(), ok(&pem)).await;
    let certificates = server.certificates(&authority, Clock::manual(NOW));
    let result = certificates.get(&PAYPAL, URL, NOW).await.map(|_| ());
    assert_eq!(result, Err(CertificateError::Unreachable("no connection")));
}

#[tokio::test]
async fn sns_sends_its_certificate_without_a_chain() {
    let authority = Authority::new();
    let (pem, _) = Authority::new().issue(&["sns.amazonaws.com"], 2020..2040);
    let server = Server::start(&authority, ok(&pem)).await;
    let certificates = server.certificates(&authority, Clock::manual(NOW));
    assert!(certificates.get(&SNS, SNS_URL, NOW).await.is_ok());
    // A certificate that is good enough for one sender is not for another.
    let result = certificates.get(&PAYPAL, SNS_URL, NOW).await.map(|_| ());
    assert_eq!(result, Err(CertificateError::Url("PayPal")));
}

#[tokio::test]
async fn a_certificate_of_sns_is_in_force() {
    let authority = Authority::new();
    for (years, why) in [(2015..2017, "it has expired"), (2035..2040, "it is not valid yet")] {
        let (pem, _) = authority.issue(&["sns.amazonaws.com"], years);
        let server = Server::start(&authority, ok(&pem)).await;
        let certificates = server.certificates(&authority, Clock::manual(NOW));
        let result = certificates.get(&SNS, SNS_URL, NOW).await.map(|_| ());
        assert_eq!(result, Err(CertificateError::Untrusted(why)));
    }
}
