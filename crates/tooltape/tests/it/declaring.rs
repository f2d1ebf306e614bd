//! What a signature says: schema, hidden values and reading; acceptance 13 to 21, 37 and 39.

use std::sync::{Arc, Mutex};

use expect_test::expect;
use serde_json::{Value, json};
use tooltape::dialect::{Advert, Dialect, export};
use tooltape::schemars::{self, JsonSchema};
use tooltape::testing::{Spy, play, tool_conforms};
use tooltape::{
    Access, Agent, Cancel, Canon, Clock, Doc, Empty, Executed, Input, Limits, Message, Model,
    ModelError, Output, Progress, Proposal, Random, Registered, Reply, Request, Run, RunInfo,
    Secret, Spec, State, Tool, ToolError, Toolbox, Turn, Verdict, input, tool, tool_fn, tools,
};

/// A run over these tools that allows everything.
pub(crate) fn over(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Run {
    Run::new(&Toolbox::new(tools).unwrap()).policy(|_: &_| Verdict::allow("test"))
}

/// The reply to one call.
pub(crate) async fn reply(run: &Run, name: &str, arguments: &str) -> Reply {
    run.batch(vec![Proposal::new("c1", name, arguments)]).await.unwrap().remove(0)
}

#[input]
struct Add {
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
}

#[derive(serde::Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

/// Adds two numbers.
#[tool(Pure, version = "1.0.0", determinism = Deterministic, output = Sum)]
async fn add(args: Add) -> Result<Sum, ToolError> {
    Ok(Sum { sum: args.a + args.b })
}

#[input]
struct Push {
    /// The branch to push.
    branch: String,
    force: Option<bool>,
}

/// Pushes a branch.
#[tool(Write, reach = Network, needs("net:post:git.example.com"))]
async fn push(
    args: Push,
    token: Secret<String>,
    pushed: State<Vec<String>>,
    info: RunInfo,
    progress: Progress,
    cancel: Cancel,
    clock: Clock,
    random: Random,
) -> Result<Output, ToolError> {
    assert!(!cancel.is_requested());
    let _ = args.force;
    progress.say(format!("pushing as {}", token.expose()));
    let count = pushed.update(|pushed| {
        pushed.push(args.branch);
        pushed.len()
    })?;
    let details = json!({
        "token": token.expose(),
        "run": info.run().map(|run| run.to_string()),
        "at": clock.unix_us(),
        "nonce": random.next_u64(),
    });
    Ok(Output::text(format!("pushed {count}")).detail(details))
}

fn push_run() -> Run {
    over(tools![push])
        .grant(Secret::new("planted-secret".to_owned()))
        .grant(State::new(Vec::<String>::new()))
        .thread("planted-thread")
        .rights("net:post:git.example.com".parse().unwrap())
}

#[test]
fn the_schema_for_the_model_holds_only_what_the_model_may_choose() {
    expect![[r#"
        {
          "additionalProperties": false,
          "properties": {
            "branch": {
              "description": "The branch to push.",
              "type": "string"
            },
            "force": {
              "type": [
                "boolean",
                "null"
              ]
            }
          },
          "required": [
            "branch"
          ],
          "type": "object"
        }"#]]
    .assert_eq(&format!("{:#}", push::tool().spec().input));
}

#[test]
fn a_hidden_argument_is_in_neither_properties_nor_required() {
    let push = push::tool();
    let input = &push.spec().input;
    for hidden in ["token", "pushed", "info", "progress", "cancel", "clock", "random"] {
        assert!(input["properties"].get(hidden).is_none(), "`{hidden}` is a property");
        assert!(!input["required"].as_array().unwrap().contains(&json!(hidden)));
    }
}

/// A model that keeps all that it is told, and calls `push` once.
#[derive(Clone, Default)]
struct Listening(Arc<Mutex<String>>);

impl Model for Listening {
    fn turn<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> tooltape::BoxFuture<'a, Result<Turn, ModelError>> {
        let Request { messages, offer, .. } = *request;
        let mut heard = self.0.lock().unwrap();
        for tool in offer.tools() {
            let Spec { name, description, input, .. } = tool.spec();
            for dialect in Dialect::ALL {
                let exported = export(dialect, &Advert { name, description, input }).unwrap();
                heard.push_str(&exported.tool.to_string());
            }
        }
        let mut turn = Turn::calls([Proposal::new("c1", "push", r#"{"branch":"main"}"#)]);
        for message in messages {
            match message {
                Message::User(text) => heard.push_str(text),
                Message::Model(_) => turn = Turn::answer("done"),
                Message::Replies(replies) => {
                    let contents = replies.iter().map(|reply| &reply.content);
                    contents.for_each(|it| heard.push_str(&serde_json::to_string(it).unwrap()));
                }
            }
        }
        Box::pin(async { Ok(turn) })
    }
}

#[tokio::test]
async fn no_host_value_and_no_planted_secret_is_in_what_a_model_is_sent() {
    let listening = Listening::default();
    let agent = Agent::new(listening.clone(), push_run());
    let answered = agent.ask("Push main.").await.unwrap();
    assert_eq!((answered.calls, answered.errors), (1, 0));
    let heard = listening.0.lock().unwrap();
    assert!(heard.contains("Push main.") && heard.contains("pushed 1"), "it heard: {heard}");
    let run = agent.run().id().to_string();
    for hidden in ["planted-secret", "planted-thread", &run, "nonce", "git.example.com"] {
        assert!(!heard.contains(hidden), "the model was told `{hidden}`");
    }
    for grant in push::tool().spec().needs.iter().map(|need| need.name()) {
        assert!(!heard.contains(&grant), "the model was told of a `{grant}`");
    }
}

#[tokio::test]
async fn a_value_for_a_hidden_argument_never_reaches_the_tool() {
    let reply = reply(&push_run(), "push", r#"{"branch":"main","token":"stolen"}"#).await;
    let told = "not executed: arguments could not be deserialised: unknown field `token`, \
                expected one of `branch`, `force`";
    assert_eq!(reply.text(), told);
    assert_eq!(reply.executed, Executed::NotExecuted);
}

#[tokio::test]
async fn a_result_that_breaks_the_output_schema_is_flagged() {
    let spec = Spec::new("sum", "Sums.").output(json!({ "type": "object", "required": ["sum"] }));
    let sum = tool_fn(spec, async |_: Empty| Ok::<_, ToolError>(json!({ "total": 5 })));
    let reply = reply(&over([sum]), "sum", "{}").await;
    assert!(reply.is_error);
    assert_eq!(reply.executed, Executed::Executed, "the truth about the effect stays");
    assert_eq!(&*reply.fault.as_ref().unwrap().code, "output.invalid");
    assert_eq!(
        reply.value.as_ref().unwrap().as_str(),
        r#"{"total":5}"#,
        "the application sees the value"
    );
}

#[test]
fn a_typed_tools_schema_comes_from_its_argument_type_alone() {
    let by_closure =
        tool_fn(Spec::new("add", "Adds."), async |args: Add| Ok::<_, String>(args.a + args.b));
    assert_eq!(by_closure.spec().input, add::tool().spec().input);
    assert_eq!(add::tool().spec().input["properties"]["a"]["description"], "The first number.");
    assert_eq!(add::tool().spec().output.as_ref().unwrap()["required"], json!(["sum"]));
}

#[tokio::test]
async fn a_typed_adder_of_two_and_three_returns_exactly_its_sum() {
    let reply = reply(&over(tools![add]), "add", r#"{"a":2,"b":3}"#).await;
    assert_eq!(reply.value.as_ref().unwrap().as_str(), r#"{"sum":5}"#);
    assert_eq!(add(Add { a: 2, b: 3 }).await.unwrap().sum, 5, "the function stays a function");
    tool_conforms(add::tool(), |run| run, &[r#"{"a":2,"b":3}"#]).await;
}

/// How to go through a list.
#[input]
#[derive(Clone, Copy, Debug, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Order {
    Up,
    Down,
}

#[input]
#[allow(dead_code, reason = "it is only read")]
struct Listing {
    count: u8,
    #[serde(default)]
    order: Option<Order>,
    #[serde(rename = "from-page", default)]
    from: u32,
    inner: Vec<Listing>,
}

/// Changes a text.
#[input]
#[allow(dead_code, reason = "it is only shown")]
#[derive(Debug)]
#[serde(tag = "action", rename_all = "snake_case")]
enum Edit {
    /// Puts a text somewhere.
    Insert { at: u64, text: String },
    /// Takes everything out.
    Clear,
    /// Goes on with another edit.
    Then(Next),
}

#[input]
#[allow(dead_code, reason = "it is only shown")]
#[derive(Debug)]
struct Next {
    times: u8,
}

/// Whether a document passes the schema, and whether it is read.
fn verdicts<I: Input>(text: &str) -> (bool, bool) {
    let tool = tool_fn(Spec::new("any", "Any."), async |_: I| Ok::<_, ToolError>(()));
    let registered = Registered::new(tool).unwrap();
    let doc = Doc::read(text, &Limits::default()).unwrap();
    let passes = registered.input().check(&doc).is_ok();
    let read = registered.spec().hooks.read.as_ref().unwrap();
    (passes, read(&Canon::of(&serde_json::from_str::<Value>(text).unwrap()).unwrap()).is_ok())
}

#[test]
fn what_the_schema_requires_the_parser_requires_and_the_reverse() {
    let listings = [
        (r#"{"count":1,"inner":[]}"#, true),
        (r#"{"count":1,"inner":[{"count":2,"inner":[]}],"order":"up","from-page":3}"#, true),
        (r#"{"count":1,"inner":[],"order":null}"#, true),
        (r#"{"inner":[]}"#, false),
        (r#"{"count":1}"#, false),
        (r#"{"count":256,"inner":[]}"#, false),
        (r#"{"count":-1,"inner":[]}"#, false),
        (r#"{"count":1.5,"inner":[]}"#, false),
        (r#"{"count":"1","inner":[]}"#, false),
        (r#"{"count":1,"inner":null}"#, false),
        (r#"{"count":1,"inner":[],"order":"Up"}"#, false),
        (r#"{"count":1,"inner":[],"from-page":null}"#, false),
        (r#"{"count":1,"inner":[],"from":3}"#, false),
        (r#"{"count":1,"inner":[{"count":2}]}"#, false),
    ];
    for (text, fits) in listings {
        assert_eq!(verdicts::<Listing>(text), (fits, fits), "{text}");
    }
    let edits = [
        (r#"{"action":"insert","at":0,"text":"a"}"#, true),
        (r#"{"action":"clear"}"#, true),
        (r#"{"action":"then","times":2}"#, true),
        (r#"{"action":"insert","at":0}"#, false),
        (r#"{"action":"erase"}"#, false),
        (r#"{"at":0,"text":"a"}"#, false),
        (r#"{"action":"insert","at":0,"text":"a","more":1}"#, false),
        (r#"{"action":"then","times":2,"more":1}"#, false),
        (r#"{"action":"clear","at":0}"#, false),
    ];
    for (text, fits) in edits {
        assert_eq!(verdicts::<Edit>(text).0, fits, "{text}");
        // Serde takes unknown fields beside a unit variant; the schema alone refuses those.
        let read = fits || text.contains(r#""clear","at""#);
        assert_eq!(verdicts::<Edit>(text).1, read, "{text}");
    }
}

#[input(check)]
struct Page {
    from: u32,
    #[schemars(range(min = 1))]
    to: u32,
}

impl Page {
    fn check(&self) -> Result<(), String> {
        match self.from <= self.to {
            true => Ok(()),
            false => Err(format!("`from` is {}, expected at most {}", self.from, self.to)),
        }
    }
}

#[input]
#[allow(dead_code, reason = "it is only read")]
struct Flat {
    query: String,
    #[serde(flatten)]
    page: Page,
}

#[test]
fn attributes_of_serde_and_schemars_hold_for_schema_and_parser() {
    assert_eq!(verdicts::<Flat>(r#"{"query":"a","from":1,"to":2}"#), (true, true));
    assert_eq!(verdicts::<Flat>(r#"{"query":"a","from":1}"#), (false, false));
    assert_eq!(verdicts::<Flat>(r#"{"query":"a","from":1,"to":2,"more":3}"#), (false, false));
    assert_eq!(verdicts::<Page>(r#"{"from":0,"to":0}"#), (false, true), "a range is schema only");
}

#[tokio::test]
async fn an_input_checks_itself_while_the_call_is_resolved() {
    let ran = Arc::new(Mutex::new(0));
    let counts = ran.clone();
    let pages = tool_fn(Spec::new("pages", "Counts pages."), move |page: Page| {
        *counts.lock().unwrap() += 1;
        async move { Ok::<_, ToolError>(page.to - page.from) }
    });
    let run = over([pages]);
    let refused = reply(&run, "pages", r#"{"from":9,"to":1}"#).await;
    assert_eq!(refused.text(), "not executed: `from` is 9, expected at most 1");
    assert_eq!(&*refused.fault.as_ref().unwrap().code, "args.refused");
    assert_eq!(*ran.lock().unwrap(), 0);
    assert_eq!(reply(&run, "pages", r#"{"from":1,"to":9}"#).await.text(), "8");
}

#[tokio::test]
async fn a_tagged_enum_is_an_input() {
    let spec = Spec::new("edit", "Edits.");
    let edit = tool_fn(spec, async |edit: Edit| Ok::<_, ToolError>(format!("{edit:?}")));
    let run = over([edit]);
    let script = r#"
        edit {"action":"insert","at":1,"text":"x"}
        edit {"action":"clear"}
        edit {"action":"then","times":2}
        edit {"action":"eat"}
    "#;
    expect![[r#"
        c1 Insert { at: 1, text: "x" }
        c2 Clear
        c3 Then(Next { times: 2 })
        c4 not executed: arguments could not be deserialised: /action: `eat` is not allowed, expected one of `insert`, `clear`, `then`
    "#]].assert_eq(&play(&run, script).await);
}

#[test]
fn a_typed_tool_shows_itself_through_the_erased_interface() {
    let erased: Arc<dyn Tool> = add::tool();
    let spec = erased.spec();
    assert_eq!((&*spec.name, &*spec.version), ("add", "1.0.0"));
    assert_eq!(&*spec.description, "Adds two numbers.");
    assert_eq!(spec.input["required"], json!(["a", "b"]));
    assert!(std::ptr::eq(spec, erased.spec()), "it is made once");
}

#[test]
fn input_and_output_schemas_are_there_as_text_for_every_tool() {
    let mut tools = Vec::from(tools![add, push]);
    tools.extend(tooltape::builtin::tools());
    for tool in Toolbox::new(tools).unwrap().tools() {
        let Spec { input, output, .. } = tool.spec();
        for schema in [Some(input), output.as_ref()].into_iter().flatten() {
            let text = schema.to_string();
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), *schema);
        }
    }
}

#[tokio::test]
async fn erased_and_typed_tools_live_in_one_toolbox() {
    let erased = Spy::new("erased", Access::Read);
    let [add, erased_tool] = [add::tool(), erased.tool()];
    let replies = play(&over([add, erased_tool]), "erased {\"n\":1}\nadd {\"a\":1,\"b\":1}").await;
    assert_eq!(replies, "c1 {\"n\":1}\nc2 {\"sum\":2}\n");
    assert_eq!(erased.calls(), 1);
}
