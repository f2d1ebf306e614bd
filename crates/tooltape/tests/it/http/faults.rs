//! What goes wrong on the way: what passes is tried again, what does not is said, nothing is half.

use std::time::Duration;

use tooltape::http::{PAUSE_MAX, Provider};
use tooltape::wire::Api;
use tooltape::{AgentError, ModelError, Stopped};

use super::{World, answering, looking, ways};
use crate::fake::{Fake, Play, Then, hurried};

/// A server that does this first, and is good from then on.
async fn good_after(api: Api, faults: impl IntoIterator<Item = Play>) -> Fake {
    let good = [Play::Turn(looking(api)), Play::Turn(answering())];
    Fake::start(api, faults.into_iter().chain(good)).await
}

/// Each API survives this, streamed and whole, with so many requests that were in vain.
async fn is_survived(fault: impl Fn(Api) -> Vec<Play>) {
    for api in Api::ALL {
        for streams in [true, false] {
            let (faults, world) = (fault(api), World::new());
            let requests = faults.len() + 2;
            let fake = good_after(api, faults).await;
            let [streamed, whole] = ways(&fake);
            let provider = if streams { streamed } else { whole };
            world.survives(&fake, provider, requests).await;
            assert_eq!(world.heard.lock().unwrap().again, requests - 2, "{api}");
        }
    }
}

/// Asks a server that does only this. What it is told, and how often it was asked, is returned.
async fn failure(provider: Provider, fake: &Fake) -> (ModelError, usize) {
    let world = World::new();
    let came = world.ask(provider).await;
    assert_eq!((world.look.calls(), came.stops.len()), (0, 0));
    match came.answered {
        Err(AgentError::Model(err)) => {
            let last = came.tape.lines().last().unwrap();
            // What may fare better later can be resumed.
            let end = if err.is_passing() { "run.paused" } else { "run.ended" };
            assert!(last.contains(end), "{last}");
            (err, fake.seen().len())
        }
        other => panic!("expected an error of the model, found {other:?}"),
    }
}

fn refused(status: u16, headers: &[(&'static str, &str)]) -> Play {
    let body = r#"{"error":{"message":"Try again later.","type":"overloaded_error"}}"#;
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned()));
    Play::Answer(status, headers.collect(), body.into())
}

#[tokio::test]
async fn a_server_that_is_busy_or_broken_is_asked_again() {
    for status in [408, 409, 429, 500, 502, 503, 504, 529] {
        is_survived(|_| vec![refused(status, &[])]).await;
    }
    is_survived(|_| vec![Play::html(502)]).await;
    is_survived(|_| vec![Play::Close, refused(500, &[])]).await;
}

#[tokio::test]
async fn a_server_that_says_how_long_to_wait_is_left_alone_for_as_long() {
    // Who would wait an hour on its own waits no longer than it is told.
    let mut waits = hurried();
    waits.pause = Duration::from_secs(3_600);
    let told: [(&[(&str, &str)], u64); 3] = [
        (&[("retry-after-ms", "60"), ("retry-after", "50")], 60),
        (&[("retry-after", "0.04")], 40),
        (&[("retry-after", "0")], 0),
    ];
    for (headers, ms) in told {
        let fake = good_after(Api::Anthropic, [refused(429, headers)]).await;
        World::new().survives(&fake, fake.provider().waits(waits), 3).await;
        let seen = fake.seen();
        assert!(seen[1].at - seen[0].at >= Duration::from_millis(ms), "{headers:?}");
    }
}

#[tokio::test]
async fn a_server_that_wants_to_be_left_alone_for_long_is() {
    for api in Api::ALL {
        let longer = (PAUSE_MAX.as_secs() + 1).to_string();
        let fake = Fake::start(api, [refused(429, &[("retry-after", &longer)])]).await;
        let (err, requests) = failure(fake.provider(), &fake).await;
        let busy = ModelError::Busy { status: 429, told: "Try again later.".into() };
        assert_eq!((err, requests), (busy, 1), "{api}");
    }
}

#[tokio::test]
async fn a_server_is_asked_so_often_and_no_more() {
    for api in Api::ALL {
        let fake = Fake::start(api, [(); 9].map(|()| refused(529, &[]))).await;
        let (err, requests) = failure(fake.provider(), &fake).await;
        let busy = ModelError::Busy { status: 529, told: "Try again later.".into() };
        assert_eq!((err, requests), (busy, 3), "{api}");

        let fake = Fake::start(api, [(); 9].map(|()| Play::Close)).await;
        let (err, requests) = failure(fake.provider(), &fake).await;
        assert!(matches!(err, ModelError::Unreachable(_)), "{api}: {err}");
        assert_eq!(requests, 3, "{api}");
    }
}

#[tokio::test]
async fn nobody_at_an_address_is_no_model() {
    let gone = Fake::start(Api::OpenAi, []).await;
    let provider = gone.provider();
    let base = gone.base();
    drop(gone);
    let other = Fake::start(Api::OpenAi, []).await;
    let (err, requests) = failure(provider.at(&base).unwrap(), &other).await;
    assert!(matches!(err, ModelError::Unreachable(_)), "{err}");
    assert_eq!(requests, 0);
}

