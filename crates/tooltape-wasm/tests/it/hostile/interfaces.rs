//! The interfaces that crafted tools import.

use super::crafted::{From, Import};

pub(crate) const PROGRESS: Import = Import {
    instance: r#"(import "tooltape:tool/progress@1.0.0" (instance $progress
        (export "say" (func (param "text" string)))))"#,
    functions: &[("say", From::Function("progress", "say"), "(param i32 i32)")],
};

pub(crate) const CANCEL: Import = Import {
    instance: r#"(import "tooltape:tool/cancel@1.0.0" (instance $cancel
        (export "is-requested" (func (result bool)))))"#,
    functions: &[("is_requested", From::Function("cancel", "is-requested"), "(result i32)")],
};

pub(crate) const LOG: Import = Import {
    instance: r#"(import "tooltape:tool/log@1.0.0" (instance $log
        (export "write" (func (param "line" string)))))"#,
    functions: &[("log", From::Function("log", "write"), "(param i32 i32)")],
};

pub(crate) const CLOCK: Import = Import {
    instance: r#"(import "tooltape:tool/clock@1.0.0" (instance $clock
        (export "now-us" (func (result u64)))))"#,
    functions: &[("now", From::Function("clock", "now-us"), "(result i64)")],
};

pub(crate) const RANDOM: Import = Import {
    instance: r#"(import "tooltape:tool/random@1.0.0" (instance $random
        (export "bytes" (func (param "length" u32) (result (list u8))))
        (export "next-u64" (func (result u64)))))"#,
    functions: &[
        ("random_bytes", From::Function("random", "bytes"), "(param i32 i32)"),
        ("random", From::Function("random", "next-u64"), "(result i64)"),
    ],
};

pub(crate) const STATE: Import = Import {
    instance: r#"(import "tooltape:tool/state@1.0.0" (instance $state
        (export "get" (func (param "key" string) (result (result (option string) (error string)))))
        (export "set" (func (param "key" string) (param "document" string)
            (result (result (error string)))))))"#,
    functions: &[
        ("get", From::Function("state", "get"), "(param i32 i32 i32)"),
        ("set", From::Function("state", "set"), "(param i32 i32 i32 i32 i32)"),
    ],
};

pub(crate) const FILES: Import = Import {
    instance: r#"(import "tooltape:tool/files@1.0.0" (instance $files
        (export "read" (func (param "path" string) (param "offset" u64) (param "length" u32)
            (result (result (list u8) (error string)))))
        (export "write" (func (param "path" string) (param "content" (list u8))
            (result (result (error string)))))))"#,
    functions: &[
        ("read", From::Function("files", "read"), "(param i32 i32 i64 i32 i32)"),
        ("write", From::Function("files", "write"), "(param i32 i32 i32 i32 i32)"),
    ],
};

pub(crate) const HTTP: Import = Import {
    instance: r#"(import "tooltape:tool/http@1.0.0" (instance $http
        (type $page_ (record (field "url" string) (field "status" u16)
            (field "content-type" (option string)) (field "body" (list u8))
            (field "truncated" bool)))
        (export "page" (type $page (eq $page_)))
        (type $trouble_ (record (field "message" string) (field "request-sent" bool)))
        (export "trouble" (type $trouble (eq $trouble_)))
        (export "get" (func (param "url" string) (param "length" u32)
            (result (result $page (error $trouble)))))))"#,
    functions: &[("fetch", From::Function("http", "get"), "(param i32 i32 i32 i32)")],
};

pub(crate) const STDOUT: Import = Import {
    instance: r#"(import "wasi:io/error@0.2.6" (instance $io_error
            (export "error" (type (sub resource)))))
        (alias export $io_error "error" (type $Error))
        (import "wasi:io/streams@0.2.6" (instance $streams
            (export "output-stream" (type $output (sub resource)))
            (alias outer 1 $Error (type $error_))
            (export "error" (type $error (eq $error_)))
            (type $stream_error_ (variant (case "last-operation-failed" (own $error))
                (case "closed")))
            (export "stream-error" (type $stream_error (eq $stream_error_)))
            (export "[method]output-stream.blocking-write-and-flush"
                (func (param "self" (borrow $output)) (param "contents" (list u8))
                    (result (result (error $stream_error)))))
            (export "[method]output-stream.write-zeroes"
                (func (param "self" (borrow $output)) (param "len" u64)
                    (result (result (error $stream_error)))))))
        (alias export $streams "output-stream" (type $Output))
        (import "wasi:cli/stdout@0.2.6" (instance $stdout
            (alias outer 1 $Output (type $output_))
            (export "output-stream" (type $output (eq $output_)))
            (export "get-stdout" (func (result (own $output))))))"#,
    functions: &[
        ("stdout", From::Function("stdout", "get-stdout"), "(result i32)"),
        (
            "print",
            From::Function("streams", "[method]output-stream.blocking-write-and-flush"),
            "(param i32 i32 i32 i32)",
        ),
        (
            "print_zeroes",
            From::Function("streams", "[method]output-stream.write-zeroes"),
            "(param i32 i64 i32)",
        ),
        ("close", From::Drop("Output"), "(param i32)"),
    ],
};

