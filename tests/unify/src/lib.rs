//! Hashes in a crate whose other dependencies switch on features of `serde_json`.

#[cfg(test)]
#[path = "../../../crates/tooltape/tests/it/canon_golden.rs"]
mod canon_golden;

#[cfg(test)]
mod tests {
    use serde_json::Value;

    #[test]
    fn enabling_preserve_order_in_a_dependent_crate_changes_no_hash() {
        let value: Value = serde_json::from_str(r#"{"b":1,"a":2}"#).unwrap();
        assert_eq!(value.to_string(), r#"{"b":1,"a":2}"#, "`preserve_order` is not in effect");
        super::canon_golden::check();
    }

    #[test]
    fn enabling_arbitrary_precision_in_a_dependent_crate_changes_no_hash() {
        let value: Value = serde_json::from_str("1.10").unwrap();
        assert_eq!(value.to_string(), "1.10", "`arbitrary_precision` is not in effect");
        super::canon_golden::check();
    }
}
