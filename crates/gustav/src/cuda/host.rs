//! Matrices in host memory multiplied on a GPU.

use gustav_core::{
    Csr, CsrView, DenseView, DenseViewMut, Error, Index, Problem, Result, Scalar, SemiringKind,
};
use gustav_cpu::{Fingerprint, Threads};
use gustav_plan::{Algorithm, Choice, Chooser};

use super::plan::{SpgemmPlan, SpmmPlan, SpmvPlan};
use super::{DeviceBuffer, DeviceCsr, DeviceDense, spgemm};
use crate::explain::Config;
use crate::plan::{PlanSpgemm, PlanSpmm, PlanSpmv};
use crate::{Device, Explanation};

/// A plan whose executions move the operands to the GPU and the product back.
pub(crate) struct HostSpmm<T: Scalar, I: Index, O: Index> {
    device: gustav_cuda::Device,
    problem: Problem,
    a: DeviceCsr<T, I, O>,
    // Kept from one execution to the next, as long as their shapes in memory stay.
    b: Option<DeviceDense<T>>,
    c: Option<DeviceDense<T>>,
    plan: SpmmPlan<T, I, O>,
    known: Known,
}

impl<T: Scalar, I: Index, O: Index> HostSpmm<T, I, O> {
    /// Moves `a` to the GPU and plans there.
    pub fn new(device: &Device, a: &CsrView<'_, T, I, O>, problem: &Problem) -> Result<Self> {
        let cuda = device.cuda_device()?;
        let resident = DeviceCsr::upload(cuda, a)?;
        let plan = (&resident).plan_spmm(device, problem)?;
        let known = Known::new(device, a);
        let (device, problem) = (cuda.clone(), problem.clone());
        Ok(HostSpmm { device, problem, a: resident, b: None, c: None, plan, known })
    }

    /// What the plan on the GPU says.
    pub fn explain(&self) -> &Explanation {
        self.plan.explain()
    }

    /// C = α·op(A)·B ⊕ β·C over `kind`, done when this returns; `reads_c` is false for a β that
    /// leaves C unread.
    pub fn execute(
        &mut self,
        kind: SemiringKind,
        a: &CsrView<'_, T, I, O>,
        alpha: T::Accum,
        b: &DenseView<'_, T>,
        beta: T::Accum,
        reads_c: bool,
        c: &mut DenseViewMut<'_, T>,
    ) -> Result<()> {
        check(kind, &self.problem)?;
        self.known.check("A", a)?;
        self.a.values_mut().write(a.values())?;
        let stream = self.device.stream();
        let b_device = room(&self.device, &mut self.b, b)?;
        b_device.data_mut().write(b.data())?;
        let before = c.as_view();
        // Padding between the lines of C goes there and comes back unchanged.
        let padded = before.data().len() != before.nrows() * before.ncols();
        let c_device = room(&self.device, &mut self.c, &before)?;
        if reads_c || padded {
            c_device.data_mut().write(before.data())?;
        }
        self.plan.execute(&self.a, alpha, b_device, beta, c_device, stream)?;
        c_device.data().read(c.data())
    }
}

/// The matrix in `kept`, made anew when it does not lie in memory as `m` does.
fn room<'k, T: Scalar>(
    device: &gustav_cuda::Device,
    kept: &'k mut Option<DeviceDense<T>>,
    m: &DenseView<'_, T>,
) -> Result<&'k mut DeviceDense<T>> {
    let (rows, columns, layout) = (m.nrows(), m.ncols(), m.layout());
    let (ld, len) = (m.leading_dimension(), m.data().len());
    let found = kept.take().filter(|d| {
        (d.nrows(), d.ncols(), d.layout()) == (rows, columns, layout)
            && (d.leading_dimension(), d.data().len()) == (ld, len)
    });
    let matrix = match found {
        Some(matrix) => matrix,
        None => {
            let data = DeviceBuffer::uninit(device, len, "a dense matrix on the device")?;
            DeviceDense::new(rows, columns, layout, ld, data)?
        }
    };
    Ok(kept.insert(matrix))
}

/// A plan for vectors whose executions move the operands to the GPU and the product back.
pub(crate) struct HostSpmv<T: Scalar, I: Index, O: Index> {
    device: gustav_cuda::Device,
    problem: Problem,
    a: DeviceCsr<T, I, O>,
    x: DeviceBuffer<T>,
    y: DeviceBuffer<T>,
    plan: SpmvPlan<T, I, O>,
    known: Known,
}

impl<T: Scalar, I: Index, O: Index> HostSpmv<T, I, O> {
    /// Moves `a` to the GPU and plans there.
    pub fn new(device: &Device, a: &CsrView<'_, T, I, O>, problem: &Problem) -> Result<Self> {
        let cuda = device.cuda_device()?;
        let resident = DeviceCsr::upload(cuda, a)?;
        let plan = (&resident).plan_spmv(device, problem)?;
        Ok(HostSpmv {
            device: cuda.clone(),
            problem: problem.clone(),
            a: resident,
            x: DeviceBuffer::uninit(cuda, problem.inner(), "x on the device")?,
            y: DeviceBuffer::uninit(cuda, problem.output_rows(), "y on the device")?,
            plan,
            known: Known::new(device, a),
        })
    }

