"""Fits the parameters of the cost model to measured times, and judges them on matrices that they were not fitted to.

    gustav bench choice --record choice.jsonl
    gustav tune choice --record choice.jsonl --bounds bounds.jsonl
    python bench/fit_cost_model.py bounds.jsonl --unseen NAMES.txt --output crates/gustav-plan/src/cost/hopper.json

Every product, number of columns and size of values is fitted by itself, and what was written of those that were not measured
stays; with `--only spmv/f16` all others stay, and with `--class cta-per-segment` those of other classes and those that classes
share. Copies along the diagonal of one matrix count as cases of their own, and are unseen
if it is. With `--measured choice.jsonl` regret counts against configurations that are no candidates any more, too, and
with `--table` a table of it, beside that of the `auto` of these measurements, is written between a product's marks in a
document, and with `--regrets` every one of them to a file for `gustav report --regrets`.

The predicted time of a configuration is made of its bounds, each times a parameter that is not negative, as in
`gustav-plan/src/cost/mod.rs`: constant ones, and a norm of those of the whole device and those of one group. Parameters
begin as the least squares of relative errors of the sum, then of logarithms of the prediction, and are then moved to
where choosing the fastest prediction loses least: the mean, over all cases, of the time of a choice by a soft minimum
over the least time. Parameters that contribute less than three hundredths everywhere are left out, and the rest is fitted
again. Each size of values is fitted by itself, and of SpMM on a GPU each number of columns, those whose rows of B are no whole
vectors of 16 bytes apart, and those of vectors that are no power of two; between two numbers the mean of the parameters of
both counts.

With several files of bounds, each is of a run of its own: times of all but the first are scaled to it by the configurations
that both have.

Regret is the time of the chosen configuration over the least of all measured ones, less one. It is printed for
families of matrices held out of the fit, and for the unseen matrices, which no fit reads. Needs NumPy and SciPy.
"""

import argparse
import collections
import csv
import io
import json
import pathlib
import re
import subprocess

import numpy as np
from scipy.optimize import minimize, nnls

PRODUCTS = {
    "spmm": "SpMM on a GPU",
    "spmm-narrow": "SpMM on a GPU",
    "spmm-partial": "SpMM on a GPU",
    "spmv": "SpMV on a GPU",
    "cpu-spmm": "SpMM on a CPU",
}
# Of which every measured number of columns of B has parameters of its own.
BY_COLUMNS = {"spmm", "spmm-narrow", "spmm-partial"}
VECTOR_BYTES = 16
COMMON = ("execution", "memory", "misses")
# The kinds of bounds, and the exponent of the norm, as in the library; all other bounds are of the whole device.
CONSTANT = ("execution", "class", "cut")
PATH = ("chain", "serial", "fix-up", "longest", "tiles")
OVERLAP = 3
BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
FOLDS = 6
# Of the soft minimum, in units of the logarithm of times; and the weight of errors of predictions beside regret.
SOFTNESS, WEIGHT_OF_ERRORS, STEPS = 0.04, 0.1, 60
STEPS_OF_ERRORS = 150
# Regret beyond this counts as this much, so that no single case decides.
MOST_REGRET = 1.2
LEAST_CONTRIBUTION = 0.03


def read(path):
    if path.suffix == ".zst":
        text = subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout.decode()
    else:
        text = path.read_text()
    return [json.loads(line) for line in io.StringIO(text)]


