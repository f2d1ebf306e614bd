//! `https`: a host has to show that it is the one that was asked.

use serde_json::json;

use super::fakes::{Fakes, PUBLIC, ROOT};
use super::{fetch, run_with};
use crate::world::code;

const RIGHTS: &str = "net:get:example.com\nnet:get:other.test\nnet:get:a.example.com";

#[test]
fn a_host_that_shows_who_it_is_is_read() {
    let fakes = Fakes::new();
    fakes.says("example.com/", "content-type: text/plain", "sealed");
    let run = run_with(fakes.http().trust(ROOT).unwrap(), RIGHTS);
    let reply = fetch(&run, &json!({ "url": "https://example.com/" }));
    assert_eq!(reply.value.as_ref().unwrap().to_value()["text"], "sealed", "{}", reply.text());
}

#[test]
fn a_host_that_shows_another_name_hears_nothing() {
    let fakes = Fakes::new();
    fakes.says("other.test/", "content-type: text/plain", "sealed");
    let run = run_with(fakes.http().trust(ROOT).unwrap(), RIGHTS);
    let reply = fetch(&run, &json!({ "url": "https://other.test/" }));
    assert_eq!(code(&reply), "tls", "{}", reply.text());
    assert_eq!(fakes.log(|log| log.heads.len()), 0);
}

#[test]
fn a_host_whose_certificate_nobody_here_knows_hears_nothing() {
    let fakes = Fakes::new();
    fakes.says("example.com/", "content-type: text/plain", "sealed");
    let reply = fetch(&run_with(fakes.http(), RIGHTS), &json!({ "url": "https://example.com/" }));
    assert_eq!(code(&reply), "tls", "{}", reply.text());
    assert_eq!(fakes.log(|log| log.heads.len()), 0);
    assert!(fakes.http().trust(b"no certificate").is_err());
}

#[test]
fn nobody_is_sent_from_https_to_http() {
    let fakes = Fakes::new();
    fakes.redirects("example.com/", "http://example.com/plain");
    fakes.says("example.com/plain", "content-type: text/plain", "plain");
    let rights = format!("{RIGHTS}\nnet:get:example.com:80");
    let run = run_with(fakes.http().trust(ROOT).unwrap(), &rights);
    let reply = fetch(&run, &json!({ "url": "https://example.com/" }));
    assert_eq!(code(&reply), "redirect", "{}", reply.text());
    assert_eq!(
        fakes.log(|log| log.dialled.clone()),
        [format!("{}:443", PUBLIC[0]).parse().unwrap()]
    );
}
