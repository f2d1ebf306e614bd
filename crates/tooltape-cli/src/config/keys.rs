//! The keys that a flag or a variable may set, and how their text is read.

use toml::{Table, Value};

/// A key of the configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// Its name, with dots.
    pub(crate) name: &'static str,
    /// What its value is.
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Truth,
    /// In a flag or a variable: names with commas between them.
    List,
    /// Stands in files alone.
    Tables,
}

/// Every key, in the order in which `config explain` prints them.
pub(crate) const KEYS: [Key; 24] = [
    Key { name: "workspace", kind: Kind::Text },
    Key { name: "agent.model", kind: Kind::Text },
    Key { name: "agent.script", kind: Kind::Text },
    Key { name: "agent.ask", kind: Kind::Text },
    Key { name: "agent.instructions", kind: Kind::Text },
    Key { name: "agent.turns", kind: Kind::Number },
    Key { name: "agent.tokens", kind: Kind::Number },
    Key { name: "sub_agents", kind: Kind::Tables },
    Key { name: "tools.allow", kind: Kind::List },
    Key { name: "tools.disable", kind: Kind::List },
    Key { name: "tools.promote", kind: Kind::List },
    Key { name: "tools.touches", kind: Kind::Tables },
    Key { name: "tools.executable", kind: Kind::Tables },
    Key { name: "tools.wasm", kind: Kind::Tables },
    Key { name: "policy.default", kind: Kind::Text },
    Key { name: "policy.rights", kind: Kind::List },
    Key { name: "policy.strict", kind: Kind::Truth },
    Key { name: "policy.rules", kind: Kind::Tables },
    Key { name: "labels.untrusted", kind: Kind::List },
    Key { name: "labels.internal", kind: Kind::List },
    Key { name: "labels.tell", kind: Kind::List },
    Key { name: "http.allow", kind: Kind::List },
    Key { name: "http.private", kind: Kind::List },
    Key { name: "secrets", kind: Kind::Tables },
];

impl Key {
    /// The key of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Key> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// The variable that sets the key.
    pub(super) fn variable(&self) -> Option<String> {
        let is_settable = self.kind != Kind::Tables;
        is_settable.then(|| format!("TOOLTAPE_{}", self.name.replace('.', "_").to_uppercase()))
    }

    /// The configuration that sets only this key, to what a flag or a variable says.
    pub(super) fn table(&self, text: &str) -> Result<Table, String> {
        let value = match self.kind {
            Kind::Text => Value::from(text),
            Kind::Number => match text.parse::<i64>() {
                Ok(number) => Value::from(number),
                Err(_) => return Err(format!("expected a number, found `{text}`")),
            },
            Kind::Truth => match text.parse::<bool>() {
                Ok(truth) => Value::from(truth),
                Err(_) => return Err(format!("expected `true` or `false`, found `{text}`")),
            },
            Kind::List => {
                let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
                Value::Array(names.map(Value::from).collect())
            }
            Kind::Tables => return Err(format!("`{}` stands in files only", self.name)),
        };
        let mut parts = self.name.rsplit('.');
        let leaf = Table::from_iter([(parts.next().unwrap_or_default().to_owned(), value)]);
        Ok(parts
            .fold(leaf, |table, part| Table::from_iter([(part.to_owned(), Value::Table(table))])))
    }

    /// The value in a configuration.
    pub(super) fn of<'a>(&self, table: &'a Table) -> Option<&'a Value> {
        let mut parts = self.name.split('.');
        let first = table.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    }
}
