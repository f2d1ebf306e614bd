//! Plays a recorded run again: offline, with no effect.

use tooltape::{Replay, Toolbox};

#[tokio::test]
async fn recorded_talk() {
    let toolbox = Toolbox::new(tooltape::builtin::tools()).unwrap();
    let run = "01a1e23d-ee19-75a7-994c-586a3c6dcdd2";
    let replay = Replay::from_lines(include_str!("recorded_talk.tape.jsonl"), Some(run)).unwrap();
    let report = replay.with(&toolbox).check().await.unwrap();
    assert!(report.is_same(), "{report}");
    let replies = report.replies();
    assert_eq!(replies.len(), 2);
    assert_eq!(&*replies[0].name, "echo");
    assert_eq!(replies[0].executed.to_string(), "executed");
    assert_eq!(replies[0].text(), "{\"text\":\"hello\"}");
    assert_eq!(&*replies[1].name, "echo");
    assert_eq!(replies[1].executed.to_string(), "executed");
    assert_eq!(replies[1].text(), "{\"text\":\"again\"}");
}
