//! The tools of a storm, and the world that watches who runs beside whom.

use std::collections::{BTreeMap, BTreeSet};
use std::panic;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tooltape::layer::{Timeout, only};
use tooltape::{
    Access, Answer, Args, Bound, Bounds, BoxFuture, Call, Canon, Claim, Determinism, Effects,
    Executed, Footprint, FootprintOf, Grants, Output, Progress, Random, Repeat, Retry, Run,
    RunLimits, Spawn, Spec, Tool, ToolError, Toolbox, Verdict,
};

use super::around::{Disk, hold};
use super::plan::{Plan, nested};

/// How long the calls of `CUT` may take, all that is around their tools included.
const CUT_AFTER: Duration = Duration::from_millis(25);
/// The tools that a layer cuts short.
const CUT: [&str; 2] = ["look", "edit"];

/// Who runs at this moment, and what was seen that may never be.
#[derive(Default)]
pub(super) struct World {
    running: Mutex<Vec<Runner>>,
    wrongs: Mutex<Vec<String>>,
    /// What every attempt that reached its tool did, by the batch and the place of its call.
    did: Mutex<BTreeMap<(u64, u64), Vec<Executed>>>,
    /// The tools that were ever reached.
    reached: Mutex<BTreeSet<&'static str>>,
}

struct Runner {
    token: u64,
    batch: u64,
    at: u64,
    tool: &'static str,
    claim: Claim,
}

impl World {
    pub(super) fn running(&self) -> usize {
        self.running.lock().unwrap().len()
    }

    /// The tools that were ever reached.
    pub(super) fn reached(&self) -> BTreeSet<&'static str> {
        self.reached.lock().unwrap().clone()
    }

    pub(super) fn check(&self) {
        let wrongs = self.wrongs.lock().unwrap();
        assert!(wrongs.is_empty(), "{wrongs:#?}");
    }

    /// What the call with these arguments truly did: what its last attempt did that did something.
    pub(super) fn truth(&self, args: &Value) -> Executed {
        let did = self.did.lock().unwrap();
        let attempts = did.get(&key(args)).map(Vec::as_slice).unwrap_or_default();
        let last = attempts.iter().rfind(|did| **did != Executed::NotExecuted);
        last.copied().unwrap_or(Executed::NotExecuted)
    }

    /// Somebody starts to run: is it allowed beside those who do?
    fn enter(self: &Arc<World>, kind: &Kind, args: &Value) -> Inside {
        self.reached.lock().unwrap().insert(kind.name);
        let mut running = self.running.lock().unwrap();
        let token = running.iter().map(|it| it.token).max().unwrap_or(0) + 1;
        let (batch, at) = key(args);
        let runner = Runner { token, batch, at, tool: kind.name, claim: kind.claim(args) };
        let anything = |it: &Runner| !it.claim.recursive && it.claim.footprint.is_unknown_write();
        for other in running.iter() {
            let sibling = other.batch == batch && other.claim.conflicts(&runner.claim);
            let tree = anything(other) && anything(&runner);
            if sibling || tree {
                let wrong = format!(
                    "`{}` {}.{} ran beside `{}` {}.{}",
                    runner.tool, batch, at, other.tool, other.batch, other.at
                );
                self.wrongs.lock().unwrap().push(wrong);
            }
        }
        running.push(runner);
        // Whoever is dropped or panics from here on never says what it did.
        self.did.lock().unwrap().entry((batch, at)).or_default().push(Executed::Unknown);
        Inside { world: self.clone(), token, key: (batch, at) }
    }
}

/// Runs until it is dropped.
struct Inside {
    world: Arc<World>,
    token: u64,
    key: (u64, u64),
}

impl Inside {
    /// It returned, so it is known what it did.
    fn returned(&self, result: &Result<Output, ToolError>) {
        let executed = result.as_ref().map_or_else(ToolError::executed, |_| Executed::Executed);
        let mut did = self.world.did.lock().unwrap();
        let last = did.get_mut(&self.key).and_then(|attempts| attempts.last_mut());
        *last.expect("it has entered") = executed;
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.world.running.lock().unwrap().retain(|it| it.token != self.token);
    }
}

/// The batch and the place of a call.
fn key(args: &Value) -> (u64, u64) {
    (number(&args["batch"]), number(&args["at"]))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// A kind of tool.
struct Kind {
    name: &'static str,
    access: Access,
    by_path: bool,
    exclusive: bool,
    recursive: bool,
}

impl Kind {
    fn footprint(&self, args: &Value) -> Footprint {
        let key = format!("file:{}", args["path"].as_str().unwrap_or_default());
        match (self.by_path, self.access) {
            (false, access) => Footprint::everything(access),
            (true, Access::Write) => Footprint::writes(key),
            (true, Access::Pure | Access::Read) => Footprint::reads(key),
        }
    }

    fn claim(&self, args: &Value) -> Claim {
        Claim {
            footprint: self.footprint(args),
            exclusive: self.exclusive,
            recursive: self.recursive,
            promoted: self.name == "promoted",
        }
    }
}

struct Actor {
    kind: Kind,
    spec: Spec,
    world: Arc<World>,
}

impl Tool for Actor {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        args: Args,
        grants: &'a Grants,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        let args = args.to_value();
        let inside = self.world.enter(&self.kind, &args);
        if args["end"] == "panic_at_once" {
            drop(inside);
            // The hook would only fill the output.
            panic::resume_unwind(Box::new("planted"));
        }
        Box::pin(async move {
            let result = self.act(&args, grants).await;
            inside.returned(&result);
            result
        })
    }
}

