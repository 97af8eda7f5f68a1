//! Records of products over ranks: bytes that are sent, counted for any number of ranks, and times beside PETSc's.

use std::collections::BTreeMap;
use std::path::Path;

use gustav_core::{Error, Result};

use crate::Ratios;
use crate::csv::{self, Csv, Line};

/// Schemes of communication whose bytes are counted: all of B to all ranks first, as others are relative to it.
pub const SCHEMES: [&str; 5] = ["all", "1.5D", "rows-of-b", "partial-rows-of-c", "cheapest"];

/// Folders of matrices, and what their matrices are to the rules.
const FOLDERS: [(&str, &str); 3] =
    [("corpus2", "unseen"), ("corpus", "seen"), ("generated", "generated")];

/// Columns of the products whose bytes are counted.
const COLUMNS: f64 = 64.0;

// The network of the model: as `gustav plan --mpi-ranks` takes it unless told otherwise.
const LATENCY: f64 = 2e-6;
const BANDWIDTH: f64 = 12.5e9;

/// Lines of the records of products over ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankRecords {
    volumes: Vec<Volume>,
    speeds: Vec<Speed>,
}

/// What ranks send in one product by one scheme, as `bench/mpi_volumes.py` records it.
#[derive(Clone, Debug, PartialEq)]
struct Volume {
    folder: String,
    matrix: String,
    nnz: f64,
    ranks: usize,
    scheme: String,
    bytes: f64,
    messages: f64,
    /// The most bytes that a rank sends or receives.
    most_bytes: f64,
    imbalance: f64,
    communication_imbalance: f64,
}

/// A product beside PETSc's, as `bench/mpi_speed.py` records it.
#[derive(Clone, Debug, PartialEq)]
pub struct Speed {
    /// The folder of the matrix.
    folder: String,
    /// The matrix.
    pub matrix: String,
    /// `spmv` or `spmm`.
    pub operation: String,
    /// Nonzeros × columns ÷ ranks ÷ seconds.
    rate: f64,
    /// PETSc's time ÷ ours.
    pub ratio: f64,
    /// Our bytes ÷ PETSc's; `None` where nothing is sent.
    pub bytes: Option<f64>,
    /// `ok`, or what was wrong.
    status: String,
}

/// Products of one kind beside PETSc's.
#[derive(Clone, Debug, PartialEq)]
pub struct BesidePetsc {
    /// What the matrices are to the rules: `unseen` or `seen`.
    pub matrices: &'static str,
    /// `spmv` or `spmm`.
    pub operation: &'static str,
    /// PETSc's time ÷ ours.
    pub times: Ratios,
    /// Our bytes ÷ PETSc's, of products that send some.
    pub bytes: Ratios,
    /// Every product, the slowest beside PETSc first.
    pub each: Vec<Speed>,
}

/// Counted bytes of the matrices of a folder on a number of ranks: geometric means.
#[derive(Clone, Debug, PartialEq)]
pub struct CountedBytes {
    /// What the matrices are to the rules, or `generated`.
    pub matrices: &'static str,
    /// Number of ranks.
    pub ranks: usize,
    /// Number of matrices.
    pub cases: usize,
    /// By scheme: bytes ÷ bytes of sending all of B to all ranks.
    pub relative: [f64; SCHEMES.len()],
    /// By scheme: predicted efficiency, where a rate of the kernel was measured.
    pub efficiency: Option<[f64; SCHEMES.len()]>,
    /// Of the cheapest scheme: bytes ÷ those of rows of B alone.
    pub to_rows_of_b: f64,
    /// Of the cheapest scheme: the most nonzeros that a rank multiplies ÷ their mean.
    pub imbalance: f64,
    /// Of the cheapest scheme: the most bytes that a rank sends ÷ their mean.
    pub communication_imbalance: f64,
}