pub(crate) const EXIT: Import = Import {
    instance: r#"(import "wasi:cli/exit@0.2.6" (instance $exit
        (export "exit" (func (param "status" (result))))))"#,
    functions: &[("exit", From::Function("exit", "exit"), "(param i32)")],
};

pub(crate) const ENVIRONMENT: Import = Import {
    instance: r#"(import "wasi:cli/environment@0.2.6" (instance $environment
        (export "get-environment" (func (result (list (tuple string string)))))
        (export "get-arguments" (func (result (list string))))))"#,
    functions: &[
        ("variables", From::Function("environment", "get-environment"), "(param i32)"),
        ("arguments", From::Function("environment", "get-arguments"), "(param i32)"),
    ],
};

pub(crate) const POLL: Import = Import {
    instance: r#"(import "wasi:io/poll@0.2.6" (instance $poll
            (export "pollable" (type $pollable (sub resource)))
            (export "poll" (func (param "in" (list (borrow $pollable))) (result (list u32))))))
        (alias export $poll "pollable" (type $Pollable))
        (import "wasi:clocks/monotonic-clock@0.2.6" (instance $monotonic
            (alias outer 1 $Pollable (type $pollable_))
            (export "pollable" (type $pollable (eq $pollable_)))
            (export "now" (func (result u64)))
            (export "subscribe-duration" (func (param "when" u64) (result (own $pollable))))))"#,
    functions: &[
        ("poll", From::Function("poll", "poll"), "(param i32 i32 i32)"),
        ("instant", From::Function("monotonic", "now"), "(result i64)"),
        ("sleep", From::Function("monotonic", "subscribe-duration"), "(param i64) (result i32)"),
    ],
};

pub(crate) const WASI_RANDOM: Import = Import {
    instance: r#"(import "wasi:random/random@0.2.6" (instance $wasi_random
        (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))"#,
    functions: &[(
        "wasi_random",
        From::Function("wasi_random", "get-random-bytes"),
        "(param i64 i32)",
    )],
};

/// As much of it as the attacks of RUSTSEC-2026-0149 and -0188 use.
pub(crate) const FILESYSTEM: Import = Import {
    instance: r#"(import "wasi:filesystem/types@0.2.6" (instance $fs
            (export "descriptor" (type $descriptor (sub resource)))
            (type $code_ (enum "access" "would-block"))
            (export "error-code" (type $code (eq $code_)))
            (export "[method]descriptor.set-size" (func (param "self" (borrow $descriptor))
                (param "size" u64) (result (result (error $code)))))
            (export "[method]descriptor.link-at" (func (param "self" (borrow $descriptor))
                (param "old-path" string) (param "new-descriptor" (borrow $descriptor))
                (param "new-path" string) (result (result (error $code)))))
            (export "[method]descriptor.rename-at" (func (param "self" (borrow $descriptor))
                (param "old-path" string) (param "new-descriptor" (borrow $descriptor))
                (param "new-path" string) (result (result (error $code)))))
            (export "[method]descriptor.unlink-file-at" (func
                (param "self" (borrow $descriptor)) (param "path" string)
                (result (result (error $code)))))))
        (alias export $fs "descriptor" (type $Descriptor))
        (import "wasi:filesystem/preopens@0.2.6" (instance $preopens
            (alias outer 1 $Descriptor (type $descriptor_))
            (export "descriptor" (type $descriptor (eq $descriptor_)))
            (export "get-directories" (func (result (list (tuple (own $descriptor) string)))))))"#,
    functions: &[
        ("folders", From::Function("preopens", "get-directories"), "(param i32)"),
        ("truncate", From::Function("fs", "[method]descriptor.set-size"), "(param i32 i64 i32)"),
        (
            "link",
            From::Function("fs", "[method]descriptor.link-at"),
            "(param i32 i32 i32 i32 i32 i32 i32)",
        ),
        (
            "rename",
            From::Function("fs", "[method]descriptor.rename-at"),
            "(param i32 i32 i32 i32 i32 i32 i32)",
        ),
        (
            "unlink",
            From::Function("fs", "[method]descriptor.unlink-file-at"),
            "(param i32 i32 i32 i32)",
        ),
    ],
};
