//! The rest of WASI that standard libraries link: nothing to see, and the run's clock and chance.

use wasmtime::component::{ComponentType, Linker, LinkerInstance, Lower, Resource, ResourceType};

use super::streams::{Input, Output, Pollable};
use crate::host::{Host, Stop};
use crate::limit::RANDOM_BYTES_MAX;

/// A terminal, of which there are none.
struct Terminal;

#[derive(ComponentType, Lower)]
#[component(record)]
struct Datetime {
    seconds: u64,
    nanoseconds: u32,
}

/// The moment of a call in the units of WASI.
const NANOS_PER_MICRO: u64 = 1_000;
/// The resolution of the clock, in nanoseconds.
const RESOLUTION_NANOS: u32 = 1_000;

pub(super) fn define(linker: &mut Linker<Host>) -> Result<(), wasmtime::Error> {
    environment(linker)?;
    terminals(linker)?;
    clocks(linker)?;
    random(linker)
}

/// There are no folders.
pub(super) fn no_folders<T: 'static>(
    instance: &mut LinkerInstance<'_, Host>,
    name: &str,
) -> Result<(), wasmtime::Error> {
    instance.func_wrap_async(name, |mut store, ()| {
        Box::new(async move {
            Host::pay(&mut store, 0).await?;
            Ok((Vec::<(Resource<T>, String)>::new(),))
        })
    })
}

fn environment(linker: &mut Linker<Host>) -> Result<(), wasmtime::Error> {
    let mut environment = linker.instance("wasi:cli/environment@0.2.0")?;
    environment.func_wrap_async("get-environment", |mut store, ()| {
        Box::new(async move {
            Host::pay(&mut store, 0).await?;
            Ok((Vec::<(String, String)>::new(),))
        })
    })?;
    environment.func_wrap_async("get-arguments", |mut store, ()| {
        Box::new(async move {
            Host::pay(&mut store, 0).await?;
            Ok((Vec::<String>::new(),))
        })
    })?;
    environment.func_wrap_async("initial-cwd", |mut store, ()| {
        Box::new(async move {
            Host::pay(&mut store, 0).await?;
            Ok((None::<String>,))
        })
    })?;
    let mut exit = linker.instance("wasi:cli/exit@0.2.0")?;
    exit.func_wrap("exit", |_, (_,): (Result<(), ()>,)| -> Result<(), wasmtime::Error> {
        Err(wasmtime::Error::new(Stop::Exit))
    })?;
    exit.func_wrap("exit-with-code", |_, (_,): (u8,)| -> Result<(), wasmtime::Error> {
        Err(wasmtime::Error::new(Stop::Exit))
    })?;
    linker.instance("wasi:cli/stdin@0.2.0")?.func_wrap_async("get-stdin", |mut store, ()| {
        Box::new(async move {
            Host::pay(&mut store, 0).await?;
            Ok((Resource::<Input>::new_own(0),))
        })
    })?;
    for (interface, name) in
        [("wasi:cli/stdout@0.2.0", "get-stdout"), ("wasi:cli/stderr@0.2.0", "get-stderr")]
    {
        linker.instance(interface)?.func_wrap_async(name, |mut store, ()| {
            Box::new(async move {
                Host::pay(&mut store, 0).await?;
                Ok((Resource::<Output>::new_own(0),))
            })
        })?;
    }
    Ok(())
}

fn terminals(linker: &mut Linker<Host>) -> Result<(), wasmtime::Error> {
    for (interface, name) in [
        ("wasi:cli/terminal-input@0.2.0", "terminal-input"),
        ("wasi:cli/terminal-output@0.2.0", "terminal-output"),
    ] {
        let ty = ResourceType::host::<Terminal>();
        linker.instance(interface)?.resource(name, ty, |_, _| Ok(()))?;
    }
    for (interface, name) in [
        ("wasi:cli/terminal-stdin@0.2.0", "get-terminal-stdin"),
        ("wasi:cli/terminal-stdout@0.2.0", "get-terminal-stdout"),
        ("wasi:cli/terminal-stderr@0.2.0", "get-terminal-stderr"),
    ] {
        linker.instance(interface)?.func_wrap_async(name, |mut store, ()| {
            Box::new(async move {
                Host::pay(&mut store, 0).await?;
                Ok((None::<Resource<Terminal>>,))
            })
        })?;
    }
    Ok(())
}

fn clocks(linker: &mut Linker<Host>) -> Result<(), wasmtime::Error> {
    let mut wall = linker.instance("wasi:clocks/wall-clock@0.2.0")?;
    wall.func_wrap_async("now", |mut store, ()| {
        Box::new(async move {
            Host::pay(&mut store, 12).await?;
            let now_us = store.data().now_us();
            let (seconds, rest_us) = (now_us / 1_000_000, now_us % 1_000_000);
            let nanoseconds = u32::try_from(rest_us * NANOS_PER_MICRO).unwrap_or(0);
            Ok((Datetime { seconds, nanoseconds },))
        })
    })?;
    wall.func_wrap_async("resolution", |mut store, ()| {
        Box::new(async move {
            Host::pay(&mut store, 12).await?;
            Ok((Datetime { seconds: 0, nanoseconds: RESOLUTION_NANOS },))
        })
    })?;
    let mut monotonic = linker.instance("wasi:clocks/monotonic-clock@0.2.0")?;
    monotonic.func_wrap_async("now", |mut store, ()| {
        Box::new(async move {
            Host::pay(&mut store, 8).await?;
            Ok((store.data().now_us().saturating_mul(NANOS_PER_MICRO),))
        })
    })?;
    monotonic.func_wrap_async("resolution", |mut store, ()| {
        Box::new(async move {
            Host::pay(&mut store, 8).await?;
            Ok((u64::from(RESOLUTION_NANOS),))
        })
    })?;
    for name in ["subscribe-instant", "subscribe-duration"] {
        monotonic.func_wrap_async(name, |mut store, (_,): (u64,)| {
            Box::new(async move {
                Host::pay(&mut store, 0).await?;
                Ok((Resource::<Pollable>::new_own(0),))
            })
        })?;
    }
    Ok(())
}

fn random(linker: &mut Linker<Host>) -> Result<(), wasmtime::Error> {
    for (interface, bytes, number) in [
        ("wasi:random/random@0.2.0", "get-random-bytes", "get-random-u64"),
        ("wasi:random/insecure@0.2.0", "get-insecure-random-bytes", "get-insecure-random-u64"),
    ] {
        let mut random = linker.instance(interface)?;
        random.func_wrap_async(bytes, |mut store, (length,): (u64,)| {
            Box::new(async move {
                // A caller takes for granted that it gets as many as it asks for.
                if length > RANDOM_BYTES_MAX {
                    let most = format!("expected at most {RANDOM_BYTES_MAX}");
                    let why = format!("it asked for {length} random bytes, {most}");
                    return Err(wasmtime::Error::msg(why));
                }
                Host::pay(&mut store, length as usize).await?;
                Ok((store.data().random_bytes(length as usize),))
            })
        })?;
        random.func_wrap_async(number, |mut store, ()| {
            Box::new(async move {
                Host::pay(&mut store, 8).await?;
                Ok((store.data().random_u64(),))
            })
        })?;
    }
    linker.instance("wasi:random/insecure-seed@0.2.0")?.func_wrap_async(
        "insecure-seed",
        |mut store, ()| {
            Box::new(async move {
                Host::pay(&mut store, 16).await?;
                let host = store.data();
                Ok(((host.random_u64(), host.random_u64()),))
            })
        },
    )
}
