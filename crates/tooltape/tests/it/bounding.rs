//! Output within its bound: acceptance 51, 88 and the size cap of 56.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use expect_test::expect;
use proptest::prelude::*;
use serde_json::json;
use tooltape::limits::{
    BLOCKS_MAX, FAULT_BYTES_MAX, IMAGE_BYTES_MAX, OUTPUT_BYTES_DEFAULT, OUTPUT_BYTES_MIN,
    RESULT_BYTES_MAX, TOLD_BYTES_MAX,
};
use tooltape::{
    Access, ArtifactId, Artifacts, Block, Bound, BoundKind, Bounds, Empty, Event, FromTape,
    MemoryTape, Output, Reply, RunLimits, Spec, Tool, ToolError, builtin, tool_fn,
};

use crate::declaring::{over, reply};

/// A tool `tool` that returns what the function makes.
fn tool(output: impl Fn() -> Result<Output, ToolError> + Send + Sync + 'static) -> Arc<dyn Tool> {
    bounded_tool(Bound::Default, output)
}

fn bounded_tool(
    output_bytes: Bound<u64>,
    output: impl Fn() -> Result<Output, ToolError> + Send + Sync + 'static,
) -> Arc<dyn Tool> {
    let spec = Spec::new("tool", "Returns much.").access(Access::Read);
    let spec = spec.bounds(Bounds { output_bytes, ..Bounds::default() });
    let output = Arc::new(output);
    tool_fn(spec, move |_: Empty| {
        let output = output.clone();
        async move { output() }
    })
}

fn text_of(bytes: usize) -> String {
    (0..)
        .flat_map(|line| format!("line {line}\n").into_bytes())
        .take(bytes)
        .map(char::from)
        .collect()
}

/// The reply to the one call of a run over this tool.
async fn result(tool: Arc<dyn Tool>) -> Reply {
    reply(&over([tool]), "tool", "{}").await
}

/// The artifact that a reply leads to.
fn artifact(reply: &Reply) -> ArtifactId {
    assert_eq!(reply.artifacts.len(), 1, "{}", reply.text());
    ArtifactId(reply.artifacts[0])
}

#[tokio::test]
async fn output_up_to_the_bound_is_shown_as_it_is() {
    // A block counts with the line break behind it.
    let most = OUTPUT_BYTES_DEFAULT as usize - 1;
    let whole = result(tool(move || Ok(Output::text(text_of(most))))).await;
    assert!(whole.text() == text_of(most) && whole.artifacts.is_empty());
    let cut = result(tool(move || Ok(Output::text(text_of(most + 1))))).await;
    assert_eq!(cut.artifacts.len(), 1);
}

#[tokio::test]
async fn oversized_output_is_an_artifact_and_the_model_sees_its_head_and_tail() {
    let (tape, text) = (MemoryTape::default(), text_of(1_000_000));
    let returned = text.clone();
    let tools = [tool(move || Ok(Output::text(returned.clone()))), builtin::read_artifact()];
    let run = over(tools).tape(tape.clone());
    let reply = reply(&run, "tool", "{}").await;
    let (shown, id) = (reply.text(), artifact(&reply));
    assert!(shown.len() <= OUTPUT_BYTES_DEFAULT as usize, "{} bytes", shown.len());
    let [Block::Text { text: head }, Block::LeftOut { bytes, of, .. }, Block::Text { text: tail }] =
        &*reply.content
    else {
        panic!("{shown}")
    };
    assert!(text.starts_with(head) && text.ends_with(tail) && head.len() > 15_000);
    assert_eq!((*of, *bytes), (1_000_000, 1_000_000 - (head.len() + tail.len()) as u64));
    let mark = shown.lines().find(|line| line.starts_with("[tooltape")).unwrap();
    assert_eq!(mark, format!("[tooltape: 967,428 of 1,000,000 bytes left out, kept as {id}]"));
    // The application sees all of it, in the value and by the key that is in the events.
    assert!(reply.value.as_ref().unwrap().parse::<String>().unwrap() == text);
    assert!(*run.artifacts().get(id).await.unwrap() == text.as_bytes());
    let records = tape.records(run.id());
    let Event::Settled(settled) = &records.last().unwrap().event else { panic!("it settled") };
    assert_eq!(settled.artifacts, [id.0]);
    // The model reads on from where the head ended, without file tools.
    let next = json!({ "artifact": id, "offset": head.len() }).to_string();
    let page = crate::declaring::reply(&run, "read_artifact", &next).await;
    let page = page.value.as_ref().unwrap().to_value();
    assert!(text[head.len()..].starts_with(page["content"].as_str().unwrap()));
}

#[tokio::test]
async fn a_large_value_is_shown_by_its_canonical_text_and_stays_a_value() {
    let rows: Vec<u32> = (0..50_000).collect();
    let returned = rows.clone();
    let run = over([tool(move || Output::value(&returned))]);
    let reply = reply(&run, "tool", "{}").await;
    assert!(reply.text().starts_with("[0,1,2,") && reply.text().ends_with(",49998,49999]"));
    assert_eq!(reply.value.as_ref().unwrap().parse::<Vec<u32>>().unwrap(), rows);
    let kept = run.artifacts().get(artifact(&reply)).await.unwrap();
    assert!(*kept == reply.value.as_ref().unwrap().as_str().as_bytes());
}

