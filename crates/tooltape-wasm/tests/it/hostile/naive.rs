//! An engine without limits, which shows that the attacks are real.

use wasmtime::component::{Component, Linker, Val};
use wasmtime::{Config, Engine, Store};

/// What `call` answers without any bound, or why it does not.
pub(crate) fn call(bytes: &[u8]) -> Result<String, wasmtime::Error> {
    calls(bytes, 1).map(|mut answers| answers.remove(0))
}

/// What so many calls answer that share one instance, as is the fastest way to run them.
pub(crate) fn calls(bytes: &[u8], count: usize) -> Result<Vec<String>, wasmtime::Error> {
    let engine = Engine::new(&Config::new())?;
    let component = Component::new(&engine, bytes)?;
    let mut linker = Linker::<()>::new(&engine);
    linker.define_unknown_imports_as_traps(&component)?;
    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &component)?;
    let (_, tool) = component.get_export(None, "tooltape:tool/tool@1.0.0").expect("it is a tool");
    let (_, call) = component.get_export(Some(&tool), "call").expect("it can be called");
    let call = instance.get_func(&mut store, call).expect("it is a function");
    let answer = |_| {
        let mut results = [Val::Bool(false)];
        call.call(&mut store, &[Val::String("{}".to_owned())], &mut results)?;
        let [Val::Result(Ok(Some(answer)))] = results else { panic!("{results:?}") };
        let Val::String(text) = *answer else { panic!("{answer:?}") };
        Ok(text)
    };
    (0..count).map(answer).collect()
}
