//! Every limit that has a name is in the table of `docs/limits.md`, with its value.

use std::fmt::Write;

use expect_test::expect_file;
use tooltape::{Limits, Retry, RunLimits, limits::*};

#[test]
#[allow(clippy::too_many_lines, reason = "a table, a row a limit")]
fn every_named_limit_is_in_the_table_with_its_value() {
    let RunLimits { wall, queue, batch_calls, run_calls, depth, arguments, .. } =
        RunLimits::default();
    let Retry { attempts, pause_ms, pause_ms_max } = Retry::default();
    let Limits { bytes, depth: argument_depth, nodes, integer_digits, .. } = arguments;
    let rows: [(&str, String, &str); 60] = [
        ("ARGUMENT_BYTES_MAX", bytes.to_string(), "bytes of a call's arguments"),
        ("DEPTH_MAX", argument_depth.to_string(), "nesting of arguments"),
        ("NODES_MAX", nodes.to_string(), "values in arguments"),
        ("INTEGER_DIGITS_MAX", integer_digits.to_string(), "digits of an exact integer"),
        ("RESULT_BYTES_MAX", RESULT_BYTES_MAX.to_string(), "bytes of a tool's result"),
        ("NAME_BYTES_MAX", NAME_BYTES_MAX.to_string(), "bytes of a tool's name"),
        ("VERSION_BYTES_MAX", VERSION_BYTES_MAX.to_string(), "bytes of a tool's version"),
        ("TOLD_BYTES_MAX", TOLD_BYTES_MAX.to_string(), "bytes that a model reads of a fault"),
        ("SHOWN_BYTES_MAX", SHOWN_BYTES_MAX.to_string(), "bytes of its text shown back to a model"),
        ("LABEL_NAMES_MAX", LABEL_NAMES_MAX.to_string(), "sources, or secrets, that a label names"),
        ("LABEL_NAME_BYTES_MAX", LABEL_NAME_BYTES_MAX.to_string(), "bytes of a name in a label"),
        ("LABELLED_MAX", LABELLED_MAX.to_string(), "places whose labels are kept in memory"),
        (
            "EXTRACT_CHOICES_MAX",
            EXTRACT_CHOICES_MAX.to_string(),
            "choices, or properties, in what somebody vouches for",
        ),
        (
            "EXTRACT_SCHEMAS_MAX",
            EXTRACT_SCHEMAS_MAX.to_string(),
            "schemas in what somebody vouches for",
        ),
        ("NAME_KEPT_BYTES_MAX", NAME_KEPT_BYTES_MAX.to_string(), "bytes kept of an unknown name"),
        ("PROGRESS_BYTES_MAX", PROGRESS_BYTES_MAX.to_string(), "bytes of a progress message"),
        ("NOTES_MAX", NOTES_MAX.to_string(), "progress messages and events of a call"),
        ("READ_RECORDS_MAX", READ_RECORDS_MAX.to_string(), "records that one read returns"),
        ("RESOURCE_BYTES_MAX", RESOURCE_BYTES_MAX.to_string(), "bytes of a resource key"),
        ("RESOURCE_SEGMENTS_MAX", RESOURCE_SEGMENTS_MAX.to_string(), "segments of a resource key"),
        ("FOOTPRINT_KEYS_MAX", FOOTPRINT_KEYS_MAX.to_string(), "keys that a call reads, or writes"),
        ("WALL_DEFAULT", format!("{wall:?}"), "wall time of an attempt"),
        ("QUEUE_DEFAULT", format!("{queue:?}"), "time that an attempt waits in its layers"),
        ("BATCH_CALLS_DEFAULT", batch_calls.to_string(), "calls of a batch that are executed"),
        ("RUN_CALLS_DEFAULT", run_calls.to_string(), "calls of a run and its children"),
        ("DEPTH_DEFAULT", depth.to_string(), "nesting of runs"),
        ("REPAIRS_DEFAULT", REPAIRS_DEFAULT.to_string(), "turns in a row that had to be mended"),
        ("REPEATS_DEFAULT", REPEATS_DEFAULT.to_string(), "times a call comes to the same, untold"),
        ("ROUNDS_DEFAULT", ROUNDS_DEFAULT.to_string(), "times a few calls take turns, untold"),
        ("FRUITLESS_DEFAULT", FRUITLESS_DEFAULT.to_string(), "batches in a row with nothing new"),
        ("TARGETS_DEFAULT", TARGETS_DEFAULT.to_string(), "failures at one thing, untold"),
        ("FAILURES_DEFAULT", FAILURES_DEFAULT.to_string(), "failures of one call, untold"),
        (
            "NUDGES_DEFAULT",
            NUDGES_DEFAULT.to_string(),
            "times a model is told that it gets nowhere",
        ),
        ("SAID_MAX", SAID_MAX.to_string(), "messages that wait for a model's next turn"),
        ("SAID_BYTES_MAX", SAID_BYTES_MAX.to_string(), "bytes of such a message"),
        ("TASK_BYTES_MAX", TASK_BYTES_MAX.to_string(), "bytes of a task for a sub-agent"),
        ("HITS_DEFAULT", HITS_DEFAULT.to_string(), "tools that a search finds"),
        ("HITS_MAX", HITS_MAX.to_string(), "tools that a search can find"),
        (
            "VERBATIM_BYTES_MAX",
            VERBATIM_BYTES_MAX.to_string(),
            "bytes of a turn kept for its provider",
        ),
        ("TURNS_DEFAULT", TURNS_DEFAULT.to_string(), "turns of a model for one question"),
        (
            "Retry::attempts",
            attempts.to_string(),
            "attempts at a call, where its tool says no more",
        ),
        ("Retry::pause_ms", pause_ms.to_string(), "ms before the second attempt"),
        ("Retry::pause_ms_max", pause_ms_max.to_string(), "ms between attempts at most"),
        ("PROBLEMS_MAX", PROBLEMS_MAX.to_string(), "problems that one reply names"),
        ("ALLOWED_MAX", ALLOWED_MAX.to_string(), "allowed values that a problem names"),
        ("EXCERPT_BYTES_MAX", EXCERPT_BYTES_MAX.to_string(), "bytes of a value in a problem"),
        (
            "POINTER_BYTES_MAX",
            POINTER_BYTES_MAX.to_string(),
            "bytes of a JSON pointer in a problem",
        ),
        ("MISMATCH_BYTES_MAX", MISMATCH_BYTES_MAX.to_string(), "bytes of all problems together"),
        ("NEAREST_WORDS_MAX", NEAREST_WORDS_MAX.to_string(), "words looked at for a suggestion"),
        ("NEAREST_CHARS_MAX", NEAREST_CHARS_MAX.to_string(), "characters of such a word"),
        ("SCHEMA_BYTES_MAX", SCHEMA_BYTES_MAX.to_string(), "bytes of a schema"),
        ("SCHEMA_DEPTH_MAX", SCHEMA_DEPTH_MAX.to_string(), "nesting of a schema"),
        ("SCHEMA_VALUES_MAX", SCHEMA_VALUES_MAX.to_string(), "values in a schema"),
        ("SCHEMA_PATTERNS_MAX", SCHEMA_PATTERNS_MAX.to_string(), "patterns in a schema"),
        ("PATTERN_BYTES_MAX", PATTERN_BYTES_MAX.to_string(), "bytes of a pattern"),
        (
            "SCHEMA_WIDTH_MAX",
            SCHEMA_WIDTH_MAX.to_string(),
            "subschemas that one value meets at once",
        ),
        ("SCHEMA_CHAIN_MAX", SCHEMA_CHAIN_MAX.to_string(), "subschemas that follow one another"),
        ("SCHEMA_NAMES_MAX", SCHEMA_NAMES_MAX.to_string(), "names in one list of a schema"),
        ("CHECK_STEPS_MIN", CHECK_STEPS_MIN.to_string(), "steps that any check may take"),
        ("CHECK_STEPS_PER_BYTE", CHECK_STEPS_PER_BYTE.to_string(), "more steps per byte checked"),
    ];
    let mut page = String::from(
        "# Limits\n\nEverything has a limit with a name. A test holds this table to the code.\n\n\
         | limit | default | of what |\n|---|---|---|\n",
    );
    for (name, value, what) in
        rows.into_iter().chain(of_runs()).chain(of_results()).chain(of_layers()).chain(of_rights())
    {
        writeln!(page, "| `{name}` | {value} | {what} |").unwrap();
    }
    page.push_str(&of_http());
    expect_file!["../../../../docs/limits.md"].assert_eq(&page);
}

