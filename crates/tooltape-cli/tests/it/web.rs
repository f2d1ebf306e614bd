//! Whom `web_fetch` may ask, as the configuration says: nobody but this machine is asked here.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use crate::home::Home;

/// A listener that says hello to whoever comes, and its port.
fn listening() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4_096]);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(format!("{head}<h1>hello</h1>").as_bytes());
        }
    });
    port
}

#[test]
fn only_hosts_that_the_user_names_are_asked() {
    let port = listening();
    let here = format!("127.0.0.1:{port}");
    let list = |key: &str, host: &str| format!("{key} = [\"{host}\"]\n");
    let named = format!("[http]\n{}", list("allow", &here));
    let opened = format!("{named}{}", list("private", &here));
    let others = "[http]\nallow = [\"docs.rs\"]\n".to_owned();
    let nobody = "[http]\nallow = []\n".to_owned();
    let url = format!("url=http://{here}/");
    for (user, project, code, said) in [
        ("", "", 6, "does not give `net:get:127.0.0.1"),
        (&nobody, "", 6, "does not give `net:get:127.0.0.1"),
        (&others, "", 6, "does not give `net:get:127.0.0.1"),
        ("", &named, 6, "does not give `net:get:127.0.0.1"),
        (&named, "", 5, "error[not_public]"),
        (&opened, "", 0, "# hello"),
        (&opened, &named, 0, "# hello"),
        (&opened, &others, 6, "does not give `net:get:127.0.0.1"),
        (&opened, &nobody, 6, "does not give `net:get:127.0.0.1"),
        (&named, &opened, 2, "a project cannot open this machine"),
        ("[http]\nallow = [\"*\"]\n", "", 2, "the host"),
        ("[http]\nallow = [\"https://docs.rs\"]\n", "", 2, "in `net:get:https://docs.rs`"),
        ("[http]\nprivate = [\"localhost\"]\n", "", 2, "expected one host and its port"),
        ("[http]\nprivate = [\"*.example.com:80\"]\n", "", 2, "expected one host and its port"),
        ("[http]\nhosts = []\n", "", 2, "unknown field `hosts`"),
    ] {
        let home = Home::new();
        home.write(home.user_config(), user).write("tooltape.toml", project);
        let ran = home.run(&["call", "web_fetch", &url]);
        let all = ran.transcript();
        assert_eq!(ran.code, code, "{user}{project}: {all}");
        assert!(all.contains(said), "{user}{project}: {all}");
    }
}

#[test]
fn a_flag_and_a_variable_name_hosts_too() {
    let port = listening();
    let here = format!("127.0.0.1:{port}");
    let (allow, private) = (format!("http.allow={here}"), format!("http.private={here}"));
    let url = format!("url=http://{here}/");
    let ran = Home::new().run(&["call", "web_fetch", &url, "--set", &allow, "--set", &private]);
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    let home = Home::new().with("TOOLTAPE_HTTP_ALLOW", &here).with("TOOLTAPE_HTTP_PRIVATE", &here);
    assert_eq!(home.run(&["call", "web_fetch", &url]).code, 0);
}

#[test]
fn a_brokered_secret_is_a_token_in_the_box() {
    let home = Home::new().with("REAL", "ghp_hunter2hunter2");
    let broker = "broker = { host = \"api.example.com\", variable = \"FORGE_TOKEN\" }";
    let config = "[http]\nallow = [\"api.example.com\"]\n[secrets.forge]\nenv = \"REAL\"\n";
    let command = "command=echo \"token: $FORGE_TOKEN $REAL\"; env | grep -c hunter2";
    for (config, expected) in [
        (config.to_owned(), "token:  \\n0"),
        (format!("{config}{broker}\n"), "token: tooltape-secret-"),
    ] {
        home.write(home.user_config(), &config);
        let ran = home.run(&["call", "shell", command, "--yes", "--json"]);
        let said = ran.transcript();
        assert!(said.contains(expected) && !said.contains("hunter2h"), "{said}");
    }
    for (broker, said) in [
        ("broker = { host = \"*.example.com\", variable = \"A\" }", "the host"),
        ("broker = { host = \"a.example.com\", variable = \"\" }", "the variable"),
        ("broker = { host = \"a.example.com\" }", "missing field `variable`"),
        ("broker = \"a.example.com\"", "expected a table"),
    ] {
        home.write(home.user_config(), &format!("{config}{broker}\n"));
        let ran = home.run(&["call", "echo", "text=a"]);
        assert_eq!(ran.code, 2, "{broker}: {}", ran.transcript());
        assert!(ran.stderr.contains(said), "{broker}: {}", ran.stderr);
    }
}
