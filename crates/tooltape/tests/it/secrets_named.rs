//! Secrets that a configuration names: only a tool that takes one has it, and only with its right.

use serde_json::json;
use tooltape::{
    Agent, Empty, Event, Grants, MemoryTape, Proposal, Redactor, Rights, Run, RunError, Script,
    Secret, SecretError, Spec, Tool, ToolError, Toolbox, Verdict, builtin, input, secret, tool,
    tool_fn, tools,
};

use crate::declaring::{over, reply};

secret! {
    /// The token of the forge.
    struct ForgeToken(String) = "forge";
}

secret! {
    /// The key that seals letters.
    struct Seal(Vec<u8>) = "seal.v2";
}

const TOKEN: &str = "ghp_0123456789";

/// Uses the token, and tells it.
#[tool(Read)]
async fn use_token(_: Empty, token: ForgeToken) -> Result<String, ToolError> {
    Ok(format!("with {}", token.expose()))
}

/// Uses the seal.
#[tool(Read)]
async fn use_seal(_: Empty, seal: Seal) -> Result<usize, ToolError> {
    Ok(seal.expose().len())
}

fn bytes(text: &str) -> Secret<Vec<u8>> {
    Secret::new(text.as_bytes().to_vec())
}

/// A tool that looks for a grant which it does not declare.
struct Thief;

impl Tool for Thief {
    fn spec(&self) -> &Spec {
        static SPEC: std::sync::OnceLock<Spec> = std::sync::OnceLock::new();
        SPEC.get_or_init(|| Spec::new("thief", "Takes what it can.").access(tooltape::Access::Read))
    }

    fn call<'a>(
        &'a self,
        _: tooltape::Args,
        grants: &'a Grants<'_>,
    ) -> tooltape::BoxFuture<'a, Result<tooltape::Output, ToolError>> {
        let forge = grants.get::<ForgeToken>().is_some();
        let any = grants.get::<Secret<String>>().is_some();
        let any = any || grants.get::<Secret<Vec<u8>>>().is_some();
        Box::pin(async move { tooltape::Output::value(&json!({ "forge": forge, "any": any })) })
    }
}

#[tokio::test]
async fn a_tool_that_takes_a_named_secret_has_it_and_nothing_shows_it() {
    let run = over(tools![use_token, use_seal]);
    let run = run.secret("forge", bytes(TOKEN)).unwrap();
    let run = run.secret("seal.v2", Secret::new(vec![0xff; 7])).unwrap();
    assert_eq!(run.held().to_string(), "secret:use:forge\nsecret:use:seal.v2");
    assert_eq!(reply(&run, "use_token", "{}").await.text(), "with [redacted]");
    assert_eq!(reply(&run, "use_seal", "{}").await.text(), "7");
    assert_eq!(format!("{:?}", ForgeToken::new(TOKEN.to_owned())), "ForgeToken(..)");
}

#[tokio::test]
async fn a_named_secret_is_redacted_where_no_tool_takes_it() {
    let run = over(builtin::tools()).secret("forge", bytes(TOKEN)).unwrap();
    // What the host adds is looked for beside it.
    let run = run.redact(Redactor::new(["hunter2-hunter2"]).unwrap());
    let args = json!({ "text": "hunter2-hunter2" }).to_string();
    let refused = reply(&run, "echo", &args).await;
    assert_eq!(refused.fault.as_ref().unwrap().code.as_ref(), "args.secret");
    let args = json!({ "text": format!("{TOKEN} ") }).to_string();
    let refused = reply(&run, "echo", &args).await;
    assert_eq!(
        refused.text(),
        "not executed: the arguments hold a secret: leave it out, a tool that needs it has it \
         already"
    );
}

