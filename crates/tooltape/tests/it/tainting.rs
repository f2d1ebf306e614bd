//! Labels in a run: what the model was shown decides what it may do next.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tooltape::{
    Access, Answer, Artifacts, Call, Effects, Empty, Event, Label, MemoryTape, Output, Proposal,
    Reach, Replay, Reply, Run, Spawn, Spec, Store, Tool, ToolError, Toolbox, Verdict, input,
    tool_fn,
};

/// The effects of something that changes nothing, on other machines.
fn asks() -> Effects {
    Effects { reach: Reach::Network, ..Effects::read() }
}

fn sends() -> Effects {
    Effects { access: Access::Write, ..asks() }
}

fn local() -> Effects {
    Effects { access: Access::Write, filesystem: true, ..Effects::read() }
}

fn says(spec: Spec, text: &'static str) -> Arc<dyn Tool> {
    tool_fn(spec, move |_: Empty| async move { Ok::<_, ToolError>(text) })
}

fn of(name: &str, effects: Effects) -> Spec {
    Spec::new(name.to_owned(), "Does something.").effects(effects)
}

/// What anybody may have written, and what matters once it was read.
fn tools() -> Vec<Arc<dyn Tool>> {
    let payroll = of("payroll", Effects::read()).labelled(Label::secret("payroll"));
    let wiki = of("wiki", Effects::read()).labelled(Label::internal());
    vec![
        says(of("web", asks()), "a page"),
        says(of("inbox", Effects::read()).labelled(Label::untrusted("mail")), "a mail"),
        says(payroll, "salaries"),
        says(wiki, "plans"),
        says(of("ours", asks()).labelled(Label::default()), "our own page"),
        says(of("note", local()), "noted"),
        says(of("send", sends()), "sent"),
    ]
}

fn run_of(tools: Vec<Arc<dyn Tool>>) -> Run {
    Run::new(&Toolbox::new(tools).unwrap()).policy(|_: &Call| Verdict::allow("all"))
}

fn calls(names: &[&str]) -> Vec<Proposal> {
    let named = names.iter().enumerate();
    named.map(|(no, name)| Proposal::new(format!("c{no}"), *name, "{}")).collect()
}

async fn call(run: &Run, name: &str) -> Reply {
    run.batch(calls(&[name])).await.unwrap().remove(0)
}

/// The rule that held a call back, if one did.
fn rule(reply: &Reply) -> Option<&str> {
    reply.fault.as_ref().and_then(|fault| fault.rule.as_deref())
}

#[tokio::test]
async fn the_label_of_a_run_is_the_join_of_what_its_model_was_shown() {
    let run = run_of(tools());
    let mut seen = Vec::new();
    for name in ["note", "ours", "web", "note", "inbox", "payroll", "web"] {
        call(&run, name).await;
        seen.push(run.label().to_string());
    }
    assert_eq!(
        seen,
        [
            "trusted, public",
            "trusted, public",
            "untrusted (web), public",
            "untrusted (web), public",
            "untrusted (mail, web), public",
            "untrusted (mail, web), secret (payroll)",
            "untrusted (mail, web), secret (payroll)",
        ]
    );
}

#[tokio::test]
async fn a_policy_sees_what_the_model_had_been_shown() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let run = Run::new(&Toolbox::new(tools()).unwrap()).policy(move |call: &Call| {
        log.lock().unwrap().push(call.label().to_string());
        Verdict::allow("all")
    });
    call(&run, "web").await;
    // Whatever of a batch ends first, its calls were proposed before anybody read it.
    run.batch(calls(&["inbox", "note", "web"])).await.unwrap();
    call(&run, "note").await;
    let web = "untrusted (web), public";
    assert_eq!(
        *seen.lock().unwrap(),
        ["trusted, public", web, web, web, "untrusted (mail, web), public"]
    );
}

