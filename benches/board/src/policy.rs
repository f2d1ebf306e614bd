//! What it costs to judge a call.

use std::hint::black_box;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::runtime::Builder;
use tooltape::rule::{Effect, Test};
use tooltape::{
    Args, BoxFuture, Call, Domain, Effects, Grants, Hash, Holding, Output, Policy, Proposal,
    Registered, Rights, Rule, Rules, Run, Spec, Tool, ToolError, Toolbox, Verdict,
};

use crate::cpu::{Stopwatch, Time};
use crate::race::{Effort, Measured, Racer, race};

/// How many rules there are when the figure is taken.
const RULES: usize = 200;
/// The bytes of the arguments.
const ARGUMENT_BYTES: usize = 4_096;

/// `policy.judge`: the rights that a call needs and the run holds, and 200 rules of which each is
/// about the tool and none decides, for a call with 4 KB of arguments; in microseconds.
///
/// The hash of the arguments has a row of its own, and so has every other number of rules.
pub fn judge(effort: Effort) -> Measured {
    let bench = Bench::new();
    let judge = |count: usize| {
        let rules = rules(count, |rule| rule.tool("put"));
        bench.racer(format!("tooltape: rights and {count} rules"), move |call, tool, holding| {
            held(call, tool, holding);
            black_box(rules.judge(black_box(call)));
        })
    };
    let every = |rule: Rule| {
        let every = "/order/lines/*/id".parse().expect("it is a pointer");
        rule.tool("put").where_argument(every, Test::AtMost((-1).into()))
    };
    let lists = (0..10).map(|no| every(Rule::deny(format!("tooltape.toml:{no}"), "no")));
    let lists = lists.fold(Rules::allow_reads(), Rules::rule);
    let others = rules(RULES, |rule| rule.tool("another"));
    let lanes = race(
        effort,
        [
            bench.racer("tooltape: hash of the arguments", |call, _, _| {
                black_box(Hash::of(Domain::Arguments, black_box(call.args()).as_str().as_bytes()));
            }),
            bench.racer("tooltape: rights alone", held),
            judge(1),
            judge(10),
            judge(100),
            judge(RULES),
            judge(1_000),
            bench.racer("tooltape: 10 rules over each item of a list", move |call, _, _| {
                black_box(lists.judge(black_box(call)));
            }),
            bench.racer("tooltape: rights and 200 others' rules", move |call, tool, holding| {
                held(call, tool, holding);
                black_box(others.judge(black_box(call)));
            }),
        ],
    );
    Measured::of(lanes[5].nanos / 1e3, &lanes)
}

/// Holds what a call needs against what the run has.
fn held(call: &Call, tool: &Registered, holding: &Holding) {
    let needs = tool.needs_of(black_box(call.args())).expect("it needs a right");
    assert!(needs.iter().all(|right| holding.check(right, 0).is_ok()));
}

/// So many rules, none of which decides.
fn rules(count: usize, about: impl Fn(Rule) -> Rule) -> Rules {
    let rules = (0..count).map(|no| {
        let rule = about(Rule::deny(format!("tooltape.toml:{no}"), "no"));
        let at = |name: &str| name.parse().expect("an argument has a name");
        match no % 5 {
            0 => {
                let glob = format!("docs/{no}/**/*.md").parse().expect("it is a glob");
                rule.where_argument(at("path"), Test::Glob(glob))
            }
            1 => rule.where_argument(at("amount"), Test::AtLeast((1_000 + no as i64).into())),
            2 => rule.where_argument(at("/order/lines/3/id"), Test::AtMost((-1).into())),
            3 => rule.host(format!("{no}.example.com").parse().expect("it is a host")),
            _ => rule.effect(Effect::Spend),
        }
    });
    rules.fold(Rules::allow_reads().ask_before_writes(), Rules::rule)
}

/// A tool that takes anything, and is never run.
struct Put(Spec);

impl Tool for Put {
    fn spec(&self) -> &Spec {
        &self.0
    }

    fn call<'a>(&'a self, _: Args, _: &'a Grants) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async { Ok(Output::text("done")) })
    }
}

/// A call that is judged, over and over.
struct Bench {
    toolbox: Toolbox,
    text: String,
}

impl Bench {
    fn new() -> Bench {
        let effects = Effects { spend: false, process: false, ..Effects::default() };
        let input = json!({ "type": "object" });
        let spec = Spec::new("put", "Puts.").effects(effects).input(input);
        let spec = spec.needs("fs:write:{path}").needs("net:post:api.example.com");
        let toolbox = Toolbox::new([Arc::new(Put(spec)) as Arc<dyn Tool>]).expect("it is a tool");
        let line = |no: usize| json!({ "id": no, "name": format!("line {no}"), "count": 3 });
        let mut lines = Vec::new();
        let mut text = String::new();
        while text.len() < ARGUMENT_BYTES {
            lines.push(line(lines.len()));
            let order = json!({ "lines": lines });
            text = json!({ "amount": 12.5, "order": order, "path": "src/a.rs" }).to_string();
        }
        Bench { toolbox, text }
    }

    /// Does something to the call, as often as it is told, where a policy sees it.
    fn racer(
        &self,
        name: impl Into<String>,
        work: impl Fn(&Call, &Registered, &Holding) + Send + Sync + 'static,
    ) -> Racer<'static> {
        let runtime = Builder::new_current_thread().enable_time().build();
        let runtime = runtime.expect("a runtime starts");
        let rights = "fs:write:src\nnet:any:*.example.com".parse::<Rights>();
        let rights = rights.expect("they are rights");
        let tool = self.toolbox.get("put").expect("it was registered").clone();
        let holding = Holding::new("run", rights.clone());
        let turn = Arc::new(Mutex::new((0, None)));
        let seen = turn.clone();
        let run = Run::new(&self.toolbox).rights(rights).policy(move |call: &Call| {
            let mut turn = seen.lock().expect("nobody panics");
            let watch = Stopwatch::start();
            (0..turn.0).for_each(|_| work(call, &tool, &holding));
            turn.1 = Some(watch.elapsed());
            Verdict::deny("measured", "it was only measured")
        });
        let text = self.text.clone();
        Racer::timed(name, move |times| {
            *turn.lock().expect("nobody panics") = (times, None);
            let proposal = Proposal::new("c1", "put", text.as_str());
            runtime.block_on(run.batch(vec![proposal])).expect("the run goes on");
            let took: Option<Time> = turn.lock().expect("nobody panics").1.take();
            took.expect("the policy was asked")
        })
    }
}
