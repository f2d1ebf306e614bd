//! Tools that call tools: their own seats, their own depth, and one writer in the whole tree.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::Value;
use tooltape::testing::proposals;
use tooltape::{
    Access, Agent, Args, Bound, BoundKind, Bounds, BoxFuture, Effects, Empty, Event, Executed,
    Grants, MemoryTape, Name, Output, Proposal, Rules, Run, RunError, RunId, RunLimits, Script,
    Spawn, Spec, Stop, Tool, ToolError, Toolbox, Turn, Verdict, tool_fn, tool_fn_blocking,
};

use crate::driving::texts;
use crate::stage::{Stage, free, limited};

/// A tool that plays the script in its argument in a child run.
struct Nest(Spec);

impl Nest {
    fn tool(name: &str, bounds: Bounds) -> Arc<dyn Tool> {
        let input = serde_json::json!({ "type": "object" });
        let spec = Spec::new(name, "Plays a script in a child run.").input(input).bounds(bounds);
        Arc::new(Nest(spec.takes::<Spawn>()))
    }
}

impl Tool for Nest {
    fn spec(&self) -> &Spec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        args: Args,
        grants: &'a Grants,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let args = args.to_value();
            let mut child = grants.get::<Spawn>().expect("it is granted").child()?;
            if let Some(only) = args["only"].as_str().map(str::to_owned) {
                child = child.only(move |spec| *spec.name == *only);
            }
            let child = child.start();
            let replies = child.batch(proposals(args["play"].as_str().unwrap_or_default())).await?;
            Output::value(&replies.iter().map(|reply| reply.text()).collect::<Vec<_>>())
        })
    }
}

fn nest() -> Arc<dyn Tool> {
    Nest::tool("nest", Bounds::default())
}

/// A call of `nest` that plays `script`, as a line of a script.
fn nested(script: &str) -> String {
    format!("nest {}", serde_json::json!({ "play": script }))
}

#[tokio::test(start_paused = true)]
async fn twenty_children_five_deep_with_pools_of_one_all_complete() {
    let stage = Stage::new();
    let bounds = Bounds { concurrency: Bound::At(1), ..Bounds::default() };
    let run = free([Nest::tool("nest", bounds), stage.write("write")]);
    let run = limited(run, |limits| {
        (limits.concurrency, limits.mutations, limits.depth) = (1, 1, 5);
    });
    let script = (0..5).fold("write {\"ms\":1}".to_owned(), |script, _| nested(&script));
    let batch = vec![script; 20].join("\n");
    let replies = run.batch(proposals(&batch)).await.unwrap();
    assert!(replies.iter().all(|reply| !reply.is_error), "{:?}", texts(&replies));
    assert_eq!((stage.log().len(), stage.most_at_once()), (20, 1));
}

#[tokio::test(start_paused = true)]
async fn recursive_calls_overlap_each_other_and_nothing_else_of_their_batch() {
    let stage = Stage::new();
    let run = free([nest(), stage.read("read"), stage.read("inner")]);
    let script = format!("read {{}}\n{0}\n{0}\nread {{}}", nested("inner {}"));
    run.batch(proposals(&script)).await.unwrap();
    assert_eq!(stage.starts(), ["read@0", "inner@10", "inner@10", "read@20"]);
}

#[tokio::test(start_paused = true)]
async fn no_more_recursive_calls_run_at_once_than_a_level_allows() {
    let stage = Stage::new();
    let run = limited(free([nest(), stage.read("inner")]), |limits| limits.mutations = 3);
    let batch = vec![nested("inner {}"); 7].join("\n");
    run.batch(proposals(&batch)).await.unwrap();
    assert_eq!((stage.most_at_once(), stage.ms()), (3, 30));
}

#[tokio::test(start_paused = true)]
async fn writes_that_may_touch_anything_never_overlap_anywhere_in_the_tree() {
    let stage = Stage::new();
    let run = free([nest(), stage.write("write"), stage.file("edit", Access::Write)]);
    let inner = nested("write {}\nedit {\"path\":\"a\"}");
    let batch = format!("{}\n{}\n{}", nested("write {}\nwrite {}"), inner, nested(&inner));
    let replies = run.batch(proposals(&batch)).await.unwrap();
    assert!(replies.iter().all(|reply| !reply.is_error), "{:?}", texts(&replies));
    assert!(!stage.overlapped("write", "write"), "{:?}", stage.starts());
    assert_eq!(stage.log().iter().filter(|span| span.tool == "write").count(), 4);
}

