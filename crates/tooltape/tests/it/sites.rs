//! Where an address leads: to one host, or nowhere.

use serde_json::json;
use tooltape::scope::Site;
use tooltape::{Canon, Spec, Tool, ToolError, Toolbox, tool_fn};

#[test]
fn an_address_leads_to_one_host_or_nowhere() {
    for (text, expected) in [
        ("https://example.com", Some("https://example.com")),
        ("HTTPS://EXAMPLE.com:443/a?b#c", Some("https://example.com")),
        ("http://example.com:443/", Some("http://example.com:443")),
        ("http://[2606:2800::1]:80/", Some("http://[2606:2800::1]")),
        ("wss://example.com/", Some("wss://example.com")),
        ("http://xn--bcher-kva.example/", Some("http://xn--bcher-kva.example")),
        ("https://example.com/ü", Some("https://example.com")),
        ("https://example.com?a=b@c", Some("https://example.com")),
        ("https://bücher.example/", None),
        ("https://example.com./", None),
        ("https://user@example.com/", None),
        ("https://user:pass@example.com/", None),
        ("https://example.com:/", None),
        ("https://example.com:0/", None),
        ("https://example.com:080/", None),
        ("https://example.com:65536/", None),
        ("https://127.1/", None),
        ("https://0x7f000001/", None),
        ("https://2130706433/", None),
        ("https://[::ffff:127.0.0.1]/", None),
        ("https://exa%6dple.com/", None),
        ("https://example.com\\a", None),
        ("https://example.com/a b", None),
        ("https://example.com/\r\n", None),
        ("https://example.com/\0", None),
        ("https:/example.com/", None),
        ("https:example.com/", None),
        ("//example.com/", None),
        ("https:///example.com/", None),
        ("ftp://example.com/", None),
        ("example.com", None),
        ("", None),
    ] {
        let found = Site::of(text).map(|site| site.to_string());
        assert_eq!(found.as_deref().ok(), expected, "{text:?}: {found:?}");
    }
}

#[test]
fn an_argument_that_is_an_address_is_the_right_to_ask_its_host() {
    let tool = |needs: &str| -> std::sync::Arc<dyn Tool> {
        let spec = Spec::new("asks", "Asks.").needs(needs);
        tool_fn(spec, async |_: tooltape::Empty| Ok::<_, ToolError>(()))
    };
    for (needs, argument, expected) in [
        ("net:get:{url}", json!("https://example.com/a"), Some("net:get:example.com")),
        ("net:post:{url}", json!("http://example.com/a"), Some("net:post:example.com:80")),
        ("net:get:{url}", json!("example.com"), Some("net:get:example.com")),
        ("net:get:{url}", json!("example.com:8080"), Some("net:get:example.com:8080")),
        ("net:get:{url}", json!("https://a@example.com/"), None),
        ("net:get:{url}", json!("https://example.com/ a"), None),
        ("net:get:{url}", json!(7), None),
        ("net:get:{url}.example.com", json!("a"), Some("net:get:a.example.com")),
        ("net:get:{url}.example.com", json!("https://evil.test/"), None),
        ("net:get:{url}:80", json!("https://evil.test/"), None),
        ("net:get:{other}", json!("https://example.com/"), None),
    ] {
        let toolbox = Toolbox::new([tool(needs)]).unwrap();
        let args = Canon::of(&json!({ "url": argument })).unwrap();
        let found = toolbox.get("asks").unwrap().needs_of(&args);
        let found = found.map(|rights| rights[0].to_string());
        assert_eq!(found.as_deref().ok(), expected, "{needs} {argument}: {found:?}");
    }
}
