#include "runtime/device/cpu/gemm/foreign_blas.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/address_space.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"

namespace reprise::cpu {
namespace {

// The library of Debian's package libopenblas0-pthread.
constexpr char kLibrary[] = "libopenblas.so.0";

// Core types of OpenBLAS and the tier that each needs. Those of the baseline differ in extensions
// that are no tier of ours.
struct Core {
  absl::string_view name;
  Isa isa;
};
constexpr Core kCores[] = {
    {"Cooperlake", Isa::kAvx512Bf16}, {"SkylakeX", Isa::kAvx512},
    {"Haswell", Isa::kAvx2},          {"Zen", Isa::kAvx2},
    {"Sandybridge", Isa::kBaseline},  {"Nehalem", Isa::kBaseline},
    {"Core2", Isa::kBaseline},        {"Prescott", Isa::kBaseline},
    {"ARMV8", Isa::kBaseline},
};

const char* CoreFor(Isa max_isa) {
  const Isa machine = DetectIsa();
  const Isa isa = UsableIsa(max_isa);
  // Bfloat16 is all that Cooperlake adds.
  if (isa.Has(CpuFeature::kAvx512)) return "SkylakeX";
  if (isa.Has(CpuFeature::kAvx2)) return "Haswell";
  // The library has no kernels without SSE3. One that was capped on purpose gets no more.
  if (machine != Isa::kBaseline) return "Prescott";
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx")) return "Sandybridge";
  if (__builtin_cpu_supports("sse4.2")) return "Nehalem";
  return __builtin_cpu_supports("ssse3") ? "Core2" : "Prescott";
#else
  return "ARMV8";
#endif
}

// An environment variable that has another value while this lives.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value, /*overwrite=*/1);
  }
  ~ScopedVariable() {
    if (before_.has_value()) {
      setenv(name_, before_->c_str(), /*overwrite=*/1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

// The size of one buffer of the library. All together take this part of the addresses that are
// left.
constexpr int64_t kBufferBytes = int64_t{128} << 20;
constexpr int64_t kBuffersPart = 8;
// The library counts its buffers: it has this many at the least.
constexpr int kMostBuffers = 64;

// Returns whether the system would map a buffer: it refuses where memory must not be promised twice
// (vm.overcommit_memory), or where there are too many mappings.
bool CanMapBuffer() {
  constexpr size_t kBytes = 2 * kBufferBytes;
  void* mapping = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return false;
  munmap(mapping, kBytes);
  return true;
}

absl::Status NoRoom(int64_t left) {
  if (constexpr int64_t kNeeded = kBuffersPart * kBufferBytes; left < kNeeded) {
    return absl::ResourceExhaustedError(
        absl::StrCat("OpenBLAS is left out: ", left, " bytes of addresses are left (ulimit -v), ",
                     "at least ", kNeeded, " are needed with its buffers"));
  }
  return absl::ResourceExhaustedError(absl::StrCat("OpenBLAS is left out: the system maps no ",
                                                   kBufferBytes,
                                                   " bytes for a buffer (vm.overcommit_memory)"));
}

using AllocateBuffer = void* (*)(int);
using FreeBuffer = void (*)(void*);

// Returns whether the library keeps the buffers of each thread apart, as one that was built with
// USE_TLS does: what is mapped here serves no other thread then. Maps up to two of them.
bool KeepsBuffersByThread(AllocateBuffer allocate, FreeBuffer free) {
  void* const own = allocate(0);
  free(own);
  void* other = nullptr;
  std::thread([&] {
    other = allocate(0);
    free(other);
  }).join();
  return other != own;
}

template <typename Function>
absl::Status Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(kLibrary, " has no function ", name));
}

// Calls the library. The dimensions are checked where products are planned.
template <typename T, typename Function>
void Call(Function gemm, const BlasProduct<T>& p) {
  constexpr int kRowMajor = 101, kAsStored = 111, kTransposed = 112;
  if (p.m == 0 || p.n == 0) return;
  // The library asks for leading dimensions of at least 1 even where nothing is read.
  const auto stride = [](int64_t ld) { return static_cast<int>(std::max<int64_t>(1, ld)); };
  gemm(kRowMajor, p.transposed_a ? kTransposed : kAsStored,
       p.transposed_b ? kTransposed : kAsStored, static_cast<int>(p.m), static_cast<int>(p.n),
       static_cast<int>(p.k), p.alpha, p.a, stride(p.lda), p.b, stride(p.ldb), p.beta, p.c,
       stride(p.ldc));
}

}  // namespace

// The buffers of the library that are mapped, each for one call at a time. The library takes the
// first that is free, so that as many calls as there are buffers map nothing.
class ForeignBlas::Buffers {
 public:
  // Maps them, or returns those that the process has. `library` is loaded as long as they are used.
  static absl::StatusOr<std::shared_ptr<Buffers>> OfProcess(void* library) {
    static Mutex mutex;
    static std::weak_ptr<Buffers> of_process;
    MutexLock lock(mutex);
    if (std::shared_ptr<Buffers> buffers = of_process.lock()) return buffers;
    auto buffers = std::make_shared<Buffers>();
    RETURN_IF_ERROR(buffers->Map(library));
    of_process = buffers;
    return buffers;
  }

