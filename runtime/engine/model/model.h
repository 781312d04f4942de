// Model: one loaded version, ready for requests.
//
// Loading imports the file, finds the axes, measures the padding certificate and fixes the first
// buckets; it makes four values of them (signature, program, proof, traffic), and a model of these.
// A model is immutable but for its prepared parameters, which appear as recipes ask for them, and
// for the set of buckets in force, which is replaced as a whole: each plan holds the one that it
// began with.
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
#include "runtime/base/stop_flag.h"
#include "runtime/bucket/policy.h"
#include "runtime/certify/certificate.h"
#include "runtime/engine/model/batch_target.h"
#include "runtime/engine/model/model_traffic.h"
#include "runtime/engine/model/model_view.h"
#include "runtime/engine/model/padding_quarantine.h"
#include "runtime/engine/types/input_signature.h"
#include "runtime/engine/types/request.h"
#include "runtime/recipe/key.h"
#include "runtime/recipe/ready_index.h"

namespace reprise {

struct CompiledPlan;
struct CompileOptions;
struct EngineOptions;
struct GraphChange;

class Model : public std::enable_shared_from_this<Model> {
 public:
  // A model is complete from its beginning: all findings of the load are there. `log` gets notes
  // for the operator.
  Model(ModelOptions options, std::shared_ptr<const ModelSignature> signature,
        std::shared_ptr<const ModelProgram> program, std::shared_ptr<const ModelProof> proof,
        ModelTraffic traffic, std::function<void(const std::string&)> log);
  Model(const Model&) = delete;  // input_sizes_ reads signature_
  Model& operator=(const Model&) = delete;

  const ModelSignature& signature() const { return *signature_; }
  const ModelProgram& program() const { return *program_; }
  const ModelProof& proof() const { return *proof_; }
  ModelView view() const { return {options_, *signature_, *program_, *proof_}; }

