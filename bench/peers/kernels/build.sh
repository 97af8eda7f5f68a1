#!/usr/bin/env bash
# Builds the adapter of one published GPU kernel (bench/PROTOCOL.md):
#
#   build.sh NAME SOURCES OUT.so
#
# SOURCES is a checkout of the kernel's repository that this script may patch; it is patched once. The compiler is
# NVCC (nvcc), its further flags NVCC_FLAGS, the checkout's commit COMMIT (the text of SOURCES/.commit, or git's).
# A peer is one arm below: the file of its adapter, the include folders, and what its sources need to build.
set -euo pipefail

if [ $# -ne 3 ]; then
  echo "usage: build.sh NAME SOURCES OUT.so" >&2
  exit 2
fi
name=$1
sources=$(cd "$2" && pwd)
out=$3
here=$(cd "$(dirname "$0")" && pwd)
commit=${COMMIT:-$(cat "$sources/.commit" 2>/dev/null || git -C "$sources" rev-parse HEAD 2>/dev/null || echo unknown)}

arch=90
std=17
flags=()
libraries=()

# Runs a patch on the checkout, once.
patched() { [ -e "$sources/.gustav-$1" ]; }
done_with() { touch "$sources/.gustav-$1"; }

case $name in
sputnik)
  # Its only outside dependencies, of tests, are not included.
  flags+=(-I"$sources")
  ;;
rode)
  # Its flags. The preprocessing, which needs abseil, is the adapter's.
  flags+=(-I"$sources" -I"$sources/RoDe_SpMM" -I"$sources/utils" -use_fast_math)
  ;;
flashsparse)
  # It is an extension of PyTorch, of which the kernels use only the name of a half.
  flags+=(-I"$sources" -I"$sources/.gustav-include")
  if ! patched flashsparse; then
    mkdir -p "$sources/.gustav-include/torch"
    printf '#include <cuda_fp16.h>\nnamespace at {\nusing Half = __half;\n}\n' >"$sources/.gustav-include/torch/torch.h"
    done_with flashsparse
  fi
  ;;
acc-spmm)
  # Headers of libraries that it does not call are left out. Its kernels are repaired where they index wrongly, which
  # does not show in its own runs, whose B is all ones: the first block of a window takes the columns of the first
  # block of all (tf32_mma_kernel), every warp reads the same columns of B (both balance kernels), and one fragment
  # of B is used for another (the end of tf32_mma_balance_kernel).
  flags+=(-I"$sources/include")
  if ! patched acc-spmm; then
    sed -i '/cusparse\.h/d; /cublas_v2\.h/d; /omp\.h/d' "$sources/include/common.hpp"
    sed -i 's/= d_sparseA2B\[row/= d_sharedSparseA2B[row/
      /^void tf32_mma_balance_kernel/,/^}/ {
        s/\(colB02 *= *groupID\);/\1 + (local_warpID << 5);/; s/\(colB13 *= *groupID + 8\);/\1 + (local_warpID << 5);/
        s/(fragB1\[1\], fragA, fragC\[0\])/(fragB1[0], fragA, fragC[0])/
      }
      /^void tf32_mma_balance_g128_kernel/,/^}/ {
        s/\(colB02 *= *groupID\);/\1 + (local_warpID << 6);/; s/\(colB13 *= *groupID + 8\);/\1 + (local_warpID << 6);/
      }' "$sources/include/mma_tf32.cuh"
    done_with acc-spmm
  fi
  ;;
voltrix)
  # The flags of its own compilation at run time; a launch that fails is reported, not the end of the program.
  arch=90a
  flags+=(-I"$sources/voltrix/include" --expt-relaxed-constexpr --expt-extended-lambda
    --ptxas-options=--register-usage-level=10)
  if ! patched voltrix; then
    sed -i 's/^    exit(1);/    throw std::runtime_error(cudaGetErrorString(error));/' \
      "$sources/voltrix/include/voltrix/spmm_kernels.cuh"
    done_with voltrix
  fi
  ;;
