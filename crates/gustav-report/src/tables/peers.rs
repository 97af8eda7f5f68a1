//! `auto` compared with the peers.

use super::ratios::{PRODUCT, RATIOS, by_name, cells, cells_of, product_cells};
use crate::Ratios;
use crate::analysis::{Platform, Product, caches, grouped};
use crate::table::{Row, Table, number, row};

/// "platform: reference peers" of every platform.
fn reference_peers(platforms: &[Platform]) -> String {
    let own = platforms.iter().filter(|p| !p.reference_peers.is_empty());
    own.map(|p| format!("{}: {}", p.name, p.reference_peer_names())).collect::<Vec<_>>().join("; ")
}

pub(super) fn summary(platforms: &[Platform]) -> Table {
    let (mut rows, mut separated) = (Vec::new(), 0);
    for platform in platforms {
        let reference_peers: Vec<_> = platform.reference_peers.iter().map(String::as_str).collect();
        for (product, found) in platform.products("auto") {
            let cases: Vec<_> = found.iter().map(|(_, c)| c).collect();
            let caches = row![caches(&cases, &reference_peers)];
            separated += cases.iter().filter(|c| c.is_separated(&reference_peers)).count();
            let ratios = found.iter().map(|(ratio, c)| (c.ours.case.pattern(), *ratio));
            let cells = Ratios::of_patterns(ratios).map(cells_of).unwrap_or_default();
            rows.push([product_cells(platform, &product), cells, caches].concat());
        }
    }
    let separated = match separated {
        0 => String::new(),
        n => format!(
            " Cases in which a peer has an empty launch between its products, each of which would begin before the one before has ended: {n}."
        ),
    };
    let caption = format!(
        "Time of the best peer over the time of auto, per pattern: a matrix and copies of it are one, \
         by the mean of their logarithms, in the worst, the best and the lost by either. Above 1 \
         gustav is faster; a pattern below 1 is lost. Caches were cold or hot as the last column says, which has the \
         geomean with hot ones too, and, where executions followed one another, of single ones \
         after caches were emptied. Reference peers: {}.{separated}",
        reference_peers(platforms)
    );
    let columns = format!("{PRODUCT}, patterns, {RATIOS}, caches");
    Table::new("summary", "Summary", &columns, caption, rows)
}

pub(super) fn kinds(platforms: &[Platform]) -> Table {
    let mut ratios = Vec::new();
    for platform in platforms {
        for (product, found) in platform.products("auto") {
            let name = |kind: &str| row![platform.name, product.name(), product.dtype, kind];
            ratios.extend(found.into_iter().map(|(ratio, c)| (name(&c.ours.kind), ratio)));
        }
    }
    let caption = "The ratios of the summary by what the matrices are, over all columns and orders \
                   of rows of C.";
    let columns = format!("platform, product, type, kind, cases, {RATIOS}");
    Table::new("kinds", "By kind of matrix", &columns, caption, by_name(ratios))
}

/// Time of every peer over that of auto, by the product.
fn peer_ratios(platforms: &[Platform]) -> Vec<(&Platform, &str, Product, f64)> {
    let mut ratios = Vec::new();
    for platform in platforms {
        for peer in platform.peers() {
            let cases = platform.beside("auto", peer);
            let ratio = |c: &crate::Comparison<'_>| c.against(&[peer]);
            let own = cases.iter().filter_map(|c| Some((Product::of(&c.ours.case), ratio(c)?)));
            ratios.extend(own.map(|(product, ratio)| (platform, peer, product, ratio)));
        }
    }
    ratios
}

pub(super) fn peers(platforms: &[Platform]) -> Table {
    let ratios = peer_ratios(platforms).into_iter();
    let ratios =
        ratios.map(|(p, peer, product, ratio)| (row![p.name, peer, product.name()], ratio));
    let columns = format!("platform, peer, product, cases, {RATIOS}");
    let caption = "Time of the peer over the time of auto, over all types and columns.";
    Table::new("peers", "Against each peer", &columns, caption, by_name(ratios))
}

pub(super) fn products(platforms: &[Platform]) -> Table {
    let ratios = peer_ratios(platforms).into_iter();
    let keyed = ratios.map(|(p, peer, product, ratio)| ((&p.name, peer, product), ratio));
    let line = |((platform, peer, product), ratios): ((&String, &str, Product), Vec<f64>)| {
        let names = row![platform, peer, product.name(), product.dtype, product.detail()];
        Some([names, cells(&ratios)?].concat())
    };
    let rows = grouped(keyed).into_iter().filter_map(line).collect();
    let columns = format!("platform, peer, product, type, variant, cases, {RATIOS}");
    let caption = "Time of the peer over the time of auto.";
    Table::new("peers-by-product", "Against each peer by product", &columns, caption, rows)
}

pub(super) fn losses(platforms: &[Platform]) -> Table {
    let mut lost: Vec<(f64, Row)> = Vec::new();
    for platform in platforms {
        let found = platform.products("auto").into_iter().flat_map(|(_, found)| found);
        for (ratio, c) in found.filter(|(ratio, _)| *ratio < 1.0) {
            let own = c.peers.values().filter(|r| platform.reference_peers.contains(&r.engine));
            let best = own.min_by(|a, b| a.time().total_cmp(&b.time()));
            let best = best.map_or(String::new(), |r| format!("{} {:.4}", r.engine, r.time()));
            let (r, ratio_cell) = (c.ours, format!("{ratio:.2}"));
            let chosen = r.chosen.as_deref().unwrap_or_default();
            let ms = number(r.execute_ms, 4);
            let cells = row![platform.name, r.case, r.kind, r.nnz, ratio_cell, ms, chosen, best];
            lost.push((ratio, cells));
        }
    }
    lost.sort_by(|a, b| a.0.total_cmp(&b.0));
    let caption = "Every case where a reference peer is faster than auto, worst first.";
    let columns = "platform, case, kind, nonzeros, ratio, ours (ms), algorithm, best peer (ms)";
    Table::new("losses", "Losses", columns, caption, lost.into_iter().map(|l| l.1).collect())
}