  const ModelId& id() const { return options_.id; }
  const ModelOptions& options() const { return options_; }
  // Returns whether nothing may be captured for its requests on an engine of `engine`.
  bool IsFrozen(const EngineOptions& engine) const;
  const GraphFingerprint& fingerprint() const { return program_->fingerprint; }
  // Marks it as unloaded: results that are still made for it are not wanted. From any thread.
  void Abandon() const { abandoned_.Stop(); }
  bool abandoned() const { return abandoned_.stopped(); }
  // Returns its use, as the recipe store knew it when it was loaded.
  const ModelUsage& usage() const { return traffic_.usage; }
  // Returns inputs as a client sees them: symbols merged, -1 for an axis in metadata is the
  // caller's business.
  const std::vector<ModelIo>& inputs() const { return signature_->inputs; }
  const std::vector<ModelIo>& outputs() const;
  // Returns the texts of its file; never null.
  const std::shared_ptr<const Vocabulary>& vocabulary() const { return signature_->vocabulary; }
  // Returns the results of a replay: outputs(), or of a model that is cut the values before its
  // cuts.
  const std::vector<ModelIo>& recipe_outputs() const { return signature_->recipe_outputs; }
  // Returns the part that runs after replays, request by request; null where the model is not cut
  // at data.
  const Tail* tail() const { return program_->tail.get(); }
  const std::vector<ModelAxis>& axes() const { return proof_->axes; }
  // Returns whether the value of an input decides a shape: every request runs at its exact sizes.
  bool has_shape_inputs() const { return !signature_->shape_inputs.empty(); }
  // Returns the axes whose certificates an audit took away.
  PaddingQuarantine& quarantine() const { return quarantine_; }
  // Returns the sizes of other axes for which the certificates hold. Null where no size decides
  // anything that matters to padding.
  SizeSlices* slices() const { return proof_->slices.get(); }
  // Returns the certificate of axis `axis` of axes() as it is known by now.
  AxisCertificate CertificateOf(size_t axis) const;
  // Returns the index of the batch axis in axes(), or -1.
  int batch_axis() const { return signature_->batch_axis; }
  // Repeats an input of one row next to others of more rows, where the model's own broadcasting
  // says so: a table of positions, a user with the items to be ranked. Only where rows do not see
  // each other. Inputs that cannot be repeated are left for Measure to refuse.
  void SpreadRows(Request& request) const;
  // Returns the elements that requests are, over axes().
  const SizeMeasure& measure() const { return signature_->measure; }
  // Returns the elements at `sizes`, by axis, with `rows` rows.
  int64_t Elements(absl::Span<const int64_t> sizes, int64_t rows) const;
  // Returns the most rows that a request of the other sizes of `shape` may have in one replay; one
  // with more is split by rows (SplitRows). INT64_MAX where nothing is split: the batch axis is
  // absent or not certified, or an output relates the rows of a request to each other (`[batch,
  // batch]`), or they see each other (packs_whole_requests).
  int64_t MaxRows(const RequestShape& shape) const;
  // Returns OK if some replay takes a request of `shape`, which has at most MaxRows().
  // INVALID_ARGUMENT with the sizes and the bound where none does: a BatchPlan would not begin with
  // it.
  absl::Status Admits(const RequestShape& shape) const;
  // Returns UNAVAILABLE once a file that its parameters lie in was changed or cut. Looks at the
  // files.
  absl::Status LookAtFiles() const;
  // Returns whether requests may share a replay: there is a batch axis and its certificate holds,
  // or they are packed.
  bool batches_requests() const;
  // Returns the largest number of rows of one replay; a larger request is split by rows where the
  // batch axis is certified. 0 where the batch axis is not certified or absent.
  int64_t max_batch() const;
  // Returns the buckets in force, of the certified axes by label. Never changed, only replaced:
  // hold the pointer while you read.
  std::shared_ptr<const BucketPolicy> buckets() const { return traffic_.learner->InForce(); }
  // Returns the learner that finds better ones.
  BucketLearner& learner() const { return *traffic_.learner; }
  // Returns the certified axes, by label.
  const std::set<std::string>& certified() const { return proof_->certified; }
  // Returns null where the model is padded; packing_refusal() says why.
  const Packing* packing() const { return proof_->packing.get(); }
  const std::string& packing_refusal() const { return proof_->packing_refusal; }
  // Returns why a model that may not be padded is packed; empty for others.
  const std::string& packing_reason() const { return proof_->packing_reason; }
  // Returns whether rows of a request may see each other, but requests may not: then no request is
  // split.
  bool packs_whole_requests() const { return !proof_->packing_reason.empty(); }
  // Returns whether the request lies next to others in a packed replay.
  bool Packs(const RequestShape& shape) const;
  // Returns whether a request that is not packed runs exact: an axis is certified for packing
  // alone.
  bool packs_only() const;
  // Returns all buckets in force: sizes by axis label, of a packed model the number of tokens.
  // nullopt where there are more than `most`: each axis multiplies their number.
  std::optional<std::vector<AxisSizes>> AllBuckets(size_t most = BucketPolicy::kMostListed) const;
  // Return the label of a bucket, the bucket of a label (nullopt: none in force), and the labels of
  // all: empty where they are too many to be listed.
  std::string LabelOfBucket(const AxisSizes& bucket) const;
  std::optional<AxisSizes> FindBucket(absl::string_view label) const;
  std::vector<std::string> BucketLabels() const;
  // Returns whether its buckets are too many to be captured one by one: most are needed once.
  bool has_many_buckets() const;
  // Returns whether no node comes before its first cut.
  bool has_empty_front() const;
  // Returns whether dim `dim` of output `position` is cut at a request's rows.
  bool MovesWithBatch(size_t position, size_t dim) const;
  // Returns the dim of output `position` that grows by one a row, or -1.
  int BatchDimOf(size_t position) const;
  const std::shared_ptr<ModelOwner>& owner() const { return program_->owner; }
  // Returns the recipes that eager runs of it have prepared.
  const std::shared_ptr<EagerCache::Share>& eager_share() const { return traffic_.eager_share; }
  // Returns the ready recipes of the model's own graph, or of packed requests.
  const ReadyIndex& ready(bool packed) const {
    return packed ? *traffic_.packed_ready : *traffic_.ready;
  }
  // Returns the ready recipes of the buckets.
  const ReadyIndex& ready() const { return ready(packing() != nullptr); }
  // Returns the name that users give the axis of `symbol`; the symbol itself where no axis has it.
  const std::string& LabelOf(const std::string& symbol) const;
  // Returns the sizes of a binding, under the users' names of the axes: "batch=8,sequence=128".
  std::string BindingText(const Binding& binding) const;
  // Returns the key of the recipe of `target` for requests like `shape`. `variant`: of a request
  // that needs one, else null.
  RecipeKey KeyAt(const BatchTarget& target, const RequestShape& shape,
                  const ModelVariant* variant) const;
  // Returns the fields that all its keys have in common besides the graph.
  KeyPolicy key_policy() const;
  // Compiles the model for `key`, which KeyAt made; the recipe is in no cache and not primed.
  // `plan`: filled where it is not null. `go_on`: see CompileOptions.
  absl::StatusOr<std::unique_ptr<Recipe>> CompileAt(
      const RecipeKey& key, const ModelVariant* variant, const EngineOptions& options,
      CompiledPlan* plan = nullptr, std::function<absl::Status()> go_on = nullptr) const;
  // Returns the device that computes it.
  const Device& DeviceOf(const EngineOptions& options) const;
  // Returns how it is compiled for `key`.
  CompileOptions CompileOptionsFor(const RecipeKey& key, const EngineOptions& options) const;
  // Makes the recipe from a plan that was made for `key` before. DATA_LOSS where it cannot have
  // been.
  absl::StatusOr<std::unique_ptr<Recipe>> RebindAt(const CompiledPlan& plan, const RecipeKey& key,
                                                   const EngineOptions& options,
                                                   const ModelVariant* variant = nullptr) const;
  // Returns RESOURCE_EXHAUSTED where a stream would have to hold more for the recipe than the model
  // may.
  absl::Status CheckArena(const Recipe& recipe) const;
  // Returns how its graph differs from the one that was loaded before under its name; null: not at
  // all, or there was none before.
  const GraphChange* graph_change() const { return traffic_.graph_change.get(); }
  // Reports the state of the buckets to the observer.
  void ReportBuckets() const;
  // Writes a note for the operator, with the model's name.
  void Note(const std::string& text) const;
  // Returns the bytes of the model's own parameters, as stored in its file.
  int64_t parameter_bytes() const;

