"""Arrays on a GPU: which one, in the order of which stream, and when their memory may be used again.

A place is what the module takes as one: ``None`` for host memory, or ``(device, stream, holder)`` with the number of the
GPU, the handle of the stream that the work goes to, and what keeps the stream.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _families

Place = tuple[int, int, Any] | None

# Of DLPack's kinds of devices: memory of an NVIDIA GPU, and memory that moves between it and the host.
_CUDA = (2, 13)


def number(array: Any) -> int | None:
    """The number of the GPU that an array is on, or ``None`` for one in host memory."""
    if type(array) is np.ndarray:
        return None
    torch = _families.torch_of(array)
    if torch is not None:
        return array.get_device() if array.is_cuda else None
    if _families.cupy_of(array) is not None:
        return int(array.device.id)
    of_dlpack = getattr(array, "__dlpack_device__", None)
    if of_dlpack is not None:
        kind, device = of_dlpack()
        return int(device) if int(kind) in _CUDA else None
    if hasattr(array, "__cuda_array_interface__"):
        return _number_of_interface(array)
    return None


def _number_of_interface(array: Any) -> int:
    from . import _gustav

    return _gustav.ordinal_of(array.__cuda_array_interface__["data"][0])


def place_of(stream: Any, *arrays: tuple[str, Any]) -> Place:
    """Where named arrays are, of which the first says by its library what the current stream is.

    Parameters
    ----------
    stream
        What the caller named in its place, or ``None``.
    arrays
        Names, for errors, and arrays.

    Raises
    ------
    ValueError
        For arrays on several devices, naming two, and for a stream beside host memory.
    """
    name, first = arrays[0]
    device = number(first)
    for other_name, other in arrays[1:]:
        found = number(other)
        if found != device:
            raise ValueError(
                f"{other_name} is in {_named(found)}, and {name} in {_named(device)}; give all operands on one device"
            )
    if device is None:
        if stream is not None:
            raise ValueError("stream: operands in host memory have none; leave it out")
        return None
    if stream is None:
        return (device, *current_stream(first, device))
    return (device, handle_of(stream), stream)


def _named(device: int | None) -> str:
    return "host memory" if device is None else f"the memory of cuda:{device}"


def handle_of(stream: Any) -> int:
    """The driver's handle of a stream: an int, what has ``__cuda_stream__``, or a stream of PyTorch or CuPy."""
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        # It was a property in early versions of the protocol.
        _, handle = protocol() if callable(protocol) else protocol
        return int(handle)
    for attribute in ("cuda_stream", "ptr"):
        handle = getattr(stream, attribute, None)
        if isinstance(handle, int):
            return handle
    raise TypeError(
        f"stream: {type(stream).__name__} is not taken; an int is, and what has __cuda_stream__, and streams of "
        "PyTorch and CuPy"
    )


def current_stream(array: Any, device: int) -> tuple[int, Any]:
    """The handle of the current stream of the array's library, and what keeps it; else the legacy default stream."""
    torch = _families.torch_of(array)
    if torch is not None:
        return torch_stream(torch, device), None
    cupy = _families.cupy_of(array)
    if cupy is not None:
        stream = cupy.cuda.get_current_stream(device)
        return int(stream.ptr), stream
    return 0, None


def current(device: int | None) -> Place:
    """The place of a GPU's current stream, that of PyTorch or CuPy where one has used CUDA; of none, host memory."""
    if device is None:
        return None
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return (device, torch_stream(torch, device), None)
    cupy = sys.modules.get("cupy")
    if cupy is not None:
        stream = cupy.cuda.get_current_stream(device)
        return (device, int(stream.ptr), stream)
    return (device, 0, None)


def torch_stream(torch: Any, device: int) -> int:
    """The handle of PyTorch's current stream, which it never destroys."""
    raw: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None:
        return raw(device)
    return int(torch.cuda.current_stream(device).cuda_stream)


def _stream_of_torch(torch: Any, device: int, handle: int) -> Any:
    if _same(handle, 0):
        return torch.cuda.default_stream(device)
    return torch.cuda.ExternalStream(handle, device=device)


def _same(one: int, other: int) -> bool:
    """Whether two handles name one stream: 0 and 1 are the legacy default one."""
    return max(one, 1) == max(other, 1)