def on_one_scale(runs):
    """The lines of all runs. Times of later runs are scaled to those of the first: of a case by the geometric mean of the
    ratios of configurations that both have, or of all cases where they have none of it. A device takes some hundredths more in
    one run than in another, and kernels change, which a configuration that one run alone has would be credited with."""
    lines = list(runs[0])
    times = {(*case(line), line["reason"]): line["execute_ms"] for line in lines}
    for run in runs[1:]:
        ratios = collections.defaultdict(list)
        for line in run:
            if (known := times.get((*case(line), line["reason"]))) is not None:
                ratios[case(line)].append(np.log(known / line["execute_ms"]))
        means = {of_case: np.mean(logs) for of_case, logs in ratios.items()}
        of_width = collections.defaultdict(list)
        for (_, *width), mean in means.items():
            of_width[tuple(width)].append(mean)
        of_width = {width: np.mean(logs) for width, logs in of_width.items()}
        for line in run:
            scale = means.get(case(line), of_width.get(case(line)[1:], 0.0))
            lines.append(line | {"execute_ms": line["execute_ms"] * float(np.exp(scale))})
    return lines


def pattern(matrix):
    """The matrix whose copies along the diagonal this is, or itself."""
    return re.sub(" x [0-9]+$", "", matrix)


def is_copy(matrix):
    return pattern(matrix) != matrix


def family(matrix):
    """Matrices of one source or one generator."""
    return pattern(matrix).split(":")[0].split("_")[0]


def case(line):
    return line["matrix"], line["columns"], line["dtype"]


def product(line):
    """Of a line with bounds, or of a record."""
    on_cpu = "" if line.get("gpu") else "cpu-"
    name = line.get("product") or on_cpu + line["operation"]
    if name != "spmm":
        return name
    vectors, rest = divmod(line["columns"] * BYTES.get(line["dtype"], VECTOR_BYTES), VECTOR_BYTES)
    return "spmm-narrow" if rest else "spmm-partial" if vectors & (vectors - 1) else name


def of_product(lines, name):
    return [line for line in lines if product(line) == name]


def parameter(line, bound):
    return bound if bound in COMMON else (line["class"], bound)


class Table:
    """Bounds as a matrix: a row for each measurement, a column for each parameter."""

    def __init__(self, lines, names=None):
        self.lines = lines
        self.names = names or sorted({parameter(x, b) for x in lines for b in x["bounds"]}, key=str)
        index = {name: k for k, name in enumerate(self.names)}
        self.bounds = np.zeros((len(lines), len(self.names)))
        for row, line in enumerate(lines):
            for bound, us in line["bounds"].items():
                if (k := index.get(parameter(line, bound))) is not None:
                    self.bounds[row, k] = us
        self.us = np.array([line["execute_ms"] for line in lines]) * 1e3
        cases = {key: k for k, key in enumerate(dict.fromkeys(map(case, lines)))}
        self.case = np.array([cases[case(line)] for line in lines], int)
        self.least = np.full(len(cases), np.inf)
        np.minimum.at(self.least, self.case, self.us)

    def weights(self):
        """Configurations near the fastest count most."""
        return (self.least[self.case] / self.us) ** 2


def least_squares(table):
    """Parameters with the least relative errors; twice reweighted, so that a prediction of a half costs as much as one
    of the double."""
    relative = table.bounds / table.us[:, None]
    scale = np.maximum(relative.max(0), 1e-12)
    weights = start = table.weights()
    for _ in range(3):
        found, _ = nnls(relative / scale * weights[:, None], weights, maxiter=50_000)
        predicted = np.maximum(relative @ (found / scale), 1e-9)
        near = np.abs(predicted - 1) < 1e-6
        slope = np.where(near, 1, np.log(predicted) / np.where(near, 1, predicted - 1))
        weights = start * np.clip(np.abs(slope), 0.2, 3)
    return found / scale


def kinds(names):
    """0 for bounds of the whole device, 1 for those of one group, 2 for constant ones."""
    bounds = [name if isinstance(name, str) else name[1] for name in names]
    return np.array([2 * (b in CONSTANT) + (b in PATH) for b in bounds])


def predict(bounds, values, of):
    """Predicted times, and how much those of the whole device and those of one group add to them."""
    whole, path, constant = ((bounds * (of == kind)) @ values for kind in range(3))
    whole, path = whole + 1e-9, path + 1e-9
    both = (whole**OVERLAP + path**OVERLAP) ** (1 / OVERLAP)
    slopes = [(part / both) ** (OVERLAP - 1) for part in (whole, path)]
    return both + constant, [*slopes, np.ones_like(both)]


