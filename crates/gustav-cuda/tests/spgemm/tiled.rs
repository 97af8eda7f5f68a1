//! `tiled`: products in tiles, under a small cap in place of a small device.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use gustav_core::{Error, PlusTimes, Problem, Scalar};
use gustav_cuda::spgemm::Options;
use gustav_cuda::spgemm::tiled::{Progress, Tiling, multiply};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::battery::{Settings, check_spgemm};
use gustav_testkit::oracle;

use crate::device;

fn options() -> Options {
    Options { chooser: Chooser::Named(Algorithm::SharedRow), ..Options::default() }
}

fn battery<T: Scalar>() {
    let device = device();
    let mut most = 0;
    check_spgemm::<T, u32, u32, PlusTimes>(&Settings::default(), |case| {
        let problem = Problem::spgemm(&case.a, &case.b).sorted(case.sorted);
        let mut progress = |p: Progress| {
            most = most.max(p.tiles);
            ControlFlow::Continue(())
        };
        let tiling = Tiling { memory: Some(96 << 10), progress: Some(&mut progress) };
        multiply(&device, (case.a, T::one().to_accum(), case.b), &problem, &options(), tiling)
    });
    assert!(most > 8, "{most} tiles at most");
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_under_a_cap() {
    battery::<f32>();
    battery::<f64>();
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_stopped_product_leaves_the_device_usable_and_its_memory_free() {
    let device = device();
    let a = random_rows::<f64, u32, u32>(600, 600, 8, |row| 5 + row % 30);
    let problem = Problem::spgemm(&a.view(), &a.view());
    let before = device.memory().expect("memory").0;
    let mut calls = 0;
    let mut stop = |p: Progress| {
        calls += 1;
        assert_eq!(p.done, calls);
        if p.done == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let tiling = Tiling { memory: Some(1 << 20), progress: Some(&mut stop) };
    let operands = (a.view(), 1.0, a.view());
    let stopped = multiply(&device, operands, &problem, &options(), tiling);
    assert!(matches!(stopped, Err(Error::Cancelled { done: 3, of: 4.., .. })), "{stopped:?}");
    device.stream().synchronize().expect("a usable device");
    let kept = || before.saturating_sub(device.memory().expect("memory").0);
    // Other tests have memory of the same device for a while.
    let since = Instant::now();
    while kept() > 1 << 30 && since.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(kept() <= 1 << 30, "{} bytes are gone", kept());
    let c = multiply(&device, operands, &problem, &options(), Tiling::default()).expect("C");
    assert!(oracle::Spgemm::new(a.view(), a.view()).verify(c.view()).expect("shapes").ok);
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_cap_below_one_element_is_out_of_memory() {
    let device = device();
    let a = random_rows::<f32, u32, u32>(100, 100, 8, |_| 9);
    let problem = Problem::spgemm(&a.view(), &a.view());
    let tiling = Tiling { memory: Some(64), ..Tiling::default() };
    let refused = multiply(&device, (a.view(), 1.0, a.view()), &problem, &options(), tiling);
    assert!(matches!(refused, Err(Error::OutOfMemory { available: Some(64), .. })), "{refused:?}");
}