/// What the limits of models behind HTTP stand under.
const HTTP: &str = "\n## Models behind HTTP\n";

/// The limits of models behind HTTP.
#[cfg(feature = "http")]
fn of_http() -> String {
    let rows = [
        ("CONNECT_DEFAULT", format!("{CONNECT_DEFAULT:?}"), "time to reach a server"),
        ("SILENCE_DEFAULT", format!("{SILENCE_DEFAULT:?}"), "time that a server says nothing"),
        ("TURN_DEFAULT", format!("{TURN_DEFAULT:?}"), "time of a turn, with all attempts at it"),
        ("ATTEMPTS_DEFAULT", ATTEMPTS_DEFAULT.to_string(), "times that a server is asked for it"),
        ("PAUSE_DEFAULT", format!("{PAUSE_DEFAULT:?}"), "time before it is asked again"),
        ("PAUSE_MAX", format!("{PAUSE_MAX:?}"), "time that a server may ask to be left alone"),
        ("BODY_BYTES_MAX", BODY_BYTES_MAX.to_string(), "bytes of an answer that comes whole"),
    ];
    let rows = rows.map(|(name, value, what)| format!("| `{name}` | {value} | {what} |\n"));
    format!("{HTTP}\n| limit | default | of what |\n|---|---|---|\n{}", rows.concat())
}

