//! A search of many files by a few threads, with a result that does not depend on who was faster.

use std::io::{self, ErrorKind, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};

use super::lines::{GREP_BYTES_MAX, LINE_BYTES, Lines};
use super::{Grep, Line, Matches, Show};
use crate::workspace::{Cut, EntryKind, Found, Patience, Walk, Workspace, WorkspaceError};

/// The most bytes of a file that are in memory at once: the longest line, or the longest file that
/// is searched over line ends.
pub const GREP_HEAP_BYTES_MAX: usize = 4 << 20;
/// The most threads that one call searches with.
pub const GREP_THREADS_MAX: usize = 4;

/// How many files are handed to a thread at once.
const BATCH_FILES: usize = 32;
/// How many such batches wait at most; each may hold a handle.
const BATCHES_WAITING: usize = 16;

/// What a search came to.
pub(super) struct Searched {
    pub(super) files: Vec<Matches>,
    pub(super) matches: u64,
    pub(super) skipped: u64,
    pub(super) cut: Option<Cut>,
    pub(super) refusal: Option<WorkspaceError>,
}

/// Some files that follow one another, and how many batches came before.
struct Batch {
    at: usize,
    files: Vec<Found>,
}

/// What was found in a file.
struct Hit {
    path: String,
    matches: u64,
    lines: Vec<Line>,
}

/// What all threads found so far.
#[derive(Default)]
struct Hits {
    hits: Vec<(usize, Vec<Hit>)>,
    /// Matches, or files where only those are shown.
    matches: u64,
    bytes: usize,
    skipped: u64,
}

struct Search<'s> {
    args: &'s Grep,
    matcher: &'s RegexMatcher,
    show: Show,
    limit: u64,
    files: &'s Workspace,
    patience: &'s Patience,
    hits: Mutex<Hits>,
    /// Whether enough was found. Batches are begun in order and always finished, so what was found
    /// by then is the beginning of all that there is.
    is_enough: AtomicBool,
}

/// Searches the files that a walk comes to.
pub(super) fn search(
    args: &Grep,
    matcher: &RegexMatcher,
    limit: u64,
    files: &Workspace,
    mut walk: Walk,
    patience: &Patience,
) -> Searched {
    let show = args.show.unwrap_or(Show::Lines);
    let (hits, is_enough) = (Mutex::default(), AtomicBool::new(false));
    let search = Search { args, matcher, show, limit, files, patience, hits, is_enough };
    let (sender, receiver) = sync_channel(BATCHES_WAITING);
    let receiver = Mutex::new(receiver);
    let threads = thread::available_parallelism().map_or(1, usize::from).min(GREP_THREADS_MAX);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| search.work(&receiver));
        }
        let mut batches = Batches { walk: &mut walk, next: None, at: 0 };
        for batch in batches.by_ref() {
            if search.is_done() || sender.send(batch).is_err() {
                break;
            }
        }
        drop(sender);
    });
    let mut hits = search.hits.into_inner().unwrap_or_else(PoisonError::into_inner);
    hits.hits.sort_unstable_by_key(|(at, _)| *at);
    let found = hits.hits.into_iter().flat_map(|(_, hits)| hits);
    let (files, matches, mut cut) = shown(found, args, show, limit);
    if cut.is_none() && patience.is_over() {
        cut = Some(Cut::Time);
    }
    let (cut, skipped) = (cut.or(walk.cut), hits.skipped + walk.skipped);
    Searched { files, matches, skipped, cut, refusal: walk.refusal.take() }
}

/// The files of a walk in batches, each of one directory.
struct Batches<'w> {
    walk: &'w mut Walk,
    next: Option<Found>,
    at: usize,
}

impl Iterator for Batches<'_> {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        let mut files: Vec<Found> = self.next.take().into_iter().collect();
        for found in self.walk.by_ref().filter(|found| found.kind == EntryKind::File) {
            let is_beside = files.first().is_none_or(|first| first.is_beside(&found));
            if !is_beside || files.len() == BATCH_FILES {
                self.next = Some(found);
                break;
            }
            files.push(found);
        }
        let at = self.at;
        self.at += 1;
        (!files.is_empty()).then_some(Batch { at, files })
    }
}

