//! Waits for work, and passes on that somebody wants it to stop.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long work that was told to stop may take to say what became of it.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Why work was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Somebody pressed Ctrl-C.
    Interrupt,
    /// Time ran out.
    Timeout,
}

/// What became of work.
pub(crate) struct Waited<T> {
    /// What it came to; `None` where it did not stop in time, or panicked.
    pub(crate) done: Option<T>,
    /// Why it was told to stop, if it was.
    pub(crate) cause: Option<Cause>,
}

/// Hears that the work is to stop, and tells others.
#[derive(Clone)]
pub(crate) struct Stop {
    /// How often Ctrl-C was pressed.
    presses: watch::Sender<u32>,
    is_requested: watch::Sender<bool>,
}

impl Stop {
    /// Listens from here on: until then, Ctrl-C just ends the program.
    pub(crate) async fn listen() -> Stop {
        let (presses, is_requested) = (watch::Sender::new(0), watch::Sender::new(false));
        let stop = Stop { presses: presses.clone(), is_requested };
        let mut press = Box::pin(tokio::signal::ctrl_c());
        // Being polled for the first time makes it listen.
        let heard = poll_fn(|context| Poll::Ready(press.as_mut().poll(context))).await;
        tokio::spawn(async move {
            let mut heard = match heard {
                Poll::Ready(heard) => heard,
                Poll::Pending => press.await,
            };
            // Without signals nobody can interrupt.
            while heard.is_ok() {
                presses.send_modify(|presses| *presses += 1);
                heard = tokio::signal::ctrl_c().await;
            }
        });
        stop
    }

    /// Waits until the work is to stop.
    pub(crate) async fn requested(&self) {
        let mut is_requested = self.is_requested.subscribe();
        // The sender is in `self`, so the channel is open and waiting cannot fail.
        let _open = is_requested.wait_for(|is_requested| *is_requested).await;
    }

    /// Waits until Ctrl-C is pressed.
    pub(crate) async fn interrupted(&self) {
        self.pressed(1).await;
    }

    /// How often Ctrl-C was pressed.
    pub(crate) fn presses(&self) -> u32 {
        *self.presses.borrow()
    }

    /// Waits until Ctrl-C was pressed this often.
    pub(crate) async fn pressed(&self, times: u32) {
        let mut presses = self.presses.subscribe();
        let _open = presses.wait_for(|presses| *presses >= times).await;
    }

    /// Waits for work. A first Ctrl-C, or the end of the time, cancels it; a second Ctrl-C, or
    /// the end of the grace, abandons it.
    pub(crate) async fn wait<T>(
        &self,
        work: JoinHandle<T>,
        time_is_over: impl Future<Output = ()>,
        cancel: impl FnOnce(),
    ) -> Waited<T> {
        let mut work = work;
        let cause = tokio::select! {
            biased;
            done = &mut work => return Waited { done: done.ok(), cause: None },
            () = self.pressed(1) => Cause::Interrupt,
            () = time_is_over => Cause::Timeout,
        };
        cancel();
        self.is_requested.send_replace(true);
        let done = tokio::select! {
            biased;
            done = work => done.ok(),
            () = self.pressed(2) => None,
            () = tokio::time::sleep(STOP_GRACE) => None,
        };
        Waited { done, cause: Some(cause) }
    }
}

/// Waits for this long, or for ever.
pub(crate) async fn over(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}