#[tokio::test]
async fn a_server_that_falls_silent_is_given_up_and_asked_again() {
    let mut waits = hurried();
    waits.silence = Duration::from_millis(150);
    for api in Api::ALL {
        for streams in [true, false] {
            let hang = Play::Until(looking(api), "I loo", Then::Hang);
            let fake = good_after(api, [Play::Hang, hang]).await;
            let provider = fake.provider().waits(waits);
            let provider = if streams { provider } else { provider.whole() };
            World::new().survives(&fake, provider, 4).await;
            fake.until_closed(2).await;
        }
    }
}

#[tokio::test]
async fn a_server_that_closes_connections_without_a_word_is_asked_on_another() {
    let mut waits = hurried();
    waits.attempts = 1;
    for api in Api::ALL {
        let fake =
            Fake::start(api, [Play::Leaving(looking(api)), Play::Leaving(answering())]).await;
        World::new().survives(&fake, fake.provider().waits(waits), 2).await;
    }
}

#[tokio::test]
async fn a_server_that_is_slow_is_waited_for() {
    let mut waits = hurried();
    waits.silence = Duration::from_millis(120);
    for api in Api::ALL {
        let fake = Fake::start(api, [Play::Slowly(looking(api)), Play::Slowly(answering())]).await;
        World::new().survives(&fake, fake.provider().waits(waits), 2).await;
    }
}

#[tokio::test]
async fn a_turn_that_takes_too_long_is_given_up_whatever_its_server_says() {
    let mut waits = hurried();
    waits.turn = Duration::from_millis(200);
    for api in Api::ALL {
        let kind = vec![("content-type", "text/event-stream".to_owned())];
        let fake = Fake::start(api, [Play::Endlessly(200, kind, b": wait\n\n".to_vec())]).await;
        let (err, requests) = failure(fake.provider().waits(waits), &fake).await;
        let late = ModelError::Unreachable("no turn within 200ms".into());
        assert_eq!((err, requests), (late, 1), "{api}");
        fake.until_closed(1).await;
    }
}

#[tokio::test]
async fn a_turn_that_is_cut_off_is_asked_for_again_and_executed_once() {
    for mark in ["I loo", "pla"] {
        for then in [Then::Cut, Then::CutBehind] {
            is_survived(|api| vec![Play::Until(looking(api), mark, then)]).await;
        }
    }
}

#[tokio::test]
async fn a_turn_that_is_always_cut_off_executes_nothing_and_says_so() {
    for api in Api::ALL {
        let cut = Play::Until(looking(api), "pla", Then::CutBehind);
        let fake = Fake::start(api, [(); 9].map(|()| cut.clone())).await;
        let world = World::new();
        let came = world.ask(fake.provider()).await;
        let answered = came.answered.unwrap();
        assert_eq!((answered.stop, &*came.stops), (Stopped::Cut, &["cut".to_owned()][..]));
        assert_eq!((world.look.calls(), fake.seen().len()), (0, 3), "{api}");
        // What was said until then is not lost.
        assert!(came.tape.contains("I look around."), "{api}: {}", came.tape);
        assert_eq!(answered.errors, answered.calls, "{api}: no call of it ran");

        let fake = Fake::start(api, [(); 9].map(|()| cut.clone())).await;
        let (err, requests) = failure(fake.provider().whole(), &fake).await;
        assert!(matches!(err, ModelError::Unreachable(_)), "{api}: {err}");
        assert_eq!(requests, 3, "{api}");
    }
}

#[tokio::test]
async fn what_is_no_answer_of_the_api_is_said_and_not_asked_for_again() {
    let garbage: Vec<u8> =
        (0..4_096_u32).map(|it| (it.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let strange = [
        Play::html(200),
        Play::stream(garbage.clone()),
        Play::Answer(200, vec![], garbage),
        Play::stream("data: {\"half\": \n\n"),
        Play::json(200, "[]"),
        Play::json(200, "null"),
    ];
    for api in Api::ALL {
        for play in &strange {
            let fake = Fake::start(api, [play.clone()]).await;
            let (err, requests) = failure(fake.provider(), &fake).await;
            assert!(matches!(err, ModelError::Garbled(_)), "{api}, {play:?}: {err:?}");
            assert_eq!(requests, 1, "{api}");
        }
    }
}

#[tokio::test]
async fn what_never_ends_is_not_listened_to() {
    for streams in [true, false] {
        let kind = if streams { "text/event-stream" } else { "application/json" };
        let kind = vec![("content-type", kind.to_owned())];
        let more = if streams { b"data: [[[[".repeat(50_000) } else { vec![b' '; 1 << 20] };
        let fake = Fake::start(Api::Responses, [Play::Endlessly(200, kind, more)]).await;
        let provider = fake.provider();
        let provider = if streams { provider } else { provider.whole() };
        let (err, requests) = failure(provider, &fake).await;
        assert!(matches!(&err, ModelError::Garbled(why) if why.contains("more than")), "{err}");
        assert_eq!(requests, 1);
        fake.until_closed(1).await;
    }
}

#[tokio::test]
async fn a_server_that_never_stops_excusing_itself_is_busy_all_the_same() {
    let page = "<p>Sorry.</p>".repeat(1_000).into_bytes();
    for api in Api::ALL {
        let fake = good_after(api, [Play::Endlessly(503, vec![], page.clone())]).await;
        World::new().survives(&fake, fake.provider(), 3).await;
        fake.until_closed(1).await;
    }
}
