//! What queries find, and what they cost.

use json_query::{Query, search};
use serde_json::{Value, json};

fn books() -> Value {
    json!({
        "books": [
            { "title": "Emma", "price": 8.5, "isbn": "1" },
            { "title": "Ulysses", "price": 12, "tags": ["long", "a/b"] },
            { "title": "Walden", "price": 9007199254740993_u64 },
        ],
        "a/b": { "~": true, "*": null, "": "empty" },
    })
}

/// Where the values are that a query finds.
fn found(query: &str) -> Vec<String> {
    let books = books();
    let answer = search(&Query::parse(query).unwrap(), &books, usize::MAX);
    assert_eq!(answer.count, answer.matches.len());
    for found in &answer.matches {
        assert_eq!(books.pointer(&found.at), Some(found.value), "{query}");
    }
    answer.matches.into_iter().map(|found| found.at).collect()
}

#[test]
fn a_json_pointer_finds_what_it_points_to() {
    assert_eq!(found(""), [""]);
    assert_eq!(found("/books/1/title"), ["/books/1/title"]);
    for pointer in ["/a~1b", "/a~1b/~0", "/a~1b/", "/books/1/tags/1"] {
        assert_eq!(found(pointer), [pointer]);
    }
    for nothing in ["/none", "/books/3", "/books/01", "/books/+1", "/books/-", "/books/0/title/0"] {
        assert!(found(nothing).is_empty(), "{nothing}");
    }
}

#[test]
fn names_with_signs_are_written_as_strings() {
    assert_eq!(found(r#"/"a/b"/"*""#), ["/a~1b/*"]);
    assert_eq!(found(r#"/"books"/"0"/"\u0074itle""#), ["/books/0/title"]);
}

#[test]
fn wildcards_find_all_in_the_order_of_the_document_and_each_once() {
    assert_eq!(found("/books/*/title"), ["/books/0/title", "/books/1/title", "/books/2/title"]);
    assert_eq!(found("/**/price").len(), 3);
    assert_eq!(found("/**/**/**").len(), found("/**").len());
    assert_eq!(found("/**").len(), 19);
    assert_eq!(found("/**")[..3], ["", "/a~1b", "/a~1b/"]);
    assert_eq!(found("/books/**/tags/*"), ["/books/1/tags/0", "/books/1/tags/1"]);
}

#[test]
fn filters_keep_what_they_admit() {
    assert_eq!(found("/books/*[/price<10]/title"), ["/books/0/title"]);
    assert_eq!(found("/books/*[/price>=8.5][/isbn]"), ["/books/0"]);
    assert_eq!(found(r#"/**[="Emma"]"#), ["/books/0/title"]);
    assert_eq!(found("/**[/tags/0]/title"), ["/books/1/title"]);
    assert_eq!(found("/**[=true]"), ["/a~1b/~0"]);
    assert_eq!(found("/**[=null]"), ["/a~1b/*"]);
    assert_eq!(found(r#"/books/*[/title!="Emma"]"#), ["/books/1", "/books/2"]);
    assert_eq!(found("/books/*[/isbn!=null]"), ["/books/0"], "what is not there is not compared");
}

#[test]
fn integers_are_compared_exactly_and_types_have_no_order() {
    assert_eq!(found("/books/*[/price=9007199254740993]"), ["/books/2"]);
    assert!(found("/books/*[/price=9007199254740992]").is_empty());
    assert!(found(r#"/books/*[/price<"9"]"#).is_empty());
    assert!(found("/**[<true]").is_empty());
}

#[test]
fn what_is_no_query_is_told_where() {
    let cases = [
        ("books", "after 0 bytes: expected `/`, `[` or the end"),
        ("/a~2", "after 1 bytes: expected a name in which `~0` or `~1` stands for `~`, `/`"),
        ("/a]", "after 2 bytes: expected `/`, `[` or the end"),
        ("/a[]", "after 3 bytes: expected `/` and a name, or a comparison"),
        ("/a[/b", "after 5 bytes: expected a comparison or `]`"),
        ("/a[/b=]", "after 6 bytes: expected a string, a number, `true`, `false` or `null`"),
        ("/a[/b=[1]]", "after 9 bytes: expected no array and no object"),
        ("/\"a", "after 1 bytes: expected a string"),
    ];
    for (query, expected) in cases {
        let message = Query::parse(query).unwrap_err().to_string();
        assert!(message.starts_with(&format!("the query is wrong {expected}")), "{message}");
    }
    for (part, most) in [("/a", 63), ("/a[=1]", 31), ("/a[/b/c]", 15)] {
        assert!(Query::parse(&part.repeat(most)).is_ok(), "{part}");
        let message = Query::parse(&part.repeat(most + 1)).unwrap_err().to_string();
        assert!(message.ends_with("at most 63 steps, filters and names in filters"), "{message}");
    }
}

#[test]
fn a_query_that_branches_at_every_step_is_still_one_pass() {
    let nest = |inner: Value, _| json!([inner]);
    let document = json!([(0..60).fold(json!(1), nest), vec![0; 100_000]]);
    let query = Query::parse(&"/**/*".repeat(31)).unwrap();
    assert_eq!(search(&query, &document, 10).count, 31);
}

#[test]
fn matches_have_little_room_and_are_all_counted() {
    let document = json!(vec!["x".repeat(1000); 1000]);
    let answer = search(&Query::parse("/*").unwrap(), &document, usize::MAX);
    assert_eq!((answer.count, answer.matches.len()), (1000, 64));
    let answer = search(&Query::parse("").unwrap(), &document, usize::MAX);
    assert_eq!((answer.count, answer.matches.len()), (1, 0));
    assert_eq!(search(&Query::parse("/*").unwrap(), &document, 0).count, 1000);
}
