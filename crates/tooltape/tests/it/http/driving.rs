//! A model behind each vendor's API does a task: parallel calls, an error, thoughts, an answer.

use serde_json::{Value, json};
use tooltape::testing::{Spy, model_conforms};
use tooltape::wire::Api;
use tooltape::{Access, Agent, Run, Stopped, Toolbox, Usage};

use super::{World, answering, looking};
use crate::fake::{End, Fake, Play, call, said, thought};

/// Looks at two places at once, fails to open a door, and says so.
fn task(api: Api) -> [Play; 3] {
    let looks = [
        thought("The hall first."),
        "I look around.".into(),
        call(api, 1, "look", r#"{"place":"hall"}"#),
        call(api, 2, "look", r#"{"place":"Küche"}"#),
    ];
    let opens = [thought("A red door."), call(api, 3, "open", r#"{"door":"red"}"#)];
    let answers = said(["The red door is stuck.".into()]);
    [Play::Turn(said(looks)), Play::Turn(said(opens)), Play::Turn(answers)]
}

async fn does_its_task(api: Api, streams: bool) {
    let (fake, world) = (Fake::start(api, task(api)).await, World::new());
    let provider = if streams { fake.provider() } else { fake.provider().whole() };
    let came = world.ask(provider).await;
    assert_eq!(fake.refused(), [""; 0], "{api}: every request keeps the rules of its API");
    let answered = came.answered.unwrap();
    assert_eq!(answered.text.as_deref(), Some("The red door is stuck."), "{api}");
    assert_eq!((answered.turns, answered.calls, answered.errors), (3, 3, 1), "{api}");
    let usage = Usage { input_tokens: 60, output_tokens: 21, cached_tokens: 12 };
    assert_eq!(answered.usage, usage, "{api}");
    assert_eq!((world.look.calls(), world.open.calls()), (2, 1), "{api}");

    let seen = fake.seen();
    assert_eq!((seen.len(), fake.left()), (3, 0), "{api}");
    let last = seen[2].body.to_string();
    for told in ["hall", "Küche", "the door is stuck"] {
        assert!(last.contains(told), "{api}: the model reads `{told}` in {last}");
    }
    let heard = world.heard.lock().unwrap();
    if streams {
        assert_eq!(heard.text, "I look around.The red door is stuck.", "{api}");
        let thoughts = if api == Api::OpenAi { "" } else { "The hall first.A red door." };
        assert_eq!(heard.reasoning, thoughts, "{api}");
        assert_eq!(heard.calls, ["look", "look", "open"], "{api}");
    }
    assert_eq!(heard.again, 0, "{api}");
}

#[tokio::test]
async fn a_model_does_its_task_streamed_through_every_api() {
    for api in Api::ALL {
        does_its_task(api, true).await;
    }
}

#[tokio::test]
async fn a_model_does_its_task_whole_through_every_api() {
    for api in Api::ALL {
        does_its_task(api, false).await;
    }
}

#[tokio::test]
async fn a_model_behind_an_api_keeps_the_promises_of_every_model() {
    for api in Api::ALL {
        let fake = Fake::start(api, [Play::Turn(looking(api)), Play::Turn(answering())]).await;
        let model = fake.provider().build().unwrap();
        model_conforms(&model, &World::new().toolbox(), "Where am I?").await;
        assert_eq!((fake.seen().len(), fake.refused()), (2, Vec::new()), "{api}");
    }
}

#[tokio::test]
async fn a_turn_that_runs_out_of_room_executes_nothing() {
    for api in Api::ALL {
        let plays = [(); 2].map(|()| Play::Turn(looking(api).ending(End::TooLong)));
        let fake = Fake::start(api, plays).await;
        for provider in super::ways(&fake) {
            let world = World::new();
            let came = world.ask(provider).await;
            let answered = came.answered.unwrap();
            assert_eq!((answered.stop, answered.errors), (Stopped::Length, 1), "{api}");
            assert_eq!((world.look.calls(), &*came.stops), (0, &["length".to_owned()][..]));
        }
    }
}

#[tokio::test]
async fn what_a_model_writes_for_the_schema_it_was_shown_is_what_the_schema_of_the_tool_wants() {
    let map = json!({
        "type": "object",
        "properties": { "places": {
            "type": "object", "additionalProperties": { "type": "integer" },
        } },
        "required": ["places"],
    });
    // Gemini has no maps, and is shown a list of entries.
    let entries = r#"{"places":[{"key":"hall","value":1}]}"#;
    let looks = said([thought("Hm."), call(Api::Gemini, 1, "count", entries)]);
    let plays = [Play::Turn(looks), Play::Turn(answering())];
    let fake = Fake::start(Api::Gemini, plays).await;
    let spy = Spy::new("count", Access::Read).declaring(|spec| spec.input(map));
    let run = Run::new(&Toolbox::new([spy.tool()]).unwrap());
    let agent = Agent::new(fake.provider().build().unwrap(), run);
    let answered = agent.ask("How many?").await.unwrap();
    assert_eq!((answered.errors, spy.calls(), fake.refused()), (0, 1, Vec::new()));

    // OpenAI has no optional properties where it is strict, and writes null for them.
    let wanted = json!({
        "type": "object",
        "properties": { "place": { "type": "string" }, "floor": { "type": "integer" } },
        "required": ["place"],
        "additionalProperties": false,
    });
    for api in [Api::OpenAi, Api::Responses] {
        let written = said([r#"{"place":"hall","floor":null}"#.into()]);
        let fake = Fake::start(api, [Play::Turn(written)]).await;
        let agent = World::new().agent(fake.provider()).answering(&wanted).unwrap();
        let answered = agent.ask("Where?").await.unwrap();
        assert_eq!(answered.value, Some(json!({ "place": "hall" })), "{api}");
        assert_eq!((answered.turns, fake.refused()), (1, Vec::new()), "{api}");
    }
}

/// Changes a request so that it breaks a rule.
type Break = fn(&mut Value);

/// The conversation in a request, wherever its API has it.
fn entries(body: &mut Value) -> &mut Vec<Value> {
    let name = ["messages", "input", "contents"].into_iter().find(|it| body.get(it).is_some());
    body[name.unwrap()].as_array_mut().unwrap()
}

#[tokio::test]
async fn the_servers_refuse_what_breaks_the_rules_of_their_apis() {
    let breaks: [(&str, Break); 6] = [
        ("an unknown field", |body| body["vendor"] = 1.into()),
        ("a reply that is missing", |body| drop(entries(body).pop())),
        ("a reply to nothing", |body| {
            let last = entries(body).last().unwrap().clone();
            entries(body).push(last);
        }),
        ("nobody asks", |body| drop(entries(body).remove(0))),
        ("an unknown role", |body| {
            let entry = &mut entries(body)[0];
            entry["role"] = "wizard".into();
        }),
        ("a tool with a name that is none", |body| {
            let named = body["tools"].to_string().replace(r#""look""#, r#""look there""#);
            body["tools"] = serde_json::from_str(&named).unwrap();
        }),
    ];
    for api in Api::ALL {
        let (fake, world) = (Fake::start(api, task(api)).await, World::new());
        world.ask(fake.provider()).await.answered.unwrap();
        let asked = fake.seen().remove(2);
        assert_eq!(fake.judge(&asked), None, "{api}");
        for (what, break_it) in breaks {
            let mut broken = asked.clone();
            break_it(&mut broken.body);
            assert!(fake.judge(&broken).is_some(), "{api} accepts {what}: {}", broken.body);
        }
        let mut forgetful = asked.clone();
        let text = asked.body.to_string().replace("hall first", "");
        let text = text.replace(&"hall first".bytes().map(hex).collect::<String>(), "");
        forgetful.body = serde_json::from_str(&text).unwrap();
        let is_told = fake.judge(&forgetful).is_some();
        assert_eq!(is_told, api != Api::OpenAi, "{api}: a thought is shown again");
    }
}

fn hex(byte: u8) -> String {
    format!("{byte:02X}")
}
