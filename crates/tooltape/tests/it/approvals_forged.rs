//! Approvals that somebody altered on the tape: not one of them lets a call run.
#![allow(clippy::print_stdout, reason = "counts are for whoever reads the report")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tooltape::{
    Access, Answer, Append, Clock, Domain, Hash, Head, Line, MemoryTape, Proposal, Record, Rules,
    Run, RunError, RunId, RunLimits, Spec, Tape, Toolbox, Verify, answer_question, open_questions,
    tool_fn,
};

use crate::simulation::Dice;

/// How many altered approvals are tried, unless `TOOLTAPE_APPROVALS` says how many.
const APPROVALS_DEFAULT: u64 = 4_000;
/// How many alterations of one approval are tried before the next.
const MUTATIONS_EACH: u64 = 400;

#[tooltape::input]
#[derive(Clone)]
struct Pay {
    /// How much.
    cents: u64,
    /// To whom.
    to: String,
}

fn payer(paid: &Arc<AtomicU64>) -> Toolbox {
    declared(paid, Spec::new("pay", "Pays."))
}

fn declared(paid: &Arc<AtomicU64>, spec: Spec) -> Toolbox {
    let paid = paid.clone();
    let pay = tool_fn(spec.access(Access::Write), move |pay: Pay| {
        paid.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, String>(format!("{} cents to {}", pay.cents, pay.to)) }
    });
    Toolbox::new([pay]).unwrap()
}

fn run(toolbox: &Toolbox, tape: &MemoryTape) -> Run {
    let rules = Rules::allow_reads().ask_before_writes();
    Run::new(toolbox).tape(tape.clone()).policy(rules).pausing()
}

/// The records of a run that was paused and answered with yes.
async fn approved(toolbox: &Toolbox, dice: &mut Dice) -> Vec<Record> {
    let tape = MemoryTape::default();
    let run = run(toolbox, &tape);
    let args = json!({ "cents": dice.below(1 << 50), "to": format!("account {}", dice.below(99)) });
    run.batch(vec![Proposal::new("c1", "pay", args.to_string())]).await.unwrap_err();
    let asked = open_questions(&tape, run.id()).await.unwrap().remove(0);
    let approval = asked.question.approval;
    answer_question(&tape, &Clock::system(), run.id(), approval, Answer::Once).await.unwrap();
    tape.records(run.id())
}

/// A tape with the events of these records.
fn taped(records: &[Record]) -> Result<MemoryTape, String> {
    let tape = MemoryTape::default();
    let mut events = records.iter().map(|record| record.event.clone()).collect();
    let (id, at_us) = (records[0].run, records[0].at_us);
    let appended = tape.append(Append::new(id, 0, at_us, &mut events)).accepted();
    appended.map_err(|err| err.to_string()).map(|_| tape)
}

/// Goes on with a run, and says whether its call was executed.
async fn goes_on(run: Run, id: RunId) -> Result<bool, String> {
    let resumed = run.resume(id).await.map_err(|err| err.to_string())?;
    match resumed.settle_open().await {
        Ok(replies) => Ok(replies.iter().any(|reply| !reply.is_error)),
        Err(RunError::Paused { .. }) => Ok(false),
        Err(err) => Err(err.to_string()),
    }
}

/// The same text with one character changed.
fn altered(dice: &mut Dice, text: &str) -> String {
    let at = dice.below(text.len() as u64) as usize;
    let old = text.as_bytes()[at] as char;
    let new = dice.one_of(&['0', '1', '7', 'a', 'f', 'z']);
    let new = if new == old { if old == '0' { '1' } else { '0' } } else { new };
    format!("{}{new}{}", &text[..at], &text[at + 1..])
}

/// Everything that a yes is bound to, on the tape and off it.
const BOUND: [(&str, &str); 14] = [
    ("call.asked", "approval"),
    ("call.asked", "rule"),
    ("call.asked", "policy"),
    ("call.asked", "until_us"),
    ("call.asked", "question"),
    ("call.answered", "approval"),
    ("call.answered", "question"),
    ("call.answered", "yes"),
    ("call.proposed", "arguments"),
    ("call.proposed", "arguments"),
    ("run", "id"),
    ("now", "tool"),
    ("now", "policy"),
    ("now", "clock"),
];

/// An approved call, and the tools that are not those it was approved for.
struct Approved {
    records: Vec<Record>,
    /// What each record says.
    bodies: Vec<Value>,
    toolbox: Toolbox,
    others: Vec<Toolbox>,
}

impl Approved {
    /// The same with one thing altered that a yes is bound to, as it goes on; nothing, where what
    /// was altered is no record any more.
    fn forged(&self, dice: &mut Dice) -> Option<(Run, RunId, &'static str)> {
        let (kind, field) = dice.one_of(&BOUND);
        let mut records = self.records.clone();
        match kind {
            "run" => {
                // All of it is said to be another run.
                let other = altered(dice, &records[0].run.to_string()).parse().ok()?;
                records.iter_mut().for_each(|record| record.run = other);
            }
            "now" => {}
            _ => {
                let at = self.bodies.iter().position(|body| body["type"] == kind)?;
                let mut body = self.bodies[at].clone();
                body[field] = other(dice, field, &body[field]);
                records[at] = Record::read(&body.to_string()).ok()?;
            }
        }
        let (id, tape) = (records[0].run, taped(&records).ok()?);
        let went_on = match (kind, field) {
            ("now", "tool") => {
                let at = dice.below(self.others.len() as u64) as usize;
                run(&self.others[at], &tape)
            }
            ("now", "policy") => {
                let name = format!("push{}", dice.below(1 << 30));
                let stricter = Rules::allow_reads().ask_before_writes().deny(name, "no");
                run(&self.toolbox, &tape).policy(stricter)
            }
            ("now", "clock") => {
                let most = RunLimits::default().approval.as_secs();
                let late = records[0].at_us / 1_000_000 + most + 1 + dice.below(1 << 30);
                run(&self.toolbox, &tape).clock(Clock::fixed(Duration::from_secs(late)))
            }
            _ => run(&self.toolbox, &tape),
        };
        Some((went_on, id, field))
    }
}

