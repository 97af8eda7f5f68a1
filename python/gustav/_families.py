"""Libraries that arrays belong to: where results are made, and of which type."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from . import _device

#: Types that the library multiplies, by the names of NumPy.
TAKEN = ("float16", "bfloat16", "float32", "float64", "int32", "int64")


def torch_of(*arrays: Any) -> Any:
    """The module ``torch``, if one of `arrays` is a tensor of it, else ``None``."""
    torch = sys.modules.get("torch")
    if torch is not None:
        for array in arrays:
            if isinstance(array, torch.Tensor):
                return torch
    return None


def cupy_of(*arrays: Any) -> Any:
    """The module ``cupy``, if one of `arrays` is an array of it, else ``None``."""
    cupy = sys.modules.get("cupy")
    if cupy is not None and any(isinstance(array, cupy.ndarray) for array in arrays):
        return cupy
    return None


def namespace(array: Any) -> Any:
    """CuPy for an array of it, else NumPy: their functions have the same names."""
    return cupy_of(array) or np


def dtype_name(array: Any) -> str:
    """The name of the type of an array's elements, as NumPy writes it.

    Parameters
    ----------
    array
        An array or a dtype of any library, or a name.
    """
    if isinstance(array, type):
        return np.dtype(array).name
    dtype = getattr(array, "dtype", array)
    if isinstance(dtype, str):
        return dtype
    name = getattr(dtype, "name", None)
    return name if isinstance(name, str) else str(dtype).rpartition(".")[2]


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The dtype of NumPy with this name; bfloat16 is that of ``ml_dtypes``."""
    if name == "bfloat16":
        import ml_dtypes

        dtype: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return dtype
    return np.dtype(name)


def empty(like: Any, shape: tuple[int, ...]) -> Any:
    """A new array of the type and device of `like`: of NumPy, PyTorch or CuPy, or one for :func:`give_back`."""
    if type(like) is np.ndarray:
        return np.empty(shape, like.dtype)
    torch = torch_of(like)
    if torch is not None:
        return torch.empty(shape, dtype=like.dtype, device=like.device)
    cupy = cupy_of(like)
    if cupy is not None:
        with like.device:
            return cupy.empty(shape, like.dtype)
    gpu = _device.number(like)
    if gpu is not None:
        return _on_gpu(shape, dtype_name(like), gpu)
    return np.empty(shape, numpy_dtype(dtype_name(like)))


def _on_gpu(shape: tuple[int, ...], dtype: str, gpu: int) -> Any:
    """A new array of the module, for libraries that make none that others write."""
    from . import _gustav

    return _gustav.DeviceArray(shape, dtype, gpu)


def give_back(like: Any, result: Any) -> Any:
    """`result`, made by :func:`empty`, as an array of the library of `like`, in place.

    bfloat16 in host memory, which NumPy does not export, is copied. For a library without ``from_dlpack``, `result` is
    returned as it is. The product has ended: see :func:`_device.settle`.
    """
    if isinstance(like, np.ndarray) or torch_of(like) is not None or cupy_of(like) is not None:
        return result
    namespace = getattr(like, "__array_namespace__", None)
    if namespace is None:
        return result
    try:
        return namespace().from_dlpack(result)
    except BufferError:
        return namespace().asarray(result)


def of_block(block: Any, like: Any = None) -> Any:
    """A vector of the library as an array: of PyTorch, if `like` is, else of NumPy."""
    array = np.asarray(block)
    torch = torch_of(like)
    if torch is not None:
        # A tensor may be written, which the arrays of a pattern may not.
        array = array if array.flags.writeable else array.copy()
        if block.dtype == "bfloat16":
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(array)
    return array.view(numpy_dtype("bfloat16")) if block.dtype == "bfloat16" else array


def copied(block: Any, like: Any, place: Any) -> Any:
    """A vector of the library on a GPU as a new one of the library of `like`, in the order of the place's stream."""
    values = empty_vector(like, len(block), block.dtype)
    block.copy_into(_device.exported(values, place), place)
    _device.settle(place, values)
    return values


def empty_vector(like: Any, length: int, dtype: str) -> Any:
    """As :func:`empty`, a vector on the GPU of `like` with elements of the type of this name."""
    torch = torch_of(like)
    if torch is not None:
        return torch.empty(length, dtype=getattr(torch, dtype), device=like.device)
    cupy = cupy_of(like)
    if cupy is None:
        gpu = _device.number(like)
        assert gpu is not None, "the caller computes on a GPU"
        return _on_gpu((length,), dtype, gpu)
    with like.device:
        return cupy.empty(length, numpy_dtype(dtype))


