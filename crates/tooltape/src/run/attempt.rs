//! From permit to output: attempts one after the other, each with its seats and its deadlines.

use std::any::Any;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::inside::Performing;
use super::pools::{Seats, Wants};
use super::scope::Left;
use super::trail::{Start, Trail, Wait};
use super::{LiveRun, Run, RunLimits, Scope, cancelled};
use crate::call::Call;
use crate::fault::{BoundKind, Executed, Fault, ToolError, ToolErrorKind, panic_text};
use crate::grant::{Cancel, Grants, Leash, Life, Need, Token};
use crate::perform::{Attempt, Passage, Perform as _, Span, Stage, Started, unrecorded};
use crate::policy::Permit;
use crate::spec::{Access, Bound, Determinism, Repeat, Spec};
use crate::sync::{Mutex, OnceLock};
use crate::tape::Event;

impl Run {
    /// Makes attempts until one succeeds and leaves its output, or none may follow.
    #[inline]
    pub(super) fn perform(
        &self,
        permit: &mut Permit,
        trail: &mut Trail<'_>,
    ) -> impl Future<Output = Result<(), Box<Fault>>> {
        self.perform_from(permit, trail, 1, Executed::NotExecuted)
    }

    /// The same from this attempt on, after others that did this much.
    #[inline]
    pub(super) fn perform_from(
        &self,
        permit: &mut Permit,
        trail: &mut Trail<'_>,
        attempt: u32,
        known: Executed,
    ) -> impl Future<Output = Result<(), Box<Fault>>> {
        trail.wait.passage.begin(known);
        async move {
            match self.attempt(permit, attempt, trail).await {
                Ok(()) => Ok(()),
                // Boxed, because most calls never come here.
                Err(fault) => Box::pin(self.retry(permit, trail, (attempt, known), *fault)).await,
            }
        }
    }

    /// Makes another attempt as long as one may follow.
    async fn retry(
        &self,
        permit: &mut Permit,
        trail: &mut Trail<'_>,
        (mut attempt, mut known): (u32, Executed),
        mut fault: Fault,
    ) -> Result<(), Box<Fault>> {
        loop {
            let redactor = &self.live().finishing.redactor;
            trail.span.failed(&redactor.redact(fault.code()));
            let call = permit.call();
            let Some(pause) = self.pause_after(&fault, attempt, call) else {
                // What an earlier attempt did stays done.
                return Err(fault.after(known).into());
            };
            if fault.executed() != Executed::NotExecuted {
                known = fault.executed();
            }
            trail.span = Span::none();
            trail.wait.passage.leave(known);
            let life = trail.wait.begin(call);
            if let Err(stopped) = self.until(&trail.wait, tokio::time::sleep(pause)).await {
                return Err(stopped.fault(known).into());
            }
            // Two attempts at one call never work at the same time.
            if life.is_working() {
                return Err(fault.after(known).into());
            }
            trail.unwritten.push(Event::retried(call.no(), attempt, &fault, pause, redactor));
            attempt += 1;
            trail.wait.passage.begin(known);
            fault = match self.attempt(permit, attempt, trail).await {
                Ok(()) => return Ok(()),
                Err(fault) => *fault,
            };
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

    /// What one attempt may take of what the run was granted.
    #[inline]
    pub(super) fn grants<'c>(
        &'c self,
        attempt: &Attempt<'c>,
        frozen_unix_us: Option<u64>,
        cancel: &'c Token,
        life: &'c OnceLock<Arc<Life>>,
        seats: &mut Seats<'_>,
    ) -> Grants<'c> {
        let (live, call) = (self.live(), attempt.call());
        Grants {
            map: &live.grants,
            run: &live.context,
            call: call.no(),
            attempt: attempt.no(),
            id: call.id(),
            args_hash: &call.facts().args_hash,
            labels: self.labels_of(call),
            frozen_unix_us,
            is_write: call.spec().effects.access == Access::Write,
            needs: &call.spec().needs,
            cancel,
            life,
            leash: Leash::default(),
            lease: Mutex::new(seats.take_lease()),
        }
    }

