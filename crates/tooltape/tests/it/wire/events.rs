//! Server-sent events are read as the WHATWG standard says, however the bytes are cut.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use tooltape::limits::EVENT_BYTES_MAX;
use tooltape::wire::{Sse, SseError};

/// The events of a stream that comes in these pieces, a line each.
fn events<'b>(pieces: impl IntoIterator<Item = &'b [u8]>) -> String {
    let (mut sse, mut page) = (Sse::default(), String::new());
    for piece in pieces {
        sse.feed(piece, |event| -> Result<(), SseError> {
            writeln!(page, "{:?} {:?} {:?}", event.name, event.data, event.id).unwrap();
            Ok(())
        })
        .unwrap();
    }
    page
}

/// Checks a stream whole, cut in two at every byte, and byte by byte with silence in between.
fn check(stream: impl AsRef<[u8]>, expected: &Expect) {
    let stream = stream.as_ref();
    let whole = events([stream]);
    expected.assert_eq(&whole);
    for at in 0..=stream.len() {
        assert_eq!(events([&stream[..at], &stream[at..]]), whole, "cut at {at}");
    }
    assert_eq!(events(stream.chunks(1).flat_map(|byte| [byte, b""])), whole);
}

#[test]
fn fields_of_the_standard_are_read() {
    let lines = "event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\ndata: 113411\n\n";
    check(
        lines,
        &expect![[r#"
            "add" "73857293" ""
            "remove" "2153" ""
            "" "113411" ""
        "#]],
    );
    check(
        "data: YHOO\ndata: +2\ndata: 10\n\n",
        &expect![[r#"
            "" "YHOO\n+2\n10" ""
        "#]],
    );
    check(
        ": test\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
        &expect![[r#"
            "" "first event" "1"
            "" "second event" ""
            "" " third event" ""
        "#]],
    );
    check(
        "data\n\ndata\ndata\n\ndata:",
        &expect![[r#"
            "" "" ""
            "" "\n" ""
        "#]],
    );
    check(
        "data:test\n\ndata: test\n\n",
        &expect![[r#"
            "" "test" ""
            "" "test" ""
        "#]],
    );
}

#[test]
fn lines_end_with_cr_or_lf_or_both() {
    let expected = expect![[r#"
        "a" "1\n2" "7"
        "" "3" "7"
    "#]];
    let lines = "event: a\nid: 7\ndata: 1\ndata: 2\n\n:\ndata: 3\n\n";
    check(lines, &expected);
    check(lines.replace('\n', "\r"), &expected);
    check(lines.replace('\n', "\r\n"), &expected);
    // LF and CR in turn: each is a line end of its own, and both together are one.
    check(
        "data: 1\n\rdata: 2\r\n\rdata: 3\r\r\n",
        &expect![[r#"
            "" "1" ""
            "" "2" ""
            "" "3" ""
        "#]],
    );
}

#[test]
fn a_mark_is_passed_over_once_and_at_the_beginning_only() {
    check(
        "\u{feff}data: 1\n\n\u{feff}data: 2\n\ndata: \u{feff}3\n\n",
        &expect![[r#"
            "" "1" ""
            "" "\u{feff}3" ""
        "#]],
    );
    check("\u{feff}\u{feff}data: 1\n\n", &expect![[""]]);
    check(
        "\u{feff}\ndata: 1\n\n",
        &expect![[r#"
            "" "1" ""
        "#]],
    );
}

#[test]
fn what_is_no_field_is_passed_over() {
    check(
        ":data: 1\nDATA: 2\n data: 3\ndata : 4\nretry: 5\nwhat: 6\n\ndata: 7\nretry: x\n\n",
        &expect![[r#"
            "" "7" ""
        "#]],
    );
    // An event without data never happened, and its type is forgotten.
    check(
        "event: a\n\ndata: 1\n\nevent: a\nevent: b\ndata: 2\n\nevent: c\nevent\ndata: 3\n\n",
        &expect![[r#"
            "" "1" ""
            "b" "2" ""
            "" "3" ""
        "#]],
    );
}

#[test]
fn an_event_without_its_blank_line_never_happened() {
    for end in ["", "\n", "\r", "\r\n"] {
        check(
            format!("data: 1\n\ndata: 2{end}"),
            &expect![[r#"
                "" "1" ""
            "#]],
        );
    }
}

#[test]
fn nothing_is_lost_to_bytes_that_are_no_text() {
    check(
        b"data: a\xffb\xc3\n\ndata: \xe2\x82\nevent: \xf0\ndata: \xac\n\n",
        &expect![[r#"
            "" "a�b�" ""
            "�" "�\n�" ""
        "#]],
    );
    check(
        "data: a\0b\nid: 1\n\nid: 2\0\ndata: ünï😀\n\n",
        &expect![[r#"
            "" "a\0b" "1"
            "" "ünï😀" "1"
        "#]],
    );
}

#[test]
fn an_event_of_a_hundred_megabytes_is_refused_and_not_kept() {
    let piece = vec![b'x'; 1 << 20];
    let never = |_: tooltape::wire::SseEvent<'_>| -> Result<(), SseError> { unreachable!() };
    // As one line, and as many.
    for head in ["data: ", "", ":", "data: x\ndata: "] {
        let mut sse = Sse::default();
        sse.feed(head.as_bytes(), never).unwrap();
        let refused = (0..100).find(|_| sse.feed(&piece, never).is_err());
        let whole = (EVENT_BYTES_MAX >> 20) - usize::from(!head.is_empty());
        assert_eq!(refused, Some(whole), "{head}");
    }
    let line = [b"data: ", &*piece, b"\n"].concat();
    let mut sse = Sse::default();
    let refused = (0..100).find(|_| sse.feed(&line, never).is_err());
    assert_eq!(refused, Some((EVENT_BYTES_MAX >> 20) - 1));
    // Also where it comes in one piece.
    let huge = [b"data: ".to_vec(), vec![b'x'; 100 << 20], b"\n\n".to_vec()].concat();
    assert_eq!(Sse::default().feed(&huge, never), Err(SseError::TooLong));
}

#[test]
fn whoever_listens_can_end_it() {
    #[derive(Debug, PartialEq)]
    enum End {
        Enough,
        Sse(SseError),
    }
    impl From<SseError> for End {
        fn from(err: SseError) -> End {
            End::Sse(err)
        }
    }
    let mut heard = 0;
    let ended = Sse::default().feed(b"data: 1\n\ndata: 2\n\n", |_| {
        heard += 1;
        Err(End::Enough)
    });
    assert_eq!((ended, heard), (Err(End::Enough), 1));
}

proptest! {
    #[test]
    fn no_cut_changes_the_events(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "data", "data:", "data: ", "event: ", "id: ", "id:", ":", "retry: 1", "x", "\0",
                "\n", "\n", "\n\n", "\r", "\r\n", "\r\n\r\n", "\u{feff}", "é", "😀", "12345678",
            ]),
            0..40,
        ),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        broken in any::<prop::sample::Index>(),
    ) {
        let mut stream = words.concat().into_bytes();
        if !stream.is_empty() {
            let at = broken.index(stream.len());
            stream[at] ^= 0x80 * u8::from(at % 3 == 0);
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]);
        prop_assert_eq!(events(pieces), events([&*stream]));
    }
}
