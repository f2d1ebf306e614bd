//! Writes to a tape, and keeps account of what it was told is durable.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use tempfile::TempDir;
use tooltape::{
    Ack, Append, CallNo, Erase, Event, Head, Line, MemoryTape, Proposal, Record, Run, RunId,
    RunStatus, RunsQuery, SqliteTape, Tape, TapeError, Toolbox, builtin,
};
use tooltape_faults::{Disk, NAME, watch};

/// Room that is kept for each call: little, since the tapes are small.
const RESERVE: u64 = 4096;

/// What was done with a run, and when it was durable.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    /// What each record says, and how much was asked of the disk when it was acknowledged.
    pub(crate) records: Vec<(String, Option<usize>)>,
    /// When it was to be erased, and when it was.
    pub(crate) erased: Option<(usize, Option<usize>)>,
}

/// What is found of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Records(Vec<String>),
    Erased,
}

/// A tape, its disk, and the account.
pub(crate) struct Stage {
    pub(crate) folder: TempDir,
    pub(crate) disk: Arc<Disk>,
    pub(crate) tape: Option<SqliteTape>,
    pub(crate) accounts: BTreeMap<RunId, Account>,
    pages: u64,
    /// Whether to go on when the tape refuses.
    pub(crate) is_strict: bool,
    /// Whether the tape need not be durable.
    pub(crate) is_lax: bool,
}

pub(crate) fn run_no(no: u8) -> RunId {
    RunId::new(u64::from(no), [no; 10])
}

/// A folder in memory, where there is one.
pub(crate) fn scratch() -> TempDir {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() }.unwrap()
}

impl Stage {
    pub(crate) fn new(pages: u64) -> Stage {
        let folder = scratch();
        let disk = watch(folder.path());
        let accounts = BTreeMap::new();
        Stage { folder, disk, tape: None, accounts, pages, is_strict: true, is_lax: false }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("tape.db")
    }

    pub(crate) fn open(&mut self) {
        self.tape = None;
        let options = SqliteTape::options().vfs(NAME).reserve_per_call(RESERVE);
        let options = if self.is_lax { options.not_durable() } else { options };
        let opened = options.checkpoint_after(self.pages).open(self.path());
        assert!(!self.is_strict || opened.is_ok(), "{:?}", opened.err());
        self.tape = opened.ok();
    }

    /// Appends, and gives what waits for the acknowledgement.
    fn accept(&mut self, no: u8, mut events: Vec<Event>) -> Option<Pending> {
        let tape = self.tape.as_ref()?;
        let run = run_no(no);
        let account = self.accounts.entry(run).or_default();
        let first = account.records.len();
        let said: Vec<_> = events.iter().map(|event| (text(event), None)).collect();
        let ack = tape.append(Append::new(run, first as u64, 7, &mut events));
        match ack {
            Ack::Now(Err(err)) => {
                assert!(!self.is_strict, "{err}");
                None
            }
            ack => {
                account.records.extend(said);
                let stamp = Stamp::new(&self.disk);
                let mut future = Box::pin(ack.durable());
                let first_poll = stamp.poll(future.as_mut());
                let range = first..self.accounts[&run].records.len();
                Some(Pending { run, range, stamp, future, first_poll })
            }
        }
    }

    /// Waits, and notes when it was durable.
    fn settle(&mut self, pending: Option<Pending>) {
        let Some(mut pending) = pending else { return };
        let (done, at) = pending.wait();
        assert!(!self.is_strict || done.is_ok(), "{done:?}");
        if done.is_ok() {
            let account = self.accounts.get_mut(&pending.run).unwrap();
            for record in &mut account.records[pending.range] {
                record.1 = Some(at);
            }
        }
    }

    /// Appends and waits.
    pub(crate) fn append(&mut self, no: u8, events: Vec<Event>) {
        let pending = self.accept(no, events);
        self.settle(pending);
    }

    /// Says something of so many bytes, so many times, each time waiting.
    pub(crate) fn say(&mut self, no: u8, times: usize, bytes: usize) {
        for _ in 0..times {
            let event = self.said(no, bytes);
            self.append(no, vec![event]);
        }
    }

    fn said(&self, no: u8, bytes: usize) -> Event {
        let seq = self.accounts.get(&run_no(no)).map_or(0, |account| account.records.len());
        Event::Asked { text: format!("{no}/{seq} {}", "x".repeat(bytes)).into() }
    }

