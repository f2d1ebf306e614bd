//! The tools of real catalogues in a toolbox.

use std::collections::BTreeMap;
use std::fmt::Write;

use expect_test::expect;
use tooltape::testing::Spy;
use tooltape::{Access, Toolbox};

use crate::catalogue::{self, Document};

/// How much of each catalogue has to be fit for a toolbox.
const REGISTERED_PERCENT_MIN: usize = 95;

/// Why a toolbox refuses a tool that somebody else described, if it does.
fn refusal(document: &Document) -> Option<String> {
    let spy = Spy::new(&document.name, Access::Write)
        .declaring(|spec| spec.input(document.schema.clone()));
    Toolbox::new([spy.tool()]).err().map(|err| err.to_string())
}

#[test]
fn nearly_every_tool_of_every_catalogue_registers_and_the_rest_is_on_the_list() {
    let Some(documents) = catalogue::load() else { return };
    let mut refused = String::new();
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for document in documents {
        let (registered, all) = counts.entry(document.catalogue).or_default();
        *all += 1;
        match refusal(document) {
            None => *registered += 1,
            Some(why) => {
                writeln!(refused, "{}/{} → {why}", document.catalogue, document.id).unwrap();
            }
        }
    }
    for (catalogue, (registered, all)) in counts {
        let enough = registered * 100 >= all * REGISTERED_PERCENT_MIN;
        assert!(enough, "{registered} of {all} tools of {catalogue} register");
    }
    // Document → rule. None is refused today; one that is must be named here.
    expect![[""]].assert_eq(&refused);
}