/// Reads a file of `bench/mpi_volumes.py` or `bench/mpi_speed.py`, which its columns tell.
///
/// # Errors
/// [`Error::Io`] when it cannot be read, [`Error::Format`] for columns that are missing, [`Error::Parse`] for what is
/// no number, [`Error::Argument`] for a result that was wrong.
pub fn read_ranks(path: &Path) -> Result<RankRecords> {
    RankRecords::parse(&csv::text(path)?).map_err(|e| e.in_file(path))
}

impl RankRecords {
    fn parse(text: &str) -> Result<Self> {
        let speeds = Csv::parse(text, "records of ranks", "bench/mpi_speed.py");
        if speeds.has("petsc_bytes") {
            return Ok(RankRecords { speeds: Speed::all(&speeds)?, ..Self::default() });
        }
        let volumes = Csv::parse(text, "records of ranks", "bench/mpi_volumes.py");
        Ok(RankRecords { volumes: Volume::all(&volumes)?, ..Self::default() })
    }

    /// Adds other records.
    pub fn extend(&mut self, other: RankRecords) {
        self.volumes.extend(other.volumes);
        self.speeds.extend(other.speeds);
    }

    /// Products beside PETSc's, for unseen and seen matrices and each operation of which there are some.
    pub fn beside_petsc(&self) -> Vec<BesidePetsc> {
        let mut found = Vec::new();
        for (folder, matrices) in FOLDERS {
            for operation in ["spmv", "spmm"] {
                let is_here = |s: &&Speed| s.folder == folder && s.operation == operation;
                let mut each: Vec<_> = self.speeds.iter().filter(is_here).cloned().collect();
                each.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
                let times: Vec<_> = each.iter().map(|speed| speed.ratio).collect();
                let bytes: Vec<_> = each.iter().filter_map(|speed| speed.bytes).collect();
                if let (Some(times), Some(bytes)) = (Ratios::of(&times), Ratios::of(&bytes)) {
                    found.push(BesidePetsc { matrices, operation, times, bytes, each });
                }
            }
        }
        found
    }

    /// Nonzeros × columns that a rank multiplies in a second: the median over the SpMM that were measured.
    pub fn rate(&self) -> Option<f64> {
        let spmm = self.speeds.iter().filter(|speed| speed.operation == "spmm");
        let mut rates: Vec<_> = spmm.map(|speed| speed.rate).collect();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied()
    }

    /// Counted bytes by folder and number of ranks. A matrix of which ranks need nothing of each other is left out, as
    /// there is no ratio.
    pub fn counted(&self) -> Vec<CountedBytes> {
        let rate = self.rate();
        let mut found = Vec::new();
        for (folder, matrices) in FOLDERS {
            let mut by_ranks: BTreeMap<usize, BTreeMap<&str, [Option<&Volume>; SCHEMES.len()]>> =
                BTreeMap::new();
            for volume in self.volumes.iter().filter(|volume| volume.folder == folder) {
                let of_matrix = by_ranks.entry(volume.ranks).or_default();
                let of_schemes = of_matrix.entry(&volume.matrix).or_default();
                if let Some(k) = SCHEMES.iter().position(|name| *name == volume.scheme) {
                    of_schemes[k] = Some(volume);
                }
            }
            for (ranks, of_matrix) in by_ranks {
                let cases: Vec<[&Volume; SCHEMES.len()]> = of_matrix
                    .into_values()
                    .filter_map(complete)
                    .filter(|[_, _, rows_of_b, _, cheapest]| {
                        rows_of_b.bytes > 0.0 && cheapest.bytes > 0.0
                    })
                    .collect();
                found.extend(CountedBytes::of(matrices, ranks, &cases, rate));
            }
        }
        found
    }
}

/// The volumes of all schemes, if there are all.
fn complete(schemes: [Option<&Volume>; SCHEMES.len()]) -> Option<[&Volume; SCHEMES.len()]> {
    let [Some(a), Some(b), Some(c), Some(d), Some(e)] = schemes else { return None };
    Some([a, b, c, d, e])
}

