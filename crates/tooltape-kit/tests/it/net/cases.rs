//! Ways to what is not public: each spelling, each answer of a resolver, each way to be led there.

use super::fakes::PUBLIC;

/// One attack.
pub(crate) struct Case {
    pub(crate) family: &'static str,
    /// The advisory that it acts out, where it has one.
    pub(crate) cve: Option<&'static str>,
    pub(crate) name: String,
    /// What a model asks for.
    pub(crate) url: String,
    /// What names resolve to, answer by answer.
    pub(crate) names: Vec<(String, Vec<Vec<String>>)>,
    /// Pages that redirect: `host/path`, and where to.
    pub(crate) redirects: Vec<(String, String)>,
}

/// Hosts of the inside, however they are spelled. CVE-2026-49857 is the mapped one.
const SPELLINGS: [&str; 66] = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7F.1",
    "0x7f.0.0.1",
    "017700000001",
    "0177.1",
    "0177.0.0.01",
    "127.0.0.1.",
    "①②⑦.0.0.1",
    "127。0。0。1",
    "127.0.0。1",
    "１２７.0.0.1",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:a9fe:a9fe]",
    "[0:0:0:0:0:ffff:7f00:0001]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::169.254.169.254]",
    "[64:ff9b:1::a00:1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
    "0",
    "0.0.0.0",
    "0x0",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "loca%6chost",
    "%31%32%37.0.0.1",
    "127.0.0.1%00.example.com",
    "10.0.0.1",
    "0xa.1",
    "167772161",
    "192.168.0.1",
    "3232235521",
    "172.16.0.1",
    "172.31.255.255",
    "100.64.0.1",
    "198.18.0.1",
    "198.19.255.255",
    "192.0.2.1",
    "203.0.113.1",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fe80::1%25eth0]",
    "[fc00::1]",
    "[2001:db8::1]",
    "224.0.0.1",
    "[ff02::1]",
    "255.255.255.255",
    "metadata.google.internal",
    "METADATA.google.internal.",
    "100.100.100.200",
    "168.63.129.16",
];

/// Advisories of programs that took these spellings for something else.
const CVES: [(&str, &str); 12] = [
    ("127.1", "CVE-2024-29415"),
    ("127.0.1", "CVE-2024-29415"),
    ("0x7F.1", "CVE-2023-42282"),
    ("0x7f.0.0.1", "CVE-2020-28360"),
    ("017700000001", "CVE-2021-28918"),
    ("0177.1", "CVE-2021-29922"),
    ("0177.0.0.01", "CVE-2021-29921"),
    ("0251.0376.0251.0376", "CVE-2021-29923"),
    ("[::ffff:127.0.0.1]", "CVE-2026-49857"),
    ("[::ffff:7f00:1]", "CVE-2026-49857"),
    ("[::ffff:a9fe:a9fe]", "CVE-2026-49857"),
    ("127.0.0.1%2f.example.com", "CVE-2022-27780"),
];

/// What a resolver may answer for a name that is fine.
const ANSWERS: [&str; 30] = [
    "127.0.0.1",
    "127.53.1.9",
    "0.0.0.0",
    "0.1.2.3",
    "10.1.2.3",
    "172.20.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "100.127.255.254",
    "169.254.1.1",
    "169.254.169.254",
    "192.0.0.1",
    "192.0.2.7",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.9",
    "224.0.0.251",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::1",
    "2001:0:7f00:1::",
    "fc00::1",
    "fe80::1",
    "ff02::1",
];

/// Texts that say one host to one reader and another to the next (NET-02), and hosts that look like
/// one that may be asked (NET-03). What is behind the `@` and its like is this machine.
const CONFUSIONS: [(&str, &str); 30] = [
    ("NET-02", "http://example.com@127.0.0.1/"),
    ("NET-02", "http://example.com:80@127.0.0.1/"),
    ("NET-02", "http://127.0.0.1\\@example.com/"),
    ("NET-02", "http://example.com\\@127.0.0.1/"),
    ("NET-02", "http:\\\\127.0.0.1\\"),
    ("NET-02", "http:/127.0.0.1/"),
    ("NET-02", "http:127.0.0.1/"),
    ("NET-02", "http:///127.0.0.1/"),
    ("NET-02", "http://127.0.0.1\u{0}.example.com/"),
    ("NET-02", "http://127.0.0.1\r\n.example.com/"),
    ("NET-02", "http://127.0.0.1\t.example.com/"),
    ("NET-02", "http://exam\tple.com/"),
    ("NET-02", "http://example.com/\r\nhost: 127.0.0.1"),
    ("NET-02", " http://127.0.0.1/"),
    ("NET-02", "http://127.0.0.1%2f.example.com/"),
    ("NET-02", "http://127.0.0.1#.example.com/"),
    ("NET-02", "http://127.0.0.1?.example.com/"),
    ("NET-02", "http://127.0.0.1;example.com/"),
    ("NET-02", "http://127.0.0.1:80:80/"),
    ("NET-02", "http://[::1].example.com/"),
    ("NET-02", "http://[::1]example.com/"),
    ("NET-03", "http://evilexample.com/"),
    ("NET-03", "http://example.com.evil.test/"),
    ("NET-03", "http://example.com./"),
    ("NET-03", "http://exаmple.com/"),
    ("NET-03", "http://xn--exmple-4nf.com/"),
    ("NET-03", "http://example。com.evil.test/"),
    ("NET-03", "http://example.com%2eevil.test/"),
    ("NET-03", "http://exam\u{ad}ple.com.evil.test/"),
    ("NET-03", "http://127.0.0.1.example.com.evil.test/"),
];

