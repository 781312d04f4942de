#include "server/requests/stages.h"

#include "runtime/base/status_macros.h"
#include "server/requests/admit.h"
#include "server/requests/key_limits.h"
#include "server/requests/pictures.h"
#include "server/requests/regions.h"
#include "server/requests/shape.h"
#include "server/requests/text.h"
#include "server/requests/tokenize.h"

namespace reprise {

std::vector<Stage> RequestStages(const Repository& repository, const TextModels* texts,
                                 TextThreads* threads) {
  return {
      CountAgainstKey,
      [&repository, texts, threads](const InferRequest& asked, RequestState& state) {
        const bool pictures = SendsPictures(asked);
        const bool sends_texts = texts != nullptr && SendsTexts(asked);
        if (!pictures && !sends_texts) return Admit(repository, asked, state);
        RETURN_IF_ERROR(ReadRegions(asked, state));
        if (pictures) return AdmitPictures(repository, threads, asked, state);
        return AdmitTexts(repository, *texts, threads, asked, state);
      },
      ReadRegions,
      ReadTexts,
      ClassifyOutputs,
      MeasureShape,
  };
}

}  // namespace reprise