    /// Says something to many runs without waiting, then waits for all.
    pub(crate) fn burst(&mut self, runs: std::ops::Range<u8>, times: usize, bytes: usize) {
        let mut pending = Vec::new();
        for _ in 0..times {
            for no in runs.clone() {
                let event = self.said(no, bytes);
                pending.push(self.accept(no, vec![event]));
            }
        }
        pending.into_iter().for_each(|pending| self.settle(pending));
    }

    pub(crate) fn start(&mut self, no: u8, call: u64) {
        self.append(no, vec![started(call)]);
    }

    /// Starts a call and settles it.
    pub(crate) fn call(&mut self, no: u8, call: u64) {
        self.start(no, call);
        self.append(no, vec![settled(call)]);
    }

    pub(crate) fn end(&mut self, no: u8) {
        let ended = Event::RunEnded { status: "ended", stop: "done".into(), answer: None };
        self.append(no, vec![ended]);
    }

    pub(crate) fn erase(&mut self, no: u8, what: Erase) {
        let Some(tape) = &self.tape else { return };
        let account = self.accounts.entry(run_no(no)).or_default();
        account.erased = Some((self.disk.asked(), None));
        let erased = tape.erase(run_no(no), what);
        assert!(!self.is_strict || erased.is_ok(), "{erased:?}");
        if erased.is_ok() {
            account.erased = account.erased.map(|(from, _)| (from, Some(self.disk.asked())));
        }
    }

    /// Takes in a run of so many records that was written elsewhere.
    pub(crate) fn import(&mut self, no: u8, len: u64) {
        let Some(tape) = &self.tape else { return };
        let run = run_no(no);
        let mut head = Head::empty().hash;
        let mut lines = Vec::new();
        let account = self.accounts.entry(run).or_default();
        for seq in 0..len {
            let event = Event::Asked { text: format!("{no}/{seq} imported").into() };
            account.records.push((text(&event), None));
            let line = Line::of(&Record::new(run, seq, 7, event), head).unwrap();
            head = line.hash();
            lines.push(line);
        }
        let imported = tape.import(lines);
        assert!(!self.is_strict || imported.is_ok(), "{imported:?}");
        if imported.is_ok() {
            let at = self.disk.asked();
            account.records.iter_mut().for_each(|record| record.1 = Some(at));
        }
    }

    /// Reads a run while others may be written.
    pub(crate) fn read(&mut self, no: u8) {
        if let Some(tape) = &self.tape {
            let lines = tape.lines(run_no(no), 0, 1000);
            assert!(!self.is_strict || lines.is_ok(), "{lines:?}");
        }
    }
}

/// Opens a tape without faults, checks it whole, and says what is there.
pub(crate) fn examine(folder: &Path) -> Result<BTreeMap<RunId, Found>, String> {
    look(folder).map_err(|err| err.to_string())?
}

fn look(folder: &Path) -> Result<Result<BTreeMap<RunId, Found>, String>, TapeError> {
    let options = SqliteTape::options().reserve_per_call(RESERVE);
    let tape = options.open(folder.join("tape.db"))?;
    let mut found = BTreeMap::new();
    for summary in tape.runs(&RunsQuery::all())? {
        if summary.status == RunStatus::Erased {
            found.insert(summary.id, Found::Erased);
            continue;
        }
        let lines = tape.lines(summary.id, 0, 10_000)?;
        let last = lines.last().map_or_else(|| Head::empty().hash, Line::hash);
        if (lines.len() as u64, last) != (summary.len, summary.head) || lines.is_empty() {
            return Ok(Err(format!("the summary is not that of the lines: {summary:?}")));
        }
        let records = lines.iter().map(Line::record).collect::<Result<Vec<_>, _>>()?;
        let count = |pick: fn(&Event) -> bool| records.iter().filter(|it| pick(&it.event)).count();
        let started = count(|event| matches!(event, Event::Started { .. }));
        let settled = count(|event| matches!(event, Event::Settled(_)));
        if summary.in_doubt != (started - settled) as u64 {
            return Ok(Err(format!("{started} started, {settled} settled: {summary:?}")));
        }
        let said = records.iter().map(|record| text(&record.event)).collect();
        found.insert(summary.id, Found::Records(said));
    }
    Ok(Ok(found))
}

