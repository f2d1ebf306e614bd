//! A stream may end after any of its bytes.

use tooltape::wire::{Api, Decoder};
use tooltape::{Turn, TurnStop};

use super::recordings::streams;

/// Checks each recorded stream of an API, cut off after each of its bytes.
fn check(api: Api) {
    let Some(streams) = streams() else { return };
    let streams: Vec<_> = streams.iter().filter(|stream| stream.api() == api).collect();
    assert!(!streams.is_empty());
    for stream in streams {
        let named = stream.named();
        let mut decoder = Decoder::new(api);
        let mut turns: Vec<Turn> = Vec::new();
        let bytes = stream.response.as_bytes();
        let fed = bytes.chunks(1).enumerate().try_for_each(|(at, byte)| {
            let turn = decoder.clone().finish().unwrap_or_else(|err| panic!("{named}: {err}"));
            if turns.last() != Some(&turn) {
                // Nothing is executed before the provider said why the model stopped, in an event
                // that lacks no more than its blank line.
                let is_cut = turn.stop == TurnStop::Cut;
                let is_line = bytes[..at].ends_with(b"\n") || bytes[..at].ends_with(b"\r");
                assert!(is_cut || is_line || decoder.stop_reason().is_some(), "{named}");
                turns.push(turn);
            }
            decoder.feed(byte, &mut |_| {})
        });
        let (Ok(()), Ok(whole)) = (&fed, decoder.finish()) else {
            assert!(stream.expect.is_none(), "{named}: {fed:?}");
            continue;
        };
        // Some say twice that they stop, and go on in between.
        let stops = stream.response.matches("\"finishReason\"").count();
        assert!(stops <= 1 || whole.proposals.is_empty(), "{named}");
        turns.iter().for_each(|turn| assert_begins(turn, &whole, stops > 1, &named));
    }
}

/// A turn that was cut off is the beginning of the whole one.
fn assert_begins(cut: &Turn, whole: &Turn, goes_on: bool, named: &str) {
    let text = |turn: &Turn| turn.text.as_deref().unwrap_or_default().to_owned();
    assert!(text(whole).starts_with(&text(cut)), "{named}");
    assert!(cut.proposals.len() <= whole.proposals.len(), "{named}");
    for (proposal, whole) in cut.proposals.iter().zip(&whole.proposals) {
        assert!(whole.text().starts_with(&**proposal.text()), "{named}");
        assert!(whole.name.starts_with(&*proposal.name), "{named}");
        assert!(whole.id.starts_with(&*proposal.id), "{named}");
    }
    if cut.stop != TurnStop::Cut && !goes_on {
        assert_eq!((cut.stop, &cut.proposals), (whole.stop, &whole.proposals), "{named}");
        assert_eq!((&cut.text, &cut.verbatim), (&whole.text, &whole.verbatim), "{named}");
    }
}

#[test]
fn no_prefix_of_a_stream_of_openai_says_more_than_was_said() {
    check(Api::OpenAi);
}

#[test]
fn no_prefix_of_a_stream_of_mistral_says_more_than_was_said() {
    check(Api::Mistral);
}

#[test]
fn no_prefix_of_a_stream_of_a_compatible_server_says_more_than_was_said() {
    check(Api::Compatible);
}

#[test]
fn no_prefix_of_a_stream_of_responses_says_more_than_was_said() {
    check(Api::Responses);
}

#[test]
fn no_prefix_of_a_stream_of_anthropic_says_more_than_was_said() {
    check(Api::Anthropic);
}

#[test]
fn no_prefix_of_a_stream_of_gemini_says_more_than_was_said() {
    check(Api::Gemini);
}
