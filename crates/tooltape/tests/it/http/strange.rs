//! What servers say that nobody would expect, and what becomes of it.

use tooltape::wire::Api;
use tooltape::{AgentError, ModelError, Stopped};

use super::{World, answering, looking, ways};
use crate::fake::{End, Fake, Part, Play, call, said};

/// What a server says when it fails in the midst of an answer, if it is overloaded or if the
/// request is at fault.
fn told_in_band(api: Api, is_passing: bool) -> String {
    match (api, is_passing) {
        (Api::OpenAi | Api::Mistral | Api::Compatible, true) => {
            "data: {\"error\":{\"code\":500,\"message\":\"boo\",\"type\":\"server_error\"}}\n\n"
        }
        (Api::OpenAi | Api::Mistral | Api::Compatible, false) => {
            "data: {\"error\":{\"message\":\"boo\",\"type\":\"invalid_request_error\"}}\n\n"
        }
        (Api::Responses, true) => {
            "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\
             \"message\":\"boo\",\"param\":null,\"sequence_number\":3}\n\n"
        }
        (Api::Responses, false) => {
            "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":\
             {\"status\":\"failed\",\"error\":{\"code\":\"invalid_prompt\",\
             \"message\":\"boo\"}}}\n\n"
        }
        (Api::Anthropic, true) => {
            "event: error\ndata: {\"type\":\"error\",\"error\":\
             {\"type\":\"overloaded_error\",\"message\":\"boo\"}}\n\n"
        }
        (Api::Anthropic, false) => {
            "event: error\ndata: {\"type\":\"error\",\"error\":\
             {\"type\":\"invalid_request_error\",\"message\":\"boo\"}}\n\n"
        }
        (Api::Gemini, true) => {
            "data: {\"error\":{\"code\":503,\"message\":\"boo\",\"status\":\"UNAVAILABLE\"}}\n\n"
        }
        (Api::Gemini, false) => {
            "data: {\"error\":{\"code\":400,\"message\":\"boo\",\
             \"status\":\"INVALID_ARGUMENT\"}}\n\n"
        }
    }
    .to_owned()
}

/// A turn without anything in it, streamed and whole.
fn empty(api: Api) -> [Play; 2] {
    let (streamed, whole) = match api {
        Api::OpenAi | Api::Mistral | Api::Compatible => {
            ("data: {\"choices\":[]}\n\ndata: [DONE]\n\n", r#"{"choices":[]}"#)
        }
        Api::Responses => ("", r#"{"object":"response","output":[]}"#),
        Api::Anthropic => {
            ("data: {\"type\":\"message_start\",\"message\":{}}\n\n", r#"{"type":"message"}"#)
        }
        Api::Gemini => ("data: {\"usageMetadata\":{}}\n\n", r#"{"usageMetadata":{}}"#),
    };
    [Play::stream(streamed), Play::json(200, whole)]
}

#[tokio::test]
async fn an_error_in_the_midst_of_a_stream_is_as_bad_as_one_before_it() {
    for api in Api::ALL {
        let passing = Play::stream(told_in_band(api, true));
        let good = [passing, Play::Turn(looking(api)), Play::Turn(answering())];
        let fake = Fake::start(api, good).await;
        World::new().survives(&fake, fake.provider(), 3).await;

        let fake = Fake::start(api, [Play::stream(told_in_band(api, false))]).await;
        let came = World::new().ask(fake.provider()).await;
        let Err(AgentError::Model(err)) = came.answered else { panic!("{api}: an error") };
        let refused = ModelError::Rejected { status: 400, told: "boo".into() };
        assert_eq!((err, fake.seen().len()), (refused, 1), "{api}");
    }
}

#[tokio::test]
async fn events_that_nobody_knows_change_nothing() {
    for api in Api::ALL {
        let plays = [Play::Strangely(looking(api)), Play::Strangely(answering())];
        let fake = Fake::start(api, plays).await;
        World::new().survives(&fake, fake.provider(), 2).await;
    }
}

#[tokio::test]
async fn an_answer_without_anything_in_it_is_no_answer() {
    for api in Api::ALL {
        let [streamed, whole] = empty(api);
        // A stream that ends before it says anything was cut off, and is asked for again.
        let fake = Fake::start(api, [(); 9].map(|()| streamed.clone())).await;
        let came = World::new().ask(fake.provider()).await;
        let Err(AgentError::Model(err)) = came.answered else { panic!("{api}: an error") };
        assert!(matches!(err, ModelError::Unreachable(_)), "{api}: {err}");
        assert_eq!(fake.seen().len(), 3, "{api}");

        let fake = Fake::start(api, [whole]).await;
        let came = World::new().ask(fake.provider().whole()).await;
        let Err(AgentError::Model(err)) = came.answered else { panic!("{api}: an error") };
        assert!(matches!(err, ModelError::Garbled(_)), "{api}: {err}");
        assert_eq!(fake.seen().len(), 1, "{api}");
    }
}

#[tokio::test]
async fn a_model_that_has_nothing_to_say_is_done() {
    for api in Api::ALL {
        let plays = [Play::Turn(looking(api)), Play::Turn(said([]))];
        let (fake, world) = (Fake::start(api, plays).await, World::new());
        let answered = world.ask(fake.provider()).await.answered.unwrap();
        assert_eq!((answered.stop, answered.text), (Stopped::Answer, None), "{api}");
        assert_eq!((world.look.calls(), fake.seen().len()), (1, 2), "{api}");
    }
}

#[tokio::test]
async fn a_reason_to_stop_that_nobody_knows_is_not_asked_for_again_and_executes_nothing() {
    for api in Api::ALL {
        let fake = Fake::start(api, [(); 2].map(|()| odd(api))).await;
        for (asked, provider) in ways(&fake).into_iter().enumerate() {
            let world = World::new();
            let answered = world.ask(provider).await.answered.unwrap();
            assert_eq!((answered.stop, answered.errors), (Stopped::Cut, 1), "{api}");
            assert_eq!((world.look.calls(), fake.seen().len()), (0, asked + 1), "{api}");
        }
    }
}

fn odd(api: Api) -> Play {
    Play::Turn(looking(api).ending(End::Odd))
}

/// The model says this and then answers; what it reads of its calls is what its API takes.
async fn is_put_right(api: Api, parts: [Part; 2], ran: usize) {
    for way in [0, 1] {
        let plays = [Play::Turn(said(parts.clone())), Play::Turn(answering())];
        let fake = Fake::start(api, plays).await;
        let (world, [streamed, whole]) = (World::new(), ways(&fake));
        let came = world.ask([streamed, whole].into_iter().nth(way).unwrap()).await;
        assert_eq!(fake.refused(), [""; 0], "{api}");
        let answered = came.answered.unwrap();
        assert_eq!((answered.stop, answered.calls), (Stopped::Answer, 2), "{api}");
        assert_eq!((world.look.calls(), answered.errors), (ran, 2 - ran as u64), "{api}");
        assert_eq!(came.stops, ["done", "done"], "{api}");
    }
}

#[tokio::test]
async fn two_calls_with_one_id_are_two_calls() {
    for api in Api::ALL {
        let twice = ["hall", "attic"].map(|place| {
            let arguments = format!(r#"{{"place":"{place}"}}"#);
            Part::Call("call00001".into(), "look".into(), arguments)
        });
        is_put_right(api, twice, 2).await;
    }
}

#[tokio::test]
async fn a_call_without_an_id_is_given_one() {
    for api in Api::ALL {
        let nameless = Part::Call(String::new(), "look".into(), r#"{"place":"attic"}"#.into());
        let first = call(api, 1, "look", r#"{"place":"hall"}"#);
        is_put_right(api, [first, nameless], 2).await;
    }
}

#[tokio::test]
async fn a_call_without_a_name_is_answered_and_not_executed() {
    for api in Api::ALL {
        let first = call(api, 1, "look", r#"{"place":"hall"}"#);
        let nameless = call(api, 2, "", r#"{"place":"attic"}"#);
        is_put_right(api, [first, nameless], 1).await;
    }
}

#[tokio::test]
async fn arguments_that_cannot_be_read_are_answered_and_shown_again_as_the_api_takes_them() {
    // Gemini and a whole answer of Anthropic's have arguments that are JSON by themselves.
    for api in [Api::OpenAi, Api::Responses, Api::Anthropic, Api::Mistral, Api::Compatible] {
        let first = call(api, 1, "look", r#"{"place":"hall"}"#);
        let broken = call(api, 2, "look", r#"{"place":"att"#);
        let plays = [Play::Turn(said([first, broken])), Play::Turn(answering())];
        let (fake, world) = (Fake::start(api, plays).await, World::new());
        let came = world.ask(fake.provider()).await;
        assert_eq!(fake.refused(), [""; 0], "{api}");
        assert_eq!((came.answered.unwrap().errors, world.look.calls()), (1, 1), "{api}");
    }
}