    /// What the plan on the GPU says.
    pub fn explain(&self) -> &Explanation {
        self.plan.explain()
    }

    /// y = α·op(A)·x ⊕ β·y over `kind`, done when this returns; `reads_y` is false for a β that
    /// leaves y unread.
    pub fn execute(
        &mut self,
        kind: SemiringKind,
        a: &CsrView<'_, T, I, O>,
        alpha: T::Accum,
        x: &[T],
        beta: T::Accum,
        reads_y: bool,
        y: &mut [T],
    ) -> Result<()> {
        check(kind, &self.problem)?;
        self.known.check("A", a)?;
        self.a.values_mut().write(a.values())?;
        self.x.write(x)?;
        if reads_y {
            self.y.write(y)?;
        }
        self.plan.execute(&self.a, alpha, &self.x, beta, &mut self.y, self.device.stream())?;
        self.y.read(y)
    }
}

/// A plan whose executions move the operands to the GPU and the product back: at once, or in tiles
/// where they do not fit together.
pub(crate) struct HostSpgemm<T: Scalar, I: Index, O: Index> {
    problem: Problem,
    products: u64,
    place: Place<T, I, O>,
}

enum Place<T: Scalar, I: Index, O: Index> {
    Resident(Box<Resident<T, I, O>>),
    Tiled(Box<(Device, Explanation)>),
}

/// Both operands and the plan for them, on the GPU.
struct Resident<T: Scalar, I: Index, O: Index> {
    device: gustav_cuda::Device,
    a: DeviceCsr<T, I, O>,
    b: DeviceCsr<T, I, O>,
    plan: SpgemmPlan<T, I, O>,
    known: [Known; 2],
}

impl<T: Scalar, I: Index, O: Index> Resident<T, I, O> {
    /// Moves the values of `a` and `b` to the GPU.
    fn take(&mut self, a: &CsrView<'_, T, I, O>, b: &CsrView<'_, T, I, O>) -> Result<()> {
        let [of_a, of_b] = &mut self.known;
        of_a.check("A", a)?;
        of_b.check("B", b)?;
        self.a.values_mut().write(a.values())?;
        self.b.values_mut().write(b.values())
    }
}

impl<T: Scalar, I: Index, O: Index> HostSpgemm<T, I, O> {
    /// Moves `a` and `b` to the GPU and plans there. What does not fit is computed in tiles, unless
    /// another algorithm was named.
    pub fn new(
        device: &Device,
        a: &CsrView<'_, T, I, O>,
        b: &CsrView<'_, T, I, O>,
        problem: &Problem,
    ) -> Result<Self> {
        let place = match device.chooser() {
            Chooser::Named(Algorithm::Tiled) => {
                Self::tiled(device, problem, "named by the caller")?
            }
            chooser => match Self::resident(device, a, b, None, problem) {
                Err(Error::OutOfMemory { what, .. }) if chooser == Chooser::Auto => {
                    let reason = format!("there is no room for {what} beside the rest");
                    Self::tiled(device, problem, &reason)?
                }
                other => other?,
            },
        };
        let products = intermediate_products(a, b, problem.transpose_a);
        Ok(HostSpgemm { problem: problem.clone(), products, place })
    }

    /// Moves `a`, `b` and `mask` to the GPU and plans a product under the mask there.
    pub fn masked(
        device: &Device,
        a: &CsrView<'_, T, I, O>,
        b: &CsrView<'_, T, I, O>,
        mask: &CsrView<'_, T, I, O>,
        problem: &Problem,
    ) -> Result<Self> {
        let place = Self::resident(device, a, b, Some(mask), problem)?;
        let products = intermediate_products(a, b, problem.transpose_a);
        Ok(HostSpgemm { problem: problem.clone(), products, place })
    }

    fn resident(
        device: &Device,
        a: &CsrView<'_, T, I, O>,
        b: &CsrView<'_, T, I, O>,
        mask: Option<&CsrView<'_, T, I, O>>,
        problem: &Problem,
    ) -> Result<Place<T, I, O>> {
        let cuda = device.cuda_device()?;
        let known = [a, b].map(|m| Known::new(device, m));
        let (a, b) = (DeviceCsr::upload(cuda, a)?, DeviceCsr::upload(cuda, b)?);
        let plan = match mask {
            None => (&a).plan_spgemm(&b, device, problem)?,
            Some(mask) => {
                let mask = DeviceCsr::upload(cuda, mask)?;
                (&a).plan_spgemm_masked(&b, &mask, device, problem)?
            }
        };
        Ok(Place::Resident(Box::new(Resident { device: cuda.clone(), a, b, plan, known })))
    }

