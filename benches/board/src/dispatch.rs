//! What a call costs on its whole path.

use std::hint::black_box;
use std::process::{Command, Stdio};

use tooltape::Proposal;

use crate::race::{Effort, Measured, Racer, race};
use crate::subject::{ADD_TEXT, Subject, direct};

/// `dispatch.full`: the whole path of one call against the bare function.
pub fn full(effort: Effort) -> Measured {
    let subject = Subject::adding_among(10);
    let lanes = race(
        effort,
        [
            Racer::new("direct: from_str, add, to_string", || {
                drop(black_box(direct(black_box(ADD_TEXT))))
            }),
            Racer::timed("tooltape: the whole path", |times| subject.calls(times)),
            Racer::timed("tooltape: and making the proposal", |times| {
                subject.calls_of(times, || Proposal::new("call_1", "add", black_box(ADD_TEXT)))
            }),
        ],
    );
    Measured::of(lanes[1].ratio, &lanes)
}

/// `dispatch.tools`: the same call among 10,000 tools and among 10.
pub fn tools(effort: Effort) -> Measured {
    let subjects = [10, 100, 1_000, 10_000]
        .map(|tools| (tools, Subject::adding_among(usize::max(1, tools / effort.shrink))));
    let lanes = race(
        effort,
        subjects.each_ref().map(|(tools, subject)| {
            Racer::timed(format!("tooltape: among {tools} tools"), |times| subject.calls(times))
        }),
    );
    Measured::of(lanes[3].ratio, &lanes)
}

/// `dispatch.allocs`: what the same call allocates.
pub fn allocs(_: Effort) -> Measured {
    counted("dispatch.allocs")
}

/// Asks the counting program, whose allocator is slower than the one that is timed here.
pub(crate) fn counted(name: &str) -> Measured {
    let here = std::env::current_exe().expect("this program is a file");
    let allocs = here.with_file_name("allocs");
    let output = Command::new(allocs).arg(name).stderr(Stdio::inherit()).output();
    let output = output.expect("`allocs` is built beside `board`");
    assert!(output.status.success(), "`allocs {name}` failed: {}", output.status);
    let text = String::from_utf8(output.stdout).expect("`allocs` prints text");
    let mut lines = text.lines().map(str::to_owned);
    let value = lines.next().and_then(|line| line.parse().ok());
    Measured { value: value.expect("`allocs` prints a number first"), rows: lines.collect() }
}
