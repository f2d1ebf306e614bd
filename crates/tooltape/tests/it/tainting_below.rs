//! Labels and money below a call: children, memory, answers on the tape, and what a crash leaves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use tooltape::{
    Access, Answer, Call, Clock, Effects, Empty, Event, Fork, Label, MemoryTape, Proposal, Reach,
    Replay, Reply, Run, RunError, Secret, Spawn, Spec, State, Store, Tool, ToolError, Toolbox,
    Verdict, answer_question, input, open_questions, tool_fn,
};

fn asks() -> Effects {
    Effects { reach: Reach::Network, ..Effects::read() }
}

fn sends() -> Effects {
    Effects { access: Access::Write, ..asks() }
}

fn nests() -> Effects {
    Effects { recursive: true, access: Access::Write, ..Effects::read() }
}

fn says(spec: Spec) -> Arc<dyn Tool> {
    tool_fn(spec, |_: Empty| async { Ok::<_, ToolError>("done") })
}

fn of(name: &str, effects: Effects) -> Spec {
    Spec::new(name.to_owned(), "Does something.").effects(effects)
}

fn tools() -> Vec<Arc<dyn Tool>> {
    let payroll = of("payroll", Effects::read()).labelled(Label::secret("payroll"));
    vec![says(of("web", asks())), says(of("send", sends())), says(payroll)]
}

fn with(tool: Arc<dyn Tool>) -> Run {
    let tools = tools().into_iter().chain([tool]);
    Run::new(&Toolbox::new(tools).unwrap()).policy(|_: &Call| Verdict::allow("all"))
}

fn calls(name: &str) -> Vec<Proposal> {
    vec![Proposal::new("c", name, "{}")]
}

async fn call(run: &Run, name: &str) -> Reply {
    run.batch(calls(name)).await.unwrap().remove(0)
}

fn rule(reply: &Reply) -> Option<String> {
    reply.fault.as_ref().and_then(|fault| fault.rule.as_deref().map(str::to_owned))
}

#[tokio::test]
async fn what_one_child_was_shown_its_sibling_may_have_been_told() {
    let pass_on = tool_fn(of("pass_on", nests()), async |_: Empty, spawn: Spawn| {
        let (reader, doer) = (spawn.child()?.start(), spawn.child()?.start());
        reader.batch(calls("web")).await.map_err(ToolError::from)?;
        let sent = doer.batch(calls("send")).await.map_err(ToolError::from)?.remove(0);
        Ok::<_, ToolError>(rule(&sent))
    });
    assert_eq!(call(&with(pass_on), "pass_on").await.text(), "label: untrusted");
}

#[tokio::test]
async fn the_children_of_a_tool_that_reads_pages_may_have_been_told_them() {
    let effects = Effects { recursive: true, ..asks() };
    let research = tool_fn(of("research", effects), async |_: Empty, spawn: Spawn| {
        let child = spawn.child()?.start();
        let sent = child.batch(calls("send")).await.map_err(ToolError::from)?.remove(0);
        Ok::<_, ToolError>(rule(&sent))
    });
    assert_eq!(call(&with(research), "research").await.text(), "label: untrusted");
}

#[tokio::test]
async fn a_label_survives_a_state_that_runs_share() {
    let state = State::new(String::new());
    let put = tool_fn(of("put", nests()), async |_: Empty, state: State<String>| {
        state.update(|text| text.push_str("obey"))?;
        Ok::<_, ToolError>("put")
    });
    let get = tool_fn(of("get", Effects::read()), async |_: Empty, state: State<String>| {
        Ok::<_, ToolError>(state.get())
    });
    let run = || {
        let tools = tools().into_iter().chain([put.clone(), get.clone()]);
        let run = Run::new(&Toolbox::new(tools).unwrap()).grant(state.clone());
        run.policy(|_: &Call| Verdict::allow("all"))
    };
    let clean = run();
    call(&clean, "get").await;
    assert!(clean.label().is_trusted());
    let tainted = run();
    call(&tainted, "web").await;
    call(&tainted, "put").await;
    let later = run();
    call(&later, "get").await;
    assert_eq!(rule(&call(&later, "send").await).as_deref(), Some("label: untrusted"));
}

#[tokio::test]
async fn a_secret_is_not_told_even_where_a_policy_asks_exactly() {
    let run = with(says(of("other", Effects::read())))
        .policy(|call: &Call| match call.tool().name().as_str() {
            "send" => Verdict::ask_exactly("sending"),
            _ => Verdict::allow("all"),
        })
        .approver(|_| Box::pin(async { Answer::Once }));
    assert!(!call(&run, "send").await.is_error);
    call(&run, "payroll").await;
    assert_eq!(rule(&call(&run, "send").await).as_deref(), Some("label: secret"));
}

#[tokio::test]
async fn a_label_that_a_host_gives_adds_to_what_the_run_knows() {
    let tape = MemoryTape::default();
    let run = with(says(of("other", Effects::read()))).tape(tape.clone());
    call(&run, "web").await;
    let id = run.id();
    drop(run);
    let resumed = with(says(of("other", Effects::read()))).tape(tape).resume(id).await.unwrap();
    let resumed = resumed.labelled(Label::internal());
    assert_eq!(resumed.label().to_string(), "untrusted (web), internal");
}

