//! Text that others wrote, as a person sees it.

use proptest::prelude::*;
use tooltape::visible;

#[test]
fn what_a_terminal_obeys_reorders_or_hides_is_spelled_out() {
    for (text, seen) in [
        ("plain ünd 日本 ✓", "plain ünd 日本 ✓"),
        ("\u{1b}]8;;http://x\u{7}", r"\u{1b}]8;;http://x\u{7}"),
        ("\u{9b}2J\u{0}\u{7f}", r"\u{9b}2J\u{0}\u{7f}"),
        ("a\rb", r"a\rb"),
        ("\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}", r"\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}"),
        // One variant of a picture is how it is drawn; more say something that nobody sees.
        ("❤\u{fe0f}", "❤\u{fe0f}"),
        ("❤\u{fe0f}\u{fe01}", "❤\u{fe0f}\\u{fe01}"),
        ("a\u{fe00}", r"a\u{fe00}"),
        ("❤\u{e0100}", r"❤\u{e0100}"),
        ("e\u{301}\u{301}\u{301}\u{301}", "e\u{301}\u{301}\u{301}\u{301}"),
        ("e\u{301}\u{301}\u{301}\u{301}\u{301}", "e\u{301}\u{301}\u{301}\u{301}\\u{301}"),
    ] {
        assert_eq!(visible::line(text), seen);
        assert_eq!(visible::text(text), seen);
    }
    assert_eq!(visible::line("a\n\tb"), r"a\n\tb");
    assert_eq!(visible::text("a\n\tb"), "a\n\tb");
}

proptest! {
    #[test]
    fn nothing_is_spelled_out_twice_and_json_stays_the_same_document(text in any::<String>()) {
        let seen = visible::text(&text).into_owned();
        prop_assert_eq!(visible::text(&seen), seen.as_str());
        prop_assert!(!visible::line(&text).contains(char::is_control));
        let json = serde_json::to_string(&[&text]).unwrap();
        let shown = visible::json(&json);
        prop_assert!(!shown.contains(char::is_control));
        prop_assert_eq!(serde_json::from_str::<Vec<String>>(&shown).unwrap(), [text]);
    }
}
