//! Shows what a call would change, and executes and records nothing.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;

use super::inside::dropped_safely;
use super::{LiveRun, Run};
use crate::canon::{Canon, Domain, Hash};
use crate::fault::ToolError;
use crate::grant::{Grants, Leash, Life};
use crate::id::CallNo;
use crate::spec::{PREVIEW_BYTES_MAX, Preview};
use crate::sync::{Mutex, OnceLock};

/// How long a preview may take.
pub const PREVIEW_WALL: Duration = Duration::from_secs(5);

impl Run {
    /// What a call with these arguments would change, as its tool's [`Preview`] shows it, or why
    /// that cannot be shown; nothing, where the tool has no such hook.
    ///
    /// It is how things are now. Nothing is executed, and nothing is put on the tape.
    pub async fn preview(&self, tool: &str, args: &Canon) -> Option<Result<String, ToolError>> {
        let tool = self.toolbox().get(tool).cloned()?;
        let hook = tool.spec().hooks.preview.as_ref()?;
        Some(self.show_ahead(hook, args).await)
    }

    async fn show_ahead(&self, hook: &Preview, args: &Canon) -> Result<String, ToolError> {
        let LiveRun { grants, context, finishing, .. } = self.live();
        let (call, args_hash) = (CallNo(0), Hash::of(Domain::Arguments, args.as_bytes()));
        let labels = [None, None];
        let life = Life::new((context.run, call), args_hash, labels, &self.setup.cancel);
        // There is no call, so it has nothing to say to the tape.
        life.end();
        let id = Arc::from("");
        let life = {
            let lock = OnceLock::new();
            let _ = lock.set(life);
            lock
        };
        let grants = Grants {
            map: grants,
            run: context,
            call,
            attempt: 0,
            id: &id,
            args_hash: &args_hash,
            labels,
            needs: hook.needs(),
            frozen_unix_us: None,
            // It looks, and changes nothing.
            is_write: false,
            cancel: &self.setup.cancel,
            life: &life,
            leash: Leash::default(),
            lease: Mutex::new(None),
        };
        let showing = AssertUnwindSafe(async { hook.show(args, &grants).await }).catch_unwind();
        let shown = tokio::time::timeout(PREVIEW_WALL, dropped_safely(showing)).await;
        let failed = |why: String| ToolError::not_done(why).code("preview.failed");
        match shown {
            Err(_) => Err(failed(format!("the preview took longer than {PREVIEW_WALL:?}"))),
            Ok(Err(_)) => Err(failed("the preview panicked".to_owned())),
            Ok(Ok(Ok(text))) if text.len() > PREVIEW_BYTES_MAX => {
                let bytes = text.len();
                Err(failed(format!("it has {bytes} bytes, expected at most {PREVIEW_BYTES_MAX}")))
            }
            Ok(Ok(Ok(text))) => Ok(finishing.redactor.redact(&text).into_owned()),
            Ok(Ok(Err(err))) => Err(failed(finishing.redactor.redact(err.told()).into_owned())),
        }
    }
}
