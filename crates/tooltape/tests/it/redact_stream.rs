//! Secrets in what comes piece by piece: wherever it is cut, they do not get through.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use proptest::prelude::*;
use serde_json::json;
use tooltape::limits::{SECRET_PART_BYTES_MIN, SECRETS_BYTES_MAX};
use tooltape::{
    Empty, Event, MemoryTape, Progress, Redactor, Run, Secret, ToolError, Toolbox, Verdict, tool,
    tools,
};

/// One way to write a secret down, by its number.
fn written(secret: &str, way: u8, before: &str) -> String {
    let hex = || secret.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let json = || serde_json::to_string(secret).unwrap();
    match way % 10 {
        0 => secret.to_owned(),
        1 => secret.chars().rev().collect(),
        2 => hex(),
        3 => hex().to_uppercase(),
        4 => STANDARD.encode(format!("{before}{secret}")),
        5 => URL_SAFE.encode(format!("{before}{secret}")),
        6 => secret.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        7 => json()[1..json().len() - 1].to_owned(),
        8 => format!("{:?}", secret.as_bytes()),
        _ => secret.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;"),
    }
}

/// The text in pieces that end there, and at the end.
fn pieces(text: &str, cuts: &[usize]) -> Vec<String> {
    let mut cuts: Vec<usize> =
        cuts.iter().map(|cut| text.floor_char_boundary(cut % (text.len() + 1))).collect();
    cuts.sort_unstable();
    let (mut pieces, mut from) = (Vec::new(), 0);
    for cut in cuts.into_iter().chain([text.len()]) {
        pieces.push(text[from..cut].to_owned());
        from = cut;
    }
    pieces
}

fn streamed(redactor: &Redactor, pieces: &[String]) -> String {
    let mut stream = redactor.stream();
    let mut shown: String = pieces.iter().map(|piece| stream.push(piece)).collect();
    shown += &stream.finish();
    shown
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn a_text_in_pieces_is_redacted_as_the_whole_text_is(
        secrets in prop::collection::vec("[abkß€&<\" \n]{6,14}", 1..4),
        parts in prop::collection::vec(
            ("[abkß€&<\" \n]{0,7}", any::<u8>(), any::<prop::sample::Index>(), any::<bool>()),
            0..12,
        ),
        cuts in prop::collection::vec(any::<usize>(), 0..40),
    ) {
        let redactor = Redactor::new(&secrets).unwrap();
        let mut text = String::new();
        for (noise, way, which, is_told) in &parts {
            text += noise;
            if *is_told {
                text += &written(which.get::<String>(&secrets), *way, noise);
            }
        }
        let pieces = pieces(&text, &cuts);
        let whole = redactor.redact(&text);
        let shown = streamed(&redactor, &pieces);
        prop_assert_eq!(&shown, &whole);
        prop_assert!(!redactor.finds(&shown), "{text:?} became {shown:?}");
        for secret in &secrets {
            for way in 0..10 {
                let form = written(secret, way, "");
                prop_assert!(!shown.contains(form.trim_end_matches('=')), "{form:?} in {shown:?}");
            }
        }
        // The same for bytes, where no character is kept whole.
        let mut stream = redactor.stream_bytes();
        let mut bytes: Vec<u8> = pieces.iter().flat_map(|it| stream.push(it.as_bytes())).collect();
        bytes.extend(stream.finish());
        prop_assert_eq!(&*bytes, &*redactor.redact_bytes(text.as_bytes()));
        prop_assert!(!redactor.finds_in(&bytes));
    }

    #[test]
    fn notes_in_pieces_never_tell_a_secret(
        secret in "[a-k]{6,20}",
        before in "[a-m ]{0,12}",
        way in 0u8..10,
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let pieces = pieces(&format!("{before}{} after", written(&secret, way, &before)), &cuts);
        let said = runtime.block_on(said(&secret, pieces.clone()));
        let redactor = Redactor::new([&secret]).unwrap();
        let joined = said.concat();
        prop_assert!(!redactor.finds(&joined), "{pieces:?} became {said:?}");
        prop_assert!(joined.contains("[redacted]"), "{pieces:?} became {said:?}");
    }
}

/// Says what it was given, piece by piece.
#[tool(Write)]
async fn chatter(
    _: Empty,
    progress: Progress,
    secret: Secret<String>,
    pieces: Pieces,
) -> Result<usize, ToolError> {
    for piece in &pieces.0 {
        progress.say(piece.clone());
        progress.emit("chunk", &json!({ "chunk": piece, "n": [piece.len()] }))?;
    }
    Ok(secret.expose().len())
}

