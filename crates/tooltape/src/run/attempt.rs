//! From permit to output: attempts one after the other, each with its seats and its deadlines.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;

use super::inside::within;
use super::pools::{Seats, Wants};
use super::scope::Left;
use super::trail::{Trail, Wait};
use super::{LiveRun, Run, RunLimits, Scope, cancelled};
use crate::call::Call;
use crate::fault::{BoundKind, Executed, Fault, ToolError, ToolErrorKind, panic_text};
use crate::grant::{Cancel, Grants, Leash, Life, Need};
use crate::perform::{Attempt, Passage, Span, Stage, Start, Started};
use crate::policy::Permit;
use crate::spec::{Bound, Determinism, Repeat, Spec};
use crate::sync::Mutex;
use crate::tape::Event;
use crate::tool::Output;

impl Run {
    /// Makes attempts until one succeeds, or none may follow.
    pub(super) async fn perform(
        &self,
        permit: &mut Permit,
        trail: &mut Trail<'_>,
    ) -> Result<Output, Fault> {
        let (mut attempt, mut known) = (1, Executed::NotExecuted);
        loop {
            trail.wait.passage.begin(known);
            let fault = match self.attempt(permit, attempt, trail).await {
                Ok(output) => return Ok(output),
                Err(fault) => fault,
            };
            let redactor = &self.live().finishing.redactor;
            trail.span.failed(&redactor.redact(fault.code()));
            let call = permit.call();
            let Some(pause) = self.pause_after(&fault, attempt, call) else {
                // What an earlier attempt did stays done.
                return Err(fault.after(known));
            };
            if fault.executed() != Executed::NotExecuted {
                known = fault.executed();
            }
            trail.span = Span::none();
            trail.wait.passage.leave(known);
            let life = trail.wait.begin(call);
            if let Err(stopped) = self.until(&trail.wait, tokio::time::sleep(pause)).await {
                return Err(stopped.fault(known));
            }
            // Two attempts at one call never work at the same time.
            if life.is_working() {
                return Err(fault.after(known));
            }
            trail.events.push(Event::retried(call.no(), attempt, &fault, pause, redactor));
            attempt += 1;
        }
    }

