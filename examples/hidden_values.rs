//! A tool uses a token, a shared state and the run's thread, and the model learns of none of them.
//!
//! `cargo run -p tooltape --example hidden_values`

use std::error::Error;
use std::io::{self, Write};

use tooltape::{Proposal, Rules, Run, RunInfo, Secret, State, ToolError, Toolbox};
use tooltape::{input, tool, tools};

#[input]
struct Order {
    /// What to order.
    item: String,
}

/// Orders something for the customer.
#[tool(Write, spend, confirm, needs("net:post:shop.example.com"))]
async fn order(
    order: Order,
    token: Secret<String>,
    cart: State<Vec<String>>,
    info: RunInfo,
) -> Result<String, ToolError> {
    if token.expose().is_empty() {
        return Err(ToolError::user_must_act("the customer must log in first"));
    }
    let count = cart.update(|cart| {
        cart.push(order.item);
        cart.len()
    })?;
    Ok(format!("{count} ordered for {}", info.thread().unwrap_or("nobody")))
}

pub(crate) async fn show(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let toolbox = Toolbox::new(tools![order])?;
    let spec = toolbox.get("order").map(|tool| tool.spec()).ok_or("it was registered")?;
    writeln!(out, "the model may choose: {}", spec.input["required"])?;
    writeln!(out, "the host must grant: {:?}", spec.needs)?;

    // What is missing is said before the first call, all of it.
    let proposal = |arguments: &str| vec![Proposal::new("call_1", "order", arguments)];
    if let Err(err) = Run::new(&toolbox).batch(proposal(r#"{"item":"tea"}"#)).await {
        writeln!(out, "without grants: {err}")?;
    }

    let cart = State::new(Vec::<String>::new());
    let run = Run::new(&toolbox)
        .policy(Rules::deny_all().allow("order"))
        .rights("net:post:shop.example.com".parse()?)
        .grant(Secret::new(String::from("hunter2")))
        .grant(cart.clone())
        .thread("Ada");
    for arguments in [r#"{"item":"tea"}"#, r#"{"item":"tea","token":"mine"}"#] {
        for reply in run.batch(proposal(arguments)).await? {
            writeln!(out, "{arguments} => {}", reply.text())?;
        }
    }
    writeln!(out, "the host sees the cart: {:?}", cart.get())?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    show(&mut io::stdout()).await
}
