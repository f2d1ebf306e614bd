//! Approvals under attack (AP-01, AP-02, AP-03): each case by its name, each beside what is good.
#![allow(clippy::print_stdout, reason = "counts are for whoever reads the report")]

use std::time::Duration;

use tooltape::{
    Answer, AnswerError, Clock, Event, Fork, Hash, MemoryTape, Proposal, Record, Rules, Run,
    RunError, RunId, RunLimits, Spec, Toolbox, Verdict, answer_question, open_questions,
};

use crate::stage::{Stage, cut};

/// A second after the epoch of these tests.
const NOW: Duration = Duration::from_secs(1_700_000_000);

/// What became of a call that somebody had approved in another form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is the same call, and ran.
    Ran,
    /// It is another, and somebody is asked again.
    Asked,
    /// It is none, or not allowed.
    Refused,
}
use Fate::{Asked, Ran, Refused};

fn rules() -> Rules {
    Rules::allow_reads().ask_before_writes()
}

fn asking(toolbox: &Toolbox, tape: &MemoryTape) -> Run {
    Run::new(toolbox).tape(tape.clone()).policy(rules()).clock(Clock::fixed(NOW)).pausing()
}

fn pay(text: &str) -> Vec<Proposal> {
    vec![Proposal::new("c1", "pay", text)]
}

fn fate(ended: Result<Vec<tooltape::Reply>, RunError>) -> Fate {
    match ended {
        Ok(replies) if replies.iter().all(|reply| !reply.is_error) => Ran,
        Ok(_) => Refused,
        Err(RunError::Paused { .. }) => Asked,
        Err(err) => panic!("{err}"),
    }
}

async fn the_question(tape: &MemoryTape, run: RunId) -> Hash {
    open_questions(tape, run).await.unwrap()[0].question.approval
}

async fn say(tape: &MemoryTape, run: RunId, answer: Answer) -> Result<(), AnswerError> {
    let approval = the_question(tape, run).await;
    answer_question(tape, &Clock::fixed(NOW), run, approval, answer).await
}

/// A call that was approved and has not run.
async fn approved(toolbox: &Toolbox, text: &str, answer: Answer) -> (MemoryTape, RunId) {
    let tape = MemoryTape::default();
    let run = asking(toolbox, &tape);
    run.batch(pay(text)).await.unwrap_err();
    say(&tape, run.id(), answer).await.unwrap();
    (tape, run.id())
}

/// The same records, in which the model proposed another text.
fn proposing(records: &[Record], text: &str) -> Vec<Record> {
    let swapped = records.iter().map(|record| {
        let mut body = serde_json::to_value(record).unwrap();
        if body["type"] == "call.proposed" {
            body["arguments"] = text.into();
        }
        Record::read(&body.to_string()).unwrap()
    });
    swapped.collect()
}

