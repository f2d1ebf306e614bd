//! What a host says of the footprints of tools that it did not write.

use std::sync::{Arc, Mutex};

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tooltape::testing::Spy;
use tooltape::{
    Access, Call, Canon, Claim, Domain, Footprint, FootprintOf, Hash, KeyTemplate, Policy,
    Proposal, Run, Spec, Toolbox, Verdict, input, tool_fn,
};

fn template(text: &str) -> KeyTemplate {
    KeyTemplate::parse(text).unwrap()
}

/// A toolbox with one tool that says nothing of what it touches.
fn toolbox(access: Access) -> Toolbox {
    Toolbox::new([Spy::new("spy", access).tool()]).unwrap()
}

fn footprint(toolbox: &Toolbox, args: Value) -> Footprint {
    let args = Canon::of(&args).unwrap();
    toolbox.get("spy").unwrap().footprint(&args, None).unwrap()
}

#[test]
fn a_host_says_what_a_tool_touches_that_it_did_not_write() {
    let mut toolbox = toolbox(Access::Write);
    assert!(footprint(&toolbox, json!({ "n": 1 })).is_unknown_write());
    let before = toolbox.clone();
    toolbox.touching("spy", FootprintOf::templates([template("spy:{n}")], [])).unwrap();
    assert_eq!(footprint(&toolbox, json!({ "n": 1 })), Footprint::writes("spy:1"));
    assert_eq!(toolbox.get("spy").unwrap().touches().unwrap().name(), "writes spy:{n}");
    // Whoever shares the tools keeps what was said to it, and the definition is what it was.
    assert!(footprint(&before, json!({ "n": 1 })).is_unknown_write());
    let definition = |toolbox: &Toolbox| toolbox.get("spy").unwrap().definition();
    assert_eq!(definition(&toolbox), definition(&before));
}

#[test]
fn the_hosts_word_beats_the_tools_own() {
    #[input]
    struct Path {
        path: String,
    }
    let own =
        FootprintOf::input("own", |args: &Path| Footprint::writes(format!("a:{}", args.path)));
    let spec = Spec::new("spy", "Writes.").touches(own);
    let tool = tool_fn(spec, async |args: Path| Ok::<_, String>(args.path));
    let mut toolbox = Toolbox::new([tool]).unwrap();
    let args = json!({ "path": "x" });
    assert_eq!(footprint(&toolbox, args.clone()), Footprint::writes("a:x"));
    toolbox.touching("spy", FootprintOf::templates([template("b:{path}")], [])).unwrap();
    assert_eq!(footprint(&toolbox, args), Footprint::writes("b:x"));
}

#[test]
fn a_template_is_filled_with_texts_and_numbers() {
    let mut toolbox = toolbox(Access::Write);
    let hook = FootprintOf::templates(
        [template("db:{table}/{row}"), template("log:all")],
        [template("db:schema/{table}")],
    );
    toolbox.touching("spy", hook).unwrap();
    let touched = footprint(&toolbox, json!({ "table": "users", "row": 42 }));
    let expected = Footprint::writes("db:users/42").and_writes("log:all");
    assert_eq!(touched, expected.and_reads("db:schema/users"));
}

#[test]
fn what_makes_no_key_makes_a_write_of_everything() {
    let mut toolbox = toolbox(Access::Write);
    toolbox.touching("spy", FootprintOf::templates([template("file:{path}")], [])).unwrap();
    for path in
        [json!(null), json!(true), json!(["a"]), json!({}), json!("../a"), json!("/a"), json!("a/")]
    {
        assert!(footprint(&toolbox, json!({ "path": path })).is_unknown_write(), "{path}");
    }
    assert!(footprint(&toolbox, json!({})).is_unknown_write());
    // What is filled in is not filled again, and cannot choose the domain.
    let touched = footprint(&toolbox, json!({ "path": "{path}" }));
    assert_eq!(touched, Footprint::writes("file:{path}"));
    assert_eq!(footprint(&toolbox, json!({ "path": "db:a" })), Footprint::writes("file:db:a"));
    // An empty text leaves the whole domain.
    assert_eq!(footprint(&toolbox, json!({ "path": "" })), Footprint::writes("file:"));
}

#[test]
fn a_template_that_makes_no_key_is_refused() {
    let check = |text: &str, expected: Expect| {
        expected.assert_eq(&KeyTemplate::parse(text).unwrap_err().to_string());
    };
    check(
        "file:{path",
        expect!["`file:{path` has a brace that is not part of an argument such as `{path}`"],
    );
    for stray in ["file:a}", "file:{}", "file:{a}}", "file:{a{b}}", "}file:{a}"] {
        let err = KeyTemplate::parse(stray).unwrap_err().to_string();
        assert!(err.contains("has a brace"), "{err}");
    }
    check(
        "{domain}:a",
        expect!["`{domain}:a` has an argument in its domain, which must be written out"],
    );
    check(
        "file:{a}//b",
        expect!["`file:{a}//b` has a segment ``; no segment may be empty, `.` or `..`"],
    );
    check("path", expect!["`path` has no domain; a resource key is like `file:src/a.rs`"]);
}

#[test]
fn what_a_host_says_must_go_with_the_access() {
    let check = |said: Result<(), tooltape::RegisterError>, expected: Expect| {
        expected.assert_eq(&said.unwrap_err().to_string());
    };
    let hook = || FootprintOf::templates([], [template("a:b")]);
    check(
        toolbox(Access::Pure).touching("spy", hook()),
        expect!["`spy@0.1.0` declares access `Pure`: it touches nothing"],
    );
    check(
        toolbox(Access::Read).promote("spy"),
        expect!["`spy@0.1.0` declares access `Read`: only a `Write` tool can be promoted"],
    );
    check(toolbox(Access::Write).touching("spi", hook()), expect!["there is no tool named `spi`"]);
    check(toolbox(Access::Write).promote("spi"), expect!["there is no tool named `spi`"]);
    let mut reading = toolbox(Access::Read);
    reading.touching("spy", hook()).unwrap();
    assert_eq!(footprint(&reading, json!({})), Footprint::reads("a:b"));
}

/// Allows every call, and keeps its claim.
#[derive(Clone, Default)]
struct Claims(Arc<Mutex<Vec<Claim>>>);

impl Policy for Claims {
    fn judge(&self, call: &Call) -> Verdict {
        self.0.lock().unwrap().push(Claim::of(call).unwrap());
        Verdict::allow("all")
    }

    fn version(&self) -> Hash {
        Hash::of(Domain::Policy, b"claims")
    }
}

#[tokio::test]
async fn a_call_claims_what_its_tool_and_its_host_say() {
    let mut toolbox = toolbox(Access::Write);
    toolbox.promote("spy").unwrap();
    toolbox.touching("spy", FootprintOf::templates([template("spy:{n}")], [])).unwrap();
    let claims = Claims::default();
    let run = Run::new(&toolbox).policy(claims.clone());
    run.batch(vec![Proposal::new("c1", "spy", r#"{"n":7}"#)]).await.unwrap();
    let footprint = Footprint::writes("spy:7");
    let claim = Claim { footprint, promoted: true, ..Claim::default() };
    assert_eq!(*claims.0.lock().unwrap(), [claim]);
}
