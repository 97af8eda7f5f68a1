"""SciPy's own tests of its CSR and CSC classes: on ours, and on SciPy's while it is patched."""

import warnings

import gustav
import pytest
import scipy.sparse as sp

# What SciPy's own run ignores.
pytestmark = pytest.mark.filterwarnings("default")
base = pytest.importorskip("scipy.sparse.tests.test_base")


def quietly(container):
    """A constructor that does not warn of what is slow."""

    def make(cls, *args, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sp.SparseEfficiencyWarning)
            return container(*args, **options)

    return classmethod(make)


class TestOurCSR(base.TestCSR):
    spcreator = quietly(gustav.csr_array)


class TestOurCSC(base.TestCSC):
    spcreator = quietly(gustav.csc_array)


class Patched:
    @pytest.fixture(autouse=True)
    def patch(self):
        with gustav.patched():
            yield


class TestPatchedCSR(Patched, base.TestCSR):
    pass


class TestPatchedCSRMatrix(Patched, base.TestCSRMatrix):
    pass


class TestPatchedCSC(Patched, base.TestCSC):
    pass


class TestPatchedUnsortedCSR(Patched, base.TestCSRNonCanonical):
    pass


class TestPatchedUnsortedCSC(Patched, base.TestCSCNonCanonical):
    pass
