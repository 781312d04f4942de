// Tail: the part of a model after its first cut, where shapes depend on data.
//
// The model's own graph is the part before: it is padded, batched and bucketed like any other. The
// tail runs request by request, on the replay's results for that request: nodes at cuts one by one,
// sections between them as recipes of the sizes that arrive, rounded up where the ops prove that
// safe (see SectionPadding).
//
// Ownership: shared by a model and its runs. Threads: all methods from any.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/model/model_variants.h"
#include "runtime/engine/model/section_padding.h"
#include "runtime/onnx/model_io.h"
#include "runtime/passes/cut/cut_graph.h"

namespace reprise {

class Tail {
 public:
  // `inputs`, `outputs`: of the whole model.
  Tail(std::shared_ptr<const CutGraph> graph, std::vector<ModelIo> inputs,
       std::vector<ModelIo> outputs);

  const CutGraph& graph() const { return *graph_; }
  const std::vector<ModelIo>& inputs() const { return inputs_; }
  const std::vector<ModelIo>& outputs() const { return outputs_; }
  // Returns the results of the model's own graph.
  const std::vector<ModelIo>& front_outputs() const { return front_outputs_; }
  const std::vector<Cut>& cuts() const { return graph_->cuts; }

  // A section as a graph that can be compiled, and the facts about its sizes.
  struct TypedSection {
    explicit TypedSection(ModelVariant made)
        : variant(std::make_shared<const ModelVariant>(std::move(made))), padding(*variant) {}

    const std::shared_ptr<const ModelVariant> variant;
    mutable SectionPadding padding;  // synchronises itself
  };
  // Returns `section` of graph() for inputs of these dtypes and ranks (by index among its inputs).
  // Every dim is a symbol, SymbolOf of the input and the dim.
  std::shared_ptr<const TypedSection> SectionFor(
      const GraphSection& section, const std::vector<std::pair<DType, size_t>>& types) const;
  static std::string SymbolOf(const std::string& input, size_t dim);

  // A description, for people, of the sizes of the sections that ran as recipes.
  struct SectionWords {
    std::string section;             // "after NonZero 'find'"
    std::vector<std::string> sizes;  // SectionPadding::Words
  };
  std::vector<SectionWords> Sections() const;

  // Returns a node at a cut of `graph` as a section of its own, which can be compiled where data is
  // known: operands that decide shapes are its shape inputs. Null where that never makes a kernel:
  // its elements, too, decide the shape of its result, or nothing but shapes goes in.
  const GraphSection* SectionOf(const CutGraph& graph, const EagerNode& node) const;

 private:
  using Types = std::vector<std::pair<DType, size_t>>;

  // Constant after construction.
  const std::shared_ptr<const CutGraph> graph_;
  const std::vector<ModelIo> inputs_;
  const std::vector<ModelIo> outputs_;
  std::vector<ModelIo> front_outputs_;
  // Guarded.
  mutable Mutex mutex_;
  mutable std::map<std::pair<const GraphSection*, Types>, std::shared_ptr<const TypedSection>>
      sections_ GUARDED_BY(mutex_);
  mutable std::map<const EagerNode*, std::unique_ptr<const GraphSection>> nodes_ GUARDED_BY(mutex_);
};

// Cuts `graph`, after the load passes, where data decides shapes, and where `wishes` say: it
// becomes the part before, and the rest is returned. Null, and `graph` unchanged, where there is no
// cut.
std::shared_ptr<const Tail> CutModel(Graph& graph, const std::vector<ModelIo>& inputs,
                                     const std::vector<int>& shape_inputs,
                                     const std::vector<ModelIo>& outputs,
                                     const CutWishes& wishes = {});

// Returns INVALID_ARGUMENT naming an output whose dtype the file does not declare and that does not
// follow from the inputs' dtypes: two branches may differ.
absl::Status CheckOutputTypes(const Tail& tail);

}  // namespace reprise