/// Checks that nothing is lost that was acknowledged when this much had been asked of the disk.
pub(crate) fn check(
    accounts: &BTreeMap<RunId, Account>,
    found: &BTreeMap<RunId, Found>,
    asked: usize,
) -> Result<(), String> {
    for (run, account) in accounts {
        let is_acked = |at: &Option<usize>| at.is_some_and(|at| at <= asked);
        let acked = account.records.iter().take_while(|(_, at)| is_acked(at)).count();
        let (erasing, erased) = match account.erased {
            Some((from, done)) => (from <= asked, is_acked(&done)),
            None => (false, false),
        };
        match found.get(run) {
            Some(Found::Erased) if erasing => {}
            Some(Found::Erased) => return Err(format!("{run} was erased by nobody")),
            _ if erased => return Err(format!("{run} came back after it was erased")),
            None if acked > 0 => return Err(format!("{run} is gone, {acked} were acknowledged")),
            None => {}
            Some(Found::Records(said)) => {
                if said.len() < acked {
                    return Err(format!("{run} has {}, {acked} were acknowledged", said.len()));
                }
                let expected = account.records.iter().map(|(said, _)| said);
                if said.len() > account.records.len() || !said.iter().eq(expected.take(said.len()))
                {
                    return Err(format!("{run} has what nobody wrote"));
                }
            }
        }
    }
    Ok(())
}

fn text(event: &Event) -> String {
    match event {
        Event::Asked { text } => text.chars().take(32).collect(),
        other => format!("{} {:?}", other.kind(), other.call()),
    }
}

/// Appends and waits, where nobody counts what is asked of the disk.
pub(crate) fn append(
    tape: &SqliteTape,
    no: u8,
    after: u64,
    mut events: Vec<Event>,
) -> Result<(), TapeError> {
    let ack = tape.append(Append::new(run_no(no), after, 7, &mut events));
    let stamp = Stamp::new(&Arc::default());
    let mut future = Box::pin(ack.durable());
    let first_poll = stamp.poll(future.as_mut());
    Pending { run: run_no(no), range: 0..0, stamp, future, first_poll }.wait().0
}

pub(crate) fn started(call: u64) -> Event {
    Event::Started { call: CallNo(call), attempt: 1, clock_us: None }
}

pub(crate) fn said(bytes: usize) -> Event {
    Event::Asked { text: "x".repeat(bytes).into() }
}

/// The end of a call as a run records it.
pub(crate) fn settled(call: u64) -> Event {
    static BODY: OnceLock<String> = OnceLock::new();
    let body = BODY.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let tape = MemoryTape::default();
        let toolbox = Toolbox::new(builtin::tools()).unwrap();
        let run = Run::new(&toolbox).tape(tape.clone());
        let batch = run.batch(vec![Proposal::new("c1", "hash", r#"{"text":"a"}"#)]);
        drop(runtime.block_on(batch).unwrap());
        let records = tape.records(run.id());
        let settled = records.iter().find(|it| matches!(it.event, Event::Settled(_))).unwrap();
        Line::of(settled, Head::empty().hash).unwrap().body().to_owned()
    });
    let body = body.replace(r#""call":1,"#, &format!(r#""call":{call},"#));
    Record::read(&body).unwrap().event
}

type Durable = std::pin::Pin<Box<dyn Future<Output = Result<(), TapeError>>>>;

/// An append that was accepted.
struct Pending {
    run: RunId,
    range: std::ops::Range<usize>,
    stamp: Arc<Stamp>,
    future: Durable,
    first_poll: Poll<Result<(), TapeError>>,
}

impl Pending {
    /// Waits, and says how much had been asked of the disk when the acknowledgement came.
    fn wait(&mut self) -> (Result<(), TapeError>, usize) {
        let mut poll = self.first_poll.clone();
        loop {
            if poll.is_pending() {
                poll = self.stamp.poll(self.future.as_mut());
            }
            if let Poll::Ready(done) = poll {
                let at = self.stamp.at.lock().unwrap().unwrap_or_else(|| self.stamp.disk.asked());
                return (done, at);
            }
            std::thread::park();
        }
    }
}

/// Notes when it is woken, on the thread that wakes it.
struct Stamp {
    disk: Arc<Disk>,
    at: Mutex<Option<usize>>,
    waiting: Thread,
}

impl Stamp {
    fn new(disk: &Arc<Disk>) -> Arc<Stamp> {
        let (disk, waiting) = (disk.clone(), std::thread::current());
        Arc::new(Stamp { disk, at: Mutex::new(None), waiting })
    }

    fn poll<F: Future + ?Sized>(
        self: &Arc<Stamp>,
        future: std::pin::Pin<&mut F>,
    ) -> Poll<F::Output> {
        let waker = Waker::from(self.clone());
        pin!(future).as_mut().poll(&mut Context::from_waker(&waker))
    }
}

impl Wake for Stamp {
    fn wake(self: Arc<Stamp>) {
        let at = self.disk.asked();
        self.at.lock().unwrap().get_or_insert(at);
        self.waiting.unpark();
    }
}
