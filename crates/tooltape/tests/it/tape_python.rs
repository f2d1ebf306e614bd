//! A verifier that knows the specification alone agrees with ours.
#![allow(clippy::print_stdout, reason = "counts are for whoever reads the report")]

use std::path::Path;
use std::process::Command;

use tooltape::{MemoryTape, Proposal, Run, RunId, TapeWriter, Toolbox, builtin, read_tape};

/// A few words of chance, the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

/// A small run, a different one for each seed.
fn tape(dice: &mut Dice) -> (MemoryTape, RunId) {
    let texts = [
        r#"{"text":""}"#,
        r#"{"text":"é😀\u0001\n"}"#,
        r#"{"base64":"aGVsbG8="}"#,
        r#"{"text": 1e21}"#,
        r#"{"n":[1.5,-0,9007199254740993,1e-7,1E30]}"#,
        "not json",
    ];
    let names = ["echo", "hash", "nothing"];
    let tape = MemoryTape::default();
    let run = Run::new(&Toolbox::new(builtin::tools()).unwrap()).tape(tape.clone());
    let proposals = (0..=dice.below(2)).map(|no| {
        let (name, text) = (names[dice.below(names.len())], texts[dice.below(texts.len())]);
        Proposal::new(format!("c{no}"), name, text)
    });
    let proposals = proposals.collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(run.batch(proposals)).unwrap();
    (tape, run.id())
}

fn file(tape: &MemoryTape, run: RunId, dice: &mut Dice) -> Vec<u8> {
    let mut writer = TapeWriter::new(Vec::new()).unwrap();
    let erased = dice.below(4) == 0;
    for line in tape.lines(run).unwrap() {
        let line = if erased && dice.below(2) == 0 { line.erase() } else { line };
        writer.line(&line).unwrap();
    }
    writer.end(|_| {}).unwrap()
}

/// One of the things that can happen to a file.
fn damaged(file: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = file.split_inclusive(|byte| *byte == b'\n').collect();
    let (one, other) = (dice.below(lines.len()), dice.below(lines.len()));
    match dice.below(5) {
        0 => {
            let mut flipped = file.to_vec();
            flipped[dice.below(file.len())] ^= 1 << dice.below(8);
            return flipped;
        }
        1 => return file[..dice.below(file.len())].to_vec(),
        2 => lines.swap(one, other),
        3 => lines.insert(one, lines[other]),
        _ => drop(lines.remove(one)),
    }
    lines.concat()
}

fn is_sound(file: &[u8]) -> bool {
    read_tape(file, |_| Ok(())).is_ok_and(|read| read.torn.is_none())
}

/// What the other verifier says of each file of a folder.
fn agree(folder: &Path, ours: &[bool]) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/verify_tape.py");
    let paths = (0..ours.len()).map(|no| folder.join(format!("{no}.tape.jsonl")));
    let output = Command::new("python3").arg(script).args(paths).output();
    let output = output.expect("python3 is installed: `./test` sees to it");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), ours.len());
    for (line, ours) in text.lines().zip(ours) {
        assert_eq!(line.contains(": sound, "), *ours, "{line}");
    }
    let sound = ours.iter().filter(|sound| **sound).count();
    println!("{sound} sound and {} damaged tapes, no disagreement", ours.len() - sound);
}

#[test]
fn the_independent_verifier_agrees_on_a_thousand_sound_tapes() {
    let (folder, mut dice) = (tempfile::tempdir().unwrap(), Dice(1));
    let ours: Vec<bool> = (0..1_000)
        .map(|no| {
            let (tape, run) = tape(&mut dice);
            let file = file(&tape, run, &mut dice);
            std::fs::write(folder.path().join(format!("{no}.tape.jsonl")), &file).unwrap();
            is_sound(&file)
        })
        .collect();
    assert!(ours.iter().all(|sound| *sound), "no false alarm");
    agree(folder.path(), &ours);
}

#[test]
fn the_independent_verifier_agrees_on_two_thousand_damaged_tapes() {
    let (folder, mut dice) = (tempfile::tempdir().unwrap(), Dice(2));
    let (tape, run) = tape(&mut dice);
    let ours: Vec<bool> = (0..2_000)
        .map(|no| {
            let file = file(&tape, run, &mut dice);
            let damaged = damaged(&file, &mut dice);
            std::fs::write(folder.path().join(format!("{no}.tape.jsonl")), &damaged).unwrap();
            let sound = is_sound(&damaged);
            assert!(!sound || damaged == file, "damage {no} was not seen");
            sound
        })
        .collect();
    agree(folder.path(), &ours);
}