def minimized(table, start, fixed=0):
    """Moves parameters but for the first `fixed` to the least error of the logarithm of predictions, and then to where a
    soft choice of the fastest prediction loses least."""
    scale = np.maximum((table.bounds / table.us[:, None]).mean(0), 1e-12)
    bounds, cases, of = table.bounds / scale, len(table.least), kinds(table.names)
    lost = np.minimum(np.log(table.us / table.least[table.case]), MOST_REGRET)
    logs, weights = np.log(table.us), table.weights() / table.weights().sum()

    def loss(free, weight, of_choice):
        roots = np.concatenate([stay, free])
        predicted, slopes = predict(bounds, roots**2, of)
        log = np.log(predicted)
        error = log - logs
        value, slope = weight * (weights * error**2).sum(), 2 * weight * weights * error
        if of_choice:
            least = np.full(cases, np.inf)
            np.minimum.at(least, table.case, log)
            soft = np.exp((least[table.case] - log) / SOFTNESS)
            soft /= np.bincount(table.case, soft)[table.case]
            mean = np.bincount(table.case, soft * lost)
            value += mean.mean()
            slope += soft * (mean[table.case] - lost) / SOFTNESS / cases
        along = sum((bounds * (of == kind)).T @ (slope / predicted * slopes[kind]) for kind in range(3))
        return value, (along * 2 * roots)[fixed:]

    stay = np.sqrt(start * scale)[:fixed]
    roots = np.sqrt(np.maximum(start * scale, 1e-4))[fixed:]
    for weight, of_choice, steps in ((1, False, STEPS_OF_ERRORS), (WEIGHT_OF_ERRORS, True, STEPS)):
        found = minimize(
            loss, roots, (weight, of_choice), jac=True, method="L-BFGS-B", options={"maxiter": steps}
        )
        roots = found.x
    return np.concatenate([stay, roots]) ** 2 / scale


def fit(lines):
    """Names and values of the parameters."""
    table = Table(lines)
    values = minimized(table, least_squares(table))
    parts = table.bounds * values
    contribution = (parts / np.maximum(parts.sum(1, keepdims=True), 1e-12)).max(0)
    used = [name for name, most in zip(table.names, contribution) if most >= LEAST_CONTRIBUTION]
    table = Table(lines, used)
    return used, minimized(table, least_squares(table))


def fit_class(lines, of_class, names, values):
    """The same where only the parameters of one class are free; the others are `names` and `values`."""
    fixed = [(name, value) for name, value in zip(names, values) if isinstance(name, str) or name[0] != of_class]
    names, values = [name for name, _ in fixed], np.array([value for _, value in fixed])
    ours = [line for line in lines if line["class"] == of_class]
    free = sorted({(of_class, bound) for line in ours for bound in line["bounds"] if bound not in COMMON})
    while free:
        own = Table(ours, names + free)
        part = own.bounds / own.us[:, None]
        rest = np.maximum(1 - part[:, : len(names)] @ values, 0.05)
        start, _ = nnls(part[:, len(names) :] * own.weights()[:, None], rest * own.weights(), maxiter=50_000)
        found = minimized(Table(lines, names + free), np.concatenate([values, start]), len(names))
        parts = own.bounds * found
        contribution = (parts / np.maximum(parts.sum(1, keepdims=True), 1e-12)).max(0)[len(names) :]
        used = [name for name, most in zip(free, contribution) if most >= LEAST_CONTRIBUTION]
        if used == free:
            return names + free, found
        free = used
    return names, values


