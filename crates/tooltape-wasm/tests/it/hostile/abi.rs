//! Tools that hand over what is not what it should be.

use super::World;
use super::crafted::Crafted;

#[tokio::test]
async fn an_answer_that_is_none_is_not_taken_for_one() {
    let calling = |call| Crafted { call, ..Crafted::default() };
    let reallocating = |realloc| Crafted { realloc, ..Crafted::default() };
    let (trap, malformed) = ("failed trap", "failed output.malformed");
    World::new()
        .check(&[
            ("an answer where no memory is", calling("(i32.const 65528)"), trap),
            ("an answer at the end of all addresses", calling("(i32.const -8)"), trap),
            ("an answer that is not aligned", calling("(i32.const 257)"), trap),
            (
                "neither an answer nor a failure",
                calling("(i32.store8 (i32.const 256) (i32.const 7)) (i32.const 256)"),
                trap,
            ),
            ("a text of all addresses", calling("(call $text (i32.const 0) (i32.const -1))"), trap),
            (
                "a text across the end of memory",
                calling("(call $text (i32.const 65535) (i32.const 2))"),
                trap,
            ),
            (
                "a text that is no UTF-8",
                calling(
                    "(i32.store8 (i32.const 0) (i32.const 255))
                    (call $text (i32.const 0) (i32.const 1))",
                ),
                trap,
            ),
            (
                "a failure of no kind",
                calling(
                    "(i32.store8 (i32.const 256) (i32.const 1))
                    (i32.store8 (i32.const 264) (i32.const 9)) (i32.const 256)",
                ),
                trap,
            ),
            (
                "a failure without a text",
                calling(
                    "(i32.store8 (i32.const 256) (i32.const 1))
                    (i32.store (i32.const 280) (i32.const -1))
                    (i32.store (i32.const 284) (i32.const -1)) (i32.const 256)",
                ),
                trap,
            ),
            (
                "an answer that is no JSON",
                calling("(call $text (i32.const 0) (i32.const 1))"),
                malformed,
            ),
            ("an empty answer", calling("(call $text (i32.const 0) (i32.const 0))"), malformed),
            (
                "an answer in answers, ten thousand deep",
                calling(
                    "(memory.fill (i32.const 20000) (i32.const 91) (i32.const 10000))
                    (memory.fill (i32.const 30000) (i32.const 93) (i32.const 10000))
                    (call $text (i32.const 20000) (i32.const 20000))",
                ),
                "failed",
            ),
            ("room where no memory is", reallocating("(i32.const 65535)"), trap),
            ("room at the end of all addresses", reallocating("(i32.const -1)"), trap),
        ])
        .await;
}

/// The host copies what it is handed. What a tool may have itself bounds that, too, however often
/// it names the same bytes (RUSTSEC-2026-0020).
#[tokio::test]
async fn a_tool_cannot_make_the_host_allocate_what_it_does_not_have() {
    let describing = |describe| Crafted { describe, ..Crafted::default() };
    World::new()
        .check(&[
            (
                "four thousand million rights",
                describing(
                    "(i32.store (i32.const 1072) (i32.const 0))
                    (i32.store (i32.const 1076) (i32.const -1)) (i32.const 1024)",
                ),
                "refused as describe",
            ),
            (
                "all of memory as rights, each of them all of memory",
                describing(
                    "(local $i i32)
                    (drop (memory.grow (i32.const 63)))
                    (local.set $i (i32.const 65536))
                    (loop $each
                        (i32.store (local.get $i) (i32.const 65536))
                        (i32.store offset=4 (local.get $i) (i32.const 4000000))
                        (br_if $each (i32.lt_u
                            (local.tee $i (i32.add (local.get $i) (i32.const 8)))
                            (i32.const 300000))))
                    (i32.store (i32.const 1072) (i32.const 65536))
                    (i32.store (i32.const 1076) (i32.const 29000)) (i32.const 1024)",
                ),
                "refused as describe",
            ),
            (
                "an access that there is not",
                describing("(i32.store8 (i32.const 1068) (i32.const 3)) (i32.const 1024)"),
                "refused as describe",
            ),
            (
                "a schema of all addresses",
                describing("(i32.store (i32.const 1052) (i32.const -1)) (i32.const 1024)"),
                "refused as describe",
            ),
            ("a spec where no memory is", describing("(i32.const 65528)"), "refused as describe"),
            ("a spec that is not aligned", describing("(i32.const 1025)"), "refused as describe"),
        ])
        .await;
}