impl Actor {
    async fn act(&self, args: &Value, grants: &Grants<'_>) -> Result<Output, ToolError> {
        for _ in 0..number(&args["yields"]) {
            tokio::task::yield_now().await;
        }
        let progress = grants.get::<Progress>().expect("every run grants it");
        (0..number(&args["says"])).for_each(|line| progress.say(format!("line {line}")));
        match number(&args["ms"]) {
            0 => {}
            ms => tokio::time::sleep(Duration::from_millis(ms)).await,
        }
        if self.kind.recursive {
            let child = grants.get::<Spawn>().expect("every run grants it").child()?;
            let replies = child.start().batch(nested(&args["play"])).await?;
            return Output::value(&replies.len());
        }
        match args["end"].as_str().unwrap_or_default() {
            "fail" => Err(ToolError::tell("planted")),
            "fatal" => Err(ToolError::fatal("planted")),
            "not_done" => Err(ToolError::not_done("planted")),
            "in_doubt" => Err(ToolError::in_doubt("planted")),
            "panic" => panic::resume_unwind(Box::new("planted")),
            "hang" => std::future::pending().await,
            _ => Output::value(&number(&args["at"])),
        }
    }
}

fn tools(world: &Arc<World>) -> Vec<Arc<dyn Tool>> {
    let tool = |name, access, by_path: bool, change: fn(&mut Spec)| {
        let input = serde_json::json!({ "type": "object" });
        let mut spec = Spec::new(name, "Does what it is told.").access(access).input(input);
        spec.bounds = Bounds { wall: Bound::At(Duration::from_millis(40)), ..Bounds::default() };
        change(&mut spec);
        let (exclusive, recursive) = (spec.effects.exclusive, spec.effects.recursive);
        let kind = Kind { name, access, by_path, exclusive, recursive };
        if by_path {
            let of = Kind { ..kind };
            spec = spec.touches(FootprintOf::args("path_of", move |args: &Canon| {
                of.footprint(&args.to_value())
            }));
            let kind = Kind { name, access, by_path, exclusive, recursive };
            return Arc::new(Actor { kind, spec, world: world.clone() }) as Arc<dyn Tool>;
        }
        Arc::new(Actor { kind, spec, world: world.clone() }) as Arc<dyn Tool>
    };
    vec![
        tool("pure", Access::Pure, false, |spec| {
            spec.effects = Effects::pure();
            spec.effects.determinism = Determinism::Deterministic;
        }),
        tool("read", Access::Read, false, |_| {}),
        tool("look", Access::Read, true, |_| {}),
        tool("write", Access::Write, false, |_| {}),
        tool("edit", Access::Write, true, |_| {}),
        tool("alone", Access::Read, false, |spec| spec.effects.exclusive = true),
        tool("vital", Access::Read, true, |spec| spec.effects.aborts_siblings = true),
        tool("stubborn", Access::Write, true, |spec| {
            spec.effects.repeat = Repeat::Idempotent;
            spec.retry = Retry { attempts: 3, pause_ms: 5, pause_ms_max: 20 };
        }),
        tool("promoted", Access::Write, true, |spec| spec.bounds.concurrency = Bound::At(2)),
        tool("nest", Access::Write, false, |spec| {
            spec.effects.recursive = true;
            spec.bounds.wall = Bound::At(Duration::from_secs(600));
        }),
    ]
}

/// The tools of a storm.
pub(super) fn toolbox(world: &Arc<World>) -> Toolbox {
    let mut toolbox = Toolbox::new(tools(world)).expect("the names differ");
    toolbox.promote("promoted").expect("it is there");
    toolbox
}

/// The policy of a storm.
pub(super) fn judge(call: &Call) -> Verdict {
    match call.args().to_value()["rule"].as_str() {
        Some("deny") => Verdict::deny("planted", "planted"),
        Some("ask") => Verdict::ask("planted"),
        Some(_) | None => Verdict::allow("planted"),
    }
}

/// The run of a storm.
pub(super) fn run(plan: &Plan, world: &Arc<World>, tape: Disk) -> Run {
    let toolbox = toolbox(world);
    let mut limits = RunLimits::default();
    limits.concurrency = plan.concurrency;
    limits.mutations = plan.mutations;
    limits.depth = plan.depth;
    limits.batch_calls = plan.batch_calls;
    limits.batch_wall = plan.batch_wall_ms.map_or(limits.batch_wall, Duration::from_millis);
    limits.queue = plan.queue_ms.map_or(limits.queue, Duration::from_millis);
    let run = Run::new(&toolbox)
        .tape(tape)
        .limits(limits)
        .random(Random::seeded(plan.random))
        .policy(judge)
        .approver(|pending| {
            let args = pending.call().args().to_value();
            let wait = Duration::from_millis(number(&args["wait"]));
            Box::pin(async move {
                tokio::time::sleep(wait).await;
                match args["answer"].as_str() {
                    Some("yes") => Answer::Once,
                    Some("panic") => panic::resume_unwind(Box::new("planted")),
                    Some(_) | None => Answer::Deny("planted".to_owned()),
                }
            })
        });
    let run = if plan.sequential { run.sequential() } else { run };
    match plan.layered {
        true => {
            run.layer(only(|spec| CUT.contains(&&*spec.name), Timeout::new(CUT_AFTER))).layer(hold)
        }
        false => run,
    }
}