def regrets(lines, names, values, least):
    """By case: regret, and the chosen line."""
    table = Table(lines, names)
    known = {name[0] for name in names if not isinstance(name, str)}
    unknown = np.array([line["class"] not in known for line in lines])
    predicted = np.where(unknown, np.inf, predict(table.bounds, values, kinds(names))[0])
    chosen = {}
    for line, us in zip(lines, predicted):
        if case(line) not in chosen or us < chosen[case(line)][0]:
            chosen[case(line)] = us, line
    return {key: line["execute_ms"] / least[key] - 1 for key, (_, line) in chosen.items()}


def show(title, found):
    groups = collections.defaultdict(list)
    for (_, columns, dtype), regret in found.items():
        groups[dtype, columns].append(regret)
    for (dtype, columns), values in sorted(groups.items()):
        values = np.array(values)
        print(
            f"{title} {dtype} {columns:4} columns, {len(values)} matrices: mean {values.mean():6.1%}, "
            f"median {np.median(values):6.1%}, 90 of 100 below {np.quantile(values, 0.9):6.1%}, most {values.max():6.1%}"
        )


# Columns of B that were measured first; the others when a model chose that had been fitted to these.
FIRST_WIDTHS = {1, 32, 128}

# Choosers, and the matrices that they are judged on, in the order of the table.
COLUMNS = {
    "rules, unseen": ("rules", "unseen"),
    "model of two widths, unseen": ("model of two widths", "unseen"),
    "model of whole vectors, unseen": ("model of whole vectors", "unseen"),
    "model of 1, 7, 33 and 129 columns, unseen": ("model of four widths", "unseen"),
    "model of large products, unseen": ("model of large products", "unseen"),
    "model of kernels before, unseen": ("model of kernels before", "unseen"),
    "model of kernels before, unseen copies": ("model of kernels before", "unseen copies"),
    "model, unseen": ("model", "unseen"),
    "model of small products, unseen copies": ("model of small products", "unseen copies"),
    "model of two widths, unseen copies": ("model of two widths", "unseen copies"),
    "model, unseen copies": ("model", "unseen copies"),
    "model, families held out": ("model", "held out"),
}


def table(name, found):
    """Mean and greatest regret as rows of a document, with a head; columns of which there are no cases are left out."""
    columns = {title: found[key] for title, key in COLUMNS.items() if found.get(key)}
    text = f"| product | {' | '.join(columns)} |\n|---{'|---' * len(columns)}|\n"
    kinds = {(dtype, columns) for by_case in found.values() for _, columns, dtype in by_case}
    for dtype, width in sorted(kinds, key=lambda kind: (kind[0][::-1], kind[1])):
        cells = []
        for by_case in columns.values():
            values = [v for k, v in by_case.items() if k[1:] == (width, dtype)]
            cells.append(f"{np.mean(values):.1%}, {max(values):.0%}".replace("%", " %") if values else "")
        of_width = "" if name == "spmv" else f", {width} columns" if width > 1 else ", 1 column"
        text += f"| {PRODUCTS[name]}, {dtype}{of_width} | {' | '.join(cells)} |\n"
    return text


def configuration(line):
    """The name of a configuration, whatever the type of values makes of its vectors."""
    tuning = re.sub("(vector|lanes|tiles|resident|threads|panel): [0-9]+,?", "", line["reason"])
    return line["algorithm"], tuning


