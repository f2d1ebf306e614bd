//! Redirects: each is judged like the first address, and none goes on for ever (NET-05).

use serde_json::json;
use tooltape_kit::{Ask, HttpError, limits::REDIRECTS_MAX};

use super::fakes::Fakes;
use super::{fetch, run_with};
use crate::world::code;

const RIGHTS: &str = "net:get:example.com:80\nnet:get:*.example.com:80\nnet:get:example.com:8080";

fn get(fakes: &Fakes, ask: &Ask) -> Result<tooltape_kit::Fetched, HttpError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(fakes.http().allow(RIGHTS.parse().unwrap()).get(ask))
}

// CVE-2018-1000007 and CVE-2022-27776: told another host, and another port of the same one.
#[test]
fn credentials_stay_with_the_host_that_they_are_for() {
    let fakes = Fakes::new();
    fakes.redirects("example.com/", "/same").redirects("example.com/same", "http://a.example.com/");
    fakes.redirects("a.example.com/", "http://example.com:8080/");
    fakes.redirects("example.com:8080/", "http://example.com/back");
    fakes.says("example.com/back", "content-type: text/plain", "done");
    let headers = vec![("authorization".to_owned(), "Bearer hunter2".to_owned())];
    let url = "http://example.com/".parse().unwrap();
    let fetched = get(&fakes, &Ask { url, headers, bytes_max: 100 }).unwrap();
    assert_eq!((fetched.bytes.as_slice(), fetched.redirects.len()), (&b"done"[..], 4));
    let told = fakes.log(|log| {
        let told = |head: &String| head.contains("hunter2");
        log.heads.iter().map(told).collect::<Vec<_>>()
    });
    assert_eq!(told, [true, true, false, false, false], "and nobody who was left is told again");
}

#[test]
fn a_loop_ends_where_it_begins_again() {
    let fakes = Fakes::new();
    fakes.redirects("example.com/", "/b").redirects("example.com/b", "/");
    let reply = fetch(&run_with(fakes.http(), RIGHTS), &json!({ "url": "http://example.com/" }));
    assert_eq!(code(&reply), "redirect", "{}", reply.text());
    assert_eq!(fakes.log(|log| log.heads.len()), 2);
}

#[test]
fn a_chain_ends_at_its_limit() {
    let fakes = Fakes::new();
    for hop in 0..50 {
        fakes.redirects(&format!("example.com/{hop}"), &format!("/{}", hop + 1));
    }
    let run = run_with(fakes.http(), RIGHTS);
    let reply = fetch(&run, &json!({ "url": "http://example.com/0" }));
    assert_eq!(code(&reply), "redirect", "{}", reply.text());
    assert_eq!(fakes.log(|log| log.heads.len()), REDIRECTS_MAX + 1);
}

#[test]
fn a_place_in_a_page_is_told_nobody() {
    let fakes = Fakes::new();
    fakes.says("example.com/a?b", "content-type: text/plain", "done");
    let run = run_with(fakes.http(), RIGHTS);
    let reply = fetch(&run, &json!({ "url": "http://example.com/a?b#secret" }));
    assert!(!reply.is_error, "{}", reply.text());
    assert!(fakes.log(|log| log.heads.iter().all(|head| !head.contains("secret"))));
}