  // Checks a request against the signature and sizes it. INVALID_ARGUMENT naming the input and both
  // values when shapes disagree. Reads the bytes of shape inputs, and of lengths.
  absl::StatusOr<RequestShape> Measure(const Request& request) const;
  // Returns `shape` as Measure would return it by now, if that is something else: padding may have
  // been refuted since, or a slice of sizes looked at.
  std::optional<RequestShape> MeasureAgain(const RequestShape& shape) const;

  // Returns the symbols of the axes along which any size may be padded by now.
  std::set<std::string> Paddable() const;
  // Returns "" without a batch axis.
  const std::string& batch_symbol() const { return batch_symbol_; }
  // Returns the buckets that a request of `shape` gets: `current`, or where it has more rows than
  // these take, the buckets that its rows were counted with when it was measured.
  std::shared_ptr<const BucketPolicy> BucketsFor(const RequestShape& shape,
                                                 std::shared_ptr<const BucketPolicy> current) const;
  AxisSizes SizesByLabel(const std::vector<int64_t>& sizes) const;
  // Returns the most rows of a batch bucket that goes with the other sizes of `sizes`, by axis.
  int64_t LargestBatchAt(const BucketPolicy& buckets, const std::vector<int64_t>& sizes) const;
  // Returns the most rows that a request of `length` tokens each may have in a packed replay.
  int64_t MaxPackedRows(int64_t length) const;

 private:
  mutable StopFlag abandoned_;

  // Marks a request that may not be padded, or not yet, in any case.
  void HoldBack(RequestShape& shape) const;
  // Returns whether an audit took away the certificate of an axis that these sizes are padded
  // along.
  bool IsQuarantined(const std::vector<int64_t>& sizes) const;
  // Returns whether its lengths of rows end where the request does.
  bool LengthsAreInside(const Request& request, const RequestShape& shape) const;
  // Steps of Measure, which fill in `result`. Returns the shapes of the inputs, null for the left
  // out ones.
  absl::StatusOr<std::vector<const Shape*>> TakeInputs(const Request& request,
                                                       RequestShape& result) const;
  // Returns the sizes of the axes. A request that has others, which the model may take, becomes one
  // that needs SplitAxes.
  absl::StatusOr<std::map<std::string, int64_t>> MatchSizes(const std::vector<const Shape*>& shapes,
                                                            RequestShape& result) const;
  // Returns whether inputs of one row stay unchanged, since SplitAxes runs the request: its sizes
  // do not fit the axes even with as many as `rows`.
  bool RunsAsSent(const Request& request, int64_t rows) const;
  absl::Status TakeSize(const ModelAxis& axis, int64_t size, RequestShape& result) const;
  static void TakeOwnValue(const ModelIo& input, const InputTensor& tensor, RequestShape& result);
  absl::Status TakeShapeInput(const ModelIo& input, const InputTensor& tensor,
                              RequestShape& result) const;
  // Returns the name of the first input that has the axis.
  const std::string& InputWithAxis(const std::string& symbol) const;

  // Constant.
  const ModelOptions options_;
  const std::shared_ptr<const ModelSignature> signature_;
  const std::shared_ptr<const ModelProgram> program_;
  const std::shared_ptr<const ModelProof> proof_;
  const InputSignature input_sizes_;  // reads the inputs of signature_
  std::set<std::string> paddable_;    // symbols of the certified axes
  std::string batch_symbol_;
  const std::function<void(const std::string&)> log_;
  // Self-synchronised.
  const ModelTraffic traffic_;
  mutable PaddingQuarantine quarantine_;  // a model that serves is constant but for this
};

}  // namespace reprise
