//! Watching a run while it goes on.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, Weak};

use tokio::sync::Notify;

use super::{Event, Recalled, Record};
use crate::id::RunId;
use crate::sync::{Mutex, MutexGuard};

/// The records of progress and named events that wait for a subscriber, unless it says otherwise.
pub const BACKLOG_PROGRESS_DEFAULT: usize = 256;
/// The other records that wait for a subscriber, unless it says otherwise.
pub const BACKLOG_RECORDS_DEFAULT: usize = 4_096;
/// The bytes of all records that wait for a subscriber, unless it says otherwise.
pub const BACKLOG_BYTES_DEFAULT: usize = 64 << 20;

/// How far a subscriber may fall behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backlog {
    /// Records of progress and of named events. Beyond them the oldest are dropped and counted.
    pub progress: usize,
    /// All other records. Beyond them the subscription ends.
    pub records: usize,
    /// Bytes of all records, by what they carry; one record alone may be larger. Progress makes
    /// room first.
    pub bytes: usize,
}

impl Default for Backlog {
    fn default() -> Backlog {
        Backlog {
            progress: BACKLOG_PROGRESS_DEFAULT,
            records: BACKLOG_RECORDS_DEFAULT,
            bytes: BACKLOG_BYTES_DEFAULT,
        }
    }
}

/// What a subscriber sees.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Seen {
    /// What happened next. Places only ever grow; those that are left out were missed.
    Record(Record),
    /// So many records of progress or named events were dropped, because the subscriber was slow.
    Missed {
        /// How many.
        progress: u64,
    },
    /// The subscriber was so slow that more had to be dropped. It sees nothing after this; the
    /// tape has everything.
    Lagged {
        /// The place from which to read the tape.
        from: u64,
    },
}

/// Watches one run. It never blocks the run; dropping it ends it.
///
/// It sees each record that the tape accepted, in the order of the tape: all of them but for
/// progress and named events, of which a slow subscriber loses the oldest and learns how many. The
/// runs that the run's tools start have records, and subscriptions, of their own.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use tooltape::{Backlog, Event, Proposal, Run, Seen, Toolbox, builtin};
///
/// let run = Run::new(&Toolbox::new(builtin::tools()).unwrap());
/// let mut seen = run.subscribe(Backlog::default());
/// run.batch(vec![Proposal::new("c1", "hash", r#"{"text":""}"#)]).await.unwrap();
/// drop(run);
/// let mut places = Vec::new();
/// while let Some(Seen::Record(record)) = seen.next().await {
///     places.push(record.seq);
/// }
/// assert_eq!(places, [0, 1, 2, 3, 4]);
/// # });
/// ```
pub struct Subscription(Arc<Feed>);

impl Subscription {
    /// What happened next; `None` once the run is gone and everything was seen.
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Seen> {
        loop {
            {
                let mut queue = self.0.queue();
                if let Some(seen) = queue.pop() {
                    return Some(seen);
                }
                if queue.end.is_some() {
                    return None;
                }
            }
            self.0.ready.notified().await;
        }
    }
}

/// Those who watch one run.
#[derive(Default)]
pub(super) struct Subscribers(Vec<Weak<Feed>>);

impl Subscribers {
    pub(super) fn add(&mut self, backlog: Backlog) -> Subscription {
        let feed = Arc::new(Feed { queue: Mutex::new(Queue::new(backlog)), ready: Notify::new() });
        self.0.push(Arc::downgrade(&feed));
        Subscription(feed)
    }

    /// Whether nobody watches.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Shows everybody what the tape took.
    pub(super) fn show(&mut self, run: RunId, after: u64, at_us: u64, events: Vec<Event>) {
        let records = (after..).zip(events);
        for record in records.map(|(seq, event)| Record::new(run, seq, at_us, event)) {
            self.0.retain(|feed| feed.upgrade().is_some_and(|feed| feed.show(&record)));
        }
    }
}

impl Drop for Subscribers {
    fn drop(&mut self) {
        self.0.iter().filter_map(Weak::upgrade).for_each(|feed| feed.close());
    }
}

/// What one subscriber has still to see.
struct Feed {
    queue: Mutex<Queue>,
    ready: Notify,
}

impl Feed {
    /// Puts a record in line, and says whether there is room for more.
    fn show(&self, record: &Record) -> bool {
        let mut queue = self.queue();
        queue.push(record);
        let is_open = queue.end.is_none();
        drop(queue);
        self.ready.notify_one();
        is_open
    }

