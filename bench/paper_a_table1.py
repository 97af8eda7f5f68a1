#!/usr/bin/env python3
"""Table 1 of Yang, Buluç and Owens 2018: registers of a thread and independent loads, read off the compiled
kernels, and accesses to memory beyond those of row-split.

Kernels are compiled by NVRTC as the library compiles them and disassembled. Independent loads are the
most that stand in a straight run of instructions before the first that reads what one of them brings:
what a thread has in flight. The paper counts them from the source.

Further accesses are counted from the schedule, in words for each nonzero of A at COLUMNS columns, most: a
partition of B T nonzeros (B threads with T items) reads two words of a boundary that a search has
written, beside A; reads nothing of B twice; and writes the sum of the row that is open at its end, which the fix-up
reads, beside C. The paper counts one access for every carried sum.

usage: paper_a_table1.py --nvrtc LIBNVRTC --nvdisasm NVDISASM [--target sm_90] > table1.csv
"""

import argparse
import csv
import ctypes
import re
import subprocess
import sys
import tempfile
from pathlib import Path

KERNELS = Path(__file__).resolve().parent.parent / "crates/gustav-cuda/kernels"

# Columns of B for which further accesses of SpMM are counted.
COLUMNS = 64

# Operation, kernel, file, parameters, nonzeros of a partition (0: rows are not cut), and the paper's
# independent reads of B and registers.
ROWS = [
    ("spmv", "row_split", "papers/spmv/row_split.cu",
     "VALUE=f32 INDEX=u32 OFFSET=u32 SEMIRING=PlusTimes LANES=32 THREADS=128", 0, 1, 2),
    ("spmv", "nonzero_split", "papers/spmv/nonzero_split.cu", "VALUE=f32 THREADS=128 ITEMS=7",
     128 * 7, 7, 14),
    ("spmm", "row_split", "papers/spmm/row_split.cu",
     "VALUE=f32 WARPS=4 AHEAD=8 VARIANT=SHUFFLE LINES_OF_C=ROWS", 0, 32, 64),
    ("spmm", "row_split", "papers/spmm/row_split.cu",
     "VALUE=f32 WARPS=4 AHEAD=32 VARIANT=SHUFFLE LINES_OF_C=ROWS", 0, 32, 64),
    ("spmm", "nonzero_split", "papers/spmm/nonzero_split.cu",
     "VALUE=f32 THREADS=128 ITEMS=1 COLUMNS=32 AHEAD=8", 128, 32, 64),
    ("spmm", "nonzero_split", "papers/spmm/nonzero_split.cu",
     "VALUE=f32 THREADS=128 ITEMS=1 COLUMNS=32 AHEAD=32", 128, 32, 64),
]

SOURCES = KERNELS.parent / "src"


def parameter_blocks():
    """The parameter blocks that the library declares in Rust, as headers by the names that kernels include."""
    headers = {}
    for file in sorted(SOURCES.rglob("*.rs")):
        for body in re.findall(r"parameter_block! \{(.*?)\n\}", file.read_text(), re.S):
            body = re.sub(r"//[^\n]*", "", body)
            name = re.search(r"struct (\w+)(?:<\w+>)? \{", body)
            module = "::".join(("gustav_cuda", *file.relative_to(SOURCES).with_suffix("").parts))
            module = module.removesuffix("::mod")
            lines, includes = [], []
            for member, kind in re.findall(r"(?:pub )?(\w+): ([^,\n]+),", body[name.end():]):
                pointer = re.fullmatch(r"\*(const|mut) (.+)", kind)
                block = re.fullmatch(r"(?:(\w+(?:::\w+)*)::)?(\w+)", kind)
                if pointer:
                    constant = "const " if pointer[1] == "const" else ""
                    lines.append(f"{constant}{pointer[2]} *{member};")
                else:
                    lines.append(f"{block[2]} {member};")
                    if block[1]:
                        includes.append(f'#include "gustav_cuda::{block[1]}::{block[2]}"')
            text = ["#pragma once", *includes, f"struct {name[1]} {{", *lines, "};"]
            headers[f"{module}::{name[1]}"] = "\n".join(text)
    return headers


