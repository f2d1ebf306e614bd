//! The path of a call, its records and its replies: acceptance 59, 97 to 103 and 109.

use expect_test::expect;
use serde_json::json;
use tooltape::testing::{Spy, play, proposals};
use tooltape::{
    Access, Block, Clock, Determinism, Event, Executed, FromTape, MemoryTape, Output, Proposal,
    Random, Rules, Run, RunError, Source, ToolError, Toolbox, Verdict, builtin, verify,
};

fn over(spies: &[&Spy]) -> Run {
    let toolbox = Toolbox::new(spies.iter().map(|spy| spy.tool())).unwrap();
    Run::new(&toolbox).policy(|_: &_| Verdict::allow("test"))
}

fn returning(result: fn(tooltape::Args) -> Result<Output, ToolError>) -> Spy {
    Spy::new("tool", Access::Read).returning(result)
}

#[tokio::test]
async fn every_proposal_gets_exactly_one_reply_in_its_order() {
    let (reads, writes) = (Spy::new("reads", Access::Read), Spy::new("writes", Access::Write));
    let script = "reads {}\nwrites {}\nnobody {}\nreads {\nwrites {}\nreads {}";
    let tape = MemoryTape::default();
    let run = over(&[&reads, &writes]).tape(tape.clone());
    let replies = run.batch(proposals(script)).await.unwrap();
    let ids: Vec<_> = replies.iter().map(|reply| reply.id.to_string()).collect();
    assert_eq!(ids, ["c1", "c2", "c3", "c4", "c5", "c6"]);
    let settled = tape.records(run.id());
    let settled = settled.iter().filter(|record| matches!(record.event, Event::Settled(_)));
    assert_eq!(settled.count(), 6);
}

