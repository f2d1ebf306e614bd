//! An image goes to the APIs that take it, and to the others goes what it was.

use serde_json::json;
use tooltape::testing::Spy;
use tooltape::wire::{Api, Encoder};
use tooltape::{Access, Block, Message, Output, Proposal, Request, Run, Toolbox, Turn, Verdict};

/// Eleven bytes.
const DATA: &str = "aGVsbG8gd29ybGQ=";

/// What every API is asked behind a call that returned an image of this type.
async fn asked(media_type: &str) -> [String; 6] {
    let paint = Spy::new("paint", Access::Write).returning(|args| {
        let media_type = args.to_value()["as"].as_str().unwrap().to_owned();
        let data = DATA.to_owned();
        Ok(Output::text("Here:").block(Block::Image { media_type, data }))
    });
    let toolbox = Toolbox::new([paint.tool()]).unwrap();
    let run = Run::new(&toolbox).policy(|_: &_| Verdict::allow("test"));
    let arguments = json!({ "as": media_type }).to_string();
    let (offer, proposals) = (run.offer_all(), vec![Proposal::new("a", "paint", arguments)]);
    let replies = run.answer(&offer, proposals.clone()).await.unwrap();
    let (user, turn) = (Message::User("Go.".into()), Message::Model(Turn::calls(proposals)));
    let messages = [user, turn, Message::Replies(replies)];
    Api::ALL.map(|api| {
        let request = Request::new(&messages, &offer);
        let body = Encoder::new(api, "m").encode(&request, true).unwrap();
        String::from_utf8(body).unwrap()
    })
}

#[tokio::test]
async fn an_image_goes_only_to_apis_that_take_it() {
    let kinds = [
        ("image/png", "all"),
        ("image/jpeg", "all"),
        ("image/webp", "all"),
        ("image/gif", "others"),
        ("image/heic", "gemini"),
        ("image/heif", "gemini"),
        ("image/svg+xml", "none"),
        ("image/bmp", "none"),
        ("image/tiff", "none"),
        ("image/png;base64,x", "none"),
        ("text/html", "none"),
        ("", "none"),
    ];
    for (media_type, takers) in kinds {
        for (api, body) in Api::ALL.into_iter().zip(asked(media_type).await) {
            let takes = match takers {
                "all" => true,
                "others" => api != Api::Gemini,
                "gemini" => api == Api::Gemini,
                _ => false,
            };
            assert_eq!(body.contains(DATA), takes, "{media_type} at {api}: {body}");
            let told = format!("[image: {media_type}, 11 bytes]");
            assert_eq!(body.contains(&told), !takes, "{media_type} at {api}: {body}");
        }
    }
}

#[tokio::test]
async fn a_media_type_is_spelled_as_the_api_spells_it() {
    for (api, body) in Api::ALL.into_iter().zip(asked("Image/PNG").await) {
        assert!(body.contains(DATA), "{api}: {body}");
        let spelled = ["data:image/png;base64,", r#"_type":"image/png""#, r#"Type":"image/png""#];
        assert!(spelled.iter().any(|it| body.contains(it)), "{api}: {body}");
    }
}
