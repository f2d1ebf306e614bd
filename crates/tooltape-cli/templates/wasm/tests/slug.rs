//! What the tool computes.

use slug::{Input, Output, slug};

fn of(title: &str) -> Result<Output, String> {
    let title = title.to_owned();
    slug(&Input { title })
}

#[test]
fn a_slug_has_the_words_of_the_title() {
    let expected = |slug: &str| {
        Ok(Output {
            slug: slug.to_owned(),
        })
    };
    assert_eq!(of("Hello, World!"), expected("hello-world"));
    assert_eq!(of("  À la carte -- 2 "), expected("à-la-carte-2"));
}

#[test]
fn a_title_without_words_is_refused() {
    let message = of("?!").expect_err("it has no word");
    assert!(message.ends_with("found `?!`"), "{message}");
}
