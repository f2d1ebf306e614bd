//! Tools that say what they know wherever they can.

use std::time::Duration;

use serde_json::json;
use tooltape::{
    Artifacts, Block, Label, Output, Progress, Proposal, Provenance, Spawn, State, Store,
    ToolError, input, tool,
};

/// What the tools say.
#[derive(Clone)]
pub(super) struct Planted(pub(super) String);
impl tooltape::Grant for Planted {}

#[input]
pub(super) struct Where {
    /// Where to say it.
    pub(super) sink: String,
}

/// Where the reading tool says it.
pub(super) const READ: [&str; 31] = [
    "text",
    "value",
    "key",
    "nested value",
    "array",
    "json block",
    "text block",
    "two blocks",
    "link",
    "link title",
    "link type",
    "image",
    "image type",
    "details",
    "metadata",
    "told",
    "because",
    "code",
    "error details",
    "retry",
    "panic",
    "fatal told",
    "progress",
    "progress in parts",
    "event",
    "event key",
    "event in parts",
    "artifact",
    "label",
    "seen label",
    "large",
];

/// Where the writing tool says it.
pub(super) const WRITE: [&str; 6] =
    ["state", "store value", "store key", "store read", "child", "child's error"];

/// Says what it knows.
#[tool(Read)]
pub(super) async fn leak(
    args: Where,
    planted: Planted,
    progress: Progress,
    artifacts: Artifacts,
    provenance: Provenance,
) -> Result<Output, ToolError> {
    let text = planted.0.as_str();
    let block = |block: Block| Ok(Output::of(block));
    let link = |uri: &str, title: &str, media_type: &str| Block::ResourceLink {
        uri: uri.to_owned(),
        title: Some(title.to_owned()),
        media_type: Some(media_type.to_owned()),
    };
    let done = || Ok(Output::text("done"));
    match args.sink.as_str() {
        "text" => Ok(Output::text(format!("it is {text}."))),
        "value" => Output::value(&json!({ "it": text })),
        "key" => Output::value(&json!({ text: 1 })),
        "nested value" => Output::value(&json!({ "a": [{ "b": [[format!("<{text}>")]] }] })),
        "array" => Output::value(&json!([text, text])),
        "json block" => block(Block::Json { value: tooltape::Canon::of(&json!([text]))? }),
        "text block" => Ok(Output::value(&1)?.block(Block::text(text))),
        "two blocks" => {
            let middle = text.floor_char_boundary(text.len() / 2);
            Ok(Output::of(Block::text(&text[..middle])).block(Block::text(&text[middle..])))
        }
        "link" => block(link(&format!("http://host/?q={text}"), "", "")),
        "link title" => block(link("http://host", text, "")),
        "link type" => block(link("http://host", "", text)),
        "image" => {
            use base64::Engine as _;
            let data = base64::engine::general_purpose::STANDARD.encode(format!("png {text}"));
            block(Block::Image { media_type: "image/png".to_owned(), data })
        }
        "image type" => {
            block(Block::Image { media_type: text.to_owned(), data: "AAAA".to_owned() })
        }
        "details" => Ok(Output::text("done").detail(json!({ "sent": [text] }))),
        "metadata" => Ok(Output::text("done").metadata(json!({ text: text }))),
        "told" => Err(ToolError::tell(format!("no {text}"))),
        "because" => Err(ToolError::tell("no").because(format!("sent {text}"))),
        "code" => Err(ToolError::tell("no").code(text)),
        "error details" => Err(ToolError::tell("no").details(json!({ "sent": text }))),
        "retry" => Err(ToolError::retry_after(Duration::ZERO, text).because(text)),
        "panic" => panic!("it was {text}"),
        "fatal told" => Err(ToolError::in_doubt(text)),
        "progress" => {
            progress.say(format!("using {text} now"));
            done()
        }
        "progress in parts" => {
            parts(text).for_each(|part| progress.say(part));
            done()
        }
        "event" => progress.emit("used", &json!({ "with": text })).and_then(|()| done()),
        "event key" => progress.emit("used", &json!({ text: 1 })).and_then(|()| done()),
        "event in parts" => {
            parts(text).try_for_each(|part| progress.emit("part", &json!({ "part": part })))?;
            done()
        }
        "label" => Ok(Output::text("done").labelled(Label::untrusted(text))),
        "seen label" => {
            provenance.saw(&Label::untrusted(text));
            Ok(Output::text(artifacts.put("seen").await?.id.to_string()))
        }
        "artifact" => Ok(Output::text(artifacts.put(text).await?.id.to_string())),
        "large" => Ok(Output::text(format!("{}{text}{}", "x".repeat(9_000), "y".repeat(90_000)))),
        other => Err(ToolError::tell(format!("there is no `{other}`"))),
    }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    let (one, two) = (text.len() / 3, 2 * text.len() / 3);
    let [one, two] = [one, two].map(|at| text.floor_char_boundary(at));
    [&text[..one], &text[one..two], &text[two..]].into_iter()
}

/// Keeps what it knows.
#[tool(Write)]
pub(super) async fn keep(
    args: Where,
    planted: Planted,
    state: State<String>,
    store: Store,
    spawn: Spawn,
) -> Result<Output, ToolError> {
    let (text, store) = (planted.0, store.named("notes")?);
    let child = async |sink: &str| {
        let args = json!({ "sink": sink }).to_string();
        let replies = spawn.child()?.start().batch(vec![Proposal::new("n", "leak", args)]).await;
        Ok::<_, ToolError>(replies.map_err(ToolError::from)?.remove(0))
    };
    match args.sink.as_str() {
        "state" => state.update(|state| state.push_str(&text)).map(|()| Output::text("done")),
        "store value" => {
            let set = store.set("key", &json!([text])).await;
            set.map(|()| Output::text("kept"))
        }
        "store key" => store.set(&format!("key {text}"), &1).await.map(|()| Output::text("kept")),
        "store read" => {
            let read = store.get::<String>(&format!("key {text}")).await?;
            Ok(Output::text(format!("{read:?}")))
        }
        "child" => {
            let reply = child("value").await?;
            let value = reply.value.as_ref().map(tooltape::Canon::to_value);
            Output::value(&json!({ "text": reply.text(), "value": value }))
        }
        "child's error" => Err(ToolError::tell(child("told").await?.text())),
        other => Err(ToolError::tell(format!("there is no `{other}`"))),
    }
}