#[tokio::test]
async fn empty_and_duplicate_ids_each_get_a_reply() {
    let spy = Spy::new("reads", Access::Read);
    let same = |text: &str| Proposal::new("", "reads", text.to_owned());
    let twice = |text: &str| Proposal::new("x", "reads", text.to_owned());
    let batch = vec![same(r#"{"n":1}"#), same(r#"{"n":2}"#), twice(r#"{"n":3}"#), twice("{")];
    let replies = over(&[&spy]).batch(batch).await.unwrap();
    let texts: Vec<_> = replies.iter().map(|reply| (&*reply.id, reply.is_error)).collect();
    assert_eq!(texts, [("", false), ("", false), ("x", false), ("x", true)]);
    assert_eq!(spy.calls(), 3);
}

#[tokio::test]
async fn a_tool_that_declares_nothing_is_risky_under_a_strict_policy() {
    let spy = Spy::new("quiet", Access::Write).declaring(|spec| {
        tooltape::Spec::new("quiet", "Says nothing of itself.").input(spec.input)
    });
    let toolbox = Toolbox::new([spy.tool()]).unwrap();
    let strict = Run::new(&toolbox).policy(Rules::allow_reads());
    assert_eq!(
        play(&strict, "quiet {}").await,
        "c1 not executed: denied: this run may only read\n"
    );
    assert_eq!(spy.calls(), 0);
}

#[tokio::test]
async fn a_failure_settles_its_call_and_its_siblings_go_on() {
    let fails = Spy::new("fails", Access::Read).returning(|_| Err(ToolError::tell("no such row")));
    let panics = Spy::new("panics", Access::Read).returning(|_| panic!("secret 42"));
    let works = Spy::new("works", Access::Read);
    let run = over(&[&fails, &panics, &works]);
    let told = play(&run, "fails {}\npanics {}\nworks {}").await;
    expect![[r#"
        c1 failed: no such row
        c2 unknown: the tool panicked; do not repeat it blindly
        c3 {}
    "#]]
    .assert_eq(&told);
}

#[tokio::test]
async fn a_panic_says_unknown_to_the_model_and_its_text_to_the_host() {
    let panics = returning(|_| panic!("at the disco"));
    let reply = over(&[&panics]).batch(proposals("tool {}")).await.unwrap().remove(0);
    assert_eq!(reply.executed, Executed::Unknown);
    let fault = reply.fault.as_ref().unwrap();
    assert_eq!(&*fault.message, "the tool panicked: panic: at the disco");
    assert_eq!((fault.kind.name(), &*fault.code), ("in_doubt", "tool.panicked"));
}

#[tokio::test]
async fn a_fatal_fault_settles_every_call_and_ends_the_run() {
    let fatal = Spy::new("fatal", Access::Read).returning(|_| Err(ToolError::fatal("disk gone")));
    let works = Spy::new("works", Access::Read);
    let run = over(&[&fatal, &works]);
    let err = run.batch(proposals("works {}\nfatal {}\nworks {}")).await.unwrap_err();
    let RunError::Ended { why, replies } = err else { panic!("it ended: {err}") };
    assert_eq!((why.as_str(), replies.len()), ("fatal: disk gone", 3));
    assert!(matches!(run.batch(vec![]).await, Err(RunError::Closed { .. })));
}

#[tokio::test]
async fn the_hash_of_a_result_ignores_key_order_white_space_and_the_order_of_sets() {
    let hash = |result| async move {
        let spy = returning(result).declaring(|spec| {
            let tags = json!({ "type": "array", "uniqueItems": true });
            spec.output(json!({ "type": "object", "properties": { "tags": tags } }))
        });
        over(&[&spy]).batch(proposals("tool {}")).await.unwrap()[0].result_hash
    };
    let base = hash(|_| Output::value(&json!({ "tags": ["a", "b"], "list": [1, 2] }))).await;
    let keys = hash(|_| Output::value(&json!({ "list": [1, 2], "tags": ["a", "b"] }))).await;
    let sets = hash(|_| Output::value(&json!({ "tags": ["b", "a"], "list": [1, 2] }))).await;
    let lists = hash(|_| Output::value(&json!({ "tags": ["a", "b"], "list": [2, 1] }))).await;
    assert_eq!(base, keys);
    assert_eq!(base, sets);
    assert_ne!(base, lists);
}

#[tokio::test]
async fn hashes_are_the_same_in_every_run_and_exclude_durations() {
    let settled = |clock_step_ms| async move {
        let tape = MemoryTape::default();
        let run = Run::new(&Toolbox::new(builtin::tools()).unwrap())
            .tape(tape.clone())
            .clock(Clock::fixed(std::time::Duration::from_millis(clock_step_ms)))
            .random(Random::seeded([1; 32]));
        let replies = run.batch(proposals(r#"hash {"text":"abc"}"#)).await.unwrap();
        let records = tape.records(run.id());
        let contents: Vec<_> =
            records.iter().skip(1).map(|record| record.content_hash().unwrap()).collect();
        (replies[0].args_hash, replies[0].result_hash, contents)
    };
    assert_eq!(settled(1).await, settled(99).await);
    expect!["e791c585"].assert_eq(&settled(1).await.0.to_string()[..8]);
}

#[tokio::test]
async fn echo_returns_its_bytes_and_needs_nothing() {
    let toolbox = Toolbox::new(builtin::tools()).unwrap();
    let echo = toolbox.get("echo").unwrap();
    assert_eq!(echo.id().to_string(), "echo@1.0.0");
    assert!(echo.spec().needs.is_empty() && echo.spec().capabilities.is_empty());
    assert_eq!(echo.spec().effects.access, Access::Pure);
    assert_eq!(echo.spec().effects.determinism, Determinism::Deterministic);
    let script = r#"
        echo {"text":"grüß \u0000 dich"}
        echo {"base64":"AP8="}
        echo {"base64":"%"}
        echo {"text":"a","base64":"YQ=="}
        echo {}
    "#;
    expect![[r#"
        c1 {"text":"grüß \u0000 dich"}
        c2 {"base64":"AP8="}
        c3 not executed: /base64: expected base64 with padding, found Invalid symbol 37, offset 0.
        c4 not executed: expected one of `text` and `base64`, found both
        c5 not executed: expected one of `text` and `base64`, found neither
    "#]]
    .assert_eq(&play(&Run::new(&toolbox), script).await);
}

#[tokio::test]
async fn hash_is_blake3_in_lower_case_hexadecimal() {
    let run = Run::new(&Toolbox::new(builtin::tools()).unwrap());
    let script = r#"
        hash {"text":""}
        hash {"base64":""}
        hash {"text":"a"}
        hash {"base64":"YQ=="}
    "#;
    expect![[r#"
        c1 af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262
        c2 af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262
        c3 17762fddd969a453925d65717ac3eea21320b66b54342fde15128d6caf21215f
        c4 17762fddd969a453925d65717ac3eea21320b66b54342fde15128d6caf21215f
    "#]]
    .assert_eq(&play(&run, script).await);
}

#[tokio::test]
async fn a_reply_says_where_its_result_came_from() {
    let (spy, tape) = (Spy::new("reads", Access::Read), MemoryTape::default());
    let run = over(&[&spy]).tape(tape.clone());
    let replies = run.batch(proposals("reads {}\nreads {")).await.unwrap();
    assert_eq!((replies[0].source, replies[1].source), (Source::Tool, Source::Error));

    let again = over(&[&spy]).performer(FromTape::new(&tape.records(run.id())));
    let served = again.batch(proposals("reads {}\nreads {")).await.unwrap();
    assert_eq!((served[0].source, spy.calls()), (Source::Mock, 1));
    assert_eq!(served[0].result_hash, replies[0].result_hash);
}

#[tokio::test]
async fn a_recorded_failure_is_served_as_it_was() {
    let failures: [fn(tooltape::Args) -> Result<Output, ToolError>; 5] = [
        |_| Err(ToolError::tell("no such row").code("row.missing")),
        |_| Err(ToolError::not_done("quota used up")),
        |_| Err(ToolError::in_doubt("the answer was lost")),
        |_| Err(ToolError::cancelled()),
        |_| Err(std::io::Error::other("secret path").into()),
    ];
    for failure in failures {
        let (spy, tape) = (returning(failure), MemoryTape::default());
        let run = over(&[&spy]).tape(tape.clone());
        let live = run.batch(proposals("tool {}")).await.unwrap().remove(0);
        let again = over(&[&spy]).performer(FromTape::new(&tape.records(run.id())));
        let served = again.batch(proposals("tool {}")).await.unwrap().remove(0);
        assert_eq!((served.text(), served.executed), (live.text(), live.executed));
        assert_eq!(served.result_hash, live.result_hash);
        let kind = |reply: &tooltape::Reply| {
            let fault = reply.fault.as_ref().unwrap();
            (fault.kind.name(), fault.code.clone())
        };
        assert_eq!(kind(&served), kind(&live));
        assert_eq!(spy.calls(), 1);
    }
}

#[tokio::test]
async fn a_recording_never_answers_for_another_call() {
    let (spy, tape) = (Spy::new("reads", Access::Read), MemoryTape::default());
    let run = over(&[&spy]).tape(tape.clone());
    run.batch(proposals("reads {}")).await.unwrap();
    let again = over(&[&spy]).performer(FromTape::new(&tape.records(run.id())));
    let told = play(&again, "reads {\"n\":1}\nreads {}").await;
    expect![[r#"
        c1 not executed: the recording has another call here
        c2 not executed: this call is not in the recording
    "#]]
    .assert_eq(&told);
}

#[tokio::test]
async fn faults_are_structured_not_only_text() {
    let fails = returning(|_| {
        Err(ToolError::not_done("quota used up").code("quota.spent").details(json!({ "left": 0 })))
    });
    let reply = over(&[&fails]).batch(proposals("tool {}")).await.unwrap().remove(0);
    assert_eq!(reply.executed, Executed::NotExecuted);
    assert_eq!(reply.details.as_deref(), Some(&json!({ "left": 0 })));
    let fault = serde_json::to_value(&reply.fault).unwrap();
    let text = "quota used up";
    let expected =
        json!({ "kind": "failed", "code": "quota.spent", "told": text, "message": text });
    assert_eq!(fault, expected);
}

#[tokio::test]
async fn nothing_happens_that_is_not_on_tape_first() {
    let tape = MemoryTape::default();
    let run = over(&[&Spy::new("writes", Access::Write)]).tape(tape.clone());
    run.batch(proposals("writes {}\nnobody {}")).await.unwrap();
    let kinds: Vec<String> = tape
        .records(run.id())
        .iter()
        .map(|record| serde_json::to_value(record).unwrap()["type"].as_str().unwrap().into())
        .collect();
    assert_eq!(
        kinds,
        [
            "run.started",
            "call.proposed",
            "call.judged",
            "call.started",
            "call.settled",
            "call.proposed",
            "call.settled",
        ]
    );
}

#[tokio::test]
async fn there_is_no_way_to_an_effect_but_through_a_permitted_tool() {
    let spy = Spy::new("writes", Access::Write);
    let toolbox = Toolbox::new([spy.tool()]).unwrap();
    let run = Run::new(&toolbox).policy(Rules::deny_all());
    for name in ["writes", "WRITES", "writes ", "../writes", "tool::writes", ""] {
        run.batch(vec![Proposal::new("c", name, "{}")]).await.unwrap();
    }
    assert_eq!(spy.calls(), 0);
    let records = run.batch(vec![]).await.unwrap();
    assert!(records.is_empty(), "an empty batch does nothing");
}

#[tokio::test]
async fn altering_dropping_swapping_or_inserting_a_record_is_detected() {
    let tape = MemoryTape::default();
    let run = Run::new(&Toolbox::new(builtin::tools()).unwrap()).tape(tape.clone());
    run.batch(proposals(r#"echo {"text":"a"}"#)).await.unwrap();
    let (records, head) = (tape.records(run.id()), tape.head(run.id()).unwrap());
    verify(&records, head).unwrap();

    let mut dropped = records.clone();
    dropped.remove(1);
    let mut swapped = records.clone();
    swapped.swap(1, 2);
    let mut inserted = records.clone();
    inserted.insert(1, records[1].clone());
    let mut altered = records.clone();
    altered[1].at_us += 1;
    let mut truncated = records.clone();
    truncated.pop();
    for damaged in [dropped, swapped, inserted, altered, truncated] {
        assert!(verify(&damaged, head).is_err());
    }
}

#[tokio::test]
async fn an_output_that_breaks_its_schema_is_flagged_and_kept_for_the_application() {
    let lies = returning(|_| Output::value(&json!({ "sum": "five" }))).declaring(|spec| {
        spec.output(json!({ "type": "object", "properties": { "sum": { "type": "integer" } } }))
    });
    let reply = over(&[&lies]).batch(proposals("tool {}")).await.unwrap().remove(0);
    assert_eq!((reply.is_error, reply.executed), (true, Executed::Executed));
    assert_eq!(&*reply.fault.as_ref().unwrap().code, "output.invalid");
    assert_eq!(reply.value.as_ref().unwrap().as_str(), r#"{"sum":"five"}"#);
    assert!(reply.text().contains("/sum"), "{}", reply.text());
}

#[tokio::test]
async fn content_blocks_reach_the_model_and_details_only_the_host() {
    let rich = returning(|_| {
        let image = Block::Image { media_type: "image/png".into(), data: "AAAA".into() };
        Ok(Output::text("a chart").block(image).detail(json!({ "took": "long" })))
    });
    let reply = over(&[&rich]).batch(proposals("tool {}")).await.unwrap().remove(0);
    assert_eq!(reply.text(), "a chart\n[image: image/png]");
    assert!(!serde_json::to_string(&reply.content).unwrap().contains("long"));
    assert!(reply.details.is_some());
}
