//! WASM components as tools of a project.

use std::fs;

use serde_json::{Value, json};

use crate::home::{Home, Ran, root};

/// A home with a component of the examples in it.
fn holding(component: &str) -> Home {
    let home = Home::new();
    let example = root().join("examples/wasm").join(component);
    fs::copy(example, home.here().join(component)).unwrap();
    home
}

/// A project whose tools are the components of the examples.
fn examples() -> Home {
    let home = Home::new();
    let from = root().join("examples/wasm");
    for name in ["word_count", "json_query", "spin", "check_links"] {
        let name = format!("{name}.wasm");
        fs::copy(from.join(&name), home.here().join(&name)).unwrap();
    }
    for name in ["tooltape.toml", "session.jsonl", "project/data/index.md", "project/data/books.md"]
    {
        home.write(name, &fs::read_to_string(from.join(name)).unwrap());
    }
    home
}

fn replied(ran: &Ran) -> Value {
    ran.json()
}

#[test]
fn a_component_is_called_like_any_tool_and_its_reply_says_what_is_proven() {
    let home = examples();
    let ran = home.run(&["call", "word_count", "text=to be or not to be", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    let reply = replied(&ran);
    assert_eq!(reply["value"]["words"], 6);
    assert_eq!((&reply["enforced_by"], &reply["determinism"]), (&json!("wasm"), &json!("proven")));
    assert_eq!(home.run(&["replay", "last"]).code, 0, "it was executed again, and is the same");
    let args = ["json={\"a\":[1,2,3]}", "query=/a/*"];
    let ran = home.run(&[&["call", "json_query"], &args[..], &["--json"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.transcript());
}

#[test]
fn a_component_that_never_ends_is_stopped_by_its_fuel_with_the_amount() {
    let ran = examples().run(&["call", "spin", "--json"]);
    let reply = replied(&ran);
    assert_eq!((ran.code, &reply["is_error"]), (5, &json!(true)), "{}", ran.transcript());
    let fault = &reply["fault"];
    assert_eq!((&fault["kind"], &fault["bound"]), (&json!("exceeded"), &json!("fuel")));
    assert!(fault["used"].as_u64().unwrap() >= fault["limit"].as_u64().unwrap(), "{fault}");
}

#[test]
fn what_a_component_asks_for_and_does_not_get_is_denied() {
    let home = examples();
    let call = ["call", "check_links", "path=data/index.md", "--json"];
    let ran = home.run(&call);
    assert_eq!(ran.code, 6, "{}", ran.transcript());
    assert_eq!(replied(&ran)["executed"], "not_executed");
    // The user lets it ask a host; there is none, and the page is read all the same.
    home.write(home.user_config(), "[http]\nallow = [\"example.com\"]\n");
    let ran = home.run(&call);
    assert_eq!(ran.code, 7, "whose code it is nobody vouches for: {}", ran.transcript());
    assert_eq!(home.run(&["trust"]).code, 0);
    let ran = home.run(&call);
    assert!(ran.code == 0 || ran.code == 5, "{}", ran.transcript());
    assert_eq!(replied(&ran)["executed"], "executed");
}

#[test]
fn a_component_that_read_what_is_not_public_tells_nobody() {
    let home = examples();
    let config = home.read("tooltape.toml") + "[labels]\ninternal = [\"data\"]\n";
    home.write("tooltape.toml", &config);
    home.write(home.user_config(), "[http]\nallow = [\"example.com\"]\n");
    assert_eq!(home.run(&["trust"]).code, 0);
    let ran = home.run(&["call", "check_links", "path=data/index.md", "--json"]);
    let text = ran.stdout.clone() + &ran.stderr;
    assert!(!text.contains("\"fine\",\"link\":\"https"), "{text}");
    let links = replied(&ran)["value"].clone();
    let asked = links.as_array().into_iter().flatten();
    let far = asked.filter(|it| it["link"].as_str().is_some_and(|it| it.starts_with("https")));
    assert!(far.clone().count() > 0, "{text}");
    assert!(far.clone().all(|it| it["state"] == "unknown"), "{text}");
}

#[test]
fn what_was_compiled_is_kept_apart_from_where_tools_write() {
    let home = holding("word_count.wasm");
    home.write("tooltape.toml", "[[tools.wasm]]\ncomponent = \"word_count.wasm\"\n");
    for (cache, is_kept) in [("cache", true), ("here/cache", false)] {
        let mut command = home.command(&["call", "word_count", "text=a b"]);
        let cache = home.here().parent().unwrap().join(cache);
        let ran = home.ran(command.env("XDG_CACHE_HOME", &cache).output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.transcript());
        assert_eq!(cache.join("tooltape/wasm").exists(), is_kept);
    }
}

#[test]
fn the_session_of_the_examples_runs_to_its_end_and_replays() {
    let home = examples();
    let ran = home.run(&["run", ".", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    assert_eq!(home.run(&["verify", "last"]).code, 0);
    let replayed = home.run(&["replay", "last", "--json"]);
    assert_eq!(replayed.code, 0, "{}", replayed.transcript());
}

#[test]
fn a_component_is_added_shown_and_refused_once_it_is_another() {
    let home = holding("word_count.wasm");
    let added = home.run(&["tools", "add", "./word_count.wasm", "--json"]);
    assert_eq!(added.code, 0, "{}", added.transcript());
    assert_eq!(added.json()["tools"], json!(["word_count"]));
    let shown = home.run(&["tools", "show", "word_count", "--json"]).json();
    assert_eq!(shown["component"]["hash"], added.json()["hash"]);
    let imports = shown["component"]["imports"].as_array().unwrap();
    assert!(imports.iter().all(|import| import["needs"].is_null()), "{imports:?}");
    assert_eq!(shown["effects"]["access"], "pure");
    let text = home.run(&["tools", "show", "word_count"]).stdout;
    assert!(text.contains("imports") && text.contains("hash"), "{text}");
    let other = root().join("examples/wasm/json_query.wasm");
    fs::copy(other, home.here().join("word_count.wasm")).unwrap();
    let refused = home.run(&["call", "word_count", "text=a", "--json"]);
    assert_eq!((refused.code, &refused.error()["code"]), (2, &json!("config.invalid")));
    assert!(refused.error()["message"].as_str().unwrap().contains("was changed"));
}

#[test]
fn a_folder_of_components_is_all_of_them_by_name() {
    let home = Home::new();
    for name in ["word_count.wasm", "json_query.wasm"] {
        let from = root().join("examples/wasm").join(name);
        fs::create_dir_all(home.here().join("parts")).unwrap();
        fs::copy(from, home.here().join("parts").join(name)).unwrap();
    }
    home.write("tooltape.toml", "[[tools.wasm]]\ncomponent = \"parts\"\n");
    let listed = home.run(&["tools", "list", "--json"]).json();
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.ends_with(&["json_query", "word_count"]), "{names:?}");
}

#[test]
fn what_is_no_component_is_refused_at_its_place_and_nothing_is_written() {
    let home = Home::new();
    let core_module = [0, b'a', b's', b'm', 1, 0, 0, 0];
    fs::write(home.here().join("core.wasm"), core_module).unwrap();
    home.write("text.wasm", "not WASM").write("empty/none", "");
    for (name, said) in [
        ("text.wasm", "text.wasm"),
        ("core.wasm", "core module"),
        ("missing.wasm", "missing.wasm"),
        ("empty", "expected 1 to 256"),
        ("../elsewhere.wasm", "leaves the folder"),
    ] {
        home.write("tooltape.toml", &format!("[[tools.wasm]]\ncomponent = \"{name}\"\n"));
        let ran = home.run(&["tools", "list", "--json"]);
        let error = ran.error();
        assert_eq!((ran.code, &error["code"]), (2, &json!("config.invalid")), "{name}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(said) && message.contains("tooltape.toml:2"), "{message}");
    }
    fs::remove_file(home.here().join("tooltape.toml")).unwrap();
    let ran = home.run(&["tools", "add", "core.wasm", "--json"]);
    assert_eq!((ran.code, &ran.error()["code"]), (5, &json!("tool.refused")));
    assert!(!home.here().join("tooltape.toml").exists());
}
