//! What could differ from machine to machine, and does not.

use super::crafted::Crafted;
use super::naive;
use super::{World, bounded, ended};

/// The bits of what is no number, in 64 and in 32 of them.
const NAN: &str = "0x7ff8000000000000";
const NAN_OF_32: &str = "0x7fc00000";

/// Numbers that are none, each made otherwise; and the bits that each of them must have.
const NOT_NUMBERS: [(&str, &str); 8] = [
    ("(i64.reinterpret_f64 (f64.div (f64.const 0) (local.get $x)))", NAN),
    ("(i64.reinterpret_f64 (f64.sqrt (f64.const -1)))", NAN),
    ("(i64.reinterpret_f64 (f64.mul (f64.const inf) (local.get $x)))", NAN),
    ("(i64.reinterpret_f64 (f64.add (f64.const nan:0x123) (local.get $x)))", NAN),
    ("(i64.reinterpret_f64 (f64.min (f64.const -nan:0x123) (local.get $x)))", NAN),
    ("(i64.reinterpret_f64 (f64.promote_f32 (f32.const -nan:0x400123)))", NAN),
    (
        "(i64.extend_i32_u (i32.reinterpret_f32
            (f32.demote_f64 (f64.const -nan:0x8000000000123))))",
        NAN_OF_32,
    ),
    (
        "(i64x2.extract_lane 1
            (f64x2.div (f64x2.splat (local.get $x)) (f64x2.splat (local.get $x))))",
        NAN,
    ),
];

fn making(expression: &str, bits: &str) -> Crafted {
    let fields = format!(
        "(func $make (param $x f64) (result i64) (i64.eq {expression} (i64.const {bits}))
            (i64.extend_i32_u))"
    );
    let call = "(call $answer (call $make (f64.const 0)))";
    Crafted { fields: fields.leak(), call, ..Crafted::default() }
}

#[tokio::test]
async fn what_is_no_number_always_has_the_same_bits() {
    let world = World::new();
    let mut naive_differs = 0;
    for (expression, bits) in NOT_NUMBERS {
        let crafted = making(expression, bits);
        assert_eq!(world.end(&crafted).await, "answered 1", "{expression}");
        naive_differs += u32::from(naive::call(&crafted.bytes()).unwrap() != "1");
    }
    assert!(naive_differs > 0, "without care the bits are another's choice");
    println!("hostile: {} cases", NOT_NUMBERS.len());
}

#[tokio::test]
async fn a_call_burns_the_same_fuel_each_time() {
    let world = World::new();
    let call = "(local.set $i (i32.const 10000))
        (loop (br_if 0 (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
        (call $answer (i64.const 1))";
    let crafted = bounded(&Crafted { call, ..Crafted::default() });
    let component = world.load(&crafted.bytes()).await.unwrap();
    let first = world.call(&component).await;
    assert_eq!(ended(&first), "answered 1");
    for _ in 0..1_000 {
        let again = world.call(&component).await;
        assert_eq!(again.details, first.details);
        assert_eq!(again.result_hash, first.result_hash);
    }
}
