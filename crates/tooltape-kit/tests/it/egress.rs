//! The way out of a box: to whom the call may ask, and to nobody else.
#![allow(clippy::print_stdout, reason = "counts are for whoever reads the report")]

mod audit;
mod broker;

use std::collections::BTreeMap;
use std::net::TcpListener;

use serde_json::{Value, json};
use tooltape_kit::{Http, Sandbox};

use crate::net::cases;
use crate::net::fakes::{Fakes, PUBLIC, ROOT};
use crate::sandbox::lab::{Lab, sandbox, value};
use crate::users::as_each;

/// Sends each line of a file to the proxy, as a connection of its own, and prints the answers.
const SEND: &str = r#"
    while IFS= read -r line; do
        exec 3<>/dev/tcp/127.0.0.1/3128 || exit 1
        printf '%b' "$line" > /tmp/request
        cat /tmp/request >&3
        cat <&3
        exec 3<&-
        printf '\n--\n'
    done < requests"#;

pub(crate) fn boxed(http: Http, rights: &str) -> Sandbox {
    sandbox().network(http.allow(rights.parse().unwrap()))
}

/// What processes get that send these bytes to the proxy.
fn send(lab: &Lab, requests: &[String]) -> (Vec<String>, Value) {
    let line = |request: &String| {
        let escaped = request.replace('\\', "\\\\").replace('\r', "\\r").replace('\n', "\\n");
        escaped.replace('\0', "\\0").replace('\t', "\\t") + "\n"
    };
    std::fs::write(lab.at("requests"), requests.iter().map(line).collect::<String>()).unwrap();
    let ran = lab.shell(SEND);
    let said = ran["stdout"].as_str().unwrap();
    let answers: Vec<String> = said.split("\n--\n").map(str::to_owned).collect();
    assert_eq!(answers.len(), requests.len() + 1, "{ran}");
    (answers[..requests.len()].to_vec(), ran["connections"].clone())
}

