//! Secrets that a process uses and never has (SEC-03).

use tooltape::Secret;
use tooltape_kit::Sandbox;

use super::boxed;
use crate::net::fakes::{Fakes, PUBLIC, Page, ROOT};
use crate::sandbox::lab::{Lab, sandbox};
use crate::users;

const SECRET: &str = "ghp_7hunter2hunter2hunter2";

/// Prints all that a process can find out about itself and about its neighbours.
const SCAN: &str = r#"
    for file in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do cat "$file" 2>/dev/null; done
    perl -e 'open M, "<", "/proc/self/maps"; open F, "<", "/proc/self/mem";
        while (<M>) { next unless /^([0-9a-f]+)-([0-9a-f]+) r/; my ($a, $b) = (hex $1, hex $2);
        next if $b - $a > 1 << 24; sysseek F, $a, 0; sysread F, my $p, $b - $a; print $p }' > memory
    find / -xdev -type f -newer /proc/1 -size -1000k 2>/dev/null | xargs cat 2>/dev/null"#;

fn brokered(fakes: &Fakes, rights: &str) -> Sandbox {
    let http = fakes.http().trust(ROOT).unwrap();
    let secret = Secret::new(SECRET.as_bytes().to_vec());
    let host = "example.com".parse().unwrap();
    let sandbox = boxed(http, rights);
    sandbox.broker("forge".parse().unwrap(), "FORGE_TOKEN", host, secret).unwrap()
}

const RIGHTS: &str = "net:any:example.com\nnet:any:example.com:80\nnet:any:other.test:80\n\
                      net:any:a.example.com:80\nnet:any:example.com:8080";

/// A request with whatever the variable holds.
fn with_token(lab: &Lab, url: &str) -> (String, Vec<String>) {
    let command = format!(
        "curl -s -H \"Authorization: Bearer $FORGE_TOKEN\" '{url}'; echo; echo \"$FORGE_TOKEN\""
    );
    let ran = lab.shell(&command);
    let said: Vec<String> = ran["stdout"].as_str().unwrap().lines().map(str::to_owned).collect();
    (said.last().unwrap().clone(), said)
}

#[test]
fn the_host_that_a_secret_is_for_gets_it_and_the_process_does_not() {
    users::as_each(
        "egress::broker::the_host_that_a_secret_is_for_gets_it_and_the_process_does_not",
        |_| {
            let fakes = Fakes::new();
            fakes.says("example.com/", "content-type: text/plain", format!("you said {SECRET}"));
            let lab = Lab::with(brokered(&fakes, RIGHTS));
            let (token, said) = with_token(&lab, "http://example.com/");
            assert!(token.starts_with("tooltape-secret-"), "{said:?}");
            assert_eq!(said[0], format!("you said {}", "*".repeat(SECRET.len())), "{said:?}");
            let (heads, dialled) = fakes.log(|log| (log.heads.clone(), log.dialled.clone()));
            assert!(heads[0].contains(&format!("Bearer {SECRET}\r\n")), "{heads:?}");
            assert!(!heads[0].contains(&token) && !heads[0].contains("accept-encoding"));
            let sealed = [format!("{}:443", PUBLIC[0]).parse().unwrap()];
            assert_eq!(dialled, sealed, "asked for as http, and asked as https");
        },
    );
}

#[test]
fn a_secret_that_comes_back_in_pieces_does_not_reach_the_process() {
    let fakes = Fakes::new();
    let lab = Lab::with(brokered(&fakes, RIGHTS));
    let (first, second) = SECRET.split_at(10);
    let chunk = |bytes: &str| format!("{:x}\r\n{bytes}\r\n", bytes.len());
    let chunks = format!("{}{}0\r\n\r\n", chunk(first), chunk(second));
    for head in [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n",
        "HTTP/1.1 200 OK\ntransfer-encoding:chunked\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\ntransfer-encoding: gzip, chunked\r\n",
        "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n",
        "HTTP/1.1 206 Partial Content\r\ncontent-range: bytes 0-9/26\r\n",
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n",
        "HTTP/1.1 200 OK\r\na: b\r\n c\r\n",
        "",
    ] {
        let end = if head.contains('\r') { "\r\n" } else { "\n" };
        fakes.page("example.com/", Page::Says(format!("{head}{end}{chunks}").into_bytes()));
        let (_, said) = with_token(&lab, "http://example.com/");
        let said = said.concat();
        assert!(said.contains("secret_not_hidden"), "{head:?}: {said}");
        assert!(!said.contains(first) && !said.contains(second), "{head:?}: {said}");
    }
    // However it is cut on its way.
    let line = format!("{SECRET}, ");
    fakes.says("example.com/", "content-type: text/plain", line.repeat(2_000));
    let (_, said) = with_token(&lab, "http://example.com/");
    assert_eq!(said[0], line.replace(SECRET, &"*".repeat(SECRET.len())).repeat(2_000));
}

