use tooltape::{Footprint, ToolError, input, tool};

#[input]
struct Write {
    path: String,
}

#[input]
struct Read {
    path: String,
}

fn of_another_input(args: &Read) -> Footprint {
    Footprint::reads(format!("file:{}", args.path))
}

fn of_a_path(path: &str) -> String {
    format!("file:{path}")
}

/// One.
#[tool(Write, touches = of_another_input)]
async fn write(args: Write) -> Result<String, ToolError> {
    Ok(args.path)
}

/// Two.
#[tool(Write, touches = of_a_path)]
async fn write_text(args: Write) -> Result<String, ToolError> {
    Ok(args.path)
}

/// Three.
#[tool(Write, touches = of_nothing)]
async fn write_nothing(args: Write) -> Result<String, ToolError> {
    Ok(args.path)
}

/// Four.
#[tool(Pure, touches = of_another_input)]
async fn pure(args: Read) -> Result<String, ToolError> {
    Ok(args.path)
}

fn main() {}
