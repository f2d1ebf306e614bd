//! What the runtime takes from tokio-util, scheduled by the model checker.
#![forbid(unsafe_code)]

/// What cancels.
pub mod sync {
    use model_std::switch;
    use tokio_util::sync;

    /// Tokio's token, with a switch before each step that others can see.
    #[derive(Clone, Debug, Default)]
    pub struct CancellationToken(sync::CancellationToken);

    impl CancellationToken {
        /// Not cancelled.
        pub fn new() -> CancellationToken {
            CancellationToken::default()
        }

        /// A token that is cancelled with this one.
        pub fn child_token(&self) -> CancellationToken {
            switch();
            CancellationToken(self.0.child_token())
        }

        /// Cancels it.
        pub fn cancel(&self) {
            switch();
            self.0.cancel();
        }

        /// Whether it is cancelled.
        pub fn is_cancelled(&self) -> bool {
            switch();
            self.0.is_cancelled()
        }

        /// Waits until it is cancelled.
        pub async fn cancelled(&self) {
            switch();
            self.0.cancelled().await;
        }
    }
}