fn get(url: &str) -> String {
    format!("GET {url} HTTP/1.1\r\nHost: ignored\r\nAccept: */*\r\n\r\n")
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

#[test]
fn a_process_gets_what_its_call_may_ask_for() {
    let fakes = Fakes::new();
    fakes.says("example.com/", "content-type: text/plain", "hello");
    let lab = Lab::with(boxed(fakes.http(), "net:get:example.com:80"));
    let requests = ["http://example.com/", "http://other.test/"].map(get);
    let (answers, connections) = send(&lab, &requests);
    assert!(answers[0].starts_with("HTTP/1.1 200") && answers[0].ends_with("hello"), "{answers:?}");
    assert!(answers[1].starts_with("HTTP/1.1 403") && answers[1].contains("withheld"));
    let verdicts = connections.as_array().unwrap().iter();
    let verdicts = verdicts.map(|it| json!([it["host"], it["port"], it["verdict"]]));
    let expected = [json!(["example.com", 80, "allowed"]), json!(["other.test", 80, "withheld"])];
    assert_eq!(verdicts.collect::<Vec<_>>(), expected);
    assert!(connections[0]["bytes"].as_u64().unwrap() > 0);
    let head = fakes.log(|log| log.heads.clone()).remove(0);
    assert!(head.contains("host: example.com\r\n") && !head.contains("ignored"), "{head}");
}

#[test]
fn the_usual_programs_find_the_way() {
    let fakes = Fakes::new();
    fakes.says("example.com/", "content-type: text/plain", "hello");
    let lab = Lab::with(boxed(fakes.http(), "net:get:example.com:80"));
    let ran = lab.shell(
        "curl -s http://example.com/ && curl -s http://other.test/ -o /dev/null -w ' %{http_code}'",
    );
    assert_eq!(ran["stdout"], "hello 403", "{ran}");
}

#[test]
fn who_may_ask_nobody_has_no_network() {
    let fakes = Fakes::new();
    // A listener of this machine, which a process of another network does not see.
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let probe = format!(
        "env | grep -i proxy; (exec 3<>/dev/tcp/127.0.0.1/3128) 2>/dev/null && echo proxy; \
         (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo host; \
         grep -c : /proc/net/dev; echo done"
    );
    for (sandbox, expected) in [
        (sandbox(), "1\ndone\n"),
        (boxed(fakes.http(), ""), "1\ndone\n"),
        (boxed(fakes.http(), "fs:read:."), "1\ndone\n"),
    ] {
        assert_eq!(Lab::with(sandbox).shell(&probe)["stdout"], expected);
    }
    // With a way out there is still no other.
    let ran = Lab::with(boxed(fakes.http(), "net:get:example.com:80")).shell(&probe);
    let said = ran["stdout"].as_str().unwrap();
    assert!(said.contains("proxy\n") && !said.contains("host\n"), "{said}");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody came here");
}

#[test]
fn no_spelling_and_no_answer_of_a_resolver_leads_out_of_the_box_to_the_inside() {
    as_each(
        "egress::no_spelling_and_no_answer_of_a_resolver_leads_out_of_the_box_to_the_inside",
        |_| {
            let fakes = Fakes::new();
            let rights = "net:any:example.com:80\nnet:any:127.0.0.1:80\nnet:any:[::1]:80\n\
                      net:any:localhost:80\nnet:any:169.254.169.254:80\nnet:any:10.0.0.1:80";
            let lab = Lab::with(boxed(fakes.http(), rights));
            let (mut requests, mut families) = (Vec::new(), BTreeMap::new());
            for case in cases::all() {
                let is_direct = case.redirects.is_empty() && case.names.is_empty();
                let is_clear =
                    !case.url.contains(['\r', '\n', ' ']) && case.url.starts_with("http:");
                if is_direct && is_clear {
                    *families.entry(case.family).or_insert(0) += 2;
                    let host = case.url.trim_start_matches("http://").trim_end_matches('/');
                    let host =
                        if host.contains(":8080") { host.into() } else { format!("{host}:80") };
                    requests.push(get(&case.url));
                    requests.push(format!("CONNECT {host} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"));
                }
            }
            for answer in
                ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "0.0.0.0"]
            {
                fakes.name("example.com", &[&[answer]]);
                let requests =
                    [get("http://example.com/"), "CONNECT example.com:80 HTTP/1.1\r\n\r\n".into()];
                let (answers, _) = send(&lab, &requests);
                assert!(answers.iter().all(|answer| status(answer) == "403"), "{answers:?}");
                *families.entry("NET-04").or_insert(0) += 2;
            }
            let mut let_through = Vec::new();
            for requests in requests.chunks(50) {
                let (answers, _) = send(&lab, requests);
                let pairs = requests.iter().zip(answers);
                let_through.extend(
                    pairs.filter(|(_, answer)| status(answer) != "403").map(|it| it.0.clone()),
                );
            }
            println!("egress: {families:?} cases, {} let through", let_through.len());
            assert!(fakes.is_safe() && let_through.is_empty(), "{let_through:#?}");
            assert!(fakes.log(|log| log.dialled.is_empty()));
        },
    );
}

#[test]
fn a_tunnel_needs_the_right_to_ask_anything() {
    let fakes = Fakes::new();
    fakes.says("example.com/", "content-type: text/plain", "hello");
    let tunnel =
        "CONNECT example.com:80 HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nhost: example.com\r\n\r\n";
    for (rights, expected) in [
        ("net:get:example.com:80", "403"),
        ("net:any:example.com:80", "200"),
        ("net:any:example.com", "403"),
    ] {
        let lab = Lab::with(boxed(fakes.http(), rights));
        let (answers, _) = send(&lab, &[tunnel.to_owned()]);
        assert_eq!(status(&answers[0]), expected, "{rights}: {answers:?}");
        assert_eq!(answers[0].ends_with("hello"), expected == "200", "{rights}");
    }
    // Nobody opens a tunnel up: what is in it is between the process and its host.
    let lab = Lab::with(boxed(fakes.http(), "net:any:example.com"));
    std::fs::write(lab.at("root.der"), ROOT).unwrap();
    let ran = lab.shell(
        "openssl x509 -inform der -in root.der -out root.pem && \
         curl -s --cacert root.pem https://example.com/",
    );
    assert_eq!(ran["stdout"], "hello", "{ran}");
    assert_eq!(ran["connections"][0]["port"], 443);
}

