//! `wasi:io`: an input at its end, and outputs that go to the log.

use wasmtime::component::{ComponentType, Lift, Linker, Lower, Resource, ResourceType};

use crate::host::Host;

/// The most bytes that an output takes at once, as the standard has it.
const WRITE_BYTES_MAX: u64 = 4_096;

/// An input, which is at its end.
pub(super) struct Input;
/// An output, which goes to the log.
pub(super) struct Output;
/// What can be waited for, and is there already: the time of a call stands still.
pub(super) struct Pollable;
/// What went wrong, which nothing does.
struct IoError;

#[derive(ComponentType, Lift, Lower)]
#[component(variant)]
enum StreamError {
    #[component(name = "last-operation-failed")]
    LastOperationFailed(Resource<IoError>),
    #[component(name = "closed")]
    Closed,
}

pub(super) fn define(linker: &mut Linker<Host>) -> Result<(), wasmtime::Error> {
    let mut error = linker.instance("wasi:io/error@0.2.0")?;
    error.resource("error", ResourceType::host::<IoError>(), |_, _| Ok(()))?;
    error.func_wrap_async(
        "[method]error.to-debug-string",
        |mut store, (_,): (Resource<IoError>,)| {
            Box::new(async move {
                Host::pay(&mut store, 0).await?;
                Ok((String::new(),))
            })
        },
    )?;
    let mut poll = linker.instance("wasi:io/poll@0.2.0")?;
    poll.resource("pollable", ResourceType::host::<Pollable>(), |_, _| Ok(()))?;
    poll.func_wrap_async("[method]pollable.ready", |mut store, (_,): (Resource<Pollable>,)| {
        Box::new(async move {
            Host::pay(&mut store, 0).await?;
            Ok((true,))
        })
    })?;
    poll.func_wrap_async("[method]pollable.block", |mut store, (_,): (Resource<Pollable>,)| {
        Box::new(async move { Host::pay(&mut store, 0).await })
    })?;
    poll.func_wrap_async("poll", |mut store, (pollables,): (Vec<Resource<Pollable>>,)| {
        Box::new(async move {
            Host::pay(&mut store, 4 * pollables.len()).await?;
            let ready: Vec<u32> = (0..).take(pollables.len()).collect();
            Ok((ready,))
        })
    })?;
    inputs(linker)?;
    outputs(linker)
}

fn inputs(linker: &mut Linker<Host>) -> Result<(), wasmtime::Error> {
    let mut streams = linker.instance("wasi:io/streams@0.2.0")?;
    streams.resource("input-stream", ResourceType::host::<Input>(), |_, _| Ok(()))?;
    for name in ["[method]input-stream.read", "[method]input-stream.blocking-read"] {
        streams.func_wrap_async(name, |mut store, (_, _): (Resource<Input>, u64)| {
            Box::new(async move {
                Host::pay(&mut store, 0).await?;
                Ok((Err::<Vec<u8>, _>(StreamError::Closed),))
            })
        })?;
    }
    for name in ["[method]input-stream.skip", "[method]input-stream.blocking-skip"] {
        streams.func_wrap_async(name, |mut store, (_, _): (Resource<Input>, u64)| {
            Box::new(async move {
                Host::pay(&mut store, 0).await?;
                Ok((Err::<u64, _>(StreamError::Closed),))
            })
        })?;
    }
    streams.func_wrap_async(
        "[method]input-stream.subscribe",
        |mut store, (_,): (Resource<Input>,)| {
            Box::new(async move {
                Host::pay(&mut store, 0).await?;
                Ok((Resource::<Pollable>::new_own(0),))
            })
        },
    )
}

fn outputs(linker: &mut Linker<Host>) -> Result<(), wasmtime::Error> {
    let mut streams = linker.instance("wasi:io/streams@0.2.0")?;
    streams.resource("output-stream", ResourceType::host::<Output>(), |_, _| Ok(()))?;
    streams.func_wrap_async(
        "[method]output-stream.check-write",
        |mut store, (_,): (Resource<Output>,)| {
            Box::new(async move {
                Host::pay(&mut store, 0).await?;
                Ok((Ok::<_, StreamError>(WRITE_BYTES_MAX),))
            })
        },
    )?;
    for name in ["[method]output-stream.write", "[method]output-stream.blocking-write-and-flush"] {
        streams.func_wrap_async(name, |mut store, (_, bytes): (Resource<Output>, Vec<u8>)| {
            Box::new(async move {
                Host::pay(&mut store, bytes.len()).await?;
                store.data_mut().log.add(&bytes);
                Ok((Ok::<_, StreamError>(()),))
            })
        })?;
    }
    for name in ["[method]output-stream.flush", "[method]output-stream.blocking-flush"] {
        streams.func_wrap_async(name, |mut store, (_,): (Resource<Output>,)| {
            Box::new(async move {
                Host::pay(&mut store, 0).await?;
                Ok((Ok::<_, StreamError>(()),))
            })
        })?;
    }
    for name in [
        "[method]output-stream.write-zeroes",
        "[method]output-stream.blocking-write-zeroes-and-flush",
    ] {
        streams.func_wrap_async(name, |mut store, (_, length): (Resource<Output>, u64)| {
            Box::new(async move {
                let length = length.min(WRITE_BYTES_MAX) as usize;
                Host::pay(&mut store, length).await?;
                store.data_mut().log.add(&vec![0; length]);
                Ok((Ok::<_, StreamError>(()),))
            })
        })?;
    }
    for name in ["[method]output-stream.splice", "[method]output-stream.blocking-splice"] {
        streams.func_wrap_async(
            name,
            |mut store, (_, _, _): (Resource<Output>, Resource<Input>, u64)| {
                Box::new(async move {
                    Host::pay(&mut store, 0).await?;
                    Ok((Err::<u64, _>(StreamError::Closed),))
                })
            },
        )?;
    }
    streams.func_wrap_async(
        "[method]output-stream.subscribe",
        |mut store, (_,): (Resource<Output>,)| {
            Box::new(async move {
                Host::pay(&mut store, 0).await?;
                Ok((Resource::<Pollable>::new_own(0),))
            })
        },
    )
}