#[test]
fn a_host_that_is_told_a_secret_is_asked_for_its_whole_answer_as_it_is() {
    let fakes = Fakes::new();
    fakes.says("example.com/", "content-type: text/plain", "hello");
    let lab = Lab::with(brokered(&fakes, RIGHTS));
    let fields = "-H 'Range: bytes=10-40' -H 'IF-RANGE: \"a\"' -H 'accept-encoding: gzip' \
                  -H 'Accept-Charset: utf-16' -H 'A-IM: range' -H 'Kept: yes'";
    for (token, is_asked) in [("a: $FORGE_TOKEN", false), ("a: b", true)] {
        lab.shell(&format!("curl -s {fields} -H \"{token}\" http://example.com/"));
        let head = fakes.log(|log| log.heads.last().unwrap().to_ascii_lowercase());
        assert!(head.contains("kept: yes\r\n"), "{head}");
        for field in
            ["\nrange:", "\nif-range:", "\naccept-encoding:", "\naccept-charset:", "\na-im:"]
        {
            assert_eq!(head.contains(field), is_asked, "{field:?}: {head}");
        }
        assert_eq!(head.starts_with("get / http/1.1\r\n"), is_asked, "{head}");
    }
}

#[test]
fn everybody_else_gets_the_token() {
    let fakes = Fakes::new();
    for host in ["other.test", "a.example.com", "example.com:8080"] {
        fakes.says(&format!("{host}/"), "content-type: text/plain", "hello");
    }
    let lab = Lab::with(brokered(&fakes, RIGHTS));
    for url in ["http://other.test/", "http://a.example.com/", "http://example.com:8080/"] {
        let (token, _) = with_token(&lab, url);
        let head = fakes.log(|log| log.heads.last().unwrap().clone());
        assert!(head.contains(&token) && !head.contains(SECRET), "{url}: {head}");
    }
    // In a tunnel, in a path and in a body a token is a token to its own host, too.
    for command in [
        "curl -s -p -H \"A: $FORGE_TOKEN\" http://example.com/",
        "curl -s \"http://example.com/$FORGE_TOKEN\"",
        "curl -s -d \"$FORGE_TOKEN\" http://example.com/",
    ] {
        let before = fakes.log(|log| log.heads.len());
        let ran = lab.shell(command);
        assert_eq!(fakes.log(|log| log.heads.len()), before + 1, "{command}: {ran}");
        let head = fakes.log(|log| log.heads.last().unwrap().clone());
        assert_eq!(head.contains("tooltape-secret-"), !command.contains("-d"), "{command}: {head}");
    }
    assert!(fakes.log(|log| log.heads.iter().all(|head| !head.contains(SECRET))));
}

#[test]
fn a_secret_is_nowhere_in_the_box() {
    let fakes = Fakes::new();
    fakes.says("example.com/", "content-type: text/plain", SECRET);
    let lab = Lab::with(brokered(&fakes, RIGHTS));
    let ask = "curl -s -o answer -H \"Authorization: $FORGE_TOKEN\" http://example.com/\n";
    // A shell that was told the secret in a variable is the control.
    let told = Lab::with(sandbox().variable("FORGE_TOKEN", SECRET));
    for (lab, command, expected) in
        [(&lab, format!("{ask}{SCAN}"), false), (&told, SCAN.into(), true)]
    {
        let ran = lab.shell(&command);
        let memory = std::fs::read(lab.at("memory")).unwrap();
        assert!(memory.len() > 100_000, "{} bytes of memory were scanned", memory.len());
        let found = |bytes: &[u8]| bytes.windows(SECRET.len()).any(|it| it == SECRET.as_bytes());
        let said = ran["stdout"].as_str().unwrap();
        assert_eq!(found(said.as_bytes()), expected, "in what the box says");
        assert_eq!(found(&memory), expected, "in the memory of a process");
        assert!(!found(&std::fs::read(lab.at("answer")).unwrap_or_default()), "in an answer");
    }
    assert!(fakes.log(|log| log.heads[0].contains(SECRET)), "it was used all the same");
}

#[test]
fn a_call_that_may_not_use_a_secret_has_no_token() {
    let fakes = Fakes::new();
    let all = "process:shell:sandbox\nfs:read:.\nfs:write:.\nnet:any:example.com";
    for (rights, expected) in [(all.to_owned(), "0\n"), (format!("{all}\nsecret:use:forge"), "1\n")]
    {
        let lab = Lab::with(brokered(&fakes, RIGHTS)).narrowed(&rights);
        assert_eq!(lab.shell("env | grep -c FORGE_TOKEN")["stdout"], expected);
    }
    // Each process has a token of its own.
    let lab = Lab::with(brokered(&fakes, RIGHTS));
    let tokens = [(); 2].map(|()| lab.shell("echo $FORGE_TOKEN")["stdout"].clone());
    assert_ne!(tokens[0], tokens[1]);
    let (name, host) = ("forge".parse().unwrap(), "example.com".parse().unwrap());
    let broken = Secret::new(b"a\r\nb: c".to_vec());
    assert!(sandbox().broker(name, "FORGE_TOKEN", host, broken).is_err());
}
