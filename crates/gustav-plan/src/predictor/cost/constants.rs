//! The parameters of the simulation.

/// What the steps of a simulated CTA take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CtaCosts {
    /// Cycles of a load whose sector is in L1.
    pub l1_latency: f64,
    /// Cycles of a load whose sector is in L2 and not in L1.
    pub l2_latency: f64,
    /// Cycles of a load whose sector is in neither.
    pub memory_latency: f64,
    /// Lines of 128 bytes that L1 holds.
    pub l1_lines: usize,
    /// Cycles of the sum over the lanes and the store of a row.
    pub row: f64,
    /// Cycles of the arithmetic of a step, one nonzero of each lane.
    pub step: f64,
    /// Cycles of the load unit for each line accessed.
    pub line: f64,
    /// Cycles of the bookkeeping of a slot.
    pub slot: f64,
    /// Cycles between the starts of two warps.
    pub warp_stagger: f64,
    /// Cycles of the launch.
    pub launch: f64,
}

impl CtaCosts {
    /// Those of an H200, as example `fit_costs` of `gustav-bench` fits them to the training sources of
    /// `bench/records/gpu-tune-n64.jsonl.zst`.
    pub const H200: CtaCosts = CtaCosts {
        l1_latency: 24.5,
        l2_latency: 300.0,
        memory_latency: 800.0,
        l1_lines: 2001,
        row: 163.0,
        step: 413.0,
        line: 1.87,
        slot: 20.0,
        warp_stagger: 4.46,
        launch: 12_300.0,
    };
}
