// Model: one loaded version, ready to be asked.
//
// Loading imports the file, finds the axes, measures the padding certificate and fixes the
// first buckets. After that a model is immutable but for its prepared parameters, which appear as
// recipes ask for them, and for the set of buckets in force, which is replaced as a whole: whoever
// plans holds the one that it began with.
//
//   ASSIGN_OR_RETURN(auto model, engine.Load({.id = {"minilm", 1}, .path = path}));
//   ASSIGN_OR_RETURN(RequestShape shape, model->Measure(request));
//   BatchPlan plan(*model);
//   plan.TryAdd(shape);
//   std::vector<Response> responses = engine.Run(*model, plan, {&request}, stream);
//
// Ownership: shared; a model outlives every call that uses it. Threads: all methods from any.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/bucket/policy.h"
#include "runtime/certify/certificate.h"
#include "runtime/engine/model/batch_target.h"
#include "runtime/engine/model/eager_cache.h"
#include "runtime/engine/model/model_owner.h"
#include "runtime/engine/model/model_variants.h"
#include "runtime/engine/model/padding_progress.h"
#include "runtime/engine/model/size_slices.h"
#include "runtime/engine/packing/packing.h"
#include "runtime/engine/traffic/bucket_learner.h"
#include "runtime/engine/traffic/model_usage.h"
#include "runtime/engine/types/input_signature.h"
#include "runtime/engine/types/observer.h"
#include "runtime/engine/types/output_shapes.h"
#include "runtime/engine/types/request.h"
#include "runtime/onnx/importer.h"
#include "runtime/ops/kit/precision.h"
#include "runtime/recipe/key.h"
#include "runtime/recipe/ready_index.h"

namespace reprise {

class Tail;
struct CompiledPlan;
struct CompileOptions;
struct EngineOptions;

// What happens when no recipe of a request's bucket is ready.
enum class CapturePolicy {
  kQuick,       // a larger ready recipe serves; else the request waits for a capture of its bucket
  kInline,      // the request waits for a capture of its bucket, whatever else is ready
  kBackground,  // no request waits: a larger ready recipe serves, else the request runs eagerly
};

// Whether the kernels of captured recipes are timed behind the traffic.
enum class TuneMode {
  kAuto,  // those that were not timed before, unless nothing may be captured
  kOff,
};

// Whether requests lie one after another in a replay, or side by side, padded to one length.
enum class PackingMode {
  kAuto,  // packed where the model can be
  kOff,
};

struct ModelOptions {
  ModelId id;
  std::string path;  // of model.onnx
  // Ranks of inputs whose shape the file leaves open, by name. A model is one for each choice of
  // them: what it is specialised to, certified and bucketed by hangs on them.
  InputRanks ranks;