  // One buffer, while this lives.
  class Turn {
   public:
    explicit Turn(Buffers& buffers) : buffers_(buffers) { buffers_.Take(); }
    ~Turn() { buffers_.GiveBack(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Buffers& buffers_;
  };

 private:
  absl::Status Map(void* library) {
    AllocateBuffer allocate = nullptr;
    FreeBuffer free = nullptr;
    RETURN_IF_ERROR(Find(library, "blas_memory_alloc", allocate));
    RETURN_IF_ERROR(Find(library, "blas_memory_free", free));
    const int64_t left = FreeAddressBytes();
    if (left / kBuffersPart < kBufferBytes || !CanMapBuffer()) return NoRoom(left);
    if (KeepsBuffersByThread(allocate, free)) {
      return absl::FailedPreconditionError(
          "OpenBLAS is left out: it keeps buffers for each thread (it was built with USE_TLS), and "
          "tries for ever to map one where there is no memory; libopenblas0-pthread does not");
    }
    const int most = std::min(AvailableCpus(), kMostBuffers);
    std::vector<void*> mapped = {allocate(0)};
    while (static_cast<int>(mapped.size()) < most &&
           left - FreeAddressBytes() + kBufferBytes <= left / kBuffersPart && CanMapBuffer()) {
      mapped.push_back(allocate(0));
    }
    // The library keeps its mappings for the next calls.
    for (void* buffer : mapped) free(buffer);
    MutexLock lock(mutex_);
    free_ = static_cast<int>(mapped.size());
    return absl::OkStatus();
  }

  void Take() {
    MutexLock lock(mutex_);
    while (free_ == 0) given_back_.Wait(mutex_);
    --free_;
  }
  void GiveBack() {
    {
      MutexLock lock(mutex_);
      ++free_;
    }
    given_back_.NotifyOne();
  }

  Mutex mutex_;
  CondVar given_back_;
  int free_ GUARDED_BY(mutex_) = 0;
};

void ForeignBlas::Closer::operator()(void* library) const { dlclose(library); }

absl::StatusOr<std::shared_ptr<const ForeignBlas>> ForeignBlas::Load(Isa max_isa) {
  std::shared_ptr<ForeignBlas> blas(new ForeignBlas());
  {
    const ScopedVariable core("OPENBLAS_CORETYPE", CoreFor(max_isa));
    const ScopedVariable threads("OPENBLAS_NUM_THREADS", "1");
    blas->library_.reset(dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL));
  }
  void* library = blas->library_.get();
  if (library == nullptr) return absl::NotFoundError(absl::StrCat("OpenBLAS: ", dlerror()));
  char* (*get_config)() = nullptr;
  char* (*get_core)() = nullptr;
  int (*get_parallel)() = nullptr;
  void (*set_threads)(int) = nullptr;
  RETURN_IF_ERROR(Find(library, "openblas_get_config", get_config));
  RETURN_IF_ERROR(Find(library, "openblas_get_corename", get_core));
  RETURN_IF_ERROR(Find(library, "openblas_get_parallel", get_parallel));
  RETURN_IF_ERROR(Find(library, "openblas_set_num_threads", set_threads));
  RETURN_IF_ERROR(Find(library, "cblas_sgemm", blas->sgemm_));
  RETURN_IF_ERROR(Find(library, "cblas_dgemm", blas->dgemm_));
  if (get_parallel() == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(kLibrary, " was built for one thread; libopenblas0-pthread is needed"));
  }
  set_threads(1);
  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
  const std::vector<std::string> config = absl::StrSplit(get_config(), ' ', absl::SkipEmpty());
  blas->version_ = config.size() > 1 ? config[1] : "unknown";
  blas->core_ = get_core();
  for (const Core& core : kCores) {
    if (core.name != blas->core_ || !UsableIsa(max_isa).Covers(core.isa)) continue;
    ASSIGN_OR_RETURN(blas->buffers_, Buffers::OfProcess(library));
    return blas;
  }
  return absl::FailedPreconditionError(absl::StrCat("OpenBLAS ", blas->version_,
                                                    " has kernels for ", blas->core_, " loaded, ",
                                                    CoreFor(max_isa), " was asked for"));
}

ForeignBlas::ForeignBlas() = default;
ForeignBlas::~ForeignBlas() = default;

void ForeignBlas::Multiply(const BlasProduct<float>& product) const {
  const Buffers::Turn turn(*buffers_);
  Call(sgemm_, product);
}
void ForeignBlas::Multiply(const BlasProduct<double>& product) const {
  const Buffers::Turn turn(*buffers_);
  Call(dgemm_, product);
}

}  // namespace reprise::cpu