def one_configuration(seen, lines, least):
    """By case: the regret of the configuration that loses least on `seen` among those measured for most of its cases."""
    def losses(group):
        found = collections.defaultdict(dict)
        for line in group:
            name, key, lost = configuration(line), case(line), line["execute_ms"] / least[case(line)] - 1
            found[name][key] = min(lost, found[name].get(key, np.inf))
        return found

    fitted = losses(seen)
    most = max(map(len, fitted.values()))
    whole = [name for name, cases in fitted.items() if len(cases) > 0.9 * most]
    best = min(whole, key=lambda name: np.mean(np.log1p(list(fitted[name].values()))))
    return losses(lines)[best]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("bounds", type=pathlib.Path, nargs="+", help="what gustav tune --bounds wrote, of one run each")
    arguments.add_argument("--unseen", type=pathlib.Path, required=True, help="names of matrices to judge on, one a line")
    arguments.add_argument("--output", type=pathlib.Path, required=True, help="the parameter file; its rates stay")
    arguments.add_argument("--measured", type=pathlib.Path, nargs="*", default=[], help="all measurements, those of auto among them")
    arguments.add_argument("--chooser", help="what chose `auto` in these measurements, if not what did in the first records")
    arguments.add_argument("--regrets", type=pathlib.Path, help="a file for every regret")
    arguments.add_argument("--table", type=pathlib.Path, help="the document with the marks of the tables")
    arguments.add_argument("--class", dest="of_class", help="fit the parameters of this class of schedules alone")
    arguments.add_argument("--only", nargs="+", metavar="PRODUCT/DTYPE", help="fit and judge these alone")
    options = arguments.parse_args()
    chosen = set(options.only or [])
    of_file = lambda path: [line for line in read(path) if not chosen or f"{product(line)}/{line['dtype']}" in chosen]
    lines = on_one_scale([of_file(path) for path in options.bounds])
    measured = [line for path in options.measured for line in of_file(path)]
    if not lines:
        raise SystemExit("no measurements: none of the configurations in the record is a candidate today")
    products = [name for name in PRODUCTS if of_product(lines, name)]
    least = {name: {} for name in products}
    for line in lines + measured:
        if line["execute_ms"] is None or (of := least.get(product(line))) is None:
            continue
        of[case(line)] = min(line["execute_ms"], of.get(case(line), np.inf))
    names = set(options.unseen.read_text().split())
    seen = [line for line in lines if pattern(line["matrix"]) not in names]
    unseen = [line for line in lines if pattern(line["matrix"]) in names]
    families = sorted({family(line["matrix"]) for line in seen})
    np.random.default_rng(1).shuffle(families)

    # Rates, and parameters of products that are not fitted, stay.
    written = json.loads(options.output.read_text())
    if others := set(products) - written.keys():
        raise SystemExit(f"{options.output} has no parameters of {', '.join(sorted(others))}")
    devices = set(written["device"].split(", ")) if written.keys() - {"device", "rates", *products} else set()
    written["device"] = ", ".join(sorted(devices | {line["device"] for line in seen}))
    head = "product,dtype,columns,matrix,matrices,chooser,regret"
    rows = []
    if options.regrets and options.regrets.exists():
        anew = {(product(line), line["dtype"], str(line["columns"])) for line in lines}
        before = options.regrets.read_text().splitlines()[1:]
        # What the fit of one class does not judge.
        is_held_out = lambda row: next(csv.reader([row]))[4:6] == ["held out", "model"]
        stays = lambda row: tuple(row.split(",")[:3]) not in anew or (options.of_class and is_held_out(row))
        rows = [row for row in before if stays(row)]
    for name in products:
        ours = [of_product(group, name) for group in (seen, unseen, measured)]
        fit_lines = fitter(written[name], options.of_class)
        # The fit of one class is judged by unseen matrices alone: the other parameters have seen all families.
        held_out = [] if options.of_class else families
        fitted, found = fit_product(name, *ours, held_out, names, least[name], fit_lines, options.chooser)
        written[name] = beside(fitted, written[name], {str(BYTES[line["dtype"]]) for line in ours[0]})
        if name in ("spmm-narrow", "spmm-partial"):
            found["model of whole vectors", "unseen"] = judged_by(written["spmm"], ours[1], least[name])
        if options.table and measured:
            marks = [f"<!-- from bench/records: regret of {name} {at} -->\n" for at in ("begin", "end")]
            text = options.table.read_text()
            before, after = text.split(marks[0])[0], text.split(marks[1])[1]
            options.table.write_text(before + marks[0] + table(name, with_rows(found, name, rows)) + marks[1] + after)
        for (chooser, matrices), by_case in found.items():
            for (matrix, columns, dtype), regret in by_case.items():
                rows.append(f'{name},{dtype},{columns},"{matrix}",{matrices},{chooser},{regret:.4f}')
    if options.regrets:
        options.regrets.write_text("\n".join([head, *rows]) + "\n")
    options.output.write_text(json.dumps(written, indent=2) + "\n")


