//! Where links lead.

use check_links::{Target, links};

#[test]
fn links_lead_from_where_the_page_is() {
    let file = |path: &str| vec![Target::File(path.to_owned())];
    assert_eq!(links("data/a.md", "see [b](b.md#top)"), file("data/b.md"));
    assert_eq!(links("data/in/a.md", "[b](../b.md \"B\")"), file("data/b.md"));
    assert_eq!(links("a.md", "[b](./c//b.md)\n[again](c/b.md)"), file("c/b.md"));
    assert_eq!(links("data/a.md", "[b](/b.md)"), file("b.md"));
    assert_eq!(links("a.md", "[b](../b.md)"), [Target::Outside("../b.md".to_owned())]);
    let page = "https://example.com/a".to_owned();
    assert_eq!(links("a.md", "[b](https://example.com/a#b)"), [Target::Page(page)]);
    assert_eq!(links("a.md", "[b](#top) [c](mailto:c@example.com) [d]"), []);
}
