//! Tools that break, which breaks nothing else.

use super::World;
use super::crafted::Crafted;

#[tokio::test]
async fn a_trap_ends_the_call_and_nothing_else() {
    let trap = "failed trap";
    let divide = |divisor| match divisor {
        0 => Crafted::calling("(i32.div_u (i32.const 1) (local.get $i))"),
        _ => Crafted::calling(
            "(i32.div_s (i32.const -2147483648) (i32.sub (local.get $i) (i32.const 1)))",
        ),
    };
    World::new()
        .check(&[
            ("unreachable", Crafted::calling("(unreachable)"), trap),
            ("a division by zero", divide(0), trap),
            ("a division that overflows", divide(-1), trap),
            (
                "a number that is no number",
                Crafted::calling("(i32.trunc_f64_s (f64.div (f64.const 0) (f64.const 0)))"),
                trap,
            ),
            ("reading where no memory is", Crafted::calling("(i32.load (i32.const 65536))"), trap),
            (
                "reading across the end of an address",
                Crafted::calling("(i32.load offset=4294967295 (i32.const -1))"),
                trap,
            ),
            (
                "writing where no memory is",
                Crafted::calling("(i64.store (i32.const -8) (i64.const 0)) (i32.const 256)"),
                trap,
            ),
            (
                "copying from where no memory is",
                Crafted::calling(
                    "(memory.copy (i32.const 0) (i32.const 65535) (i32.const 2))
                    (i32.const 256)",
                ),
                trap,
            ),
        ])
        .await;
}

#[tokio::test]
async fn a_call_of_what_is_not_there_ends_the_call_and_nothing_else() {
    let trap = "failed trap";
    World::new()
        .check(&[
            (
                "calling what no table has",
                Crafted::with(
                    "(type $f (func (result i32))) (table 1 funcref)",
                    "(call_indirect (type $f) (i32.const 1))",
                ),
                trap,
            ),
            (
                "calling nothing",
                Crafted::with(
                    "(type $f (func (result i32))) (table 1 funcref)",
                    "(call_indirect (type $f) (i32.const 0))",
                ),
                trap,
            ),
            (
                "calling a function as what it is not",
                Crafted::with(
                    "(type $f (func (result i32))) (func $g) (table funcref (elem $g))",
                    "(call_indirect (type $f) (i32.const 0))",
                ),
                trap,
            ),
            (
                "a trap while it makes room",
                Crafted { realloc: "(unreachable)", ..Crafted::default() },
                trap,
            ),
            (
                "a trap after its answer",
                Crafted { after: Some("(unreachable)"), ..Crafted::default() },
                trap,
            ),
        ])
        .await;
}
