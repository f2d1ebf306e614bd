use tooltape::{Empty, Spec, ToolError, tool_fn};

fn main() {
    let captured = String::new();
    let spec = Spec::new("say", "Says what was captured.");
    tool_fn(spec, async move |_: Empty| Ok::<_, ToolError>(captured.clone()));
}