impl CountedBytes {
    fn of(
        matrices: &'static str,
        ranks: usize,
        cases: &[[&Volume; SCHEMES.len()]],
        rate: Option<f64>,
    ) -> Option<Self> {
        let mean = |of: &dyn Fn(&[&Volume; SCHEMES.len()]) -> f64| {
            let values: Vec<_> = cases.iter().map(of).collect();
            Ratios::of(&values).map(|ratios| ratios.geomean)
        };
        let each = |of: &dyn Fn(&[&Volume; SCHEMES.len()], usize) -> f64| {
            let mut means = [0.0; SCHEMES.len()];
            for (k, value) in means.iter_mut().enumerate() {
                *value = mean(&|schemes| of(schemes, k))?;
            }
            Some(means)
        };
        let efficiency = rate.and_then(|rate| each(&|schemes, k| schemes[k].efficiency(rate)));
        Some(CountedBytes {
            matrices,
            ranks,
            cases: cases.len(),
            relative: each(&|schemes, k| schemes[k].bytes / schemes[0].bytes)?,
            efficiency,
            to_rows_of_b: mean(&|[_, _, rows_of_b, _, cheapest]| cheapest.bytes / rows_of_b.bytes)?,
            imbalance: mean(&|[.., cheapest]| cheapest.imbalance)?,
            communication_imbalance: mean(&|[.., cheapest]| cheapest.communication_imbalance)?,
        })
    }
}

impl Volume {
    fn all(csv: &Csv) -> Result<Vec<Self>> {
        let [folder, matrix, scheme] =
            [csv.column("folder")?, csv.column("matrix")?, csv.column("communication")?];
        let names = [
            "nnz",
            "ranks",
            "bytes",
            "messages",
            "most_sent_bytes",
            "most_received_bytes",
            "imbalance",
            "communication_imbalance",
        ];
        let columns = names.iter().map(|name| csv.column(name)).collect::<Result<Vec<_>>>()?;
        let of_line = |line: Line<'_>| {
            let number = |k: usize| line.number(columns[k]);
            Ok(Volume {
                folder: line.word(folder).to_owned(),
                matrix: line.word(matrix).to_owned(),
                scheme: line.word(scheme).to_owned(),
                nnz: number(0)?,
                ranks: number(1)? as usize,
                bytes: number(2)?,
                messages: number(3)?,
                most_bytes: number(4)?.max(number(5)?),
                imbalance: number(6)?,
                communication_imbalance: number(7)?,
            })
        };
        csv.lines().map(of_line).collect()
    }

    /// The time of one rank that has everything ÷ number of ranks ÷ time of the slowest rank. The rank that multiplies
    /// most is taken to send most as well, and a rank to send the mean number of messages, one after another; the
    /// agreement before the product costs a latency for every doubling of the ranks.
    fn efficiency(&self, rate: f64) -> f64 {
        let ranks = self.ranks as f64;
        let mean = self.nnz * COLUMNS / rate / ranks;
        let waiting = (self.messages / ranks + ranks.log2().ceil()) * LATENCY;
        mean / (mean * self.imbalance + self.most_bytes / BANDWIDTH + waiting)
    }
}

impl Speed {
    fn all(csv: &Csv) -> Result<Vec<Self>> {
        let [folder, matrix] = [csv.column("folder")?, csv.column("matrix")?];
        let [operation, status] = [csv.column("operation")?, csv.column("status")?];
        let names =
            ["columns", "nnz", "ranks", "gustav_ms", "ratio", "gustav_bytes", "petsc_bytes"];
        let columns = names.iter().map(|name| csv.column(name)).collect::<Result<Vec<_>>>()?;
        let of_line = |line: Line<'_>| {
            let number = |k: usize| line.number(columns[k]);
            let (sent, theirs) = (number(5)?, number(6)?);
            let speed = Speed {
                folder: line.word(folder).to_owned(),
                matrix: line.word(matrix).to_owned(),
                operation: line.word(operation).to_owned(),
                rate: number(1)? * number(0)? / number(2)? / (number(3)? * 1e-3),
                ratio: number(4)?,
                bytes: (theirs > 0.0).then(|| sent / theirs),
                status: line.word(status).to_owned(),
            };
            match speed.status.as_str() {
                "ok" => Ok(speed),
                wrong => Err(Error::Argument {
                    name: "record of a product over ranks",
                    found: format!("{} of {}: {wrong}", speed.operation, speed.matrix),
                    expected: "results that were right".into(),
                }),
            }
        };
        csv.lines().map(of_line).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const SPEEDS: &str = "folder,matrix,operation,columns,nnz,ranks,gustav_ms,ratio,gustav_bytes,petsc_bytes,status\n\
        corpus2,slow,spmv,1,1000,2,1.0,0.5,80,80,ok\n\
        corpus2,fast,spmv,1,1000,2,1.0,2.0,0,0,ok\n\
        corpus2,fast,spmm,64,1000,2,0.032,8.0,50,100,ok\n";

