//! Secrets in what leaves a run: acceptance 52, and every echo that can be found.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::json;
use tooltape::limits::{OUTPUT_BYTES_DEFAULT, SECRET_BYTES_MIN, SECRETS_BYTES_MAX, TOLD_BYTES_MAX};
use tooltape::{
    Access, ArtifactId, Artifacts, Block, Effects, Empty, Event, FromTape, MemoryTape, Output,
    Progress, RedactError, Redactor, Reply, Retry, Run, RunError, Secret, Spec, State, Tool,
    ToolError, builtin, tool, tool_fn, tools,
};

use crate::declaring::{over, reply};

/// Nothing else in a tape or a reply looks like it.
const SECRET: &str = "sk-Canary/7+é\"q\\ z";

fn secret() -> Secret<String> {
    Secret::new(SECRET.to_owned())
}

/// What a tool returns.
type Leak = fn() -> Result<Output, ToolError>;

/// A tool `tool` that returns what the function makes.
fn tool_of(output: Leak) -> Arc<dyn Tool> {
    let spec = Spec::new("tool", "Leaks.").access(Access::Read);
    tool_fn(spec, move |_: Empty| async move { output() })
}

/// Asserts that nothing on a tape shows the secret.
fn assert_unrecorded(tape: &MemoryTape, run: &Run) {
    let records = tape.records(run.id());
    assert!(!records.is_empty());
    for record in records {
        let shown = format!("{record:?}\n{}", serde_json::to_string(&record).unwrap());
        for trace in [SECRET, "sk-C", "Canary", "yranaC"] {
            assert!(!shown.contains(trace), "`{trace}` is on the tape: {shown}");
        }
    }
}

/// Says its secret wherever it can.
#[tool(Write)]
async fn leak(
    _args: Empty,
    secret: Secret<String>,
    progress: Progress,
    state: State<String>,
) -> Result<Output, ToolError> {
    let text = secret.expose();
    progress.say(format!("using {text}"));
    progress.say(format!("{}{text}", "x".repeat(4_090)));
    progress.emit("used", &json!({ "key": text, text: [text] }))?;
    state.update(|state| state.push_str(text))?;
    let link = Block::ResourceLink {
        uri: format!("http://host/?key={text}"),
        title: Some(text.clone()),
        media_type: None,
    };
    let output = Output::value(&json!({ "header": format!("Bearer {text}") }))?;
    let output = output.block(Block::text(format!("Bearer {text}"))).block(link);
    Ok(output.detail(json!({ "sent": text })).metadata(json!({ "also": [text] })))
}

#[tokio::test]
async fn a_planted_secret_is_in_nothing_that_leaves_and_the_application_sees_its_value() {
    let tape = MemoryTape::default();
    let run = over(tools![leak]).grant(secret()).grant(State::new(String::new()));
    let run = run.tape(tape.clone());
    let reply = reply(&run, "leak", "{}").await;
    assert_eq!(reply.text(), "Bearer [redacted]\n[resource: http://host/?key=[redacted]]");
    assert_eq!(reply.metadata.as_deref(), Some(&json!({ "also": ["[redacted]"] })));
    assert_eq!(reply.value.as_ref().unwrap().to_value()["header"], format!("Bearer {SECRET}"));
    assert_eq!(reply.details.as_deref(), Some(&json!({ "sent": SECRET })));
    assert!(!format!("{:?}", reply.shown()).contains("Canary"));
    assert_unrecorded(&tape, &run);
}