  // Buckets by axis label ("batch", "sequence", a symbol), which stay.
  std::map<std::string, std::vector<int64_t>> buckets;
  // Of axes whose buckets follow the traffic, beginning with the defaults; one that is named in
  // neither (but the batch, which does not follow it) has `auto`.
  std::map<std::string, BoundaryRule> learnt_buckets;
  BucketMode bucket_mode = BucketMode::kApply;
  // A change of buckets must save the time of its captures within as long.
  int64_t bucket_payback_ns = int64_t{600} * 1'000'000'000;
  int64_t max_batch_tokens = 4096;
  // The largest number of rows in one replay; 0: the largest batch bucket.
  int64_t max_batch_size = 0;
  BucketPolicy::Overflow overflow = BucketPolicy::Overflow::kExact;
  int64_t max_exact = 32;  // exact recipes kept at once
  // Limits on memory in bytes; 0: those of all models together alone.
  int64_t max_recipe_bytes = 0;     // of its recipes in the cache
  int64_t max_arena_bytes = 0;      // of what a stream must hold for one recipe
  int64_t max_parameter_bytes = 0;  // of its parameters, as stored and as kernels want them
  // Axis labels along which nothing is ever padded or batched, whatever the certificate says.
  std::set<std::string> no_padding;
  PackingMode packing = PackingMode::kOff;
  // Of its answers. The certificate and the packing are measured exactly, whatever it is: rounding
  // acts on each element by itself, so that it opens no way from padding to an answer, and what is
  // measured need not tell a way from a rounding that fell to the other side.
  Precision precision = Precision::kExact;
  // What padding is filled with, by input name; 0 where not named.
  std::map<std::string, double> fills;
  CapturePolicy capture = CapturePolicy::kQuick;
  bool frozen = false;  // nothing is ever captured for a request, nor tuned
  TuneMode tune = TuneMode::kAuto;
  // Labels of the buckets that are captured before requests need them, so that a suggestion of more
  // names them as well.
  std::vector<std::string> warmup;
  // Engine::Load measures padding at small sizes only, and Engine::ConfirmPadding, which the caller
  // then owes, at the large ones; until it has, requests of large buckets wait, or run exact.
  bool confirm_padding_later = false;
};

// A decision by the size of an axis, and the sizes for which it is one and the same.
struct SizeDecision {
  // "node 'if' (If) takes a branch that node 'gt' (Greater) decides by the size of sequence".
  // Empty: nothing.
  std::string words;
  int64_t alike_up_to = 0;  // all sizes up to this one decide alike; 0: no two need to
};

// One axis of a model.
struct ModelAxis {
  std::string label;   // "batch", "sequence", else the symbol
  std::string symbol;  // in the graph
  bool is_batch = false;
  bool counts_rows = false;     // like a batch, but of some inputs only: the pictures beside texts
  AxisCertificate certificate;  // certified: may be padded (and batched, for the batch axis)
  int64_t smallest = 1;  // that the model takes: smaller requests run exact, and are refused there
  SizeDecision decision;
};

struct PendingProof;

class Model : public std::enable_shared_from_this<Model> {
 public:
  const ModelId& id() const { return options_.id; }
  const ModelOptions& options() const { return options_; }
  const GraphFingerprint& fingerprint() const { return fingerprint_; }
  // What the recipe store knew of its use when it was loaded.
  const ModelUsage& usage() const { return usage_; }
  // As a client sees them: symbols merged, -1 for an axis in metadata is the caller's business.
  const std::vector<ModelIo>& inputs() const { return inputs_; }
  const std::vector<ModelIo>& outputs() const;
  // The texts of its file; never null.
  const std::shared_ptr<const Vocabulary>& vocabulary() const { return vocabulary_; }
  // What a replay results in: outputs(), or of a model that is cut what comes before its cuts.
  const std::vector<ModelIo>& recipe_outputs() const { return recipe_outputs_; }
  // What runs behind replays, request by request; null where the model is not cut at data.
  const Tail* tail() const { return tail_.get(); }
  const std::vector<ModelAxis>& axes() const { return axes_; }
  // The value of an input decides a shape: every request runs at its exact sizes.
  bool has_shape_inputs() const { return !shape_inputs_.empty(); }
  // How far the certificates are proved: see Engine::ConfirmPadding.
  const PaddingProgress& padding() const { return padding_; }
  // The sizes of other axes for which the certificates hold. Null where no size decides anything
  // that matters to padding.
  SizeSlices* slices() const { return slices_.get(); }
  // What is known of axis `axis` of axes() by now.
  AxisCertificate CertificateOf(size_t axis) const;
  // Position of the batch axis in axes(), or -1.
  int batch_axis() const { return batch_axis_; }
  // An input of one row beside others of more becomes as many rows, where the model's own
  // broadcasting says so: a table of positions, a user beside the items to be ranked. Only where
  // rows do not see each other. What is left as it is, is refused by Measure.
  void SpreadRows(Request& request) const;
  // The elements that requests are, over axes().
  const SizeMeasure& measure() const { return measure_; }
  // Those at `sizes`, by axis, with so many rows.
  int64_t Elements(absl::Span<const int64_t> sizes, int64_t rows) const;
  // The most rows that a request of the other sizes of `shape` may have in one replay; one with
  // more is split by rows (SplitRows). INT64_MAX where nothing is split: the batch axis is absent
  // or not certified, or an output relates the rows of a request to each other (`[batch, batch]`),
  // or they see each other (packs_whole_requests).
  int64_t MaxRows(const RequestShape& shape) const;
  // Some replay takes a request of `shape`, which has at most MaxRows(). INVALID_ARGUMENT with the
  // sizes and the bound where none does: a BatchPlan would not begin with it.
  absl::Status Admits(const RequestShape& shape) const;
  // UNAVAILABLE once a file that its parameters lie in was changed or cut. Looks at the files.
  absl::Status LookAtFiles() const;
  // Requests may share a replay: there is a batch axis and its certificate holds, or they are
  // packed.
  bool batches_requests() const;
  // The largest number of rows of one replay; a larger request is split by rows where the batch
  // axis is certified. 0 where the batch axis is not certified or absent.
  int64_t max_batch() const;
  // The buckets in force, of the certified axes by label. Never changed, only replaced: hold the
  // pointer while you read.
  std::shared_ptr<const BucketPolicy> buckets() const { return learner_->InForce(); }
  // What finds better ones.
  BucketLearner& learner() const { return *learner_; }
  // The certified axes, by label.
  const std::set<std::string>& certified() const { return certified_; }
  // Null where the model is padded; packing_refusal() says why.
  const Packing* packing() const { return packing_.get(); }
  const std::string& packing_refusal() const { return packing_refusal_; }
  // Why a model that may not be padded is packed; empty for others.
  const std::string& packing_reason() const { return packing_reason_; }
  // Rows of a request may see each other, requests may not: no request is split.
  bool packs_whole_requests() const { return !packing_reason_.empty(); }
  // The request lies beside others in a packed replay.
  bool Packs(const RequestShape& shape) const;
  // So does one whose masks forbid padding: nothing is padded there.
  bool packs_any_mask() const;
  // All buckets in force: sizes by axis label, of a packed model the number of tokens. nullopt
  // where there are more than `most`: each axis multiplies their number.
  std::optional<std::vector<AxisSizes>> AllBuckets(size_t most = BucketPolicy::kMostListed) const;
  // The label of a bucket, the bucket of a label (nullopt: none in force), and the labels of all:
  // empty where they are too many to be listed.
  std::string LabelOfBucket(const AxisSizes& bucket) const;
  std::optional<AxisSizes> FindBucket(absl::string_view label) const;
  std::vector<std::string> BucketLabels() const;
  // Its buckets are too many to be captured one by one: most are needed once.
  bool has_many_buckets() const;
  // Dim `dim` of output `position` is cut at a request's rows.
  bool MovesWithBatch(size_t position, size_t dim) const;
  // The dim of output `position` that grows by one a row, or -1.
  int BatchDimOf(size_t position) const;
  const std::shared_ptr<ModelOwner>& owner() const { return owner_; }
  // What eager runs of it have prepared.
  const std::shared_ptr<EagerCache::Share>& eager_share() const { return eager_share_; }
  // The recipes that are ready: of the buckets.
  const ReadyIndex& ready() const { return packing_ != nullptr ? packing_->ready() : *ready_; }
  // What users call the axis of `symbol`; the symbol itself where no axis has it.
  const std::string& LabelOf(const std::string& symbol) const;
  // The key of the recipe of `target` for requests like `shape`. `variant`: of a request
  // that overrides initialisers, else null.
  RecipeKey KeyAt(const BatchTarget& target, const RequestShape& shape,
                  const ModelVariant* variant) const;
  // Compiles the model for `key`, which KeyAt made; the recipe is in no cache and not primed.
  // `plan`: filled where it is not null.
  absl::StatusOr<std::unique_ptr<Recipe>> CompileAt(const RecipeKey& key,
                                                    const ModelVariant* variant,
                                                    const EngineOptions& options,
                                                    CompiledPlan* plan = nullptr) const;
  // The same from a plan that was made for `key` before. DATA_LOSS where it cannot have been.
  absl::StatusOr<std::unique_ptr<Recipe>> RebindAt(const CompiledPlan& plan, const RecipeKey& key,
                                                   const EngineOptions& options) const;
  // RESOURCE_EXHAUSTED where a stream would have to hold more for the recipe than the model may.
  absl::Status CheckArena(const Recipe& recipe) const;
  // Tells the observer what the buckets are worth.
  void ReportBuckets() const;
  // A note for the operator, with the model's name.
  void Note(const std::string& text) const;
  // Bytes of the model's own parameters, as stored in its file.
  int64_t parameter_bytes() const;

