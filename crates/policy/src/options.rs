//! What is known of a policy's option.

/// An option of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionSpec {
    /// The name, as the user types it.
    pub name: &'static str,
    /// One line for a person.
    pub about: &'static str,
    /// The default value.
    pub default: &'static str,
    /// The default value in a program that runs, if it is another one.
    pub live: Option<LiveValue>,
}

/// The value of an option in a program that runs, where a source tells who touches what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveValue {
    /// The value.
    pub value: &'static str,
    /// Whether it holds only if the source tells presence. The policy gets draws of a few blocks at
    /// a time then.
    pub by_draws: bool,
}

impl OptionSpec {
    /// The option with another default in a program that runs.
    pub(crate) const fn live(self, value: &'static str, by_draws: bool) -> Self {
        Self { live: Some(LiveValue { value, by_draws }), ..self }
    }
}