/// A run that waits for an answer on the tape before it sends.
fn pausing_to_send(tape: &MemoryTape) -> Run {
    let run = with(says(of("other", Effects::read()))).tape(tape.clone());
    run.policy(|call: &Call| match call.tool().name().as_str() {
        "send" => Verdict::ask("sending"),
        _ => Verdict::allow("all"),
    })
    .pausing()
}

#[tokio::test]
async fn a_yes_on_the_tape_for_the_whole_run_is_for_one_call_under_a_label() {
    let tape = MemoryTape::default();
    let open = || pausing_to_send(&tape);
    let run = open();
    call(&run, "web").await;
    let paused = run.batch(calls("send")).await.unwrap_err();
    assert!(matches!(paused, RunError::Paused { .. }));
    let id = run.id();
    drop(run);
    let question = open_questions(&tape, id).await.unwrap().remove(0).question;
    let clock = Clock::system();
    answer_question(&tape, &clock, id, question.approval, Answer::Run).await.unwrap();
    let resumed = open().resume(id).await.unwrap();
    assert_eq!(resumed.settle_open().await.unwrap().len(), 1);
    let again = resumed.batch(calls("send")).await.unwrap_err();
    assert!(matches!(again, RunError::Paused { .. }), "the next one is asked about");
}

#[input]
struct Bill {
    amount: f64,
}

#[tokio::test]
async fn what_children_spent_before_a_crash_is_spent() {
    let spec = Spec::new("pay", "Pays.").needs("spend:usd:{amount}");
    let pay = tool_fn(spec, async |bill: Bill| Ok::<_, ToolError>(bill.amount));
    let delegate = tool_fn(Spec::new("delegate", "Pays."), async |bill: Bill, spawn: Spawn| {
        let child = spawn.child()?.start();
        let pay = Proposal::new("p", "pay", json!({ "amount": bill.amount }).to_string());
        let paid = child.batch(vec![pay]).await.map_err(ToolError::from)?.remove(0);
        Ok::<_, ToolError>(!paid.is_error)
    });
    let (tape, toolbox) = (MemoryTape::default(), Toolbox::new([pay, delegate]).unwrap());
    let open = || {
        let run = Run::new(&toolbox).tape(tape.clone()).rights("spend:usd:5".parse().unwrap());
        run.policy(|_: &Call| Verdict::allow("all"))
    };
    let delegated =
        |amount: f64| vec![Proposal::new("d", "delegate", json!({ "amount": amount }).to_string())];
    let run = open();
    assert_eq!(run.batch(delegated(4.0)).await.unwrap()[0].text(), "true");
    let id = run.id();
    drop(run);
    let resumed = open().resume(id).await.unwrap();
    assert_eq!(resumed.batch(delegated(4.0)).await.unwrap()[0].text(), "false");
    assert_eq!(resumed.batch(delegated(1.0)).await.unwrap()[0].text(), "true");
    let direct = Proposal::new("p", "pay", r#"{"amount":0.5}"#);
    assert!(resumed.batch(vec![direct]).await.unwrap()[0].is_error);
    let replay = Replay::of(&tape, id).with(&toolbox).policy(|_: &Call| Verdict::allow("all"));
    let report = replay.check().await.unwrap();
    assert!(report.is_same(), "{report}");
}

#[tokio::test]
async fn a_child_that_asks_exactly_is_not_answered_for_the_whole_run() {
    let asked = Arc::new(AtomicU64::new(0));
    let count = asked.clone();
    let twice = tool_fn(of("twice", nests()), async |_: Empty, spawn: Spawn| {
        let child = spawn.child()?.policy(|_: &Call| Verdict::ask_exactly("child"));
        let child = child.start();
        for _ in 0..2 {
            child.batch(calls("send")).await.map_err(ToolError::from)?;
        }
        Ok::<_, ToolError>("done")
    });
    let run = with(twice)
        .policy(|call: &Call| match call.tool().name().as_str() {
            "send" => Verdict::ask("parent"),
            _ => Verdict::allow("all"),
        })
        .approver(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { Answer::Run })
        });
    assert!(!call(&run, "twice").await.is_error);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[input]
struct Keyed {
    key: String,
}

#[tokio::test]
async fn a_store_does_not_tell_how_a_secret_begins() {
    let secret = "ghp_Zq81xTTp0000abcdefgh";
    let keep = tool_fn(of("keep", nests()), async |args: Keyed, store: Store| {
        store.named("kept")?.set(&args.key, &1).await?;
        Ok::<_, ToolError>("kept")
    });
    let run = with(keep).grant(Store::memory()).grant(Secret::new(secret.to_owned()));
    for bytes in [8, 16, 20, 23] {
        let args = json!({ "key": &secret[..bytes] }).to_string();
        let reply = run.batch(vec![Proposal::new("k", "keep", args)]).await.unwrap().remove(0);
        assert!(!reply.is_error, "{bytes}: {}", reply.text());
    }
}

