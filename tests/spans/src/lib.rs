//! The spans that an application sees.

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod shared;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tooltape::serde_json::json;
    use tooltape::testing::{Spy, play, proposals};
    use tooltape::{
        Access, Effects, Empty, Output, Redactor, Retry, Run, Spec, Tool, ToolError, Toolbox,
        Verdict, limits, tool_fn,
    };

    use super::recorded::{Recorded, recording};

    fn over<const N: usize>(tools: [std::sync::Arc<dyn Tool>; N]) -> Run {
        Run::new(&Toolbox::new(tools).unwrap()).policy(|_: &_| Verdict::allow("test"))
    }

    /// The spans of a script, with what they say of the run itself left out.
    async fn spans(run: &Run, script: &str) -> Vec<Recorded> {
        let (spans, _guard) = recording();
        play(run, script).await;
        let mut spans = spans.lock().unwrap().clone();
        for span in &mut spans {
            assert!(span.closed, "`{}` was not closed", span.name);
            if let Some(id) = span.fields.remove("tooltape.run") {
                assert_eq!(id, run.id().to_string());
            }
        }
        spans
    }

    #[tokio::test]
    async fn an_attempt_is_a_span_with_the_names_of_opentelemetry() {
        let run = over([Spy::new("spy", Access::Write).tool()]);
        let spans = spans(&run, r#"spy {"planted":"secret"}"#).await;
        assert_eq!(spans.len(), 1);
        assert_eq!((spans[0].name, spans[0].target.as_str()), ("execute_tool", "tooltape"));
        let fields: Vec<_> = spans[0].fields.iter().map(|(key, value)| (*key, &**value)).collect();
        let expected = [
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.call.id", "c1"),
            ("gen_ai.tool.description", "Counts its calls."),
            ("gen_ai.tool.name", "spy"),
            ("gen_ai.tool.type", "function"),
            ("otel.kind", "internal"),
            ("otel.name", "execute_tool spy"),
            ("tooltape.attempt", "1"),
            ("tooltape.call", "1"),
        ];
        assert_eq!(fields, expected, "and neither arguments nor results");
    }

    #[tokio::test]
    async fn arguments_and_results_are_in_a_span_only_if_the_host_says_so_and_then_bounded() {
        let large = |_| Ok(Output::text("x".repeat(100_000)));
        let tools = || {
            [Spy::new("spy", Access::Read).tool(), {
                Spy::new("large", Access::Read).returning(large).tool()
            }]
        };
        let script = "spy {\"planted\":\"word\"}\nlarge {}";
        for span in spans(&over(tools()), script).await {
            assert!(span.fields.values().all(|value| !value.contains("planted")));
            assert!(span.fields.values().all(|value| value.len() < 100));
        }
        let shown = spans(&over(tools()).spans_with_content(), script).await;
        let field = |at: usize, name: &str| shown[at].fields[name].as_str();
        assert_eq!(field(0, "gen_ai.tool.call.arguments"), r#"{"planted":"word"}"#);
        assert_eq!(field(0, "gen_ai.tool.call.result"), r#"{"planted":"word"}"#);
        let result = field(1, "gen_ai.tool.call.result");
        assert!(result.len() <= limits::SPAN_CONTENT_BYTES_MAX && result.ends_with('…'));
    }

    #[tokio::test]
    async fn a_secret_is_in_no_span() {
        let told = Spy::new("told", Access::Read)
            .returning(|_| Output::value(&json!({ "password": "correct horse" })));
        let sick = Spy::new("sick", Access::Read)
            .returning(|_| Err(ToolError::tell("correct horse").code("correct horse")));
        let run = over([Spy::new("spy", Access::Read).tool(), told.tool(), sick.tool()])
            .redact(Redactor::new(["correct horse"]).unwrap())
            .spans_with_content();
        let script = "told {}\nsick {}\nspy {\"password\":\"correct horse\"}";
        let spans = spans(&run, script).await;
        // Arguments that hold one are none, so nothing was attempted.
        assert_eq!(spans.len(), 2);
        let result = spans[0].fields["gen_ai.tool.call.result"].as_str();
        assert_eq!(result, r#"{"password":"[redacted]"}"#);
        let mut fields = spans.iter().flat_map(|span| span.fields.values());
        assert!(fields.all(|value| !value.contains("correct")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_span_says_what_went_wrong_and_what_was_never_attempted_has_none() {
        let sick = Spy::new("sick", Access::Read)
            .returning(|_| Err(ToolError::tell("planted").code("disk.full")));
        let bad = Spy::new("bad", Access::Read).returning(|_| panic!("planted"));
        let spec = Spec::new("slow", "Hangs.").effects(Effects::read());
        let slow = tool_fn(spec, async |_: Empty| {
            tokio::time::sleep(Duration::from_secs(3_600)).await;
            Ok::<_, ToolError>(())
        });
        let run = over([sick.tool(), bad.tool(), slow]);
        let spans = spans(&run, "sick {}\nbad {}\nslow {}\nnobody {}\nsick [1]").await;
        let errors = spans.iter().map(|span| {
            assert_eq!(span.fields["otel.status_code"], "ERROR");
            assert!(span.fields.values().all(|value| !value.contains("planted")));
            (&*span.fields["gen_ai.tool.name"], &*span.fields["error.type"])
        });
        let errors: Vec<_> = errors.collect();
        let expected =
            [("sick", "disk.full"), ("bad", "tool.panicked"), ("slow", "bound.exceeded")];
        assert_eq!(errors, expected);
    }

    #[tokio::test]
    async fn a_call_that_nobody_waits_for_any_more_ends_its_span_as_cancelled() {
        let spec = Spec::new("slow", "Hangs.").effects(Effects::read());
        let slow = tool_fn(spec, async |_: Empty| {
            std::future::pending::<()>().await;
            Ok::<_, ToolError>(())
        });
        let (run, (spans, _guard)) = (over([slow]), recording());
        let batch = run.batch(proposals("slow {}"));
        assert!(tokio::time::timeout(Duration::ZERO, batch).await.is_err());
        let spans = spans.lock().unwrap();
        assert_eq!((spans.len(), spans[0].closed), (1, true));
        assert_eq!(spans[0].fields["error.type"], "call.cancelled");
    }

    #[tokio::test]
    async fn every_attempt_has_a_span_of_its_own() {
        let retry = Retry { attempts: 2, pause_ms: 0, pause_ms_max: 0 };
        let sick = Spy::new("sick", Access::Read)
            .declaring(|spec| spec.retry(retry))
            .returning(|_| Err(ToolError::tell("no luck")));
        let spans = spans(&over([sick.tool()]), "sick {}").await;
        let attempts = spans.iter().map(|span| span.fields["tooltape.attempt"].as_str());
        assert_eq!(attempts.collect::<Vec<_>>(), ["1", "2"]);
        assert!(spans.iter().all(|span| span.fields["error.type"] == "tool.failed"));
    }

    #[tokio::test]
    async fn what_a_tool_records_is_inside_the_span_of_its_attempt() {
        let spec = Spec::new("outer", "Records.").effects(Effects::read());
        let outer = tool_fn(spec, async |_: Empty| {
            tracing::info_span!("inner").in_scope(|| Output::value(&json!(1)))
        });
        let spans = spans(&over([outer]), "outer {}\nouter {}").await;
        let parents: Vec<_> = spans.iter().map(|span| (span.name, span.parent)).collect();
        let expected = [
            ("execute_tool", None),
            ("inner", Some(0)),
            ("execute_tool", None),
            ("inner", Some(2)),
        ];
        assert_eq!(parents, expected);
    }
}
