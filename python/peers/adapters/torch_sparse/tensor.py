import torch

import gustav.torch as gt


class SparseTensor:
    """A pattern with values in the order of its nonzeros."""

    def __init__(self, row, col, value=None, sizes=None):
        if sizes is None:
            sizes = (int(row.max()) + 1, int(col.max()) + 1)
        order = torch.argsort(row * sizes[1] + col, stable=True)
        crow = torch.zeros(sizes[0] + 1, dtype=torch.int64)
        torch.cumsum(torch.bincount(row, minlength=sizes[0]), 0, out=crow[1:])
        self.pattern = gt.Pattern(crow, col[order], sizes)
        self.value = None if value is None else value[order]

    @classmethod
    def of(cls, pattern, value):
        made = cls.__new__(cls)
        made.pattern, made.value = pattern, value
        return made

    @classmethod
    def from_dense(cls, dense):
        row, col = dense.nonzero().T
        return cls(row, col, dense[row, col], tuple(dense.shape))

    def sizes(self):
        return list(self.pattern.shape)

    def has_value(self):
        return self.value is not None

    def set_value_(self, value):
        self.value = value
        return self

    def requires_grad_(self):
        self.value.requires_grad_()
        return self

    def csr(self):
        return self.pattern.crow, self.pattern.col, self.value

    def coo(self):
        crow, col, value = self.csr()
        rows = torch.arange(self.pattern.shape[0]).repeat_interleave(crow.diff())
        return rows, col.to(torch.int64), value

    def t(self):
        pattern, permutation = self.pattern.transposed()
        return self.of(pattern, self.value[permutation])

    def to_dense(self):
        row, col, value = self.coo()
        return value.new_zeros(self.pattern.shape).index_put((row, col), value, accumulate=True)

    def __matmul__(self, other):
        from .matmul import matmul

        return matmul(self, other)
