//! What a result says of the connections of a process, however that process ends.

use serde_json::Value;
use tooltape_kit::limits::CONNECTIONS_SHOWN_MAX;

use super::boxed;
use crate::net::fakes::{Fakes, Page};
use crate::sandbox::lab::Lab;

/// Sends a request for `$1` to the proxy, and leaves the connection open.
const ASK: &str = "ask() { exec 3<>/dev/tcp/127.0.0.1/3128; printf \"$1\" >&3; }\n";

fn verdicts(ran: &Value) -> Vec<&str> {
    let connections = ran["connections"].as_array().expect("some were asked for").iter();
    connections.map(|it| it["verdict"].as_str().unwrap()).collect()
}

#[test]
fn a_connection_that_is_open_when_its_process_ends_is_listed() {
    let fakes = Fakes::new();
    let begun = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello\n".to_vec();
    fakes.page("example.com/", Page::Stalls(begun));
    let lab = Lab::with(boxed(fakes.http(), "net:any:example.com:80"));
    for request in [
        "GET http://example.com/ HTTP/1.1\\r\\n\\r\\n",
        "CONNECT example.com:80 HTTP/1.1\\r\\n\\r\\n\
         GET / HTTP/1.1\\r\\nhost: example.com\\r\\n\\r\\n",
    ] {
        // It goes as soon as it has heard something, and nobody has hung up.
        let heard = "while read -r line <&3; do [ \"$line\" = hello ] && exit 0; done; exit 1";
        let ran = lab.shell(&format!("{ASK}ask '{request}'; {heard}"));
        assert_eq!(ran["exit_code"], 0, "{ran}");
        assert_eq!(verdicts(&ran), ["allowed"], "{ran}");
        assert_eq!(ran["connections"][0]["host"], "example.com");
        assert!(ran["connections"][0]["bytes"].as_u64().unwrap() > 40, "{ran}");
        assert_eq!(ran.get("connections_left_out"), None, "{ran}");
    }
}

#[test]
fn whatever_is_asked_of_a_host_is_listed_even_if_nobody_waits_for_it() {
    let fakes = Fakes::new();
    fakes.says("example.com/", "content-type: text/plain", "hello");
    let lab = Lab::with(boxed(fakes.http(), "net:get:example.com:80"));
    for _ in 0..20 {
        let before = fakes.log(|log| log.dialled.len());
        let ran = lab.shell(&format!("{ASK}ask 'GET http://example.com/ HTTP/1.1\\r\\n\\r\\n'"));
        let dialled = fakes.log(|log| log.dialled.len()) - before;
        let listed = ran["connections"].as_array().map_or(0, Vec::len);
        assert!(dialled <= listed, "{dialled} dialled: {ran}");
    }
}

#[test]
fn who_asks_in_vain_hides_nothing() {
    let fakes = Fakes::new();
    fakes.says("example.com/", "content-type: text/plain", "hello");
    let lab = Lab::with(boxed(fakes.http(), "net:get:example.com:80"));
    let refused = CONNECTIONS_SHOWN_MAX + 20;
    let vain = format!(
        "for i in $(seq {refused}); do ask 'NONSENSE\\r\\n\\r\\n'; cat <&3 >/dev/null; done\n"
    );
    let real = "curl -s http://example.com/ && curl -s http://example.com/\n";
    for command in [format!("{ASK}{vain}{real}"), format!("{ASK}{real}{vain}")] {
        let ran = lab.shell(&command);
        assert_eq!(ran["stdout"], "hellohello", "{ran}");
        let verdicts = verdicts(&ran);
        let allowed = verdicts.iter().filter(|it| **it == "allowed").count();
        assert_eq!((verdicts.len(), allowed), (CONNECTIONS_SHOWN_MAX, 2), "{verdicts:?}");
        assert_eq!(ran["connections_left_out"], 22, "{ran}");
    }
}
