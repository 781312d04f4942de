// Trials: cases through the engine: loaded, asked alone and in company, compared.
//
// A case is right where every answer equals the reference kernels' (evaluation.h), computed from
// the drawn graph without any pass. Where one is not, to 1e-5 of its largest element, the engine's
// own exact answer decides: the model once more with padding, batching and packing off. So the
// bound holds for the effects of padding, batching and packing; the exact answer is held to the
// reference kernels as far as ONNX's runtimes agree. Rounding is no difference: differences that
// disturbed roundings reach as well are allowed, and the others must come again with other
// contents.
//
// Threads: one.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/silent_observer.h"
#include "tests/fuzz/random_models/draw_model.h"

namespace reprise::fuzz {

enum class Fault {
  kNone,
  kElement,   // an answer that was padded, packed or in company is not the exact one
  kShape,     // nor has it its shape
  kStatus,    // nor its status
  kCompiled,  // the exact answer differs from the reference kernels'
  kInternal,  // an INTERNAL error, while loading or answering
};
const char* FaultName(Fault fault);

// The result of one case.
struct Verdict {
  Fault fault = Fault::kNone;
  std::string words;
  absl::Status refused;                     // the model was, while it was loaded
  std::map<std::string, int> certificates;  // "proved", "measured", "refused": axes
  bool packed = false, cut = false;
  int64_t answers = 0;   // that were compared
  int64_t padded = 0;    // those from a bucket
  int64_t shared = 0;    // those in company
  int64_t doubtful = 0;  // differences that did not come again, or that rounding reaches
  // Requests with an index past their end, but not past their bucket's: alone and unpadded they are
  // refused, padded they are answered with values of the padding.
  int64_t beyond_end = 0;
  std::set<std::string> refusals;  // refused requests that the reference kernels answer
  // Seconds of the processor for loading and for answers.
  double loading = 0, asking = 0;
};

class Trials {
 public:
  Trials();
  ~Trials();

  Verdict Run(const TestCase& test);

 private:
  struct Asked;  // a request, its contents, and the answer of the reference kernels
  class Round;   // all requests of a case, with contents of one seed

  absl::StatusOr<std::shared_ptr<Model>> Load(const TestCase& test, const std::string& bytes,
                                              const std::set<std::string>& no_padding,
                                              Verdict& verdict);
  std::vector<Response> Ask(const Model& model, const Round& round, bool together,
                            Verdict& verdict);
  // Says how the answer is wrong; `exact` is the model without padding.
  Fault Judge(const TestCase& test, const Model& exact, const Asked& asked,
              const Response& response, Verdict& verdict, std::string& words);

  std::string folder_;
  int64_t files_ = 0;
  SteadyClock clock_;
  HelperPool cores_;
  CpuDevice device_;
  SilentObserver observer_;
  Engine engine_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace reprise::fuzz
