//! What one call leaves, which no other finds.

use tooltape::Proposal;

use super::crafted::Crafted;
use super::interfaces::STATE;
use super::naive;
use super::{World, bounded, ended};

/// Fills all the memory that it may have.
const FILL: &str = "(drop (memory.grow (i32.const 62)))
    (memory.fill (i32.const 65536) (i32.const 171) (i32.const 4063232))";

/// Answers how many words of all the memory that it may have are not zero.
const LOOK: &str = "(drop (memory.grow (i32.const 62)))
    (local.set $i (i32.const 65536))
    (loop
        (local.set $n (i64.add (local.get $n)
            (i64.extend_i32_u (i64.ne (i64.load (local.get $i)) (i64.const 0)))))
        (br_if 0 (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 8)))
            (i32.const 4128768))))
    (call $answer (local.get $n))";

/// As often as there are places for memories, and then some.
const ROUNDS: usize = 24;

fn rich(call: &'static str) -> Crafted {
    Crafted { call, bounds: [None, None, Some(100_000_000), None], ..Crafted::default() }
}

/// RUSTSEC-2026-0088: memory from a pool.
#[tokio::test]
async fn memory_is_zero_however_the_call_before_it_ended() {
    let world = World::new();
    let look = world.load(&bounded(&rich(LOOK)).bytes()).await.unwrap();
    let ends = [
        ("(call $answer (i64.const 1))", "answered 1"),
        ("(unreachable)", "failed trap"),
        ("(loop (br 0)) (unreachable)", "exceeded fuel"),
        ("(drop (memory.grow (i32.const 1000))) (unreachable)", "exceeded memory"),
        ("(i32.const -8)", "failed trap"),
    ];
    for (last, expected) in ends {
        let fill: &'static str = format!("{FILL} {last}").leak();
        let fill = world.load(&bounded(&rich(fill)).bytes()).await.unwrap();
        for round in 0..ROUNDS {
            let end = ended(&world.call(&fill).await);
            assert!(end.starts_with(expected), "round {round}: {end}");
            assert_eq!(ended(&world.call(&look).await), "answered 0", "round {round}, {last}");
        }
    }
    println!("hostile: {} cases", ends.len());
}

#[tokio::test]
async fn memory_is_zero_for_calls_that_overlap() {
    let world = World::new();
    let fill: &'static str = format!("{FILL} (call $answer (i64.const 1))").leak();
    let fill = world.load(&bounded(&rich(fill)).bytes()).await.unwrap();
    let name = "look";
    let look = Crafted { name, ..rich(LOOK) };
    let look = world.load(&bounded(&look).bytes()).await.unwrap();
    let mut toolbox = tooltape::Toolbox::default();
    fill.register(&mut toolbox).unwrap();
    look.register(&mut toolbox).unwrap();
    let run = tooltape::Run::new(&toolbox);
    let proposals = (0..ROUNDS).map(|number| {
        let name = if number % 2 == 0 { "crafted" } else { "look" };
        Proposal::new(format!("call_{number}"), name, "{}")
    });
    let replies = run.batch(proposals.collect()).await.unwrap();
    for (number, reply) in replies.iter().enumerate() {
        let expected = if number % 2 == 0 { "answered 1" } else { "answered 0" };
        assert_eq!(ended(reply), expected);
    }
}

#[tokio::test]
async fn globals_tables_and_segments_are_as_new_in_each_call() {
    let world = World::new();
    let cases = [
        (
            "a global",
            "(global $g (mut i64) (i64.const 0))",
            "(global.set $g (i64.add (global.get $g) (i64.const 1)))
                (call $answer (global.get $g))",
        ),
        (
            "an element of a table",
            "(table $t 4 funcref) (elem declare func $f) (func $f)",
            "(local.set $i (ref.is_null (table.get $t (i32.const 3))))
                (table.set $t (i32.const 3) (ref.func $f))
                (call $answer (i64.extend_i32_u (local.get $i)))",
        ),
        (
            "the size of a table",
            "(table $t 1 funcref)",
            "(drop (table.grow $t (ref.null func) (i32.const 7)))
                (call $answer (i64.extend_i32_u (i32.sub (table.size $t) (i32.const 7))))",
        ),
        (
            "a segment that was dropped",
            r#"(data $d "\01")"#,
            "(memory.init $d (i32.const 0) (i32.const 0) (i32.const 1)) (data.drop $d)
                (call $answer (i64.load8_u (i32.const 0)))",
        ),
        (
            "the size of memory",
            "",
            "(drop (memory.grow (i32.const 7)))
                (call $answer (i64.extend_i32_u (i32.sub (memory.size) (i32.const 7))))",
        ),
        (
            "a byte of its own data",
            r#"(data (i32.const 512) "\01")"#,
            "(local.set $n (i64.load8_u (i32.const 512)))
                (i32.store8 (i32.const 512) (i32.const 2)) (call $answer (local.get $n))",
        ),
    ];
    for (what, fields, call) in cases {
        let crafted = Crafted { fields, call, ..Crafted::default() };
        let component = world.load(&bounded(&crafted).bytes()).await.unwrap();
        for round in 0..ROUNDS {
            assert_eq!(ended(&world.call(&component).await), "answered 1", "{what}, {round}");
        }
        // Where calls share an instance, the second finds what the first one left.
        let naive = naive::calls(&crafted.bytes(), 2);
        assert!(naive.is_err() || naive.is_ok_and(|answers| answers[1] != "1"), "{what}");
    }
    println!("hostile: {} cases", cases.len());
}

#[tokio::test]
async fn what_one_tool_keeps_another_does_not_find() {
    let world = World::new();
    let keeper = |name, call| Crafted {
        name,
        imports: &[STATE],
        access: 2,
        fields: r#"(data (i32.const 512) "key")"#,
        call,
        ..Crafted::default()
    };
    let keep = "(i32.store8 (i32.const 0) (i32.const 55))
        (call $set (i32.const 512) (i32.const 3) (i32.const 0) (i32.const 1) (i32.const 8))
        (call $answer (i64.load8_u (i32.const 8)))";
    // Whether it is an error, and whether anything was found.
    let find = "(call $get (i32.const 512) (i32.const 3) (i32.const 8))
        (call $answer (i64.add (i64.mul (i64.load8_u (i32.const 8)) (i64.const 10))
            (i64.load8_u (i32.const 12))))";
    let mut toolbox = tooltape::Toolbox::default();
    for crafted in [keeper("keep", keep), keeper("find", find)] {
        let component = world.load(&bounded(&crafted).bytes()).await.unwrap();
        component.register(&mut toolbox).unwrap();
    }
    let run = tooltape::Run::new(&toolbox)
        .grant(tooltape::Store::memory())
        .policy(|_: &tooltape::Call| tooltape::Verdict::allow("everything"));
    let proposals = ["keep", "find"].map(|name| Proposal::new(name, name, "{}"));
    let replies = run.batch(proposals.to_vec()).await.unwrap();
    assert_eq!(replies.iter().map(ended).collect::<Vec<_>>(), ["answered 0"; 2]);
}
