//! Tools written in WASM by hand, so that they do what no compiler would let them do.

use std::fmt::Write as _;

/// Where the spec is, in the tool's memory.
const SPEC_AT: u32 = 1_024;
/// Where the texts of the spec are.
const TEXTS_AT: u32 = 2_048;
/// Where the answer is: first a `result`, then its text.
const ANSWER_AT: u32 = 256;
/// Where memory begins that the host is given.
const HEAP_AT: u32 = 16_384;

/// A tool with one thing about it that is wrong. What is not said is as it should be.
#[derive(Clone, Copy)]
pub(crate) struct Crafted {
    /// Its name.
    pub(crate) name: &'static str,
    /// The schema of its arguments.
    pub(crate) input: &'static str,
    /// Its access: 0 is `pure`, 1 `read`, 2 `write`.
    pub(crate) access: u8,
    /// The rights that it declares.
    pub(crate) needs: &'static [&'static str],
    /// Its bounds: wall time in milliseconds, memory, fuel, bytes of output.
    pub(crate) bounds: [Option<u64>; 4],
    /// What it imports.
    pub(crate) imports: &'static [Import],
    /// Its memory.
    pub(crate) memory: &'static str,
    /// How it makes room for what it is given: `(param $old i32 …) (result i32)`.
    pub(crate) realloc: &'static str,
    /// More fields of its module.
    pub(crate) fields: &'static str,
    /// What it does when it describes itself: `(result i32)`.
    pub(crate) describe: &'static str,
    /// What it does when it is called: `(param $arguments i32) (param $length i32) (result i32)`.
    pub(crate) call: &'static str,
    /// What it does after each call, if anything: `(param i32)`.
    pub(crate) after: Option<&'static str>,
    /// The version of the world that it is for.
    pub(crate) world: &'static str,
    /// More fields of the component.
    pub(crate) outer: &'static str,
}

impl Default for Crafted {
    fn default() -> Crafted {
        Crafted {
            name: "crafted",
            input: r#"{"type": "object"}"#,
            access: 0,
            needs: &[],
            bounds: [None; 4],
            imports: &[],
            memory: r#"(memory (export "memory") 1)"#,
            realloc: BUMP,
            fields: "",
            describe: "(i32.const 1024)",
            call: "(call $answer (i64.const 1))",
            after: None,
            world: "1.0.0",
            outer: "",
        }
    }
}

/// An interface that a tool imports, and its functions for the tool's module.
#[derive(Clone, Copy)]
pub(crate) struct Import {
    /// The import, as an instance; and what it is made of, if that is imported, too.
    pub(crate) instance: &'static str,
    /// Its functions: the name in the module, what it is made from, and its type there.
    pub(crate) functions: &'static [(&'static str, From, &'static str)],
}

/// What a function of the module is made from.
#[derive(Clone, Copy)]
pub(crate) enum From {
    /// A function: of which instance, and its name there.
    Function(&'static str, &'static str),
    /// The dropping of a resource, by the name of its type.
    Drop(&'static str),
}

/// Hands out what was never handed out, and grows where it must.
const BUMP: &str = "
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
    (global.set $heap (i32.add (local.get $at) (local.get $size)))
    (if (i32.gt_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536)))
        (then (drop (memory.grow
            (i32.add (i32.const 1) (i32.shr_u (local.get $size) (i32.const 16)))))))
    (memory.copy (local.get $at) (local.get $old) (local.get $old_size))
    (local.get $at)";

/// Writes a number as the answer, and returns where that is.
const ANSWER: &str = "
    (func $answer (param $number i64) (result i32) (local $at i32)
        (local.set $at (i32.const 300))
        (loop $digits
            (local.set $at (i32.sub (local.get $at) (i32.const 1)))
            (i32.store8 (local.get $at) (i32.add (i32.const 48)
                (i32.wrap_i64 (i64.rem_u (local.get $number) (i64.const 10)))))
            (local.set $number (i64.div_u (local.get $number) (i64.const 10)))
            (br_if $digits (i64.ne (local.get $number) (i64.const 0))))
        (call $text (local.get $at) (i32.sub (i32.const 300) (local.get $at))))
    (func $text (param $at i32) (param $length i32) (result i32)
        (i32.store (i32.const 256) (i32.const 0))
        (i32.store (i32.const 264) (local.get $at))
        (i32.store (i32.const 268) (local.get $length))
        (i32.const 256))";

/// The types of the world, each exported, since only what has a name can be part of a function.
const TYPES: &str = r#"
    (type $access_ (enum "pure" "read" "write"))
    (export $access "access" (type $access_))
    (type $repeat_ (enum "idempotent" "once"))
    (export $repeat "repeat" (type $repeat_))
    (type $bounds_ (record (field "wall-ms" (option u64)) (field "memory" (option u64))
        (field "fuel" (option u64)) (field "output-bytes" (option u64))))
    (export $bounds "bounds" (type $bounds_))
    (type $spec_ (record (field "name" string) (field "version" string)
        (field "description" string) (field "input" string) (field "output" (option string))
        (field "access" $access) (field "repeat" $repeat) (field "confirm" bool)
        (field "needs" (list string)) (field "bounds" $bounds)))
    (export $spec "spec" (type $spec_))
    (type $kind_ (variant (case "failed") (case "not-done") (case "retry-after" u64)
        (case "user-must-act") (case "cancelled")))
    (export $kind "failure-kind" (type $kind_))
    (type $failure_ (record (field "kind" $kind) (field "message" string)
        (field "code" (option string))))
    (export $failure "failure" (type $failure_))"#;