    /// How long to wait before the next attempt, if there may be one.
    fn pause_after(&self, fault: &Fault, attempt: u32, call: &Call) -> Option<Duration> {
        let spec = call.spec();
        if attempt >= spec.retry.attempts || !may_repeat(fault, spec.effects.repeat) {
            return None;
        }
        let most = Duration::from_millis(spec.retry.pause_ms_max);
        let doubled = 1u32.checked_shl(attempt - 1).unwrap_or(u32::MAX);
        let pause = Duration::from_millis(spec.retry.pause_ms).saturating_mul(doubled).min(most);
        // Between a half and the whole, so that those who failed together do not return together.
        let stream = self.setup.random.nth(call.no().0).nth(u64::from(attempt));
        let share = (stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let pause = pause.mul_f64(0.5 + share / 2.0);
        match fault.said().map(ToolError::kind) {
            // A tool that wants more time than it declared gets no more attempts.
            Some(ToolErrorKind::RetryAfter(wait)) => (wait <= most).then(|| wait.max(pause)),
            Some(_) | None => Some(pause),
        }
    }

    async fn attempt(
        &self,
        permit: &mut Permit,
        no: u32,
        trail: &mut Trail<'_>,
    ) -> Result<Output, Fault> {
        let mut seats = self.seats(permit.call(), trail).await?;
        // Whoever waited for a seat may have been cancelled or run out of time meanwhile.
        let (unix_us, mut now_us) = self.may_start(permit.call(), trail.wait.scope)?;
        let LiveRun { grants, context, recorder, finishing, .. } = self.live();
        let bounded = permit.call().spec().effects.determinism == Determinism::Bounded;
        let frozen_unix_us = bounded.then_some(unix_us);
        let Trail { events, started_us, span, wait, .. } = trail;
        let start = Start { no, now_us: unix_us, clock_us: frozen_unix_us, passage: &wait.passage };
        let attempt = match Attempt::start(permit, start, recorder, events)? {
            Started::Now(attempt) => attempt,
            Started::Later(starting) => {
                wait.begin(starting.call());
                let attempt = self.until(wait, starting.durable()).await;
                let attempt = attempt.map_err(|it| it.fault(Executed::NotExecuted))??;
                // The disk took its time, which is not the tool's.
                (_, now_us) = self.may_start(attempt.call(), wait.scope)?;
                attempt
            }
        };
        *started_us = Some(unix_us);
        let call = attempt.call();
        let grants = Grants {
            map: grants,
            run: context,
            call: call.no(),
            attempt: no,
            id: call.id(),
            args_hash: call.args_hash(),
            frozen_unix_us,
            cancel: wait.scope.token(),
            life: &wait.life,
            leash: Leash::default(),
            lease: Mutex::new(seats.lease.take()),
        };
        // The performer is called inside, so that a panic before its first await is caught too.
        let (stages, performer) = (&self.setup.stages, &self.setup.performer);
        let performing = async { stages.perform(performer, attempt, &grants).await };
        *span = self.setup.spans.of(context.run, call, no, &finishing.redactor);
        let performing = span.around(AssertUnwindSafe(performing).catch_unwind());
        let performing = within(self, performing);
        let performed = self.bounded(performing, call, now_us, wait).await?;
        performed.map_err(|panic| panicked(panic, &wait.passage))?.map_err(failed)
    }

    /// Whether the call may start now, and when that is: since the Unix epoch, and on the clock by
    /// which deadlines run.
    pub(super) fn may_start(&self, call: &Call, scope: &Scope<'_>) -> Result<(u64, u64), Fault> {
        if scope.is_over() || self.halts.is_cancelled(call.no()) {
            return Err(cancelled(Executed::NotExecuted));
        }
        let unix_us = self.setup.clock.unix_us();
        let now_us = self.setup.clock.steady_us(unix_us);
        let left = scope.left(now_us);
        match left.is_over() {
            true => Err(Fault::Exceeded(left.exceeded(Executed::NotExecuted))),
            false => Ok((unix_us, now_us)),
        }
    }

    /// Takes the call's seats, waiting if it must.
    async fn seats(&self, call: &Call, trail: &Trail<'_>) -> Result<Seats<'_>, Fault> {
        let (spec, live) = (call.spec(), self.live());
        let (recursive, promoted) = (spec.is_recursive(), call.registered().is_promoted());
        let wants = Wants {
            of_tool: match spec.bounds.concurrency {
                Bound::At(most) => Some((call.tool().name(), most)),
                Bound::Default | Bound::Unlimited => None,
            },
            mutation: recursive || promoted,
            thread: spec.blocking,
            writes_anything: trail.writes_anything && !recursive && !promoted,
        };
        if let Some(seats) = live.pools.try_take(&self.setup.tree, &wants) {
            return Ok(seats);
        }
        trail.wait.begin(call);
        let taking = live.pools.take(&self.setup.tree, &wants);
        let taken = self.until(&trail.wait, taking).await;
        taken.map_err(|stopped| stopped.fault(Executed::NotExecuted))
    }

    /// Waits for a future while no tool runs: until the call is cancelled or out of time.
    async fn until<T>(
        &self,
        wait: &Wait<'_>,
        future: impl Future<Output = T>,
    ) -> Result<T, Stopped> {
        let mut future = pin!(future);
        let life = wait.life.get().expect("a call that waits has a life");
        loop {
            let left = wait.scope.left(self.setup.clock.now_us());
            if left.is_over() {
                return Err(Stopped::Late(left));
            }
            tokio::select! {
                biased;
                done = future.as_mut() => return Ok(done),
                () = life.cancel().cancelled() => return Err(Stopped::Cancelled),
                () = wait.scope.closed() => return Err(Stopped::Cancelled),
                () = tokio::time::sleep(left.time) => {}
            }
        }
    }

    /// Waits for a tool until it is done, out of time, or cancelled.
    ///
    /// What is ready at once costs no timer, and a finished result beats a late cancel.
    async fn bounded<T>(
        &self,
        future: impl Future<Output = T>,
        call: &Call,
        started_us: u64,
        wait: &Wait<'_>,
    ) -> Result<T, Fault> {
        let mut future = pin!(future);
        if let Poll::Ready(ready) = futures_util::poll!(future.as_mut()) {
            return Ok(ready);
        }
        let (life, passage) = (wait.begin(call), &wait.passage);
        let asked_us = life.asked().total_us(started_us);
        let mut clocks = Clocks { started_us, ran_us: None, heard_us: started_us, asked_us };
        if !passage.is_held() {
            clocks.ran_us = Some(started_us);
        }
        loop {
            let now_us = self.setup.clock.now_us();
            clocks.tick(now_us, life, passage);
            let asked_us = life.asked().total_us(now_us).saturating_sub(clocks.asked_us);
            let left = clocks.left(now_us, asked_us, call.spec(), &self.setup.limits);
            let left = wait.scope.left(now_us).or(left);
            if left.is_over() {
                return Err(Fault::Exceeded(left.exceeded(passage.executed())));
            }
            tokio::select! {
                biased;
                done = future.as_mut() => return Ok(done),
                () = life.cancel().cancelled() => {
                    let stopped = match passage.is_held() {
                        true => None,
                        false => self.last_words(future, call.spec(), left).await,
                    };
                    return stopped.ok_or_else(|| cancelled(passage.executed()));
                }
                () = passage.opened(), if clocks.ran_us.is_none() => {}
                () = tokio::time::sleep(left.time) => {}
            }
        }
    }

    /// Lets a tool that can hear it was cancelled say how far it came.
    async fn last_words<T>(
        &self,
        future: Pin<&mut impl Future<Output = T>>,
        spec: &Spec,
        left: Left,
    ) -> Option<T> {
        let hears = spec.needs.contains(&Need::of::<Cancel>()) || spec.is_recursive();
        let grace = self.setup.limits.cancel_grace.min(left.time);
        match hears {
            true => tokio::time::timeout(grace, future).await.ok(),
            false => None,
        }
    }
}

/// The clocks of an attempt: since when it waits in its layers, runs, and is silent.
struct Clocks {
    started_us: u64,
    ran_us: Option<u64>,
    heard_us: u64,
    /// How long its children had asked somebody when it started.
    asked_us: u64,
}

impl Clocks {
    fn tick(&mut self, now_us: u64, life: &Life, passage: &Passage) {
        if self.ran_us.is_none() && !passage.is_held() {
            (self.ran_us, self.heard_us) = (Some(now_us), now_us);
        }
        self.heard_us = self.heard_us.max(life.heard_us());
    }

    /// The next deadline, if there is one, after children asked somebody for so long.
    fn left(&self, now_us: u64, asked_us: u64, spec: &Spec, limits: &RunLimits) -> Option<Left> {
        let Some(ran_us) = self.ran_us else {
            return Some(Left::new(BoundKind::Queue, limits.queue, now_us, self.started_us));
        };
        let wall = spec.bounds.wall.or(limits.wall);
        let wall = wall.map(|wall| Left::new(BoundKind::Wall, wall, now_us, ran_us + asked_us));
        let idle = spec.bounds.idle.or(limits.idle);
        let idle =
            idle.map(|idle| Left::new(BoundKind::Idle, idle, now_us, self.heard_us + asked_us));
        match wall {
            Some(wall) => Some(wall.or(idle)),
            None => idle,
        }
    }
}

/// Why a call that waited does not go on.
enum Stopped {
    Cancelled,
    Late(Left),
}

impl Stopped {
    fn fault(self, executed: Executed) -> Fault {
        match self {
            Stopped::Cancelled => cancelled(executed),
            Stopped::Late(left) => Fault::Exceeded(left.exceeded(executed)),
        }
    }
}

/// Whether an attempt that ended so may be followed by another.
fn may_repeat(fault: &Fault, repeat: Repeat) -> bool {
    let harmless = match repeat {
        Repeat::Idempotent | Repeat::Keyed => true,
        Repeat::Once => fault.executed() == Executed::NotExecuted,
    };
    match fault {
        Fault::Failed(err) => match err.kind() {
            ToolErrorKind::Failed | ToolErrorKind::RetryAfter(_) | ToolErrorKind::NotDone => {
                harmless
            }
            ToolErrorKind::InDoubt
            | ToolErrorKind::Cancelled
            | ToolErrorKind::UserMustAct
            | ToolErrorKind::Fatal
            | ToolErrorKind::Exceeded(_) => false,
        },
        Fault::InDoubt(_) => harmless,
        Fault::Exceeded(exceeded) => match exceeded.bound {
            BoundKind::Wall | BoundKind::Idle => harmless,
            BoundKind::Queue
            | BoundKind::BatchWall
            | BoundKind::RunWall
            | BoundKind::Memory
            | BoundKind::Fuel
            | BoundKind::OutputBytes
            | BoundKind::Attempts
            | BoundKind::BatchCalls
            | BoundKind::RunCalls
            | BoundKind::ToolCalls
            | BoundKind::RunBytes
            | BoundKind::Depth => false,
        },
        Fault::Repair(_) | Fault::Denied(_) | Fault::Cancelled { .. } | Fault::Bug { .. } => false,
    }
}

fn failed(err: ToolError) -> Fault {
    match err.kind() {
        ToolErrorKind::InDoubt => Fault::InDoubt(err),
        ToolErrorKind::Cancelled => Fault::Cancelled { executed: err.executed(), said: Some(err) },
        ToolErrorKind::Exceeded(exceeded) => Fault::Exceeded(exceeded),
        ToolErrorKind::Failed
        | ToolErrorKind::RetryAfter(_)
        | ToolErrorKind::NotDone
        | ToolErrorKind::UserMustAct
        | ToolErrorKind::Fatal => Fault::Failed(err),
    }
}

/// A panic may strike anywhere, so what happened is what the attempt's way tells. The text of the
/// panic is for the host alone.
#[cold]
fn panicked(panic: Box<dyn Any + Send>, passage: &Passage) -> Fault {
    let why = format!("panic: {}", panic_text(panic));
    let in_layer = |err: ToolError| err.code("layer.panicked").because(why.clone());
    match passage.stage() {
        Stage::Outside | Stage::Held | Stage::Back(Executed::NotExecuted) => {
            Fault::Failed(in_layer(ToolError::not_done("a layer panicked")))
        }
        Stage::Back(Executed::Executed) => {
            Fault::Failed(in_layer(ToolError::tell("executed, but the result was lost")))
        }
        Stage::Back(Executed::Unknown) => {
            Fault::InDoubt(in_layer(ToolError::in_doubt("a layer panicked")))
        }
        Stage::Inside => {
            let err = ToolError::in_doubt("the tool panicked").code("tool.panicked");
            Fault::InDoubt(err.because(why))
        }
    }
}
