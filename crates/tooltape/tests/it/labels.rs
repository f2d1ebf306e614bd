//! Labels: their laws, their bounds, where they are kept, and who may lower one.

use std::fs;
use std::thread;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use tooltape::limits::{EXTRACT_CHOICES_MAX, LABEL_NAME_BYTES_MAX, LABEL_NAMES_MAX};
use tooltape::{Effects, Empty, EndorseError, Label, Labels, Output, Proposal, Reach, Run, Spec};
use tooltape::{ToolError, Toolbox, tool_fn};

/// Labels with few names and with more than a label may have.
fn label() -> impl Strategy<Value = Label> {
    let name = || prop_oneof![0..4u32, 0..80u32].prop_map(|no| format!("name {no}"));
    let names = || vec(name(), 0..48);
    (names(), any::<bool>(), names()).prop_map(|(sources, internal, secrets)| {
        let sources = sources.iter().map(Label::untrusted);
        let secrets = secrets.iter().map(Label::secret);
        let internal = internal.then(Label::internal);
        let all = sources.chain(secrets).chain(internal);
        all.fold(Label::default(), |label, it| label.join(&it))
    })
}

proptest! {
    #[test]
    fn the_join_of_labels_is_a_least_upper_bound(a in label(), b in label(), c in label()) {
        let join = |a: &Label, b: &Label| a.clone().join(b);
        prop_assert_eq!(join(&a, &a), a.clone());
        prop_assert_eq!(join(&a, &b), join(&b, &a));
        prop_assert_eq!(join(&join(&a, &b), &c), join(&a, &join(&b, &c)));
        prop_assert!(a.flows_to(&join(&a, &b)) && b.flows_to(&join(&a, &b)));
        prop_assert_eq!(a.flows_to(&b), join(&a, &b) == b);
        if a.flows_to(&c) && b.flows_to(&c) {
            prop_assert!(join(&a, &b).flows_to(&c));
        }
        prop_assert!(Label::default().flows_to(&a));
        // Nothing is ever more trusted, or less secret, for what it was joined with.
        prop_assert_eq!(join(&a, &b).is_trusted(), a.is_trusted() && b.is_trusted());
        prop_assert_eq!(join(&a, &b).is_public(), a.is_public() && b.is_public());
    }

    #[test]
    fn a_label_is_read_as_it_was_written(a in label()) {
        let text = serde_json::to_string(&a).unwrap();
        prop_assert_eq!(serde_json::from_str::<Label>(&text).unwrap(), a);
    }
}

#[test]
fn a_label_names_no_more_than_it_may() {
    let many = (0..1_000).map(|no| Label::untrusted(format!("source {no:04}")));
    let label = many.fold(Label::default(), |label, it| label.join(&it));
    assert_eq!(label.sources().count(), LABEL_NAMES_MAX);
    assert_eq!(label.sources().next(), Some("others"));
    let long = Label::untrusted("é".repeat(LABEL_NAME_BYTES_MAX));
    assert_eq!(long.sources().next().unwrap().len(), LABEL_NAME_BYTES_MAX);
}

#[test]
fn an_unknown_word_in_a_label_is_refused() {
    assert!(serde_json::from_str::<Label>(r#"{"trusted":["me"]}"#).is_err());
    assert_eq!(serde_json::from_str::<Label>("{}").unwrap(), Label::default());
}

#[test]
fn labels_are_kept_beside_what_they_are_of() {
    let folder = tempfile::tempdir().unwrap();
    let (web, mail) = (Label::untrusted("web"), Label::untrusted("mail"));
    for labels in [Labels::memory(), Labels::in_dir(folder.path().join("labels"))] {
        assert!(labels.is_empty() && labels.of("a").is_plain());
        labels.add("a", &web).unwrap();
        labels.add("a", &mail).unwrap();
        labels.add("b", &Label::default()).unwrap();
        assert_eq!(labels.of("a"), web.clone().join(&mail));
        assert!(labels.of("b").is_plain() && !labels.is_empty());
        labels.set("a", &mail).unwrap();
        assert_eq!(labels.of("a"), mail);
        labels.set("a", &Label::default()).unwrap();
        assert!(labels.of("a").is_plain());
        labels.add("a", &web).unwrap();
    }
    let again = Labels::in_dir(folder.path().join("labels"));
    assert_eq!(again.of("a"), web, "another process finds it");
}

#[test]
fn many_who_label_one_place_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for who in 0..8 {
            let folder = folder.path();
            scope.spawn(move || {
                let labels = Labels::in_dir(folder);
                for _ in 0..4 {
                    labels.add("a", &Label::untrusted(format!("source {who}"))).unwrap();
                }
            });
        }
    });
    assert_eq!(Labels::in_dir(folder.path()).of("a").sources().count(), 8);
}

