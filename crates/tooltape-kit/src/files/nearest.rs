//! Where a text that does not occur may have been meant.

use crate::workspace::shown;

/// The most bytes of a line that a message shows.
pub const LINE_SHOWN_BYTES_MAX: usize = 160;

/// The largest text in which a near place is looked for: in a larger one the hint is not cheap.
const SEARCHED_BYTES_MAX: usize = 1 << 20;
/// The most lines that are compared at each place to find the nearest.
const COMPARED_LINES_MAX: usize = 64;

/// A hint at the place where `text` comes nearest to `old`, if any comes near.
pub(super) fn nearest(text: &str, old: &str) -> Option<String> {
    if text.len() > SEARCHED_BYTES_MAX {
        return None;
    }
    let lines: Vec<_> = text.lines().collect();
    let wanted: Vec<_> = old.lines().skip_while(|line| line.trim().is_empty()).collect();
    let (at, wanted) = nearest_by_run(&lines, &wanted).or_else(|| {
        let wanted = wanted.first()?;
        Some((nearest_by_likeness(&lines, wanted.trim())?, wanted))
    })?;
    let wanted = shown(wanted, LINE_SHOWN_BYTES_MAX);
    let found = match lines.get(at) {
        Some(line) => format!("line {} is `{}`", at + 1, shown(line, LINE_SHOWN_BYTES_MAX)),
        None => format!("line {at} is the last"),
    };
    Some(format!("{found}, where `old` has `{wanted}`"))
}

/// The first line that differs at the place where most lines are the same.
fn nearest_by_run<'a>(lines: &[&str], wanted: &[&'a str]) -> Option<(usize, &'a str)> {
    let run = |at: usize, wanted: &[&str]| {
        lines[at..].iter().zip(wanted).take_while(|(line, wanted)| line == wanted).count()
    };
    let compared = &wanted[..wanted.len().min(COMPARED_LINES_MAX)];
    let (at, _) = first_best((0..lines.len()).map(|at| (at, run(at, compared))))?;
    let same = run(at, wanted);
    Some((at + same, wanted.get(same)?))
}

/// The line that is most like the wanted one, if half of it is.
fn nearest_by_likeness(lines: &[&str], wanted: &str) -> Option<usize> {
    let alike = lines.iter().map(|line| likeness(line.trim(), wanted)).enumerate();
    let (at, likeness) = first_best(alike)?;
    (likeness >= wanted.len().div_ceil(2)).then_some(at)
}

/// How many bytes two lines share at their beginning and at their end.
fn likeness(line: &str, wanted: &str) -> usize {
    let head = line.bytes().zip(wanted.bytes()).take_while(|(a, b)| a == b).count();
    let tail = line.bytes().rev().zip(wanted.bytes().rev()).take_while(|(a, b)| a == b).count();
    (head + tail).min(line.len()).min(wanted.len())
}

/// The first of the best, if any is better than nothing.
fn first_best(scores: impl Iterator<Item = (usize, usize)>) -> Option<(usize, usize)> {
    let best = scores.reduce(|best, next| if next.1 > best.1 { next } else { best })?;
    (best.1 > 0).then_some(best)
}
