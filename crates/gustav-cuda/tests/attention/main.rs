//! Attention and its gradients on the device against the oracle.

mod plan;

use gustav_core::{
    Dense, DenseView, DenseViewMut, HeadValues, Index, Layout, Problem, Result, Scalar,
    ScoreOptions, bf16, f16,
};
use gustav_cuda::attention::{
    AttentionCall, AttentionGradients, AttentionGradientsCall, AttentionGradientsPlan,
    AttentionInputs, AttentionPlan, Config, Options, segmented,
};
use gustav_cuda::{Device, DeviceBuffer, DeviceDense, DevicePattern};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{
    AttentionCase, AttentionGradientsCase, Settings, check_attention, check_attention_gradients,
};

fn device() -> Device {
    Device::cuda(0).expect("a CUDA device")
}

fn problem<I: Index, O: Index>(
    pattern: &DevicePattern<I, O>,
    (heads, columns, value_columns): (usize, usize, usize),
) -> Problem {
    pattern.attention(columns).heads(heads).value_columns(value_columns).problem
}

/// Copies a result back, and leaves what is between its lines.
fn download<T: Scalar>(from: &DeviceDense<T>, mut to: DenseViewMut<'_, T>) -> Result<()> {
    let found = from.download()?;
    for line in 0..if to.ncols() == 0 { 0 } else { to.nrows() } {
        let values = &found.data()[line * found.leading_dimension()..][..to.ncols()];
        to.line_mut(line).copy_from_slice(values);
    }
    Ok(())
}

fn upload<T: Scalar>(device: &Device, m: &DenseView<'_, T>) -> Result<DeviceDense<T>> {
    DeviceDense::upload(device, m)
}

fn forward<T: Scalar, I: Index, O: Index>(
    device: &Device,
    options: &Options,
    case: AttentionCase<'_, T, I, O>,
) -> Result<()> {
    let AttentionCase { pattern, heads, columns, value_columns, .. } = case;
    let pattern = DevicePattern::upload(device, pattern)?;
    let problem = problem(&pattern, (heads, columns, value_columns));
    let mut plan = AttentionPlan::<T>::new(&pattern, &problem, options)?;
    let [q, k, v] = [&case.q, &case.k, &case.v].map(|m| upload(device, m));
    let mut o = upload(device, &case.o.as_view())?;
    let mut call = AttentionCall::new().scores(case.scores);
    let bias = case.bias.map(|(b, order)| {
        Ok::<_, gustav_core::Error>((DeviceBuffer::from_slice(device, b, "bias")?, order))
    });
    let bias = bias.transpose()?;
    if let Some((bias, order)) = &bias {
        call = call.bias(bias, *order);
    }
    match case.lse {
        Some(lse) => {
            let mut on = DeviceBuffer::from_slice(device, lse, "lse")?;
            plan.execute(&q?, &k?, &v?, &mut o, call.lse(&mut on))?;
            on.read(lse)?;
        }
        None => plan.execute(&q?, &k?, &v?, &mut o, call)?,
    }
    download(&o, case.o)
}

fn gradients<T: Scalar, I: Index, O: Index>(
    device: &Device,
    options: &Options,
    case: AttentionGradientsCase<'_, T, I, O>,
) -> Result<()> {
    let shares = matches!(case.of_bias, Some((_, HeadValues::Shared))) && case.heads > 1;
    if shares && size_of::<T>() == 2 {
        return in_f32(device, options, case);
    }
    let AttentionGradientsCase { pattern, heads, columns, value_columns, .. } = case;
    let pattern = DevicePattern::upload(device, pattern)?;
    let problem = problem(&pattern, (heads, columns, value_columns));
    let mut plan = AttentionGradientsPlan::<T>::new(&pattern, &problem, options)?;
    let on = |m: &DenseView<'_, T>| upload(device, m);
    let (q, k, v) = (on(&case.q)?, on(&case.k)?, on(&case.v)?);
    let (o, of_o) = (on(&case.o)?, on(&case.of_o)?);
    let (mut of_q, mut of_k, mut of_v) =
        (on(&case.of_q.as_view())?, on(&case.of_k.as_view())?, on(&case.of_v.as_view())?);
    let lse = DeviceBuffer::from_slice(device, case.lse, "lse")?;
    let mut call = AttentionGradientsCall::new().scores(case.scores);
    let bias = case.bias.map(|(b, order)| {
        Ok::<_, gustav_core::Error>((DeviceBuffer::from_slice(device, b, "bias")?, order))
    });
    let bias = bias.transpose()?;
    if let Some((bias, order)) = &bias {
        call = call.bias(bias, *order);
    }
    let inputs = AttentionInputs { q: &q, k: &k, v: &v, o: &o, lse: &lse, of_o: &of_o };
    let results = AttentionGradients { of_q: &mut of_q, of_k: &mut of_k, of_v: &mut of_v };
    match case.of_bias {
        None => plan.execute(inputs, results, call)?,
        Some((to, order)) => {
            let mut on = DeviceBuffer::from_slice(device, to, "gradient")?;
            plan.execute(inputs, results, call.of_bias(&mut on, order))?;
            on.read(to)?;
        }
    }
    download(&of_q, case.of_q)?;
    download(&of_k, case.of_k)?;
    download(&of_v, case.of_v)
}