  // Checks a request against the signature and sizes it. INVALID_ARGUMENT naming the input and both
  // values when shapes disagree. Reads the bytes of shape inputs, and of guards whose rows must not
  // be all zero.
  absl::StatusOr<RequestShape> Measure(const Request& request) const;
  // `shape` as Measure would return it by now, if that is something else: padding may have been
  // proved, or refuted, since.
  std::optional<RequestShape> MeasureAgain(const RequestShape& shape) const;

 private:
  friend class Certifier;
  friend class Engine;
  friend class MissPolicy;
  friend class ModelLoader;
  friend class ModelPacker;
  friend class PaddingProof;
  friend class PolicyMaker;
  friend class SliceProof;
  friend class BatchPlan;
  friend class BatchRun;
  Model() = default;
  Model(const Model&) = delete;  // signature_ reads inputs_
  Model& operator=(const Model&) = delete;

  CompileOptions CompileOptionsFor(const RecipeKey& key, const EngineOptions& options) const;
  // The most rows that a request of `length` tokens each may have in a packed replay.
  int64_t MaxPackedRows(int64_t length) const;

  // Marks a request that may not be padded, or not yet, whatever it holds.
  void HoldBack(RequestShape& shape) const;
  // Padding is not proved (yet) at the bucket of `sizes`.
  bool BeyondProof(const std::vector<int64_t>& sizes) const;
  // Its masks count where the certificates ask for that.
  bool MasksAllowPadding(const Request& request) const;
  // Steps of Measure, which fill in `result`. The shapes of the inputs, null for those left out.
  absl::StatusOr<std::vector<const Shape*>> TakeInputs(const Request& request,
                                                       RequestShape& result) const;
  absl::Status TakeSize(const ModelAxis& axis, int64_t size, RequestShape& result) const;
  absl::Status TakeShapeInput(const ModelIo& input, const InputTensor& tensor,
                              RequestShape& result) const;
  // Symbols of the axes along which any size may be padded by now.
  std::set<std::string> Paddable() const;
  // The name of the first input that has the axis.
  const std::string& InputWithAxis(const std::string& symbol) const;
  // The buckets that a request of `shape` gets: `current`, or where it has more rows than these
  // take, those that its rows were counted with when it was measured.
  std::shared_ptr<const BucketPolicy> BucketsFor(const RequestShape& shape,
                                                 std::shared_ptr<const BucketPolicy> current) const;
  AxisSizes SizesByLabel(const std::vector<int64_t>& sizes) const;
  // The most rows of a batch bucket beside the other sizes of `sizes`, by axis.
  int64_t LargestBatchAt(const BucketPolicy& buckets, const std::vector<int64_t>& sizes) const;

