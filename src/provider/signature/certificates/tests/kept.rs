//! What is kept, for how long, and who waits for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::*;

#[tokio::test]
async fn a_certificate_is_fetched_once_and_again_after_a_day() {
    let authority = Authority::new();
    let (pem, _) = authority.issue(&["messageverificationcerts.paypal.com"], 2020..2040);
    let server = Server::start(&authority, ok(&pem)).await;
    let clock = Clock::manual(NOW);
    let certificates = server.certificates(&authority, clock.clone());
    for _ in 0..3 {
        assert!(certificates.get(&PAYPAL, URL, NOW).await.is_ok());
    }
    assert_eq!(server.served(), 1);
    clock.advance(FRESH_FOR.saturating_sub(Duration::from_millis(1)));
    assert!(certificates.clone().get(&PAYPAL, URL, NOW).await.is_ok());
    assert_eq!(server.served(), 1);
    clock.advance(Duration::from_millis(1));
    assert!(certificates.get(&PAYPAL, URL, NOW).await.is_ok());
    asked(&server, 2).await;
}

/// A host that does not answer costs no event: what is there is used while it is in force.
#[tokio::test]
async fn an_old_certificate_is_used_while_it_is_fetched_again() {
    let authority = Authority::new();
    let (pem, _) = authority.issue(&["a.paypal.com"], 2020..2040);
    let server = Server::start(&authority, ok(&pem)).await;
    let clock = Clock::manual(NOW);
    let certificates = server.certificates(&authority, clock.clone());
    assert!(certificates.get(&PAYPAL, URL, NOW).await.is_ok());
    server.let_through.forget_permits(Semaphore::MAX_PERMITS);
    clock.advance(FRESH_FOR * 30);
    for _ in 0..10 {
        assert!(certificates.get(&PAYPAL, URL, NOW).await.is_ok());
    }
    // One asks again, and after a while another one.
    asked(&server, 2).await;
    clock.advance(AGAIN_AFTER);
    assert!(certificates.get(&PAYPAL, URL, NOW).await.is_ok());
    asked(&server, 3).await;
    // Once it has ended itself, it is not used whatever its host does.
    server.let_through.add_permits(10);
    let end = Timestamp(rcgen::date_time_ymd(2040, 1, 2).unix_timestamp().unsigned_abs() * 1000);
    let ended = certificates.get(&PAYPAL, URL, end).await.map(|_| ());
    assert_eq!(ended, Err(CertificateError::Untrusted("it has expired")));
}

/// A host that is being moved says for a while that it has no such file.
#[tokio::test]
async fn a_certificate_in_force_is_given_up_when_its_host_has_denied_it_twice() {
    let authority = Authority::new();
    let (pem, _) = authority.issue(&["a.paypal.com"], 2020..2040);
    let server = Server::start(&authority, ok(&pem)).await;
    let certificates = server.certificates(&authority, Clock::manual(NOW));
    let url = std::str::from_utf8(URL).unwrap();
    let kept = || certificates.0.cache.get(url);
    let refreshed = async |answer: String| {
        server.now_answers(answer);
        certificates.refreshed(&PAYPAL, url, NOW).await;
    };
    assert!(certificates.get(&PAYPAL, URL, NOW).await.is_ok());
    refreshed(not_found()).await;
    assert!(kept().is_some());
    // What it says then counts, and begins anew.
    refreshed(ok(&pem)).await;
    for denied in [ok("<html>"), not_found()] {
        assert!(certificates.get(&PAYPAL, URL, NOW).await.is_ok());
        refreshed(denied).await;
    }
    assert!(kept().is_none());
    let gone = certificates.get(&PAYPAL, URL, NOW).await.map(|_| ());
    assert_eq!(gone, Err(CertificateError::Status(404)));
    assert_eq!(server.served(), 6);
}

/// Before it ends there is time to find the next one.
#[tokio::test]
async fn a_certificate_is_fetched_again_an_hour_before_it_ends() {
    let authority = Authority::new();
    let (pem, _) = authority.issue(&["a.paypal.com"], 2020..2031);
    let server = Server::start(&authority, ok(&pem)).await;
    let clock = Clock::manual(NOW);
    let certificates = server.certificates(&authority, clock.clone());
    let end = rcgen::date_time_ymd(2031, 1, 1).unix_timestamp().unsigned_abs() * 1000;
    let before = Timestamp(end - 90 * 60 * 1000);
    assert!(certificates.get(&PAYPAL, URL, before).await.is_ok());
    clock.advance(Duration::from_millis(30 * 60 * 1000 - 1));
    assert!(certificates.get(&PAYPAL, URL, before).await.is_ok());
    assert_eq!(server.served(), 1);
    clock.advance(Duration::from_millis(1));
    assert!(certificates.get(&PAYPAL, URL, before).await.is_ok());
    asked(&server, 2).await;
}