/// AP-01 and AP-02: one text was approved, and another would run.
const SWAPPED: [(&str, &str, &str, Fate); 34] = [
    ("control: the same bytes", r#"{"to":"a"}"#, r#"{"to":"a"}"#, Ran),
    ("one letter", r#"{"to":"a"}"#, r#"{"to":"b"}"#, Asked),
    ("a case", r#"{"to":"a"}"#, r#"{"to":"A"}"#, Asked),
    ("a blank at the end", r#"{"to":"a"}"#, r#"{"to":"a "}"#, Asked),
    ("a NUL at the end", r#"{"to":"a"}"#, "{\"to\":\"a\\u0000\"}", Asked),
    ("a longer list", r#"{"to":["a"]}"#, r#"{"to":["a","b"]}"#, Asked),
    ("another order of a list", r#"{"to":["a","b"]}"#, r#"{"to":["b","a"]}"#, Asked),
    ("a list for its item", r#"{"to":"a"}"#, r#"{"to":["a"]}"#, Asked),
    ("a text for a number", r#"{"cents":1}"#, r#"{"cents":"1"}"#, Asked),
    ("true for one", r#"{"cents":1}"#, r#"{"cents":true}"#, Asked),
    ("null for nothing", r#"{}"#, r#"{"to":null}"#, Asked),
    ("another name", r#"{"to":"a"}"#, r#"{"too":"a"}"#, Asked),
    ("a field more", r#"{"to":"a"}"#, r#"{"also":"b","to":"a"}"#, Asked),
    ("a field less", r#"{"also":"b","to":"a"}"#, r#"{"to":"a"}"#, Asked),
    ("a default that is spelled out", r#"{"to":"a"}"#, r#"{"ms":10,"to":"a"}"#, Asked),
    ("deeper down", r#"{"a":{"b":{"c":1}}}"#, r#"{"a":{"b":{"c":2}}}"#, Asked),
    ("control: other blanks", r#"{"to":"a"}"#, " { \"to\" :\n\"a\" } ", Ran),
    ("control: another order of names", r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, Ran),
    ("control: an escape of the same letter", r#"{"to":"a"}"#, r#"{"to":"\u0061"}"#, Ran),
    ("control: 1 and 1.0", r#"{"cents":1}"#, r#"{"cents":1.0}"#, Ran),
    ("control: 1 and 1e0", r#"{"cents":1}"#, r#"{"cents":1e0}"#, Ran),
    ("control: 0 and -0", r#"{"cents":0}"#, r#"{"cents":-0}"#, Ran),
    ("2^53 and its neighbour", r#"{"c":9007199254740992}"#, r#"{"c":9007199254740993}"#, Asked),
    ("beyond 2^64", r#"{"c":18446744073709551616}"#, r#"{"c":18446744073709551617}"#, Asked),
    (
        "25 digits",
        r#"{"c":1000000000000000000000001}"#,
        r#"{"c":1000000000000000000000002}"#,
        Asked,
    ),
    ("-2^53 and its neighbour", r#"{"c":-9007199254740992}"#, r#"{"c":-9007199254740993}"#, Asked),
    ("the next double", r#"{"c":0.1}"#, r#"{"c":0.10000000000000002}"#, Asked),
    ("NFC and NFD", "{\"to\":\"\u{e9}\"}", "{\"to\":\"e\u{301}\"}", Asked),
    ("a letter that looks alike", r#"{"to":"a"}"#, "{\"to\":\"\u{430}\"}", Asked),
    ("a letter that nobody sees", r#"{"to":"a"}"#, "{\"to\":\"a\u{200b}\"}", Asked),
    ("a name twice", r#"{"to":"a"}"#, r#"{"to":"a","to":"b"}"#, Refused),
    ("a name twice, once escaped", r#"{"to":"a"}"#, r#"{"to":"a","\u0074o":"b"}"#, Refused),
    ("half of a surrogate pair", r#"{"to":"a"}"#, r#"{"to":"\ud800"}"#, Refused),
    ("a number beyond doubles", r#"{"c":1}"#, r#"{"c":1e999}"#, Refused),
];

#[tokio::test]
async fn what_was_approved_in_one_form_runs_in_no_other() {
    for (name, asked, text, expected) in SWAPPED {
        let stage = Stage::new();
        let toolbox = Toolbox::new([stage.write("pay")]).unwrap();
        let (tape, id) = approved(&toolbox, asked, Answer::Once).await;
        let tape = cut(&proposing(&tape.records(id), text));
        let resumed = asking(&toolbox, &tape).resume(id).await.unwrap();
        assert_eq!(fate(resumed.settle_open().await), expected, "{name}");
        assert_eq!(stage.log().len(), usize::from(expected == Ran), "{name}");
    }
    println!("approvals: {} pairs of one call and another", SWAPPED.len());
}

#[tokio::test]
async fn nobody_is_asked_about_what_is_no_call() {
    let cases = [
        ("a name twice", r#"{"to":"a","to":"a"}"#),
        ("half of a surrogate pair", r#"{"to":"\udfff"}"#),
        ("a number beyond doubles", r#"{"c":-1e999}"#),
        ("too deep", &"[".repeat(200)),
        ("no object", "[]"),
        ("text behind the end", "{} {}"),
        ("nothing that is JSON", "NaN"),
    ];
    for (name, text) in cases {
        let stage = Stage::new();
        let (tape, toolbox) = (MemoryTape::default(), Toolbox::new([stage.write("pay")]).unwrap());
        let run = asking(&toolbox, &tape);
        assert_eq!(fate(run.batch(pay(text)).await), Refused, "{name}");
        assert!(open_questions(&tape, run.id()).await.unwrap().is_empty(), "{name}");
    }
}

/// Where a yes is used that was given elsewhere, or before (AP-03).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replayed {
    AsItWas,
    JustInTime,
    ASecondTime,
    BySecondCall,
    InAnotherRun,
    InAFork,
    ByAnotherVersion,
    ByAnotherDescription,
    ByAnotherSchema,
    ByOtherEffects,
    ByOtherNeeds,
    UnderAnotherPolicy,
    UnderAnotherRule,
    UnderADenial,
    WithoutTheRight,
    AfterRevocation,
    AtItsExpiry,
    LongAfter,
}

const REPLAYED: [(Replayed, Fate); 18] = [
    (Replayed::AsItWas, Ran),
    (Replayed::JustInTime, Ran),
    (Replayed::ASecondTime, Refused),
    (Replayed::BySecondCall, Asked),
    (Replayed::InAnotherRun, Asked),
    (Replayed::InAFork, Asked),
    (Replayed::ByAnotherVersion, Asked),
    (Replayed::ByAnotherDescription, Asked),
    (Replayed::ByAnotherSchema, Asked),
    (Replayed::ByOtherEffects, Asked),
    (Replayed::ByOtherNeeds, Asked),
    (Replayed::UnderAnotherPolicy, Asked),
    (Replayed::UnderAnotherRule, Asked),
    (Replayed::UnderADenial, Refused),
    (Replayed::WithoutTheRight, Refused),
    (Replayed::AfterRevocation, Refused),
    (Replayed::AtItsExpiry, Asked),
    (Replayed::LongAfter, Asked),
];

/// Goes on with an approved call in this way.
#[allow(clippy::too_many_lines, reason = "a table, an arm a way")]
async fn replayed(stage: &Stage, how: Replayed) -> Fate {
    let spec = || Spec::new("pay", "Pays.").needs("fs:read:.");
    let toolbox = |spec: Spec| Toolbox::new([stage.tool(spec)]).unwrap();
    let rights = || "fs:read:.\nfs:write:.".parse().unwrap();
    let given = toolbox(spec());
    let tape = MemoryTape::default();
    let set_up = |toolbox: &Toolbox| asking(toolbox, &tape).rights(rights());
    let run = set_up(&given);
    run.batch(pay(r#"{"ms":0}"#)).await.unwrap_err();
    let id = run.id();
    say(&tape, id, Answer::Once).await.unwrap();
    let until = RunLimits::default().approval;
    let later = |time: Duration| set_up(&given).clock(Clock::fixed(NOW + time));
    let other = match how {
        Replayed::AsItWas | Replayed::ASecondTime | Replayed::BySecondCall => set_up(&given),
        Replayed::AfterRevocation => set_up(&given),
        Replayed::JustInTime => later(until - Duration::from_micros(1)),
        Replayed::AtItsExpiry => later(until),
        Replayed::LongAfter => later(until * 100),
        Replayed::ByAnotherVersion => set_up(&toolbox(spec().version("0.1.1"))),
        Replayed::ByAnotherDescription => {
            set_up(&toolbox(Spec::new("pay", "Pays more.").needs("fs:read:.")))
        }
        Replayed::ByAnotherSchema => {
            set_up(&toolbox(spec().output(serde_json::json!({ "type": "string" }))))
        }
        Replayed::ByOtherEffects => {
            let mut spec = spec();
            spec.effects.spend = !spec.effects.spend;
            set_up(&toolbox(spec))
        }
        Replayed::ByOtherNeeds => set_up(&toolbox(spec().needs("fs:write:."))),
        Replayed::UnderAnotherPolicy => set_up(&given).policy(rules().deny("push", "no")),
        Replayed::UnderAnotherRule => set_up(&given).policy(|_: &_| Verdict::ask("another rule")),
        Replayed::UnderADenial => set_up(&given).policy(rules().deny("pay", "no")),
        Replayed::WithoutTheRight => asking(&given, &tape).rights("fs:write:.".parse().unwrap()),
        Replayed::InAnotherRun => {
            // The yes of one run, beside the question of another.
            let other = set_up(&given);
            other.batch(pay(r#"{"ms":0}"#)).await.unwrap_err();
            let mut records = tape.records(other.id());
            let yes = tape.records(id).into_iter().find(|it| it.event.kind() == "call.answered");
            let (seq, mut yes) = (records.len() as u64, yes.unwrap());
            (yes.run, yes.seq) = (other.id(), seq);
            records.push(yes);
            let resumed = asking(&given, &cut(&records)).rights(rights());
            let resumed = resumed.resume(other.id()).await.unwrap();
            return fate(resumed.settle_open().await);
        }
        Replayed::InAFork => {
            let fork = Fork::of(id, tape.records(id).len() as u64);
            let forked = set_up(&given).fork(fork).await.unwrap();
            return fate(forked.settle_open().await);
        }
    };
    let resumed = other.resume(id).await.unwrap();
    if how == Replayed::AfterRevocation {
        resumed.revoke();
    }
    let first = resumed.settle_open().await;
    match how {
        Replayed::BySecondCall => fate(resumed.batch(pay(r#"{"ms":0}"#)).await),
        Replayed::ASecondTime => {
            assert_eq!(fate(first), Ran);
            let run = resumed.id();
            drop(resumed);
            let again = set_up(&given).resume(run).await.unwrap();
            assert!(again.settle_open().await.unwrap().is_empty(), "nothing is left to do");
            Refused
        }
        _ => fate(first),
    }
}

#[tokio::test]
async fn a_yes_is_used_once_and_only_where_and_as_it_was_given() {
    for (how, expected) in REPLAYED {
        let stage = Stage::new();
        assert_eq!(replayed(&stage, how).await, expected, "{how:?}");
        let once = matches!(how, Replayed::ASecondTime | Replayed::BySecondCall);
        let ran = usize::from(expected == Ran || once);
        assert_eq!(stage.log().len(), ran, "{how:?}");
    }
    println!("approvals: {} places to use one", REPLAYED.len());
}

#[tokio::test]
async fn a_run_that_ended_takes_no_answer() {
    let stage = Stage::new();
    let (tape, toolbox) = (MemoryTape::default(), Toolbox::new([stage.write("pay")]).unwrap());
    let run = asking(&toolbox, &tape);
    run.batch(pay("{}")).await.unwrap_err();
    let (id, approval) = (run.id(), the_question(&tape, run.id()).await);
    let ended = Event::RunEnded { status: "cancelled", stop: "closed".into(), answer: None };
    let mut records = tape.records(id);
    records.push(Record::new(id, records.len() as u64, records[0].at_us, ended));
    let tape = cut(&records);
    assert!(open_questions(&tape, id).await.unwrap().is_empty());
    let late = answer_question(&tape, &Clock::fixed(NOW), id, approval, Answer::Once).await;
    assert!(matches!(late, Err(AnswerError::Ended)), "{late:?}");
    assert_eq!(tape.records(id).len(), records.len(), "nothing was written");
}
