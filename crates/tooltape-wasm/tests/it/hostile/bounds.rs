//! Tools that want more than they may have.

use super::World;
use super::crafted::Crafted;

#[tokio::test]
async fn what_never_ends_is_stopped_by_its_fuel_wherever_it_runs() {
    let fuel = "exceeded fuel: 5000000 of 5000000";
    let spin = "(loop (br 0)) (unreachable)";
    World::new()
        .check(&[
            ("a loop", Crafted::calling(spin), fuel),
            (
                "a loop over a table of labels",
                Crafted::calling("(loop (br_table 0 0 0 (local.get $i))) (unreachable)"),
                fuel,
            ),
            (
                "a loop of calls",
                Crafted {
                    fields: "(func $nothing)",
                    call: "(loop (call $nothing) (br 0)) (unreachable)",
                    ..Crafted::default()
                },
                fuel,
            ),
            (
                "a loop of tail calls",
                Crafted {
                    fields: "(func $again (result i32) (return_call $again))",
                    call: "(call $again)",
                    ..Crafted::default()
                },
                "exceeded fuel",
            ),
            (
                "in making room for its arguments",
                Crafted { realloc: spin, ..Crafted::default() },
                fuel,
            ),
            (
                "after its answer",
                Crafted { after: Some("(loop (br 0))"), ..Crafted::default() },
                fuel,
            ),
        ])
        .await;
}

#[tokio::test]
async fn work_in_bulk_is_paid_for_by_the_byte() {
    World::new()
        .check(&[
            (
                "filling memory, byte by byte in one instruction",
                Crafted::calling(
                    "(loop (memory.fill (i32.const 16384) (i32.const 7) (i32.const 49152))
                    (br 0)) (unreachable)",
                ),
                "exceeded fuel",
            ),
            (
                "copying memory",
                Crafted::calling(
                    "(loop (memory.copy (i32.const 16384) (i32.const 0) (i32.const 49152))
                    (br 0)) (unreachable)",
                ),
                "exceeded fuel",
            ),
            (
                "initialising memory",
                Crafted {
                    fields: r#"(data $text "0123456789abcdef0123456789abcdef")"#,
                    call: "(loop (memory.init $text (i32.const 0) (i32.const 0) (i32.const 32))
                        (br 0)) (unreachable)",
                    ..Crafted::default()
                },
                "exceeded fuel",
            ),
            (
                "filling tables",
                Crafted {
                    fields: "(table $t 900 funcref)",
                    call: "(loop (table.fill $t (i32.const 0) (ref.null func) (i32.const 900))
                        (br 0)) (unreachable)",
                    ..Crafted::default()
                },
                "exceeded fuel",
            ),
            (
                "copying tables",
                Crafted {
                    fields: "(table $t 900 funcref)",
                    call: "(loop (table.copy $t $t (i32.const 0) (i32.const 1) (i32.const 899))
                        (br 0)) (unreachable)",
                    ..Crafted::default()
                },
                "exceeded fuel",
            ),
        ])
        .await;
}

