//! Components for tests, written as text.

use std::fmt::Write as _;

/// Where the specification of a guest stands in its memory.
const SPEC_AT: usize = 64;
/// Where a result is written.
const RESULT_AT: usize = 256;
/// Where texts begin.
const TEXTS_AT: usize = 1_024;

/// The types of the world.
const TYPES: &str = r#"
  (import "tooltape:tool/types@1.0.0" (instance $types
    (type $a (enum "pure" "read" "write"))
    (export "access" (type $access (eq $a)))
    (type $r (enum "idempotent" "once"))
    (export "repeat" (type $repeat (eq $r)))
    (type $b (record (field "wall-ms" (option u64)) (field "memory" (option u64))
      (field "fuel" (option u64)) (field "output-bytes" (option u64))))
    (export "bounds" (type $bounds (eq $b)))
    (type $s (record (field "name" string) (field "version" string) (field "description" string)
      (field "input" string) (field "output" (option string)) (field "access" $access)
      (field "repeat" $repeat) (field "confirm" bool) (field "needs" (list string))
      (field "bounds" $bounds)))
    (export "spec" (type $spec (eq $s)))
    (type $k (variant (case "failed") (case "not-done") (case "retry-after" u64)
      (case "user-must-act") (case "cancelled")))
    (export "failure-kind" (type $kind (eq $k)))
    (type $f (record (field "kind" $kind) (field "message" string) (field "code" (option string))))
    (export "failure" (type $failure (eq $f)))))
  (alias export $types "spec" (type $spec))
  (alias export $types "failure" (type $failure))
"#;

/// What every guest can do: allocate, and answer.
const KIT: &str = r#"
    (func $realloc (export "realloc") (param $old i32) (param $size i32) (param $align i32)
        (param $new i32) (result i32) (local $at i32) (local $end i32)
      (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
      (local.set $end (i32.add (local.get $at) (local.get $new)))
      (if (i32.gt_u (local.get $end) (i32.mul (memory.size) (i32.const 65536)))
        (then (if (i32.eq (i32.const -1) (memory.grow (i32.add (i32.const 1)
          (i32.div_u (local.get $new) (i32.const 65536))))) (then unreachable))))
      (global.set $heap (local.get $end))
      (memory.copy (local.get $at) (local.get $old) (local.get $size))
      (local.get $at))
    (func $ok (param $at i32) (param $length i32) (result i32)
      (i32.store8 (i32.const RESULT) (i32.const 0))
      (i32.store offset=8 (i32.const RESULT) (local.get $at))
      (i32.store offset=12 (i32.const RESULT) (local.get $length))
      (i32.const RESULT))
    (func $fail (param $kind i32) (param $ms i64) (param $at i32) (param $length i32) (result i32)
      (i32.store8 (i32.const RESULT) (i32.const 1))
      (i32.store8 offset=8 (i32.const RESULT) (local.get $kind))
      (i64.store offset=16 (i32.const RESULT) (local.get $ms))
      (i32.store offset=24 (i32.const RESULT) (local.get $at))
      (i32.store offset=28 (i32.const RESULT) (local.get $length))
      (i32.store8 offset=32 (i32.const RESULT) (i32.const 1))
      (i32.store offset=36 (i32.const RESULT) (local.get $at))
      (i32.store offset=40 (i32.const RESULT) (local.get $length))
      (i32.const RESULT))
    (func $digits (param $number i64) (result i32) (local $at i32)
      (local.set $at (i32.const 960))
      (loop $more
        (local.set $at (i32.sub (local.get $at) (i32.const 1)))
        (i32.store8 (local.get $at) (i32.add (i32.const 48)
          (i32.wrap_i64 (i64.rem_u (local.get $number) (i64.const 10)))))
        (local.set $number (i64.div_u (local.get $number) (i64.const 10)))
        (br_if $more (i64.ne (local.get $number) (i64.const 0))))
      (call $ok (local.get $at) (i32.sub (i32.const 960) (local.get $at))))
"#;

/// A component that is a tool, to be written down as text.
pub(crate) struct Guest {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) input: String,
    pub(crate) output: Option<String>,
    pub(crate) access: u8,
    pub(crate) repeat: u8,
    pub(crate) needs: Vec<&'static str>,
    /// Wall, memory, fuel and output.
    pub(crate) bounds: [Option<u64>; 4],
    /// What `call` does; it has `$at` and `$length` of its arguments, and some locals.
    pub(crate) body: String,
    /// What `describe` does, where it does not give the specification.
    pub(crate) describe: Option<&'static str>,
    /// Imports of the component, and those of its core module with what they are.
    pub(crate) imports: String,
    pub(crate) core_imports: String,
    pub(crate) with: String,
    /// More of the core module.
    pub(crate) more: String,
    pub(crate) pages: u32,
    pub(crate) export: &'static str,
    /// The type of `call`.
    pub(crate) ty: &'static str,
}

impl Guest {
    /// A tool of this name that answers `{}` whatever it is asked.
    pub(crate) fn new(name: &'static str) -> Guest {
        Guest {
            name,
            version: "1.0.0",
            input: r#"{"type":"object"}"#.to_owned(),
            output: None,
            access: 0,
            repeat: 1,
            needs: Vec::new(),
            bounds: [None; 4],
            body: "(call $ok (i32.const 1016) (i32.const 2))".to_owned(),
            describe: None,
            imports: String::new(),
            core_imports: String::new(),
            with: String::new(),
            more: String::new(),
            pages: 2,
            export: "tooltape:tool/tool@1.0.0",
            ty: r#"(param "arguments" string) (result (result string (error $failure)))"#,
        }
    }

