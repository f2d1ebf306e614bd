//! Components that were changed at random, by the thousand.

use std::fs;
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::crafted::{Crafted, Import};
use super::interfaces::{FILES, FILESYSTEM, HTTP, LOG, PROGRESS, STATE, STDOUT};
use super::{World, bounded};

/// The mutants of crafted tools, which are small, so that many can be run.
const SMALL: usize = 10_000;
/// The mutants of the components of `examples/wasm`.
const LARGE: usize = 400;
/// Change it to see others.
const SEED: u64 = 0x7007_7a9e;

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Numbers that look random, the same for the same seed.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % most.max(1) as u64).unwrap()
    }
}

/// The same component with one to four changes behind its first eight bytes.
fn mutant(chance: &mut Chance, sound: &[u8]) -> Vec<u8> {
    let mut bytes = sound.to_vec();
    for _ in 0..=chance.below(4) {
        let at = 8 + chance.below(bytes.len() - 8);
        let length = 1 + chance.below(16);
        match chance.below(7) {
            0 => bytes[at] ^= 1 << chance.below(8),
            1 => bytes[at] = u8::try_from(chance.below(256)).unwrap(),
            2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][chance.below(5)],
            3 => drop(bytes.drain(at..bytes.len().min(at + length))),
            4 => {
                let from = 8 + chance.below(bytes.len() - 8);
                let part = bytes[from..bytes.len().min(from + length)].to_vec();
                bytes.splice(at..at, part);
            }
            5 => bytes.truncate(at.max(9)),
            _ => {
                let other = 8 + chance.below(bytes.len() - 8);
                bytes.swap(at, other);
            }
        }
        if bytes.len() < 16 {
            break;
        }
    }
    bytes
}

/// Loads mutants, and runs those that are tools still. Returns how many were, and how many ended
/// with an answer.
async fn survive(world: &World, sound: &[(Vec<u8>, &str)], count: usize) -> (usize, usize) {
    let mut chance = Chance(SEED);
    let (mut loaded, mut answered) = (0, 0);
    for number in 0..count {
        let (sound, args) = &sound[number % sound.len()];
        let mutant = mutant(&mut chance, sound);
        let Ok(component) = world.load(&mutant).await else { continue };
        loaded += 1;
        let reply = world.call_with(&component, args).await;
        let fatal = reply.fault.as_ref().is_some_and(|fault| fault.fatal);
        assert!(!fatal, "mutant {number} of seed {SEED:#x}: {reply:?}");
        answered += usize::from(!reply.is_error);
    }
    (loaded, answered)
}

fn count_panics() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        before(info);
    }));
}

#[tokio::test]
async fn ten_thousand_changed_components_and_the_host_is_none_the_worse() {
    count_panics();
    let printing = "(call $print (call $stdout) (i32.const 2048) (i32.const 7) (i32.const 0))
        (call $answer (i64.const 1))";
    let crafted: [(&'static [Import], &'static [&'static str], &'static str); 4] = [
        (&[], &[], "(call $answer (i64.const 1))"),
        (&[STDOUT, LOG, PROGRESS], &[], printing),
        (&[FILES, HTTP], &["fs:read:data", "net:get:example.com"], "(call $answer (i64.const 1))"),
        (&[STATE, FILESYSTEM], &[], "(call $folders (i32.const 0)) (call $answer (i64.const 1))"),
    ];
    let sound = crafted.map(|(imports, needs, call)| {
        let access = u8::from(!imports.is_empty());
        let bounds = [None, None, Some(100_000), None];
        let crafted = Crafted { imports, needs, call, access, bounds, ..Crafted::default() };
        (bounded(&crafted).bytes(), "{}")
    });
    let world = World::new();
    for (sound, _) in &sound {
        assert_eq!(world.end_of(sound).await, "answered 1");
    }
    let (loaded, answered) = survive(&world, &sound, SMALL).await;
    println!("mutants: {SMALL} of crafted tools, {loaded} loaded, {answered} answered");
    assert!(loaded > SMALL / 100 && loaded < SMALL, "{loaded}");
    assert_eq!(PANICS.load(Ordering::SeqCst), 0);
    assert_eq!(world.end(&Crafted::default()).await, "answered 1");
}

#[tokio::test]
async fn hundreds_of_changed_examples_and_the_host_is_none_the_worse() {
    count_panics();
    let examples = [
        ("word_count", r#"{"text": "a b"}"#),
        ("spin", "{}"),
        ("json_query", r#"{"json": "[{\"a\": 1}]", "query": "/**[/a=1]"}"#),
        ("check_links", r#"{"path": "data/file"}"#),
    ];
    let sound = examples.map(|(name, args)| {
        let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/wasm");
        (fs::read(format!("{examples}/{name}.wasm")).unwrap(), args)
    });
    let world = World::new();
    let (loaded, answered) = survive(&world, &sound, LARGE).await;
    println!("mutants: {LARGE} of examples, {loaded} loaded, {answered} answered");
    assert!(answered > 0, "a change of a text is none that breaks a tool");
    assert_eq!(PANICS.load(Ordering::SeqCst), 0);
    assert_eq!(world.end(&Crafted::default()).await, "answered 1");
}
