//! What tests of the driver stand on: tools that take their time, a log of who ran, a slow tape.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tooltape::{
    Access, Ack, Append, Args, BoxFuture, Cancel, Canon, Effects, Event, Footprint, FootprintOf,
    Grants, MemoryTape, Output, Record, Run, RunId, RunLimits, Spec, Tape, TapeError, Tool,
    ToolError, Toolbox, Verdict,
};

/// Who ran when, in the runtime's time.
#[derive(Clone)]
pub(crate) struct Stage {
    began: Instant,
    log: Arc<Mutex<Vec<Span>>>,
}

/// One execution of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) tool: String,
    pub(crate) args: String,
    pub(crate) from_ms: u128,
    /// `None` while it runs, and for ever if it was dropped.
    pub(crate) to_ms: Option<u128>,
}

impl Span {
    fn overlaps(&self, other: &Span) -> bool {
        let end = |span: &Span| span.to_ms.unwrap_or(u128::MAX);
        self.from_ms < end(other) && other.from_ms < end(self)
    }
}

impl Stage {
    pub(crate) fn new() -> Stage {
        Stage { began: Instant::now(), log: Arc::default() }
    }

    /// A tool that takes `{"ms": 10}` by default, and says `{"fail": "..."}` if told to.
    pub(crate) fn tool(&self, spec: Spec) -> Arc<dyn Tool> {
        let input = serde_json::json!({ "type": "object" });
        Arc::new(Acted { spec: spec.input(input), stage: self.clone() })
    }

    pub(crate) fn read(&self, name: &str) -> Arc<dyn Tool> {
        self.tool(Spec::new(name, "Reads.").effects(Effects::read()))
    }

    pub(crate) fn write(&self, name: &str) -> Arc<dyn Tool> {
        self.tool(Spec::new(name, "Writes."))
    }

    /// A tool that touches the file in its argument `path`, and nothing else.
    pub(crate) fn file(&self, name: &str, access: Access) -> Arc<dyn Tool> {
        let hook = FootprintOf::args("path_of", move |args: &Canon| {
            let args: Value = args.to_value();
            let key = format!("file:{}", args["path"].as_str().unwrap_or_default());
            match access {
                Access::Pure => Footprint::none(),
                Access::Read => Footprint::reads(key),
                Access::Write => Footprint::writes(key),
            }
        });
        self.tool(Spec::new(name, "Touches a file.").access(access).touches(hook))
    }

    /// Everything that ran, in the order in which it started.
    pub(crate) fn log(&self) -> Vec<Span> {
        self.log.lock().unwrap().clone()
    }

    /// The starts, as `tool@ms`.
    pub(crate) fn starts(&self) -> Vec<String> {
        self.log().iter().map(|span| format!("{}@{}", span.tool, span.from_ms)).collect()
    }

    /// The most executions at one moment.
    pub(crate) fn most_at_once(&self) -> usize {
        let log = self.log();
        let at = |from_ms| {
            log.iter()
                .filter(|it| it.from_ms <= from_ms && it.to_ms.is_none_or(|to| to > from_ms))
                .count()
        };
        log.iter().map(|span| at(span.from_ms)).max().unwrap_or(0)
    }

    /// Whether some execution of a tool overlapped one of another.
    pub(crate) fn overlapped(&self, one: &str, other: &str) -> bool {
        let log = self.log();
        log.iter().enumerate().any(|(at, a)| {
            log[at + 1..].iter().any(|b| {
                let pair = (a.tool.as_str(), b.tool.as_str());
                (pair == (one, other) || pair == (other, one)) && a.overlaps(b)
            })
        })
    }

    pub(crate) fn ms(&self) -> u128 {
        self.began.elapsed().as_millis()
    }
}

/// A run over these tools that may do everything.
pub(crate) fn free(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Run {
    Run::new(&Toolbox::new(tools).unwrap()).policy(|_: &_| Verdict::allow("test"))
}

struct Acted {
    spec: Spec,
    stage: Stage,
}

impl Tool for Acted {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn call<'a>(&'a self, args: Args, grants: &'a Grants) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let told = args.to_value();
            let span = Span {
                tool: self.spec.name.to_string(),
                args: args.canon().to_string(),
                from_ms: self.stage.ms(),
                to_ms: None,
            };
            let at = {
                let mut log = self.stage.log.lock().unwrap();
                log.push(span);
                log.len() - 1
            };
            let took = tokio::time::sleep(Duration::from_millis(told["ms"].as_u64().unwrap_or(10)));
            let cancelled = match told["hears"].as_bool() {
                Some(true) => {
                    let cancel = grants.get::<Cancel>().unwrap();
                    tokio::select! {
                        () = took => false,
                        () = cancel.requested() => true,
                    }
                }
                Some(false) | None => {
                    took.await;
                    false
                }
            };
            self.stage.log.lock().unwrap()[at].to_ms = Some(self.stage.ms());
            match told["fail"].as_str() {
                _ if cancelled => Err(ToolError::cancelled()),
                Some("panic") => panic!("planted"),
                Some("fatal") => Err(ToolError::fatal("planted")),
                Some(why) => Err(ToolError::tell(why)),
                None => Output::value(args.canon()),
            }
        })
    }
}

type Outcome = Result<Output, ToolError>;

/// A run with other limits.
pub(crate) fn limited(run: Run, change: impl FnOnce(&mut RunLimits)) -> Run {
    let mut limits = RunLimits::default();
    change(&mut limits);
    run.limits(limits)
}

/// A tape that makes events durable only once its gate is open, or refuses what starts a call.
pub(crate) struct Gated {
    tape: MemoryTape,
    open: watch::Receiver<bool>,
    refuses_starts: bool,
}

impl Tape for Gated {
    fn append(&self, append: Append) -> Ack {
        let starts = append.events.iter().any(|event| matches!(event, Event::Started { .. }));
        if self.refuses_starts && starts {
            return Ack::Now(Err(TapeError::Poisoned { why: "the disk is full".into() }));
        }
        let (ack, mut open) = (self.tape.append(append), self.open.clone());
        Ack::Later(Box::pin(async move {
            open.wait_for(|open| *open).await.expect("the gate is there");
            ack.durable().await
        }))
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

pub(crate) fn gated(refuses_starts: bool) -> (watch::Sender<bool>, Gated) {
    let (gate, open) = watch::channel(false);
    (gate, Gated { tape: MemoryTape::default(), open, refuses_starts })
}

/// A tape that has these records, as a crash leaves it.
pub(crate) fn cut(records: &[Record]) -> MemoryTape {
    let tape = MemoryTape::default();
    for record in records {
        let mut events = vec![record.event.clone()];
        let append = Append::new(record.run, record.seq, record.at_us, &mut events);
        tape.append(append).accepted().unwrap();
    }
    tape
}
