#include "runtime/device/cpu/cpu_device.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/cpu/foreign_blas.h"
#include "runtime/device/cpu/half.h"
#include "runtime/device/cpu/plan.h"
#include "runtime/device/cpu/plan_bytes.h"
#include "runtime/device/cpu/weight_memory.h"
#include "runtime/ops/narrowed_weights.h"
#include "runtime/ops/onnx_types.h"

namespace reprise {
namespace {

// Raised when a kernel, a packed layout or a rule of choice changes: old recipes are then not taken
// for new ones.
constexpr int kKernelVersion = 24;

struct OpPlan {
  absl::string_view op;
  cpu::PlanFunction plan;
};

// Every op that has fast kernels; the rows of one op are asked in order. An op that is missing here
// runs by its reference kernel.
constexpr OpPlan kPlans[] = {
    {"reprise.Linear", cpu::PlanLinear},
    {"reprise.IntegerLinear", cpu::PlanIntegerLinear},
    {"MatMul", cpu::PlanMatMul},
    {"com.microsoft.FusedMatMul", cpu::PlanMatMul},
    {"MatMulInteger", cpu::PlanMatMulInteger},
    {"Gemm", cpu::PlanGemm},
    {"reprise.Attention", cpu::PlanAttention},
    {"reprise.RelativeAttention", cpu::PlanRelativeAttention},
    {"reprise.SegmentAttention", cpu::PlanSegmentAttention},
    {"reprise.SegmentReduce", cpu::PlanSegmentReduce},
    {"reprise.SegmentSpread", cpu::PlanSegmentSpread},
    {"reprise.SegmentPlace", cpu::PlanSegmentPlace},
    {"reprise.SegmentPick", cpu::PlanSegmentPick},
    {"reprise.SegmentCumSum", cpu::PlanSegmentCumSum},
    {"reprise.SegmentDynamicQuantizeLinear", cpu::PlanSegmentQuantize},
    {"Conv", cpu::PlanConv},
    {"reprise.Conv", cpu::PlanConv},
    {"reprise.IntegerConv", cpu::PlanIntegerConv},
    {"reprise.IntegerConv", cpu::PlanByteDepthwise},
    {"reprise.IntegerConv", cpu::PlanIntegerConvRows},
    {"reprise.IntegerAdd", cpu::PlanIntegerAdd},
    {"reprise.ByteTable", cpu::PlanByteTable},
    {"ConvTranspose", cpu::PlanConvTranspose},
    {"reprise.ConvTranspose", cpu::PlanConvTranspose},
    {"MaxPool", cpu::PlanPool},
    {"MaxPool", cpu::PlanBytePool},
    {"AveragePool", cpu::PlanPool},
    {"GlobalAveragePool", cpu::PlanGlobalAverage},
    {"Resize", cpu::PlanResize},
    {"reprise.TreeEnsemble", cpu::PlanForest},
    {"reprise.ClassScores", cpu::PlanClassScores},
    {"reprise.SvmScores", cpu::PlanSvmScores},
    {"reprise.CategoryIndex", cpu::PlanCategoryIndex},
    {"reprise.Distances", cpu::PlanDistances},
    {"InstanceNormalization", cpu::PlanChannelNorm},
    {"GroupNormalization", cpu::PlanChannelNorm},
    {"LSTM", cpu::PlanLstm},
    {"GRU", cpu::PlanGru},
    {"RNN", cpu::PlanRnn},
    {"LayerNormalization", cpu::PlanLayerNorm},
    {"RMSNormalization", cpu::PlanRmsNorm},
    {"reprise.AddLayerNorm", cpu::PlanAddLayerNorm},
    {"reprise.Rotary", cpu::PlanRotary},
    {"Softmax", cpu::PlanSoftmax},
    {"LogSoftmax", cpu::PlanSoftmax},
    {"ArgMax", cpu::PlanPlaces},
    {"ArgMin", cpu::PlanPlaces},
    {"TopK", cpu::PlanTopK},
    {"ReduceMean", cpu::PlanReduce},
    {"ReduceSum", cpu::PlanReduce},
    {"ReduceMax", cpu::PlanReduce},
    {"ReduceMin", cpu::PlanReduce},
    {"ReduceProd", cpu::PlanReduce},
    {"ReduceSumSquare", cpu::PlanReduce},
    {"ReduceL1", cpu::PlanReduce},
    {"ReduceL2", cpu::PlanReduce},
    {"ReduceLogSum", cpu::PlanReduce},
    {"GlobalMaxPool", cpu::PlanReduce},
    {"Gather", cpu::PlanGather},
    {"reprise.CheckRange", cpu::PlanCheckRange},
    {"reprise.EmbeddingSum", cpu::PlanEmbeddingSum},
    {"Neg", cpu::PlanUnary},
    {"Abs", cpu::PlanUnary},
    {"Sqrt", cpu::PlanUnary},
    {"Reciprocal", cpu::PlanUnary},
    {"Floor", cpu::PlanUnary},
    {"Ceil", cpu::PlanUnary},
    {"Round", cpu::PlanUnary},
    {"Exp", cpu::PlanUnary},
    {"Tanh", cpu::PlanUnary},
    {"Sigmoid", cpu::PlanUnary},
    {"Erf", cpu::PlanUnary},
    {"Relu", cpu::PlanUnary},
    {"Sign", cpu::PlanUnary},
    {"Log", cpu::PlanUnary},
    {"Sin", cpu::PlanUnary},
    {"Cos", cpu::PlanUnary},
    {"Tan", cpu::PlanUnary},
    {"Asin", cpu::PlanUnary},
    {"Acos", cpu::PlanUnary},
    {"Atan", cpu::PlanUnary},
    {"Softplus", cpu::PlanUnary},
    {"Softsign", cpu::PlanUnary},
    {"Mish", cpu::PlanUnary},
    {"HardSwish", cpu::PlanUnary},
    {"LeakyRelu", cpu::PlanShaped},
    {"Elu", cpu::PlanShaped},
    {"Selu", cpu::PlanShaped},
    {"Celu", cpu::PlanShaped},
    {"HardSigmoid", cpu::PlanShaped},
    {"ThresholdedRelu", cpu::PlanShaped},
    {"Shrink", cpu::PlanShaped},
    {"com.microsoft.QuickGelu", cpu::PlanShaped},
    {"Gelu", cpu::PlanGelu},
    {"Add", cpu::PlanBinary},
    {"Sub", cpu::PlanBinary},
    {"Mul", cpu::PlanBinary},
    {"Div", cpu::PlanBinary},
    {"Max", cpu::PlanBinary},
    {"Min", cpu::PlanBinary},
    {"PRelu", cpu::PlanBinary},
    {"com.microsoft.BiasGelu", cpu::PlanBinary},
    {"com.microsoft.FastGelu", cpu::PlanBinary},
    {"Pow", cpu::PlanPow},
    {"QuantizeLinear", cpu::PlanQuantize},
    {"DequantizeLinear", cpu::PlanDequantize},
    {"reprise.FakeQuantize", cpu::PlanFakeQuantize},
    {"DynamicQuantizeLinear", cpu::PlanDynamicQuantize},
    {"Clip", cpu::PlanShaped},
    {"Add", cpu::PlanTypedMath},
    {"Sub", cpu::PlanTypedMath},
    {"Mul", cpu::PlanTypedMath},
    {"Div", cpu::PlanTypedMath},
    {"Mod", cpu::PlanTypedMath},
    {"Max", cpu::PlanTypedMath},
    {"Min", cpu::PlanTypedMath},
    {"BitwiseAnd", cpu::PlanTypedMath},
    {"BitwiseOr", cpu::PlanTypedMath},
    {"BitwiseXor", cpu::PlanTypedMath},
    {"Equal", cpu::PlanCompare},
    {"Less", cpu::PlanCompare},
    {"LessOrEqual", cpu::PlanCompare},
    {"Greater", cpu::PlanCompare},
    {"GreaterOrEqual", cpu::PlanCompare},
    {"And", cpu::PlanLogic},
    {"Or", cpu::PlanLogic},
    {"Xor", cpu::PlanLogic},
    {"Not", cpu::PlanLogic},
    {"IsNaN", cpu::PlanSpecial},
    {"IsInf", cpu::PlanSpecial},
    {"Cast", cpu::PlanCast},
    {"Identity", cpu::PlanCast},
    {"Where", cpu::PlanWhere},
    {"Transpose", cpu::PlanTranspose},
    {"Slice", cpu::PlanSlice},
    {"Expand", cpu::PlanExpand},
    {"Tile", cpu::PlanTile},
    {"Concat", cpu::PlanConcat},
    {"reprise.AppendRows", cpu::PlanAppendRows},
    {"Split", cpu::PlanSplit},
    {"DepthToSpace", cpu::PlanBlocks},
    {"SpaceToDepth", cpu::PlanBlocks},
    {"Pad", cpu::PlanPad},
    {"Trilu", cpu::PlanTrilu},
    {"GatherElements", cpu::PlanGatherElements},
    {"GatherND", cpu::PlanGatherNd},
    {"GridSample", cpu::PlanGridSample},
    {"ScatterElements", cpu::PlanScatterElements},
    {"ScatterND", cpu::PlanScatterNd},
};

// One step of a prepare program.
struct PrepareStep {
  const cpu::CpuTarget& target;
  const Attributes& attributes;
  absl::Span<const std::optional<Tensor>> inputs;
  cpu::WeightMemory& memory;

