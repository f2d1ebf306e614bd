//! The program killed at random instants, over and over: nothing acknowledged is lost, and nothing
//! that happens once happens twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::home::Home;
use crate::own_tools::program;

/// How often the program is killed, unless `TOOLTAPE_KILLS` says otherwise.
const KILLS_DEFAULT: u64 = 500;
/// How many programs run at once, each with a tape of its own.
const WORKERS: u64 = 3;
/// How many turns the script takes, each with a call to every tool.
const TURNS: u64 = 3;
/// The tools that are called in each turn.
const TOOLS: [&str; 4] = ["book", "book_keyed", "book_sure", "look_up"];
/// The most events that are read before the program is killed.
const EVENTS_MAX: u64 = 40;
/// How long after an event the program is killed at most, in microseconds.
const AFTER_US_MAX: u64 = 4_000;
/// How often a run is resumed at most.
const LIVES_MAX: usize = 200;

/// What happened, to be printed.
#[derive(Default)]
struct Counts {
    kills: AtomicU64,
    runs: AtomicU64,
    resumed: AtomicU64,
    acknowledged: AtomicU64,
    effects: AtomicU64,
    in_doubt: AtomicU64,
    unknown: AtomicU64,
}

/// Numbers that look random and are the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % most
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

#[test]
fn killed_at_random_instants_a_run_loses_nothing_and_does_nothing_twice() {
    let kills = number("TOOLTAPE_KILLS", KILLS_DEFAULT);
    let seed = number("TOOLTAPE_KILLS_SEED", 1);
    println!("kills: seed {seed}");
    let (counts, program) = (Counts::default(), program("ledger"));
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (counts, program) = (&counts, program.clone());
            scope.spawn(move || {
                let home = Home::of(program);
                let ledger = home.here().join("ledger").display().to_string();
                let home = home.with("LEDGER", &ledger);
                home.write(home.user_config(), "[policy]\ndefault = \"allow\"\n");
                let mut random = Random(seed.wrapping_mul(WORKERS).wrapping_add(worker));
                let mut scene = 0;
                while counts.kills.load(Ordering::Relaxed) < kills {
                    play(&home, &mut random, scene, counts);
                    scene += 1;
                }
                let verified = home.run(&["verify", "--json"]);
                assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
            });
        }
    });
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let Counts { kills: killed, runs, resumed, acknowledged, effects, in_doubt, unknown } = &counts;
    println!(
        "kills: {} of {} runs, resumed {} times; {} events acknowledged, 0 lost; {} effects, \
         0 doubled; {} calls in doubt, all reported; {} unknown to the end",
        of(killed),
        of(runs),
        of(resumed),
        of(acknowledged),
        of(effects),
        of(in_doubt),
        of(unknown)
    );
    assert!(of(killed) >= kills && of(in_doubt) > 0, "the kills hit nothing");
}