#[tokio::test]
async fn a_page_of_an_artifact_is_never_cut_itself() {
    // A hostile text grows a little when it is shown.
    let hostile = "[tooltape".repeat(4_000);
    let mut limits = RunLimits::default();
    limits.output_bytes = OUTPUT_BYTES_MIN;
    let run = over([builtin::read_artifact()]).limits(limits);
    for text in [text_of(100_000), hostile] {
        let id = run.artifacts().put(text).await.unwrap().id;
        for encoding in ["text", "base64"] {
            let wanted = json!({ "artifact": id, "encoding": encoding }).to_string();
            let page = reply(&run, "read_artifact", &wanted).await;
            assert!(!page.is_error && page.artifacts.is_empty(), "{}", page.text());
        }
    }
}

#[tokio::test]
async fn short_blocks_stay_whole_and_long_ones_share_what_is_left() {
    let reply = result(bounded_tool(Bound::At(2_000), || {
        let long = || Block::text("x".repeat(5_000));
        Ok(Output::of(Block::text("the summary")).block(long()).block(long()))
    }))
    .await;
    assert!(reply.text().len() <= 2_000);
    expect![[r#"
        the summary
        xxx xxx
        [tooltape: 4,202 of 5,000 bytes left out, kept as artifact:0]
        xxx xxx
        xxx xxx
        [tooltape: 4,202 of 5,000 bytes left out, kept as artifact:0]
        xxx xxx"#]]
    .assert_eq(&abridged(&reply));
    assert_eq!(reply.artifacts.len(), 1, "the same bytes are one artifact");
}

/// The text of a reply, with runs of `x` and hashes made short.
fn abridged(reply: &Reply) -> String {
    let short = |line: &str| match line {
        line if line.contains("xxxxxx") => "xxx xxx".to_owned(),
        line => match line.find("artifact:") {
            Some(at) => format!("{}artifact:0]", &line[..at]),
            None => line.to_owned(),
        },
    };
    reply.text().lines().map(short).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn images_and_links_are_whole_or_replaced_and_never_cut() {
    let image = |bytes: usize| Block::Image {
        media_type: "image/png".into(),
        data: STANDARD.encode(vec![7; bytes]),
    };
    let link = |uri: String| Block::ResourceLink { uri, title: None, media_type: None };
    let run = over([bounded_tool(Bound::At(1_000), move || {
        let blocks = [image(1_000_000), link("a:b".into()), image(3_000_000), image(100)];
        let output = blocks.into_iter().fold(Output::default(), Output::block);
        Ok(output.block(link(format!("data:{}", "x".repeat(5_000)))))
    })]);
    let reply = reply(&run, "tool", "{}").await;
    let [Block::Image { data, .. }, Block::ResourceLink { uri, .. }, replaced, small, long] =
        &*reply.content
    else {
        panic!("{:?}", reply.content)
    };
    assert_eq!((data.len(), &**uri), (1_333_336, "a:b"));
    assert!(matches!(small, Block::Image { .. }));
    let Block::ResourceLink { uri, media_type, .. } = replaced else { panic!("{replaced:?}") };
    assert_eq!(media_type.as_deref(), Some("image/png"));
    assert!(*run.artifacts().get(uri.parse().unwrap()).await.unwrap() == vec![7; 3_000_000]);
    assert!(matches!(long, Block::LeftOut { artifact: Some(_), .. }), "{long:?}");
    assert_eq!(reply.artifacts.len(), 2);
    let together = data.len() + 4_000_000;
    assert!(together > IMAGE_BYTES_MAX, "the two large ones were too much");
}

#[tokio::test]
async fn blocks_beyond_the_limit_are_one_text() {
    let blocks = || (0..1_000).map(|at| Block::text(at.to_string()));
    let reply = result(tool(move || Ok(blocks().fold(Output::default(), Output::block)))).await;
    assert_eq!(reply.content.len(), BLOCKS_MAX);
    let all: Vec<_> = (0..1_000).map(|at| at.to_string()).collect();
    assert_eq!(reply.text(), all.join("\n"), "nothing had to be left out");
}

#[tokio::test]
async fn a_bound_is_the_tools_or_the_runs_and_unlimited_must_be_written_out() {
    let output = || Ok(Output::text(text_of(100_000)));
    let shown = async |bound, limits| {
        let run = over([bounded_tool(bound, output)]).limits(limits);
        reply(&run, "tool", "{}").await.text().len() as u64
    };
    let mut narrow = RunLimits::default();
    narrow.output_bytes = 5_000;
    let within = |bytes: u64, most: u64| most - 200 < bytes && bytes <= most;
    assert!(within(shown(Bound::Default, RunLimits::default()).await, OUTPUT_BYTES_DEFAULT));
    assert!(within(shown(Bound::Default, narrow).await, 5_000));
    assert!(within(shown(Bound::At(1_000), narrow).await, 1_000));
    assert!(within(shown(Bound::At(0), narrow).await, OUTPUT_BYTES_MIN));
    assert_eq!(shown(Bound::At(1 << 40), narrow).await, 100_000);
    assert_eq!(shown(Bound::Unlimited, narrow).await, 100_000);
}

#[tokio::test]
async fn output_beyond_any_result_is_a_fault_that_names_the_bound() {
    let too_long = || "x".repeat(RESULT_BYTES_MAX);
    let value = result(bounded_tool(Bound::Unlimited, move || Output::value(&too_long()))).await;
    let content =
        result(bounded_tool(Bound::Unlimited, move || Ok(Output::of(Block::text(too_long())))))
            .await;
    for (reply, used) in [(value, 67_108_866), (content, 67_108_865)] {
        let fault = reply.fault.as_ref().unwrap();
        assert_eq!((fault.kind.name(), fault.bound), ("exceeded", Some(BoundKind::OutputBytes)));
        assert_eq!((fault.limit, fault.used), (Some(RESULT_BYTES_MAX as u64), Some(used)));
        assert_eq!(
            reply.text(),
            format!(
                "executed: the bound `output_bytes` of 67108864 bytes was reached, \
                 {used} bytes used"
            )
        );
    }
}

#[tokio::test]
async fn a_fault_is_bounded_for_the_model_and_for_the_host() {
    let long = || "é".repeat(1_000_000);
    let reply = result(tool(move || Err(ToolError::tell(long()).because(long())))).await;
    assert!(reply.text().len() <= TOLD_BYTES_MAX && reply.text().ends_with("é …"));
    let fault = reply.fault.as_ref().unwrap();
    assert!(fault.message.len() <= FAULT_BYTES_MAX && fault.message.ends_with("é …"));
    assert!(fault.told.as_ref().unwrap().len() <= FAULT_BYTES_MAX);
}

#[tokio::test]
async fn where_nothing_more_can_be_kept_output_is_cut_all_the_same() {
    let run = over([tool(|| Ok(Output::text(text_of(100_000))))]);
    let run = run.grant(Artifacts::memory_of(10_000));
    let reply = reply(&run, "tool", "{}").await;
    assert!(reply.text().len() <= OUTPUT_BYTES_DEFAULT as usize && reply.artifacts.is_empty());
    let mark = reply.text().lines().find(|line| line.starts_with("[tooltape")).unwrap().to_owned();
    assert_eq!(mark, "[tooltape: 67,428 of 100,000 bytes left out]");
}

#[tokio::test]
async fn a_replay_shows_the_same_as_the_recording() {
    let tape = MemoryTape::default();
    let read = || tool(|| Ok(Output::text(text_of(200_000)).block(Block::text("[tooltape"))));
    let recorded = over([read()]).tape(tape.clone());
    let before = reply(&recorded, "tool", "{}").await;
    let again = over([read()]).performer(FromTape::new(&tape.records(recorded.id())));
    let after = reply(&again, "tool", "{}").await;
    assert_eq!(before.content, after.content);
    assert_eq!(before.result_hash, after.result_hash);
}

fn any_block() -> impl Strategy<Value = Block> {
    let text = || {
        prop_oneof![
            "[a-zé€𝄞\n]{0,40}",
            (0..9_000_usize).prop_map(text_of),
            "(\\[tooltape|é|\\[TOOLtape: ){0,400}",
        ]
    };
    prop_oneof![
        4 => text().prop_map(Block::text),
        1 => text().prop_map(|uri| Block::ResourceLink { uri, title: None, media_type: None }),
        1 => text().prop_map(|media_type| Block::Image { media_type, data: "AAAA".into() }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_a_tool_returns_the_model_reads_at_most_the_bound(
        blocks in prop::collection::vec(any_block(), 0..90),
        bound in prop_oneof![0..1_000_u64, 0..40_000_u64],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let tape = MemoryTape::default();
            let returned = blocks.clone();
            let tool = || {
                let returned = returned.clone();
                bounded_tool(Bound::At(bound), move || {
                    Ok(returned.iter().cloned().fold(Output::default(), Output::block))
                })
            };
            let run = over([tool()]).tape(tape.clone());
            let before = reply(&run, "tool", "{}").await;
            let text = before.text();
            prop_assert!(text.len() as u64 <= bound.max(OUTPUT_BYTES_MIN), "{} bytes", text.len());
            let marks = text.to_lowercase().matches("[tooltape").count();
            let left_out = |block: &&Block| matches!(block, Block::LeftOut { .. });
            prop_assert_eq!(marks, before.content.iter().filter(left_out).count());
            for hash in &before.artifacts {
                prop_assert!(run.artifacts().get(ArtifactId(*hash)).await.is_ok());
            }
            // Bounding what is bounded changes nothing.
            let again = over([tool()]).performer(FromTape::new(&tape.records(run.id())));
            let after = reply(&again, "tool", "{}").await;
            prop_assert_eq!(&before.content, &after.content);
            Ok(())
        })?;
    }
}
