// libFuzzer target: the bytes decide every draw, of the model and of requests; see README.md.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "runtime/graph/graph.h"
#include "tests/fuzz/random_models/case_text.h"
#include "tests/fuzz/random_models/draw_model.h"
#include "tests/fuzz/random_models/trial.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace reprise::fuzz;
  static auto* const trials = new Trials;
  Chance chance = Chance::FromBytes({reinterpret_cast<const char*>(data), size});
  const TestCase test = DrawCase(chance);
  if (test.graph.outputs().empty()) return 0;
  const Verdict verdict = trials->Run(test);
  if (verdict.fault == Fault::kNone) return 0;
  std::cerr << "FAULT (" << FaultName(verdict.fault) << "): " << verdict.words << "\n"
            << CaseText(test) << std::endl;
  std::abort();
}
