//! Keys: none, a wrong one, and the right one, which nobody but its server ever sees.

use tooltape::http::{Provider, ProviderError};
use tooltape::wire::Api;
use tooltape::{AgentError, ModelError, Secret};

use super::{World, answering, looking};
use crate::fake::{Fake, KEY, Play, Then};

/// A key that is wrong, and looks like nothing in particular.
const WRONG: &str = "correct horse battery";

/// What is wrong with the model's server, which the tape says too.
async fn wrong(provider: Provider) -> ModelError {
    let came = World::new().ask(provider).await;
    assert!(!came.tape.contains(KEY) && !came.tape.contains(WRONG), "{}", came.tape);
    match came.answered {
        Err(AgentError::Model(err)) => err,
        other => panic!("expected an error of the model, found {other:?}"),
    }
}

#[tokio::test]
async fn no_key_and_a_wrong_one_are_said_to_be_and_not_tried_again() {
    for api in Api::ALL {
        let fake = Fake::start(api, []).await;
        let err = wrong(fake.keyless()).await;
        assert!(matches!(err, ModelError::Unauthorised(_)), "{api}: {err:?}");
        let key = Secret::new(WRONG.to_owned());
        let err = wrong(fake.keyless().key(&key).unwrap()).await;
        assert!(matches!(err, ModelError::Unauthorised(_)), "{api}: {err:?}");
        assert!(!err.to_string().contains(WRONG), "{api}: {err}");
        assert_eq!(fake.seen().len(), 2, "{api}");
    }
}

#[tokio::test]
async fn an_unknown_model_and_a_refused_schema_are_said_to_be_and_not_tried_again() {
    for api in Api::ALL {
        let fake = Fake::start(api, [Play::json(400, SCHEMA)]).await;
        let err = wrong(fake.provider()).await;
        let told = "Invalid schema for function 'look'".to_owned();
        assert_eq!(err, ModelError::Rejected { status: 400, told }, "{api}");

        let unknown = Provider::new(api, "unheard-of").at(&fake.base()).unwrap();
        let err = wrong(unknown.key(&Secret::new(KEY.to_owned())).unwrap()).await;
        assert!(matches!(err, ModelError::Rejected { status: 404, .. }), "{api}: {err:?}");
        assert_eq!(fake.seen().len(), 2, "{api}");
    }
}

const SCHEMA: &str = r#"{"error":{"message":"Invalid schema for function 'look'"}}"#;

#[tokio::test]
async fn the_key_is_sent_where_its_api_has_it_and_is_nowhere_else() {
    // What a server says of a key is what it was sent.
    let echo = format!(r#"{{"error":{{"message":"the key {KEY} is over its quota"}}}}"#);
    for api in Api::ALL {
        let plays = [
            Play::json(500, &echo),
            Play::Until(looking(api), "pla", Then::Cut),
            Play::Turn(looking(api)),
            Play::Turn(answering()),
        ];
        let (fake, world) = (Fake::start(api, plays).await, World::new());
        let came = world.ask(fake.provider()).await;
        let seen = fake.seen();
        let header = if api == Api::Anthropic { "x-api-key" } else { "authorization" };
        let header = if api == Api::Gemini { "x-goog-api-key" } else { header };
        for seen in &seen {
            assert!(seen.header(header).is_some_and(|value| value.ends_with(KEY)), "{api}");
            let elsewhere = seen.headers.iter().filter(|(name, _)| name != header);
            let elsewhere = elsewhere.map(|(_, value)| value).chain([&seen.line]);
            assert!(elsewhere.into_iter().all(|text| !text.contains(KEY)), "{api}");
            assert!(!seen.body.to_string().contains(KEY), "{api}");
        }
        assert_eq!((seen.len(), came.answered.is_ok()), (4, true), "{api}");
        let heard = world.heard.lock().unwrap();
        let provider = fake.provider();
        let model = fake.provider().build().unwrap();
        let texts = [came.tape, heard.log.clone(), format!("{provider:?} {model:?}")];
        assert!(texts.iter().all(|text| !text.contains("canary")), "{api}: {texts:?}");
    }
}

/// Servers that say again what they were sent, in every way in which something can be wrong.
fn echoes(key: &str) -> [Play; 10] {
    let echo = format!(r#"{{"error":{{"message":"bad: {key}","type":"x"}}}}"#);
    [
        Play::json(401, &echo),
        Play::json(403, &echo),
        Play::json(400, &echo),
        Play::json(200, &echo),
        Play::json(200, &format!("<{key}>")),
        Play::stream(key),
        Play::stream(format!("data: {key}\n\n")),
        Play::stream(format!("data: {echo}\n\n")),
        Play::stream(format!("event: error\ndata: {echo}\n\n")),
        Play::Answer(307, vec![("location", format!("http://127.0.0.1:1/{key}"))], vec![]),
    ]
}

#[tokio::test]
async fn no_error_has_the_key_in_it() {
    for api in Api::ALL {
        // The one looks like a key, and the other like nothing.
        for key in [KEY, WRONG] {
            for play in echoes(key) {
                let fake = Fake::start(api, [play.clone()]).await.accepting(key);
                let err = wrong(fake.provider()).await;
                let told = format!("{err} {err:?}");
                assert!(!told.contains(key), "{api}, {play:?}: {told}");
                assert_eq!(fake.refused(), [""; 0], "{api}");
            }
        }
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_the_key_stays_here() {
    for api in Api::ALL {
        for status in [301, 302, 303, 307, 308] {
            let other = Fake::start(api, [Play::Turn(answering())]).await;
            let location = vec![("location", format!("{}/v1/messages", other.origin()))];
            let fake = Fake::start(api, [Play::Answer(status, location, vec![])]).await;
            let err = wrong(fake.provider()).await;
            assert!(matches!(err, ModelError::Rejected { status: found, .. } if found == status));
            assert_eq!((fake.seen().len(), other.seen().len()), (1, 0), "{api}");
        }
    }
}

#[test]
fn what_is_no_key_and_no_address_is_said_without_what_is_secret_in_it() {
    let key = Secret::new("two\nlines".to_owned());
    let provider = || Provider::new(Api::OpenAi, "gpt-5");
    assert_eq!(provider().key(&key).err(), Some(ProviderError::Key));
    let bad = [
        ("", ""),
        ("localhost", "localhost"),
        ("ftp://host/v1", "ftp://host/v1"),
        ("http://user:canary@host/v1", "http://host/v1"),
        ("http://user:can@ary@host/v1?key=canary", "http://host/v1"),
        ("https://host/v1?key=canary", "https://host/v1"),
        ("https://host/v1#canary", "https://host/v1"),
        ("user:canary@host", "host"),
    ];
    for (address, shown) in bad {
        let err = provider().at(address).unwrap_err();
        assert_eq!(err, ProviderError::Address(shown.to_owned()), "{address}");
    }
    let err = provider().proxy("http://user:canary@[bad").build().unwrap_err();
    assert!(!format!("{err} {err:?}").contains("canary"), "{err}");
}
