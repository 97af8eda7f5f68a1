from . import matmul

__all__ = ["matmul"]