def checked(name: str, array: Any, with_gradients: str = "gustav.torch") -> Any:
    """`array`, if its elements are all that there is to it, or NumPy's view of what describes an array.

    `with_gradients` is the module that computes gradients, for the error.

    Raises
    ------
    TypeError
        For masked arrays, whose mask would be lost, for what tracks gradients, and for lists.
    """
    if type(array) is np.ndarray:
        return array
    if torch_of(array) is not None:
        refuse_gradients(name, array, with_gradients)
        # The memory of a negative view holds what it is the negative of.
        return array.resolve_neg() if array.is_neg() else array
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name}: a masked array is not taken; its method filled() gives one that is")
    if isinstance(array, (list, tuple)) or np.isscalar(array):
        raise TypeError(f"{name}: {type(array).__name__} is not taken; numpy.asarray of it is")
    if hasattr(array, "shape") and hasattr(array, "dtype"):
        return array
    if hasattr(array, "__dlpack__") and _device.number(array) is None:
        return np.from_dlpack(array)
    if hasattr(array, "__array_interface__"):
        return np.asarray(array)
    raise TypeError(
        f"{name}: {type(array).__name__} is not taken; a NumPy array is, and what has __dlpack__, "
        "__array_interface__ or __cuda_array_interface__, shape and dtype"
    )


def writable(name: str, array: Any) -> Any:
    """As :func:`checked`, for an array that is written.

    Raises
    ------
    TypeError
        For arrays of JAX also, which are never written.
    ValueError
        For negative views, whose memory holds what they are the negative of.
    """
    if type(array).__module__.partition(".")[0] in ("jax", "jaxlib"):
        raise TypeError(f"{name}: arrays of JAX cannot be written; leave it out for a new one, or give a NumPy array")
    if torch_of(array) is not None and array.is_neg():
        raise ValueError(f"{name}: a negative view is not written in place; give a tensor that is none")
    return checked(name, array)


def refuse_gradients(name: str, tensor: Any, with_gradients: str = "gustav.torch") -> None:
    """Refuses a tensor whose gradient or tangent would be lost; `with_gradients` is the module that computes them.

    Raises
    ------
    TypeError
    """
    torch = sys.modules["torch"]
    forward_ad = torch.autograd.forward_ad
    if tensor.requires_grad and torch.is_grad_enabled():
        what = "requires gradients"
    elif (
        forward_ad._current_level >= 0
        # PyTorch has no tangents of sparse tensors.
        and tensor.layout is torch.strided
        and forward_ad.unpack_dual(tensor).tangent is not None
    ):
        what = "has a tangent"
    else:
        return
    raise TypeError(
        f"{name}: the tensor {what}, which this function does not compute; {with_gradients} does, or give its detach()"
    )


def common_type(first: Any, second: Any) -> tuple[Any, Any]:
    """Both arrays in one type: that to which their libraries promote them.

    Arrays of one type are returned as they are; otherwise the one of the other type is copied.

    Raises
    ------
    TypeError
        When that type is not one of those that are multiplied.
    """
    if first.dtype == second.dtype:
        return first, second
    torch = torch_of(first, second)
    if torch is not None:
        if not (isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor)):
            if dtype_name(first) == dtype_name(second):
                return first, second
            raise TypeError(
                f"types differ: {dtype_name(first)} and {dtype_name(second)} of two libraries; "
                "give both in one type"
            )
        dtype = torch.promote_types(first.dtype, second.dtype)
        return first.to(dtype), second.to(dtype)
    if dtype_name(first) == dtype_name(second):
        return first, second
    library = cupy_of(first) or np
    if not (isinstance(first, library.ndarray) and isinstance(second, library.ndarray)):
        raise TypeError(
            f"types differ: {dtype_name(first)} and {dtype_name(second)}; give both in one type"
        )
    dtype = np.result_type(first.dtype, second.dtype)
    if dtype.name not in TAKEN:
        raise TypeError(
            f"values of {first.dtype} and {second.dtype} make {dtype}, which is not taken; "
            f"{', '.join(TAKEN)} are"
        )
    return library.asarray(first, dtype), library.asarray(second, dtype)
