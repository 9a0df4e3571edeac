//! One case, as it stands in the file.

use serde::Deserialize;

/// A raw request and what must come of it. The file's `format` says what the members mean.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) raw: String,
    pub(crate) expect: Expect,
    #[serde(default)]
    pub(crate) pre: Vec<String>,
    #[serde(default)]
    pub(crate) status: Vec<u16>,
    pub(crate) body: Option<String>,
    #[serde(default)]
    pub(crate) absent: Vec<String>,
    #[serde(default)]
    pub(crate) must_close: bool,
    #[serde(default)]
    pub(crate) half_close: bool,
    pub(crate) upstream_raw: Option<String>,
    #[serde(default)]
    pub(crate) upstream_close: bool,
    /// How long to wait for an answer, in seconds. The sender waits for the end anyway.
    #[serde(rename = "wait")]
    _wait: Option<u64>,
    #[serde(rename = "category")]
    _category: String,
    #[serde(rename = "scope")]
    _scope: String,
    #[serde(rename = "why")]
    _why: String,
    #[serde(rename = "source")]
    _source: String,
}

/// What must come of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Expect {
    #[serde(rename = "reject-400")]
    Reject400,
    RejectOrClose,
    SingleOrReject,
    AcceptSingleRequest,
    AcceptTwoRequests,
    NoDispatch,
    ReplayOnce,
    TwoDispatches,
    NoSecondDispatch,
    #[serde(rename = "resp-502")]
    Resp502,
    #[serde(rename = "resp-clean-or-502")]
    RespCleanOr502,
}

/// All of them.
pub(crate) fn cases() -> Vec<Case> {
    #[derive(Deserialize)]
    struct File {
        cases: Vec<Case>,
    }
    let file = include_str!("../fixtures/raw_http_cases.json");
    serde_json::from_str::<File>(file).expect("the cases have the form that is known here").cases
}