    /// The same, whose `call` does this.
    pub(crate) fn body(mut self, body: impl Into<String>) -> Guest {
        self.body = body.into();
        self
    }

    /// The same, which declares this right.
    pub(crate) fn needs(mut self, right: &'static str) -> Guest {
        self.needs.push(right);
        self
    }

    /// The same with one more import: a function of an interface, by its type in the component
    /// and in the core module, where it is called `$name`.
    pub(crate) fn imports(
        mut self,
        interface: &str,
        function: &str,
        ty: &str,
        core: &str,
    ) -> Guest {
        let at = self.with.matches("(with").count();
        let _ = write!(
            self.imports,
            r#"
  (import "{interface}" (instance $i{at} (export "{function}" (func {ty}))))
  (core func $l{at} (canon lower (func $i{at} "{function}") (memory (core memory $memory "memory"))
    (realloc (core func $memory "realloc"))))"#
        );
        let _ = write!(
            self.core_imports,
            r#"
    (import "h{at}" "f" (func ${function} {core}))"#
        );
        let _ = write!(self.with, r#" (with "h{at}" (instance (export "f" (func $l{at}))))"#);
        self
    }

    /// The component in the binary format.
    pub(crate) fn wasm(&self) -> Vec<u8> {
        let text = self.text();
        wat::parse_str(&text).unwrap_or_else(|err| panic!("{err}\n{text}"))
    }

    fn text(&self) -> String {
        let (spec, data, heap) = self.spec();
        let kit = KIT.replace("RESULT", &RESULT_AT.to_string());
        let Guest { body, more, export, ty, imports, core_imports, with, pages, .. } = self;
        let describe = self.describe.map_or_else(|| format!("i32.const {SPEC_AT}"), str::to_owned);
        // The memory is a module of its own, so that imports can be lowered before the tool is.
        format!(
            r#"(component {TYPES}
  (core module $memories
    (memory (export "memory") {pages})
    (global $heap (export "heap") (mut i32) (i32.const {heap}))
    (data (i32.const 1016) "{{}}")
    (data (i32.const {SPEC_AT}) "{spec}"){data}
    {kit})
  (core instance $memory (instantiate $memories)) {imports}
  (core module $main {core_imports}
    (import "memory" "memory" (memory 0))
    (import "memory" "heap" (global $heap (mut i32)))
    {main_kit}
    {more}
    (func (export "describe") (result i32) {describe})
    (func $call (export "call") (param $at i32) (param $length i32) (result i32)
      (local $i i32) (local $j i32) (local $n i64)
      {body}))
  (core instance $main (instantiate $main
    (with "memory" (instance $memory)){with}))
  (func $describe (result $spec)
    (canon lift (core func $main "describe") (memory (core memory $memory "memory"))))
  (func $call {ty}
    (canon lift (core func $main "call") (memory (core memory $memory "memory"))
      (realloc (core func $memory "realloc"))))
  (instance $tool (export "describe" (func $describe)) (export "call" (func $call)))
  (export "{export}" (instance $tool)))"#,
            main_kit = kit.replace("(export \"realloc\") ", ""),
        )
    }

    /// The bytes of the specification, the texts that it points to, and where the heap begins.
    fn spec(&self) -> (String, String, usize) {
        let (mut data, mut at) = (String::new(), TEXTS_AT);
        let mut text = |text: &str| {
            let place = at;
            let _ =
                write!(data, "\n    (data (i32.const {place}) \"{}\")", escaped(text.as_bytes()));
            at += text.len();
            (place as u32, text.len() as u32)
        };
        let mut spec = Vec::new();
        let pair = |spec: &mut Vec<u8>, (place, length): (u32, u32)| {
            spec.extend_from_slice(&place.to_le_bytes());
            spec.extend_from_slice(&length.to_le_bytes());
        };
        for field in [self.name, self.version, "A tool for tests.", &self.input] {
            pair(&mut spec, text(field));
        }
        spec.extend_from_slice(&u32::from(self.output.is_some()).to_le_bytes());
        pair(&mut spec, text(self.output.as_deref().unwrap_or_default()));
        spec.extend_from_slice(&[self.access, self.repeat, 0, 0]);
        let needs: Vec<(u32, u32)> = self.needs.iter().map(|need| text(need)).collect();
        let mut listed = Vec::new();
        needs.iter().for_each(|need| pair(&mut listed, *need));
        at = at.next_multiple_of(8);
        let _ = write!(data, "\n    (data (i32.const {at}) \"{}\")", escaped(&listed));
        pair(&mut spec, (at as u32, needs.len() as u32));
        at += listed.len();
        for bound in self.bounds {
            spec.extend_from_slice(&u64::from(bound.is_some()).to_le_bytes());
            spec.extend_from_slice(&bound.unwrap_or(0).to_le_bytes());
        }
        assert_eq!(spec.len(), 120, "the record as the canonical ABI has it");
        (escaped(&spec), data, at.next_multiple_of(8))
    }
}

/// Bytes as a string of the text format.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "\\{byte:02x}");
        text
    })
}
