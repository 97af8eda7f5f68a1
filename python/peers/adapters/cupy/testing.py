"""The decorators of CuPy's tests: once with SciPy, once with SciPy that gustav multiplies for."""

import functools
import inspect
import itertools

import numpy
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal  # noqa: F401

import gustav


def product(of):
    return [dict(zip(of, values, strict=True)) for values in itertools.product(*of.values())]


def parameterize(*parameters):
    """Every test of the class with each of the parameters as attributes."""

    def decorate(cls):
        def attributes(self, request, peer_parameters):
            for name, value in peer_parameters.items():
                setattr(self, name, value)
            if numpy.dtype(getattr(self, "dtype", "f4")).kind == "c":
                pytest.skip("complex values, which gustav leaves to SciPy")
            if hasattr(request.function, "compares"):
                yield
                return
            with gustav.patched():
                yield

        # Before fixtures of the class that read the attributes.
        cls.aaa_attributes = pytest.fixture(autouse=True)(attributes)
        names = ["-".join(str(getattr(v, "__name__", v)) for v in p.values()) for p in parameters]
        return pytest.mark.parametrize("peer_parameters", parameters, ids=names)(cls)

    return decorate


def with_requires(*_):
    return lambda test: test


def slow(test):
    return pytest.mark.slow(test)


def for_dtypes(dtypes, name="dtype"):
    return pytest.mark.parametrize(name, [numpy.dtype(d).type for d in dtypes])


def shaped_random(shape, xp=numpy, dtype=numpy.float32, scale=10, seed=0):
    return (numpy.random.default_rng(seed).random(shape) * scale).astype(dtype)


def _both(compare):
    def decorator(*_, sp_name="sp", name="xp", **__):
        def decorate(test):
            signature = inspect.signature(test)
            kept = [p for p in signature.parameters.values() if p.name not in (name, sp_name)]

            @functools.wraps(test)
            def run(*arguments, **options):
                def side():
                    return test(*arguments, **options, **{name: numpy, sp_name: scipy.sparse})

                expected = side()
                with gustav.patched():
                    found = side()
                compare(*(m.toarray() if scipy.sparse.issparse(m) else m for m in (found, expected)))

            run.__signature__ = signature.replace(parameters=kept)
            run.compares = True
            return run

        return decorate

    return decorator


def _equal(found, expected):
    assert found == expected


numpy_cupy_allclose = _both(functools.partial(assert_allclose, rtol=1e-6))
numpy_cupy_array_equal = _both(assert_array_equal)
numpy_cupy_equal = _both(_equal)
