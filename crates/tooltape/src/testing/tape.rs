//! What every tape promises.

use std::cell::Cell;
use std::sync::Arc;

use crate::id::{CallNo, RunId};
use crate::tape::{Append, Event, Head, Key, Line, Tape, TapeError};

fn said(text: &str) -> Event {
    Event::Asked { text: text.into() }
}

fn started(call: u64, attempt: u32) -> Event {
    Event::Started { call: CallNo(call), attempt, clock_us: None }
}

fn run(no: u8) -> RunId {
    RunId::new(1, [no; 10])
}

/// Holds a tape to its promises. `make` makes an empty one each time.
pub async fn tape_conforms<T: Tape + 'static>(make: impl Fn() -> T) {
    keeps_what_it_acknowledged(&make()).await;
    appends_all_or_nothing(&make()).await;
    fences_off_a_second_writer(&make()).await;
    lets_a_key_be_used_once(&make()).await;
    keeps_runs_apart(&make()).await;
    reads_page_by_page(&make()).await;
    shows_what_it_accepted(&make()).await;
    lets_one_of_many_win(Arc::new(make())).await;
}

/// Holds a tape to its promises that outlives its handle.
///
/// `open` opens the tape of this number, which is made when it is opened first. Each handle is
/// dropped before the same tape is opened again.
pub async fn durable_tape_conforms<T: Tape + 'static>(open: impl Fn(usize) -> T) {
    let made = Cell::new(0);
    tape_conforms(|| open(made.replace(made.get() + 1))).await;
    let no = made.get();
    append(&open(no), 1, 0, vec![said("a"), started(1, 1)]).await.expect("the run is empty");
    let before = stored(&open(no), 1).await;
    assert_eq!(before.len(), 2, "what was acknowledged is there when the tape is opened again");
    let tape = open(no);
    let twice = append(&tape, 1, 2, vec![started(1, 1)]).await;
    assert_eq!(twice, Err(TapeError::KeyTaken { key: Key::Started(CallNo(1), 1) }));
    let late = append(&tape, 1, 1, vec![said("b")]).await;
    assert_eq!(late, Err(TapeError::Conflict { expected: 1, found: 2 }));
    append(&tape, 1, 2, vec![said("c")]).await.expect("the run goes on where it was");
    drop(tape);
    let after = stored(&open(no), 1).await;
    assert_eq!(after[..2], before, "a record says the same however often it is read");
    assert_eq!(after.len(), 3);
}

/// The text of all records of a run.
async fn stored<T: Tape>(tape: &T, no: u8) -> Vec<String> {
    let records = tape.read(run(no), 0, 100).await.expect("the tape reads");
    let mut hash = Head::empty().hash;
    let lines = records.iter().map(|record| {
        let line = Line::of(record, hash).expect("a record has a text");
        hash = line.hash();
        line.text()
    });
    lines.collect()
}

async fn reads_page_by_page<T: Tape>(tape: &T) {
    let many = (0..25).map(|no| said(&no.to_string())).collect();
    append(tape, 1, 0, many).await.expect("the run is empty");
    for most in [1, 7, 24, 25, 100] {
        let mut seen = Vec::new();
        while let page = tape.read(run(1), seen.len() as u64, most).await.expect("the tape reads")
            && !page.is_empty()
        {
            assert!(page.len() <= most, "a page has at most as many records as were asked for");
            seen.extend(page.into_iter().map(|record| record.seq));
        }
        assert!(seen.into_iter().eq(0..25), "pages of {most} leave nothing out");
    }
    let none = tape.read(run(1), 0, 0).await.expect("the tape reads");
    assert!(none.is_empty(), "a page of none has none");
    let none = tape.read(run(1), u64::MAX, 1).await.expect("reading far past the end is no error");
    assert!(none.is_empty());
}

async fn shows_what_it_accepted<T: Tape>(tape: &T) {
    for seq in 0..20 {
        let ack = tape.append(Append::new(run(1), seq, 7, &mut vec![said("a")]));
        ack.accepted().expect("the run is as long as the writer thinks");
        let seen = tape.read(run(1), seq, 10).await.expect("the tape reads").len();
        assert_eq!(seen, 1, "a read sees what was accepted before it");
    }
}

