//! Approvals of what somebody was shown: a yes is good for that, and for nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tooltape::{
    Answer, CallNo, Canon, Clock, Domain, Effects, Event, Hash, MemoryTape, OpenQuestion, Preview,
    Proposal, Question, Repeat, Rules, Run, RunId, Spec, ToolError, Toolbox, Verify,
    answer_question, input, open_questions, tool_fn,
};

use crate::approvals::sound;
use crate::stage::cut;

/// What to pay.
#[input]
struct Pay {
    /// How much.
    cents: u64,
}

/// A till whose content a question shows, unless it is empty, and how often somebody paid from it.
#[derive(Clone, Default)]
struct Till {
    content: Arc<AtomicU64>,
    paid: Arc<AtomicU64>,
}

impl Till {
    fn holds(&self, cents: u64) {
        self.content.store(cents, Ordering::SeqCst);
    }

    fn paid(&self) -> u64 {
        self.paid.load(Ordering::SeqCst)
    }

    /// A run that asks before it pays, and waits for an answer.
    fn run(&self, tape: &MemoryTape) -> Run {
        self.unasked(tape).pausing()
    }

    /// A run that must ask before it pays, and can ask nobody.
    fn unasked(&self, tape: &MemoryTape) -> Run {
        let Till { content, paid } = self.clone();
        let hook = Preview::by("shows", move |pay: Pay| {
            let content = content.load(Ordering::SeqCst);
            async move {
                match content {
                    0 => Err(ToolError::tell("it is empty")),
                    content => Ok(format!("{content} - {}", pay.cents)),
                }
            }
        });
        let effects = Effects { repeat: Repeat::Idempotent, ..Effects::default() };
        let spec = Spec::new("pay", "Pays.").effects(effects).preview(hook);
        let pay = tool_fn(spec, move |_: Pay| {
            paid.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, ToolError>("paid") }
        });
        let rules = Rules::allow_reads().ask_before_writes();
        Run::new(&Toolbox::new([pay]).unwrap()).tape(tape.clone()).policy(rules)
    }
}

