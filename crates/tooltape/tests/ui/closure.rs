use tooltape::{Empty, Spec, ToolError, tool_fn, tool_fn_blocking};

struct Unknown;

fn main() {
    let spec = Spec::new("sum", "Sums up.");
    tool_fn(spec.clone(), async |_: Unknown| Ok::<_, ToolError>(0));
    tool_fn(spec.clone(), |_: Empty| Ok::<_, ToolError>(0));
    tool_fn_blocking(spec, async |_: Empty| Ok::<_, ToolError>(0));
}