#[tokio::test]
async fn what_matters_is_asked_about_once_the_model_has_read_what_anybody_may_have_written() {
    let spends = || Effects { spend: true, ..Effects::read() };
    let starts = || Effects { process: true, ..Effects::read() };
    let cases: [(&str, Spec, Option<&str>); 10] = [
        ("pure", of("it", Effects::pure()), None),
        ("a local read", of("it", Effects::read()), None),
        ("a local write", of("it", local()), None),
        ("a read on other machines", of("it", asks()), None),
        ("a write on other machines", of("it", sends()), Some("label: untrusted")),
        ("spending", of("it", spends()), Some("label: untrusted")),
        ("a process", of("it", starts()), Some("label: untrusted")),
        ("a secret", of("it", Effects::read()).needs("secret:use:key"), Some("label: untrusted")),
        ("a read that declares no more", Spec::new("it", "Reads.").access(Access::Read), None),
        ("nothing declared", Spec::new("it", "Declares nothing."), Some("label: untrusted")),
    ];
    for (what, spec, expected) in cases {
        let rights = "secret:use:key".parse().unwrap();
        let run = run_of(tools().into_iter().chain([says(spec, "done")]).collect()).rights(rights);
        assert_eq!(rule(&call(&run, "it").await), None, "{what}, before");
        let read = call(&run, "web").await;
        assert_eq!(read.label(), &Label::untrusted("web"));
        assert_eq!(rule(&call(&run, "it").await), expected, "{what}, after");
    }
}

#[tokio::test]
async fn a_yes_under_a_label_is_for_one_call_and_its_arguments_alone() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let run = run_of(tools()).approver(move |pending| {
        log.lock().unwrap().push((pending.rule().to_owned(), pending.is_exact()));
        Box::pin(async { Answer::Run })
    });
    call(&run, "web").await;
    for _ in 0..3 {
        assert!(!call(&run, "send").await.is_error);
    }
    let exactly = ("label: untrusted".to_owned(), true);
    assert_eq!(*asked.lock().unwrap(), vec![exactly; 3]);
}

#[tokio::test]
async fn what_was_approved_for_a_run_is_asked_again_once_it_has_a_label() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let run = run_of(tools())
        .policy(|call: &Call| match call.tool().name().as_str() {
            "send" => Verdict::ask("sending"),
            _ => Verdict::allow("all"),
        })
        .approver(move |pending| {
            log.lock().unwrap().push((pending.rule().to_owned(), pending.is_exact()));
            Box::pin(async { Answer::Run })
        });
    for name in ["send", "send", "web", "send", "send"] {
        assert!(!call(&run, name).await.is_error);
    }
    let sending = |exact| ("sending".to_owned(), exact);
    assert_eq!(*asked.lock().unwrap(), [sending(false), sending(true), sending(true)]);
}

#[tokio::test]
async fn a_rule_that_knows_of_the_label_is_not_asked_about() {
    let run = run_of(tools()).policy(|call: &Call| match call.label().is_trusted() {
        true => Verdict::allow("all"),
        false => Verdict::allow_despite_label("the user wants it so"),
    });
    call(&run, "web").await;
    assert!(!call(&run, "send").await.is_error);
}

#[tokio::test]
async fn what_is_not_public_is_told_to_listed_hosts_alone() {
    let post = |host: &str| {
        let name = format!("post_{}", host.replace('.', "_"));
        says(of(&name, sends()).needs(format!("net:post:{host}")), "posted")
    };
    let get = says(of("get_x_org", asks()).needs("net:get:x.org"), "got");
    let more = [post("a.example.com"), post("x.org"), get];
    let run = |label| {
        run_of(tools().into_iter().chain(more.clone()).collect())
            .rights("net:any:*.example.com\nnet:any:x.org".parse().unwrap())
            .may_tell("*.example.com".parse().unwrap())
            .labelled(label)
    };
    let (internal, secret) = (Label::internal(), Label::secret("payroll"));
    for (label, name, expected) in [
        (&internal, "post_a_example_com", None),
        (&internal, "post_x_org", Some("label: internal")),
        (&internal, "get_x_org", Some("label: internal")),
        (&internal, "send", Some("label: internal")),
        (&internal, "note", None),
        (&secret, "post_a_example_com", None),
        (&secret, "post_x_org", Some("label: secret")),
        (&secret, "get_x_org", Some("label: secret")),
        (&secret, "send", Some("label: secret")),
        (&secret, "note", None),
    ] {
        let reply = call(&run(label.clone()), name).await;
        assert_eq!(rule(&reply), expected, "{name} under {label}");
    }
    // What is secret is not told by anybody's leave, and what is internal is.
    let yes = |run: Run| run.approver(|_| Box::pin(async { Answer::Once }));
    assert!(!call(&yes(run(internal)), "post_x_org").await.is_error);
    assert!(call(&yes(run(secret)), "post_x_org").await.is_error);
}

#[tokio::test]
async fn strict_runs_trust_no_result_that_nobody_declared() {
    for (strict, expected) in [(false, "trusted, public"), (true, "untrusted (send), public")] {
        // A strict run asks about what declares too little, unless a rule names the tool.
        let run = run_of(tools()).policy(|_: &Call| Verdict::allow_tool("all"));
        let run = if strict { run.strict() } else { run };
        call(&run, "send").await;
        assert_eq!(run.label().to_string(), expected);
    }
}

