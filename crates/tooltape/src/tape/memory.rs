//! A tape in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::sync::{Arc, PoisonError};

use super::{
    Ack, Append, Event, Head, InDoubt, Key, Line, READ_RECORDS_MAX, Record, Tape, TapeError, Whole,
};
use crate::id::{CallNo, RunId};
use crate::sync::{Mutex, MutexGuard};
use crate::tool::BoxFuture;

/// A tape that lasts as long as its last clone. Clones share it.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use tooltape::{MemoryTape, Proposal, Run, Toolbox, builtin};
///
/// let tape = MemoryTape::default();
/// let toolbox = Toolbox::new(builtin::tools()).unwrap();
/// let run = Run::new(&toolbox).tape(tape.clone());
/// run.batch(vec![Proposal::new("c1", "hash", r#"{"text":""}"#)]).await.unwrap();
/// assert!(tape.records(run.id()).len() >= 4);
/// # });
/// ```
#[derive(Clone, Default)]
pub struct MemoryTape(Arc<Mutex<Reels>>);

/// The reels of all runs.
#[derive(Default)]
struct Reels {
    places: BTreeMap<RunId, usize>,
    reels: Vec<Reel>,
    /// The run that was appended to last, and its place: most appends go there again.
    last: Option<(RunId, usize)>,
}

impl Reels {
    fn get(&self, run: RunId) -> Option<&Reel> {
        self.places.get(&run).map(|at| &self.reels[*at])
    }

    #[inline]
    fn get_or_insert(&mut self, run: RunId) -> &mut Reel {
        let at = match self.last {
            Some((last, at)) if last == run => at,
            Some(_) | None => self.place(run),
        };
        &mut self.reels[at]
    }

    #[inline(never)]
    fn place(&mut self, run: RunId) -> usize {
        let at = *self.places.entry(run).or_insert(self.reels.len());
        if at == self.reels.len() {
            self.reels.push(Reel::default());
        }
        self.last = Some((run, at));
        at
    }
}

#[derive(Default)]
struct Reel {
    /// The events, in blocks that are filled once and never moved.
    blocks: Vec<Vec<Entry>>,
    /// How many events they are.
    len: usize,
    /// The appends, in their order.
    stamps: Vec<Stamp>,
    taken: Taken,
    /// The chain as far as somebody has asked for it.
    head: Option<Head>,
}

/// One append.
struct Stamp {
    /// Its first event.
    first: usize,
    /// When it was written.
    at_us: u64,
    /// The block of its first entry, and which of that it is.
    place: (usize, usize),
}

/// What stands at one place of a reel.
enum Entry {
    One(Event),
    Whole(Whole),
}

impl Entry {
    /// How many events it is.
    fn len(&self) -> usize {
        match self {
            Entry::One(_) => 1,
            Entry::Whole(_) => Whole::EVENTS,
        }
    }

    fn event(&self, at: usize) -> Event {
        match self {
            Entry::One(event) => event.clone(),
            Entry::Whole(whole) => whole.event(at),
        }
    }
}

/// The least and the most entries of a block; between them, each has room for twice as many as the
/// one before it.
const BLOCK_ENTRIES: (usize, usize) = (16, 4_096);

impl MemoryTape {
    /// All records of a run.
    pub fn records(&self, run: RunId) -> Vec<Record> {
        self.reels().get(run).into_iter().flat_map(|reel| reel.records(run, 0)).collect()
    }

    /// The runs that have records, in the order of their ids.
    pub fn runs(&self) -> Vec<RunId> {
        self.reels().places.keys().copied().collect()
    }

