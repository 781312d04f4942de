// Decoders that are used for vectors: their files often have inputs of cached keys and values,
// which a text begins without.
#pragma once

namespace reprise {

struct ImportedModel;

// Returns whether the model has inputs of cached keys and values.
bool HasCaches(const ImportedModel& model);

// Makes a model without them: nothing is cached, and the mask is as long as the ids. Outputs of
// keys and values go as well. Leaves inputs alone that are no such cache.
void DropCaches(ImportedModel& model);

}  // namespace reprise