#[tokio::test]
async fn what_a_tool_says_when_it_fails_has_its_label_too() {
    let fails = tool_fn(of("fails", asks()), async |_: Empty| {
        Err::<(), _>(ToolError::tell("the server says: obey"))
    });
    let run = run_of(vec![fails]);
    assert!(call(&run, "fails").await.is_error);
    assert_eq!(run.label().to_string(), "untrusted (fails), public");
    // What was never started said nothing.
    let run = run_of(tools()).policy(|_: &Call| Verdict::deny("no", "no"));
    call(&run, "web").await;
    assert!(run.label().is_trusted());
}

#[tokio::test]
async fn a_result_may_say_more_than_its_tool_declares_and_never_less() {
    let spec = of("reads", asks());
    let reads = tool_fn(spec, async |_: Empty| {
        Ok::<_, ToolError>(Output::text("hi").labelled(Label::secret("key")))
    });
    let run = run_of(vec![reads]);
    call(&run, "reads").await;
    assert_eq!(run.label().to_string(), "untrusted (reads), secret (key)");
}

#[input]
struct Kept {
    id: String,
}

fn keeps() -> [Arc<dyn Tool>; 2] {
    let keep = tool_fn(of("keep", local()), async |_: Empty, artifacts: Artifacts| {
        let kept = artifacts.put("do what I say").await.map_err(ToolError::from)?;
        Ok::<_, ToolError>(kept.id.to_string())
    });
    let open = tool_fn(of("open", Effects::read()), async |args: Kept, artifacts: Artifacts| {
        let id = args.id.parse().map_err(ToolError::from)?;
        let bytes = artifacts.get(id).await.map_err(ToolError::from)?;
        Ok::<_, ToolError>(String::from_utf8_lossy(&bytes).into_owned())
    });
    [keep, open]
}

#[tokio::test]
async fn a_label_survives_an_artifact() {
    let folder = tempfile::tempdir().unwrap();
    for artifacts in [Artifacts::memory(), Artifacts::in_dir(folder.path()).unwrap()] {
        let tainted = run_of(tools().into_iter().chain(keeps()).collect()).grant(artifacts.clone());
        call(&tainted, "web").await;
        let id = call(&tainted, "keep").await.text();
        // Another run is shown the artifact, perhaps by another process.
        let artifacts = match artifacts.label(id.parse().unwrap()).is_trusted() {
            true => panic!("the artifact is trusted"),
            false => artifacts,
        };
        let fresh = run_of(keeps().into()).grant(artifacts.clone());
        let opened = || vec![Proposal::new("o", "open", json!({ "id": id }).to_string())];
        assert!(fresh.batch(opened()).await.unwrap()[0].is_error, "nobody showed it to this run");
        let clean = run_of(keeps().into()).grant(artifacts.clone());
        let kept = call(&clean, "keep").await;
        // The same bytes, which somebody else had put there before.
        let opened =
            clean.batch(vec![Proposal::new("o", "open", json!({ "id": kept.text() }).to_string())]);
        opened.await.unwrap();
        assert_eq!(clean.label().to_string(), "untrusted (web), public");
    }
    let again = Artifacts::in_dir(folder.path()).unwrap();
    let run = run_of(keeps().into()).grant(again);
    let kept = call(&run, "keep").await.text();
    run.batch(vec![Proposal::new("o", "open", json!({ "id": kept }).to_string())]).await.unwrap();
    assert!(!run.label().is_trusted(), "another process knows it too");
}

#[input]
struct Entry {
    #[serde(default)]
    text: String,
}

fn remembers() -> [Arc<dyn Tool>; 2] {
    let remember = tool_fn(of("remember", local()), async |args: Entry, store: Store| {
        store.named("memory")?.set("last", &args.text).await?;
        Ok::<_, ToolError>("remembered")
    });
    let recall = tool_fn(of("recall", Effects::read()), async |_: Empty, store: Store| {
        let found: Option<String> = store.named("memory")?.get("last").await?;
        Ok::<_, ToolError>(found.unwrap_or_default())
    });
    [remember, recall]
}

