//! A yes is for the change that was shown, and for no other.

use std::fs;

use tooltape::{Answer, Call, Executed, Proposal, Run, Toolbox, Verdict};
use tooltape_kit::{Workspace, tools};

#[tokio::test]
async fn a_file_that_changes_while_somebody_is_asked_is_left_as_it_is() {
    let calls = [
        ("write_file", r#"{"path":"f.txt","content":"model\n","overwrite":true}"#),
        ("edit_file", r#"{"path":"f.txt","edits":[{"old":"line","new":"model"}]}"#),
        ("delete_file", r#"{"path":"f.txt"}"#),
    ];
    for (tool, args) in calls {
        for saved in [None, Some("line\nthe user's later work\n")] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("f.txt");
            fs::write(&file, "line\n").unwrap();
            let later = file.clone();
            let run = Run::new(&Toolbox::new(tools()).unwrap())
                .grant(Workspace::open(folder.path()).unwrap())
                .policy(|_: &Call| Verdict::ask("all"))
                .approver(move |pending| {
                    assert!(pending.preview().is_some(), "it is shown");
                    saved.iter().for_each(|text| fs::write(&later, text).unwrap());
                    Box::pin(async { Answer::Once })
                });
            let replies = run.batch(vec![Proposal::new("c", tool, args)]).await.unwrap();
            match saved {
                None => assert!(!replies[0].is_error, "{tool}: {}", replies[0].text()),
                Some(text) => {
                    assert_eq!(replies[0].executed, Executed::NotExecuted, "{tool}");
                    assert_eq!(fs::read_to_string(&file).unwrap(), text, "{tool}");
                }
            }
        }
    }
}