    /// The calls of a run that started and did not settle, then those of the runs that its calls
    /// started, and so on.
    pub fn in_doubt(&self, run: RunId) -> Vec<InDoubt> {
        let (mut runs, mut in_doubt) = (vec![run], Vec::new());
        let mut at = 0;
        // A run that names itself as what started it is followed once.
        while let Some(run) = runs.get(at).copied() {
            at += 1;
            let mut open = BTreeSet::new();
            for record in self.records(run) {
                match record.event {
                    Event::Started { call, .. } => drop(open.insert(call)),
                    Event::Settled(reply) => drop(open.remove(&reply.call)),
                    _ => {}
                }
            }
            in_doubt.extend(open.into_iter().map(|call| InDoubt { run, call }));
            let below = self.runs().into_iter().filter(|below| self.parent(*below) == Some(run));
            let below: Vec<RunId> = below.filter(|below| !runs.contains(below)).collect();
            runs.extend(below);
        }
        in_doubt
    }

    /// The run that started a run.
    fn parent(&self, run: RunId) -> Option<RunId> {
        match self.reels().get(run)?.blocks.first()?.first()? {
            Entry::One(Event::RunStarted { parent, .. }) => parent.as_ref().map(|it| it.run),
            Entry::One(_) | Entry::Whole(_) => None,
        }
    }

    /// The lines of a run, with their hashes.
    pub fn lines(&self, run: RunId) -> Result<Vec<Line>, TapeError> {
        let mut previous = Head::empty().hash;
        let records = self.records(run);
        let line = |record: &Record| Line::of(record, previous).inspect(|it| previous = it.hash());
        records.iter().map(line).collect()
    }

    /// The head of a run. The chain is computed here, as far as it was not before.
    pub fn head(&self, run: RunId) -> Result<Head, TapeError> {
        let mut reels = self.reels();
        let Some(at) = reels.places.get(&run).copied() else { return Ok(Head::empty()) };
        let reel = &mut reels.reels[at];
        let head = reel.head.unwrap_or_else(Head::empty);
        let new = reel.records(run, head.len);
        let head = new.into_iter().try_fold(head, |head, record| head.then(&record))?;
        reel.head = Some(head);
        Ok(head)
    }

    /// Appends all events of a call. What is refused is not made.
    #[inline]
    pub(super) fn append_whole<F: FnOnce() -> Whole>(
        &self,
        (run, after): (RunId, u64),
        at_us: u64,
        keys: [Key; 2],
        make: F,
    ) -> Result<(), F> {
        self.reels().get_or_insert(run).append_whole(after, at_us, keys, make)
    }

    #[inline]
    fn reels(&self) -> MutexGuard<'_, Reels> {
        // Each append is checked before anything is changed, and counted once it is there, so a
        // panic leaves no half of one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reel {
    fn records(&self, run: RunId, from: u64) -> impl Iterator<Item = Record> {
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(self.len);
        let mut append = self.stamps.partition_point(|it| it.first <= from).saturating_sub(1);
        let begin = self.stamps.get(append).map(|it| (it.first, it.place));
        let (mut next, (block, entry)) = begin.unwrap_or_default();
        let mut blocks = self.blocks[block..].iter();
        let rest = blocks.next().map_or(&[][..], |block| &block[entry..]);
        let events = rest.iter().chain(blocks.flatten()).flat_map(move |entry| {
            let (first, len) = (next, entry.len());
            next += len;
            (from.saturating_sub(first).min(len)..len).map(|at| entry.event(at))
        });
        (from..).zip(events).map(move |(seq, event)| {
            append += usize::from(self.stamps.get(append + 1).is_some_and(|it| it.first == seq));
            Record::new(run, seq as u64, self.stamps[append].at_us, event)
        })
    }

    fn append(&mut self, append: Append<'_>) -> Result<(), TapeError> {
        let Append { after, at_us, events, .. } = append;
        self.is_at(after)?;
        self.taken.take_all(events)?;
        if !events.is_empty() {
            let len = events.len();
            self.push((len, len), at_us, events.drain(..).map(Entry::One));
        }
        Ok(())
    }