  // Constant after loading.
  ModelOptions options_;
  Graph graph_;
  GraphFingerprint fingerprint_;
  std::vector<ModelIo> inputs_;
  InputSignature signature_;  // of inputs_
  std::vector<ModelIo> recipe_outputs_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<ModelAxis> axes_;
  SizeMeasure measure_;
  std::set<size_t> one_row_inputs_;  // positions of those that SpreadRows repeats
  std::set<size_t> mask_inputs_;     // positions of those of integers: see IsMaskInput
  int batch_axis_ = -1;
  std::vector<int> shape_inputs_;           // positions in inputs_
  std::vector<int> recipe_inputs_;          // model input position of each input of a recipe
  std::shared_ptr<const Tail> tail_;        // null: the graph is all of the model
  std::vector<OutputShape> output_shapes_;  // empty where no axis was fitted
  std::set<std::string> certified_;         // labels of the certified axes
  std::set<std::string> paddable_;          // symbols of the certified axes
  std::string batch_symbol_;                // empty without a batch axis
  std::string device_fingerprint_;
  ModelUsage usage_;
  std::string packing_refusal_;  // empty: packed, or nobody asked
  std::string packing_reason_;   // empty: not packed, or as its axes may be padded
  // Packed answers were the same under masks that no padded request may have. Asked for where the
  // ops do not prove padding harmless.
  bool any_mask_measured_ = false;
  std::function<void(const std::string&)> log_ = [](const std::string&) {};
  std::shared_ptr<const PendingProof> pending_proof_;  // what ConfirmPadding goes on with, or null
  // Self-synchronised.
  mutable PaddingProgress padding_;  // a model that serves is constant but for its proof
  std::shared_ptr<const ReadyIndex> ready_;
  std::shared_ptr<ModelOwner> owner_;
  std::shared_ptr<EagerCache::Share> eager_share_;
  std::unique_ptr<BucketLearner> learner_;
  std::unique_ptr<Packing> packing_;
  std::unique_ptr<SizeSlices> slices_;       // null where no size decides anything
  std::unique_ptr<ModelVariants> variants_;  // null where no initialiser can be overridden
};

}  // namespace reprise
