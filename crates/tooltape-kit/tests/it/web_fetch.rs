//! `web_fetch`: what a model gets of a page.

use expect_test::expect;
use serde_json::{Value, json};
use tooltape::{Proposal, Run};
use tooltape_kit::web_tools;

use crate::net::fakes::{Fakes, Page, response};
use crate::net::{fetch, run_with};
use crate::world::code;

const URL: &str = "http://example.com/";

fn run(fakes: &Fakes) -> Run {
    run_with(fakes.http(), "net:get:example.com:80")
}

fn text(fakes: &Fakes, args: Value) -> String {
    let reply = fetch(&run(fakes), &args);
    let value = reply.value.as_ref().unwrap_or_else(|| panic!("{}", reply.text())).to_value();
    value["text"].as_str().unwrap().to_owned()
}

const PAGE: &str = r#"<!DOCTYPE html><html><head><title>The title</title>
<style>p { color: red }</style><script>document.write("<p>not this")</script></head>
<body><h1>One &amp; two</h1><p>A <b>bold</b> <a href="/there?a=1&amp;b=2">link</a>.
<p>Never closed<ul><li>first<li>second<ol><li>inner</ol></ul>
<pre><code>let x = 1;
  let y;</code></pre><table><tr><th>Name<th>Age<tr><td>Ada<td>36</table>
<blockquote>said</blockquote><img src="a.png" alt="a picture"><hr>
<!-- not <b>this</b> either --><template>nor this</template>
</body></html>"#;

