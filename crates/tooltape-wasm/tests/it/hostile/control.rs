//! The same attacks on an engine without limits, where they work.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use super::crafted::Crafted;
use super::naive;
use super::{OUTPUT, World};

/// Says that the test is to suffer the attack that never ends, in a process of its own.
const VICTIM: &str = "TOOLTAPE_WASM_VICTIM";

const SPIN: &str = "(loop (br 0)) (unreachable)";
/// Takes memory page by page until it has 256 MiB, and writes to all of it.
const HOARD: &str = "(loop
    (memory.fill (i32.mul (memory.grow (i32.const 1)) (i32.const 65536)) (i32.const 1)
        (i32.const 65536))
    (br_if 0 (i32.lt_u (memory.size) (i32.const 4096))))
    (call $answer (i64.extend_i32_u (memory.size)))";

fn crafted(call: &'static str) -> Crafted {
    Crafted { call, ..Crafted::default() }
}

#[test]
fn the_victim_has_no_limits() {
    let call = match std::env::var_os(VICTIM) {
        Some(_) => SPIN,
        None => HOARD,
    };
    assert_eq!(naive::call(&crafted(call).bytes()).unwrap(), "4096");
}

/// The kernel ends what nothing else does: after a second of processor time, which is many times
/// what the fuel of the attack lasts.
#[tokio::test]
async fn without_limits_a_loop_never_ends_and_memory_is_all_taken() {
    let victim = Command::new("sh")
        .args(["-c", r#"ulimit -t 1; exec "$0" "$@""#])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "hostile::control::the_victim_has_no_limits"])
        .env(VICTIM, "yes")
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(victim.signal().is_some(), "{victim}");
    let world = World::new();
    assert!(world.end(&crafted(SPIN)).await.starts_with("exceeded fuel"));
    assert!(world.end(&crafted(HOARD)).await.starts_with("exceeded memory"));
}

#[tokio::test]
async fn without_limits_tables_and_answers_are_as_large_as_a_tool_likes() {
    let table = Crafted {
        fields: "(table $t 1 funcref)",
        call: "(drop (table.grow $t (ref.null func) (i32.const 1000000)))
            (call $answer (i64.extend_i32_u (table.size $t)))",
        ..Crafted::default()
    };
    let answer = crafted(
        "(drop (memory.grow (i32.const 50)))
        (memory.fill (i32.const 16384) (i32.const 49) (i32.const 3000000))
        (call $text (i32.const 16384) (i32.const 3000000))",
    );
    assert_eq!(naive::call(&table.bytes()).unwrap(), "1000001");
    assert!(naive::call(&answer.bytes()).unwrap().len() as u64 > OUTPUT);
    let world = World::new();
    assert!(world.end(&table).await.starts_with("exceeded table"));
    assert!(world.end(&answer).await.starts_with("exceeded output_bytes"));
}