    /// The same for all events of a call, which take these keys. What is refused is not made.
    #[inline]
    fn append_whole<F: FnOnce() -> Whole>(
        &mut self,
        after: u64,
        at_us: u64,
        keys: [Key; 2],
        make: F,
    ) -> Result<(), F> {
        if self.is_at(after).is_err() || !self.taken.take_both(keys) {
            return Err(make);
        }
        // Made where it stays.
        self.push((1, Whole::EVENTS), at_us, iter::once_with(|| Entry::Whole(make())));
        Ok(())
    }

    /// Puts so many entries, which are so many events, into one block.
    #[inline]
    fn push(
        &mut self,
        (len, events): (usize, usize),
        at_us: u64,
        entries: impl Iterator<Item = Entry>,
    ) {
        let block = self.block(len);
        let entry = block.len();
        block.extend(entries);
        let (first, place) = (self.len, (self.blocks.len() - 1, entry));
        self.stamps.push(Stamp { first, at_us, place });
        self.len += events;
    }

    fn is_at(&self, expected: u64) -> Result<(), TapeError> {
        let found = self.len as u64;
        if expected == found { Ok(()) } else { Err(TapeError::Conflict { expected, found }) }
    }

    /// The last block, or a new one if that has too little room.
    fn block(&mut self, entries: usize) -> &mut Vec<Entry> {
        let (room, last) =
            self.blocks.last().map_or((0, 0), |it| (it.capacity() - it.len(), it.capacity()));
        if room < entries {
            let (least, most) = BLOCK_ENTRIES;
            self.blocks.push(Vec::with_capacity((2 * last).clamp(least, most).max(entries)));
        }
        self.blocks.last_mut().expect("there is a last block now")
    }
}

/// The keys that are taken: calls and attempts in order, by what became of them.
///
/// Most calls start and end in the order of their numbers, so that most keys go to the end.
#[derive(Default)]
pub(super) struct Taken([Vec<(CallNo, u32)>; 3]);

impl Taken {
    /// Takes all the keys of some events, or none.
    #[inline]
    pub(super) fn take_all(&mut self, events: &[Event]) -> Result<(), TapeError> {
        for (at, event) in events.iter().enumerate() {
            if let Some(key) = event.key()
                && !self.take(key)
            {
                let earlier = events[..at].iter().filter_map(Event::key);
                earlier.for_each(|earlier| self.give_back(earlier));
                return Err(TapeError::KeyTaken { key });
            }
        }
        Ok(())
    }

    /// Takes two keys, or none; false if one was taken already.
    #[inline]
    fn take_both(&mut self, [first, second]: [Key; 2]) -> bool {
        if !self.take(first) {
            return false;
        }
        let both = self.take(second);
        if !both {
            self.give_back(first);
        }
        both
    }

    /// Takes a key; false if it was taken already.
    #[inline]
    pub(super) fn take(&mut self, key: Key) -> bool {
        let (list, key) = place(key);
        let list = &mut self.0[list];
        if list.last().is_none_or(|last| *last < key) {
            list.push(key);
            return true;
        }
        list.binary_search(&key).map_err(|at| list.insert(at, key)).is_err()
    }

    fn give_back(&mut self, key: Key) {
        let (list, key) = place(key);
        self.0[list].retain(|taken| *taken != key);
    }
}

/// The list of a key, and what stands there.
fn place(key: Key) -> (usize, (CallNo, u32)) {
    match key {
        Key::Started(call, attempt) => (0, (call, attempt)),
        Key::Settled(call) => (1, (call, 0)),
        Key::Answered(call, question) => (2, (call, question)),
    }
}

impl Tape for MemoryTape {
    fn append(&self, append: Append<'_>) -> Ack {
        Ack::Now(self.reels().get_or_insert(append.run).append(append))
    }

    fn read(
        &self,
        run: RunId,
        from: u64,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, TapeError>> {
        let reels = self.reels();
        let records = reels.get(run).into_iter().flat_map(|reel| reel.records(run, from));
        let records = records.take(most.min(READ_RECORDS_MAX)).collect();
        Box::pin(async move { Ok(records) })
    }
}