fn pay() -> Vec<Proposal> {
    vec![Proposal::new("c1", "pay", r#"{"cents":5}"#)]
}

/// The only question that waits, once it is answered.
async fn say(tape: &MemoryTape, run: RunId, answer: Answer) -> Question {
    let mut open = open_questions(tape, run).await.unwrap();
    assert_eq!(open.len(), 1);
    let question = open.remove(0).question;
    answer_question(tape, &Clock::system(), run, question.approval, answer).await.unwrap();
    question
}

#[tokio::test]
async fn a_yes_is_good_for_what_was_shown_and_anything_else_is_asked_about_again() {
    // What is in the till when it is asked, and when the run goes on; whether that is paid.
    let cases = [
        (9, Answer::Once, 9, true),
        (9, Answer::Once, 7, false),
        (9, Answer::Once, 0, false),
        // Where nothing could be shown, a yes is good as long as nothing can.
        (0, Answer::Once, 7, false),
        (0, Answer::Once, 0, true),
        // Whoever lets the run do as it likes has seen one call of many.
        (9, Answer::Run, 7, true),
    ];
    for (asked, answer, then, is_paid) in cases {
        let (till, tape) = (Till::default(), MemoryTape::default());
        till.holds(asked);
        let run = till.run(&tape);
        run.batch(pay()).await.unwrap_err();
        let first = say(&tape, run.id(), answer).await;
        let shown = (asked > 0).then(|| Hash::of(Domain::Preview, b"9 - 5"));
        assert_eq!(first.shown, shown, "the tape says what was shown");
        till.holds(then);
        let settled = till.run(&tape).resume(run.id()).await.unwrap().settle_open().await;
        assert_eq!((settled.is_ok(), till.paid()), (is_paid, u64::from(is_paid)));
        if !is_paid {
            // It is another question, and the yes to the first is none to it.
            let again = till.run(&tape).resume(run.id()).await.unwrap().settle_open().await;
            assert!(again.is_err() && till.paid() == 0);
            let second = say(&tape, run.id(), Answer::Once).await;
            assert_eq!(second.question, 2, "it is asked once");
            assert_ne!(second.approval, first.approval);
            till.run(&tape).resume(run.id()).await.unwrap().settle_open().await.unwrap();
            assert_eq!(till.paid(), 1);
        }
        sound(&tape, run.id());
    }
}

#[tokio::test]
async fn a_call_that_began_as_it_was_shown_is_not_asked_about_for_what_it_changed_itself() {
    let (till, tape) = (Till::default(), MemoryTape::default());
    till.holds(9);
    let run = till.run(&tape).approver(|_| Box::pin(async { Answer::Once }));
    run.batch(pay()).await.unwrap();
    let records = tape.records(run.id());
    let place = |kind: &str| records.iter().position(|it| it.event.kind() == kind).unwrap();
    // The process died once the call had started, and before that.
    for (died_after, is_paid) in [("call.started", true), ("call.answered", false)] {
        let tape = cut(&records[..=place(died_after)]);
        till.holds(4);
        let paid = till.paid();
        let settled = till.run(&tape).resume(run.id()).await.unwrap().settle_open().await;
        assert_eq!(settled.is_ok(), is_paid, "{died_after}");
        assert_eq!(till.paid() - paid, u64::from(is_paid), "{died_after}");
    }
}

#[tokio::test]
async fn what_was_asked_after_an_attempt_is_bound_though_the_attempt_may_be_repeated() {
    let (till, tape) = (Till::default(), MemoryTape::default());
    till.holds(9);
    let run = till.run(&tape).approver(|_| Box::pin(async { Answer::Once }));
    run.batch(pay()).await.unwrap();
    let records = tape.records(run.id());
    let started = records.iter().position(|it| it.event.kind() == "call.started").unwrap();
    let tape = cut(&records[..=started]);
    // The yes has expired, so it is asked again what is done a second time.
    let later = || Clock::fixed(Duration::from_secs(1 << 40));
    let late = || till.run(&tape).clock(later());
    late().resume(run.id()).await.unwrap().settle_open().await.unwrap_err();
    let approval = open_questions(&tape, run.id()).await.unwrap()[0].question.approval;
    answer_question(&tape, &later(), run.id(), approval, Answer::Once).await.unwrap();
    till.holds(7);
    let settled = late().resume(run.id()).await.unwrap().settle_open().await;
    assert!(settled.is_err() && till.paid() == 1, "nobody said yes to paying 5 of 7");
    let open = open_questions(&tape, run.id()).await.unwrap();
    assert_eq!(open[0].question.question, 3, "it is asked about instead");
}

#[tokio::test]
async fn a_yes_for_the_run_needs_nobody_who_could_be_asked() {
    let (till, tape) = (Till::default(), MemoryTape::default());
    till.holds(9);
    let run = till.run(&tape);
    run.batch(pay()).await.unwrap_err();
    say(&tape, run.id(), Answer::Run).await;
    till.holds(7);
    let resumed = till.unasked(&tape).resume(run.id()).await.unwrap();
    assert!(!resumed.settle_open().await.unwrap()[0].is_error);
    assert!(!resumed.batch(pay()).await.unwrap()[0].is_error);
    assert_eq!(till.paid(), 2);
    sound(&tape, run.id());
}

#[tokio::test]
async fn what_a_yes_is_good_for_is_the_hash_that_the_format_says() {
    for cents in [9, 0] {
        let (till, tape) = (Till::default(), MemoryTape::default());
        till.holds(cents);
        let run = till.run(&tape);
        run.batch(pay()).await.unwrap_err();
        let OpenQuestion { question, facts, .. } =
            open_questions(&tape, run.id()).await.unwrap().remove(0);
        let mut bound = json!({
            "args_hash": facts.args_hash.to_string(),
            "attempt": null,
            "call": 1,
            "definition": facts.definition().unwrap().to_string(),
            "policy": question.policy.to_string(),
            "question": 1,
            "rule": Hash::of(Domain::Policy, question.rule.as_bytes()).to_string(),
            "run": run.id().to_string(),
            "tool": facts.tool().unwrap().to_string(),
            "until_us": question.until_us,
        });
        if cents > 0 {
            bound["shown"] = Hash::of(Domain::Preview, b"9 - 5").to_string().into();
        }
        let bound = Canon::of(&bound).unwrap();
        assert_eq!(question.approval, Hash::of(Domain::Approval, bound.as_str().as_bytes()));
    }
}

#[tokio::test]
async fn no_call_starts_on_a_yes_to_a_question_that_was_asked_again() {
    let (till, tape) = (Till::default(), MemoryTape::default());
    till.holds(9);
    let run = till.run(&tape);
    run.batch(pay()).await.unwrap_err();
    say(&tape, run.id(), Answer::Once).await;
    till.holds(7);
    till.run(&tape).resume(run.id()).await.unwrap().settle_open().await.unwrap_err();
    let mut records = tape.records(run.id());
    let paused = records.pop().unwrap();
    assert_eq!(paused.event.kind(), "run.paused");
    // As if the second question counted for nothing.
    let event = Event::Started { call: CallNo(1), attempt: 1, clock_us: None };
    records.push(tooltape::Record::new(run.id(), paused.seq, paused.at_us, event));
    let forged = cut(&records);
    let mut verify = Verify::default();
    let lines = forged.lines(run.id()).unwrap();
    let (last, before) = lines.split_last().unwrap();
    before.iter().for_each(|line| verify.line(line).unwrap());
    assert!(verify.line(last).is_err(), "nobody said yes to what is asked now");
}