def fitter(before, of_class):
    """What fits lines of a number of columns and a size of values: all parameters, or those of one class beside those
    before."""
    if of_class is None:
        return lambda lines, width, size: fit(lines)

    def of_this_class(lines, width, size):
        known = before if width is None else before[str(width)]
        return fit_class(lines, of_class, *taken(known, str(size)))

    return of_this_class


def beside(fitted, before, sizes):
    """The fitted parameters of a product, and those before of other sizes of values than `sizes`."""
    if "common" not in before:
        widths = sorted(set(fitted) | {int(width) for width in before})
        none = {"common": {}, "classes": {}}
        found = {w: beside(fitted.get(w, none), before.get(str(w), none), set(fitted.get(w, none)["common"])) for w in widths}
        return {width: of_width for width, of_width in found.items() if of_width["common"]}
    stay = {part: {size: of for size, of in before[part].items() if size not in sizes} for part in before}
    return {part: dict(sorted((stay[part] | fitted[part]).items())) for part in before}


def with_rows(found, name, rows):
    """Regrets of a product, with those of the rows of a file."""
    found = collections.defaultdict(dict, {key: dict(by_case) for key, by_case in found.items()})
    for of, dtype, columns, matrix, matrices, chooser, regret in csv.reader(rows):
        if of == name:
            found[chooser, matrices][matrix, int(columns), dtype] = float(regret)
    return found


def fit_product(name, seen, unseen, measured, families, names, least, fit_lines, of_auto=None):
    """The parameters of a product by a `fitter`, and regrets by chooser and by what the matrices were to it. `of_auto` is
    what chose `auto`."""
    widths = sorted({line["columns"] for line in seen}) if name in BY_COLUMNS else [None]
    parameters = {width: {"common": {}, "classes": {}} for width in widths}
    held_out, judged, count = {}, {}, 0
    for size in sorted({BYTES[line["dtype"]] for line in seen}):
        fits = {}
        for width in widths:
            ours = [x for x in seen if BYTES[x["dtype"]] == size and width in (None, x["columns"])]
            if not ours:
                continue
            for fold in range(FOLDS if families else 0):
                out = set(families[fold::FOLDS])
                found = fit_lines([line for line in ours if family(line["matrix"]) not in out], width, size)
                held_out |= regrets([line for line in ours if family(line["matrix"]) in out], *found, least)
            fits[width] = fit_lines(ours, width, size)
            count += put(parameters[width], size, fits[width])
        ours = [line for line in unseen if BYTES[line["dtype"]] == size]
        for columns in sorted({line["columns"] for line in ours}):
            of_columns = [line for line in ours if line["columns"] == columns]
            judged |= regrets(of_columns, *between(fits, columns), least)
    show(f"held out {name}", held_out)
    show(f"unseen   {name}", {key: value for key, value in judged.items() if not is_copy(key[0])})
    show(f"copies   {name}", {key: value for key, value in judged.items() if is_copy(key[0])})
    print(f"{count} parameters")
    # What auto chose then was measured by name as well; its time there is as noisy as that of the model's choice.
    by_name = {(case(x), x.get("chosen") and x["algorithm"] or x["reason"]): x for x in measured}
    autos = [x for x in measured if x["algorithm"] == "auto" and x["execute_ms"] is not None]
    named = [by_name.get((case(x), x.get("chosen") or x["reason"]), x) for x in autos]
    chosen = {case(x): x["execute_ms"] / least[case(x)] - 1 for x in named}
    choosers = {
        "rules": {key: value for key, value in chosen.items() if pattern(key[0]) in names},
        "one configuration": one_configuration(seen, unseen, least),
        "model": judged,
    }
    found = {("model", "held out"): held_out}
    for chooser, by_case in choosers.items():
        copies = {key: value for key, value in by_case.items() if is_copy(key[0])}
        found[chooser, "unseen"] = {key: value for key, value in by_case.items() if key not in copies}
        found[chooser, "unseen copies"] = copies
    for matrices in ("unseen", "unseen copies"):
        by_rules = found["rules", matrices]
        if of_auto:
            found[of_auto, matrices] = found.pop(("rules", matrices))
            continue
        if name == "spmm-partial":
            # Measured when the model of whole vectors chose, which is judged beside.
            del found["rules", matrices]
            continue
        if name == "spmm-narrow":
            # Measured when a model chose that had been fitted to fewer columns.
            found["model of four widths", matrices] = found.pop(("rules", matrices))
            continue
        found["model of two widths", matrices] = {k: v for k, v in by_rules.items() if k[1] not in FIRST_WIDTHS}
        found["rules", matrices] = {k: v for k, v in by_rules.items() if k[1] in FIRST_WIDTHS}
    if of_auto:
        return parameters if name in BY_COLUMNS else parameters[None], found
    if name == "spmv":
        # In f16, matrices as they are were measured when a model chose that had been fitted to copies.
        by_rules = found["rules", "unseen"]
        found["model of large products", "unseen"] = {k: v for k, v in by_rules.items() if k[2] == "f16"}
        found["rules", "unseen"] = {k: v for k, v in by_rules.items() if k[2] != "f16"}
    # Copies were measured when a model chose that had been fitted to matrices as they are.
    found["model of small products", "unseen copies"] = found.pop(("rules", "unseen copies"), {})
    return parameters if name in BY_COLUMNS else parameters[None], found


