#include "runtime/device/cpu/gemm/foreign_blas.h"

#include <dlfcn.h>

#include <cstdlib>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
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
};

const char* CoreFor(Isa max_isa) {
  const Isa machine = DetectIsa();
  const Isa isa = UsableIsa(max_isa);
  // Bfloat16 is all that Cooperlake adds.
  if (isa.Has(CpuFeature::kAvx512)) return "SkylakeX";
  if (isa.Has(CpuFeature::kAvx2)) return "Haswell";
  // The library has no kernels without SSE3. One that was capped on purpose gets no more.
  if (machine != Isa::kBaseline) return "Prescott";
  if (__builtin_cpu_supports("avx")) return "Sandybridge";
  if (__builtin_cpu_supports("sse4.2")) return "Nehalem";
  return __builtin_cpu_supports("ssse3") ? "Core2" : "Prescott";
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

template <typename Function>
absl::Status Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(kLibrary, " has no function ", name));
}

// The dimensions are checked where products are planned.
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
    if (core.name == blas->core_ && UsableIsa(max_isa).Covers(core.isa)) return blas;
  }
  return absl::FailedPreconditionError(absl::StrCat("OpenBLAS ", blas->version_,
                                                    " has kernels for ", blas->core_, " loaded, ",
                                                    CoreFor(max_isa), " was asked for"));
}

ForeignBlas::~ForeignBlas() = default;

void ForeignBlas::Multiply(const BlasProduct<float>& product) const { Call(sgemm_, product); }
void ForeignBlas::Multiply(const BlasProduct<double>& product) const { Call(dgemm_, product); }

}  // namespace reprise::cpu