speck)
  # The headers of CUB are the toolkit's, not the old ones that spECK brings: CUB's Min and Max have gone to libcu++,
  # one header is gone and was not used, and shuffles name their lanes. (Its branch for CUDA 11 and later, whose kernels
  # are the same, builds here as well.) Its readme asks for the shared memory that a block can have: an H200's.
  # Blocks of 1024 threads have 64 registers a thread, which its kernels in f32 do not keep to by themselves.
  flags+=(-I"$sources" -I"$sources/include" -use_fast_math -maxrregcount=64
    --expt-relaxed-constexpr --expt-extended-lambda)
  libraries+=("$sources"/source/{dCSR,CSR,COO}.cpp)
  if ! patched speck; then
    sed -i 's/cub::Min()/cuda::minimum<>{}/; s/cub::Max()/cuda::maximum<>{}/
      /transform_input_iterator\.cuh/d; s/__shfl(/__shfl_sync(0xffffffff, /
      s/#include <npp\.h>/#include <stdint.h>/
      s/NPP_MIN_\([0-9]*\)S/INT\1_MIN/; s/NPP_MAX_\([0-9]*\)S/INT\1_MAX/
      s/NPP_MIN_[0-9]*U/0/; s/NPP_MAX_\([0-9]*\)U/UINT\1_MAX/
      s/\(spECK_DYNAMIC_MEM_PER_BLOCK\){49152}/\1{232448}/' \
      "$sources"/include/*.cuh "$sources"/include/*.h "$sources"/include/GPU/*.cuh
    done_with speck
  fi
  ;;
opsparse)
  # Its check against cuSPARSE and the profiler's header are left out, and the clock of its own timings does not ask
  # the processor for its frequency, which traps in a virtual machine.
  flags+=(-I"$sources/OpSparse" -I"$sources/OpSparse/inc")
  if ! patched opsparse; then
    sed -i '/cusparse_spgemm\.h/d; /cuda_profiler_api\.h/d' "$sources"/OpSparse/src/*opsparse.cu \
      "$sources/OpSparse/inc/kernel_wrapper.cuh"
    sed -i 's/cpuid(raw, 0x16);/raw[0] = 1000;/' "$sources/OpSparse/inc/cuda_common.h"
    done_with opsparse
  fi
  ;;
nsparse)
  flags+=(-I"$sources/cuda-cpp/inc")
  ;;
mh-spgemm)
  # As for OpSparse; and a kernel over the longer rows of C has a block where there are none, since an empty grid is
  # an error that makes CUB's scan after it give up.
  flags+=(-I"$sources" -I"$sources/inc")
  if ! patched mh-spgemm; then
    sed -i '/cusparse_spgemm\.cuh/d; s/(rows + 511) \/ 512/rows \/ 512 + 1/' "$sources/src/main.cu" \
      "$sources/inc/MH_spgemm.cuh"
    sed -i 's/cpuid(raw, 0x16);/raw[0] = 1000;/' "$sources/inc/common.h"
    done_with mh-spgemm
  fi
  ;;
cusparse)
  # NVIDIA's cuSPARSE itself, loaded at run time: SOURCES is a folder with the include of the newest.
  flags+=(-I"$sources/include")
  ;;
*)
  echo "build.sh: no adapter named $name" >&2
  exit 2
  ;;
esac

"${NVCC:-nvcc}" -shared -O3 -std=c++$std -gencode "arch=compute_$arch,code=sm_$arch" -cudart "${CUDART:-static}" \
  -Xcompiler -fPIC,-fvisibility=hidden -Xlinker --exclude-libs,ALL -DNDEBUG -w \
  "-DGUSTAV_COMMIT=\"$commit\"" "-I$here/.." "${flags[@]}" ${NVCC_FLAGS:-} \
  "$here/$name.cu" -o "$out" "${libraries[@]}"
strip --strip-unneeded "$out"
