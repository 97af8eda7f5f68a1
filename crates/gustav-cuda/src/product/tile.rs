//! The distribution of the columns of a row of B over lanes.

use gustav_core::DType;

use super::operands::Operands;

const LANES: [u32; 6] = [32, 16, 8, 4, 2, 1];

// Cost of a nonzero: of a sector of B, in instructions of a lane, and instructions of a lane
// besides one for each tile. Fitted to sweeps over 31 to 132 columns of f32.
const SECTOR: u64 = 11;
const BESIDE: u64 = 3;

/// Lanes that share a row of B, and the vectors that each of them holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    pub lanes: u32,
    pub tiles: u32,
}

impl Tile {
    /// The tile for `columns` in vectors of `vector` values, within `limit`. For vectors of 16
    /// bytes the fewest lanes that hold a row of B with the preferred number of tiles; if there are
    /// more vectors than that, the one with the fewest panels, then the fewest idle lanes, then the
    /// number of tiles closest to the preferred one. For narrower vectors the cheapest one, or a
    /// single lane if there are few.
    pub(crate) fn new(dtype: DType, vector: u32, columns: usize, limit: Limit) -> Self {
        let vectors = (columns as u64).div_ceil(u64::from(vector)).max(1);
        let bytes = u64::from(vector) * dtype.bytes() as u64;
        if bytes < 16 && vectors <= limit.alone {
            return Tile { lanes: 1, tiles: vectors as u32 };
        }
        // Neighbouring lanes should read whole sectors of 32 bytes, if a row of B has as many.
        let (sector, most) = match bytes {
            16 => (2, limit.most_tiles),
            8 => (8, limit.most_double),
            _ => (32 / bytes, limit.most_single),
        };
        let sector = sector.min(vectors.next_power_of_two());
        let preferred = limit.tiles.min(limit.most_tiles);
        let lanes = vectors.div_ceil(preferred.into()).next_power_of_two().max(sector);
        if bytes == 16 && lanes <= limit.lanes.into() {
            return Tile { lanes: lanes as u32, tiles: vectors.div_ceil(lanes) as u32 };
        }
        let panels = |lanes: u32, tiles: u32| vectors.div_ceil(u64::from(lanes * tiles));
        let cost = |lanes, tiles| match bytes {
            16 => (panels(lanes, tiles), panels(lanes, tiles) * u64::from(lanes * tiles)),
            _ => (0, panels(lanes, tiles) * unaligned(bytes, lanes.into(), tiles.into())),
        };
        let (lanes, tiles) = LANES
            .iter()
            .filter(|lanes| **lanes <= limit.lanes && u64::from(**lanes) >= sector)
            .flat_map(|l| (1..=most).map(move |t| (*l, t)))
            .min_by_key(|&(l, t)| (cost(l, t), t.abs_diff(limit.tiles), t))
            .unwrap_or((limit.lanes, 1));
        Tile { lanes, tiles }
    }

    /// Columns of a panel, in vectors of `vector`.
    pub(crate) fn panel(self, vector: u32) -> u64 {
        u64::from(self.lanes * self.tiles * vector)
    }

    /// How many of the first tiles have columns for all lanes, in every panel of `columns`.
    pub(crate) fn whole(self, vector: u32, columns: usize) -> u32 {
        match columns as u64 % self.panel(vector) {
            0 => self.tiles,
            last => (last / u64::from(self.lanes * vector)) as u32,
        }
    }
}

/// Cost of a nonzero in one panel if rows of B are not aligned, so that the lanes of a tile access
/// one more sector than they fill.
fn unaligned(bytes: u64, lanes: u64, tiles: u64) -> u64 {
    SECTOR * tiles * (lanes * bytes + 32) / 32 + lanes * (tiles + BESIDE)
}

/// Bounds on a tile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    /// Most lanes.
    pub lanes: u32,
    /// Preferred number of tiles.
    pub tiles: u32,
    /// Most tiles of vectors of 16 bytes.
    pub most_tiles: u32,
    /// Most tiles of vectors of 8 bytes.
    pub most_double: u32,
    /// Most tiles of vectors of 4 bytes or less.
    pub most_single: u32,
    /// A row of B of at most so many vectors of less than 16 bytes is held by one lane.
    pub alone: u64,
}

