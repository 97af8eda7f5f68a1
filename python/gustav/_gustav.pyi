from collections.abc import Callable
from types import ModuleType
from typing import Any, final

# None for host memory, or a GPU's number, the handle of a stream, and what keeps the stream.
_Place = tuple[int, int, Any] | None

__all__ = [
    "__version__",
    "Block",
    "Pattern",
    "Eager",
    "EagerSpmm",
    "SpmmPlan",
    "SddmmPlan",
    "SoftmaxPlan",
    "AttentionPlan",
    "SpgemmPlan",
    "DeviceArray",
    "DeviceBlock",
    "DeviceSpgemmPlan",
    "Ranks",
    "DistPattern",
    "DistExplanation",
    "DistSpmmPlan",
    "DistSddmmPlan",
    "DistSpgemmPlan",
    "spgemm_on_gpu",
    "scatter",
    "spmm",
    "spmv",
    "sddmm",
    "spgemm",
    "read",
    "write",
    "devices",
    "synchronize",
    "keep_for_capture",
    "ordinal_of",
    "set_num_threads",
    "get_num_threads",
    "command",
]

__version__: str

@final
class Block:
    @property
    def dtype(self) -> str: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    def __len__(self) -> int: ...

@final
class Pattern:
    def __new__(
        cls,
        indptr: Any,
        indices: Any,
        shape: tuple[int, int],
        copy: bool = True,
        place: _Place = None,
    ) -> Pattern: ...
    @property
    def gpu(self) -> int | None: ...
    @property
    def index_types(self) -> tuple[str, str]: ...
    def copy_into(self, indptr: Any, indices: Any, place: _Place) -> None: ...
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
    def matches(self, indptr: Any, indices: Any, threads: int | None = None) -> bool: ...

@final
class Eager:
    def __new__(
        cls,
        classes: list[type],
        watchers: list[Callable[[], Any]],
        forward_ad: ModuleType,
        is_grad_enabled: Callable[[], bool],
        is_excluded: Callable[[Any], bool],
        below_autograd: Any,
        is_forward: Callable[[], bool],
        is_autocast: Callable[[], bool],
    ) -> Eager: ...
    def is_recorded(self, arguments: tuple[Any, ...]) -> bool | None: ...

@final
class EagerSpmm:
    def __new__(cls, eager: Eager, gpu: int | None, shape: tuple[int, int], nnz: int) -> EagerSpmm: ...
    def add(self, plan: SpmmPlan, transpose: bool, threads: int) -> None: ...
    def clear(self) -> None: ...
    def product(self, values: Any, x: Any, transpose: bool, pattern: Any, record: Any) -> Any: ...
    def is_convolution_recorded(self, values: Any, x: Any, weight: Any, bias: Any) -> bool | None: ...
    def compute(self, values: Any, x: Any, transpose: bool) -> Any: ...

@final
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
        place: _Place = None,
        batch: int = 1,
    ) -> SpmmPlan: ...
    def execute_into(
        self,
        values: Any,
        b: Any,
        out: Any,
        alpha: Any,
        beta: Any,
        winners: Any = None,
        place: _Place = None,
    ) -> None: ...
    def prepare(self) -> None: ...
    @property
    def gpu(self) -> int | None: ...
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

@final
class SddmmPlan:
    def __new__(
        cls,
        pattern: Pattern,
        depth: int,
        dtype: str,
        calls: int,
        place: _Place = None,
        batch: int = 1,
    ) -> SddmmPlan: ...
    def execute_into(
        self, x: Any, y: Any, out: Any, alpha: Any, beta: Any, place: _Place = None
    ) -> None: ...

@final
class SoftmaxPlan:
    def __new__(
        cls, pattern: Pattern, heads: int, dtype: str, place: _Place = None
    ) -> SoftmaxPlan: ...
    def execute_into(self, scores: Any, out: Any, place: _Place = None) -> None: ...
    def gradient_into(
        self, weights: Any, of_weights: Any, out: Any, place: _Place = None
    ) -> None: ...

@final
class AttentionPlan:
    def __new__(
        cls,
        pattern: Pattern,
        heads: int,
        columns: int,
        value_columns: int,
        dtype: str,
        place: _Place = None,
    ) -> AttentionPlan: ...
    def execute_into(
        self,
        q: Any,
        k: Any,
        v: Any,
        o: Any,
        lse: Any,
        scale: float | None,
        negative_slope: float | None,
        bias: tuple[Any, str] | None = None,
        place: _Place = None,
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
        negative_slope: float | None,
        bias: tuple[Any, str] | None = None,
        of_bias: tuple[Any, str] | None = None,
        place: _Place = None,
    ) -> None: ...

