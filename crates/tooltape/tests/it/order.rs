//! What happens before what: the tape before the effect, and one write after the other.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tooltape::testing::{Spy, proposals};
use tooltape::{
    Access, Args, BoxFuture, Domain, Effects, Event, Executed, Grants, Hash, MemoryTape, Output,
    Recovery, Run, RunError, Spec, Tool, ToolError, Toolbox, Verdict,
};

use crate::stage::{free, gated};

#[tokio::test]
async fn nothing_is_executed_whose_start_could_not_be_recorded() {
    for access in [Access::Pure, Access::Read, Access::Write] {
        let (spy, (gate, tape)) = (Spy::new("spy", access), gated(true));
        gate.send(true).unwrap();
        let err = free([spy.tool()]).tape(tape).batch(proposals("spy {}")).await.unwrap_err();
        assert!(err.to_string().contains("the disk is full"), "{err}");
        assert_eq!(spy.calls(), 0);
    }
}

#[tokio::test]
async fn a_write_waits_until_its_start_is_durable_and_a_read_does_not() {
    let (write, (gate, tape)) = (Spy::new("write", Access::Write), gated(false));
    let run = free([write.tool()]).tape(tape);
    let mut batch = Box::pin(run.batch(proposals("write {}")));
    assert!(futures_util::poll!(&mut batch).is_pending());
    assert_eq!(write.calls(), 0, "the gate is closed");
    gate.send(true).unwrap();
    assert_eq!(batch.await.unwrap()[0].executed, Executed::Executed);
    assert_eq!(write.calls(), 1);

    let (read, (_gate, tape)) = (Spy::new("read", Access::Read), gated(false));
    free([read.tool()]).tape(tape).batch(proposals("read {}")).await.unwrap();
    assert_eq!(read.calls(), 1);
}

#[tokio::test]
async fn a_tool_receives_the_canonical_bytes_that_were_hashed_and_recorded() {
    let (spy, tape) = (Spy::new("spy", Access::Write), MemoryTape::default());
    let run = free([spy.tool()]).tape(tape.clone());
    let text = r#"spy { "b": 1.0, "a": [9007199254740993, "\u00e9"] }"#;
    let reply = run.batch(proposals(text)).await.unwrap().remove(0);
    let received = reply.value.clone().unwrap();
    assert_eq!(received.as_str(), r#"{"a":[9007199254740993,"é"],"b":1}"#);
    assert_eq!(reply.args_hash, Hash::of(Domain::Arguments, received.as_str().as_bytes()));
    let judged = tape.records(run.id()).into_iter().find_map(|record| match record.event {
        Event::Judged { facts, .. } => Some((facts.args.clone()?, facts.args_hash)),
        _ => None,
    });
    assert_eq!(judged, Some((received, reply.args_hash)));
}

/// A tool that gives way a few times, and notes who else was running meanwhile.
struct Slow {
    spec: Spec,
    running: Arc<Mutex<Vec<&'static str>>>,
    seen: Arc<Mutex<Vec<(&'static str, usize)>>>,
    order: Arc<AtomicUsize>,
}

impl Tool for Slow {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn call<'a>(&'a self, _: Args, _: &'a Grants) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let access = match self.spec.effects.access {
                Access::Pure | Access::Read => "read",
                Access::Write => "write",
            };
            self.running.lock().unwrap().push(access);
            let order = self.order.fetch_add(1, Ordering::SeqCst);
            for _ in 0..4 {
                tokio::task::yield_now().await;
                let running = self.running.lock().unwrap();
                self.seen.lock().unwrap().push((access, running.len()));
                assert!(running.len() == 1 || !running.contains(&"write"), "{running:?}");
            }
            let mut running = self.running.lock().unwrap();
            let at = running.iter().position(|it| *it == access).expect("it is running");
            running.remove(at);
            Output::value(&order)
        })
    }
}

#[tokio::test]
async fn reads_overlap_and_a_write_overlaps_nothing_and_keeps_its_place() {
    let (running, seen) = (Arc::default(), Arc::<Mutex<Vec<_>>>::default());
    let order = Arc::<AtomicUsize>::default();
    let slow = |name: &str, effects: Effects| {
        let spec = Spec::new(name, "Gives way.").effects(effects);
        let (running, seen, order) = (Arc::clone(&running), seen.clone(), order.clone());
        Arc::new(Slow { spec, running, seen, order }) as Arc<dyn Tool>
    };
    let run = free([slow("read", Effects::read()), slow("write", Effects::default())]);
    let script = "read {}\nread {}\nwrite {}\nread {}\nread {}\nwrite {}\nwrite {}";
    let replies = run.batch(proposals(script)).await.unwrap();
    let order: Vec<_> = replies.iter().map(|reply| reply.text()).collect();
    assert_eq!(order, ["0", "1", "2", "3", "4", "5", "6"]);
    let seen = seen.lock().unwrap();
    assert!(seen.contains(&("read", 2)), "reads overlap");
    assert!(seen.iter().all(|(access, count)| *access == "read" || *count == 1));
}

#[tokio::test]
async fn once_the_run_has_ended_nothing_more_of_its_batch_starts() {
    let fatal = Spy::new("fatal", Access::Write).returning(|_| Err(ToolError::fatal("stop")));
    let write = Spy::new("write", Access::Write);
    let run = free([fatal.tool(), write.tool()]);
    let err = run.batch(proposals("fatal {}\nwrite {}\nnobody {}")).await.unwrap_err();
    let RunError::Ended { replies, .. } = err else { panic!("it ended: {err}") };
    assert_eq!((replies.len(), write.calls()), (3, 0));
    assert_eq!(replies[1].text(), "not executed: cancelled");

    let strict = free([write.tool()]).recovery(Recovery::Forbidden);
    assert!(strict.batch(proposals("write {}\nnobody {}")).await.is_err());
    assert_eq!(write.calls(), 0);
}

#[tokio::test]
async fn an_exclusive_call_overlaps_no_other() {
    let (running, seen) = (Arc::default(), Arc::<Mutex<Vec<_>>>::default());
    let effects = Effects { exclusive: true, ..Effects::read() };
    let spec = Spec::new("alone", "Gives way.").effects(effects);
    let alone = Slow { spec, running, seen: seen.clone(), order: Arc::default() };
    let run = free([Arc::new(alone) as Arc<dyn Tool>]);
    run.batch(proposals("alone {}\nalone {}\nalone {}")).await.unwrap();
    assert!(seen.lock().unwrap().iter().all(|(_, count)| *count == 1));
}

#[tokio::test]
async fn whoever_is_asked_may_fail_or_never_answer_and_the_call_is_answered() {
    let spy = Spy::new("write", Access::Write);
    let asking = || {
        let toolbox = Toolbox::new([spy.tool()]).unwrap();
        Run::new(&toolbox).policy(|_: &_| Verdict::ask("test"))
    };
    let failing = asking().approver(|_| panic!("no terminal"));
    let replies = failing.batch(proposals("write {}")).await.unwrap();
    assert_eq!(replies[0].text(), "not executed: denied: the question failed");

    let silent = asking().approver(|_| Box::pin(std::future::pending()));
    let mut batch = Box::pin(silent.batch(proposals("write {}")));
    assert!(futures_util::poll!(&mut batch).is_pending());
    silent.cancel();
    assert_eq!(batch.await.unwrap()[0].text(), "not executed: cancelled");
    assert_eq!(spy.calls(), 0);
}
