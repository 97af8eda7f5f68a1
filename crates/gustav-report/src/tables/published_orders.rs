//! What the row orders study reports of its orders (table I).

/// Gains of an order on the study's two GPUs: the largest, the mean and the smallest.
pub(super) struct Published {
    order: &'static str,
    pub gv100: [&'static str; 3],
    pub rtx_2080_ti: [&'static str; 3],
}

/// The algorithm that the study permutes rows for.
const KERNEL: &str = "output-stationary";

/// Whether this is the study's kernel, in any configuration.
pub(super) fn is_of_study(algorithm: &str) -> bool {
    algorithm.split('#').next() == Some(KERNEL)
}

/// The study's oracle, which chooses among its orders and rows as stored.
pub(super) const ORACLE: &str = "best of the study's";

/// How much faster than cuSPARSE rows as stored and the oracle are on average, on the two GPUs
/// (section IV, before A, and IV-B).
pub(super) const STORED_OVER_CUSPARSE: &str = "1.67-1.89";
pub(super) const ORACLE_OVER_CUSPARSE: &str = "2.31-2.65";

const fn published(
    order: &'static str,
    gv100: [&'static str; 3],
    rtx_2080_ti: [&'static str; 3],
) -> Published {
    Published { order, gv100, rtx_2080_ti }
}

/// The study has one hybrid-1, and does not say of which order by warp load.
const HYBRID_1: [[&str; 3]; 2] = [["4.2", "1.0", "0.3"], ["2.4", "1.06", "0.5"]];

const TABLE_1: [Published; 13] = [
    published("dcsr (format)", ["13.4", "0.85", "0.5"], ["20.2", "1.15", "0.7"]),
    published("plain", ["4.1", "1.02", "0.6"], ["2.5", "1.0", "0.7"]),
    published("flipped", ["3.9", "1.04", "0.8"], ["2.4", "1.06", "0.7"]),
    published("lpt", ["3.5", "1.10", "0.8"], ["1.9", "1.06", "0.6"]),
    published("warp-aware", ["2.3", "1.07", "0.3"], ["2", "0.99", "0.3"]),
    published("cta-aware", ["3.9", "1.01", "0.3"], ["2.2", "1.0", "0.7"]),
    published("hybrid-1-plain", HYBRID_1[0], HYBRID_1[1]),
    published("hybrid-1-flipped", HYBRID_1[0], HYBRID_1[1]),
    published("hybrid-1-lpt", HYBRID_1[0], HYBRID_1[1]),
    published("hybrid-2-1", ["4.1", "1.10", "0.4"], ["2.3", "0.99", "0.7"]),
    published("hybrid-2-2", ["4.1", "1.09", "0.3"], ["2.3", "1.0", "0.6"]),
    published("hybrid-2-3", ["2.4", "0.97", "0.25"], ["2.1", "1.06", "0.3"]),
    published(ORACLE, ["13.5", "1.4", "1"], ["20.2", "1.37", "1"]),
];

/// What the study reports of an order, however it was searched (`NAME:exact`, `NAME:K`); `None` of those
/// that it does not have.
pub(super) fn of(order: &str) -> Option<&'static Published> {
    let name = order.split(':').next();
    TABLE_1.iter().find(|published| name == Some(published.order))
}