/// URLs that somebody makes up wait for each other, and never before one that is known.
#[tokio::test]
async fn made_up_urls_take_no_room_of_those_by_which_messages_were_signed() {
    let authority = Authority::new();
    let (pem, _) = authority.issue(&["sns.amazonaws.com"], 2020..2040);
    let silent = Server::start(&authority, ok(&pem)).await;
    silent.let_through.forget_permits(Semaphore::MAX_PERMITS);
    let genuine = Server::start(&authority, ok(&pem)).await;
    let anchor = webpki::anchor_from_trusted_cert(&authority.der).unwrap().to_owned();
    let fetcher = Fetcher::trusting(vec![anchor], |builder| {
        builder.resolve(HOST, silent.address).resolve(SNS_HOST, genuine.address)
    });
    let certificates =
        Certificates(Arc::new(CertificatesInner::new(Clock::manual(NOW), fetcher.unwrap())));
    let made_up = |number: usize| {
        let certificates = certificates.clone();
        tokio::spawn(async move {
            let url = format!("https://{HOST}/v1/notifications/certs/CERT-{number}");
            certificates.get(&PAYPAL, url.as_bytes(), NOW).await.map(|_| ())
        })
    };
    let all: Vec<_> = (0..200).map(made_up).collect();
    asked(&silent, 4).await;
    certificates.confirm(SNS_URL);
    assert!(certificates.get(&SNS, SNS_URL, NOW).await.is_ok());
    // They do not pile up: most are told at once to come again.
    let told: Vec<_> = futures_util::future::join_all(all).await;
    let too_many = Err(CertificateError::Unreachable("too many others are asked for"));
    let refused = told.into_iter().filter(|told| *told.as_ref().unwrap() == too_many).count();
    assert!(refused >= 150, "{refused}");
}

#[tokio::test]
async fn copies_at_the_same_moment_share_one_fetch() {
    let authority = Authority::new();
    let (pem, _) = authority.issue(&["a.paypal.com"], 2020..2040);
    let server = Server::start(&authority, ok(&pem)).await;
    server.let_through.forget_permits(Semaphore::MAX_PERMITS);
    let certificates = server.certificates(&authority, Clock::manual(NOW));
    let gets = (0..20).map(|_| certificates.get(&PAYPAL, URL, NOW));
    let all = futures_util::future::join_all(gets);
    let release = async {
        asked(&server, 1).await;
        server.let_through.add_permits(20);
    };
    let (all, ()) = tokio::join!(all, release);
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(server.served(), 1);
}

#[tokio::test]
async fn a_fetch_that_is_dropped_leaves_nobody_waiting() {
    let authority = Authority::new();
    let (pem, _) = authority.issue(&["a.paypal.com"], 2020..2040);
    let server = Server::start(&authority, ok(&pem)).await;
    server.let_through.forget_permits(Semaphore::MAX_PERMITS);
    let certificates = server.certificates(&authority, Clock::manual(NOW));
    let dropped = {
        let certificates = certificates.clone();
        tokio::spawn(async move { certificates.get(&PAYPAL, URL, NOW).await.map(|_| ()) })
    };
    asked(&server, 1).await;
    let waiting = {
        let certificates = certificates.clone();
        tokio::spawn(async move { certificates.get(&PAYPAL, URL, NOW).await.map(|_| ()) })
    };
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    server.let_through.add_permits(2);
    assert_eq!(waiting.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn a_failure_is_not_kept() {
    let authority = Authority::new();
    let server = Server::start(&authority, ok("<html>")).await;
    let certificates = server.certificates(&authority, Clock::manual(NOW));
    for expected in 1..=3 {
        assert!(certificates.get(&PAYPAL, URL, NOW).await.is_err());
        assert_eq!(server.served(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_answer_is_not_waited_for() {
    let authority = Authority::new();
    let server = Server::start(&authority, ok("")).await;
    server.let_through.forget_permits(Semaphore::MAX_PERMITS);
    let certificates = server.certificates(&authority, Clock::manual(NOW));
    let started = tokio::time::Instant::now();
    let result = certificates.get(&PAYPAL, URL, NOW).await.map(|_| ());
    assert_eq!(result, Err(CertificateError::Unreachable("it took too long")));
    assert!(started.elapsed() <= DEADLINE + Duration::from_millis(100));
}