    fn tiled(device: &Device, problem: &Problem, reason: &str) -> Result<Place<T, I, O>> {
        spgemm::tiled::supports(problem)?;
        let (algorithm, config) = (Algorithm::Tiled, Config::CudaTiled);
        let choice = Choice { algorithm, config, reason: reason.into() };
        let explanation = Explanation::new(problem, device, None, choice, 0);
        Ok(Place::Tiled(Box::new((device.clone(), explanation))))
    }

    /// What the plan on the GPU says.
    pub fn explain(&self) -> &Explanation {
        match &self.place {
            Place::Resident(on) => on.plan.explain(),
            Place::Tiled(on) => &on.1,
        }
    }

    /// Intermediate products.
    pub fn products(&self) -> u64 {
        self.products
    }

    /// C = α·op(A)·B over `kind`.
    pub fn execute(
        &mut self,
        kind: SemiringKind,
        a: &CsrView<'_, T, I, O>,
        alpha: T::Accum,
        b: &CsrView<'_, T, I, O>,
    ) -> Result<Csr<T, I, O>> {
        check(kind, &self.problem)?;
        match &mut self.place {
            Place::Resident(on) => {
                on.take(a, b)?;
                on.plan.execute(&on.a, alpha, &on.b, on.device.stream())?.download()
            }
            Place::Tiled(on) => {
                self.problem.check_a(a.nrows(), a.ncols(), a.nnz())?;
                on.0.spgemm_tiled(*a, alpha, *b, &self.problem, spgemm::tiled::Tiling::default())
            }
        }
    }

    /// C = α·op(A)·B ⊕ β·D over `kind`.
    pub fn execute_add(
        &mut self,
        kind: SemiringKind,
        a: &CsrView<'_, T, I, O>,
        alpha: T::Accum,
        b: &CsrView<'_, T, I, O>,
        beta: T::Accum,
        d: &CsrView<'_, T, I, O>,
    ) -> Result<Csr<T, I, O>> {
        check(kind, &self.problem)?;
        match &mut self.place {
            Place::Resident(on) => {
                on.take(a, b)?;
                let d = DeviceCsr::upload(&on.device, d)?;
                let stream = on.device.stream();
                on.plan.execute_add(&on.a, alpha, &on.b, beta, &d, stream)?.download()
            }
            Place::Tiled(_) => Err(Error::Unsupported {
                problem: self.problem.to_string(),
                backend: "a sum with D in tiles".into(),
                reason: "product and sum do not fit on the GPU together".into(),
                nearest: "the device cpu".into(),
            }),
        }
    }
}

/// C = α·op(A)·B with values of type `U`, [`Problem::output`], of operands that are moved to the GPU.
pub(crate) fn spgemm_as<T: Scalar, I: Index, O: Index, U: Scalar<Accum = T::Accum>>(
    device: &Device,
    a: &CsrView<'_, T, I, O>,
    alpha: T::Accum,
    b: &CsrView<'_, T, I, O>,
    problem: &Problem,
) -> Result<Csr<U, I, O>> {
    let cuda = device.cuda_device()?;
    let (a, b) = (DeviceCsr::upload(cuda, a)?, DeviceCsr::upload(cuda, b)?);
    let options = spgemm::Options { chooser: device.chooser(), ..spgemm::Options::default() };
    let mut plan = spgemm::SpgemmPlan::<T, I, O, U>::with_output(&a, &b, problem, &options)?;
    plan.execute(&a, alpha, &b, cuda.stream())?.download()
}

/// Intermediate products of op(A)·B: its multiplications. Rows that B lacks count as empty.
pub fn intermediate_products<T: Scalar, I: Index, O: Index>(
    a: &CsrView<'_, T, I, O>,
    b: &CsrView<'_, T, I, O>,
    transpose_a: bool,
) -> u64 {
    let length = |row: usize| if row < b.nrows() { b.row_len(row) as u64 } else { 0 };
    if transpose_a {
        (0..a.nrows()).map(|row| a.row_len(row) as u64 * length(row)).sum()
    } else {
        a.indices().iter().map(|k| length(k.to_usize())).sum()
    }
}

/// A pattern that is on the GPU.
struct Known {
    pattern: Fingerprint,
    threads: Threads,
}

impl Known {
    fn new<T: Scalar, I: Index, O: Index>(device: &Device, a: &CsrView<'_, T, I, O>) -> Self {
        let threads = device.threads().clone();
        Known { pattern: Fingerprint::new(a, device.is_for_one_call(), &threads), threads }
    }

    /// `a`, called `name`, has it.
    fn check<T: Scalar, I: Index, O: Index>(
        &mut self,
        name: &str,
        a: &CsrView<'_, T, I, O>,
    ) -> Result<()> {
        self.pattern.check(name, a, &self.threads)
    }
}

/// The semiring is that of the plan.
fn check(kind: SemiringKind, problem: &Problem) -> Result<()> {
    if kind == problem.semiring {
        return Ok(());
    }
    Err(Error::Argument {
        name: "semiring",
        found: kind.to_string(),
        expected: format!("{}, which the plan's kernel was compiled for", problem.semiring),
    })
}