/// One run, killed again and again until it ends.
fn play(home: &Home, random: &mut Random, scene: u64, counts: &Counts) {
    let entries: Vec<u64> = (0..TURNS * TOOLS.len() as u64).map(|no| scene * 100 + no).collect();
    home.write("s.jsonl", &script(&entries, random));
    let mut acknowledged: BTreeMap<u64, Value> = BTreeMap::new();
    let mut run = None;
    let mut is_over = false;
    for life in 0..LIVES_MAX {
        let args =
            if life == 0 { ["run", "s.jsonl", "--jsonl"] } else { ["resume", "last", "--jsonl"] };
        let args = if life > 0 && run.is_none() { ["resume", "--jsonl", "-q"] } else { args };
        let Life { events, ended } = live(home, &args, random);
        for event in events {
            run = Some(event["run"].as_str().unwrap().to_owned());
            let seq = event["seq"].as_u64().unwrap();
            assert_eq!(acknowledged.insert(seq, event), None, "record {seq} came twice");
        }
        counts.resumed.fetch_add(u64::from(life > 0), Ordering::Relaxed);
        match ended {
            None => counts.kills.fetch_add(1, Ordering::Relaxed),
            Some((0, _)) => {
                is_over = true;
                break;
            }
            // It was killed when all was done.
            Some((5, stderr)) if stderr.contains("run.ended") => {
                is_over = true;
                break;
            }
            // It was killed before there was a run.
            Some((5, stderr)) if run.is_none() && stderr.contains("run.none") => return,
            Some((code, stderr)) => panic!("life {life} ended with {code}: {stderr}"),
        };
    }
    assert!(is_over, "the run did not end in {LIVES_MAX} lives");
    counts.runs.fetch_add(1, Ordering::Relaxed);
    let shown = home.run_raw(&["show", "last", "--json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["status"], &shown["id"]), (&json!("ended"), &json!(run)));
    let events = shown["events"].as_array().unwrap();
    for (seq, event) in &acknowledged {
        let kept = usize::try_from(*seq).ok().and_then(|seq| events.get(seq));
        assert_eq!(kept, Some(event), "record {seq} was acknowledged and lost");
    }
    counts.acknowledged.fetch_add(acknowledged.len() as u64, Ordering::Relaxed);
    let verified = home.run(&["verify", "last", "--json"]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    let doubts = check_doubts(events);
    counts.in_doubt.fetch_add(doubts.len() as u64, Ordering::Relaxed);
    check_effects(home, events, &entries, &doubts, counts);
}

fn script(entries: &[u64], random: &mut Random) -> String {
    let turns = entries.chunks(TOOLS.len()).map(|entries| {
        let calls: Vec<Value> = entries
            .iter()
            .zip(TOOLS)
            .map(|(entry, tool)| {
                json!({ "tool": tool, "args": { "entry": entry, "ms": random.below(6) } })
            })
            .collect();
        json!({ "calls": calls }).to_string()
    });
    turns.chain([json!({ "say": "done" }).to_string()]).collect::<Vec<_>>().join("\n")
}

/// What a process acknowledged, and how it ended if nobody killed it.
struct Life {
    events: Vec<Value>,
    ended: Option<(i32, String)>,
}

/// Runs a command, and kills it at some instant unless it ends before.
fn live(home: &Home, args: &[&str], random: &mut Random) -> Life {
    let mut child: Child = home.command(args).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    // One in eight lives as long as it likes.
    let is_spared = random.below(8) == 0;
    let events_before = random.below(EVENTS_MAX);
    let after = Duration::from_micros(random.below(AFTER_US_MAX));
    let startup = Duration::from_micros(random.below(20 * AFTER_US_MAX));
    let (mut events, mut line) = (Vec::new(), String::new());
    let mut is_killed = false;
    loop {
        if !is_spared && !is_killed && events.len() as u64 == events_before {
            // The instant itself is what is tried, so there is no condition to wait for.
            thread::sleep(if events_before == 0 { startup } else { after });
            child.kill().unwrap();
            is_killed = true;
        }
        line.clear();
        stdout.read_line(&mut line).unwrap();
        match line.strip_suffix('\n') {
            Some(line) => events.push(serde_json::from_str(line).unwrap()),
            // Killed in the middle of a line, or over.
            None => break,
        }
    }
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    let status = child.wait().unwrap();
    let ended = match status.signal() {
        Some(9) if is_killed => None,
        Some(signal) => panic!("signal {signal}: {stderr}"),
        None => Some((status.code().unwrap(), stderr)),
    };
    Life { events, ended }
}

/// Each time that the run was resumed, the tape says of exactly those calls that they are in doubt
/// which had started and not settled.
fn check_doubts(events: &[Value]) -> BTreeSet<u64> {
    let (mut open, mut doubts) = (BTreeSet::new(), BTreeSet::new());
    for event in events {
        let call = event["call"].as_u64();
        match event["type"].as_str().unwrap() {
            "call.started" => drop(open.insert(call.unwrap())),
            "call.settled" => drop(open.remove(&call.unwrap())),
            "run.resumed" => {
                let told = event["in_doubt"].as_array().unwrap().iter();
                let told: BTreeSet<u64> = told.map(|call| call.as_u64().unwrap()).collect();
                assert_eq!(told, open, "{event}");
                doubts.extend(told);
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "calls {open:?} never settled");
    doubts
}

/// The ledger has each entry at most once, and what each reply says of it is true.
fn check_effects(
    home: &Home,
    events: &[Value],
    entries: &[u64],
    doubts: &BTreeSet<u64>,
    counts: &Counts,
) {
    let ledger = fs::read_to_string(home.here().join("ledger")).unwrap_or_default();
    let booked = |entry: u64| {
        let has = |line: &&str| line.split(' ').nth(1) == Some(&*entry.to_string());
        ledger.lines().filter(has).count()
    };
    let mut calls: BTreeMap<u64, u64> = BTreeMap::new();
    let mut replies = 0;
    for event in events {
        let call = event["call"].as_u64();
        match event["type"].as_str().unwrap() {
            "call.proposed" => {
                let arguments: Value =
                    serde_json::from_str(event["arguments"].as_str().unwrap()).unwrap();
                calls.insert(call.unwrap(), arguments["entry"].as_u64().unwrap());
            }
            "call.settled" => {
                replies += 1;
                let (entry, call) = (calls[&call.unwrap()], call.unwrap());
                let times = booked(entry);
                let expected = match (event["tool"].as_str().unwrap(), event["executed"].as_str()) {
                    ("look_up", _) | (_, Some("not_executed")) => 0..=0,
                    (_, Some("executed")) => 1..=1,
                    _ => {
                        assert!(doubts.contains(&call), "nobody said that it is in doubt: {event}");
                        counts.unknown.fetch_add(1, Ordering::Relaxed);
                        0..=1
                    }
                };
                assert!(expected.contains(&times), "booked {times} times: {event}");
                counts.effects.fetch_add(times as u64, Ordering::Relaxed);
            }
            _ => {}
        }
    }
    assert_eq!(replies, entries.len(), "every proposal gets one reply");
}
