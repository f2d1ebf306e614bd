//! What happened in the world, counted outside the tape.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::Value;
use tooltape::schemars::{self, JsonSchema};
use tooltape::{
    Access, Ack, Append, Args, BoxFuture, Effects, Found, Grants, IdempotencyKey, Input,
    MemoryTape, Output, Reconcile, Record, Repeat, Retry, RunId, Spec, Tape, TapeError, Tool,
    ToolError,
};

pub(super) const TOOLS: [&str; 7] = ["look", "once", "once", "keyed", "set", "checked", "stubborn"];
pub(super) const ENDS: [&str; 8] =
    ["ok", "ok", "ok", "ok", "fail", "not_done", "in_doubt", "panic"];

/// Something that happened in the world.
#[derive(Clone, Debug)]
pub(super) struct Effect {
    pub(super) tool: &'static str,
    pub(super) id: u64,
    pub(super) key: String,
    /// How many records the tape had.
    pub(super) at: usize,
}

/// Everything that happened, and how long the tape is.
pub(super) struct Ledger {
    effects: Mutex<Vec<Effect>>,
    len: Arc<AtomicUsize>,
}

impl Ledger {
    pub(super) fn new() -> Arc<Ledger> {
        Ledger::after(Vec::new(), 0)
    }

    /// A ledger of what happened before a crash that left so many records.
    pub(super) fn after(effects: Vec<Effect>, len: usize) -> Arc<Ledger> {
        Arc::new(Ledger { effects: Mutex::new(effects), len: Arc::new(len.into()) })
    }

    pub(super) fn effects(&self) -> Vec<Effect> {
        self.effects.lock().unwrap().clone()
    }

    pub(super) fn counted(&self, tape: MemoryTape) -> Counted {
        Counted { tape, len: self.len.clone() }
    }

    fn has(&self, id: u64) -> bool {
        self.effects.lock().unwrap().iter().any(|effect| effect.id == id)
    }

    fn add(&self, tool: &'static str, id: u64, key: &IdempotencyKey) {
        let key = key.as_str().to_owned();
        let mut effects = self.effects.lock().unwrap();
        // A service that is given a key does the same thing once.
        if tool == "keyed" && effects.iter().any(|effect| effect.key == key) {
            return;
        }
        effects.push(Effect { tool, id, key, at: self.len.load(Ordering::SeqCst) });
    }
}

/// A tape that says how long it is.
pub(super) struct Counted {
    tape: MemoryTape,
    len: Arc<AtomicUsize>,
}

impl Tape for Counted {
    fn append(&self, append: Append<'_>) -> Ack {
        let len = append.after as usize + append.events.len();
        let ack = self.tape.append(append);
        if let Ack::Now(Ok(())) = &ack {
            self.len.store(len, Ordering::SeqCst);
        }
        ack
    }

    fn read(
        &self,
        run: RunId,
        from: u64,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, TapeError>> {
        self.tape.read(run, from, most)
    }
}

struct Actor {
    name: &'static str,
    spec: Spec,
    ledger: Arc<Ledger>,
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
        Box::pin(async move {
            let args: Value = args.to_value();
            let number = |name: &str| args[name].as_u64().unwrap_or_default();
            for _ in 0..number("before") {
                tokio::task::yield_now().await;
            }
            let end = args["end"].as_str().unwrap_or_default();
            if self.name != "look" && end != "not_done" {
                let key = grants.get::<IdempotencyKey>().expect("every run grants it");
                self.ledger.add(self.name, number("id"), &key);
            }
            for _ in 0..number("after") {
                tokio::task::yield_now().await;
            }
            match end {
                "fail" => Err(ToolError::tell("planted")),
                "not_done" => Err(ToolError::not_done("planted")),
                "in_doubt" => Err(ToolError::in_doubt("planted")),
                "panic" => std::panic::resume_unwind(Box::new("planted")),
                _ => Output::value(&number("id")),
            }
        })
    }
}

/// What the hook wants to know; the rest of the arguments it leaves alone.
#[derive(Deserialize, JsonSchema)]
struct Which {
    id: u64,
}

impl Input for Which {}

pub(super) fn tools(ledger: &Arc<Ledger>) -> Vec<Arc<dyn Tool>> {
    let tool = |name, change: &dyn Fn(Spec) -> Spec| {
        let input = serde_json::json!({ "type": "object" });
        let spec = change(Spec::new(name, "Does what it is told.").input(input));
        Arc::new(Actor { name, spec, ledger: ledger.clone() }) as Arc<dyn Tool>
    };
    let looks = ledger.clone();
    let checked = move |which: Which| {
        let happened = looks.has(which.id);
        async move {
            tokio::task::yield_now().await;
            Ok::<_, ToolError>(if happened { Found::Happened } else { Found::DidNot })
        }
    };
    let repeats = |repeat: Repeat| {
        move |mut spec: Spec| {
            spec.effects.repeat = repeat;
            spec
        }
    };
    vec![
        tool("look", &|spec| spec.effects(Effects::read())),
        tool("once", &|spec| spec.access(Access::Write)),
        tool("keyed", &repeats(Repeat::Keyed)),
        tool("set", &repeats(Repeat::Idempotent)),
        tool("checked", &move |spec| spec.reconcile(Reconcile::by("looks", checked.clone()))),
        tool("stubborn", &|spec| {
            let mut spec = repeats(Repeat::Idempotent)(spec);
            spec.retry = Retry { attempts: 3, pause_ms: 5, pause_ms_max: 20 };
            spec
        }),
    ]
}
