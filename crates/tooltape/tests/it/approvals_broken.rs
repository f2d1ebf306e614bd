//! Approvals in a broken world (AP-05, AP-06): no answer, two, none that can be read, a crash, and
//! runs within runs.
#![allow(clippy::print_stdout, reason = "counts are for whoever reads the report")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use tooltape::{
    Access, Answer, AnswerError, Clock, Empty, Event, Executed, MemoryTape, Preview, Proposal,
    Record, Rules, Run, RunError, RunId, Secret, Spawn, Spec, SqliteTape, TapeError, ToolError,
    Toolbox, Verdict, answer_question, open_questions, tool_fn,
};

use crate::stage::{Stage, cut};

fn asking(toolbox: &Toolbox, tape: &MemoryTape) -> Run {
    let rules = Rules::allow_reads().ask_before_writes();
    Run::new(toolbox).tape(tape.clone()).policy(rules).pausing()
}

fn pay() -> Vec<Proposal> {
    vec![Proposal::new("c1", "pay", r#"{"ms":0}"#)]
}

async fn answer(tape: &MemoryTape, run: RunId, answer: Answer) -> Result<(), AnswerError> {
    let approval = open_questions(tape, run).await.unwrap()[0].question.approval;
    answer_question(tape, &Clock::system(), run, approval, answer).await
}

/// The records of a call that was approved, ran, and was settled.
async fn whole(stage: &Stage) -> (Vec<Record>, RunId) {
    let (tape, toolbox) = (MemoryTape::default(), Toolbox::new([stage.write("pay")]).unwrap());
    let run = asking(&toolbox, &tape);
    run.batch(pay()).await.unwrap_err();
    answer(&tape, run.id(), Answer::Once).await.unwrap();
    let resumed = asking(&toolbox, &tape).resume(run.id()).await.unwrap();
    assert!(!resumed.settle_open().await.unwrap()[0].is_error);
    (tape.records(run.id()), run.id())
}

#[tokio::test]
async fn whoever_fails_to_answer_says_no() {
    type Asks = fn() -> tooltape::BoxFuture<'static, Answer>;
    let cases: [(&str, Asks, bool); 6] = [
        ("control: yes", || Box::pin(async { Answer::Once }), true),
        ("no", || Box::pin(async { Answer::Deny("no".into()) }), false),
        ("it panics when it is asked", || panic!("planted"), false),
        ("it panics while it asks", || Box::pin(async { panic!("planted") }), false),
        ("it puts it off", || Box::pin(async { Answer::Later }), false),
        ("it never answers", || Box::pin(std::future::pending()), false),
    ];
    for (name, asks, runs) in cases {
        let stage = Stage::new();
        let toolbox = Toolbox::new([stage.write("pay")]).unwrap();
        let rules = Rules::allow_reads().ask_before_writes();
        let run = Arc::new(Run::new(&toolbox).policy(rules).approver(move |_| asks()));
        let waiting = tokio::spawn({
            let run = run.clone();
            async move { run.batch(pay()).await }
        });
        if name == "it never answers" {
            tokio::task::yield_now().await;
            run.cancel();
        }
        let ran = match waiting.await.unwrap() {
            Ok(replies) => replies[0].executed == Executed::Executed,
            Err(_) => false,
        };
        assert_eq!((ran, stage.log().len()), (runs, usize::from(runs)), "{name}");
    }
}

#[tokio::test]
async fn of_many_answers_at_once_one_counts() {
    let stage = Stage::new();
    let (tape, toolbox) = (MemoryTape::default(), Toolbox::new([stage.write("pay")]).unwrap());
    let run = asking(&toolbox, &tape);
    run.batch(pay()).await.unwrap_err();
    let (id, taken) = (run.id(), Arc::new(AtomicU64::new(0)));
    let approval = open_questions(&tape, id).await.unwrap()[0].question.approval;
    let said: Vec<_> = (0..16)
        .map(|no| {
            let (tape, taken) = (tape.clone(), taken.clone());
            tokio::spawn(async move {
                let answer = if no % 2 == 0 { Answer::Once } else { Answer::Deny("no".into()) };
                let said = answer_question(&tape, &Clock::system(), id, approval, answer).await;
                taken.fetch_add(u64::from(said.is_ok()), Ordering::SeqCst);
            })
        })
        .collect();
    for said in said {
        said.await.unwrap();
    }
    assert_eq!(taken.load(Ordering::SeqCst), 1);
    let answers = tape.records(id).into_iter().filter(|it| it.event.kind() == "call.answered");
    assert_eq!(answers.count(), 1);
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_none() {
    let (records, _) = whole(&Stage::new()).await;
    let answer = records.iter().find(|it| it.event.kind() == "call.answered").unwrap();
    let body = serde_json::to_value(answer).unwrap();
    let malformed = [
        ("no `yes`", json!({ "yes": null })),
        ("a `yes` that is a text", json!({ "yes": "true" })),
        ("a `yes` that is a number", json!({ "yes": 1 })),
        ("it holds for ever", json!({ "holds": "forever" })),
        ("it holds for the Run", json!({ "holds": "Run" })),
        ("no approval", json!({ "approval": null })),
        ("half an approval", json!({ "approval": "00ff" })),
        ("no call", json!({ "call": null })),
        ("no question", json!({ "question": null })),
        ("question -1", json!({ "question": -1 })),
        ("a `by` that is a list", json!({ "by": ["me"] })),
    ];
    for (name, changes) in malformed {
        let mut body = body.clone();
        body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let read = Record::read(&body.to_string());
        assert!(matches!(read, Err(TapeError::Corrupt { .. })), "{name}");
    }
    Record::read(&body.to_string()).expect("the control is read");
}

#[tokio::test]
async fn wherever_it_crashes_an_approved_call_happens_once() {
    let first = Stage::new();
    let (records, id) = whole(&first).await;
    assert_eq!(first.log().len(), 1);
    let place = |kind| records.iter().position(|it| it.event.kind() == kind).unwrap();
    let (answered, started) = (place("call.answered"), place("call.started"));
    for at in 1..records.len() {
        let stage = Stage::new();
        let (tape, toolbox) = (cut(&records[..at]), Toolbox::new([stage.write("pay")]).unwrap());
        let resumed = asking(&toolbox, &tape).resume(id).await.unwrap();
        let ended = resumed.settle_open().await;
        let ran = stage.log().len();
        match at {
            // Nobody had answered, or nobody had asked.
            _ if at <= answered => assert_eq!(ran, 0, "cut at {at}"),
            // The answer is there, and was not used.
            _ if at <= started => assert_eq!((ran, ended.is_ok()), (1, true), "cut at {at}"),
            // It was used: whether it happened is not known, and it is not done again unasked.
            _ => {
                assert_eq!(ran, 0, "cut at {at}");
                assert!(matches!(ended, Err(RunError::Paused { .. })), "cut at {at}");
            }
        }
    }
    println!("approvals: crashed at {} records", records.len() - 1);
}

#[tokio::test]
async fn a_run_that_runs_is_answered_where_it_runs() {
    let (stage, folder) = (Stage::new(), tempfile::tempdir().unwrap());
    let path = folder.path().join("runs.db");
    let (tape, toolbox) = (SqliteTape::open(&path).unwrap(), Toolbox::new([stage.write("pay")]));
    let (asked, goes_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (asks, waits) = (asked.clone(), goes_on.clone());
    let run = Run::new(&toolbox.unwrap()).tape(tape).policy(|_: &_| Verdict::ask("test"));
    let run = Arc::new(run.approver(move |_| {
        let (asks, waits) = (asks.clone(), waits.clone());
        Box::pin(async move {
            asks.notify_one();
            waits.notified().await;
            Answer::Once
        })
    }));
    let working = tokio::spawn({
        let run = run.clone();
        async move { run.batch(pay()).await }
    });
    asked.notified().await;
    // Somebody else reads the question, and cannot answer it behind the back of the run.
    let other = SqliteTape::open(&path).unwrap();
    let open = open_questions(&other, run.id()).await.unwrap();
    let (clock, approval) = (Clock::system(), open[0].question.approval);
    let said = answer_question(&other, &clock, run.id(), approval, Answer::Once).await;
    assert!(matches!(said, Err(AnswerError::Tape(TapeError::Locked { .. }))), "{said:?}");
    goes_on.notify_one();
    assert!(!working.await.unwrap().unwrap()[0].is_error);
    assert_eq!(stage.log().len(), 1);
}

/// A tool that calls `pay` in a run of its own.
fn nesting() -> Arc<dyn tooltape::Tool> {
    let spec = Spec::new("nest", "Pays in a run of its own.").access(Access::Read);
    tool_fn(spec, async |_: Empty, spawn: Spawn| {
        let replies = spawn.child()?.start().batch(pay()).await?;
        Ok::<_, ToolError>(replies[0].text())
    })
}

#[tokio::test]
async fn a_child_does_not_use_what_its_parent_was_allowed() {
    let stage = Stage::new();
    let toolbox = Toolbox::new([stage.write("pay"), nesting()]).unwrap();
    let asked = Arc::new(AtomicU64::new(0));
    let run = Run::new(&toolbox).policy(Rules::allow_reads().ask_before_writes()).approver({
        let asked = asked.clone();
        move |pending| {
            // Yes for the run to the parent, and no to everybody else.
            let first = asked.fetch_add(1, Ordering::SeqCst) == 0;
            assert_eq!(pending.call().tool().name().as_str(), "pay");
            let answer = if first { Answer::Run } else { Answer::Deny("not you".into()) };
            Box::pin(async { answer })
        }
    });
    assert!(!run.batch(pay()).await.unwrap()[0].is_error);
    assert!(!run.batch(pay()).await.unwrap()[0].is_error, "the control: the parent is allowed");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let nested = run.batch(vec![Proposal::new("c2", "nest", "{}")]).await.unwrap();
    assert!(nested[0].text().contains("not executed: denied: not you"), "{}", nested[0].text());
    assert_eq!((asked.load(Ordering::SeqCst), stage.log().len()), (2, 2));
}

#[tokio::test]
async fn a_child_whose_question_would_wait_is_told_no() {
    let stage = Stage::new();
    let toolbox = Toolbox::new([stage.write("pay"), nesting()]).unwrap();
    let run = asking(&toolbox, &MemoryTape::default());
    let nested = run.batch(vec![Proposal::new("c1", "nest", "{}")]).await.unwrap();
    assert!(nested[0].text().contains("nobody can be asked"), "{}", nested[0].text());
    assert_eq!(stage.log().len(), 0);
}

#[tokio::test]
async fn a_yes_for_the_run_never_widens_what_the_run_may_do() {
    let stage = Stage::new();
    let put = stage.tool(Spec::new("put", "Puts.").needs("fs:write:{path}"));
    let toolbox = Toolbox::new([put]).unwrap();
    let rights = "fs:write:a".parse().unwrap();
    let run = Run::new(&toolbox).policy(Rules::allow_reads().ask_before_writes()).rights(rights);
    let run = run.approver(|_| Box::pin(async { Answer::Run }));
    let mut ran = 0;
    for (path, is_allowed) in
        [("a/1", true), ("b", false), ("a/2", true), ("../a", false), ("/a", false), (".", false)]
    {
        let args = json!({ "path": path, "ms": 0 }).to_string();
        let replies = run.batch(vec![Proposal::new("c1", "put", args)]).await.unwrap();
        assert_eq!(!replies[0].is_error, is_allowed, "{path}: {}", replies[0].text());
        ran += usize::from(is_allowed);
    }
    assert_eq!(stage.log().len(), ran);
}

#[tokio::test(start_paused = true)]
async fn a_yes_to_one_call_of_a_batch_is_none_to_its_siblings() {
    let stage = Stage::new();
    let toolbox = Toolbox::new([stage.write("pay"), stage.write("push")]).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let run = Run::new(&toolbox).policy(|_: &_| Verdict::ask("test")).approver({
        let seen = seen.clone();
        move |pending| {
            let mut seen = seen.lock().unwrap();
            seen.push(pending.call().no().0);
            // The first of them is allowed, and no other is.
            let answer = if seen.len() == 1 { Answer::Once } else { Answer::Deny("no".into()) };
            Box::pin(async { answer })
        }
    });
    let batch = ["pay {}", "pay {}", r#"pay {"ms":1}"#, "push {}"].map(|call| {
        let (tool, args) = call.split_once(' ').unwrap();
        Proposal::new("c", tool, args)
    });
    let replies = run.batch(batch.into()).await.unwrap();
    // What is identical is another effect all the same, and is asked about like any other.
    assert_eq!(seen.lock().unwrap().as_slice(), [1, 2, 3, 4]);
    let ran: Vec<bool> = replies.iter().map(|reply| !reply.is_error).collect();
    assert_eq!((ran, stage.log().len()), (vec![true, false, false, false], 1));
}

#[tokio::test]
async fn a_saved_answer_is_on_the_tape_and_is_none_to_a_question_that_is_exact() {
    let stage = Stage::new();
    let toolbox = Toolbox::new([stage.write("pay")]).unwrap();
    for (exact, runs) in [(false, true), (true, false)] {
        let tape = MemoryTape::default();
        let run = Run::new(&toolbox)
            .tape(tape.clone())
            .approver(|_| Box::pin(async { Answer::Saved("pay-1, until tomorrow".to_owned()) }));
        let run = run.policy(move |_: &_| Verdict::Ask { rule: "test".into(), exact });
        let replies = run.batch(pay()).await.unwrap();
        assert_eq!(!replies[0].is_error, runs, "{}", replies[0].text());
        let by = tape.records(run.id()).into_iter().find_map(|record| match record.event {
            Event::Answered { by, .. } => Some(by),
            _ => None,
        });
        let by = by.expect("it was answered");
        assert_eq!(by.as_deref(), runs.then_some("pay-1, until tomorrow"));
    }
    assert_eq!(stage.log().len(), 1);
}

#[tooltape::input]
struct Pay {
    cents: u64,
}

#[tokio::test]
async fn a_preview_is_shown_and_changes_nothing() {
    type Shows = fn(u64) -> Result<String, ToolError>;
    let cases: [(&str, Shows, &str); 4] = [
        ("shown", |cents| Ok(format!("-{cents}")), "-5"),
        ("failed", |_| Err(ToolError::tell("no such account")), "no such account"),
        ("panicked", |_| panic!("planted"), "the preview panicked"),
        ("too long", |_| Ok("x".repeat(300 << 10)), "it has 307200 bytes, expected at most 262144"),
    ];
    for (name, shows, expected) in cases {
        let (paid, tape) = (Arc::new(AtomicU64::new(0)), MemoryTape::default());
        let spec = Spec::new("pay", "Pays.");
        let hook = Preview::by("shows", move |pay: Pay| async move { shows(pay.cents) });
        let pay = tool_fn(spec.preview(hook), {
            let paid = paid.clone();
            move |_: Pay| {
                paid.fetch_add(1, Ordering::SeqCst);
                async { Ok::<_, ToolError>("paid") }
            }
        });
        let (toolbox, shown) = (Toolbox::new([pay]).unwrap(), Arc::new(Mutex::new(String::new())));
        let run = Run::new(&toolbox).tape(tape.clone());
        let run = run.policy(Rules::allow_reads().ask_before_writes()).approver({
            let shown = shown.clone();
            move |pending| {
                let preview = pending.preview().expect("the tool has a preview");
                let text = preview.as_ref().map_or_else(|err| err.told().to_owned(), Clone::clone);
                *shown.lock().unwrap() = text;
                assert!(pending.question().is_some_and(|asked| asked.call == pending.call().no()));
                Box::pin(async { Answer::Deny("no".into()) })
            }
        });
        run.batch(vec![Proposal::new("c1", "pay", r#"{"cents":5}"#)]).await.unwrap();
        assert_eq!(*shown.lock().unwrap(), expected, "{name}");
        assert_eq!(paid.load(Ordering::SeqCst), 0, "{name}");
        let kinds: Vec<_> = tape.records(run.id()).iter().map(|it| it.event.kind()).collect();
        assert_eq!(kinds[3..], ["call.asked", "call.answered", "call.settled"], "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_preview_that_does_not_end_is_given_up() {
    let hook = Preview::by("waits", async |_: Pay| {
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        Ok::<_, ToolError>(String::new())
    });
    let pay =
        tool_fn(Spec::new("pay", "Pays.").preview(hook), async |_: Pay| Ok::<_, ToolError>("paid"));
    let run = Run::new(&Toolbox::new([pay]).unwrap());
    let args = tooltape::Canon::of(&json!({ "cents": 1 })).unwrap();
    let shown = run.preview("pay", &args).await.unwrap();
    assert_eq!(shown.unwrap_err().told(), "the preview took longer than 5s");
    assert!(run.preview("nobody", &args).await.is_none());
}

#[tokio::test]
async fn a_preview_shows_no_secret_whether_it_fails_or_not() {
    type Shows = fn(&str) -> Result<String, ToolError>;
    let cases: [Shows; 2] =
        [|token| Ok(format!("pays with {token}")), |token| Err(ToolError::tell(token.to_owned()))];
    for shows in cases {
        let hook = Preview::by("shows", move |_: Pay, token: Secret<String>| async move {
            shows(token.expose())
        });
        let spec = Spec::new("pay", "Pays.").preview(hook);
        let pay = tool_fn(spec, async |_: Pay| Ok::<_, ToolError>("paid"));
        let run = Run::new(&Toolbox::new([pay]).unwrap());
        let run = run.grant(Secret::new("ghp_Zq81xTTp0000abcdefgh".to_owned()));
        let args = tooltape::Canon::of(&json!({ "cents": 1 })).unwrap();
        let shown = run.preview("pay", &args).await.unwrap();
        let shown = shown.unwrap_or_else(|err| format!("{} {err:?}", err.told()));
        assert!(shown.contains("[redacted]") && !shown.contains("Zq81"), "{shown}");
    }
}