@final
class SpgemmPlan:
    def __new__(
        cls, a: Pattern, b: Pattern, mask: Pattern | None, dtype: str, calls: int
    ) -> SpgemmPlan: ...
    def execute(self, values_of_a: Any, values_of_b: Any) -> tuple[Pattern, Block]: ...

@final
class DeviceArray:
    def __new__(cls, shape: tuple[int, ...], dtype: str, ordinal: int) -> DeviceArray: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def assign(self, values: Any, place: _Place) -> None: ...

@final
class DeviceBlock:
    @property
    def dtype(self) -> str: ...
    def __len__(self) -> int: ...
    def copy_into(self, out: Any, place: _Place) -> None: ...

@final
class DeviceSpgemmPlan:
    def __new__(
        cls, a: Pattern, b: Pattern, mask: Pattern | None, dtype: str, calls: int, place: _Place
    ) -> DeviceSpgemmPlan: ...
    def execute(
        self, values_of_a: Any, values_of_b: Any, place: _Place
    ) -> tuple[Pattern, DeviceBlock]: ...

def spgemm_on_gpu(
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
    place: _Place,
) -> tuple[Pattern, DeviceBlock]: ...
def synchronize(place: _Place) -> None: ...
def keep_for_capture(place: _Place, object: Any) -> None: ...
def ordinal_of(address: int) -> int: ...
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
    place: _Place,
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
    place: _Place,
) -> None: ...
def sddmm(
    pattern: Any,
    x: Any,
    y: Any,
    out: Any,
    alpha: Any,
    beta: Any,
    threads: int | None,
    place: _Place,
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

@final
class Ranks:
    @staticmethod
    def world() -> Ranks: ...
    @staticmethod
    def alone() -> Ranks: ...
    @staticmethod
    def of(handle: int, bytes: int, version: str) -> Ranks: ...
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def description(self) -> str: ...
    def host(self) -> int: ...
    def gather_text(self, mine: str) -> list[str]: ...
    def fail(self, words: str) -> None: ...
    def check(self, call: str) -> None: ...
    def any(self, mine: bool) -> bool: ...
    def abort(self, status: int) -> None: ...
    @property
    def takes_threads(self) -> bool: ...
    @property
    def is_ours(self) -> bool: ...

@final
class DistPattern:
    def __new__(
        cls, ranks: Ranks, local: tuple[Any, Any, tuple[int, int]], columns: list[int] | None = None
    ) -> DistPattern: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def nnz(self) -> int: ...
    @property
    def local_nnz(self) -> int: ...
    @property
    def row_offsets(self) -> list[int]: ...
    @property
    def column_offsets(self) -> list[int]: ...
    @property
    def indptr(self) -> Block: ...
    @property
    def indices(self) -> Block: ...

def scatter(
    ranks: Ranks, whole: tuple[tuple[Any, Any, tuple[int, int]], Any] | None, order: str
) -> tuple[DistPattern, Block, Block]: ...

@final
class DistExplanation:
    @property
    def sent_bytes(self) -> int: ...
    @property
    def messages(self) -> int: ...
    @property
    def workspace_bytes(self) -> int: ...

@final
class DistSpmmPlan:
    def __new__(
        cls,
        pattern: DistPattern,
        columns: int,
        dtype: str,
        calls: int,
        transpose: bool,
        semiring_name: str,
        deterministic: bool,
        threads: int | None,
        communication: str,
        copies_text: str,
        place: _Place,
    ) -> DistSpmmPlan: ...
    def execute_into(self, values: Any, b: Any, out: Any, alpha: Any, beta: Any, place: _Place) -> None: ...
    @property
    def explanation(self) -> DistExplanation: ...

@final
class DistSddmmPlan:
    def __new__(
        cls, pattern: DistPattern, depth: int, dtype: str, calls: int, threads: int | None, place: _Place
    ) -> DistSddmmPlan: ...
    def execute_into(self, x: Any, y: Any, out: Any, alpha: Any, beta: Any, place: _Place) -> None: ...
    @property
    def explanation(self) -> DistExplanation: ...

@final
class DistSpgemmPlan:
    def __new__(
        cls,
        a: DistPattern,
        b: DistPattern,
        dtype: str,
        semiring_name: str,
        threads: int | None,
        place: _Place,
    ) -> DistSpgemmPlan: ...
    def execute(
        self, values_of_a: Any, values_of_b: Any, alpha: Any, place: _Place
    ) -> tuple[DistPattern, Block | DeviceBlock]: ...
    @property
    def explanation(self) -> DistExplanation: ...
