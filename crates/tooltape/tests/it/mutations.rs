//! A thousand changes of tools and policy, and a replay that names each at its first record.

use std::sync::Arc;

use serde_json::{Value, json};
use tooltape::{
    Access, Args, BoxFuture, Call, Determinism, Effects, Event, Grants, MemoryTape, Output,
    Proposal, Record, Replay, Run, Spec, Stage, Tool, ToolError, Toolbox, Verdict,
};

use crate::simulation::Dice;

/// The mutations that are tried.
const MUTATIONS: u64 = 1_000;
const NAMES: [&str; 5] = ["alpha", "beta", "gamma", "delta", "epsilon"];

/// What is changed of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutation {
    Result,
    Failure,
    Version,
    Description,
    SchemaWider,
    SchemaNarrower,
    Effect,
    Removed,
    Policy,
}

const ALL: [Mutation; 9] = [
    Mutation::Result,
    Mutation::Failure,
    Mutation::Version,
    Mutation::Description,
    Mutation::SchemaWider,
    Mutation::SchemaNarrower,
    Mutation::Effect,
    Mutation::Removed,
    Mutation::Policy,
];

struct Doubler {
    spec: Spec,
    mutation: Option<Mutation>,
}

impl Tool for Doubler {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn call<'a>(&'a self, args: Args, _: &'a Grants) -> BoxFuture<'a, Result<Output, ToolError>> {
        let number = args.to_value()["n"].as_u64().unwrap_or_default();
        let deep = |doubled: u64| Output::value(&json!({ "it": [{ "doubled": doubled }] }));
        Box::pin(async move {
            match self.mutation {
                Some(Mutation::Result) => deep(number * 2 + 1),
                Some(Mutation::Failure) => Err(ToolError::tell("broken")),
                _ => deep(number * 2),
            }
        })
    }
}

fn tool(name: &str, mutation: Option<Mutation>) -> Arc<dyn Tool> {
    let mut input = json!({
        "type": "object",
        "properties": { "n": { "type": "integer" } },
        "required": ["n"],
    });
    let mut spec = Spec::new(name, "Doubles a number.").version("1.0.0").effects(Effects::pure());
    spec.effects.determinism = Determinism::Deterministic;
    match mutation {
        Some(Mutation::Version) => spec.version = "1.0.1".into(),
        Some(Mutation::Description) => spec.description = "Doubles any number.".into(),
        Some(Mutation::SchemaWider) => input["properties"]["m"] = json!({ "type": "string" }),
        Some(Mutation::SchemaNarrower) => input["required"] = json!(["n", "m"]),
        Some(Mutation::Effect) => spec.effects.access = Access::Read,
        Some(Mutation::Result | Mutation::Failure | Mutation::Removed | Mutation::Policy)
        | None => {}
    }
    Arc::new(Doubler { spec: spec.input(input), mutation })
}

fn toolbox(mutated: Option<(&str, Mutation)>) -> Toolbox {
    let tools = NAMES.iter().filter_map(|name| match mutated {
        Some((it, Mutation::Removed)) if it == *name => None,
        Some((it, mutation)) if it == *name => Some(tool(name, Some(mutation))),
        Some(_) | None => Some(tool(name, None)),
    });
    Toolbox::new(tools).unwrap()
}

async fn recorded(dice: &mut Dice) -> Vec<Record> {
    let tape = MemoryTape::default();
    let run = Run::new(&toolbox(None)).tape(tape.clone()).policy(allow);
    for _ in 0..=dice.below(2) {
        let proposals = (0..=dice.below(6)).map(|at| {
            let args = json!({ "n": dice.below(1_000) }).to_string();
            Proposal::new(format!("c{at}"), dice.one_of(&NAMES), args)
        });
        run.batch(proposals.collect()).await.unwrap();
    }
    tape.records(run.id())
}

fn allow(_: &Call) -> Verdict {
    Verdict::allow("all")
}

