//! Plays a recorded run again: offline, with no effect.

use tooltape::{Replay, Toolbox};

#[tokio::test]
async fn what_was_recorded_still_happens() {
    let toolbox = Toolbox::new(tooltape::builtin::tools()).unwrap();
    let run = "018bcfe5-6800-79ca-bcc4-decdc73ffab1";
    let replay = Replay::from_lines(include_str!("recorded.tape.jsonl"), Some(run)).unwrap();
    let report = replay.with(&toolbox).check().await.unwrap();
    assert!(report.is_same(), "{report}");
    let replies = report.replies();
    assert_eq!(replies.len(), 2);
    assert_eq!(&*replies[0].name, "echo");
    assert_eq!(replies[0].executed.to_string(), "executed");
    assert_eq!(replies[0].text(), "{\"text\":\"hello\"}");
    assert_eq!(&*replies[1].name, "nobody");
    assert_eq!(replies[1].executed.to_string(), "not executed");
    assert_eq!(replies[1].text(), "not executed: unknown tool `nobody`");
}
