"""DGL's sparse matrices, multiplied by gustav."""

import torch

import gustav.torch as gt


class SparseMatrix:
    """Entries in the order that they were given in; their pattern has them by rows."""

    def __init__(self, row, col, val, shape):
        self.row, self.col, self.val, self.shape = row, col, val, tuple(shape)
        self.order = torch.argsort(row, stable=True)
        crow = torch.zeros(self.shape[0] + 1, dtype=torch.int64)
        torch.cumsum(torch.bincount(row, minlength=self.shape[0]), 0, out=crow[1:])
        self.pattern = gt.Pattern(crow, col[self.order].contiguous(), self.shape)

    @property
    def values(self):
        """Values as products take them: in the pattern's order, a batch first."""
        values = self.val[self.order]
        return values.T if values.ndim == 2 else values

    def with_values(self, values):
        """The same entries with values in the pattern's order."""
        inverse = torch.argsort(self.order)
        return SparseMatrix(self.row, self.col, (values.T if values.ndim == 2 else values)[inverse], self.shape)

    def coo(self):
        return self.row, self.col

    def csr(self):
        return self.pattern.crow, self.pattern.col, self.order

    def to_dense(self):
        dense = self.val.new_zeros(self.shape + self.val.shape[1:])
        return dense.index_put((self.row, self.col), self.val, accumulate=True)


def from_coo(row, col, val, shape=None):
    return SparseMatrix(row, col, val, shape or (int(row.max()) + 1, int(col.max()) + 1))


def spmatrix(indices, val, shape):
    return from_coo(*indices, val, shape)


def from_csr(indptr, indices, val, shape):
    rows = torch.arange(shape[0]).repeat_interleave(indptr.diff())
    return SparseMatrix(rows, indices, val, shape)


def from_csc(indptr, indices, val, shape):
    columns = torch.arange(shape[1]).repeat_interleave(indptr.diff())
    return SparseMatrix(indices, columns, val, shape)


def diag(val, shape=None):
    at = torch.arange(len(val))
    return SparseMatrix(at, at, val, shape or (len(val), len(val)))


def val_like(a, val):
    return SparseMatrix(a.row, a.col, val, a.shape)


def matmul(a, b):
    if isinstance(b, SparseMatrix):
        pattern, values = gt.spgemm(a.pattern, a.values, b.pattern, b.values)
        return from_csr(pattern.crow, pattern.col.to(torch.int64), values, pattern.shape)
    if b.ndim == 3:
        return gt.spmm(a.pattern, a.values, b.permute(2, 0, 1)).permute(1, 2, 0)
    return gt.spmm(a.pattern, a.values, b)


bspmm = matmul


def sddmm(a, b, c):
    if b.ndim == 1:
        b, c = b.unsqueeze(1), c.unsqueeze(0)
    return a.with_values(a.values * gt.sddmm(a.pattern, b, c.T))


def bsddmm(a, b, c):
    return a.with_values(a.values * gt.sddmm(a.pattern, b.permute(2, 0, 1), c.permute(2, 1, 0)))


def softmax(a, dim=1):
    if dim == 0:
        of_transpose = SparseMatrix(a.col, a.row, a.val, a.shape[::-1])
        found = softmax(of_transpose)
        return SparseMatrix(a.row, a.col, found.val, a.shape)
    return a.with_values(gt.softmax(a.pattern, a.values))