#[tokio::test]
async fn a_tool_has_no_secret_whose_type_it_does_not_take() {
    // It is registered beside a tool that takes it, so the run holds it.
    let toolbox = Toolbox::new(
        tools![use_token]
            .into_iter()
            .chain([std::sync::Arc::new(Thief) as std::sync::Arc<dyn Tool>]),
    );
    let run = Run::new(&toolbox.unwrap()).policy(|_: &_| Verdict::allow("all"));
    let run = run.secret("forge", bytes(TOKEN)).unwrap();
    let run = run.grant(Secret::new(TOKEN.to_owned())).grant(bytes(TOKEN));
    let text = reply(&run, "thief", "{}").await.text();
    assert_eq!(text, r#"{"any":false,"forge":false}"#);
}

#[tokio::test]
async fn a_secret_that_is_missing_is_named_with_its_tool_before_anything_happens() {
    let run = over(tools![use_token, use_seal]);
    let err = run.batch(vec![Proposal::new("1", "use_seal", "{}")]).await.unwrap_err();
    let expected = "not executed: `use_token` needs `ForgeToken`, the secret `forge`, `use_seal` \
                    needs `Seal`, the secret `seal.v2`, which the run was not granted";
    assert_eq!(err.to_string(), expected);
    let RunError::MissingGrants(missing) = err else { panic!("{err}") };
    assert_eq!(missing[0].need.secret(), Some("forge"));
}

#[tokio::test]
async fn a_call_needs_the_right_to_use_its_secret() {
    for (rights, is_error) in
        [("", true), ("secret:use:seal.v2", true), ("secret:use:forge", false)]
    {
        let rights: Rights = rights.parse().unwrap();
        let run = over(tools![use_token]).secret("forge", bytes(TOKEN)).unwrap().rights(rights);
        let reply = reply(&run, "use_token", "{}").await;
        assert_eq!(reply.is_error, is_error, "{}", reply.text());
    }
}

#[test]
fn what_is_no_secret_is_refused() {
    let run = || over(tools![use_token]);
    let refused = |name: &str, secret: &[u8]| {
        let err: SecretError = run().secret(name, Secret::new(secret.to_vec())).err().unwrap();
        err.to_string()
    };
    assert_eq!(
        refused("forge", b"12345"),
        "a secret has 5 bytes, expected at least 6 to look for it"
    );
    let not_text = "the secret `forge` is not UTF-8, and `ForgeToken` is a text";
    assert_eq!(refused("forge", &[0xff; 9]), not_text);
    assert!(refused("a b", b"123456").contains("a-z A-Z 0-9"));
    // Nobody takes it as a text, so it need not be one.
    assert!(run().secret("other", Secret::new(vec![0xff; 9])).is_ok());
}

#[input]
struct Talking {
    /// What to say.
    text: String,
}

#[tokio::test]
async fn a_conversation_with_a_secret_in_it_is_replayed_without_it() {
    let tape = MemoryTape::default();
    let say = || {
        tool_fn(
            Spec::new("say", "Says it.").access(tooltape::Access::Read),
            async |args: Talking| Ok::<_, ToolError>(args.text),
        )
    };
    let call = json!({ "tool": "say", "args": { "text": TOKEN } });
    let turn = json!({ "say": format!("I know {TOKEN}"), "calls": [call] });
    let script = format!("{turn}\n{}\n", json!({ "say": format!("it was {TOKEN}") }));
    let run = over([say()]).secret("forge", bytes(TOKEN)).unwrap().tape(tape.clone());
    let id = run.id();
    let agent = Agent::new(Script::parse(&script).unwrap(), run);
    let answered = agent.ask(format!("is it {TOKEN}?")).await.unwrap();
    assert_eq!(answered.text.as_deref(), Some("it was [redacted]"));
    let records = tape.records(id);
    let all = serde_json::to_string(&records).unwrap();
    assert!(!all.contains(TOKEN), "{all}");
    let turns = records.iter().filter(|it| matches!(it.event, Event::Turn(_))).count();
    assert_eq!(turns, 2);
    // Whoever plays it again needs no secret, and comes to the same.
    let toolbox = Toolbox::new([say()]).unwrap();
    let report = tooltape::Replay::of(&tape, id).with(&toolbox).check().await.unwrap();
    assert!(report.is_same(), "{report}");
}
