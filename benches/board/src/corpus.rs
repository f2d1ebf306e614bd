//! Texts of many sizes, always the same.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tooltape::input;

/// An order with some twenty values, as a tool might take it.
#[input]
#[derive(Clone, Serialize)]
pub struct Order {
    /// Its number.
    #[schemars(range(min = 1))]
    pub number: u64,
    /// Who ordered.
    pub customer: Customer,
    /// What was ordered.
    #[schemars(length(max = 1_000))]
    pub items: Vec<Item>,
    /// How fast it goes out.
    pub shipping: Shipping,
    /// What else was said.
    #[schemars(length(max = 500))]
    pub note: Option<String>,
    /// Whether it is a gift.
    pub gift: bool,
}

/// Many orders.
#[input]
#[derive(Clone, Serialize)]
pub struct Orders {
    /// The orders.
    pub orders: Vec<Order>,
}

/// Who ordered.
#[derive(Clone, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Customer {
    /// Their name.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    /// Where they are reached.
    pub email: String,
    /// How often they ordered before.
    #[schemars(range(max = 1_000_000))]
    pub orders_before: u32,
}

/// What was ordered.
#[derive(Clone, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// What it is.
    pub name: String,
    /// How many.
    #[schemars(range(min = 1, max = 999))]
    pub count: u32,
    /// What one costs.
    #[schemars(range(min = 0.0))]
    pub price: f64,
    /// What it is filed under.
    pub tags: Vec<String>,
}

/// How fast an order goes out.
#[derive(Clone, Copy, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shipping {
    /// When there is room.
    Slow,
    /// Today.
    Fast,
}

/// The order of a number.
pub fn order(number: u64) -> Order {
    let item = |at: u64| Item {
        name: format!("item {}", (number * 7 + at) % 1_000),
        count: u32::try_from((number + at) % 9 + 1).expect("a small number"),
        price: ((number * 31 + at * 17) % 10_000) as f64 / 100.0,
        tags: vec!["büro".to_owned(), format!("shelf {}", number % 40)],
    };
    Order {
        number: number + 1,
        customer: Customer {
            name: format!("Customer {number}"),
            email: format!("c{number}@example.com"),
            orders_before: u32::try_from(number % 50).expect("a small number"),
        },
        items: (0..2).map(item).collect(),
        shipping: if number % 3 == 0 { Shipping::Fast } else { Shipping::Slow },
        note: (number % 2 == 0).then(|| "Leave it \"behind the door\",\nplease.".to_owned()),
        gift: number % 5 == 0,
    }
}

/// As many orders as make a text of at least this length.
pub fn orders(bytes: usize) -> Orders {
    let mut length = 0;
    let mut orders = Vec::new();
    while length < bytes {
        let order = order(orders.len() as u64);
        length += text(&order).len() + 1;
        orders.push(order);
    }
    Orders { orders }
}

/// A value as a model writes it: its fields in the order of the schema.
pub fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("the corpus serialises")
}