/// The same as the page has it: what is not compiled cannot be held to it.
#[cfg(not(feature = "http"))]
fn of_http() -> String {
    let page = include_str!("../../../../docs/limits.md");
    format!("{HTTP}{}", page.split_once(HTTP).expect("the page has them").1)
}

/// Rows whose values are constants: `NAME: "of what"`.
macro_rules! named {
    ($($name:ident: $what:literal,)*) => {
        vec![$((stringify!($name), $name.to_string(), $what)),*]
    };
}

/// The limits of what surrounds a call, and of those who watch it.
fn of_layers() -> Vec<(&'static str, String, &'static str)> {
    named![
        CACHE_ENTRIES_DEFAULT: "results that a cache keeps",
        CACHE_BYTES_DEFAULT: "bytes of results in a cache",
        BACKLOG_PROGRESS_DEFAULT: "records of progress that wait for a subscriber",
        BACKLOG_RECORDS_DEFAULT: "other records that wait for a subscriber",
        BACKLOG_BYTES_DEFAULT: "bytes of records that wait for a subscriber",
        COMMIT_EVENTS_MAX: "events in one commit of a tape",
        QUEUE_EVENTS_MAX: "events that wait for the disk",
        RUNS_HELD_MAX: "runs that one handle of a tape writes to",
        RUN_RECORDS_MAX: "records of a run",
        RUNS_MAX: "runs that one query lists",
        READERS_MAX: "connections that a tape keeps for reading",
        CHECKPOINT_PAGES: "pages of a log before they are copied into the file",
        RESERVE_BYTES_MIN: "bytes kept free for the end of runs",
        RESERVE_CALL_BYTES: "bytes kept free for the result of each started call",
        EMITTED_BYTES_MAX: "bytes of a named event",
        EVENT_BYTES_MAX: "bytes of one event of a provider's stream",
        TURN_BYTES_MAX: "bytes of one turn of a model",
        TURN_CALLS_MAX: "calls that one turn of a model proposes",
        TURN_ITEMS_MAX: "items of one turn of a model, calls among them",
        REFUSAL_BYTES_MAX: "bytes looked at of what a provider says instead of an answer",
        OUTPUT_TOKENS_DEFAULT: "tokens that a model writes at an API which wants a limit",
        ADVERTS_MAX: "tools whose form for an API is remembered",
        SPAN_CONTENT_BYTES_MAX: "bytes of arguments, or of a result, in a span",
    ]
}