/// Where else a page may send whoever asked for it (NET-05).
const ELSEWHERE: [&str; 20] = [
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_INFO",
    "ftp://127.0.0.1/",
    "dict://127.0.0.1:11211/",
    "data:text/plain,hello",
    "javascript:alert(1)",
    "ws://127.0.0.1/",
    "jar:http://127.0.0.1!/",
    "http://user:password@127.0.0.1/",
    "http://example.com@127.0.0.1/",
    "http://127.0.0.1:22/",
    "http://127.0.0.1:2375/containers/json",
    "//127.0.0.1/",
    "\\\\127.0.0.1\\",
    "/\\127.0.0.1/",
    "http:/127.0.0.1/",
    "HTTP://LOCALHOST/",
    "http://evil.test/",
    "//evil.test:80/",
    "http://example.com:6379/",
];

/// Every case.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for spelling in SPELLINGS {
        let family = if is_metadata(spelling) { "NET-07" } else { "NET-01" };
        cases.extend(led_to(family, spelling));
    }
    for answer in ANSWERS {
        cases.extend(resolved_to(answer));
    }
    for (family, url) in CONFUSIONS {
        let name = format!("direct {url:?}");
        let cve = CVES.iter().find(|(spelling, _)| url.contains(spelling)).map(|it| it.1);
        cases.push(Case { family, cve, name, url: url.into(), names: vec![], redirects: vec![] });
    }
    for location in ELSEWHERE {
        let redirects = vec![("example.com/".to_owned(), location.to_owned())];
        let (name, url) = (format!("redirect {location:?}"), "http://example.com/".into());
        cases.push(Case { family: "NET-05", cve: None, name, url, names: vec![], redirects });
    }
    cases
}

fn is_metadata(host: &str) -> bool {
    ["metadata.", "METADATA.", "fd00:ec2", "100.100.100", "168.63", "169.254.169"]
        .iter()
        .any(|part| host.contains(part))
}

/// Asked for at once, and behind pages that may be asked for.
fn led_to(family: &'static str, host: &str) -> Vec<Case> {
    let cve = CVES.iter().find(|(spelling, _)| *spelling == host).map(|it| it.1);
    let case = |name: &str, url: String, redirects: &[(&str, String)]| {
        let redirects = redirects.iter().map(|(from, to)| ((*from).to_owned(), to.clone()));
        let name = format!("{name} {host:?}");
        Case { family, cve, name, url, names: vec![], redirects: redirects.collect() }
    };
    let (first, to) = ("http://example.com/".to_owned(), format!("http://{host}/"));
    vec![
        case("direct", to.clone(), &[]),
        case("port", format!("http://{host}:8080/"), &[]),
        case("sealed", format!("https://{host}/"), &[]),
        case("redirect to https", first.clone(), &[("example.com/", format!("https://{host}/"))]),
        case("redirect", first.clone(), &[("example.com/", to.clone())]),
        case("relative redirect", first.clone(), &[("example.com/", format!("//{host}/"))]),
        case(
            "second redirect",
            first,
            &[("example.com/", "http://a.example.com/".into()), ("a.example.com/", to)],
        ),
    ]
}

/// A name that is fine leads there: at once, later, beside others, and behind a redirect.
fn resolved_to(answer: &str) -> Vec<Case> {
    let one = |address: &str| vec![address.to_owned()];
    let public = PUBLIC[0];
    let case = |name: &str, answers: Vec<Vec<String>>| Case {
        family: "NET-04",
        cve: None,
        name: format!("{name} {answer}"),
        url: "http://example.com/".into(),
        names: vec![("example.com".into(), answers)],
        redirects: vec![],
    };
    let mixed = vec![public.to_owned(), answer.to_owned()];
    let many =
        vec![PUBLIC[0].to_owned(), PUBLIC[1].to_owned(), PUBLIC[2].to_owned(), answer.into()];
    let to_name = |name: &str, answers: Vec<Vec<String>>| Case {
        names: vec![("a.example.com".into(), answers)],
        redirects: vec![("example.com/".into(), "http://a.example.com/".into())],
        ..case(name, vec![one(public)])
    };
    vec![
        case("answer", vec![one(answer)]),
        // Nobody resolves twice, so the second answer is that of the second connection.
        Case {
            redirects: vec![("example.com/".into(), "/again".into())],
            ..case("rebinding", vec![one(public), one(answer)])
        },
        case("mixed", vec![mixed.clone()]),
        case("mixed the other way round", vec![mixed.into_iter().rev().collect()]),
        case("last of many", vec![many]),
        to_name("redirect to a name at", vec![one(answer)]),
        to_name("redirect to a rebinding name at", vec![one(answer), one(public)]),
    ]
}
