//! What a model is asked through Chat Completions.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::model::Choice;
use crate::reply::Reply;
use crate::wire::Api;
use crate::wire::conversation::{Answered, Entry, Piece, Spoken};
use crate::wire::encode::{ANSWER, Asked, bytes, picture, words};

/// What the model says between the replies to its calls and what the user says next, where an API
/// refuses one right behind the other.
const READ: &str = "(read)";

/// Whose Chat Completions they are: they differ in small things.
#[derive(Clone, Copy, PartialEq)]
enum Server {
    OpenAi,
    Mistral,
    Other,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
}

#[derive(Default, Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    /// What the model thought, in the field that its server has for it.
    #[serde(flatten)]
    thought: Map<String, Value>,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: String,
}

impl Server {
    fn of(api: Api) -> Server {
        match api {
            Api::OpenAi => Server::OpenAi,
            Api::Mistral => Server::Mistral,
            Api::Compatible | Api::Responses | Api::Anthropic | Api::Gemini => Server::Other,
        }
    }
}

/// The body of a request.
pub(in crate::wire) fn body(asked: &Asked<'_>, entries: &[Entry<'_>]) -> Vec<u8> {
    let request = asked.request;
    let server = Server::of(asked.api);
    let instructions = request.instructions.map(|text| said("system", text.into()));
    let mut messages: Vec<Message<'_>> = instructions.into_iter().collect();
    for entry in entries {
        match entry {
            Entry::User(text) => tell(server, &mut messages, text),
            Entry::Model(spoken) => messages.push(model(server, spoken)),
            Entry::Replies(replies) => answer(asked.api, &mut messages, replies),
        }
    }
    let (is_openai, tools) = (server == Server::OpenAi, asked.tools());
    let tokens = request.output_tokens_max;
    bytes(&Body {
        model: asked.model,
        messages,
        tool_choice: choice(server, asked.choice).filter(|_| !tools.is_empty()),
        tools,
        response_format: asked.answer.as_ref().map(|answer| {
            let mut schema = json!({ "name": ANSWER, "schema": answer.compiled.schema() });
            if is_openai {
                schema["strict"] = answer.is_strict.into();
            }
            json!({ "type": "json_schema", "json_schema": schema })
        }),
        max_completion_tokens: tokens.filter(|_| is_openai),
        max_tokens: tokens.filter(|_| !is_openai),
        stream: asked.streaming,
        // Mistral tells the usage unasked, and refuses to be asked.
        stream_options: (asked.streaming && server != Server::Mistral)
            .then(|| json!({ "include_usage": true })),
    })
}

fn said<'a>(role: &'static str, content: Value) -> Message<'a> {
    Message { role, content: Some(content), ..Message::default() }
}

/// What the user says, behind the images that a tool returned if there are any.
fn tell(server: Server, messages: &mut Vec<Message<'_>>, text: &str) {
    match messages.last_mut() {
        Some(Message { role: "user", content: Some(Value::Array(parts)), .. }) => {
            parts.push(json!({ "type": "text", "text": text }));
        }
        last => {
            if server == Server::Mistral && last.is_some_and(|message| message.role == "tool") {
                messages.push(said("assistant", READ.into()));
            }
            messages.push(said("user", text.into()));
        }
    }
}

fn model<'a>(server: Server, spoken: &'a Spoken<'a>) -> Message<'a> {
    let mut message = Message { role: "assistant", ..Message::default() };
    let (mut text, mut thoughts) = (String::new(), Vec::new());
    for piece in spoken.pieces() {
        match piece {
            Piece::Text(more) => text.push_str(more),
            Piece::Call(call, _) => message.tool_calls.push(Call {
                id: &call.id,
                r#type: "function",
                function: Function {
                    name: &call.name,
                    // Others parse them to put them into a prompt.
                    arguments: match server {
                        Server::OpenAi => call.arguments.to_owned(),
                        Server::Mistral | Server::Other => call.object().get().to_owned(),
                    },
                },
            }),
            // What led to an answer of old is of no use, and some refuse it.
            Piece::Opaque(json) if spoken.is_current => {
                thoughts.extend(serde_json::from_str::<Map<String, Value>>(json));
            }
            Piece::Opaque(_) => {}
        }
    }
    let thinking = thoughts.iter_mut().find_map(|thought| thought.remove("thinking"));
    message.thought = thoughts.into_iter().flatten().collect();
    message.content = match (thinking, server) {
        (Some(thinking), _) => {
            let thinking = [json!({ "type": "text", "text": thinking })];
            let thinking = json!({ "type": "thinking", "thinking": thinking });
            let text = Some(text).filter(|text| !text.is_empty());
            let text = text.map(|text| json!({ "type": "text", "text": text }));
            Some([thinking].into_iter().chain(text).collect())
        }
        (None, Server::OpenAi) => Some(text).filter(|text| !text.is_empty()).map(Value::from),
        (None, Server::Mistral | Server::Other) => Some(text.into()),
    };
    message
}

/// The replies, and behind all of them the images, which only a user can show.
fn answer<'a>(api: Api, messages: &mut Vec<Message<'a>>, replies: &'a [Answered<'a>]) {
    let (server, mut shown) = (Server::of(api), Vec::new());
    for Answered { call, reply } in replies {
        let images = images(api, reply);
        let text = Value::from(words(api, reply));
        let content = match server {
            // Mistral takes no user between its calls and its answer, and takes images here.
            Server::Mistral if !images.is_empty() => {
                [json!({ "type": "text", "text": text })].into_iter().chain(images).collect()
            }
            Server::OpenAi | Server::Mistral | Server::Other => {
                if !images.is_empty() {
                    let told = format!("What `{}` returned for call `{}`:", call.name, call.id);
                    shown.push(json!({ "type": "text", "text": told }));
                    shown.extend(images);
                }
                text
            }
        };
        messages.push(Message {
            tool_call_id: Some(&call.id),
            name: (server != Server::OpenAi).then_some(&*call.name),
            ..said("tool", content)
        });
    }
    if !shown.is_empty() {
        messages.push(said("user", shown.into()));
    }
}

fn images(api: Api, reply: &Reply) -> Vec<Value> {
    let shown = reply.shown();
    let images = shown.iter().filter_map(|block| picture(api, block));
    let urls = images.map(|(media_type, data)| format!("data:{media_type};base64,{data}"));
    let images = urls.map(|url| match Server::of(api) {
        Server::Mistral => json!({ "type": "image_url", "image_url": url }),
        Server::OpenAi | Server::Other => {
            json!({ "type": "image_url", "image_url": { "url": url } })
        }
    });
    images.collect()
}

fn choice(server: Server, choice: Choice<'_>) -> Option<Value> {
    Some(match choice {
        Choice::Auto => return None,
        Choice::Required => match server {
            Server::Mistral => "any".into(),
            Server::OpenAi | Server::Other => "required".into(),
        },
        Choice::Tool(name) => json!({ "type": "function", "function": { "name": name } }),
        Choice::None => "none".into(),
    })
}