/// What is refused in 16 bits, as the refusal says: in f32.
fn in_f32<T: Scalar, I: Index, O: Index>(
    device: &Device,
    options: &Options,
    mut case: AttentionGradientsCase<'_, T, I, O>,
) -> Result<()> {
    let wide = |values: &[T]| values.iter().map(|v| v.to_f64() as f32).collect::<Vec<_>>();
    let dense = |m: &DenseView<'_, T>| {
        Dense::from_fn(m.nrows(), m.ncols(), Layout::RowMajor, |i, j| m.get(i, j).to_f64() as f32)
    };
    let (q, k, v) = (dense(&case.q)?, dense(&case.k)?, dense(&case.v)?);
    let (o, of_o) = (dense(&case.o)?, dense(&case.of_o)?);
    let lse: Vec<_> = case.lse.iter().map(|v| v.to_f64() as f32).collect();
    let results = [&case.of_q, &case.of_k, &case.of_v].map(|m| dense(&m.as_view()));
    let [of_q, of_k, of_v] = results;
    let (mut of_q, mut of_k, mut of_v) = (of_q?, of_k?, of_v?);
    let bias = case.bias.map(|(values, order)| (wide(values), order));
    let mut of_bias = case.of_bias.as_ref().map_or(Vec::new(), |(to, _)| wide(to));
    let same = AttentionGradientsCase {
        name: case.name,
        pattern: case.pattern,
        heads: case.heads,
        columns: case.columns,
        value_columns: case.value_columns,
        q: q.view(),
        k: k.view(),
        v: v.view(),
        o: o.view(),
        lse: &lse,
        of_o: of_o.view(),
        scores: ScoreOptions {
            scale: case.scores.scale.map(|scale| scale.to_f64() as f32),
            negative_slope: case.scores.negative_slope.map(|slope| slope.to_f64() as f32),
        },
        bias: bias.as_ref().map(|(values, order)| (&values[..], *order)),
        of_q: of_q.view_mut(),
        of_k: of_k.view_mut(),
        of_v: of_v.view_mut(),
        of_bias: Some((&mut of_bias[..], HeadValues::Shared)),
    };
    gradients(device, options, same)?;
    for (from, to) in [(&of_q, &mut case.of_q), (&of_k, &mut case.of_k), (&of_v, &mut case.of_v)] {
        for i in 0..from.nrows() {
            (0..from.ncols()).for_each(|j| to.set(i, j, T::from_f64(from.get(i, j).into())));
        }
    }
    if let Some((to, _)) = case.of_bias {
        to.iter_mut().zip(of_bias).for_each(|(to, from)| *to = T::from_f64(from.into()));
    }
    Ok(())
}

/// Which of the two batteries a test runs: every type and configuration has kernels of its own, whose compilation
/// takes longer than they run.
#[derive(Clone, Copy)]
enum Direction {
    Forward,
    Backward,
}

fn battery<T: Scalar, I: Index, O: Index>(options: &Options, direction: Direction) {
    let (device, settings) = (device(), Settings::default());
    match direction {
        Direction::Forward => {
            check_attention::<T, I, O>(&settings, |case| forward(&device, options, case));
        }
        Direction::Backward => {
            check_attention_gradients::<T, I, O>(&settings, |case| {
                gradients(&device, options, case)
            });
        }
    }
}

fn configured(chunk: u32, tiles: u32, block: u32, longest: u32) -> Options {
    let config = segmented::Config { chunk, tiles, block, longest };
    let chooser = Chooser::Named(Algorithm::Segmented);
    Options { chooser, config: Some(Config::Segmented(config)) }
}

macro_rules! passes_the_battery {
    ($($name:ident: $t:ty, $i:ty, $o:ty, $options:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            #[ignore = "needs a CUDA device"]
            fn forward() {
                battery::<$t, $i, $o>(&$options, Direction::Forward);
            }

            #[test]
            #[ignore = "needs a CUDA device"]
            fn backward() {
                battery::<$t, $i, $o>(&$options, Direction::Backward);
            }
        }
    )*};
}

passes_the_battery! {
    in_f32: f32, u32, u32, Options::default();
    in_f64: f64, u32, u64, Options::default();
    in_f16: f16, u64, u64, Options::default();
    in_bf16: bf16, u64, u32, Options::default();
    in_f32_by_narrow_groups: f32, u32, u32, configured(2, 2, 128, 64);
    in_f16_by_narrow_groups: f16, u32, u32, configured(2, 2, 128, 64);
    in_f32_by_warps: f32, u32, u32, configured(2, 8, 32, 32);
    in_f16_by_warps: f16, u32, u32, configured(2, 8, 32, 32);
    in_f32_by_large_blocks: f32, u32, u32, configured(4, 1, 1024, 64);
    in_f16_by_large_blocks: f16, u32, u32, configured(4, 1, 1024, 64);
    in_f32_by_long_segments: f32, u32, u32, configured(8, 3, 256, 4096);
    in_f16_by_long_segments: f16, u32, u32, configured(8, 3, 256, 4096);
}

/// A row-major matrix of seeded values on the device.
fn seeded(device: &Device, rows: usize, columns: usize, seed: u64) -> DeviceDense<f32> {
    let values = gustav_testkit::battery::values::values(rows * columns, seed);
    let m = Dense::from_row_major(rows, columns, values).expect("values");
    DeviceDense::upload(device, &m.view()).expect("an operand")
}