#[test]
fn html_is_markdown() {
    let fakes = Fakes::new();
    fakes.says("example.com/", "content-type: text/html; charset=utf-8", PAGE);
    expect![[r#"
        The title

        # One & two

        A **bold** [link](/there?a=1&b=2). 

        Never closed

        *   first
        *   second
            1.  inner

        ```
        let x = 1;
          let y;
        ```

        | Name | Age |
        | --- | --- |
        | Ada | 36 |

        > said

        ![a picture](a.png)

        * * *"#]]
    .assert_eq(&text(&fakes, json!({ "url": URL })));
    expect![[r#"
        The title
        One & two
        A bold link.
        Never closed
        first
        second
        inner
        let x = 1; let y;
        Name
        Age
        Ada
        36
        said"#]]
    .assert_eq(&text(&fakes, json!({ "url": URL, "format": "text" })));
    assert_eq!(text(&fakes, json!({ "url": URL, "format": "raw" })), PAGE);
}

#[test]
fn a_text_is_read_in_its_charset() {
    let fakes = Fakes::new();
    for (fields, bytes, expected) in [
        ("content-type: text/plain", "grün".as_bytes(), "grün"),
        ("content-type: text/plain; charset=iso-8859-1", b"gr\xfcn", "grün"),
        ("content-type: text/plain; charset=\"windows-1252\"", b"gr\xfcn", "grün"),
        ("content-type: text/html", b"<meta charset=latin1>gr\xfcn", "grün"),
        ("content-type: text/plain; charset=utf-16le", b"g\0r\0", "gr"),
        ("content-type: text/plain", b"\xff\xfeg\0r\0", "gr"),
        ("content-type: text/plain; charset=shift_jis", b"\x83\x65", "テ"),
        ("content-type: text/plain; charset=bogus", b"gr\xfcn", "gr\u{fffd}n"),
        ("x-a: b", b"plain", "plain"),
        ("x-a: b", b"<!doctype html><p>a<b>b</b>", "a**b**"),
        ("content-type: application/json", br#"{"a":"<b>"}"#, r#"{"a":"<b>"}"#),
        ("content-type: application/problem+json", b"{}", "{}"),
        ("content-type: image/svg+xml", b"<svg/>", "<svg/>"),
    ] {
        fakes.says("example.com/", fields, bytes);
        assert_eq!(text(&fakes, json!({ "url": URL })), expected, "{fields}");
    }
}

#[test]
fn what_is_no_text_is_refused_by_its_name() {
    let fakes = Fakes::new();
    for (fields, bytes) in [
        ("content-type: image/png", &b"\x89PNG"[..]),
        ("content-type: application/octet-stream", b"a"),
        ("content-type: application/pdf", b"%PDF"),
        ("x-a: b", b"a\0b"),
    ] {
        fakes.says("example.com/", fields, bytes);
        let reply = fetch(&run(&fakes), &json!({ "url": URL }));
        assert_eq!(code(&reply), "not_text", "{fields}: {}", reply.text());
    }
    fakes.says("example.com/", "content-type: image/\u{1b}[31mpng", b"x");
    let told = fetch(&run(&fakes), &json!({ "url": URL })).text();
    assert!(!told.contains('\u{1b}'), "{told:?}");
}

#[test]
fn a_host_that_says_no_is_a_result() {
    let fakes = Fakes::new();
    let page = response(404, "content-type: text/html", b"<h1>Nothing here</h1>");
    fakes.page("example.com/", Page::Says(page));
    let reply = fetch(&run(&fakes), &json!({ "url": URL }));
    let value = reply.value.as_ref().unwrap().to_value();
    assert_eq!((&value["status"], &value["text"]), (&json!(404), &json!("# Nothing here")));
    assert_eq!(value["note"], "the host answered 404, so this may not be it");
}

#[test]
fn a_result_says_where_it_comes_from_and_how_much_it_is() {
    let fakes = Fakes::new();
    fakes.redirects("example.com/", "/there").says(
        "example.com/there",
        "content-type: text/plain",
        "abc",
    );
    let run = run(&fakes);
    let reply = fetch(&run, &json!({ "url": URL, "max_bytes": 2 }));
    let value = reply.value.as_ref().unwrap().to_value();
    let expected = json!({
        "url": "http://example.com/there", "status": 200, "note": null,
        "content_type": "text/plain", "text": "ab", "truncated": true, "bytes": 3,
        "redirects": ["http://example.com/"],
    });
    assert_eq!(value, expected);
    assert_eq!(run.label().to_string(), "untrusted (example.com, web_fetch), public");
}

#[test]
fn it_declares_what_it_does_and_no_more() {
    let [tool] = web_tools();
    let spec = tool.spec();
    let effects = serde_json::to_value(&spec.effects).unwrap();
    assert_eq!(effects["access"], "read", "{effects}");
    assert_eq!(effects["reach"], "network", "{effects}");
    assert_eq!(effects["determinism"], "non_deterministic", "{effects}");
    assert_eq!(effects["process"], false, "{effects}");
    assert_eq!(spec.capabilities, ["net:get:{url}"]);
    let missing = Run::new(&tooltape::Toolbox::new([tool]).unwrap()).missing_grants();
    assert_eq!(missing[0].to_string(), "`web_fetch` needs `Http`");
}

#[test]
fn what_a_call_needs_is_the_host_that_it_asks() {
    let toolbox = tooltape::Toolbox::new(web_tools()).unwrap();
    let tool = toolbox.get("web_fetch").unwrap();
    let needs = |url: &str| {
        let args = tooltape::Canon::of(&json!({ "url": url })).unwrap();
        tool.needs_of(&args).map(|needs| needs[0].to_string()).map_err(|_| ())
    };
    for (url, right) in [
        ("https://Example.com/a", Ok("net:get:example.com")),
        ("http://example.com/", Ok("net:get:example.com:80")),
        ("https://example.com:8443/", Ok("net:get:example.com:8443")),
        ("https://[2606:2800:220:1::1]/", Ok("net:get:[2606:2800:220:1::1]")),
        ("https://a@example.com/", Err(())),
        ("https://example.com\\@a/", Err(())),
        ("file:///etc/passwd", Err(())),
    ] {
        assert_eq!(needs(url).as_deref(), right.as_ref().map(|it| *it).map_err(|()| &()), "{url}");
    }
}

#[test]
fn calls_that_read_do_not_wait_for_each_other() {
    let fakes = Fakes::new();
    fakes.says("example.com/", "content-type: text/plain", "a");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let args = json!({ "url": URL }).to_string();
    let proposals = (0..8).map(|at| Proposal::new(format!("c{at}"), "web_fetch", args.clone()));
    let replies = runtime.block_on(run(&fakes).batch(proposals.collect())).unwrap();
    assert!(replies.iter().all(|reply| !reply.is_error));
}