#[tokio::test]
async fn a_label_survives_memory_until_it_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("memory.db");
    let memory = Store::memory().by_thread();
    let open: [&dyn Fn() -> Store; 2] =
        [&|| memory.clone(), &|| Store::sqlite(&file).unwrap().by_thread()];
    for store in open {
        let run = || {
            let tools = tools().into_iter().chain(remembers()).collect();
            run_of(tools).grant(store()).thread("ours")
        };
        let tainted = run();
        call(&tainted, "web").await;
        call(&tainted, "remember").await;
        let later = run();
        call(&later, "recall").await;
        assert_eq!(later.label().to_string(), "untrusted (web), public");
        assert_eq!(rule(&call(&later, "send").await), Some("label: untrusted"));
        // Once somebody who has seen nothing writes over it, it is theirs.
        call(&run(), "remember").await;
        let clean = run();
        call(&clean, "recall").await;
        assert!(clean.label().is_trusted());
    }
}

fn delegates(output: Option<serde_json::Value>) -> Arc<dyn Tool> {
    let spec = of("delegate", Effects { recursive: true, ..local() }).takes::<Spawn>();
    let spec = if let Some(output) = output { spec.output(output) } else { spec };
    tool_fn(spec, async |_: Empty, spawn: Spawn| {
        let child = spawn.child()?.start();
        let replies = child.batch(calls(&["web", "note"])).await.map_err(ToolError::from)?;
        child.batch(calls(&["send"])).await.map_err(ToolError::from)?;
        Ok::<_, ToolError>(replies.len() == 2)
    })
}

#[tokio::test]
async fn a_label_survives_a_sub_agent() {
    let tape = MemoryTape::default();
    let run = run_of(tools().into_iter().chain([delegates(None)]).collect()).tape(tape.clone());
    call(&run, "delegate").await;
    assert_eq!(run.label().to_string(), "untrusted (web), public");
    let denied = tape.runs().into_iter().filter(|id| *id != run.id()).any(|child| {
        tape.records(child).iter().any(|record| match &record.event {
            Event::Judged { verdict, rule, .. } => {
                (*verdict, &**rule) == ("ask", "label: untrusted")
            }
            _ => false,
        })
    });
    assert!(denied, "the child may do no more than its parent");
}

#[tokio::test]
async fn a_child_begins_with_what_its_parent_had_been_shown() {
    let ask = tool_fn(
        of("ask", Effects { recursive: true, ..local() }),
        async |_: Empty, spawn: Spawn| {
            let child = spawn.child()?.start();
            let replies = child.batch(calls(&["send"])).await.map_err(ToolError::from)?;
            Ok::<_, ToolError>(replies[0].fault.as_ref().and_then(|it| it.rule.clone()).is_some())
        },
    );
    let run = run_of(tools().into_iter().chain([ask]).collect());
    assert_eq!(call(&run, "ask").await.text(), "false");
    call(&run, "web").await;
    assert_eq!(call(&run, "ask").await.text(), "true");
}

#[tokio::test]
async fn somebody_may_vouch_for_what_leaves_no_room_for_a_text() {
    let tape = MemoryTape::default();
    let tools = tools().into_iter().chain([delegates(Some(json!({ "type": "boolean" })))]);
    let run = run_of(tools.collect()).tape(tape.clone()).endorse("delegate", "the desk").unwrap();
    let reply = call(&run, "delegate").await;
    assert_eq!((reply.endorsed(), reply.label()), (Some("the desk"), &Label::default()));
    assert!(run.label().is_trusted());
    assert!(!call(&run, "send").await.is_error);
    let kept = tape.records(run.id()).iter().any(|record| match &record.event {
        Event::Settled(reply) => reply.endorsed() == Some("the desk"),
        _ => false,
    });
    assert!(kept, "the tape says who");
}

#[tokio::test]
async fn a_label_survives_the_tape() {
    let tape = MemoryTape::default();
    let toolbox = Toolbox::new(tools()).unwrap();
    let open = || Run::new(&toolbox).tape(tape.clone()).policy(|_: &Call| Verdict::allow("all"));
    let run = open().labelled(Label::internal());
    run.batch(calls(&["inbox", "note"])).await.unwrap();
    assert!(call(&run, "send").await.is_error);
    let report = Replay::of(&tape, run.id())
        .with(&toolbox)
        .policy(|_: &Call| Verdict::allow("all"))
        .check()
        .await
        .unwrap();
    assert!(report.is_same(), "{report}");
    let (id, label) = (run.id(), run.label());
    drop(run);
    let resumed = open().resume(id).await.unwrap();
    assert_eq!(resumed.label(), label);
    assert_eq!(label.to_string(), "untrusted (mail), internal");
    assert_eq!(rule(&call(&resumed, "send").await), Some("label: untrusted"));
}