def judged_by(parameters, lines, least):
    """By case: the regret of choices by the parameters of another product, by columns."""
    found = {}
    for size in {BYTES[line["dtype"]] for line in lines}:
        fits = {int(width): taken(of, str(size)) for width, of in parameters.items()}
        of_size = [line for line in lines if BYTES[line["dtype"]] == size]
        for columns in {line["columns"] for line in of_size}:
            of_columns = [line for line in of_size if line["columns"] == columns]
            found |= regrets(of_columns, *between(fits, columns), least)
    return found


def taken(parameters, size):
    """Names and values, as `put` has written them."""
    values = dict(parameters["common"][size])
    for name, of_class in parameters["classes"][size].items():
        values |= {(name, bound): value for bound, value in of_class.items()}
    return list(values), np.array(list(values.values()))


def put(parameters, size, found):
    """Puts parameters that are not 0 where the library has those of values of this size, and counts them."""
    of_size = [(key, float(f"{value:.4g}")) for key, value in zip(*found) if float(f"{value:.4g}") > 0]
    # Also where all are 0: the library takes those of another size where there are none.
    common = parameters["common"].setdefault(str(size), {})
    for key, value in of_size:
        if isinstance(key, str):
            common[key] = value
        else:
            parameters["classes"].setdefault(str(size), {}).setdefault(key[0], {})[key[1]] = value
    return len(of_size)


def between(fits, columns):
    """Names and values for a number of columns: those of the nearest fits below and above, by the logarithm of their
    columns, for classes that both have."""
    if None in fits:
        return fits[None]
    below = max((w for w in fits if w <= columns), default=min(fits))
    above = min((w for w in fits if w >= columns), default=max(fits))
    weight = np.log(columns / below) / np.log(above / below) if above > below else 0
    less, more = (dict(zip(*fits[width])) for width in (below, above))
    shared = {key[0] for key in less if not isinstance(key, str)} & {key[0] for key in more if not isinstance(key, str)}
    names = sorted({key for key in less | more if isinstance(key, str) or key[0] in shared}, key=str)
    return names, np.array([(1 - weight) * less.get(key, 0) + weight * more.get(key, 0) for key in names])


if __name__ == "__main__":
    main()