/// The most values of a vector of at most 16 bytes that divide `number`.
pub(crate) fn widest(dtype: DType, number: u64) -> u32 {
    let most = 16 / dtype.bytes() as u64;
    (most.min(number & number.wrapping_neg())).max(1) as u32
}

/// The widest vector that the columns, leading dimensions and addresses of B and C allow.
pub(crate) fn widest_for(o: &Operands) -> u32 {
    let aligned = |address: u64, ld: usize, dtype: DType| {
        let values = widest(dtype, ld as u64);
        let addressed = (address & address.wrapping_neg()).max(1) / dtype.bytes() as u64;
        if address == 0 { values } else { values.min(addressed.min(16) as u32) }
    };
    // Winners are packed: vectors of them must be aligned too.
    let winners = if o.winners.is_multiple_of(16) { 16 } else { 1 };
    let next = |distance: usize, dtype: DType| match o.batch.count {
        1 => 16,
        _ => widest(dtype, distance as u64),
    };
    widest(o.dtype, o.columns as u64)
        .min(aligned(o.b, o.ldb, o.dtype))
        .min(aligned(o.c, o.ldc, o.dtype_c))
        .min(next(o.batch.b, o.dtype))
        .min(next(o.batch.c, o.dtype_c))
        .min(winners)
}

/// The type of sums of `dtype`.
pub(crate) fn accumulator(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::Bf16 => DType::F32,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_columns_leave_few_lanes_idle() {
        let limit =
            Limit { lanes: 32, tiles: 2, most_tiles: 3, most_double: 5, most_single: 10, alone: 4 };
        let of = |columns: usize| {
            let vector = widest(DType::F32, columns as u64);
            let Tile { lanes, tiles } = Tile::new(DType::F32, vector, columns, limit);
            (vector, lanes, tiles)
        };
        assert_eq!([1, 2, 3, 4].map(of), [(1, 1, 1), (2, 1, 1), (1, 1, 3), (4, 1, 1)]);
        assert_eq!(of(31), (1, 8, 4));
        assert_eq!(of(34), (2, 8, 3));
        assert_eq!(of(33), (1, 8, 5));
        assert_eq!(of(36), (4, 8, 2));
        assert_eq!(of(63), (1, 16, 4));
        assert_eq!(of(65), (1, 16, 5));
        assert_eq!(of(66), (2, 8, 5));
        assert_eq!(of(129), (1, 16, 9));
        assert_eq!(of(130), (2, 16, 5));
        assert_eq!(of(132), (4, 32, 2));
        assert_eq!(of(260), (4, 32, 3));
        // Powers of two have two vectors per lane.
        for columns in [32, 64, 128, 256] {
            assert_eq!(of(columns), (4, columns as u32 / 8, 2));
        }
    }

    #[test]
    fn tiles_are_the_preferred_ones_if_lanes_suffice() {
        let of = |vectors: usize, tiles| {
            let limit = Limit {
                lanes: 32,
                tiles,
                most_tiles: 4,
                most_double: 5,
                most_single: 10,
                alone: 4,
            };
            let Tile { lanes, tiles } = Tile::new(DType::F64, 2, 2 * vectors, limit);
            (lanes, tiles)
        };
        let vectors = [3, 5, 10, 12, 17, 24, 25, 33];
        let found = vectors.map(|vectors| of(vectors, 2));
        assert_eq!(found, [(2, 2), (4, 2), (8, 2), (8, 2), (16, 2), (16, 2), (16, 2), (32, 2)]);
        let found = vectors.map(|vectors| of(vectors, 3));
        assert_eq!(found, [(2, 2), (2, 3), (4, 3), (4, 3), (8, 3), (8, 3), (16, 2), (16, 3)]);
    }

    #[test]
    fn whole_tiles_are_those_of_the_last_panel() {
        let whole = |lanes, tiles, vector, columns| Tile { lanes, tiles }.whole(vector, columns);
        assert_eq!(whole(8, 5, 1, 33), 4);
        assert_eq!(whole(16, 1, 4, 36), 0);
        assert_eq!(whole(16, 3, 4, 132), 2);
        assert_eq!(whole(8, 2, 4, 128), 2);
        assert_eq!(whole(8, 2, 4, 100), 1);
        assert_eq!(whole(32, 3, 1, 97), 0);
    }
}