/// Tools that keep what a page says, where its reader returns no more than whether it did.
fn keepers() -> Vec<Arc<dyn Tool>> {
    let keeping = || {
        let spec = of("keep", nests()).labelled(Label::untrusted("page"));
        spec.output(json!({ "type": "boolean" }))
    };
    let keep = tool_fn(keeping(), async |_: Empty, store: Store, state: State<String>| {
        store.named("kept")?.set("page", &"obey").await?;
        state.update(|text| text.push_str("obey"))?;
        Ok::<_, ToolError>(true)
    });
    let recall = tool_fn(of("recall", Effects::read()), async |_: Empty, store: Store| {
        store.named("kept")?.get::<String>("page").await
    });
    let look = tool_fn(of("look", Effects::read()), async |_: Empty, state: State<String>| {
        Ok::<_, ToolError>(state.get())
    });
    vec![keep, recall, look]
}

#[tokio::test]
async fn what_an_endorsed_tool_kept_has_its_label_where_a_run_is_resumed_or_forked() {
    let (tape, folder) = (MemoryTape::default(), tempfile::tempdir().unwrap());
    let toolbox = Toolbox::new(tools().into_iter().chain(keepers())).unwrap();
    let open = |store: Store| {
        let run = Run::new(&toolbox).tape(tape.clone()).grant(store);
        let run = run.grant(State::new(String::new())).policy(|_: &Call| Verdict::allow("all"));
        run.endorse("keep", "desk").unwrap()
    };
    let run = open(Store::memory());
    assert_eq!(call(&run, "keep").await.text(), "true");
    assert!(!call(&run, "send").await.is_error, "nothing of the page was shown");
    let (id, len) = (run.id(), tape.records(run.id()).len() as u64);
    drop(run);
    let in_file = Store::sqlite(folder.path().join("store.db")).unwrap();
    for memory in ["recall", "look"] {
        for store in [Store::memory(), in_file.clone()] {
            let forked = open(store).fork(Fork::of(id, len)).await.unwrap();
            assert!(forked.label().is_trusted());
            assert_eq!(call(&forked, memory).await.text(), "obey");
            assert_eq!(rule(&call(&forked, "send").await).as_deref(), Some("label: untrusted"));
        }
    }
    let resumed = open(Store::memory()).resume(id).await.unwrap();
    assert!(!call(&resumed, "send").await.is_error);
    call(&resumed, "recall").await;
    assert_eq!(rule(&call(&resumed, "send").await).as_deref(), Some("label: untrusted"));
    let again = open(Store::memory()).resume(id).await.unwrap();
    call(&again, "look").await;
    assert_eq!(again.label().to_string(), "untrusted (page), public");
    let replay = Replay::of(&tape, id).with(&toolbox).policy(|_: &Call| Verdict::allow("all"));
    let report = replay.check().await.unwrap();
    assert!(report.is_same(), "{report}");
}

#[tokio::test]
async fn what_is_trusted_is_kept_without_a_label() {
    let tape = MemoryTape::default();
    let keep = tool_fn(of("keep", nests()), async |_: Empty, store: Store| {
        store.named("kept")?.set("page", &"ours").await?;
        Ok::<_, ToolError>(true)
    });
    let run = with(keep).tape(tape.clone()).grant(Store::memory());
    call(&run, "keep").await;
    let labels = || {
        let records = tape.records(run.id()).into_iter();
        records.filter_map(|record| match record.event {
            Event::Stored { label, .. } => Some(label.map(|label| label.to_string())),
            _ => None,
        })
    };
    assert_eq!(labels().collect::<Vec<_>>(), [None]);
    call(&run, "web").await;
    call(&run, "keep").await;
    assert_eq!(labels().nth(1).unwrap().as_deref(), Some("untrusted (web), public"));
}

#[tokio::test]
async fn a_call_that_waited_for_an_answer_has_the_label_that_it_was_proposed_under() {
    let tape = MemoryTape::default();
    let open = || pausing_to_send(&tape);
    let run = open();
    let both = ["web", "send"].map(|name| Proposal::new(name, name, "{}")).to_vec();
    assert!(matches!(run.batch(both).await.unwrap_err(), RunError::Paused { .. }));
    let id = run.id();
    drop(run);
    let question = open_questions(&tape, id).await.unwrap().remove(0).question;
    answer_question(&tape, &Clock::system(), id, question.approval, Answer::Run).await.unwrap();
    let resumed = open().resume(id).await.unwrap();
    assert!(!resumed.label().is_trusted(), "its sibling has read a page");
    let settled = resumed.settle_open().await.unwrap();
    assert_eq!((settled[0].text().as_str(), settled[0].context()), ("done", &Label::default()));
    // The control: what is proposed from now on is asked about, whatever was approved before.
    let again = resumed.batch(calls("send")).await.unwrap_err();
    assert!(matches!(again, RunError::Paused { .. }));
}
