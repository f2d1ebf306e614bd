//! Seats: nobody waits for ever, nobody sits double, and every seat is given back.

use std::sync::Arc;

use shuttle::future::{self, block_on};
use shuttle::rand::{Rng, thread_rng};
use tokio::sync::Notify;
use tooltape::{
    Bound, Bounds, Effects, Empty, MemoryTape, Run, RunInfo, Spawn, Spec, Tool, ToolError, input,
    tool_fn,
};

use crate::stage::{Crowd, all_succeeded, batch, check, dawdle, run, tape_is_whole, unless};

/// Where everybody is who may write anything.
const WRITING: &str = "writing";

#[input]
struct Play {
    script: String,
}

/// How many may run at once on each level: calls, recursive calls, and calls of `nest`. One `read`.
#[derive(Clone, Copy)]
struct Seats {
    all: usize,
    mutations: usize,
    nests: usize,
}

impl Seats {
    fn some() -> Seats {
        let [all, mutations, nests] = [(); 3].map(|()| thread_rng().gen_range(1..=2));
        Seats { all, mutations, nests }
    }
}

/// A tree of runs, and what it leaves behind.
#[derive(Clone)]
struct Tree {
    run: Arc<Run>,
    seats: Seats,
    crowd: Crowd,
    tape: MemoryTape,
}

impl Tree {
    fn new(seats: Seats) -> Tree {
        let (crowd, tape) = (Crowd::default(), MemoryTape::default());
        let read = Spec::new("read", "Reads.").effects(Effects::read()).bounds(at_once(1));
        let write = leaf(&crowd, Spec::new("write", "Writes anything."), WRITING);
        let tools = [nest(&crowd, seats.nests), write, leaf(&crowd, read, "reading")];
        let run = run(tools, &tape, |limits| {
            (limits.concurrency, limits.mutations) = (seats.all, seats.mutations);
        });
        Tree { run: Arc::new(run), seats, crowd, tape }
    }

    /// Plays a script in the topmost run, whose calls must all succeed.
    async fn play(&self, script: &str) {
        all_succeeded(&batch(&self.run, script).await);
    }

    /// Asserts what must hold when all is over, whatever became of it.
    async fn is_empty(&self) {
        assert_eq!(self.run.running(), 0, "a seat was not given back");
        // It needs every kind of seat, so one that was kept would block it for ever.
        self.play(&format!("read {{}}\nwrite {{}}\n{}", nested("write {}"))).await;
        let Seats { all, mutations, nests } = self.seats;
        let most = |room: &str| self.crowd.most(|it| it.ends_with(room));
        assert_eq!(most(WRITING), 1, "two wrote at once");
        assert!(most("seat") <= all, "{} sat on {all} seats", most("seat"));
        assert!(most("nest") <= mutations.min(nests), "{} nested at once", most("nest"));
        assert_eq!(self.crowd.most(|it| it.ends_with("of reading")), 1, "two read at once");
        tape_is_whole(&self.tape);
    }
}

fn at_once(most: usize) -> Bounds {
    Bounds { concurrency: Bound::At(most as u64), ..Bounds::default() }
}

/// A tool that plays a script in a child run.
fn nest(crowd: &Crowd, most: usize) -> Arc<dyn Tool> {
    let crowd = crowd.clone();
    let spec = Spec::new("nest", "Plays a script in a child run.").bounds(at_once(most));
    tool_fn(spec, move |play: Play, spawn: Spawn, info: RunInfo| {
        let run = info.run().unwrap();
        let seats = [crowd.enter(format!("{run} seat")), crowd.enter(format!("{run} nest"))];
        async move {
            let _seats = seats;
            let child = spawn.child()?.start();
            let replies = batch(&child, &play.script).await;
            match replies.iter().find(|reply| reply.is_error) {
                None => Ok(()),
                Some(reply) => Err(ToolError::tell(reply.text())),
            }
        }
    })
}

fn leaf(crowd: &Crowd, spec: Spec, doing: &'static str) -> Arc<dyn Tool> {
    let crowd = crowd.clone();
    tool_fn(spec, move |_: Empty, info: RunInfo| {
        let run = info.run().unwrap();
        let rooms = [format!("{run} seat"), format!("{run} of {doing}"), doing.to_owned()];
        let seats = rooms.map(|room| crowd.enter(room));
        async move {
            let _seats = seats;
            future::yield_now().await;
            Ok::<_, ToolError>(())
        }
    })
}

/// A call that plays a script in a child run.
fn nested(script: &str) -> String {
    format!("nest {}", serde_json::json!({ "script": script }))
}

#[test]
fn no_nesting_waits_for_itself_and_no_seat_is_taken_twice() {
    check(|| {
        block_on(async {
            let tree = Tree::new(Seats::some());
            let scripts = [
                format!("{}\nwrite {{}}", nested(&nested("write {}\nread {}"))),
                format!("{0}\n{0}\nread {{}}", nested("write {}")),
                "read {}\nwrite {}\nread {}".to_owned(),
            ];
            let tasks = scripts.map(|script| {
                let tree = tree.clone();
                future::spawn(async move { tree.play(&script).await })
            });
            for task in tasks {
                task.await.unwrap();
            }
            tree.is_empty().await;
        });
    });
}

#[test]
fn who_leaves_while_waiting_or_working_leaves_no_seat_taken() {
    check(|| {
        block_on(async {
            let tree = Tree::new(Seats::some());
            let scripts =
                [format!("{}\nread {{}}", nested("read {}\nwrite {}")), "write {}".into()];
            let tasks = scripts.map(|script| {
                let (tree, gone) = (tree.clone(), Arc::new(Notify::default()));
                let leave = gone.clone();
                let leaver = future::spawn(async move {
                    dawdle().await;
                    leave.notify_one();
                });
                let task = future::spawn(async move {
                    unless(&gone, tree.play(&script)).await;
                });
                [leaver, task]
            });
            let stayer = tree.clone();
            let stayer = future::spawn(async move { stayer.play("read {}\nwrite {}").await });
            for task in tasks.into_iter().flatten().chain([stayer]) {
                task.await.unwrap();
            }
            tree.is_empty().await;
        });
    });
}