def exported(array: Any, place: Place) -> Any:
    """An array as the module takes it in the order of the place's stream; tensors, and arrays on a GPU, are copied where
    no layout with a leading dimension expresses them."""
    if type(array) is np.ndarray:
        return array
    torch = _families.torch_of(array)
    if place is None:
        return array if torch is None else in_order(torch, array)
    if torch is not None:
        if _same(torch_stream(torch, place[0]), place[1]):
            return in_order(torch, array)
        return _in_layout(array)
    cupy = _families.cupy_of(array)
    if cupy is not None and not array.flags.c_contiguous:
        strides = tuple(stride // array.itemsize for stride in array.strides)
        if not _has_layout(array.shape, strides):
            return cupy.ascontiguousarray(array)
    return array


def in_order(torch: Any, tensor: Any) -> Any:
    """A tensor as the module takes it in the order of PyTorch's current stream."""
    return for_module(torch, _in_layout(tensor))


def for_module(torch: Any, tensor: Any) -> Any:
    """The same of a tensor whose layout the module knows, whatever its gradients: itself where its class has DLPack's
    table of functions, by which the module reads instances of that very class; else a capsule."""
    if "__dlpack_c_exchange_api__" in type(tensor).__dict__:
        return tensor
    expect_storage(tensor)
    return torch.utils.dlpack.to_dlpack(tensor)


def expect_storage(t: Any) -> None:
    """Refuses a tensor whose storage was shrunk since: it says a shape that its memory does not have.

    The module does so for tensors that it reads; this is for those that are copied before.
    """
    last = t.numel()
    if last and not t.is_contiguous():
        last = 1 + sum((n - 1) * stride for n, stride in zip(t.shape, t.stride(), strict=True))
    if last and (t.storage_offset() + last) * t.element_size() > t.untyped_storage().nbytes():
        raise ValueError(
            f"a tensor of shape {tuple(t.shape)} has a storage of {t.untyped_storage().nbytes()} bytes, which does not "
            "hold it; resize the storage, or give another tensor"
        )


def _in_layout(tensor: Any) -> Any:
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_neg():
        expect_storage(tensor)
        tensor = tensor.resolve_neg()
    if not tensor.is_contiguous() and not _has_layout(tensor.shape, tensor.stride()):
        expect_storage(tensor)
        tensor = tensor.contiguous()
    return tensor


def _has_layout(shape: Any, strides: Any) -> bool:
    if len(shape) == 1:
        return shape[0] <= 1 or bool(strides[0] == 1)
    if len(shape) != 2:
        return False
    (rows, columns), (of_row, of_column) = shape, strides
    return bool((of_column == 1 and of_row >= columns) or (of_row == 1 and of_column >= rows))


def settle(place: Place, *arrays: Any) -> None:
    """Says to the libraries of arrays that work on the place's stream, which was queued, uses their memory.

    PyTorch is told by ``record_stream``. CuPy has nothing like it: its current stream waits for the place's. The host
    waits for it where the library is another. Nothing is done where the stream is the library's current one.
    """
    if place is None:
        return
    device, handle, _ = place
    of_torch: bool | None = None
    of_cupy: bool | None = None
    unknown = False
    for array in arrays:
        torch = _families.torch_of(array)
        cupy = None if torch is not None else _families.cupy_of(array)
        if torch is not None:
            if of_torch is None:
                of_torch = _same(torch_stream(torch, device), handle)
            if not of_torch and array.is_cuda:
                array.record_stream(_stream_of_torch(torch, device, handle))
        elif cupy is not None:
            if of_cupy is None:
                current = cupy.cuda.get_current_stream(device)
                of_cupy = _same(int(current.ptr), handle)
                if not of_cupy:
                    _wait(cupy, device, current, handle)
        elif hasattr(array, "__dlpack__") or hasattr(array, "__cuda_array_interface__"):
            unknown = True
    if unknown:
        from . import _gustav

        _gustav.synchronize(place)


def _wait(cupy: Any, device: int, current: Any, handle: int) -> None:
    """Lets a stream of CuPy wait for the work on another one."""
    with cupy.cuda.Device(device):
        event = cupy.cuda.Event(disable_timing=True)
        event.record(cupy.cuda.ExternalStream(handle, device))
        current.wait_event(event)


def written(name: str, array: Any, place: Place) -> Any:
    """An array that is written as the module takes it: in place or not at all."""
    given = exported(array, place)
    if not is_in_place(array, given):
        raise ValueError(
            f"{name} cannot be written in place: its strides are not those of rows or columns with a leading "
            "dimension; give a writable array in C or Fortran order"
        )
    return given


def is_in_place(array: Any, given: Any) -> bool:
    """Whether `given`, which :func:`exported` made of `array`, is its memory."""
    torch = _families.torch_of(array)
    if torch is not None:
        in_layout = array.is_contiguous() or _has_layout(array.shape, array.stride())
        return in_layout and not array.is_neg()
    return given is array


def rejoin(place: Place, array: Any) -> None:
    """Lets the current stream of the array's library wait for the place's."""
    if place is None:
        return
    device, handle, _ = place
    torch = _families.torch_of(array)
    if torch is None:
        # CuPy's waits already.
        settle(place, array)
    elif not _same(torch_stream(torch, device), handle):
        torch.cuda.current_stream(device).wait_stream(_stream_of_torch(torch, device, handle))