#[tokio::test(start_paused = true)]
async fn nesting_stops_at_the_depth_limit_with_a_reply_and_not_with_an_error() {
    let (stage, tape) = (Stage::new(), MemoryTape::default());
    let run = free([nest(), stage.read("read")]).tape(tape.clone());
    let run = limited(run, |limits| limits.depth = 2);
    let deep = nested(&nested(&nested("read {}")));
    let replies = run.batch(proposals(&deep)).await.unwrap();
    assert!(!replies[0].is_error);
    assert!(replies[0].text().contains("not executed: the bound `depth` of 2 runs was reached"));
    assert!(stage.log().is_empty());

    let none = limited(free([nest()]), |limits| limits.depth = 0);
    let replies = none.batch(proposals(&nested(""))).await.unwrap();
    let fault = replies[0].fault.as_ref().unwrap();
    assert_eq!(fault.bound, Some(BoundKind::Depth));
    assert_eq!(replies[0].executed, Executed::NotExecuted);
}

#[tokio::test(start_paused = true)]
async fn a_child_has_its_parents_whole_toolbox_and_can_only_be_narrowed() {
    let stage = Stage::new();
    let toolbox = [nest(), stage.read("read"), stage.write("write")];
    let run = Run::new(&Toolbox::new(toolbox).unwrap())
        .policy(Rules::allow_reads().allow("nest").deny("write", "not here"));
    let replies = run.batch(proposals(&nested("read {}\nwrite {}"))).await.unwrap();
    assert_eq!(replies[0].text(), r#"["{}","not executed: denied: not here"]"#);

    let only = serde_json::json!({ "only": "read", "play": "read {}\nnest {}" });
    let replies = run.batch(proposals(&format!("nest {only}"))).await.unwrap();
    let text = replies[0].text();
    assert!(text.starts_with(r#"["{}","not executed: unknown tool `nest`"#), "{text}");

    let strict = tool_fn(Spec::new("strict", "Narrows."), async |_: Empty, spawn: Spawn| {
        let child = spawn.child()?.policy(Rules::deny_all()).start();
        let replies = child.batch(proposals("read {}")).await?;
        Ok::<_, ToolError>(replies[0].text())
    });
    let run = free([strict, stage.read("read")]);
    let replies = run.batch(proposals("strict {}")).await.unwrap();
    assert_eq!(replies[0].text(), "not executed: denied: `read` is not allowed in this run");
}

#[tokio::test(start_paused = true)]
async fn a_child_takes_no_tool_that_its_parent_lacks_not_even_as_an_agent() {
    let stage = Stage::new();
    let extra = stage.read("extra");
    let grow = tool_fn(Spec::new("grow", "Widens its child."), move |_: Empty, spawn: Spawn| {
        let extra = extra.clone();
        async move {
            let child = spawn.child()?.start();
            assert!(matches!(child.add(extra.clone()), Err(RunError::Narrow)));
            assert!(child.remove("read")?);
            let agent = Agent::new(Script::new([]), child);
            assert!(matches!(agent.run().add(extra), Err(RunError::Narrow)));
            let replies = agent.run().batch(proposals("extra {}\nread {}")).await?;
            Ok::<_, ToolError>(texts(&replies).join("\n"))
        }
    });
    let replies = free([grow, stage.read("read")]).batch(proposals("grow {}")).await.unwrap();
    let told = "not executed: unknown tool `extra`\nnot executed: unknown tool `read`";
    assert_eq!(replies[0].text(), told);
    assert!(stage.log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_child_answers_its_own_earlier_offers_and_none_of_more_than_it_has() {
    let stage = Stage::new();
    let narrow = tool_fn(Spec::new("narrow", "Narrows."), async |_: Empty, spawn: Spawn| {
        let whole = spawn.child()?.start().offer_all();
        let child = spawn.child()?.only(|spec| &*spec.name == "read").start();
        let earlier = child.offer_all();
        child.remove("read")?;
        let mut replies = child.answer(&whole, proposals("write {}\nread {}")).await?;
        replies.extend(child.answer(&earlier, proposals("read {}\nwrite {}")).await?);
        Ok::<_, ToolError>(texts(&replies).join("\n"))
    });
    let run = free([narrow, stage.read("read"), stage.write("write")]);
    let replies = run.batch(proposals("narrow {}")).await.unwrap();
    let told = "not executed: tool `write` is not offered this turn\n{}\n\
                {}\nnot executed: unknown tool `write`";
    assert_eq!(replies[0].text(), told);
    assert_eq!(stage.starts(), ["read@0", "read@10"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_answers_every_offer_that_it_made_and_none_of_another_toolbox() {
    let stage = Stage::new();
    let run = free([stage.read("first")]);
    run.add(stage.read("second")).unwrap();
    let offer = run.offer_all();
    assert!(run.remove("first").unwrap() && run.remove("second").unwrap());
    run.add(stage.read("second")).unwrap();
    let replies = run.answer(&offer, proposals("first {}\nsecond {}")).await.unwrap();
    assert_eq!(texts(&replies), ["{}", "{}"]);

    let other = free([stage.read("second")]).offer_all();
    let replies = run.answer(&other, proposals("second {}")).await.unwrap();
    assert_eq!(texts(&replies), ["not executed: tool `second` is not offered this turn"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_limit_refuses_uses_up_nothing_of_any_run() {
    let stage = Stage::new();
    let few = tool_fn(Spec::new("few", "Nests."), async |_: Empty, spawn: Spawn| {
        let mut limits = RunLimits::default();
        limits.run_calls = 1;
        let child = spawn.child()?.limits(limits).start();
        child.batch(proposals(&"read {}\n".repeat(10))).await?;
        Ok::<_, ToolError>(())
    });
    let run = limited(free([few, stage.read("read")]), |limits| limits.run_calls = 3);
    let run = run.quota(Name::new("read").unwrap(), 2);
    run.batch(proposals("few {}")).await.unwrap();
    // So far: `few`, and one `read`.
    let replies = run.batch(proposals("read {}\nread {}\nfew {}")).await.unwrap();
    assert!(!replies[0].is_error, "{:?}", texts(&replies));
    let bound = |at: usize| replies[at].fault.as_ref().and_then(|fault| fault.bound);
    assert_eq!((bound(1), bound(2)), (Some(BoundKind::ToolCalls), Some(BoundKind::RunCalls)));
}

#[tokio::test(start_paused = true)]
async fn what_a_child_calls_counts_against_the_limits_of_its_parent() {
    let stage = Stage::new();
    let run = limited(free([nest(), stage.read("read")]), |limits| limits.run_calls = 4);
    let replies =
        run.batch(proposals(&nested("read {}\nread {}\nread {}\nread {}"))).await.unwrap();
    let text = replies[0].text();
    assert!(text.contains("the bound `run_calls` of 4 calls was reached"), "{text}");
    assert_eq!(stage.log().len(), 3, "the nested call is one of the four");
}

#[tokio::test(start_paused = true)]
async fn a_child_is_cancelled_with_the_call_that_started_it_and_settles_its_own_calls() {
    let (stage, tape) = (Stage::new(), MemoryTape::default());
    let run = free([nest(), stage.read("read")]).tape(tape.clone());
    let batch = run.batch(proposals(&nested("read {\"ms\":900}\nread {\"ms\":5}")));
    let cancelling = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        run.cancel();
    };
    let (replies, ()) = tokio::join!(batch, cancelling);
    assert_eq!(replies.unwrap()[0].text(), r#"["unknown: cancelled","{\"ms\":5}"]"#);
    let child = children(&tape, run.id()).remove(0);
    let settled = tape.records(child).into_iter();
    assert_eq!(settled.filter(|it| matches!(it.event, Event::Settled(_))).count(), 2);
}

/// The runs that name this one as their parent.
fn children(tape: &MemoryTape, parent: RunId) -> Vec<RunId> {
    let children = tape.runs().into_iter().filter(|run| {
        tape.records(*run).iter().any(|record| match &record.event {
            Event::RunStarted { parent: Some(it), depth, .. } => it.run == parent && *depth == 1,
            _ => false,
        })
    });
    children.collect()
}

#[tokio::test]
async fn a_tool_that_calls_its_own_run_is_told_so_and_hangs_nobody() {
    let cell = Arc::new(OnceLock::<Run>::new());
    let inner = cell.clone();
    let sly = tool_fn(Spec::new("sly", "Calls its own run."), move |_: Empty| {
        let run = inner.clone();
        async move {
            let run = run.get().expect("it is set");
            let again = vec![Proposal::new("again", "sly", "{}")];
            match run.batch(again).await {
                Ok(_) => Ok("it worked".to_owned()),
                Err(err) => Err(ToolError::tell(err.to_string())),
            }
        }
    });
    let run = cell.get_or_init(|| limited(free([sly]), |limits| limits.concurrency = 1));
    let replies = run.batch(proposals("sly {}")).await.unwrap();
    let told = "failed: not executed: a tool cannot use the run that called it; \
                take `Spawn` for a child";
    assert_eq!(replies[0].text(), told);
}

/// A run whose only seat is taken by `sly`, which was made to call that run.
fn reentered(make: impl FnOnce(Arc<OnceLock<Run>>) -> Arc<dyn Tool>) -> Arc<OnceLock<Run>> {
    let cell = Arc::new(OnceLock::new());
    let run = free([make(cell.clone()), Stage::new().read("read")]);
    cell.get_or_init(|| limited(run, |limits| limits.concurrency = 1));
    cell
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_tool_that_calls_its_own_run_is_told_so_on_its_thread() {
    let handle = tokio::runtime::Handle::current();
    let run = reentered(|run| {
        tool_fn_blocking(Spec::new("sly", "Calls its own run."), move |_: Empty| {
            let run = run.get().expect("it is set");
            match handle.block_on(run.batch(proposals("read {}"))) {
                Ok(_) => Ok("it worked".to_owned()),
                Err(err) => Err(ToolError::tell(err.to_string())),
            }
        })
    });
    let replies = run.get().unwrap().batch(proposals("sly {}")).await.unwrap();
    let told = "failed: not executed: a tool cannot use the run that called it; \
                take `Spawn` for a child";
    assert_eq!(replies[0].text(), told);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_calls_its_own_run_from_a_task_ends_at_its_wall_time() {
    let run = reentered(|run| {
        tool_fn(Spec::new("sly", "Calls its own run."), move |_: Empty| {
            let run = run.clone();
            async move {
                let task = async move { run.get().unwrap().batch(proposals("read {}")).await };
                tokio::spawn(task).await.unwrap()?;
                Ok::<_, ToolError>("it worked")
            }
        })
    });
    let replies = run.get().unwrap().batch(proposals("sly {}")).await.unwrap();
    let fault = replies[0].fault.as_ref().unwrap();
    assert_eq!((fault.bound, replies[0].executed), (Some(BoundKind::Wall), Executed::Unknown));
}

#[tokio::test]
async fn a_sub_agent_is_a_tool_a_write_unless_declared_and_its_stop_ends_only_itself() {
    let done =
        tool_fn(Spec::new("done", "Ends the run.").effects(Effects::pure()), async |_: Empty| {
            Ok::<_, ToolError>(Stop("done"))
        });
    let helper = tool_fn(Spec::new("helper", "Asks a model."), async |_: Empty, spawn: Spawn| {
        let model = Script::new([Turn::calls([Proposal::new("d", "done", "{}")])]);
        let answered = Agent::new(model, spawn.child()?.start()).ask("Go.").await;
        Ok::<_, ToolError>(format!("{:?}", answered.map(|it| it.stop)))
    });
    assert_eq!(helper.spec().effects.access, Access::Write);
    let toolbox = Toolbox::new([done, helper]).unwrap();
    let run = Run::new(&toolbox).policy(|_: &_| Verdict::allow("test"));
    let model = Script::new([
        Turn::calls([Proposal::new("h", "helper", "{}")]),
        Turn::answer("The helper stopped, and I went on."),
    ]);
    let answered = Agent::new(model, run).ask("Get help.").await.unwrap();
    assert_eq!(answered.text.as_deref(), Some("The helper stopped, and I went on."));
}

#[tokio::test]
async fn a_child_on_the_tape_names_its_parent_and_its_call() {
    let (stage, tape) = (Stage::new(), MemoryTape::default());
    let run = free([nest(), stage.read("read")]).tape(tape.clone());
    run.batch(proposals(&nested("read {\"ms\":0}"))).await.unwrap();
    let child = children(&tape, run.id());
    assert_eq!(child.len(), 1);
    let first = serde_json::to_value(&tape.records(child[0])[0]).unwrap();
    assert_eq!(first["parent"]["call"], Value::from(1));
}