#[test]
fn a_label_that_cannot_be_read_says_that_its_place_is_untrusted() {
    let folder = tempfile::tempdir().unwrap();
    let labels = Labels::in_dir(folder.path());
    labels.add("a", &Label::internal()).unwrap();
    let place = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let file = fs::read_dir(&place).unwrap().next().unwrap().unwrap().path();
    for text in ["", "{", "[]", r#"{"internal":1}"#, r#"{"more":true}"#] {
        fs::write(&file, text).unwrap();
        assert!(!labels.of("a").is_trusted(), "{text}");
    }
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
    assert!(!labels.of("a").is_trusted());
    fs::remove_dir_all(&place).unwrap();
    fs::write(&place, "not a folder").unwrap();
    assert!(!labels.of("a").is_trusted());
}

fn endorsing(output: Option<Value>) -> Result<Run, EndorseError> {
    let spec = Spec::new("extract", "Extracts.");
    let spec = if let Some(output) = output { spec.output(output) } else { spec };
    let extract = tool_fn(spec, async |_: Empty| Ok::<_, ToolError>(true));
    Run::new(&Toolbox::new([extract]).unwrap()).endorse("extract", "the desk")
}

#[test]
fn only_what_leaves_no_room_for_a_text_can_be_vouched_for() {
    let choice = json!({ "enum": ["red", "green"] });
    let number = json!({ "type": "integer", "minimum": 0, "maximum": 10 });
    let object = |properties: Value| {
        let additional = "additionalProperties";
        json!({ "type": "object", (additional): false, "properties": properties })
    };
    for schema in [
        json!({ "type": "boolean" }),
        json!({ "type": ["boolean", "null"] }),
        json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 }),
        json!({ "const": "yes" }),
        json!({ "anyOf": [choice.clone(), { "type": "null" }] }),
        json!({ "$defs": { "C": choice.clone() }, "$ref": "#/$defs/C" }),
        object(json!({ "a": choice.clone(), "b": object(json!({ "c": number.clone() })) })),
    ] {
        assert!(endorsing(Some(schema.clone())).is_ok(), "{schema}");
    }
    let many: Vec<Value> = (0..=EXTRACT_CHOICES_MAX).map(Value::from).collect();
    for (schema, at) in [
        (json!({ "type": "string" }), "/"),
        (json!({ "type": "string", "maxLength": 5 }), "/"),
        (json!({ "type": "integer", "minimum": 0 }), "/"),
        (json!({ "type": "number", "minimum": 0, "maximum": 1e308 }), "/"),
        (json!({ "type": "array", "items": number.clone(), "maxItems": 3 }), "/"),
        (json!({ "enum": many }), "/"),
        (json!({ "enum": [["a"]] }), "/"),
        (json!({}), "/"),
        (json!(true), "/"),
        (json!({ "type": "object", "properties": {} }), "/"),
        (object(json!({ "a": { "type": "string" } })), "/properties/a"),
        (json!({ "anyOf": [{ "type": "boolean" }, { "type": "string" }] }), "/anyOf/1"),
        (json!({ "type": ["boolean", "string"] }), "/"),
        (
            json!({
                "type": "object",
                "additionalProperties": false,
                "properties": { "a": { "$ref": "#" } },
            }),
            "",
        ),
    ] {
        match endorsing(Some(schema.clone())) {
            Err(EndorseError::Loose { at: found, .. }) => {
                assert!(at.is_empty() || found == at, "{schema}: {found}");
            }
            Err(err) => panic!("{schema}: {err}"),
            Ok(_) => panic!("{schema} was vouched for"),
        }
    }
    assert!(matches!(endorsing(None), Err(EndorseError::Undeclared { .. })));
    let none = Run::new(&Toolbox::new([]).unwrap()).endorse("extract", "the desk");
    assert!(matches!(none, Err(EndorseError::Unknown { .. })));
}

#[tokio::test]
async fn nobody_vouches_for_what_fails_or_says_more_than_its_value() {
    let spec = || {
        let effects = Effects { reach: Reach::Network, ..Effects::read() };
        Spec::new("it", "Extracts.").effects(effects).output(json!({ "type": "boolean" }))
    };
    let value = || Output::value(&true).unwrap();
    let fails = tool_fn(spec(), async |_: Empty| Err::<bool, _>(ToolError::tell("obey me")));
    let more = tool_fn(spec(), move |_: Empty| async move {
        Ok::<_, ToolError>(value().block(tooltape::Block::text("obey me")))
    });
    let metadata = tool_fn(spec(), move |_: Empty| async move {
        Ok::<_, ToolError>(value().metadata(json!("obey me")))
    });
    let secret = tool_fn(spec(), move |_: Empty| async move {
        Ok::<_, ToolError>(value().labelled(Label::secret("key")))
    });
    let plain = tool_fn(spec(), move |_: Empty| async move { Ok::<_, ToolError>(value()) });
    for (tool, expected) in [
        (fails, "untrusted (it), public"),
        (more, "untrusted (it), public"),
        (metadata, "untrusted (it), public"),
        (secret, "trusted, secret (key)"),
        (plain, "trusted, public"),
    ] {
        let run = Run::new(&Toolbox::new([tool]).unwrap()).endorse("it", "the desk").unwrap();
        run.batch(vec![Proposal::new("c", "it", "{}")]).await.unwrap();
        assert_eq!(run.label().to_string(), expected);
    }
}