#[tokio::test]
async fn a_failure_tells_no_secret_to_anybody() {
    let failures: [Leak; 4] = [
        || Err(ToolError::tell(format!("no {SECRET}")).because(format!("sent {SECRET}"))),
        || Err(ToolError::fatal(SECRET).code(SECRET).details(json!({ "sent": SECRET }))),
        || panic!("{SECRET}"),
        // The end of what the model reads falls into the secret.
        || Err(ToolError::tell(format!("{}{SECRET}", "x".repeat(TOLD_BYTES_MAX - 22)))),
    ];
    for failure in failures {
        let tape = MemoryTape::default();
        let run = over([tool_of(failure)]).grant(secret()).tape(tape.clone());
        let replies = match run.batch(tooltape::testing::proposals("tool {}")).await {
            Err(RunError::Ended { why, replies }) => {
                assert!(!why.contains("Canary"), "{why}");
                replies
            }
            replies => replies.unwrap(),
        };
        assert!(!replies[0].text().contains("sk-"), "{}", replies[0].text());
        assert!(!format!("{:?}", replies[0].fault).contains("Canary"));
        assert_unrecorded(&tape, &run);
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_tried_again_tells_no_secret() {
    let mut spec = Spec::new("tool", "Fails.").effects(Effects::read());
    spec.retry = Retry { attempts: 3, ..Retry::default() };
    let tool = tool_fn(spec, async |_: Empty| {
        // The end of what the tape keeps falls into the secret.
        let told = format!("{}{SECRET}", "x".repeat(TOLD_BYTES_MAX - 12));
        Err::<u8, _>(ToolError::retry_after(Duration::ZERO, told).code(SECRET).because(SECRET))
    });
    let tape = MemoryTape::default();
    let run = over([tool]).grant(secret()).tape(tape.clone());
    assert!(reply(&run, "tool", "{}").await.is_error);
    let records = tape.records(run.id());
    let retried = records.iter().filter(|it| matches!(it.event, Event::Retried { .. }));
    assert_eq!(retried.count(), 2);
    assert_unrecorded(&tape, &run);
}

#[tokio::test]
async fn a_secret_is_neither_in_an_artifact_nor_cut_in_half() {
    // Wherever the head ends, in the secret or beside it, no part of it is shown.
    let room = OUTPUT_BYTES_DEFAULT as usize / 2;
    for before in (room - 140..room).step_by(7) {
        let spec = Spec::new("tool", "Leaks.").access(Access::Read);
        let tool = tool_fn(spec, move |_: Empty| async move {
            let text = format!("{}{SECRET}{}", "x".repeat(before), "y".repeat(60_000));
            Ok::<_, ToolError>(text)
        });
        let run = over([tool]).grant(secret());
        let reply = reply(&run, "tool", "{}").await;
        assert!(!reply.text().contains("sk-"), "with {before} bytes before it");
        let kept = run.artifacts().get(ArtifactId(reply.artifacts[0])).await.unwrap();
        let kept = str::from_utf8(&kept).unwrap();
        assert!(kept.contains("x[redacted]y") && !kept.contains("Canary"));
        assert!(reply.value.as_ref().unwrap().parse::<String>().unwrap().contains(SECRET));
    }
}

#[test]
fn every_form_of_a_secret_that_can_be_found_is_found() {
    let redactor = Redactor::new([SECRET]).unwrap();
    let percent = |kept: &str, upper: bool| -> String {
        let encode = |byte: u8| match char::from(byte) {
            kept_char if byte.is_ascii_alphanumeric() || kept.contains(kept_char) => {
                kept_char.to_string()
            }
            _ if upper => format!("%{byte:02X}"),
            _ => format!("%{byte:02x}"),
        };
        SECRET.bytes().map(encode).collect()
    };
    let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
    let json = serde_json::to_string(SECRET).unwrap();
    let mut forms = vec![
        SECRET.to_owned(),
        SECRET.chars().rev().collect(),
        hex.to_uppercase(),
        hex,
        percent("-._~", true),
        percent("-._~", false),
        percent("-._~!*'()", true),
        percent("-._*", true).replace("%20", "+"),
        SECRET.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        json[1..json.len() - 1].to_owned(),
        json[1..json.len() - 1].replace('/', "\\/"),
        json[1..json.len() - 1].replace('é', "\\u00e9"),
        json[1..json.len() - 1].replace('é', "\\u00E9"),
        SECRET.replace('"', "&quot;"),
    ];
    for (before, behind) in [("", ""), ("a", "bc"), ("ab", "c"), ("abc", ""), ("user:", ":end")] {
        let text = format!("{before}{SECRET}{behind}");
        forms.push(STANDARD.encode(&text));
        forms.push(URL_SAFE_NO_PAD.encode(&text));
    }
    for form in forms {
        let text = format!("before {form} behind");
        let redacted = redactor.redact(&text);
        assert!(redacted.contains("[redacted]"), "`{form}` was not found");
        // Of base64, the characters on either side may belong to what stands beside the secret.
        assert!(redacted.len() < "before [redacted] behind".len() + 16, "{redacted}");
    }
}

#[test]
fn overlapping_secrets_leave_no_part_of_either() {
    let redactor = Redactor::new(["abcdefgh", "efghijkl", "cdefgh"]).unwrap();
    assert_eq!(redactor.redact("_abcdefghijkl_"), "_[redacted]_");
    assert_eq!(redactor.redact("_abcdefgh_efghijkl_"), "_[redacted]_[redacted]_");
    assert_eq!(redactor.redact("abcdefg"), "abcdefg");
    // Bytes that are no text are found in text too, and no character is broken.
    let bytes = Redactor::new([&"é€𝄞"[..].as_bytes()[1..8]]).unwrap();
    assert_eq!(bytes.redact("aé€𝄞b"), "a[redacted]b");
}

#[tokio::test]
async fn secrets_in_json_leave_json() {
    let values: [(Leak, &str); 4] = [
        (
            || Output::value(&json!({ "a": [12345678, -0.5], "b": true })),
            r#"{"a":["[redacted]",-0.5],"b":true}"#,
        ),
        (
            || Output::value(&json!({ "12345678": 1, "x12345678": 2 })),
            r#"{"[redacted]":1,"x[redacted]":2}"#,
        ),
        // Two keys that become one cannot both be kept, so nothing is.
        (|| Output::value(&json!({ "12345678": 1, "87654321": 2 })), r#"[redacted]"#),
        // A secret that goes from one string to the next is no value of either.
        (|| Output::value(&json!(["one\u{1}", "two"])), r#"[redacted]"#),
    ];
    for (output, expected) in values {
        let redactor = Redactor::new(["12345678", "\\u0001\",\"two"]).unwrap();
        let run = over([tool_of(output)]).redact(redactor);
        let reply = reply(&run, "tool", "{}").await;
        let text = reply.text();
        assert_eq!(text.trim_matches('"'), expected);
        assert!(reply.value.is_some());
    }
}

#[tokio::test]
async fn an_image_with_a_secret_in_it_is_not_shown() {
    let run = over([tool_of(|| {
        let data = STANDARD.encode(format!("PNG tEXt {SECRET} end"));
        Ok(Output::of(Block::Image { media_type: "image/png".into(), data }))
    })]);
    let reply = reply(&run.grant(secret()), "tool", "{}").await;
    assert_eq!(*reply.content, [Block::text("[redacted]")]);
}

#[tokio::test]
async fn a_replay_of_what_was_redacted_comes_to_the_same_result() {
    let tape = MemoryTape::default();
    let output = || Output::value(&json!({ "key": SECRET, "rows": [1, 2] }));
    let recorded = over([tool_of(output)]).grant(secret()).tape(tape.clone());
    let before = reply(&recorded, "tool", "{}").await;
    let records = tape.records(recorded.id());
    // Whether or not the secret is granted again.
    for granted in [true, false] {
        let run = over([tool_of(output)]).performer(FromTape::new(&records));
        let run = if granted { run.grant(secret()) } else { run };
        let after = reply(&run, "tool", "{}").await;
        assert_eq!((before.result_hash, before.text()), (after.result_hash, after.text()));
        assert_eq!(after.value.as_ref().unwrap().to_value()["key"], "[redacted]");
    }
}

#[tokio::test]
async fn secrets_that_cannot_be_looked_for_are_refused() {
    let short = Redactor::new(["x".repeat(SECRET_BYTES_MIN - 1)]).err().unwrap();
    assert_eq!(short, RedactError::TooShort { bytes: 5 });
    assert_eq!(short.to_string(), "a secret has 5 bytes, expected at least 6 to look for it");
    let long = "x".repeat(SECRETS_BYTES_MAX + 1);
    assert!(matches!(Redactor::new([&long]), Err(RedactError::TooMany { .. })));
    // A run that was granted such a secret does nothing.
    let run = over([tool_of(|| Ok(Output::text("ran")))]).grant(Secret::new(long));
    let refused = run.batch(tooltape::testing::proposals("tool {}")).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "not executed: all secrets have 65537 bytes together, expected at most 65536"
    );
}

#[tokio::test]
async fn secret_bytes_and_values_that_the_host_adds_are_kept_out_too() {
    let echo = || Ok(Output::text("0123456789abcdef0123456789abcdef and what the host adds"));
    let run = over([tool_of(echo)])
        .grant(Secret::new(*b"0123456789abcdef0123456789abcdef"))
        .redact(Redactor::new(["the host adds"]).unwrap());
    let reply: Reply = reply(&run, "tool", "{}").await;
    assert_eq!(reply.text(), "[redacted] and what [redacted]");
}

proptest! {
    #[test]
    fn no_text_shows_a_secret_after_it_was_redacted(
        parts in prop::collection::vec("[a-c]{0,9}", 0..40),
        secrets in prop::collection::vec("[a-c]{6,8}", 1..5),
    ) {
        let redactor = Redactor::new(&secrets).unwrap();
        let text = parts.concat();
        let redacted = redactor.redact(&text);
        for secret in &secrets {
            prop_assert!(!redacted.contains(secret.as_str()), "{text} became {redacted}");
        }
        prop_assert_eq!(redactor.redact(&redacted), redacted.clone());
        let finds = secrets.iter().any(|secret| {
            let reversed: String = secret.chars().rev().collect();
            text.contains(secret.as_str()) || text.contains(&reversed)
        });
        prop_assert_eq!(redacted.contains("[redacted]"), finds);
    }
}

/// Puts a text aside that says its secret.
#[tool(Read)]
async fn stash(
    _args: Empty,
    artifacts: Artifacts,
    secret: Secret<String>,
) -> Result<String, ToolError> {
    Ok(artifacts.put(telling(secret.expose())).await?.id.to_string())
}

/// A text that says a secret in several ways. Without it, `PLAIN` is left.
fn telling(secret: &str) -> String {
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("é token={secret} and {hex} {secret}{secret} end €")
}

const PLAIN: &str = "é token= and   end €";

/// An artifact as a model reads it, by pages of so many bytes.
async fn paged(run: &Run, id: &str, encoding: &str, length: u64) -> String {
    let (mut read, mut offset) = (Vec::new(), Some(0));
    while let Some(at) = offset {
        let wanted =
            json!({ "artifact": id, "offset": at, "length": length, "encoding": encoding });
        let page = reply(run, "read_artifact", &wanted.to_string()).await;
        let value = page.value.as_ref().unwrap().to_value();
        let content = value["content"].as_str().unwrap();
        assert_eq!(page.content[0], Block::text(content), "the model reads the same");
        match encoding {
            "text" => read.extend_from_slice(content.as_bytes()),
            _ => read.extend(STANDARD.decode(content).unwrap()),
        }
        offset = value["next_offset"].as_u64();
    }
    String::from_utf8(read).unwrap()
}

#[tokio::test]
async fn no_page_shows_any_part_of_a_secret_wherever_it_is_cut() {
    let store = Artifacts::memory();
    let tools = tools![stash].into_iter().chain([builtin::read_artifact()]);
    let run = over(tools).grant(secret()).grant(store.clone());
    let put: String = reply(&run, "stash", "{}").await.value.as_ref().unwrap().parse().unwrap();
    let whole = telling(SECRET);
    // It is not even kept.
    let kept = run.artifacts().get(put.parse().unwrap()).await.unwrap();
    assert_eq!(str::from_utf8(&kept).unwrap().replace("[redacted]", ""), PLAIN);
    // What the host shows to the run is no different.
    let attached = store.put(format!("{whole} too")).await.unwrap().id;
    run.artifacts().admit(attached).unwrap();
    for (id, plain) in [(put, PLAIN.to_owned()), (attached.to_string(), format!("{PLAIN} too"))] {
        for encoding in ["text", "base64"] {
            for length in [4, 5, 7, 8, 13, 30, 64, 10_000] {
                let read = paged(&run, &id, encoding, length).await;
                assert!(read.contains("[redacted]"), "{read}");
                let left = read.replace("[redacted]", "");
                assert_eq!(left, plain, "{encoding} by {length} bytes: {read}");
            }
        }
    }
}

#[tokio::test]
async fn a_secret_that_cuts_characters_hides_them_whole_on_a_page() {
    let bytes = Secret::new(b"\xA9secret\xC3".to_vec());
    let store = Artifacts::memory();
    let run = over([builtin::read_artifact()]).grant(bytes).grant(store.clone());
    // What the host put there itself is kept as it is.
    let id = store.put("xésecreté y").await.unwrap().id;
    run.artifacts().admit(id).unwrap();
    let id = id.to_string();
    assert_eq!(paged(&run, &id, "text", 100).await, "x[redacted] y");
    assert_eq!(paged(&run, &id, "text", 4).await, "x[redacted][redacted][redacted] y");
    let put = run.artifacts().put("xésecreté y").await.unwrap().id;
    assert_eq!(*run.artifacts().get(put).await.unwrap(), b"x[redacted] y");
}