/// The record that is the first to differ, where it does, and why.
fn expected(records: &[Record], name: &str, mutation: Mutation) -> Option<Expected> {
    let of_tool = |record: &&Record| match &record.event {
        Event::Judged { facts, .. } => &*facts.name == name,
        Event::Settled(reply) => &*reply.name == name,
        _ => false,
    };
    let (event, pointer, cause, source) = match mutation {
        Mutation::Result => ("call.settled", "/value/it/0/doubled", "code_changed", Stage::Tool),
        Mutation::Failure => ("call.settled", "/is_error", "code_changed", Stage::Tool),
        Mutation::Version => ("call.judged", "/tool", "other_version", Stage::Resolve),
        Mutation::Description | Mutation::SchemaWider | Mutation::Effect => {
            ("call.judged", "/definition", "definition_changed", Stage::Resolve)
        }
        Mutation::SchemaNarrower => ("call.judged", "", "definition_changed", Stage::Resolve),
        Mutation::Removed => ("call.judged", "", "tool_missing", Stage::Resolve),
        Mutation::Policy => ("call.judged", "/verdict", "policy_changed", Stage::Policy),
    };
    let first = records.iter().filter(of_tool).find(|record| record.event.kind() == event)?;
    Some(Expected { seq: first.seq, event, pointer, cause, source })
}

#[derive(Debug, PartialEq)]
struct Expected {
    seq: u64,
    event: &'static str,
    pointer: &'static str,
    cause: &'static str,
    source: Stage,
}

#[tokio::test]
async fn the_first_difference_of_every_mutation_is_named() {
    let mut named = 0;
    for seed in 0..MUTATIONS {
        let mut dice = Dice::new(seed);
        let records = recorded(&mut dice).await;
        let called = records.iter().filter_map(|record| match &record.event {
            Event::Settled(reply) => NAMES.iter().copied().find(|name| *name == &*reply.name),
            _ => None,
        });
        let (name, mutation) = (dice.one_of(&called.collect::<Vec<_>>()), dice.one_of(&ALL));
        let toolbox = toolbox(Some((name, mutation)));
        let denies = move |call: &Call| match call.tool().name().as_str() == name {
            true => Verdict::deny("no more", "not any more"),
            false => Verdict::allow("all"),
        };
        let replay = Replay::of_records(records.clone()).with(&toolbox);
        let replay = match mutation {
            Mutation::Policy => replay.policy(denies),
            _ => replay.policy(allow),
        };
        let report = replay.check().await.unwrap();
        let found = report.first().map(|it| (it.seq, &*it.event, &*it.pointer, it.source));
        let cause = report.first().map(|it| it.causes[0].kind());
        let wanted = expected(&records, name, mutation);
        let place = wanted.as_ref().map(|it| (it.seq, it.event, it.pointer, it.source));
        assert_eq!(found, place, "seed {seed}: {mutation:?} of `{name}`\n{report}");
        assert_eq!(cause, wanted.as_ref().map(|it| it.cause), "seed {seed}: {report}");
        named += u64::from(!report.is_same());
    }
    eprintln!("mutations: {named} named at their first record");
    assert_eq!(named, MUTATIONS);
}

#[tokio::test]
async fn all_differences_are_reported_where_that_is_asked_for() {
    let (tape, toolbox) = (MemoryTape::default(), toolbox(Some(("alpha", Mutation::Result))));
    let run = Run::new(&self::toolbox(None)).tape(tape.clone()).policy(allow);
    let call = |name: &str| Proposal::new("c", name, r#"{"n":1}"#);
    run.batch(["alpha", "beta", "alpha"].map(call).to_vec()).await.unwrap();
    let records = tape.records(run.id());
    let of_alpha =
        |it: &&Record| matches!(&it.event, Event::Settled(reply) if &*reply.name == "alpha");
    let wanted: Vec<u64> = records.iter().filter(of_alpha).map(|it| it.seq).collect();
    assert_eq!(wanted.len(), 2);
    let all =
        Replay::of_records(records.clone()).with(&toolbox).report_all().check().await.unwrap();
    let found: Vec<u64> = all.divergences.iter().map(|it| it.seq).collect();
    assert_eq!(found, wanted);
    let first = Replay::of_records(records).with(&toolbox).check().await.unwrap();
    assert_eq!(first.divergences.len(), 1);
    let json: Value = serde_json::to_value(&first).unwrap();
    assert_eq!(json["divergences"][0]["causes"][0]["kind"], "code_changed");
}