def further_accesses(operation, partition):
    """Words beside A, B and C for each nonzero."""
    if partition == 0:
        return [0, 0, 0]
    columns = 1 if operation == "spmv" else COLUMNS
    return [2 * 2 / partition, 0, 2 * columns / partition]


def paper_accesses(operation, partition):
    """The paper's: carried sums for each nonzero."""
    columns = 1 if operation == "spmv" else COLUMNS
    return columns / partition if partition else 0


def compile_kernel(nvrtc, name, parameters, target):
    """The cubin of a kernel file."""
    headers = sorted(KERNELS.rglob("*.cuh"))
    blocks = parameter_blocks()
    texts = [h.read_bytes() for h in headers] + [text.encode() for text in blocks.values()]
    names = [str(h.relative_to(KERNELS)).encode() for h in headers] + [n.encode() for n in blocks]
    program = ctypes.c_void_p()
    array = ctypes.c_char_p * len(names)
    source = (KERNELS / name).read_bytes()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, name.encode(), len(names),
                             array(*texts), array(*names))
    options = [f"-arch={target}", "-std=c++17"] + [f"-DGUSTAV_{p}" for p in parameters.split()]
    encoded = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    status = nvrtc.nvrtcCompileProgram(program, len(options), encoded)
    size = ctypes.c_size_t()
    if status != 0:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        sys.exit(f"{name}: {log.value.decode()}")
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, cubin)
    return cubin.raw


def registers_of(text):
    """Numbers of the registers that an operand text names, pairs and quads not spread out."""
    return {int(n) for n in re.findall(r"\bR(\d+)\b", text)}


def independent_loads(listing):
    """The most global loads before the first use of one of them, in a straight run."""
    most, pending = 0, set()
    count = 0
    for line in listing.splitlines():
        found = re.search(r"/\*[0-9a-f]{4,}\*/\s+(@!?U?P\w+\s+)?([A-Z0-9.]+)\s*(.*?);", line)
        if not found:
            continue
        opcode, operands = found.group(2), found.group(3)
        parts = operands.split(",", 1)
        target = registers_of(parts[0])
        reads = registers_of(operands) if not opcode.startswith("LD") else \
            registers_of(parts[1] if len(parts) > 1 else "")
        if opcode.startswith(("BRA", "EXIT", "BAR", "WARPSYNC", "BSYNC")):
            # A predicated exit goes on to the next instruction.
            if found.group(1) is None:
                pending, count = set(), 0
            continue
        if reads & pending:
            pending, count = set(), 0
        if opcode.startswith("LDG"):
            pending |= target
            count += 1
            most = max(most, count)
    return most


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--nvrtc", required=True)
    parser.add_argument("--nvdisasm", required=True)
    parser.add_argument("--target", default="sm_90")
    args = parser.parse_args()
    nvrtc = ctypes.CDLL(args.nvrtc)
    version = (ctypes.c_int(), ctypes.c_int())
    nvrtc.nvrtcVersion(ctypes.byref(version[0]), ctypes.byref(version[1]))
    compiler = f"NVRTC {version[0].value}.{version[1].value}"
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["operation", "algorithm", "parameters", "target", "compiler", "registers",
                  "independent_loads", "paper_independent_reads_of_b", "paper_registers",
                  "further_accesses_a", "further_accesses_b", "further_accesses_c",
                  "paper_further_accesses"])
    for operation, kernel, name, parameters, partition, reads, registers in ROWS:
        cubin = compile_kernel(nvrtc, name, parameters, args.target)
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(cubin)
            file.flush()
            listing = subprocess.run([args.nvdisasm, file.name], check=True, text=True,
                                     capture_output=True).stdout
        section = re.search(rf"\.section\s+\.text\.{kernel},.*?(?=\.section|\Z)", listing, re.S)
        body = section.group(0)
        # Registers are the highest 8 bits of the section's info word.
        found = re.search(r'\.sectioninfo\s+@"SHI_REGISTERS=(\d+)"', body)
        used = int(found.group(1)) if found else max(registers_of(body)) + 1
        out.writerow([operation, kernel.replace("_", "-"), parameters, args.target, compiler, used,
                      independent_loads(body), reads, registers,
                      *(f"{x:.4g}" for x in further_accesses(operation, partition)),
                      f"{paper_accesses(operation, partition):.4g}"])


if __name__ == "__main__":
    main()