  const Tensor& weight() const { return *inputs[0]; }
  // Null where there is none.
  const Tensor* input(size_t i) const { return i < inputs.size() ? &*inputs[i] : nullptr; }
};

struct OpPrepare {
  absl::string_view op;
  absl::StatusOr<Tensor> (*run)(const PrepareStep& step);
};

// Every op of prepare programs that is this device's own. (No constexpr: a sanitizer does not take
// the addresses of names for known.)
const OpPrepare kPrepares[] = {
    {cpu::kPackOp,
     [](const PrepareStep& step) {
       return cpu::RunPack(step.target, step.attributes, step.weight(), step.memory);
     }},
    {cpu::kPackInt8Op,
     [](const PrepareStep& step) {
       return cpu::RunPackInt8(step.target, step.attributes, step.weight(), step.input(1),
                               step.memory);
     }},
    {cpu::kPackHalfOp,
     [](const PrepareStep& step) {
       return cpu::RunPackHalf(step.target, step.attributes, step.weight(), step.memory);
     }},
    {cpu::kPackBlocksOp,
     [](const PrepareStep& step) {
       return cpu::RunPackBlocks(step.target, step.attributes, step.weight(), *step.inputs[1],
                                 step.input(2), step.memory);
     }},
    {cpu::kPackBf16Op,
     [](const PrepareStep& step) {
       return cpu::RunPackBf16(step.target, step.attributes, step.weight(), step.input(1),
                               step.memory);
     }},
    {cpu::kPackU8S8Op,
     [](const PrepareStep& step) {
       return cpu::RunPackU8S8(step.target, step.attributes, step.weight(), step.memory);
     }},
    {cpu::kPackConvU8S8Op,
     [](const PrepareStep& step) {
       return cpu::RunPackConvU8S8(step.target, step.attributes, step.weight(), step.memory);
     }},
    {cpu::kPackTapsOp,
     [](const PrepareStep& step) {
       return cpu::RunPackTaps(step.attributes, step.weight(), step.memory);
     }},
    {cpu::kPackInt8RowsOp,
     [](const PrepareStep& step) {
       return cpu::RunPackInt8Rows(step.weight(), step.input(1), step.input(2), step.memory);
     }},
    {cpu::kPackMapsOp,
     [](const PrepareStep& step) {
       return cpu::RunPackMaps(step.target, step.attributes, step.weight(), step.memory);
     }},
    {cpu::kPackWinogradOp,
     [](const PrepareStep& step) {
       return cpu::RunPackWinograd(step.target, step.attributes, step.weight(), step.memory);
     }},
    {cpu::kSplitPhasesOp,
     [](const PrepareStep& step) {
       return cpu::RunSplitPhases(step.attributes, step.weight(), step.memory);
     }},
    {cpu::kPackPhasesOp,
     [](const PrepareStep& step) {
       return cpu::RunPackPhases(step.target, step.attributes, step.weight(), step.memory);
     }},
};

// A Cast to float32 of what is stored in half.
bool Widens(absl::string_view op, const Attributes& attributes, const Tensor& weight) {
  return op == "Cast" && attributes.Int("to", 0) == ops::OnnxNumber(DType::kFloat32) &&
         cpu::IsHalf(weight.dtype());
}

std::vector<cpu::Candidate> CandidatesOf(const cpu::CpuTarget& target, const Graph& graph,
                                         NodeId id) {
  const cpu::NodeView node(graph, id);
  for (const OpPlan& row : kPlans) {
    if (row.op != node.op()) continue;
    std::vector<cpu::Candidate> candidates = row.plan(target, node);
    if (!candidates.empty()) return candidates;
  }
  return {};
}

std::shared_ptr<const cpu::ForeignBlas> LoadBlas(const CpuDeviceOptions& options,
                                                 absl::Status& status) {
  if (options.gemm_provider == GemmProvider::kOwn) return nullptr;
  absl::StatusOr<std::shared_ptr<const cpu::ForeignBlas>> blas =
      cpu::ForeignBlas::Load(options.max_isa);
  status = blas.status();
  return blas.ok() ? *std::move(blas) : nullptr;
}

std::string Fingerprint(const cpu::CpuTarget& target) {
  return absl::StrCat(
      "cpu ", CpuModelName(), ", ", IsaName(target.isa), ", kernels ", kKernelVersion,
      ", products ", kGemmProviderNames[static_cast<size_t>(target.gemm_provider)],
      target.blas == nullptr
          ? ""
          : absl::StrCat(", openblas ", target.blas->version(), " ", target.blas->core()));
}

}  // namespace

CpuDevice::CpuDevice(const CpuDeviceOptions& options)
    : target_(std::make_unique<cpu::CpuTarget>(UsableIsa(options.max_isa), options.gemm_provider,
                                               LoadBlas(options, openblas_status_),
                                               options.max_threads)),
      fingerprint_(Fingerprint(*target_)),
      weights_(std::make_unique<cpu::WeightMemory>()) {}

CpuDevice::~CpuDevice() = default;

std::vector<KernelOption> CpuDevice::Options(const Graph& graph, NodeId node) const {
  std::vector<KernelOption> options;
  for (cpu::Candidate& candidate : CandidatesOf(*target_, graph, node)) {
    options.push_back(std::move(candidate.option));
  }
  return options;
}

absl::StatusOr<BoundKernel> CpuDevice::Bind(const Graph& graph, NodeId node,
                                            const KernelOption& option) const {
  for (cpu::Candidate& candidate : CandidatesOf(*target_, graph, node)) {
    if (candidate.option.kernel == option.kernel) return std::move(candidate.bound);
  }
  return absl::InternalError(
      absl::StrCat(NodeLabel(graph.node(node)), ": kernel '", option.kernel, "' is no option"));
}

absl::StatusOr<Tensor> CpuDevice::Prepare(const std::string& op, const Attributes& attributes,
                                          absl::Span<const std::optional<Tensor>> inputs) const {
  const bool has_weight = !inputs.empty() && inputs[0].has_value();
  for (const OpPrepare& row : kPrepares) {
    if (row.op != op) continue;
    if (!has_weight) return absl::InternalError(absl::StrCat(op, " takes a weight"));
    return row.run({*target_, attributes, inputs, *weights_});
  }
  if (has_weight && inputs.size() == 1 && Widens(op, attributes, *inputs[0])) {
    return cpu::RunWiden(*target_, *inputs[0]);
  }
  if (has_weight && ops::IsNarrowing(op, attributes)) {
    ASSIGN_OR_RETURN(const DType half, ops::DTypeFromOnnx(attributes.Int("to", 0)));
    return cpu::RunNarrow(*target_, *inputs[0], half);
  }
  return PrepareWithReference(op, attributes, inputs);
}

}  // namespace reprise
