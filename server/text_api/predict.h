// Labels of texts: /predict as text-embeddings-inference has it for whole texts, and as the hub's
// clients read entities for a model that gives each token a label.
#pragma once

#include <vector>

#include "server/text_api/text_face.h"

namespace reprise {

// Returns the scores of labels as they are answered: one goes through the folder's activation,
// several exclude each other or do not.
std::vector<float> LabelShares(const TextModel& model, const std::vector<float>& scores);

TextFace Predictions();
// Returns the face for clients of the hub: the answer to one text is a list of one list of labels.
TextFace HubPredictions();

}  // namespace reprise
