from typing import Any

__version__: str

class Block:
    @property
    def dtype(self) -> str: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    def __len__(self) -> int: ...

class Pattern:
    def __new__(
        cls, indptr: Any, indices: Any, shape: tuple[int, int], copy: bool = True
    ) -> Pattern: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def nnz(self) -> int: ...
    @property
    def indptr(self) -> Block: ...
    @property
    def indices(self) -> Block: ...
    def transposed(self) -> tuple[Pattern, Block]: ...
    def is_canonical(self) -> bool: ...
    def matches(self, indptr: Any, indices: Any) -> bool: ...

class SpmmPlan:
    def __new__(
        cls,
        pattern: Pattern,
        columns: int,
        dtype: str,
        calls: int,
        transpose: bool,
        semiring_name: str,
        deterministic: bool,
        threads: int | None = None,
        reduce: str = "sum",
        batch: int = 1,
    ) -> SpmmPlan: ...
    def execute_into(
        self, values: Any, b: Any, out: Any, alpha: Any, beta: Any, winners: Any = None
    ) -> None: ...
    @property
    def dtype(self) -> str: ...
    @property
    def columns(self) -> int: ...
    @property
    def output_rows(self) -> int: ...
    @property
    def inner_rows(self) -> int: ...
    @property
    def algorithm(self) -> str: ...
    @property
    def workspace_bytes(self) -> int: ...
    def explain(self) -> str: ...

class SddmmPlan:
    def __new__(
        cls, pattern: Pattern, depth: int, dtype: str, calls: int, batch: int = 1
    ) -> SddmmPlan: ...
    def execute_into(self, x: Any, y: Any, out: Any, alpha: Any, beta: Any) -> None: ...

class SoftmaxPlan:
    def __new__(cls, pattern: Pattern, heads: int, dtype: str) -> SoftmaxPlan: ...
    def execute_into(self, scores: Any, out: Any) -> None: ...
    def gradient_into(self, weights: Any, of_weights: Any, out: Any) -> None: ...

class AttentionPlan:
    def __new__(
        cls, pattern: Pattern, heads: int, columns: int, value_columns: int, dtype: str
    ) -> AttentionPlan: ...
    def execute_into(
        self,
        q: Any,
        k: Any,
        v: Any,
        o: Any,
        lse: Any,
        scale: float | None,
        bias: tuple[Any, str] | None = None,
    ) -> None: ...
    def gradients_into(
        self,
        q: Any,
        k: Any,
        v: Any,
        o: Any,
        lse: Any,
        of_o: Any,
        of_q: Any,
        of_k: Any,
        of_v: Any,
        scale: float | None,
        bias: tuple[Any, str] | None = None,
        of_bias: tuple[Any, str] | None = None,
    ) -> None: ...

class SpgemmPlan:
    def __new__(
        cls, a: Pattern, b: Pattern, mask: Pattern | None, dtype: str, calls: int
    ) -> SpgemmPlan: ...
    def execute(self, values_of_a: Any, values_of_b: Any) -> tuple[Pattern, Block]: ...

def spmm(
    pattern: Any,
    values: Any,
    b: Any,
    out: Any,
    alpha: Any,
    beta: Any,
    transpose: bool,
    semiring_name: str,
    reduce: str,
    deterministic: bool,
    threads: int | None,
) -> None: ...
def spmv(
    pattern: Any,
    values: Any,
    x: Any,
    out: Any,
    alpha: Any,
    beta: Any,
    transpose: bool,
    semiring_name: str,
    deterministic: bool,
    threads: int | None,
) -> None: ...
def sddmm(
    pattern: Any,
    x: Any,
    y: Any,
    out: Any,
    alpha: Any,
    beta: Any,
    threads: int | None,
) -> None: ...
def spgemm(
    pattern_of_a: Any,
    values_of_a: Any,
    pattern_of_b: Any,
    values_of_b: Any,
    mask: Any,
    alpha: Any,
    transpose: bool,
    semiring_name: str,
    sorted: bool,
    deterministic: bool,
    threads: int | None,
) -> tuple[Block, Block, Block]: ...
def read(path: Any, dtype: str | None = None) -> tuple[Block, Block, Block, tuple[int, int]]: ...
def write(path: Any, pattern: Any, values: Any) -> None: ...
def devices() -> list[tuple[str, bool, str]]: ...
def set_num_threads(count: int) -> None: ...
def get_num_threads() -> int: ...
def command(arguments: list[str]) -> int: ...