impl Search<'_> {
    /// Whether no more files need to be begun.
    fn is_done(&self) -> bool {
        self.is_enough.load(Ordering::Acquire) || self.patience.is_over()
    }

    /// Searches batch after batch.
    fn work(&self, batches: &Mutex<Receiver<Batch>>) {
        let mut searcher = self.searcher();
        loop {
            let (at, files) = {
                let batches = batches.lock().unwrap_or_else(PoisonError::into_inner);
                let Ok(Batch { at, files }) = batches.recv() else { return };
                // Under the lock: what is begun comes before all that is not. Whoever sends must
                // not wait for ever, so what is not needed is received all the same.
                if self.is_done() {
                    continue;
                }
                (at, files)
            };
            let mut skipped = 0;
            let hits: Vec<Hit> = files
                .iter()
                .filter_map(|found| match self.file(&mut searcher, found) {
                    Ok(hit) => hit,
                    Err(hit) => {
                        skipped += 1;
                        hit
                    }
                })
                .collect();
            self.gather(at, hits, skipped);
        }
    }

    fn gather(&self, at: usize, found: Vec<Hit>, skipped: u64) {
        let mut hits = self.hits.lock().unwrap_or_else(PoisonError::into_inner);
        hits.skipped += skipped;
        for hit in &found {
            hits.matches += if self.show == Show::Lines { hit.matches } else { 1 };
            hits.bytes += hit.path.len() + hit.lines.iter().map(Line::bytes).sum::<usize>();
        }
        if !found.is_empty() {
            hits.hits.push((at, found));
        }
        if hits.matches > self.limit || hits.bytes > GREP_BYTES_MAX {
            self.is_enough.store(true, Ordering::Release);
        }
    }

    /// Searches one file. Fails where it could not be searched to its end.
    fn file(&self, searcher: &mut Searcher, found: &Found) -> Result<Option<Hit>, Option<Hit>> {
        let file = match found.open() {
            Ok(file) => file.into_std(),
            // What is gone by now is nowhere to be found.
            Err(err) if err.kind() == ErrorKind::NotFound => return Ok(None),
            Err(_) => return Err(None),
        };
        let mut lines = Lines::new(self.matcher, self.show, self.limit);
        let read = Patient { file: &file, patience: self.patience };
        let searched = searcher.search_reader(self.matcher, read, &mut lines);
        let Lines { matches, lines, .. } = lines;
        let hit = (matches > 0).then(|| {
            self.files.saw_lines(found);
            Hit { path: found.shown(), matches, lines }
        });
        match searched {
            Ok(()) => Ok(hit),
            Err(_) => Err(hit),
        }
    }

    fn searcher(&self) -> Searcher {
        let context = |lines: u64| match self.show {
            Show::Lines => usize::try_from(lines).unwrap_or(0),
            Show::Files | Show::Counts => 0,
        };
        SearcherBuilder::new()
            .line_number(self.show == Show::Lines)
            .multi_line(self.args.multiline)
            .before_context(context(self.args.before))
            .after_context(context(self.args.after))
            .heap_limit(Some(GREP_HEAP_BYTES_MAX))
            .binary_detection(BinaryDetection::quit(0))
            .build()
    }
}

/// Reads a file for as long as somebody waits.
struct Patient<'f, R> {
    file: R,
    patience: &'f Patience,
}

impl<R: Read> Read for Patient<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.patience.is_over() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.file.read(buffer)
    }
}

/// As much as is shown of what was found, how many matches that is, and why it is not all.
fn shown(
    hits: impl Iterator<Item = Hit>,
    args: &Grep,
    show: Show,
    limit: u64,
) -> (Vec<Matches>, u64, Option<Cut>) {
    let (mut files, mut matches, mut bytes) = (Vec::new(), 0, 0);
    for Hit { path, matches: found, lines } in hits {
        bytes += path.len();
        if matches == limit || bytes > GREP_BYTES_MAX {
            let cut = if matches == limit { Cut::Limit } else { Cut::Bytes };
            return (files, matches, Some(cut));
        }
        let room = Room { matches: limit - matches, bytes: GREP_BYTES_MAX - bytes };
        let (lines, cut) = fitting(lines, args.after, room);
        bytes += lines.iter().map(Line::bytes).sum::<usize>();
        matches += match show {
            Show::Lines => lines.iter().filter(|line| !line.context).count() as u64,
            Show::Files | Show::Counts => 1,
        };
        let count = (show == Show::Counts).then_some(found);
        if cut.is_none() || !lines.is_empty() {
            files.push(Matches { path, count, lines });
        }
        if cut.is_some() {
            return (files, matches, cut);
        }
    }
    (files, matches, None)
}

/// What may still be shown.
struct Room {
    matches: u64,
    bytes: usize,
}

/// The first lines that fit, without what stood around the first match that does not.
fn fitting(lines: Vec<Line>, after: u64, mut room: Room) -> (Vec<Line>, Option<Cut>) {
    let (mut fitting, mut last) = (Vec::with_capacity(lines.len()), 0);
    for line in lines {
        let cut = match room.bytes.checked_sub(line.bytes()) {
            None => Some(Cut::Bytes),
            Some(_) if !line.context && room.matches == 0 => Some(Cut::Limit),
            Some(left) => {
                room.bytes = left;
                None
            }
        };
        if cut.is_some() {
            fitting.retain(|line: &Line| !line.context || line.line <= last + after);
            return (fitting, cut);
        }
        if !line.context {
            room.matches -= 1;
            last = line.line;
        }
        fitting.push(line);
    }
    (fitting, None)
}

impl Line {
    fn bytes(&self) -> usize {
        LINE_BYTES + self.text.len()
    }
}
