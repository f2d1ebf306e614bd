//! The examples run, and print what they print here.

use expect_test::expect;

/// Declares an example as a module. Tests run what its `main` prints.
macro_rules! examples {
    ($($name:ident $path:literal),* $(,)?) => {
        $(
            #[path = $path]
            #[allow(dead_code, reason = "nobody calls `main` here")]
            mod $name;
        )*
    };
}
examples! {
    agent_on_a_script "../../../../examples/agent_on_a_script.rs",
    batch "../../../../examples/batch.rs",
    blocking "../../../../examples/blocking.rs",
    define_and_call "../../../../examples/define_and_call.rs",
    dynamic_offer "../../../../examples/dynamic_offer.rs",
    hidden_values "../../../../examples/hidden_values.rs",
    runtime_tool "../../../../examples/runtime_tool.rs",
}

/// What an example prints.
macro_rules! printed {
    ($name:ident) => {{
        let mut out = Vec::new();
        $name::show(&mut out).await.unwrap();
        String::from_utf8(out).unwrap()
    }};
}

#[tokio::test]
async fn define_and_call_runs() {
    expect![[r#"
        called directly: Ok(38)
        a model sees: price, Finds the price of a train ticket, in euros., ["from","to"]

        {"from": "Bern", "to": "Oslo", "people": 3}
          57

        {"from": "Bern", "to": "Bern"}
          failed: the trip ends where it starts

        {"from": "Bern"}
          not executed: arguments could not be deserialised: missing `to`

        {"from": "Bern", "to": "Oslo", "peopel": 3}
          not executed: arguments could not be deserialised: unknown field `peopel`: did you mean `people`?

        {"from": "Bern", "to": 
          not executed: your JSON was malformed: the text ends at line 1 column 24, expected a value; you sent `{"from": "Bern", "to": `
    "#]].assert_eq(&printed!(define_and_call));
}

#[tokio::test]
async fn hidden_values_runs() {
    let printed = printed!(hidden_values);
    assert!(!printed.contains("hunter2"), "the secret stays one");
    expect![[r#"
        the model may choose: ["item"]
        the host must grant: [`Secret<String>`, `State<Vec<String>>`, `RunInfo`]
        without grants: not executed: `order` needs `Secret<String>`, `order` needs `State<Vec<String>>`, which the run was not granted
        {"item":"tea"} => 1 ordered for Ada
        {"item":"tea","token":"mine"} => not executed: arguments could not be deserialised: unknown field `token`, expected `item`
        the host sees the cart: ["tea"]
    "#]].assert_eq(&printed);
}

#[tokio::test]
async fn batch_runs() {
    expect![[r#"
        a (executed): []
        b (executed): null
        c (executed): ["buy tea"]
        d (not executed): not executed: unknown tool `wirte`: did you mean `write`?
        e (not executed): not executed: arguments could not be deserialised: /text: expected string, found number `1`: did you mean `"1"`?

        the tape of call b:
          proposed write {"text": "buy tea"}
          judged: allow, by rule `an example`
          started attempt 1
          changed the state to ["buy tea"]
          settled: executed, null
    "#]].assert_eq(&printed!(batch));
}

#[tokio::test]
async fn agent_on_a_script_runs() {
    expect![[r#"
        user:  Is the hash of nothing the one that everybody knows?
        model: I shall see.
          hsah {"text": ""}
            => not executed: unknown tool `hsah`: did you mean `hash`?
        model: A slip.
          hash {text: }
            => not executed: your JSON was malformed: found `t`, expected a key in `"`, at line 1 column 2; you sent `{text: }`
        model: Once more.
          hash {"text": ""}
            => af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262
        model: Yes, it is: af1349b9 and so on.

        4 turns, 3 calls, 2 of them put right
    "#]].assert_eq(&printed!(agent_on_a_script));
}

#[tokio::test]
async fn dynamic_offer_runs() {
    expect![[r#"
        only reads: offered look; turn_on => not executed: tool `turn_on` is not offered this turn
        everything: offered look, turn_on; turn_on => it is on
        after the change: offered look, help; help => help is on its way
        after the change: offered look, help; turn_on => not executed: unknown tool `turn_on`
        a late call: offered look, turn_on; turn_on => it is on
    "#]]
    .assert_eq(&printed!(dynamic_offer));
}

#[tokio::test]
async fn runtime_tool_runs() {
    expect![[r#"
        a model sees: {"query":{"type":"string"}}

        {"query":"tea"}
          the model reads: nothing found for "tea"
          the tool was given: ["api_key","query"]

        {"query":"tea","api_key":"mine"}
          the model reads: not executed: arguments could not be deserialised: unknown field `api_key`, expected `query`
    "#]].assert_eq(&printed!(runtime_tool));
}

#[tokio::test]
async fn blocking_runs() {
    expect![[r#"
        {"from": 1000, "to": 2999} => 262
        {"from": 9, "to": 1} => not executed: `from` is 9, expected at most `to`, 1
        progress of #1: 0 found before 1000
        progress of #1: 135 found before 2000
    "#]]
    .assert_eq(&printed!(blocking));
}