#[tokio::test]
async fn one_instruction_costs_as_much_as_it_does() {
    let fill = |bytes| {
        let call = format!("(memory.fill (i32.const 0) (i32.const 0) (i32.const {bytes}))");
        let call = format!("{call} (call $answer (i64.const 1))").leak();
        Crafted { call, memory: r#"(memory (export "memory") 32)"#, ..Crafted::default() }
    };
    let world = World::new();
    let mut fuel = Vec::new();
    for bytes in [0, 1_000_000, 2_000_000] {
        let component = world.load(&super::bounded(&fill(bytes)).bytes()).await.unwrap();
        let reply = world.call(&component).await;
        fuel.push(reply.details.as_ref().unwrap()["fuel"].as_u64().unwrap());
    }
    assert!(fuel[1] - fuel[0] >= 1_000_000 / 16, "{fuel:?}");
    assert!(fuel[2] - fuel[1] >= 1_000_000 / 16, "{fuel:?}");
}

#[tokio::test]
async fn memory_ends_where_it_is_bounded() {
    let grow = "(loop (drop (memory.grow (i32.const 1))) (br 0)) (unreachable)";
    // Memories and tables that no call touches are asked for all the same.
    World::new()
        .check(&[
            // `Main` only imports the memory, and growing it is growing that of `Heap`.
            ("growing by pages", Crafted::calling(grow), "exceeded memory: 4259840 of 4194304"),
            (
                "growing at once",
                Crafted::calling("(drop (memory.grow (i32.const 16384))) (unreachable)"),
                "exceeded memory: 1073807360 of 4194304",
            ),
            (
                "growing by all that an address can say",
                Crafted::calling("(drop (memory.grow (i32.const 65535))) (unreachable)"),
                "exceeded memory",
            ),
            (
                "beginning with too much",
                Crafted { memory: r#"(memory (export "memory") 100)"#, ..Crafted::default() },
                // It is the same when it describes itself, so it has to say so in its bounds.
                "exceeded memory: 6553600 of 4194304",
            ),
            (
                "growing to make room for its arguments",
                Crafted {
                    realloc: "(loop (drop (memory.grow (i32.const 1))) (br 0)) (unreachable)",
                    ..Crafted::default()
                },
                "exceeded memory",
            ),
            (
                "growing a second memory",
                Crafted {
                    fields: "(memory $second 1)",
                    call: "(loop (drop (memory.grow $second (i32.const 1))) (br 0)) (unreachable)",
                    ..Crafted::default()
                },
                "exceeded memory",
            ),
        ])
        .await;
}

#[tokio::test]
async fn tables_end_where_they_are_bounded() {
    World::new()
        .check(&[
            (
                "growing a table",
                Crafted {
                    fields: "(table $t 1 funcref)",
                    call: "(loop (drop (table.grow $t (ref.null func) (i32.const 100))) (br 0))
                        (unreachable)",
                    ..Crafted::default()
                },
                "exceeded table: 1001 of 1000",
            ),
            (
                "growing a table by all that a number can say",
                Crafted {
                    fields: "(table $t 1 funcref)",
                    call: "(drop (table.grow $t (ref.null func) (i32.const -2))) (unreachable)",
                    ..Crafted::default()
                },
                // It has to pay for each element before it gets one.
                "exceeded fuel",
            ),
            (
                "growing many tables",
                Crafted {
                    fields: "(table $a 600 funcref) (table $b 1 funcref)",
                    call: "(drop (table.grow $b (ref.null func) (i32.const 600))) (unreachable)",
                    ..Crafted::default()
                },
                "exceeded table: 1201 of 1000",
            ),
        ])
        .await;
}

#[tokio::test]
async fn stack_and_output_end_where_they_are_bounded() {
    World::new()
        .check(&[
            (
                "recursion",
                Crafted {
                    fields: "(func $deep (param i32) (result i32)
                        (i32.add (call $deep (local.get 0)) (i32.const 1)))",
                    call: "(call $deep (i32.const 0))",
                    ..Crafted::default()
                },
                "exceeded stack: 131072 of 131072",
            ),
            (
                "recursion of two",
                Crafted {
                    fields: "(func $a (result i32) (i32.add (call $b) (i32.const 1)))
                        (func $b (result i32) (i32.add (call $a) (i32.const 1)))",
                    call: "(call $a)",
                    ..Crafted::default()
                },
                "exceeded stack",
            ),
            (
                "recursion through a table",
                Crafted {
                    fields: "(type $f (func (result i32))) (table funcref (elem $deep))
                        (func $deep (result i32)
                            (i32.add (call_indirect (type $f) (i32.const 0)) (i32.const 1)))",
                    call: "(call $deep)",
                    ..Crafted::default()
                },
                "exceeded stack",
            ),
            (
                "an answer that is too long",
                Crafted::calling(
                    "(drop (memory.grow (i32.const 2)))
                    (memory.fill (i32.const 16384) (i32.const 49) (i32.const 70000))
                    (call $text (i32.const 16384) (i32.const 70000))",
                ),
                "exceeded output_bytes: 70000 of 65536",
            ),
        ])
        .await;
}

#[tokio::test]
async fn what_is_not_said_is_the_runs_default_and_never_unlimited() {
    let world = World::new();
    let call = "(loop (drop (memory.grow (i32.const 64))) (br 0)) (unreachable)";
    let component = world.load(&Crafted { call, ..Crafted::default() }.bytes()).await.unwrap();
    let memory = tooltape::limits::MEMORY_DEFAULT;
    let end = super::ended(&world.call(&component).await);
    assert!(end.ends_with(&format!("of {memory}")) && end.contains("memory"), "{end}");
}