    /// Records that fill every table and figure.
    pub(crate) fn rank_records() -> RankRecords {
        let mut records = RankRecords::parse(SPEEDS).unwrap();
        let mut text = "folder,matrix,nnz,ranks,communication,bytes,messages,most_sent_bytes,\
                        most_received_bytes,imbalance,communication_imbalance\n"
            .to_owned();
        for ranks in [4, 16] {
            for (scheme, bytes) in SCHEMES.into_iter().zip([1000, 500, 200, 300, 100]) {
                text += &format!("generated,g,1000,{ranks},{scheme},{bytes},8,50,40,1.5,1.25\n");
            }
            // Nothing is needed of other ranks.
            for scheme in SCHEMES {
                text += &format!("generated,diagonal,1000,{ranks},{scheme},0,0,0,0,1,1\n");
            }
        }
        records.extend(RankRecords::parse(&text).unwrap());
        records
    }

    #[test]
    fn ratios_are_by_folder_and_operation() {
        let found = rank_records().beside_petsc();
        let [spmv, spmm] = &found[..] else { panic!("{found:?}") };
        assert_eq!((spmv.matrices, spmv.operation, spmv.times.count), ("unseen", "spmv", 2));
        assert_eq!((spmv.times.geomean, spmv.each[0].matrix.as_str()), (1.0, "slow"));
        // The product that sends nothing has no ratio of bytes.
        assert_eq!((spmv.bytes.count, spmm.bytes.geomean), (1, 0.5));
    }

    #[test]
    fn bytes_are_relative_to_all_of_b_and_efficiency_follows_the_model() {
        let records = rank_records();
        // 1000 nonzeros of 64 columns on two ranks in 32 microseconds.
        assert_eq!(records.rate(), Some(1e9));
        let found = records.counted();
        assert_eq!(found.len(), 2);
        let four = &found[0];
        assert_eq!((four.matrices, four.ranks, four.cases), ("generated", 4, 1));
        let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-12;
        let expected = [1.0, 0.5, 0.2, 0.3, 0.1];
        assert!(four.relative.iter().zip(expected).all(|(a, b)| close(*a, b)), "{four:?}");
        assert!(close(four.to_rows_of_b, 0.5) && close(four.imbalance, 1.5));
        // A rank multiplies for 16 microseconds in the mean, sends two messages, and agrees in two latencies.
        let time = 1.5 * 16e-6 + 50.0 / 12.5e9 + 4.0 * 2e-6;
        assert!(close(four.efficiency.unwrap()[4], 16e-6 / time), "{four:?}");
    }

    #[test]
    fn wrong_results_and_missing_columns_are_named() {
        let wrong = SPEEDS.replace("80,80,ok", "80,80,WRONG: petsc");
        let error = RankRecords::parse(&wrong).unwrap_err().to_string();
        assert!(error.contains("spmv of slow: WRONG: petsc"), "{error}");
        let error = RankRecords::parse("folder,matrix\n").unwrap_err().to_string();
        assert!(error.contains("communication") && error.contains("mpi_volumes.py"), "{error}");
    }
}
