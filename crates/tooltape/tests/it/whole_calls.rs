//! Calls that are over in one append: a tape in memory keeps each as one, and nobody can tell.

use std::time::Duration;

use tooltape::{
    Access, Ack, Append, BoxFuture, Clock, Event, MemoryTape, Proposal, Random, Record, Reply, Run,
    RunError, RunId, Spec, Tape, TapeError, ToolError, Toolbox, builtin, tool_fn,
};

/// A tape behind the seam: it is handed every event by itself.
#[derive(Clone, Default)]
struct Behind(MemoryTape);

impl Tape for Behind {
    fn append(&self, append: Append<'_>) -> Ack {
        self.0.append(append)
    }

    fn read(
        &self,
        run: RunId,
        from: u64,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, TapeError>> {
        self.0.read(run, from, most)
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(future)
}

/// A run whose time and choices are always the same.
fn run(tape: impl Tape + 'static) -> Run {
    let look = Spec::new("look", "Looks.").access(Access::Read);
    let look = tool_fn(look, async |_: tooltape::Empty| Ok::<_, ToolError>("seen"));
    let fail = Spec::new("fail", "Fails.").access(Access::Pure);
    let fail = tool_fn(fail, async |_: tooltape::Empty| Err::<(), _>(ToolError::tell("no")));
    let tools = builtin::tools().into_iter().chain([look, fail]);
    Run::new(&Toolbox::new(tools).unwrap())
        .clock(Clock::fixed(Duration::from_secs(9)))
        .random(Random::seeded([7; 32]))
        .tape(tape)
}

fn echo(text: &str) -> Proposal {
    Proposal::new(format!("c-{text}"), "echo", format!(r#"{{"text":"{text}"}}"#))
}

async fn alone(run: &Run, proposal: Proposal) -> Result<Vec<Reply>, RunError> {
    run.batch(vec![proposal]).await
}

/// Calls that are kept as one, between others that are not.
async fn play(run: &Run) {
    for proposal in [
        echo("a"),
        echo("b"),
        Proposal::new("bad", "echo", "{"),
        Proposal::new("c", "look", "{}"),
        echo("c"),
        Proposal::new("d", "fail", "{}"),
        echo("d"),
    ] {
        alone(run, proposal).await.unwrap();
    }
    run.batch((0..40).map(|at| echo(&at.to_string())).collect()).await.unwrap();
}

#[test]
fn calls_that_are_kept_as_one_leave_the_records_that_other_tapes_are_handed() {
    let (kept, handed) = (MemoryTape::default(), Behind::default());
    let ids = block_on(async {
        let (one, other) = (run(kept.clone()), run(handed.clone()));
        play(&one).await;
        play(&other).await;
        [one.id(), other.id()]
    });
    assert_eq!(ids[0], ids[1], "both runs are the same");
    let lines = |tape: &MemoryTape| -> Vec<String> {
        tape.lines(ids[0]).unwrap().iter().map(tooltape::Line::text).collect()
    };
    assert_eq!(lines(&kept), lines(&handed.0));
    assert_eq!(kept.head(ids[0]).unwrap(), handed.0.head(ids[0]).unwrap());
}

#[test]
fn a_tape_is_read_from_within_a_call_that_is_kept_as_one() {
    let tape = MemoryTape::default();
    block_on(async {
        let run = run(tape.clone());
        play(&run).await;
        let (id, records) = (run.id(), tape.records(run.id()));
        let shown = |records: &[Record]| -> Vec<String> {
            records.iter().map(|record| format!("{record:?}")).collect()
        };
        for from in 0..=records.len() + 2 {
            let rest = &records[from.min(records.len())..];
            for most in [1, 2, 3, 5, records.len()] {
                let read = tape.read(id, from as u64, most).await.unwrap();
                assert_eq!(
                    shown(&read),
                    shown(&rest[..most.min(rest.len())]),
                    "{most} from {from}"
                );
            }
        }
    });
}

#[test]
fn the_head_of_a_tape_that_is_asked_for_after_every_call_is_that_of_all_records() {
    let tape = MemoryTape::default();
    block_on(async {
        let run = run(tape.clone());
        for at in 0..50 {
            alone(&run, echo(&at.to_string())).await.unwrap();
            let head = tape.head(run.id()).unwrap();
            tooltape::verify(&tape.records(run.id()), head).unwrap();
        }
    });
}

#[test]
fn a_call_that_is_kept_as_one_never_follows_what_somebody_else_wrote() {
    let tape = MemoryTape::default();
    block_on(async {
        let run = run(tape.clone());
        alone(&run, echo("a")).await.unwrap();
        let after = tape.records(run.id()).len() as u64;
        let mut events = vec![Event::Asked { text: "somebody else".into() }];
        tape.append(Append::new(run.id(), after, 7, &mut events)).accepted().unwrap();
        let refused = alone(&run, echo("b")).await.unwrap_err();
        let RunError::Ended { replies, .. } = refused else { panic!("{refused}") };
        assert!(replies[0].is_error, "{}", replies[0].text());
        assert_eq!(tape.records(run.id()).len() as u64, after + 1);
    });
}

#[test]
fn whoever_watches_a_run_sees_every_event_of_a_call_that_would_be_kept_as_one() {
    let tape = MemoryTape::default();
    block_on(async {
        let run = run(tape.clone());
        alone(&run, echo("a")).await.unwrap();
        let mut watching = run.subscribe(tooltape::Backlog::default());
        alone(&run, echo("b")).await.unwrap();
        let mut seen = Vec::new();
        for _ in 0..4 {
            let told = watching.next().await.expect("the run goes on");
            seen.push(format!("{told:?}"));
        }
        let records = tape.records(run.id());
        for (seen, record) in seen.iter().zip(&records[records.len() - 4..]) {
            assert!(seen.contains(&format!("{record:?}")), "{seen} shows {record:?}");
        }
    });
}