    #[expect(clippy::manual_async_fn, reason = "an `async fn` moves its arguments once more")]
    fn attempt(
        &self,
        permit: &mut Permit,
        no: u32,
        trail: &mut Trail<'_>,
    ) -> impl Future<Output = Result<(), Box<Fault>>> {
        async move {
            let wants = self.wants(permit.call(), trail);
            let mut seats = match self.live().pools.try_take(&self.setup.tree, &wants) {
                Some(seats) => seats,
                None => self.seats(permit.call(), wants, trail).await?,
            };
            // Whoever waited for a seat may have been cancelled or run out of time meanwhile.
            let (unix_us, mut now_us) = self.may_start(permit.call(), trail.wait.scope)?;
            let LiveRun { context, finishing, .. } = self.live();
            let bounded = permit.call().effects().determinism == Determinism::Bounded;
            let frozen_unix_us = bounded.then_some(unix_us);
            let start = Start { call: permit.call().no(), attempt: no, clock_us: frozen_unix_us };
            trail.unwritten.started(start);
            let silent = self.starts_silently(permit.call());
            let accepted = match silent {
                true => None,
                false => Some(trail.write(permit.call().facts(), unix_us).map_err(unrecorded)?),
            };
            let Trail { unwritten, output, started_us, span, wait, .. } = &mut *trail;
            let attempt = match accepted {
                None => Attempt::silent(permit, no, &wait.passage),
                Some(accepted) => match Attempt::start(permit, no, &wait.passage, accepted) {
                    Started::Now(attempt) => attempt,
                    Started::Later(starting) => {
                        wait.begin(starting.call());
                        let attempt = self.until(wait, starting.durable()).await;
                        let attempt = attempt.map_err(|it| it.fault(Executed::NotExecuted))??;
                        // The disk took its time, which is not the tool's.
                        (_, now_us) = self.may_start(attempt.call(), wait.scope)?;
                        attempt
                    }
                },
            };
            *started_us = Some(unix_us);
            let call = attempt.call();
            let grants =
                self.grants(&attempt, frozen_unix_us, wait.scope.token(), &wait.life, &mut seats);
            let (stages, performer) = (&self.setup.stages, &self.setup.performer);
            *span = self.setup.spans.of(context.run, call, no, &finishing.redactor);
            let mut performing = Performing::new(self, span, output);
            let began = performing.begin(|| match stages.surround() {
                false => performer.perform(attempt.entered(), &grants),
                true => Box::pin(stages.perform(performer, attempt, &grants)),
            });
            // What is ready at once costs no timer.
            let performed = match began.await {
                Poll::Ready(performed) => performed,
                Poll::Pending => {
                    if silent {
                        unwritten.write(self, call.facts(), unix_us).map_err(unrecorded)?;
                    }
                    self.bounded(performing, call, now_us, wait).await?
                }
            };
            match performed {
                Ok(Ok(())) => Ok(()),
                Ok(Err(err)) => Err(failed(err).into()),
                Err(panic) => Err(panicked(panic, &wait.passage).into()),
            }
        }
    }

    /// Whether the call may start now, and when that is: since the Unix epoch, and on the clock by
    /// which deadlines run.
    #[inline]
    pub(super) fn may_start(&self, call: &Call, scope: &Scope<'_>) -> Result<(u64, u64), Fault> {
        if scope.is_over() || self.halts.is_cancelled(call.no()) {
            return Err(cancelled(Executed::NotExecuted));
        }
        let unix_us = self.setup.clock.unix_us();
        let now_us = self.setup.clock.steady_us(unix_us);
        match scope.over_at(now_us) {
            None => Ok((unix_us, now_us)),
            Some(left) => Err(Fault::Exceeded(left.exceeded(Executed::NotExecuted))),
        }
    }

    /// Whether the start of an attempt may reach the tape together with its end, where the tool is
    /// ready at once: nobody but a silent tool acts in between, so that nothing can happen which
    /// the tape does not know of. What must wait is on the tape before it does.
    #[inline]
    fn starts_silently(&self, call: &Call) -> bool {
        call.registered().is_silent()
            && self.setup.performer.is_live()
            && !self.setup.stages.surround()
    }

    /// Which seats the call needs.
    #[inline]
    fn wants<'c>(&self, call: &'c Call, trail: &Trail<'_>) -> Wants<'c> {
        let spec = call.spec();
        let registered = call.registered();
        let (recursive, promoted) = (registered.is_recursive(), registered.is_promoted());
        Wants {
            of_tool: match spec.bounds.concurrency {
                Bound::At(most) => Some((call.tool().name(), most)),
                Bound::Default | Bound::Unlimited => None,
            },
            mutation: recursive || promoted,
            thread: spec.blocking,
            writes_anything: trail.writes_anything && !recursive && !promoted,
        }
    }

    /// Waits for the call's seats.
    async fn seats(
        &self,
        call: &Call,
        wants: Wants<'_>,
        trail: &Trail<'_>,
    ) -> Result<Seats<'_>, Fault> {
        trail.wait.begin(call);
        let taking = self.live().pools.take(&self.setup.tree, &wants);
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
    /// A finished result beats a late cancel.
    async fn bounded<T>(
        &self,
        mut future: impl Future<Output = T> + Unpin,
        call: &Call,
        started_us: u64,
        wait: &Wait<'_>,
    ) -> Result<T, Fault> {
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
                done = &mut future => return Ok(done),
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
        future: impl Future<Output = T>,
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
            | BoundKind::Table
            | BoundKind::Stack
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

pub(super) fn failed(err: ToolError) -> Fault {
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
pub(super) fn panicked(panic: Box<dyn Any + Send>, passage: &Passage) -> Fault {
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