    fn close(&self) {
        self.queue().end.get_or_insert(End::Over);
        self.ready.notify_one();
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why nothing more comes.
enum End {
    Over,
    Lagged { from: u64 },
}

struct Queue {
    backlog: Backlog,
    /// Records that may be dropped, with their weights.
    passing: VecDeque<(Record, usize)>,
    /// Records that may not.
    lasting: VecDeque<(Record, usize)>,
    bytes: usize,
    missed: u64,
    end: Option<End>,
}

impl Queue {
    fn new(backlog: Backlog) -> Queue {
        let (passing, lasting) = (VecDeque::new(), VecDeque::new());
        Queue { backlog, passing, lasting, bytes: 0, missed: 0, end: None }
    }

    fn push(&mut self, record: &Record) {
        let weight = weight(&record.event);
        let passes = matches!(record.event, Event::Progress { .. } | Event::Emitted { .. });
        let passing = self.passing.len() + usize::from(passes);
        let crowded = passing.saturating_sub(self.backlog.progress);
        (0..crowded.min(self.passing.len())).for_each(|_| self.drop_progress());
        while self.bytes + weight > self.backlog.bytes && !self.passing.is_empty() {
            self.drop_progress();
        }
        let is_first = self.bytes == 0;
        let fits = is_first || self.bytes + weight <= self.backlog.bytes;
        match passes {
            true if fits && self.backlog.progress > 0 => {
                self.passing.push_back((record.clone(), weight));
            }
            true => {
                self.missed += 1;
                return;
            }
            false if fits && self.lasting.len() < self.backlog.records => {
                self.lasting.push_back((record.clone(), weight));
            }
            false => {
                self.end = Some(End::Lagged { from: record.seq });
                return;
            }
        }
        self.bytes += weight;
    }

    fn drop_progress(&mut self) {
        if let Some((_, weight)) = self.passing.pop_front() {
            self.bytes -= weight;
            self.missed += 1;
        }
    }

    fn pop(&mut self) -> Option<Seen> {
        if self.missed > 0 {
            return Some(Seen::Missed { progress: std::mem::take(&mut self.missed) });
        }
        let first = |queue: &VecDeque<(Record, usize)>| queue.front().map(|(record, _)| record.seq);
        let next = match (first(&self.passing), first(&self.lasting)) {
            (Some(passing), Some(lasting)) if passing > lasting => self.lasting.pop_front(),
            (Some(_), _) => self.passing.pop_front(),
            (None, _) => self.lasting.pop_front(),
        };
        if let Some((record, weight)) = next {
            self.bytes -= weight;
            return Some(Seen::Record(record));
        }
        let Some(End::Lagged { from }) = self.end else { return None };
        self.end = Some(End::Over);
        Some(Seen::Lagged { from })
    }
}

/// About how many bytes of memory a record holds on to.
fn weight(event: &Event) -> usize {
    let carried = match event {
        Event::Asked { text } | Event::Said { text } => text.len(),
        Event::Turn(turn) => {
            let proposals = turn.proposals.iter().map(|it| it.name.len() + it.arguments.len());
            turn.text.as_ref().map_or(0, |text| text.len()) + proposals.sum::<usize>()
        }
        Event::Proposed(facts) => facts.name.len() + facts.arguments.len(),
        Event::Judged { facts, .. } => facts.args.as_ref().map_or(0, |args| args.as_str().len()),
        Event::Progress { text, .. } => text.len(),
        Event::Emitted { value, .. } | Event::State { value, .. } => value.as_str().len(),
        Event::Settled(reply) => {
            let value = reply.value.as_ref().map_or(0, |value| value.as_str().len());
            usize::try_from(reply.bytes()).unwrap_or(usize::MAX).saturating_add(value)
        }
        Event::RunEnded { answer, .. } => answer.as_ref().map_or(0, |answer| answer.len()),
        Event::Stored { key, value, .. } => {
            key.len() + value.as_ref().map_or(0, |value| value.as_str().len())
        }
        Event::RunPaused { why } => why.len(),
        Event::Nudged(nudge) => nudge.text.len(),
        Event::Recalled { messages } => messages.iter().map(Recalled::bytes).sum(),
        Event::RunStarted { .. }
        | Event::RunResumed { .. }
        | Event::Reconciled { .. }
        | Event::Tools { .. }
        | Event::CallAsked(_)
        | Event::Answered { .. }
        | Event::Started { .. }
        | Event::Retried { .. }
        | Event::Abandoned { .. } => 0,
    };
    size_of::<Record>().saturating_add(carried)
}
