//! The imports that tell a call about itself and what it may say: `progress`, `cancel`, `log`,
//! `clock` and `random`.

use wasmtime::component::Linker;

use crate::host::Host;
use crate::limit::RANDOM_BYTES_MAX;

pub(super) fn define(linker: &mut Linker<Host>) -> Result<(), wasmtime::Error> {
    linker.instance("tooltape:tool/progress@1.0.0")?.func_wrap_async(
        "say",
        |mut store, (text,): (String,)| {
            Box::new(async move {
                Host::pay(&mut store, text.len()).await?;
                if let Some(progress) = &store.data().given.progress {
                    progress.say(text);
                }
                Ok(())
            })
        },
    )?;
    linker.instance("tooltape:tool/cancel@1.0.0")?.func_wrap_async(
        "is-requested",
        |mut store, ()| {
            Box::new(async move {
                Host::pay(&mut store, 0).await?;
                let cancel = store.data().given.cancel.as_ref();
                Ok((cancel.is_some_and(|cancel| cancel.is_requested()),))
            })
        },
    )?;
    linker.instance("tooltape:tool/log@1.0.0")?.func_wrap_async(
        "write",
        |mut store, (line,): (String,)| {
            Box::new(async move {
                Host::pay(&mut store, line.len()).await?;
                store.data_mut().log.line(&line);
                Ok(())
            })
        },
    )?;
    linker.instance("tooltape:tool/clock@1.0.0")?.func_wrap_async("now-us", |mut store, ()| {
        Box::new(async move {
            Host::pay(&mut store, 8).await?;
            Ok((store.data().now_us(),))
        })
    })?;
    let mut random = linker.instance("tooltape:tool/random@1.0.0")?;
    random.func_wrap_async("bytes", |mut store, (length,): (u32,)| {
        Box::new(async move {
            let bytes = u64::from(length).min(RANDOM_BYTES_MAX) as usize;
            Host::pay(&mut store, bytes).await?;
            Ok((store.data().random_bytes(bytes),))
        })
    })?;
    random.func_wrap_async("next-u64", |mut store, ()| {
        Box::new(async move {
            Host::pay(&mut store, 8).await?;
            Ok((store.data().random_u64(),))
        })
    })
}
