//! What the compiler says about the mistakes that tool authors make, word for word.

// After a change of words, `TRYBUILD=overwrite cargo test -p tooltape --test it ui` writes them
// anew.
#[test]
fn mistakes_are_explained_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