impl Crafted {
    /// A tool that does this when it is called.
    pub(crate) fn calling(call: &'static str) -> Crafted {
        Crafted { call, ..Crafted::default() }
    }

    /// The same with more fields of its module.
    pub(crate) fn with(fields: &'static str, call: &'static str) -> Crafted {
        Crafted { fields, ..Crafted::calling(call) }
    }

    /// The component.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let text = self.text();
        wat::parse_str(&text).unwrap_or_else(|err| panic!("{err}\n{text}"))
    }

    fn text(&self) -> String {
        let (instances, lowered, given, taken) = self.imported();
        let Crafted { memory, realloc, fields, describe, call, world, outer, .. } = self;
        let data = self.data();
        let after = self.after.map_or(String::new(), |body| {
            format!(r#"(func (export "after") (param $result i32) {body})"#)
        });
        let post = self.after.map_or("", |_| r#"(post-return (core func $main "after"))"#);
        format!(
            r#"(component {instances}
            (core module $Heap {memory} (global $heap (mut i32) (i32.const {HEAP_AT}))
                (func (export "realloc") (param $old i32) (param $old_size i32)
                    (param $align i32) (param $size i32) (result i32) {realloc}))
            (core instance $heap (instantiate $Heap))
            {lowered}
            (core module $Main (import "heap" "memory" (memory 0)) {taken}
                {data} {ANSWER} {fields}
                (func (export "describe") (result i32) {describe})
                (func (export "call") (param $arguments i32) (param $length i32) (result i32)
                    (local $i i32) (local $n i64) {call})
                {after})
            (core instance $main (instantiate $Main
                (with "heap" (instance $heap)) (with "host" (instance {given}))))
            {TYPES}
            (func $describe (result $spec)
                (canon lift (core func $main "describe") (memory (core memory $heap "memory"))))
            (func $call (param "arguments" string) (result (result string (error $failure)))
                (canon lift (core func $main "call") (memory (core memory $heap "memory"))
                    (realloc (core func $heap "realloc")) {post}))
            (instance $tool (export "describe" (func $describe)) (export "call" (func $call)))
            (export "tooltape:tool/tool@{world}" (instance $tool)) {outer})"#
        )
    }

    /// The imports of the component; their functions for the module; these as it is given them,
    /// and as it takes them.
    fn imported(&self) -> (String, String, String, String) {
        let mut texts = (String::new(), String::new(), String::new(), String::new());
        for import in self.imports {
            texts.0.push_str(import.instance);
            for (name, from, ty) in import.functions {
                let made = match from {
                    From::Drop(ty) => format!("(canon resource.drop ${ty})"),
                    From::Function(instance, function) => format!(
                        r#"(canon lower (func ${instance} "{function}")
                        (memory (core memory $heap "memory"))
                        (realloc (core func $heap "realloc")))"#
                    ),
                };
                write!(texts.1, "(core func ${name} {made})").unwrap();
                write!(texts.2, r#"(export "{name}" (func ${name}))"#).unwrap();
                write!(texts.3, r#"(import "host" "{name}" (func ${name} {ty}))"#).unwrap();
            }
        }
        texts
    }

    /// The spec, as the canonical ABI lays it out.
    fn data(&self) -> String {
        let (mut texts, mut spec) = (Vec::new(), Vec::new());
        let mut text = |spec: &mut Vec<u8>, text: &str| {
            let at = TEXTS_AT + u32::try_from(texts.len()).unwrap();
            texts.extend_from_slice(text.as_bytes());
            spec.extend(at.to_le_bytes());
            spec.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
        };
        for part in [self.name, "1.0.0", "Is not what it seems.", self.input] {
            text(&mut spec, part);
        }
        spec.extend([0; 12]);
        spec.extend([self.access, 1, 0, 0]);
        let mut needs = Vec::new();
        for need in self.needs {
            text(&mut needs, need);
        }
        let needs_at = SPEC_AT + 120;
        spec.extend(needs_at.to_le_bytes());
        spec.extend(u32::try_from(self.needs.len()).unwrap().to_le_bytes());
        for bound in self.bounds {
            spec.extend(u64::from(bound.is_some()).to_le_bytes());
            spec.extend(bound.unwrap_or(0).to_le_bytes());
        }
        assert_eq!(spec.len(), 120, "the size of a spec");
        spec.extend(needs);
        let escaped =
            |bytes: &[u8]| bytes.iter().map(|byte| format!("\\{byte:02x}")).collect::<String>();
        format!(
            r#"(data (i32.const {SPEC_AT}) "{}") (data (i32.const {TEXTS_AT}) "{}")
            (data (i32.const {ANSWER_AT}) "\00")"#,
            escaped(&spec),
            escaped(&texts)
        )
    }
}