#[derive(Clone)]
struct Pieces(Vec<String>);
impl tooltape::Grant for Pieces {}

async fn notes(secret: &str, pieces: Vec<String>) -> (Vec<String>, Vec<String>) {
    let tape = MemoryTape::default();
    let run = Run::new(&Toolbox::new(tools![chatter]).unwrap())
        .policy(|_: &_| Verdict::allow("all"))
        .grant(Secret::new(secret.to_owned()))
        .grant(Pieces(pieces))
        .tape(tape.clone());
    run.batch(tooltape::testing::proposals("chatter {}")).await.unwrap();
    let (mut said, mut emitted) = (Vec::new(), Vec::new());
    for record in tape.records(run.id()) {
        match record.event {
            Event::Progress { text, .. } => said.push(text),
            Event::Emitted { value, .. } => {
                emitted.push(value.to_value()["chunk"].as_str().unwrap().to_owned());
            }
            _ => {}
        }
    }
    (said, emitted)
}

async fn said(secret: &str, pieces: Vec<String>) -> Vec<String> {
    let (said, emitted) = notes(secret, pieces).await;
    assert_eq!(said, emitted, "events are redacted as progress is");
    said
}

#[tokio::test]
async fn a_secret_that_goes_from_one_note_to_the_next_is_told_by_neither() {
    let told = |pieces: &[&str]| pieces.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let secret = "hunter2-and-more";
    for (pieces, expected) in [
        (&["using hunter2-a", "nd-more now"][..], &["using [redacted]", "[redacted] now"][..]),
        (&["a hunt", "er2-", "and-more"], &["a [redacted]", "[redacted]", "[redacted]"]),
        // What is not the beginning of a secret is told at once, and as it is.
        (&["loading", "50 %", "done"], &["loading", "50 %", "done"]),
        // Of the beginning, so little tells nothing; the rest is hidden all the same.
        (&["the hun", "ter2-and-more"], &["the hun", "[redacted]"]),
        // What only began like it is hidden where it began.
        (&["a hunter", " and his dog"], &["a [redacted]", " and his dog"]),
        (&["erom-d", "na-2retnuh"], &["[redacted]", "[redacted]"]),
    ] {
        assert_eq!(said(secret, told(pieces)).await, expected, "{pieces:?}");
    }
    let single: Vec<String> = secret.chars().map(String::from).collect();
    let shown = said(secret, single).await;
    assert_eq!(shown.concat().replace("[redacted]", ""), secret[..SECRET_PART_BYTES_MIN - 1]);
}

#[test]
fn a_stream_holds_back_no_more_than_may_become_a_secret() {
    let redactor = Redactor::new(["correct horse"]).unwrap();
    let mut stream = redactor.stream();
    assert_eq!(stream.push("a line\n"), "a line\n");
    assert_eq!(stream.push("corr"), "");
    assert_eq!(
        stream.push("ection fluid, and many more words\n"),
        "correction fluid, and many more words\n"
    );
    assert_eq!(stream.push("€ correct horse"), "");
    assert_eq!(stream.push("correct horse\n"), "€ [redacted]\n");
    assert_eq!(stream.finish(), "");
    // Where there is no secret, nothing waits.
    assert_eq!(Redactor::default().stream().push("corr"), "corr");
}

#[test]
fn the_time_of_a_stream_is_linear_and_its_memory_bounded() {
    // The worst secret, of the greatest length, in the smallest pieces.
    let secret = "ab".repeat(2_000);
    let redactor = Redactor::new([&secret]).unwrap();
    let took = |bytes: usize| {
        let (began, mut stream, mut shown) = (Instant::now(), redactor.stream_bytes(), 0);
        (0..bytes).for_each(|at| shown += stream.push(&[b"ab"[at % 2]]).len());
        shown += stream.finish().len();
        assert!(shown < 20, "{shown} bytes were shown");
        began.elapsed()
    };
    let (one, four) = (took(50_000).max(Duration::from_millis(5)), took(200_000));
    assert!(four < 12 * one, "{one:?}, and four times as much took {four:?}");
}

#[test]
fn as_many_secrets_as_there_may_be_are_looked_for() {
    let words = (0..SECRETS_BYTES_MAX / 64).map(|at| format!("{at:064}"));
    let secrets: Vec<String> = words.collect();
    let redactor = Redactor::new(&secrets).unwrap();
    let text = format!("{} and {}", secrets[7], STANDARD.encode(&secrets[900]));
    let shown = redactor.redact(&text);
    assert!(!shown.contains(&secrets[7]) && shown.contains(" and "), "{shown}");
}
