//! Attention and its gradients on the device against the oracle.

mod plan;

use gustav_core::{
    Arith, Dense, DenseView, DenseViewMut, HeadValues, Index, Problem, Result, Scalar, bf16, f16,
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
    let mut call = AttentionCall::new();
    if let Some(scale) = case.scale {
        call = call.scale(scale);
    }
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
    let AttentionGradientsCase { pattern, heads, columns, value_columns, .. } = case;
    let nnz = pattern.nnz();
    let pattern = DevicePattern::upload(device, pattern)?;
    let problem = problem(&pattern, (heads, columns, value_columns));
    let mut plan = AttentionGradientsPlan::<T>::new(&pattern, &problem, options)?;
    let on = |m: &DenseView<'_, T>| upload(device, m);
    let (q, k, v) = (on(&case.q)?, on(&case.k)?, on(&case.v)?);
    let (o, of_o) = (on(&case.o)?, on(&case.of_o)?);
    let (mut of_q, mut of_k, mut of_v) =
        (on(&case.of_q.as_view())?, on(&case.of_k.as_view())?, on(&case.of_v.as_view())?);
    let lse = DeviceBuffer::from_slice(device, case.lse, "lse")?;
    let mut call = AttentionGradientsCall::new();
    if let Some(scale) = case.scale {
        call = call.scale(scale);
    }
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
        // What is refused in 16 bits, as the refusal says: heads that the caller adds up.
        Some((to, HeadValues::Shared)) if heads > 1 && size_of::<T>() == 2 => {
            let mut all = DeviceBuffer::zeros(device, heads * nnz, "gradient")?;
            plan.execute(inputs, results, call.of_bias(&mut all, HeadValues::HeadMajor))?;
            let all = all.to_host()?;
            for (p, to) in to.iter_mut().enumerate() {
                let sum = |sum: T::Accum, head: usize| sum.plus(all[head * nnz + p].to_accum());
                *to = T::from_accum((0..heads).fold(T::Accum::zero(), sum));
            }
        }
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

fn both<T: Scalar, I: Index, O: Index>(options: &Options) {
    let (device, settings) = (device(), Settings::default());
    check_attention::<T, I, O>(&settings, |case| forward(&device, options, case));
    check_attention_gradients::<T, I, O>(&settings, |case| gradients(&device, options, case));
}

#[test]
#[ignore = "needs a CUDA device"]
fn passes_the_battery_in_every_type() {
    let options = Options::default();
    both::<f32, u32, u32>(&options);
    both::<f64, u32, u64>(&options);
    both::<f16, u64, u64>(&options);
    both::<bf16, u64, u32>(&options);
}

#[test]
#[ignore = "needs a CUDA device"]
fn passes_the_battery_in_every_configuration() {
    for (chunk, tiles, block, longest) in [(2, 8, 32, 32), (4, 1, 1024, 64), (8, 3, 256, 4096)] {
        let config = segmented::Config { chunk, tiles, block, longest };
        let options = Options {
            chooser: Chooser::Named(Algorithm::Segmented),
            config: Some(Config::Segmented(config)),
        };
        both::<f32, u32, u32>(&options);
        both::<f16, u32, u32>(&options);
    }
}

/// A row-major matrix of seeded values on the device.
fn seeded(device: &Device, rows: usize, columns: usize, seed: u64) -> DeviceDense<f32> {
    let values = gustav_testkit::battery::values::values(rows * columns, seed);
    let m = Dense::from_row_major(rows, columns, values).expect("values");
    DeviceDense::upload(device, &m.view()).expect("an operand")
}
