// Matrix products. Where the right side is a parameter, it is packed once for each model version,
// by the prepare op cpu.PackPanels; otherwise both sides are activations and panels are made in
// scratch. Other products go to OpenBLAS (plan_foreign.cc), where there is one.
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/gemm/block_weights.h"
#include "runtime/device/cpu/gemm/conv_prepare.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/gemm/gemm_bf16.h"
#include "runtime/device/cpu/gemm/gemm_plans.h"
#include "runtime/device/cpu/gemm/matmul_desc.h"
#include "runtime/device/cpu/simd/half.h"
#include "runtime/device/cpu/simd/weight_memory.h"
#include "runtime/graph/parameter_expr.h"

namespace reprise::cpu {
namespace {

struct ProductParams {
  const GemmKernels* kernels = nullptr;
  Product product;
  // Positions among the operands.
  Addends addends;
  int workspace = kNoOperand;
  // The bytes of the workspace for each of `scratch_parts` parts.
  int64_t scratch_bytes = 0;
  int scratch_parts = 0;
  GemmBlocking blocking;
};

GemmArgs ArgsOf(const ProductParams& params, const LaunchArgs& launch) {
  GemmArgs args = GemmArgsOf(params.product, params.addends, launch);
  args.blocking = params.blocking;
  return args;
}

using PartFunction = void (*)(const GemmArgs& args, const GemmPart& part);

// Runs a product by packed weights, in the form that `GemmKernels::*part_of` takes.
template <PartFunction GemmKernels::*part_of>
void RunWeights(const LaunchArgs& args) {
  constexpr bool kInt8 = part_of == &GemmKernels::part_int8;
  const auto& params = *static_cast<const ProductParams*>(args.params);
  const Product& p = params.product;
  const int64_t m = p.LiveExtent(*args.frame).rows;
  GemmArgs gemm = ArgsOf(params, args);
  int parts = args.parts;
  if (params.workspace != kNoOperand) {
    parts = PartsWithScratch(args, params.scratch_parts);
    if (args.part >= parts) return;
    gemm.scratch =
        static_cast<std::byte*>(args.operands[params.workspace]) + args.part * params.scratch_bytes;
  }
  const GemmKernels& kernels = *params.kernels;
  (kernels.*part_of)(gemm, kernels.Partition(m, p.n, kInt8, parts, args.part));
}

// Gives each part whole matrices of the stack if there are enough of them, else rows and panels of
// each matrix.
void RunUnpacked(const LaunchArgs& args) {
  const auto& params = *static_cast<const ProductParams*>(args.params);
  const Product& p = params.product;
  const GemmKernels& kernels = *params.kernels;
  const int parts = PartsWithScratch(args, params.scratch_parts);
  if (args.part >= parts) return;
  const Product::Extent live = p.LiveExtent(*args.frame);
  const int64_t scratch_floats = kernels.UnpackedScratchFloats(p.k);
  UnpackedGemmArgs gemm;
  gemm.gemm = ArgsOf(params, args);
  gemm.b = {
      .data = FloatsAt(args, 1), .ld = p.transposed_b ? p.k : p.n, .transposed = p.transposed_b};
  gemm.scale = p.alpha;
  gemm.scratch = static_cast<float*>(args.operands[params.workspace]) + args.part * scratch_floats;
  const bool divide_stack = live.stack >= parts;
  const ItemRange range =
      divide_stack ? RangeOfPart(live.stack, 1, args.part, parts) : ItemRange{0, live.stack};
  const GemmPart part = divide_stack
                            ? GemmPart{0, live.rows, 0, kernels.Panels(p.n)}
                            : kernels.Partition(live.rows, p.n, /*int8=*/false, parts, args.part);
  const float* a = gemm.gemm.a;
  const float* b = gemm.b.data;
  float* c = gemm.gemm.c;
  for (int64_t i = range.begin; i < range.end; ++i) {
    const Product::Positions matrices = p.MatricesOf(i);
    gemm.gemm.a = a + matrices.a * p.m * p.k;
    gemm.b.data = b + matrices.b * p.k * p.n;
    gemm.gemm.c = c + i * p.m * p.n;
    kernels.unpacked(gemm, part);
  }
}

// Input 1, a parameter, packed at preparation and multiplied by alpha there.
Candidate Packed(const CpuTarget& target, const NodeView& node, const ProductParams& params) {
  const GemmKernels& gemm = GemmKernelsFor(target.isa);
  const Product& product = params.product;
  Candidate candidate =
      MakeCandidate(target, node, "gemm", RunWeights<&GemmKernels::part>, params, product.flops());
  const size_t bytes = sizeof(float) * gemm.PackedFloats(product.k, product.n);
  candidate.option.prepare.push_back({.input = 1,
                                      .op = kPackOp,
                                      .attributes = {{"panel", gemm.panel_columns},
                                                     {"scale", product.alpha},
                                                     {"transposed", int64_t{product.transposed_b}}},
                                      .dtype = DType::kUInt8,
                                      .shape = {static_cast<int64_t>(bytes)}});
  return candidate;
}

// The order of products on vectors, whatever their walk: an element's sum goes along the depth.
constexpr absl::string_view kOrderOfDepth = "along the depth";

// Counts bytes that are read where weights were never made floats: elements have `bytes` each.
void ReadNarrow(const Product& product, int64_t bytes, LaunchWork& work) {
  const double saved =
      static_cast<double>(product.k * product.n * (static_cast<int64_t>(sizeof(float)) - bytes));
  work.bytes -= saved;
  work.weight_bytes -= saved;
}

// Like Packed, of weights that the model stores as int8: they stay so, in the form that the kernels
// of `params` read.
Candidate PackedInt8(const CpuTarget& target, const NodeView& node, const ProductParams& params,
                     const Int8Weights& weights) {
  const Product& product = params.product;
  Candidate candidate = MakeCandidate(target, node, "gemm_int8",
                                      RunWeights<&GemmKernels::part_int8>, params, product.flops());
  const int64_t bytes = params.kernels->PackedInt8Bytes(product.k, product.n);
  PrepareStep step = {.input = 1,
                      .op = kPackInt8Op,
                      .attributes = {{"panel", params.kernels->panel_columns},
                                     {"scale", product.alpha},
                                     {"transposed", int64_t{product.transposed_b}},
                                     {"words", int64_t{params.kernels->int8_words}}},
                      .dtype = DType::kUInt8,
                      .shape = {bytes}};
  step.parts.push_back(weights.values);
  if (weights.scales != nullptr) step.parts.push_back(weights.scales);
  candidate.option.prepare.push_back(std::move(step));
  ReadNarrow(product, sizeof(int8_t), candidate.bound.work);
  return candidate;
}

// Like Packed, of weights that the model stores in half: they stay so.
Candidate PackedHalf(const CpuTarget& target, const NodeView& node, const ProductParams& params,
                     const ParameterExprPtr& halves) {
  const GemmKernels& gemm = GemmKernelsFor(target.isa);
  const Product& product = params.product;
  const bool f16 = halves->dtype() == DType::kFloat16;
  Candidate candidate = MakeCandidate(
      target, node, "gemm_half",
      f16 ? RunWeights<&GemmKernels::part_float16> : RunWeights<&GemmKernels::part_bfloat16>,
      params, product.flops());
  const int64_t bytes =
      gemm.PackedHalves(product.k, product.n) * static_cast<int64_t>(sizeof(uint16_t));
  candidate.option.prepare.push_back(
      {.input = 1,
       .parts = {halves},
       .op = kPackHalfOp,
       .attributes = {{"panel", gemm.panel_columns}, {"transposed", int64_t{product.transposed_b}}},
       .dtype = DType::kUInt8,
       .shape = {bytes}});
  ReadNarrow(product, sizeof(uint16_t), candidate.bound.work);
  return candidate;
}

Candidate Unpacked(const CpuTarget& target, const NodeView& node, ProductParams params) {
  params.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
  params.scratch_parts = target.scratch_parts;
  Candidate candidate =
      MakeCandidate(target, node, "gemm_unpacked", RunUnpacked, params, params.product.flops());
  candidate.option.workspace_bytes =
      sizeof(float) * params.scratch_parts *
      GemmKernelsFor(target.isa).UnpackedScratchFloats(params.product.k);
  return candidate;
}

// A walk over the operands that may suit a machine better than the usual one.
struct Walk {
  absl::string_view name;
  GemmBlocking blocking;
};

// GemmBlocking::narrow_tiles, unless it is measured. On a Zen 5 widening in registers costs 1 to 3
// % of a product of halves with any number of rows, in a buffer 3 to 12 %; its AVX2 from 64 rows on
// 2 to 5 % and 0 to 4 %.
int64_t NarrowTiles(Isa isa) {
  constexpr int64_t kEveryTile = 16, kManyTiles = 8, kFewTiles = 4;
  if (!ConvertsBesideProducts()) return kFewTiles;
  return isa.Has(CpuFeature::kAvx512) ? kEveryTile : kManyTiles;
}

// Returns the walks that differ from the usual one for this product. The usual one comes first,
// unnamed.
std::vector<Walk> WalksOf(const CpuTarget& target, const Product& product, bool narrow) {
  const GemmKernels& gemm = GemmKernelsFor(target.isa);
  std::vector<Walk> walks = {{"", {}}};
  if (!product.weights) return walks;
  if (narrow) walks[0].blocking.narrow_tiles = NarrowTiles(target.isa);
  using Near = GemmBlocking::Near;
  constexpr int64_t kUsualTiles = GemmBlocking().row_tiles;
  constexpr int64_t kFew = 2, kShort = 4, kLong = 64, kWhole = 2048;
  const int64_t tiles = (product.m + gemm.tile_rows - 1) / gemm.tile_rows;
  if (!narrow) {
    const GemmBlocking whole = {.depth = kWhole, .fetch = GemmBlocking::Fetch::kPanel};
    // Where a lone tile prefetches lines into the L1 cache, it ignores
    // GemmBlocking::fetch.
    const bool first_level = tiles == 1 && FirstLevelCacheBytes() >= kRoomyCacheBytes;
    if (first_level || (tiles <= kShort && tiles > kFew)) {
      walks.push_back({"near", {.near = Near::kYes}});
    }
    if ((tiles <= kFew && !first_level) || product.k > gemm.stretch_rows())
      walks.push_back({"whole", whole});
    const int64_t close = gemm.close_rows(product.m);
    if (close > 0 && product.k > close) {
      walks.push_back({"close", {.depth = close}});
    }
    if (tiles > kUsualTiles && product.k <= kWhole) {
      walks.push_back({"long", {.row_tiles = kLong, .depth = kWhole}});
    }
  }
  if (narrow && std::min(tiles, kUsualTiles) <= walks[0].blocking.narrow_tiles) {
    walks.push_back({"buffer", {.narrow_tiles = 0}});
  } else if (narrow) {
    walks.push_back({"registers", {.narrow_tiles = kUsualTiles}});
  }
  if (tiles > kShort) {
    walks.push_back({"short", walks[0].blocking});
    walks.back().blocking.row_tiles = kShort;
  }
  return walks;
}

// Returns the kernels that multiply weights stored as int8 as bytes, for any number of rows; null
// where the tile unit takes them, or nothing does.
const GemmKernels* LinearDigitsFor(const CpuTarget& target, const Product& product, bool int8) {
  // The tile unit takes many rows alone.
  const bool tiles = target.isa.Has(CpuFeature::kAmx) && !target.one_order;
  const bool asked = int8 && product.k <= kDeepestDigits && !tiles;
  return asked ? DigitGemmKernelsFor(target.isa) : nullptr;
}

// Returns the product by the kernels of this folder, the usual walk first; nothing where they do
// not take it.
std::vector<Candidate> OwnCandidates(const CpuTarget& target, const NodeView& node,
                                     const Product& product) {
  if (!node.AllOf(DType::kFloat32) || product.transposed_a) return {};
  const std::optional<Addends> addends = AddendsOf(product);
  if (!addends.has_value()) return {};
  ProductParams params;
  params.kernels = &GemmKernelsFor(target.isa);
  params.product = product;
  params.addends = *addends;
  const std::optional<Int8Weights> int8 =
      product.weights ? SplitInt8(node.parameter(1), product.transposed_b ? 0 : 1) : std::nullopt;
  // It takes many rows alone, and adds in another order than vectors do.
  const GemmKernels* const tiles = target.one_order ? nullptr : TileGemmKernelsFor(target.isa);
  const GemmKernels* const digits = LinearDigitsFor(target, product, int8.has_value());
  // The tile unit reads floats, and the baseline widens one by one.
  const bool widens = product.weights && product.alpha == 1 && tiles == nullptr &&
                      target.isa.Has(CpuFeature::kAvx2) &&
                      (target.one_order || target.gemm_provider != GemmProvider::kOpenBlas);
  const ParameterExprPtr half = widens ? HalfOf(node.parameter(1), /*narrowed=*/true) : nullptr;
  const bool narrow = int8.has_value() || half != nullptr;
  std::vector<Candidate> candidates;
  const auto add = [&]() -> Candidate& {
    Candidate& candidate =
        candidates.emplace_back(int8.has_value()  ? PackedInt8(target, node, params, *int8)
                                : half != nullptr ? PackedHalf(target, node, params, half)
                                : product.weights ? Packed(target, node, params)
                                                  : Unpacked(target, node, params));
    candidate.option.in_place = params.addends.residual;
    candidate.option.takes_live_rows = product.takes_live_rows();
    candidate.option.order = std::string(kOrderOfDepth);
    CountActivation(product, candidate.bound.work);
    candidate.bound.detail = product.Detail();
    return candidate;
  };
  // By kernels that need scratch.
  const auto add_by = [&](const GemmKernels& kernels, absl::string_view name) {
    ProductParams usual = params;
    params.kernels = &kernels;
    params.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
    params.scratch_bytes = kernels.PartScratchBytes(product.m, product.k, int8.has_value());
    const int64_t most_parts =
        (product.m + kernels.tile_rows - 1) / kernels.tile_rows * kernels.Panels(product.n);
    params.scratch_parts = static_cast<int>(std::min<int64_t>(target.scratch_parts, most_parts));
    KernelOption& option = add().option;
    option.kernel = option.order = std::string(name);
    option.workspace_bytes = static_cast<size_t>(params.scratch_parts * params.scratch_bytes);
    params = usual;
  };
  if (digits != nullptr) {
    add_by(*digits, "gemm_int8_vnni");
    return candidates;
  }
  if (tiles != nullptr && SuitsTiles(product, int8.has_value())) {
    add_by(*tiles, int8.has_value() ? "gemm_int8_amx" : "gemm_amx");
    // One other way is enough to ask about: the walks differ by less than the units.
    add();
    return candidates;
  }
  for (const Walk& walk : WalksOf(target, product, narrow)) {
    params.blocking = walk.blocking;
    Candidate& candidate = add();
    if (!walk.name.empty()) absl::StrAppend(&candidate.option.kernel, "/", walk.name);
  }
  return candidates;
}

bool ReadsNarrow(const Candidate& candidate) {
  const std::vector<PrepareStep>& prepare = candidate.option.prepare;
  return !prepare.empty() && (prepare[0].op == kPackInt8Op || prepare[0].op == kPackHalfOp);
}

// Returns candidates by kernels of ours and by OpenBLAS, of weights in any form but blocks.
std::vector<Candidate> WithForeign(const CpuTarget& target, const NodeView& node,
                                   const Product& product) {
  std::vector<Candidate> candidates = OwnCandidates(target, node, product);
  // The library's order of sums depends on the number of rows.
  if (target.one_order) return candidates;
  std::optional<Candidate> foreign = ForeignCandidate(target, node, product);
  if (target.gemm_provider == GemmProvider::kOpenBlas && foreign.has_value()) {
    // The provider was set, so there is nothing to choose.
    candidates.clear();
    candidates.push_back(*std::move(foreign));
    return candidates;
  }
  // Without vectors ours are there to be right.
  const bool foreign_first = !target.isa.Has(CpuFeature::kAvx2);
  // Weights that lie there as int8 or halves would be read as floats.
  const bool offered = foreign_first || candidates.empty() || !ReadsNarrow(candidates.front());
  if (foreign.has_value() && offered) {
    candidates.insert(foreign_first ? candidates.begin() : candidates.end(), *std::move(foreign));
  }
  return candidates;
}

std::vector<Candidate> CandidatesOf(const CpuTarget& target, const NodeView& node,
                                    const std::optional<Product>& product) {
  if (!product.has_value()) return {};
  std::vector<Candidate> candidates;
  if (RoundsToInt8(node)) {
    // By weights in blocks; device/cpu/int8 takes the others.
    candidates = BlockCandidates(target, node, *product, {});
  } else {
    if (target.isa.Has(CpuFeature::kAvx2) &&
        (target.one_order || target.gemm_provider != GemmProvider::kOpenBlas)) {
      candidates = BlockCandidates(
          target, node, *product,
          {.floats = TileGemmKernelsFor(target.isa), .halves = TileBf16KernelsFor(target.isa)});
    }
    // Weights in blocks stay exact where the CPU lacks products of bfloat16: that takes less time.
    // Where no kernel fits, the reference kernel rounds, as was requested.
    if (RoundsToBf16(node) && candidates.empty()) return Bf16Candidates(target, node, *product);
    if (candidates.empty()) candidates = WithForeign(target, node, *product);
  }
  AskWhichIsFastest(target, *product, candidates);
  return candidates;
}

}  // namespace

// Returns whether tiles are worth it. The unit takes 16 rows at a time, however few there are, and
// converts the weights again in each launch.
bool SuitsTiles(const Product& product, bool int8) {
  // Products of floats gain with two row tiles where these are nearly full, or with three; beyond
  // that, any number of rows gains.
  constexpr int64_t kFewestOfTwoTiles = 28, kTwoTiles = 32, kFewestOfMore = 44;
  constexpr int64_t kFewestDepth = 32, kMostDepth = 16384;  // less is mostly padding; the scratch
  const int64_t m = product.m;
  const bool enough = int8 ? m >= kFewestUnitRows
                           : m >= kFewestOfMore || (m >= kFewestOfTwoTiles && m <= kTwoTiles);
  return product.weights && enough && product.k >= kFewestDepth && product.k <= kMostDepth;
}

absl::StatusOr<Tensor> RunPack(const PrepareCall& call) {
  const Tensor& weights = call.weight();
  const GemmKernels& gemm = GemmKernelsFor(call.target.isa);
  const bool transposed = call.attributes.Int("transposed", 0) != 0;
  // A stack of matrices, stored as rows: each `columns` rows are one matrix.
  const int64_t columns = call.attributes.Int("columns", 0);
  // Kernels of `maps` maps, one row each; of transposed convolutions, a column for each tap. With
  // groups, each run of `maps` maps is a matrix.
  const int64_t maps = call.attributes.Int("maps", 0), groups = call.attributes.Int("groups", 1);
  // The taps of each channel, which become the first dim of a map's row; with 1 they stay in place.
  const int64_t taps = call.attributes.Int("taps", 1);
  const bool stack = columns > 0 && transposed && weights.shape().size() == 3;
  if (weights.dtype() != DType::kFloat32 || (weights.shape().size() != 2 && !stack && maps == 0)) {
    return absl::InternalError(absl::StrCat(kPackOp, " of ", DTypeName(weights.dtype()), " ",
                                            ShapeToString(weights.shape())));
  }
  if (call.attributes.Int("panel", 0) != gemm.panel_columns) {
    return absl::InternalError(absl::StrCat(kPackOp, " into panels of ",
                                            call.attributes.Int("panel", 0),
                                            " columns on a device of ", gemm.panel_columns));
  }
  const int64_t k = maps > 0 ? NumElements(weights.shape()) / (groups * maps)
                    : stack  ? weights.shape()[2]
                             : weights.shape()[transposed ? 1 : 0];
  const int64_t n = maps > 0 ? maps : stack ? columns : weights.shape()[transposed ? 0 : 1];
  const int64_t matrices = NumElements(weights.shape()) / std::max<int64_t>(1, k * n);
  const auto* from = static_cast<const float*>(weights.data());
  std::vector<float> by_tap;
  if (taps > 1) {
    by_tap = TapsFirst(from, matrices * n, k, taps);
    from = by_tap.data();
  }
  const int64_t floats = gemm.PackedFloats(k, n);
  const int64_t bytes = matrices * floats * static_cast<int64_t>(sizeof(float));
  std::shared_ptr<std::byte> packed = call.memory.Allocate(static_cast<size_t>(bytes));
  for (int64_t i = 0; i < matrices; ++i) {
    gemm.pack({.data = from + i * k * n,
               .ld = maps == 0    ? weights.shape().back()
                     : transposed ? k
                                  : n,
               .transposed = transposed},
              k, n, call.attributes.Float("scale", 1),
              reinterpret_cast<float*>(packed.get()) + i * floats);
  }
  return Tensor(DType::kUInt8, {bytes}, std::move(packed));
}

absl::StatusOr<Tensor> RunPackHalf(const PrepareCall& call) {
  const Tensor& halves = call.weight();
  const GemmKernels& gemm = GemmKernelsFor(call.target.isa);
  if (!IsHalf(halves.dtype()) || halves.shape().size() != 2 ||
      call.attributes.Int("panel", 0) != gemm.panel_columns) {
    return absl::InternalError(absl::StrCat(kPackHalfOp, " of ", DTypeName(halves.dtype()), " ",
                                            ShapeToString(halves.shape()), " into panels of ",
                                            call.attributes.Int("panel", 0),
                                            " columns on a device of ", gemm.panel_columns));
  }
  const bool transposed = call.attributes.Int("transposed", 0) != 0;
  const int64_t k = halves.shape()[transposed ? 1 : 0];
  const int64_t n = halves.shape()[transposed ? 0 : 1];
  const int64_t bytes = gemm.PackedHalves(k, n) * static_cast<int64_t>(sizeof(uint16_t));
  std::shared_ptr<std::byte> packed = call.memory.Allocate(static_cast<size_t>(bytes));
  gemm.pack_half({.data = static_cast<const uint16_t*>(halves.data()),
                  .ld = halves.shape()[1],
                  .transposed = transposed},
                 k, n, reinterpret_cast<uint16_t*>(packed.get()));
  return Tensor(DType::kUInt8, {bytes}, std::move(packed));
}

absl::StatusOr<Tensor> RunPackInt8(const PrepareCall& call) {
  const Tensor& values = call.weight();
  const Tensor* scales = call.input(1);
  const bool transposed = call.attributes.Int("transposed", 0) != 0;
  const bool words = call.attributes.Int("words", 0) != 0;
  const GemmKernels* const kernels =
      words ? DigitGemmKernelsFor(call.target.isa) : &GemmKernelsFor(call.target.isa);
  if (values.dtype() != DType::kInt8 || values.shape().size() != 2 || kernels == nullptr ||
      call.attributes.Int("panel", 0) != kernels->panel_columns) {
    return absl::InternalError(absl::StrCat(
        kPackInt8Op, " of ", DTypeName(values.dtype()), " ", ShapeToString(values.shape()),
        " into panels of ", call.attributes.Int("panel", 0), " columns on a device of ",
        kernels == nullptr ? 0 : kernels->panel_columns));
  }
  const int64_t k = values.shape()[transposed ? 1 : 0];
  const int64_t n = values.shape()[transposed ? 0 : 1];
  if (scales != nullptr && (scales->dtype() != DType::kFloat32 ||
                            (scales->num_elements() != n && scales->num_elements() != 1))) {
    return absl::InternalError(absl::StrCat(kPackInt8Op, " of ", n, " columns with scales ",
                                            DTypeName(scales->dtype()), " ",
                                            ShapeToString(scales->shape())));
  }
  const int64_t bytes = kernels->PackedInt8Bytes(k, n);
  std::shared_ptr<std::byte> packed = call.memory.Allocate(static_cast<size_t>(bytes));
  kernels->pack_int8(
      {.data = static_cast<const int8_t*>(values.data()),
       .ld = values.shape()[1],
       .transposed = transposed,
       .scales = scales == nullptr ? nullptr : static_cast<const float*>(scales->data()),
       .one_scale = scales != nullptr && scales->num_elements() == 1},
      k, n, call.attributes.Float("scale", 1), packed.get());
  return Tensor(DType::kUInt8, {bytes}, std::move(packed));
}

std::vector<Candidate> PlanLinear(const CpuTarget& target, const NodeView& node) {
  return CandidatesOf(target, node, LinearProduct(node));
}

std::vector<Candidate> PlanMatMul(const CpuTarget& target, const NodeView& node) {
  return CandidatesOf(target, node, MatMulProduct(node));
}

std::vector<Candidate> PlanGemm(const CpuTarget& target, const NodeView& node) {
  return CandidatesOf(target, node, GemmProduct(node));
}

}  // namespace reprise::cpu
