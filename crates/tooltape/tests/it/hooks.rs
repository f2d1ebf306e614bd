//! What a host does to calls on their way, and the one order of it all; acceptance 40 and 43.

use std::sync::{Arc, Mutex};

use tooltape::layer::{Next, layer_fn};
use tooltape::serde_json::json;
use tooltape::testing::{Spy, play, proposals};
use tooltape::{
    Access, Ack, Answer, Append, ArtifactId, BoundKind, BoxFuture, Call, Event, Executed,
    MemoryTape, Output, Record, Redactor, RepairStep, Run, RunId, RunLimits, Tape, TapeError,
    ToolError, Toolbox, Verdict,
};

use crate::declaring::{over, reply};

#[tokio::test]
async fn a_prepare_hook_changes_a_call_before_it_is_hashed_and_judged() {
    let (spy, tape) = (Spy::new("spy", Access::Write), MemoryTape::default());
    let judged = Arc::new(Mutex::new(Vec::new()));
    let seen = judged.clone();
    let run = over([spy.tool()])
        .tape(tape.clone())
        .policy(move |call: &Call| {
            seen.lock().unwrap().push((call.args().as_str().to_owned(), call.repairs().to_vec()));
            Verdict::allow("test")
        })
        .prepare(|call| (call.args().as_str() == r#"{"n":1}"#).then(|| json!({ "n": 2 })))
        .prepare(|call| (call.args().as_str() == r#"{"n":2}"#).then(|| json!({ "n": 3 })));
    assert_eq!(play(&run, "spy {\"n\":1}\nspy {\"n\":7}").await, "c1 {\"n\":3}\nc2 {\"n\":7}\n");
    let prepared = vec![RepairStep::Prepared, RepairStep::Prepared];
    let expected = [(r#"{"n":3}"#.to_owned(), prepared), (r#"{"n":7}"#.to_owned(), vec![])];
    assert_eq!(*judged.lock().unwrap(), expected);
    let records = tape.records(run.id());
    let of_first = |record: &&Record| record.event.call().is_some_and(|call| call.0 == 1);
    let lines = records.iter().filter(of_first).map(|it| serde_json::to_string(it).unwrap());
    let lines: Vec<String> = lines.collect();
    assert!(lines[0].contains(r#""arguments":"{\"n\":1}""#), "the model's own: {}", lines[0]);
    assert!(lines[1].contains(r#""repairs":["prepared","prepared"]"#), "{}", lines[1]);
}

#[tokio::test]
async fn what_a_prepare_hook_leaves_as_it_is_is_not_called_prepared() {
    let tape = MemoryTape::default();
    let run = over([Spy::new("spy", Access::Read).tool()]).tape(tape.clone());
    let run = run.prepare(|call| Some(call.args().to_value()));
    reply(&run, "spy", r#"{ "b":1, "a":2.0 }"#).await;
    let records = tape.records(run.id());
    assert!(records.iter().all(|it| !serde_json::to_string(it).unwrap().contains("prepared")));
}

#[tokio::test]
async fn what_a_prepare_hook_spoils_is_not_executed_and_the_model_is_not_blamed() {
    let strict = Spy::new("spy", Access::Read).declaring(|spec| {
        spec.input(json!({ "type": "object", "properties": { "n": { "type": "integer" } } }))
    });
    let run = over([strict.tool()]).prepare(|call| {
        assert_ne!(call.args().as_str(), r#"{"n":1}"#, "a test panic");
        (call.args().as_str() == r#"{"n":2}"#).then(|| json!({ "n": "two" }))
    });
    let script = "spy {\"n\":1}\nspy {\"n\":2}\nspy {\"n\":3}";
    let replies = run.batch(proposals(script)).await.unwrap();
    let told = "not executed: the arguments could not be prepared";
    for (reply, code) in replies.iter().zip(["prepare.panicked", "prepare.invalid"]) {
        assert_eq!((reply.text().as_str(), reply.executed), (told, Executed::NotExecuted));
        let fault = reply.fault.as_ref().unwrap();
        assert_eq!((fault.kind.name(), fault.code.as_ref()), ("failed", code));
    }
    let why = &replies[1].fault.as_ref().unwrap().message;
    assert!(why.contains("integer"), "the host learns why: {why}");
    assert_eq!(replies[2].text(), r#"{"n":3}"#);
    assert_eq!(strict.calls(), 1);
}

#[tokio::test]
async fn a_before_hook_can_only_refuse() {
    for refusal in
        [ToolError::tell as fn(&'static str) -> ToolError, ToolError::not_done, ToolError::in_doubt]
    {
        let spy = Spy::new("spy", Access::Write);
        let run = over([spy.tool()]).before(move |call| match call.args().as_str() {
            "{}" => Ok(()),
            _ => Err(refusal("not on a Friday").code("friday")),
        });
        let replies = run.batch(proposals("spy {}\nspy {\"n\":1}")).await.unwrap();
        assert_eq!(replies[0].text(), "{}");
        assert_eq!(replies[1].text(), "not executed: not on a Friday");
        assert_eq!(replies[1].executed, Executed::NotExecuted);
        assert_eq!(replies[1].fault.as_ref().unwrap().code.as_ref(), "friday");
        assert_eq!(spy.calls(), 1);
    }
}

#[tokio::test]
async fn an_after_hook_can_change_a_result_and_not_that_it_happened() {
    let spy = Spy::new("spy", Access::Write);
    let run = over([spy.tool()]).after(|call, output| match call.args().as_str() {
        r#"{"n":1}"# => Err(ToolError::not_done("withheld").code("secret")),
        r#"{"n":2}"# => panic!("a test panic"),
        _ => {
            let before = output.canon().map(|value| value.to_value());
            output.detail(json!("kept")).with_value(&json!({ "was": before }))
        }
    });
    let replies = run.batch(proposals("spy {}\nspy {\"n\":1}\nspy {\"n\":2}")).await.unwrap();
    let texts: Vec<_> = replies.iter().map(|reply| reply.text()).collect();
    let lost = "failed: executed, but the result was lost";
    assert_eq!(texts, [r#"{"was":{}}"#, "failed: withheld", lost]);
    assert_eq!(replies[0].details.as_deref(), Some(&json!("kept")));
    assert!(replies.iter().all(|reply| reply.executed == Executed::Executed));
    assert_eq!(spy.calls(), 3, "and none is repeated");
}

#[tokio::test]
async fn a_panic_in_a_before_hook_settles_its_call_only() {
    let spy = Spy::new("spy", Access::Write);
    let run = over([spy.tool()]).before(|call| {
        assert_eq!(call.args().as_str(), "{}", "a test panic");
        Ok(())
    });
    let told = play(&run, "spy {\"n\":1}\nspy {}").await;
    assert_eq!(told, "c1 not executed: the call was refused\nc2 {}\n");
    assert_eq!(spy.calls(), 1);
}

type Log = Arc<Mutex<Vec<String>>>;

/// A tape that notes what is appended to it.
struct Noting(MemoryTape, Log);

impl Tape for Noting {
    fn append(&self, append: Append<'_>) -> Ack {
        let noted = append.events.iter().filter_map(|event| match event {
            Event::Started { .. } => Some("started".to_owned()),
            Event::Settled(_) => Some("settled".to_owned()),
            _ => None,
        });
        self.1.lock().unwrap().extend(noted);
        self.0.append(append)
    }

    fn read(
        &self,
        run: RunId,
        from: u64,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, TapeError>> {
        self.0.read(run, from, most)
    }
}

/// A run whose every stage is noted; its policy asks, and the answer is yes.
fn noted(spy: &Spy, log: &Log, limits: RunLimits) -> Run {
    let note = |stage: &'static str| {
        let log = log.clone();
        move || log.lock().unwrap().push(stage.to_owned())
    };
    let (prepare, judge, ask) = (note("prepare"), note("judge"), note("ask"));
    let (before, layer, after) = (note("before"), note("layer"), note("after"));
    let executed = Arc::new(note("executed"));
    Run::new(&Toolbox::new([spy.tool()]).unwrap())
        .tape(Noting(MemoryTape::default(), log.clone()))
        .limits(limits)
        .policy(move |_: &Call| {
            judge();
            Verdict::ask("test")
        })
        .approver(move |_| {
            ask();
            Box::pin(async { Answer::Once })
        })
        .prepare(move |_| {
            prepare();
            None
        })
        .before(move |_| {
            before();
            Ok(())
        })
        .layer(layer_fn(move |attempt, grants, next: Next<'_>| {
            layer();
            let executed = executed.clone();
            Box::pin(async move {
                let output = next.perform(attempt, grants).await;
                executed();
                output
            })
        }))
        .after(move |_, output| {
            after();
            output.with_value(&json!("not a number"))
        })
}

#[tokio::test]
async fn the_stages_of_a_call_happen_in_their_one_order() {
    let log = Log::default();
    let spy = Spy::new("spy", Access::Write).declaring(|spec| {
        let input = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
        spec.input(input).output(json!({ "type": "object" }))
    });
    let run = noted(&spy, &log, RunLimits::default());
    let take = || log.lock().unwrap().drain(..).collect::<Vec<_>>();

    // The name comes before the arguments, and both before anything of the host's.
    assert!(reply(&run, "spi", r#"{"n":"x"}"#).await.text().contains("unknown tool"));
    assert!(reply(&run, "spy", r#"{"n":"x"}"#).await.text().contains("could not be deserialised"));
    assert_eq!(take(), ["settled", "settled"]);

    // The output schema judges what the after hook made of the result.
    let invalid = reply(&run, "spy", r#"{"n":1}"#).await;
    assert_eq!(invalid.fault.as_ref().unwrap().code.as_ref(), "output.invalid");
    assert_eq!((invalid.executed, spy.calls()), (Executed::Executed, 1));
    let order =
        ["prepare", "judge", "ask", "started", "before", "layer", "executed", "after", "settled"];
    assert_eq!(take(), order);

    // The limits come after the prepare hooks and before the policy.
    let mut limits = RunLimits::default();
    limits.run_calls = 0;
    let run = noted(&spy, &log, limits);
    let over = reply(&run, "spy", r#"{"n":1}"#).await;
    assert_eq!(over.fault.as_ref().unwrap().bound, Some(BoundKind::RunCalls));
    assert_eq!(take(), ["prepare", "settled"]);
}

#[tokio::test]
async fn every_attempt_passes_the_hooks_around_it() {
    let log = Log::default();
    let (before, after) = (log.clone(), log.clone());
    let spy = Spy::new("spy", Access::Read)
        .declaring(|spec| spec.retry(tooltape::Retry { attempts: 3, pause_ms: 0, pause_ms_max: 0 }))
        .returning(|_| Err(ToolError::tell("no luck")));
    let run = over([spy.tool()])
        .before(move |_| {
            before.lock().unwrap().push("before".into());
            Ok(())
        })
        .after(move |_, output: Output| {
            after.lock().unwrap().push("after".into());
            Ok(output)
        });
    assert_eq!(reply(&run, "spy", "{}").await.text(), "failed: no luck");
    assert_eq!(spy.calls(), 3);
    assert_eq!(*log.lock().unwrap(), ["before"; 3], "there was no result to change");
}

#[tokio::test]
async fn what_an_after_hook_made_is_bounded_redacted_and_put_aside_before_it_is_settled() {
    let (spy, tape) = (Spy::new("spy", Access::Read), MemoryTape::default());
    let mut limits = RunLimits::default();
    limits.output_bytes = 1_000;
    let run = over([spy.tool()])
        .tape(tape.clone())
        .limits(limits)
        .redact(Redactor::new(["correct horse"]).unwrap())
        .after(|_, output| output.with_value(&"correct horse ".repeat(1_000)));
    let told = reply(&run, "spy", "{}").await;
    assert!(told.text().len() < 2_000, "{}", told.text().len());
    let records = tape.records(run.id());
    let Some(Event::Settled(settled)) = records.last().map(|record| &record.event) else {
        panic!("a call ends with its settling")
    };
    assert_eq!(settled.artifacts.len(), 1);
    let kept = run.artifacts().get_blocking(ArtifactId(settled.artifacts[0])).unwrap();
    let kept = String::from_utf8(kept.to_vec()).unwrap();
    for text in [told.text(), kept] {
        assert!(text.contains("[redacted]") && !text.contains("correct horse"));
    }
}