/// Another value of the same kind.
fn other(dice: &mut Dice, field: &str, value: &Value) -> Value {
    match value {
        Value::String(text) => altered(dice, text).into(),
        Value::Number(number) => {
            let less = number.as_u64().unwrap().saturating_sub(1 + dice.below(3));
            let more = number.as_u64().unwrap() + 1 + dice.below(1 << 40);
            Value::from(if field == "question" || dice.once_in(2) { more } else { less })
        }
        Value::Bool(yes) => Value::Bool(!yes),
        other => panic!("`{field}` is {other}"),
    }
}

#[tokio::test]
async fn no_altered_approval_lets_a_call_run() {
    let wanted = std::env::var("TOOLTAPE_APPROVALS").ok().and_then(|it| it.parse().ok());
    let wanted = wanted.unwrap_or(APPROVALS_DEFAULT);
    let (paid, mut tried) = (Arc::new(AtomicU64::new(0)), 0_u64);
    let toolbox = payer(&paid);
    let others = [
        Spec::new("pay", "Pays more."),
        Spec::new("pay", "Pays.").version("0.1.1"),
        Spec::new("pay", "Pays.").needs("spend:any:EUR/1"),
        Spec::new("pay", "Pays.").output(json!({ "type": "string" })),
    ];
    let others: Vec<Toolbox> = others.map(|spec| declared(&paid, spec)).into();
    for seed in 0.. {
        let mut dice = Dice::new(seed);
        let records = approved(&toolbox, &mut dice).await;
        let bodies = records.iter().map(|it| serde_json::to_value(it).unwrap()).collect();
        let (toolbox, others) = (toolbox.clone(), others.clone());
        let approved = Approved { records, bodies, toolbox, others };
        for _ in 0..MUTATIONS_EACH {
            let Some((run, id, what)) = approved.forged(&mut dice) else { continue };
            let ran = goes_on(run, id).await;
            assert!(!matches!(ran, Ok(true)), "seed {seed}: `{what}` was altered, and it ran");
            tried += 1;
        }
        assert_eq!(paid.load(Ordering::SeqCst), seed, "seed {seed}");
        // The control: as it was, it runs.
        let (id, tape) = (approved.records[0].run, taped(&approved.records).unwrap());
        assert_eq!(goes_on(run(&approved.toolbox, &tape), id).await, Ok(true), "seed {seed}");
        if tried >= wanted {
            break;
        }
    }
    println!("approvals: {tried} altered, 0 let a call run");
}

/// Whether these records, with their hashes as they should be, are in order.
fn sound(records: &[Record]) -> Result<(), String> {
    let (mut verify, mut previous) = (Verify::default(), Head::empty().hash);
    for record in records {
        let line = Line::of(record, previous).unwrap();
        previous = line.hash();
        verify.line(&line).map_err(|damage| damage.to_string())?;
    }
    Ok(())
}

#[tokio::test]
async fn a_tape_on_which_a_call_starts_without_its_yes_is_damaged() {
    let paid = Arc::new(AtomicU64::new(0));
    let toolbox = payer(&paid);
    let records = approved(&toolbox, &mut Dice::new(1)).await;
    let tape = MemoryTape::default();
    let mut events = records.iter().map(|record| record.event.clone()).collect();
    let id = records[0].run;
    tape.append(Append::new(id, 0, records[0].at_us, &mut events)).accepted().unwrap();
    let resumed = run(&toolbox, &tape).resume(id).await.unwrap();
    resumed.settle_open().await.unwrap();
    let records = tape.records(id);
    sound(&records).unwrap();
    let hash = Hash::of(Domain::Policy, b"another");
    let other = json!({ "cents": 1, "to": "me" });
    let other_hash = Hash::of(Domain::Arguments, other.to_string().as_bytes());
    type Forgery = (&'static str, &'static str, usize, Value);
    let forgeries: [Forgery; 7] = [
        ("other arguments", "call.judged", 1, json!({ "args": other, "args_hash": other_hash })),
        ("another definition", "call.judged", 1, json!({ "definition": hash })),
        ("another rule", "call.judged", 1, json!({ "rule": "another" })),
        ("another policy", "run.resumed", 0, json!({ "policy": hash })),
        ("too late", "call.started", 0, json!({ "at_us": u64::MAX >> 12 })),
        ("a no", "call.answered", 0, json!({ "yes": false })),
        ("nobody had to ask", "call.judged", 0, json!({ "verdict": "allow" })),
    ];
    for (what, kind, nth, changes) in forgeries {
        let mut of_kind = 0;
        let forged: Vec<Record> = records
            .iter()
            .map(|record| {
                let mut body = serde_json::to_value(record).unwrap();
                if body["type"] == kind {
                    if of_kind == nth {
                        body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
                    }
                    of_kind += 1;
                }
                Record::read(&body.to_string()).unwrap()
            })
            .collect();
        assert!(of_kind > nth, "there is a `{kind}`");
        sound(&forged).expect_err(what);
    }
}