/// The limits of what a model is shown, and of what is kept besides.
fn of_results() -> Vec<(&'static str, String, &'static str)> {
    named![
        OUTPUT_BYTES_DEFAULT: "bytes that a model reads of a result",
        OUTPUT_BYTES_MIN: "bytes that such a bound has at least",
        IMAGE_BYTES_MAX: "bytes of a result's images in base64, beside that bound",
        BLOCKS_MAX: "blocks of a result",
        MEDIA_TYPE_BYTES_MAX: "bytes of a media type",
        FAULT_BYTES_MAX: "bytes that the host reads of a fault",
        WINDOW_BYTES_DEFAULT: "bytes of a conversation that a model is shown",
        COMPACTED_BYTES_MAX: "bytes of an old result that may be cut",
        ARGUMENT_SHOWN_BYTES_MAX: "bytes of an argument that stand for an old result",
        SECRET_BYTES_MIN: "bytes that a secret has at least, to be looked for",
        SECRET_PART_BYTES_MIN: "bytes of a secret's beginning that no note ends with",
        SECRETS_BYTES_MAX: "bytes of all secrets that are looked for",
        ARTIFACT_BYTES_MAX: "bytes of an artifact",
        ARTIFACT_MEMORY_BYTES_MAX: "bytes of all artifacts in memory",
        ARTIFACT_STORE_BYTES_MAX: "bytes of all artifacts in a directory",
        ARTIFACT_READ_BYTES_MAX: "bytes that one read of an artifact returns",
        ARTIFACTS_MAX: "artifacts of a run and its children",
        PAGE_BYTES_MAX: "bytes of a page of `read_artifact`",
        PREVIEW_BYTES_MAX: "bytes of what a call would change",
    ]
}

/// What a run allows, beside what every call may use.
fn of_runs() -> [(&'static str, String, &'static str); 11] {
    let limits = RunLimits::default();
    [
        ("IDLE_DEFAULT", format!("{:?}", limits.idle), "silence of an attempt"),
        ("BATCH_WALL_DEFAULT", format!("{:?}", limits.batch_wall), "wall time of a batch"),
        ("RUN_WALL_DEFAULT", format!("{:?}", limits.run_wall), "wall time of a run"),
        (
            "CANCEL_GRACE_DEFAULT",
            format!("{:?}", limits.cancel_grace),
            "time that a cancelled call has to stop by itself",
        ),
        (
            "TAPE_WALL_DEFAULT",
            format!("{:?}", limits.tape_wall),
            "time until the end of a write is durable",
        ),
        (
            "REPLAY_WALL_DEFAULT",
            format!("{REPLAY_WALL_DEFAULT:?}"),
            "wall time of an unbounded call that a replay executes again",
        ),
        ("CONCURRENCY_DEFAULT", limits.concurrency.to_string(), "calls of a run at once"),
        (
            "MUTATIONS_DEFAULT",
            limits.mutations.to_string(),
            "promoted and recursive calls of a run at once",
        ),
        ("BLOCKING_DEFAULT", limits.blocking.to_string(), "threads of a run's blocking tools"),
        (
            "RUN_BYTES_DEFAULT",
            limits.run_bytes.to_string(),
            "bytes of a run's arguments and results",
        ),
        ("PREVIEW_WALL", format!("{PREVIEW_WALL:?}"), "time to show what a call would change"),
    ]
}

/// The limits of rights, as they are read.
fn of_rights() -> Vec<(&'static str, String, &'static str)> {
    named![
        GLOB_BYTES_MAX: "bytes of a glob in a rule",
        GLOB_WAYS_MAX: "globs that the braces of one stand for",
        ARGUMENT_STEPS_MAX: "steps of a JSON pointer in a rule",
        RIGHT_BYTES_MAX: "bytes of a right's text",
        RIGHT_PATH_BYTES_MAX: "bytes of a path in a right",
        RIGHT_PATH_DEPTH_MAX: "components of a path in a right",
        HOST_BYTES_MAX: "bytes of a host in a right",
        WORD_BYTES_MAX: "bytes of a name in a right",
        RIGHTS_MAX: "rights that are written as one set",
        RIGHTS_LISTED_MAX: "rights of a list that is read back",
    ]
}
