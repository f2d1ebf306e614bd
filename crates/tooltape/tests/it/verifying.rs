//! What a tape says is held against itself, also where every hash of its chain was made again.

use serde_json::{Value, json};
use tooltape::testing::Spy;
use tooltape::{
    Access, Agent, Damage, Head, Line, MemoryTape, Output, Proposal, Record, Rules, Run, RunEnd,
    RunError, Script, Toolbox, Turn, Verify, builtin,
};

/// The records of a run with an agent: a call that succeeds, one that fails and one refused.
async fn recorded() -> Vec<Value> {
    let tape = MemoryTape::default();
    let calls = [
        Proposal::new("c1", "sort", "{}"),
        Proposal::new("c2", "echo", r#"{"text": 1}"#),
        Proposal::new("c3", "hash", r#"{"text":"a"}"#),
    ];
    let set = json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true});
    let sort = Spy::new("sort", Access::Read)
        .declaring(|spec| spec.output(set))
        .returning(|_| Output::value(&["b", "a"]));
    let tools = builtin::tools().into_iter().chain([sort.tool()]);
    let run = Run::new(&Toolbox::new(tools).unwrap()).policy(Rules::allow_reads());
    let model = Script::new([Turn::calls(calls), Turn::answer("done")]);
    let agent = Agent::new(model, run.tape(tape.clone()));
    agent.ask("Go on.").await.unwrap();
    let records = tape.records(agent.run().id());
    records.iter().map(|record| serde_json::to_value(record).unwrap()).collect()
}

/// Makes a chain of records, each at its place.
fn chained(records: &[Value]) -> Vec<Line> {
    let mut previous = Head::empty().hash;
    let line = |(seq, record): (usize, &Value)| {
        let mut record = record.clone();
        record["seq"] = seq.into();
        let record = Record::read(&record.to_string()).unwrap();
        Line::of(&record, previous).inspect(|line| previous = line.hash()).unwrap()
    };
    records.iter().enumerate().map(line).collect()
}

fn verified(records: &[Value]) -> Result<(), Damage> {
    let mut verify = Verify::default();
    chained(records).iter().try_for_each(|line| verify.line(line))
}

fn settled(records: &[Value], call: u64) -> usize {
    let is_it = |record: &Value| record["type"] == "call.settled" && record["call"] == call;
    records.iter().position(is_it).unwrap()
}

#[tokio::test]
async fn a_result_or_arguments_with_the_hash_of_others_are_damage() {
    let records = recorded().await;
    verified(&records).unwrap();
    let (sorted, refused, hashed) =
        (settled(&records, 1), settled(&records, 2), settled(&records, 3));
    let proposed = records.iter().position(|it| it["type"] == "call.proposed" && it["call"] == 2);
    let other = json!("0".repeat(64));
    let altered = [
        (sorted, "/value/0", json!("c"), sorted, "its result has another hash"),
        (hashed, "/value", json!("other"), hashed, "its result has another hash"),
        (hashed, "/result_hash", other.clone(), hashed, "its result has another hash"),
        (refused, "/content/0/text", json!("all is well"), refused, "its result has another hash"),
        (refused, "/args_hash", other.clone(), refused, "settles with other arguments"),
        (hashed, "/args_hash", other, hashed, "settles with other arguments"),
        (proposed.unwrap(), "/arguments", json!("{}"), refused, "settles with other arguments"),
    ];
    for (at, pointer, value, seq, why) in altered {
        let mut forged = records.clone();
        *forged[at].pointer_mut(pointer).unwrap() = value;
        let damage = verified(&forged).unwrap_err();
        assert_eq!(damage.seq as usize, seq, "{pointer} of record {at}: {damage}");
        assert!(damage.why.contains(why), "{pointer} of record {at}: {damage}");
    }
}

#[tokio::test]
async fn nothing_stands_behind_the_end_of_a_run_but_what_goes_on_with_it() {
    let records = recorded().await;
    let find = |kind: &str| records.iter().find(|record| record["type"] == kind).unwrap().clone();
    let like = |mut record: Value, members: Value| {
        record.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        record
    };
    let (asked, turn, ended) = (find("model.asked"), find("model.turn"), find("run.ended"));
    let proposed = like(find("call.proposed"), json!({"call": 4}));
    let resumed = like(asked.clone(), json!({"type": "run.resumed", "in_doubt": []}));
    let progress = json!({"type": "call.progress", "call": 1, "text": "more"});
    let progress = like(asked.clone(), progress);
    let tools = like(asked.clone(), json!({"type": "run.tools", "added": null, "removed": "x"}));
    let with = |more: &[&Value]| -> Vec<Value> {
        records.iter().chain(more.iter().copied()).cloned().collect()
    };
    for late in [&turn, &ended, &progress, &find("call.settled")] {
        let damage = verified(&with(&[late])).unwrap_err();
        assert_eq!(damage.seq as usize, records.len(), "{late}: {damage}");
        assert!(damage.why.contains("behind the end of the run"), "{late}: {damage}");
        verified(&with(&[&tools, late])).unwrap_err();
    }
    verified(&with(&[&asked, &turn, &ended])).unwrap();
    verified(&with(&[&resumed, &asked, &ended])).unwrap();
    verified(&with(&[&tools, &proposed, &ended, &asked, &turn, &ended])).unwrap();
    verified(&with(&[&asked, &ended, &ended])).unwrap_err();
}

#[tokio::test]
async fn a_run_without_an_agent_ends_on_its_tape_once() {
    let tape = MemoryTape::default();
    let run = Run::new(&Toolbox::new(builtin::tools()).unwrap()).tape(tape.clone());
    run.batch(vec![Proposal::new("c1", "hash", r#"{"text":"a"}"#)]).await.unwrap();
    run.end(RunEnd::Failed, "nobody wanted it").await.unwrap();
    let last = serde_json::to_value(tape.records(run.id()).last().unwrap()).unwrap();
    assert_eq!((&last["type"], &last["status"]), (&json!("run.ended"), &json!("failed")));
    let len = tape.records(run.id()).len();
    let again = run.end(RunEnd::Ended, "after all").await.unwrap_err();
    assert!(matches!(again, RunError::Closed { .. }), "{again}");
    let late = run.batch(vec![Proposal::new("c2", "hash", r#"{"text":"b"}"#)]).await.unwrap_err();
    assert_eq!(late.to_string(), "not executed: the run ended before: failed: nobody wanted it");
    assert_eq!(tape.records(run.id()).len(), len);
}