async fn append<T: Tape>(
    tape: &T,
    no: u8,
    after: u64,
    mut events: Vec<Event>,
) -> Result<(), TapeError> {
    tape.append(Append::new(run(no), after, 7, &mut events)).durable().await
}

/// The records of a run as `seq type` lines, read in pages of two.
async fn told<T: Tape>(tape: &T, no: u8) -> Vec<String> {
    let mut told = Vec::new();
    loop {
        let page = tape.read(run(no), told.len() as u64, 2).await.expect("the tape reads");
        assert!(page.len() <= 2, "a read returns at most as many records as were asked for");
        if page.is_empty() {
            return told;
        }
        for record in page {
            assert_eq!(
                (record.run, record.at_us),
                (run(no), 7),
                "a record keeps its run and stamp"
            );
            let text = match &record.event {
                Event::Asked { text } => text.to_string(),
                other => other.key().map_or_else(String::new, |key| key.to_string()),
            };
            told.push(format!("{} {text}", record.seq));
        }
    }
}

async fn keeps_what_it_acknowledged<T: Tape>(tape: &T) {
    assert!(told(tape, 1).await.is_empty(), "an unknown run has no records");
    append(tape, 1, 0, vec![said("a"), said("b")]).await.expect("the first append fits");
    append(tape, 1, 2, vec![said("c")]).await.expect("the second append fits");
    assert_eq!(told(tape, 1).await, ["0 a", "1 b", "2 c"], "records keep their order and place");
    let none = tape.read(run(1), 99, 10).await.expect("reading past the end is no error");
    assert!(none.is_empty(), "there is nothing past the end");
}

async fn appends_all_or_nothing<T: Tape>(tape: &T) {
    append(tape, 1, 0, vec![started(1, 1)]).await.expect("the key is free");
    let refused = append(tape, 1, 1, vec![said("a"), started(1, 1)]).await;
    assert_eq!(refused, Err(TapeError::KeyTaken { key: Key::Started(CallNo(1), 1) }));
    assert_eq!(told(tape, 1).await, ["0 started:1:1"], "a refused append leaves nothing behind");
    append(tape, 1, 1, vec![]).await.expect("appending nothing is no error");
    append(tape, 1, 1, vec![said("b")]).await.expect("a refused append does not block the next");
}

async fn fences_off_a_second_writer<T: Tape>(tape: &T) {
    append(tape, 1, 0, vec![said("first")]).await.expect("the first writer is on time");
    let late = append(tape, 1, 0, vec![said("second")]).await;
    assert_eq!(late, Err(TapeError::Conflict { expected: 0, found: 1 }));
    let early = append(tape, 1, 2, vec![said("third")]).await;
    assert_eq!(early, Err(TapeError::Conflict { expected: 2, found: 1 }));
    assert_eq!(told(tape, 1).await, ["0 first"]);
}

async fn lets_a_key_be_used_once<T: Tape>(tape: &T) {
    let twice = append(tape, 1, 0, vec![started(1, 1), started(1, 1)]).await;
    assert_eq!(twice, Err(TapeError::KeyTaken { key: Key::Started(CallNo(1), 1) }));
    append(tape, 1, 0, vec![started(1, 1), started(1, 2), started(2, 1)])
        .await
        .expect("different attempts and calls have different keys");
}

async fn keeps_runs_apart<T: Tape>(tape: &T) {
    append(tape, 1, 0, vec![started(1, 1)]).await.expect("run 1 is empty");
    append(tape, 2, 0, vec![started(1, 1)]).await.expect("a key is taken within its run only");
    assert_eq!(told(tape, 1).await, told(tape, 2).await);
}

async fn lets_one_of_many_win<T: Tape + 'static>(tape: Arc<T>) {
    let racers = (0..8).map(|_| {
        let tape = tape.clone();
        async move { append(&*tape, 1, 0, vec![started(1, 1)]).await }
    });
    let results = futures_util::future::join_all(racers).await;
    let won = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(won, 1, "one of many executors starts a call");
}