#[test]
fn only_one_request_passes_and_only_as_it_was_judged() {
    let fakes = Fakes::new();
    fakes.says("example.com/", "content-type: text/plain", "hello");
    let rights = "net:get:example.com:80\nnet:post:example.com:80";
    let lab = Lab::with(boxed(fakes.http(), rights));
    let head = "POST http://example.com/ HTTP/1.1\r\nhost: a\r\n";
    let second = "DELETE http://example.com/ HTTP/1.1\r\n\r\n";
    for (request, expected) in [
        (format!("{head}content-length: 2\r\n\r\nab"), "200"),
        (format!("{head}content-length: 2\r\n\r\nab{second}"), "403"),
        (format!("{head}content-length: 2\r\ncontent-length: 3\r\n\r\nabc"), "403"),
        (format!("{head}content-length: +2\r\n\r\nab"), "403"),
        (format!("{head}transfer-encoding: chunked\r\n\r\n0\r\n\r\n{second}"), "403"),
        (format!("{head}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"), "403"),
        // Whether it has come already or not, it is not passed on.
        (get("http://example.com/") + second, "any"),
        ("DELETE http://example.com/ HTTP/1.1\r\n\r\n".into(), "403"),
        ("TRACE http://example.com/ HTTP/1.1\r\n\r\n".into(), "403"),
        ("GET / HTTP/1.1\r\nhost: example.com\r\n\r\n".into(), "403"),
        ("GET https://example.com/ HTTP/1.1\r\n\r\n".into(), "403"),
        ("GET ftp://example.com/ HTTP/1.1\r\n\r\n".into(), "403"),
        ("GET file:///etc/passwd HTTP/1.1\r\n\r\n".into(), "403"),
        ("CONNECT example.com HTTP/1.1\r\n\r\n".into(), "403"),
        ("CONNECT example.com:80/ HTTP/1.1\r\n\r\n".into(), "403"),
        ("CONNECT a@example.com:80 HTTP/1.1\r\n\r\n".into(), "403"),
        (format!("GET http://example.com/ HTTP/1.1\r\na: {}\r\n\r\n", "b".repeat(20_000)), "403"),
        (format!("{}{}\r\n", head, "a: b\r\n".repeat(100)), "403"),
    ] {
        let (answers, _) = send(&lab, std::slice::from_ref(&request));
        let shown = &request[..request.len().min(200)];
        assert!([status(&answers[0]), "any"].contains(&expected), "{shown:?}: {answers:?}");
    }
    let heads = fakes.log(|log| log.heads.clone());
    let is_judged = |head: &String| head.starts_with("POST / ") || head.starts_with("GET / ");
    assert!(heads.len() <= 2 && heads.iter().all(is_judged), "{heads:?}");
    assert!(fakes.log(|log| log.dialled.iter().all(|it| it.ip().to_string() == PUBLIC[0])));
}

#[test]
fn a_right_that_was_taken_back_ends_at_the_next_connection() {
    let fakes = Fakes::new();
    fakes.says("example.com/", "content-type: text/plain", "hello");
    let lab = Lab::with(boxed(fakes.http(), "net:get:example.com:80"));
    let reply = lab.call("shell", &json!({ "command": "curl -s http://example.com/" }));
    assert_eq!(value(&reply)["stdout"], "hello");
    let narrowed = Lab::with(boxed(fakes.http(), "net:get:example.com:80"));
    let narrowed = narrowed.narrowed("process:shell:sandbox\nfs:read:.\nfs:write:.");
    let ran = narrowed.shell("env | grep -ci proxy; true");
    assert_eq!(ran["stdout"], "0\n", "the run may not ask, whatever its handle could");
}

#[test]
fn what_only_seems_to_be_done_is_told_nobody() {
    let fakes = Fakes::new();
    fakes.says("example.com/", "content-type: text/plain", "hello");
    let lab = Lab::with(boxed(fakes.http(), "net:any:example.com:80"));
    let command = "env | grep -ci proxy; curl -s -d told http://example.com/; true";
    let reply = lab.call("shell", &json!({ "command": command, "preview": true }));
    assert_eq!(value(&reply)["stdout"], "0\n", "{}", reply.text());
    assert!(fakes.log(|log| log.dialled.is_empty()));
}
