//! Every record has one text, every text one record, and nothing can be changed unseen.
#![allow(clippy::print_stdout, reason = "counts are for whoever reads the report")]

use std::sync::Arc;

use tooltape::{
    CallNo, Canon, Domain, Event, ForkPoint, Found, Hash, Head, Label, Line, MemoryTape, Name,
    Parent, Proposal, ProposalEvent, Record, Run, RunHead, RunId, STAMPS, Script, TapeError,
    TapeRead, TapeWriter, Toolbox, Verify, builtin, read_tape,
};

use crate::simulation;

fn run_id() -> RunId {
    RunId::new(1_700_000_000_000, [7; 10])
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

/// Lines of records that all kinds of events are among.
fn lines_of(events: Vec<Event>) -> Vec<Line> {
    let mut previous = Head::empty().hash;
    let records = (0..).zip(events).map(|(seq, event)| Record::new(run_id(), seq, 40 + seq, event));
    let line = |record| Line::of(&record, previous).inspect(|it| previous = it.hash()).unwrap();
    records.map(line).collect()
}

/// A run with calls that succeed, fail and are refused.
fn small_tape() -> (MemoryTape, RunId) {
    let tape = MemoryTape::default();
    let run = Run::new(&Toolbox::new(builtin::tools()).unwrap()).tape(tape.clone());
    let proposals = vec![
        Proposal::new("c1", "hash", r#"{"text":"é\u0007"}"#),
        Proposal::new("c2", "ekho", "{}"),
        Proposal::new("", "echo", r#"{"text": 1}"#),
        Proposal::new("c4", "echo", r#"{"text":"[1, 2.50, 9007199254740993]"}"#),
    ];
    runtime().block_on(run.batch(proposals)).unwrap();
    (tape, run.id())
}

fn file_of(lines: &[Line]) -> String {
    let mut writer = TapeWriter::new(Vec::new()).unwrap();
    lines.iter().for_each(|line| writer.line(line).unwrap());
    String::from_utf8(writer.end(|_| {}).unwrap()).unwrap()
}

fn read(text: &[u8]) -> Result<TapeRead, tooltape::Damage> {
    read_tape(text, |_| Ok(()))
}

fn answered(call: CallNo, question: u32, told: Option<&str>, attempt: Option<u32>) -> Event {
    let (yes, holds) = (told.is_none(), if question == 1 { "once" } else { "run" });
    let (approval, told) = (Hash::of(Domain::Approval, b""), told.map(Into::into));
    Event::Answered { call, question, approval, yes, holds, told, attempt, by: None }
}

#[test]
fn a_body_that_breaks_off_anywhere_is_refused_and_nothing_panics() {
    let hash = Hash::of(Domain::Event, b"");
    let text = r#"{"a":"\"\\\u0001","at_us":7,"run":"\\","seq":1}"#;
    let bodies = (0..text.len()).map(|end| &text[..end]);
    for body in bodies.chain(["{\"\\", "\\", "\"\\"]) {
        assert!(Line::stored(body, hash, hash, hash).is_err(), "{body}");
        assert!(Line::erased(body, hash, hash, hash).is_err(), "{body}");
        let line =
            format!(r#"{{"content":"{hash}","event":{body},"hash":"{hash}","previous":"{hash}"}}"#);
        assert!(Line::parse(&line).is_err(), "{body}");
    }
}

#[test]
fn every_kind_of_event_is_read_as_it_was_written() {
    let call = CallNo(3);
    let hash = Hash::of(Domain::Policy, b"");
    let question = |attempt: Option<u32>| {
        let question = serde_json::json!({
            "call": call, "question": 1, "attempt": attempt, "rule": "writes ask", "policy": hash,
            "until_us": 9, "approval": hash,
        });
        Event::CallAsked(serde_json::from_value(question).unwrap())
    };
    let canon = |value: serde_json::Value| Canon::of(&value).unwrap();
    let name = |text| Name::new(text).unwrap();
    let parent = Some(Box::new(Parent { run: run_id(), call }));
    let fork = Some(Box::new(ForkPoint { run: run_id(), seq: 9 }));
    let note = Some(Arc::new(serde_json::json!({"folder": "/x", "n": 1.5})));
    let (seed, thread) = ("00ff".into(), Some("main".into()));
    let big = Canon::of(
        &serde_json::value::RawValue::from_string("12345678901234567890123".into()).unwrap(),
    );
    let stored = |wrote, value, label: Option<Label>| {
        let (store, key, label) = (name("kv"), "k".into(), label.map(Arc::new));
        Event::Stored { call, store, key, wrote, value, label }
    };
    let lines = lines_of(vec![
        Event::RunStarted {
            seed,
            thread,
            depth: 2,
            parent,
            canon: "jcs-int/1",
            note,
            fork,
            policy: Some(Box::new(hash)),
            rights: Some(Arc::new("fs:read:src\n!fs:read:src/keys".parse().unwrap())),
            label: Some(Arc::new(Label::untrusted("web").join(&Label::secret("payroll")))),
        },
        Event::RunResumed { in_doubt: vec![call], policy: Some(hash), rights: None },
        Event::RunPaused { why: "an answer".into() },
        Event::Asked { text: "a \u{1F600} \"question\"\n".into() },
        Event::Tools { added: None, removed: Some(name("old")) },
        question(None),
        question(Some(2)),
        answered(call, 1, Some("no"), None),
        answered(call, 2, None, Some(2)),
        Event::Started { call, attempt: 2, clock_us: Some(7) },
        Event::Retried { call, attempt: 1, code: "x".into(), message: "m".into(), pause_ms: 5 },
        Event::Abandoned { call, attempt: 1 },
        Event::Progress { call, text: "half".into() },
        Event::Emitted { call, name: name("seen"), value: canon(serde_json::json!(null)) },
        Event::State { call, name: "app::Counter".into(), value: big.unwrap(), label: None },
        stored(false, None, None),
        stored(true, Some(canon(serde_json::json!(null))), Some(Label::untrusted("web"))),
        Event::Reconciled { call, found: Found::CannotTell },
        Event::RunEnded { status: "failed", stop: "turns".into(), answer: None },
    ]);
    let mut previous = Head::empty().hash;
    for line in lines {
        let again = Line::of(&line.record().unwrap(), previous).unwrap();
        assert_eq!(again, line);
        assert_eq!(Line::parse(&line.text()).unwrap(), line);
        previous = line.hash();
    }
}

#[test]
fn every_record_of_hundreds_of_storms_is_read_as_it_was_written() {
    let mut records = 0;
    for seed in 0..300 {
        let (tape, run) = simulation::taped(seed);
        let mut verify = Verify::default();
        let mut previous = Head::empty().hash;
        for line in tape.lines(run).unwrap() {
            let again = Line::of(&line.record().unwrap(), previous).unwrap();
            assert_eq!(again.body(), line.body(), "seed {seed}");
            verify.line(&Line::parse(&line.text()).unwrap()).unwrap();
            previous = line.hash();
            records += 1;
        }
        let verified = verify.end(&[(run, tape.head(run).unwrap())]).unwrap();
        assert_eq!(verified.heads[&run], tape.head(run).unwrap());
    }
    println!("{records} records of 300 storms, no false alarm");
}

#[test]
fn a_turn_and_what_it_cost_are_read_as_they_were_written() {
    let tape = MemoryTape::default();
    let run = Run::new(&Toolbox::new(builtin::tools()).unwrap()).tape(tape.clone());
    let id = run.id();
    let turns = "{\"calls\":[{\"tool\":\"echo\",\"args\":{\"text\":\"x\"}}]}\n{\"say\":\"x\"}";
    let script = Script::parse(turns).unwrap();
    runtime().block_on(tooltape::Agent::new(script, run).ask("Say x.")).unwrap();
    let mut previous = Head::empty().hash;
    for line in tape.lines(id).unwrap() {
        assert_eq!(Line::of(&line.record().unwrap(), previous).unwrap(), line);
        previous = line.hash();
    }
    let proposal =
        ProposalEvent { id: "".into(), name: "x".into(), arguments: "{".into(), error: None };
    assert_eq!(serde_json::to_value(&proposal).unwrap()["arguments"], "{");
}

#[test]
fn a_content_hash_leaves_out_stamps_and_nothing_else() {
    let (tape, run) = small_tape();
    for line in tape.lines(run).unwrap() {
        let record = line.record().unwrap();
        let other = RunId::new(5, [9; 10]);
        let moved = Record::new(other, record.seq + 9, record.at_us + 5, record.event.clone());
        assert_eq!(moved.content_hash().unwrap(), line.content());
        let body: serde_json::Map<_, _> = serde_json::from_str(line.body()).unwrap();
        for name in body.keys().filter(|name| !STAMPS.contains(&name.as_str())) {
            let mut changed = body.clone();
            changed.insert(name.clone(), serde_json::json!("something else"));
            let text = Canon::of(&changed).unwrap();
            let kept = Line::stored(text.as_str(), line.previous(), line.content(), line.hash());
            assert!(matches!(kept, Err(TapeError::Corrupt { .. })), "{name} of {}", line.body());
        }
    }
}

#[test]
fn a_file_is_byte_for_byte_what_its_lines_make() {
    let (tape, run) = small_tape();
    let text = file_of(&tape.lines(run).unwrap());
    let mut lines = Vec::new();
    let got = read_tape(text.as_bytes(), |line| {
        lines.push(line);
        Ok(())
    });
    let got = got.unwrap();
    assert_eq!((got.torn, got.verified.calls, got.heads.len()), (None, 4, 1));
    assert_eq!(file_of(&lines), text);
    assert_eq!(RunHead::parse(text.lines().last().unwrap()).unwrap(), got.heads[0]);
}

/// Whether something is seen to be wrong with a file.
fn is_seen(text: &[u8]) -> bool {
    read(text).map_or(true, |read| read.torn.is_some())
}

#[test]
fn every_flipped_bit_and_every_truncation_is_seen() {
    let (tape, run) = small_tape();
    let text = file_of(&tape.lines(run).unwrap()).into_bytes();
    assert!(!is_seen(&text));
    let mut flips = 0;
    for at in 0..text.len() {
        for bit in 0..8 {
            let mut changed = text.clone();
            changed[at] ^= 1 << bit;
            assert!(is_seen(&changed), "bit {bit} of byte {at}");
            flips += 1;
        }
        assert!(is_seen(&text[..at]), "cut at {at}");
    }
    println!("{flips} flipped bits and {} truncations, all seen", text.len());
}

#[test]
fn swapped_duplicated_inserted_and_deleted_records_are_seen() {
    let (tape, run) = small_tape();
    let text = file_of(&tape.lines(run).unwrap());
    let lines: Vec<&str> = text.lines().collect();
    let join = |lines: &[&str]| lines.iter().flat_map(|line| [line, "\n"]).collect::<String>();
    for at in 0..lines.len() {
        let mut fewer = lines.clone();
        fewer.remove(at);
        assert!(is_seen(join(&fewer).as_bytes()), "line {at} is gone");
        let mut more = lines.clone();
        more.insert(at, lines[at]);
        assert!(is_seen(join(&more).as_bytes()), "line {at} stands there twice");
        for other in at + 1..lines.len() {
            let mut swapped = lines.clone();
            swapped.swap(at, other);
            assert!(is_seen(join(&swapped).as_bytes()), "lines {at} and {other} are swapped");
        }
    }
}

#[test]
fn an_altered_event_is_detected_even_if_its_own_hash_is_made_again() {
    let (tape, run) = small_tape();
    let lines = tape.lines(run).unwrap();
    let records = tape.records(run);
    for at in 0..lines.len() {
        let mut record = records[at].clone();
        record.at_us += 1;
        let mut forged = lines.clone();
        forged[at] = Line::of(&record, lines[at].previous()).unwrap();
        let mut verify = Verify::default();
        let checked = forged.iter().try_for_each(|line| verify.line(line));
        let ends = checked.and_then(|()| verify.end(&[(run, tape.head(run).unwrap())]).map(drop));
        let damage = ends.unwrap_err();
        assert_eq!(damage.run, Some(run));
        assert!(damage.seq as usize == at + 1, "{damage}");
    }
}

#[test]
fn a_head_that_was_exported_shows_that_a_tape_was_cut_off() {
    let (tape, run) = small_tape();
    let (lines, head) = (tape.lines(run).unwrap(), tape.head(run).unwrap());
    for len in 0..lines.len() {
        let mut verify = Verify::default();
        lines[..len].iter().for_each(|line| verify.line(line).unwrap());
        let damage = verify.end(&[(run, head)]).unwrap_err();
        assert!(damage.why.contains("cut off"), "{damage}");
    }
}

#[test]
fn an_erased_record_keeps_its_place_and_says_nothing() {
    let (tape, run) = small_tape();
    let lines: Vec<Line> = tape.lines(run).unwrap().iter().map(Line::erase).collect();
    let mut verify = Verify::default();
    for line in &lines {
        assert_eq!(Line::parse(&line.text()).unwrap(), *line);
        assert!(!line.text().contains("echo"));
        assert!(matches!(line.record(), Err(TapeError::Erased { .. })));
        verify.line(line).unwrap();
    }
    let verified = verify.end(&[(run, tape.head(run).unwrap())]).unwrap();
    assert_eq!(verified.erased, lines.len() as u64);
    let forged = lines[0].text().replace(r#""seq":0"#, r#""seq":1"#);
    assert!(Line::parse(&forged).is_err());
}

#[test]
fn a_later_version_is_named_and_not_read() {
    let (tape, run) = small_tape();
    let record = tape.records(run).remove(0);
    let mut body = serde_json::to_value(&record).unwrap();
    body["v"] = 2.into();
    let read = Record::read(&body.to_string());
    assert_eq!(read.unwrap_err(), TapeError::Newer { version: 2, known: 1 });
    let later = file_of(&[]).replace("tape/1", "tape/2");
    assert!(read_tape(later.as_bytes(), |_| Ok(())).unwrap_err().why.contains("later version"));
    assert!(read_tape(&b""[..], |_| Ok(())).unwrap_err().why.contains("empty"));
    assert!(read_tape(&b"hello\n"[..], |_| Ok(())).unwrap_err().why.contains("hello"));
}
