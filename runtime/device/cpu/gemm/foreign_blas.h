// ForeignBlas: OpenBLAS, loaded at run time.
//
// The library chooses its kernels once, when it is loaded, from a table of CPUs that were known
// when it was released; on a newer one it falls back to kernels several times slower. So the core
// type is chosen here, from CPUID and the cap of --max-isa, and the library is loaded afterwards
// rather than linked. A call uses one thread: the caller divides the work.
//
// A call works in a buffer of the library, which tries for ever to map one where it gets no memory.
// So Load maps buffers, as many as there are CPUs and addresses left (`ulimit -v`), and is refused
// where there is no room for one, or where each thread has buffers of its own; a call waits while
// other calls have all of them. It may lock: launches that make one are `foreign`.
//
// Threads:   Load sets environment variables for the time of its call, so no other thread may read
//            the environment meanwhile. Products may be computed from any number of threads.
// Ownership: the library is unloaded with the last object that uses it. A process holds it once:
//            while one object lives, another gets the same kernels, or an error if those are above
//            its cap.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/cpu/cpu_info.h"

namespace reprise::cpu {

// c[m, n] = alpha a[m, k] b[k, n] + beta c, row-major. Leading dimensions are distances of rows as
// stored; a transposed matrix is stored [k, m] or [n, k]. With a beta of 0, c is not read.
template <typename T>
struct BlasProduct {
  int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  int64_t lda = 0;
  bool transposed_a = false;
  const T* b = nullptr;
  int64_t ldb = 0;
  bool transposed_b = false;
  T* c = nullptr;
  int64_t ldc = 0;
  T alpha = 1;
  T beta = 0;
};

class ForeignBlas {
 public:
  // Returns the library with the best kernels that neither the machine nor `max_isa` forbids.
  // Errors: NOT_FOUND when there is no library, FAILED_PRECONDITION when the one found must not be
  // used (not safe from several threads, buffers by thread, kernels above `max_isa`),
  // RESOURCE_EXHAUSTED when there are too few addresses for its buffers.
  static absl::StatusOr<std::shared_ptr<const ForeignBlas>> Load(Isa max_isa);
  ~ForeignBlas();
  ForeignBlas(const ForeignBlas&) = delete;
  ForeignBlas& operator=(const ForeignBlas&) = delete;

  // Dimensions and leading dimensions are below 2^31. Empty products are allowed.
  void Multiply(const BlasProduct<float>& product) const;
  void Multiply(const BlasProduct<double>& product) const;

  const std::string& core() const { return core_; }        // "SkylakeX"
  const std::string& version() const { return version_; }  // "0.3.21"

 private:
  template <typename T>
  using Gemm = void (*)(int order, int transposed_a, int transposed_b, int m, int n, int k, T alpha,
                        const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc);
  struct Closer {
    void operator()(void* library) const;
  };
  using Library = std::unique_ptr<void, Closer>;
  class Buffers;

  ForeignBlas();

  // Constant after Load.
  Library library_;
  Gemm<float> sgemm_ = nullptr;
  Gemm<double> dgemm_ = nullptr;
  std::string core_;
  std::string version_;
  std::shared_ptr<Buffers> buffers_;  // shared by the process
};

}  // namespace reprise::cpu
